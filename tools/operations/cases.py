"""The cases of the table: each operation under each layout on each mesh, and the ways to call it."""

from __future__ import annotations

import ast
import itertools
import json
import math
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
DATA = tomllib.loads((HERE / "cases.toml").read_text(encoding="utf-8"))
PROGRAM = (HERE / "program.txt").read_text(encoding="utf-8")
SHAPES: dict[str, list[int]] = DATA["shapes"]
WHOLE = ("w", "k", "at")  # what every device has all of
FLOATS = ("x", "y", "v", "w", "k")  # what there are gradients of
EAGER, IN_FUNCTION, GRADIENT, EAGER_GRADIENT = MODES = ("eager", "function", "gradient", "eager gradient")
IN_EAGER, GRADIENTS = (EAGER, EAGER_GRADIENT), (GRADIENT, EAGER_GRADIENT)
# The lines of a function: the expression, or the gradients of a sum in which the place of a number counts.
BODIES = (
    "    return {expression}",
    """    with tf.GradientTape() as tape:
        tape.watch([{floats}])
        results = [each for each in tf.nest.flatten({expression}) if each.dtype.is_floating]
        loss = tf.add_n([tf.reduce_sum(each * each * unlike(each)) for each in results])
    found = tape.gradient(loss, [{floats}])
    return [tf.convert_to_tensor(each) for each in found if each is not None]""",
)
UNSPLIT = "unsharded"
NO_CASE = "none"  # TensorFlow without DTensor refuses it too, or there is no gradient

Mesh = tuple[tuple[str, int], ...]
Layout = tuple[str, ...]


class Operation(NamedTuple):
    """An expression, tried on tensors of one kind."""

    group: str  # what operations of its kind do, such as "Products"
    of: str  # the kind of its tensors, a key of `SHAPES`
    run: str
    right: str  # the expression that gives the same without DTensor
    meshes: tuple[str, ...]  # their sizes, such as "4x2"
    has_gradient: bool


@dataclass(frozen=True)
class Case:
    """An operation, called in one way on tensors of one layout.

    Attributes:
        of: the kind of its tensors, a key of `SHAPES`.
        run: the expression.
        right: the expression that gives the same without DTensor.
        sizes: the sizes of the mesh, such as "4x2".
        layout: an entry for each axis of `x`.
        mode: one of `MODES`.
    """

    of: str
    run: str
    right: str
    sizes: str
    layout: Layout
    mode: str

    @property
    def key(self) -> str:
        """What names the case in the file of answers."""
        return " | ".join([self.of, self.run, self.sizes, ",".join(self.layout), self.mode])

    def program(self) -> str:
        """Returns a program that shows what becomes of the case, to copy: it needs nothing of the course."""
        mesh, body = mesh_of(self.sizes), BODIES[self.mode in GRADIENTS]
        return filled(
            PROGRAM,
            num_devices=str(math.prod(size for _name, size in mesh)),
            mesh=json.dumps(mesh),
            layout=json.dumps(self.layout),
            shape=json.dumps(SHAPES[self.of]),
            called="function" if self.mode in IN_EAGER else "tf.function(function)",
            called_without="without" if self.mode in IN_EAGER else "tf.function(without)",
            without=body.replace("{expression}", self.right),
            function=body.replace("{expression}", self.run),
            **parts_of(self.run, self.right),
        )


def operations() -> Iterator[Operation]:
    """Yields each expression with each kind of tensors that it is tried on."""
    for group in DATA["group"]:
        meshes = (*DATA["meshes"], *group.get("meshes", ()))
        for given, of in itertools.product(group["expressions"], group["of"]):
            run, right = (given["run"], given["right"]) if isinstance(given, dict) else (given, given)
            yield Operation(group["name"], of, run, right, meshes, group.get("gradient", True))


