"""What is wrong, in one line: the kind of an error and what it says, without TensorFlow's wrapping."""

from __future__ import annotations

import re
import textwrap

LONGEST = 300  # characters of what an error says

# Of a line: places in graphs, in memory and in TensorFlow's sources, operations, values, Keras's colours.
_AROUND = re.compile(
    r" for '\{\{node.*|\[\[\{\{.*|\{\{.*?\}\}|\[Op:.*|Input tensor is: .*|\(component id: \d+\)"
    r"|\S*\.cc:\d+\S*| at 0x[0-9a-fA-F]+|(?<=decode) byte 0x.*|\(\d+\) [A-Z_]+: |\x1b\[\d*m"
)
_NO_REASON = (
    "2 root error(s)",
    "Graph execution error",
    "Detected at node",
    'File "',
    "Node:",
    "Exception encountered when calling",
)
# What DTensor's compiler refuses, behind the line of Python that called it.
_COMPILERS_REASON = re.compile(r"^.*:\d+: error: (?:loc\(.*?\): )?(.*)$", re.MULTILINE)
# What AutoGraph makes of an error: the frames, then the error.
_IN_USER_CODE = re.compile(r"in user code:\n\n(?: +File .*\n.*\n)*\n(?s:(.*))")
_KIND = re.compile(r"(?:\w+\.)*([A-Z]\w*)(?:: |:?$)(?s:(.*))")

_TRACEBACK = "Traceback (most recent call last):"
# What Python says of an error in a finalizer, often as it ends: heading, frames, error.
_IGNORED = re.compile(r"^Exception ignored .*\n(?:Traceback .*\n(?:[ \t].*\n)*)?.*\n?", re.M)
_LATE = re.compile(r"^Timeout(?= \(\d+:\d\d:\d\d)", re.M)  # of faulthandler, above the frames
_UNINDENTED = re.compile(r"^\S", re.M)  # below the frames: kind and message, which may have several lines
_LOG = re.compile(r"[IWEF]\d{4} |\d{4}-\d\d-\d\d |WARNING: All log messages before absl")  # begins its lines


def last_line(error: BaseException, longest: int = LONGEST) -> str:
    """Returns the kind of an error and the line that says what is wrong, as a traceback would end.

    >>> last_line(ValueError("{{function_node __wrapped__}} Incompatible shapes: [3] vs. [4] [Op:AddV2]"))
    'ValueError: Incompatible shapes: [3] vs. [4]'
    """
    return plain(f"{type(error).__name__}: {error}", longest)


def plain(ending: str, longest: int = LONGEST) -> str:
    r"""Returns as one line what a traceback ends with.

    >>> plain("tensorflow.errors.UnknownError: /home/me/x.py:3:1: error: 'tf.Add' op failed\nmore")
    "UnknownError: 'tf.Add' op failed"
    """
    kind, message = parts(ending)
    return ": ".join(filter(None, (kind, _reason(message, longest))))


def parts(ending: str) -> tuple[str, str]:
    """Returns the kind and the message of what a traceback ends with, without AutoGraph's account of it."""
    found = _KIND.match(ending)
    kind, message = found.groups() if found else ("", ending)
    within = _IN_USER_CODE.match(message)
    return parts(textwrap.dedent(within[1])) if within else (kind, message)


def _reason(message: str, longest: int) -> str:
    """Returns the first line of a message that says what is wrong, without TensorFlow's wrapping."""
    found = _COMPILERS_REASON.search(message)
    text = found[1] if found else message
    lines = (" ".join(_AROUND.sub(" ", line).split()) for line in text.splitlines())
    told = next((line for line in lines if line and not line.startswith(_NO_REASON)), "")
    return told if len(told) <= longest else told[: longest - 1] + "…"


def ending(log: str) -> str:
    """Returns what a process said last on stderr: an exception, or a line that is no log."""
    said = _IGNORED.sub("", "\n".join(line for line in log.splitlines() if not _LOG.match(line))).strip()
    _before, head, traceback = said.rpartition(_TRACEBACK)
    if late := _LATE.search(traceback):
        return late[0]
    raised = _UNINDENTED.search(traceback) if head else None
    return traceback[raised.start() :] if raised else said.rpartition("\n")[2]
