// Every explorer, for two hosts: anywidget in a notebook, and <course-explorer> on a page without a kernel.
// Python made the tree of all that is shown (course_lib/widgets/base.py). This module paints it and listens.

const STYLE = `
  :host { display: block; margin: 1rem 0; }
  .explorer { --line: color-mix(in srgb, currentColor 45%, transparent); container-type: inline-size;
    font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Hiragino Sans",
    "Noto Sans CJK JP", "Yu Gothic", Meiryo, sans-serif; max-width: 58rem; padding: 1rem 1.1rem;
    border: 1px solid var(--line); border-radius: 12px; box-sizing: border-box; }
  .explorer * { box-sizing: border-box; }
  fieldset { border: 0; margin: 0 0 .45rem; padding: 0; display: grid; grid-template-columns: 10.5rem 1fr;
    align-items: baseline; min-width: 0; }
  legend { float: left; padding: 0; opacity: .95; }
  .options { display: flex; flex-wrap: wrap; gap: .3rem; }
  .choice { position: relative; cursor: pointer; }
  .choice input { position: absolute; opacity: 0; inset: 0; width: 100%; height: 100%; margin: 0; cursor: pointer; }
  .choice span { display: block; padding: .1rem .7rem; border: 1px solid var(--line); border-radius: 99px;
    min-height: 1.75rem; white-space: nowrap; }
  .choice:hover span { border-color: currentColor; }
  .choice input:checked + span { background: #1F5FBF; border-color: #1F5FBF; color: #FFF; font-weight: 600; }
  .choice input:focus-visible + span, .number input:focus-visible, button:focus-visible, .flow:focus-visible {
    outline: 3px solid currentColor; outline-offset: 2px; }
  .number { display: flex; gap: .4rem; align-items: baseline; margin-right: .9rem; }
  .number input { font: inherit; font-variant-numeric: tabular-nums; color: inherit; background: transparent;
    width: 5rem; padding: .05rem .4rem; border: 1px solid var(--line); border-radius: 6px; }
  .facts { display: flex; flex-wrap: wrap; gap: .3rem 2rem; margin: .9rem 0 .7rem; padding: .6rem 0;
    border: solid var(--line); border-width: 1px 0; }
  .fact { display: flex; gap: .5rem; align-items: baseline; }
  dt, dd { margin: 0; } dd { font-weight: 700; font-variant-numeric: tabular-nums; }
  .panels { display: flex; flex-wrap: wrap; gap: 1.2rem 1.6rem; align-items: flex-start; }
  .panel { min-width: 0; max-width: 100%; }
  h3 { all: unset; display: block; font-weight: 600; margin-bottom: .4rem; }
  .flow { display: flex; flex-wrap: wrap; gap: .5rem .4rem; overflow-x: auto; padding: 10px; border-radius: 8px;
    background: #FCFCFA; }
  .flow svg { display: block; flex: none; overflow: visible; font-family: inherit; }
  .fits { display: block; } .fits svg { max-width: 100%; height: auto; }
  .notes { margin: .4rem 0 0; padding: 0; list-style: none; font-size: .85em; }
  [data-device] { cursor: pointer; outline: none; }
  .edge { transition: stroke-width .1s; }
  .same .edge { stroke: #1B1F24; stroke-width: 2; stroke-dasharray: 4 3; }
  .chosen .edge { stroke: #1B1F24; stroke-width: 3.5; }
  [data-device]:focus-visible .edge { stroke: #1F5FBF; stroke-width: 4.5; }
  .outline.same { visibility: visible; stroke: #1B1F24; stroke-width: 4; pointer-events: none; }
  .grid { pointer-events: none; }
  .refusal { border-left: 5px solid #D9822B; padding: .5rem .9rem; margin: .9rem 0; white-space: pre-line;
    background: color-mix(in srgb, #D9822B 10%, transparent); }
  .refusal strong { display: block; }
  .says { margin: .9rem 0; min-height: 1.5em; } .says:empty { display: none; }
  .press { font: inherit; font-weight: 600; padding: .35rem 1rem; border-radius: 8px; cursor: pointer;
    border: 1px solid #1F5FBF; background: #1F5FBF; color: #FFF; }
  .press:disabled { background: transparent; color: inherit; border: 1px dashed var(--line); cursor: default; }
  .verdict { margin: .6rem 0 0; font-weight: 600; white-space: pre-line; } .verdict:empty { display: none; }
  .why { font-size: .85em; margin: .3rem 0 0; }
  .late { display: none; margin: .6rem 0 0; font-size: .85em; }
  .busy .late { display: block; animation: appear 1.5s steps(2, jump-none); }
  @keyframes appear { from { visibility: hidden; } to { visibility: hidden; } }
  @container (max-width: 34rem) { fieldset { grid-template-columns: 1fr; } }
`;

