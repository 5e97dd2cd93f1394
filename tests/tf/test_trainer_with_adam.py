"""A second optimizer through the same trainer, run, checkpoints and padding."""

import dataclasses
import functools

import numpy as np
import pytest

from course_lib.data.examples import Examples
from course_lib.models import sentiment
from course_lib.specs.plan import Plan, data_parallel, model_parallel, replicated, spatial_parallel
from course_lib.training.optimizers import SGD, Adam
from course_lib.training.records import StepRecord
from course_lib.training.run import train
from course_lib.training.trainer import ModelTrainer
from tests.tf import oracles
from tests.tf.reused import Reused

# Four devices compile in half the time of eight.
SHARED = Plan("fully sharded", data_parallel(4).mesh, {"batch": "batch", "hidden": "batch"})
ON_FOUR = [data_parallel(4), model_parallel(2, 2)]
DIMS = (24, 16, 10)


def named(plan) -> str:
    return "one device" if plan is None else plan.name


def digits(num_examples: int, num_features: int = DIMS[0]) -> Examples:
    """Returns examples of ten classes, each scattered around its own centre."""
    random = np.random.default_rng(3)
    labels = random.integers(0, 10, num_examples)
    centres = random.uniform(0, 1, (10, num_features))
    noise = 0.3 * random.standard_normal((num_examples, num_features))
    return Examples((centres[labels] + noise).astype(np.float32), labels)


def small_model(plan=None) -> sentiment.MLP:
    return sentiment.MLP(sentiment.initial_values(dims=DIMS), plan)


def largest_difference(first, second) -> float:
    return max(np.abs(first[name] - second[name]).max() for name in first)


def told(records) -> list:
    return [
        dataclasses.replace(record, seconds=0.0)
        if isinstance(record, StepRecord)
        else dataclasses.replace(record, checkpoint=None)
        for record in records
    ]


@functools.cache
def two_trainers(scheme):
    plan = {"one device": None, "data 2": data_parallel(2), "model 2x2": model_parallel(2, 2)}[scheme]
    return [Reused(small_model(plan), Adam()) for _trainer in range(2)]


@pytest.mark.parametrize(
    ("scheme", "stop_after"),
    [("one device", 6), ("data 2", 1), ("data 2", 6), ("model 2x2", 13)],
    ids=["one device", "in an epoch", "between epochs", "on 2x2"],
)
def test_stopped_and_resumed_under_adam_equals_undisturbed_to_the_bit(scheme, stop_after, tmp_path):
    examples, settings = digits(16 * 5), {"epochs": 3, "batch_size": 16}
    one, other = two_trainers(scheme)
    expected = told(one.run(examples, examples, **settings))
    undisturbed = one.model.values()
    run = one.run(examples, examples, **settings, checkpoints=tmp_path)
    records = [next(run) for _record in range(stop_after)]
    run.close()
    run = other.run(examples, examples, **settings, checkpoints=tmp_path)
    assert run.start_step == sum(isinstance(record, StepRecord) for record in records)
    assert told(records + list(run)) == expected
    assert largest_difference(other.model.values(), undisturbed) == 0.0


@pytest.mark.parametrize("plan", [None, *ON_FOUR, SHARED], ids=named)
def test_a_padded_last_batch_equals_one_device_on_its_real_rows_alone(plan):
    examples = digits(16 * 2 + 6)
    # Not Adam: a unit that every row of a small batch activates has no gradient in its bias but rounding,
    # since normalisation takes shifts away, and Adam makes steps of full length of that.
    optimizer, model = SGD(1e-2), small_model(plan)
    run = train(model, examples, epochs=1, batch_size=16, optimizer=optimizer, last_batch="pad")
    *steps, epoch = run
    alone = ModelTrainer(small_model(), optimizer)
    order = np.random.Generator(np.random.Philox(key=[0, 0])).permutation(len(examples))
    expected = []
    for rows in (order[:16], order[16:32], order[32:]):
        batch = alone.send(examples.features[None, rows], examples.labels[None, rows], None)
        ((loss,), (hits,)) = alone.steps(batch, 1)()
        expected.append((loss / len(rows), hits / len(rows), len(rows)))
    found = [(record.loss, record.accuracy, record.examples) for record in steps]
    assert np.abs(np.subtract(found, expected)).max() < 1e-5
    trained = alone.model.trained
    assert max(np.abs(model.values()[name] - trained[name].numpy()).max() for name in trained) < 1e-5
    assert epoch.train_loss == pytest.approx(
        np.dot([16, 16, 6], [loss for loss, *_ in expected]) / 38, abs=1e-5
    )


@pytest.mark.parametrize("plan", [None, *ON_FOUR, spatial_parallel(), replicated(2)], ids=named)
def test_while_the_moments_catch_up_weights_slots_and_counter_stay_to_the_bit(plan):
    examples = oracles.random_examples(16 * 5, 24)
    trainer = ModelTrainer(sentiment.MLP(sentiment.initial_values(dims=(24, 8, 2)), plan), Adam())
    stack = np.arange(80).reshape(5, 16)
    batches = trainer.send(examples.features[stack], examples.labels[stack], None)
    trainer.steps(batches, 5)()
    before, slots_before = trainer.model.values(), slot_values(trainer)
    trainer.end_epoch(batches)
    after, slots_after = trainer.model.values(), slot_values(trainer)
    for name in trainer.model.trained:
        assert np.array_equal(before[name], after[name]), name
    assert all(np.array_equal(*pair) for pair in zip(slots_before, slots_after, strict=True))
    assert slots_after[-1] == 5
    for name in ("moving_mean", "moving_variance"):
        assert np.abs(before[name] - after[name]).max() > 1e-4, name


def slot_values(trainer) -> list[np.ndarray]:
    slots, fetch = trainer.slots, trainer.model.place.fetch
    return [fetch(variable) for variable in (*slots.means.values(), *slots.squares.values(), slots.steps)]
