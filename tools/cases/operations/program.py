"""An expression on DTensors, held to the same without DTensor: a program that needs nothing of the course.

The book's page shows it with the case that a reader chooses; the table of operations is made with it.
"""

import inspect

import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor

# The case. The way is "eager", "function" (a tf.function), "gradient" (in a tf.function) or "eager gradient".
shape, mesh_dims, sharding_specs, way = [24, 24], [["p", 8]], ["p", "unsharded"], "function"
tolerance = 1e-4


def function(x):
    return x[::-1]


def without_dtensor(x):
    return x[::-1]


# The same for every case.
def values(names, shape):
    """Returns an array for each of the names."""
    draw = np.random.default_rng(0)

    def normal(*sizes):
        return draw.normal(size=sizes or shape).astype("float32")

    make = {
        "x": normal,
        "y": normal,
        "i": lambda: draw.integers(0, 24, shape).astype("int32"),
        "m": lambda: draw.normal(size=shape) > 0,
        "v": normal,
        "w": lambda: normal(24, 24),
        "k": lambda: normal(3, 3, 24, 24),
        "at": lambda: np.array([3, 17, 8, 20, 1], "int32"),
    }
    return {name: make[name]() for name in make if name in names}


def mesh_of(dims):
    """Returns a mesh of the first devices."""
    num_devices = np.prod([size for _name, size in dims])
    return dtensor.create_mesh(dims, devices=[f"CPU:{device_id}" for device_id in range(num_devices)])


def plain(name, value):
    """Returns a value as a tensor, or v as a variable."""
    return tf.Variable(value) if name == "v" else tf.constant(value)


def placed(name, value, layout):
    """Returns a value as a DTensor in the layout. Of w, k and at every device has all."""
    if name in ("w", "k", "at"):
        layout = dtensor.Layout.replicated(layout.mesh, value.ndim)
    tensor = dtensor.copy_to_mesh(value, layout)
    return dtensor.DVariable(tensor) if name == "v" else tensor


def gradients_of(function):
    """Returns a function that gives gradients: of a sum in which it counts where each number stands."""

    def gradients(*tensors):
        floats = [each for each in tensors if each.dtype.is_floating]
        with tf.GradientTape() as tape:
            tape.watch(floats)
            results = [each for each in tf.nest.flatten(function(*tensors)) if each.dtype.is_floating]
            loss = tf.add_n([tf.reduce_sum(each * each * unlike(each)) for each in results])
        found = tape.gradient(loss, floats)
        return [tf.convert_to_tensor(each) for each in found if each is not None]

    return gradients


def unlike(tensor):
    """Returns factors, none like another."""
    size = tensor.shape.num_elements()  # None where it is known only as the function runs
    return tf.constant(1 if size is None else np.cos(np.arange(size)).reshape(tensor.shape), tensor.dtype)


def compare(right, found):
    """Prints whether each device has its block of the right numbers."""
    is_dtensor = dtensor.is_dtensor(found)
    specs = dtensor.fetch_layout(found).sharding_specs if is_dtensor else []
    print("shape", right.shape, "and", found.shape, "layout", specs)
    for device_id, part in enumerate(dtensor.unpack(found) if is_dtensor else [found]):
        block, place = right.numpy(), mesh.local_device_locations()[device_id]
        for axis, name in enumerate(specs):
            if name != "unsharded":
                block = np.array_split(block, mesh.dim_size(name), axis)[place[name]]
        limit = tolerance * max(1, np.abs(right).max(initial=0))
        same = block.shape == part.shape and np.allclose(block, part, rtol=0, atol=limit, equal_nan=True)
        print("device", device_id, "right" if same else "WRONG")


if __name__ == "__main__":
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 12)
    mesh = mesh_of(mesh_dims)
    layout = dtensor.Layout(sharding_specs, mesh)
    turned = dtensor.Layout(sharding_specs[1:] + sharding_specs[:1], mesh)
    arrays = values(inspect.signature(function).parameters, shape)
    if "gradient" in way:
        function, without_dtensor = gradients_of(function), gradients_of(without_dtensor)
    if "eager" not in way:
        function, without_dtensor = tf.function(function), tf.function(without_dtensor)
    try:
        right = tf.nest.flatten(without_dtensor(*(plain(name, array) for name, array in arrays.items())))
    except Exception as error:
        print("without DTensor:", type(error).__name__)
        right = []
    found = tf.nest.flatten(function(*(placed(name, array, layout) for name, array in arrays.items())))
    print("right" if len(right) == len(found) else "WRONG", "number of results")
    for pair in zip(right, found):
        compare(*pair)
