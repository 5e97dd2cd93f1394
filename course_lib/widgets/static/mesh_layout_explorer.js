// The mesh and layout explorer, for two hosts: anywidget in a notebook, <mesh-layout-explorer> on any page.
// Python made the table of choices, with every number and every text (course_lib/choices.py). This module
// only picks from the table and draws.

const STYLE = `
  :host { display: block; margin: 1rem 0; }
  .explorer { --line: color-mix(in srgb, currentColor 45%, transparent); container-type: inline-size;
    font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Hiragino Sans",
    "Noto Sans CJK JP", "Yu Gothic", Meiryo, sans-serif; max-width: 58rem; padding: 1rem 1.1rem;
    border: 1px solid var(--line); border-radius: 12px; box-sizing: border-box; }
  .explorer *, .explorer *::before { box-sizing: border-box; }
  fieldset { border: 0; margin: 0 0 .45rem; padding: 0; display: grid; grid-template-columns: 10.5rem 1fr;
    align-items: baseline; min-width: 0; }
  legend { float: left; padding: 0; opacity: .95; }
  .options { display: flex; flex-wrap: wrap; gap: .3rem; }
  label { position: relative; cursor: pointer; }
  label input { position: absolute; opacity: 0; inset: 0; width: 100%; height: 100%; margin: 0; cursor: pointer; }
  label span { display: block; padding: .1rem .7rem; border: 1px solid var(--line); border-radius: 99px;
    min-height: 1.75rem; white-space: nowrap; }
  label:hover span { border-color: currentColor; }
  input:checked + span { background: #1F5FBF; border-color: #1F5FBF; color: #FFF; font-weight: 600; }
  input:focus-visible + span, button:focus-visible { outline: 3px solid currentColor; outline-offset: 2px; }
  .facts { display: flex; flex-wrap: wrap; gap: .3rem 2rem; margin: .9rem 0 .7rem; padding: .6rem 0;
    border: solid var(--line); border-width: 1px 0; }
  .facts div { display: flex; gap: .5rem; align-items: baseline; }
  dt, dd { margin: 0; } dd { font-weight: 700; font-variant-numeric: tabular-nums; }
  .pictures { display: flex; flex-wrap: wrap; gap: 1.2rem 2.4rem; align-items: flex-start; }
  h3 { all: unset; display: block; font-weight: 600; margin-bottom: .4rem; }
  .tensor { max-width: 100%; } .tensor svg { display: block; max-width: 100%; height: auto; padding: 6px;
    background: #FCFCFA; border-radius: 8px; box-sizing: border-box; }
  .axes { margin: .4rem 0 0; padding: 0; list-style: none; font-size: .85em; }
  .planes { display: flex; flex-wrap: wrap; gap: .8rem 1.4rem; } .plane-name { font-size: .85em; }
  .grid { display: grid; gap: .65rem; align-items: center; font-size: .85em; text-align: center; }
  .row { display: flex; flex-wrap: wrap; gap: .5rem .45rem; text-align: center; font-size: .85em; }
  .row > div { width: 4.7rem; display: grid; gap: .3rem; } .row .device { width: 100%; }
  .device { all: unset; box-sizing: border-box; display: block; min-width: 3.4rem; border-radius: 8px;
    background: #FCFCFA; border: 1px solid #4D5661; overflow: hidden; align-self: stretch; }
  button.device { cursor: pointer; } .device > * { color: #1B1F24; }
  .device .name { display: flex; justify-content: space-between; gap: .6rem; padding: .05rem .5rem;
    background: var(--block, #FFF); border-bottom: 1px solid #4D5661; font-weight: 600; }
  .device .holds { display: grid; place-items: center; padding: .4rem; min-height: 3.6rem; }
  .device.chosen, .device.same { outline: 3px solid currentColor; outline-offset: 1px; }
  .device.same { outline-style: dashed; outline-width: 2px; }
  .device.wrong { border: 2px dashed #B3261E; }
  .values { border-collapse: collapse; font: 11px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
  .values td { border: 1px solid #4D5661; padding: 1px 3px; background: var(--block, #FFF); text-align: right; }
  .shape { font: 11px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
  .part { cursor: pointer; } .part.held rect { stroke: #1B1F24; stroke-width: 4; }
  .refusal { border-left: 5px solid #D9822B; padding: .5rem .9rem; margin: .9rem 0; white-space: pre-line;
    background: color-mix(in srgb, #D9822B 10%, transparent); }
  .refusal strong { display: block; }
  .says { margin: .9rem 0; min-height: 1.5em; } .says:empty { display: none; }
  .observe { font: inherit; font-weight: 600; padding: .35rem 1rem; border-radius: 8px; cursor: pointer;
    border: 1px solid #1F5FBF; background: #1F5FBF; color: #FFF; }
  .observe:disabled { background: transparent; color: inherit; border: 1px dashed var(--line); cursor: default; }
  .verdict { margin: .6rem 0 0; font-weight: 600; white-space: pre-line; } .verdict:empty { display: none; }
  .why { font-size: .85em; margin: .3rem 0 0; } .why:empty { display: none; }
  @container (max-width: 34rem) { fieldset { grid-template-columns: 1fr; } }
`;

