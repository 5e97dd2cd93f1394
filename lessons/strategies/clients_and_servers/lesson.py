# %% [markdown]
# # Clients and servers
#
# One of your sixteen workers has become slow. Somebody else's job landed on its machine,
# and each of its steps now takes a second instead of a tenth of one.
# The other fifteen are as fast as ever. And your training is ten times slower.
#
# An all-reduce needs everybody. So fifteen machines that you pay for are idle for nine tenths of the time,
# because they wait for the sixteenth.
#
# You could take that machine out. But next week it will be another one.
#
# Several workers with an all-reduce are the usual way to train on many machines, and mostly the right one.
# But there are two more ways to train with many processes: *parameter servers*, where nobody waits,
# and *clients of one mesh*, which share a model that is too large for one device.
# *When would you want one of them?*
#
# **After this lesson you can**
#
# - train with parameter servers, where no worker waits for another, and say what that costs;
# - spread one DTensor mesh over several processes;
# - choose between these two and the all-reduce.
#
# **Time:** 30 minutes.
# **You need to know:** workers and `TF_CONFIG` ({lesson:workers}), a mesh with two dimensions ({lesson:splitting_the_model}).

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% programs-text [markdown]
# Every program of this lesson grows from pieces, which lie in a folder beside this notebook. `assemble` puts some of them together into one file:

# %% programs tags=["known"]
import tempfile
from pathlib import Path

import numpy as np

from course_lib import about
from lessons.strategies.launcher import Cluster

# The files are made first, so that %%writefile always says the same
programs = Path("clients_and_servers_programs")
programs.mkdir(exist_ok=True)
names = ["all_reduce", "roles", "compute_for", "one_weight"]
names += ["schedule", "coordinator_head", "variables", "train_step"]
names += ["run_epoch", "epochs", "slow_step", "client_head", "mesh"]
names += ["components", "model", "client_loop"]
for name in names:
    (programs / f"{name}.py").touch()


def assemble(program, *pieces):
    texts = []
    for piece in pieces:
        texts.append((programs / f"{piece}.py").read_text())
    (programs / program).write_text("\n\n".join(texts))


# %% all-wait-text [markdown]
# ## Everybody waits for the slowest
#
# Let's make that slow worker. We need a model that you can train in your head, so it has a single weight `w`, which starts at 8.
# Its loss is $w^2/2$, so its gradient is `w` itself. With a learning rate of 0.5, each update halves it: 8, 4, 2, 1, …
#
# Two workers train it together. A step takes worker 0 a tenth of a second, and worker 1 a whole one.
# Instead of computing, they sleep:

# %% all-reduce
# %%writefile clients_and_servers_programs/all_reduce.py
import time

import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
worker = strategy.cluster_resolver.task_id
seconds = [0.1, 1.0][worker]
with strategy.scope():
    w = tf.Variable(8.0)


def update():
    context = tf.distribute.get_replica_context()
    gradient = context.all_reduce("MEAN", w.read_value())
    w.assign_sub(0.5 * gradient)


begin = time.monotonic()
for number in range(1, 7):
    time.sleep(seconds)
    strategy.run(update)
    print(f"step {number} w {w.numpy():.3f}", flush=True)
busy = 6 * seconds / (time.monotonic() - begin)
print(f"busy {busy:.3f}", flush=True)

# %% all-reduce-run-text [markdown]
# `Cluster` starts it twice, as in the lessons before this one. How much of its time is each worker busy?

# %% all-reduce-run
with Cluster([programs / "all_reduce.py"], {"worker": 2}) as cluster:
    report = cluster.wait()

shares = {}
for task in ("worker 0", "worker 1"):
    *steps, last = report[task].lines
    print(f"{task}: {len(steps)} steps, the last one: {steps[-1]}")
    shares[task] = float(last.split()[1])
print("worker 0 is busy", about(shares["worker 0"], 0.02, 0.2))
print("worker 1 is busy", about(shares["worker 1"], 0.5, 1))

# %% all-reduce-read [markdown]
# Both took six steps, and both have $8/2^6 = 0.125$. So the training is right. But the fast worker is busy for a tenth of its time.
# The rest it spends in the all-reduce, waiting for the gradient of the slow one.
# Here is the same thing with a worker that is only four times as slow, so that it fits on the page. Each column is a moment, and a dot is a moment of waiting:
#
# | all-reduce | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 |
# | :--- | :---: | :---: | :---: | :---: | :---: | :---: | :---: | :---: |
# | worker 0 | step 1 | · | · | · | step 2 | · | · | · |
# | worker 1 | step 1 | step 1 | step 1 | step 1 | step 2 | step 2 | step 2 | step 2 |
#
# And this is what we would like. (Here a step is one gradient of one worker.)
#
# | nobody waits | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 |
# | :--- | :---: | :---: | :---: | :---: | :---: | :---: | :---: | :---: |
# | worker 0 | step 1 | step 3 | step 4 | step 5 | step 6 | step 8 | step 9 | step 10 |
# | worker 1 | step 2 | step 2 | step 2 | step 2 | step 7 | step 7 | step 7 | step 7 |
#
# Ten gradients instead of four. For that, the workers must not wait for each other's gradients. But then who adds them up?
#
# ## Nobody waits
#
# Nobody does. Each gradient is applied on its own, as soon as it is there. That is what **parameter servers** are for:
# processes that hold the variables, each a part of them, and apply the gradients that arrive.
# A worker *fetches* the variables, computes a gradient, and *pushes* it to the servers.
# One more process, the **coordinator**, has the program's loop, and a queue of steps. A worker that is free takes the next step from that queue:

# %% servers-picture
from lessons.strategies.clients_and_servers import picture

picture.servers_picture()

# %% roles-text [markdown]
# All of them run the same file, and `TF_CONFIG` tells each who it is. The coordinator has the job `chief`, a worker `worker`, and a server `ps`.
# Only the coordinator gets past these lines. A worker and a server stop at the last one, and serve until somebody ends them:

# %% roles
# %%writefile clients_and_servers_programs/roles.py
import tensorflow as tf

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
cluster = resolver.cluster_spec()
job, index = resolver.task_type, resolver.task_id
if job != "chief":
    server = tf.distribute.Server(cluster, job, index, protocol="grpc")
    server.join()

# %% compute-for-text [markdown]
# Everything from here on is the coordinator's: it makes the variables, which then lie on a server, and the step, which workers run.
# Again we pretend that a step takes long. `compute_for(seconds, after)` waits so long inside of a step, once the tensors in `after` are there. You need not read it:


# %% compute-for tags=["known"]
# %%writefile clients_and_servers_programs/compute_for.py
# time.sleep would only run once, while the step is traced
def compute_for(seconds, after):
    with tf.control_dependencies(after):
        now = tf.timestamp()
        end = now + seconds
    while now < end:
        now = tf.timestamp()
    return now


# %% one-weight-text [markdown]
# Read `train_step` as a worker would run it: fetch, compute, push.
# Beside `w`, the server counts the updates. With that count a worker can find out how many updates came in while it computed:

# %% one-weight
# %%writefile clients_and_servers_programs/one_weight.py
strategy = tf.distribute.ParameterServerStrategy(resolver)
coordination = tf.distribute.coordinator
coordinator = coordination.ClusterCoordinator(strategy)
with strategy.scope():
    w = tf.Variable(8.0)
    updates = tf.Variable(0)


@tf.function
def train_step():
    worker = coordination.experimental_get_current_worker_index()
    if worker == 0:
        seconds = tf.constant(0.2, tf.float64)
    else:
        seconds = tf.constant(2.0, tf.float64)
    # Fetch
    fetched = w.read_value()
    updates_before = updates.read_value()
    # Compute: the gradient of this loss is what was fetched
    done = compute_for(seconds, after=[fetched, updates_before])
    # Push
    with tf.control_dependencies([done]):
        w.assign_sub(0.5 * fetched)
        number = updates.assign_add(1)
        age = number - 1 - updates_before
        return number, worker, age, w.read_value()


# %% note-order [markdown]
# Why `control_dependencies`?
#
# A graph runs in any order that its data allows, and here no data flows from the fetch to the wait, nor from the wait to the push.
# The `with` blocks keep the three in order. A real step needs none: its gradient is computed from the weights, so they have to be fetched first.

# %% schedule-text [markdown]
# The coordinator doesn't call the step. It hands it to `schedule`, which puts it into the queue and returns at once, before anybody has run it.
# (It takes only a `tf.function`, and its arguments apart.) What you get is a `RemoteValue`, a promise of the result. `coordinator.join()` waits until every step is done. After that, `fetch()` gives you what the step returned.
#
# The first four steps are for warming up, since each worker compiles the step when it gets it for the first time. Then `w` is set to 8 again, and we schedule 44 steps:

# %% schedule
# %%writefile clients_and_servers_programs/schedule.py
for _ in range(4):
    coordinator.schedule(train_step)
coordinator.join()
w.assign(8.0)
updates.assign(0)

results = []
for _ in range(44):
    results.append(coordinator.schedule(train_step))
coordinator.join()

for result in results:
    number, worker, age, value = result.fetch()
    print(f"{number} {worker} {age} {value:.3f}", flush=True)

# %% stale-given [markdown]
# Both workers begin by fetching `w`, which is 8. Worker 0 is done soon and fetches again. Worker 1 takes ten times as long.

# %% predict-stale [markdown]
# A weight `w` starts at 8. A worker fetches it, computes for a while, and then takes half of the value that it fetched away from `w`.
# Worker 0 needs a fifth of a second for that, worker 1 two whole ones. They don't wait for each other.
# What is the lowest value of `w` in the run, rounded to a whole number?
#
# - [ ] `0`
#   It would be, if each worker halved what `w` is when it pushes.
#   It takes away half of what `w` was when it fetched.
# - [x] `-4`
#   Worker 1 fetched 8, so it takes away 4. By then worker 0 has brought `w` almost to 0.
# - [ ] `-8`
#   It would be with a learning rate of 1. With 0.5, worker 1 takes away half of the 8 that it fetched.

# %% reveal-stale
pieces = ["roles", "compute_for", "one_weight", "schedule"]
assemble("asynchronous.py", *pieces)
tasks = {"chief": 1, "worker": 2, "ps": 1}
with Cluster([programs / "asynchronous.py"], tasks) as cluster:
    report = cluster.wait()

