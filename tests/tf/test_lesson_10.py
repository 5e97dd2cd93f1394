"""What lesson 10 says of TensorFlow and Keras without showing it, and the times that its widget asks for."""

import pytest

from course_lib import CourseError
from course_lib.runtime import start_tensorflow
from course_lib.strategies import mirrored
from course_lib.training.iteration_times import iteration_times
from course_lib.watch import step_times, trains_now

tf = start_tensorflow()


@pytest.fixture(scope="module")
def two():
    return mirrored(2)


def sent(strategy, *parts):
    return strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant(parts[context.replica_id_in_sync_group], tf.float32)
    )


def weight_after(strategy, inputs, divide, **options):
    """Returns the weight of y = 3 x after a step of SGD, the losses being |3 x - (2 x - 1)|."""
    with strategy.scope():
        weight, sgd = tf.Variable(3.0), tf.keras.optimizers.SGD(0.4, **options)
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


def test_under_the_default_of_keras_an_example_counts_a_sixth_or_a_quarter(two):
    loss = tf.keras.losses.MeanAbsoluteError()

    def total(*parts):
        shares = two.run(lambda part: loss(tf.zeros((len(part), 1)), part[:, None]), (sent(two, *parts),))
        return float(two.reduce("SUM", shares, axis=None))

    assert total([1, 0, 0], [0, 0]) == pytest.approx(1 / 6)
    assert total([0, 0, 0], [1, 0]) == pytest.approx(1 / 4)


def test_a_checkpoint_is_not_consumed_by_more_variables_than_it_has(tmp_path):
    path = tf.train.Checkpoint(known=tf.Variable(1.0)).write(str(tmp_path / "variables"))
    more = tf.train.Checkpoint(known=tf.Variable(0.0), more=tf.Variable(0.0))
    with pytest.raises(AssertionError, match="not bound to checkpointed values"):
        more.read(path).assert_consumed()


def test_the_widget_gets_a_time_for_each_way_unless_a_training_is_watched(two):
    times = iteration_times(two, 8, repeats=1)
    assert times.batch_size == 8
    assert min(times.for_loop_seconds, times.several_steps_seconds, times.whole_epoch_seconds) > 0
    with trains_now.watching(object()), pytest.raises(CourseError, match="A training is running"):
        step_times.measure_iteration(8)
