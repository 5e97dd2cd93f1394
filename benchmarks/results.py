"""`make results`: trains lesson 03 on the real IMDB reviews and writes the figures that the course quotes.

The reviews come from TensorFlow Datasets: from TFDS_DATA_DIR if they are prepared there, else downloaded.
"""

from __future__ import annotations

import platform
from pathlib import Path

import course_lib

course_lib.setup(devices=8)

from course_lib.data import imdb as data  # noqa: E402
from course_lib.measured import results  # noqa: E402
from course_lib.models import sentiment as models  # noqa: E402
from course_lib.specs import plan  # noqa: E402
from course_lib.training import run as training  # noqa: E402
from course_lib.training.records import EpochRecord, History, StepRecord  # noqa: E402

EPOCHS = 3
FOLDER = Path(results.__file__).parent / "measured"
SETTINGS = {  # initial values, rows of unit length
    "tutorial": ("normal", False),
    "he": ("he", False),
    "unit": ("normal", True),
    "ours": ("he", True),
}


def main() -> None:
    """Trains with each of the settings and writes course_lib/measured/03_imdb.json."""
    reviews = data.load_imdb("tfds")
    histories = {}
    for name, (scheme, unit_length) in SETTINGS.items():
        vectorized = data.tf_idf(reviews, unit_length=unit_length)
        model = models.MLP(models.initial_values(scheme=scheme), plan.data_parallel(8))
        histories[name] = consume(training.train(model, vectorized.train, vectorized.test, epochs=EPOCHS))
        for epoch in histories[name].epochs:
            print(
                f"{name:9} epoch {epoch.epoch}: train loss {epoch.train_loss:.4f}, "
                f"test loss {epoch.test_loss:.4f}, test accuracy {epoch.test_accuracy:.4f}"
            )
    FOLDER.mkdir(exist_ok=True)
    print("written:", results.save(results.Measured("03_imdb", circumstances(), histories), FOLDER).name)


def consume(run: training.TrainingRun) -> History:
    """Trains to the end and returns the records."""
    history = History()
    for record in run:
        if isinstance(record, StepRecord):
            history.steps.append(record)
        elif isinstance(record, EpochRecord):
            history.epochs.append(record)
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
    }


if __name__ == "__main__":
    main()
