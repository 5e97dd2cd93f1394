"""A lesson with three predictions, which the course does not have: its topic is `predictions`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import lessons
from course_lib.exercises import choices, questions
from tests.course import have_lessons

ORDER = """
first_number = 98
[parts.odd]
title = "Odd"
lessons = {predictions = "Predictions."}
"""
SOURCE = """
# %% predict-rows [markdown]
# The rows of a matrix of 6 by 4 are split over `x`, a mesh dimension of size 3;
# the columns are not split. How many rows and columns does one device hold?
#
# - [x] `(2, 4)`
#   6 rows over 3 devices are 2 each; the columns stay whole.
# - [ ] `(2, 2)`
#   That would split the columns over `y` too.
# - [ ] `(3, 4)`
#   3 is the number of devices along `x`, not of rows.

# %% reveal-rows
reveal("predictions-rows", (2, 4))

# %% predict-mean [markdown]
# What is the mean of the losses?
#
# - [x] `0.428` ± 0.01
#   The padding weighs nothing.
# - [ ] `0.148`
#   That divides by the padded rows too.
# - otherwise
#   Add them up.

# %% predict-sums [markdown]
# Eight devices add up the same gradients, each in an order of its own. How do the sums compare?
#
# - [x] `last` equal but for the last bits of some
#   Floats are rounded after each addition.
# - [ ] `equal` equal to the last bit
#   So it would be with exact numbers.
# - [ ] `far` different, not < `1e-3`
#   The order changes how sums are rounded, and nothing else.
"""


def write_lesson(folder: Path) -> None:
    """Writes the lesson below a folder, which then belongs to the path of the package `lessons`."""
    lesson = folder / "odd" / "predictions"
    lesson.mkdir(parents=True)
    (lesson / "lesson.py").write_text(SOURCE, "utf-8")
    (folder / "order.toml").write_text(ORDER, "utf-8")


@contextlib.contextmanager
def lesson_in(folder: Path) -> Iterator[None]:
    """Has the lesson among those of the course, with no prediction made before or afterwards."""
    write_lesson(folder)
    with pytest.MonkeyPatch.context() as patch:
        have_lessons(patch, *map(Path, lessons.__path__), folder)
        choices.forget()
        questions._cards.cache_clear()
        yield
    choices.forget()
    questions._cards.cache_clear()
