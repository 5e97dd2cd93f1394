"""How many calls of the course's own functions a reader waits for: a click, and a card that is shown.

Counted is every call in `course_lib` and `lessons`, in a new process, also of comprehensions, which up to
Python 3.11 are functions of their own.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

import course_lib
from course_lib import syllabus

ROOT = Path(__file__).parents[2]
OURS = tuple(f"{ROOT / folder}/" for folder in ("course_lib", "lessons"))


def calls_of(action: Callable[[], object]) -> Counter[str]:
    """Returns how often each function of ours is called while `action` runs."""
    counts: Counter[str] = Counter()

    def count(frame, event, _argument):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(OURS) and code.co_name != "<module>":
            counts[f"{Path(code.co_filename).relative_to(ROOT)}:{code.co_qualname}"] += 1

    sys.setprofile(count)
    try:
        action()
    finally:
        sys.setprofile(None)
    return counts


def click() -> Counter[str]:
    """Returns the calls of the first click on a mesh in the explorer of `mesh_and_layout`."""
    explorer = syllabus.module("mesh_and_layout.explorer").MeshLayoutExplorer(observe=list)
    explorer._repr_mimebundle_()  # it is shown, as a reader who clicks has it
    message = {"kind": "change", "path": ["mesh", 0, 1], "value": 4}
    return calls_of(lambda: explorer._handle_custom_msg(message, []))


def card() -> Counter[str]:
    """Returns the calls of a cell that shows the first card of `mesh_and_layout`."""
    return calls_of(lambda: course_lib.predict("mesh_and_layout-hybrid")._repr_mimebundle_())


@pytest.mark.parametrize(("measure", "limit"), [(click, 3_000), (card, 1_000)])
def test_a_click_and_a_card_take_no_more_calls_than_their_limits(measure, limit):
    with ProcessPoolExecutor(1, get_context("spawn")) as new_process:
        counts = new_process.submit(measure).result()
    assert 0 < counts.total() <= limit, counts.most_common(15)
