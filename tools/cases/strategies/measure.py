"""Makes the table of strategies with the TensorFlow that runs this."""

from __future__ import annotations

import io
import linecache
import sys
import tempfile
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

import keras  # noqa: F401 - imported once, for the processes that are forked from this one
import tensorflow as tf
import tf_keras  # noqa: F401

from tools.cases import runner
from tools.cases.strategies import table

LIMIT_SECONDS = 120.0
SEVERAL = ("workers_2", "servers_2")


def as_case(case: table.Case) -> runner.Case:
    """Returns a case as the runner takes it."""
    return runner.Case(case.name, partial(_run, case), LIMIT_SECONDS, alone=True)


def _run(case: table.Case) -> runner.Record:
    if case.strategy in SEVERAL:
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


def measure() -> None:
    """Runs every case that the journal lacks, and writes the table."""
    cases = table.every_case()
    found = runner.completed(list(map(as_case, cases)), "strategies-features", tf.__version__)
    answers = {case.name: table.answer_of(found[case.name], case.feature) for case in cases}
    table.save((table.load() if table.STORED.exists() else {}) | {tf.__version__: answers})


if (
    __name__ == "__main__"
):  # tries the cases whose names have all of the words given, and prints what became of them
    chosen = [case for case in table.every_case() if all(word in case.name for word in sys.argv[1:])]
    for name, record in runner.run(list(map(as_case, chosen))):
        print(name, "->", record, flush=True)