/** Makes `old` show `tree`, keeping every element that can stay, and so the focus; returns what shows it. */
function paint(old, tree, space = "http://www.w3.org/1999/xhtml") {
  if (typeof tree === "string") {
    if (old?.nodeType !== Node.TEXT_NODE) return new Text(tree);
    old.data = tree;
    return old;
  }
  const [tag, attributes, ...children] = tree;
  if (tag === "svg") space = "http://www.w3.org/2000/svg";
  const element = old?.localName === tag ? old : document.createElementNS(space, tag);
  for (const name of element.getAttributeNames()) if (!(name in attributes)) element.removeAttribute(name);
  for (const [name, value] of Object.entries(attributes))
    if (element.getAttribute(name) !== value) element.setAttribute(name, value);
  if (tag === "input") Object.assign(element, { checked: "checked" in attributes, value: attributes.value ?? "on" });
  const before = [...element.childNodes];
  children.forEach((child, at) => {
    const shown = paint(before[at], child, space);
    if (!before[at]) element.append(shown);
    else if (shown !== before[at]) before[at].replaceWith(shown);
  });
  for (const rest of before.slice(children.length)) rest.remove();
  return element;
}

/** Shows an explorer in `host` and tells `listener` what the reader does; returns a function that shows a tree. */
function mount(host, listener) {
  const root = host.attachShadow({ mode: "open" });
  const style = document.createElement("style");
  style.textContent = STYLE;
  root.append(style);
  let explorer, device = "0";

  /** Marks a device and all that shows the same block; the card's own text says what it holds. */
  function look(number) {
    device = number ?? device;
    const cards = [...explorer.querySelectorAll("[role=button]")];
    const card = cards.find((each) => each.dataset.device === device) ?? cards[0];
    for (const each of explorer.querySelectorAll("[data-block]")) {
      const chosen = each.dataset.device === card?.dataset.device;
      each.classList.toggle("chosen", chosen);
      each.classList.toggle("same", !chosen && each.dataset.block === card?.dataset.block);
    }
    for (const each of cards) {
      each.setAttribute("tabindex", each === card ? 0 : -1);
      each.setAttribute("aria-pressed", each === card);
    }
    const says = explorer.querySelector(".says");
    if (says) says.textContent = card?.getAttribute("aria-label") ?? "";
    return card;
  }

  const late = () => explorer.classList.add("busy");
  root.addEventListener("change", ({ target }) => { late(); listener.change(target); });
  root.addEventListener("focusin", ({ target }) => target.role === "button" && look(target.dataset.device));
  root.addEventListener("click", ({ target }) => {
    const marked = target.closest("[data-device]");
    if (marked) look(marked.dataset.device);
    if (target.closest(".press")) { late(); listener.press(); }
  });
  root.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const cards = [...explorer.querySelectorAll("[role=button]")], at = cards.indexOf(event.target);
    if (!step || at < 0) return;
    event.preventDefault();
    cards[(at + step + cards.length) % cards.length].focus();
  });
  return (tree) => {
    explorer = paint(explorer, tree);
    if (!explorer.isConnected) root.append(explorer);
    look();
  };
}

const valueOf = ({ type, value, dataset }) =>
  type === "number" ? (value === "" ? null : Number(value)) : JSON.parse(dataset.value);

export default {
  render({ model, el }) {
    const show = mount(el.appendChild(document.createElement("div")), {
      change: (input) => model.send({ kind: "change", path: JSON.parse(input.dataset.path), value: valueOf(input) }),
      press: () => model.send({ kind: "press" }),
    });
    const refresh = () => show(model.get("view"));
    model.on("change:view", refresh);
    model.on("msg:custom", refresh);
    refresh();
    return () => { model.off("change:view", refresh); model.off("msg:custom", refresh); };
  },
};

const tables = {}; // one for all explorers of a page that show the same

/** Fetches a table; returns what gives the view of a key. A number in a view stands for the part of that number. */
function fetchTable(file) {
  return (tables[file] ??= fetch(new URL(file, import.meta.url)).then(async (answer) => {
    const { keys, views, leads_to, parts } = await answer.json();
    const whole = (value) => typeof value === "number" ? whole(parts[value]) : Array.isArray(value) ? value.map(whole) : value;
    return (key) => {
      const place = keys.indexOf(key);
      return { view: whole(views[place]), leads_to: leads_to[place].map((each) => keys[each]) };
    };
  }));
}

if (globalThis.customElements && !customElements.get("course-explorer"))
  customElements.define("course-explorer", class extends HTMLElement {
    connectedCallback() {
      const script = this.querySelector("script[type='application/json']");
      if (this.shadowRoot || !script) return; // moved in the page: the shadow tree came along
      const { table, ...first } = JSON.parse(script.textContent);
      const show = mount(this, { change: async (input) => {
        const option = [...this.shadowRoot.querySelectorAll("input")].indexOf(input), key = now.leads_to[option];
        display((await fetchTable(table))(key));
      } });
      let now;
      const display = (next) => { now = next; show(next.view); };
      display(first);
      fetchTable(table);
    }
  });
