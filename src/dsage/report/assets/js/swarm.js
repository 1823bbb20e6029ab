// The values of all rows: one point for each row and feature, stacked where values agree.
const LINE = 44;
const STEPS = [[86, 180, 233], [0, 114, 178], [75, 59, 124], [160, 62, 91], [213, 94, 0], [230, 159, 0]];

function blend(share) {
  const place = Math.min(Math.max(share, 0), 1) * (STEPS.length - 1);
  const from = Math.min(Math.floor(place), STEPS.length - 2);
  const mixed = STEPS[from].map((each, at) => Math.round(each + (place - from) * (STEPS[from + 1][at] - each)));
  return `rgb(${mixed.join(",")})`;
}

// The color of a row by a feature: a scale for numbers, a palette for classes, gray for the rest.
function pointColor(feature, row) {
  if (feature.categories.length) {
    const code = feature.codes[row];
    return code >= 0 && code < feature.categories.length ? `var(--c${code})` : "var(--line)";
  }
  return known(feature.shares[row]) ? blend(feature.shares[row]) : "var(--line)";
}

function stacked(numbers, x) {
  const counts = new Map();
  return numbers.map((value) => {
    const bin = Math.round(x(value) / 6);
    const number = counts.get(bin) || 0;
    counts.set(bin, number + 1);
    const side = number % 2 ? -1 : 1;
    return side * Math.ceil(number / 2);
  });
}

function scaleTo([low, high], from, to) {
  const room = 0.04 * (high - low) || 1;
  const x = (value) => from + ((value - low + room) / (high - low + 2 * room)) * (to - from);
  return Object.assign(x, { low: low - room, high: high + room, from, to });
}

function axisOf(x, bottom, label) {
  const group = draw("g", { class: "axis" });
  const { at, step } = ticks(x.low, x.high, Math.max((x.to - x.from) / 110, 2.6));
  for (const value of at) {
    const place = x(value);
    group.append(
      draw("line", { class: Math.abs(value) < step * 1e-6 ? "zero" : "grid", x1: place, x2: place, y1: 0, y2: bottom }),
      draw("text", { x: place, y: bottom + 15, "text-anchor": "middle" }, tickText(value, step)),
    );
  }
  group.append(draw("text", { x: (x.from + x.to) / 2, y: bottom + 35, "text-anchor": "middle" }, label));
  return group;
}

function swarmChart(output, chosen) {
  const parent = byId("all-chart");
  parent.replaceChildren();
  const width = Math.max(Math.floor(parent.clientWidth), 240);
  const shown = output.order;
  const longest = Math.max(...shown.map((at) => textWidth(data.features[at].name)));
  const left = Math.min(longest + 4, width * 0.3) + 14;
  const everything = output.values.flat();
  const x = scaleTo([Math.min(0, ...everything), Math.max(0, ...everything)], left, width - 12);
  const svg = draw("svg", {});
  const marks = draw("g", {});
  shown.forEach((at, number) => {
    const feature = data.features[at];
    const middle = 18 + number * LINE;
    marks.append(textLines(wrapped(feature.name, left - 14), left - 14, middle, { "text-anchor": "end" }));
    const numbers = output.values.map((row) => row[at]);
    const places = stacked(numbers, x);
    const room = Math.min(3.4, 18 / Math.max(1, ...places.map(Math.abs)));
    numbers.forEach((value, row) => {
      const isMissing = feature.missing.includes(row);
      const point = draw("circle", {
        cx: x(value), cy: middle + places[row] * room, r: row === chosen ? 5 : 3.2,
        fill: pointColor(feature, row), class: `point${row === chosen ? " chosen" : isMissing ? " missing" : ""}`,
      }, draw("title", {}, `row ${data.rows[row]}: ${feature.name} = ${data.texts[row][at]}, value ${tickText(value, Math.abs(value) / 100 || 1)}`));
      point.addEventListener("click", () => choose(row));
      marks.append(point);
    });
  });
  const bottom = 18 + shown.length * LINE - 14;
  svg.append(axisOf(x, bottom, `${data.label} (${output.label})`), marks);
  put(svg, { viewBox: `0 0 ${width} ${bottom + 44}`, width, height: bottom + 44 }, []);
  parent.append(swarmLegend(shown));
  picture(parent, svg, "The values of all rows, feature by feature");
}

function swatch(color) {
  return draw("svg", { width: 12, height: 12, "aria-hidden": "true" }, draw("circle", { cx: 6, cy: 6, r: 4.5, fill: color }));
}

function swarmLegend(shown) {
  const items = [];
  const features = shown.map((at) => data.features[at]);
  if (features.some((feature) => feature.shares.some(known))) {
    items.push(["low ", ...[0, 0.25, 0.5, 0.75, 1].map((share) => swatch(blend(share))), " high"]);
  }
  for (const feature of features) {
    if (!feature.categories.length) continue;
    const named = feature.categories.flatMap((name, at) => [swatch(`var(--c${at})`), nameOf(name)]);
    items.push([make("b", {}, `${feature.name}:`), ...named]);
  }
  if (features.some((feature) => feature.missing.length)) items.push([swatch("var(--line)"), "missing"]);
  return legend(items);
}
