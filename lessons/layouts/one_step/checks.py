"""The exercises of this lesson: the layouts of a step on images, and the moments of the rows that count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from course_lib.errors import CourseError
from course_lib.exercises.checks import exercise
from course_lib.exercises.devices import on_devices, refuse_new_axis
from course_lib.exercises.judging import drawn, judge
from course_lib.exercises.values import Array
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from lessons.layouts.layout_hints import layouts_hint

Moment = Callable[[Array, Array], Any]
Mistakes = dict[Moment, str]

_MESH = MeshSpec([("batch", 8)])
_ROWS = LayoutSpec(["batch", UNSHARDED], _MESH)
_LAYOUTS = {
    "images": LayoutSpec(["batch", UNSHARDED, UNSHARDED], _MESH),
    "labels": LayoutSpec(["batch"], _MESH),
    "losses": LayoutSpec(["batch"], _MESH),
    "gradient": LayoutSpec([UNSHARDED, UNSHARDED], _MESH),
    "mean_loss": LayoutSpec([], _MESH),
}


@exercise("one_step-layouts", right=_LAYOUTS)
def layouts(answer: dict[str, Any]) -> str | None:
    """The layouts of a data-parallel step on images."""
    hints = {
        "images": _("The examples lie along the first axis of the images; split only that."),
        "labels": _("The labels are split like the images that they belong to."),
        "losses": _(
            "Each device computes the losses of its own images. No device needs those of the others."
        ),
        "gradient": _("A gradient is laid out as its variable, and each device holds the whole weight."),
    }
    return layouts_hint(answer, _LAYOUTS, hints)


def _mean(hidden: Array, weights: Array) -> Array:
    return np.asarray((weights * hidden).sum(axis=0) / weights.sum())


def _squares(hidden: Array, weights: Array) -> Array:
    return (hidden - _mean(hidden, weights)) ** 2


def _variance(hidden: Array, weights: Array) -> Array:
    return _mean(_squares(hidden, weights), weights)


@exercise("one_step-moments", right=_variance)
def moments(answer: Callable[..., Any]) -> str | None:
    """The moments of the rows of weight 1, of a batch that lies on eight devices."""
    refuse_new_axis(answer)
    hint = _hint(answer, _on_eight_devices)
    if hint is None or _hint(answer, _on_one_device) is not None:
        return hint
    return _(
        "On one device this is right, on eight it is not: rows picked by `tf.where`, `tf.boolean_mask` or"
        " slices with tensors can be wrong. Multiply by the weights instead."
    )


def _hint(answer: Callable[..., Any], called: Callable[..., Any]) -> str | None:
    """Returns what is wrong with the means, or else with the variances; None where both are right."""
    cases = drawn(_padded_batch, count=4)
    wrong_means: Mistakes = {
        lambda hidden, weights: hidden.mean(axis=0): _(
            "The mean is that of all rows: the padding counts too."
        ),
        lambda hidden, weights: (weights * hidden).mean(axis=0): _(
            "The sum for the mean is divided by the number of all rows. How many of them count?"
        ),
        _variance: _("The mean comes first, then the variance."),
    }
    wrong_variances: Mistakes = {
        lambda hidden, weights: _squares(hidden, weights).mean(axis=0): _(
            "The mean is right. In the variance the padding counts too."
        ),
        lambda hidden, weights: (weights * _squares(hidden, weights)).mean(axis=0): _(
            "The mean is right. The variance is divided by the number of all rows. How many of them count?"
        ),
        lambda hidden, weights: np.sqrt(_variance(hidden, weights)): _(
            "The mean is right. The second is a standard deviation; its square is asked for."
        ),
    }
    advice = _(
        "Both results have the shape (units,): the mean of the rows of weight 1, then the mean of their"
        " squared distances from it."
    )
    parts = ((_mean, wrong_means), (_variance, wrong_variances))
    hints = (
        judge(
            answer,
            right,
            cases,
            misconceptions=wrong,
            run=lambda *given, at=at: called(*given)[at],
            advice=advice,
        )
        for at, (right, wrong) in enumerate(parts)
    )
    return next(filter(None, hints), None)


def _on_eight_devices(answer: Callable[..., Any], hidden: Array, weights: Array) -> tuple[Any, Any]:
    """Returns the two results of a function of DTensors, joined from what devices hold."""
    with on_devices() as (tf, dtensor):
        given = dtensor.pack(hidden, _ROWS), dtensor.pack(weights, _ROWS)
        return _pair(tf.nest.map_structure(dtensor.to_numpy, tf.function(answer)(*given)))


def _on_one_device(answer: Callable[..., Any], hidden: Array, weights: Array) -> tuple[Any, Any]:
    """Returns the same of ordinary tensors."""
    tf = start_tensorflow()
    return _pair(answer(tf.constant(hidden), tf.constant(weights)))


def _pair(results: Any) -> tuple[Any, Any]:
    if not isinstance(results, (tuple, list)) or len(results) != 2:
        raise CourseError(_("Two results are asked for: return the mean, then the variance."))
    return results[0], results[1]


def _padded_batch(random: np.random.Generator) -> tuple[Array, Array]:
    """Returns rows, and weights of which some are 0 and at least two are 1."""
    size = int(random.choice([8, 16]))
    hidden, weights = random.integers(0, 5, (size, 3)), random.integers(0, 2, (size, 1))
    places = random.choice(size, 3, replace=False)
    weights[places[:2]], weights[places[2]] = 1, 0
    return hidden.astype(np.float32), weights.astype(np.float32)