done = []
for line in report["chief 0"].lines:
    number, worker, age, value = line.split()
    done.append((int(number), int(worker), int(age), float(value)))
done.sort()  # in the order of the updates
lowest = min(value for number, worker, age, value in done)
reveal("clients_and_servers-stale", round(lowest))

# %% weight-text [markdown]
# Here is the whole run. Each dot is an update, in the colour of the worker whose gradient it was:

# %% weight
picture.weight_picture(done)

# %% stale-text [markdown]
# Worker 0 halves `w` again and again, until it is almost 0. Then the first gradient of worker 1 comes in, and throws `w` to −4. Worker 0 repairs that.
# But by then worker 1 has fetched the −4, and its next gradient throws `w` up to about 2. Its third one throws it to −1. Worker 1 halves `w`, too, only from a value that is long gone.
#
# So not waiting has a price. Before we look at it: have we got what we wanted? Who took how many of the 44 steps?

# %% counted
ages = {0: [], 1: []}
for number, worker, age, value in done:
    ages[worker].append(age)
steps_0 = about(len(ages[0]), 25, 43)
steps_1 = about(len(ages[1]), 1, 19, digits=1)
oldest_0 = about(max(ages[0]), 0, 4, digits=1)
oldest_1 = about(max(ages[1]), 3, 20, digits=1)
print("worker  steps  oldest gradient")
print(f"     0  {steps_0:>5}  {oldest_0:>15}")
print(f"     1  {steps_1:>5}  {oldest_1:>15}")

# %% counted-read [markdown]
# The slow worker took a few steps, and the fast one all the others. With an all-reduce, both would have taken the same number.
#
# Now the price. The last column has the **staleness** of a gradient, or its age: the number of updates that came in after its variables were fetched.
# The gradients of worker 0 are fresh, or nearly so. But while worker 1 computes, up to ten updates or so come in, and then it pushes a gradient of a weight that has long changed: a **stale gradient**.
# The server doesn't know how old a gradient is. It applies them all alike, and that is how `w`, which was as good as trained, could jump to −4.
#
# ## How old may a gradient be?
#
# Here it did no lasting harm: `w` came back. Whether it does depends on three numbers: how old the gradients are, how large the learning rate is, and how many of the gradients are old.
# In our run only a few were. Let's leave the cluster for a moment, and make *all* of them old:


# %% ages
def distance_after_60_updates(rate, age):
    history = [8.0]
    for update in range(60):
        fetched = history[max(0, update - age)]
        history.append(history[-1] - rate * fetched)
    # It swings: the largest distance from 0 in the last ten
    return max(abs(w) for w in history[-10:])


print("age  rate 0.5  rate 0.1")
for age in (0, 1, 3, 7, 15):
    large = distance_after_60_updates(0.5, age)
    small = distance_after_60_updates(0.1, age)
    print(f"{age:3}  {large:8.2f}  {small:8.2f}")

# %% ages-read [markdown]
# Look at the column of the rate 0.5. With fresh gradients `w` ends at 0, and an age of 1 does it no harm.
# But if every gradient is three updates old, `w` swings further and further away from 0: it diverges. At the ages of 7 and 15 its distance is in the thousands.
#
# With a rate of 0.1, an age of 7 is still all right. (A little age even helps: an old `w` is a larger one, so the step is larger, too.)
# But at an age of 15, `w` is as far from 0 as in the beginning. *The older the gradients, the smaller the learning rate must be.*
#
# How old will yours be? Take $n$ workers that are equally fast. While one of them computes, each of the others pushes about once.
# So expect an age of about $n-1$. With two that is 1, which did no harm in the table. With eight it is 7, and with sixteen 15.
# (The slow worker of the opening is another case: while it computes, the fifteen others push about 150 gradients. But few gradients are its own.)
# The table is harsh, since in it *every* gradient has its full age; on a real cluster ages vary. But it tells you which way to go.
#
# By how much should you lower the rate? Begin with $1/n$ of it. Where an all-reduce takes the *mean* of $n$ gradients and makes one step, here $n$ steps are made, each with the whole rate.
# For our `w` and sixteen workers that is 0.5/16, or about 0.03, and safely below the 0.1 that was too large.
#
# If all of your machines are equally fast, there is nobody to wait for. Then you would pay this price for nothing.

# %% note-momentum [markdown]
# What about momentum? And can parameter servers train synchronously?
#
# Momentum keeps a running sum of gradients, so each old gradient acts for longer. In our trials with two workers and momentum, the loss rose in 2 of 8 runs. So begin with plain SGD.
#
# If you schedule one step, wait with `coordinator.join()`, and only then schedule the next, every gradient is fresh, and the run is that of one device. But then only one worker is ever busy.

# %% variables-text [markdown]
# ## A coordinator for a real model
#
# Now for a model with more than one weight: a small network, 64 → 16 → 4, that tells four kinds of noisy patterns apart.
# Its program grows in three pieces. First, where do the variables lie?
#
# A **partitioner** cuts large variables into parts, and spreads these over the servers.
# Ours makes no part smaller than 2,048 bytes. `W1` has 4,096 bytes, `W2` has 256. (The folded cell has the options of the program, and the roles that you know.)

