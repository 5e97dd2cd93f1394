"""The exercises of lesson 03."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.exercises.checks import exercise, same
from course_lib.exercises.judging import Case, drawn, judge
from course_lib.i18n import _, ngettext
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec

Array = npt.NDArray[Any]

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
        (64, "by how much"),
        (1.0, "the gradient of the mean"),
    ],
)
def learning_rate(answer: float) -> str | None:
    """The learning rate on the mean that equals 0.01 on the sum of 64."""
    hints = {
        0.01: _("With the same rate every update is 64 times smaller: the mean is the sum divided by 64."),
        0.01 / 64: _(
            "That goes the wrong way: the gradient of the mean is smaller, so the rate must be larger."
        ),
        0.08: _("That scales by the number of devices. How many losses does the sum add up?"),
        64: _("That is by how much the rate changes. What is the rate then?"),
    }
    for wrong, hint in hints.items():
        if same(answer, wrong):
            return hint
    if not same(answer, 0.64):
        return _("Compare the gradient of the sum with the gradient of the mean over 64 reviews.")
    return None


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
def layouts(answer: dict[str, Any]) -> str | None:
    """Layouts of a data-parallel batch of images, its labels and a weight."""
    wanted = {"images": 3, "labels": 1, "weight": 2}
    if not all(isinstance(answer.get(name), LayoutSpec) for name in wanted):
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


def _mean_of_reviews(losses: Array, weights: Array) -> float:
    return float(np.dot(losses, weights) / max(np.sum(weights), 1))


def _mean_of_rows(losses: Array, weights: Array) -> float:
    return float(np.mean(losses))


def _sum_over_rows(losses: Array, weights: Array) -> float:
    return float(np.mean(losses * weights))


def _sum(losses: Array, weights: Array) -> float:
    return float(np.dot(losses, weights))


def _median(losses: Array, weights: Array) -> float:
    return float(np.median(losses[weights > 0])) if weights.any() else 0.0


def _middle(losses: Array, weights: Array) -> float:
    reviews = losses[weights > 0]
    return float((reviews.max() + reviews.min()) / 2) if weights.any() else 0.0


def _truncated(losses: Array, weights: Array) -> int:
    return int(_mean_of_reviews(losses, weights))


def _first_rows(losses: Array, weights: Array) -> float:
    return float(losses[: int(weights.sum())].mean()) if weights.any() else 0.0


def _without_zeros(losses: Array, weights: Array) -> float:
    counted = losses[(weights > 0) & (losses > 0)]
    return float(counted.mean()) if counted.size else 0.0


def _batch(losses: npt.ArrayLike, weights: npt.ArrayLike) -> tuple[Array, Array]:
    return np.array(losses, np.float32), np.array(weights, np.float32)


def _padded_batch(random: np.random.Generator) -> tuple[Array, Array]:
    """Returns losses, of which some are 0, and weights with at least two reviews among them."""
    size = int(random.choice([4, 5, 8]))
    losses, weights = random.integers(0, 10, size), random.integers(0, 2, size)
    weights[random.choice(size, 2, replace=False)] = 1
    return _batch(losses / 2, weights)


@exercise(
    "03-mean-loss",
    right=_mean_of_reviews,
    also=[
        lambda losses, weights: np.sum(losses * weights) / (np.sum(weights) + 1e-8),
        lambda losses, weights: np.average(losses, weights=weights) if weights.any() else 0,
        lambda losses, weights: losses[weights == 1].mean() if weights.any() else 0.0,
        lambda losses, weights: (
            sum(a * b for a, b in zip(losses, weights, strict=True)) / max(sum(weights), 1)
        ),
        lambda losses, weights: np.nan_to_num(np.divide(losses @ weights, weights.sum())),
    ],
    wrong=[
        (_mean_of_rows, "padding counts"),
        (_sum_over_rows, "all rows"),
        (_sum, "sum"),
        (_median, "median"),
        (_middle, "halfway"),
        (_truncated, "whole number"),
        (_first_rows, "at the end"),
        (_without_zeros, "loss 0"),
        (lambda losses, weights: np.dot(losses, weights) / max(np.sum(weights), 2), "one review"),
        (lambda losses, weights: np.dot(losses, weights) / np.sum(weights), "all padding"),
        (lambda losses, weights: np.average(losses, weights=weights), "ZeroDivisionError"),
        (lambda losses, weights: None, "return"),
        (lambda losses: losses.mean(), "positional argument"),
        (lambda losses, weights: losses * weights, "single number"),
        (0.5, "function"),
    ],
)
def mean_loss(answer: Callable[..., Any]) -> str | None:
    """The mean of the losses whose weight is 1."""
    return judge(
        answer,
        _mean_of_reviews,
        [
            *drawn(_padded_batch),
            Case(
                _batch([5, 7], [1, 0]),
                _("With one review and one row of padding the mean is the loss of that one review."),
            ),
            Case(
                _batch([5, 7], [0, 0]),
                _("A batch that is all padding has no reviews to divide by: return 0 for it."),
            ),
        ],
        misconceptions={
            _mean_of_rows: _("This is the mean of all losses: the padding counts too."),
            _sum_over_rows: _("This divides by the number of all rows. How many of them are reviews?"),
            _sum: _("This is the sum. Divide it by the number of reviews."),
            _median: _("This is the median of the reviews' losses. In their mean every loss counts."),
            _middle: _("This is halfway between the smallest and the largest loss of a review."),
            _truncated: _("This is the mean cut to a whole number. Keep the fraction."),
            _first_rows: _(
                "This takes the first rows. Padding need not stand at the end: look at the weights."
            ),
            _without_zeros: _("A review may have the loss 0, and it counts like every other."),
        },
    )


@exercise(
    "03-gradient-bytes",
    right=(_GRADIENT_BYTES, _GRADIENT_BYTES),
    wrong=[
        ((_GRADIENT_BYTES, 2 * _GRADIENT_BYTES), "does not depend on the batch"),
        ((_GRADIENT_BYTES // 8, _GRADIENT_BYTES // 8), "not split"),
        ((_GRADIENT_BYTES // 4, _GRADIENT_BYTES // 4), "elements"),
        ((4 * (1200 * 48 + 48 * 2),) * 2, "biases"),
        ((7, 7), "each variable"),
        (_GRADIENT_BYTES, "tuple or list"),
        ((_GRADIENT_BYTES,) * 3, "two numbers"),
    ],
)
def gradient_bytes(answer: tuple[float, ...]) -> str | None:
    """The bytes of all gradients, for two sizes of the batch."""
    if len(answer) != 2:
        return _("Give two numbers: for the batch of 64, then for that of 128.")
    hints = {
        _GRADIENT_BYTES // 8: _("The variables are not split, so neither are their gradients."),
        _GRADIENT_BYTES // 4: _("That is the number of elements. How many bytes does a float32 take?"),
        4 * (1200 * 48 + 48 * 2): _("Those are the two weights. The biases have gradients too."),
    }
    for wrong, hint in hints.items():
        if same(answer[0], wrong):
            return hint
    if not same(answer[0], _GRADIENT_BYTES):
        return _("Multiply the axes of each variable, add up the four products, then count 4 bytes for each.")
    if not same(answer[1], answer[0]):
        return _("A gradient has the shape of its variable. That does not depend on the batch.")
    return None
