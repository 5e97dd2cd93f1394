"""One data-parallel training step on eight devices, compared with the step of one device.

Run it: python 03_one_step.py
"""

import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor

# Eight virtual devices on one processor. They must be made before TensorFlow first uses its devices.
# On a machine with GPUs leave these two lines out, and name the GPUs in create_mesh.
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 8)

mesh = dtensor.create_mesh([("batch", 8)], device_type="CPU")
WHOLE = dtensor.UNSHARDED
SPECS = {  # every weight whole on every device, the rows of a batch split
    "W1": [WHOLE, WHOLE],
    "b1": [WHOLE],
    "W2": [WHOLE, WHOLE],
    "b2": [WHOLE],
    "x": ["batch", WHOLE],
    "y": ["batch"],
}
LAYOUTS = {name: dtensor.Layout(spec, mesh) for name, spec in SPECS.items()}


def distribute(array, layout):
    """Sends each device its part of an array, and no more."""
    components = []
    for place in layout.mesh.local_device_locations():
        part = tf.constant(array)
        for axis, dim in enumerate(layout.sharding_specs):
            if dim != WHOLE:
                part = tf.split(part, layout.num_shards(axis), axis)[place[dim]]
        components.append(part)
    return dtensor.pack(components, layout)


def make_variable(value, layout=None):
    return tf.Variable(value) if layout is None else dtensor.DVariable(distribute(value, layout))


class MLP(tf.Module):
    def __init__(self, values, layouts=None):
        super().__init__()
        for name, value in values.items():
            setattr(self, name, make_variable(value, layouts and layouts[name]))

    @property
    def trained(self):
        return {name: getattr(self, name) for name in ("W1", "b1", "W2", "b2")}

    def __call__(self, x):
        hidden = tf.nn.relu(x @ self.W1 + self.b1)
        mean, variance = tf.nn.moments(hidden, axes=[0])  # of the whole batch, wherever its rows lie
        normal = tf.nn.batch_normalization(hidden, mean, variance, None, None, 1e-5)
        return normal @ self.W2 + self.b2


@tf.function  # without it DTensor refuses the step
def train_step(model, x, y, learning_rate):
    with tf.GradientTape() as tape:
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, model(x))
        loss = tf.reduce_sum(losses)
    gradients = tape.gradient(loss, model.trained)
    for name, variable in model.trained.items():  # all gradients first, then all assignments
        variable.assign_sub(learning_rate * gradients[name])
    return loss / x.shape[0]


def initial_values(seed, features=1200, hidden=48, classes=2):
    random = np.random.default_rng(seed)

    def weight(inputs, outputs):  # He's standard deviation
        return random.normal(0, np.sqrt(2 / inputs), (inputs, outputs)).astype("float32")

    return {
        "W1": weight(features, hidden),
        "b1": np.zeros(hidden, "float32"),
        "W2": weight(hidden, classes),
        "b2": np.zeros(classes, "float32"),
    }


def main():
    random = np.random.default_rng(1)
    x = random.normal(size=(64, 1200)).astype("float32")
    y = (x[:, 0] > 0).astype("int64")
    values = initial_values(seed=0)
    eight, one = MLP(values, LAYOUTS), MLP(values)
    for step in range(3):
        on_eight = train_step(eight, distribute(x, LAYOUTS["x"]), distribute(y, LAYOUTS["y"]), 1e-3)
        on_one = train_step(one, tf.constant(x), tf.constant(y), 1e-3)
        print(f"step {step}: {float(on_eight):.4f} on eight devices, {float(on_one):.4f} on one")
        assert abs(float(on_eight) - float(on_one)) < 1e-5


if __name__ == "__main__":
    main()
