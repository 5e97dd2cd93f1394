"""Batch normalisation over the global batch, with one collective where TensorFlow's own moments need two."""

from __future__ import annotations

from typing import Any

from course_lib.models.placement import Placement
from course_lib.runtime import start_tensorflow

tf = start_tensorflow()


def batch_moments(
    values: Any, axis_name: str, place: Placement, weights: Any | None = None
) -> tuple[Any, Any]:
    """Returns the mean and the variance over the global batch, `[axis_name] global` each.

    The mean must be known before the variance can be summed, so that `tf.nn.moments` waits for two
    all-reduces. Here each device takes the moments of its own rows; they are gathered in one collective, and
    combined everywhere. No digits are lost where the mean is far above the deviation, as they are in the
    difference of the sums of squares.

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
    means = _mean(rows, of_rows, axis=1)
    variances = _mean(tf.square(rows - tf.expand_dims(means, 1)), of_rows, axis=1)
    gathered = place.lay_out(tf.stack([means, variances], axis=1), ("part", "moment", axis_name))
    means, variances = tf.unstack(gathered, axis=1)
    of_parts = None if of_rows is None else place.lay_out(tf.reduce_sum(of_rows, axis=1), ("part", "weight"))
    mean = _mean(means, of_parts, axis=0)
    return mean, _mean(variances + tf.square(means - mean), of_parts, axis=0)


def _mean(values: Any, weights: Any | None, axis: int) -> Any:
    if weights is None:
        return tf.reduce_mean(values, axis=axis)
    return tf.math.divide_no_nan(
        tf.reduce_sum(weights * values, axis=axis), tf.reduce_sum(weights, axis=axis)
    )
