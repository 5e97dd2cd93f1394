"""The exercises of this lesson: a forward pass as one device runs it, and layouts of two narrow blocks."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from course_lib.exercises.checks import exercise
from course_lib.exercises.devices import on_devices
from course_lib.exercises.judging import Case, judge
from course_lib.exercises.values import Array
from course_lib.i18n import _
from course_lib.messages import last_line
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from lessons.layouts.layout_hints import form_hint
from lessons.layouts.one_device import Program, on_each

# A forward pass, device by device


def _on_each(program: Program, network: Sequence[Array], devices: int) -> list[Any] | None:
    """Returns what each of these devices along `model` returns, or None if one of them returns nothing."""
    x, w1, b1, w2, b2 = network
    cuts = zip(np.split(w1, devices, 1), np.split(b1, devices), np.split(w2, devices), strict=True)
    return on_each(program, [(x, *own, b2) for own in cuts])[0]


def _hidden(x: Array, w1: Array, b1: Array, *_others: Any) -> Any:
    return np.maximum(x @ w1 + b1, 0)


def _partial(*own: Any) -> Any:
    return _hidden(*own) @ own[3]


def _logits(*own: Any) -> Any:
    return own[5](_partial(*own)) + own[4]


def _without_relu(*own: Any) -> Any:
    return own[5]((own[0] @ own[1] + own[2]) @ own[3]) + own[4]


def _without_b1(*own: Any) -> Any:
    return _logits(own[0], own[1], 0, *own[3:])


def _added_before_relu(*own: Any) -> Any:
    return np.maximum(own[5](own[0] @ own[1] + own[2]), 0) @ own[3] + own[4]


@exercise("splitting_the_model-logits", right=_logits)
def logits(answer: Program) -> str | None:
    """The forward pass of one device, with the all-reduce over `model`."""

    def whole(*network: Any) -> list[Any]:
        return [_partial(*network[:5]) + network[4]] * network[5]

    def run(program: Program, *network: Any) -> list[Any] | None:
        return _on_each(program, network[:5], network[5])

    random = np.random.default_rng(0)
    cases = []
    for devices in (1, 2, 4, 2, 4):
        shapes = ((3, 5), (5, 4), (4,), (4, 2), (2,))
        network = [random.integers(-3, 4, shape).astype(np.float32) for shape in shapes]
        told = _("small arrays, devices along `model`: {count}", count=devices)
        cases.append(Case((*network, devices), told=told))
    different = _(
        "The hidden units of two devices are different ones. Don't add them up; they are finished."
        " Which product sums over the hidden units?"
    )
    hints = {
        lambda *own: own[5](_partial(*own) + own[4]): _(
            "Every device holds all of `b2`. Before the all-reduce, each of them adds it, and the sum has it"
            " several times."
        ),
        lambda *own: _partial(*own) + own[4]: _(
            "These logits are not complete: each device has summed over its own hidden units."
        ),
        lambda *own: _logits(*own) - own[4]: _("`b2` is missing."),
        _without_relu: _("The hidden units go through a relu before they meet `W2`."),
        _without_b1: _("`b1` is missing."),
        lambda *own: np.maximum(_logits(*own), 0): _("A logit may be negative. Leave it without a relu."),
        lambda *own: own[5](_hidden(*own)) @ own[3] + own[4]: different,
        _added_before_relu: different,
    }
    return judge(
        answer,
        whole,
        cases,
        run=run,
        misconceptions={functools.partial(run, program): hint for program, hint in hints.items()},
        advice=_(
            "Compare with `relu(x @ W1 + b1) @ W2 + b2` of the whole arrays: each device returns all of it."
        ),
    )


# The layouts of two narrow blocks

_NARROW = MeshSpec([("batch", 2), ("model", 4)])
_ROWS, _STREAM, _HIDDEN, _MOST_BYTES = 32, 256, 64, 90_000
_UP, _DOWN = (_STREAM, _HIDDEN), (_HIDDEN, _STREAM)
_SHAPES = {"x": (_ROWS, _STREAM), "U1": _UP, "D1": _DOWN, "U2": _UP, "D2": _DOWN}
_LAYOUTS = {
    "x": LayoutSpec(["batch", "model"], _NARROW),
    "U1": LayoutSpec(["model", UNSHARDED], _NARROW),
    "D1": LayoutSpec([UNSHARDED, "model"], _NARROW),
    "U2": LayoutSpec(["model", UNSHARDED], _NARROW),
    "D2": LayoutSpec([UNSHARDED, "model"], _NARROW),
}


@exercise("splitting_the_model-narrow", right=_LAYOUTS)
def narrow(answer: Mapping[str, Any]) -> str | None:
    """Layouts of a residual network under which a step exchanges little."""
    if hint := form_hint(answer, _LAYOUTS):
        return hint
    for name in ("U1", "D1", "U2", "D2"):
        held = math.prod(answer[name].of(_SHAPES[name]).local_shape)
        if 4 * held > math.prod(_SHAPES[name]):
            return _("A device holds more than a quarter of {name!r}.", name=name)
    if answer["x"].sharding_specs[0] != "batch":
        return _("The rows of {name!r} are the examples. Split them over `batch`.", name="x")
    return _too_much(answer)


def _too_much(answer: Mapping[str, LayoutSpec]) -> str | None:
    """Returns what is wrong with the bytes of the step that these layouts give, if anything."""
    from course_lib.devices import graphs

    with on_devices() as (tf, dtensor):
        mesh = dtensor.create_mesh(_NARROW)
        tensors = [
            dtensor.shard(np.ones(shape, np.float32), dtensor.to_layout(answer[name], mesh))
            for name, shape in _SHAPES.items()
        ]

        def gradients(x: Any, *weights: Any) -> Any:
            with tf.GradientTape() as tape:
                tape.watch(weights)
                stream = x
                for up, down in (weights[:2], weights[2:]):
                    stream = stream + tf.nn.relu(stream @ up) @ down
                loss = tf.reduce_mean(stream**2)
            return loss, tape.gradient(loss, weights)

        try:
            found = graphs.collectives(gradients, *tensors)
        except tf.errors.OpError as error:
            return _(
                "TensorFlow refuses that. {error}\nSplit an axis that two tensors share alike in both.",
                error=last_line(error),
            )
    payload = sum(each.payload_bytes for each in found)
    if payload <= _MOST_BYTES:
        return None
    told = _("Bytes that the collectives carry: {payload}.", payload=f"{payload:,}")
    return f"{told} {_hint(answer)}"


def _hint(answer: Mapping[str, LayoutSpec]) -> str:
    specs = {name: answer[name].sharding_specs for name in _SHAPES}
    if (specs["U1"][0] == "model") != (specs["x"][1] == "model"):
        return _(
            "The rows of `U1` and the columns of `x` are the same axis, the stream. Split both, or none."
        )
    if specs["U1"] == specs["U2"] == specs["D1"][::-1] == specs["D2"][::-1] == (UNSHARDED, "model"):
        return _(
            "A split of the hidden units adds up partial sums as wide as the stream."
            " What would it add up if you split the stream?"
        )
    if any("batch" in specs[name] for name in ("U1", "D1", "U2", "D2")):
        return _("Weights that are split over `batch` cost more bytes. Split them over `model` only.")
    return _("Name the axes of the five tensors. Is the stream split in the same way in all of them?")
