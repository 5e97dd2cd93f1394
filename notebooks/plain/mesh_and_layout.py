"""Makes, reads and moves DTensors on eight virtual devices, and prints who holds what.

Run it: python mesh_and_layout.py
"""

import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor

# Eight virtual devices on one processor. They must be made before TensorFlow first uses its devices.
# On GPUs (not tried): keep as many virtual CPUs as there are GPUs, and name the GPUs in create_mesh.
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 8)

mesh = dtensor.create_mesh([("x", 4), ("y", 2)], device_type="CPU")
rows_over_x = dtensor.Layout(["x", dtensor.UNSHARDED], mesh)
columns_over_y = dtensor.Layout([dtensor.UNSHARDED, "y"], mesh)
all_split = dtensor.Layout(["x", "y"], mesh)


def cut(whole, layout):
    """Returns the component of each device, in the order in which dtensor.pack wants them."""
    components = []
    for place in layout.mesh.local_device_locations():
        part = tf.constant(whole)
        for axis, dim in enumerate(layout.sharding_specs):
            if dim != dtensor.UNSHARDED:  # layout.shape is the shape of the mesh: not the number of parts
                part = tf.split(part, layout.num_shards(axis), axis)[place[dim]]
        components.append(part)
    return components


def join(tensor):
    """Returns the whole array of a DTensor; .numpy() is refused where the layout splits an axis."""
    layout = dtensor.fetch_layout(tensor)
    places = layout.mesh.local_device_locations()
    joined = np.zeros(tensor.shape, tensor.dtype.as_numpy_dtype)
    for place, part in zip(places, dtensor.unpack(tensor)):
        where = []
        for dim, size in zip(layout.sharding_specs, part.shape):
            start = place.get(dim, 0) * size
            where.append(slice(start, start + size))
        joined[tuple(where)] = part.numpy()
    return joined


def print_holdings(title, tensor):
    layout = dtensor.fetch_layout(tensor)
    local_shape = tuple(layout.local_shape_from_global_shape(tensor.shape))
    print(f"{title}: {layout.sharding_specs}, {local_shape} of {tuple(tensor.shape)} on each device")
    for place, part in zip(layout.mesh.local_device_locations(), dtensor.unpack(tensor), strict=True):
        numbers = part.numpy()
        print(
            f"  {place}: first number {numbers.flat[0]:g}, last {numbers.flat[-1]:g}, {numbers.nbytes} bytes"
        )


def main():
    whole = np.arange(32, dtype="float32").reshape(8, 4)  # float64 beside float32 would end the process
    rows = dtensor.pack(cut(whole, rows_over_x), rows_over_x)
    print_holdings("packed", rows)
    assert (join(rows) == whole).all()

    columns = dtensor.relayout(rows, columns_over_y)
    print_holdings("moved", columns)
    assert (join(columns) == whole).all()

    copied = dtensor.copy_to_mesh(whole, all_split)
    assert (join(copied) == whole).all()

    variable = dtensor.DVariable(rows)  # it keeps the layout of its first value
    variable.assign(columns + 100.0)
    print_holdings("variable", variable.read_value())
    assert variable.layout == rows_over_x
    assert (join(variable.read_value()) == whole + 100).all()

    zeros = dtensor.call_with_layout(tf.zeros, all_split, shape=[8, 4])  # each device makes its own block
    print_holdings("made in place", zeros)
    print(f"the sum of {whole.size} numbers: {float(tf.reduce_sum(rows)):g}")


if __name__ == "__main__":
    main()