# %% coordinator-head tags=["known"]
# %%writefile clients_and_servers_programs/coordinator_head.py
"""A coordinator, a worker or a server; TF_CONFIG says which.

python coordinator.py [FOLDER] [--epochs 2]
"""

import argparse
import faulthandler
import json
import os
import socket
import tempfile

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("folder", nargs="?", help="of checkpoints")
parser.add_argument("--epochs", type=int, default=2)
options = parser.parse_args()

if "TF_CONFIG" not in os.environ:
    # Alone: a worker and a server in this process
    local = "127.0.0.1"
    sockets = [socket.create_server((local, 0)) for _ in range(3)]
    ports = [each.getsockname()[1] for each in sockets]
    jobs = ("chief", "worker", "ps")
    spec = {}
    for each, port in zip(jobs, ports):
        spec[each] = [f"{local}:{port}"]
    task = {"type": "chief", "index": 0}
    config = {"cluster": spec, "task": task}
    os.environ["TF_CONFIG"] = json.dumps(config)
    for held in sockets:
        held.close()
    inside = []
    for each in ("worker", "ps"):
        server = tf.distribute.Server(spec, each, 0, protocol="grpc")
        inside.append(server)

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
cluster = resolver.cluster_spec()
job, index = resolver.task_type, resolver.task_id
if job != "chief":
    server = tf.distribute.Server(cluster, job, index, protocol="grpc")
    server.join()

# TensorFlow waits for the others without a limit: five minutes here
faulthandler.dump_traceback_later(300, exit=True)

# %% variables
# %%writefile clients_and_servers_programs/variables.py
partitioners = tf.distribute.experimental.partitioners
partitioner = partitioners.MinSizePartitioner(
    min_shard_bytes=2048,
    max_shards=cluster.num_tasks("ps"),
)
strategy = tf.distribute.ParameterServerStrategy(resolver, partitioner)
faulthandler.cancel_dump_traceback_later()  # all others are there
coordination = tf.distribute.coordinator
coordinator = coordination.ClusterCoordinator(strategy)

normal = np.random.default_rng(0).normal
with strategy.scope():
    W1 = tf.Variable(normal(0, 0.2, (64, 16)).astype("float32"))
    W2 = tf.Variable(normal(0, 0.4, (16, 4)).astype("float32"))
    updates = tf.Variable(0, dtype=tf.int64, trainable=False)
    epoch = tf.Variable(0, dtype=tf.int64, trainable=False)


def parts_of(variable):
    if hasattr(variable, "variables"):
        return variable.variables
    return [variable]  # it was not cut


for name, variable in (("W1", W1), ("W2", W2)):
    for part in parts_of(variable):
        server = tf.DeviceSpec.from_string(part.device).task
        print(name, part.shape, "on server", server, flush=True)

# %% variables-run-text [markdown]
# That is a whole program already: it makes the variables, and ends.

# %% variables-run
assemble("coordinator.py", "coordinator_head", "variables")
tasks = {"chief": 1, "worker": 1, "ps": 2}
with Cluster([programs / "coordinator.py"], tasks) as cluster:
    report = cluster.wait()
for line in report["chief 0"].lines:
    print(line)

# %% train-step-text [markdown]
# `W1` was cut into two halves, one for each server. `W2` is too small to be cut.
#
# Second, the step and its data. Each worker makes its own dataset: `create_per_worker_dataset(batches)` calls `batches` on every worker.
# So each worker shuffles *all* the examples for itself. Nobody deals them out here, so there is no such thing as "one pass over the data". We simply call five steps an epoch.
#
# In `loss_of`, `tf.convert_to_tensor(W1)` is the fetch: it gets the two halves from their servers and makes one matrix of them.
# In `train_step`, each half gets the gradient of its own:

# %% train-step
# %%writefile clients_and_servers_programs/train_step.py
y = np.arange(96) % 4
noise = np.random.default_rng(0).normal(size=(96, 64))
x = (noise + 4 * np.eye(4, 64)[y]).astype("float32")
parts = [*parts_of(W1), *parts_of(W2)]


def batches():
    dataset = tf.data.Dataset.from_tensor_slices((x, y))
    return dataset.shuffle(96).repeat().batch(32)


def loss_of(x, y):
    hidden = tf.nn.relu(x @ tf.convert_to_tensor(W1))
    logits = hidden @ tf.convert_to_tensor(W2)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
    return tf.reduce_mean(losses)


@tf.function
def train_step(iterator):
    x, y = next(iterator)
    with tf.GradientTape() as tape:
        loss = loss_of(x, y)
    for part, gradient in zip(parts, tape.gradient(loss, parts)):
        part.assign_sub(0.1 * gradient)
    updates.assign_add(1)
    return loss


# %% exercise-epoch-text [markdown]
# Third, the loop, with its checkpoints. The coordinator alone saves, and for that it reads the variables from the servers.
# If steps were still running, it could catch one variable before an update and another one after it.
#
# **Exercise 1.** Write `run_epoch(coordinator, train_step, iterator, num_steps, save)`.
#
# - Schedule `num_steps` steps, each by `coordinator.schedule(train_step, args=(iterator,))`. All workers must be able to work at the same time.
# - When all of the steps are done, and not before, call `save()` once.
# - Each step returns its loss. Return the mean loss of the epoch.
#
# The check hands you a coordinator that notes what you ask of it.


