"""Batch normalisation over the global batch, with one collective forward and one backward."""

from __future__ import annotations

from typing import Any

from course_lib.models.placement import Placement
from course_lib.runtime import start_tensorflow

tf = start_tensorflow()


def normalise(values: Any, axis_name: str, place: Placement, *, epsilon: float) -> tuple[Any, Any, Any]:
    """Returns values of mean 0 and variance 1 over the global batch, and the mean and variance that they had.

    The gradient is written down: TensorFlow's own takes one sum over the batch for the mean and one for the
    variance, which DTensor reduces apart. No gradient flows through the moments that are returned.

    Args:
        values: `[batch, axis_name] global`.
        axis_name: the name of the axis that is not the batch.
        place: where the tensors lie.
        epsilon: is added to the variance.

    Returns:
        `[batch, axis_name] global`, and two of `[axis_name] global`.

    Source: Ioffe and Szegedy 2015, https://arxiv.org/abs/1502.03167 (section 3).
    """

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def normalised(values: Any) -> Any:
        mean, variance = batch_moments(values, axis_name, place)
        scale = tf.math.rsqrt(variance + epsilon)
        normal = (values - mean) * scale

        def gradient(to_normal: Any, *_to_moments: Any) -> Any:
            sums = tf.reduce_sum(tf.stack([to_normal, to_normal * normal]), axis=1)
            shift, slope = tf.unstack(place.lay_out(sums, ("sum", axis_name)) / values.shape[0])
            return scale * (to_normal - shift - normal * slope)

        return (normal, mean, variance), gradient

    normal, mean, variance = normalised(values)
    return normal, mean, variance


def batch_moments(values: Any, axis_name: str, place: Placement) -> tuple[Any, Any]:
    """Returns the mean and the variance over the global batch, `[axis_name] global` each.

    The mean must be known before the variance can be summed, so that `tf.nn.moments` waits for two
    all-reduces. Here each device takes the moments of its own rows; they are gathered in one collective, and
    combined everywhere. Where the mean is r times the deviation, the variance loses digits as r does; the
    difference of the sums of squares would lose them as r squared.

    Args:
        values: `[batch, axis_name] global`.
        axis_name: the name of the axis that is not the batch.
        place: where the tensors lie.

    Source: Chan, Golub and LeVeque 1983, https://doi.org/10.1080/00031305.1983.10483115 (equation 2.1).
    """
    num_rows, size = values.shape
    parts = place.batch_shards if num_rows % place.batch_shards == 0 else 1
    rows = tf.reshape(values, [parts, num_rows // parts, size])
    means = tf.reduce_mean(rows, axis=1)
    variances = tf.reduce_mean(tf.square(rows - tf.expand_dims(means, 1)), axis=1)
    gathered = place.lay_out(tf.stack([means, variances], axis=1), ("part", "moment", axis_name))
    means, variances = tf.unstack(gathered, axis=1)
    mean = tf.reduce_mean(means, axis=0)
    return mean, tf.reduce_mean(variances + tf.square(means - mean), axis=0)
