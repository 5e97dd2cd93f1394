"""Makes the table of operations with the TensorFlow that runs this."""

from __future__ import annotations

import os
from dataclasses import asdict
from functools import cache, lru_cache, partial
from typing import Any

import tensorflow as tf
from tensorflow.experimental import dtensor

from course_lib.runtime import setup, start_tensorflow
from course_lib.specs.verdict import DEAD, REFUSED
from tools.cases import runner
from tools.cases.operations import program, table
from tools.cases.operations.table import NO_CASE, Case, Operation

MOST_DEVICES = 12
MIXED_UP = "12"  # a mesh on which messages can get mixed up, also those of later cases in the process
_POISONED = ("Restart your program", "aborted", "BufRendezvous", "CANCELLED")  # later collectives fail too


def measure() -> None:
    """Runs every case that the journal lacks, and writes the table."""
    found = runner.completed(list(map(as_case, table.every_case())), "operations", tf.__version__)
    table.save(table.load() | {tf.__version__: {name: answer_of(record) for name, record in found.items()}})


def as_case(case: Case) -> runner.Case:
    """Returns a case as the runner takes it."""
    return runner.Case(case.name, partial(verdict, case), alone=case.sizes == MIXED_UP)


def answer_of(record: runner.Record) -> table.Answer:
    """Returns what the table says of what became of a case."""
    return record | {"verdict": DEAD} if record["verdict"] in runner.FAILURES else record


def verdict_of(_case: Case, record: runner.Record) -> str:
    """Returns the verdict that the table gives to what a case found."""
    verdict: str = answer_of(record)["verdict"]
    return verdict


def verdict(case: Case) -> runner.Record:
    """Returns what DTensor makes of a case."""
    verdicts = _started()
    right = _without_dtensor(case.operation, case.way)
    if not right and "gradient" in case.way:
        return {"verdict": NO_CASE}
    mesh = _mesh(case.sizes)
    layout = dtensor.Layout(list(case.layout), mesh)
    turned = dtensor.Layout([*case.layout[1:], case.layout[0]], mesh)
    arrays = _values(case.operation).items()
    found = verdicts.verdict(
        right,
        _function(case.operation, case.operation.run, case.way, mesh=mesh, layout=layout, turned=turned),
        [program.placed(name, value, layout) for name, value in arrays],
        compiled="eager" not in case.way,
        coarse=case.operation.is_coarse,
    )
    if right is None and found.verdict == REFUSED:
        return {"verdict": NO_CASE}  # as without DTensor
    is_spoiled = any(word in found.message for word in _POISONED)
    told = {name: value for name, value in asdict(found).items() if value}
    return told | ({runner.SPOILED: True} if is_spoiled else {})


@cache
def _started() -> Any:
    """Starts TensorFlow in this process, and returns the module that needs it."""
    os.environ["TF_NUM_INTEROP_THREADS"] = "1"  # processes share the cores
    setup(devices=MOST_DEVICES)
    start_tensorflow()
    from course_lib.devices import verdicts

    return verdicts


@lru_cache(maxsize=1)  # the cases of an operation come one after the other
def _without_dtensor(operation: Operation, way: str) -> Any:
    function = _function(operation, operation.right, way)
    tensors = [program.plain(name, value) for name, value in _values(operation).items()]
    return _started().without_dtensor(function, tensors, compiled="eager" not in way)


@lru_cache(maxsize=1)
def _values(operation: Operation) -> Any:
    return program.values(operation.values, table.SHAPES[operation.of])


@cache
def _mesh(sizes: str) -> Any:
    return program.mesh_of(table.mesh_of(sizes))


def _function(operation: Operation, expression: str, way: str, **names: Any) -> Any:
    """Returns what is called: a function that gives the expression, or its gradients."""
    names |= {"tf": tf, "dtensor": dtensor}
    function = eval(f"lambda {', '.join(operation.values)}: {expression}", names)
    called = program.gradients_of(function) if "gradient" in way else function
    return tf.autograph.experimental.do_not_convert(called)
