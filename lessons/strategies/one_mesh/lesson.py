# %% [markdown]
# # How do several machines share one model?
#
# On Thursday your model grows. One of its weight matrices now takes 10 GB, and the gradient of this matrix takes another 10.
# You have sixteen machines with four devices each, but each device has only 16 GB. So no device can take a single step with the whole matrix.
#
# Data parallelism with an all-reduce doesn't help, because then every device holds the whole model. Parameter servers don't help either.
# Four servers can hold the matrix easily, with 2.5 GB each. But a worker that computes with the matrix first pulls all of it: 10 GB on one device, and the gradient is 10 GB more.
#
# What does help is a mesh with a second dimension, along which the weights are split. Then each device computes with a part of the matrix.
# In {lesson:splitting_the_model}, nearly all programs ran as a single process. But the mesh of a single process has only the devices of one machine. Run one of those programs, and one machine trains while the other fifteen stand idle.
# So this lesson asks: *how do several processes work on one mesh?*
#
# Each of these processes is called a **client** of the mesh. Usually there is one on each machine. Despite the name, there is no separate server: client 0 also coordinates the others.
#
# **After this lesson you can**
#
# - start one DTensor mesh over several processes;
# - give each process its part of the data and of the weights;
# - recognize a training run whose processes started from different weights;
# - go on from a checkpoint with another number of processes, after one of them has died;
# - choose between all the systems of this part.
#
# **Time:** 40 minutes.
# **You need to know:** a mesh with two dimensions ({lesson:splitting_the_model}), programs that run as several processes ({lesson:workers}).

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% clients-picture-text [markdown]
# ## Two processes, one mesh
#
# Two clients are enough to see how it works. Each has four devices, and together they form a mesh of `batch` 4 × `model` 2.
# Think of each client as a machine. Client 0 has devices 0 to 3, client 1 has devices 4 to 7, and the dashed line separates the two machines.
# Devices of the same color hold the same rows of the batch:

# %% clients-picture
from lessons.strategies.one_mesh import picture

picture.clients_picture()

# %% mesh-read [markdown]
# Look at the two devices of one color. Each holds half of every split weight, so together they make one model.
# In the middle of every step, they exchange data along `model`. Both belong to the same client, so this traffic stays within a machine, where links are fast.
#
# The gradients and the loss are summed along `batch`. Of the numbers in a step, only these sums cross the dashed line.
#
# That's why we list `model` last, as in {lesson:all_reduce}. Devices are numbered along the last dimension first: 0 and 1 are a pair along `model`, then 2 and 3, and so on. So the four devices of a client are two whole pairs.

# %% programs-text [markdown]
# Let's start this mesh. All clients run the same program, and the folded cell makes a folder for its files:

# %% programs tags=["known"]
from pathlib import Path

programs = Path("one_mesh_programs")
programs.mkdir(exist_ok=True)
# Empty files: so the cells below always say "Overwriting"
names = ["mesh", "sum", "client_start", "model", "client"]
for name in [*names, "other_seed"]:
    (programs / f"{name}.py").touch()

# %% mesh-text [markdown]
# How do the clients find each other? Each process gets three environment variables, in place of `TF_CONFIG`:
#
# - `DTENSOR_JOBS`: the addresses of all clients (not a list of jobs, as you might think);
# - `DTENSOR_CLIENT_ID`: the number of this client;
# - `DTENSOR_JOB_NAME`: a name for the whole group.
#
# `initialize_accelerator_system` connects the clients, and waits until all of them are there. Then `create_distributed_mesh` makes one mesh of all their devices.
# We want eight devices in total, so each of our two clients makes four:

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
# Do the two processes really compute together? Let's put a single 1 on each of the eight devices, and add them up over the mesh:

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
# `Cluster` sets the three variables, and starts the program as two processes. Each cell that starts processes takes some seconds.
# What does client 1 print as the sum: 4, for its own devices, or 8?

# %% sum-run
from lessons.strategies.launcher import Cluster


