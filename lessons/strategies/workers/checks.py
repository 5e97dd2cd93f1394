"""The exercise of this lesson on a worker's batches; importing it registers that on the drill."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from course_lib.errors import CourseError
from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import drawn, judge
from course_lib.exercises.values import answered
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow
from lessons.strategies.workers import checks_drill  # noqa: F401 - it registers its exercise

Batches = list[list[int]]
_STRIDE = 6  # of the numbers: no remainder tells the place of one


def _cut(numbers: range, size: int) -> Batches:
    return [list(numbers[start : start + size]) for start in range(0, len(numbers), size)]


def _numbers(count: int) -> range:
    return range(_STRIDE, _STRIDE * count + 1, _STRIDE)


def _own_batches(count: int, batch_size: int, context: Any) -> Batches:
    mine = _numbers(count)[context.input_pipeline_id :: context.num_input_pipelines]
    return _cut(mine, context.get_per_replica_batch_size(batch_size))


def _all_examples(count: int, batch_size: int, context: Any) -> Batches:
    return _cut(_numbers(count), context.get_per_replica_batch_size(batch_size))


@exercise("workers-pipeline", right=_own_batches)
def pipeline(answer: Callable[..., Any]) -> str | None:
    """The batches that one worker makes for its replicas."""
    return judge(
        answer,
        _own_batches,
        [replace(case, told=_told(*case.inputs)) for case in drawn(_draw_worker, count=8)],
        run=_batches_of,
        advice=_("Follow the first numbers: who gets them, and how many of them come to one replica?"),
        misconceptions={
            _all_examples: _("Every worker reads all examples: each is trained on once for each worker."),
            lambda count, size, context: _all_examples(count, size, context)[
                context.input_pipeline_id :: context.num_input_pipelines
            ]: _("The workers take whole batches in turn. Here they take single examples in turn."),
        },
    )


def _draw_worker(random: np.random.Generator) -> tuple[int, int, Any]:
    workers, replicas, size = (int(each) for each in random.integers(2, 4, 3))
    num_replicas = workers * replicas
    make = start_tensorflow().distribute.InputContext
    context = make(workers, int(random.integers(workers)), num_replicas)
    return 2 * num_replicas * size + workers + 1, num_replicas * size, context


def _told(count: int, batch_size: int, context: Any) -> str:
    return _(
        "worker {worker} of {workers} with {replicas} replicas each, a global batch of {size} and the numbers"
        " {first}, {second}, ... {largest}",
        worker=context.input_pipeline_id,
        workers=context.num_input_pipelines,
        replicas=context.num_replicas_in_sync // context.num_input_pipelines,
        size=batch_size,
        first=_STRIDE,
        second=2 * _STRIDE,
        largest=_STRIDE * count,
    )


def _batches_of(answer: Callable[..., Any], count: int, batch_size: int, context: Any) -> Batches:
    data = start_tensorflow().data
    found = answered(answer(data.Dataset.range(_STRIDE, _STRIDE * count + 1, _STRIDE), batch_size, context))
    if not isinstance(found, data.Dataset):
        raise CourseError(_("Return a tf.data.Dataset: what `shard` and `batch` make of `numbers`."))
    if found.element_spec.shape.rank == 0:
        raise CourseError(_("Your data set has single examples. Make batches of them with `batch`."))
    return [np.atleast_1d(batch).tolist() for batch in found.as_numpy_iterator()]
