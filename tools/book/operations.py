"""The table of operations, for the template of its page: a row for each operation on each kind of tensor."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from course_lib.specs.verdict import REFUSED, VERDICTS, WRONG
from tools.cases.operations import table
from tools.cases.operations.table import EAGER_GRADIENT, NO_CASE, Answer, Answers, Case, Operation

SPLIT, NOT_SPLIT = "■", "□"
# Where in the program its case begins, and where what is the same for every case.
_IMPORTS, _CASE, _REST = "import inspect", "shape, mesh_dims", "# The same for every case."


def operation_values() -> dict[str, Any]:
    """Returns the rows of the newest table, what the page's script needs, and the counts of every table."""
    tables = table.load()
    newest = next(iter(tables.values()))
    rows = [row for each in table.operations() if (row := _row(each, _tried(each, newest)))["is_tried"]]
    return {
        "rows": rows,
        "counts": [{"tensorflow": version, **_counts(answers)} for version, answers in tables.items()],
        "num_operations": len({row["run"] for row in rows}),
        "wrong": {row["run"]: row["wrong_on"] for row in rows if row["wrong_on"]},
        "cures": {cure["of"]: cure["take"] for cure in table.DATA["cure"]},
        "data": json.dumps(_for_script(newest), ensure_ascii=False).replace("<", "\\u003c"),
    }


def _tried(operation: Operation, answers: Answers) -> list[tuple[Case, Answer]]:
    found = ((case, answers[case.name]) for case in operation.cases())
    return [(case, answer) for case, answer in found if answer["verdict"] != NO_CASE]


def _row(operation: Operation, tried: list[tuple[Case, Answer]]) -> dict[str, Any]:
    listed = {
        verdict: [
            (case, answer)
            for case, answer in tried
            if answer["verdict"] == verdict and case.way != EAGER_GRADIENT
        ]
        for verdict in VERDICTS
    }
    messages = Counter(answer["message"] for _case, answer in listed[REFUSED])
    return {
        **operation._asdict(),
        "is_tried": bool(tried),
        "wrong_on": sorted({case.sizes for case, answer in tried if answer["verdict"] == WRONG}),
        "cells": {
            verdict: " ".join(dict.fromkeys(marks(case.layout) for case, _answer in cases))
            for verdict, cases in listed.items()
        },
        "message": max(messages, key=messages.__getitem__, default=""),
    }


def marks(layout: table.Layout) -> str:
    """Returns which axes are split.

    >>> marks(("unsharded", "p"))
    '□■'
    """
    return "".join(NOT_SPLIT if name == table.UNSPLIT else SPLIT for name in layout)


def _counts(answers: Answers) -> dict[str, int]:
    found = Counter(answer["verdict"] for answer in answers.values())
    counts = {verdict: found[verdict] for verdict in VERDICTS}
    return {"cases": sum(counts.values()), **counts}


def _for_script(answers: Answers) -> dict[str, Any]:
    """Returns every answer once, the places of those of each row, and what its programs are made of."""
    places: dict[str, int] = {}
    rows = []
    for operation in table.operations():
        if not _tried(operation, answers):
            continue
        found: dict[str, list[int]] = {}
        for case in operation.cases():
            place = places.setdefault(json.dumps(answers[case.name]), len(places))
            found.setdefault(f"{case.way} {case.sizes}", []).append(place)
        rows.append({"of": operation.of, "answers": found, "functions": functions_of(operation)})
    meshes = dict.fromkeys(sizes for operation in table.operations() for sizes in operation.meshes)
    program = (table.HERE / "program.py").read_text(encoding="utf-8")
    begin, end, rest = map(program.index, (_IMPORTS, _CASE, _REST))
    return {
        "answers": [json.loads(each) for each in places],
        "rows": rows,
        "program": [program[begin:end], program[rest:]],
        "shapes": table.SHAPES,
        "meshes": {each: table.mesh_of(each) for each in meshes},
        "layouts": {f"{each} {axes}": table.layouts(each, axes) for each in meshes for axes in range(1, 5)},
    }


def functions_of(operation: Operation) -> str:
    """Returns the lines of a program that are of its operation."""
    names = ", ".join(operation.values)
    return (
        f"tolerance = {0.05 if operation.is_coarse else 1e-4}\n\n\n"
        f"def function({names}):\n    return {operation.run}\n\n\n"
        f"def without_dtensor({names}):\n    return {operation.right}\n\n\n"
    )
