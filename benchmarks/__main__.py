"""`make bench`: a step of `faster`'s program beside the tutorial's, in turns, by medians of one run."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator

from course_lib import setup

setup(devices=8)

from benchmarks import tutorial_loop  # noqa: E402
from benchmarks.steps import LESSON, NUM_EXAMPLES, SCHEMES, Steps, seconds_a_step, stacks_on_disk  # noqa: E402
from course_lib.data.examples import Examples  # noqa: E402

COLUMNS = ("course", "one a call", "with means", "tutorial", "with its norm")


def loops() -> Iterator[tuple[str, list[float]]]:
    """Yields each scheme, and the seconds of a step: see `COLUMNS`.

    They are the program's, 32 in a call; one in a call; the same with loss and accuracy reduced as
    means; and the tutorial's, of the same model without batch normalisation, and as it is.
    """
    stacks, examples = stacks_on_disk(), Examples(*LESSON.made_up_reviews(NUM_EXAMPLES))
    for scheme, of_mesh in SCHEMES.items():
        trains = {
            "course": Steps(*of_mesh).together(stacks),
            "one a call": Steps(*of_mesh).one_by_one(stacks),
            "with means": Steps(*of_mesh).one_by_one(stacks, means=True),
            "tutorial": tutorial_loop.training(scheme, examples, normalised=False),
            "with its norm": tutorial_loop.training(scheme, examples),
        }
        with contextlib.redirect_stdout(io.StringIO()):  # the tutorial's progress bar
            seconds = seconds_a_step(trains)
        yield scheme, [seconds[name] for name in COLUMNS]


if __name__ == "__main__":
    print(f"{'ms a step':18}" + "".join(f"{name:>15}" for name in COLUMNS))
    for scheme, seconds in loops():
        course = seconds[0]
        print(f"{scheme + ' parallel':18}" + "".join(f"{1e3 * each:>15.2f}" for each in seconds))
        print(f"{'  times as long':18}" + "".join(f"{each / course:>15.2f}" for each in seconds))
