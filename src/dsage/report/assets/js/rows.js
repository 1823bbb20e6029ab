// One row at a time: a chart from the base value to the prediction, and its numbers.
const state = { row: 0, output: 0 };
const current = () => data.outputs[state.output];
const sign = data.is_loss ? -1 : 1;
const what = data.is_loss ? "loss" : "prediction";

function figure(value) {
  const size = Math.abs(value);
  if (!size) return "0";
  const text = size >= 1e-4 && size < 1e7
    ? size.toLocaleString("en", { maximumSignificantDigits: 4 })
    : size.toExponential(2);
  return value < 0 ? `\u2212${text}` : text;
}

const signed = (value) => (value > 0 ? `+${figure(value)}` : figure(value));

// The steps of a row, the largest first, and what they leave.
function stepsOf(output, row) {
  const order = output.values[row].map((_, at) => at);
  order.sort((one, other) => Math.abs(output.values[row][other]) - Math.abs(output.values[row][one]));
  const steps = order.map((at) => ({
    name: `${data.features[at].name} = ${data.texts[row][at]}`,
    value: sign * output.values[row][at],
    half: (output.upper[row][at] - output.lower[row][at]) / 2,
  }));
  const left = output.left[row];
  const size = Math.abs(output.full[row] - output.base[row]);
  if (Math.abs(left) > 0.01 * size) steps.push({ name: "not explained", value: left, half: 0, isLeft: true });
  return steps;
}

function rowChart() {
  const output = current();
  const { row } = state;
  const parent = byId("row-chart");
  parent.replaceChildren();
  const width = Math.max(Math.floor(parent.clientWidth), 240);
  const steps = stepsOf(output, row);
  const first = data.is_loss ? "no feature known" : "mean prediction";
  const names = [first, ...steps.map((step) => step.name), `${what} of row ${data.rows[row]}`];
  const longest = Math.max(...names.map((name) => textWidth(name)));
  const left = Math.min(longest + 4, width * 0.36) + 14;
  let sum = output.base[row];
  const ends = steps.map((step) => (sum += step.value));
  const all = [output.base[row], output.full[row], ...ends];
  steps.forEach((step, at) => all.push(ends[at] - step.half, ends[at] + step.half));
  const x = scaleTo([Math.min(...all), Math.max(...all)], left + 60, width - 70);
  const svg = draw("svg", {});
  const marks = draw("g", {});
  let top = 4;
  names.forEach((name, at) => {
    const lines = wrapped(name, left - 14);
    const height = Math.max(30, lines.length * 16 + 10);
    const middle = top + height / 2;
    marks.append(textLines(lines, left - 14, middle, { "text-anchor": "end" }));
    if (at === 0 || at === names.length - 1) drawEnd(marks, x, middle, at ? output.full[row] : output.base[row]);
    else drawStep(marks, x, middle, height, steps[at - 1], ends[at - 1], at < names.length - 2);
    top += height;
  });
  svg.append(axisOf(x, top + 4, output.label), marks);
  put(svg, { viewBox: `0 0 ${width} ${top + 46}`, width, height: top + 46 }, []);
  picture(parent, svg, `How the features lead to the ${what} of row ${data.rows[row]}`, "short");
}

function drawEnd(marks, x, middle, value) {
  const place = x(value);
  marks.append(
    draw("path", { class: "end", d: `M${place - 5},${middle} L${place},${middle - 5} L${place + 5},${middle} L${place},${middle + 5} Z` }),
    draw("text", { class: "figure-label", x: place + 10, y: middle, "dominant-baseline": "central" }, figure(value)),
  );
}

function drawStep(marks, x, middle, height, step, end, isJoined) {
  const [from, to] = [x(end - step.value), x(end)];
  const kind = step.isLeft ? "rest" : step.value < 0 ? "down" : "up";
  marks.append(draw("rect", {
    class: `step ${kind}`, x: Math.min(from, to), y: middle - 9, width: Math.max(Math.abs(to - from), 1), height: 18, rx: 2,
  }));
  if (isJoined) marks.append(draw("line", { class: "grid", x1: to, x2: to, y1: middle + 9, y2: middle + height - 9 }));
  const half = Math.abs(x(end + step.half) - to);
  if (half) marks.append(draw("line", { class: "whisker", x1: to - half, x2: to + half, y1: middle, y2: middle }));
  const isUp = step.value >= 0;
  marks.append(draw("text", {
    x: to + (isUp ? half + 6 : -half - 6), y: middle, "text-anchor": isUp ? "start" : "end", "dominant-baseline": "central",
  }, signed(step.value)));
}

function rowTable() {
  const output = current();
  const { row } = state;
  const order = output.values[row].map((_, at) => at);
  order.sort((one, other) => Math.abs(output.values[row][other]) - Math.abs(output.values[row][one]));
  const body = make("tbody", {}, ...order.map((at) => make(
    "tr", {},
    make("th", { scope: "row", class: "name" }, nameOf(data.features[at].name)),
    make("td", {}, nameOf(data.texts[row][at])),
    make("td", { class: "nowrap" }, figure(output.values[row][at])),
    make("td", { class: "nowrap" }, `${figure(output.lower[row][at])} to ${figure(output.upper[row][at])}`),
    make("td", { class: "nowrap" }, figure(output.mean[at])),
  )));
  const labels = [data.noun[0].toUpperCase() + data.noun.slice(1), "Its value here", data.label, `${data.confidence} interval`, "Mean over the rows"];
  const head = make("thead", {}, make("tr", {}, ...labels.map((label, at) =>
    make("th", { scope: "col", class: `plain${at ? "" : " name"}` }, label))));
  const caption = make("caption", {}, make("span", {}, `The numbers of row ${data.rows[row]}.`));
  byId("row-table").replaceChildren(make(
    "div", { class: "table", role: "region", "aria-label": "The numbers of the row", tabindex: 0 }, make("table", {}, caption, head, body),
  ));
}

function render() {
  const output = current();
  const { row } = state;
  byId("choice").value = String(row);
  const text = data.is_loss
    ? `Without any feature the loss (${output.label}) of row ${data.rows[row]} is ${figure(output.base[row])}; with all of them it is ${figure(output.full[row])}.`
    : `Without any feature the ${output.label} is ${figure(output.base[row])}; for row ${data.rows[row]} it is ${figure(output.full[row])}.`;
  paragraph("row-text", [text]);
  rowChart();
  rowTable();
  swarmChart(output, row);
}

function choose(row) {
  state.row = (row + data.rows.length) % data.rows.length;
  render();
}

function start() {
  summary();
  byId("notes-text").append(...data.notes.map((sentence) => make("p", {}, sentence)));
  paragraph("all-text", [`One point for each row and ${data.noun}. Its color is the value of the ${data.noun}. Select a point to see its row above.`]);
  byId("choice").append(...data.rows.map((name, at) => make("option", { value: at }, name)));
  byId("choice").addEventListener("change", (event) => choose(Number(event.target.value)));
  byId("before").addEventListener("click", () => choose(state.row - 1));
  byId("after").addEventListener("click", () => choose(state.row + 1));
  byId("output-label").hidden = data.outputs.length < 2;
  byId("output").append(...data.outputs.map(({ name }, at) => make("option", { value: at }, name)));
  byId("output").addEventListener("change", (event) => { state.output = Number(event.target.value); render(); });
  choicesTables();
  window.addEventListener("resize", render);
  render();
}

start();
