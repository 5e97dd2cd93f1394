# %% [markdown]
# # How do several machines share one model?
#
# On Thursday your model grows. One of its matrices now takes 10 GB, and its gradient takes 10 more.
# A device has 16 GB. You have sixteen machines, and not one of them can take a single step.
#
# An all-reduce can't help, because with it every device holds the whole model. Parameter servers can't help either.
# Four servers hold the matrix easily, 2.5 GB each. But a worker that computes with the matrix pulls all of it: 10 GB on one device, and the gradient is 10 GB more.
#
# Lesson 8 showed you what does help: a mesh with a second dimension, along which the weights are split. Each device then computes with a part of the matrix.
# But there, a single process drove all the devices, and a process can't drive the devices of another machine.
# So this lesson asks: *how do several processes work on one mesh?*
#
# Each of these processes, usually one per machine, is called a **client** of the mesh. No server is involved: the clients of a mesh talk only to one another.
#
# **After this lesson you can**
#
# - start one DTensor mesh over several processes;
# - give each process its part of the data and of the weights;
# - save one checkpoint together, and go on from it with another number of processes;
# - choose between all the systems of this part.
#
# **Time:** 25 minutes.
# **You need to know:** a mesh with two dimensions ({lesson:splitting_the_model}), programs that run as several processes ({lesson:workers}).

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% clients-picture-text [markdown]
# ## Two processes, one mesh
#
# We take two clients with four devices each, and a mesh of `batch` 4 × `model` 2. Think of each client as a machine. Client 0 has devices 0 to 3, client 1 has devices 4 to 7, and the dashed line separates the two machines.
# Devices of the same color hold the same rows of the batch:

# %% clients-picture
from lessons.strategies.one_mesh import picture

picture.clients_picture()

# %% mesh-read [markdown]
# The two devices of one color share a copy of the model: each of them holds half of every split weight.
#
# In the middle of a step these two exchange data along `model`. They belong to the same client, so that traffic stays within a machine, where links are fast.
# Only the sums along `batch`, those of the gradients and the loss, cross the dashed line.
# That's why `model` is the last dimension, as in {lesson:all_reduce}: each client has four consecutive devices, so two devices of one color always belong to the same client.
#
# If the model were too large even for all the devices of one machine together, `model` would have to span machines, too.

# %% programs-text [markdown]
# Let's start this mesh. All clients run the same program, and the folded cell makes a folder for its files:

# %% programs tags=["known"]
from pathlib import Path

programs = Path("one_mesh_programs")
programs.mkdir(exist_ok=True)
# Empty files: so the cells below always say "Overwriting"
for name in ["mesh", "sum", "client_start", "model", "client"]:
    (programs / f"{name}.py").touch()

# %% mesh-text [markdown]
# How do the clients find each other? Through three environment variables, which take the place of `TF_CONFIG`:
#
# - `DTENSOR_JOBS` lists the addresses of all clients, and no jobs, as one might think;
# - `DTENSOR_CLIENT_ID` says which of them this is;
# - `DTENSOR_JOB_NAME` is the name of the whole group.
#
# `initialize_accelerator_system` waits for all clients, and `create_distributed_mesh` makes a mesh of all their devices.
# We want eight devices in total, so each of our two clients creates four:

# %% mesh
# %%writefile one_mesh_programs/mesh.py
import faulthandler

from tensorflow.experimental import dtensor

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

# %% sum-text [markdown]
# Do they really compute together? Let each of the eight devices hold a single 1, and let the mesh add them up:

# %% sum
# %%writefile one_mesh_programs/sum.py
import tensorflow as tf
from mesh import mesh
from tensorflow.experimental import dtensor

split = dtensor.Layout(["batch", "model"], mesh)
ones = dtensor.call_with_layout(tf.ones, split, shape=(4, 2))
print("ones here", len(dtensor.unpack(ones)), flush=True)
print("their sum", int(tf.reduce_sum(ones)), flush=True)

