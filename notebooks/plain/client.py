"""One client of a mesh; DTENSOR_CLIENT_ID says which: python client.py FOLDER [--steps 5]."""

import argparse
import faulthandler
import os
import tempfile

import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor

parser = argparse.ArgumentParser()
parser.add_argument("folder", nargs="?", help="of checkpoints; all clients see it, and only one needs none")
parser.add_argument("--steps", type=int, default=5)
options = parser.parse_args()

clients = len(os.environ.get("DTENSOR_JOBS", "alone").split(","))
assert 8 % clients == 0, "the number of clients divides the eight devices"
assert options.folder or clients == 1, "several clients need a FOLDER that all see"
faulthandler.dump_traceback_later(300, exit=True)  # TensorFlow's own limit: an hour
dtensor.initialize_accelerator_system("CPU", num_logical_cpu_devices=8 // clients)
faulthandler.cancel_dump_traceback_later()
create_mesh = dtensor.create_distributed_mesh if clients > 1 else dtensor.create_mesh
mesh = create_mesh([("batch", 4), ("model", 2)], device_type="CPU")
print(f"client {dtensor.client_id()} of {clients}", mesh.local_device_ids(), flush=True)

whole = dtensor.UNSHARDED
SPECS = {"x": ["batch", whole], "y": ["batch"]}
SPECS |= {"W1": [whole, "model"], "b1": ["model"], "W2": ["model", whole], "b2": [whole]}


def distribute(name, array):
    layout, components = dtensor.Layout(SPECS[name], mesh), []
    for place in mesh.local_device_locations():  # of this client's devices
        part = array
        for axis, dim in enumerate(layout.sharding_specs):
            if dim != dtensor.UNSHARDED:
                part = np.split(part, layout.num_shards(axis), axis)[place[dim]]
        components.append(part)
    return dtensor.pack(components, layout)


class MLP(tf.Module):
    def __init__(self, values):
        super().__init__()
        for name, value in values.items():
            setattr(self, name, dtensor.DVariable(distribute(name, value.astype("float32"))))

    def __call__(self, x):
        return tf.nn.relu(x @ self.W1 + self.b1) @ self.W2 + self.b2


@tf.function
def train_step(model, x, y):
    with tf.GradientTape() as tape:
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, model(x))
        loss = tf.reduce_mean(losses)
    weights = model.trainable_variables
    for weight, gradient in zip(weights, tape.gradient(loss, weights)):
        weight.assign_sub(0.1 * gradient)
    return loss


random = np.random.default_rng(0)
y = np.arange(96) % 4
x = random.normal(size=(96, 64)) + 4 * np.eye(4, 64)[y]
values = {"W1": random.normal(0, 0.2, (64, 16)), "b1": np.zeros(16)}
values |= {"W2": random.normal(0, 0.4, (16, 4)), "b2": np.zeros(4)}
model, step = MLP(values), tf.Variable(0, dtype=tf.int64)
checkpoint = tf.train.Checkpoint(model=model, step=step)
folder = options.folder or tempfile.mkdtemp()
keep = 3 if dtensor.client_id() == 0 else None  # one client alone removes the older ones
manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=keep)
manager.restore_or_initialize()
while step < options.steps:
    rows = np.random.default_rng([0, int(step)]).permutation(96)[:32]
    loss = train_step(model, distribute("x", x[rows].astype("float32")), distribute("y", y[rows]))
    step.assign_add(1)
    print(f"step {int(step)} loss {float(loss):.9f}", flush=True)
    if step % 5 == 0 or step == options.steps:
        manager.save()  # all clients, into one checkpoint
dtensor.barrier(mesh, "the end")  # nobody leaves earlier
assert tf.train.latest_checkpoint(folder)
