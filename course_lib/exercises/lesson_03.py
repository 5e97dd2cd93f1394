"""The exercises of lesson 03."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from course_lib.exercises.checks import answered, exercise, same
from course_lib.i18n import _, ngettext
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec

_EIGHT = MeshSpec([("batch", 8)])
_GRADIENT_BYTES = 4 * (1200 * 48 + 48 + 48 * 2 + 2)


def _image_layouts(
    images: Sequence[str], labels: Sequence[str], weight: Sequence[str]
) -> dict[str, LayoutSpec]:
    return {
        name: LayoutSpec(entries, _EIGHT)
        for name, entries in (("images", images), ("labels", labels), ("weight", weight))
    }


@exercise(
    "03-learning-rate",
    right=0.64,
    wrong=[
        (0.01, "64 times smaller"),
        (0.01 / 64, "wrong way"),
        (0.08, "number of devices"),
        (1.0, "the gradient of the mean"),
    ],
)
def learning_rate(answer: object) -> str | None:
    """The learning rate on the mean that equals 0.01 on the sum of 64."""
    number = float(answer)  # type: ignore[arg-type]
    if math.isclose(number, 0.64, rel_tol=1e-6):
        return None
    if math.isclose(number, 0.01):
        return _(
            "With the same rate the updates would be 64 times smaller: the mean is the sum divided by 64."
        )
    if math.isclose(number, 0.01 / 64):
        return _("That goes the wrong way: the gradient of the mean is smaller, so the rate must be larger.")
    if math.isclose(number, 0.08):
        return _("That scales by the number of devices. How many losses does the sum add up?")
    return _("Compare the gradient of the sum with the gradient of the mean over 64 reviews.")


@exercise(
    "03-layouts",
    right=_image_layouts(["batch", UNSHARDED, UNSHARDED], ["batch"], [UNSHARDED, UNSHARDED]),
    wrong=[
        (_image_layouts(["batch", UNSHARDED, UNSHARDED], ["batch"], ["batch", UNSHARDED]), "weight"),
        (_image_layouts(["batch", UNSHARDED, UNSHARDED], [UNSHARDED], [UNSHARDED] * 2), "labels"),
        (_image_layouts(["batch", UNSHARDED], ["batch"], [UNSHARDED] * 2), "3 axes"),
        (_image_layouts([UNSHARDED, "batch", UNSHARDED], ["batch"], [UNSHARDED] * 2), "first axis"),
        ({"images": ["batch"]}, "images, labels and weight"),
    ],
)
def layouts(answer: object) -> str | None:
    """Layouts of a data-parallel batch of images, its labels and a weight."""
    wanted = {"images": 3, "labels": 1, "weight": 2}
    if not isinstance(answer, dict) or not all(isinstance(answer.get(name), LayoutSpec) for name in wanted):
        return _("Give a dictionary with a LayoutSpec for each of images, labels and weight.")
    for name, num_axes in wanted.items():
        if answer[name].num_axes != num_axes:
            return ngettext(
                "The tensor {name} has {count} axis.",
                "The tensor {name} has {count} axes.",
                num_axes,
                name=name,
            )
    if any(layout.mesh != _EIGHT for layout in answer.values()):
        return _("Use mesh, with its one dimension batch of 8.")
    if answer["weight"].sharded_dims:
        return _("In data parallelism each device holds the whole weight.")
    if answer["labels"].sharding_specs != ("batch",):
        return _("The labels are split like the images that they belong to.")
    if answer["images"].sharding_specs != ("batch", UNSHARDED, UNSHARDED):
        return _("The examples lie along the first axis of the images; split only that.")
    return None


@exercise(
    "03-mean-loss",
    right=lambda losses, weights: float(np.dot(losses, weights) / max(np.sum(weights), 1)),
    wrong=[
        (lambda losses, weights: float(np.mean(losses)), "padding counts"),
        (lambda losses, weights: float(np.mean(np.multiply(losses, weights))), "padded rows too"),
        (lambda losses, weights: float(np.dot(losses, weights)), "sum"),
        (lambda losses, weights: float(np.dot(losses, weights)) / max(np.sum(weights), 2), "one review"),
        (
            lambda losses, weights: np.dot(losses, weights) / np.float64(np.sum(weights) or np.nan),
            "all padding",
        ),
        (0.5, "function"),
    ],
)
def mean_loss(answer: object) -> str | None:
    """The mean of the losses whose weight is 1."""
    if not callable(answer):
        return _("Write a function of losses and weights.")
    result = _mean(answer, [2.0, 4.0, 9.0, 10.0], [1.0, 1.0, 0.0, 0.0])
    hints = {
        6.25: _("For losses 2, 4, 9, 10 and weights 1, 1, 0, 0 this gives 6.25: the padding counts."),
        6.0: _("That is the sum. Divide it by the number of reviews."),
        1.5: _("This gives 1.5 where 3 is right: it divides by the number of padded rows too."),
    }
    for wrong, hint in hints.items():
        if math.isclose(result, wrong):
            return hint
    if not math.isclose(result, 3.0):
        return _("For losses 2, 4, 9, 10 and weights 1, 1, 0, 0 the mean is 3, not {result}.", result=result)
    if not math.isclose(_mean(answer, [5.0, 7.0], [1.0, 0.0]), 5.0):
        return _("With one review and one row of padding the mean is the loss of that one review.")
    if _mean(answer, [5.0, 7.0], [0.0, 0.0]) != 0.0:
        return _("A batch that is all padding has no reviews to divide by: return 0 for it.")
    return None


def _mean(function: Callable[..., Any], losses: list[float], weights: list[float]) -> float:
    return float(answered(function(np.array(losses), np.array(weights))))


@exercise(
    "03-gradient-bytes",
    right=(_GRADIENT_BYTES, _GRADIENT_BYTES),
    wrong=[
        ((_GRADIENT_BYTES, 2 * _GRADIENT_BYTES), "does not depend on the batch"),
        ((_GRADIENT_BYTES // 8, _GRADIENT_BYTES // 8), "not split"),
        ((_GRADIENT_BYTES // 4, _GRADIENT_BYTES // 4), "elements"),
        ((4 * (1200 * 48 + 48 * 2),) * 2, "biases"),
        ((7, 7), "57,746"),
    ],
)
def gradient_bytes(answer: object) -> str | None:
    """The bytes of all gradients, for two sizes of the batch."""
    with_64, with_128 = (answered(value) for value in answer)  # type: ignore[attr-defined]
    hints = {
        _GRADIENT_BYTES // 8: _("The variables are not split, so neither are their gradients."),
        _GRADIENT_BYTES // 4: _("That is the number of elements. How many bytes does a float32 take?"),
        4 * (1200 * 48 + 48 * 2): _("Those are the two weights. The biases have gradients too."),
    }
    for wrong, hint in hints.items():
        if same(with_64, wrong):
            return hint
    if not same(with_64, _GRADIENT_BYTES):
        return _("Count the elements of both weights and both biases: 57,746. Each takes 4 bytes.")
    if not same(with_128, with_64):
        return _("A gradient has the shape of its variable. That does not depend on the batch.")
    return None
