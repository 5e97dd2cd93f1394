"""The exercises of lesson 03 on layouts and on the mean; importing it registers that of the step too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case, drawn, judge
from course_lib.exercises.kinds import wrong_layout
from course_lib.i18n import _
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from lessons.lesson_03_one_step import checks_step  # noqa: F401 - it registers its exercise

Array = npt.NDArray[Any]

_MESH = MeshSpec([("batch", 8)])
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
    return wrong_layout(answer, _LAYOUTS, hints, _("Use plan.mesh, with its one dimension batch of 8."))


def _mean_of_reviews(losses: Array, weights: Array) -> float:
    return float(np.dot(losses, weights) / max(np.sum(weights), 1))


@exercise("03-mean-loss", right=_mean_of_reviews)
def mean_loss(answer: Callable[..., Any]) -> str | None:
    """The mean of the losses whose weight is 1."""
    one_review = Case(
        _batch([5, 7], [1, 0]),
        _("With one review and one row of padding the mean is the loss of that one review."),
    )
    no_review = Case(
        _batch([5, 7], [0, 0]),
        _("A batch that is all padding has no reviews to divide by: return 0 for it."),
    )
    misconceptions: dict[Callable[[Array, Array], Any], str] = {
        lambda losses, weights: losses.mean(): _("This is the mean of all losses: the padding counts too."),
        lambda losses, weights: (losses * weights).mean(): _(
            "This divides by the number of all rows. How many of them are reviews?"
        ),
        lambda losses, weights: losses @ weights: _("This is the sum. Divide it by the number of reviews."),
        lambda losses, weights: losses[: int(weights.sum())].mean() if weights.any() else 0.0: _(
            "This takes the first rows. Padding need not stand at the end: look at the weights."
        ),
    }
    cases = [*drawn(_padded_batch), one_review, no_review]
    return judge(answer, _mean_of_reviews, cases, misconceptions=misconceptions)


def _padded_batch(random: np.random.Generator) -> tuple[Array, Array]:
    """Returns losses, of which some are 0, and weights with at least two reviews among them."""
    size = int(random.choice([4, 5, 8]))
    losses, weights = random.integers(0, 10, size), random.integers(0, 2, size)
    weights[random.choice(size, 2, replace=False)] = 1
    return _batch(losses / 2, weights)


def _batch(losses: npt.ArrayLike, weights: npt.ArrayLike) -> tuple[Array, Array]:
    return np.array(losses, np.float32), np.array(weights, np.float32)
