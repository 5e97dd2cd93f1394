"""Distributed data sets: who really received which example, on two and on four replicas."""

from __future__ import annotations

import pytest

from course_lib.runtime import start_tensorflow
from lessons.lesson_09_strategies.received import received_examples

tf = start_tensorflow()


def mirrored(num_replicas: int):
    """Returns a strategy without collective operations, which collide when a process has two."""
    devices = [f"CPU:{number}" for number in range(num_replicas)]
    return tf.distribute.MirroredStrategy(devices, cross_device_ops=tf.distribute.ReductionToOneDevice())


@pytest.fixture(scope="module")
def two():
    return mirrored(2)


def indices(count: int, batch_size: int):
    return tf.data.Dataset.range(count).batch(batch_size)


def test_five_examples_in_batches_of_four_leave_one_for_the_first_of_two_replicas(two):
    received = received_examples(two, indices(5, 4))
    assert received.batches == (((0, 1), (2, 3)), ((4,), ()))
    assert received.sizes == ((2, 2), (1, 0))
    assert received.empty == ((1, 1),)


def test_each_replica_that_runs_sees_what_is_told_of_it(two):
    """The oracle is `strategy.run`: every replica reports its own number with the sum of its examples."""
    seen = []

    @tf.function
    def report(part):
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        return tf.stack([tf.cast(replica, tf.int64), tf.reduce_sum(part)])

    for batch in two.experimental_distribute_dataset(indices(5, 4)):
        seen.append(
            [value.numpy().tolist() for value in two.experimental_local_results(two.run(report, (batch,)))]
        )
    told = received_examples(two, indices(5, 4))
    assert seen == [[[number, sum(part)] for number, part in enumerate(batch)] for batch in told.batches]


def test_a_data_set_without_end_is_cut_off(two):
    received = received_examples(two, indices(4, 4).repeat(), most_batches=3)
    assert len(received.batches) == 3
    assert received.repeated == (0, 1, 2, 3)
