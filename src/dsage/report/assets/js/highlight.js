// One feature at a time is highlighted in all charts and tables: hovered, else focused, else pinned.
const tips = new WeakMap();
const lit = { pointed: null, focused: null, pinned: null };

function withTip(node, title, lines) {
  node.classList.add("tipped");
  tips.set(node, () => ({ title, lines }));
  return node;
}

function withMovingTip(node, at) {
  node.classList.add("tipped");
  tips.set(node, at);
  return node;
}

function showLit() {
  const feature = lit.pointed ?? lit.focused ?? lit.pinned;
  for (const node of document.querySelectorAll(".lit")) node.classList.remove("lit");
  for (const box of document.querySelectorAll(".dimmed")) box.classList.remove("dimmed");
  if (feature === null) return;
  const found = document.querySelectorAll(`[data-feature="${feature}"], [data-ends~="${feature}"]`);
  for (const node of found) {
    node.classList.add("lit");
    node.closest(".picture")?.classList.add("dimmed");
  }
}

function light(how, feature) {
  if (lit[how] === feature) return;
  lit[how] = feature;
  showLit();
}

function pin(feature) {
  lit.pinned = lit.pinned === feature ? null : feature;
  lit.pointed = lit.focused = null;
  const box = byId("pinned");
  box.replaceChildren();
  if (lit.pinned !== null) {
    const name = data.features[lit.pinned].name;
    const button = make(
      "button", { type: "button", "aria-label": `Release ${name}` }, nameOf(name), "\u00d7",
    );
    button.addEventListener("click", () => pin(lit.pinned));
    box.append(button);
  }
  for (const each of document.querySelectorAll("button.pick")) {
    each.setAttribute("aria-pressed", String(Number(featureAt(each)) === lit.pinned));
  }
  showLit();
}

function featureAt(node) {
  const holder = node instanceof Element ? node.closest("[data-feature]") : null;
  return holder ? Number(holder.getAttribute("data-feature")) : null;
}

function showTip(event) {
  const tip = byId("tip");
  const node = event.target instanceof Element ? event.target.closest(".tipped") : null;
  const told = node && tips.has(node) ? tips.get(node)(event) : null;
  tip.hidden = told === null;
  if (told === null) return;
  tip.replaceChildren(
    make("b", {}, nameOf(told.title)),
    ...told.lines.map((line) => make("span", {}, line)),
  );
  const { width, height } = tip.getBoundingClientRect();
  const left = Math.min(event.clientX + 14, window.innerWidth - width - 8);
  const below = event.clientY + 18;
  const top = below + height > window.innerHeight - 8 ? event.clientY - height - 12 : below;
  tip.style.left = `${Math.max(left, 8)}px`;
  tip.style.top = `${Math.max(top, 8)}px`;
}

function listen() {
  document.addEventListener("pointerover", (event) => light("pointed", featureAt(event.target)));
  document.addEventListener("pointermove", showTip);
  document.addEventListener("pointerleave", () => {
    light("pointed", null);
    byId("tip").hidden = true;
  });
  window.addEventListener("scroll", () => { byId("tip").hidden = true; }, { passive: true });
  // Keyboard focus only: after a click the highlight would stay when the pointer has left.
  document.addEventListener("focusin", (event) => {
    light("focused", event.target.matches(":focus-visible") ? featureAt(event.target) : null);
  });
  document.addEventListener("focusout", () => light("focused", null));
  document.addEventListener("click", (event) => {
    const feature = featureAt(event.target);
    const marked = event.target instanceof Element && event.target.closest("svg, button.pick");
    if (feature !== null && marked) pin(feature);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && lit.pinned !== null) pin(lit.pinned);
  });
}
