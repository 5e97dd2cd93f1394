"""Which collectives does a function of DTensors run? Kind, mesh dimensions and bytes, from the graphs that ran.

Run it: python 02_collectives.py
Take along: KINDS, graphs_that_ran, mesh_dims, collectives_that_ran.
"""

import os

import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor
from tensorflow.python.eager import context  # not public: it may change with any release

# Eight virtual devices on one processor. They must be made before TensorFlow first uses its devices.
# On a machine with GPUs leave these two lines out, and name the GPUs in create_mesh.
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 8)

# Set to 1 before a function is compiled, this keeps all-reduces apart. Otherwise those that can run together are
# merged into one, which is padded to a multiple of 1,024 numbers and does not say what it was for.
MERGING = "DTENSOR_ALLREDUCE_COMBINE_OPTIMIZATION_GROUP_SIZE"
KINDS = {"CollectiveReduceV2": "all-reduce", "CollectiveAllToAllV2": "all-to-all"}
KINDS |= {"CollectiveGatherV2": "all-gather", "CollectiveReduceScatterV2": "reduce-scatter"}
WHOLE = dtensor.UNSHARDED


def graphs_that_ran(function, *arguments):
    """Compiles a function, runs it once, with all its effects, and returns its graphs as they ran."""
    context.async_wait()  # for what still runs from before
    context.enable_run_metadata()
    try:
        tf.function(function)(*arguments)
        context.async_wait()
        return [each.post_optimization_graph for each in context.export_run_metadata().function_graphs]
    finally:
        context.disable_run_metadata()


def mesh_dims(mesh, node, nodes):
    """Returns the mesh dimensions along which the devices of a group, those with one key, differ."""
    keys = nodes[node.input[2]]
    while keys.op != "Const":
        keys = nodes[keys.input[0].split(":")[0]]
    keys = tf.make_ndarray(keys.attr["value"].tensor).ravel()
    group = [place for place, key in zip(mesh.local_device_locations(), keys, strict=True) if key == keys[0]]
    return tuple(name for name in mesh.dim_names if len({place[name] for place in group}) > 1)


def collectives_that_ran(mesh, function, *arguments):
    """Returns kind, mesh dimensions and payload in bytes of each collective of one device; all run the same."""
    found = []
    for graph in graphs_that_ran(function, *arguments):
        nodes = {node.name: node for node in graph.node}
        for node in graph.node:
            if node.op in KINDS and node.device.endswith(":0"):
                (shape,) = node.attr["_output_shapes"].list.shape
                element_bytes = tf.as_dtype(node.attr["T"].type).size
                payload = element_bytes * int(np.prod([axis.size for axis in shape.dim]))
                found.append((KINDS[node.op], mesh_dims(mesh, node, nodes), payload))
    return found


def two_sums(first, second):
    return tf.reduce_sum(first), tf.reduce_sum(second)


def two_layers(batch, first, second):
    return tf.nn.relu(batch @ first) @ second


def joined(tensor):
    """Returns the values of a DTensor, of any layout, as an array."""
    return dtensor.relayout(tensor, dtensor.Layout.replicated(tensor.layout.mesh, rank=tensor.shape.rank)).numpy()


def main():
    mesh = dtensor.create_mesh([("x", 4), ("y", 2)], device_type="CPU")
    array = np.arange(256, dtype="float32").reshape(16, 16) % 7  # no sum is rounded

    def put(*entries):
        return dtensor.copy_to_mesh(array, dtensor.Layout(entries, mesh))

    def in_rows(tensor):
        return dtensor.relayout(tensor, dtensor.Layout(["x", WHOLE], mesh))

    for function, arguments, right in (
        (tf.matmul, (put("x", "y"), put("y", WHOLE)), array @ array),
        (two_sums, (put("x", WHOLE), put(WHOLE, "x")), (array.sum(), array.sum())),
        (two_layers, (put("x", WHOLE), put(WHOLE, "y"), put("y", WHOLE)), array @ array @ array),
        (in_rows, (put(WHOLE, "x"),), array),
    ):
        os.environ.pop(MERGING, None)
        print(f"{function.__name__}: {collectives_that_ran(mesh, function, *arguments)}")
        os.environ[MERGING] = "1"
        print(f"  not merged: {collectives_that_ran(mesh, function, *arguments)}")
        results = tf.nest.flatten(tf.function(function)(*arguments))
        assert np.array_equal([joined(result) for result in results], np.reshape(right, [len(results), *results[0].shape]))


if __name__ == "__main__":
    main()
