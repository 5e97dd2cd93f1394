"""What lesson 03 says: its own code, run as a script, held against NumPy, and its claims over several seeds.

Only claims about a whole epoch have bands: training amplifies the last bit.
"""

import itertools
import linecache

import numpy as np
import pytest
from tensorflow.experimental import dtensor

import course_lib
from course_lib import models, training
from course_lib.dtensor import pack, to_layout, to_numpy, unpack
from course_lib.exercises import checks, replicas
from course_lib.specs.plan import data_parallel
from tests.tf import oracles
from tools.lesson.sources import Course

tf = course_lib.start_tensorflow()

LEARNING_RATE = 1e-2
CELLS = {cell.cell_id: cell for cell in Course.here().lesson("03_one_step").cells}


@pytest.fixture(scope="module")
def lesson():
    """The names that the lesson's cells make, but for the live run, whose model is trained here."""
    names = {name: getattr(course_lib, name) for name in ("check", "predict", "reveal", "score")}
    names |= {"course_lib": course_lib, "plan": data_parallel(8)}
    for cell_id, cell in CELLS.items():
        if cell_id == "first-run":
            names["trained"] = models.MLP(models.initial_values(seed=0, scheme="he"), names["plan"])
            run = training.train(names["trained"], names["train_set"], names["test_set"], epochs=3)
            names["records"] = list(run)
        elif cell.kind == "code" and cell_id != "setup":
            lines = cell.source.splitlines(keepends=True)
            linecache.cache[cell_id] = len(cell.source), None, lines, cell_id  # AutoGraph reads it there
            exec(compile(cell.source, cell_id, "exec"), names)
    return names


def batches(lesson, count, rows="train_set"):
    for start in range(0, 64 * count, 64):
        yield lesson[rows].features[start : start + 64], lesson[rows].labels[start : start + 64]


def numpy_gradients(values, inputs, labels):
    wide = {name: np.asarray(value, np.float64) for name, value in values.items()}
    loss, gradients, _moments = oracles._numpy_gradients(wide, inputs.astype(np.float64), labels)
    return loss, gradients


def joined(values):
    return np.concatenate([np.ravel(values[name]) for name in replicas.NAMES])


def distance(ours, theirs):
    return np.linalg.norm(joined(ours) - joined(theirs)) / np.linalg.norm(joined(theirs))


def test_twenty_steps_are_those_of_numpy(lesson):
    values = {name: lesson["values"][name].astype(np.float64) for name in replicas.NAMES}
    losses = []
    for rows, labels in batches(lesson, 20):
        loss, gradients = numpy_gradients(values, rows, labels)
        losses.append(loss / 64)
        values = {name: values[name] - LEARNING_RATE * gradients[name] for name in values}
    np.testing.assert_allclose(lesson["pairs"], np.transpose([losses, losses]), atol=5e-5)
    held = {name: to_numpy(variable) for name, variable in lesson["eight_devices"].trained.items()}
    assert distance(held, values) < 1e-4


def test_the_iterator_of_a_dtensor_dataset_cannot_be_saved(tmp_path):
    plan = data_parallel(8)
    layouts = to_layout(plan.layout(("batch",)))
    dataset = dtensor.DTensorDataset(
        tf.data.Dataset.range(16), mesh=layouts.mesh, layouts=layouts, global_batch_size=8, batch_dim="batch"
    )
    batches = iter(dataset)
    assert len(unpack(next(batches))[0]) == 1
    with pytest.raises(AttributeError, match="_dataset"):
        tf.train.Checkpoint(batches=batches).save(str(tmp_path / "here"))


def test_gradients_of_parts_add_up_only_where_rows_do_not_see_each_other(lesson):
    total, partial_gradients = lesson["total"], lesson["partial_gradients"]
    assert lesson["difference"](total(lesson["partial"]), lesson["by_dtensor"](plain(lesson))) < 1e-6
    _loss, whole = numpy_gradients(lesson["values"], lesson["rows"], lesson["row_labels"])
    assert distance(total(partial_gradients(lesson["MLP"](lesson["values"]))), whole) == pytest.approx(
        0.768, abs=2e-3
    )
    assert distance(total(lesson["without_g"]), whole) == pytest.approx(0.742, abs=2e-3)
    assert distance(total(lesson["with_g"]), whole) < 1e-5
    by_dtensor = {name: to_numpy(gradient) for name, gradient in lesson["expected"].items()}
    assert distance(by_dtensor, whole) < 1e-5


def plain(lesson):
    return lesson["Plain"](lesson["values"], lesson["plan"])


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_with_gradient_descent_only_normalisation_makes_both_sets_trainable(lesson, seed):
    values = models.initial_values(seed=seed, scheme="he")
    ends = {}
    for kind, rows in itertools.product(("MLP", "Plain"), ("train_set", "raw_set")):
        model = lesson[kind](values)
        losses = [
            float(lesson["train_step"](model, *batch, LEARNING_RATE)) for batch in batches(lesson, 126, rows)
        ]
        ends[kind, rows] = np.mean(losses[-20:])
    assert max(ends["MLP", "train_set"], ends["MLP", "raw_set"]) < 0.59
    assert 0.62 < ends["Plain", "train_set"] < 0.69
    assert losses[1] > 4 * losses[0]
    assert ends["Plain", "raw_set"] == pytest.approx(np.log(2), abs=0.03)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(
    ("rows", "rate", "bounds"),
    [("train_set", 1e-2, (0, 0.55)), ("raw_set", 3e-4, (0, 0.55)), ("raw_set", 1e-2, (0.6, 0.8))],
)
def test_six_epochs_train_without_normalisation_at_a_rate_that_fits(lesson, seed, rows, rate, bounds):
    model = lesson["Plain"](models.initial_values(seed=seed, scheme="he"))
    for _epoch in range(6):
        losses = [float(lesson["train_step"](model, *batch, rate)) for batch in batches(lesson, 126, rows)]
    assert bounds[0] < np.mean(losses[-20:]) < bounds[1]


def test_padding_changes_the_mean_until_the_moments_are_weighted(lesson):
    assert [round(float(mean), 3) for mean in lesson["means"].values()] == [0.595, 0.148, 0.474, 0.428]
    weighted = np.dot(lesson["weights"], lesson["weighted_losses"]) / 20
    assert weighted == pytest.approx(lesson["right"], abs=1e-5)


def test_a_review_alone_gets_the_bias(lesson):
    bias = to_numpy(lesson["eight_devices"].logits_bias)
    for row in range(10):
        one = pack(lesson["test_set"].features[row : row + 1], lesson["one_row"])
        np.testing.assert_allclose(to_numpy(lesson["eight_devices"](one))[0], bias, atol=1e-6)
    assert 0.75 < np.mean(lesson["of_batches"]) < 0.775
    assert np.mean(lesson["test_set"].labels) == 0.5
    assert np.abs(lesson["among"][0] - lesson["alone"][0]).max() < 1e-5


def test_the_solutions_are_accepted(lesson):
    real = {name: to_layout(layout) for name, layout in lesson["image_layouts"].items()}
    assert checks.check("03-layouts", real).passed
    assert checks.check("03-step", lesson["distributed_step"]).passed
    assert checks.check("03-step", tf.function(lesson["distributed_step"])).passed
