"""Training: equal to two independent oracles on every layout, stopped anywhere, resumed to the bit."""

import dataclasses
import functools
import itertools

import numpy as np
import pytest

from course_lib import CourseError
from course_lib.data.examples import Examples
from course_lib.models.sentiment import MLP, initial_values
from course_lib.specs.plan import Plan, data_parallel, model_parallel, replicated, spatial_parallel
from course_lib.training import compiled
from course_lib.training.checkpoints import CheckpointFolder
from course_lib.training.evaluate import evaluate
from course_lib.training.records import EpochRecord, StepRecord
from course_lib.training.run import train
from course_lib.training.trainer import Trainer
from tests.tf import oracles
from tests.tf.reused import Reused

FULLY_SHARDED = Plan("fully sharded", data_parallel(8).mesh, {"batch": "batch", "hidden": "batch"})
PLANS = {
    "one device, no DTensor": None,
    "one device": replicated(1),
    "replicated 2": replicated(2),
    "data 2": data_parallel(2),
    "data 4": data_parallel(4),
    "data 8": data_parallel(8),
    "model 4x2": model_parallel(4, 2),
    "model 1x8": model_parallel(1, 8),
    "spatial 2x2x2": spatial_parallel(2, 2, 2),
    "spatial 1x4x2": spatial_parallel(1, 4, 2),
    "fully sharded 8": FULLY_SHARDED,
}
# More of what is there; the plans that test_plan_runs.py draws by chance are held against NumPy too.
MORE_OF_A_KIND = ("replicated 2", "data 2", "data 4", "model 1x8", "spatial 1x4x2")
SMALL = (24, 8, 2)
SMALL_SET = oracles.random_examples(64 * 5 + 3, SMALL[0], seed=5)
TEST_SET = oracles.random_examples(50, SMALL[0], seed=6)
TWO = data_parallel(2)  # compiles in a third of the time of eight: for what does not depend on the layout


def new_run(plan=TWO, **changed):
    """Returns a new model and its run, for what is about making or compiling them."""
    settings = {"epochs": 3, "batch_size": 16, "learning_rate": 1e-2, "seed": 0} | changed
    model = MLP(initial_values(dims=SMALL), plan)
    return model, train(model, SMALL_SET, TEST_SET, **settings)


@functools.cache
def compiled_once():
    """Returns two trainers that take turns."""
    models = [MLP(initial_values(dims=SMALL), TWO) for _trainer in range(2)]
    return itertools.cycle([Reused(model) for model in models])


def small_run(**changed):
    """Returns a model with its first values, not that of the run before, and its run."""
    reused = next(compiled_once())
    return reused.model, reused.run(SMALL_SET, TEST_SET, **{"epochs": 3, "batch_size": 16} | changed)


@pytest.fixture(scope="module")
def undisturbed():
    """Returns what the records of a whole run say, and the values at its end."""
    model, run = new_run()
    return told(run), model.values()


def told(records):
    """Returns what records say, their seconds and checkpoint names left out."""
    return [
        dataclasses.replace(record, seconds=0.0)
        if isinstance(record, StepRecord)
        else dataclasses.replace(record, checkpoint=None)
        for record in records
    ]


@pytest.fixture(scope="module")
def twenty_steps():
    examples = oracles.random_examples(64 * 20 + 7)  # one epoch: at its end the moments catch up
    values = initial_values()
    return examples, oracles.train_numpy(values, examples, 20), oracles.train_one_device(values, examples, 20)


def largest_difference(model, losses, oracle):
    expected_losses, expected_values = oracle
    found = model.values()
    return max(
        np.abs(np.array(losses) - expected_losses).max(),
        *(np.abs(found[name] - expected_values[name]).max() for name in found),
    )


def run_twenty(plan, examples):
    model, losses = MLP(initial_values(), plan), []
    with train(model, examples, epochs=2) as run:
        for record in run:
            losses += [record.loss] if isinstance(record, StepRecord) else []
            if len(losses) == 20:
                break
    return model, losses


@pytest.mark.usefixtures("optimized")
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.drill_all] * (name in MORE_OF_A_KIND)) for name in PLANS],
)
def test_twenty_steps_equal_both_oracles_on_every_layout(name, twenty_steps):
    examples, by_numpy, by_one_device = twenty_steps
    model, losses = run_twenty(PLANS[name], examples)
    assert largest_difference(model, losses, by_numpy) < 1e-5
    assert largest_difference(model, losses, by_one_device) < 1e-5
    assert by_numpy[0][-1] < 0.7 * by_numpy[0][0]  # and something was learnt


@pytest.mark.parametrize("name", ["data 8", "spatial 2x2x2"])
def test_evaluation_counts_every_row_once(name):
    model, run = new_run(PLANS[name], epochs=1)
    list(run)
    for num_examples in (1, 7, 8, 50, 2049, 5000):
        examples = oracles.random_examples(num_examples, SMALL[0], seed=9)
        expected_loss, expected_accuracy = oracles.evaluate_numpy(model.values(), examples)
        loss, accuracy = evaluate(model, examples)
        assert loss == pytest.approx(expected_loss, abs=1e-5)
        assert accuracy == pytest.approx(expected_accuracy, abs=1e-9)


