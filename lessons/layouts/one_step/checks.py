"""The exercises of this lesson: the layouts of a step on images, and the moments of the rows that count."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
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


def _moments(
    hidden: Array, weights: Array, mean_of: Callable[[Array, Array], Array] = _mean
) -> dict[str, Array]:
    """Returns the mean and the variance, both made by one way to take a mean."""
    mean = mean_of(hidden, weights)
    return {"mean": mean, "variance": mean_of((hidden - mean) ** 2, weights)}


@exercise("one_step-moments", right=_moments)
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


def _hint(answer: Callable[..., Any], run: Callable[..., Any]) -> str | None:
    return judge(
        answer,
        _moments,
        drawn(_padded_batch, count=4),
        misconceptions={
            partial(_moments, mean_of=lambda hidden, _weights: hidden.mean(axis=0)): _(
                "The mean is that of all rows: the padding counts too."
            ),
            lambda hidden, weights: {
                name: np.sqrt(each) if name == "variance" else each
                for name, each in _moments(hidden, weights).items()
            }: _("The mean is right. The second is a standard deviation; its square is asked for."),
        },
        run=run,
        advice=_(
            "Both results have the shape (units,): the mean of the rows of weight 1, then the mean of their"
            " squared distances from it."
        ),
    )


def _on_eight_devices(answer: Callable[..., Any], hidden: Array, weights: Array) -> dict[str, Any]:
    """Returns the two results of a function of DTensors, joined from what devices hold."""
    with on_devices() as (tf, dtensor):
        given = dtensor.pack(hidden, _ROWS), dtensor.pack(weights, _ROWS)
        return _named(tf.nest.map_structure(dtensor.to_numpy, tf.function(answer)(*given)))


def _on_one_device(answer: Callable[..., Any], hidden: Array, weights: Array) -> dict[str, Any]:
    """Returns the same of ordinary tensors."""
    tf = start_tensorflow()
    return _named(answer(tf.constant(hidden), tf.constant(weights)))


def _named(results: Any) -> dict[str, Any]:
    if not isinstance(results, (tuple, list)) or len(results) != 2:
        raise CourseError(_("Two results are asked for: return the mean, then the variance."))
    return {"mean": results[0], "variance": results[1]}


def _padded_batch(random: np.random.Generator) -> tuple[Array, Array]:
    """Returns rows, and weights of which some are 0 and at least two are 1."""
    size = int(random.choice([8, 16]))
    hidden, weights = random.integers(0, 5, (size, 3)), random.integers(0, 2, (size, 1))
    places = random.choice(size, 3, replace=False)
    weights[places[:2]], weights[places[2]] = 1, 0
    return hidden.astype(np.float32), weights.astype(np.float32)
