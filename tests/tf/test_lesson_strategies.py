"""What `strategies` says of strategies and does not show: kinds of models, unequal parts, scopes, metrics."""

import subprocess
import sys

import numpy as np
import pytest

from course_lib.runtime import start_tensorflow
from lessons.strategies.global_batches import received_examples
from lessons.strategies.replica_runs import replicas
from tests.course import COURSE

tf = start_tensorflow()
import tf_keras  # noqa: E402

keras = tf.keras
ONES = np.ones((100, 1), np.float32)
FEATURES = np.arange(1, 14, dtype=np.float32)[:, None] / 4
LABELS = 3 * FEATURES - 1


def line(library=keras, optimizer=None, between=(), shape=(1,)):
    unit = library.layers.Dense(1, kernel_initializer="zeros")
    model = library.Sequential([library.Input(shape), *between, unit])
    model.compile(optimizer or library.optimizers.SGD(0.05), "mse")
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


def by_hand(features, labels, batch_size):
    """Returns loss and weights of one epoch in float64."""
    weight = bias = total = 0.0
    for start in range(0, len(features), batch_size):
        x = features[start : start + batch_size, 0].astype(np.float64)
        errors = weight * x + bias - labels[start : start + batch_size, 0]
        total += np.sum(errors**2)
        weight, bias = weight - 0.1 * np.mean(errors * x), bias - 0.1 * np.mean(errors)
    return total / len(features), [weight, bias]


@pytest.mark.parametrize("make", [functional, Subclassed])
def test_equal_parts_give_the_numbers_of_one_device(make):
    told, weights = fitted(replicas(2), make, FEATURES[:12], LABELS[:12], 4)
    loss, right = by_hand(FEATURES[:12], LABELS[:12], 4)
    assert [told, *weights] == pytest.approx([loss, *right], rel=1e-5)


def test_each_replica_that_runs_gets_the_examples_that_are_drawn():
    """The oracle is `strategy.run`: every replica reports its own number with the sum of its examples."""
    two, numbers = replicas(2), tf.data.Dataset.range(5).batch(4)

    @tf.function
    def report(part):
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        return tf.stack([tf.cast(replica, tf.int64), tf.reduce_sum(part)])

    ran = [two.run(report, (batch,)) for batch in two.experimental_distribute_dataset(numbers)]
    reports = [[each.numpy().tolist() for each in two.experimental_local_results(batch)] for batch in ran]
    drawn = received_examples(two, numbers.repeat(), most_batches=2).batches
    assert reports == [[[number, sum(part)] for number, part in enumerate(batch)] for batch in drawn]


def test_the_only_example_of_a_batch_counts_half_in_tf_keras_too_and_the_told_loss_is_right():
    told, weights = fitted(replicas(2), lambda: line(tf_keras), ONES[:5], ONES[:5], 4)
    assert weights == pytest.approx([0.14, 0.14])
    assert told == pytest.approx((4 * 1 + 0.8**2) / 5)


def drawn_alike(library):
    """Returns whether two replicas draw the same dropout mask."""
    strategy = replicas(2)
    with strategy.scope():
        dropout = library.layers.Dropout(0.5, seed=5)

    def draw():
        return dropout(tf.ones((1, 50)), training=True)

    first, second = strategy.experimental_local_results(tf.function(lambda: strategy.run(draw))())
    return np.array_equal(first, second)


@pytest.mark.parametrize(
    ("library", "differs"), [(keras, True), (tf_keras, False)], ids=["keras", "tf_keras"]
)
def test_what_a_replica_computes_from_its_part_alone(library, differs):
    sgd = library.optimizers.SGD
    features, labels = np.float32([[1], [2], [3], [-40]]), np.float32([[1], [0], [2], [5]])
    for kind in ("clipnorm", "clipvalue", "global_clipnorm"):
        one, two = (
            fitted(strategy, lambda: line(library, sgd(0.05, **{kind: 0.5})), features, labels, 4)[1]  # noqa: B023
            for strategy in (tf.distribute.get_strategy(), replicas(2))
        )
        assert np.allclose(one, two) != differs, kind
    assert drawn_alike(library) == differs


def test_train_on_batch_gives_every_replica_the_whole_batch_and_fit_a_part():
    rows = []

    class Seen(keras.layers.Layer):
        def call(self, inputs):
            tf.numpy_function(rows.append, [tf.shape(inputs)[0]], [])
            return inputs

    with replicas(2).scope():
        model = line(between=[Seen()])
    model.train_on_batch(ONES[:4], ONES[:4])
    assert list(map(int, rows)) == [4, 4]
    rows.clear()
    model.fit(ONES[:4], ONES[:4], batch_size=4, verbose=0)
    assert list(map(int, rows)) == [2, 2]


