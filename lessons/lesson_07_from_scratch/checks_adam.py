"""Exercise 07-adam: Adam on the host, in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import drawn, judge
from course_lib.i18n import _

Array = npt.NDArray[Any]
Adam = Callable[[Array, list[Array], float], Any]

_BETA_1, _BETA_2, _EPSILON = 0.9, 0.999, 1e-7


def _adam(
    *,
    betas: tuple[float, float] = (_BETA_1, _BETA_2),
    factor: Callable[[float], float] = lambda step: np.sqrt(1 - _BETA_2**step) / (1 - _BETA_1**step),
    divisor: Callable[[Array, float], Array] = lambda square, step: np.sqrt(square) + _EPSILON,
    scale: Callable[[float], float] = lambda learning_rate: -learning_rate,
) -> Adam:
    """Returns Adam, or with one of the parts replaced what a mistake in it makes of Adam."""

    def adam(variable: Array, gradients: list[Array], learning_rate: float) -> Array:
        value = np.array(variable, np.float64)
        mean, square = np.zeros_like(value), np.zeros_like(value)
        for step, gradient in enumerate(gradients, 1):
            mean = betas[0] * mean + (1 - betas[0]) * gradient
            square = betas[1] * square + (1 - betas[1]) * gradient**2
            value = value + scale(learning_rate) * factor(step) * mean / divisor(square, step)
        return value

    return adam


right = _adam()
_uncorrected = _adam(factor=lambda step: 1.0)
_frozen = _adam(factor=lambda step: np.sqrt(1 - _BETA_2) / (1 - _BETA_1))
_one_behind = _adam(  # 0 / 0 in the first step: everything is nan from there on
    factor=lambda step: np.sqrt(1 - _BETA_2 ** (step - 1)) / np.float64(1 - _BETA_1 ** (step - 1))
)
_one_ahead = _adam(factor=lambda step: np.sqrt(1 - _BETA_2 ** (step + 1)) / (1 - _BETA_1 ** (step + 1)))
_root_forgotten = _adam(factor=lambda step: (1 - _BETA_2**step) / (1 - _BETA_1**step))
_upside_down = _adam(factor=lambda step: (1 - _BETA_1**step) / np.sqrt(1 - _BETA_2**step))
_epsilon_late = _adam(divisor=lambda square, step: np.sqrt(square) + _EPSILON * np.sqrt(1 - _BETA_2**step))
_epsilon_in_root = _adam(divisor=lambda square, step: np.sqrt(square + _EPSILON))
_without_root = _adam(divisor=lambda square, step: square + _EPSILON)
_without_epsilon = _adam(divisor=lambda square, step: np.sqrt(square))
_betas_swapped = _adam(betas=(_BETA_2, _BETA_1))
_betas_swapped_everywhere = _adam(
    betas=(_BETA_2, _BETA_1), factor=lambda step: np.sqrt(1 - _BETA_1**step) / (1 - _BETA_2**step)
)
_uphill = _adam(scale=lambda learning_rate: learning_rate)
_rate_of_the_text = _adam(scale=lambda learning_rate: -0.001)
_without_rate = _adam(scale=lambda learning_rate: -1.0)


def _without_memory(variable: Array, gradients: list[Array], learning_rate: float) -> Array:
    value = np.array(variable, np.float64)
    for gradient in gradients:
        value = right(value, [gradient], learning_rate)
    return value


def read_before_written(variable: Array, gradients: list[Array], learning_rate: float) -> Array:
    """Moves by the averages of the step before, as a step does that reads what it has not yet written."""
    value = np.array(variable, np.float64)
    mean, square = np.zeros_like(value), np.zeros_like(value)
    for step, gradient in enumerate(gradients, 1):
        factor = np.sqrt(1 - _BETA_2**step) / (1 - _BETA_1**step)
        value = value - learning_rate * factor * mean / (np.sqrt(square) + _EPSILON)
        mean = _BETA_1 * mean + (1 - _BETA_1) * gradient
        square = _BETA_2 * square + (1 - _BETA_2) * gradient**2
    return value


def _by_the_gradient(variable: Array, gradients: list[Array], learning_rate: float) -> Array:
    value, square = np.array(variable, np.float64), np.zeros_like(variable, np.float64)
    for step, gradient in enumerate(gradients, 1):
        square = _BETA_2 * square + (1 - _BETA_2) * gradient**2
        factor = np.sqrt(1 - _BETA_2**step) / (1 - _BETA_1**step)
        value = value - learning_rate * factor * gradient / (np.sqrt(square) + _EPSILON)
    return value


def _corrected_in_place(variable: Array, gradients: list[Array], learning_rate: float) -> Array:
    value = np.array(variable, np.float64)
    mean, square = np.zeros_like(value), np.zeros_like(value)
    for step, gradient in enumerate(gradients, 1):
        mean = (_BETA_1 * mean + (1 - _BETA_1) * gradient) / (1 - _BETA_1**step)
        square = (_BETA_2 * square + (1 - _BETA_2) * gradient**2) / (1 - _BETA_2**step)
        value = value - learning_rate * mean / (np.sqrt(square) + _EPSILON)
    return value


def _moved_once(variable: Array, gradients: list[Array], learning_rate: float) -> Array:
    before = np.asarray(right(variable, gradients[:-1], learning_rate))
    return np.asarray(variable + np.asarray(right(variable, gradients, learning_rate)) - before)


def _first_gradient(variable: Array, gradients: list[Array], learning_rate: float) -> Array:
    return np.asarray(right(variable, gradients[:1], learning_rate))


def _last_gradient(variable: Array, gradients: list[Array], learning_rate: float) -> Array:
    return np.asarray(right(variable, gradients[-1:], learning_rate))


def _change(variable: Array, gradients: list[Array], learning_rate: float) -> Array:
    return np.asarray(right(variable, gradients, learning_rate)) - variable


def _draw(random: np.random.Generator) -> tuple[Array, list[Array], float]:
    """Returns a variable, its gradients, some as small as epsilon, and a learning rate."""
    scale = 10.0 ** random.choice([-6, -6, 0, 1], 3)
    count = int(random.integers(3, 6))
    gradients = [(scale * random.integers(1, 9, 3) * random.choice([-1, 1, 1], 3)) for _each in range(count)]
    return random.integers(-2, 3, 3).astype(float), gradients, 0.5


@exercise(
    "07-adam",
    right=right,
    also=[lambda variable, gradients, learning_rate: list(right(variable, gradients, learning_rate))],
    wrong=[
        (_uncorrected, "not corrected"),
        (_frozen, "first step for ever"),
        (_one_behind, "The first step has the number 1"),
        (_one_ahead, "The first step has the number 1"),
        (_root_forgotten, "The square's correction"),
        (_upside_down, "upside down"),
        (_epsilon_late, "corrected root"),
        (_epsilon_in_root, "under the root"),
        (_without_root, "root of the average square"),
        (_without_epsilon, "not added to the root"),
        (_betas_swapped, "0.9 belongs"),
        (_betas_swapped_everywhere, "0.9 belongs"),
        (_uphill, "wrong way"),
        (_rate_of_the_text, "third argument"),
        (_without_rate, "third argument"),
        (_without_memory, "from one gradient to the next"),
        (read_before_written, "before this gradient"),
        (_by_the_gradient, "gradient itself"),
        (_corrected_in_place, "corrected average is kept"),
        (_moved_once, "moves once"),
        (_first_gradient, "first gradient only"),
        (_last_gradient, "last gradient only"),
        (_change, "the change alone"),
        (lambda variable, gradients, learning_rate: None, "return"),
        (0.5, "function"),
    ],
)
def adam(answer: Adam) -> str | None:
    """A variable after one update of Adam for each gradient."""
    swapped = _("0.9 belongs to the gradient and 0.999 to its square.")
    no_rate = _("The learning rate is the third argument: multiply by it.")
    off_by_one = _("The first step has the number 1, the next one 2: is that so in your corrections?")
    return judge(
        answer,
        right,
        drawn(_draw, 20),
        misconceptions={
            _uncorrected: _("The averages begin at zero and are not corrected for that: use $c_t$."),
            _frozen: _("The correction of the first step for ever: count the steps."),
            _one_behind: off_by_one,
            _one_ahead: off_by_one,
            _root_forgotten: _("The square's correction stands under a root, like the square itself."),
            _upside_down: _("The correction is upside down."),
            _epsilon_late: _("Here epsilon is added to the corrected root. Add it before the correction."),
            _epsilon_in_root: _("Epsilon is under the root here. Add it to the root."),
            _without_root: _("Divide by the root of the average square, not by the square."),
            _without_epsilon: _(
                "Epsilon is not added to the root: it is missing, or the divisor has no brackets around it."
            ),
            _betas_swapped: swapped,
            _betas_swapped_everywhere: swapped,
            _rate_of_the_text: no_rate,
            _without_rate: no_rate,
            _uphill: _("This goes the wrong way: subtract."),
            _without_memory: _("The averages go on from one gradient to the next; so does the count."),
            read_before_written: _(
                "The variable moves by the averages from before this gradient. Move it by the new ones."
            ),
            _by_the_gradient: _(
                "The variable moves by the gradient itself. Move it by the gradient's average."
            ),
            _corrected_in_place: _(
                "Here a corrected average is kept for the next step. Keep it as it was, and correct the move."
            ),
            _moved_once: _("The variable moves once, at the end. Move it after each gradient."),
            _first_gradient: _("This takes the first gradient only. Is the `return` inside the loop?"),
            _last_gradient: _("This takes the last gradient only. Make an update for each."),
            _change: _("That is the change alone. Return the variable after it."),
        },
    )
