"""The folders of the lessons: what each asks in its source, and its own checks."""

from __future__ import annotations

import importlib
import re
from functools import cache
from pathlib import Path

from course_lib.exercises.asked import Asked, parsed

PACKAGE = "lessons"
_ID = re.compile(r"(\w\d)-([a-z0-9-]+)")
# A card in a percent script: `# %% predict-size [markdown]`, and the lines of its comment.
_CARD = re.compile(r"^# %% ((?:predict|check)-\S+) \[markdown\]\n((?:#.*\n?)*)", re.M)


def asked(part: str, question_id: object) -> Asked | None:
    """Returns what a lesson asks in the cell `predict-size` or `check-size`; None where there is none.

    Args:
        part: "predict" or "check".
        question_id: the lesson's number and the rest of the cell's name, such as "01-size".
    """
    known = _ID.fullmatch(question_id) if isinstance(question_id, str) else None
    return _cards(known[1]).get(f"{part}-{known[2]}") if known else None


def predictions(number: object) -> tuple[str, ...]:
    """Returns the ids of a lesson's predictions, in the order in which they are asked."""
    names = _cards(number) if isinstance(number, str) else {}
    return tuple(f"{number}-{name.removeprefix('predict-')}" for name in names if name.startswith("predict-"))


def import_checks(number: str) -> None:
    """Imports what checks a lesson's exercises, where it has such a module."""
    folder = _folder(number)
    if folder is not None and (folder / "checks.py").exists():
        importlib.import_module(f"{PACKAGE}.{folder.name}.checks")


@cache
def _cards(number: str) -> dict[str, Asked]:
    folder = _folder(number)
    text = "" if folder is None else (folder / "lesson.py").read_text("utf-8")
    return {name: parsed(re.sub(r"^# ?", "", body, flags=re.M)) for name, body in _CARD.findall(text)}


def _folder(number: str) -> Path | None:
    folders = importlib.import_module(PACKAGE).__path__
    found = (path for folder in folders for path in sorted(Path(folder).glob(f"lesson_{number}_*")))
    return next(found, None)
