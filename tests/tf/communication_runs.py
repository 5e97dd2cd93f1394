"""Every relayout and product of matrices on a mesh: what is predicted beside what TensorFlow really runs.

Usage: communication_runs.py MESH [READERS], with a mesh such as 3x3, in a process with as many devices as it
needs. Without READERS all relayouts and products; else so many products with a reader, or all of them. Prints
the number of cases and those in which the two differ.
"""

from __future__ import annotations

import itertools
import json
import random
import sys

import numpy as np

import course_lib
from course_lib import CourseError, MeshSpec
from course_lib.specs import communication
from course_lib.specs.communication import Communication
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED

ALL = 10_000
SHAPES = ((720, 360), (360, 1440))  # all lengths differ, and every mesh here divides them


def mesh_of(sizes: str) -> MeshSpec:
    return MeshSpec(zip("xyz", map(int, sizes.split("x")), strict=False))


def layouts(mesh: MeshSpec) -> list[LayoutSpec]:
    pairs = itertools.product([UNSHARDED, *mesh.names], repeat=2)
    return [LayoutSpec(pair, mesh) for pair in pairs if pair[0] != pair[1] or pair[0] == UNSHARDED]


def report(mesh: MeshSpec, count: int = ALL, *, readers: bool = False) -> dict:
    """Returns how many relayouts and products, or products with a reader, were tried, and which differ."""
    cases = [(product_differs, triple) for triple in itertools.product(layouts(mesh), repeat=3)]
    if not readers:
        pairs = list(itertools.product(layouts(mesh), repeat=2))
        cases = [(differs, pair) for differs in (relayout_differs, product_differs) for pair in pairs]
    found = [differs(*each) for differs, each in random.Random(0).sample(cases, min(count, len(cases)))]
    return {"cases": len(found), "disagreements": [each for each in found if each]}


def relayout_differs(source: LayoutSpec, target: LayoutSpec) -> str:
    """Returns how a relayout differs from its prediction; "" where it does not."""
    from course_lib.devices import dtensor

    matrix = np.ones(SHAPES[0], "float32")
    predicted = communication.relayout(source.of(matrix.shape), target)
    return difference(
        f"{source} to {target}",
        predicted,
        lambda value: dtensor.dtensor.relayout(value, dtensor.to_layout(target)),
        dtensor.pack(matrix, source),
        is_laid_out=True,
    )


def product_differs(left: LayoutSpec, right: LayoutSpec, wanted: LayoutSpec | None = None) -> str:
    """Returns how a product differs from its prediction; "" where it does not."""
    from course_lib.devices import dtensor

    tf = course_lib.start_tensorflow()
    factors = [
        dtensor.pack(np.ones(shape, "float32"), each)
        for shape, each in zip(SHAPES, (left, right), strict=True)
    ]
    case = f"{left} @ {right}" + (f" as {wanted}" if wanted else "")

    def multiplied(*factors):
        product = tf.matmul(*factors)
        return dtensor.dtensor.relayout(product, dtensor.to_layout(wanted)) if wanted else product

    try:
        predicted = communication.product(left.of(SHAPES[0]), right.of(SHAPES[1]), wanted)
    except CourseError:
        try:
            tf.function(multiplied)(*factors)
        except Exception:
            return ""
        return f"{case}: refused, and TensorFlow runs it"
    return difference(case, predicted, multiplied, *factors, is_laid_out=wanted is not None)


def difference(case: str, predicted: Communication, function, *arguments, is_laid_out: bool) -> str:
    """Returns how a function differs from its prediction; a layout that it gives is not checked."""
    from course_lib.devices import dtensor, graphs

    told, told_layout = [str(each.as_run()) for each in predicted.collectives], predicted.result.layout
    try:
        seen = list(map(str, graphs.collectives(function, *arguments, mesh=predicted.result.mesh)))
        run = course_lib.start_tensorflow().function(function)
        layout = told_layout if is_laid_out else dtensor.fetch_layout(run(*arguments))
    except Exception as error:
        return f"{case}: {type(error).__name__}: {str(error)[:200]}"
    if told != seen or layout != told_layout:
        return f"{case}: predicted {told} {told_layout}, observed {seen} {layout}"
    return ""


if __name__ == "__main__":
    wanted = mesh_of(sys.argv[1])
    course_lib.setup(devices=wanted.size)
    readers = list(map(int, sys.argv[2:]))
    print(json.dumps(report(wanted, *readers, readers=bool(readers))))
