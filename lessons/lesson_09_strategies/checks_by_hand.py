"""Exercise 09-by-hand: what a replica does in a step, held against the same step in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.errors import CourseError
from course_lib.exercises.answers import is_number, plain
from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case, judge
from course_lib.exercises.real_devices import on_devices
from course_lib.exercises.replica_runs import require_devices
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow

Array = npt.NDArray[Any]
Part = tuple[Array, Array]  # features and labels of one replica
Outcome = dict[str, Any]

_LEARNING_RATE, _FEATURES = 0.25, 3
_SIZES = ((2, 2), (3, 1), (1, 4), (2, 1, 2))  # of the parts of two or three replicas


def _stepped(
    *,
    all_reduce: str | None = "SUM",
    divided: str = "batch",
    sign: float = -1,
    times: float = 1,
    whole_loss: bool = False,
) -> Callable[[Array, tuple[Part, ...]], Outcome]:
    """Returns a step in NumPy, with the mistakes that are asked for."""

    def step(weight: Array, parts: tuple[Part, ...]) -> Outcome:
        count = sum(len(labels) for _features, labels in parts)
        losses, gradients = [], []
        for features, labels in parts:
            errors = features.astype(np.float64) @ weight - labels
            by = {"batch": count, "part": len(labels), "nothing": 1}[divided]
            losses.append(float(np.sum(errors**2) / by))
            gradients.append(2 * features.T @ errors / by)
        combined = {"SUM": sum(gradients), "MEAN": sum(gradients) / len(parts)}
        used = gradients if all_reduce is None else [combined[all_reduce]] * len(parts)
        told = [sum(losses)] * len(parts) if whole_loss else losses
        return _outcome([weight + sign * times * _LEARNING_RATE * each for each in used], told)

    return step


def _untouched(weight: Array, parts: tuple[Part, ...]) -> Outcome:
    """Returns what a step leaves that changes no copy; its shares of the loss are right."""
    right = _stepped()(weight, parts)
    return {**right, **{f"copies[{at}]": weight for at in range(len(parts))}}


def _outcome(copies: list[Any], losses: list[float]) -> Outcome:
    held = {f"copies[{at}]": np.asarray(copy) for at, copy in enumerate(copies)}
    return {**held, "shares": np.asarray(losses)}


def _answer(
    *,
    all_reduce: str | None = "SUM",
    divided: str = "batch",
    sign: float = -1,
    times: float = 1,
    update: bool = True,
    whole_loss: bool = False,
    returns: bool = True,
) -> Callable[..., Any]:
    """Returns an answer as a reader may write it, with the mistakes that are asked for."""

    def replica_step(weight: Any, features: Any, labels: Any, learning_rate: float, global_batch: int) -> Any:
        tf = start_tensorflow()
        with tf.GradientTape() as tape:
            squares = tf.square(tf.linalg.matvec(features, weight) - labels)
            by = {"batch": global_batch, "part": len(labels), "nothing": 1}[divided]
            loss = tf.reduce_sum(squares) / by
        gradient, context = tape.gradient(loss, weight), tf.distribute.get_replica_context()
        if all_reduce:
            gradient = context.all_reduce(all_reduce, gradient)
        if update:
            weight.assign_add(sign * times * learning_rate * gradient)
        if whole_loss:
            loss = context.all_reduce("SUM", loss)
        return loss if returns else None

    return replica_step


def _dividing_last(weight: Any, features: Any, labels: Any, learning_rate: float, global_batch: int) -> Any:
    """Divides by the global batch at the end: right, too."""
    tf = start_tensorflow()
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum((tf.linalg.matvec(features, weight) - labels) ** 2)
    summed = tf.distribute.get_replica_context().all_reduce(
        tf.distribute.ReduceOp.SUM, tape.gradient(loss, weight)
    )
    weight.assign(weight - learning_rate * summed / global_batch)
    return loss / global_batch


@exercise(
    "09-by-hand",
    right=_answer(),
    also=[_dividing_last],
    wrong=[
        (_answer(all_reduce=None), "drift apart"),
        (_answer(all_reduce="MEAN"), "too small"),
        (_answer(all_reduce="MEAN", times=2), "only where there are two"),
        (_answer(all_reduce=None, times=2), "must come from all of them"),
        (_answer(divided="part"), "its own part"),
        (_answer(divided="part", all_reduce="MEAN"), "Parts may differ"),
        (_answer(divided="nothing"), "a sum over the batch"),
        (_answer(sign=1), "up the slope"),
        (_answer(update=False), "no copy has changed"),
        (_answer(whole_loss=True), "the whole loss"),
        (_answer(returns=False), "Return the replica's share"),
        (0.5, "function"),
    ],
    on_devices=True,
)
def by_hand(answer: Callable[..., Any]) -> str | None:
    """A step of gradient descent as one of several replicas takes it."""
    require_devices(max(map(len, _SIZES)))
    random = np.random.default_rng(0)
    return judge(
        answer,
        _stepped(),
        [_case(random, sizes) for sizes in _SIZES],
        run=_on_replicas,
        misconceptions={
            _stepped(all_reduce=None): _(
                "Each replica uses its own gradient here, and the copies drift apart. Combine the gradients"
                " first."
            ),
            _stepped(all_reduce="MEAN"): _(
                "The steps are too small. The losses are divided by the global batch already: what combines"
                " their gradients?"
            ),
            _stepped(all_reduce="MEAN", times=2): _(
                "This is right only where there are two replicas. There may be any number of them."
            ),
            _stepped(divided="part"): _("Each replica divides by the examples of its own part here."),
            _stepped(divided="part", all_reduce="MEAN"): _(
                "This is right for equal parts. Parts may differ in size: divide by the global batch."
            ),
            _stepped(divided="nothing"): _("That is a sum over the batch. A mean is asked for."),
            _stepped(sign=1): _("These steps go up the slope: subtract the gradient."),
            _untouched: _("The shares are right, and no copy has changed. Assign the new weight."),
            _stepped(whole_loss=True): _(
                "The copies are right. Each replica returns the whole loss; return its own share."
            ),
        },
        tolerance=1e-3,
        advice=_("What can a replica compute from its own part, and what must come from all of them?"),
    )


def _case(random: np.random.Generator, sizes: tuple[int, ...]) -> Case:
    weight = random.normal(size=_FEATURES).astype(np.float32)
    parts = tuple(
        (
            random.normal(size=(size, _FEATURES)).astype(np.float32),
            random.normal(size=size).astype(np.float32),
        )
        for size in sizes
    )
    told = _("examples on each replica: {sizes}", sizes=_(", ").join(map(str, sizes)))
    return Case((weight, parts), told=told)


def _on_replicas(replica_step: Callable[..., Any], weight: Array, parts: tuple[Part, ...]) -> Outcome:
    count = sum(len(labels) for _features, labels in parts)
    with on_devices() as (tf, _dtensor):
        strategy = import_module("course_lib.strategies").mirrored(len(parts))
        with strategy.scope():
            variable = tf.Variable(weight)

        def given(kind: int) -> Any:
            return strategy.experimental_distribute_values_from_function(
                lambda context: tf.constant(parts[context.replica_id_in_sync_group][kind])
            )

        returned = strategy.run(replica_step, args=(variable, given(0), given(1), _LEARNING_RATE, count))
        copies = [copy.numpy() for copy in strategy.experimental_local_results(variable)]
        shares = [plain(share) for share in strategy.experimental_local_results(returned)]
    if not all(map(is_number, shares)):
        raise CourseError(
            _("Your function does not return one number."),
            allowed=_("the replica's share of the loss"),
            cure=_("Return the replica's share: the sum of its losses, divided by the global batch."),
        )
    return _outcome(copies, shares)