def test_records_count_steps_from_one_and_close_each_epoch():
    _model, run = small_run(epochs=2)
    records = list(run)
    assert (run.start_step, run.steps_per_epoch, run.total_steps, run.step) == (0, 20, 40, 40)
    step_records = [record for record in records if isinstance(record, StepRecord)]
    assert [record.step for record in step_records] == list(range(1, 41))
    assert [record.epoch for record in step_records] == [1] * 20 + [2] * 20
    assert {record.examples for record in step_records} == {16}
    assert all(record.seconds > 0 for record in step_records)
    epochs = [(at, record) for at, record in enumerate(records) if isinstance(record, EpochRecord)]
    assert [at for at, _record in epochs] == [20, 41]
    assert [(record.epoch, record.step, record.checkpoint) for _at, record in epochs] == [
        (1, 20, None),
        (2, 40, None),
    ]
    first = epochs[0][1]
    assert first.train_loss == pytest.approx(
        np.mean([record.loss for record in step_records[:20]]), rel=1e-12
    )
    assert first.train_accuracy == pytest.approx(np.mean([record.accuracy for record in step_records[:20]]))


def test_moments_catch_up_with_the_weights_at_the_end_of_an_epoch():
    model, run = small_run(epochs=1)
    assert len(list(run)) == run.steps_per_epoch + 1
    settings = {"batch_size": 16, "seed": 0}
    _losses, trained = oracles.train_numpy(initial_values(dims=SMALL), SMALL_SET, 20, **settings)
    _losses, expected = oracles.train_numpy(trained, SMALL_SET, 20, learning_rate=0.0, first=20, **settings)
    for name, value in model.values().items():
        np.testing.assert_allclose(value, expected[name], atol=1e-5)
    assert np.abs(expected["moving_mean"] - trained["moving_mean"]).max() > 1e-3


def test_a_diverging_training_stops_and_keeps_the_last_checkpoint(tmp_path):
    _model, run = small_run(epochs=1, checkpoints=CheckpointFolder(tmp_path))
    *_before, last = run
    model, run = small_run(epochs=2, checkpoints=CheckpointFolder(tmp_path))
    model.logits_bias.assign(np.float32("nan") * model.logits_bias.read_value())
    with run, pytest.raises(CourseError, match="loss of step 21 is not a finite number"):
        list(run)
    assert CheckpointFolder(tmp_path).names() == (last.checkpoint,)
    _model, again = small_run(epochs=2, checkpoints=CheckpointFolder(tmp_path))
    assert len(list(again)) == 21


@pytest.mark.parametrize("stop_after", [1, 20, 21, 39])
def test_stopped_and_resumed_equals_undisturbed_to_the_bit(stop_after, undisturbed, tmp_path):
    expected, values = undisturbed
    first, run = small_run(checkpoints=CheckpointFolder(tmp_path))
    records = [next(run) for _record in range(stop_after)]
    run.close()
    step_done = run.step
    assert step_done == sum(isinstance(record, StepRecord) for record in records)
    with pytest.raises(StopIteration):
        next(run)
    second, run = small_run(checkpoints=CheckpointFolder(tmp_path))
    assert run.start_step == step_done
    for name, value in first.values().items():
        assert np.array_equal(value, second.values()[name]), name
    assert told(records + list(run)) == expected
    for name, value in values.items():
        assert np.array_equal(value, second.values()[name]), name


def test_an_interrupt_inside_a_step_leaves_a_checkpoint_at_the_last_record(
    undisturbed, tmp_path, monkeypatch
):
    _model, run = small_run(checkpoints=CheckpointFolder(tmp_path))
    records = [next(run) for _record in range(20)]

    def interrupted(*_arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "evaluate", interrupted)
        with pytest.raises(KeyboardInterrupt):
            next(run)
    _model, resumed = small_run(checkpoints=CheckpointFolder(tmp_path))
    assert resumed.start_step == 20
    assert told(records + list(resumed)) == undisturbed[0]


def test_examples_that_do_not_fill_a_batch_are_refused_before_tensorflow_sees_them():
    model = MLP(initial_values(dims=SMALL), data_parallel(8))
    with pytest.raises(CourseError, match="15 training examples do not fill one batch"):
        train(model, Examples(SMALL_SET.features[:15], SMALL_SET.labels[:15]), epochs=1, batch_size=16)


@pytest.mark.parametrize(("refusals", "succeeds"), [(3, True), (4, False)])
def test_a_loop_that_got_the_name_of_an_older_one_is_compiled_again(refusals, succeeds, monkeypatch):
    made, compile_really = [], compiled.tf.function

    def refuse(*_arguments):
        raise compiled.tf.errors.InvalidArgumentError(
            None,
            None,
            "Cannot add function 'while7_body' because a different function with the same name"
            " already exists.",
        )

    def compile_or_refuse(function, **options):
        made.append(function)
        return refuse if len(made) <= refusals else compile_really(function, **options)

    _model, run = new_run(epochs=1)
    monkeypatch.setattr(compiled.tf, "function", compile_or_refuse)
    if succeeds:
        assert len(list(run)) == 21
        assert len(made) >= refusals + 1
    else:
        with pytest.raises(compiled.tf.errors.InvalidArgumentError):
            next(run)


def test_a_training_that_was_finished_has_no_record_left(tmp_path):
    _model, run = small_run(epochs=2, checkpoints=CheckpointFolder(tmp_path))
    assert len(list(run)) == 2 * run.steps_per_epoch + 2
    _model, finished = small_run(epochs=2, checkpoints=CheckpointFolder(tmp_path))
    assert list(finished) == []
