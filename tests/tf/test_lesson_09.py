"""What lesson 09 says of strategies and does not show: unequal parts, kinds of models, Estimators."""

import re

import numpy as np
import pytest

from course_lib.runtime import start_tensorflow
from course_lib.strategies import mirrored
from tests.course import COURSE

tf = start_tensorflow()
import tf_keras  # noqa: E402

keras = tf.keras
ONES = np.ones((100, 1), np.float32)
FEATURES = np.arange(1, 14, dtype=np.float32)[:, None] / 4
LABELS = 3 * FEATURES - 1


def line(library=keras, rate=0.05):
    unit = library.layers.Dense(1, kernel_initializer="zeros")
    model = library.Sequential([library.Input((1,)), unit])
    model.compile(library.optimizers.SGD(rate), "mse")
    return model


def functional():
    inputs = keras.Input((1,))
    model = keras.Model(inputs, keras.layers.Dense(1, kernel_initializer="zeros")(inputs))
    model.compile(keras.optimizers.SGD(0.05), "mse")
    return model


class Subclassed(keras.Model):
    def __init__(self):
        super().__init__()
        self.unit = keras.layers.Dense(1, kernel_initializer="zeros")
        self.compile(keras.optimizers.SGD(0.05), "mse")

    def call(self, inputs):
        return self.unit(inputs)


def fitted(strategy, make, features, labels, batch_size):
    with strategy.scope():
        model = make()
    told = model.fit(features, labels, batch_size=batch_size, shuffle=False, verbose=0).history["loss"][0]
    return told, [each.item() for each in model.get_weights()]


def by_hand(features, labels, batch_size, *, rate=0.05, share=lambda size: 1.0, first=(0.0, 0.0)):
    """Returns loss and weights of one epoch in float64; a step goes as far as `share` of its batch's size."""
    (weight, bias), total = first, 0.0
    for start in range(0, len(features), batch_size):
        x = features[start : start + batch_size, 0].astype(np.float64)
        errors = weight * x + bias - labels[start : start + batch_size, 0]
        total += np.sum(errors**2)
        step = 2 * rate * share(len(x))
        weight, bias = weight - step * np.mean(errors * x), bias - step * np.mean(errors)
    return total / len(features), [weight, bias]


@pytest.mark.parametrize(("replicas", "batch_size"), [(4, 10), (2, 3)])
def test_keras_3_stops_before_the_first_step_where_the_first_batch_falls_into_unequal_parts(
    replicas, batch_size
):
    strategy = mirrored(replicas)
    with strategy.scope():
        model = line()
    for call in (model.fit, model.evaluate):
        with pytest.raises(tf.errors.InvalidArgumentError, match="AddN must have the same size and shape"):
            call(ONES, ONES, batch_size=batch_size, verbose=0)
    assert [each.item() for each in model.get_weights()] == [0.0, 0.0]
    assert model.optimizer.iterations.numpy() == 0


def test_tf_keras_takes_such_a_batch_and_trains_otherwise():
    _told, weights = fitted(mirrored(4), lambda: line(tf_keras), FEATURES[:10], LABELS[:10], 10)
    assert abs(weights[0] - by_hand(FEATURES[:10], LABELS[:10], 10)[1][0]) > 0.1


@pytest.mark.parametrize("make", [line, functional, Subclassed], ids=["sequential", "functional", "class"])
def test_equal_parts_give_any_kind_of_model_the_numbers_of_one_device(make):
    told, weights = fitted(mirrored(2), make, FEATURES[:12], LABELS[:12], 4)
    loss, right = by_hand(FEATURES[:12], LABELS[:12], 4)
    assert told == pytest.approx(loss, rel=1e-5)
    assert weights == pytest.approx(right, rel=1e-5)


def test_two_replicas_on_a_device_that_takes_the_place_of_missing_ones_compute_the_right_numbers():
    absent = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"], tf.distribute.ReductionToOneDevice())
    told, weights = fitted(absent, line, FEATURES[:12], LABELS[:12], 4)
    loss, right = by_hand(FEATURES[:12], LABELS[:12], 4)
    assert [told, *weights] == pytest.approx([loss, *right], rel=1e-5)


def first_step(strategy):
    """Runs a step of a model without an Input and of an optimizer that was not built; returns the kernel."""
    with strategy.scope():
        model = keras.Sequential([keras.layers.Dense(1, kernel_initializer="zeros")])
        optimizer = keras.optimizers.SGD(0.05, momentum=0.9)

    def step(features, labels):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((labels - model(features)) ** 2) / 4
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))

    batches = tf.data.Dataset.from_tensor_slices((FEATURES[:4], LABELS[:4])).batch(4)
    (batch,) = strategy.experimental_distribute_dataset(batches)
    tf.function(lambda: strategy.run(step, args=batch))()
    return model.trainable_variables[0].value


