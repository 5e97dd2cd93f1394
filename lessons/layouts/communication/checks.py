"""The exercises of this lesson: a change of layout, and the collectives of a small network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from course_lib.exercises.checks import exercise
from course_lib.exercises.devices import on_devices
from course_lib.exercises.values import answered
from course_lib.i18n import _
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec

_GRID = MeshSpec([("batch", 4), ("model", 2)])
_FROM, _TO = LayoutSpec([UNSHARDED, "batch"], _GRID), LayoutSpec(["batch", "model"], _GRID)
_SHAPE = (16, 16)
_LEAST = 256  # bytes of payload: one all-to-all, and the rest is sliced for free
_BOTH = "batch and model"
_LOSS, _BIAS_2, _W2, _HIDDEN, _BIAS_1, _W1 = _COLLECTIVES = (
    (_BOTH, 4),
    ("batch", 32),
    ("batch", 1536),
    ("model", 6144),
    ("batch", 192),
    ("batch", 3072),
)


@exercise("communication-blocks", right=Callable)
def in_blocks(answer: Callable[..., Any]) -> str | None:
    """A change of layout by way of another one, with the least payload."""
    numbers = np.arange(np.prod(_SHAPE), dtype=np.float32)  # whole, and mixed: no exchange may swap any
    values = np.random.default_rng(2).permutation(numbers).reshape(_SHAPE)
    with on_devices() as (tf, dtensor):
        matrix = dtensor.pack(values, _FROM)
        result = answered(answer(matrix))
        if not (tf.is_tensor(result) and dtensor.dtensor.is_dtensor(result)):
            return _("Return a DTensor: `dtensor.relayout` gives one.")
        layout = dtensor.fetch_layout(result)
        if layout != _TO:
            return _(
                "The result has the layout {layout}; it should have {target}.", layout=layout, target=_TO
            )
        if not np.array_equal(dtensor.to_numpy(result), values):
            return _(
                "The layout is right, but the values are not those that `in_blocks` was given."
                " Does it use its argument, `matrix`?"
            )
        from course_lib.devices.graphs import collectives

        try:
            ran = collectives(answer, matrix)
        except RuntimeError:
            return _(
                "The result is right, but this check also compiles `in_blocks`, and then"
                " `dtensor.fetch_layout` fails. Write the layouts with `layout(...)`."
            )
    payload = sum(each.payload_bytes for each in ran)
    if payload > _LEAST:
        return _(
            "The values are right, but the payloads come to {payload} bytes: {collectives}."
            " {least} are enough.",
            payload=payload,
            collectives=_(", ").join(map(str, ran)),
            least=_LEAST,
        )
    return None


@exercise("communication-residual", right=_COLLECTIVES)
def predicted(answer: tuple[Any, ...]) -> str | None:
    """The collectives of a residual network of two layers, of which only the second splits its columns."""
    pairs = [each for each in answer if isinstance(each, tuple) and len(each) == len(_LOSS)]
    if len(pairs) < len(answer):
        return _('Write each collective as a pair: a mesh dimension and bytes, such as `("batch", 2048)`.')
    given = Counter((_over(dims), size) for dims, size in pairs)
    for dims, size in given:
        if dims not in ("batch", "model", _BOTH):
            return _("A collective runs over batch, model, or batch and model; not over {dims}.", dims=dims)
        if not isinstance(size, (int, float)):
            return _("The second part of a pair is a number of bytes; {size!r} is none.", size=size)
    if given["batch", 4] and given["model", 4]:
        return _(
            "Your list has two collectives of 4 bytes, one over batch and one over model. The loss is one sum"
            " over both mesh dimensions, and takes one collective in place of these two. How is it written?"
        )
    if given["model", 2048]:
        return _(
            "What needs 2,048 bytes over model? `hidden @ W2` sums over the hidden units, and nothing splits"
            " them here. The gradient of `hidden` has a column for each hidden unit, not for each feature."
        )
    if given["batch", sum(size for dims, size in _COLLECTIVES if dims == "batch")]:
        return _(
            "Write a pair for each gradient. TensorFlow may fuse them, but `collectives` keeps them apart."
        )
    if any(given[_BOTH, size] for dims, size in _COLLECTIVES if dims == "batch"):
        return _(
            "A gradient of a weight or bias sums over the examples. Over which mesh dimension are they split?"
            " Devices 0 and 1 have the same examples."
        )
    for pair, hint in _hints().items():
        if not given[pair]:
            return hint
    if too_many := given - Counter(_COLLECTIVES):
        dims, size = next(iter(too_many))
        return _(
            "All that is needed is in your list, and something more: ({dims}, {size})."
            " Which sum, or which side of the +, would need it?",
            dims=dims,
            size=size,
        )
    return None


def _hints() -> dict[tuple[str, int], str]:
    """Returns what to say where a collective is missing, in the order of the step."""
    return {
        _LOSS: _(
            "Look at the loss. It is a mean over all of `y`, one number of 4 bytes."
            " Which layout has `hidden @ W2`, which one the sum, and over which mesh dimensions is it split?"
        ),
        _HIDDEN: _(
            "One collective belongs to the gradient of `hidden`, dy @ W2ᵀ. It sums over the features."
            " How does dy split them? And what shape has the gradient on one device, before the sum?"
        ),
        _W1: _(
            "Look at the gradient of `W1`, xᵀ @ dhidden: what does it sum over, and does anything split"
            " its rows or columns? What a device holds of it is the payload."
        ),
        _W2: _(
            "Look at the gradient of `W2`, hiddenᵀ @ dy: what does it sum over, and which part of it does a"
            " device make, if dy is split in blocks?"
        ),
        _BIAS_1: _of_a_bias("b1", "hidden"),
        _BIAS_2: _of_a_bias("b2", "y"),
    }


def _of_a_bias(name: str, output: str) -> str:
    return _(
        "Look at the gradient of `{name}`. It sums the rows of the gradient of `{output}`, one row for each"
        " example. How many numbers of this sum does one device have?",
        name=name,
        output=output,
    )


def _over(dims: Any) -> str:
    """Returns the mesh dimensions of a collective as `collectives` writes them, in any order."""
    names = dims if isinstance(dims, tuple) else str(dims).replace(",", " and ").split(" and ")
    return " and ".join(sorted(str(name).strip() for name in names))
