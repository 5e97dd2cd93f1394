// Every widget, for two hosts: anywidget in a notebook, and an element such as <course-explorer> on a page
// without a kernel.
// Python made the tree of all that is shown (course_lib/widgets/base.py). This module paints it and listens.

const STYLE = `
  :host { display: block; margin: 1rem 0; }
  .widget { --line: color-mix(in srgb, currentColor 45%, transparent); container-type: inline-size;
    font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Hiragino Sans",
    "Noto Sans CJK JP", "Yu Gothic", Meiryo, sans-serif; max-width: 58rem; padding: 1rem 1.1rem;
    border: 1px solid var(--line); border-radius: 12px; box-sizing: border-box; }
  .widget * { box-sizing: border-box; }
  fieldset { border: 0; margin: 0 0 .45rem; padding: 0; display: grid; grid-template-columns: 12rem 1fr;
    align-items: baseline; min-width: 0; }
  legend { float: left; padding: 0; opacity: .95; }
  .options { display: flex; flex-wrap: wrap; gap: .3rem; }
  .choice { position: relative; max-width: 100%; border-radius: 14px; cursor: pointer; }
  .choice input { position: absolute; opacity: 0; inset: 0; width: 100%; height: 100%; margin: 0; cursor: pointer; }
  .choice span { display: block; padding: .1rem .7rem; border: 1px solid var(--line); border-radius: 14px;
    min-height: 1.75rem; }
  .choice:hover span { border-color: currentColor; }
  .choice input:checked + span { background: #1F5FBF; border-color: #1F5FBF; color: #FFF; font-weight: 600; }
  .choice input[type=checkbox] + span::before { content: "○ " / ""; }
  .choice input[type=checkbox]:checked + span::before { content: "✓ " / ""; }
  .slider { display: flex; gap: .7rem; align-items: center; min-width: 0; max-width: 100%; }
  .slider span { align-self: baseline; white-space: nowrap; }
  .slider input { width: 12rem; min-width: 0; height: 1.5rem; margin: 0; accent-color: #1F5FBF; cursor: pointer; }
  .choice:has(:focus-visible), .slider input:focus-visible, input:is([type=button], [type=number], [type=text]):focus-visible, button:focus-visible,
  .flow:focus-visible, .moment:focus-visible, summary:focus-visible, .listing:focus-visible { outline: 3px solid currentColor;
    outline-offset: 2px; }
  input[type=button] { font: inherit; color: inherit; background: transparent; cursor: pointer; padding: .1rem .8rem;
    border: 1px solid currentColor; border-radius: 8px; min-height: 1.75rem; }
  input[type=button][aria-disabled] { border: 1px dashed var(--line); cursor: default; }
  .number { display: flex; gap: .4rem; align-items: baseline; margin-right: .9rem; }
  .number input { font: inherit; font-variant-numeric: tabular-nums; color: inherit; background: transparent;
    width: 5rem; padding: .05rem .4rem; border: 1px solid var(--line); border-radius: 6px; }
  .line { display: grid; gap: .2rem; width: 100%; margin-bottom: .3rem; }
  .line input { font: inherit; color: inherit; background: transparent; width: 100%; padding: .3rem .6rem;
    border: 1px solid currentColor; border-radius: 6px; }
  .facts { display: flex; flex-wrap: wrap; gap: .3rem 2rem; margin: .9rem 0 .7rem; padding: .6rem 0;
    border: solid var(--line); border-width: 1px 0; }
  .fact { display: flex; gap: .5rem; align-items: baseline; }
  dt, dd { margin: 0; } dd { font-weight: 700; font-variant-numeric: tabular-nums; }
  .panels { display: flex; flex-wrap: wrap; gap: 1.2rem 1.6rem; align-items: flex-start; }
  .panel { min-width: 0; max-width: 100%; }
  h3 { all: unset; display: block; font-weight: 600; margin-bottom: .4rem; }
  .flow { display: flex; flex-wrap: wrap; gap: .5rem .4rem; overflow-x: auto; padding: 10px; border-radius: 8px;
    background: #FCFCFA; filter: var(--course-picture, none); }
  .flow svg { display: block; flex: none; overflow: visible; font-family: inherit; }
  .fits { display: block; } .fits svg { max-width: 100%; height: auto; }
  .notes { margin: .4rem 0 0; padding: 0; list-style: none; font-size: .85em; }
  .fits + .notes { max-width: 25rem; }
  [data-device] { cursor: pointer; outline: none; }
  .edge { transition: stroke-width .1s; }
  .same .edge { stroke: #1B1F24; stroke-width: 2; stroke-dasharray: 4 3; }
  .chosen .edge { stroke: #1B1F24; stroke-width: 3.5; }
  [data-device]:focus-visible .edge { stroke: #1F5FBF; stroke-width: 4.5; }
  .outline.same { visibility: visible; stroke: #1B1F24; stroke-width: 4; pointer-events: none; }
  .grid { pointer-events: none; }
  .moments { display: flex; flex-wrap: wrap; gap: .2rem .8rem; align-items: center; }
  .moment { accent-color: #1F5FBF; width: 14rem; max-width: 100%; margin: 0; }
  .lit_line { margin: .2rem 0 .4rem; min-height: 1lh; font-weight: 600; }
  .lit > .light { visibility: visible; } .ahead { opacity: .35; }
  .refusal { border-left: 5px solid #D9822B; padding: .5rem .9rem; margin: .9rem 0; white-space: pre-line;
    background: color-mix(in srgb, #D9822B 10%, transparent); }
  .refusal strong { display: block; }
  .says { margin: .9rem 0; min-height: 1.5em; } .says:empty { display: none; }
  .press, .copy { font: inherit; font-weight: 600; padding: .35rem 1rem; border-radius: 8px; cursor: pointer;
    border: 1px solid #1F5FBF; background: #1F5FBF; color: #FFF; }
  .press { margin: .5rem 0; }
  .press + .press { margin-left: .5rem; }
  .press:is(:disabled, [aria-disabled]) { background: transparent; color: inherit; border: 1px dashed var(--line); cursor: default; }
  .verdict { margin: .6rem 0 0; font-weight: 600; white-space: pre-line; } .verdict:empty { min-height: 1lh; }
  .why { font-size: .85em; margin: .3rem 0 0; }
  .runs { margin: .6rem 0; padding: 0; list-style: none; font-variant-numeric: tabular-nums; }
  .runs li { display: grid; grid-template-columns: auto 1fr; gap: 0 .6rem; align-items: baseline; }
  :is(.why, .verdict) + :is(.panels, .panel) { margin-top: .9rem; }
  .exchanges { margin: 0; padding-left: 1.6rem; font-size: .85em; columns: 17rem; }
  .runs .flow { padding: 0 4px; } .limits .flow { grid-column: 2; width: fit-content; max-width: 100%; margin: .1rem 0 .6rem; padding-bottom: 4px; }
  .limits { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(21rem, 100%), 1fr)); gap: 0 1.5rem; }
  .tensors { gap: 1rem 1.4rem; }
  .runs .refusal { grid-column: 2; }
  .late { display: none; margin: .6rem 0 0; font-size: .85em; }
  .busy .late { display: block; animation: appear 1.5s steps(2, jump-none); }
  @keyframes appear { from, to { visibility: hidden; max-height: 0; margin: 0; } }
  @container (max-width: 34rem) { fieldset { grid-template-columns: minmax(0, 1fr); } .slider { flex-wrap: wrap; gap: 0 .7rem; } }
  code { font: .93em ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
  .listings { margin-top: .9rem; } summary { width: fit-content; font-weight: 600; cursor: pointer; }
  .listings .options { margin: .6rem 0; }
  .listing { margin: 0; padding: .7rem .9rem; border: 1px solid var(--line); border-radius: 8px; overflow-x: auto;
    background: color-mix(in srgb, currentColor 5%, transparent); }
  .listing pre { margin: 0; font: .87em/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
  .copying { display: flex; flex-wrap: wrap; gap: .3rem .8rem; align-items: baseline; margin-top: .6rem; }
  .prediction { max-width: 46rem; border-left-width: 5px; border-left-color: #1F5FBF; }
  .prediction::before { content: attr(aria-label) / ""; display: block; margin-bottom: .15rem; font-size: .85em;
    font-weight: 600; opacity: .8; }
  .prediction fieldset { display: block; margin: 0; }
  .prediction legend { float: none; margin-bottom: .7rem; opacity: 1; }
  .prediction .choice { max-width: 100%; border-radius: 8px; }
  .prediction .choice input + span { white-space: normal; border-radius: 8px; padding: .25rem .8rem; font-weight: 400; }
  .prediction .verdict { font-weight: 400; }
  .prediction .verdict[data-right] { padding: .5rem .9rem; border-left: 5px solid #D9822B;
    background: color-mix(in srgb, #D9822B 12%, transparent); }
  .prediction .verdict[data-right=true] { border-color: #2E9E6B;
    background: color-mix(in srgb, #2E9E6B 12%, transparent); }
  .confirm { margin: .6rem 0 0; font-size: .85em; } .confirm:empty { display: none; }
`;

