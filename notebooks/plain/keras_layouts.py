"""A tf_keras model, split over eight devices by a LayoutMap, beside one device: python keras_layouts.py."""

import numpy as np
import tensorflow as tf
import tf_keras
from tensorflow.experimental import dtensor

# Eight virtual devices on one processor, made before TensorFlow first uses its devices
cpu = tf.config.list_physical_devices("CPU")[0]
eight_cpus = [tf.config.LogicalDeviceConfiguration()] * 8
tf.config.set_logical_device_configuration(cpu, eight_cpus)

# 20 batches of 64 examples; 200 of 1,200 numbers tell the label
rng = np.random.default_rng(1)
train_y = rng.integers(0, 2, 20 * 64)
features = rng.normal(size=(20 * 64, 1200))
features[:, :200] += 0.12 * (2 * train_y[:, np.newaxis] - 1)
train_x = (features / 35).astype("float32")

rng = np.random.default_rng(0)
W1 = rng.normal(0, np.sqrt(2 / 1200), (1200, 48))
W2 = rng.normal(0, np.sqrt(2 / 48), (48, 2))
values = {
    "W1": W1.astype("float32"),
    "b1": np.zeros(48, "float32"),
    "W2": W2.astype("float32"),
    "b2": np.zeros(2, "float32"),
}

WHOLE = dtensor.UNSHARDED
mesh = dtensor.create_mesh([("batch", 4), ("model", 2)], device_type="CPU")
rows_of_x = dtensor.Layout(["batch", WHOLE], mesh)
rows_of_y = dtensor.Layout(["batch"], mesh)

# A pattern that fits no name raises no error: main checks the layouts
layout_map = tf_keras.dtensor.experimental.LayoutMap(mesh=mesh)
layout_map["hidden.kernel"] = dtensor.Layout([WHOLE, "model"], mesh)
layout_map["hidden.bias"] = dtensor.Layout(["model"], mesh)
layout_map["logits.kernel"] = dtensor.Layout(["model", WHOLE], mesh)


def shard(array, layout):
    """Cuts an array, sends each device its part, and packs the parts into a DTensor."""
    components = []
    for at in layout.mesh.local_device_locations():
        part = array
        for axis, dim in enumerate(layout.sharding_specs):
            if dim != WHOLE:
                parts = np.split(part, layout.num_shards(axis), axis)
                part = parts[at[dim]]
        components.append(tf.constant(part))
    return dtensor.pack(components, layout)


def mlp(keras):
    keras.utils.set_random_seed(1)
    hidden = keras.layers.Dense(48, activation="relu", name="hidden")
    logits = keras.layers.Dense(2, name="logits")
    model = keras.Sequential([keras.Input((1200,)), hidden, logits])
    model.set_weights(list(values.values()))
    return model


def split_mlp():
    with layout_map.scope():
        return mlp(tf_keras)


def loss_and_gradients(model, x, y):
    with tf.GradientTape() as tape:
        logits = model(x, training=True)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
        loss = tf.reduce_mean(losses)
    return loss, tape.gradient(loss, model.trainable_variables)


def two_functions(model, optimizer):
    @tf.function
    def compute(x, y):
        return loss_and_gradients(model, x, y)

    @tf.function
    def update(gradients):
        pairs = zip(gradients, model.trainable_variables)
        optimizer.apply_gradients(pairs)

    def step(x, y):  # in one compiled function, tf_keras's Adam reads its slots too early
        loss, gradients = compute(x, y)
        update(gradients)
        return loss

    return step


def bytes_on_device_0(model):
    total = 0
    for weight in model.weights:
        parts = dtensor.unpack(weight.value())
        total += parts[0].numpy().nbytes
    return total


if __name__ == "__main__":
    one, eight = mlp(tf_keras), split_mlp()
    adam = tf_keras.optimizers.Adam(3e-3, mesh=mesh)
    step_on_one = two_functions(one, tf_keras.optimizers.Adam(3e-3))
    step_on_eight = two_functions(eight, adam)
    accuracy = tf_keras.metrics.SparseCategoricalAccuracy(mesh=mesh)
    predict = tf.function(eight)

    held = bytes_on_device_0(eight)
    print(f"device 0 holds {held:,} bytes of the model")
    assert held == 115_496

    for number in range(20):
        rows = slice(64 * number, 64 * number + 64)
        x, y = shard(train_x[rows], rows_of_x), shard(train_y[rows], rows_of_y)
        accuracy.update_state(y, predict(x))
        on_eight = float(step_on_eight(x, y))
        on_one = float(step_on_one(train_x[rows], train_y[rows]))
        difference = abs(on_eight - on_one)
        print(f"step {number + 1}: loss {on_one:.4f}, eight devices differ by {difference:.0e}")
        assert difference < 1e-5

    for slot in adam.variables:
        if tuple(slot.shape) == (1200, 48):
            assert slot.layout.sharding_specs == [WHOLE, "model"]
    assert int(accuracy.count.numpy()) == 20 * 64
    print(f"accuracy before each step: {float(accuracy.result()):.2f}")
