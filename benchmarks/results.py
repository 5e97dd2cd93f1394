"""`make results`: measures the figures that lesson 04 and the book quote, and keeps them with the library.

- 04_imdb: lesson 04's training on the real reviews, with several settings, each from several seeds;
- 04_stand_in: the same on the stand-in;
- 04_batch_sizes: the time of a training step on one device and on eight.

`python -m benchmarks.results 04_stand_in` measures only that. The real reviews come from TensorFlow Datasets:
from TFDS_DATA_DIR if they are prepared there, else downloaded.
"""

from __future__ import annotations

import argparse
import platform
from pathlib import Path

import course_lib

course_lib.setup(devices=8)

from course_lib.data import imdb as data  # noqa: E402
from course_lib.data.text import Reviews  # noqa: E402
from course_lib.measured import batch_sizes, results  # noqa: E402
from course_lib.models import sentiment as models  # noqa: E402
from course_lib.specs import plan  # noqa: E402
from course_lib.training import run as training  # noqa: E402
from course_lib.training.records import History  # noqa: E402
from course_lib.training.step_times import step_times  # noqa: E402

EPOCHS, SEEDS = 3, (0, 1, 2)  # a seed draws the initial values and the order of the reviews
TURNS = 7  # of each measurement of times, whose medians are written
FOLDER = Path(results.__file__).parent
SOURCES = {"04_imdb": data.REAL, "04_stand_in": data.BUILT_IN}
SETS = {data.REAL: "imdb_reviews/plain_text 1.0.0", data.BUILT_IN: "built-in"}
SETTINGS = {  # initial values, rows of unit length
    "tutorial": ("normal", False),
    "he": ("he", False),
    "unit": ("normal", True),
    "ours": ("he", True),
}


def main() -> None:
    """Measures what is named on the command line, or everything, and writes it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    everything = [*SOURCES, batch_sizes.NAME]
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(everything))
    for name in parser.parse_args().names or everything:
        written = step_times_of_all_sizes() if name == batch_sizes.NAME else trainings(name)
        print("written:", written.name, flush=True)


def trainings(name: str) -> Path:
    """Trains with each of the settings, and writes what came of it."""
    reviews = data.load_imdb(SOURCES[name])
    runs = {setting: seeded_run(setting, reviews) for setting in SETTINGS}
    return results.save(results.Measured(name, circumstances(reviews), runs), FOLDER)


def step_times_of_all_sizes() -> Path:
    """Measures the time of a step with each batch size, and writes it."""
    times = [step_times(batch_size, TURNS) for batch_size in batch_sizes.BATCH_SIZES]
    return batch_sizes.save(times, batch_sizes.this_machine(), FOLDER)


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
        "plan": "data_parallel(8)",
        "batch_size": "64",
        "learning_rate": "0.01",
        "seeds": ", ".join(map(str, SEEDS)),
    }


if __name__ == "__main__":
    main()
