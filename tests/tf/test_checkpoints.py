"""Checkpoints: whole or not there, and restored under any layout."""

import itertools

import numpy as np
import pytest

from course_lib import MeshSpec
from course_lib.devices.dtensor import to_numpy
from course_lib.models.sentiment import MLP, initial_values
from course_lib.runtime import start_tensorflow
from course_lib.specs.plan import Plan, data_parallel, model_parallel, spatial_parallel
from course_lib.training.checkpoints import CheckpointFolder

tf = start_tensorflow()
DIMS = (24, 8, 2)
NAMES = tuple(initial_values(dims=DIMS))
SCHEMES = {
    "one device": None,
    "data": data_parallel(8),
    "model": model_parallel(),
    "spatial": spatial_parallel(),
    "features": Plan("features", MeshSpec([("feature", 8)]), {"features": "feature"}),
}
NEXT = list(itertools.pairwise([*SCHEMES, "one device"]))  # restored in each CI run; weekly any from any


def variable(value: float):
    return tf.Variable([float(value), -float(value)])


def fill(folder: CheckpointFolder, *values: float):
    return [
        folder.save(int(value), {"value": value}, model=tf.Module(), v=variable(value)) for value in values
    ]


def restored(folder: CheckpointFolder):
    found = variable(0.0)
    saved = folder.restore_latest(model=tf.Module(), v=found)
    return saved, float(found[0])


@pytest.fixture(scope="module")
def saved_under(tmp_path_factory):
    """The values of a model, and for each scheme the folder of a checkpoint that was saved under it."""
    random = np.random.default_rng(1)
    initial = initial_values(dims=DIMS)
    values = {name: random.standard_normal(value.shape).astype("float32") for name, value in initial.items()}
    folders = {scheme: CheckpointFolder(tmp_path_factory.mktemp("saved")) for scheme in SCHEMES}
    for scheme, folder in folders.items():
        folder.save(1, {}, model=MLP(values, SCHEMES[scheme]))
    return values, folders


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(*pair, marks=() if pair in NEXT else pytest.mark.drill_all)
        for pair in itertools.product(SCHEMES, repeat=2)
    ],
)
def test_every_scheme_restores_what_every_scheme_saved_to_the_bit(first, second, saved_under):
    values, folders = saved_under
    model = MLP(initial_values(9, dims=DIMS), SCHEMES[second])
    folders[first].restore_latest(model=model)
    found = model.values()
    assert {name: found[name].tobytes() for name in found} == {n: v.tobytes() for n, v in values.items()}


def test_plain_tensorflow_reads_a_sharded_checkpoint_without_this_library(tmp_path):
    model, folder = MLP(initial_values(dims=DIMS), spatial_parallel()), CheckpointFolder(tmp_path)
    saved = folder.save(1, {}, model=model)
    for how in ("read", "restore"):
        plain = tf.Module()
        for name, value in initial_values(dims=DIMS).items():
            setattr(plain, name, tf.Variable(np.zeros_like(value)))
        status = getattr(tf.train.Checkpoint(model=plain), how)(str(tmp_path / saved))
        status.assert_existing_objects_matched()
        for name in NAMES:
            assert np.array_equal(getattr(plain, name), to_numpy(getattr(model, name))), (how, name)


def test_the_newest_three_are_kept_and_the_newest_is_restored(tmp_path):
    folder = CheckpointFolder(tmp_path)
    names = fill(folder, 1, 2, 3, 4, 5)
    assert folder.names() == tuple(names[2:])
    saved, value = restored(folder)
    assert (saved.name, saved.step, saved.facts, value) == (names[-1], 5, {"step": 5, "value": 5}, 5.0)


def test_a_record_of_a_checkpoint_that_a_kill_left_unfinished_is_passed_over(tmp_path):
    """With DVariables TensorFlow may write the record `checkpoint` before the files have their names."""
    folder = CheckpointFolder(tmp_path)
    names = fill(folder, 1, 2)
    for file in tmp_path.glob(f"{names[1]}.*"):
        if file.suffix != ".json":
            file.unlink()
    assert restored(folder)[1] == 1.0
    assert fill(folder, 3)[0] not in names
    assert restored(folder)[1] == 3.0


def test_an_interrupted_save_leaves_the_one_before_the_newest(tmp_path, monkeypatch):
    folder = CheckpointFolder(tmp_path)
    names = fill(folder, 1)

    def interrupted(*_arguments, **_options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(tf.train.CheckpointManager, "save", interrupted)
        with pytest.raises(KeyboardInterrupt):
            fill(folder, 2)
    assert folder.names() == tuple(names)
    assert restored(folder)[1] == 1.0
    fill(folder, 2)
    assert restored(folder)[1] == 2.0
