"""The real IMDB reviews through tensorflow_datasets: prepared once, downloaded only when they are missing."""

from __future__ import annotations

import importlib
import logging
import os
import threading
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np

from course_lib.data.text import TextExamples
from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow

tf = start_tensorflow()

NAME = "imdb_reviews/plain_text"
# Where tensorflow_datasets gets the reviews from. Asked first: without a network it would try for minutes.
_HOME_ADDRESS = "http://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz"
_ANSWER_SECONDS = 3.0
_RECORDS_PER_BATCH = 5_000


def load_real_reviews() -> tuple[TextExamples, TextExamples]:
    """Returns the 25,000 training reviews and the 25,000 test reviews, in their stored order.

    The prepared set in TFDS_DATA_DIR, or else in the folder of tensorflow_datasets, is used as it is. Only if
    there is none, it is downloaded (80 MB) with a progress bar.

    Raises:
        CourseError: the set is missing and cannot be downloaded, or what is there is damaged or not complete.

    Source: https://www.tensorflow.org/datasets/catalog/imdb_reviews.
    """
    folder = _data_folder()
    importlib.import_module("tensorflow_datasets")  # an installation fault is no damage to the data
    try:
        builder = _builder(folder)
        if not builder.is_prepared() and not Path(builder.data_dir).exists():
            _download(builder)
            builder = _builder(folder)
        return _read(builder, "train"), _read(builder, "test")
    except CourseError:
        raise
    except Exception as error:  # whatever the formats inside raise on damage: there are many
        raise _damaged(folder, error) from error


def _data_folder() -> Path:
    """Returns the folder of prepared sets; read here, because tensorflow_datasets reads it only on import."""
    chosen = os.environ.get("TFDS_DATA_DIR")
    return Path(chosen).expanduser() if chosen else Path.home() / "tensorflow_datasets"


def _builder(folder: Path) -> Any:
    import tensorflow_datasets as tfds

    logger = logging.getLogger("absl")  # it would warn of a missing set, which is nothing to worry about here
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        return tfds.builder(NAME, data_dir=str(folder))
    finally:
        logger.setLevel(level)


def _read(builder: Any, split: str) -> TextExamples:
    texts: list[str] = []
    labels: list[int] = []
    for batch in _batches(builder, split):
        texts += [text.decode("utf-8") for text in batch["text"].numpy().tolist()]
        labels += batch["label"].numpy().tolist()
    expected = builder.info.splits[split].num_examples
    if len(texts) != expected:
        raise ValueError(f"{split}: {len(texts)} of {expected}")
    return TextExamples(tuple(texts), np.array(labels, np.int64))


def _batches(builder: Any, split: str) -> Any:
    """Returns a data set of batches, parsed whole: seven times as fast as a record at a time."""
    if builder.info.file_format.value != "tfrecord":
        return builder.as_dataset(split=split, batch_size=_RECORDS_PER_BATCH)
    records = tf.data.TFRecordDataset([str(file) for file in builder.info.splits[split].filepaths])
    spec = {"text": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}
    return records.batch(_RECORDS_PER_BATCH).map(lambda batch: tf.io.parse_example(batch, spec))


def _download(builder: Any) -> None:
    """Downloads and prepares the set.

    Raises:
        CourseError: its home does not answer within seconds, or the download fails.
    """
    _require_home()
    try:
        builder.download_and_prepare(file_format="tfrecord")
    except Exception as error:
        raise _unreachable(error) from error


def _require_home() -> None:
    """Checks within seconds that the home of the reviews answers.

    The question runs in a thread of its own, because looking up a name has no time limit.
    """
    outcome: list[Exception | None] = []
    thread = threading.Thread(target=lambda: outcome.append(_ask_home()), daemon=True)
    thread.start()
    thread.join(_ANSWER_SECONDS + 1.0)
    reason = outcome[0] if outcome else TimeoutError(_("no answer in time"))
    if reason is not None:
        raise _unreachable(reason)


def _ask_home() -> Exception | None:
    """Returns why the home of the reviews does not answer, or None if it does; proxies are respected."""
    try:
        question = urllib.request.Request(_HOME_ADDRESS, method="HEAD")
        with urllib.request.urlopen(question, timeout=_ANSWER_SECONDS):
            return None
    except Exception as error:
        return error


def _unreachable(reason: Exception) -> CourseError:
    return CourseError(
        _("The real reviews are not on this machine and cannot be downloaded: {reason}.", reason=reason),
        allowed=_("a network, or the prepared set in TFDS_DATA_DIR; or the built-in reviews"),
        cure=_(
            "Connect to a network and run the cell again, set TFDS_DATA_DIR to a folder that holds {name},"
            ' or load "built-in".',
            name=NAME,
        ),
    )


def _damaged(folder: Path, reason: Exception) -> CourseError:
    return CourseError(
        _(
            "The real reviews in {folder} are damaged or not complete ({reason}).",
            folder=folder,
            reason=str(reason).strip().splitlines()[0] if str(reason).strip() else type(reason).__name__,
        ),
        allowed=_("the whole set, as tensorflow_datasets prepares it"),
        cure=_(
            "Delete the folder imdb_reviews there and run the cell again: it is downloaded anew."
            ' Or load "built-in".'
        ),
    )
