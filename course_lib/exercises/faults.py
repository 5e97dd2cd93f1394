"""A reader's own exception in few words: type, message, and the line of the reader's where it arose."""

from __future__ import annotations

import linecache
import re
import sysconfig
from pathlib import Path
from types import TracebackType

import course_lib
from course_lib.errors import CourseError
from course_lib.i18n import _

MOST_CHARACTERS = 300

_LIBRARIES = (
    str(Path(course_lib.__file__).parent),
    sysconfig.get_path("stdlib"),
    "site-packages",
    "dist-packages",
    "<frozen",
    "__autograph_generated_file",
)
# What stands around the reason in TensorFlow's messages: the operation that failed, its place in the graph.
_AROUND = re.compile(r" for '\{\{node.*| Input tensor is: .*|\[\[\{\{.*?\}\}\]\]|\{\{.*?\}\}|\[Op:.*")
_NO_REASON = ("Graph execution error", "Detected at node", 'File "', "Node:")
_COMPILERS_REASON = re.compile(r"^\S*:\d+: error: (?:loc\(.*?\]\): )?(.*)$", re.MULTILINE)
_AUTOGRAPH_LINE = re.compile(r'File "[^"]*", line \d+, in \S+  \*\n\s+(.+)')


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
    what = f"{type(error).__name__}: {reason(error)}".removesuffix(": ")
    line = readers_line(error)
    if isinstance(error, CourseError):
        what = str(error)
        return _("It raised this in the line `{line}`:\n{what}", line=line, what=what) if line else what
    if line:
        return _("It raised `{what}`, in the line `{line}`.", what=what, line=line)
    return _("It raised `{what}`.", what=what)


def reason(error: BaseException) -> str:
    """Returns the first line of a message that says what is wrong, without TensorFlow's wrapping."""
    text = str(error)
    if "in user code:" in text:  # AutoGraph's: a traceback, then type and message
        text = text.rpartition(f"{type(error).__name__}: ")[2]
    from_compiler = _COMPILERS_REASON.search(text)
    lines = [
        _AROUND.sub("", line).strip() for line in ([from_compiler[1]] if from_compiler else text.splitlines())
    ]
    return _short(next((line for line in lines if line and not line.startswith(_NO_REASON)), ""))


def readers_line(error: BaseException) -> str:
    """Returns the innermost line of code that is no library's, or "" where there is none."""
    in_user_code = _AUTOGRAPH_LINE.findall(str(error))
    if in_user_code:
        return _short(str(in_user_code[-1]).strip())
    found = ""
    traceback: TracebackType | None = error.__traceback__
    while traceback is not None:
        path = traceback.tb_frame.f_code.co_filename
        if not any(library in path for library in _LIBRARIES):
            found = linecache.getline(path, traceback.tb_lineno).strip() or found
        traceback = traceback.tb_next
    return _short(found)


def _short(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else text[:MOST_CHARACTERS] + " …"
