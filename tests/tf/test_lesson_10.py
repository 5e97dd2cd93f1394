"""What lesson 10 claims: its program is its code, a run resumes to the bit, what TensorFlow and Keras do."""

import ast
import os
import platform
import re
import subprocess
import sys

import numpy as np
import pytest
import tf_keras

from benchmarks.plain_loop import PROGRAM as OF_LESSON_04
from course_lib import measured
from course_lib.runtime import start_tensorflow
from tools.lesson.sources import Course

tf = start_tensorflow()
PROGRAM = OF_LESSON_04.with_name("10_custom_training.py")
LESSON = Course.here().lesson("10_custom_training")
DEFINED = (ast.Import, ast.ImportFrom, ast.FunctionDef)
EMPTY_CONVOLUTIONS = """
import tensorflow as tf
images = tf.nn.conv2d(tf.zeros((0, 8, 8, 1)), tf.zeros((3, 3, 1, 4)), 1, "SAME")
print(images.shape)
tf.nn.conv2d(images, tf.zeros((3, 3, 4, 2)), 1, "SAME")
"""


def functions(source):
    return {node.name: ast.dump(node) for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}


def run_in(names, source, path):
    """Runs what code defines; AutoGraph finds its lines in the file."""
    path.write_text(source)
    exec(compile(source, str(path), "exec"), names)
    return names


def mirrored(count):
    devices = [f"CPU:{replica}" for replica in range(count)]
    return tf.distribute.MirroredStrategy(devices, tf.distribute.ReductionToOneDevice())


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    body = [
        node
        for node in ast.parse(PROGRAM.read_text()).body
        if isinstance(node, DEFINED) or "cross_entropy =" in ast.unparse(node)
    ]
    path = tmp_path_factory.mktemp("program") / "program.py"
    return run_in({}, "\n".join(map(ast.unparse, body)), path)


@pytest.fixture(scope="module")
def two():
    return mirrored(2)


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


def test_the_program_is_the_lessons_code_name_by_name():
    in_lesson = {}
    for cell in LESSON.cells:
        if cell.kind == "code" and "await" not in cell.source:
            in_lesson |= functions(cell.source)
    of_program = functions(PROGRAM.read_text())
    assert len(of_program) == 5
    assert {name: in_lesson.get(name) for name in of_program} == of_program


def test_a_run_resumes_to_the_bit_and_its_values_need_no_strategy(program, two, tmp_path):
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


def test_a_step_is_that_of_one_device_whatever_the_parts(program):
    four, one = mirrored(4), tf.distribute.get_strategy()
    after, losses = {}, {}
    for strategy in (four, one):
        model, _adam = program["build"](strategy, dense)
        with strategy.scope():
            sgd = tf.keras.optimizers.SGD(0.1)
        step, accuracy = program["make_train_step"](strategy, model, sgd, program["replica_step"])
        # Parts of 2 each, then of 2, 2, 1 and 0, of which no convolution is.
        parts = iter(batches(strategy, 13, 8))
        losses[strategy] = [(float(step(*next(parts))), float(accuracy.result())) for _step in range(2)]
        after[strategy] = values(model)
    np.testing.assert_allclose(losses[four], losses[one], rtol=1e-5)
    for ours, theirs in zip(after[four], after[one], strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


def sent(strategy, *parts):
    return strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant(parts[context.replica_id_in_sync_group], tf.float32)
    )


def weight_after(strategy, inputs, divide):
    """Returns the weight of y = 3 x after a step of SGD, the losses being |3 x - (2 x - 1)|."""
    with strategy.scope():
        weight, sgd = tf.Variable(3.0), tf.keras.optimizers.SGD(0.4)
        sgd.build([weight])

    def step(x):
        with tf.GradientTape() as tape:
            loss = divide(tf.abs(weight * x - (2 * x - 1)))
        sgd.apply([tape.gradient(loss, weight)], [weight])

    strategy.run(step, (inputs,))
    return weight.numpy()


def test_shares_of_five_examples_lead_to_another_weight_than_means():
    four = mirrored(4)
    inputs = sent(four, [1, 2], [3, 4], [5], [])
    share = lambda losses: tf.nn.compute_average_loss(losses, global_batch_size=5)  # noqa: E731
    assert weight_after(four, inputs, share) == pytest.approx(1.8)
    assert weight_after(four, inputs, tf.reduce_mean) == pytest.approx(-1.0)


