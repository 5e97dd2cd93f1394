"""`make bench`: a step of the lessons' program beside other loops, in turns in one run; medians are told."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator

from course_lib import setup

setup(devices=8)

from benchmarks import tutorial_loop  # noqa: E402
from benchmarks.steps import MESHES, Steps, random_examples, seconds_a_step  # noqa: E402


def pairs() -> Iterator[tuple[str, float, float]]:
    """Yields what is compared, the seconds of the program's step, 32 in a call, and those of the other."""
    examples = random_examples()
    for scheme, dims in MESHES.items():
        steps = Steps(dims)
        loops = {
            "": steps.together(examples),
            "the tutorial's loop": quietly(tutorial_loop.training(scheme, examples)),
            "the program, one step a call": steps.one_by_one(examples),
        }
        medians = seconds_a_step(loops)
        course = medians.pop("")
        for name, seconds in medians.items():
            yield f"a step, {scheme} parallel / {name}", course, seconds


def quietly(train: Callable[[int], object]) -> Callable[[int], object]:
    """Returns a loop whose progress bar is not seen."""

    def trained(num_steps: int) -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            train(num_steps)

    return trained


if __name__ == "__main__":
    print(f"{'':64} {'course':>11} {'other':>11} {'other/course':>13}")
    for what, course, other in pairs():
        print(f"{what:64} {1000 * course:>8,.2f} ms {1000 * other:>8,.2f} ms {other / course:>13.3f}")