def run(program, clients, *arguments, others=None):
    command = [programs / program, *arguments]
    tasks = {"client": clients}
    cluster = Cluster(
        command,
        tasks,
        others=others,
        variables="DTENSOR",
    )
    with cluster:
        return cluster.wait()


run("sum.py", 2)

# %% sum-read [markdown]
# Both clients print 8. Yet `unpack` gave each of them only four components, those of its own devices.
# The sum is an all-reduce over all eight devices, so the other four ones came from the other process.
#
# This is the *multi-client* DTensor that {lesson:mesh_and_layout} mentioned.
# The model and the training step stay as they were in a single process. Two things change besides the start: how you pack a tensor, and how you save.

# %% places-text [markdown]
# ## Which parts are mine?
#
# So far, whenever you packed a tensor, you made a component for each of the eight devices.
# But a client can fill only the memory of its own four devices. So it makes four components, and has to know which four.
#
# That depends on where its devices are in the mesh, which `local_device_locations()` tells it. To see what it returns, we don't need two processes. This is the mesh as client 1 sees it:

# %% places
from lessons.strategies.one_mesh.checks import mesh_of_client

mesh_of_1 = mesh_of_client(1)
for position in mesh_of_1.local_device_locations():
    print(position)

# %% rows-given [markdown]
# Client 1 has positions 2 and 3 along `batch`. If a batch has 32 rows, each position gets 8 of them.
# So client 1 needs only the last 16 rows, and client 0 the first 16.
# Each client could read just its own half of the data.
#
# Is that so on any mesh with these eight devices?

# %% predict-rows [markdown]
# You list the dimensions in the other order, and get a mesh of `model` 2 × `batch` 4.
# Client 1 still has the last four of the eight devices. The 32 rows of a batch are still split along `batch`, and not along `model`.
# How many of the rows does client 1 need now?
#
# - [ ] `8`
#   That is what a single device needs. But the four devices of client 1 are at four different positions along `batch`.
# - [ ] `16`
#   In the first mesh, the devices of client 1 were at two positions along `batch`. Now the numbers run along `batch` first, so they are at all four.
# - [x] `32`
#   Devices are numbered along the last dimension first, and that is now `batch`. So the four devices of client 1 are at all four positions along `batch`, and need all the rows.

# %% reveal-rows
turned = mesh_of_client(1, {"model": 2, "batch": 4})
positions = set()
for position in turned.local_device_locations():
    positions.add(position["batch"])
rows_at_a_position = 32 // 4
reveal("one_mesh-rows", len(positions) * rows_at_a_position)

# %% mine-text [markdown]
# In that mesh every client would have to read every row. Worse, two devices that share a model would be in different clients, so their traffic in mid-step would cross from machine to machine.
# We stay with `batch` 4 × `model` 2.
#
# **Exercise 1.** Write `mine(array, layout)`. It returns a list with the components that this client must make, in the order of its devices.
# It should work for any array and any mesh. In {lesson:mesh_and_layout}, you wrote `cut` for a process with all the devices. `mine` does the same for the devices of one client.
#
# - Begin with one device and one axis. Which piece of the array is for this device? If the axis is split along `batch`, a device at position 2 along `batch` gets piece 2, counted from 0.
# - `layout.mesh.local_device_locations()` lists the positions of the client's devices in the mesh.
# - `layout.sharding_specs` has one entry for each axis of the array: the mesh dimension along which it is split, or `dtensor.UNSHARDED`.
# - `layout.num_shards(axis)` is the number of pieces, and `np.split(array, count, axis)` splits the array into `count` pieces.

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
# The model's program calls your `mine`, so this cell writes it into a file. If it doesn't pass the check yet, the cell writes ours:

# %% own-mine
from lessons.strategies.own_file import write_own

write_own(programs / "mine.py", "one_mesh-mine", mine)

