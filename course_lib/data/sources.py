"""Where a data set comes from: the stand-in that comes with the library, or the real set."""

from __future__ import annotations

import lzma
import os
import threading
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.errors import CourseError, one_of
from course_lib.i18n import _

BUILT_IN, REAL = SOURCES = ("built-in", "tfds")

_STORED = Path(__file__).with_name("built_in")
_BATCH = 5_000
_ANSWER_SECONDS = 3.0


def choose_source(source: str | None) -> str:
    """Returns the source that was asked for, else what COURSE_DATA says, else "built-in".

    Raises:
        CourseError: an unknown source.
    """
    chosen = source if source is not None else os.environ.get("COURSE_DATA") or BUILT_IN
    one_of(
        chosen,
        SOURCES,
        _("There is no data source {source!r}.", source=chosen),
        cure=_("Choose one of these where the lesson loads its data, or in COURSE_DATA."),
    )
    return chosen


def open_built_in(name: str) -> lzma.LZMAFile:
    """Returns an open file of the stand-ins, such as "reviews.json"; `python -m tools.stand_ins` made it."""
    return lzma.open(_STORED / f"{name}.xz")


@dataclass(frozen=True)
class RealSet:
    """A data set that tensorflow_datasets has.

    Attributes:
        name: what it is called there, such as "imdb_reviews/plain_text".
        address: a file that it downloads. Asked for first: without a network it would try for minutes.
    """

    name: str
    address: str

    def read(self, rows: str, feature: str) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """Returns a feature and the labels of some rows, such as "train[:5000]", in their stored order.

        The prepared set is in TFDS_DATA_DIR or the folder of tensorflow_datasets. Only if there is none, it
        is downloaded with a progress bar.

        Raises:
            CourseError: the set is missing and cannot be downloaded.
        """
        import tensorflow_datasets as tfds

        builder = tfds.builder(self.name, data_dir=os.environ.get("TFDS_DATA_DIR") or None)
        if not builder.is_prepared():
            self._download(builder)
        batches = list(builder.as_dataset(split=rows, batch_size=_BATCH).as_numpy_iterator())
        values, labels = (np.concatenate([batch[name] for batch in batches]) for name in (feature, "label"))
        return values, labels

    def _download(self, builder: Any) -> None:
        try:
            _require_answer(self.address)
            builder.download_and_prepare(file_format="tfrecord")
        except Exception as reason:  # whatever the network's or the disk's fault raises
            raise CourseError(
                _(
                    "The real data set {name} is not on this machine and cannot be downloaded: {reason}.",
                    name=self.name,
                    reason=reason,
                ),
                allowed=_("a network, or the prepared set in TFDS_DATA_DIR; or the built-in data"),
                cure=_(
                    "Connect to a network and run the cell again, set TFDS_DATA_DIR to a folder that holds"
                    ' {name}, or load "built-in".',
                    name=self.name,
                ),
            ) from reason


def _require_answer(address: str) -> None:
    """Raises within seconds what keeps an address from answering; proxies are respected.

    The question runs in a thread of its own, because looking up a name has no time limit.
    """
    errors: list[Exception] = []

    def ask() -> None:
        question = urllib.request.Request(address, method="HEAD")
        try:
            urllib.request.urlopen(question, timeout=_ANSWER_SECONDS).close()
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(_ANSWER_SECONDS + 1.0)
    if thread.is_alive():
        raise TimeoutError(_("no answer in time"))
    if errors:
        raise errors[0]
