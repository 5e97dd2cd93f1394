"""`make bench`: a step of the lessons' program beside the tutorial's, in turns, by medians of one run."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator

from course_lib import setup

setup(devices=8)

from benchmarks import tutorial_loop  # noqa: E402
from benchmarks.steps import MESHES, Steps, random_examples, seconds_a_step  # noqa: E402


def pairs() -> Iterator[tuple[str, float, float]]:
    """Yields each scheme, the seconds of the program's step, 32 in a call, and those of the tutorial's."""
    examples = random_examples()
    for scheme, dims in MESHES.items():
        loops = {
            "course": Steps(dims).together(examples),
            "tutorial": tutorial_loop.training(scheme, examples),
        }
        with contextlib.redirect_stdout(io.StringIO()):  # the tutorial's progress bar
            seconds = seconds_a_step(loops)
        yield scheme, *seconds.values()


if __name__ == "__main__":
    print(f"{'a step':24} {'course':>11} {'tutorial':>11} {'tutorial/course':>16}")
    for scheme, course, tutorial in pairs():
        print(
            f"{scheme + ' parallel':24} {1e3 * course:>8,.2f} ms {1e3 * tutorial:>8,.2f} ms"
            f" {tutorial / course:>16.3f}"
        )
