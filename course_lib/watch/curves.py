"""Training curves: the numbers of a history as lines of loss and accuracy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from course_lib.i18n import _
from course_lib.pictures.curves import QUANTITIES, Curve, Panels, Picture, Quantity, Split
from course_lib.training.records import EpochRecord, History, StepRecord

SMOOTHING_STEPS = 20


def curves(history: History) -> tuple[Curve, ...]:
    """Returns the lines that show a history: loss on train and held-out examples, then accuracy on both.

    A train curve has a value a step: the mean per example over the last 20 steps. A test curve has a value
    an epoch, and none for epochs that were not evaluated.
    """
    steps, epochs = tuple(history.steps), tuple(history.epochs)  # the training thread may be adding more
    return tuple(
        curve
        for quantity in QUANTITIES
        for curve in (_train_curve(quantity, steps), _test_curve(quantity, epochs))
    )


def _train_curve(quantity: Quantity, records: Sequence[StepRecord]) -> Curve:
    values = [getattr(record, quantity) for record in records]
    means = smoothed(values, [record.examples for record in records])
    return Curve(quantity, "train", tuple(record.step for record in records), means)


def _test_curve(quantity: Quantity, records: Sequence[EpochRecord]) -> Curve:
    measured = {record.step: getattr(record, f"test_{quantity}") for record in records}
    points = {step: value for step, value in measured.items() if value is not None}
    return Curve(quantity, "test", tuple(points), tuple(points.values()))


def smoothed(
    values: Sequence[float], examples: Sequence[int], num_steps: int = SMOOTHING_STEPS
) -> tuple[float, ...]:
    """Returns at each step the mean per example over that step and the `num_steps - 1` before it.

    Near the start there are fewer steps before, and the mean is over those.

    >>> smoothed([4.0, 2.0, 0.5], [1, 1, 2], num_steps=2)
    (4.0, 3.0, 1.0)
    """
    if not values:
        return ()
    weights = np.asarray(examples, dtype=np.float64)
    sums = _trailing_sums(np.asarray(values, dtype=np.float64) * weights, num_steps)
    return tuple((sums / _trailing_sums(weights, num_steps)).tolist())


def _trailing_sums(values: npt.NDArray[np.float64], num_steps: int) -> npt.NDArray[np.float64]:
    # Not by differences of cumulative sums: after one infinite loss every later mean would be NaN.
    padded = np.concatenate([np.zeros(num_steps - 1), values])
    sums: npt.NDArray[np.float64] = np.lib.stride_tricks.sliding_window_view(padded, num_steps).sum(axis=1)
    return sums


def last_step(history: History) -> int:
    """Returns the number of the last step in a history, 0 if there is none."""
    return history.steps[-1].step if history.steps else 0


def summary(history: History) -> str:
    """Returns a phrase with the last value of each curve: what a picture tells those who cannot see it."""
    names = {
        ("loss", "train"): _("train loss"),
        ("loss", "test"): _("held-out loss"),
        ("accuracy", "train"): _("train accuracy"),
        ("accuracy", "test"): _("held-out accuracy"),
    }
    values = [
        f"{names[curve.quantity, curve.split]} {curve.values[-1]:.2f}"
        for curve in curves(history)
        if curve.values
    ]
    if not values:
        return _("no step yet")
    return _("at step {step}: {values}", step=last_step(history), values=_(", ").join(values))


def splits_of(runs: Sequence[Sequence[Curve]]) -> tuple[Split, ...]:
    """Returns the lines that a legend should name: none of held-out examples where no run was evaluated."""
    evaluated = any(curve.split == "test" and curve.values for run in runs for curve in run)
    return ("train", "test") if evaluated else ("train",)


def training_curves(histories: Mapping[str, History]) -> Picture:
    """Returns one picture that lays the curves of several runs over each other.

    Args:
        histories: what each run is called in the legend, and its records.
    """
    drawn = [curves(history) for history in histories.values()]
    panels = Panels(
        tuple(histories), max(map(last_step, histories.values())), SMOOTHING_STEPS, splits_of(drawn)
    )
    panels.show(drawn)
    described = _("; ").join(
        _("{heading}: {content}", heading=name, content=summary(history))
        for name, history in histories.items()
    )
    return Picture(
        png=panels.png(),
        alt=_("Curves of loss and accuracy of several runs. {described}.", described=described),
        text=_("Picture: loss and accuracy over the steps, of {runs}.", runs=_(", ").join(histories)),
    )
