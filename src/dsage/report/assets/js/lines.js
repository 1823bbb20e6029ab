// How the values converged: a line and a band for each feature.
function convergenceChart() {
  const course = data.convergence;
  const parent = byId("convergence-chart");
  parent.replaceChildren();
  if (!course.at.length) return;
  const width = pageWidth(parent);
  const narrow = width < 560;
  const named = Math.min(course.labelled, data.features.length);
  const room = narrow ? 8 : Math.min(
    Math.max(...data.features.slice(0, named).map((each) => textWidth(each.name))) + 24, 240,
  );
  const height = narrow ? 280 : 380;
  const useLog = course.at[0] > 0 && course.at[course.at.length - 1] / course.at[0] > 20;
  const along = (value) => (useLog ? Math.log10(value) : value);
  const ends = [along(course.at[0]), along(course.at[course.at.length - 1])];
  const y = verticalOf(course, height);
  const left = Math.max(...y.ticks.at.map((each) => textWidth(tickText(each, y.ticks.step), 12))) + 12;
  const x = scaleOf(ends, left, width - room);
  const places = course.at.map((each) => x(along(each)));
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height + 48}`, width, height: height + 48 });
  svg.append(frame(x, y, course, useLog, width - room, height));
  const ink = (at) => (at < named ? `var(--c${at})` : null);
  const inside = draw("g", { "clip-path": "url(#plot)" });
  const clip = draw("rect", { x: x.from, y: 0, width: width - room - x.from + 6, height: height + 6 });
  svg.append(draw("defs", {}, draw("clipPath", { id: "plot" }, clip)), inside);
  // The largest last, so that it lies on top.
  for (let at = course.lines.length - 1; at >= 0; at -= 1) {
    inside.append(courseOf(course, at, places, y, ink(at)));
  }
  if (!narrow) for (const label of endLabels(course, y, named, width - room, room, height)) svg.append(label);
  else parent.append(colorLegend(named, ink));
  picture(parent, svg, "The values during the run, with bands of two standard errors", "short");
}

function verticalOf(course, height) {
  const last = course.at.length - 1;
  const ends = course.lines.flatMap((line) =>
    [line.values[last], line.lower[last], line.upper[last]]).filter(known);
  let low = Math.min(0, ...ends);
  let high = Math.max(0, ...ends);
  if (low === high) high = low + 1;
  // The first looks may be far off, and get a limited part of the chart.
  const room = 0.4 * (high - low);
  const values = course.lines.flatMap((line) => line.values).filter(known);
  low = Math.max(Math.min(low, ...values), low - room);
  high = Math.min(Math.max(high, ...values), high + room);
  const margin = 0.04 * (high - low);
  const marks = ticks(low - margin, high + margin, height / 60);
  return Object.assign(scaleOf([low - margin, high + margin], height, 8), { ticks: marks });
}

function frame(x, y, course, useLog, right, height) {
  const group = draw("g", { class: "axis" });
  for (const value of y.ticks.at) {
    const isZero = Math.abs(value) < y.ticks.step * 1e-6;
    group.append(
      draw("line", { class: isZero ? "zero" : "grid", x1: x.from, x2: right, y1: y(value), y2: y(value) }),
      draw(
        "text", { x: x.from - 8, y: y(value), "text-anchor": "end", "dominant-baseline": "central" },
        tickText(value, y.ticks.step),
      ),
    );
  }
  let next = Infinity;
  // From the end, which matters most.
  for (let look = course.at.length - 1; look >= 0; look -= 1) {
    const value = course.at[look];
    const place = x(useLog ? Math.log10(value) : value);
    const text = course.at_words[look];
    const half = textWidth(text, 12) / 2;
    group.append(draw("line", { class: "zero", x1: place, x2: place, y1: height, y2: height + 5 }));
    const middle = Math.min(Math.max(place, half), right - half + 4);
    if (middle + half > next - 12) continue;
    next = middle - half;
    group.append(draw("text", { x: middle, y: height + 19, "text-anchor": "middle" }, text));
  }
  const label = `${course.label} so far${useLog ? " (logarithmic)" : ""}`;
  group.append(
    draw("line", { class: "zero", x1: x.from, x2: right, y1: height, y2: height }),
    draw("text", { x: (x.from + right) / 2, y: height + 40, "text-anchor": "middle" }, label),
  );
  return group;
}

function courseOf(course, at, places, y, ink) {
  const line = course.lines[at];
  const group = draw("g", { class: ink ? "feature" : "feature quiet", "data-feature": at });
  const path = (values, looks) => looks.map((look) => `${places[look]},${y(values[look])}`);
  const looks = places.map((_, look) => look);
  // A band that covers half of the chart would hide the others.
  const sure = looks.filter((look) => known(line.lower[look]) && known(line.upper[look])
    && line.upper[look] - line.lower[look] < (y.high - y.low) / 2);
  
  if (sure.length > 1) {
    const around = [...path(line.upper, sure), ...path(line.lower, sure).reverse()];
    const band = draw("polygon", { class: "band", points: around.join(" ") });
    band.style.fill = ink || "var(--ink)";
    group.append(band);
  }
  const main = draw("polyline", { class: "course", points: path(line.values, looks).join(" ") });
  if (ink) main.style.stroke = ink;
  const wide = draw("polyline", { class: "wide", points: path(line.values, looks).join(" ") });
  group.append(main, wide);
  const last = looks.length - 1;
  const dot = draw("circle", { cx: places[last], cy: y(line.values[last]), r: ink ? 3.4 : 2 });
  dot.style.fill = ink || "var(--line)";
  group.append(dot);
  return withMovingTip(group, (event) => {
    const box = group.ownerSVGElement.getBoundingClientRect();
    const here = ((event.clientX - box.left) / box.width) * group.ownerSVGElement.viewBox.baseVal.width;
    const far = places.map((place) => Math.abs(place - here));
    const look = far.indexOf(Math.min(...far));
    return {
      title: data.features[at].name,
      lines: [line.words[look], `at ${course.at_words[look]} ${course.label}`],
    };
  });
}

// Names at the ends of the lines, moved apart if they overlap.
function endLabels(course, y, count, right, room, height) {
  const labels = [];
  for (let at = 0; at < count; at += 1) {
    const lines = wrapped(data.features[at].name, room - 20, 12.5);
    const values = course.lines[at].values;
    labels.push({ at, lines, size: lines.length * 15 + 3, wanted: y(values[values.length - 1]) });
  }
  labels.sort((one, other) => one.wanted - other.wanted);
  let from = 0;
  for (const label of labels) {
    label.middle = Math.max(label.wanted, from + label.size / 2);
    from = label.middle + label.size / 2;
  }
  let to = height + 14;
  for (const label of [...labels].reverse()) {
    label.middle = Math.min(label.middle, to - label.size / 2);
    to = label.middle - label.size / 2;
  }
  return labels.map((label) => {
    const text = textLines(label.lines, right + 20, label.middle, {}, 15);
    const end = y(course.lines[label.at].values[course.lines[label.at].values.length - 1]);
    const lead = draw("path", { d: `M${right + 4},${end} L${right + 16},${label.middle}`, fill: "none" });
    lead.style.stroke = `var(--c${label.at})`;
    return draw("g", { class: "feature", "data-feature": label.at }, lead, text);
  });
}

function colorLegend(count, ink) {
  const items = [];
  for (let at = 0; at < count; at += 1) {
    const box = draw("svg", { width: 14, height: 10, "aria-hidden": "true" });
    const mark = draw("rect", { width: 14, height: 4, y: 3, rx: 2 });
    mark.style.fill = ink(at);
    box.append(mark);
    items.push([box, nameOf(data.features[at].name)]);
  }
  return legend(items);
}
