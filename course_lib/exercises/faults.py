"""A reader's own exception in few words: type, message, and the line of the reader's where it arose."""

from __future__ import annotations

import linecache
import re
import sysconfig
import textwrap
from pathlib import Path
from types import TracebackType

import course_lib
from course_lib import syllabus
from course_lib.errors import CourseError
from course_lib.i18n import _

MOST_CHARACTERS = 300

_LIBRARIES = (
    str(Path(course_lib.__file__).parent),
    *map(str, syllabus.folders()),
    sysconfig.get_path("stdlib"),
    "site-packages",
    "dist-packages",
    "<frozen",
    "__autograph_generated_file",
)
# What stands around the reason: addresses and, from TensorFlow, the operation and its place in the graph.
_AROUND = re.compile(
    r" at 0x[0-9a-fA-F]+"
    r"| for '\{\{node.*| Input tensor is: .*|\[\[\{\{.*?\}\}\]\]|\{\{.*?\}\}|\[Op:.*|\(\d+\) [A-Z_]+: "
)
_NO_REASON = (
    "2 root error(s)",
    "Graph execution error",
    "Detected at node",
    'File "',
    "Node:",
    "in user code:",
)
_COMPILERS_REASON = re.compile(r"^\S*:\d+: error: (?:loc\(.*?\]\): )?(.*)$", re.MULTILINE)
# How Python, NumPy and TensorFlow name a `...`; a message that lists what an index may be names it otherwise.
_STUB = re.compile(r"'ellipsis'|\b(?:type|not) ellipsis\b|^ellipsis$", re.IGNORECASE)
# How AutoGraph shows a frame; one star stands for code that it converted: the reader's.
_FRAME = re.compile(r' +File "[^"]*", line \d+, in \S+ *(\**)\n +(.+)\n')


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
    kind, message, line = _parts(error)
    if kind == CourseError.__name__:  # its lines are for the reader
        where = _("It raised this in the line `{line}`:", line=line) if line else ""
        return f"{where}\n{message}".strip()
    what = f"{kind}: {reason(message)}".removesuffix(": ")
    if line:
        return _("It raised `{what}`, in the line `{line}`.", what=what, line=line)
    return _("It raised `{what}`.", what=what)


def is_stub(function: object) -> bool:
    """Returns whether a function holds nothing but the `...` that the notebook came with.

    Only for functions that return nothing: one that is asked for a value says so by giving none.
    """

    def stub() -> None: ...

    code = getattr(function, "__code__", None)
    empty = stub.__code__
    return code is not None and (code.co_code, code.co_consts) == (empty.co_code, empty.co_consts)


def stumbled_over_a_stub(error: BaseException) -> bool:
    """Returns whether Python or TensorFlow could not work with a `...` that the notebook came with."""
    return _STUB.search(str(error)) is not None


def reason(message: str) -> str:
    """Returns the first line of a message that says what is wrong, without TensorFlow's wrapping."""
    found = _COMPILERS_REASON.search(message)
    lines = [_AROUND.sub("", line).strip() for line in (found[1] if found else message).splitlines()]
    return _short(next((line for line in lines if line and not line.startswith(_NO_REASON)), ""))


def _parts(error: BaseException) -> tuple[str, str, str]:
    """Returns the type, the message and the reader's line of an error, also of one that AutoGraph wrapped."""
    message = str(error)
    frames = list(_FRAME.finditer(message)) if message.startswith("in user code:") else []
    if not frames:
        return type(error).__name__, message, _readers_line(error.__traceback__)
    lines = [frame[2].strip() for frame in frames if frame[1] == "*"]
    kind, _colon, inner = textwrap.dedent(message[frames[-1].end() :]).strip().partition(": ")
    return kind, inner, _short(lines[-1] if lines else "")


def _readers_line(traceback: TracebackType | None) -> str:
    """Returns the innermost line of code that is no library's, or "" where there is none."""
    found = ""
    while traceback is not None:
        path = traceback.tb_frame.f_code.co_filename
        if not any(library in path for library in _LIBRARIES):
            found = linecache.getline(path, traceback.tb_lineno).strip() or found
        traceback = traceback.tb_next
    return _short(found)


def _short(text: str) -> str:
    text = text.replace("`", "'")  # the text is shown between backticks
    return text if len(text) <= MOST_CHARACTERS else text[:MOST_CHARACTERS] + " …"