// --- picking -------------------------------------------------------------------------------------------

export const fill = (template, values) => template.replace(/\{(\w+)\}/g, (_, name) => values[name]);

/** What the table says about a choice: { reason } if it is illegal, else { cut, blocks, copies }. */
export function lookUp(table, { mesh, tensor, specs }) {
  const entry = table.choices[mesh][tensor][specs.join(",")];
  if (!Array.isArray(entry)) return { reason: table.reasons[entry] };
  const [cut, holding] = entry;
  return { cut: table.cuts[cut], ...table.holdings[holding] };
}

/** The choice after one change. Axes keep their mesh dimension as long as the new mesh has it. */
export function changed(table, choice, change) {
  const next = { ...choice, ...change };
  const names = table.meshes[next.mesh].dims.map(([name]) => name);
  const { axes } = table.tensors[next.tensor];
  next.specs = axes.map((_, axis) => (names.includes(next.specs[axis]) ? next.specs[axis] : table.unsharded));
  next.device = Math.min(next.device, table.meshes[next.mesh].devices - 1);
  return next;
}

export const keyOf = ({ mesh, tensor, specs }) => [mesh, tensor, ...specs].join("/");

/** The mesh with so many devices whose number of dimensions is nearest to that of the present mesh. */
export function meshWith(table, devices, mesh) {
  const distance = ({ dims }) => Math.abs(dims.length - table.meshes[mesh].dims.length);
  const fitting = table.meshes.filter((each) => each.devices === devices);
  return table.meshes.indexOf(fitting.reduce((best, each) => (distance(each) < distance(best) ? each : best)));
}

// --- drawing -------------------------------------------------------------------------------------------

