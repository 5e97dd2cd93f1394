"""Batch normalisation over the global batch, with one collective forward and one backward."""

from __future__ import annotations

from typing import Any

from course_lib.models.placement import Placement
from course_lib.runtime import start_tensorflow
from course_lib.specs.plan import BATCH

tf = start_tensorflow()


def normalise(
    values: Any, axis_name: str, place: Placement, *, epsilon: float, weights: Any | None = None
) -> tuple[Any, Any, Any]:
    """Returns values of mean 0 and variance 1 over the global batch, and the mean and variance that they had.

    The gradient is written down: TensorFlow's own takes one sum over the batch for the mean and one for the
    variance, which DTensor reduces apart. No gradient flows through the moments that are returned.

    Args:
        values: `[batch, axis_name] global`.
        axis_name: the name of the axis that is not the batch.
        place: where the tensors lie.
        epsilon: is added to the variance.
        weights: `[batch] global`, 1 or 0 for each row; all 1 if left out. Rows of weight 0 are normalised
            with the moments of the others.

    Returns:
        `[batch, axis_name] global`, and two of `[axis_name] global`.

    Source: Ioffe and Szegedy 2015, https://arxiv.org/abs/1502.03167 (section 3).
    """

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def normalised(values: Any) -> Any:
        mean, variance = batch_moments(values, axis_name, place, weights)
        scale = tf.math.rsqrt(variance + epsilon)
        normal = (values - mean) * scale

        def gradient(to_normal: Any, *_to_moments: Any) -> Any:
            sums = tf.reduce_sum(tf.stack([to_normal, to_normal * normal]), axis=1)
            shift, slope = tf.unstack(place.lay_out(sums, ("sum", axis_name)) / _count(values, weights))
            through_moments = shift + normal * slope
            if weights is not None:
                through_moments *= tf.expand_dims(weights, 1)
            return scale * (to_normal - through_moments)

        return (normal, mean, variance), gradient

    normal, mean, variance = normalised(values)
    return normal, mean, variance


def batch_moments(
    values: Any, axis_name: str, place: Placement, weights: Any | None = None
) -> tuple[Any, Any]:
    """Returns the mean and the variance over the global batch, `[axis_name] global` each.

    The mean must be known before the variance can be summed, so that `tf.nn.moments` waits for two
    all-reduces. Here each device takes the moments of its own rows; they are gathered in one collective, and
    combined everywhere. Where the mean is r times the deviation, the variance loses digits as r does; the
    difference of the sums of squares would lose them as r squared.

    Args:
        values: `[batch, axis_name] global`.
        axis_name: the name of the axis that is not the batch.
        place: where the tensors lie.
        weights: `[batch] global`, 1 or 0 for each row; all 1 if left out.

    Source: Chan, Golub and LeVeque 1983, https://doi.org/10.1080/00031305.1983.10483115 (equation 2.1).
    """
    num_rows, size = values.shape
    parts = place.batch_shards if num_rows % place.batch_shards == 0 else 1
    rows = tf.reshape(values, [parts, num_rows // parts, size])
    of_rows = None if weights is None else tf.reshape(weights, [parts, num_rows // parts, 1])
    counts = None if of_rows is None else tf.reduce_sum(of_rows, axis=1)

    def of_parts(numbers: Any) -> Any:
        if of_rows is None:
            return tf.reduce_mean(numbers, axis=1)
        # Told where to lie, since TensorFlow fails to choose if batch and units share a mesh dimension.
        sums = place.lay_out(tf.reduce_sum(of_rows * numbers, axis=1), (BATCH, axis_name))
        return tf.math.divide_no_nan(sums, counts)

    means = of_parts(rows)
    variances = of_parts(tf.square(rows - tf.expand_dims(means, 1)))
    gathered = place.lay_out(tf.stack([means, variances], axis=1), ("part", "moment", axis_name))
    means, variances = tf.unstack(gathered, axis=1)
    everywhere = None if counts is None else place.lay_out(counts, ("part", "count"))
    mean = _mean(means, everywhere)
    return mean, _mean(variances + tf.square(means - mean), everywhere)


def _mean(values: Any, weights: Any | None) -> Any:
    if weights is None:
        return tf.reduce_mean(values, axis=0)
    return tf.math.divide_no_nan(tf.reduce_sum(weights * values, axis=0), tf.reduce_sum(weights, axis=0))


def _count(values: Any, weights: Any | None) -> Any:
    return float(values.shape[0]) if weights is None else tf.reduce_sum(weights)
