"""`make results`: measures the figures that the lessons and the book quote, and keeps them with the library.

- 04_imdb: lesson 04's training on the real reviews, with several settings, each from several seeds;
- 04_stand_in: the same on the stand-in;
- 04_batch_sizes: the time of a training step on one device and on eight;
- 05_schemes_imdb: one device and the three schemes on the real reviews, from equal initial values, and
  continuing one checkpoint;
- 05_schemes_stand_in: the same on the stand-in;
- 05_step_parts: what a training step spends its time on;
- 06_export: a model trained on the real reviews beside its exports, asked in processes of their own;
- 07_mnist: lesson 7's training on all of MNIST, from several seeds;
- 07_mnist_5000: the same on its first 5,000 images, as the lesson has them;
- 07_stand_in: the same on as many of the drawn digits;
- 08_keras: what each Keras distributes, each case in a process of its own; for JAX after `make jax`;
- 09_strategies: which strategy works with which API, each case in processes of its own; needs
  `make estimator`;
- 10_fashion: lesson 10's training on all of Fashion-MNIST, ten epochs on two replicas, from several seeds,
  each restored without a strategy;
- 10_fashion_5000: the same on its first images, as the lesson has them: three epochs on four replicas;
- 10_stand_in: that on as many of the drawn garments.

`python -m benchmarks.results 04_stand_in` measures only that. Real data come from TensorFlow Datasets: from
TFDS_DATA_DIR if they are prepared there, else downloaded; where they cannot be had, what needs them is left
out.
"""

from __future__ import annotations

import argparse
import platform
from collections.abc import Callable
from functools import partial
from pathlib import Path

import course_lib

course_lib.setup(devices=8)

from benchmarks import digits, exports, garments, keras_table, parts, strategy_table  # noqa: E402
from benchmarks.schemes import from_a_checkpoint, from_equal_values  # noqa: E402
from course_lib.data import fashion, mnist, sources  # noqa: E402
from course_lib.data import imdb as data  # noqa: E402
from course_lib.data.text import Reviews  # noqa: E402
from course_lib.errors import CourseError  # noqa: E402
from course_lib.measured import (  # noqa: E402
    batch_sizes,
    export,
    keras_support,
    results,
    schemes,
    step_parts,
    strategy_support,
    support,
)
from course_lib.models import sentiment as models  # noqa: E402
from course_lib.specs import plan  # noqa: E402
from course_lib.training import run as training  # noqa: E402
from course_lib.training.records import History  # noqa: E402
from course_lib.training.step_times import step_times  # noqa: E402

EPOCHS, SEEDS = 3, (0, 1, 2)  # a seed draws the initial values and the order of the examples
TURNS = 7  # of each measurement of times, whose medians are written
FOLDER = Path(results.__file__).parent
SETS = {sources.REAL: "imdb_reviews/plain_text 1.0.0", sources.BUILT_IN: "built-in"}
DIGITS = {sources.REAL: "mnist 3.0.1", sources.BUILT_IN: "built-in"}
GARMENTS = {sources.REAL: "fashion_mnist 3.0.1", sources.BUILT_IN: "built-in"}
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
    return results.save(results.Measured(name, of_reviews(reviews) | details, runs), FOLDER)


def trained_digits(name: str, source: str, *counts: int) -> Path:
    """Trains on digits, so many to learn from and so many to measure on, and writes what came of it."""
    images = mnist.load(source, num_train=counts[0], num_test=counts[1])
    run = digits.seeded_run(images, EPOCHS, SEEDS)
    told = f"{DIGITS[source]}, {len(images.train)} + {len(images.test)}"
    details = digits.SETTINGS | {"seeds": ", ".join(map(str, SEEDS))}
    measured = results.Measured(name, circumstances(told) | details, {"adam": run})
    print(results.table(measured), flush=True)
    return results.save(measured, FOLDER)


def trained_garments(name: str, source: str, *counts: int, num_replicas: int, epochs: int) -> Path:
    """Trains on garments, so many to learn from and so many to measure on; after each seed it writes all."""
    images = fashion.load(source, num_train=counts[0], num_test=counts[1])
    told = f"{GARMENTS[source]}, {len(images.train)} + {len(images.test)}"
    keras = {"keras": course_lib.start_tensorflow().keras.__version__}
    details = circumstances(told) | keras | garments.settings(num_replicas)
    runs: list[results.SeededRun] = []
    for seed in SEEDS:
        runs.append(garments.seeded_run(images, num_replicas, epochs, seed))
        seeds = {"seeds": ", ".join(map(str, SEEDS[: len(runs)]))}
        measured = results.Measured(name, details | seeds, {"adam": results.together(runs)})
        path = results.save(measured, FOLDER)
    print(results.table(measured), results.restored_table(measured), sep="\n", flush=True)
    return path


