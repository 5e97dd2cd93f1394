"""What `custom_training` claims and does not show: a run resumes to the bit, what TensorFlow and Keras do."""

import os
import platform
import subprocess
import sys

import numpy as np
import pytest

from benchmarks import programs
from course_lib.runtime import start_tensorflow
from lessons.strategies.replica_runs import replicas

tf = start_tensorflow()
EMPTY_CONVOLUTIONS = """
import tensorflow as tf
images = tf.nn.conv2d(tf.zeros((0, 8, 8, 1)), tf.zeros((3, 3, 1, 4)), 1, "SAME")
print(images.shape)
tf.nn.conv2d(images, tf.zeros((3, 3, 4, 2)), 1, "SAME")
"""


@pytest.fixture(scope="module")
def program():
    return vars(programs.program("custom_training"))


def dense():
    layers = tf.keras.layers
    hidden = layers.Dense(8, "relu", kernel_regularizer="l2")
    return tf.keras.Sequential([tf.keras.Input((6,)), hidden, layers.Dense(10)])


def batches(strategy, count, size):
    random = np.random.default_rng(0)
    arrays = random.normal(size=(count, 6)).astype("float32"), random.integers(0, 10, count)
    dataset = tf.data.Dataset.from_tensor_slices(arrays).batch(size).repeat()
    return strategy.experimental_distribute_dataset(dataset)


def values(model):
    return [variable.numpy() for variable in model.trainable_variables]


def test_a_run_resumes_to_the_bit_and_its_values_need_no_strategy(program, tmp_path):
    two = replicas(2)

    def trained(epochs, folder):
        model, adam = program["build"](two, dense)
        dataset = batches(two, 13, 8)  # parts of 4 and 4, then of 3 and 2
        step = program["replica_step"]
        run = program["train"](two, model, adam, step, dataset, 2, epochs, tmp_path / folder)
        return list(run), values(model)

    whole, undisturbed = trained(5, "whole")
    first, _values = trained(3, "stopped")  # the third epoch is not saved
    again, resumed = trained(5, "stopped")
    assert [record["step"] for record in again] == [5, 6, 7, 8, 9, 10]
    assert first[:4] + again == whole
    np.testing.assert_equal(resumed, undisturbed)
    alone, its_adam = program["build"](tf.distribute.get_strategy(), dense)
    state = tf.train.Checkpoint(model=alone, adam=its_adam, epoch=tf.Variable(0))
    state.restore(tf.train.latest_checkpoint(tmp_path / "whole")).assert_consumed()
    assert int(state.epoch) == 4


@pytest.mark.drill_all
@pytest.mark.skipif(platform.machine() != "x86_64", reason="oneDNN has other operations elsewhere")
def test_with_onednn_the_second_convolution_of_no_images_fails():
    environment = {**os.environ, "TF_ENABLE_ONEDNN_OPTS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [sys.executable, "-c", EMPTY_CONVOLUTIONS],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "(0, 8, 8, 1)"
    assert "input depth must be evenly divisible by filter depth" in done.stderr
