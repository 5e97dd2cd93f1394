"""Makes, cuts, moves and joins DTensors on eight virtual devices, and prints who holds what.

Run it: python mesh_and_layout.py
"""

import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor

# Eight virtual devices on one processor. They must be made before TensorFlow first uses its devices.
# On GPUs (not tried): keep as many virtual CPUs as there are GPUs, and name the GPUs in create_mesh.
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 8)

WHOLE = dtensor.UNSHARDED
grid = dtensor.create_mesh([("batch", 4), ("model", 2)], device_type="CPU")
rows_split = dtensor.Layout(["batch", WHOLE], grid)
columns_split = dtensor.Layout([WHOLE, "model"], grid)
both_split = dtensor.Layout(["batch", "model"], grid)


def cut(array, layout):
    """Returns the part of each device, in the order in which dtensor.pack wants them."""
    parts = []
    for position in layout.mesh.local_device_locations():
        part = array
        for axis, dim in enumerate(layout.sharding_specs):
            if dim != WHOLE:
                count = layout.num_shards(axis)
                pieces = np.split(part, count, axis)
                part = pieces[position[dim]]
        parts.append(part)
    return parts


def join(tensor):
    """Returns the whole array of a DTensor, put together on the host."""
    layout = dtensor.fetch_layout(tensor)
    joined = np.zeros(tensor.shape, tensor.dtype.as_numpy_dtype)
    positions = layout.mesh.local_device_locations()
    for position, part in zip(positions, dtensor.unpack(tensor)):
        where = []
        for dim, size in zip(layout.sharding_specs, part.shape):
            start = 0
            if dim != WHOLE:
                start = position[dim] * size
            where.append(slice(start, start + size))
        joined[tuple(where)] = part.numpy()
    return joined


def print_parts(title, tensor):
    layout = dtensor.fetch_layout(tensor)
    print(title, layout.sharding_specs)
    positions = layout.mesh.local_device_locations()
    for position, part in zip(positions, dtensor.unpack(tensor)):
        numbers = part.numpy()
        print(f"  {position}: {numbers.tolist()}, {numbers.nbytes} bytes")


matrix = np.arange(32, dtype="float32").reshape(8, 4)

rows = dtensor.pack(cut(matrix, rows_split), rows_split)
assert rows.shape == matrix.shape
assert (join(rows) == matrix).all()
print_parts("rows split", rows)

columns = dtensor.relayout(rows, columns_split)
assert (join(columns) == matrix).all()
print_parts("columns split", columns)

both = dtensor.copy_to_mesh(matrix, both_split)
assert (join(both) == matrix).all()
print_parts("both split", both)

nothing_split = dtensor.Layout.replicated(grid, rank=2)
assert (dtensor.relayout(rows, nothing_split).numpy() == matrix).all()

# A variable keeps the layout of its first value.
variable = dtensor.DVariable(rows)
variable.assign(columns + 100)
assert variable.layout == rows_split
assert (join(variable.read_value()) == matrix + 100).all()
print_parts("variable", variable.read_value())

# Each device makes its own block, and nobody holds the whole.
zeros = dtensor.call_with_layout(tf.zeros, both_split, shape=[8, 4])
print_parts("made in place", zeros)
