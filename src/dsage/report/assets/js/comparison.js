// Assembles the page of a comparison: differences, and the values that they are differences of.
const all = data.features.map((_, at) => at);
// Between the marks of two series in a row.
const APART = 13;

function differenceChart(id, at) {
  const part = data.parts[at];
  const of = (feature) => feature.differences[at];
  const size = (row) => Math.abs(of(data.features[row]).value);
  rowChart(id, {
    rows: [...all].sort((one, other) => size(other) - size(one) || one - other),
    title: `${part.title}, with intervals, the largest first`,
    label: part.label,
    legend: () => [
      [sample("thick"), `${data.confidence} interval for these rows (computing)`],
      [sample("thin"), `${data.confidence} interval for the population (rows and computing)`],
    ],
    domain: (features) =>
      domainOf(features.map(of), ["value", "lower", "upper"], ["lower_total", "upper_total"]),
    figure: (feature) => of(feature).words.value,
    marks: (row, feature, x, middle) => {
      const { value, lower, upper, lower_total, upper_total } = of(feature);
      valueMarks(row, x, middle, value, [lower, upper], [lower_total, upper_total], true);
    },
    tip: (feature) => [
      `${part.noun} ${of(feature).words.value}`,
      `population: ${of(feature).words.interval}`,
      `p-value ${of(feature).words.p_value}`,
    ],
  });
}

function differencesTable() {
  const rows = data.parts.flatMap((part, at) => {
    const size = (row) => Math.abs(data.features[row].differences[at].value);
    return [...all].sort((one, other) => size(other) - size(one) || one - other).map((row) => make(
      "tr", { "data-feature": row },
      make("th", { scope: "row", class: "name" }, nameOf(data.features[row].name)),
      ...(data.parts.length > 1 ? [make("td", { class: "words" }, nameOf(part.name))] : []),
      ...data.features[row].differences[at].cells.map((text) => make("td", { class: "nowrap" }, text)),
    ));
  });
  const caption = captioned("All numbers. The p-value is for all lines at once.");
  const body = make("tbody", {}, ...rows);
  const head = header([capital(data.noun), ...data.columns], data.parts.length > 1 ? [1] : []);
  scrolling("differences-table", "All numbers", make("table", {}, caption, head, body));
}

function dotOf(at, isSample) {
  const dot = draw("circle", isSample ? { cx: 6, cy: 6, r: 4.2 } : { r: 4.2 });
  dot.style.fill = `var(--c${at % 8})`;
  return dot;
}

function valuesChart() {
  const n = data.series.length;
  rowChart("values-chart", {
    rows: all,
    height: 16 + n * APART,
    title: "The values side by side, the largest mean first",
    label: data.value_label,
    legend: () => data.series.map((name, at) => [
      draw("svg", { width: 12, height: 12, "aria-hidden": "true" }, dotOf(at, true)), nameOf(name),
    ]),
    domain: (features) => domainOf(features.flatMap((each) => each.values), ["value"], ["lower", "upper"]),
    figure: (feature) => feature.values[0].text,
    marks: (row, feature, x, middle) => feature.values.forEach(({ value, lower, upper }, at) => {
      const place = middle + (at - (n - 1) / 2) * APART;
      span(row, x, place, lower, upper, "whisker", 0);
      row.append(put(dotOf(at), { cx: x(value), cy: place }, []));
    }),
    tip: (feature) => feature.values.map(({ text }, at) => `${data.series[at]}: ${text}`),
  });
}

// The name is that of the other report: buttons that show more rows call it.
function renderRows() {
  data.parts.forEach((_, at) => differenceChart(`difference-${at}`, at));
  valuesChart();
  showLit();
}

const renderCharts = renderRows;

byId("differences-charts").append(...data.parts.map((part, at) => make(
  "div", {}, data.parts.length > 1 ? make("h3", {}, part.title) : null, make("div", { id: `difference-${at}` }),
)));
summary();
meaning();
choicesTables();
paragraph("differences-text", data.differences_text);
paragraph("values-text", data.values_text);
differencesTable();
renderCharts();
listen();
follow();
