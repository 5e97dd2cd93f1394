"""A reader's own exception in few words: type, message, and the line of the reader's where it arose."""

from __future__ import annotations

import re
import sysconfig
import traceback
from pathlib import Path

import course_lib
from course_lib import messages, syllabus
from course_lib.errors import CourseError
from course_lib.i18n import _

_LIBRARIES = (
    str(Path(course_lib.__file__).parent),
    *map(str, syllabus.folders()),
    sysconfig.get_path("stdlib"),
    "site-packages",
    "dist-packages",
    "<frozen",
    "__autograph_generated_file",
)
# How Python, NumPy and TensorFlow name a `...`; a message that lists what an index may be names it otherwise.
_STUB = re.compile(r"'ellipsis'|\b(?:type|not) ellipsis\b|^ellipsis$", re.IGNORECASE)
# How AutoGraph shows a frame of code that it converted: the reader's.
_CONVERTED = re.compile(r'^ +File "[^"]*", line \d+, in .* \*\n +(.+)$', re.MULTILINE)


def fault(error: BaseException) -> str:
    """Returns what a reader's function raised and, where it is known, in which of its lines.

    >>> def of(function):
    ...     try:
    ...         function()
    ...     except Exception as error:
    ...         return fault(error)
    >>> of(lambda: 1 / 0).partition(",")[0]
    'It raised `ZeroDivisionError: division by zero`'
    """
    kind, message = messages.parts(f"{type(error).__name__}: {error}")
    line = _readers_line(error).replace("`", "'")  # it is shown between backticks
    if kind == CourseError.__name__:  # its lines are for the reader
        where = _("It raised this in the line `{line}`:", line=line) if line else ""
        return f"{where}\n{message}".strip()
    what = messages.last_line(error).replace("`", "'")
    if line:
        return _("It raised `{what}`, in the line `{line}`.", what=what, line=line)
    return _("It raised `{what}`.", what=what)


def stumbled_over_a_stub(error: BaseException) -> bool:
    """Returns whether Python or TensorFlow could not work with a `...` that the notebook came with."""
    return _STUB.search(str(error)) is not None


def _readers_line(error: BaseException) -> str:
    """Returns the innermost line of code that is no library's, or "" where there is none."""
    if converted := _CONVERTED.findall(str(error)):
        return str(converted[-1])
    frames = traceback.extract_tb(error.__traceback__)
    lines = [each.line for each in frames if not any(library in each.filename for library in _LIBRARIES)]
    return next(filter(None, reversed(lines)), "")
