"""The folder of a training lab: one folder a run, and the checkpoints from which a run can go on."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.training.saved import names_in, whole_in
from lessons.lesson_05_model_and_spatial.lab_setting import Start

_RUN = re.compile(r"run-(\d+)")


class LabFolder:
    """Keeps the checkpoints of a lab's runs.

    Args:
        path: the folder; a new temporary one, made with the first run, if None.
        others: folders with checkpoints of other trainings, by what they are called: paths, or objects with
            a `path`.

    Raises:
        CourseError: the others have no names, or one is no folder.
    """

    def __init__(self, path: str | Path | None, others: Mapping[str, Any]) -> None:
        self._path = None if path is None else Path(path)
        self._others = _folders(others)
        self._known: dict[tuple[Path, tuple[str, ...]], dict[str, Start]] = {}

    def make(self, number: int) -> Path:
        """Makes the folder of a run and returns its path.

        Raises:
            CourseError: it cannot be made.
        """
        try:
            if self._path is None:
                self._path = Path(tempfile.mkdtemp())
            folder = self._path / f"run-{number:03d}"
            folder.mkdir(parents=True)
        except OSError as error:
            raise CourseError(
                _("No folder can be made for the run: {reason}", reason=error),
                allowed=_("a folder that can be written to, on a disk with room"),
                cure=_("Give the lab another one: folder=..."),
            ) from error
        return folder

    def last_number(self) -> int:
        """Returns the highest number of a run that has a folder; 0 if there is none."""
        return max((number for number, _folder in self._runs()), default=0)

    def starts(self) -> dict[str, Start]:
        """Returns the whole checkpoints, by a name of each, oldest runs first, those of others before all."""
        starts: dict[str, Start] = {}
        for run, folder in self._others.items():
            starts |= self._starts_in(folder, run)
        for number, folder in self._runs():
            starts |= self._starts_in(folder, _("run {number}", number=number))
        return starts

    def _starts_in(self, folder: Path, run: str) -> dict[str, Start]:
        """Returns the starts in one folder, which are read anew only where other names are in it."""
        found = folder, names_in(folder)
        if found not in self._known:
            self._known[found] = {
                f"{folder.name}/{saved.name}": Start(run, saved) for saved in whole_in(folder)
            }
        return self._known[found]

    def _runs(self) -> Iterator[tuple[int, Path]]:
        if self._path is not None and self._path.is_dir():
            for folder in sorted(self._path.iterdir()):
                if match := _RUN.fullmatch(folder.name):
                    yield int(match.group(1)), folder


def _folders(given: object) -> dict[str, Path]:
    folders = given.items() if isinstance(given, Mapping) else [(None, given)]
    paths: dict[Any, Any] = {name: getattr(folder, "path", folder) for name, folder in folders}
    if not all(
        isinstance(name, str) and isinstance(path, (str, os.PathLike)) for name, path in paths.items()
    ):
        raise CourseError(
            _("The lab cannot take its checkpoints from {given!r}.", given=given),
            allowed=_("a name for each folder with checkpoints"),
            cure=_("Write for example {example}.", example='checkpoints={"lesson 4": folder}'),
        )
    return {name: Path(path) for name, path in paths.items()}
