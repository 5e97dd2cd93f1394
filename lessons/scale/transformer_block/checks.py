"""The exercises of this lesson: over what the tensors of a product are all-reduced, and attention."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, ValuesView
from functools import partial
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
_SIZES = ((3, 5, 7), (6, 9, 3))  # of sequence, features and a head; four texts, two heads


def _reduced_over(equation: str, splits: Splits) -> list[list[str]]:
    letters = {*equation} & {*splits}
    return [sorted({splits[axis] for axis in letters if axis not in own}) for own in _tensors(equation)]


def _splitting(equation: str, splits: Splits) -> list[list[str]]:
    """Returns what splits each tensor itself."""
    return [sorted({splits[axis] for axis in own if axis in splits}) for own in _tensors(equation)]


def _letters(equation: str, splits: Splits) -> list[list[str]]:
    """Returns axes in place of what splits them."""
    return [sorted(axis for axis in {*equation} & {*splits} if axis not in own) for own in _tensors(equation)]


def _in_order(equation: str, splits: Splits, order: tuple[int, ...]) -> list[list[str]]:
    """Returns the three answers in another order."""
    three = _reduced_over(equation, splits)
    return [three[at] for at in order]


def _tensors(equation: str) -> list[str]:
    return equation.replace("->", ",").split(",")


@exercise("transformer_block-added", right=_reduced_over)
def reduced_over(answer: Callable[..., Any]) -> str | None:
    """The mesh dimensions over which the tensors of a product are all-reduced."""

    def sorted_sets(function: Callable[..., Any], equation: str, splits: Splits) -> list[list[str]]:
        found = function(equation, dict(splits))
        found = answered([*found] if isinstance(found, ValuesView) else found)
        if not isinstance(found, list | tuple) or len(found) != 3 or any(isinstance(e, str) for e in found):
            raise CourseError(_("Return three sets: those of the first gradient, the second and the result."))
        return [sorted({*each}, key=str) for each in found]

    return judge(
        answer,
        _reduced_over,
        [Case((equation, splits)) for equation in _PRODUCTS for splits in _PLANS],
        run=sorted_sets,
        advice=_("Take the letters of the whole product, without those of the tensor itself."),
        misconceptions={
            lambda equation, splits: [[], [], _reduced_over(equation, splits)[2]]: _(
                "A gradient is a product too: what does it sum over?"
            ),
            _splitting: _("These are the dimensions that split the tensor itself. What does it sum over?"),
            _letters: _("These are letters. Which mesh dimensions split them?"),
            partial(_in_order, order=(1, 0, 2)): _(
                "Your two gradients stand in the wrong order. The gradient of the first factor comes first."
            ),
            partial(_in_order, order=(2, 0, 1)): _("The gradients come first, and the result comes last."),
        },
    )


def _right_attend(x: Any, query: Any, key: Any, value: Any) -> Any:
    tf = sys.modules["tensorflow"]  # an import here would be AutoGraph's to convert
    q, k, v = (tf.einsum("bsd,dhk->bhsk", x, each) for each in (query, key, value))
    scores = tf.einsum("bhsk,bhtk->bhst", q, k) / query.shape[-1] ** 0.5
    return tf.einsum("bhst,bhtk->bhsk", tf.nn.softmax(scores), v)


def _attended(
    x: Array,
    query: Array,
    key: Array,
    value: Array,
    *,
    divisor: Callable[[int, int], float] = lambda _features, size: size**0.5,
    softmax_axis: int | None = -1,
    masked: bool = False,
    mixes: str = "bhst,bhtk->bhsk",
    exchanges: bool = False,
) -> dict[str, Any]:
    """Returns the same in NumPy; with other options, what a mistake makes of it."""
    features, _heads, size = query.shape
    q, k, v = (np.einsum("bsd,dhk->bhsk", x, each) for each in (query, key, value))
    weights = np.einsum("bhsk,bhtk->bhst", q, k) / divisor(features, size)
    if softmax_axis is not None:
        weights = np.exp(weights) * (np.tri(x.shape[1]) if masked else 1)
        weights = weights / weights.sum(axis=softmax_axis, keepdims=True)
    return {"values": np.einsum(mixes, weights, v), "exchanges": exchanges}


def _mistakes() -> dict[Callable[..., Any], str]:
    """Returns what goes wrong most often, each with its hint."""
    return {
        partial(_attended, divisor=lambda *_sizes: 1.0): _(
            "Your scores are as large as the products make them. What does the exercise divide them by?"
        ),
        partial(_attended, divisor=lambda features, _size: features**0.5): _(
            "You divide the scores by the root of the number of features. Over which axis does a score sum?"
        ),
        partial(_attended, divisor=lambda _features, size: float(size)): _(
            "You divide the scores by too much. Read once more what they are divided by."
        ),
        partial(_attended, masked=True): _(
            "Your tokens do not see the tokens after them: that is a causal mask. Here no token is hidden."
        ),
        partial(_attended, softmax_axis=-2): _(
            "The weights of one token must add up to one, over all tokens that it sees. Over which axis"
            " does your softmax run?"
        ),
        partial(_attended, softmax_axis=1, exchanges=True): _(
            "Your softmax compares heads. Which tokens does one head weigh against each other?"
        ),
        partial(_attended, softmax_axis=None): _(
            "The weights of one token must add up to one. Where do yours become weights?"
        ),
        partial(_attended, mixes="bhst,bhsk->bhtk"): _(
            "Token `s` must receive the values of the tokens `t`; yours go the other way."
        ),
        partial(_attended, mixes="bhst,bhtk->bshk"): _(
            "The numbers are right, but their axes stand in another order than the exercise asks for."
        ),
        partial(_attended, exchanges=True): _(
            "The values are right, but devices exchange something: keep the heads apart until `out`."
        ),
    }


@exercise("transformer_block-attend", right=_right_attend)
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
        advice=_("Look in this order: the letters of each product, the root, the axis of the softmax."),
        misconceptions=_mistakes(),
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
