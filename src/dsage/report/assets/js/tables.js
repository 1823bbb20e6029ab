// Tables: the ranking, which can be sorted, the audit, the errors, the sampler, the data.
const sorting = { column: 0, descending: true };

const capital = (text) => text[0].toUpperCase() + text.slice(1);

const captioned = (text) => make("caption", {}, make("span", {}, text));

function pickButton(at) {
  const name = data.features[at].name;
  const pressed = String(lit.pinned === at);
  return make("button", { type: "button", class: "pick", "aria-pressed": pressed }, nameOf(name));
}

function sorted(rows) {
  const { column, descending } = sorting;
  const turn = descending ? -1 : 1;
  if (column < 0) {
    const names = data.features.map((feature) => feature.name);
    return [...rows].sort((one, other) => turn * names[one].localeCompare(names[other], "en", { numeric: true }));
  }
  const key = (at) => data.features[at].cells[column].key;
  return [...rows].sort((one, other) => {
    const [first, second] = [key(one), key(other)];
    // Unknown numbers come last in both directions.
    if (!known(first) || !known(second)) return known(second) - known(first) || one - other;
    return turn * (first - second) || one - other;
  });
}

function sortHeader(label, hint, column) {
  const isSorted = sorting.column === column;
  const order = isSorted ? (sorting.descending ? "descending" : "ascending") : "none";
  const button = make("button", { type: "button", title: hint }, label);
  button.addEventListener("click", () => {
    sorting.descending = isSorted ? !sorting.descending : column >= 0;
    sorting.column = column;
    rankingTable(filtered());
    showLit();
    byId("ranking-table").querySelectorAll("thead button")[column + 1].focus();
  });
  return make("th", { scope: "col", "aria-sort": order, class: column < 0 ? "name" : null }, button);
}

function rankingTable(rows) {
  const head = make(
    "tr", {}, sortHeader(capital(data.noun), "Sort by name", -1),
    ...data.columns.map((column, at) => sortHeader(column.label, column.hint, at)),
  );
  const body = make("tbody", {}, ...sorted(rows).map((at) => make(
    "tr", { "data-feature": at },
    make("th", { scope: "row", class: "name" }, pickButton(at)),
    ...data.features[at].cells.map((cell) => make("td", { class: "nowrap" }, cell.text)),
  )));
  // Names stay on one line, unless they are very long.
  const longest = Math.max(...data.features.map(({ name }) => [...name].length));
  byId("ranking-table").style.setProperty("--name-width", `${Math.min(longest, 26) + 3}ch`);
  const caption = captioned(`All numbers. Select a column to sort by it, or a ${data.noun} to pin it in all charts.`);
  scrolling("ranking-table", "All numbers", make("table", {}, caption, make("thead", {}, head), body));
}

function scrolling(id, label, table) {
  const old = byId(id).querySelector(".table");
  const box = make("div", { class: "table", role: "region", "aria-label": label, tabindex: 0 }, table);
  const [left, top] = old ? [old.scrollLeft, old.scrollTop] : [0, 0];
  byId(id).replaceChildren(box);
  box.scrollLeft = left;
  box.scrollTop = top;
}

function header(labels, words) {
  return make("thead", {}, make("tr", {}, ...labels.map((label, at) => make(
    "th", { scope: "col", class: `plain${at === 0 ? " name" : words.includes(at) ? " words" : ""}` }, label,
  ))));
}

function auditTable(rows) {
  const { verdicts } = data.audit;
  if (!verdicts.length) return;
  const size = (at) => Math.abs(data.features[at].audit_difference ?? 0);
  const order = [...rows].sort((one, other) => size(other) - size(one) || one - other);
  const body = make("tbody", {}, ...order.map((at) => {
    const { words } = data.features[at];
    return make(
      "tr", { "data-feature": at },
      make("th", { scope: "row", class: "name" }, nameOf(data.features[at].name)),
      make("td", { class: "words" }, verdicts[at]),
      make("td", { class: "nowrap" }, words.difference),
      make("td", { class: "nowrap" }, words.difference_interval),
    );
  }));
  const caption = captioned("The findings of the audit, the largest difference first.");
  const head = header([capital(data.noun), "In words", "d-SAGE minus SAGE", `${data.confidence} interval`], [1]);
  scrolling("audit-table", "The audit", make("table", {}, caption, head, body));
}

function causalTable(rows) {
  if (!data.causal) return;
  const { lines, columns } = data.causal;
  const body = make("tbody", {}, ...rows.map((at) => make(
    "tr", { "data-feature": at },
    make("th", { scope: "row", class: "name" }, nameOf(lines[at][0])),
    ...lines[at].slice(1).map((text) => make("td", { class: "nowrap" }, text)),
  )));
  const caption = captioned("The parts of the values, with their standard errors from computing.");
  scrolling("causal-table", "Parts", make("table", {}, caption, header(columns, []), body));
}

function errorsTable() {
  const body = make("tbody", {}, ...data.errors.map(({ name, what, largest, remedy }) => make(
    "tr", {},
    make("th", { scope: "row", class: "name" }, name),
    make("td", { class: "words" }, what),
    make("td", { class: "nowrap" }, largest),
    make("td", { class: "words" }, remedy),
  )));
  const caption = captioned(`The sources of error. The table of the ranking has them for each ${data.noun}.`);
  const head = header(["Source", "What it is", "Largest", "What reduces it"], [1, 3]);
  scrolling("errors-table", "Errors", make("table", {}, caption, head, body));
}

function samplerTable() {
  const { lines, columns } = data.sampler;
  if (!lines.length) return;
  const last = columns.length - 1;
  const body = make("tbody", {}, ...lines.map((line) => make(
    "tr", { class: line.chosen ? "chosen" : null },
    ...line.cells.map((text, at) => {
      if (at === 0) return make("th", { scope: "row", class: "name" }, nameOf(text), line.chosen ? " (used)" : null);
      return make("td", { class: at === last ? "words" : "nowrap" }, text);
    }),
  )));
  const caption = captioned("Scores on held-out rows.");
  scrolling("sampler-table", "Samplers", make("table", {}, caption, header(columns, [last]), body));
}

function columnsTable() {
  const { lines, columns } = data.table;
  if (!lines.length) return;
  const body = make("tbody", {}, ...lines.map(([name, ...cells]) => make(
    "tr", {}, make("th", { scope: "row", class: "name" }, nameOf(name)),
    ...cells.map((text, at) => make("td", { class: at === 0 ? "nowrap words" : "nowrap" }, text)),
  )));
  const caption = captioned("What the features are, and the share of rows in which they are missing.");
  scrolling("columns-table", "The data", make("table", {}, caption, header(columns, [1]), body));
}
