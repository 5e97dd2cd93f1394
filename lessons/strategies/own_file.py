"""The code of a reader's answer, for the programs of a lesson that go on with it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from course_lib import check

_IMPORTS = """import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor
"""

_MARKS = re.compile(r" *# solution (?:begin|end)\n")


def cell(topic: str, name: str) -> str:
    """Returns a cell of a lesson, as its source has it: an exercise with our solution."""
    source = (Path(__file__).parent / topic / "lesson.py").read_text("utf-8")
    _before, _name, rest = source.partition(f"# %% {name}\n")
    return _MARKS.sub("", rest.partition("\n# %%")[0])


def source_of(exercise_id: str, answer: Callable[..., Any]) -> str:
    """Returns the cell of a reader's function, or our function where the reader's is not right yet."""
    if not check(exercise_id, answer).passed:
        topic, name = exercise_id.split("-")
        return cell(topic, f"exercise-{name}")
    lines, _start = inspect.findsource(answer)
    return "".join(lines)


def write_own(file: Path, exercise_id: str, answer: Callable[..., Any]) -> None:
    """Writes what `source_of` returns into a file, after the imports that it needs."""
    file.write_text(f"{_IMPORTS}\n\n{source_of(exercise_id, answer).strip()}\n")
