"""`make results`: trains lesson 03 on the real IMDB reviews and writes the figures that the course quotes.

The reviews come from TensorFlow Datasets: from TFDS_DATA_DIR if they are prepared there, else downloaded.
"""

from __future__ import annotations

import platform
from pathlib import Path

import course_lib

course_lib.setup(devices=8)

from course_lib.data import imdb as data  # noqa: E402
from course_lib.data.text import Reviews  # noqa: E402
from course_lib.measured import results  # noqa: E402
from course_lib.models import sentiment as models  # noqa: E402
from course_lib.specs import plan  # noqa: E402
from course_lib.training import run as training  # noqa: E402
from course_lib.training.records import History  # noqa: E402

EPOCHS, SEEDS = 3, (0, 1, 2)  # a seed draws the initial values and the order of the reviews
FOLDER = Path(results.__file__).parent
SETTINGS = {  # initial values, rows of unit length
    "tutorial": ("normal", False),
    "he": ("he", False),
    "unit": ("normal", True),
    "ours": ("he", True),
}


def main() -> None:
    """Trains with each of the settings and writes course_lib/measured/03_imdb.json."""
    reviews = data.load_imdb("tfds")
    runs = {name: seeded_run(name, reviews) for name in SETTINGS}
    print("written:", results.save(results.Measured("03_imdb", circumstances(), runs), FOLDER).name)


def seeded_run(name: str, reviews: Reviews) -> results.SeededRun:
    """Returns what one of the settings gives from each of the seeds."""
    scheme, unit_length = SETTINGS[name]
    vectorized = data.tf_idf(reviews, unit_length=unit_length)
    histories = []
    for seed in SEEDS:
        model = models.MLP(models.initial_values(seed, scheme), plan.data_parallel(8))
        run = training.train(model, vectorized.train, vectorized.test, epochs=EPOCHS, seed=seed)
        histories.append(consume(run))
        accuracies = [f"{epoch.test_accuracy:.4f}" for epoch in histories[-1].epochs]
        print(f"{name:9} seed {seed}: test accuracies", *accuracies, flush=True)
    return results.SeededRun(histories[0], tuple(tuple(history.epochs) for history in histories))


def consume(run: training.TrainingRun) -> History:
    """Trains to the end and returns the records."""
    history = History()
    for record in run:
        history.add(record)
    return history


def circumstances() -> dict[str, str]:
    """Returns how the figures were obtained."""
    tf = course_lib.start_tensorflow()
    return {
        "command": "make results",
        "data": "imdb_reviews/plain_text 1.0.0, 25000 + 25000",
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
