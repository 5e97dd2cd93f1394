"""What `one_step` says and does not show."""

import pytest

import course_lib

tf = course_lib.start_tensorflow()
from tensorflow.experimental import dtensor  # noqa: E402

MESH = dtensor.create_mesh([("batch", 8)], device_type="CPU")
EVERYWHERE = dtensor.Layout([dtensor.UNSHARDED], MESH)


@pytest.mark.parametrize(("length", "stays_apart"), [(2, False), (19, False), (20, True)])
def test_few_elements_become_the_copy_of_device_0(length, stays_apart):
    packed = dtensor.pack([tf.fill(length, float(device)) for device in range(8)], EVERYWHERE)
    wanted = list(range(8)) if stays_apart else [0] * 8
    for tensor in (dtensor.DVariable(packed).value(), tf.function(tf.abs)(packed)):
        assert [float(copy[0]) for copy in dtensor.unpack(tensor)] == wanted


def test_the_gradient_of_an_embedding_table_has_to_be_converted():
    with tf.GradientTape() as tape:
        table = tf.Variable(tf.ones([9, 2]))
        loss = tf.reduce_sum(tf.gather(table, [1, 1]))
    gradient = tape.gradient(loss, table)
    with pytest.raises(TypeError, match="IndexedSlices"):
        0.5 * gradient
    assert tf.convert_to_tensor(gradient).shape == [9, 2]


def test_the_iterator_of_a_dtensor_dataset_cannot_be_saved(tmp_path):
    dataset = dtensor.DTensorDataset(
        tf.data.Dataset.range(16),
        mesh=MESH,
        layouts=dtensor.Layout(["batch"], MESH),
        global_batch_size=8,
        batch_dim="batch",
    )
    batches = iter(dataset)
    assert len(dtensor.unpack(next(batches))[0]) == 1
    with pytest.raises(AttributeError, match="_dataset"):
        tf.train.Checkpoint(batches=batches).save(str(tmp_path / "here"))
