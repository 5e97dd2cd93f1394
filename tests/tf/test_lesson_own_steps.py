"""What `own_steps` claims: variables that replicas write, noise by number, clipping."""

import numpy as np
import pytest

from benchmarks import programs
from course_lib import data
from course_lib.runtime import start_tensorflow
from lessons.strategies.own_steps import picture
from lessons.strategies.replica_runs import replicas

tf = start_tensorflow()


@pytest.fixture(scope="module")
def program():
    return vars(programs.program("own_steps"))


def copies(strategy, variable):
    return [float(copy.numpy()) for copy in strategy.experimental_local_results(variable)]


def test_a_read_after_a_write_sees_it_and_copies_come_apart_unless_they_are_added_up():
    four = replicas(4)
    with four.scope():
        velocity, weight, alone = (tf.Variable(value) for value in (0.0, 3.0, 0.0))
        seen = tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM)

    def on_replica():
        context = tf.distribute.get_replica_context()
        number = tf.cast(context.replica_id_in_sync_group, tf.float32)
        velocity.assign(0.5 * velocity + context.all_reduce("SUM", tf.constant(2.5)))
        weight.assign_sub(0.1 * velocity)
        alone.assign_add(number)
        seen.assign_add(number)

    step = tf.function(lambda: four.run(on_replica))
    for wanted in ((10, 2), (15, 0.5)):
        step()
        assert [copies(four, each) for each in (velocity, weight)] == [[each] * 4 for each in wanted]
    assert copies(four, alone) == [0, 2, 4, 6]
    assert copies(four, seen) == [12] * 4


def test_noise_repeats_in_every_epoch_unless_examples_are_repeated_first(program):
    numbered = tf.data.Dataset.range(3)

    def noises(dataset):
        return [noise for _image, noise in dataset.map(program["with_noise"]).take(6).as_numpy_iterator()]

    again = noises(numbered.enumerate().repeat())
    np.testing.assert_equal(again[:3], again[3:])
    anew = noises(numbered.repeat().enumerate())
    assert len({noise.tobytes() for noise in anew}) == 6


def weight_on_two_replicas():
    two = replicas(2)
    with two.scope():
        weight = tf.Variable([0.0, 0.0])
        sgd = tf.keras.optimizers.SGD(1.0)
        sgd.build([weight])
    return two, weight, sgd


def test_a_whole_gradient_is_clipped_as_on_one_device(program):
    two, weight, sgd = weight_on_two_replicas()

    def on_replica():
        number = tf.distribute.get_replica_context().replica_id_in_sync_group
        gradients = [tf.where(number == 0, [3.0, 0.0], [0.0, 4.0])]
        sgd.apply(program["clipped"](gradients, 1.0), [weight])

    two.run(on_replica)
    np.testing.assert_allclose(weight.numpy(), [-0.6, -0.8], rtol=1e-6)


def test_four_parts_have_the_losses_of_the_picture():
    fashion = data.load_fashion("built-in", num_train=1280, num_test=1000).train
    tf.keras.utils.set_random_seed(0)
    layers = tf.keras.layers
    model = tf.keras.Sequential([tf.keras.Input((28, 28, 1)), layers.Flatten(), layers.Dense(10)])
    labels, logits = fashion.labels[:64], model(fashion.features[:64])
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits).numpy()
    np.testing.assert_allclose(losses.reshape(4, 16).mean(axis=1), picture.PART_LOSSES, atol=0.005)


def test_a_gradient_that_is_dropped_by_its_part_is_dropped_in_part():
    two, weight, sgd = weight_on_two_replicas()

    @tf.function
    def on_replica():
        number = tf.distribute.get_replica_context().replica_id_in_sync_group
        gradients = [tf.where(number == 0, [3.0, 0.0], [0.0, 400.0])]
        keep = tf.cast(tf.linalg.global_norm(gradients) < 100.0, tf.float32)
        sgd.apply([keep * each for each in gradients], [weight])

    two.run(on_replica)
    assert weight.numpy().tolist() == [-3, 0]
