"""What tables of what works have in common: the versions they were made with, and a cell for each outcome."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence

from benchmarks.cases import ANSWERED, ERROR, Outcome
from course_lib.exercises.faults import reason
from course_lib.measured.support import Cell, of_finding

_VERSIONS = """
import importlib.metadata, json, sys
def version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
print(json.dumps({name: version(name) for name in sys.argv[1:]}))
"""


def versions(python: str, packages: Sequence[str]) -> dict[str, str]:
    """Returns the version of each of these packages that a Python has."""
    command = [python, "-c", _VERSIONS, *packages]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {name: version for name, version in json.loads(done.stdout).items() if version}


def cell_of(outcome: Outcome) -> Cell:
    """Returns the cell of the table for what became of a case."""
    if outcome.status == ANSWERED:
        return of_finding(**outcome.found)
    message = shortened(outcome.message) if outcome.status == ERROR else outcome.message
    return Cell(outcome.status, message=message)


def shortened(message: str) -> str:
    r"""Returns an exception's type and reason, without modules and without places in files.

    >>> shortened("tensorflow.errors.UnknownError: /home/me/x.py:3:1: error: 'tf.Add' op failed\nmore")
    "UnknownError: 'tf.Add' op failed"
    """
    kind, _colon, text = message.partition(": ")
    return f"{kind.rpartition('.')[2]}: {reason(text)}"
