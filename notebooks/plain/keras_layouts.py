"""A tf_keras model, split over eight devices by a LayoutMap, beside one device: python keras_layouts.py"""

import numpy as np
import tensorflow as tf
import tf_keras
from tensorflow.experimental import dtensor

cpu = tf.config.list_physical_devices("CPU")[0]  # eight virtual devices are made of it
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 8)
WHOLE = dtensor.UNSHARDED
mesh = dtensor.create_mesh([("batch", 4), ("model", 2)], device_type="CPU")  # GPUs: see mesh_and_layout.py
layout_map = tf_keras.dtensor.experimental.LayoutMap(mesh=mesh)  # a pattern that fits nothing says nothing
layout_map["hidden.kernel"] = dtensor.Layout([WHOLE, "model"], mesh)
layout_map["hidden.bias"] = dtensor.Layout(["model"], mesh)
layout_map["normal.*"] = dtensor.Layout(["model"], mesh)
layout_map["logits.kernel"] = dtensor.Layout(["model", WHOLE], mesh)
cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits


def mlp():
    tf_keras.utils.set_random_seed(1)
    layers = tf_keras.layers
    hidden = layers.Dense(48, activation="relu", name="hidden")
    normal = layers.BatchNormalization(name="normal")
    logits = layers.Dense(2, name="logits")
    inputs = tf_keras.Input((1200,))
    return tf_keras.Sequential([inputs, hidden, normal, logits])


def split_mlp():
    with layout_map.scope():
        return mlp()


def distribute(array, layout):
    components = []
    for place in layout.mesh.local_device_locations():
        part = tf.constant(array)
        for axis, dim in enumerate(layout.sharding_specs):
            if dim != WHOLE:
                part = tf.split(part, layout.num_shards(axis), axis)[place[dim]]
        components.append(part)
    return dtensor.pack(components, layout)


def batch(number, mesh=None):
    rows = slice(64 * number, 64 * number + 64)
    x, y = train_x[rows], train_y[rows]
    if mesh is None:
        return tf.constant(x), tf.constant(y)
    layouts = [dtensor.Layout.batch_sharded(mesh, "batch", rank) for rank in (2, 1)]
    return distribute(x, layouts[0]), distribute(y, layouts[1])


def make_step(model, optimizer):
    @tf.function
    def loss_and_gradients(x, y):
        with tf.GradientTape() as tape:
            losses = cross_entropy(y, model(x, training=True))
            loss = tf.reduce_mean(losses)
        return loss, tape.gradient(loss, model.trainable_variables)

    def step(x, y):  # not compiled: tf_keras writes a slot and then reads it
        loss, gradients = loss_and_gradients(x, y)
        pairs = zip(gradients, model.trainable_variables)
        optimizer.apply_gradients(pairs)
        return loss

    return step


train_x = np.random.default_rng(1).normal(size=(640, 1200)).astype("float32") / 35
train_y = (train_x[:, :100].sum(axis=1) > 0).astype("int64")
one, eight, Adam = mlp(), split_mlp(), tf_keras.optimizers.Adam
step_on_one, adam = make_step(one, Adam(0.003)), Adam(0.003, mesh=mesh)
step_on_eight, predict = make_step(eight, adam), tf.function(eight)
accuracy = tf_keras.metrics.SparseCategoricalAccuracy(mesh=mesh)
for number in range(10):
    x, y = batch(number, mesh)
    accuracy.update_state(y, predict(x))
    on_eight, on_one = float(step_on_eight(x, y)), float(step_on_one(*batch(number)))
    print(f"step {number}: {on_one:.4f} on one device, {on_eight:.4f} on eight")
    assert abs(on_eight - on_one) < 1e-4
for weight in [*eight.weights, *adam.variables]:
    print(weight.name, weight.layout.sharding_specs)
    assert weight.shape != (1200, 48) or weight.layout.sharding_specs == [WHOLE, "model"]
print(f"accuracy before each step: {float(accuracy.result()):.2f}")
assert int(accuracy.count.numpy()) == 640