/**
 * Makes `old` show `tree`, keeping every element that can stay, and so the focus; returns what shows it.
 *
 * Where no answer is due, what the reader is typing stays as it is.
 */
function paint(old, tree, due, space = "http://www.w3.org/1999/xhtml") {
  if (typeof tree === "string") {
    if (old?.nodeType !== Node.TEXT_NODE) return new Text(tree);
    if (old.data !== tree) old.data = tree; // else what the reader has selected would be lost
    return old;
  }
  const [tag, attributes, ...children] = tree;
  if (tag === "svg") space = "http://www.w3.org/2000/svg";
  const element = old?.localName === tag ? old : document.createElementNS(space, tag);
  for (const name of element.getAttributeNames()) if (!(name in attributes)) element.removeAttribute(name);
  for (const [name, value] of Object.entries(attributes))
    if (element.getAttribute(name) !== value) element.setAttribute(name, value);
  const typing = !due && ["number", "text"].includes(attributes.type) && element === element.getRootNode().activeElement;
  if (tag === "input" && !typing) Object.assign(element, { checked: "checked" in attributes, value: attributes.value ?? "on" });
  const before = [...element.childNodes];
  children.forEach((child, at) => {
    const shown = paint(before[at], child, due, space);
    if (!before[at]) element.append(shown);
    else if (shown !== before[at]) before[at].replaceWith(shown);
  });
  for (const rest of before.slice(children.length)) rest.remove();
  return element;
}

