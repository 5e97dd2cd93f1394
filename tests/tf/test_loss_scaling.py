"""Loss scaling: what TensorFlow and Keras themselves give for every choice of the explorer."""

import numpy as np
import pytest

from course_lib.runtime import start_tensorflow
from lessons.strategies import replica_runs
from lessons.strategies.global_batches import split
from tests.course import from_lesson

DIVISIONS, LossScaling = from_lesson("custom_training.loss_scaling_explorer", "DIVISIONS", "LossScaling")

tf = start_tensorflow()


def compiled(strategy, spec):
    """Returns a function from a distributed batch to each division's loss and gradient on each replica."""
    loss, weight = tf.keras.losses.MeanAbsoluteError(), tf.constant(3.0)

    def divided(division, outputs, targets, size, batch_size):
        losses = tf.abs(outputs - targets)
        if division in ("global", "full"):
            count = size if division == "global" else batch_size
            return tf.nn.compute_average_loss(losses, global_batch_size=count)
        if division == "replica":
            return tf.reduce_mean(losses)
        mean = loss(targets[:, None], outputs[:, None])
        return mean if division == "keras" else mean / strategy.num_replicas_in_sync

    def on_replica(inputs, size, batch_size):
        found = []
        for division in DIVISIONS:
            with tf.GradientTape() as tape:
                tape.watch(weight)
                value = divided(division, weight * inputs, 2 * inputs - 1, size, batch_size)
            found.append((value, tape.gradient(value, weight)))
        return found

    number = tf.TensorSpec((), tf.int32)

    @tf.function(input_signature=[spec, number, number], autograph=False)
    def run(inputs, size, batch_size):
        reports = strategy.run(on_replica, (inputs, size, batch_size))
        sums = [strategy.reduce("SUM", each, axis=None) for each in tf.nest.flatten(reports)]
        return reports, tf.nest.pack_sequence_as(reports, sums)

    return run


def as_floats(numbers):
    return tf.cast(numbers, tf.float32)


@pytest.mark.parametrize("replicas", [2, 4])
def test_tensorflow_gives_what_the_explorer_shows_for_every_choice(replicas):
    strategy = replica_runs.replicas(replicas)
    distributed = strategy.experimental_distribute_dataset(tf.data.Dataset.range(7).batch(8).map(as_floats))
    (batch,) = distributed
    parts = [tuple(part.numpy()) for part in strategy.experimental_local_results(batch)]
    assert tuple(parts) == split(range(7), replicas)
    run = compiled(strategy, distributed.element_spec)
    for size in range(1, 9):
        parts = [np.array(part, np.float32) for part in split(range(1, size + 1), replicas)]
        batch = replica_runs.sent(strategy, parts)
        for batch_size in (each for each in (4, 8) if size <= each):
            reports, sums = run(batch, size, batch_size)
            for at, division in enumerate(DIVISIONS):
                scaling = LossScaling(replicas, batch_size, size, division)
                losses, gradients = scaling.losses, scaling.gradients
                for found, wanted in zip(
                    [*map(strategy.experimental_local_results, reports[at]), *([each] for each in sums[at])],
                    [losses.reports, gradients.reports, [losses.total], [gradients.total]],
                    strict=True,
                ):
                    np.testing.assert_allclose(np.array(found), wanted, rtol=1e-6)
