// The table of operations: filters, and for the operation that is chosen its cases, each with a program to copy.
import { connect, programBox, select } from "./case_table.js";

const place = document.querySelector(".operations");
const { answers, rows, program, shapes, meshes, layouts } = JSON.parse(place.querySelector("script").textContent);
const [modes, verdicts, words] = [place.dataset.modes, place.dataset.verdicts, place.dataset.words].map(JSON.parse);
const [text, verdict, of, marks] = place.querySelectorAll(".filters :is(input, select)");

function isShown(line) {
  const asked = text.value.trim().toLowerCase();
  const cells = verdict.value ? [line.querySelector(`.${verdict.value}`)] : [...line.querySelectorAll("td[class]")];
  const patterns = cells.flatMap((cell) => [...cell.querySelectorAll("span")]).flatMap((span) => span.textContent.split(" "));
  return (
    `${line.cells[0].textContent} ${line.dataset.group}`.toLowerCase().includes(asked) &&
    (!of.value || line.dataset.of === of.value) &&
    patterns.length &&
    (!marks.value || patterns.includes(marks.value))
  );
}

/** Whether an answer is that of a case: of what was none it is "none". */
function isCase(number) {
  return answers[number].verdict in verdicts;
}

/** Fills what opens with the cases of a row, the first one of its worst verdict chosen. */
function fill(cell, index) {
  const row = rows[index];
  const keys = Object.keys(row.answers);
  const [first, number] = worst(row, keys.filter((key) => !key.startsWith("eager gradient"))); // as the squares
  const outcome = (numbers) => [...new Set(numbers.map((each) => verdicts[answers[each].verdict] ?? "–"))].join(", ");
  const named = (key) => {
    const at = key.lastIndexOf(" ");
    return `${modes[key.slice(0, at)]}, ${key.slice(at + 1)}: ${outcome(row.answers[key].filter(isCase))}`;
  };
  const [ways, way] = select(words.way, keys.map((key) => [key, named(key)]), first);
  const [splits, split] = select(words.layout, []);
  const found = document.createElement("p");
  const [box, block] = programBox();
  const offer = (chosen) => {
    const tried = layouts[`${way.value.split(" ").at(-1)} ${shapes[row.of].length}`];
    split.replaceChildren(...tried.map((layout, each) => new Option(`[${layout.join(", ")}]: ${outcome([row.answers[way.value][each]])}`, each, false, each === chosen)));
    show();
  };
  const show = () => {
    const number = row.answers[way.value][split.value];
    found.textContent = isCase(number) ? told(answers[number], way.value) : words.untried;
    block.textContent = isCase(number) ? programOf(row, way.value, Number(split.value)) : "";
  };
  way.addEventListener("change", () => offer(0));
  split.addEventListener("change", show);
  cell.append(ways, " ", splits, found, box);
  offer(number);
}

function worst(row, keys) {
  for (const wanted of ["dead", "wrong", "refused", "right"]) {
    for (const key of keys) {
      const number = row.answers[key].findIndex((each) => answers[each].verdict === wanted);
      if (number >= 0) return [key, number];
    }
  }
  return [keys[0], 0];
}

function told(answer, way) {
  const parts = [verdicts[answer.verdict]];
  if (answer.layouts) parts.push(`${words.result}: ${answer.layouts.map((each) => `[${each.join(", ")}]`).join(", ")}`);
  const observed = answer.verdict === "right" && !way.startsWith("eager"); // in a graph alone
  if (observed) parts.push(`${words.collectives}: ${answer.collectives?.join("; ") ?? words.none}`);
  if (answer.message) parts.push(answer.message);
  return parts.join(" · ");
}

/** Returns the program of a case: its values in one line, then what is of the operation, between what is the same for all. */
function programOf(row, key, number) {
  const [at, sizes] = [key.lastIndexOf(" "), key.split(" ").at(-1)];
  const layout = layouts[`${sizes} ${shapes[row.of].length}`][number];
  const values = [shapes[row.of], meshes[sizes], layout, key.slice(0, at)].map((value) => JSON.stringify(value).replaceAll(",", ", "));
  return `${program[0]}shape, mesh_dims, sharding_specs, way = ${values.join(", ")}\n${row.functions}${program[1]}`;
}

connect(place, isShown, fill, words.shown);
