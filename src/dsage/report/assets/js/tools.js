"use strict";

// Data enter the page as text, never as markup.
const data = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";
const byId = (id) => document.getElementById(id);

function put(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  for (const child of children) {
    if (child !== null && child !== undefined) node.append(child);
  }
  return node;
}

const make = (tag, attributes, ...children) => put(document.createElement(tag), attributes, children);
const draw = (tag, attributes, ...children) =>
  put(document.createElementNS(SVG, tag), attributes, children);

// A name, isolated from the direction of the text around it.
const nameOf = (text) => make("bdi", { dir: "auto" }, text);

function paragraph(id, sentences) {
  byId(id).replaceChildren(make("p", {}, sentences.join(" ")));
}

const pen = document.createElement("canvas").getContext("2d");
const family = getComputedStyle(document.body).fontFamily;
const widths = new Map();

function textWidth(text, size = 13, weight = 400) {
  const key = `${weight} ${size} ${text}`;
  if (!widths.has(key)) {
    pen.font = `${weight} ${size}px ${family}`;
    widths.set(key, pen.measureText(text).width * 1.02);
  }
  return widths.get(key);
}

// Lines of a name that fit a width: broken at spaces and punctuation, else inside words.
function wrapped(text, width, size = 13, weight = 400) {
  const lines = [];
  let line = "";
  const pieces = text.match(/[^\s_.\-/]+[\s_.\-/]*|[\s_.\-/]+/gu) || [text];
  for (let piece of pieces) {
    if (textWidth((line + piece).trimEnd(), size, weight) <= width) {
      line += piece;
      continue;
    }
    if (line) lines.push(line);
    line = "";
    for (const letter of Array.from(piece)) {
      if (line && textWidth(line + letter, size, weight) > width) {
        lines.push(line);
        line = "";
      }
      line += letter;
    }
  }
  if (line.trim() || !lines.length) lines.push(line);
  return lines.map((each) => each.trim());
}

function textLines(lines, x, middle, attributes, height = 16) {
  const top = middle - ((lines.length - 1) * height) / 2;
  const spans = lines.map((line, at) => draw("tspan", { x, y: top + at * height }, line));
  return draw("text", { "dominant-baseline": "central", ...attributes }, ...spans);
}

function ticks(low, high, wanted) {
  const rough = (high - low) / Math.max(wanted, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
  const result = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + step * 1e-9; at += 1) {
    result.push(at * step);
  }
  return { at: result, step };
}

function tickText(value, step) {
  if (Math.abs(value) < step * 1e-6) return "0";
  const size = Math.abs(value);
  if (size >= 1e7 || step < 1e-5) return value.toExponential(1).replace("-", "\u2212");
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const text = size.toLocaleString("en", {
    minimumFractionDigits: decimals,
    maximumFractionDigits: decimals,
  });
  return value < 0 ? `\u2212${text}` : text;
}

const known = (value) => value !== null && value !== undefined;

function picture(parent, svg, title, classes = "") {
  const label = draw("title", {}, title);
  svg.prepend(label);
  put(svg, { role: "img", "aria-label": title }, []);
  const box = make("div", { class: `picture ${classes}` }, svg);
  parent.append(box);
  return box;
}

function legend(items) {
  return make("ul", { class: "legend" }, ...items.map((item) => make("li", {}, ...item)));
}