def test_each_replica_divides_by_its_own_unmasked_steps():
    def masked():
        return line(between=[keras.layers.Masking()], shape=(3, 1))

    steps = np.float32([[1, 2, 3], [4, 0, 0]])[:, :, None]
    told = [fitted(each, masked, steps, steps, 2)[0] for each in (tf.distribute.get_strategy(), replicas(2))]
    assert told == pytest.approx([30 / 4, (14 / 3 + 16) / 2])


@pytest.mark.parametrize("synchronized", [False, True])
def test_batch_normalisation_takes_the_moments_of_each_part_unless_it_is_synchronised(synchronized):
    def normalised():
        return line(between=[keras.layers.BatchNormalization(synchronized=synchronized)])

    both = [
        fitted(strategy, normalised, FEATURES[:12], LABELS[:12], 4)[1]
        for strategy in (tf.distribute.get_strategy(), replicas(2))
    ]
    assert np.allclose(*both, rtol=1e-4) == synchronized


def test_nccl_adds_up_on_gpus_alone():
    def total():
        return tf.distribute.get_replica_context().all_reduce("SUM", tf.constant(1.0))

    with pytest.raises(tf.errors.InvalidArgumentError, match="No OpKernel was registered"):
        tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], tf.distribute.NcclAllReduce()).run(total)


COLLIDE = """
import tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
def summed(count):
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    def add():
        return tf.distribute.get_replica_context().all_reduce("SUM", tf.ones(count))
    return tf.function(lambda: strategy.run(add))()
summed(2)
try:
    summed(6)
except Exception as error:
    print("Shape mismatch in the collective instance" in str(error))
"""


@pytest.mark.drill_all
def test_a_second_strategy_that_was_given_no_ops_meets_the_messages_of_the_first():
    run = [sys.executable, "-c", COLLIDE]
    done = subprocess.run(run, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.splitlines() == ["True"], done.stderr[-2000:]


def test_an_optimizer_outside_the_scope_counts_every_replica_or_fails_in_fit():
    strategy = replicas(2)
    for optimizer, iterations in ((keras.optimizers.SGD(0.05), 20), (keras.optimizers.Adam(), None)):
        with strategy.scope():
            unit = keras.layers.Dense(1, kernel_initializer="zeros")
            model = keras.Sequential([keras.Input((1,)), unit])
        model.compile(optimizer, "mse")
        if iterations is None:
            with pytest.raises(RuntimeError, match=r"Mixing different tf\.distribute\.Strategy objects"):
                model.fit(ONES, ONES, batch_size=10, shuffle=False, verbose=0)
        else:
            model.fit(ONES, ONES, batch_size=10, shuffle=False, verbose=0)
            assert model.optimizer.iterations.numpy() == iterations  # of 10 steps
            right = by_hand(ONES, ONES, 10)[1]
            assert [each.item() for each in model.get_weights()] == pytest.approx(right, rel=1e-5)


def test_momentum_outside_the_scope_lets_copies_drift_apart_in_a_loop():
    strategy = replicas(2)
    with strategy.scope():
        model = line()
    momentum = keras.optimizers.SGD(0.1, momentum=0.9)
    momentum.build(model.trainable_variables)

    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((model(ONES[:2]) - 1) ** 2) / 4
        gradients = tape.gradient(loss, model.trainable_variables)
        momentum.apply_gradients(zip(gradients, model.trainable_variables, strict=True))

    run = tf.function(lambda: strategy.run(step))
    for _step in range(3):
        run()
    first, second = strategy.experimental_local_results(model.trainable_variables[0].value)
    assert abs(first.numpy() - second.numpy()) > 1e-3  # every replica had the same examples


def test_aggregation_says_what_becomes_of_the_replicas_values():
    strategy, kinds = replicas(4), tf.VariableAggregation
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


def test_metrics_in_a_loop_under_central_storage_count_what_was_before_twice():
    strategy = tf.distribute.experimental.CentralStorageStrategy(["CPU:0", "CPU:1"], "CPU:0")
    with strategy.scope():
        added, mean = keras.metrics.Sum(), keras.metrics.Mean()

    def update(value):
        added.update_state(value)
        mean.update_state(value)

    for value in (3.0, 6.0):
        strategy.run(update, args=(tf.constant(value),))
    assert added.result().numpy() == pytest.approx(2 * (2 * 3 + 6))  # of two replicas; 18 is right
    assert mean.result().numpy() == pytest.approx((2 * 3 + 6) / 3)


def test_the_programs_of_today_in_the_appendix_repeat_the_estimator_in_this_tensorflow_too(capsys):
    cells = {cell.cell_id: cell.source for cell in COURSE.lesson("estimators").cells}
    names = {"tf": tf, "strategy": replicas(2)}
    for name in ("new", "loop", "global-mean"):
        exec(cells[name], names)
    assert capsys.readouterr().out == "weight 0.283\nloss   0.189\nweight 0.283\n"