# %% exercise-epoch
def run_epoch(coordinator, train_step, iterator, num_steps, save):
    # solution begin
    steps = []
    for _ in range(num_steps):
        step = coordinator.schedule(train_step, args=(iterator,))
        steps.append(step)
    coordinator.join()
    save()
    losses = [step.fetch() for step in steps]
    return sum(losses) / num_steps
    # solution end


# %%
check("clients_and_servers-epoch", run_epoch)

# %% run-epoch-text [markdown]
# The program has a `run_epoch` of its own, folded here so that you can write yours first, and calls it until it has all its epochs:


# %% run-epoch tags=["known"]
# %%writefile clients_and_servers_programs/run_epoch.py
def run_epoch(coordinator, train_step, iterator, num_steps, save):
    steps = []
    for _ in range(num_steps):
        step = coordinator.schedule(train_step, args=(iterator,))
        steps.append(step)
    coordinator.join()
    save()
    losses = [step.fetch() for step in steps]
    return sum(losses) / num_steps


# %% epochs
# %%writefile clients_and_servers_programs/epochs.py
checkpoint = tf.train.Checkpoint(
    W1=W1,
    W2=W2,
    updates=updates,
    epoch=epoch,
)
folder = options.folder or tempfile.mkdtemp()
manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=3)
manager.restore_or_initialize()
iterator = iter(coordinator.create_per_worker_dataset(batches))


def save():
    epoch.assign_add(1)
    manager.save()


while epoch < options.epochs:
    loss = run_epoch(coordinator, train_step, iterator, 5, save)
    reached = f"epoch {int(epoch)} loss {loss:.3f}"
    print(reached, "updates", int(updates), flush=True)

# %% epochs-run
pieces = ["coordinator_head", "variables", "train_step", "run_epoch"]
assemble("coordinator.py", *pieces, "epochs")
tasks = {"chief": 1, "worker": 2, "ps": 2}
command = [programs / "coordinator.py", "--epochs", "4"]
with Cluster(command, tasks) as cluster:
    report = cluster.wait()


def epochs_of(report):
    epochs = []
    for line in report["chief 0"].lines:
        if line.startswith("epoch"):
            _, epoch, _, loss, _, updates = line.split()
            epochs.append((int(epoch), float(loss), int(updates)))
    return epochs


print("epoch    loss  updates")
for epoch, loss, updates in epochs_of(report):
    print(f"{epoch:5}  {about(loss, 0.0, 3.0):>6}  {updates:7}")

# %% one-dies [markdown]
# It learns: the loss falls to a fraction of what it was.
#
# But look once more at `coordinator.join()`. At the end of each epoch, everybody waits there for the last step. If a slow worker, which needs a second for a step, takes one of the five, the epoch lasts at least a second.
# A single fast worker, at a tenth of a second for each, would do all five in half of one! So in five steps, the slow worker is worse than none. Make your epochs long: hundreds of steps between one `join` and the next, not five.
#
# ## One dies
#
# With an all-reduce, a killed worker ends the whole training. You have seen it. Let's kill one here, too, and not just anywhere: in the middle of a step.
# For that, we need steps that are long enough to hit. This piece makes each step a second longer, and lets the *worker* say when it begins one and when it has done it:

# %% slow-step
# %%writefile clients_and_servers_programs/slow_step.py
import sys

quick_step = train_step


@tf.function
def train_step(iterator):
    at = epoch + 1
    says = tf.print("begins in", at, output_stream=sys.stdout)
    done = compute_for(1.0, after=[says])
    with tf.control_dependencies([done]):
        loss = quick_step(iterator)
    with tf.control_dependencies([loss]):
        tf.print("done in", at, output_stream=sys.stdout)
    return loss


# %% worker-given [markdown]
# In epoch 3, as soon as worker 1 says that it begins a step, we kill it.

# %% predict-worker [markdown]
# The coordinator of a `ParameterServerStrategy` schedules five steps an epoch, for two workers.
# In epoch 3, worker 1 is killed in the middle of a step.
# What does the training do then?
#
# - [ ] `error` It ends with an error.
#   So it is with an all-reduce, for which all workers are needed.
#   Here no worker waits for another.
# - [ ] `waits` It waits until worker 1 is back.
#   No step belongs to a worker: another one can do it.
# - [ ] `one lost` It goes on with worker 0, and epoch 3 has four updates.
#   The coordinator has no result of the fifth step, and has it done again.
# - [x] `all done` It goes on with worker 0, and epoch 3 has five updates.
#   The step without a result is given to another worker. So no update is missing.

# %% reveal-worker
assemble("slow.py", *pieces, "compute_for", "slow_step", "epochs")
command = [programs / "slow.py", "--epochs", "1000"]
with Cluster(command, tasks) as cluster:
    cluster.wait_for("worker 1", "begins in 3")
    cluster.kill("worker 1")
    cluster.wait_for("chief 0", "epoch 4 ")
    without_worker_1 = cluster.report()
    cluster.restart("worker 1")
    cluster.wait_for("worker 1", "done")
    with_it_again = cluster.report()

