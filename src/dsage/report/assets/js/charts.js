// Charts with one row per feature: label, marks on a common scale, figures to the right.
const FEW = 25;
const whole = new Set();

function rowChart(id, options) {
  const parent = byId(id);
  const all = options.rows;
  const rows = whole.has(id) ? all : all.slice(0, FEW);
  parent.replaceChildren();
  if (!rows.length) {
    parent.append(make("p", { class: "none" }, `No ${data.noun} matches.`));
    return;
  }
  if (options.legend) parent.append(legend(options.legend()));
  const width = pageWidth(parent);
  const narrow = width < 560;
  const figures = rows.map((at) => options.figure(data.features[at], narrow));
  const right = Math.max(...figures.map((text) => textWidth(text, 13, 600))) + 14;
  const longest = Math.max(...rows.map((at) => textWidth(data.features[at].name)));
  const left = Math.min(longest + 4, narrow ? width * 0.34 : Math.min(width * 0.3, 280)) + 12;
  const labels = rows.map((at) => wrapped(data.features[at].name, left - 12));
  const x = scaleOf(options.domain(rows.map((at) => data.features[at])), left, width - right - 8);
  const svg = draw("svg", {});
  const marks = draw("g", {});
  let top = 4;
  rows.forEach((at, number) => {
    const height = Math.max(options.height || 27, labels[number].length * 16 + 10);
    const feature = data.features[at];
    const row = draw("g", { class: "feature", "data-feature": at });
    row.append(draw("rect", { class: "hit", x: 0, y: top, width, height, rx: 4 }));
    const middle = top + height / 2;
    row.append(textLines(labels[number], left - 12, middle, { "text-anchor": "end" }));
    options.marks(row, feature, x, middle);
    row.append(
      draw(
        "text",
        { class: "figure-label", x: width - 6, y: middle, "text-anchor": "end", "dominant-baseline": "central" },
        figures[number],
      ),
    );
    withTip(row, feature.name, options.tip(feature, at));
    marks.append(row);
    top += height;
  });
  svg.append(axis(x, top + 4, options.label, options.tick, narrow), marks);
  put(svg, { viewBox: `0 0 ${width} ${top + 46}`, width, height: top + 46 }, []);
  picture(parent, svg, options.title, rows.length <= 30 ? "short" : "");
  if (all.length > FEW) parent.append(moreButton(id, all.length));
}

function moreButton(id, count) {
  const text = whole.has(id) ? `Show the first ${FEW} only` : `Show all ${count}`;
  const button = make("button", { type: "button", class: "more" }, text);
  button.addEventListener("click", () => {
    if (!whole.delete(id)) whole.add(id);
    renderRows();
    byId(id).querySelector("button.more").focus();
  });
  return button;
}

// A linear scale from numbers to pixels, with its ends.
function scaleOf([low, high], from, to) {
  const x = (value) => from + ((value - low) / (high - low)) * (to - from);
  return Object.assign(x, { low, high, from, to });
}

function axis(x, bottom, label, text, narrow) {
  const group = draw("g", { class: "axis" });
  const { at, step } = ticks(x.low, x.high, Math.max((x.to - x.from) / (narrow ? 60 : 110), narrow ? 2.6 : 3));
  for (const value of at) {
    const place = x(value);
    const isZero = Math.abs(value) < step * 1e-6;
    group.append(
      draw("line", { class: isZero ? "zero" : "grid", x1: place, x2: place, y1: 0, y2: bottom }),
      draw("text", { x: place, y: bottom + 15, "text-anchor": "middle" }, (text || tickText)(value, step)),
    );
  }
  const middle = (x.from + x.to) / 2;
  group.append(draw("text", { x: middle, y: bottom + 35, "text-anchor": "middle" }, label));
  return group;
}

// All values, and as much of wide intervals as leaves room for the rest.
function domainOf(features, near, far) {
  const numbers = (keys) => features.flatMap((each) => keys.map((key) => each[key])).filter(known);
  const inner = [0, ...numbers(near)];
  let low = Math.min(...inner);
  let high = Math.max(...inner);
  const room = 1.2 * (high - low || 1);
  const outer = numbers(far);
  low = Math.max(Math.min(low, ...outer), low - room);
  high = Math.min(Math.max(high, ...outer), high + room);
  if (low === high) high = low + 1;
  const margin = 0.02 * (high - low);
  return [low < 0 ? low - margin : 0, high > 0 ? high + margin : 0];
}

function span(row, x, middle, lower, upper, classes, cap) {
  if (!known(lower) || !known(upper)) return;
  const from = x(Math.max(lower, x.low));
  const to = x(Math.min(upper, x.high));
  row.append(draw("line", { class: classes, x1: from, x2: to, y1: middle, y2: middle }));
  if (!cap) return;
  const ends = [[lower >= x.low, from], [upper <= x.high, to]];
  for (const [inside, place] of ends) {
    // A bar where the interval ends, an arrow where it extends beyond the chart.
    const back = inside ? 0 : place === from ? cap : -cap;
    const shape = `M${place + back},${middle - cap} L${place},${middle} L${place + back},${middle + cap}`;
    row.append(draw("path", { class: classes, d: shape }));
  }
}

function valueMarks(row, x, middle, value, near, far, bar) {
  const sign = value < 0 ? " negative" : "";
  if (bar) {
    const from = Math.min(x(0), x(value));
    row.append(
      draw("rect", {
        class: `bar${sign}`, x: from, y: middle - 9, width: Math.abs(x(value) - x(0)), height: 18, rx: 2,
      }),
    );
  }
  if (far) span(row, x, middle, far[0], far[1], `thin${sign}`, 4);
  span(row, x, middle, near[0], near[1], `thick${sign}`, 0);
  row.append(draw("circle", { class: `dot${sign}`, cx: x(value), cy: middle, r: 4.2 }));
}

