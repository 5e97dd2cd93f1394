"""The table of strategies, for the template of its page: a row for each feature."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from tools.cases.strategies import table
from tools.cases.strategies.table import (
    DIFFERENT,
    DOCUMENTED,
    EQUAL,
    NO_CASE,
    UNEQUAL,
    Answer,
    Answers,
    Case,
    Feature,
)
from tools.lesson.markdown_blocks import html_of

# The columns of the page, and which verdicts stand in each.
COLUMNS = {
    "right": (EQUAL, DOCUMENTED, table.ASYNCHRONOUS),
    "parts": (UNEQUAL,),
    "wrong": (DIFFERENT,),
    "refused": (table.REFUSED,),
    "dead": ("timeout", "crash"),
}
CENTRAL = "central_2"  # `fit` tells a wrong loss there whatever the feature
Texts = Callable[[str], str]  # an English text in the reader's language


def column_of(answer: Answer) -> str:
    """Returns under which column of the page an answer stands."""
    return next(name for name, verdicts in COLUMNS.items() if answer["verdict"] in verdicts)


def tried(feature: Feature, answers: Answers) -> list[Case]:
    """Returns the cases of a feature that are cases."""
    return [case for case in feature.cases() if answers[case.name]["verdict"] != NO_CASE]


def feature_values(texts: Texts) -> dict[str, Any]:
    """Returns the rows of the newest table, what the page's script needs, and the counts of every table."""
    tables = table.load()
    newest = next(iter(tables.values()))
    shown = {feature.name: html_of(texts(feature.label)) for feature in table.features()}
    rows = [_row(feature, newest, shown, texts) for feature in table.features()]
    return {
        "rows": rows,
        "counts": [{"tensorflow": version, **_counts(answers)} for version, answers in tables.items()],
        "columns": [name for name in COLUMNS if any(row["cells"][name] for row in rows)],
        "num_everywhere": sum(bool(feature.where) for feature in table.features()),
        "wrong": [row for row in rows if row["is_wrong"]],
        "data": json.dumps(_for_script(newest, shown, texts), ensure_ascii=False).replace("<", "\\u003c"),
    }


def anchor_of(feature: Feature) -> str:
    """Returns the name of a row for links."""
    return re.sub(r"[^a-z0-9]+", "-", feature.name.lower().replace("keras.layers.", "")).strip("-")


def _row(feature: Feature, answers: Answers, shown: dict[str, str], texts: Texts) -> dict[str, Any]:
    cases = tried(feature, answers)
    under = {name: [case for case in cases if column_of(answers[case.name]) == name] for name in COLUMNS}
    by_itself = [case for case in under["wrong"] if case.strategy != CENTRAL]
    wrong = [answers[case.name]["difference"] for case in by_itself or under["wrong"]]
    messages = Counter(answers[case.name]["message"] for case in under["refused"])
    return {
        "id": anchor_of(feature),
        "group": feature.group,
        "label": shown[feature.name],
        "cells": {name: places(found, cases) for name, found in under.items()},
        "is_wrong": bool(by_itself),
        "differs": differs(wrong[0]) if wrong else "",
        "message": max(messages, key=messages.__getitem__, default=""),
        "documented": texts(feature.documented) if feature.documented else "",
        "cure": shown.get(feature.cure, ""),
        "cured": next((name for name in ("wrong", "refused", "dead", "parts") if under[name]), ""),
    }


def places(found: Sequence[Case], all_of_it: Sequence[Case]) -> list[dict[str, Any]]:
    """Returns in which cases of a feature a verdict was found: for each strategy the ways, and the parts.

    Ways and parts are left out where they are all that were tried; under two replicas ways always stand.
    """
    listed: list[dict[str, Any]] = []
    for under in dict.fromkeys((case.strategy, case.keras) for case in found):
        tried = [case for case in all_of_it if (case.strategy, case.keras) == under]
        ways, parts = ({case.way for case in tried}, {case.part for case in tried})
        groups: dict[tuple[str, ...], list[str]] = {}
        for way in dict.fromkeys(case.way for case in tried):
            of_way = [case.part for case in found if (case.strategy, case.keras, case.way) == (*under, way)]
            if of_way:
                groups.setdefault(tuple(of_way), []).append(way)
        for of_group, of_ways in groups.items():
            is_all = len(of_ways) == len(ways) and under != (table.MIRRORED, "keras")
            is_whole = len(of_group) == len(parts)
            place = {"ways": [] if is_all else of_ways, "parts": [] if is_whole else of_group}
            same = [
                each for each in listed if each["keras"] == under[1] == "tf_keras" and each | place == each
            ]
            if same:
                same[0]["strategies"].append(under[0])
            else:
                listed.append({"strategies": [under[0]], "keras": under[1], **place})
    return listed


def differs(difference: dict[str, float]) -> str:
    """Returns what differs by how much, largest first.

    >>> differs({"loss": 0.19, "weights": float("nan")})
    'weights nan, loss 0.19'
    """
    largest = sorted(
        difference, key=lambda name: (math.isnan(difference[name]), difference[name]), reverse=True
    )
    return ", ".join(f"{name} {difference[name]:g}" for name in largest)


def _counts(answers: Answers) -> dict[str, int]:
    found = Counter(column_of(each) for each in answers.values() if each["verdict"] != NO_CASE)
    return {"cases": sum(found.values())} | {name: found[name] for name in COLUMNS}


def _for_script(answers: Answers, shown: dict[str, str], texts: Texts) -> dict[str, Any]:
    """Returns every answer once, the places of those of each row, and what its programs are made of."""
    numbers: dict[str, int] = {}
    rows = []
    for feature in table.features():
        found = {
            f"{case.strategy} {case.keras} {case.way} {case.part}": numbers.setdefault(
                json.dumps(told(answers[case.name]), ensure_ascii=False), len(numbers)
            )
            for case in tried(feature, answers)
        }
        rows.append(
            {
                "answers": found,
                "code": feature.code,
                "own": sorted(table.own_functions(feature)),
                "late": table.is_late(feature),
                "cure": shown.get(feature.cure, ""),
                "documented": texts(feature.documented) if feature.documented else "",
            }
        )
    return {
        "answers": [json.loads(each) for each in numbers],
        "rows": rows,
        "head": table.pieces(table.HEAD),
        "common": table.COMMON,
        "runs": table.RUNS,
        "rest": table.pieces(table.REST),
        "first": table.FIRST,
        "parts": table.PARTS,
    }


def told(answer: Answer) -> dict[str, Any]:
    """Returns an answer as the page's script shows it."""
    text = answer.get("message") or (differs(answer["difference"]) if answer.get("difference") else "")
    closely = f"{answer['closely']:g}" if "closely" in answer else ""
    return {"column": column_of(answer), "text": text, "closely": closely}