def every_case() -> Iterator[Case]:
    """Yields each case, those of one operation one after the other."""
    for operation in operations():
        for mode, sizes in itertools.product(MODES, operation.meshes):
            if _is_tried(operation, mode, sizes):
                for layout in layouts(sizes, len(SHAPES[operation.of])):
                    yield Case(operation.of, operation.run, operation.right, sizes, layout, mode)


def _is_tried(operation: Operation, mode: str, sizes: str) -> bool:
    if mode == EAGER_GRADIENT and (operation.of != "matrix" or sizes != "4x2"):
        return False  # most are refused, whatever the operation
    return operation.has_gradient or mode not in GRADIENTS


def mesh_of(sizes: str) -> Mesh:
    """Returns the mesh of these sizes.

    >>> mesh_of("4x2")
    (('p', 4), ('q', 2))
    """
    return tuple(zip("pq", map(int, sizes.split("x")), strict=False))


def layouts(sizes: str, num_axes: int) -> list[Layout]:
    """Returns every layout of a tensor on a mesh, but for those on 3x2 that 4x2 has too: split by `q` alone.

    >>> layouts("4x2", 1), layouts("3x2", 1)
    ([('unsharded',), ('p',), ('q',)], [('unsharded',), ('p',)])
    """
    names = [name for name, _size in mesh_of(sizes)]
    every = itertools.product([UNSPLIT, *names], repeat=num_axes)
    legal = [each for each in every if all(each.count(name) < 2 for name in names)]
    return [each for each in legal if sizes != "3x2" or "q" not in each or "p" in each]


def parts_of(run: str, right: str) -> dict[str, str]:
    """Returns the parts of a program that follow from its expressions: its tensors, and how they are made."""
    tree = ast.walk(ast.parse(f"({run}, {right})"))
    used = {each.id for each in tree if isinstance(each, ast.Name)} | {"x"}  # x has the layout that is tried
    names = [name for name in DATA["values"] if name in used]
    return {
        "values": "\n".join(f"{name} = {DATA['values'][name]}" for name in names),
        "names": ", ".join(names),
        "floats": ", ".join(name for name in names if name in FLOATS),
        "plain": ", ".join(
            f"{name}=tf.{'Variable' if name == 'v' else 'constant'}({name})" for name in names
        ),
        "tolerance": "0.05" if "float16" in run else "1e-4",
        "placed": ", ".join(f"{name}=dtensor.{_placed(name)}" for name in names),
    }


def filled(template: str, **parts: str) -> str:
    """Returns a text with each `{name}` replaced. The page's script does the same."""
    for name, part in parts.items():
        template = template.replace(f"{{{name}}}", part)
    return template


def _placed(name: str) -> str:
    if name == "v":
        return f"DVariable(dtensor.copy_to_mesh({name}, layout))"
    return f"copy_to_mesh({name}, {f'whole({name})' if name in WHOLE else 'layout'})"


def packed(found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Returns the answers as the table stores them: each once, and for each operation their places.

    `table[of][run]["mode sizes"]` has a number for each of `layouts`, in their order: the place of its answer
    in `answers`, or -1 where there is no case.
    """
    places: dict[str, int] = {}
    table: dict[str, Any] = {}
    for case in every_case():
        place, record = -1, found[case.key]
        if record["verdict"] != NO_CASE:
            place = places.setdefault(json.dumps(record, ensure_ascii=False, sort_keys=True), len(places))
        row = table.setdefault(case.of, {}).setdefault(case.run, {})
        row.setdefault(f"{case.mode} {case.sizes}", []).append(place)
    return {"answers": [json.loads(each) for each in places], "table": table}


def unpacked(table: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Returns the answers of a table by the keys of their cases; `NO_CASE` is that of what was none."""
    answers = [*table["answers"], {"verdict": NO_CASE}]  # its place is -1
    left = {
        (of, run, way): iter(places)
        for of, runs in table["table"].items()
        for run, row in runs.items()
        for way, places in row.items()
    }
    return {
        case.key: answers[next(left[case.of, case.run, f"{case.mode} {case.sizes}"])] for case in every_case()
    }
