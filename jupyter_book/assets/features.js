// The table of strategies: for the feature that is chosen its cases, each with a program to copy.
import { connect, programBox, select } from "./case_table.js";

const PASTED = 6; // words
const ENOUGH = 0.7;

const place = document.querySelector(".features");
const { answers, rows, head, common, runs, rest, first, parts } = JSON.parse(place.querySelector("script").textContent);
const [columns, strategies, ways, partNames, words] = ["columns", "strategies", "ways", "parts", "words"].map((name) => JSON.parse(place.dataset[name]));
const [text, column, strategy] = place.querySelectorAll(".filters :is(input, select)");

/** Whether a row holds every word that was typed, or most words of an error that was pasted: some are of one run alone. */
function holds(line) {
  const told = `${line.textContent} ${line.dataset.group}`.toLowerCase().replaceAll("`", "");
  const typed = text.value.toLowerCase().replaceAll("`", "").split(/\s+/).filter(Boolean);
  if (typed.length < PASTED) return typed.every((word) => told.includes(word));
  const words = typed.join(" ").match(/\p{L}{3,}/gu) ?? [];
  return words.filter((word) => told.includes(word)).length >= ENOUGH * words.length;
}

function isShown(line) {
  const cells = column.value ? [line.querySelector(`td.${column.value}`)] : [...line.querySelectorAll("td[class]")];
  const spans = cells.flatMap((cell) => [...cell.querySelectorAll("span")]);
  return holds(line) && spans.some((span) => !strategy.value || span.dataset.of.split(" ").includes(strategy.value));
}

/** Fills what opens with the cases of a row, the first one of its worst verdict chosen. */
function fill(cell, index) {
  const row = rows[index];
  const keys = Object.keys(row.answers);
  const worst = ["dead", "wrong", "refused", "parts", "right"].flatMap((wanted) => keys.filter((key) => answers[row.answers[key]].column === wanted))[0];
  const [label, chosen] = select(words.case, keys.map((key) => [key, `${nameOf(key)}: ${columns[answers[row.answers[key]].column]}`]), worst);
  const told = document.createElement("p");
  const [box, block] = programBox();
  const show = () => {
    const answer = answers[row.answers[chosen.value]];
    told.replaceChildren(columns[answer.column]);
    if (answer.text) {
      const english = document.createElement("span"); // names of numbers, or what TensorFlow says
      english.lang = "en";
      english.append(answer.text);
      told.append(" · ", english);
    }
    if (answer.closely) told.append(` · ${words.closely.replace("{}", answer.closely)}`);
    if (row.documented) told.append(` · ${row.documented}`);
    if (row.cure && answer.column !== "right") told.insertAdjacentHTML("beforeend", ` · ${words.instead}: ${row.cure}`);
    block.textContent = programOf(row, ...chosen.value.split(" "));
  };
  chosen.addEventListener("change", show);
  cell.append(label, told, box);
  show();
}

function nameOf(key) {
  const [under, keras, way, part] = key.split(" ");
  return [strategies[under], ...(keras === "keras" ? [] : [keras]), ways[way], partNames[part]].join(", ");
}

/** Returns the program of a case: a feature's functions take the place of those of the same name. */
function programOf(row, under, keras, way, part) {
  const [begin, end] = [head, rest].map((pieces) => pieces.filter(([name]) => !row.own.includes(name)).map(([, lines]) => lines).join(""));
  let own = begin.replace(first, `${first.split(" =")[0]} = "${under}", "${way}", ${parts[part]}`);
  if (keras === "tf_keras") own = own.replace("import keras\n", "import tf_keras as keras\n");
  const code = `${row.code}\n\n\n`;
  return row.late ? `${own}${common}${runs}${code}${end}` : `${own}${code}${common}${end}`;
}

connect(place, isShown, fill, words.shown);
