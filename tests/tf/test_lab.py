"""The training lab with the lesson's training: schemes that agree, going on in another one, to the bit."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from course_lib import start_tensorflow
from tests.course import from_lesson, program
from tests.explored import choose, press

tf = start_tensorflow()
from tensorflow.experimental import dtensor  # noqa: E402

TrainingLab = from_lesson("any_mesh.lab", "TrainingLab")
largest_differences = from_lesson("any_mesh.lab_runs", "largest_differences")
held = from_lesson("any_mesh.lab_view", "held")

SIZES, EXAMPLES, EPOCH = {"batch": 64, "features": 16, "hidden": 8, "classes": 2}, 640, 10
SCHEMES = ("one device", "data", "model", "spatial")
TOLERANCE = 1e-5  # float32 sums in another order, over 20 steps of a small model


@pytest.fixture(scope="module")
def lesson():
    """The lesson's program with a small model and few examples."""
    made, draw = program("any_mesh"), np.random.default_rng(0)
    for name in made.values:
        made.values[name] = draw.normal(0, 0.3, [SIZES[axis] for axis in made.axes[name]]).astype("float32")
    made.train_x = draw.normal(size=(EXAMPLES, SIZES["features"])).astype("float32")
    made.train_y = (made.train_x[:, :2].sum(axis=1) > 0).astype("int64")
    return made


@pytest.fixture(scope="module")
def lab(lesson, tmp_path_factory):
    """A lab that has trained two epochs under each scheme."""
    made = lab_in(tmp_path_factory.mktemp("lab"), lesson)
    choose(made, "epochs", 2)
    for scheme in SCHEMES:
        choose(made, "scheme", scheme)
        train(made)
    return made


def lab_in(folder, lesson):
    subject = {"meshes": lesson.meshes, "splits": lesson.splits, "axes": lesson.axes, "sizes": SIZES}
    return TrainingLab(lesson.train, str(folder), num_examples=EXAMPLES, **subject)


def train(lab, stop_after=None):
    async def run():
        press(lab, "run")
        while not lab.task.done():
            await asyncio.sleep(0)
            if stop_after and lab.runs[-1].step >= stop_after:
                press(lab, "stop")

    asyncio.run(run())
    return lab.runs[-1]


def losses(run):
    return {record["step"]: record["loss"] for record in run.history.steps}


def values_of(run):
    """Returns the values in a run's checkpoint, as TensorFlow reads them from the files."""
    reader = tf.train.load_checkpoint(str(run.folder))
    return {
        f"{kind} {name}": reader.get_tensor(f"model/{kind}/{name}/.ATTRIBUTES/VARIABLE_VALUE")
        for kind in ("weights", "means", "squares")
        for name in ("W1", "b1", "W2")
    }


def gap(left, right):
    return max(np.abs(left[name] - right[name]).max() for name in left)


def test_three_schemes_and_one_device_train_alike(lab):
    assert [(run.status, run.error) for run in lab.runs[:4]] == [("finished", "")] * 4
    assert all(len(run.history.steps) == 2 * EPOCH for run in lab.runs[:4])
    loss, accuracy = largest_differences(lab.runs[:4])
    assert 0 < loss[0] < TOLERANCE
    assert accuracy[0] == 0
    for run in lab.runs[1:4]:
        assert gap(values_of(run), values_of(lab.runs[0])) < TOLERANCE


@pytest.mark.parametrize(("first", "then", "largest"), [("data", "data", 0), ("data", "spatial", TOLERANCE)])
def test_a_run_that_was_stopped_goes_on_as_if_it_had_not_been(lab, first, then, largest):
    choose(lab, "start", "")
    choose(lab, "scheme", first)
    stopped = train(lab, stop_after=13)
    assert (stopped.status, stopped.step) == ("stopped", 13)
    choose(lab, "start", str(stopped.number))
    choose(lab, "scheme", then)
    run = train(lab)
    assert run.status == "finished", run.error
    undisturbed = lab.runs[SCHEMES.index(first)]
    expected, found = losses(undisturbed), losses(run)
    assert sorted(found) == list(range(14, 2 * EPOCH + 1))
    assert max(abs(found[step] - expected[step]) for step in found) <= largest
    assert gap(values_of(run), values_of(undisturbed)) <= largest


@pytest.mark.parametrize("scheme", SCHEMES)
def test_what_a_device_is_said_to_hold_is_what_it_holds(lesson, lab, scheme):
    choose(lab, "start", "")
    choose(lab, "scheme", scheme)
    layouts = lesson.LAYOUTS["one" if scheme == "one device" else scheme]
    model = lesson.Model(layouts)
    batch = [
        lesson.place(lesson.train_x[:64], layouts.get("x")),
        lesson.place(lesson.train_y[:64], layouts.get("y")),
    ]
    variables = sum(map(on_device_0, model.weights.values()))
    slots = sum(map(on_device_0, [*model.means.values(), *model.squares.values()]))
    expected = {
        "parameters": variables,
        "gradients": variables,
        "Adam's slots": slots,
        "batch": sum(map(on_device_0, batch)),
    }
    assert held(lab._subject, lab.setting) == expected


def on_device_0(tensor):
    value = tensor.read_value() if hasattr(tensor, "read_value") else tensor
    return (dtensor.unpack(value)[0] if dtensor.is_dtensor(value) else value).numpy().nbytes
