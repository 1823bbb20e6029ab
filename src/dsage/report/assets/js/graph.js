// The graph: causes before their effects, at the positions in the data.
const BETWEEN = { layers: 54, slots: 16 };
const LETTERS = { size: 12.5, line: 15 };

function graphChart() {
  const { nodes, edges } = data.graph;
  const parent = byId("graph-chart");
  parent.replaceChildren();
  if (!nodes.length) return;
  const features = new Map(data.features.map((feature, at) => [feature.name, at]));
  const boxes = new Map(nodes.map((node) => [node.name, boxOf(node)]));
  const room = pageWidth(parent);
  const plan = planOf([...boxes.values()], room);
  for (const box of boxes.values()) [box.x, box.y] = plan.at(box.node.x, box.node.y);
  const indexOf = (name) => features.get(boxes.get(name).node.feature);
  const under = draw("g", {});
  const over = draw("g", {});
  for (const edge of edges) {
    const group = edgeOf(edge, boxes, plan);
    const ends = [indexOf(edge.from), indexOf(edge.to)].filter((at) => at !== undefined).join(" ");
    group.setAttribute("data-ends", ends);
    under.append(withTip(group, edge.title, edge.words));
  }
  for (const box of boxes.values()) over.append(nodeOf(box, features));
  const shown = printing ? 1 : Math.max(Math.min(1, room / plan.width), 0.8);
  const svg = draw("svg", {
    viewBox: `0 0 ${Math.ceil(plan.width)} ${Math.ceil(plan.height)}`,
    width: Math.ceil(plan.width * shown),
    height: Math.ceil(plan.height * shown),
  }, under, over);
  svg.style.width = `${Math.ceil(plan.width * shown)}px`;
  parent.append(graphLegend(plan));
  const box = picture(parent, svg, "The graph, with causes before their effects", "scroll");
  // A large graph can be scrolled, also by keyboard.
  if (plan.width * shown > room + 1) {
    put(box, { tabindex: 0, role: "group", "aria-label": "The graph; scroll to see all of it" }, []);
  }
}

function graphLegend(plan) {
  const { nodes, edges } = data.graph;
  const swatch = (kind) => make("span", { class: `swatch ${kind}`, "aria-hidden": "true" });
  const items = [[swatch("target"), "target"], [swatch("blanket"), "its Markov blanket"]];
  if (nodes.some((node) => node.role === "other")) items.push([swatch("other"), "other features"]);
  items.push([plan.down ? "Causes stand above their effects" : "Causes stand to the left of their effects"]);
  if (data.graph.has_strength) items.push(["Wider: found in more of the resamples"]);
  if (edges.some((edge) => edge.both)) items.push(["Dashed: an unobserved common cause"]);
  return legend(items);
}

function boxOf(node) {
  const lines = wrapped(node.name, 150, LETTERS.size, 650);
  const width = Math.max(...lines.map((line) => textWidth(line, LETTERS.size, 650)), 18) + 20;
  return { node, lines, width, height: lines.length * LETTERS.line + 12 };
}

// Layers go to the right, or down if that is too wide and down is narrower.
function planOf(boxes, room) {
  const across = laidOut(boxes, false);
  if (across.width <= room) return across;
  const down = laidOut(boxes, true);
  return down.width < across.width ? down : across;
}

function laidOut(boxes, down) {
  const along = down ? "height" : "width";
  const beside = down ? "width" : "height";
  const layers = [];
  for (const box of boxes) {
    const at = Math.round(box.node.x);
    layers[at] = Math.max(layers[at] || 0, box[along]);
  }
  const centres = [];
  let end = 4;
  for (const size of Array.from(layers, (each) => each || 20)) {
    centres.push(end + size / 2);
    end += size + (down ? 0.7 : 1) * BETWEEN.layers;
  }
  end -= (down ? 0.7 : 1) * BETWEEN.layers - 4;
  const points = data.graph.edges.flatMap((edge) => edge.points.map((point) => point[1]));
  const slots = [...boxes.map((box) => box.node.y), ...points];
  const first = Math.min(...slots);
  const pitch = Math.max(...boxes.map((box) => box[beside])) + BETWEEN.slots;
  // Room for curves between nodes of one layer.
  const bows = data.graph.edges.some((edge) => edge.points.length === 2 && edge.points[0][0] === edge.points[1][0]);
  const length = end + (bows ? 40 : 0);
  const breadth = (Math.max(...slots) - first + 1) * pitch;
  const turn = (one, other) => (down ? [other, one] : [one, other]);
  const [width, height] = turn(length, breadth);
  const at = (layer, slot) => turn(centres[Math.round(layer)], (slot - first) * pitch + pitch / 2);
  return { down, turn, along, at, width, height };
}

function edgeOf(edge, boxes, plan) {
  const { turn } = plan;
  const placed = (box) => ({ at: turn(box.x, box.y), half: box[plan.along] / 2 });
  const tail = placed(boxes.get(edge.from));
  const head = placed(boxes.get(edge.to));
  const width = edge.strength === null ? 1.4 : 0.7 + 2.6 * edge.strength;
  const tip = 7 + width;
  const start = tail.at[0] + tail.half;
  const group = draw("g", { class: edge.both ? "edge both" : "edge" });
  const arrow = (along, beside, back) => {
    const corners = [[along, beside], [along + back, beside - tip * 0.48], [along + back, beside + tip * 0.48]];
    group.append(draw("polygon", { points: corners.map((each) => turn(...each)).join(" ") }));
  };
  if (edge.both) arrow(start, tail.at[1], tip);
  let path = `M${turn(start + (edge.both ? tip : 0), tail.at[1])}`;
  const curve = (...points) => { path += ` C${points.map((each) => turn(...each)).join(" ")}`; };
  if (tail.at[0] === head.at[0]) {
    // Within a layer: a curve behind it.
    const end = head.at[0] + head.half;
    const bow = Math.max(start, end) + 34;
    curve([bow, tail.at[1]], [bow, head.at[1]], [end + tip, head.at[1]]);
    arrow(end, head.at[1], tip);
  } else {
    const end = head.at[0] - head.half;
    const points = edge.points.map(([layer, slot]) => turn(...plan.at(layer, slot)));
    points[0] = [start, tail.at[1]];
    points[points.length - 1] = [end - tip, head.at[1]];
    for (let at = 1; at < points.length; at += 1) {
      const middle = (points[at - 1][0] + points[at][0]) / 2;
      curve([middle, points[at - 1][1]], [middle, points[at][1]], points[at]);
    }
    arrow(end, head.at[1], -tip);
  }
  group.prepend(
    draw("path", { class: "line", d: path, "stroke-width": width }), draw("path", { class: "wide", d: path }),
  );
  return group;
}

function nodeOf(box, features) {
  const { node } = box;
  const at = features.get(node.feature);
  const group = draw("g", { class: `node ${node.role}${at === undefined ? "" : " feature"}`, "data-feature": at });
  group.append(
    draw("rect", {
      x: box.x - box.width / 2, y: box.y - box.height / 2, width: box.width, height: box.height, rx: 6,
    }),
    textLines(box.lines, box.x, box.y, { "text-anchor": "middle" }, LETTERS.line),
  );
  const kinds = { target: "the target", blanket: "in the Markov blanket of the target", other: "not in the blanket" };
  const lines = [kinds[node.role]];
  if (at !== undefined) {
    const { name, words } = data.features[at];
    if (name !== node.name) lines.push(`in the group ${name}`);
    lines.push(`value ${words.value}, share ${words.share}`);
  }
  return withTip(group, node.name, lines);
}
