"""The training lab with the real training: schemes that agree, going on in another one, Stop, errors."""

from __future__ import annotations

import time

import numpy as np
import pytest

from course_lib import models, start_tensorflow
from course_lib.devices.dtensor import pack, to_numpy
from course_lib.specs.plan import data_parallel
from course_lib.training.checkpoints import CheckpointFolder
from course_lib.training.saved import whole_in
from course_lib.turns import turns
from tests.course import from_lesson
from tests.explored import choose, press
from tests.tf import oracles

tf = start_tensorflow()
from tensorflow.experimental import dtensor  # noqa: E402

TrainingLab = from_lesson("splitting_the_model.lab", "TrainingLab")
largest_differences = from_lesson("splitting_the_model.lab_runs", "largest_differences")
held = from_lesson("splitting_the_model.lab_view", "held")

DIMS, EXAMPLES, EPOCH = (16, 8, 2), 640, 10
SCHEMES = ("one device", "data", "model", "spatial")
# Float32 sums in another order, over 20 steps of a small model.
TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def values():
    return models.initial_values(dims=DIMS)


@pytest.fixture(scope="module")
def examples():
    return oracles.random_examples(EXAMPLES, DIMS[0])


@pytest.fixture(scope="module")
def lab(values, examples):
    """A lab that has trained two epochs under each scheme."""
    made = TrainingLab(models.MLP, values, examples, examples)
    choose(made, "epochs", 2)
    for scheme in SCHEMES:
        choose(made, "scheme", scheme)
        train(made)
    return made


def train(lab):
    press(lab, "run")
    lab.wait()
    return lab.runs[-1]


def values_of(run):
    """Returns the values in a run's last checkpoint, read on one device."""
    model = models.MLP(models.initial_values(seed=1, dims=DIMS))
    CheckpointFolder(run.folder).restore_latest(model=model)
    return model.values()


def gap(left, right):
    return max(np.abs(left[name] - right[name]).max() for name in left)


def test_three_schemes_and_one_device_train_alike(lab):
    assert [run.status for run in lab.runs[:4]] == ["finished"] * 4
    assert all(len(run.history.steps) == 2 * EPOCH for run in lab.runs[:4])
    loss, accuracy = largest_differences(lab.runs[:4])
    assert 0 < loss[0] < TOLERANCE
    assert accuracy[0] == 0
    reference = values_of(lab.runs[0])
    for run in lab.runs[1:4]:
        assert gap(values_of(run), reference) < TOLERANCE


@pytest.mark.parametrize("source", [0, 2])
def test_a_run_goes_on_in_another_scheme_as_the_first_run_did(lab, source):
    reference = {record.step: record.loss for record in lab.runs[0].history.steps}
    first = whole_in(lab.runs[source].folder)[0]
    choose(lab, "start", f"{lab.runs[source].folder.name}/{first.name}")
    choose(lab, "scheme", SCHEMES[(source + 1) % 4])
    run = train(lab)
    assert run.status == "finished", run.error
    losses = {record.step: record.loss for record in run.history.steps}
    assert sorted(losses) == list(range(EPOCH + 1, 2 * EPOCH + 1))
    assert max(abs(losses[step] - reference[step]) for step in losses) < TOLERANCE
    assert gap(values_of(run), values_of(lab.runs[0])) < TOLERANCE


def test_cells_that_use_the_devices_beside_a_training_take_turns_with_it(lab):
    """Without turns the two wait for each other for ever, or TensorFlow refuses every later exchange."""
    choose(lab, "start", "")
    choose(lab, "scheme", "spatial")
    choose(lab, "epochs", 6)
    layout = data_parallel(8).layout(["features", "batch"])
    press(lab, "run")
    for _cell in range(8):
        with turns.turn():
            ones = pack(np.ones((8, 64), np.float32), layout)
            assert float(to_numpy(tf.reduce_sum(ones))) == 512
        time.sleep(0.05)
    lab.wait()
    assert (lab.runs[-1].status, lab.runs[-1].step) == ("finished", 6 * EPOCH)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_what_a_device_is_said_to_hold_is_what_it_holds(lab, scheme):
    choose(lab, "scheme", scheme)
    model = models.MLP(models.initial_values(dims=DIMS), lab.setting.plan)
    rows, labels = np.zeros((64, DIMS[0]), np.float32), np.zeros(64, np.int64)
    batch = model.place.send(rows, model.spec.inputs), model.place.send(labels, model.spec.labels)
    holders = {"parameters": model.variables, "gradients": model.trained.values(), "batch": batch}
    assert held(lab._subject, lab.setting.plan, 64) == {
        what: sum(map(on_device_0, tensors)) for what, tensors in holders.items()
    }


def on_device_0(tensor):
    value = tensor.read_value() if hasattr(tensor, "read_value") else tensor
    local = dtensor.unpack(value)[0] if dtensor.is_dtensor(value) else value
    return local.numpy().nbytes
