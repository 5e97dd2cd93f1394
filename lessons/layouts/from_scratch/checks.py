"""The exercises of this lesson: Adam, and an optimizer with a slot for each variable on several devices."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any
from unittest import mock

import numpy as np

from course_lib.exercises.checks import exercise
from course_lib.exercises.devices import on_devices
from course_lib.exercises.judging import Case, drawn, judge
from course_lib.exercises.values import Array, NotAnswered
from course_lib.i18n import _, ngettext
from course_lib.specs.plan import data_parallel

Adam = Callable[[Array, list[Array], float], Any]
Part = Callable[[Array, int], Array]
Values = dict[str, Array]
Momentum = Callable[[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any], float], object]
Move = Callable[[Array, Array, Array], tuple[Array, Array]]

_EPSILON = 1e-7
_RATE, _STAYS, _STEPS, _ROWS = 0.05, 0.9, 4, 8
_SIZES = {"first": 2, "second": 3, "third": 1}


def _added(square: Array, step: int) -> Array:
    return np.asarray(np.sqrt(square) + _EPSILON)


def _to_the_corrected_root(square: Array, step: int) -> Array:
    return np.asarray(np.sqrt(square) + _EPSILON * np.sqrt(1 - 0.999**step))


def _adam(
    divisor: Part = _added,
    *,
    power: int = 1,
    beta_1: float = 0.9,
    beta_2: float = 0.999,
    first: int = 1,
    frozen: bool = False,
) -> Adam:
    """Returns Adam with that divisor of the mean, power of the correction, averages and first step."""

    def adam(variable: Array, gradients: list[Array], learning_rate: float) -> Array:
        value = np.array(variable, np.float64)
        mean, square = np.zeros_like(value), np.zeros_like(value)
        for step, gradient in enumerate(gradients, first):
            mean = beta_1 * mean + (1 - beta_1) * gradient
            square = beta_2 * square + (1 - beta_2) * gradient**2
            counted = first if frozen else step
            correction = (np.sqrt(1 - beta_2**counted) / (1 - beta_1**counted)) ** power
            value = value - learning_rate * correction * mean / divisor(square, step)
        return value

    return adam


right_adam = _adam()


def _draw_gradients(random: np.random.Generator) -> tuple[Array, list[Array], float]:
    """Returns a variable, its gradients, some as small as epsilon, and a learning rate."""
    scale = 10.0 ** random.choice([-6, -6, 0, 1], 3)
    count = int(random.integers(3, 6))
    gradients = [(scale * random.integers(1, 9, 3) * random.choice([-1, 1, 1], 3)) for _each in range(count)]
    return random.integers(-2, 3, 3).astype(float), gradients, float(random.choice([0.25, 0.5]))


class _Readymade(Exception):  # noqa: N818 - an answer that somebody else wrote
    pass


@contextlib.contextmanager
def _without_optimizers() -> Iterator[None]:
    """Has every optimizer of Keras raise, within the block."""

    def refuse(*_arguments: Any, **_options: Any) -> None:
        raise _Readymade

    keras = sys.modules.get("keras")
    if keras is None:
        yield
        return
    with mock.patch.object(keras.optimizers.Optimizer, "apply", refuse):
        yield


@exercise("from_scratch-adam", right=right_adam)
def adam(answer: Adam) -> str | None:
    """A variable after one update of Adam for each gradient."""
    used = []

    def watched(*inputs: Any) -> Any:
        try:
            found = answer(*inputs)
        except _Readymade:
            used.append(_("That is the Adam of Keras. Here you need one of your own, from the formulas."))
            raise
        if hasattr(found, "numpy"):
            used.append(_("That is a tensor. Work with NumPy alone, to have an answer found in another way."))
        return found

    with _without_optimizers():
        hint = judge(
            watched,
            right_adam,
            [Case((np.ones(1), [np.array([2.0])], 0.5)), *drawn(_draw_gradients, 20)],
            misconceptions=_adam_misconceptions(),
            advice=_("Hold your lines against the four formulas, one by one; $\\epsilon$ is `1e-7`."),
        )
    return used[0] if used else hint


def _adam_misconceptions() -> dict[Callable[..., Any], str]:
    return {
        _adam(power=0): _("The averages begin at zero and are not corrected for that: use $c_t$."),
        _adam(frozen=True): _(
            "Your factor is $c_1$ in every step, as in program B. Compute $c_t$ anew each time."
        ),
        _adam(power=-1): _("Look at $c_t$: which of its two factors is above the line, and which below?"),
        _adam(beta_1=0.999, beta_2=0.9): _(
            "The two averages are swapped: $m$ keeps 0.9 of what it was, and $v$ keeps 0.999."
        ),
        _adam(lambda square, step: square + _EPSILON): _("You divide by $v$ itself. Take its root."),
        _adam(lambda square, step: np.sqrt(square + _EPSILON)): _(
            "Epsilon is under the root here. Add it to the root."
        ),
        _adam(_to_the_corrected_root): _(
            "Epsilon is added to the root of the corrected average, as in PyTorch's Adam. The formula of"
            " this lesson adds it to the root of $v$ and corrects the quotient."
        ),
        _adam(first=2): _("Steps are counted from 1: the first gradient comes with $t = 1$."),
    }


def _draw_steps(random: np.random.Generator) -> tuple[Values, list[Values]]:
    """Returns the first values of three variables, and for each step the rows whose sums are gradients."""

    def numbers(*rows: int) -> Values:
        return {
            name: (random.integers(-4, 5, (*rows, size)) / 4).astype(np.float32)
            for name, size in _SIZES.items()
        }

    return numbers(), [numbers(_ROWS) for _step in range(_STEPS)]


def _after(move: Move) -> Callable[[Values, list[Values]], Values]:
    """Returns a function that makes steps in NumPy, each variable and its velocity moved by `move`."""

    def after(values: Values, steps: list[Values]) -> Values:
        variables = {name: value.astype(np.float64) for name, value in values.items()}
        velocities = {name: np.zeros_like(value) for name, value in variables.items()}
        for rows in steps:
            for name, variable in variables.items():
                moved = move(variable, velocities[name], _RATE * rows[name].sum(axis=0))
                variables[name], velocities[name] = moved
        return _by_place(variables, velocities, np.asarray)

    return after


def _by_place(
    variables: Mapping[str, Any], velocities: Mapping[str, Any], read: Callable[[Any], Array]
) -> Values:
    """Returns all values in one dictionary, by the words with which a reader's code gets at each."""
    places = {"weights": variables, "velocities": velocities}
    return {f'{place}["{name}"]': read(each) for place, held in places.items() for name, each in held.items()}


