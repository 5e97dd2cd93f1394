// What the explorer picks and draws, without a page. The table comes from Python (tests/unit/test_explorers.py).
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import host, { changed, fill, keyOf, lookUp, meshWith, tensorSvg } from "../../course_lib/widgets/static/mesh_layout_explorer.js";

const table = JSON.parse(readFileSync(process.env.EXPLORER_TABLE, "utf8"));
const names = table.meshes.map(({ name }) => name);
const mesh = (name) => names.indexOf(name);
const tensor = (name) => table.tensors.findIndex((each) => each.name === name);
const choice = { mesh: mesh("x 2 × y 4"), tensor: tensor("(8, 6)"), specs: ["x", "unsharded"], device: 7 };
const places = (svg, number) =>
  [...svg.matchAll(/<g class="part" data-block="(\d+)">\s*<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"\s+fill="(#\w+)"/g)]
    .map((found) => found.slice(1)).filter(([block]) => Number(block) === number)[0];

test("a legal choice leads to its cut and holders", () => {
  const { cut, blocks, copies } = lookUp(table, choice);
  assert.equal(cut.local_shape, "(4, 6)");
  assert.deepEqual(cut.index, ["[0:4, 0:6]", "[4:8, 0:6]"]);
  assert.deepEqual(blocks, [0, 0, 0, 0, 1, 1, 1, 1]);
  assert.equal(copies, 4);
});

test("an illegal choice leads to its reason alone", () => {
  assert.match(lookUp(table, { ...choice, specs: ["x", "x"] }).reason, /^The mesh dimension 'x' splits two axes\./);
  assert.match(lookUp(table, { ...choice, specs: ["x", "y"] }).reason, /^Axis 1 of length 6 does not split in 4 parts/);
});

test("the choice follows a change of mesh and tensor and stays in the table", () => {
  const smaller = changed(table, choice, { mesh: mesh("x 6") });
  assert.deepEqual([smaller.specs, smaller.device], [["x", "unsharded"], 5]);
  const without = changed(table, { ...choice, specs: ["y", "x"] }, { mesh: mesh("x 8") });
  assert.deepEqual(without.specs, ["unsharded", "x"]);
  assert.deepEqual(changed(table, choice, { tensor: tensor("(4, 6, 8)") }).specs, ["x", "unsharded", "unsharded"]);
  assert.deepEqual(changed(table, choice, { tensor: tensor("(24,)") }).specs, ["x"]);
  assert.deepEqual(choice.specs, ["x", "unsharded"], "the old choice is not touched");
});

test("from every choice every change is in the table", () => {
  for (let from = 0; from < table.meshes.length; from++)
    for (let into = 0; into < table.tensors.length; into++)
      for (const device of [0, 7]) {
        const next = changed(table, { ...choice, device }, { mesh: from, tensor: into });
        const found = lookUp(table, next);
        assert.ok(found.reason || found.blocks[next.device] !== undefined, keyOf(next));
      }
});

test("another number of devices keeps the number of dimensions", () => {
  assert.equal(names[meshWith(table, 6, mesh("x 8"))], "x 6");
  assert.equal(names[meshWith(table, 6, mesh("x 4 × y 2"))], "x 2 × y 3");
  assert.equal(names[meshWith(table, 8, mesh("x 3 × y 2 × z 1"))], "x 2 × y 2 × z 2");
});

test("the key is the one that Python gives to what it observed", () => {
  assert.equal(keyOf(choice), "1/2/x/unsharded");
});

test("texts are filled in", () => {
  assert.equal(fill("{b}, {a} and {b}", { a: 1, b: "two" }), "two, 1 and two");
});

test("blocks lie side by side where their indices say", () => {
  const { cut } = lookUp(table, { ...choice, specs: ["x", "unsharded"] });
  const svg = tensorSvg(table, [8, 6], cut.blocks, { side: 160 });
  assert.deepEqual(places(svg, 0), ["0", "0", "0", "120", "80", table.palette[0]]);
  assert.deepEqual(places(svg, 1), ["1", "0", "80", "120", "80", table.palette[1]]);
  assert.match(svg, />A<\/text>/);
});

test("shards of the first of three axes become planes next to each other", () => {
  const { cut } = lookUp(table, { ...choice, tensor: tensor("(4, 6, 8)"), specs: ["x", "unsharded", "unsharded"] });
  const svg = tensorSvg(table, [4, 6, 8], cut.blocks, { side: 160 });
  const [first, second] = [places(svg, 0), places(svg, 1)];
  assert.equal(first[2], second[2], "at the same height");
  assert.ok(Number(second[1]) > Number(first[1]) + Number(first[3]));
});

test("a small map colours one block and says nothing", () => {
  const { cut } = lookUp(table, choice);
  const svg = tensorSvg(table, [8, 6], cut.blocks, { side: 40, only: 1 });
  assert.equal(places(svg, 1)[5], table.palette[1]);
  assert.notEqual(places(svg, 0)[5], table.palette[0]);
  assert.match(svg, /aria-hidden="true"/);
  assert.doesNotMatch(svg, /<text/);
});

test("the notebook host is there, and nothing needed a page to load", () => {
  assert.equal(typeof host.render, "function");
});
