// Assembles the page, and redraws what depends on the width or the filter.
// With more features there is a filter.
const MANY = 15;

function filtered() {
  const wanted = byId("filter").value.trim().toLocaleLowerCase();
  const all = data.features.map((_, at) => at);
  if (!wanted) return all;
  return all.filter((at) => {
    const { name, members } = data.features[at];
    return [name, ...members].some((each) => each.toLocaleLowerCase().includes(wanted));
  });
}

function renderRows() {
  const rows = filtered();
  rankingChart(rows);
  causalChart(rows);
  savingsChart(rows);
  auditChart(rows);
  showLit();
}

function renderCharts() {
  renderRows();
  convergenceChart();
  graphChart();
  showLit();
}

function renderTables() {
  const rows = filtered();
  rankingTable(rows);
  causalTable(rows);
  auditTable(rows);
}

// The section on causal values is there for these only.
function causalTexts() {
  if (!data.causal) {
    byId("causal").remove();
    for (const link of document.querySelectorAll('a[href="#causal"]')) (link.closest("li") || link).remove();
    return;
  }
  byId("causal-terms").append(...data.causal.terms.map(({ term, text }) =>
    make("div", {}, make("dt", {}, term), make("dd", {}, text))));
  paragraph("causal-text", data.causal.sentences);
}

function texts() {
  meaning();
  causalTexts();
  paragraph("savings-text", data.savings);
  paragraph("audit-text", data.audit.sentences);
  paragraph("graph-text", data.graph.sentences);
  paragraph("convergence-text", data.convergence.sentences);
  paragraph("sampler-text", data.sampler.sentences);
  paragraph("columns-text", data.table.sentences);
  const status = {
    for: "no evidence against it", against: "doubtful in this run",
    open: "tested, but not decided", silent: "not tested by this run", unneeded: "not needed here",
  };
  byId("assumptions-list").append(...data.assumptions.map((each) => make(
    "div", { class: "card" },
    make("div", {}, make("h3", {}, each.name), make("span", { class: `status ${each.status}` }, status[each.status])),
    make(
      "div", {}, make("p", {}, each.says), make("p", {}, make("b", {}, "If it fails: "), each.fails),
      make("p", {}, make("b", {}, "In this run: "), each.here),
    ),
  )));
}

// Pages opened from a disk may not use the clipboard, but a selection can be copied.
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = make("textarea", { "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

function controls() {
  byId("copy").addEventListener("click", async () => {
    const done = await copyText(data.csv);
    const said = `Copied ${data.features.length} ${data.noun}${data.features.length === 1 ? "" : "s"}.`;
    byId("copied").textContent = done ? said : "The browser does not allow it. Use Download CSV.";
    byId("copy").focus();
  });
  byId("download").addEventListener("click", () => {
    const address = URL.createObjectURL(new Blob([data.csv], { type: "text/csv" }));
    make("a", { href: address, download: "values.csv" }).click();
    URL.revokeObjectURL(address);
  });
  const filter = byId("filter");
  put(filter, { placeholder: `Find a ${data.noun}`, "aria-label": `Find a ${data.noun}` }, []);
  filter.hidden = data.features.length <= MANY;
  filter.addEventListener("input", () => {
    renderTables();
    renderRows();
  });
}

summary();
texts();
errorsTable();
samplerTable();
columnsTable();
choicesTables();
controls();
renderTables();
renderCharts();
listen();
follow();