_after_right = _after(lambda w, v, step: (w + _STAYS * v - step, _STAYS * v - step))


def right_momentum(weights: Any, velocities: Any, gradients: Any, learning_rate: float) -> None:
    """Takes a step with momentum, in which no variable is read after it was written."""
    for name, weight in weights.items():
        velocity = _STAYS * velocities[name] - learning_rate * gradients[name]
        velocities[name].assign(velocity)
        weight.assign_add(velocity)


def _run(momentum: Momentum, values: Values, steps: list[Values], *, num_devices: int) -> Values:
    """Returns what variables and velocities hold after steps with the reader's function, compiled.

    The gradients are sums over rows, of which each device has its own: they need an all-reduce.
    """
    with on_devices() as (tf, dtensor):
        plan = data_parallel(num_devices)

        def sent(array: Array, axes: tuple[str, ...]) -> Any:
            return tf.constant(array) if num_devices == 1 else dtensor.pack(array, plan.layout(axes))

        make = tf.Variable if num_devices == 1 else tf.experimental.dtensor.DVariable
        variables = {name: make(sent(value, ("units",))) for name, value in values.items()}
        velocities = {name: make(sent(0 * value, ("units",))) for name, value in values.items()}

        def step(rows: Mapping[str, Any]) -> None:
            gradients = {name: tf.reduce_sum(each, axis=0) for name, each in rows.items()}
            momentum(dict(variables), dict(velocities), gradients, _RATE)

        compiled = tf.function(step, autograph=False)
        for rows in steps:
            compiled({name: sent(each, ("batch", "units")) for name, each in rows.items()})
        return _by_place(variables, velocities, np.asarray if num_devices == 1 else dtensor.to_numpy)


def _is_stub(function: object) -> bool:
    """Returns whether a function holds nothing but the `...` that the notebook came with."""

    def stub() -> None: ...

    code = getattr(function, "__code__", None)
    empty = stub.__code__
    return code is not None and (code.co_code, code.co_consts) == (empty.co_code, empty.co_consts)


@exercise("from_scratch-momentum", right=right_momentum)
def momentum(answer: Momentum) -> str | None:
    """Steps with momentum in a compiled function, on one device and on eight."""
    if _is_stub(answer):
        raise NotAnswered
    misconceptions: dict[Callable[..., Any], str] = {
        _after(lambda w, v, step: (w, v)): _(
            "Nothing was written. Write both new values into the variables, with `assign` or `assign_add`."
        ),
        _after(lambda w, v, step: (w, _STAYS * v - step)): _(
            "Your velocities are right. But the weights do not move: write them, too."
        ),
        _after(lambda w, v, step: (w + _STAYS * v - step, v)): _("Your velocities stay as they were."),
        _after(lambda w, v, step: (w + _STAYS * (_STAYS * v - step) - step, _STAYS * v - step)): _(
            "That is Nesterov's momentum, which looks a step ahead. Here a weight moves by its new velocity."
        ),
        _after(lambda w, v, step: (w + v, _STAYS * v - step)): _(
            "The weight moves by the old velocity. The second formula uses the new one."
        ),
        _after(lambda w, v, step: (w + _STAYS * v + step, _STAYS * v + step)): _(
            "Look at the sign: the velocity goes against the gradient."
        ),
        _after(lambda w, v, step: (w - _STAYS * v - step, _STAYS * v + step)): _(
            "Your weights are right. But your velocity has the other sign: here it is added to the weight."
        ),
        _after(lambda w, v, step: (w - _RATE * _STAYS * v - step, _STAYS * v + step / _RATE)): _(
            "Your weights are right. But here the learning rate belongs into the velocity."
        ),
        _after(lambda w, v, step: (w + _STAYS * v - step / 8, _STAYS * v - step / 8)): _(
            "Do not divide by the devices: with DTensor a gradient is that of the whole batch already."
        ),
    }
    told = ngettext("{count} step with three variables", "{count} steps with three variables", _STEPS)
    cases = [Case(_draw_steps(np.random.default_rng(seed)), told=told) for seed in range(2)]
    hint = judge(
        answer,
        _after_right,
        cases,
        misconceptions=misconceptions,
        run=partial(_run, num_devices=1),
        advice=_("Hold your lines against both formulas: the new velocity is $0.9 u - \\alpha g$."),
    )
    return hint or judge(
        answer,
        _after_right,
        cases[:1],
        run=partial(_run, num_devices=8),
        advice=_(
            "On one device your function is right, on eight it is not: there a variable that was written"
            " may still read as before. Do not read it any more: go on with the tensor that you computed, not"
            " with what `assign` returns."
        ),
    )
