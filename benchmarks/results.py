"""`make results`: measures the figures that the lessons and the book quote, and keeps them with the library.

- 04_imdb: lesson 04's training on the real reviews, with several settings, each from several seeds;
- 04_stand_in: the same on the stand-in;
- 04_batch_sizes: the time of a training step on one device and on eight;
- 05_schemes_imdb: one device and the three schemes on the real reviews, from equal initial values, and
  continuing one checkpoint;
- 05_schemes_stand_in: the same on the stand-in;
- 05_step_parts: what a training step spends its time on;
- 08_keras: what each Keras distributes, each case in a process of its own; for JAX after `make jax`.

`python -m benchmarks.results 04_stand_in` measures only that. The real reviews come from TensorFlow Datasets:
from TFDS_DATA_DIR if they are prepared there, else downloaded; where they cannot be had, what needs them is
left out.
"""

from __future__ import annotations

import argparse
import platform
from collections.abc import Callable
from functools import partial
from pathlib import Path

import course_lib

course_lib.setup(devices=8)

from benchmarks import keras_table, parts  # noqa: E402
from benchmarks.schemes import from_a_checkpoint, from_equal_values  # noqa: E402
from course_lib.data import imdb as data  # noqa: E402
from course_lib.data.text import Reviews  # noqa: E402
from course_lib.errors import CourseError  # noqa: E402
from course_lib.measured import (  # noqa: E402
    batch_sizes,
    keras_support,
    results,
    schemes,
    step_parts,
    support,
)
from course_lib.models import sentiment as models  # noqa: E402
from course_lib.specs import plan  # noqa: E402
from course_lib.training import run as training  # noqa: E402
from course_lib.training.records import History  # noqa: E402
from course_lib.training.step_times import step_times  # noqa: E402

EPOCHS, SEEDS = 3, (0, 1, 2)  # a seed draws the initial values and the order of the reviews
TURNS = 7  # of each measurement of times, whose medians are written
FOLDER = Path(results.__file__).parent
SETS = {data.REAL: "imdb_reviews/plain_text 1.0.0", data.BUILT_IN: "built-in"}
SETTINGS = {  # initial values, rows of unit length
    "tutorial": ("normal", False),
    "he": ("he", False),
    "unit": ("normal", True),
    "ours": ("he", True),
}


def trainings(name: str, source: str) -> Path:
    """Trains with each of the settings, and writes what came of it."""
    reviews = data.load_imdb(source)
    runs = {setting: seeded_run(setting, reviews) for setting in SETTINGS}
    details = {"plan": "data_parallel(8)", "seeds": ", ".join(map(str, SEEDS))}
    return results.save(results.Measured(name, circumstances(reviews) | details, runs), FOLDER)


def trained_schemes(of: str, source: str) -> Path:
    """Trains on one device and in each scheme, and writes what came of it."""
    reviews = data.load_imdb(source)
    vectorized = data.tf_idf(reviews)
    equal, continued = from_equal_values(vectorized), from_a_checkpoint(vectorized)
    for runs in (equal, continued):
        print(schemes.differences(runs), flush=True)
    measured = schemes.SchemesMeasured(circumstances(reviews), equal, continued)
    return schemes.save(measured, of, FOLDER)


def step_times_of_all_sizes() -> Path:
    """Measures the time of a step with each batch size, and writes it."""
    times = [step_times(batch_size, TURNS) for batch_size in batch_sizes.BATCH_SIZES]
    return batch_sizes.save(times, batch_sizes.this_machine(), FOLDER)


def parts_of_a_step() -> Path:
    """Measures what a step spends its time on, in each scheme, and writes it."""
    return step_parts.save(parts.measure(TURNS), batch_sizes.this_machine(), FOLDER)


def what_each_keras_distributes() -> Path:
    """Runs every case of the table of Keras, and writes what became of it."""
    return support.save(keras_table.measure(), keras_support.NAME, FOLDER)


def seeded_run(setting: str, reviews: Reviews) -> results.SeededRun:
    """Returns what one of the settings gives from each of the seeds."""
    scheme, unit_length = SETTINGS[setting]
    vectorized = data.tf_idf(reviews, unit_length=unit_length)
    histories = []
    for seed in SEEDS:
        model = models.MLP(models.initial_values(seed, scheme), plan.data_parallel(8))
        run = training.train(model, vectorized.train, vectorized.test, epochs=EPOCHS, seed=seed)
        histories.append(consume(run))
        accuracies = [f"{epoch.test_accuracy:.4f}" for epoch in histories[-1].epochs]
        print(f"{setting:9} seed {seed}: test accuracies", *accuracies, flush=True)
    return results.SeededRun(histories[0], tuple(tuple(history.epochs) for history in histories))


def consume(run: training.TrainingRun) -> History:
    """Trains to the end and returns the records."""
    history = History()
    for record in run:
        history.add(record)
    return history


def circumstances(reviews: Reviews) -> dict[str, str]:
    """Returns how the figures of trainings were obtained."""
    tf = course_lib.start_tensorflow()
    return {
        "command": "make results",
        "data": f"{SETS[reviews.source]}, {len(reviews.train)} + {len(reviews.test)}",
        "tensorflow": tf.__version__,
        "python": platform.python_version(),
        "devices": "8",
        "batch_size": "64",
        "learning_rate": "0.01",
    }


MEASUREMENTS: dict[str, Callable[[], Path]] = {
    "04_imdb": partial(trainings, "04_imdb", data.REAL),
    "04_stand_in": partial(trainings, "04_stand_in", data.BUILT_IN),
    batch_sizes.NAME: step_times_of_all_sizes,
    schemes.name_of(schemes.IMDB): partial(trained_schemes, schemes.IMDB, data.REAL),
    schemes.name_of(schemes.STAND_IN): partial(trained_schemes, schemes.STAND_IN, data.BUILT_IN),
    step_parts.NAME: parts_of_a_step,
    keras_support.NAME: what_each_keras_distributes,
}


def main() -> None:
    """Measures what is named on the command line, or everything, and writes it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(MEASUREMENTS))
    named = parser.parse_args().names
    for name in named or MEASUREMENTS:
        try:
            print("written:", MEASUREMENTS[name]().name, flush=True)
        except CourseError as error:
            if named:
                raise
            print(f"left out: {name}. {error}", flush=True)


if __name__ == "__main__":
    main()