/** The SVG of a tensor cut in blocks; with `only`, a small map in which one block has its colour. */
export function tensorSvg(table, shape, blocks, { side, only = null, label = "" }) {
  const padded = (list, one) => [one, one, one, ...list].slice(-3);
  const [, rows, columns] = padded(shape, 1);
  const cell = Math.min(side / Math.max(rows, columns), side / 4);
  const [cellWidth, cellHeight] = [cell, rows === 1 ? Math.max(cell, side / 6) : cell];
  const places = blocks.map((block) => padded(block, [0, 1]));
  const starts = [...new Set(places.map(([plane]) => plane[0]))];
  const sheets = Math.min(places[0][0][1] - places[0][0][0], 4) - 1, step = side > 100 ? 5 : 3, gap = side / 12;
  const planeWidth = columns * cellWidth + sheets * step;
  const width = starts.length * (planeWidth + gap) - gap, height = rows * cellHeight + sheets * step;
  const rect = (x, y, w, h, fillColour, line) => `<rect x="${x}" y="${y}" width="${w}" height="${h}"
    fill="${fillColour}" stroke="#4D5661" stroke-width="${line}"/>`;
  let body = "";
  starts.forEach((_, plane) => {
    for (let sheet = sheets; sheet > 0; sheet--)
      body += rect(plane * (planeWidth + gap) + sheet * step, (sheets - sheet) * step,
        columns * cellWidth, rows * cellHeight, "#EEF0F3", 0.7);
  });
  places.forEach(([plane, [top, bottom], [left, right]], number) => {
    const x = starts.indexOf(plane[0]) * (planeWidth + gap) + left * cellWidth, y = sheets * step + top * cellHeight;
    const [w, h] = [(right - left) * cellWidth, (bottom - top) * cellHeight];
    const shown = only === null || only === number;
    let inside = rect(x, y, w, h, shown ? colour(table, number) : "#EEF0F3", only === null ? 1.2 : 0.6);
    for (let at = left + 1; at < right && only === null; at++)
      inside += `<path d="M${x + (at - left) * cellWidth} ${y}v${h}" stroke="#1B1F2433"/>`;
    for (let at = top + 1; at < bottom && only === null; at++)
      inside += `<path d="M${x} ${y + (at - top) * cellHeight}h${w}" stroke="#1B1F2433"/>`;
    if (only === null)
      inside += `<text x="${x + w / 2}" y="${y + h / 2}" text-anchor="middle" dominant-baseline="central"
        fill="#1B1F24" font-weight="600" font-size="${Math.max(9, Math.min(17, w * 0.7, h * 0.8))}">${table.labels[number]}</text>`;
    body += `<g class="part" data-block="${number}">${inside}</g>`;
  });
  const told = label ? `role="img" aria-label="${label}"` : 'aria-hidden="true"';
  return `<svg xmlns="http://www.w3.org/2000/svg" ${told} width="${width + 4}" height="${height + 4}"
    viewBox="-2 -2 ${width + 4} ${height + 4}">${body}</svg>`;
}

const colour = (table, block) => (block === null ? "#FFFFFF" : table.palette[block % table.palette.length]);

function make(tag, properties = {}, children = []) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

/** The devices in the grid of their mesh: `card(device)` makes each. */
function meshGrid(table, mesh, card) {
  const { dims, devices, coords } = table.meshes[mesh];
  if (dims.length === 1)
    return make("div", { className: "row" }, coords.map((place, device) => make("div", {}, [place, card(device)])));
  const [[rowName, rows], [columnName, columns]] = dims.slice(-2);
  const planes = [...Array(devices / (rows * columns)).keys()].map((plane) => {
    const grid = make("div", { className: "grid", style: `grid-template-columns: auto repeat(${columns}, auto)` });
    const name = dims.slice(0, -2).map(([dim]) => `${dim}=${plane}`).join(", ");
    grid.append(make("span", { textContent: name, className: "plane-name", style: "font-weight:700" }));
    for (let column = 0; column < columns; column++) grid.append(make("span", { textContent: `${columnName}=${column}` }));
    for (let row = 0; row < rows; row++) {
      grid.append(make("span", { textContent: `${rowName}=${row}` }));
      for (let column = 0; column < columns; column++) grid.append(card((plane * rows + row) * columns + column));
    }
    return grid;
  });
  return make("div", { className: "planes" }, planes);
}

function deviceCard(table, tag, device, block, properties, holds) {
  const card = make(tag, { className: "device", ...properties });
  card.dataset.device = device;
  card.style.setProperty("--block", colour(table, block));
  const label = block === null ? "?" : table.labels[block];
  const name = [make("span", { textContent: device }), make("span", { textContent: label })];
  card.append(make("span", { className: "name" }, name), make("span", { className: "holds" }, [holds]));
  return card;
}

const fromSvg = (text) => make("span", { innerHTML: text }).firstElementChild;

// --- the explorer --------------------------------------------------------------------------------------

