"""What `mesh_and_layout` says of TensorFlow and does not show."""

import numpy as np
import pytest
from tensorflow.experimental import dtensor

from course_lib.devices.dtensor import tf

FREE = dtensor.UNSHARDED
WHOLE = np.arange(24, dtype="float32").reshape(6, 4)


@pytest.fixture(scope="module")
def rows_split():
    devices = [f"CPU:{device_id}" for device_id in range(6)]
    return dtensor.Layout(["batch", FREE], dtensor.create_mesh([("batch", 3), ("model", 2)], devices=devices))


def test_on_the_meshes_of_the_tutorial_the_shape_of_the_mesh_counts_the_parts():
    for dims, inputs in [
        ([("batch", 8)], ["batch", FREE]),
        ([("batch", 4), ("model", 2)], ["batch", FREE]),
        ([("batch", 2), ("feature", 2), ("model", 2)], ["batch", "feature"]),
    ]:
        layout = dtensor.Layout(inputs, dtensor.create_mesh(dims, device_type="CPU"))
        split = [axis for axis, dim in enumerate(inputs) if dim != FREE]
        assert [layout.shape[axis] for axis in split] == [layout.num_shards(axis) for axis in split]


def test_what_a_layout_must_keep_to_is_refused_and_its_short_forms_are_right(rows_split):
    mesh = rows_split.mesh
    with pytest.raises(ValueError, match="repeated"):
        dtensor.Layout(["batch", "batch"], mesh)
    with pytest.raises(tf.errors.UnknownError, match="divisible"):
        dtensor.copy_to_mesh(WHOLE[:5], rows_split)
    assert rows_split.local_shape_from_global_shape((5, 4)) == (1, 4)
    with pytest.raises(tf.errors.UnknownError):
        _row = dtensor.copy_to_mesh(WHOLE, rows_split)[0]
    with pytest.raises(tf.errors.UnimplementedError, match="got a regular tensor"):
        dtensor.DVariable(dtensor.copy_to_mesh(WHOLE, rows_split)).assign(WHOLE)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Neither layout nor DTensor"):
        dtensor.DVariable(WHOLE)
    assert dtensor.Layout.batch_sharded(mesh, "batch", rank=2) == rows_split
    assert dtensor.Layout.replicated(mesh, rank=2) == dtensor.Layout([FREE, FREE], mesh)
