"""Exercise 07-momentum: an optimizer with a slot for each variable, right on one device and on eight."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.exercises import replicas
from course_lib.exercises.checks import NotAnswered, exercise
from course_lib.exercises.faults import is_stub
from course_lib.exercises.judging import Case, judge
from course_lib.exercises.real_devices import on_devices
from course_lib.i18n import _, ngettext
from course_lib.specs.plan import Plan, data_parallel

Array = npt.NDArray[Any]
Values = dict[str, Array]
Part = replicas.Part
Momentum = Callable[[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any], float], object]
Move = Callable[[Array, Array, Array], tuple[Array, Array]]

_RATE, _STAYS, _STEPS, _ROWS = 0.05, 0.9, 4, 16
_AXES = {
    "hidden_weight": ("features", "hidden"),
    "hidden_bias": ("hidden",),
    "logits_weight": ("hidden", "classes"),
    "logits_bias": ("classes",),
}


def _after(move: Move) -> Callable[[Values, list[Part]], Values]:
    """Returns a function that makes steps in float64, each variable and its velocity moved by `move`."""

    def steps(values: Values, parts: list[Part]) -> Values:
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
_after_old_velocity = _after(lambda w, v, step: (w + v, _STAYS * v - step))
_after_plain_descent = _after(lambda w, v, step: (w - step, v))
_after_twice = _after(lambda w, v, step: (w + _STAYS * (_STAYS * v - step) - step, _STAYS * v - step))
_after_rate_outside = _after(
    lambda w, v, step: (w - _RATE * (_STAYS * v + step / _RATE), _STAYS * v + step / _RATE)
)


def _run(momentum: Momentum, values: Values, parts: list[Part], *, plan: Plan | None) -> Values:
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
        return _by_place(variables, velocities, partial(_fetch, dtensor))


def _fetch(dtensor: Any, variable: Any) -> Array:
    value = variable.read_value()
    return np.asarray(dtensor.to_numpy(value) if hasattr(variable, "layout") else value.numpy())


def _one_by_one(variables: Any, velocities: Any, gradients: Any, learning_rate: float) -> None:
    for name, variable in variables.items():
        velocity = _STAYS * velocities[name] - learning_rate * gradients[name]
        velocities[name].assign(velocity)
        variable.assign_add(velocity)


def _rows_and_labels(seed: int) -> tuple[Values, list[Part]]:
    random = np.random.default_rng(seed)
    group = replicas.draw_group(random, [_ROWS] * _STEPS)
    return group.values, list(group.parts)


@exercise("07-momentum", right=_one_by_one, on_devices=True)
def momentum(answer: Momentum) -> str | None:
    """Steps with momentum in a compiled function, on one device and on eight."""
    if is_stub(answer):
        raise NotAnswered
    misconceptions: dict[Callable[..., Any], str] = {
        _after_old_velocity: _("The variables move by the velocity from before this step. Take the new one."),
        _after_plain_descent: _(
            "That is plain gradient descent: the velocities stay at zero. Write them for the next step."
        ),
        _after_twice: _(
            "The variables move by 0.9 of the new velocity and the gradient once more: perhaps it is computed"
            " twice, the second time from what was just written. Compute it once, and use that for both."
        ),
        _after_rate_outside: _(
            "The variables are right. But the velocity has the learning rate inside: see the formula."
        ),
    }
    told = ngettext("{count} step of a small model", "{count} steps of a small model", _STEPS)
    cases = [Case(_rows_and_labels(seed), told=told) for seed in range(2)]
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