updates_after = {}
for epoch, loss, updates in epochs_of(without_worker_1):
    updates_after[epoch] = updates
in_epoch_3 = updates_after[3] - updates_after[2]
answer = "all done" if in_epoch_3 == 5 else "one lost"
reveal("clients_and_servers-worker", answer)

# %% ended-text [markdown]
# How did it come to five? Let's count what the two workers said in epoch 3, and what worker 1 said last:

# %% ended
print("epoch 3   begun  done")
for task in ("worker 0", "worker 1"):
    lines = without_worker_1[task].lines
    begun = lines.count("begins in 3")
    done_in_3 = lines.count("done in 3")
    print(f"{task}  {begun:5}  {done_in_3:4}")
print("updates         ", in_epoch_3)
print("worker 1, at the end:", without_worker_1["worker 1"].lines[-1])

# %% ended-read [markdown]
# Worker 1 died with a step in its hands: it had begun one, and did none. Worker 0 did all five, that one among them.
# Then it went on alone, into epoch 4 and further. And when we started worker 1 again, it got steps again, and nobody had to tell the coordinator:

# %% back
for line in with_it_again["worker 1"].lines:
    if line.startswith("done in"):
        last = int(line.split()[2])
print("worker 1 has done a step in epoch", about(last, 4, 30, digits=1))

# %% note-twice [markdown]
# Can a step count twice? And what else can go wrong with a worker?
#
# Yes. If a worker dies after it has pushed its gradient, or a part of it, but before its result is back, the coordinator has the whole step done again. Then what was pushed counts twice.
# We killed the worker before it pushed anything.
#
# Two more things to know. A worker that comes back begins its dataset anew, with the first element; without a shuffle, it sees the same examples again. And if *all* workers are gone, the coordinator waits for one, and says nothing.

# %% server-text [markdown]
# And a server? It holds variables, so it can't be replaced by the other one. Let's kill server 1 once a step of epoch 2 is done.
# Then we start all five processes again, on the same folder of checkpoints:

# %% server
folder = tempfile.mkdtemp()
command = [programs / "slow.py", folder, "--epochs", "1000"]
with Cluster(command, tasks) as cluster:
    cluster.wait_for("worker 0", "done in 2")
    cluster.kill("ps 1")
    ended = cluster.wait()["chief 0"]
    for task in ("ps 0", "ps 1", "worker 0", "worker 1", "chief 0"):
        cluster.restart(task)
    cluster.wait_for("chief 0", "epoch 2 ")
    report = cluster.report()

print(ended.heading())
for epoch, loss, updates in epochs_of(report):
    print("epoch", epoch, "updates", updates)
steps = 0
for task in ("worker 0", "worker 1"):
    steps += report[task].lines.count("done in 2")
print("steps done in epoch 2:", about(steps, 6, 9, digits=1))

# %% server-read [markdown]
# The coordinator ended with an `UnavailableError`: half of `W1` had existed on server 1 and nowhere else. So a lost *server* ends the training, and so does a lost coordinator.
#
# What remained was the checkpoint of epoch 1. From there the new processes went on: they did epoch 2 from its beginning, all five steps.
# What had been done of it before was lost, and nothing else. That is why more steps were done in epoch 2 than count.

# %% note-coordinator [markdown]
# What if the coordinator dies? And must all be started again?
#
# Workers and servers don't notice that the coordinator is gone. They run on, with nothing to do, until somebody ends them. Start the coordinator again, alone, and it goes on from the checkpoint.
# And after a lost server, it was enough in a trial of ours to start that server and the coordinator again.

# %% note-evaluator [markdown]
# Who evaluates the model while it is training?
#
# A process of its own, which reads the checkpoints. It needs no `TF_CONFIG`. And leave it out of everybody else's:
# if `cluster` lists an `evaluator`, the coordinator silently waits until a `tf.distribute.Server` answers there.
#
# ```python
# seen = None
# while int(epoch) < last_epoch:
#     newest = tf.train.latest_checkpoint(folder)
#     if newest != seen:
#         checkpoint.restore(newest)
#         ...  # evaluate
#         seen = newest
#     time.sleep(1)
# ```
#
# Here `checkpoint` is a `tf.train.Checkpoint` of variables that were not cut. It can read a checkpoint of variables that were.

# %% mesh-text [markdown]
# ## A model that is too large for one device
#
# Take the matrix of {lesson:splitting_the_model} once more: 50,000 × 50,000 numbers, 10 GB. Four parameter servers hold it easily, 2.5 GB each.
# But look at `loss_of`: to compute with `W1`, a worker fetches all of it. That is 10 GB on one device, and its gradient is 10 GB more.
# A device of 16 GB can't take a single step.
#
# With an all-reduce, each device has a copy of the whole model anyway. So what if one device can't compute with the whole model?
#
# You know the answer: a mesh that also has a dimension `model`, along which the weights are cut. And such a mesh can span several processes.
# Each of these is then a **client**: it has devices of its own, and all clients run the same program. Here are two clients with four devices each:

# %% clients-picture
picture.clients_picture()

