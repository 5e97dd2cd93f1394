"""One client of a mesh; DTENSOR_CLIENT_ID says which.

python client.py FOLDER [--steps 5]
"""

import argparse
import faulthandler
import os
import tempfile

import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor

parser = argparse.ArgumentParser()
parser.add_argument("folder", nargs="?", help="that all clients see")
parser.add_argument("--steps", type=int, default=5)
options = parser.parse_args()

clients = len(os.environ.get("DTENSOR_JOBS", "alone").split(","))
assert 8 % clients == 0, "clients must divide the eight devices"
assert options.folder or clients == 1, "several need one FOLDER"

# TensorFlow waits an hour for the others: five minutes here
faulthandler.dump_traceback_later(300, exit=True)


dtensor.initialize_accelerator_system(
    "CPU",
    num_logical_cpu_devices=8 // clients,
)
faulthandler.cancel_dump_traceback_later()  # all others are there

dimensions = [("batch", 4), ("model", 2)]
if clients > 1:
    mesh = dtensor.create_distributed_mesh(
        dimensions,
        device_type="CPU",
    )
else:
    mesh = dtensor.create_mesh(dimensions, device_type="CPU")
client = dtensor.client_id()
print(f"client {client} of {clients}", flush=True)
print("devices", *mesh.local_device_ids(), flush=True)


WHOLE = dtensor.UNSHARDED
LAYOUTS = {
    "x": dtensor.Layout(["batch", WHOLE], mesh),
    "y": dtensor.Layout(["batch"], mesh),
    "W1": dtensor.Layout([WHOLE, "model"], mesh),
    "b1": dtensor.Layout(["model"], mesh),
    "W2": dtensor.Layout(["model", WHOLE], mesh),
    "b2": dtensor.Layout([WHOLE], mesh),
}


def mine(array, layout):
    components = []
    for place in layout.mesh.local_device_locations():
        part = array
        for axis, dimension in enumerate(layout.sharding_specs):
            if dimension != WHOLE:
                pieces = np.split(part, layout.num_shards(axis), axis)
                part = pieces[place[dimension]]
        components.append(part)
    return components


def distribute(name, array):
    layout = LAYOUTS[name]
    return dtensor.pack(mine(array, layout), layout)


class MLP(tf.Module):
    def __init__(self, values):
        super().__init__()

        def variable(name):
            value = values[name].astype("float32")
            return dtensor.DVariable(distribute(name, value))

        self.W1 = variable("W1")
        self.b1 = variable("b1")
        self.W2 = variable("W2")
        self.b2 = variable("b2")

    def __call__(self, x):
        hidden = tf.nn.relu(x @ self.W1 + self.b1)
        return hidden @ self.W2 + self.b2


@tf.function
def train_step(model, x, y):
    with tf.GradientTape() as tape:
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            y,
            model(x),
        )
        loss = tf.reduce_mean(losses)
    weights = model.trainable_variables
    gradients = tape.gradient(loss, weights)
    for weight, gradient in zip(weights, gradients):
        weight.assign_sub(0.1 * gradient)
    return loss


random = np.random.default_rng(0)
y = np.arange(96) % 4
x = random.normal(size=(96, 64)) + 4 * np.eye(4, 64)[y]
x = x.astype("float32")
values = {
    "W1": random.normal(0, 0.2, (64, 16)),
    "b1": np.zeros(16),
    "W2": random.normal(0, 0.4, (16, 4)),
    "b2": np.zeros(4),
}


model = MLP(values)
step = tf.Variable(0, dtype=tf.int64)
checkpoint = tf.train.Checkpoint(model=model, step=step)
folder = options.folder or tempfile.mkdtemp()
keep = 3 if client == 0 else None  # only client 0 removes old ones
manager = tf.train.CheckpointManager(checkpoint, folder, keep)
manager.restore_or_initialize()

while step < options.steps:
    order = np.random.default_rng([0, int(step)]).permutation(96)
    rows = order[:32]
    batch_x = distribute("x", x[rows])
    batch_y = distribute("y", y[rows])
    loss = train_step(model, batch_x, batch_y)
    step.assign_add(1)
    print(f"step {int(step)} loss {float(loss):.9f}", flush=True)
    if step % 5 == 0 or step == options.steps:
        manager.save()
dtensor.barrier(mesh, "the end")
assert tf.train.latest_checkpoint(folder)
