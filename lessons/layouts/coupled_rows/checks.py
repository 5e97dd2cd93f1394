"""The exercises of this lesson: the moments of all devices, and those of the rows that count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from course_lib.errors import CourseError
from course_lib.exercises.checks import exercise
from course_lib.exercises.devices import on_devices, refuse_new_axis
from course_lib.exercises.judging import drawn, judge
from course_lib.exercises.values import Array
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec

_ROWS = LayoutSpec(["batch", UNSHARDED], MeshSpec([("batch", 8)]))
Moments = tuple[Any, Any]


def of_all(means: Array, variances: Array) -> Moments:
    """Returns the moments of all rows; every device has equally many."""
    return means.mean(axis=0), variances.mean(axis=0) + means.var(axis=0)


def of_reviews(hidden: Array, row_weights: Array) -> Moments:
    """Returns the moments of the rows of weight 1."""
    counted = hidden[row_weights[:, 0] == 1]
    return counted.mean(axis=0), counted.var(axis=0)


def but(right: Callable[..., Moments], variance: Callable[..., Any]) -> Callable[..., Moments]:
    """Returns a function with the right mean and another variance: of the arguments and the right moments."""
    return lambda *given: (right(*given)[0], variance(*given, *right(*given)))


@exercise("coupled_rows-global", right=of_all)
def global_moments(answer: Callable[..., Any]) -> str | None:
    """The moments of the global batch, from those that each device has of its own rows."""
    averaged = _(
        "The mean is right. In the variance, average over the devices: divide by how many there are."
    )
    return judge(
        answer,
        of_all,
        drawn(_moments_of_devices),
        misconceptions={
            but(of_all, lambda means, own, *_right: own.mean(axis=0)): _(
                "The mean is right. The mean of the variances says how far rows are from the mean of their"
                " own device; how far these means are apart is missing."
            ),
            but(of_all, lambda means, own, *_right: means.var(axis=0)): _(
                "The mean is right. The variance of the means says how far the devices are apart; how far the"
                " rows of a device are from its mean is missing."
            ),
            but(of_all, lambda means, own, *_right: own.mean(0) + (means[0] - means[1]) ** 2 / 4): _(
                "This holds for two devices alone. There can be more."
            ),
            but(of_all, lambda means, own, *_right: own.mean(0) + means.var(0, ddof=1)): averaged,
            but(of_all, lambda means, own, *_right: own.mean(0) + len(means) * means.var(0)): averaged,
        },
        run=lambda function, *given: _two(function(*given)),
        advice=_(
            "Both results have the shape (units,): the mean, then the variance. Average over the devices,"
            " axis 0."
        ),
    )


@exercise("coupled_rows-moments", right=of_reviews)
def moments(answer: Callable[..., Any]) -> str | None:
    """The moments of the rows of weight 1, of a batch that lies on eight devices."""
    refuse_new_axis(answer)
    raised = []

    def on_eight(*given: Any) -> Moments:
        try:
            return _on_eight_devices(*given)
        except Exception:
            raised.append(True)
            raise

    hint = _hint(answer, on_eight)
    if hint is None or raised or _hint(answer, _on_one_device) is not None:
        return hint
    return _(
        "On one device this is right, on eight it is not: rows picked by `tf.where`, `tf.boolean_mask` or"
        " slices with tensors can be wrong. Multiply by the weights instead."
    )


def _hint(answer: Callable[..., Any], run: Callable[..., Any]) -> str | None:
    still_counted = _(
        "The mean is right. In the variance the padding still counts: multiply the *squared distances* by the"
        " weights, after you have subtracted the mean, and divide by the number of rows of weight 1."
    )
    return judge(
        answer,
        of_reviews,
        drawn(_padded_batch, count=4),
        misconceptions={
            lambda hidden, weights: (hidden.mean(axis=0), hidden.var(axis=0)): _(
                "In the batches of this check, this is the mean and the variance of all rows."
                " There are 8 or 16 rows, and padding can be anywhere and hold any numbers."
                " Only its weight 0 says that it is padding."
            ),
            lambda hidden, weights: ((weights * hidden).mean(axis=0), (weights * hidden).var(axis=0)): _(
                "The padding is zero, but it still counts as rows. Divide by the number of rows of weight 1."
            ),
            but(of_reviews, lambda rows, weights, mean, _right: ((rows - mean) ** 2).mean(0)): still_counted,
            but(
                of_reviews,
                lambda rows, weights, mean, _right: ((weights * rows - mean) ** 2).sum(0) / weights.sum(),
            ): still_counted,
        },
        run=run,
        advice=_(
            "Both results have the shape (units,): the mean of the rows of weight 1, then the mean of their"
            " squared distances from it."
        ),
    )


def _on_eight_devices(answer: Callable[..., Any], hidden: Array, row_weights: Array) -> Moments:
    """Returns the two results of a function of DTensors, joined from what devices hold."""
    with on_devices() as (tf, dtensor):
        given = dtensor.pack(hidden, _ROWS), dtensor.pack(row_weights, _ROWS)
        return _two(tf.nest.map_structure(dtensor.to_numpy, tf.function(answer)(*given)))


def _on_one_device(answer: Callable[..., Any], hidden: Array, row_weights: Array) -> Moments:
    """Returns the same of ordinary tensors."""
    tf = start_tensorflow()
    return _two(answer(tf.constant(hidden), tf.constant(row_weights)))


def _two(results: Any) -> Moments:
    if not isinstance(results, (tuple, list)) and np.ndim(results) == 2:  # of np.stack
        results = list(results)
    if not isinstance(results, (tuple, list)) or len(results) != 2:
        raise CourseError(_("Two results are asked for: return the mean, then the variance."))
    mean, variance = results
    return mean, variance


def _moments_of_devices(random: np.random.Generator) -> Moments:
    """Returns the means and the variances of some devices, for each of some units."""
    shape = int(random.integers(2, 9)), int(random.integers(1, 4))
    return random.integers(-5, 6, shape) / 2, random.integers(0, 9, shape) / 2


def _padded_batch(random: np.random.Generator) -> tuple[Array, Array]:
    """Returns rows, and weights of which some are 0 and at least two are 1."""
    size = int(random.choice([8, 16]))
    hidden, weights = random.integers(0, 5, (size, 3)), random.integers(0, 2, (size, 1))
    places = random.choice(size, 3, replace=False)
    weights[places[:2]], weights[places[2]] = 1, 0
    return hidden.astype(np.float32), weights.astype(np.float32)
