"""The exercises of this lesson: what a product adds up among devices, and the attention of a block."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from course_lib.errors import CourseError
from course_lib.exercises.checks import exercise
from course_lib.exercises.devices import on_devices, refuse_new_axis
from course_lib.exercises.judging import Case, judge
from course_lib.exercises.values import Array, answered
from course_lib.i18n import _
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec

Splits = Mapping[str, str]

_PRODUCTS = ["bsd,df->bsf", "bsf,fd->bsd", "bsd,dhk->bhsk", "bhsk,hkd->bsd", "bhsk,bhtk->bhst", "bd,dv->bv"]
_PRODUCTS += ["bsd,bsf->df", "df,bsd->bsf", "bsd,df->bs", "df,bsd->bs"]  # a gradient; letters that one has
_PLANS: tuple[dict[str, str], ...] = (
    {"b": "batch"},
    {"b": "batch", "h": "model", "f": "model", "v": "model"},
    {"b": "batch", "d": "x", "h": "y", "f": "y"},
    {"h": "x", "f": "x"},
)
_MESH = MeshSpec([("batch", 4), ("model", 2)])
_ROWS = LayoutSpec(["batch", UNSHARDED, UNSHARDED], _MESH)
_HEADS = LayoutSpec([UNSHARDED, "model", UNSHARDED], _MESH)
_SIZES = ((3, 5, 7), (6, 9, 3))  # of sequence, features and a head; four examples, two heads


def _added_up(how: str, splits: Splits) -> list[list[str]]:
    tensors = how.replace("->", ",").split(",")
    return [sorted({splits[axis] for axis in {*how} & {*splits} if axis not in own}) for own in tensors]


@exercise("how_long-added", right=_added_up)
def added_up(answer: Callable[..., Any]) -> str | None:
    """The mesh dimensions over which the tensors of a product are added up."""

    def sorted_sets(function: Callable[..., Any], how: str, splits: Splits) -> list[list[str]]:
        found = answered(function(how, dict(splits)))
        if not isinstance(found, list | tuple) or len(found) != 3:
            raise CourseError(_("Return three sets: those of the first gradient, the second and the result."))
        return [sorted({*each}, key=str) for each in found]

    return judge(
        answer,
        _added_up,
        [Case((how, splits)) for how in _PRODUCTS for splits in _PLANS],
        run=sorted_sets,
        advice=_("Take the letters of the whole product, without those of the tensor itself."),
        misconceptions={
            lambda how, splits: [[], [], _added_up(how, splits)[2]]: _(
                "A gradient is a product too: what does it add up over?"
            ),
        },
    )


def _right_attend(n: Any, query: Any, key: Any, value: Any) -> Any:
    tf = sys.modules["tensorflow"]  # an import here would be AutoGraph's to convert
    q, k, v = (tf.einsum("bsd,dhk->bhsk", n, each) for each in (query, key, value))
    scores = tf.einsum("bhsk,bhtk->bhst", q, k) / query.shape[-1] ** 0.5
    return tf.einsum("bhst,bhtk->bhsk", tf.nn.softmax(scores), v)


def _attended(
    n: Array,
    query: Array,
    key: Array,
    value: Array,
    *,
    root: float = 0,
    exchanges: bool = False,
) -> dict[str, Any]:
    """Returns the same in NumPy; with other arguments, what a mistake makes of it."""
    q, k, v = (np.einsum("bsd,dhk->bhsk", n, each) for each in (query, key, value))
    scores = np.einsum("bhsk,bhtk->bhst", q, k)
    shares = np.exp(scores / (root or query.shape[-1] ** 0.5))
    mixed = np.einsum("bhst,bhtk->bhsk", shares / shares.sum(axis=-1, keepdims=True), v)
    return {"values": mixed, "exchanges": exchanges}


@exercise("how_long-attend", right=_right_attend)
def attend(answer: Callable[..., Any]) -> str | None:
    """Attention on a mesh of 4 x 2, whose heads are split: the values of NumPy, and no collective."""
    random = np.random.default_rng(0)
    shapes = [((4, sequence, features), *[(features, 2, size)] * 3) for sequence, features, size in _SIZES]
    cases = [
        Case(tuple(random.normal(0, 0.7, shape).astype(np.float32) for shape in given)) for given in shapes
    ]
    return judge(
        answer,
        _attended,
        cases,
        run=_on_a_mesh,
        tolerance=1e-4,
        advice=_("Write each product with its letters, and look which letter it adds up over."),
        misconceptions={
            lambda *arrays: _attended(*arrays, root=1): _(
                "The scores are not divided by the root of `size`."
            ),
            lambda *arrays: _attended(*arrays, exchanges=True): _(
                "The values are right, but devices exchange something: keep the heads apart until `out`."
            ),
        },
    )


def _on_a_mesh(answer: Callable[..., Any], *arrays: Array) -> dict[str, Any]:
    """Returns what a reader's function makes of DTensors, and whether that takes collectives."""
    refuse_new_axis(answer)
    with on_devices() as (tf, real):
        from course_lib.devices.graphs import collectives

        layouts = [_ROWS, _HEADS, _HEADS, _HEADS]
        tensors = [real.pack(*pair) for pair in zip(arrays, layouts, strict=True)]
        values = real.to_numpy(tf.function(answer)(*tensors))
        return {"values": values, "exchanges": bool(collectives(answer, *tensors))}
