"""Training under a strategy: equal to a loop by hand on one device, resumed, restored, refused."""

import asyncio
import dataclasses
import itertools

import numpy as np
import pytest

from course_lib.data.examples import Examples
from course_lib.models.fashion import convolutional
from course_lib.runtime import start_tensorflow
from course_lib.specs.received import split
from course_lib.training.checkpoints import CheckpointFolder
from course_lib.training.records import EpochRecord, StepRecord
from course_lib.training.run import TrainingRun
from course_lib.training.settings import Settings
from course_lib.training.strategy_trainer import StrategyTrainer
from course_lib.watch import live

tf = start_tensorflow()
layers = tf.keras.layers
ONE = tf.distribute.get_strategy()
MLP = {
    "epochs": 3,
    "batch_size": 16,
    "last_batch": "pad",
}  # 7 steps an epoch, of which the last has 5 examples


def mirrored(count=2):
    devices = [f"CPU:{at}" for at in range(count)]
    return tf.distribute.MirroredStrategy(devices, cross_device_ops=tf.distribute.ReductionToOneDevice())


@pytest.fixture(scope="module")
def two():
    return mirrored()


def random_examples(count, *shape, seed=1):
    random = np.random.default_rng(seed)
    labels = random.integers(0, 10, count)
    features = random.random((count, *shape)) + labels.reshape(-1, *[1] * len(shape)) / 5
    return Examples(features.astype(np.float32), labels)


EXAMPLES, TEST_SET = random_examples(6 * 16 + 5, 12), random_examples(33, 12, seed=2)


def mlp(strategy, dropout=0.0):
    drawn = tf.keras.initializers.GlorotUniform
    with strategy.scope():
        return tf.keras.Sequential(
            [
                tf.keras.Input((12,)),
                layers.Dense(16, "relu", kernel_initializer=drawn(1), kernel_regularizer="l2"),
                *([layers.Dropout(dropout, seed=5)] if dropout else []),
                layers.Dense(10, kernel_initializer=drawn(2), bias_regularizer="l2"),
            ]
        )


def trainer_of(strategy, model=None, optimizer=None, *, make=tf.keras.optimizers.Adam, rate=0.01, **settings):
    with strategy.scope():
        made = make(rate, **settings)
    return StrategyTrainer(
        mlp(strategy) if model is None else model, made if optimizer is None else optimizer, strategy
    )


def run_of(trainer, folder=None, examples=EXAMPLES, test_set=TEST_SET, **settings):
    return TrainingRun(trainer, examples, test_set, settings=Settings(**(MLP | settings)), checkpoints=folder)


def told(records):
    return [
        dataclasses.replace(record, seconds=0.0)
        if isinstance(record, StepRecord)
        else dataclasses.replace(record, checkpoint=None)
        for record in records
    ]


def values_of(model):
    return [variable.numpy() for variable in model.variables]


def largest_difference(some, others):
    return max(np.abs(one - other).max() for one, other in zip(some, others, strict=True))


def losses_of(records):
    return np.array([record.loss for record in records if isinstance(record, StepRecord)])


def by_hand(model, examples, order, optimizer):
    """Trains with nothing but gradients of a mean: no strategy, no weights, no scaling."""
    losses = []
    for rows in order:
        with tf.GradientTape() as tape:
            logits = model(examples.features[rows], training=True)
            each = tf.nn.sparse_softmax_cross_entropy_with_logits(examples.labels[rows], logits)
            objective = tf.reduce_mean(each) + sum(model.losses)
        optimizer.apply(tape.gradient(objective, model.trainable_variables), model.trainable_variables)
        losses.append(float(tf.reduce_mean(each)))
    return losses


def rows_of_steps(settings, num_examples):
    order = Settings(**settings).order(num_examples)
    numbers = Examples(np.arange(num_examples, dtype=np.float32)[:, None], np.zeros(num_examples, np.int64))
    for step in range(settings["epochs"] * order.steps_per_epoch):
        rows = order.stack(numbers, step, 1)[0][0, : order.num_real(step), 0]
        yield rows.astype(np.int64)


@pytest.fixture(scope="module")
def mlp_by_hand():
    model = mlp(ONE)
    losses = by_hand(model, EXAMPLES, rows_of_steps(MLP, len(EXAMPLES)), tf.keras.optimizers.Adam(0.01))
    return losses, values_of(model)