def trained_schemes(of: str, source: str) -> Path:
    """Trains on one device and in each scheme, and writes what came of it."""
    reviews = data.load_imdb(source)
    vectorized = data.tf_idf(reviews)
    equal, continued = from_equal_values(vectorized), from_a_checkpoint(vectorized)
    for runs in (equal, continued):
        print(schemes.differences(runs), flush=True)
    measured = schemes.SchemesMeasured(of_reviews(reviews), equal, continued)
    return schemes.save(measured, of, FOLDER)


def step_times_of_all_sizes() -> Path:
    """Measures the time of a step with each batch size, and writes it."""
    times = [step_times(batch_size, TURNS) for batch_size in batch_sizes.BATCH_SIZES]
    return batch_sizes.save(times, batch_sizes.this_machine(), FOLDER)


def parts_of_a_step() -> Path:
    """Measures what a step spends its time on, in each scheme, and writes it."""
    return step_parts.save(parts.measure(TURNS), batch_sizes.this_machine(), FOLDER)


def exported_model() -> Path:
    """Trains on the real reviews, exports, and writes how the exports answer beside the trained model."""
    reviews = data.load_imdb(sources.REAL)
    measured = exports.measure(reviews, of_reviews(reviews) | {"plan": "spatial_parallel()"})
    print(export.table(measured), flush=True)
    return export.save(measured, FOLDER)


def what_each_keras_distributes() -> Path:
    """Runs every case of the table of Keras, and writes what became of it."""
    return support.save(keras_table.measure(), keras_support.NAME, FOLDER)


def which_strategy_works() -> Path:
    """Runs every case of the table of strategies, and writes what became of it."""
    return support.save(strategy_table.measure(), strategy_support.NAME, FOLDER)


def seeded_run(setting: str, reviews: Reviews) -> results.SeededRun:
    """Returns what one of the settings gives from each of the seeds."""
    scheme, unit_length = SETTINGS[setting]
    vectorized = data.tf_idf(reviews, unit_length=unit_length)
    histories = []
    for seed in SEEDS:
        model = models.MLP(models.initial_values(seed, scheme), plan.data_parallel(8))
        run = training.train(model, vectorized.train, vectorized.test, epochs=EPOCHS, seed=seed)
        histories.append(History.of(run))
        accuracies = [f"{epoch.test_accuracy:.4f}" for epoch in histories[-1].epochs]
        print(f"{setting:9} seed {seed}: test accuracies", *accuracies, flush=True)
    return results.SeededRun(histories[0], tuple(tuple(history.epochs) for history in histories))


def of_reviews(reviews: Reviews) -> dict[str, str]:
    """Returns how the figures of trainings on reviews were obtained."""
    told = f"{SETS[reviews.source]}, {len(reviews.train)} + {len(reviews.test)}"
    return circumstances(told) | {"batch_size": "64", "learning_rate": "0.01"}


def circumstances(data: str) -> dict[str, str]:
    """Returns with what the figures of trainings were obtained."""
    tf = course_lib.start_tensorflow()
    return {
        "command": "make results",
        "data": data,
        "tensorflow": tf.__version__,
        "python": platform.python_version(),
        "devices": "8",
    }


MEASUREMENTS: dict[str, Callable[[], Path]] = {
    "04_imdb": partial(trainings, "04_imdb", sources.REAL),
    "04_stand_in": partial(trainings, "04_stand_in", sources.BUILT_IN),
    batch_sizes.NAME: step_times_of_all_sizes,
    schemes.name_of(schemes.IMDB): partial(trained_schemes, schemes.IMDB, sources.REAL),
    schemes.name_of(schemes.STAND_IN): partial(trained_schemes, schemes.STAND_IN, sources.BUILT_IN),
    step_parts.NAME: parts_of_a_step,
    export.NAME: exported_model,
    "07_mnist": partial(trained_digits, "07_mnist", sources.REAL, 60_000, 10_000),
    "07_mnist_5000": partial(trained_digits, "07_mnist_5000", sources.REAL, 5_000, 5_000),
    "07_stand_in": partial(trained_digits, "07_stand_in", sources.BUILT_IN, 5_000, 5_000),
    keras_support.NAME: what_each_keras_distributes,
    strategy_support.NAME: which_strategy_works,
    "10_fashion": partial(
        trained_garments, "10_fashion", sources.REAL, 60_000, 10_000, num_replicas=2, epochs=10
    ),
    "10_fashion_5000": partial(
        trained_garments, "10_fashion_5000", sources.REAL, 5_000, 1_000, num_replicas=4, epochs=3
    ),
    "10_stand_in": partial(
        trained_garments, "10_stand_in", sources.BUILT_IN, 5_000, 1_000, num_replicas=4, epochs=3
    ),
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
