"""Strategies on the course's devices: what TensorFlow does in silence, and the check that catches it.

Each test shows the trap in TensorFlow first: where a new version no longer does the harm, it fails.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from course_lib import CourseError
from course_lib.runtime import start_tensorflow
from course_lib.strategies import (
    mirrored,
    physical_devices,
    require_alone,
    require_devices,
    require_in_scope,
    require_no_plain_updates,
    require_per_example,
)

tf = start_tensorflow()
keras = tf.keras
ONE = tf.distribute.ReductionToOneDevice


def copies(strategy, value) -> list:
    """Returns what each replica has of a value."""
    return [each.numpy() for each in strategy.experimental_local_results(value)]


def small_model():
    return keras.Sequential([keras.Input([1]), keras.layers.Dense(1, kernel_initializer="ones")])


def step_of(model, optimizer):
    """Returns a training step that gives every replica the same two examples."""

    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(model(tf.constant([[1.0], [2.0]])) ** 2) / 8
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    return step


# Devices


@pytest.mark.parametrize("replicas", [1, 2, 8])
def test_mirrored_takes_the_first_devices_and_many_live_side_by_side(replicas):
    strategy = mirrored(replicas)
    devices = [tf.DeviceSpec.from_string(each) for each in strategy.extended.worker_devices]
    assert [(each.device_type, each.device_index) for each in devices] == [
        ("CPU", number) for number in range(replicas)
    ]
    with strategy.scope():
        total = tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM)

    def add():
        mine = tf.distribute.get_replica_context().replica_id_in_sync_group
        total.assign_add(tf.cast(mine, tf.float32) + 1.0)

    strategy.run(add)
    assert copies(strategy, total) == [sum(range(replicas + 1))] * replicas


def test_a_device_that_does_not_exist_becomes_the_first_cpu_and_is_refused():
    for strategy in (
        tf.distribute.MirroredStrategy(["GPU:0", "CPU:9"], cross_device_ops=ONE()),
        tf.distribute.experimental.CentralStorageStrategy(["GPU:0", "CPU:9"], "CPU:8"),
        tf.distribute.OneDeviceStrategy("GPU:0"),
    ):
        with strategy.scope():
            variable = tf.Variable(1.0)
        computed = strategy.run(lambda: tf.zeros([]) + 1.0)
        used = [
            each.device.rpartition("/device:")[2]
            for value in (variable, computed)
            for each in strategy.experimental_local_results(value)
        ]
        assert set(used) == {"CPU:0"}  # the harm: two replicas, one device
        with pytest.raises(CourseError, match=r"There is no device GPU:0.\n  Allowed: CPU:0, CPU:1, "):
            require_devices(["/cpu:1", "GPU:0"])


def test_the_lower_case_query_finds_nothing_and_is_refused():
    assert (len(tf.config.list_physical_devices("cpu")), len(tf.config.list_physical_devices("CPU"))) == (
        0,
        1,
    )
    assert physical_devices("CPU") == tf.config.list_physical_devices("CPU")
    for wrong in ("cpu", "gpu", "Gpu", "", None):
        with pytest.raises(CourseError, match=r"no kind of device .*\n  Allowed: CPU, GPU, TPU"):
            physical_devices(wrong)


# Two strategies with collectives

COLLIDE = """
import course_lib
course_lib.setup(devices=2)
from course_lib.runtime import start_tensorflow
tf = start_tensorflow()
def trained(units):
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        weight = tf.Variable(tf.ones([2, units]))
        optimizer = tf.keras.optimizers.SGD(0.1)
        optimizer.build([weight])
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.ones([1, 2]) @ weight)
        optimizer.apply_gradients([(tape.gradient(loss, weight), weight)])
    tf.function(lambda: strategy.run(step))()
    return weight.numpy().ravel().tolist()
print([round(each, 6) for each in trained(1)])
try:
    print(trained(3))
except Exception as error:
    print("Shape mismatch in the collective instance" in str(error))
