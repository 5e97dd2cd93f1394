"""What lesson 05 says and does not show: who receives what, which sums a step takes, what a checkpoint is."""

import functools

import numpy as np
import pytest

import course_lib
from course_lib import UNSHARDED, LayoutSpec, observed
from course_lib.dtensor import pack, unpack
from course_lib.models.sentiment import MLP, initial_values
from course_lib.specs.plan import data_parallel, model_parallel, spatial_parallel
from course_lib.training.checkpoints import CheckpointFolder
from course_lib.training.optimizers.sgd import SGD
from tests.tf import oracles
from tests.tf.reused import Reused

tf = course_lib.start_tensorflow()

PLANS = {"data": data_parallel(8), "model": model_parallel(4, 2), "spatial": spatial_parallel()}
GRID = PLANS["model"].mesh
DIMS, ROWS = (24, 8, 2), 16


def test_the_devices_of_a_replica_receive_the_same_quarter_of_the_rows():
    rows = np.arange(64 * 12, dtype="float32").reshape(64, 12)
    parts = unpack(pack(rows, PLANS["model"].layout(("batch", "features"))))
    for device_id in (4, 5):
        assert np.array_equal(parts[device_id], rows[32:48])
    halves = unpack(pack(rows[:12].T, PLANS["model"].layout(("features", "hidden"))))
    assert np.array_equal(np.concatenate(halves[4:6], axis=1), rows[:12].T)


def two_layers(x, w1, w2):
    return tf.matmul(tf.nn.relu(tf.matmul(x, w1)), w2)


def factors(*entries):
    random = np.random.default_rng(0)
    shapes = {(16, 24): ["batch", UNSHARDED], (24, 8): [UNSHARDED, "model"], (8, 2): list(entries)}
    arrays = [random.standard_normal(shape).astype("float32") for shape in shapes]
    layouts = [LayoutSpec(names, GRID) for names in shapes.values()]
    return arrays, [pack(*both) for both in zip(arrays, layouts, strict=True)]


def test_columns_over_the_same_dimension_gather_the_hidden_units():
    _arrays, packed = factors(UNSHARDED, "model")
    (gathered,) = observed.collectives(two_layers, *packed, mesh=GRID)
    assert (gathered.mesh_dims, gathered.payload_bytes) == (("model",), 4 * 4 * 8)


def test_a_checkpoint_holds_each_block_once_and_no_mesh(tmp_path):
    folder, values = CheckpointFolder(tmp_path), initial_values()
    folder.save(0, {}, model=MLP(values, PLANS["spatial"]))
    files = list(folder.latest().path.iterdir())
    sizes = [file.stat().st_size for file in files if ".data-" in file.name]
    block = values["hidden_weight"].nbytes // 4
    assert sum(size >= block for size in sizes) == 4
    assert sum(sizes) < 231_368 * 1.05  # the rest describes the objects
    content = b"".join(file.read_bytes() for file in files)
    assert b"hidden_weight" in content
    assert all(word not in content for word in (b"feature\x00", b"sharding", b"layout", b"CPU:"))


@functools.cache
def trainer(scheme):
    return Reused(MLP(initial_values(dims=DIMS), PLANS.get(scheme)), SGD())


@pytest.mark.parametrize(
    ("first", "second"), [("data", "model"), ("model", "spatial"), ("spatial", "one"), ("one", "data")]
)
def test_a_training_goes_on_in_another_scheme_as_on_one_device(first, second, tmp_path):
    examples = oracles.random_examples(128, DIMS[0])

    def losses(scheme, count, folder=None):
        with trainer(scheme).run(examples, epochs=1, batch_size=ROWS, checkpoints=folder) as run:
            return run.start_step, [next(run).loss for _step in range(count)]

    (start, begun), (step, continued) = losses(first, 3, tmp_path), losses(second, 4, tmp_path)
    assert (start, step) == (0, 3)
    np.testing.assert_allclose(begun + continued, losses("one", 7)[1], atol=1e-5)
