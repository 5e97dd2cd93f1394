"""Training curves: the numbers of a history as lines of loss and accuracy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from course_lib.i18n import _
from course_lib.pictures.curves import QUANTITIES, SMOOTHING_STEPS, Curve, Split
from course_lib.watch.records import History


def curves(history: History) -> tuple[Curve, ...]:
    """Returns the lines that show a history: loss on train and held-out examples, then accuracy on both.

    A train curve has a value a step, the mean over the last 20 steps; a test curve has one an evaluation.
    """
    steps = tuple(record["step"] for record in history.steps)
    evaluated = tuple(record["step"] for record in history.epochs)
    found = []
    for quantity in QUANTITIES:
        means = smoothed([record[quantity] for record in history.steps])
        found.append(Curve(quantity, "train", steps, means))
        tested = tuple(record[f"test_{quantity}"] for record in history.epochs)
        found.append(Curve(quantity, "test", evaluated, tested))
    return tuple(found)


def smoothed(values: Sequence[float], num_steps: int = SMOOTHING_STEPS) -> tuple[float, ...]:
    """Returns at each step the mean over that step and the `num_steps - 1` before it, as far as there are.

    >>> smoothed([4.0, 2.0, 0.5], num_steps=2)
    (4.0, 3.0, 1.25)
    """
    if not values:
        return ()
    # Not by differences of cumulative sums: after one infinite loss every later mean would be NaN.
    padded = np.concatenate([np.zeros(num_steps - 1), values])
    sums = np.lib.stride_tricks.sliding_window_view(padded, num_steps).sum(axis=1)
    return tuple((sums / np.minimum(np.arange(1, len(values) + 1), num_steps)).tolist())


def summary(history: History) -> str:
    """Returns a phrase with the last value of each curve: what a picture tells those who cannot see it."""
    names = {
        ("loss", "train"): _("train loss"),
        ("loss", "test"): _("held-out loss"),
        ("accuracy", "train"): _("train accuracy"),
        ("accuracy", "test"): _("held-out accuracy"),
    }
    last = curves(History(history.steps[-SMOOTHING_STEPS:], history.epochs[-1:]))  # more is not needed
    values = [
        f"{names[curve.quantity, curve.split]} {curve.values[-1]:.2f}" for curve in last if curve.values
    ]
    if not values:
        return _("no step yet")
    return _("at step {step}: {values}", step=history.last_step, values=_(", ").join(values))


def splits_of(histories: Iterable[History]) -> tuple[Split, ...]:
    """Returns the lines that a legend should name: none of held-out examples where no run was evaluated."""
    return ("train", "test") if any(history.epochs for history in histories) else ("train",)
