"""What lesson 04 claims: its curves, the times that it measures, the evaluation that its reader writes.

Pictures are not compared, so the lines that they draw are. Training amplifies the last bit, so these are
bands and not numbers. Under SSE4.1, AVX2 and AVX-512, with oneDNN, with four threads and from moved initial
values the test accuracies of the three epochs were 0.865 to 0.877 with the lesson's settings and 0.502 to
0.568 with the tutorial's, whose last one from four seeds was at most 0.61. The lesson prints "above 0.8".
"""

import itertools

import numpy as np
import pytest

from course_lib.data import imdb as data
from course_lib.models import sentiment as models
from course_lib.specs import plan
from course_lib.training import run as training
from course_lib.training.evaluate import evaluate
from course_lib.training.records import History
from course_lib.watch import step_times
from course_lib.watch.curves import curves


@pytest.fixture(scope="module")
def histories():
    reviews = data.load_imdb("built-in")
    made = {}
    for name, scheme, unit_length in (("tutorial", "normal", False), ("ours", "he", True)):
        rows = data.tf_idf(reviews, unit_length=unit_length)
        model = models.MLP(models.initial_values(scheme=scheme), plan.data_parallel(2))  # compiles sooner
        made[name] = History()
        for record in training.train(model, rows.train, rows.test, epochs=3):
            made[name].add(record)
    return made


def lines(history):
    return {(curve.quantity, curve.split): curve for curve in curves(history)}


def test_our_settings_learn(histories):
    drawn = lines(histories["ours"])
    loss, accuracy = drawn["loss", "train"].values, drawn["accuracy", "train"].values
    assert len(loss) == 3 * 126
    assert loss[0] > 0.65
    assert max(loss[-100:]) < 0.35
    assert min(accuracy[-100:]) > 0.85
    assert drawn["accuracy", "test"].steps == (126, 252, 378)
    assert all(0.84 < value < 0.91 for value in drawn["accuracy", "test"].values)


def test_the_tutorials_settings_hardly_do(histories):
    drawn = lines(histories["tutorial"])
    assert drawn["loss", "train"].values[0] > 1.5
    assert all(0.45 < value < 0.65 for value in drawn["accuracy", "test"].values)


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_catching_up_lowers_the_loss_after_the_third_epoch_and_not_before(seed):
    """The lesson prints 0.05 as the bound between the two."""
    values, random = models.initial_values(), np.random.default_rng(seed)
    if seed is not None:
        values = {name: value * random.uniform(0.9999, 1.0001, value.shape) for name, value in values.items()}
    train_set, validation_set = data.tf_idf(data.load_imdb("built-in")).train.hold_out(1_000)
    model = models.MLP(values)
    run = training.train(model, train_set, validation_set, epochs=3)
    lower = []
    for _epoch in range(3):
        list(itertools.islice(run, run.steps_per_epoch))
        behind, _accuracy = evaluate(model, validation_set)
        lower.append(behind - next(run).test_loss)
    assert max(lower[:2]) < 0.05 < lower[2]


@pytest.mark.parametrize("batch_size", [64, pytest.param(8192, marks=pytest.mark.drill_all)])
def test_a_step_is_timed_on_one_device_and_on_eight(batch_size):
    times = step_times.measure(batch_size)
    assert times.batch_size == batch_size
    assert times.one_device_seconds > 0
    assert times.eight_devices_seconds > 0
    assert times.speedup == times.one_device_seconds / times.eight_devices_seconds