# %% sum-run-text [markdown]
# `Cluster` sets the three variables, and starts the program as two processes. What does client 1 print as the sum: 4, for its own devices, or 8? Each cell that starts processes takes some seconds:

# %% sum-run
from lessons.strategies.launcher import Cluster


def run(program, clients, *arguments):
    command = [programs / program, *arguments]
    tasks = {"client": clients}
    with Cluster(command, tasks, variables="DTENSOR") as cluster:
        return cluster.wait()


run("sum.py", 2)

# %% sum-read [markdown]
# Client 0 has devices 0 to 3 and client 1 the rest, and `unpack` gives each of them only the four components it holds.
# Yet both print 8. The sum is an all-reduce over all eight devices, so it crossed from one process to the other.
#
# So that's *multi-client* DTensor, which {lesson:mesh_and_layout} promised.
# From here on you could almost reuse the one-process program. The model and the step stay as they are. Two things change: how a tensor is packed, and how the program saves.

# %% places-text [markdown]
# ## Which parts are mine?
#
# Until now, when you packed a tensor, you made a component for each of the eight devices. A client can fill only the memory of its own four, so it has to know where in the mesh they are.
#
# `local_device_locations()` gives their positions in the mesh. To try this, we don't need two processes. This is the mesh as client 1 sees it:

# %% places
from lessons.strategies.one_mesh.checks import mesh_of_client

mesh_of_1 = mesh_of_client(1)
for position in mesh_of_1.local_device_locations():
    print(position)

# %% rows-given [markdown]
# Client 1 has positions 2 and 3 along `batch`, and at each of them both positions along `model`.

# %% predict-rows [markdown]
# A batch has 32 rows. It is split along `batch`, which has 4 positions in a mesh of `batch` 4 × `model` 2.
# Client 1 has the last four of the eight devices.
# How many different rows does client 1 need to read?
#
# - [ ] `8`
#   That is what one device holds: 32 rows, split into 4. The client has devices at two positions along `batch`.
# - [x] `16`
#   A position along `batch` has 8 rows, and the client has two such positions. The two devices at a position hold the same rows.
# - [ ] `32`
#   Four devices with 8 rows each are 32 rows. But two devices at one position along `batch` hold the same 8.

# %% reveal-rows
positions = set()
for position in mesh_of_1.local_device_locations():
    positions.add(position["batch"])
rows_at_a_position = 32 // 4
reveal("one_mesh-rows", len(positions) * rows_at_a_position)

# %% mine-text [markdown]
# That is half of the batch. The other half is for the devices of client 0.
#
# **Exercise 1.** Write `mine(array, layout)`: a list with the components that this client must make, in the order of its devices.
# It should work for any array and any mesh. It does what `cut` did in {lesson:mesh_and_layout}, but only for the devices of one client.
#
# - Begin with one device and one axis. *Which of the pieces is for this device?* If the axis is split along `batch`, a device at position 2 along `batch` gets piece 2, counted from 0.
# - `layout.mesh.local_device_locations()` gives the positions of the client's devices in the mesh.
# - `layout.sharding_specs` has one entry for each axis of the array: the mesh dimension along which it is split, or `dtensor.UNSHARDED`.
#   `layout.num_shards(axis)` is the number of pieces, and `np.split(array, count, axis)` splits the array into `count` pieces.

# %% dtensor tags=["known"]
import numpy as np
from tensorflow.experimental import dtensor

# %% exercise-mine
def mine(array, layout):
    # solution begin
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
    # solution end

# %%
check("one_mesh-mine", mine)

# %% client-start-text [markdown]
# ## Half of the matrix on each device
#
# The program needs your `mine`. This cell writes it into a file, if it passes the check, and otherwise ours:

# %% own-mine
from lessons.strategies.own_file import write_own

write_own(programs / "mine.py", "one_mesh-mine", mine)