/** Shows the explorer in `host`. `store` has get(name), set(changes), and observe() where there is a kernel. */
export function mount(host, store) {
  const table = store.get("table"), { texts } = table;
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  const live = (className) => make("p", { className, role: "status" });
  const [says, verdict] = [live("says"), live("verdict")];
  const controls = make("div", { role: "group", ariaLabel: texts.title }), stage = make("div");
  const button = make("button", { type: "button", className: "observe", textContent: texts.button, onclick: observe });
  const why = make("p", { className: "why" });
  const parts = [controls, stage, says, button, why, verdict];
  const explorer = make("section", { className: "explorer", lang: table.language }, parts);
  root.replaceChildren(make("style", { textContent: STYLE }), explorer);
  let waiting = false, drawn = null;

  function choose(change) {
    store.set({ choice: changed(table, store.get("choice"), change) });
    show();
  }

  function observe() {
    if (waiting) return;
    waiting = true;
    store.set({ observed: {} });
    show();
    store.observe();
  }

  /** Brings the picture up to date; hosts call it as often as they like. */
  function show() {
    const observed = store.get("observed");
    waiting = waiting && !observed.key;
    const state = JSON.stringify([keyOf(store.get("choice")), observed, waiting]);
    if (state !== drawn) {
      drawn = state;
      const { name, dataset } = root.activeElement ?? {};
      draw();
      const again = name ? `[name=${name}]:checked` : dataset?.device ? `button[data-device="${dataset.device}"]` : null;
      if (again) explorer.querySelector(again)?.focus();
    }
    highlight();
  }

  function drawControls({ mesh, tensor, specs }) {
    const { meshes, tensors, unsharded } = table, { devices, dims } = meshes[mesh];
    const names = [unsharded, ...dims.map(([name]) => name)];
    const meshOptions = meshes.map((each, at) => [at, each.name, each.devices]).filter(([, , count]) => count === devices);
    const groups = [
      [texts.devices, [...new Set(meshes.map((each) => each.devices))].map((count) => [count, count]), devices,
        (count) => choose({ mesh: meshWith(table, count, mesh) })],
      [texts.mesh, meshOptions, mesh, (at) => choose({ mesh: at })],
      [texts.tensor, tensors.map(({ name }, at) => [at, name]), tensor, (at) => choose({ tensor: at })],
      ...tensors[tensor].axes.map((legend, axis) =>
        [legend, names.map((name) => [name, name]), specs[axis], (name) => choose({ specs: specs.map((old, at) => (at === axis ? name : old)) })]),
    ];
    controls.replaceChildren(...groups.map(([legend, values, current, pick], group) => {
      const labels = values.map(([value, text]) => make("label", {}, [
        make("input", { type: "radio", name: `group-${group}`, checked: value === current, onchange: () => pick(value) }),
        make("span", { textContent: text })]));
      const box = make("div", { className: "options" }, labels);
      return make("fieldset", {}, [make("legend", { textContent: legend }), box]);
    }));
  }

  function prediction({ cut, blocks }, { mesh, tensor }) {
    const { shape } = table.tensors[tensor];
    return meshGrid(table, mesh, (device) => {
      const map = fromSvg(tensorSvg(table, shape, cut.blocks, { side: 46, only: blocks[device] }));
      const place = { device, coords: table.meshes[mesh].coords[device], block: table.labels[blocks[device]] };
      return deviceCard(table, "button", device, blocks[device], {
        type: "button", ariaLabel: fill(texts.device, place), onclick: () => choose({ device }),
        onfocus: () => choose({ device }), onkeydown: (event) => moveFocus(event, device) }, map);
    });
  }

  function moveFocus(event, device) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const buttons = stage.querySelectorAll("button.device");
    buttons[(device + step + buttons.length) % buttons.length].focus();
  }

  function reality(observed, { cut, blocks }, { mesh, tensor }) {
    return meshGrid(table, mesh, (device) => {
      const held = observed.holdings[device], rows = observed.values[device];
      const holds = rows ? make("table", { className: "values" }, rows.map((row) =>
        make("tr", {}, row.map((value) => make("td", { textContent: value })))))
        : fromSvg(tensorSvg(table, table.tensors[tensor].shape, cut.blocks, { side: 46, only: held ?? -1 }));
      const card = deviceCard(table, "span", device, held, {}, holds);
      card.classList.toggle("wrong", held !== blocks[device]);
      return card;
    });
  }

  function draw() {
    const choice = store.get("choice"), found = lookUp(table, choice), observed = store.get("observed");
    const current = observed.key === keyOf(choice);
    drawControls(choice);
    if (found.reason) {
      stage.replaceChildren(make("div", { className: "refusal", role: "alert" },
        [make("strong", { textContent: texts.illegal }), found.reason]));
    } else {
      const { shape, axes } = table.tensors[choice.tensor];
      const svg = fromSvg(tensorSvg(table, shape, found.cut.blocks, { side: 190, label: texts.tensor }));
      for (const part of svg.querySelectorAll(".part"))
        part.onclick = () => choose({ device: found.blocks.indexOf(Number(part.dataset.block)) });
      const arrows = ["↗", "↓", "→"].slice(-shape.length);
      const notes = axes.map((axis, at) => make("li", { textContent: `${arrows[at]} ${axis} · ${choice.specs[at]}` }));
      const panel = (title, ...body) => make("div", {}, [make("h3", { textContent: title }), ...body]);
      const panels = [
        panel(texts.tensor, make("div", { className: "tensor" }, [svg]), make("ul", { className: "axes" }, notes)),
        panel(texts.prediction, prediction(found, choice))];
      if (current && observed.holdings) panels.push(panel(texts.reality, reality(observed, found, choice)));
      const facts = [[texts.local_shape, found.cut.local_shape], [texts.num_bytes, found.cut.num_bytes],
        [texts.copies, found.copies]].map(([name, value]) =>
        make("div", {}, [make("dt", { textContent: name }), make("dd", { textContent: value })]));
      stage.replaceChildren(make("dl", { className: "facts" }, facts), make("div", { className: "pictures" }, panels));
    }
    button.disabled = Boolean(found.reason) || !store.observe;
    button.ariaDisabled = waiting;
    why.textContent = store.observe ? "" : texts.no_kernel;
    verdict.textContent = waiting ? texts.waiting : current ? `${observed.mark} ${observed.verdict}` : "";
  }

  function highlight() {
    const choice = store.get("choice"), { reason, cut, blocks } = lookUp(table, choice), { device } = choice;
    if (reason) return void (says.textContent = "");
    for (const card of stage.querySelectorAll(".device")) {
      const number = Number(card.dataset.device);
      card.classList.toggle("chosen", number === device);
      card.classList.toggle("same", number !== device && blocks[number] === blocks[device]);
      if (card.type) card.ariaPressed = number === device;
    }
    for (const part of stage.querySelectorAll(".tensor .part")) {
      part.classList.toggle("held", Number(part.dataset.block) === blocks[device]);
      if (part.matches(".held")) part.parentNode.append(part); // its border lies over its neighbours
    }
    const others = [...blocks.keys()].filter((at) => at !== device && blocks[at] === blocks[device]);
    const values = { device, coords: table.meshes[choice.mesh].coords[device], block: table.labels[blocks[device]],
      index: cut.index[blocks[device]], devices: others.join(", ") };
    says.textContent = fill(others.length ? texts.replicas : texts.alone, values);
  }

  show();
  return show;
}

export default {
  render({ model, el }) {
    const host = el.appendChild(document.createElement("div"));
    const store = { get: (name) => model.get(name), set(changes) {
      for (const [name, value] of Object.entries(changes)) model.set(name, value);
      model.save_changes();
    } };
    if (model.get("can_observe")) store.observe = () => model.send({ kind: "observe" });
    const refresh = mount(host, store);
    for (const name of ["choice", "observed"]) model.on(`change:${name}`, refresh);
    return () => { for (const name of ["choice", "observed"]) model.off(`change:${name}`, refresh); };
  },
};

if (globalThis.customElements && !customElements.get("mesh-layout-explorer"))
  customElements.define("mesh-layout-explorer", class extends HTMLElement {
    connectedCallback() {
      const script = this.querySelector("script[type='application/json']");
      if (this.state || !script) return; // moved in the page: the shadow tree came along
      this.state = JSON.parse(script.textContent);
      mount(this, { get: (name) => this.state[name], set: (changes) => Object.assign(this.state, changes) });
    }
  });
