"""The table of operations, for the template of its page: a row for each operation on each kind of tensor."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from course_lib.specs.verdict import REFUSED, VERDICTS, WRONG
from tools.operations import cases

SPLIT, NOT_SPLIT = "■", "□"

Table = dict[str, Any]
Where = tuple[str, str]  # the way to call it, and the sizes of the mesh


def operation_values() -> dict[str, Any]:
    """Returns the rows of the newest table, what the page's script needs, and the counts of every table."""
    files = sorted(Path(cases.__file__).parent.glob("[0-9]*.json"), reverse=True)
    tables = [json.loads(path.read_text(encoding="utf-8")) for path in files]
    newest = tables[0]
    rows = [row for row in map(partial(_row, newest), cases.operations()) if row["verdicts"]]
    return {
        "rows": rows,
        "counts": [{"tensorflow": table["tensorflow"], **_counts(table)} for table in tables],
        "num_operations": len({row["run"] for row in rows}),
        "wrong": {row["run"]: row["wrong_on"] for row in rows if row["wrong_on"]},
        "cures": {cure["of"]: cure["take"] for cure in cases.DATA["cure"]},
        "data": json.dumps(_for_script(newest, rows), ensure_ascii=False).replace("<", "\\u003c"),
    }


def _row(table: Table, operation: cases.Operation) -> dict[str, Any]:
    verdicts = _verdicts(table, operation)
    refused = [(mode, each) for _layout, (mode, _sizes), each in verdicts if each["verdict"] == REFUSED]
    messages = Counter(each["message"] for mode, each in refused if mode != cases.EAGER_GRADIENT)
    found = {answer["verdict"] for *_where, answer in verdicts}
    return {
        **operation._asdict(),
        "verdicts": [verdict for verdict in VERDICTS if verdict in found],
        "wrong_on": sorted({sizes for _layout, (_mode, sizes), each in verdicts if each["verdict"] == WRONG}),
        "cells": {verdict: _squares(verdicts, verdict) for verdict in VERDICTS},
        "message": messages.most_common(1)[0][0] if messages else "",
    }


def _verdicts(table: Table, operation: cases.Operation) -> list[tuple[cases.Layout, Where, dict[str, Any]]]:
    """Returns each layout of an operation, where it was tried, and its answer."""
    found = []
    for key, places in table["table"][operation.of][operation.run].items():
        mode, _space, sizes = key.rpartition(" ")
        layouts = cases.layouts(sizes, len(cases.SHAPES[operation.of]))
        for layout, place in zip(layouts, places, strict=True):
            if place >= 0:
                found.append((layout, (mode, sizes), table["answers"][place]))
    return found


def _squares(verdicts: Iterable[tuple[cases.Layout, Where, dict[str, Any]]], wanted: str) -> str:
    """Returns the patterns of split axes that have a verdict in a case that is no eager gradient."""
    found = {
        marks(layout): None
        for layout, (mode, _sizes), answer in verdicts
        if answer["verdict"] == wanted and mode != cases.EAGER_GRADIENT
    }
    return " ".join(found)


def marks(layout: cases.Layout) -> str:
    """Returns which axes are split.

    >>> marks(("unsharded", "p"))
    '□■'
    """
    return "".join(NOT_SPLIT if name == cases.UNSPLIT else SPLIT for name in layout)


def _counts(table: Table) -> dict[str, Any]:
    found = Counter(answer["verdict"] for answer in cases.unpacked(table).values())
    counts = {verdict: found[verdict] for verdict in VERDICTS}
    return {"cases": sum(counts.values()), **counts}


def _for_script(table: Table, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns the answers, and what programs are made of."""
    meshes = dict.fromkeys(sizes for operation in cases.operations() for sizes in operation.meshes)
    return {
        "answers": table["answers"],
        "rows": [
            {
                **{name: row[name] for name in ("of", "run", "right")},
                "answers": table["table"][row["of"]][row["run"]],
                **cases.parts_of(row["run"], row["right"]),
            }
            for row in rows
        ],
        "program": cases.PROGRAM,
        "bodies": cases.BODIES,
        "shapes": cases.SHAPES,
        "meshes": {sizes: cases.mesh_of(sizes) for sizes in meshes},
        "layouts": {
            f"{sizes} {num_axes}": cases.layouts(sizes, num_axes)
            for sizes in meshes
            for num_axes in range(1, 5)
        },
    }
