"""The exercises of this lesson: a worker's batches, and what a replica's loss is divided by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from course_lib.errors import CourseError
from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case, drawn, judge
from course_lib.exercises.values import answered
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow
from lessons.strategies import replica_runs
from lessons.strategies.global_batches import split

Batches = list[list[int]]
_STRIDE = 6  # of the numbers: no remainder tells the place of one


def _cut(numbers: range, size: int) -> Batches:
    return [list(numbers[start : start + size]) for start in range(0, len(numbers), size)]


def _numbers(count: int) -> range:
    return range(_STRIDE, _STRIDE * count + 1, _STRIDE)


def _of_worker(count: int, context: Any) -> range:
    return _numbers(count)[context.input_pipeline_id :: context.num_input_pipelines]


def _own_batches(count: int, batch_size: int, context: Any) -> Batches:
    return _cut(_of_worker(count, context), context.get_per_replica_batch_size(batch_size))


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
        advice=_(
            "Follow the first numbers: who gets them, and how many come to one replica? Then the last ones."
        ),
        misconceptions={
            _all_examples: _("Every worker reads all examples: each is trained on once for each worker."),
            lambda count, size, context: _cut(_of_worker(count, context), size): _(
                "Your batches are as large as the global batch. Make them for one replica."
            ),
            lambda count, size, context: _cut(
                _of_worker(count, context), size // context.num_input_pipelines
            ): _("Your batches are for all replicas of the worker together. Make them for one replica."),
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


_BATCH, _NEAR = 32, 1e-4  # of the lesson's program; how near a loss must come


def _own_means(losses: Sequence[float], count: int) -> float:
    return sum(sum(part) / len(part) if part else np.nan for part in split(losses, count))


@exercise("workers-divisor", right=Callable)
def divisor(answer: Callable[..., Any]) -> str | None:
    """The sum of all shares of the loss, in full, divided and nearly empty batches."""
    random = np.random.default_rng(0)
    cases = [
        Case(
            (random.uniform(1, 2, size).tolist(), count),
            told=_("batch: {size}, replicas: {count}", size=size, count=count),
        )
        for size in (_BATCH, 5, 1)
        for count in (2, 3)
    ]
    own = _(
        "Each replica divides by its own examples. One that is alone on its replica then counts too much, and"
        " over none the mean is NaN. Divide by the examples of all replicas."
    )
    return judge(
        answer,
        lambda losses, count: sum(losses) / len(losses),
        cases,
        run=_on_replicas,
        tolerance=_NEAR,
        advice=_("Your shares add up to this. By how many examples do you divide?"),
        misconceptions={
            lambda losses, count: sum(losses) / _BATCH: _(
                "You divide by 32, also where the batch has fewer examples. Count those that are there."
            ),
            _own_means: own,
            lambda losses, count: _own_means(losses, count) / count: own,
            lambda losses, count: sum(losses) / len(losses) * count: _(
                "Your shares add up to the loss of the batch times the number of replicas. Return the share"
                " of this replica's own examples, and divide by the examples of all replicas together."
            ),
        },
    )


def _on_replicas(answer: Callable[..., Any], losses: Sequence[float], count: int) -> float:
    """Returns the sum of the shares in a compiled step; it raises where only their gradients are wrong."""
    tf, strategy = start_tensorflow(), replica_runs.replicas(count)

    def on_replica(part: Any) -> Any:
        part = tf.boolean_mask(part, part > 0)  # all: the compiled program does not know how many
        with tf.GradientTape() as tape:
            tape.watch(part)
            share = answer(part)
        slope = tape.gradient(share, part, None, "zero") if tf.is_tensor(share) else 0 * part
        return share, tf.reduce_sum(slope * part)

    parts = [np.array(part, np.float32) for part in split(losses, count)]
    try:
        step = tf.function(lambda each: strategy.run(on_replica, (each,)))
        found = step(replica_runs.sent(strategy, parts))
    except RuntimeError as error:
        if "merge_call" not in str(error):
            raise
        away = _("A replica stays away from the all-reduce. One without examples has to take part, too.")
        raise CourseError(away) from error
    shares, slopes = (sum(replica_runs.numbers(strategy, each)) for each in found)
    mean = sum(losses) / len(losses)
    if abs(shares - mean) < _NEAR <= abs(slopes - mean):
        wrong = _("Your shares are right, but not their gradients: keep to TensorFlow's operations.")
        raise CourseError(wrong)
    return shares
