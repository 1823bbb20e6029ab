// What all pages have in common: the summary, the meaning, the choices, and the width of charts.
const A4 = 680;
let printing = false;

const pageWidth = (parent) => (printing ? A4 : Math.max(Math.floor(parent.clientWidth), 240));

function summary() {
  byId("subtitle").append(data.subtitle);
  byId("headline").append(...data.headline.map((sentence) => make("p", {}, sentence)));
  byId("figures").append(...data.figures.map(({ label, figure, note }) => make(
    "div", {}, make("dt", {}, label),
    make("dd", { class: `figure${figure.length > 18 ? " long" : figure.length > 12 ? " medium" : ""}` }, nameOf(figure)), make("dd", { class: "note" }, note),
  )));
  byId("cautions").append(...(data.cautions || []).map(({ kind, title, text, advice }) => make(
    "div", { class: `caution ${kind}` },
    make("h3", {}, make("span", { class: "kind" }, kind), title),
    make("p", {}, text), advice ? make("p", { class: "advice" }, advice) : null,
  )));
}

function meaning() {
  byId("meaning-terms").append(...data.meaning.map(({ term, text }) =>
    make("div", {}, make("dt", {}, term), make("dd", {}, text))));
}

function choicesTables() {
  byId("choices-list").replaceChildren(...data.choices.filter((each) => each.lines.length).map((each) => make(
    "table", {}, make("caption", {}, each.section),
    make("tbody", {}, ...each.lines.map((line) => make(
      "tr", {}, make("th", { scope: "row" }, line.name), make("td", { dir: "auto" }, line.value),
    ))),
  )));
}

function follow() {
  let width = document.documentElement.clientWidth;
  window.addEventListener("resize", () => {
    if (document.documentElement.clientWidth === width) return;
    width = document.documentElement.clientWidth;
    renderCharts();
  });
  window.addEventListener("beforeprint", () => { printing = true; renderCharts(); });
  window.addEventListener("afterprint", () => { printing = false; renderCharts(); });
}
