"""`make results`: measures the figures that the lessons and the book quote, and keeps them with the library.

`MEASUREMENTS` lists them, by the lesson that shows them: trainings on the real data and on the stand-in,
times and exports. `tools/cases` makes the tables of what works.

`python -m benchmarks.results coupled_rows-stand_in` measures only that. Real data come from TensorFlow
Datasets: from TFDS_DATA_DIR if they are prepared there, else downloaded; where they cannot be had, what needs
them is left out.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from course_lib import setup

setup(devices=8)

from benchmarks import (  # noqa: E402
    batch_sizes,
    block_steps,
    digits,
    exports,
    garments,
    parts,
    reviews,
    runs,
    schemes,
    whole_game,
)
from course_lib.data.sources import BUILT_IN, REAL  # noqa: E402
from course_lib.errors import CourseError  # noqa: E402
from course_lib.measured.files import save  # noqa: E402
from course_lib.measured.machine import this_machine  # noqa: E402

Content = Mapping[str, Any]


def times(name: str, measure: Callable[[], object]) -> Content:
    """Returns times of steps under a name, and on what they were measured."""
    return {"how": {"command": "make results"}, "machine": this_machine(), name: measure()}


MEASUREMENTS: dict[str, Callable[[], Content]] = {
    # The runs that the whole game shows.
    "whole_game-runs": partial(whole_game.measure, BUILT_IN),
    # Several settings, each from several seeds.
    "coupled_rows-imdb": partial(reviews.measure, REAL),
    "coupled_rows-stand_in": partial(reviews.measure, BUILT_IN),
    # A constant learning rate and one that falls, each from several seeds.
    "a_run-imdb": partial(runs.measure, REAL),
    "faster-batch_sizes": partial(times, "step_times", batch_sizes.measure),
    # One device and the three schemes, from equal initial values and from one checkpoint.
    "any_mesh-schemes_imdb": partial(schemes.measure, REAL),
    "any_mesh-schemes_stand_in": partial(schemes.measure, BUILT_IN),
    "faster-step_parts": partial(times, "step_parts", parts.measure),
    "save_and_serve-export": partial(exports.measure, REAL),
    # All digits; as many as the lesson has; as many of the drawn ones.
    "from_scratch-mnist": partial(digits.measure, REAL, 60_000, 10_000),
    "from_scratch-mnist_5000": partial(digits.measure, REAL, 5_000, 5_000),
    "from_scratch-stand_in": partial(digits.measure, BUILT_IN, 5_000, 5_000),
    # The same of garments; restored without a strategy.
    "custom_training-fashion": partial(garments.measure, REAL, 60_000, 10_000, num_replicas=2, epochs=10),
    "custom_training-fashion_5000": partial(garments.measure, REAL, 5_000, 1_000, num_replicas=4, epochs=3),
    "custom_training-stand_in": partial(garments.measure, BUILT_IN, 5_000, 1_000, num_replicas=4, epochs=3),
    "how_long-steps": partial(times, "steps", block_steps.measure),
}


def main() -> None:
    """Measures what is named on the command line, or everything, and writes it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(MEASUREMENTS))
    named = parser.parse_args().names
    for name in named or MEASUREMENTS:
        try:
            print("written:", save(name, MEASUREMENTS[name]()).name, flush=True)
        except CourseError as error:
            if named:
                raise
            print(f"left out: {name}. {error}", flush=True)


if __name__ == "__main__":
    main()
