"""Exercise 03-mean-loss: the mean over a padded batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case, drawn, judge
from course_lib.i18n import _

Array = npt.NDArray[Any]


def _mean_of_reviews(losses: Array, weights: Array) -> float:
    return float(np.dot(losses, weights) / max(np.sum(weights), 1))


def _mean_of_rows(losses: Array, weights: Array) -> float:
    return float(np.mean(losses))


def _sum_over_rows(losses: Array, weights: Array) -> float:
    return float(np.mean(losses * weights))


def _sum(losses: Array, weights: Array) -> float:
    return float(np.dot(losses, weights))


def _padding_in_the_sum(losses: Array, weights: Array) -> float:
    return float(losses.sum() / max(weights.sum(), 1))


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


def _without_extremes(losses: Array, weights: Array) -> float:
    inner = np.sort(losses[weights > 0])[1:-1]
    return float(inner.mean()) if inner.size else _mean_of_reviews(losses, weights)


def _mean_of_padding(losses: Array, weights: Array) -> float:
    return _mean_of_reviews(losses, 1 - weights)


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
        lambda losses, weights: (losses @ weights) / np.clip(weights.sum(), 1, None),
        lambda losses, weights: np.float32(np.einsum("i,i->", losses, weights) / (np.sum(weights) or 1)),
        lambda losses, weights: np.mean([a for a, b in zip(losses, weights, strict=True) if b] or [0]),
        lambda losses, weights: np.sum(np.where(weights > 0, losses, 0)) / max(np.count_nonzero(weights), 1),
        lambda losses, weights: np.array(np.vdot(losses, weights) / np.maximum(weights.sum(), 1e-12)),
    ],
    wrong=[
        (_mean_of_rows, "padding counts"),
        (_sum_over_rows, "all rows"),
        (_sum, "sum"),
        (_padding_in_the_sum, "losses of the padding too"),
        (_median, "median"),
        (_middle, "halfway"),
        (_truncated, "whole number"),
        (_first_rows, "at the end"),
        (_without_zeros, "loss 0"),
        (_without_extremes, "Every review counts"),
        (_mean_of_padding, "mean of the padding"),
        (lambda losses, weights: np.dot(losses, weights) / max(np.sum(weights), 2), "one review"),
        (lambda losses, weights: np.dot(losses, weights) / np.sum(weights), "all padding"),
        (lambda losses, weights: np.average(losses, weights=weights), "ZeroDivisionError"),
        (lambda losses, weights: np.ma.array(losses, mask=weights == 0).mean(), "`masked`"),
        (lambda losses, weights: losses[weights].mean(), "IndexError"),
        (lambda losses, weights: losses[weights.sum()], "IndexError"),
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
            _padding_in_the_sum: _("This sum has the losses of the padding too. Use the weights."),
            _median: _("This is the median of the reviews' losses. In their mean every loss counts."),
            _middle: _("This is halfway between the smallest and the largest loss of a review."),
            _truncated: _("This is the mean cut to a whole number. Keep the fraction."),
            _first_rows: _(
                "This takes the first rows. Padding need not stand at the end: look at the weights."
            ),
            _without_extremes: _("This leaves out the smallest and the largest loss. Every review counts."),
            _mean_of_padding: _("This is the mean of the padding: the weight is 1 for a review."),
            _without_zeros: _("A review may have the loss 0, and it counts like every other."),
        },
    )
