"""The exercises of lesson 03: the layouts of a step on images, and the moments of the rows that count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import drawn, judge
from course_lib.exercises.real_devices import on_devices
from course_lib.i18n import _, ngettext
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec

Array = npt.NDArray[Any]
Moments = tuple[Array, Array]

_MESH = MeshSpec([("batch", 8)])
_ROWS = LayoutSpec(["batch", UNSHARDED], _MESH)
_LAYOUTS = {
    "images": LayoutSpec(["batch", UNSHARDED, UNSHARDED], _MESH),
    "labels": LayoutSpec(["batch"], _MESH),
    "losses": LayoutSpec(["batch"], _MESH),
    "gradient": LayoutSpec([UNSHARDED, UNSHARDED], _MESH),
    "mean_loss": LayoutSpec([], _MESH),
}


@exercise("03-layouts", right=_LAYOUTS)
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
    for name, right in _LAYOUTS.items():
        layout = answer.get(name)
        if not isinstance(layout, LayoutSpec):
            return _("The dictionary needs a dtensor.Layout for {name!r}.", name=name)
        if layout.num_axes != right.num_axes:
            return ngettext(
                "The tensor {name!r} has {count} axis.",
                "The tensor {name!r} has {count} axes.",
                right.num_axes,
                name=name,
            )
        if layout.mesh != _MESH:
            return _("Use `mesh`, with its one dimension batch of 8.")
        if layout != right:
            return hints[name]
    return None


def _moments(hidden: Array, weights: Array) -> Moments:
    return _centred(hidden, weights, weights.sum(), weights.sum())


def _centred(hidden: Array, weights: Array, mean_of: float, variance_of: float) -> Moments:
    """Returns weighted sums of the rows, and of their squares around the first, each divided by a number."""
    mean = (weights * hidden).sum(axis=0) / mean_of
    return mean, (weights * (hidden - mean) ** 2).sum(axis=0) / variance_of


@exercise("03-moments", right=_moments, on_devices=True)
def moments(answer: Callable[..., Any]) -> str | None:
    """The moments of the rows of weight 1, of a batch that lies on eight devices."""
    misconceptions: dict[Callable[[Array, Array], Any], str] = {
        lambda hidden, weights: (hidden.mean(axis=0), hidden.var(axis=0)): _(
            "These are the moments of all rows: the padding counts too."
        ),
        lambda hidden, weights: _centred(hidden, weights, len(hidden), len(hidden)): _(
            "This divides by the number of all rows. How many of them count?"
        ),
        lambda hidden, weights: ((weights * hidden).mean(axis=0), (weights * hidden).var(axis=0)): _(
            "This divides by the number of all rows. How many of them count?"
        ),
        lambda hidden, weights: (
            _moments(hidden, weights)[0],
            ((hidden - _moments(hidden, weights)[0]) ** 2).mean(axis=0),
        ): _("The mean is right. In the variance the padding counts too."),
        lambda hidden, weights: (_moments(hidden, weights)[0], np.sqrt(_moments(hidden, weights)[1])): _(
            "The mean is right. The second is a standard deviation; its square is asked for."
        ),
    }
    advice = _("Each row counts as often as its weight says, in the mean and in the variance.")
    cases = drawn(_padded_batch, count=4)
    return judge(answer, _moments, cases, misconceptions=misconceptions, run=_on_eight_devices, advice=advice)


def _on_eight_devices(answer: Callable[..., Any], hidden: Array, weights: Array) -> Any:
    """Returns what a function makes of two DTensors, each of its results joined from what devices hold."""
    with on_devices() as (tf, dtensor):
        given = dtensor.pack(hidden, _ROWS), dtensor.pack(weights, _ROWS)
        results = tf.function(answer, autograph=False)(*given)
        return None if results is None else tf.nest.map_structure(dtensor.to_numpy, results)


def _padded_batch(random: np.random.Generator) -> tuple[Array, Array]:
    """Returns rows, and weights of which some are 0 and at least two are 1."""
    size = int(random.choice([8, 16]))
    hidden, weights = random.integers(0, 5, (size, 3)), random.integers(0, 2, (size, 1))
    places = random.choice(size, 3, replace=False)
    weights[places[:2]], weights[places[2]] = 1, 0
    return hidden.astype(np.float32), weights.astype(np.float32)
