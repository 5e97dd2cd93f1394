"""`make results`: measures the figures that the lessons and the book quote, and keeps them with the library.

`MEASUREMENTS` lists them, by the lesson that shows them: trainings on the real data and on the stand-in,
times and exports. `tools/cases` makes the tables of what works.

`python -m benchmarks.results a_run-stand_in` measures only that. Real data come from TensorFlow Datasets:
from TFDS_DATA_DIR if they are prepared there, else downloaded; where they cannot be had, what needs them is
left out.
"""

from __future__ import annotations

import argparse
import platform
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

import course_lib

course_lib.setup(devices=8)

from benchmarks import block_steps, digits, exports, garments, parts  # noqa: E402
from benchmarks.histories import run_of  # noqa: E402
from benchmarks.schemes import from_a_checkpoint, from_equal_values  # noqa: E402
from course_lib import data, syllabus  # noqa: E402
from course_lib.data.imdb import Reviews  # noqa: E402
from course_lib.data.sources import BUILT_IN, REAL  # noqa: E402
from course_lib.errors import CourseError  # noqa: E402
from course_lib.measured.files import Record, save  # noqa: E402
from course_lib.measured.machine import this_machine  # noqa: E402
from course_lib.models import sentiment as models  # noqa: E402
from course_lib.specs import plan  # noqa: E402
from course_lib.training import run as training  # noqa: E402
from course_lib.training.records import History  # noqa: E402
from course_lib.training.step_times import step_times  # noqa: E402

BATCH_SIZES = syllabus.module("a_run.explorer").BATCH_SIZES

EPOCHS, SEEDS = 3, (0, 1, 2)  # a seed draws the initial values and the order of the examples
TURNS, DIGITS = 7, 7  # of each measurement of times, whose medians are written; of seconds
NAMES = {
    "reviews": "imdb_reviews/plain_text 1.0.0",
    "digits": "mnist 3.0.1",
    "garments": "fashion_mnist 3.0.1",
}
SETTINGS = {  # initial values, rows of unit length
    "tutorial": ("normal", False),
    "he": ("he", False),
    "unit": ("normal", True),
    "ours": ("he", True),
}

Content = Mapping[str, Any]


def trained_on_reviews(source: str) -> Content:
    """Returns what came of training with each of the settings."""
    reviews = data.load_imdb(source)
    runs = {setting: seeded_run(setting, reviews) for setting in SETTINGS}
    return {"how": of_reviews(reviews, plan="data_parallel(8)", seeds=_listed(SEEDS)), "runs": runs}


def seeded_run(setting: str, reviews: Reviews) -> Record:
    """Returns what one of the settings gives from each of the seeds."""
    scheme, unit_length = SETTINGS[setting]
    vectorized, histories = data.tf_idf(reviews, unit_length=unit_length), []
    for seed in SEEDS:
        model = models.MLP(models.initial_values(seed, scheme), plan.data_parallel(8))
        run = training.train(model, vectorized.train, vectorized.test, epochs=EPOCHS, seed=seed)
        histories.append(History.of(run))
    return run_of(histories)


def trained_on_digits(source: str, num_train: int, num_test: int) -> Content:
    """Returns what came of training on digits, so many to learn from and so many to measure on."""
    images = data.load_mnist(source, num_train=num_train, num_test=num_test)
    how = circumstances("digits", source, images, **digits.SETTINGS, seeds=_listed(SEEDS))
    return {"how": how, "runs": {"adam": digits.seeded_run(images, EPOCHS, SEEDS)}}


def trained_on_garments(
    source: str, num_train: int, num_test: int, num_replicas: int, epochs: int
) -> Content:
    """Returns what came of training on garments, and of the checkpoints, restored without a strategy."""
    images = data.load_fashion(source, num_train=num_train, num_test=num_test)
    details = {
        "keras": course_lib.start_tensorflow().keras.__version__,
        "strategy": f"MirroredStrategy, {num_replicas} replicas",
        "batch_size": f"{garments.PER_REPLICA} × {num_replicas}",
        **garments.SETTINGS,
        "seeds": _listed(SEEDS),
    }
    how = circumstances("garments", source, images, **details)
    return {"how": how, "runs": {"adam": garments.seeded_run(images, num_replicas, epochs, SEEDS)}}


