"""Where a data set comes from: what the library makes itself, or the real one."""

from __future__ import annotations

import os

from course_lib.errors import one_of
from course_lib.i18n import _

BUILT_IN, REAL = SOURCES = ("built-in", "tfds")


def choose_source(source: str | None) -> str:
    """Returns the source that was asked for.

    Args:
        source: "built-in" or "tfds". If left out, the environment variable COURSE_DATA says it, and
            "built-in" if that is not set.

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
