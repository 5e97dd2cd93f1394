"""The cases of the table of operations, and what became of them on each version of TensorFlow."""

from __future__ import annotations

import ast
import itertools
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
STORED = HERE / "table.json"
DATA = tomllib.loads((HERE / "expressions.toml").read_text(encoding="utf-8"))
SHAPES: dict[str, list[int]] = DATA["shapes"]
VALUES = ("x", "y", "i", "m", "v", "w", "k", "at")  # what an expression may name
EAGER, IN_FUNCTION, GRADIENT, EAGER_GRADIENT = WAYS = ("eager", "function", "gradient", "eager gradient")
UNSPLIT = "unsharded"
_INNER_BREAK = re.compile(r"\n(?: {3,}|  (?=[\]}]))")  # of a JSON text, below the entries of its parts
NO_CASE = "none"  # TensorFlow without DTensor refuses it too, or there is no gradient

Mesh = list[tuple[str, int]]
Layout = tuple[str, ...]
Answer = dict[str, Any]
Answers = dict[str, Answer]  # by the names of cases


class Operation(NamedTuple):
    """An expression, tried on tensors of one kind."""

    group: str  # what operations of its kind do, such as "Products"
    of: str  # the kind of its tensors, a key of `SHAPES`
    run: str
    right: str  # the expression that gives the same without DTensor
    meshes: tuple[str, ...]  # their sizes, such as "4x2"
    has_gradient: bool

    @property
    def name(self) -> str:
        """What it is called in the file of answers."""
        return f"{self.of} | {self.run}"

    @property
    def values(self) -> list[str]:
        """What it takes: x, whose layout is tried, and whatever else its expressions name."""
        tree = ast.walk(ast.parse(f"({self.run}, {self.right})"))
        used = {each.id for each in tree if isinstance(each, ast.Name)} | {"x"}
        return [name for name in VALUES if name in used]

    @property
    def is_coarse(self) -> bool:
        """Whether numbers of two bytes are on the way."""
        return "float16" in self.run

    def cases(self) -> Iterator[Case]:
        """Yields its cases, in the order in which the table has their answers."""
        for way, sizes in itertools.product(WAYS, self.meshes):
            if self._is_tried(way, sizes):
                for layout in layouts(sizes, len(SHAPES[self.of])):
                    yield Case(self, way, sizes, layout)

    def _is_tried(self, way: str, sizes: str) -> bool:
        if way == EAGER_GRADIENT and (self.of != "matrix" or sizes != "4x2"):
            return False  # most are refused, whatever the operation
        return self.has_gradient or "gradient" not in way


class Case(NamedTuple):
    """An operation, called in one way on tensors of one layout."""

    operation: Operation
    way: str  # one of `WAYS`
    sizes: str  # of the mesh, such as "4x2"
    layout: Layout  # an entry for each axis of x

    @property
    def name(self) -> str:
        """What no other case is called."""
        return " | ".join([self.operation.name, self.sizes, ",".join(self.layout), self.way])


def operations() -> Iterator[Operation]:
    """Yields each expression with each kind of tensors that it is tried on."""
    for group in DATA["group"]:
        meshes = (*DATA["meshes"], *group.get("meshes", ()))
        for given, of in itertools.product(group["expressions"], group["of"]):
            run, right = (given["run"], given["right"]) if isinstance(given, dict) else (given, given)
            yield Operation(group["name"], of, run, right, meshes, group.get("gradient", True))


def every_case() -> list[Case]:
    """Returns each case, those of one operation one after the other."""
    return [case for operation in operations() for case in operation.cases()]


def mesh_of(sizes: str) -> Mesh:
    """Returns the mesh of these sizes.

    >>> mesh_of("4x2")
    [('p', 4), ('q', 2)]
    """
    return list(zip("pq", map(int, sizes.split("x")), strict=False))


def layouts(sizes: str, num_axes: int) -> list[Layout]:
    """Returns every layout of a tensor on a mesh, but for those on 3x2 that 4x2 has too: split by `q` alone.

    >>> layouts("4x2", 1), layouts("3x2", 1)
    ([('unsharded',), ('p',), ('q',)], [('unsharded',), ('p',)])
    """
    names = [name for name, _size in mesh_of(sizes)]
    every = itertools.product([UNSPLIT, *names], repeat=num_axes)
    legal = [each for each in every if all(each.count(name) < 2 for name in names)]
    return [each for each in legal if sizes != "3x2" or "q" not in each or "p" in each]


def load() -> dict[str, Answers]:
    """Returns the answers to all cases by version, the newest first; that of what was no case is `NO_CASE`.

    The file has each answer once, and for each operation the places of its cases' answers; of an older
    version it has the cases whose answer is another.
    """
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    version, answers, places = (stored.pop(key) for key in ("tensorflow", "answers", "operations"))
    newest = {
        case.name: answers[place]
        for operation in operations()
        if operation.name in places  # else it was not measured yet
        for case, place in zip(operation.cases(), places[operation.name], strict=True)
    }
    others = {
        other: newest | {name: answers[place] for name, place in differences.items()}
        for other, differences in stored.items()
    }
    return {version: newest, **others}


def save(tables: Mapping[str, Answers]) -> None:
    """Writes the answers to all cases by version, so that `load` returns them: a line for each operation."""
    (version, newest), *others = sorted(tables.items(), reverse=True)
    places: dict[str, int] = {}

    def place(answer: Answer) -> int:
        return places.setdefault(json.dumps(answer, ensure_ascii=False, sort_keys=True), len(places))

    rows = {each.name: [place(newest[case.name]) for case in each.cases()] for each in operations()}
    differences = {
        other: {name: place(answer) for name, answer in answers.items() if answer != newest[name]}
        for other, answers in others
    }
    content = {"tensorflow": version, "answers": list(map(json.loads, places)), "operations": rows}
    text = json.dumps(content | differences, ensure_ascii=False, indent=1)
    STORED.write_text(_INNER_BREAK.sub("", text) + "\n", encoding="utf-8")
