"""Makes the table of strategies with the TensorFlow that runs this."""

from __future__ import annotations

import io
import linecache
import platform
import sys
import tempfile
from contextlib import redirect_stdout
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import keras  # noqa: F401 - imported once, for the processes that are forked from this one
import tensorflow as tf
import tf_keras  # noqa: F401

from course_lib.measured.files import load, save
from tools.cases import runner
from tools.cases.strategies import table

LIMIT_SECONDS = 120.0


def as_case(case: table.Case) -> runner.Case:
    """Returns a case as the runner takes it."""
    return runner.Case(case.name, partial(_run, case), LIMIT_SECONDS, alone=True)


def _run(case: table.Case) -> runner.Record:
    if case.strategy in table.SEVERAL:
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "program.py"
            program.write_text(case.program, encoding="utf-8")
            return runner.found_by(program)
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 3)
    names: dict[str, Any] = {"__name__": "case"}
    lines = case.program.splitlines(keepends=True)
    linecache.cache["program.py"] = (len(case.program), None, lines, "program.py")  # AutoGraph reads it
    with redirect_stdout(io.StringIO()):
        exec(compile(case.program, "program.py", "exec"), names)
        record: runner.Record = names["found"]()
    return record


def verdict_of(case: table.Case, record: runner.Record) -> str:
    """Returns the verdict that the table gives to what a case found."""
    verdict: str = table.answer_of(record, case.feature)["verdict"]
    return verdict


def measure() -> None:
    """Runs every case that the journal lacks, and writes the table."""
    cases = table.every_case()
    found = runner.completed(list(map(as_case, cases)), "strategies-features", tf.__version__)
    answers = {case.name: table.answer_of(found[case.name], case.feature) for case in cases}
    table.save((table.load() if table.STORED.exists() else {}) | {tf.__version__: answers})
    if tf.__version__ == next(iter(table.load())):
        _save_view(answers)


def _save_view(answers: table.Answers) -> None:
    """Writes the rows that the lesson on strategies shows; those of Estimators stay as they are."""
    how = {
        "command": "make estimator; .venv/bin/python -m tools.cases features estimator",
        "python": platform.python_version(),
        **{name: version(name) for name in ("tensorflow", "tf-keras", "keras")},
    }
    before = load("strategies-support")
    support = table.view(answers)
    for row, cells in support.items():
        cells |= {name: cell for name, cell in before.support.get(row, {}).items() if name not in cells}
    save("strategies-support", {"how": before.how | how, "support": support})


if __name__ == "__main__":  # tries the cases whose names have all of the words that are given
    chosen = [case for case in table.every_case() if all(word in case.name for word in sys.argv[1:])]
    for name, record in runner.run(list(map(as_case, chosen))):
        print(name, "->", record, flush=True)
