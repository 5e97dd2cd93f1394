"""Exercise 11-pipeline: what one worker reads, held against a list of numbers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np

from course_lib.errors import CourseError
from course_lib.exercises.answers import answered
from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case, judge
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow

Batches = list[list[int]]
Reader = tuple[int, int, int]  # how many workers there are, which one it is, how many replicas each has
_MOST_BATCHES = 100  # a pipeline that repeats would never end


def _cut(numbers: range, size: int) -> Batches:
    return [list(numbers[start : start + size]) for start in range(0, len(numbers), size)]


def _right(count: int, batch_size: int, reader: Reader) -> Batches:
    workers, worker, replicas = reader
    return _cut(range(worker, count, workers), batch_size // (workers * replicas))


def _all_examples(count: int, batch_size: int, reader: Reader) -> Batches:
    workers, _worker, replicas = reader
    return _cut(range(count), batch_size // (workers * replicas))


def _global_batches(count: int, batch_size: int, reader: Reader) -> Batches:
    workers, worker, _replicas = reader
    return _cut(range(worker, count, workers), batch_size)


def _batches_in_turn(count: int, batch_size: int, reader: Reader) -> Batches:
    workers, worker, replicas = reader
    return _cut(range(count), batch_size // (workers * replicas))[worker::workers]


def _pipeline(numbers: Any, global_batch_size: int, context: Any) -> Any:
    mine = numbers.shard(context.num_input_pipelines, context.input_pipeline_id)
    return mine.batch(context.get_per_replica_batch_size(global_batch_size))


@exercise("11-pipeline", right=_pipeline, on_devices=True)
def pipeline(answer: Callable[..., Any]) -> str | None:
    """The batches that one worker makes for its replicas."""
    random = np.random.default_rng(0)
    return judge(
        answer,
        _right,
        [_case(random) for _number in range(8)],
        run=_batches_of,
        misconceptions={
            _all_examples: _("Every worker reads all examples: each is trained on once for each worker."),
            _global_batches: _("Each replica would get as many examples as a global batch has."),
            _batches_in_turn: _(
                "The workers take whole batches in turn. Here they take single examples in turn."
            ),
        },
    )


def _case(random: np.random.Generator) -> Case:
    workers, replicas, size = (int(each) for each in random.integers(2, 4, 3))
    worker, batch_size = int(random.integers(workers)), workers * replicas * size
    count = 2 * batch_size + workers + 1
    told = _(
        "examples: {count}, global batch: {batch_size}, worker {worker} of {workers}, "
        "replicas of each: {replicas}",
        count=count,
        batch_size=batch_size,
        worker=worker,
        workers=workers,
        replicas=replicas,
    )
    return Case((count, batch_size, (workers, worker, replicas)), told=told)


def _batches_of(answer: Callable[..., Any], count: int, batch_size: int, reader: Reader) -> Batches:
    tf, (workers, worker, replicas) = start_tensorflow(), reader
    context = tf.distribute.InputContext(workers, worker, workers * replicas)
    found = answered(answer(tf.data.Dataset.range(count), batch_size, context))
    if not isinstance(found, tf.data.Dataset):
        raise CourseError(
            _("Your function returns no data set."),
            allowed=_("a tf.data.Dataset of batches"),
            cure=_("Return what `shard` and `batch` make of `numbers`."),
        )
    return [np.atleast_1d(batch).tolist() for batch in islice(found.as_numpy_iterator(), _MOST_BATCHES)]