# %% mesh-read [markdown]
# Devices of the same colour hold the same rows of the batch. The two of them share one copy of the model, each with a half of `W1` and of `W2`, and both belong to one client.
# So what they exchange along `model`, in the middle of a step, stays within a machine, where links are fast. Only what is added up along `batch`, the gradients and the loss, crosses the dashed line between the machines.
# That follows from the order of the dimensions: devices are numbered along the last dimension first.
# If the model didn't fit on one machine, even when all of its devices shared it, `model` would have to span machines, too.

# %% note-embeddings [markdown]
# Does a worker always fetch the whole variable?
#
# No, and that is where parameter servers are at their best. From a table of embeddings, `tf.nn.embedding_lookup` fetches only the rows that the batch needs, however large the table is.
#
# Two lines of our program would have to change. The gradient of such a table is a `tf.IndexedSlices`, which can't be multiplied by a rate, so an optimizer has to apply it.
# And `normal(...)` makes the whole table in the coordinator first. One of TensorFlow's own initializers can make each part by itself.

# %% mesh-program-text [markdown]
# A client doesn't find the others in `TF_CONFIG`, but in three variables of DTensor, which `Cluster` sets, too:
#
# | variable | what it says | here |
# | :--- | :--- | :--- |
# | `DTENSOR_JOBS` | despite its name, the addresses of all clients | `host0:12345,host1:12345` |
# | `DTENSOR_CLIENT_ID` | which of them this is | `0` or `1` |
# | `DTENSOR_JOB_NAME` | what they are called together | `client` |
#
# `initialize_accelerator_system` waits for all of them, and `create_distributed_mesh` makes a mesh of all their devices. This, too, is a whole program already:

# %% client-head tags=["known"]
# %%writefile clients_and_servers_programs/client_head.py
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

# %% mesh
# %%writefile clients_and_servers_programs/mesh.py
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


# %% mesh-run
def run_clients(count, *arguments):
    command = [programs / "client.py", *arguments]
    tasks = {"client": count}
    with Cluster(command, tasks, variables="DTENSOR") as cluster:
        return cluster.wait()


assemble("client.py", "client_head", "mesh")
run_clients(2, tempfile.mkdtemp())

# %% places-text [markdown]
# Two processes, one mesh, and each knows which devices are its own. From here on, the program of one process would almost do. The main difference is what you will write.
# Until now, when you packed a tensor, you made a component for each of the eight devices. A client can fill only the memory of its own devices.
#
# `local_device_locations()` tells it where in the mesh they are. To try that, we don't need two processes. This is the mesh as client 1 sees it:

# %% places
from lessons.strategies.clients_and_servers.checks import mesh_of_client

mesh_of_1 = mesh_of_client(1)
for place in mesh_of_1.local_device_locations():
    print(place)

# %% predict-rows [markdown]
# A batch has 32 rows. It is cut over `batch`, which has 4 places in a mesh of `batch` 4 × `model` 2.
# Client 1 has the last four of the eight devices.
# How many different rows does client 1 need to read?
#
# - [ ] `8`
#   That is what one device holds: 32 rows, cut into 4. The client has devices at two places along `batch`.
# - [x] `16`
#   A place along `batch` has 8 rows, and the client has two such places. The two devices of a place hold the same rows.
# - [ ] `32`
#   Four devices with 8 rows each are 32 rows. But two devices at one place along `batch` hold the same 8.

# %% reveal-rows
places = set()
for place in mesh_of_1.local_device_locations():
    places.add(place["batch"])