def test_a_mirrored_strategy_makes_copies_of_variables_that_the_first_step_makes():
    strategy = mirrored(2)
    copies = strategy.experimental_local_results(first_step(strategy))
    right = by_hand(FEATURES[:4], LABELS[:4], 4)[1][0]
    assert [copy.device[-5:] for copy in copies] == ["CPU:0", "CPU:1"]
    assert [copy.numpy().item() for copy in copies] == pytest.approx([right, right], rel=1e-5)


def test_under_central_storage_a_model_without_an_input_fails_in_the_first_step():
    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError):
        first_step(central_storage(2))


def central_storage(replicas):
    devices = [f"CPU:{number}" for number in range(replicas)]
    return tf.distribute.experimental.CentralStorageStrategy(devices, "CPU:0")


@pytest.mark.parametrize("replicas", [2, 4])
def test_under_central_storage_a_batch_weighs_in_the_told_loss_as_often_as_the_next_as_there_are_replicas(
    replicas,
):
    told, weights = fitted(central_storage(replicas), line, FEATURES[:12], LABELS[:12], 4)
    right_loss, right = by_hand(FEATURES[:12], LABELS[:12], 4)
    totals = [0.0, *(n * by_hand(FEATURES[:n], LABELS[:n], 4)[0] for n in (4, 8, 12))]
    batches = np.diff(totals) / 4  # the loss of each batch, before its step
    assert weights == pytest.approx(right, rel=1e-5)
    assert told == pytest.approx(np.average(batches, weights=[replicas**2, replicas, 1]), rel=1e-5)
    assert told < right_loss  # the losses rise here
    assert by_hand(ONES, ONES, 10)[0] * 2 < fitted(central_storage(2), line, ONES, ONES, 10)[0]


def test_metrics_in_a_loop_under_central_storage_count_what_was_before_twice():
    strategy = central_storage(2)
    with strategy.scope():
        total, mean, accuracy = keras.metrics.Sum(), keras.metrics.Mean(), keras.metrics.BinaryAccuracy()

    def update(value, answer):
        total.update_state(value)
        mean.update_state(value)
        accuracy.update_state([1.0], [answer])

    for value, answer in ((3.0, 1.0), (6.0, 0.0)):
        strategy.run(update, args=(tf.constant(value), tf.constant(answer)))
    assert total.result().numpy() == pytest.approx(2 * (2 * 3 + 6))  # of two replicas; 18 is right
    assert mean.result().numpy() == pytest.approx((2 * 3 + 6) / 3)
    assert accuracy.result().numpy() == pytest.approx(2 / 3)


def test_the_program_of_today_in_the_appendix_repeats_the_estimator():
    """As `benchmarks/keras_support/estimator.py`: 10 steps at the rate 0.02, batches of 10 a replica."""
    (cell,) = [cell for cell in COURSE.lesson("A1_estimators").cells if cell.cell_id == "halved"]
    (program,) = re.findall(r"^```python\n(.*?)^```", cell.source, re.M | re.S)
    quiet = program.replace("steps=10)", "steps=10, verbose=0)")
    devices = '["CPU:0", "CPU:1"]'
    assert quiet.count(devices) == 1
    names = {"tf": tf}  # as it stands it may be the only strategy of its kind in a process: see require_alone
    exec(quiet.replace(devices, f"{devices}, tf.distribute.ReductionToOneDevice()"), names)
    right = (1 - 0.92**10) / 2  # an error of 1 that shrinks by 4 times the rate in each step, shared by two
    assert [each.item() for each in names["model"].get_weights()] == pytest.approx([right, right], rel=1e-5)
    assert names["strategy"].num_replicas_in_sync == 2
    assert right == pytest.approx(0.283, abs=5e-4)


def test_aggregation_says_what_becomes_of_the_replicas_values():
    strategy, kinds = mirrored(4), tf.VariableAggregation
    with strategy.scope():
        summed, averaged = (tf.Variable(0.0, aggregation=kind) for kind in (kinds.SUM, kinds.MEAN))
        first, copied = tf.Variable(0.0, aggregation=kinds.ONLY_FIRST_REPLICA), tf.Variable(0.0)

    def add():
        number = tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.float32) + 1
        for variable in (summed, averaged, first):
            variable.assign_add(number)
        copied.assign_add(1.0)

    strategy.run(add)
    assert [each.numpy() for each in (summed, averaged, first)] == [10.0, 2.5, 1.0]
    assert [each.numpy() for each in strategy.experimental_local_results(copied)] == [1.0] * 4