/** Shows a widget in `host` and tells `listener` what the reader does; returns a function that shows a tree. */
function mount(host, listener) {
  const root = host.attachShadow({ mode: "open" });
  const style = document.createElement("style");
  style.textContent = STYLE;
  root.append(style);
  let widget, device = "0", listing, unfolded = false, pressed = "", moment = 0;

  /** Marks a device and all that shows the same block; the card's own text says what it holds. */
  function look(number) {
    device = number ?? device;
    const cards = [...widget.querySelectorAll("[role=button]")];
    const card = cards.find((each) => each.dataset.device === device) ?? cards[0];
    for (const each of widget.querySelectorAll("[data-block]")) {
      const chosen = each.dataset.device === card?.dataset.device;
      each.classList.toggle("chosen", chosen);
      each.classList.toggle("same", !chosen && each.dataset.block === card?.dataset.block);
    }
    for (const each of cards) {
      each.setAttribute("tabindex", each === card ? 0 : -1);
      each.setAttribute("aria-pressed", each === card);
    }
    for (const each of listing ? widget.querySelectorAll("[data-listing]") : []) {
      const shown = each.dataset.listing === listing;
      if (each.localName === "input") each.checked = shown;
      else each.hidden = !shown;
    }
    const slider = widget.querySelector(".moment");
    if (slider) light(slider);
    const says = widget.querySelector(".says");
    if (says) says.textContent = card?.getAttribute("aria-label") ?? "";
    return card;
  }

  /** Lights the moment that the reader has come to, and says what happens then; at 0 none is lit. */
  function light(slider) {
    slider.value = moment;
    const now = slider.valueAsNumber - 1;
    for (const each of widget.querySelectorAll("[data-moment]")) {
      each.classList.toggle("lit", Number(each.dataset.moment) === now);
      each.classList.toggle("ahead", now >= 0 && Number(each.dataset.moment) > now);
    }
    const lines = slider.closest(".panel").querySelector("[role=img]").getAttribute("aria-label").split("\n");
    widget.querySelector(".lit_line").textContent = lines[now] ?? "";
    slider.setAttribute("aria-valuetext", lines[now] ?? "–");
  }

  const late = () => widget.classList.add("busy");
  const choose = (input) => {
    if (input.matches(".moment")) { moment = input.valueAsNumber; return light(input); }
    if (!input.dataset.listing) { late(); return listener.change(input); }
    listing = input.dataset.listing;
    widget.querySelector(".copied").textContent = "";
    look();
  };
  root.addEventListener("change", ({ target }) => {
    const confirm = widget.querySelector(".confirm"); // where a choice cannot be undone, arrows only move
    if (!confirm || !pressed.startsWith("Arrow")) choose(target);
    else confirm.textContent = confirm.dataset.text;
  });
  root.addEventListener("input", ({ target }) => target.matches(".moment") && choose(target));
  root.addEventListener("focusin", ({ target }) => target.role === "button" && look(target.dataset.device));
  root.addEventListener("click", ({ target }) => {
    const marked = target.closest("[data-device]");
    if (marked) look(marked.dataset.device);
    const button = target.closest(".press");
    if (button) { late(); listener.press(button.value); }
    if (target.matches("input[type=button]")) choose(target);
    if (target.closest(".copy")) copy(target.closest(".listings"));
  });
  root.addEventListener("keydown", (event) => {
    pressed = event.key; // for the `change` that may follow at once
    setTimeout(() => { pressed = ""; });
    const { target } = event;
    const chooses = (event.key === "Enter" && !event.isComposing) || (event.key === " " && target.checked);
    if (target.localName === "input" && chooses && isPlain(event)) {
      event.preventDefault(); // Enter in a field would be told twice, and in JupyterLab not at all
      if (target.type === "radio") target.checked = true;
      choose(target);
    }
    const cards = [...widget.querySelectorAll("[role=button]")], at = cards.indexOf(target);
    const next = at < 0 ? undefined : reached(cards, at, event.key);
    if (!next) return;
    event.preventDefault();
    next.focus();
  });
  return (tree, due = true) => {
    unfolded = widget?.querySelector("details")?.open ?? unfolded; // also when choices without one come between
    widget = paint(widget, tree, due);
    for (const each of widget.querySelectorAll("details")) each.open = unfolded;
    if (!widget.isConnected) root.append(widget);
    look();
  };
}