"""


@pytest.mark.drill
def test_a_second_default_strategy_really_collides():
    done = subprocess.run(
        [sys.executable, "-c", COLLIDE], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.splitlines() == ["[0.8, 0.8]", "True"], done.stderr[-2000:]


def test_a_second_default_strategy_is_refused_before_it_exchanges_anything():
    devices = ["CPU:0", "CPU:1"]
    first = require_alone(tf.distribute.MirroredStrategy(devices))
    assert require_alone(first) is first
    own = mirrored(2)
    assert require_alone(own) is own
    single = tf.distribute.MirroredStrategy(["CPU:0"])
    assert require_alone(single) is single
    default = tf.distribute.get_strategy()
    assert require_alone(default) is default
    for second in (
        tf.distribute.MirroredStrategy(devices),
        tf.distribute.MirroredStrategy(["CPU:2", "CPU:3"]),
    ):
        with pytest.raises(CourseError, match=r"second MirroredStrategy .* by collectives") as caught:
            require_alone(second)
        assert "ReductionToOneDevice()" in caught.value.cure


# What was made outside the scope


def test_a_model_made_outside_the_scope_fails_without_a_word_and_is_refused_with_some():
    strategy, outside = mirrored(2), small_model()
    with strategy.scope():
        optimizer = keras.optimizers.SGD(0.1)
        inside = small_model()
    with pytest.raises(AssertionError) as silent:
        strategy.run(step_of(outside, optimizer))
    assert str(silent.value).strip() in ("", "assert")
    with pytest.raises(CourseError, match=r"of Sequential '.*' was made outside the scope of this Mirrored"):
        require_in_scope(strategy, inside, outside)
    require_in_scope(strategy, inside)


def test_an_optimizer_made_outside_the_scope_lets_the_copies_drift_apart_and_is_refused():
    strategy = mirrored(2)
    with strategy.scope():
        model = small_model()
    optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
    optimizer.build(model.trainable_variables)
    train = tf.function(lambda: strategy.run(step_of(model, optimizer)))
    for _step in range(3):
        train()
    first, second = (copy.item() for copy in copies(strategy, model.trainable_variables[0].value))
    assert abs(first - second) > 1e-3  # the harm: every replica had the same examples
    with pytest.raises(CourseError, match=r"of SGD 'SGD' was made outside|of SGD 'sgd.*' was made outside"):
        require_in_scope(strategy, model, optimizer)


# What every replica changes


def test_a_plain_variable_counts_every_replica_and_is_refused_before_the_first_step():
    strategy = mirrored(2)
    steps = tf.Variable(0, name="steps")
    count = tf.function(lambda: strategy.run(lambda: steps.assign_add(1)))
    count()
    assert steps.numpy() == 2  # the harm: one step
    inner = tf.function(lambda: steps.assign_add(1))

    def in_a_loop(times):
        for _time in tf.range(times):
            steps.assign_add(1)

    def in_a_branch():
        return tf.cond(steps > 1, lambda: steps.assign(0), lambda: steps.assign(1))

    for step, args in ((inner, ()), (in_a_loop, (tf.constant(3),)), (in_a_branch, ())):
        with pytest.raises(CourseError, match=r"changes 'steps:0', one variable for all 2 replicas"):
            require_no_plain_updates(strategy, step, args)
    assert steps.numpy() == 2  # no step was run


def test_variables_of_the_scope_and_plain_ones_that_are_only_read_are_accepted():
    strategy = mirrored(2)
    factor = tf.Variable(2.0)
    with strategy.scope():
        total = tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM)
        of_each = tf.Variable(
            0.0,
            synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=tf.VariableAggregation.SUM,
        )
        first = tf.Variable(0, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)
        metric = keras.metrics.Mean()

    def step(value):
        total.assign_add(factor * value)
        of_each.assign_add(value)
        first.assign_add(1)
        metric.update_state(value)

    require_no_plain_updates(strategy, step, (tf.constant(1.0),))
    assert (total.numpy(), first.numpy()) == (0.0, 0)
    require_no_plain_updates(mirrored(1), lambda: factor.assign(1.0))  # one replica changes it once


# What is divided twice


def summed(strategy, loss) -> float:
    """Returns the loss of four examples with errors 2, 3, 4 and 5 as a step that divides by 4 has it."""
    features = np.array([[2.0], [3.0], [4.0], [5.0]], np.float32)
    batches = tf.data.Dataset.from_tensor_slices(features).batch(4)

    def step(batch):
        return tf.reduce_sum(loss(tf.zeros([2, 1]), batch)) / 4

    (batch,) = strategy.experimental_distribute_dataset(batches)
    return float(strategy.reduce("SUM", strategy.run(step, args=(batch,)), axis=None))


@pytest.mark.parametrize(
    ("reduction", "result"),
    [
        ("none", 3.5),
        (None, 3.5),
        ("sum", 3.5),
        ("sum_over_batch_size", 3.5 / 4),
        ("mean", 3.5 / 4),
        ("mean_with_sample_weight", 3.5 / 4),
    ],
)
def test_a_loss_that_divides_already_is_divided_twice_and_is_refused(reduction, result):
    strategy = mirrored(2)
    loss = keras.losses.MeanAbsoluteError(reduction=reduction)
    assert summed(strategy, loss) == pytest.approx(result)
    if result == 3.5:
        require_per_example(loss)
    else:
        with pytest.raises(
            CourseError, match=rf"MeanAbsoluteError has the reduction '{reduction}'.*\n.*none, sum"
        ):
            require_per_example(loss)
