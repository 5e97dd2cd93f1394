"""Which collectives does a function of DTensors run? Kind, mesh dimensions, bytes: from the graphs that ran.

Run it: python communication.py
Take along: KINDS, graphs_that_ran, mesh_dims, collectives_that_ran.
"""

import os

import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor
from tensorflow.python.eager import context  # not public: it may change with any release

# Eight virtual devices on one processor. They must be made before TensorFlow first uses its devices.
# On GPUs (not tried): keep as many virtual CPUs as there are GPUs, and name the GPUs in create_mesh.
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 8)

# Set to 1 before a function is compiled, this keeps all-reduces apart. Otherwise those of one kind that can
# run together are merged into one, which is padded to a multiple of 1,024 numbers and does not say what for.
MERGING = "DTENSOR_ALLREDUCE_COMBINE_OPTIMIZATION_GROUP_SIZE"
KINDS = {"CollectiveReduceV2": "all-reduce", "CollectiveAllToAllV2": "all-to-all"}
KINDS |= {"CollectiveGatherV2": "all-gather", "CollectiveReduceScatterV2": "reduce-scatter"}
WHOLE = dtensor.UNSHARDED


def graphs_that_ran(function, *arguments):
    """Compiles a function, runs it once, with all its effects, and returns its graphs as they ran."""
    context.enable_run_metadata()
    try:
        context.async_wait()
        context.export_run_metadata()  # away with what ran before
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
    """Returns kind, mesh dimensions and bytes of the collectives of one device. All devices run the same."""
    found = []
    for graph in graphs_that_ran(function, *arguments):
        nodes = {node.name: node for node in graph.node}
        for node in graph.node:
            if node.op in KINDS and node.device == mesh.local_devices()[0]:
                (shape,) = node.attr["_output_shapes"].list.shape
                element_bytes = tf.as_dtype(node.attr["T"].type).size
                payload = element_bytes * int(np.prod([axis.size for axis in shape.dim]))
                found.append((KINDS[node.op], mesh_dims(mesh, node, nodes), payload))
    return found


def two_sums(first, second):
    return tf.reduce_sum(first), tf.reduce_sum(second)


def main():
    mesh = dtensor.create_mesh([("x", 4), ("y", 2)], device_type="CPU")
    array = np.arange(256, dtype="float32").reshape(16, 16) % 7  # no sum of their products is rounded

    def put(*entries):
        return dtensor.copy_to_mesh(array, dtensor.Layout(entries, mesh))

    for function, arguments, right in (
        (tf.matmul, [put("x", "y"), put("y", WHOLE)], [array @ array]),
        (two_sums, [put("x", WHOLE), put(WHOLE, "x")], [array.sum()] * 2),
        (dtensor.relayout, [put(WHOLE, "x"), dtensor.Layout(["x", WHOLE], mesh)], [array]),
    ):
        os.environ[MERGING] = "1"
        print(f"{function.__name__}: {collectives_that_ran(mesh, function, *arguments)}")
        del os.environ[MERGING]
        print(f"  merged: {collectives_that_ran(mesh, function, *arguments)}")
        for result, expected in zip(tf.nest.flatten(function(*arguments)), right, strict=True):
            whole = dtensor.relayout(result, dtensor.Layout.replicated(mesh, rank=expected.ndim))
            assert np.array_equal(whole.numpy(), expected)


if __name__ == "__main__":
    main()
