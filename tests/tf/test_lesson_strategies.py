"""What `strategies` says of strategies, and neither shows nor lists among the features that were tried."""

import subprocess
import sys

import numpy as np
import pytest

from course_lib.runtime import start_tensorflow
from lessons.strategies.global_batches import received_examples
from lessons.strategies.replica_runs import replicas
from tests.course import COURSE

tf = start_tensorflow()
keras = tf.keras
ONES = np.ones((100, 1), np.float32)


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


def test_each_replica_divides_by_its_own_unmasked_steps():
    def told(strategy):
        with strategy.scope():
            unit = keras.layers.Dense(1, kernel_initializer="zeros")
            model = keras.Sequential([keras.Input((3, 1)), keras.layers.Masking(), unit])
            model.compile(keras.optimizers.SGD(0.05), "mse")
        return model.fit(steps, steps, batch_size=2, shuffle=False, verbose=0).history["loss"][0]

    steps = np.float32([[1, 2, 3], [4, 0, 0]])[:, :, None]
    both = [told(strategy) for strategy in (tf.distribute.get_strategy(), replicas(2))]
    assert both == pytest.approx([30 / 4, (14 / 3 + 16) / 2])


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


def test_sgd_outside_the_scope_counts_every_replica():
    with replicas(2).scope():
        model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.05), "mse")
    model.fit(ONES, ONES, batch_size=10, shuffle=False, verbose=0)
    assert model.optimizer.iterations.numpy() == 20  # of 10 steps


def test_the_programs_of_today_in_the_appendix_repeat_the_estimator_in_this_tensorflow_too(capsys):
    cells = {cell.cell_id: cell.source for cell in COURSE.lesson("estimators").cells}
    names = {"tf": tf, "strategy": replicas(2)}
    for name in ("new", "loop", "global-mean"):
        exec(cells[name], names)
    assert capsys.readouterr().out == "weight 0.283\nloss   0.189\nweight 0.283\n"
