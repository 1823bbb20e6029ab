// Assembles the page of a flow: the picture, and tables of edges, columns and mechanisms.
function plainTable(id, label) {
  const { caption, columns, words, lines } = data.tables[id];
  const body = make("tbody", {}, ...lines.map(([name, ...cells]) => make(
    "tr", {}, make("th", { scope: "row", class: "name" }, nameOf(name)),
    ...cells.map((text, at) => make("td", { class: words.includes(at + 1) ? "words" : "nowrap" }, text)),
  )));
  const table = make("table", {}, captioned(caption), header(columns, words), body);
  scrolling(`${id}-table`, label, table);
}

summary();
meaning();
choicesTables();
paragraph("edges-text", data.edges_text);
if (data.picture) {
  const source = `data:image/png;base64,${data.picture}`;
  const text = "The graph with edges as wide as what flows along them; the table has all numbers.";
  // Two pixels of the picture for each of the page; a wide graph is scrolled.
  const image = make("img", { src: source, srcset: `${source} 2x`, alt: text });
  const scroll = { class: "wide", role: "region", "aria-label": "The graph", tabindex: 0 };
  byId("edges-picture").append(make("div", scroll, image));
}
plainTable("edges", "All edges");
plainTable("nodes", "All columns");
plainTable("mechanisms", "All mechanisms");
