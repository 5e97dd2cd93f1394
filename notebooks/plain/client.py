"""One client of a mesh; DTENSOR_CLIENT_ID says which.

python client.py FOLDER [--steps 5]
"""

import argparse
import faulthandler
import tempfile
import time
from pathlib import Path

import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor

parser = argparse.ArgumentParser()
parser.add_argument("folder", nargs="?", help="that all clients see")
parser.add_argument("--steps", type=int, default=5)
parser.add_argument("--pause", type=float, default=0)
options = parser.parse_args()

random = np.random.default_rng(0)
y = np.arange(96) % 4
x = random.normal(size=(96, 64)) + 4 * np.eye(4, 64)[y]
x = x.astype("float32")
values = {
    "W1": random.normal(0, 0.2, (64, 16)).astype("float32"),
    "b1": np.zeros(16, "float32"),
    "W2": random.normal(0, 0.4, (16, 4)).astype("float32"),
    "b2": np.zeros(4, "float32"),
}


class MLP(tf.Module):
    def __init__(self, weights):
        super().__init__()
        self.W1 = dtensor.DVariable(weights["W1"])
        self.b1 = dtensor.DVariable(weights["b1"])
        self.W2 = dtensor.DVariable(weights["W2"])
        self.b2 = dtensor.DVariable(weights["b2"])

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


def newest(folder):
    numbers = []
    for index in Path(folder).glob("ckpt-*.index"):
        numbers.append(int(index.stem.removeprefix("ckpt-")))
    for number in sorted(numbers, reverse=True):
        path = f"{folder}/ckpt-{number}"
        try:
            tf.train.list_variables(path)
            return path
        except tf.errors.OpError:
            pass  # it is not whole: try the one before it
    return None


def restore_newest(checkpoint, folder):
    path = newest(folder)
    if path is not None:
        status = checkpoint.restore(path)
        status.assert_existing_objects_matched()


def mine(array, layout):
    def piece_for(position):
        piece = array
        for axis, dimension in enumerate(layout.sharding_specs):
            if dimension != dtensor.UNSHARDED:
                count = layout.num_shards(axis)
                pieces = np.split(piece, count, axis)
                piece = pieces[position[dimension]]
        return piece

    positions = layout.mesh.local_device_locations()
    return [piece_for(position) for position in positions]


clients = dtensor.num_clients()
assert 8 % clients == 0, "clients must divide the eight devices"

# Until it is cancelled below, this ends the process after five
# minutes: otherwise it would wait an hour for a missing client
faulthandler.dump_traceback_later(300, exit=True)
dtensor.initialize_accelerator_system(
    "CPU",
    num_logical_cpu_devices=8 // clients,
)
faulthandler.cancel_dump_traceback_later()

mesh = dtensor.create_distributed_mesh(
    [("batch", 4), ("model", 2)],
    device_type="CPU",
)
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


def distribute(name, array):
    layout = LAYOUTS[name]
    return dtensor.pack(mine(array, layout), layout)


weights = {}
for name, value in values.items():
    weights[name] = distribute(name, value)
model = MLP(weights)
del weights  # or every device would hold them twice
shape = dtensor.unpack(model.W1.value())[0].shape
print("W1 on a device", shape, flush=True)

assert options.folder or clients == 1, "clients need one FOLDER"
folder = options.folder or tempfile.mkdtemp()
step = tf.Variable(0, dtype=tf.int64)
checkpoint = tf.train.Checkpoint(model=model, step=step)
# Client 0 removes old checkpoints; None: the others remove nothing
keep = 3 if client == 0 else None
manager = tf.train.CheckpointManager(checkpoint, folder, keep)
restore_newest(checkpoint, folder)

# Have all clients restored the same step? Each fills in its own
layout = dtensor.Layout(["batch", "model"], mesh)
steps = dtensor.pack(mine(np.full((4, 2), int(step)), layout), layout)
first, last = int(tf.reduce_min(steps)), int(tf.reduce_max(steps))
assert first == last, f"the clients are at steps {first} to {last}"

while step < options.steps:
    # The same seed in all clients: they draw the same rows
    random = np.random.default_rng([0, int(step)])
    rows = random.permutation(96)[:32]
    batch_x = distribute("x", x[rows])
    batch_y = distribute("y", y[rows])
    loss = train_step(model, batch_x, batch_y)
    step.assign_add(1)
    print(f"step {int(step)} loss {float(loss):.9f}", flush=True)
    if step % 5 == 0 or step == options.steps:
        manager.save()
    time.sleep(options.pause)
# Nobody ends before all have saved
dtensor.barrier(mesh, "the end")