/** Returns the card that a key leads to: the next one, the nearest one below or above, the first or the last. */
function reached(cards, at, key) {
  const ends = { Home: cards[0], End: cards.at(-1) };
  const step = { ArrowRight: 1, ArrowLeft: -1 }[key], down = { ArrowDown: 1, ArrowUp: -1 }[key];
  if (step) return cards[(at + step + cards.length) % cards.length];
  if (!down) return ends[key];
  const from = cards[at].getBoundingClientRect();
  const away = (card) => {
    const { left, top } = card.getBoundingClientRect();
    return down * (top - from.top) < from.height / 2 ? Infinity : Math.hypot(left - from.left, top - from.top);
  };
  return cards.reduce((best, card) => (away(card) < away(best) ? card : best), cards[at]);
}

/** Copies the program that is shown, and says so. */
async function copy(listings) {
  const { textContent } = listings.querySelector("pre:not([hidden])"), said = listings.querySelector(".copied");
  const done = await navigator.clipboard?.writeText(textContent).then(() => true, () => false);
  said.textContent = done ? said.dataset.done : said.dataset.failed;
}

const isPlain = ({ key, altKey, ctrlKey, metaKey, shiftKey }) =>
  !altKey && !ctrlKey && !metaKey && !(shiftKey && key === "Enter");

const valueOf = ({ type, value, dataset }) => {
  if (type === "number") return value === "" ? null : Number(value);
  if (type === "range") return JSON.parse(dataset.value)[value];
  return type === "text" ? value : JSON.parse(dataset.value);
};

export default {
  render({ model, el }) {
    const host = el.appendChild(document.createElement("div"));
    // JupyterLab hears keys first, and with an arrow would leave the cell. It lets those be that come from below
    // this attribute; keys that run the cell or save are still for JupyterLab.
    const guard = (event) => host.toggleAttribute("data-lm-suppress-shortcuts", isPlain(event));
    window.addEventListener("keydown", guard, true);
    const send = async (message) => {
      try { await model.send(message); } catch { /* The kernel was restarted: the line "late" says so. */ }
    };
    const show = mount(host, {
      change: (input) => send({ kind: "change", path: JSON.parse(input.dataset.path), value: valueOf(input) }),
      press: (name) => send({ kind: "press", name }),
    });
    const refresh = () => show(model.get("view"), false);
    const answered = () => show(model.get("view"));
    model.on("change:view", refresh);
    model.on("msg:custom", answered);
    answered();
    return () => {
      window.removeEventListener("keydown", guard, true);
      model.off("change:view", refresh);
      model.off("msg:custom", answered);
    };
  },
};

/** Returns what gives the view at a place. A number in a view stands for the part of that number. */
function reading({ keys, views, leads_to, files, parts, names }) {
  const attributesOf = (part) => { // what a notebook carries that was run with an earlier version has objects
    if (!Array.isArray(part)) return part;
    const [named, ...values] = part;
    return Object.fromEntries(names[named].map((name, at) => [name, values[at]]));
  };
  const whole = (value) => {
    if (typeof value !== "number") return value;
    const [tag, attributes, ...children] = parts[value];
    return [tag, attributesOf(parts[attributes]), ...children.map(whole)];
  };
  const at = (place) => place in keys && { key: keys[place], view: whole(views[place]), leads_to: leads_to[place] };
  return { at, files, of: (key) => at(keys.indexOf(key)) };
}

