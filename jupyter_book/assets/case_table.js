// A table of cases: rows that filters hide, and that open, each with a program to copy.
import { addButton } from "./copy.js";

export function select(label, options, chosen) {
  const element = document.createElement("select");
  element.append(...options.map(([value, name]) => new Option(name, value, false, value === chosen)));
  const around = document.createElement("label");
  around.append(`${label} `, element);
  return [around, element];
}

/** Returns a box for a program, with a button that copies it, and the element of its text. */
export function programBox() {
  const box = document.createElement("div");
  box.className = "highlight";
  const block = box.appendChild(document.createElement("pre"));
  if (navigator.clipboard) addButton(box);
  return [box, block];
}

/** Lets filters hide rows, and each row open: `isShown(line)` is asked again when a filter changes; `fill(cell, index)` fills what opens. */
export function connect(place, isShown, fill, shownWord) {
  const filters = place.querySelector(".filters");
  const lines = [...place.querySelectorAll("tbody tr")];
  let opened = null;

  function close() {
    opened?.remove();
    opened = null;
  }

  function open(line) {
    close();
    opened = place.querySelector("tbody").insertRow(lines.indexOf(line) + 1);
    const cell = opened.insertCell();
    cell.colSpan = line.cells.length;
    fill(cell, lines.indexOf(line));
  }

  function filter() {
    for (const line of lines) line.hidden = !isShown(line);
    close();
    filters.querySelector("output").textContent = `${lines.filter((line) => !line.hidden).length} ${shownWord}`;
  }

  for (const line of lines) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...line.cells[0].childNodes);
    button.addEventListener("click", () => (opened?.previousElementSibling === line ? close() : open(line)));
    line.cells[0].append(button);
  }
  filters.querySelectorAll("input, select").forEach((control) => control.addEventListener("input", filter));
  filters.hidden = false;
  filter();
  const named = lines.find((line) => line.id && `#${line.id}` === location.hash);
  if (named) {
    open(named);
    named.scrollIntoView({ block: "center" });
  }
}
