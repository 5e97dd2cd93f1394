"""Exercise 10-objective: what a replica differentiates where the model has penalties."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.exercises import replica_runs
from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import drawn, judge
from course_lib.exercises.real_devices import on_devices
from course_lib.i18n import _

Parts = list[npt.NDArray[np.float32]]
Penalties = list[float]
Objective = Callable[..., Any]

_SIZES = ((2, 3), (1, 3, 2, 2))  # of the parts of two replicas, and of four


def _total(losses: Parts, penalties: Penalties) -> float:
    return float(np.mean(np.concatenate(losses)) + sum(penalties))


def _penalty_of_every_replica(parts: Parts, penalties: Penalties) -> float:
    return float(np.mean(np.concatenate(parts)) + len(parts) * sum(penalties))


def _without_penalties(parts: Parts, penalties: Penalties) -> float:
    return float(np.mean(np.concatenate(parts)))


def _own_means(parts: Parts, penalties: Penalties) -> float:
    return float(sum(map(np.mean, parts)) + sum(penalties))


def _own_means_over_replicas(parts: Parts, penalties: Penalties) -> float:
    return float(np.mean([np.mean(part) for part in parts]) + sum(penalties))


def _divided_twice(parts: Parts, penalties: Penalties) -> float:
    return float(np.mean(np.concatenate(parts)) + sum(penalties) / len(parts))


def _half_of_the_penalties(parts: Parts, penalties: Penalties) -> float:
    return float(np.mean(np.concatenate(parts)) + len(parts) * sum(penalties) / 2)


def _penalties_among_losses(parts: Parts, penalties: Penalties) -> float:
    losses = np.concatenate(parts)
    return float(np.mean(losses) + len(parts) * sum(penalties) / len(losses))


def _penalties_alone(parts: Parts, penalties: Penalties) -> float:
    return float(sum(penalties))


def _average(tf: Any, losses: Any, size: Any) -> Any:
    return tf.nn.compute_average_loss(losses, global_batch_size=size)


def _written(combine: Callable[[Any, Any, Any, Any], Any]) -> Objective:
    """Returns an answer as a reader may write it."""

    def objective(losses: Any, penalties: Any, global_batch_size: Any) -> Any:
        return combine(sys.modules["tensorflow"], losses, penalties, global_batch_size)

    return objective


_right = _written(
    lambda tf, losses, penalties, size: (
        _average(tf, losses, size) + tf.nn.scale_regularization_loss(penalties)
    )
)


@exercise(
    "10-objective",
    right=_right,
    also=[
        _written(
            lambda tf, losses, penalties, size: (
                tf.reduce_sum(losses) / tf.cast(size, tf.float32)
                + sum(penalties) / tf.distribute.get_strategy().num_replicas_in_sync
            )
        )
    ],
    wrong=[
        (
            _written(lambda tf, losses, penalties, size: _average(tf, losses, size) + sum(penalties)),
            "once for every replica",
        ),
        (_written(lambda tf, losses, penalties, size: _average(tf, losses, size)), "left out"),
        (
            _written(
                lambda tf, losses, penalties, size: (
                    tf.reduce_mean(losses) + tf.nn.scale_regularization_loss(penalties)
                )
            ),
            "replica's own examples",
        ),
        (
            _written(
                lambda tf, losses, penalties, size: (
                    tf.nn.compute_average_loss(losses) + tf.nn.scale_regularization_loss(penalties)
                )
            ),
            "as Keras does by default",
        ),
        (
            _written(
                lambda tf, losses, penalties, size: _average(tf, losses, size) + tf.reduce_mean(penalties)
            ),
            "the sum over the replicas",
        ),
        (
            _written(
                lambda tf, losses, penalties, size: (
                    _average(tf, losses, size)
                    + tf.nn.scale_regularization_loss(penalties)
                    / tf.distribute.get_strategy().num_replicas_in_sync
                )
            ),
            "twice",
        ),
        (
            _written(lambda tf, losses, penalties, size: _average(tf, losses, size) + sum(penalties) / 2),
            "two replicas only",
        ),
        (
            _written(lambda tf, losses, penalties, size: _average(tf, losses, size).numpy()),
            "fails",
        ),
        (
            _written(
                lambda tf, losses, penalties, size: (
                    _average(tf, losses, size) + _average(tf, tf.stack(penalties), size)
                )
            ),
            "do not depend on the batch",
        ),
        (
            _written(lambda tf, losses, penalties, size: tf.nn.scale_regularization_loss(penalties)),
            "losses of the examples",
        ),
        (_written(lambda tf, losses, penalties, size: losses), "Return one number"),
        (_written(lambda tf, losses, penalties, size: None), "return"),
        (0.5, "function"),
    ],
    on_devices=True,
)
def objective(answer: Objective) -> str | None:
    """The objective of a replica with penalties, judged by its sum over two replicas."""
    others: list[object] = []
    hint = judge(
        answer,
        _total,
        drawn(_draw, 6),
        run=partial(_on_replicas, others),
        advice=_("That is the sum over the replicas of what your function returns."),
        misconceptions={
            _penalty_of_every_replica: _(
                "The penalties are added once for every replica. Divide them by the number of replicas."
            ),
            _without_penalties: _("The penalties are left out."),
            _own_means: _("Here the losses are divided by the replica's own examples."),
            _own_means_over_replicas: _(
                "Here a replica divides by its own examples and by the replicas, as Keras does by default."
                " That is right for equal parts only: divide by the global batch."
            ),
            _divided_twice: _("The penalties are divided by the number of replicas twice."),
            _half_of_the_penalties: _("Half of the penalties is right for two replicas only."),
            _penalties_among_losses: _(
                "The penalties do not depend on the batch: do not divide by its size."
            ),
            _penalties_alone: _("Where are the losses of the examples?"),
        },
    )
    return _("Return one number from each replica.") if others else hint


def _draw(random: np.random.Generator) -> tuple[Parts, Penalties]:
    sizes = random.permutation(_SIZES[random.integers(len(_SIZES))])
    parts = [(random.integers(1, 20, size) / 4).astype(np.float32) for size in sizes]
    return parts, (random.integers(1, 9, 3) / 2).tolist()


def _on_replicas(others: list[object], answer: Objective, parts: Parts, penalties: Penalties) -> object:
    """Returns the sum over the replicas; `others` gets what one returned in place of a number."""
    with on_devices() as (tf, _dtensor):
        strategy = replica_runs.replicas(len(parts))

        def on_replica(losses: Any, size: Any, given: Any) -> Any:
            return answer(losses, given, size)

        @tf.function  # type: ignore[untyped-decorator]  # as in a loop: numbers of Python would stay as they are
        def run(losses: Any, size: Any, given: Any) -> Any:
            return strategy.run(on_replica, (losses, size, given))

        given = [tf.constant(each) for each in penalties]
        sent = replica_runs.sent(strategy, parts)
        reports = run(sent, tf.constant(sum(map(len, parts))), given)
        others += replica_runs.other_parts(strategy, reports)
        return replica_runs.summed(strategy, reports)
