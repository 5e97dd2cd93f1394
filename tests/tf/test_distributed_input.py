"""Distributed data sets: who really received which example, on two replicas."""

from __future__ import annotations

import pytest

from course_lib import CourseError
from course_lib.runtime import start_tensorflow
from tests.course import from_lesson
from tests.tf.replicas import mirrored

received_examples = from_lesson("strategies.received", "received_examples")

tf = start_tensorflow()


@pytest.fixture(scope="module")
def two():
    return mirrored(2)


def indices(count: int, batch_size: int):
    return tf.data.Dataset.range(count).batch(batch_size)


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


def test_features_are_no_indices(two):
    with pytest.raises(CourseError, match="float32"):
        received_examples(two, tf.data.Dataset.from_tensor_slices([0.5, 0.7, 1.9]).batch(2))
