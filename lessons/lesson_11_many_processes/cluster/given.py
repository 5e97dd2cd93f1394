"""What a reader gives a cluster, checked before any process starts."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from numbers import Real
from pathlib import Path
from typing import Any

from course_lib.errors import CourseError
from course_lib.i18n import _


def seconds(value: object) -> None:
    """Checks a number of seconds.

    Raises:
        CourseError: it is no number, or below 0.
    """
    if not isinstance(value, Real) or isinstance(value, bool) or math.isnan(value) or value < 0:
        raise CourseError(
            _("A wait cannot take {value!r} seconds.", value=value),
            allowed=_("a number from 0"),
            cure=_("Write for example {example}.", example="cluster.wait(120)"),
        )


def others(value: object) -> dict[str, Any]:
    """Returns what tasks run instead, by their names.

    Raises:
        CourseError: it is no dictionary.
    """
    if value is not None and not isinstance(value, Mapping):
        raise CourseError(
            _("{value!r} does not tell which tasks run something else.", value=value),
            allowed=_("a dictionary: for each such task its program, or None"),
            cure=_("Write for example {example}.", example='others={"worker 1": None}'),
        )
    return dict(value or {})


def variables(value: object) -> dict[str, str]:
    """Returns environment variables that a process can have.

    Raises:
        CourseError: they are no dictionary, or a name or value is no text.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise _no_variables(_("{given!r} are no environment variables.", given=value))
    for name, text in value.items():
        if not isinstance(name, str) or not name or set("=\0") & set(name):
            raise _no_variables(_("A variable cannot be named {name!r}.", name=name))
        if not isinstance(text, str) or "\0" in text:
            raise _no_variables(_("The variable {name} cannot be {value!r}.", name=name, value=text))
    return dict(value)


def folder_for_logs(value: object) -> Path:
    """Returns a folder that logs can be written to; makes it where it is not there.

    Raises:
        CourseError: it is a file, or it cannot be written.
    """
    try:
        folder = Path(value)  # type: ignore[arg-type]
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "guard.err").open("wb"):
            return folder.absolute()
    except (OSError, TypeError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise CourseError(
            _("The logs cannot be written to {folder}: {reason}.", folder=value, reason=reason),
            allowed=_("a folder, new or your own"),
            cure=_("Name another, or leave it out: then the logs go with the cluster."),
        ) from error


def working_folder() -> str:
    """Returns the folder in which tasks are to run: this process's own.

    Raises:
        CourseError: it was deleted.
    """
    try:
        return os.getcwd()
    except OSError as error:
        raise CourseError(
            _("The folder in which this process runs is gone."),
            allowed=_("a working directory that exists"),
            cure=_("Change into one, for example {example}.", example='os.chdir("/")'),
        ) from error


def _no_variables(problem: str) -> CourseError:
    return CourseError(
        problem,
        allowed=_("a dictionary of texts, numbers in quotes too"),
        cure=_("Write for example {example}.", example='{"TF_CPP_MIN_LOG_LEVEL": "0"}'),
    )