reveal("clients_and_servers-rows", len(places) * 32 // 4)

# %% mine-text [markdown]
# Half of the batch. With real data, a client doesn't even open the files of the other half.
#
# **Exercise 2.** Write `mine(array, layout)`: a list with the components that this client must make, in the order of its devices.
#
# - `layout.mesh.local_device_locations()` says where its devices stand.
# - `layout.sharding_specs` names, for each axis of the array, the mesh dimension that cuts it, or is `dtensor.UNSHARDED`.
#   `layout.num_shards(axis)` says into how many pieces, and `np.split(array, pieces, axis)` cuts.
# - Begin with one device and one axis. *Which of the pieces is for this device?* The one whose number is the device's place along that mesh dimension.

# %% dtensor tags=["known"]
tf = course_lib.start_tensorflow()
from tensorflow.experimental import dtensor


# %% exercise-mine
def mine(array, layout):
    # solution begin
    components = []
    for place in layout.mesh.local_device_locations():
        part = array
        for axis, dimension in enumerate(layout.sharding_specs):
            if dimension != dtensor.UNSHARDED:
                pieces = np.split(part, layout.num_shards(axis), axis)
                part = pieces[place[dimension]]
        components.append(part)
    return components
    # solution end


# %%
check("clients_and_servers-mine", mine)

# %% components-text [markdown]
# The next two cells are folded: your `mine`, `dtensor.pack`, which takes the components of each client and makes one tensor of them all,
# and the model and the step of {lesson:splitting_the_model}, with other sizes.

# %% components tags=["known"]
# %%writefile clients_and_servers_programs/components.py
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


# %% model tags=["known"]
# %%writefile clients_and_servers_programs/model.py
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

# %% client-loop-text [markdown]
# The loop has two more things that one process doesn't need. *All* clients call `save`, and together they write *one* checkpoint,
# in a folder that all of them see; only client 0 removes old checkpoints. And at the end everybody waits at a barrier, so that all of them end together.

# %% client-loop
# %%writefile clients_and_servers_programs/client_loop.py
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

# %% clients-text [markdown]
# Two clients train for five steps. Then *one* process, with all eight devices, takes their checkpoint and goes on to step 8.
# Beside it stands a process that was always alone:

# %% clients
pieces = ["client_head", "mesh", "components", "model", "client_loop"]
assemble("client.py", *pieces)
shared = tempfile.mkdtemp()
two = run_clients(2, shared, "--steps", "5")
then_one = run_clients(1, shared, "--steps", "8")
alone = run_clients(1, "--steps", "8")["client 0"].losses

print("step  client 0  client 1  always one")
for step in range(1, 6):
    first = two["client 0"].losses[step]
    second = two["client 1"].losses[step]
    print(f"{step:4}  {first:8.2f}  {second:8.2f}  {alone[step]:10.2f}")
print("step  then one            always one")
for step in range(6, 9):
    later = then_one["client 0"].losses[step]
    print(f"{step:4}  {later:8.2f}  {alone[step]:20.2f}")

# %% clients-read [markdown]
# Both clients print the same loss in every step and, in the two decimals shown, it is the loss of one process.
# The checkpoint of two clients was no obstacle for one. So a mesh is a mesh, whoever owns the devices.
#
# And if a client dies? In a trial of ours it was as with an all-reduce: the other one ended with an error. Then all start again from the checkpoint,
# with as many clients as you then have.
#
# ## Which one?
#
# | | all-reduce | parameter servers | clients |
# | :--- | :--- | :--- | :--- |
# | in TensorFlow | `MultiWorkerMirroredStrategy` | `ParameterServerStrategy` | DTensor, a mesh over processes |
# | a device computes with | its copy of the model | the variables that it fetches | its part of the model |
# | who waits | all, in each step | all, but only at a `join` | all, in each step |
# | if one dies | all end, and resume | a worker: the others go on; a server: training ends, and resumes | all end, and resume |
# | gradients | fresh | stale, and different in each run | fresh |
# | take it if | the model fits on a device, and the machines are equally fast | tables are huge, or workers slow or unreliable | the model doesn't fit on a device |
#
# So ask first whether the model fits on one device. If it doesn't, you need clients, unless only a table of embeddings is too large: parameter servers hold that. If it does, take an all-reduce.
# Parameter servers are also for the case of the opening: when the slowest machine, or one that dies at night, must not decide for all the others.
# And you know the price: stale gradients, so with sixteen workers you begin with about a sixteenth of the learning rate.
#
# ## Can Keras use parameter servers?
#
# Not all of it can. This is what we measured with two dense layers:

# %% keras-table tags=["known"]
from course_lib import measured

support = measured.load("strategies-support").support
measured.table({"parameter_server": support["parameter_server"]})

# %% keras-read [markdown]
# `fit` of Keras 3 ends with an error under parameter servers. `fit` of tf_keras, which is Keras 2, works, asynchronously.
# A loop of your own, with a Keras model in it, works with both.

# %% note-keras [markdown]
# Can variables of a Keras model be cut?
#
# Not those of Keras 3. With a partitioner, the first step of its layers ends in `AttributeError: 'ShardedVariable' object has no attribute 'handle'`.
# So a model of Keras 3 lies on the servers in whole variables. To cut one up, make it a `tf.Variable`, as above, or take the layers of tf_keras.
#
# "Equals one device", in the table, was measured with one step after the other; asynchronous runs are never alike.
# The page *What strategies get right* has many more features: choose `ParameterServerStrategy` there.

# %% note-deploy [markdown]
# How do I start them on a real cluster?
#
# The folder `deploy/` has what Kubernetes and Slurm need to start both programs as they are, as it does for `worker.py` of {lesson:failures}.
# There, too, all processes start the same file, and the manifest or the batch script tells each who it is. None of it was run on a real cluster:
# the manifests were held against the schemas of Kubernetes, and the batch scripts ran with a stand-in for `srun`.
#
# Before you start, know how long TensorFlow waits for a process that never comes: a client waits an hour, a coordinator without end, and neither says anything.
# Both programs let `faulthandler` end them after five minutes. And both have run on CPUs only.

# %% takeaways [markdown]
# ## The plain programs
#
# [`coordinator.py`](../plain/coordinator.py) and [`client.py`](../plain/client.py) are the two programs of this lesson, each in one file, with what was folded here.
# Started by hand, without any of the environment variables, each of them is a cluster of one.
#
# ## Takeaways
#
# - With an all-reduce, the slowest worker sets the pace of every step. With parameter servers nobody waits between two joins, but gradients are stale: the older they are, the smaller the learning rate must be.
# - There, a lost worker costs a step, not the training. A lost server costs everything since the last checkpoint.
# - Clients share one mesh. Each makes the components of its own devices, and the rest of the program hardly changes.
#
# {Lesson:how_long} asks how many devices are worth it.

# %% score
score("clients_and_servers")
