"""The exercises of lesson 07: means, sizes, Adam, and an optimizer with a slot for each variable."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.exercises.checks import NotAnswered, exercise
from course_lib.exercises.faults import is_stub
from course_lib.exercises.judging import Case, drawn, judge, with_lists_or_arrays
from course_lib.exercises.real_devices import on_devices
from course_lib.i18n import _, ngettext
from course_lib.specs.plan import Plan, data_parallel
from lessons.lesson_07_from_scratch import replicas

Array = npt.NDArray[Any]
Losses = Sequence[float]
Counts = Sequence[int]
Adam = Callable[[Array, list[Array], float], Any]
Values = dict[str, Array]
Momentum = Callable[[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any], float], object]
Move = Callable[[Array, Array, Array], tuple[Array, Array]]

_BETA_1, _BETA_2, _EPSILON = 0.9, 0.999, 1e-7
_RATE, _STAYS, _STEPS, _ROWS = 0.05, 0.9, 4, 16
_AXES = {
    "hidden_weight": ("features", "hidden"),
    "hidden_bias": ("hidden",),
    "logits_weight": ("hidden", "classes"),
    "logits_bias": ("classes",),
}


def _epoch_mean(losses: Losses, examples: Counts) -> float:
    return float(np.average(losses, weights=examples))


def _draw_batches(random: np.random.Generator) -> tuple[Losses, Counts]:
    """Returns the mean losses of an epoch's batches and how many examples each had."""
    count = int(random.integers(2, 6))
    return (random.integers(1, 40, count) / 4).tolist(), random.integers(1, 20, count).tolist()


@exercise("07-epoch-mean", right=_epoch_mean)
def epoch_mean(answer: Callable[..., Any]) -> str | None:
    """The mean loss of an epoch whose last batch is smaller."""
    return judge(
        answer,
        _epoch_mean,
        drawn(_draw_batches),
        misconceptions={
            lambda losses, examples: np.mean(losses): _(
                "Here the small last batch counts as heavily as a full one."
            ),
            lambda losses, examples: np.sum(losses) / np.sum(examples): _(
                "Each loss is the mean of its batch. Make a sum over the batch of it before you add."
            ),
        },
        run=with_lists_or_arrays,
    )


def _num_parameters(sizes: Counts) -> int:
    return int(sum(inputs * outputs + outputs for inputs, outputs in pairwise(sizes)))


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
            lambda sizes: int(np.dot(sizes[:-1], sizes[1:])): _(
                "Those are the weights. A layer has biases too."
            ),
            lambda sizes: int(np.dot(sizes[:-1], np.add(sizes[1:], 1))): _(
                "A layer has a bias for each of its outputs, not of its inputs."
            ),
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
            _adam(lambda step: 1.0): _(
                "The averages begin at zero and are not corrected for that: use $c_t$."
            ),
            _adam(lambda step: _corrected(1)): _(
                "The correction of the first step for ever: count the steps."
            ),
            _adam(_corrected, epsilon_in_root=True): _("Epsilon is under the root here. Add it to the root."),
        },
    )


def _after(move: Move) -> Callable[[Values, list[replicas.Part]], Values]:
    """Returns a function that makes steps in float64, each variable and its velocity moved by `move`."""

    def steps(values: Values, parts: list[replicas.Part]) -> Values:
        variables = {name: value.astype(np.float64) for name, value in values.items()}
        velocities = {name: np.zeros_like(value) for name, value in variables.items()}
        for part in parts:
            gradients = replicas.gradient(variables, part)
            for name, variable in variables.items():
                moved = move(variable, velocities[name], _RATE * gradients[name])
                variables[name], velocities[name] = moved
        return _by_place(variables, velocities, np.asarray)

    return steps


def _by_place(
    variables: Mapping[str, Any], velocities: Mapping[str, Any], read: Callable[[Any], Array]
) -> Values:
    """Returns all values in one dictionary, by the words with which a reader's code gets at each."""
    places = {"variables": variables, "velocities": velocities}
    return {f'{place}["{name}"]': read(each) for place, held in places.items() for name, each in held.items()}


_after_right = _after(lambda w, v, step: (w + _STAYS * v - step, _STAYS * v - step))


def _run(momentum: Momentum, values: Values, parts: list[replicas.Part], *, plan: Plan | None) -> Values:
    """Returns what variables and velocities hold after steps with the reader's function, compiled."""
    with on_devices() as (tf, dtensor):

        def sent(array: Array, axes: tuple[str, ...]) -> Any:
            return tf.constant(array) if plan is None else dtensor.pack(array, plan.layout(axes))

        make = tf.Variable if plan is None else tf.experimental.dtensor.DVariable
        variables = {name: make(sent(values[name], axes)) for name, axes in _AXES.items()}
        velocities = {name: make(sent(0 * values[name], axes)) for name, axes in _AXES.items()}

        def step(rows: Any, labels: Any) -> None:
            with tf.GradientTape() as tape:
                hidden = tf.nn.relu(tf.matmul(rows, variables["hidden_weight"]) + variables["hidden_bias"])
                logits = tf.matmul(hidden, variables["logits_weight"]) + variables["logits_bias"]
                losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
                loss = tf.reduce_sum(losses)
            momentum(dict(variables), dict(velocities), tape.gradient(loss, variables), _RATE)

        compiled = tf.function(step, autograph=False)
        for rows, labels in parts:
            compiled(sent(rows, ("batch", "features")), sent(labels, ("batch",)))
        return _by_place(variables, velocities, np.asarray if plan is None else dtensor.to_numpy)


@exercise("07-momentum", right=_after_right, on_devices=True)
def momentum(answer: Momentum) -> str | None:
    """Steps with momentum in a compiled function, on one device and on eight."""
    if is_stub(answer):
        raise NotAnswered
    misconceptions: dict[Callable[..., Any], str] = {
        _after(lambda w, v, step: (w + v, _STAYS * v - step)): _(
            "The variables move by the velocity from before this step. Take the new one."
        ),
        _after(lambda w, v, step: (w - step, v)): _(
            "That is plain gradient descent: the velocities stay at zero. Write them for the next step."
        ),
        _after(lambda w, v, step: (w + _STAYS * (_STAYS * v - step) - step, _STAYS * v - step)): _(
            "The variables move by 0.9 of the new velocity and the gradient once more: perhaps it is computed"
            " twice, the second time from what was just written. Compute it once, and use that for both."
        ),
    }
    told = ngettext("{count} step of a small model", "{count} steps of a small model", _STEPS)
    groups = [replicas.draw_group(np.random.default_rng(seed), [_ROWS] * _STEPS) for seed in range(2)]
    cases = [Case((group.values, list(group.parts)), told=told) for group in groups]
    hint = judge(
        answer,
        _after_right,
        cases,
        misconceptions=misconceptions,
        run=partial(_run, plan=None),
        advice=_("Follow one number by hand through two steps."),
    )
    return hint or judge(
        answer,
        _after_right,
        cases[:1],
        run=partial(_run, plan=data_parallel(8)),
        advice=_(
            "On one device your function is right, on eight it is not: there a variable that was written"
            " may still read as before. Compute every new value first, keep it in a tensor, and write last."
        ),
    )
