"""What `make results` measured, and how: files, one loader, one table."""

from typing import Any

from course_lib.measured.files import load
from course_lib.measured.tables import table

__all__ = ["load", "table"]


def __getattr__(name: str) -> Any:  # explorers read records without matplotlib
    if name != "picture":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from course_lib.measured.trainings import picture

    return picture