# %% client-start-why [markdown]
# The next cell is folded because you know it all: the options, the model and the step of {lesson:splitting_the_model} with other sizes, the noisy patterns, and `newest` from {lesson:a_run}.
# Its last function, `restore_newest`, restores the newest checkpoint, if there is one:

# %% client-start tags=["known"]
# %%writefile one_mesh_programs/client_start.py
"""One client of a mesh; DTENSOR_CLIENT_ID says which.

python client.py FOLDER [--steps 5]
"""

import argparse
from pathlib import Path

import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor

parser = argparse.ArgumentParser()
parser.add_argument("folder", nargs="?", help="that all clients see")
parser.add_argument("--steps", type=int, default=5)
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

# %% model-text [markdown]
# With `mine`, making the model is short. `dtensor.pack` takes every client's components and makes a single tensor of them.
#
# There is a trap, however. Every client draws the initial weights for itself, and keeps the pieces for its own devices. The pieces fit together only if all clients have drawn the *same* weights.
# So `client_start.py` uses the same seed in every client. With that settled, the model is short:

# %% model
# %%writefile one_mesh_programs/model.py
from client_start import MLP, values
from mesh import mesh
from mine import mine
from tensorflow.experimental import dtensor

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
shape = dtensor.unpack(model.W1.value())[0].shape
print("W1 on a device", shape, flush=True)

# %% model-run-text [markdown]
# `W1` has 64 × 16 numbers. How many of them does a device hold?

# %% model-run
run("model.py", 2)

# %% model-read [markdown]
# A device holds 64 × 8 numbers, half of `W1`. That is what Thursday needed. Here is your 10 GB matrix with its gradient, whole and split in the same way:

# %% memory-picture
picture.memory_picture()

# %% memory-read [markdown]
# The whole matrix and its gradient take 20 GB, and don't fit. Half of each is 5 GB, so the two halves together take 10 GB, and that fits into 16. With more devices along `model`, each would hold still less.

# %% note-adam [markdown]
# Does it also fit with Adam?
#
# No. The 16 GB suffice for plain SGD, which our program uses. Adam keeps two slots for each weight, 5 GB each on a device, so a device would need 20 GB. Then `model` would have to be larger.

# %% client-text [markdown]
# ## One checkpoint, written by all
#
# Saving is the second thing that changes. *All* clients call `save`, into one folder that all of them see, and together they write *one* checkpoint.
# Lesson 19 forbade several workers to save into one folder, because each of them wrote a whole checkpoint. Here each shard is written just once, by one of the devices that hold it.
#
# The loop is the one from a single process. Each client draws the whole batch of 32 rows, and `distribute` keeps what its devices need: 16 rows, as you predicted.
# Again all clients must draw the same rows, so the seed depends on the step alone:

# %% client
# %%writefile one_mesh_programs/client.py
import tempfile

import numpy as np
import tensorflow as tf
from client_start import options, restore_newest, train_step, x, y
from mesh import client, clients, mesh
from model import distribute, model
from tensorflow.experimental import dtensor

assert options.folder or clients == 1, "clients need one FOLDER"
folder = options.folder or tempfile.mkdtemp()
step = tf.Variable(0, dtype=tf.int64)
checkpoint = tf.train.Checkpoint(model=model, step=step)
# Client 0 removes old checkpoints; None: the others remove nothing
keep = 3 if client == 0 else None
manager = tf.train.CheckpointManager(checkpoint, folder, keep)
restore_newest(checkpoint, folder)

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
# Nobody ends before all have saved
dtensor.barrier(mesh, "the end")

# %% clients
import tempfile

shared = tempfile.mkdtemp()
two = run("client.py", 2, shared, "--steps", 5)
two