# %% client-start-why [markdown]
# You know everything in the next file, so its cell is folded. It has the options of the program, the noisy patterns that we train on, the model and the step of {lesson:splitting_the_model} in other sizes, and `newest` from {lesson:a_run}, which finds the newest checkpoint.
# The last function, `restore_newest`, restores this checkpoint if there is one:

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

# %% model-text [markdown]
# Now the model. `values`, in the folded file, has the initial weights. Every client draws all of them, with the same seed, and `mine` keeps the pieces for its own devices.
# Then `dtensor.pack` makes one tensor of the pieces of all clients:

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
del weights  # or every device would hold them twice
shape = dtensor.unpack(model.W1.value())[0].shape
print("W1 on a device", shape, flush=True)

# %% model-run-text [markdown]
# `W1` has 64 × 16 numbers, and its columns are split along `model`. How much of it does a device hold?

# %% model-run
run("model.py", 2)

# %% model-read [markdown]
# A device holds 64 × 8 numbers, half of `W1`. Your matrix of 10 GB can be split in the same way. Here it is with its gradient, first whole and then split in two:

# %% memory-picture
picture.memory_picture()

# %% memory-read [markdown]
# The whole matrix and its gradient take 20 GB, which is too much for a device of 16. Half of each is 5 GB, together 10 GB, and that fits.
# With more devices along `model`, each of them would hold still less.

# %% note-adam [markdown]
# Does it also fit with Adam?
#
# No. The 16 GB are enough for plain SGD, which our program uses. Adam keeps two slots for each weight, which take 5 GB each on a device. With the matrix and its gradient, a device would need 20 GB.
# So `model` would have to be larger.

# %% client-text [markdown]
# ## Do two clients train like one?
#
# The training loop is the one from a single process. In each step, every client draws the whole batch of 32 rows, and `distribute` keeps the 16 rows that its devices need.
# The two halves make up one batch only if all clients draw the same rows. So the seed depends on the step alone.
#
# The program also saves checkpoints. We need them when a client dies. The lines before the loop make sure that all clients are at the same step. We come back to both:

# %% client
# %%writefile one_mesh_programs/client.py
import tempfile
import time

import numpy as np
import tensorflow as tf
from client_start import options, restore_newest, train_step, x, y
from mesh import client, clients, mesh
from mine import mine
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

# %% clients
import tempfile

two = run("client.py", 2, tempfile.mkdtemp(), "--steps", 5)
two

# %% clients-read [markdown]
# In five steps the loss falls from 2.77 to 1.14, and both clients print the same loss in every step. (The program prints nine decimals of it. The report shows two.)
#
# Is it also the right loss? Let's compare it with that of a single process, which has all eight devices to itself:

# %% alone
always = run("client.py", 1, "--steps", 8)
alone = always["client 0"].losses
print("step  two clients  one client")
for step, loss in two["client 0"].losses.items():
    print(f"{step:4}  {loss:11.2f}  {alone[step]:10.2f}")

# %% alone-read [markdown]
# To the two decimals shown, the losses are the same in every step. So two processes train like one.
#
# ## What if the seeds differ?
#
# This works only because all clients draw the same initial weights. In `client_start.py`, the seed is 0 for every client.
# But what if client 1 had another seed? That happens easily: you forget the seed, or you make it depend on the client.
#
# Let's try it. Client 1 gets another program, which draws other numbers for `W1` and `W2`, and then goes on with `client.py`:

# %% other-seed
# %%writefile one_mesh_programs/other_seed.py
import numpy as np
from client_start import values

random = np.random.default_rng(1)
values["W1"] = random.normal(0, 0.2, (64, 16)).astype("float32")
values["W2"] = random.normal(0, 0.4, (16, 4)).astype("float32")

import client

