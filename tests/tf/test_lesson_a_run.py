"""What `a_run` claims: its program's step is NumPy's, evaluation counts each review once."""

import itertools

import numpy as np
import pytest

from tests.course import COURSE, program
from tests.tf import oracles

WEIGHTS, MOMENTS = ("W1", "b1", "W2", "b2"), ("mean", "variance")


@pytest.fixture(scope="module")
def a_run():
    return vars(program("a_run"))


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(1)
    y = np.arange(331) % 2
    return (random.normal(y[:, None] / 10, 1, (331, 1200)) / 35).astype("float32"), y


def held(model):
    return {name: getattr(model, name).numpy().astype(np.float64) for name in WEIGHTS + MOMENTS}


def test_a_step_on_eight_devices_is_numpys(a_run, rows):
    x, y = rows[0][:64], rows[1][:64]
    model = a_run["MLP"](0)
    before = held(model)
    expected, gradients, moments = oracles.numpy_gradients(before, x.astype(np.float64), y)
    loss, _accuracy = a_run["train_step"](model, a_run["split_rows"](x), a_run["split_rows"](y), 1e-2)
    after = held(model)
    assert float(loss) == pytest.approx(expected / 64, abs=1e-5)
    for name in WEIGHTS:
        np.testing.assert_allclose(after[name], before[name] - 1e-2 * gradients[name], atol=1e-5)
    np.testing.assert_allclose(after["mean"], 0.1 * np.asarray(moments[0]), atol=1e-5)


@pytest.mark.parametrize("count", [3, 331])
def test_each_review_counts_once_whatever_their_number(a_run, rows, count):
    x, y = rows[0][:count], rows[1][:count]
    model = a_run["MLP"](0)
    hidden = np.maximum(x @ model.W1.numpy(), 0)
    logits = hidden / np.sqrt(1 + 1e-5) @ model.W2.numpy()  # the moving moments are 0 and 1 at first
    losses = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(count), y]
    found = a_run["evaluate"](model, x, y)
    assert found["test_loss"] == pytest.approx(losses.mean(), abs=1e-5)
    assert found["test_accuracy"] == pytest.approx(np.mean(logits.argmax(axis=1) == y))


@pytest.mark.parametrize(
    "closed_after", [6, *(pytest.param(steps, marks=pytest.mark.drill_all) for steps in (1, 4, 5, 8))]
)
def test_a_closed_run_resumes_to_the_bit(a_run, rows, closed_after, tmp_path):
    arguments = *rows, (rows[0][:9], rows[1][:9]), 2  # five steps and an evaluation an epoch
    undisturbed, resumed = a_run["MLP"](0), a_run["MLP"](1)
    whole = list(a_run["train"](undisturbed, *arguments, tmp_path / "undisturbed"))
    run = a_run["train"](a_run["MLP"](0), *arguments, tmp_path / "closed")
    first = list(itertools.islice(run, closed_after))
    run.close()
    rest = list(a_run["train"](resumed, *arguments, tmp_path / "closed"))
    steps = [record for record in first + rest if "test_loss" not in record]
    assert steps == [record for record in whole if "test_loss" not in record]
    for name, value in held(undisturbed).items():
        np.testing.assert_array_equal(held(resumed)[name], value)


def test_several_steps_in_one_call_are_wrong_in_a_loop_of_python(a_run, rows, tmp_path):
    cells = COURSE.lesson("a_run").cells
    source = next(cell.source for cell in cells if "def train_steps" in cell.source)
    file, names = tmp_path / "steps.py", dict(a_run)
    file.write_text(source.partition("one_by_one")[0].replace("tf.range(", "range("))
    exec(compile(file.read_text(), str(file), "exec"), names)  # AutoGraph finds the lines in the file
    xs, ys = rows[0][:256].reshape(4, 64, -1), rows[1][:256].reshape(4, 64)
    one_by_one, together = a_run["MLP"](0), a_run["MLP"](0)
    for x, y in zip(xs, ys, strict=True):
        a_run["train_step"](one_by_one, a_run["split_rows"](x), a_run["split_rows"](y), 1e-2)
    names["train_steps"](together, names["split_stacked"](xs), names["split_stacked"](ys), 1e-2)
    largest = max(np.abs(held(together)[name] - value).max() for name, value in held(one_by_one).items())
    assert largest > 1e-4