# %% clients-read [markdown]
# The programs print nine decimals of a loss, and the report shows two. In five steps the loss falls from 2.77 to 1.14, and both clients print the same loss in every step.
#
# Is it the right one? Equal losses prove little. When we took out the seed, so that each client drew weights of its own, nothing warned us: the clients still printed equal losses, but after five steps the loss stood at 1.76 instead of 1.14.
#
# So let's compare with a process that was always alone. And let's see whether a different number of clients can pick up the checkpoint: *one* process, with all eight devices, takes it on to step 8.
# The cell starts these two runs one after the other:

# %% then-one
later = run("client.py", 1, shared, "--steps", 8)
always = run("client.py", 1, "--steps", 8)

# %% losses
losses = dict(two["client 0"].losses)
losses.update(later["client 0"].losses)
alone = always["client 0"].losses
print("step  two clients, then one  always one")
for step, loss in losses.items():
    print(f"{step:4}  {loss:21.2f}  {alone[step]:10.2f}")

# %% then-one-read [markdown]
# Two processes train like one: each loss of steps 1 to 5 is the one that a single process gets, to the two decimals shown.
# And in steps 6 to 8, one client went on from the checkpoint of two, as if it had been alone from the beginning. Even the rise in step 7 is there.
# That works because the checkpoint holds each variable under its name and with its whole shape, such as 64 × 16. It says nothing of clients.
#
# And if a client dies? We tried it, and killed one: the other ended with an error, as with an all-reduce. Then you restart all clients from the checkpoint. You may have fewer of them than before: our program takes 1, 2, 4 or 8 clients, because their number has to divide its eight devices.
#
# ## Which one?
#
# An all-reduce takes two things for granted: every machine keeps up in every step, and every device has room for the whole model.
# Usually both are true, and then an all-reduce is what you want. So ask three questions, in this order:
#
# 1. Does the model fit on one device?
# 2. How many machines are there?
# 3. Are they about equally fast?
#
# | your case | what you take | what it costs |
# | :--- | :--- | :--- |
# | it fits on a device, and all devices are in one machine | `MirroredStrategy`, with `fit` ({lesson:strategies}) or a loop of your own ({lesson:custom_training}) | all wait for the slowest, in each step |
# | it fits, there are several machines, and they are about equally fast | `MultiWorkerMirroredStrategy` ({lesson:workers}), and what a long run needs ({lesson:failures}) | all wait for the slowest, in each step; and one lost worker ends the run, which then resumes from a checkpoint |
# | it fits, but workers are often slow, or die | `ParameterServerStrategy` ({lesson:parameter_servers}) | stale gradients, a smaller learning rate, and no two runs alike |
# | it doesn't fit, but only because of a table of embeddings | `ParameterServerStrategy`, too | stale gradients, a smaller learning rate, and no two runs alike |
# | it doesn't fit on a device, but all devices of one machine together have room for it | one DTensor mesh in one process ({lesson:splitting_the_model}) | devices exchange activations in the middle of every step |
# | it doesn't fit, and there are several machines | clients of one mesh: this lesson | devices exchange activations in the middle of every step; and all wait for the slowest |
#
# {Lesson:strategies} has the table of what works with which strategy, and says which of them is for which hardware.

# %% takeaways [markdown]
# ## The plain program
#
# [`client.py`](../plain/client.py) is the program of this lesson in one file, with what was folded here.
# Run it by hand, without the three variables, and it is a mesh of eight devices in a single process. To start it on Kubernetes or Slurm, see the folder `deploy/` of this course.
#
# We ran it on the CPU of one machine, and haven't tried it on GPUs or on several machines.
#
# ## Takeaways
#
# - Clients share one mesh. Each makes the components of its own devices, and all of them must draw the same weights and the same batch.
# - All clients save together, into one folder. The checkpoint doesn't record how many clients wrote it.
# - Take an all-reduce if the model fits on a device, unless the machines of workers are often slow or die: then take parameter servers. If the model doesn't fit, take a mesh.
#
# With a mesh that spans machines, you can train far larger models than ours. Most of those are transformers, and {lesson:transformer_block} splits one block of a transformer.

# %% score
score("one_mesh")
