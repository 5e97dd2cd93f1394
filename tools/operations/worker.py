"""Runs cases in a process that may die: its parent sees which case it had begun."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable, Iterable
from typing import Any

from course_lib.runtime import setup, start_tensorflow
from course_lib.specs.verdict import REFUSED, RIGHT, WRONG, Verdict, as_record
from tools.operations.cases import GRADIENTS, IN_EAGER, NO_CASE, Case, filled, parts_of

MOST_DEVICES = 12
_STARTS, _CALLS = "mesh = ", "try:"  # what a program defines lies between them
_POISONED = ("Restart your program", "aborted", "BufRendezvous", "CANCELLED")  # later collectives fail too

Tell = Callable[[dict[str, Any]], None]


def run(cases: Iterable[Case], tell: Tell) -> None:
    """Tells the key of each case that begins, then what became of it. Ends where collectives are broken."""
    setup(devices=MOST_DEVICES)
    start_tensorflow()
    from course_lib.devices import verdicts  # it needs TensorFlow, which must start in this process

    rights: dict[tuple[str, str, str], Any] = {}
    for case in cases:
        tell({"key": case.key})
        names, compiled = _defined(case), case.mode not in IN_EAGER
        known = (case.of, case.run, case.mode)
        if known not in rights:
            plain = list(names["plain"].values())
            rights = {known: verdicts.without_dtensor(names["without"], plain, compiled=compiled)}
        right = rights[known]
        if not right and case.mode in GRADIENTS:
            tell({"key": case.key, "verdict": NO_CASE})
            continue
        function, made = names["function"], list(names["made"].values())
        found = verdicts.verdict(right, function, made, compiled=compiled, coarse="float16" in case.run)
        if right is None and found.verdict == REFUSED:
            found = Verdict(NO_CASE)  # as without DTensor
        tell({"key": case.key, **as_record(found)})
        if any(word in found.message for word in _POISONED):
            return


def run_program(case: Case, tell: Tell) -> None:
    """Tells what the program of a case says, run as it stands, as a reader would."""
    tell({"key": case.key})
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    said = io.StringIO()
    verdict = RIGHT
    with contextlib.redirect_stdout(said):
        try:
            exec(case.program(), {"__name__": "__main__"})
        except Exception:
            verdict = REFUSED
    tell({"key": case.key, "verdict": WRONG if "WRONG" in said.getvalue() else verdict})


def _defined(case: Case) -> dict[str, Any]:
    """Returns what the program of a case defines, and its tensors, as `made` and `plain`."""
    import numpy as np
    import tensorflow as tf
    from tensorflow.experimental import dtensor

    program = case.program()
    definitions = program[program.index(_STARTS) : program.index(_CALLS)]
    tensors = "made = dict({placed})\nplain = dict({plain})"
    names: dict[str, Any] = {"np": np, "tf": tf, "dtensor": dtensor}
    exec(definitions + filled(tensors, **parts_of(case.run, case.right)), names)
    return names