def test_adam_hides_a_factor_that_sgd_does_not():
    def change(optimizer, factor):
        weight = tf.Variable(1.0)
        for gradient in (0.3, -0.1, 0.2):
            optimizer.apply([tf.constant(factor * gradient)], [weight])
        return weight.numpy() - 1

    adam, sgd = tf.keras.optimizers.Adam, tf.keras.optimizers.SGD
    assert change(adam(), 4) == pytest.approx(change(adam(), 1), rel=1e-3)
    assert change(sgd(), 4) == pytest.approx(4 * change(sgd(), 1), rel=1e-3)


def test_a_metric_has_a_copy_on_each_replica_and_adds_them_up(two):
    with two.scope():
        metric = tf.keras.metrics.Mean()
    two.run(metric.update_state, (sent(two, [1, 2, 3], [6]),))
    totals = [float(copy) for copy in two.experimental_local_results(metric.total.value)]
    assert (totals, float(metric.result())) == ([6, 6], 3)


def test_the_default_was_called_auto_and_keras_3_does_not_know_it():
    with pytest.raises(ValueError, match="Received: reduction=auto"):
        tf.keras.losses.MeanAbsoluteError("auto")
    loss = tf_keras.losses.MeanAbsoluteError(tf_keras.losses.Reduction.AUTO)
    over_size = tf_keras.losses.MeanAbsoluteError(tf_keras.losses.Reduction.SUM_OVER_BATCH_SIZE)
    labels, outputs = tf.zeros((3, 1)), tf.constant([[1.0], [2.0], [6.0]])
    assert float(loss(labels, outputs)) == float(over_size(labels, outputs)) == 3


@pytest.mark.parametrize("name", ["MeanSquaredError", "MeanAbsoluteError", "BinaryCrossentropy"])
def test_a_loss_takes_the_mean_over_the_last_axis_and_no_other(name):
    loss = getattr(tf.keras.losses, name)(reduction="none")
    ones, halves = tf.ones((2, 4, 4)), tf.fill((2, 4, 4), 0.5)
    whole, pointwise = loss(ones, halves), loss(ones[..., None], halves[..., None])
    assert (whole.shape, pointwise.shape) == ((2, 4), (2, 4, 4))
    of_examples = tf.reduce_mean(pointwise, axis=(1, 2))
    right = float(tf.nn.compute_average_loss(of_examples, global_batch_size=2))
    assert float(tf.nn.compute_average_loss(whole, global_batch_size=2)) == pytest.approx(4 * right)


def test_no_one_misses_the_seed_of_dropout_in_a_checkpoint(tmp_path):
    def dropping():
        return tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dropout(0.5, seed=0)])

    called, new = dropping(), dropping()
    states = [each.layers[0].seed_generator.state.value for each in (called, new)]
    called(tf.ones((1, 4)), training=True)
    path = tf.train.Checkpoint(model=called).write(str(tmp_path / "unnamed"))
    tf.train.Checkpoint(model=new).read(path).assert_consumed()
    assert [int(state[1]) for state in states] == [1, 0]
    path = tf.train.Checkpoint(model=called, seed=states[0]).write(str(tmp_path / "named"))
    tf.train.Checkpoint(model=new, seed=states[1]).read(path).assert_consumed()
    assert [int(state[1]) for state in states] == [1, 1]


def test_several_steps_end_in_an_error_where_no_batch_is_left(two, tmp_path):
    source = next(cell.source for cell in LESSON.cells if cell.cell_id == "several")
    several_steps = run_in({"tf": tf}, source, tmp_path / "several.py")["several_steps"]
    numbers = tf.data.Dataset.from_tensor_slices((np.arange(6, dtype="float32"),)).batch(2)
    dataset = two.experimental_distribute_dataset(numbers)

    def step(batch):
        return two.reduce("SUM", two.run(tf.reduce_sum, (batch,)), axis=None)

    assert float(several_steps(step, iter(dataset), 3)) == 5
    with pytest.raises(tf.errors.OutOfRangeError):
        several_steps(step, iter(dataset), 4)


def test_the_text_has_the_accuracies_that_were_measured():
    (text,) = (cell.source for cell in LESSON.cells if "`make results`" in cell.source)
    told = re.findall(r"(0\.\d{3}) to (0\.\d{3})", text)
    found = []
    for name in ("10_fashion", "10_fashion_5000", "10_stand_in"):
        (run,) = measured.load(name).runs.values()
        last = [seed[-1]["test_accuracy"] for seed in run.epochs]
        found.append((f"{min(last):.3f}", f"{max(last):.3f}"))
        assert [model.otherwise for model in run.restored] == [0, 0, 0]
    assert told == found


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
