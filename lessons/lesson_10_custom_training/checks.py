"""The exercises of lesson 10 on parts, weights and penalties; importing it registers that on the step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.exercises import replica_runs
from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case, drawn, judge
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow
from course_lib.specs.received import split
from lessons.lesson_10_custom_training import checks_step  # noqa: F401 - it registers its exercise

Sizes = Sequence[int]
Losses = list[npt.NDArray[Any]]  # of each replica's examples
Penalties = list[float]

_OBJECTIVE_SIZES = ((2, 3), (1, 3, 2, 2))  # of the losses of two replicas, and of four


def _parts(num_examples: int, num_replicas: int) -> list[int]:
    return list(map(len, split(range(num_examples), num_replicas)))


def _draw_batch(random: np.random.Generator) -> tuple[int, int]:
    return int(random.integers(1, 20)), int(random.integers(2, 7))


@exercise("10-part-sizes", right=_parts)
def part_sizes(answer: Callable[..., Any]) -> str | None:
    """The number of examples that each replica gets of a batch."""
    return judge(
        answer,
        _parts,
        drawn(_draw_batch),
        misconceptions={
            lambda examples, replicas: list(map(len, np.array_split(np.arange(examples), replicas))): _(
                "These parts are as equal as they can be. TensorFlow's are not: look at the picture."
            ),
            lambda examples, replicas: (
                [examples // replicas] * (replicas - 1) + [examples - examples // replicas * (replicas - 1)]
            ): _("Here the parts are rounded down, and the last replica gets the rest."),
            lambda examples, replicas: [size for size in _parts(examples, replicas) if size]: _(
                "Give a number for every replica, also where it gets nothing."
            ),
        },
    )


def _default_weights(sizes: Sizes) -> list[float]:
    return [1 / (size * len(sizes)) if size else 0.0 for size in sizes]


def _draw_sizes(random: np.random.Generator) -> tuple[Sizes]:
    return (random.integers(1, 9, int(random.integers(2, 5))).tolist(),)


@exercise("10-example-weights", right=_default_weights)
def example_weights(answer: Callable[..., Any]) -> str | None:
    """What an example of each replica counts under the default reduction of Keras 3."""
    empty = _("A replica may have no example at all. Keras counts all replicas, also these.")
    edges = [Case(([3, 0],), hint=empty), Case(([2, 2, 1, 0],), hint=empty)]
    return judge(
        answer,
        _default_weights,
        [*drawn(_draw_sizes), *edges],
        misconceptions={
            lambda sizes: [1 / sum(sizes)] * len(sizes): _(
                "So each example should count. What does it count under the default?"
            ),
            lambda sizes: [1 / size for size in sizes]: _(
                "A replica divides by its own examples, and then by the number of replicas."
            ),
            lambda sizes: [size * len(sizes) for size in sizes]: _(
                "Those are the divisors. With which factor is a loss multiplied?"
            ),
        },
    )


def _objective(losses: Losses, penalties: Penalties) -> float:
    return float(np.mean(np.concatenate(losses)) + sum(penalties))


@exercise("10-objective", right=_objective, on_devices=True)
def objective(answer: Callable[..., Any]) -> str | None:
    """The objective of a replica with penalties, judged by its sum over the replicas."""
    return judge(
        answer,
        _objective,
        drawn(_draw_losses, 6),
        run=_objective_on_replicas,
        advice=_("That is the sum over the replicas of what your function returns."),
        misconceptions={
            lambda losses, penalties: _objective(losses, penalties * len(losses)): _(
                "The penalties are added once for every replica. Divide them by the number of replicas."
            ),
            lambda losses, penalties: _objective(losses, []): _("The penalties are left out."),
            lambda losses, penalties: sum(map(np.mean, losses)) + sum(penalties): _(
                "Here the losses are divided by the replica's own examples."
            ),
            lambda losses, penalties: np.mean([np.mean(part) for part in losses]) + sum(penalties): _(
                "Here a replica divides by its own examples and by the replicas, as Keras does by default."
                " That is right for equal parts only: divide by the global batch."
            ),
        },
    )


def _draw_losses(random: np.random.Generator) -> tuple[Losses, Penalties]:
    sizes = random.permutation(_OBJECTIVE_SIZES[random.integers(len(_OBJECTIVE_SIZES))])
    losses = [(random.integers(1, 20, size) / 4).astype(np.float32) for size in sizes]
    return losses, (random.integers(1, 9, 3) / 2).tolist()


def _objective_on_replicas(answer: Callable[..., Any], losses: Losses, penalties: Penalties) -> float:
    tf, strategy = start_tensorflow(), replica_runs.replicas(len(losses))

    @tf.function  # type: ignore[untyped-decorator]  # as in a loop: numbers of Python would stay as they are
    def run(losses: Any, size: Any, penalties: Any) -> Any:
        return strategy.run(answer, (losses, penalties, size))

    size = tf.constant(sum(map(len, losses)))
    reports = run(replica_runs.sent(strategy, losses), size, list(map(tf.constant, penalties)))
    return sum(replica_runs.numbers(strategy, reports))
