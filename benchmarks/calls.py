"""How many calls of the course's own functions a reader waits for: a click, and a card that is shown.

`python -m benchmarks.calls` counts each in a new process, prints the counts and the functions that are called
most, and fails where there are more than `LIMITS` allow. Counted is every call in `course_lib` and `lessons`,
also of comprehensions, which up to Python 3.11 are functions of their own.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from types import FrameType

import course_lib
from course_lib import syllabus

ROOT = Path(__file__).parents[1]
OURS = tuple(f"{ROOT / folder}/" for folder in ("course_lib", "lessons"))
LIMITS = {"click": 3_000, "card": 1_000}
MOST_SHOWN = 15


def calls_of(action: Callable[[], object]) -> Counter[str]:
    """Returns how often each function of ours is called while `action` runs."""
    counts: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _argument: object) -> None:
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


def main() -> int:
    """Prints the counts; returns 1 where one is above its limit, 0 otherwise."""
    too_many = []
    for name, measure in {"click": click, "card": card}.items():
        with ProcessPoolExecutor(1, get_context("spawn")) as new_process:
            counts = new_process.submit(measure).result()
        files = {function.partition(":")[0] for function in counts}
        where = f"{len(counts)} functions in {len(files)} files"
        print(f"{name}: {counts.total():,} calls (limit {LIMITS[name]:,}) of {where}, most of")
        for function, times in counts.most_common(MOST_SHOWN):
            print(f"{times:8,}  {function}")
        if counts.total() > LIMITS[name]:
            too_many.append(name)
    return bool(too_many)


if __name__ == "__main__":
    sys.exit(main())