/** Returns which of the options of a widget the reader chose: a slider has several. */
function option(root, input) {
  const inputs = [...root.querySelectorAll("input")], counts = inputs.map(({ type, max }) => (type === "range" ? max : 0));
  return inputs.indexOf(input) + counts.slice(0, inputs.indexOf(input)).reduce((sum, count) => sum + Number(count), 0)
    + (input.type === "range" ? Number(input.value) : 0);
}

const tables = {}; // one for all widgets of a page that show the same

const fetched = (file) => (tables[file] ??=
  fetch(new URL(file, import.meta.url)).then(async (answer) => reading(await answer.json())));

/** What this browser keeps of a puzzle: the key of its last view, and how good the best was (1 solved, 2 at par). */
const kept = (name) => {
  try { return JSON.parse(localStorage.getItem(`course-${name}`)) ?? {}; } catch { return {}; } // it may be forbidden
};

/** A widget on a page. Until its table is here, and where it does not come, what it looks like stays as it is. */
class Widget extends HTMLElement {
  async connectedCallback() {
    if (this.shadowRoot) return; // moved in the page: the shadow tree came along
    await this.near?.();
    const script = this.querySelector("script[type='application/json']"), { table, first } = this.dataset;
    let read = script ? reading(JSON.parse(script.textContent)) : await fetched(table);
    this.replaceChildren();
    const [name] = table.split(".");
    let now;
    const display = (next) => { now = next; show(next.view); };
    const show = mount(this, { change: async (input) => {
      let next = now.leads_to[option(this.shadowRoot, input)];
      if (Array.isArray(next)) { // its view is in another table
        const [file, place] = next;
        [read, next] = [await fetched(read.files[file]), place];
      }
      display(read.at(next));
      this.predicted();
      this.keep(name, now.key);
    } });
    display(read.of(kept(name).key) || read.of(first)); // nothing where another version of the course kept it
  }

  /** Keeps the choice in a puzzle for the next visit, and how good the best so far is. */
  keep(name, key) {
    const level = this.shadowRoot.querySelector("[data-level]")?.dataset.level;
    if (!level) return;
    const best = Math.max(level, kept(name).best ?? 0);
    try { localStorage.setItem(`course-${name}`, JSON.stringify({ key, best })); } catch { return; }
    document.dispatchEvent(new Event("course-kept"));
  }

  /** Tells the page that the reader made a prediction, and which, where this widget asked for one. */
  predicted() {
    const verdict = this.shadowRoot.querySelector("[data-predicted]");
    if (!verdict) return;
    const detail = { id: verdict.dataset.predicted, right: verdict.dataset.right === "true" };
    this.dispatchEvent(new CustomEvent("course-predicted", { detail, bubbles: true, composed: true }));
  }
}

/** A puzzle asks for its table when the reader comes near: a page has many. */
class Puzzle extends Widget {
  near() {
    return new Promise((done) => new IntersectionObserver((seen, watch) => {
      if (!seen.some((each) => each.isIntersecting)) return;
      watch.disconnect();
      done();
    }, { rootMargin: "100%" }).observe(this));
  }
}

/** Says how many predictions of its lesson the reader of this page made, and how many were right at first. */
class Score extends HTMLElement {
  connectedCallback() {
    const first = new Map();
    this.count = ({ detail: { id, right } }) => {
      if (!id.startsWith(`${this.dataset.lesson}-`) || first.has(id)) return;
      first.set(id, right);
      this.textContent = JSON.parse(this.dataset.said)[first.size][[...first.values()].filter(Boolean).length];
    };
    document.addEventListener("course-predicted", this.count);
  }

  disconnectedCallback() { document.removeEventListener("course-predicted", this.count); }
}

/** Says which puzzles the reader has solved in this browser, and which of them at par. */
class Solved extends HTMLElement {
  connectedCallback() {
    const { puzzles, said, none } = this.dataset;
    const numbers = Array.from({ length: puzzles }, (_, at) => at + 1);
    const reached = (level) => numbers.filter((each) => kept(`puzzle_${each}`).best >= level).join(", ") || none;
    this.count = () => { this.textContent = said.replace("{solved}", reached(1)).replace("{par}", reached(2)); };
    this.count();
    document.addEventListener("course-kept", this.count);
  }

  disconnectedCallback() { document.removeEventListener("course-kept", this.count); }
}

const elements = {
  "course-explorer": class extends Widget {}, "course-prediction": class extends Widget {},
  "course-puzzle": Puzzle, "course-score": Score, "course-solved": Solved,
};
for (const [name, element] of Object.entries(elements))
  if (!globalThis.customElements?.get(name)) globalThis.customElements?.define(name, element);
