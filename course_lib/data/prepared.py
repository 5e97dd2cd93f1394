"""Real data sets through tensorflow_datasets: prepared once, downloaded only when they are missing."""

from __future__ import annotations

import importlib
import logging
import os
import threading
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from course_lib.errors import CourseError
from course_lib.i18n import _

Content = TypeVar("Content")

_ANSWER_SECONDS = 3.0


@dataclass(frozen=True)
class RealSet:
    """A data set that tensorflow_datasets has.

    Attributes:
        name: what it is called there, such as "imdb_reviews/plain_text".
        address: a file that it downloads. Asked for first: without a network it would try for minutes.
    """

    name: str
    address: str

    def read(self, read: Callable[[Any], Content]) -> Content:
        """Returns what `read` makes of the set's builder.

        The prepared set in TFDS_DATA_DIR, or else in the folder of tensorflow_datasets, is used as it is.
        Only if there is none, it is downloaded with a progress bar.

        Raises:
            CourseError: the set is missing and cannot be downloaded, or `read` fails on it: then what is
                there is damaged or not complete.
        """
        folder = _data_folder()
        importlib.import_module("tensorflow_datasets")  # an installation fault is no damage to the data
        try:
            builder = self._builder(folder)
            if not builder.is_prepared() and not Path(builder.data_dir).exists():
                self._download(builder)
                builder = self._builder(folder)
            return read(builder)
        except CourseError:
            raise
        except Exception as error:  # whatever the formats inside raise on damage: there are many
            raise self._damaged(folder, error) from error

    def _builder(self, folder: Path) -> Any:
        import tensorflow_datasets as tfds

        logger = logging.getLogger("absl")  # it would warn of a missing set: nothing to worry about here
        level = logger.level
        logger.setLevel(logging.ERROR)
        try:
            return tfds.builder(self.name, data_dir=str(folder))
        finally:
            logger.setLevel(level)

    def _download(self, builder: Any) -> None:
        self._require_home()
        try:
            builder.download_and_prepare(file_format="tfrecord")
        except Exception as error:
            raise self._unreachable(error) from error

    def _require_home(self) -> None:
        """Checks within seconds that the home of the set answers.

        The question runs in a thread of its own, because looking up a name has no time limit.
        """
        outcome: list[Exception | None] = []
        thread = threading.Thread(target=lambda: outcome.append(_ask(self.address)), daemon=True)
        thread.start()
        thread.join(_ANSWER_SECONDS + 1.0)
        reason = outcome[0] if outcome else TimeoutError(_("no answer in time"))
        if reason is not None:
            raise self._unreachable(reason)

    def _unreachable(self, reason: Exception) -> CourseError:
        return CourseError(
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
        )

    def _damaged(self, folder: Path, reason: Exception) -> CourseError:
        said = str(reason).strip().splitlines()
        return CourseError(
            _(
                "The real data set {name} in {folder} is damaged or not complete ({reason}).",
                name=self.name,
                folder=folder,
                reason=said[0] if said else type(reason).__name__,
            ),
            allowed=_("the whole set, as tensorflow_datasets prepares it"),
            cure=_(
                "Delete the folder {name} there and run the cell again: it is downloaded anew."
                ' Or load "built-in".',
                name=self.name.split("/", maxsplit=1)[0],
            ),
        )


def _data_folder() -> Path:
    """Returns the folder of prepared sets; read here, because tensorflow_datasets reads it only on import."""
    chosen = os.environ.get("TFDS_DATA_DIR")
    return Path(chosen).expanduser() if chosen else Path.home() / "tensorflow_datasets"


def _ask(address: str) -> Exception | None:
    """Returns why an address does not answer, or None if it does; proxies are respected."""
    try:
        question = urllib.request.Request(address, method="HEAD")
        with urllib.request.urlopen(question, timeout=_ANSWER_SECONDS):
            return None
    except Exception as error:
        return error