function sample(kind) {
  const svg = draw("svg", { width: 34, height: 12, "aria-hidden": "true" });
  if (kind === "thin") {
    svg.append(
      draw("line", { class: "thin", x1: 2, x2: 32, y1: 6, y2: 6 }),
      draw("line", { class: "thin", x1: 2, x2: 2, y1: 2, y2: 10 }),
      draw("line", { class: "thin", x1: 32, x2: 32, y1: 2, y2: 10 }),
    );
  } else {
    svg.append(draw("line", { class: "thick", x1: 2, x2: 32, y1: 6, y2: 6 }));
  }
  return svg;
}

function rankingChart(rows) {
  rowChart("ranking-chart", {
    rows,
    title: `SAGE values of ${rows.length} ${data.noun}s with their intervals, the largest first`,
    label: `value: lower ${data.loss}`,
    legend: () => [
      [sample("thick"), `${data.confidence} interval for these rows (computing)`],
      [sample("thin"), `${data.confidence} interval for the population (rows and computing)`],
    ],
    domain: (features) => domainOf(features, ["value", "lower", "upper"], ["lower_total", "upper_total"]),
    figure: (feature, narrow) =>
      narrow || !known(feature.share)
        ? feature.words.value
        : `${feature.words.value}  \u00b7  ${feature.words.share}`,
    marks: (row, feature, x, middle) =>
      valueMarks(
        row, x, middle, feature.value, [feature.lower, feature.upper],
        [feature.lower_total, feature.upper_total], true,
      ),
    tip: (feature) => [
      `value ${feature.words.value}, share ${feature.words.share}`,
      `these rows: ${feature.words.interval}`,
      `population: ${feature.words.interval_total}`,
      ...(known(feature.se_sampler) ? [`another sampler: \u00b1 ${feature.words.sampler}`] : []),
      ...(feature.members.length ? [`members: ${feature.members.join(", ")}`] : []),
    ],
  });
}

// Direct and indirect parts side by side; parts of opposite signs go to both sides of zero.
function causalChart(rows) {
  if (!data.causal) return;
  const box = (row, x, middle, from, to, classes) => row.append(draw("rect", {
    class: classes, x: Math.min(x(from), x(to)), y: middle - 9,
    width: Math.abs(x(to) - x(from)), height: 18, rx: 2,
  }));
  const swatch = (kind) => make("span", { class: `swatch ${kind}` });
  rowChart("causal-chart", {
    rows,
    title: `Direct and indirect parts of the values of ${rows.length} ${data.noun}s`,
    label: `value: lower ${data.loss}`,
    legend: () => [
      [swatch("direct"), "direct: from the value itself"],
      [swatch("indirect"), "indirect: from other features that it changes"],
    ],
    domain: (features) => domainOf(features, ["value", "direct", "indirect"], []),
    figure: (feature) => feature.words.value,
    marks: (row, { direct, indirect, value }, x, middle) => {
      const start = direct * indirect > 0 ? direct : 0;
      box(row, x, middle, 0, direct, "part direct");
      box(row, x, middle, start, start + indirect, "part indirect");
      row.append(draw("circle", { class: "dot", cx: x(value), cy: middle, r: 4.2 }));
    },
    tip: (feature, at) => data.causal.lines[at].slice(1).map(
      (text, number) => `${data.causal.columns[number + 1].toLocaleLowerCase()} ${text}`,
    ),
  });
}

function savingsChart(rows) {
  if (!data.skips) return;
  rowChart("savings-chart", {
    rows,
    title: "Share of skipped surpluses",
    label: "share of the surpluses that were skipped",
    domain: () => [0, 1],
    tick: (value) => `${Math.round(100 * value)} %`,
    figure: (feature) => feature.words.skipped,
    marks: (row, feature, x, middle) => {
      const box = { y: middle - 6, height: 12, x: x(0), rx: 2 };
      row.append(
        draw("rect", { class: "track", width: x(1) - x(0), ...box }),
        draw("rect", { class: "solid", width: x(feature.share_skipped) - x(0), ...box }),
      );
    },
    tip: (feature) => [`${feature.words.skipped} of its surpluses skipped`],
  });
}

function auditChart(rows) {
  if (!data.audit.verdicts.length) return;
  const size = (at) => Math.abs(data.features[at].audit_difference ?? 0);
  rowChart("audit-chart", {
    rows: [...rows].sort((one, other) => size(other) - size(one) || one - other),
    title: "d-SAGE minus SAGE with its interval, the largest difference first",
    label: "d-SAGE minus SAGE",
    domain: (features) => domainOf(features, ["audit_difference"], ["audit_lower", "audit_upper"]),
    figure: (feature) => feature.words.difference,
    marks: (row, feature, x, middle) => {
      if (!known(feature.audit_difference)) return;
      const marked = draw("g", { class: feature.audit_matters ? "matters" : "" });
      const sign = feature.audit_matters ? " negative" : "";
      span(marked, x, middle, feature.audit_lower, feature.audit_upper, `thin${sign}`, 4);
      marked.append(draw("circle", { class: `dot${sign}`, cx: x(feature.audit_difference), cy: middle, r: 4.5 }));
      row.append(marked);
    },
    tip: (feature, at) => [
      `${feature.words.difference} (${feature.words.difference_interval})`, data.audit.verdicts[at],
    ],
  });
}