def trained_schemes(source: str) -> Content:
    """Returns what came of training on one device and in each scheme."""
    reviews = data.load_imdb(source)
    vectorized = data.tf_idf(reviews)
    return {
        "how": of_reviews(reviews),
        "equal": from_equal_values(vectorized),
        "continued": from_a_checkpoint(vectorized),
    }


def step_times_of_all_sizes() -> Content:
    """Returns the time of a step with each batch size."""
    times = [_rounded(asdict(step_times(batch_size, TURNS))) for batch_size in BATCH_SIZES]
    return {"how": {"command": "make results"}, "machine": this_machine(), "step_times": times}


def parts_of_a_step() -> Content:
    """Returns what a step spends its time on, in each scheme."""
    schemes = {scheme: _rounded(found) for scheme, found in parts.measure().items()}
    return {"how": {"command": "make results"}, "machine": this_machine(), "step_parts": schemes}


def steps_of_the_block() -> Content:
    """Returns the time of a step of a transformer block on each mesh with each batch size."""
    return {"how": {"command": "make results"}, "machine": this_machine(), "steps": block_steps.measure()}


def exported_model() -> Content:
    """Returns how exports of a model that was trained on the real reviews answer, beside that model."""
    reviews = data.load_imdb(REAL)
    return {"how": of_reviews(reviews, plan="spatial_parallel()"), **exports.measure(reviews)}


def of_reviews(reviews: Reviews, **details: str) -> dict[str, str]:
    """Returns how the figures of trainings on reviews were obtained."""
    settings = {"batch_size": "64", "learning_rate": "0.01"}
    return circumstances("reviews", reviews.source, reviews, **settings, **details)


def circumstances(kind: str, source: str, examples: Any, **details: str) -> dict[str, str]:
    """Returns with what the figures of trainings were obtained.

    Args:
        kind: of the data, one of `NAMES`.
        source: where they come from.
        examples: the set itself, with `train` and `test`.
        details: what else there is to say.
    """
    name = source if source == BUILT_IN else NAMES[kind]
    return {
        "command": "make results",
        "data": f"{name}, {len(examples.train)} + {len(examples.test)}",
        "tensorflow": course_lib.start_tensorflow().__version__,
        "python": platform.python_version(),
        "devices": "8",
        **details,
    }


def _listed(seeds: tuple[int, ...]) -> str:
    return ", ".join(map(str, seeds))


def _rounded(seconds: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, DIGITS) for name, value in seconds.items()}


MEASUREMENTS: dict[str, Callable[[], Content]] = {
    # Several settings, each from several seeds.
    "a_run-imdb": partial(trained_on_reviews, REAL),
    "a_run-stand_in": partial(trained_on_reviews, BUILT_IN),
    "a_run-batch_sizes": step_times_of_all_sizes,
    # One device and the three schemes, from equal initial values and from one checkpoint.
    "splitting_the_model-schemes_imdb": partial(trained_schemes, REAL),
    "splitting_the_model-schemes_stand_in": partial(trained_schemes, BUILT_IN),
    "splitting_the_model-step_parts": parts_of_a_step,
    "save_and_serve-export": exported_model,
    # All digits; as many as the lesson has; as many of the drawn ones.
    "from_scratch-mnist": partial(trained_on_digits, REAL, 60_000, 10_000),
    "from_scratch-mnist_5000": partial(trained_on_digits, REAL, 5_000, 5_000),
    "from_scratch-stand_in": partial(trained_on_digits, BUILT_IN, 5_000, 5_000),
    # The same of garments; restored without a strategy.
    "custom_training-fashion": partial(trained_on_garments, REAL, 60_000, 10_000, num_replicas=2, epochs=10),
    "custom_training-fashion_5000": partial(
        trained_on_garments, REAL, 5_000, 1_000, num_replicas=4, epochs=3
    ),
    "custom_training-stand_in": partial(
        trained_on_garments, BUILT_IN, 5_000, 1_000, num_replicas=4, epochs=3
    ),
    "how_long-steps": steps_of_the_block,
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