def require_equal_to_the_hand(strategy, mlp_by_hand):
    trainer = trainer_of(strategy)
    found = losses_of(
        asyncio.run(live.watch(run_of(trainer))).steps
    )  # in a thread of its own, as in a lesson
    losses, values = mlp_by_hand
    assert len(losses) == 21
    assert np.abs(found - losses).max() < 1e-5
    assert largest_difference(values_of(trainer.model), values) < 1e-5
    assert losses[-1] < 0.8 * losses[0]


def test_two_replicas_equal_a_loop_by_hand_on_one_device(two, mlp_by_hand):
    """Every seventh step has 5 examples, 3 and 2 on the replicas; two variables are regularised."""
    require_equal_to_the_hand(two, mlp_by_hand)


@pytest.mark.drill_all
@pytest.mark.parametrize("count", [4, 8])
def test_more_replicas_equal_it_too_some_of_them_empty(count, mlp_by_hand):
    require_equal_to_the_hand(mirrored(count), mlp_by_hand)


def small_images(strategy):
    return convolutional(strategy, 3, filters=(2, 4), hidden=8)


def require_equal_images(strategy):
    images = random_examples(9 * 8 + 1, 28, 28, 1)  # the last batch has one: a replica is empty
    settings = {"epochs": 2, "batch_size": 8, "last_batch": "pad"}
    trainer = trainer_of(strategy, small_images(strategy), rate=0.003)
    found = losses_of(run_of(trainer, None, images, None, **settings))
    model = small_images(ONE)
    optimizer = tf.keras.optimizers.Adam(0.003)
    losses = by_hand(model, images, rows_of_steps(settings, len(images)), optimizer)
    assert len(losses) == 20
    assert np.abs(found - losses).max() < 1e-3
    assert largest_difference(values_of(trainer.model), values_of(model)) < 1e-3


def test_the_convolutional_model_on_two_replicas_equals_a_loop_by_hand(two):
    require_equal_images(two)


@pytest.mark.drill_all
@pytest.mark.parametrize("count", [4, 8])
def test_the_convolutional_model_on_more_replicas_equals_it_too(count):
    require_equal_images(mirrored(count))


def test_it_stops_anywhere_resumes_to_the_bit_and_evaluates_the_same_without_a_strategy(two, tmp_path):
    """With dropout, whose seeds must go on, and a stop inside a call of several steps."""
    whole = trainer_of(two, mlp(two, 0.4))
    expected = told(run_of(whole))
    found, folder = [], CheckpointFolder(tmp_path)
    for count in (10, 100):
        trainer = trainer_of(two, mlp(two, 0.4))
        with run_of(trainer, folder) as run:
            found += itertools.islice(run, count)
    assert told(found) == expected
    for one, other in zip(values_of(trainer.model), values_of(whole.model), strict=True):
        assert one.tobytes() == other.tobytes()
    for one, other in zip(trainer.optimizer.variables, whole.optimizer.variables, strict=True):
        assert one.numpy().tobytes() == other.numpy().tobytes()
    assert list(values_of(whole.model)[2]) == [5, 21]  # the seed, and how often was drawn
    alone = trainer_of(ONE, mlp(ONE, 0.4))
    folder.restore_latest(**alone.content())
    last = [record for record in found if isinstance(record, EpochRecord)][-1]
    assert alone.evaluate(alone.examples(TEST_SET)) == pytest.approx((last.test_loss, last.test_accuracy))


def test_each_replica_is_sent_what_a_distributed_dataset_gives_it(two):
    trainer = trainer_of(two)
    for size in (1, 4, 5, 16):
        features = np.arange(16 * 12, dtype=np.float32).reshape(1, 16, 12)
        weights = (np.arange(16) < size).astype(np.float32)[None]
        sent = trainer.send(features, np.zeros((1, 16), np.int64), weights)
        dataset = tf.data.Dataset.from_tensor_slices(features[0, :size]).batch(16)
        (given,) = two.experimental_distribute_dataset(dataset)
        parts = [two.experimental_local_results(each) for each in (sent.inputs, sent.weights, given)]
        for inputs, counted, wanted in zip(*parts, strict=True):
            np.testing.assert_array_equal(inputs.numpy()[0, counted.numpy()[0] > 0], wanted.numpy())
        assert [len(part) for part in parts[2]] == list(map(len, split(range(size), 2)))
