"""The exercises of lesson 07 on means, sizes and Adam; importing it registers that on momentum, too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case, drawn, judge, with_lists_or_arrays
from course_lib.i18n import _
from lessons.lesson_07_from_scratch import checks_momentum  # noqa: F401 - it registers its exercise

Array = npt.NDArray[Any]
Losses = Sequence[float]
Counts = Sequence[int]
Adam = Callable[[Array, list[Array], float], Any]

_BETA_1, _BETA_2, _EPSILON = 0.9, 0.999, 1e-7


def _epoch_mean(losses: Losses, examples: Counts) -> float:
    return float(np.average(losses, weights=examples))


def _mean_of_means(losses: Losses, examples: Counts) -> float:
    return float(np.mean(losses))


def _sum_by_examples(losses: Losses, examples: Counts) -> float:
    return float(np.sum(losses) / np.sum(examples))


def _draw_batches(random: np.random.Generator) -> tuple[Losses, Counts]:
    """Returns the mean losses of an epoch's batches and how many examples each had.

    In most epochs only the last batch is smaller; in the others every one may be.
    """
    count, size = int(random.integers(2, 6)), int(random.choice([8, 16, 128]))
    smaller = random.integers(1, size // 2, count).tolist()
    sizes = smaller if random.random() < 0.2 else [size] * (count - 1) + smaller[-1:]
    return (random.integers(1, 40, count) / 4).tolist(), sizes


@exercise("07-epoch-mean", right=_epoch_mean)
def epoch_mean(answer: Callable[..., Any]) -> str | None:
    """The mean loss of an epoch whose last batch is smaller."""
    return judge(
        answer,
        _epoch_mean,
        drawn(_draw_batches),
        misconceptions={
            _mean_of_means: _("Here the small last batch counts as heavily as a full one."),
            _sum_by_examples: _(
                "Each loss is the mean of its batch. Make a sum over the batch of it before you add."
            ),
        },
        run=with_lists_or_arrays,
    )


def _num_parameters(sizes: Counts) -> int:
    return int(sum(inputs * outputs + outputs for inputs, outputs in pairwise(sizes)))


def _without_biases(sizes: Counts) -> int:
    return int(sum(inputs * outputs for inputs, outputs in pairwise(sizes)))


def _biases_of_inputs(sizes: Counts) -> int:
    return int(sum(inputs * outputs + inputs for inputs, outputs in pairwise(sizes)))


def _draw_sizes(random: np.random.Generator) -> tuple[Counts]:
    return (random.integers(2, 10, int(random.integers(2, 6))).tolist(),)


@exercise("07-parameters", right=_num_parameters)
def parameters(answer: Callable[..., Any]) -> str | None:
    """The number of parameters of a stack of dense layers."""
    return judge(
        answer,
        _num_parameters,
        drawn(_draw_sizes),
        misconceptions={
            _without_biases: _("Those are the weights. A layer has biases too."),
            _biases_of_inputs: _("A layer has a bias for each of its outputs, not of its inputs."),
        },
    )


def _corrected(step: int) -> float:
    return float(np.sqrt(1 - _BETA_2**step) / (1 - _BETA_1**step))


def _adam(correction: Callable[[int], float], *, epsilon_in_root: bool = False) -> Adam:
    """Returns Adam with that correction of the bias in a step."""

    def adam(variable: Array, gradients: list[Array], learning_rate: float) -> Array:
        value = np.array(variable, np.float64)
        mean, square = np.zeros_like(value), np.zeros_like(value)
        for step, gradient in enumerate(gradients, 1):
            mean = _BETA_1 * mean + (1 - _BETA_1) * gradient
            square = _BETA_2 * square + (1 - _BETA_2) * gradient**2
            divisor = np.sqrt(square + _EPSILON) if epsilon_in_root else np.sqrt(square) + _EPSILON
            value = value - learning_rate * correction(step) * mean / divisor
        return value

    return adam


right_adam = _adam(_corrected)
_uncorrected = _adam(lambda step: 1.0)
_frozen = _adam(lambda step: _corrected(1))
_epsilon_in_root = _adam(_corrected, epsilon_in_root=True)


def _read_before_written(variable: Array, gradients: list[Array], learning_rate: float) -> Array:
    """Moves by the averages of the step before, as a step does that reads what it has not yet written."""
    value = np.array(variable, np.float64)
    mean, square = np.zeros_like(value), np.zeros_like(value)
    for step, gradient in enumerate(gradients, 1):
        value = value - learning_rate * _corrected(step) * mean / (np.sqrt(square) + _EPSILON)
        mean = _BETA_1 * mean + (1 - _BETA_1) * gradient
        square = _BETA_2 * square + (1 - _BETA_2) * gradient**2
    return value


def _draw_gradients(random: np.random.Generator) -> tuple[Array, list[Array], float]:
    """Returns a variable, its gradients, some as small as epsilon, and a learning rate."""
    scale = 10.0 ** random.choice([-6, -6, 0, 1], 3)
    count = int(random.integers(3, 6))
    gradients = [(scale * random.integers(1, 9, 3) * random.choice([-1, 1, 1], 3)) for _each in range(count)]
    return random.integers(-2, 3, 3).astype(float), gradients, 0.5


@exercise("07-adam", right=right_adam)
def adam(answer: Adam) -> str | None:
    """A variable after one update of Adam for each gradient."""
    falling = Case(
        (np.zeros(2), [np.array([1.0, -2.0])] + 60 * [np.array([0.01, 0.02])], 0.5),
        _("The average of the squares may also fall. Use it as it is, not the greatest so far (AMSGrad)."),
        told=_("a large gradient and 60 small ones"),
    )
    return judge(
        answer,
        right_adam,
        [*drawn(_draw_gradients, 20), falling],
        misconceptions={
            _uncorrected: _("The averages begin at zero and are not corrected for that: use $c_t$."),
            _frozen: _("The correction of the first step for ever: count the steps."),
            _epsilon_in_root: _("Epsilon is under the root here. Add it to the root."),
            _read_before_written: _(
                "The variable moves by the averages from before this gradient. Move it by the new ones."
            ),
        },
    )