# %% predict-seeds [markdown]
# Client 0 and client 1 draw their initial weights with different seeds. All else is as before: the mesh, the batches, the step.
# They train for five steps, and each client prints the loss over the whole batch. What do you see?
#
# - [ ] `error` An error, because the weights of the two clients don't fit together.
#   To notice that, DTensor would have to compare the weights of one client with those of the other. It doesn't: `pack` takes whatever each client gives it.
# - [ ] `different` Each client prints losses of its own.
#   Each client does compute with weights of its own. But the loss over the whole batch is a sum over all devices, and an all-reduce gives both clients the same sum.
# - [x] `same` No error, and both clients print the same losses.
#   `pack` compares nothing between clients, so there is no error. And the loss over the whole batch comes out of an all-reduce, which gives both clients the same sum.

# %% reveal-seeds
folder = tempfile.mkdtemp()
other = {"client 1": [programs / "other_seed.py", folder]}
unequal = run("client.py", 2, folder, others=other)

first, second = unequal["client 0"], unequal["client 1"]
if first.error or second.error:
    seen = "error"
elif first.losses == second.losses:
    seen = "same"
else:
    seen = "different"
reveal("one_mesh-seeds", seen)

# %% seeds-why [markdown]
# The two clients agree with each other. Do they also agree with the single process?

# %% seeds
print("step  client 0  client 1  one client")
for step, loss in first.losses.items():
    row = f"{step:4}  {loss:8.2f}  {second.losses[step]:8.2f}"
    print(f"{row}  {alone[step]:10.2f}")

# %% seeds-read [markdown]
# They don't. After five steps the loss is 1.76 instead of 1.14, and nothing has warned us.
#
# What went wrong? `W1` is split along `model`, and not along `batch`. So devices at different positions along `batch` should hold the same numbers, and DTensor assumes that they do.
# But positions 0 and 1 have the weights of client 0, and positions 2 and 3 have those of client 1. These are two different models, one on each machine.
#
# In every step, the all-reduce adds up gradients from both models, and both models are moved by this sum.
# Since both are moved by the same amount, they stay as far apart as they were at the beginning.
#
# So don't trust losses just because all clients print the same. Before a long run, train a small version of the model for some steps, also in a single process on virtual CPUs, and compare. Here the very first loss would tell you: 2.81 instead of 2.77.

# %% killed-text [markdown]
# ## One checkpoint for all clients
#
# Saving is the second thing that changes. *All* clients call `save`, because TensorFlow waits for all of them there. They save into one folder that all of them see, and it gets *one* checkpoint.
# In {lesson:failures}, workers couldn't save into one folder, because each would have written a whole checkpoint. Here each shard is written just once, by one of the devices that hold it. On our mesh, client 0 has both halves of every weight, and it writes them all.
#
# What is this checkpoint good for when a client dies? The clients save after step 5, and then train on. With `--pause 2` they wait two seconds after each step, and after step 7 we kill client 1:

# %% killed
folder = tempfile.mkdtemp()
command = [programs / "client.py", folder, "--steps", 8]
command += ["--pause", 2]
tasks = {"client": 2}
with Cluster(command, tasks, variables="DTENSOR") as cluster:
    cluster.wait_for("client 0", "step 7 ")
    cluster.wait_for("client 1", "step 7 ")
    cluster.kill("client 1")
    killed = cluster.wait()
killed

# %% killed-read [markdown]
# Client 0 doesn't train on alone. Its next step has an all-reduce with client 1, which is gone, so client 0 ends with an error. You know this from {lesson:failures}: one lost process ends the whole run.
#
# Then you restart all clients, and they go on from the checkpoint. But suppose the second machine stays broken. Can *one* client go on from a checkpoint of two?
# Our devices are virtual, so a single process can make all eight of them. (On one real machine with four, you would also take a smaller mesh, as in {lesson:any_mesh}.)

# %% then-one
later = run("client.py", 1, folder, "--steps", 8)

# %% losses
before = killed["client 0"].losses
after = later["client 0"].losses


def show_loss(losses, step):
    return f"{losses[step]:.2f}" if step in losses else ""


print("step  two clients  then one  always one")
for step, loss in alone.items():
    two_clients = show_loss(before, step)
    then_one = show_loss(after, step)
    print(f"{step:4}  {two_clients:>11}  {then_one:>8}  {loss:10.2f}")

