"""The exercises of this lesson: layouts of two layers, and a product of factors that are both split."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from course_lib.exercises.checks import exercise
from course_lib.exercises.devices import on_devices
from course_lib.exercises.judging import Case, Function, judge
from course_lib.exercises.values import Array
from course_lib.i18n import _, join_sentences
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from lessons.layouts.layout_hints import layouts_hint

Parts = list[Array]

_MESH = MeshSpec([("batch", 2), ("model", 4)])
_LAYOUTS = {
    "W1": LayoutSpec([UNSHARDED, "model"], _MESH),
    "b1": LayoutSpec(["model"], _MESH),
    "y1": LayoutSpec(["batch", "model"], _MESH),
    "W2": LayoutSpec(["model", UNSHARDED], _MESH),
    "b2": LayoutSpec([UNSHARDED], _MESH),
    "y2": LayoutSpec(["batch", UNSHARDED], _MESH),
}
_MESHES = (
    MeshSpec([("batch", 2), ("feature", 2), ("model", 2)]),
    MeshSpec([("model", 2), ("feature", 4), ("batch", 1)]),
    MeshSpec([("feature", 2), ("model", 1), ("batch", 4)]),
)


@exercise("splitting_the_model-layouts", right=_LAYOUTS)
def layouts(answer: dict[str, Any]) -> str | None:
    """The layouts of two dense layers of which the first one's units are split."""
    rows = _("The rows of `{name}` are the examples: which dimension splits these?", name="y2")
    whole = _("Nothing splits the axis `second`.")
    hints = {
        "W1": _("`W1` has the axes `inputs`, then `hidden`: its layout has an entry for each, in order."),
        "b1": _("`b1` is added to `x @ W1`. Whoever holds a column of that needs the entry of `b1` for it."),
        "y1": _("`y1` has the rows of `x` and the columns of `W1`."),
        "W2": _("`y1 @ W2` sums over `hidden`. Which axis of `W2` is that, and what splits it in `y1`?"),
        "b2": whole,
        "y2": join_sentences([rows, whole]),
    }
    return layouts_hint(answer, _LAYOUTS, hints)


def _products(x_parts: Parts, weight_parts: Parts, _mesh: MeshSpec) -> Parts:
    return [x @ weight for x, weight in zip(x_parts, weight_parts, strict=True)]


def multiply(x_parts: Parts, weight_parts: Parts, mesh: MeshSpec) -> Parts:
    """Returns the component of the product on each device."""
    products = _products(x_parts, weight_parts, mesh)
    for group in mesh.groups("feature"):
        total = np.sum([products[device_id] for device_id in group], axis=0)
        for device_id in group:
            products[device_id] = total
    return products


@exercise("splitting_the_model-product", right=multiply)
def product(answer: Function) -> str | None:
    """The components of `x @ W1` where features and hidden units are split."""

    def parts(x: Array, weight: Array, mesh: MeshSpec) -> tuple[Parts, Parts]:
        return (
            LayoutSpec(["batch", "feature"], mesh).of(x.shape).split(x),
            LayoutSpec(["feature", "model"], mesh).of(weight.shape).split(weight),
        )

    def of_whole(function: Callable[..., Any]) -> Function:
        return lambda x, weight, mesh: function(*parts(x, weight, mesh), mesh)

    def run(function: Function, x: Array, weight: Array, mesh: MeshSpec) -> Any:
        with on_devices() as (tf, dtensor):
            held = [[tf.constant(part) for part in each] for each in parts(x, weight, mesh)]
            return function(*held, dtensor.create_mesh(mesh))

    misconceptions = {
        of_whole(_products): _(
            "These are still partial sums: each device has summed over its own features only. Add those of"
            " the devices that hold the other features of the same reviews."
        ),
    }
    advice = _("Compare with `x @ W1` of the whole matrices: what should this device hold of it?")
    right = of_whole(multiply)
    return judge(answer, right, _factors(), misconceptions=misconceptions, run=run, advice=advice)


def _factors() -> list[Case]:
    random = np.random.default_rng(0)
    x, weight = (random.integers(-4, 5, shape).astype(np.float32) for shape in ((4, 8), (8, 6)))
    told = [_("the parts of a (4, 8) and an (8, 6) matrix on the mesh {mesh}", mesh=mesh) for mesh in _MESHES]
    return [Case((x, weight, mesh), told=words) for mesh, words in zip(_MESHES, told, strict=True)]
