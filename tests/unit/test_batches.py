"""Batches: every row in its place, the last ones left out."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from course_lib.data.examples import Examples
from course_lib.training.batches import BatchOrder, shuffled

sizes = st.integers(1, 40)


def numbered(count: int) -> Examples:
    return Examples(np.arange(count, dtype=np.float32)[:, None], np.arange(count))


def epoch_of(order: BatchOrder, epoch: int, num_batches: int) -> list[np.ndarray]:
    """Returns the rows of each batch of an epoch, taken out of stacks."""
    batches, examples = [], numbered(order.num_examples)
    first = epoch * order.steps_per_epoch
    while len(batches) < order.steps_per_epoch:
        features, labels = order.stack(examples, first + len(batches), num_batches)
        assert features.shape == (num_batches, order.batch_size, 1)  # also where the epoch ends
        assert np.array_equal(features[..., 0], labels)
        batches += list(labels[: order.steps_per_epoch - len(batches)])
    return batches


@given(sizes, sizes, st.integers(0, 2**64 - 1), st.integers(0, 3), st.integers(1, 8))
def test_an_epoch_leaves_out_the_last_rows_of_its_order(count, size, seed, epoch, num_batches):
    order = BatchOrder(count, size, seed)
    rows, kept = epoch_of(order, epoch, num_batches), count - count % size
    assert np.array_equal(np.concatenate([*rows, np.zeros(0, np.int64)]), shuffled(count, seed, epoch)[:kept])
    assert order.examples_per_epoch == kept


def test_the_order_is_this_one_on_every_machine():
    expected = np.random.Generator(np.random.Philox(key=[3, 1])).permutation(10)
    assert np.array_equal(shuffled(10, 3, 1), expected)
    assert (
        len({tuple(shuffled(10, seed, epoch)) for seed, epoch in itertools.product(range(3), range(3))}) == 9
    )
