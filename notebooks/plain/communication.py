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

WHOLE = dtensor.UNSHARDED
KINDS = {
    "CollectiveReduceV2": "all-reduce",
    "CollectiveAllToAllV2": "all-to-all",
    "CollectiveGatherV2": "all-gather",
    "CollectiveReduceScatterV2": "reduce-scatter",
}


def graphs_that_ran(function, *arguments):
    """Compiles a function, runs it once, with all its effects, and returns its graphs as they ran."""
    context.enable_run_metadata()
    try:
        context.async_wait()
        context.export_run_metadata()  # away with what ran before
        tf.function(function)(*arguments)
        context.async_wait()
        graphs = context.export_run_metadata().function_graphs
        return [each.post_optimization_graph for each in graphs]
    finally:
        context.disable_run_metadata()


def mesh_dims(mesh, node, nodes):
    """Returns the mesh dimensions along which the devices of a group, those with one key, differ."""
    # The keys of all devices are a constant, on the way to the node's third input.
    keys = nodes[node.input[2]]
    while keys.op != "Const":
        keys = nodes[keys.input[0].split(":")[0]]
    keys = tf.make_ndarray(keys.attr["value"].tensor).ravel()
    group = []
    for place, key in zip(mesh.local_device_locations(), keys, strict=True):
        if key == keys[0]:
            group.append(place)
    names = []
    for name in mesh.dim_names:
        if any(place[name] != group[0][name] for place in group):
            names.append(name)
    return tuple(names)


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


def loss_of(x, W1, b1, W2, b2):
    hidden = tf.nn.relu(x @ W1 + b1)
    y = x + hidden @ W2 + b2
    return tf.reduce_mean(y**2)


def both_layers(x, W1, b1, W2, b2):
    weights = [W1, b1, W2, b2]
    with tf.GradientTape() as tape:
        tape.watch(weights)
        loss = loss_of(x, W1, b1, W2, b2)
    return loss, tape.gradient(loss, weights)


def main():
    # Set to 1 before a function is compiled, this keeps all-reduces apart. Otherwise those that can run
    # together are merged into one, which is padded to a multiple of 1,024 numbers and does not say what for.
    os.environ["DTENSOR_ALLREDUCE_COMBINE_OPTIMIZATION_GROUP_SIZE"] = "1"

    grid = dtensor.create_mesh([("batch", 4), ("model", 2)], device_type="CPU")
    normal = np.random.default_rng(0).normal
    values = []
    for shape in [(128, 16), (16, 48), (48,), (48, 16), (16,)]:
        values.append(normal(size=shape).astype("float32"))
    on_one_device = [array.numpy() for array in tf.nest.flatten(both_layers(*map(tf.constant, values)))]

    for specs in (
        [["batch", WHOLE], [WHOLE, "model"], ["model"], ["model", WHOLE], [WHOLE]],
        [["batch", WHOLE], [WHOLE, WHOLE], [WHOLE], [WHOLE, "model"], ["model"]],
    ):
        tensors = []
        for value, spec in zip(values, specs, strict=True):
            tensors.append(dtensor.copy_to_mesh(value, dtensor.Layout(spec, grid)))
        print(f"x {specs[0]}, W1 {specs[1]}, b1 {specs[2]}, W2 {specs[3]}, b2 {specs[4]}")
        for function in (loss_of, both_layers):
            print(f"  {function.__name__}")
            for each in collectives_that_ran(grid, function, *tensors):
                print("    {} over {}, {} bytes".format(each[0], " and ".join(each[1]), each[2]))

        # The layouts decide what is sent, not what comes out
        results = tf.nest.flatten(tf.function(both_layers)(*tensors))
        for result, expected in zip(results, on_one_device, strict=True):
            everywhere = dtensor.Layout.replicated(grid, rank=expected.ndim)
            np.testing.assert_allclose(dtensor.relayout(result, everywhere).numpy(), expected, atol=1e-4)


if __name__ == "__main__":
    main()
