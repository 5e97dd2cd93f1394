"""What `faster` claims: many steps in a call train as one device does, from files never read whole."""

import os
from pathlib import Path

import numpy as np
import pytest

from benchmarks.steps import LESSON, SCHEMES, WHOLE_GAME, Steps, dtensor, stacked_batches, tf

RATE = np.float32(3e-3)


@pytest.fixture(scope="module")
def by_keras():
    """The losses of Keras's model and its Adam, on one device."""
    x, y = stacked_batches()
    model = tf.keras.Sequential(
        [tf.keras.Input((1200,)), tf.keras.layers.Dense(48, activation="relu"), tf.keras.layers.Dense(2)]
    )
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=tf.keras.optimizers.Adam(3e-3), loss=loss)
    model.set_weights([WHOLE_GAME.values[name] for name in ("W1", "b1", "W2", "b2")])
    return [
        float(model.evaluate(*batch, batch_size=64, verbose=0) + 0 * model.train_on_batch(*batch))
        for batch in zip(x, y, strict=True)
    ]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_32_steps_in_a_call_train_as_keras_does_on_one_device(scheme, by_keras):
    steps = Steps(*SCHEMES[scheme])
    placed = steps.placed(*stacked_batches())
    losses, _accuracies = LESSON.train_steps(steps.model, *placed, np.float32(1), RATE)
    np.testing.assert_allclose(losses.numpy(), by_keras, atol=1e-4)


def test_every_record_of_the_files_comes_once_and_few_of_them_are_held(tmp_path):
    labels = np.arange(6000)
    features = np.repeat(labels[:, np.newaxis] / 8192, 1200, axis=1).astype("float32")
    files = LESSON.write_files(features, labels, tmp_path, 2500)
    stacks = list(LESSON.stacks_of(files, 512).as_numpy_iterator())
    found = np.concatenate([y.ravel() for _x, y in stacks])
    assert len(np.unique(found)) == len(found) == 4096
    assert all((x[..., 7] * 8192 == y).all() for x, y in stacks)
    assert (np.abs(found[:2048] - np.arange(2048)) > 64).any()  # shuffled


def test_a_new_pipeline_gives_the_same_stacks_and_goes_on_where_it_is_told_to(tmp_path):
    labels = np.arange(5000)
    files = LESSON.write_files(np.zeros((5000, 1200), "float32"), labels, tmp_path, 2500)
    first, second = (
        list(LESSON.stacks_of(files, 512).skip(skipped).as_numpy_iterator()) for skipped in (0, 1)
    )
    assert (len(first), len(second)) == (2, 1)
    np.testing.assert_array_equal(first[1][1], second[0][1])


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="Linux says how much memory a process has")
def test_a_file_larger_than_what_is_held_is_read_to_its_end(tmp_path):
    huge = tmp_path / "huge.bin"
    huge.touch()
    os.truncate(huge, 100_000 * LESSON.RECORD_BYTES)  # 480 MB

    def held():
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    before = held()
    grown = [held() - before for _stack in LESSON.stacks_of([str(huge)], 1024)]
    assert len(grown) == 100_000 // 2048
    assert max(grown) < 200e6


def test_an_index_on_a_stack_splits_the_features_where_gather_leaves_the_rows():
    layouts = LESSON.layouts_on(dtensor.create_mesh(*SCHEMES["data"][:1], device_type="CPU"), LESSON.specs)
    stack = LESSON.place_stacked(np.ones((4, 64, 1200), "float32"), layouts["x"])
    shapes = [
        dtensor.unpack(tf.function(take)(stack))[0].shape
        for take in (lambda xs: tf.gather(xs, tf.constant(2)), lambda xs: xs[tf.constant(2)])
    ]
    assert shapes == [(8, 1200), (64, 150)]