# %% then-one-read [markdown]
# It can. The single client goes on after step 5, where the checkpoint was written, so steps 6 and 7 are done twice. Their losses come out the same both times, and steps 6 to 8 all match the process that was always alone.
#
# That works because the checkpoint holds each variable under its name and with its whole shape, such as 64 × 16. It says nothing about clients.
# So you can go on with 1, 2, 4 or 8 clients. Their number only has to divide the eight devices of our mesh.
#
# ## What if a client has the wrong folder?
#
# All of this takes one folder for all clients. Suppose that client 1 gets another one, which is empty. It finds no checkpoint, so it would begin with new weights at step 0, while client 0 goes on after step 8.
# As you have seen, both would print the same losses. Client 0 would also run out of steps long before client 1, and in the end each would wait for the other.
# So `client.py` compares the steps before it trains: each client packs its own step, and the smallest must be the largest.

# %% other-folder
wrong = {"client 1": [programs / "client.py", tempfile.mkdtemp()]}
run("client.py", 2, folder, "--steps", 10, others=wrong)

# %% which-text [markdown]
# Both clients end with an error before they train.
#
# ## Which one?
#
# You now know all the systems of this part. Which one is for you?
#
# An all-reduce takes two things for granted: every machine keeps up in every step, and every device has room for the whole model.
# Usually both are true, and then you want an all-reduce. To find out, ask three questions, in this order:
#
# 1. Does the model fit on one device?
# 2. How many machines are there?
# 3. Are they about equally fast?
#
# | your case | what you take | what it costs |
# | :--- | :--- | :--- |
# | it fits on a device, and all devices are in one machine | `MirroredStrategy`, with `fit` ({lesson:strategies}) or your own loop ({lesson:custom_training}) | all wait for the slowest, in each step |
# | it fits, there are several machines, and they are about equally fast | `MultiWorkerMirroredStrategy` ({lesson:workers}), and what a long run needs ({lesson:failures}) | all wait for the slowest, in each step; one lost worker ends the run, which then resumes from a checkpoint |
# | it fits, but workers are often slow, or die | `ParameterServerStrategy` ({lesson:parameter_servers}) | stale gradients, a smaller learning rate, and no two runs alike |
# | it doesn't fit, but only because of a table of embeddings | `ParameterServerStrategy`, too | stale gradients, a smaller learning rate, and no two runs alike |
# | it doesn't fit on a device, and there is one machine, whose devices together have room for it | one DTensor mesh in one process ({lesson:splitting_the_model}) | devices exchange activations in the middle of every step; all wait for the slowest |
# | it doesn't fit on a device, and there are several machines | clients of one mesh: this lesson | devices exchange activations in the middle of every step; all wait for the slowest; and one lost client ends the run |
#
# {Lesson:strategies} has the table of what works with which strategy, and says which of them is for which hardware.

# %% takeaways [markdown]
# ## The plain program
#
# [`client.py`](../plain/client.py) is the program of this lesson in one file, with what was folded here.
# Run it by hand, without the three variables, and a single process makes the mesh of eight devices. To start it on Kubernetes or Slurm, see the folder `deploy/` of this course.
#
# We ran it on the CPU of one machine, and haven't tried it on GPUs or on several machines.
#
# ## Takeaways
#
# - The clients share one mesh, and each makes the components of its own devices. If they draw different initial weights, training goes wrong, and no error says so.
# - All clients call `save`, with one folder, and compare their steps before they train. If one dies, you can go on from the checkpoint with another number of clients.
# - Take data parallelism with an all-reduce if the model fits on a device. If workers are often slow or die, take parameter servers. If the model doesn't fit, take a mesh.
#
# With a mesh that spans machines, you can train far larger models than ours. Most of those are transformers, and {lesson:transformer_block} splits one block of a transformer.

# %% score
score("one_mesh")
