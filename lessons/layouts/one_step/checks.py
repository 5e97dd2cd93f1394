"""The exercises of this lesson: the layouts of a step on images, and a data-parallel step by hand."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case, drawn, judge
from course_lib.exercises.values import Array
from course_lib.i18n import _
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from lessons.layouts.layout_hints import layouts_hint

_MESH = MeshSpec([("batch", 8)])
_LAYOUTS = {
    "images": LayoutSpec(["batch", UNSHARDED, UNSHARDED], _MESH),
    "labels": LayoutSpec(["batch"], _MESH),
    "gradient": LayoutSpec([UNSHARDED, UNSHARDED], _MESH),
    "mean_loss": LayoutSpec([], _MESH),
}


@exercise("one_step-layouts", right=_LAYOUTS)
def layouts(answer: dict[str, Any]) -> str | None:
    """The layouts of a data-parallel step on images."""
    hints = {
        "images": _("The examples lie along the first axis of the images. Split only that axis."),
        "labels": _("The labels are split like the images that they belong to."),
        "gradient": _(
            "The gradient is a sum over the images. After the all-reduce every device has all of it."
        ),
    }
    return layouts_hint(answer, _LAYOUTS, hints)


Parts = list[Array]


def _gradients(copies: Parts, xs: Parts, ys: Parts) -> Parts:
    """Returns the gradient of each device's own mean loss."""
    return [2 * (x @ w - y) @ x / len(y) for w, x, y in zip(copies, xs, ys, strict=True)]


def _step(copies: Parts, xs: Parts, ys: Parts, learning_rate: float) -> Parts:
    gradients = _gradients(copies, xs, ys)
    return [w - learning_rate * sum(gradients) / len(gradients) for w in copies]


def _scaled(factor: Callable[[Parts], float]) -> Callable[..., Parts]:
    return lambda copies, xs, ys, learning_rate: _step(copies, xs, ys, learning_rate * factor(xs))


def _alone(copies: Parts, xs: Parts, ys: Parts, learning_rate: float) -> Parts:
    gradients = _gradients(copies, xs, ys)
    return [w - learning_rate * gradient for w, gradient in zip(copies, gradients, strict=True)]


def _averaged(copies: Parts, xs: Parts, ys: Parts, _learning_rate: float) -> Array:
    gradient: Array = np.mean(_gradients(copies, xs, ys), axis=0)
    return gradient


def _over_features(copies: Parts, xs: Parts, ys: Parts, learning_rate: float) -> Parts:
    return [w - learning_rate * np.mean(_gradients(copies, xs, ys)) for w in copies]


def _unless_generator(answer: Callable[..., Any], *given: Any) -> Any:
    new_copies = answer(*given)
    return "generator" if inspect.isgenerator(new_copies) else new_copies


@exercise("one_step-step", right=_step)
def step(answer: Callable[..., Any]) -> str | None:
    """A data-parallel step for the squared error, on the parts that devices hold."""
    unequal = _(
        "Here the copies are unequal. Each device computes its gradient from its own copy and its own rows,"
        " and updates its own copy."
    )
    gradient = _("This is the gradient. Multiply it by the learning rate, and subtract that from each copy.")
    random = np.random.default_rng(1)
    return judge(
        answer,
        _step,
        [*drawn(_parts, count=20), *(Case(_parts(random, apart=True), hint=unequal) for _number in range(3))],
        misconceptions={
            _alone: _("Each device follows its own gradient here. All must subtract the same one."),
            _scaled(len): _(
                "The gradient is too large. Added up, the gradients of the devices' means are not yet that of"
                " the mean over all examples."
            ),
            _scaled(lambda xs: len(xs) / 8): _("There need not be eight devices. Divide by their number."),
            _scaled(lambda xs: 1 / len(xs[0])): _(
                "`own_gradient` has divided by a device's rows already. Divide only by the number of devices."
            ),
            _over_features: _(
                "`np.mean` without `axis=0` averages over the entries of the gradient, too."
                " Average over the devices only."
            ),
            lambda copies, xs, ys, _rate: _step(copies, xs, ys, 1): _(
                "The learning rate is missing. Multiply the gradient by it."
            ),
            _averaged: gradient,
            lambda copies, *given: [_averaged(copies, *given)] * len(copies): gradient,
            lambda *_given: "generator": _("This is a generator. Return a list."),
            _scaled(lambda _xs: -1): _("The update goes up the gradient. Subtract it."),
            lambda *given: _step(*given)[0]: _(
                "This is one new copy. Return a list with one for each device."
            ),
            lambda copies, *given: list(np.subtract(copies, _step(copies, *given))): _(
                "These are the updates. Subtract them from the copies, and return the new copies."
            ),
        },
        run=_unless_generator,
    )


def _parts(random: np.random.Generator, *, apart: bool = False) -> tuple[Parts, Parts, Parts, float]:
    """Returns what devices hold, and a learning rate; with copies that are apart where that is asked for."""
    devices, rows, features = (int(random.integers(low, 5)) for low in (2, 1, 1))

    def numbers(*shape: int) -> Array:
        return random.integers(-4, 5, shape) / 2

    start = numbers(features)
    copies = [start + at if apart else start.copy() for at in range(devices)]
    xs, ys = numbers(devices, rows, features), numbers(devices, rows)
    return copies, list(xs), list(ys), float(random.choice([0.125, 0.25, 0.5]))
