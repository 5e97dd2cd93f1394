# %% [markdown]
# # Many processes
#
# A training on several machines is several processes.
# They connect and exchange numbers as they train, but one day one dies.
# What do the others do then, and what is lost?
#
# After this lesson you can
#
# - read and start the program of a worker, of a client of a mesh, and of a coordinator of parameter servers;
# - tell each process its place, and say which worker gets which example;
# - kill one of them, and go on with nothing lost but the steps since the last checkpoint.
#
# **Time:** 60 minutes.
# **You need to know:** a run and a checkpoint ({lesson:a_run}),
# a mesh with two dimensions ({lesson:splitting_the_model}),
# a training loop under a strategy (lessons {number:strategies} and {number:custom_training}).
#
# > **Where this was run.** TensorFlow 2.21, on one machine with two cores:
# > every machine of this lesson is a process here.
# > That takes Linux or macOS, of which only Linux was tried;
# > on Windows, take Colab or the Subsystem for Linux.
# > DTensor is experimental.
#
# ## Who is who
#
# All machines run the same program.
# What tells them apart is an environment variable, `TF_CONFIG`,
# which is set before the program starts.
# It is a text in JSON: the addresses of the processes,
# and which of them this one is, its *task*.
# For the first of two workers:
#
# ```json
# {"cluster": {"worker": ["host0:12345", "host1:12345"]},
#   "task": {"type": "worker", "index": 0}}
# ```
#
# The explorer below builds it: click through the tasks, then choose a mistake.

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% builder
import json
import os
from pathlib import Path
from unittest.mock import patch

import numpy as np

from lessons.strategies.workers.explorer import ClusterExplorer

tf = course_lib.start_tensorflow()
programs = Path("workers_programs")  # a folder beside this notebook, for the programs of this lesson
programs.mkdir(exist_ok=True)
for name in ("start", "model", "first_loop", "shards", "loop", "client", "coordinator"):
    (programs / f"{name}.py").touch()
ClusterExplorer(workers=3, servers=2, task="worker 1")

# %% builder-text [markdown]
# `cluster` is the same for everybody, `task` is not.
# A task is a *job* (`type`) and a number in it, counted from 0 (`index`):
#
# | job | does |
# | --- | --- |
# | `worker` | computes |
# | `chief` | keeps the checkpoints; coordinates parameter servers, or without them computes as a worker does |
# | `ps` | holds variables; only with parameter servers |
# | `evaluator` | reads checkpoints and evaluates them; nobody talks with it, so it needs no address |
#
# In `TF_CONFIG` only parameter servers need a chief.
# Without one, worker 0 does what a chief would.
#
# The next cell makes four mistakes: Python in place of JSON, a number that there is not,
# two chiefs, and `clusters` in place of `cluster`.

# %% mistakes tags=["error"]
hosts = {"worker": ["host0:12345", "host1:12345"]}
two_chiefs = {**hosts, "chief": ["host2:12345", "host3:12345"]}
task = {"type": "worker", "index": 0}
wrong = [str({"cluster": hosts, "task": task})]
wrong += [json.dumps({"cluster": hosts, "task": {**task, "index": 2}})]
wrong += [json.dumps({"cluster": two_chiefs, "task": task})]
wrong += [json.dumps({"clusters": hosts, "task": task})]
for text in wrong:
    try:
        with patch.dict(os.environ, TF_CONFIG=text):
            strategy = tf.distribute.MultiWorkerMirroredStrategy()
        print("- no error, replicas:", strategy.num_replicas_in_sync)
    except ValueError as error:
        print("-", error)

# %% start-text [markdown]
# The last one is no error: without `cluster`, or without any `TF_CONFIG`, the strategy works alone.
# Each machine would train a model of its own:
# let a program first print how many replicas it has, here one a worker.
#
# ## A worker's program
#
# The next cells write it in three pieces; it has no chief.
# The first finds the others.
#
# `MultiWorkerMirroredStrategy()` listens for the others, and waits for all of them.
# With a `TF_CONFIG` it comes before anything else that TensorFlow computes,
# or it raises an error.
# For a worker that never comes TensorFlow waits an hour, in silence.
# `faulthandler` ends the process after five minutes.

# %% start
# %%writefile workers_programs/start.py
"""One of several workers; TF_CONFIG says which: python worker.py [FOLDER] [--steps 6] [--pause 0]."""

import argparse
import faulthandler
import tempfile
import time

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("folder", nargs="?", help="of checkpoints; all workers see it")
parser.add_argument("--steps", type=int, default=6)
parser.add_argument("--pause", type=float, default=0, help="seconds after a step")
options = parser.parse_args()

faulthandler.dump_traceback_later(300, exit=True)  # TensorFlow's own limit: an hour
strategy = tf.distribute.MultiWorkerMirroredStrategy()
faulthandler.cancel_dump_traceback_later()
resolver, workers = strategy.cluster_resolver, strategy.num_replicas_in_sync
assert resolver.task_type != "chief", "give all tasks the job `worker`: worker 0 does what a chief would"
worker = resolver.task_id or 0  # None without TF_CONFIG
print(f"worker {worker} of {workers}", flush=True)

# %% model-text [markdown]
# The second piece is {lesson:custom_training}'s: data, a model in the strategy's scope, a step.
# Every worker makes the same 96 examples, noisy patterns of four kinds.
# A global batch has 32 of them; an epoch has three steps.
# `AutoShardPolicy.DATA` gives each worker its part of every batch.
#
# `train_step` adds up the loss, and how many examples went into it, over the replicas of all workers.

# %% model
# %%writefile workers_programs/model.py
BATCH = 32
y = np.arange(96) % 4
x = np.random.default_rng(0).normal(size=(96, 64)) + 4 * np.eye(4, 64)[y]
with strategy.scope():
    tf.keras.utils.set_random_seed(0)
    layers = [tf.keras.layers.Dense(16, "relu"), tf.keras.layers.Dense(4)]
    model = tf.keras.Sequential([tf.keras.Input((64,)), *layers])
    optimizer = tf.keras.optimizers.Adam(0.01)
    optimizer.build(model.trainable_variables)


def batches(epoch):
    order = np.random.default_rng([0, epoch]).permutation(len(y))
    dataset = tf.data.Dataset.from_tensor_slices((x[order].astype("float32"), y[order]))
    rule = tf.data.Options()
    rule.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return dataset.batch(BATCH).with_options(rule)


@tf.function
def train_step(x, y):
    def of_replica(x, y):
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, model(x))
            loss = tf.reduce_sum(losses) / BATCH
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return loss, tf.shape(x)[0]

    of_replicas = strategy.run(of_replica, (x, y))
    return [strategy.reduce("SUM", each, axis=None) for each in of_replicas]


# %% first-loop-text [markdown]
# The last piece is a loop, for now without checkpoints.
# `skip` and `take` cut the epoch where the run begins and ends.

# %% first-loop
# %%writefile workers_programs/first_loop.py
step = tf.Variable(0, dtype=tf.int64)
while step < options.steps:
    epoch, at = divmod(int(step), len(y) // BATCH)
    left = batches(epoch).skip(at).take(options.steps - int(step))
    for batch in strategy.experimental_distribute_dataset(left):
        loss, examples = train_step(*batch)
        step.assign_add(1)
        print(f"step {int(step)} loss {loss:.9f} examples {examples}", flush=True)
        time.sleep(options.pause)

# %% by-hand [markdown]
# The next two cells join the three pieces to one program, `first.py`, and run it.
# `Cluster` starts it: one process for each task, on free ports, each with its `TF_CONFIG`.
# The program prints nine decimals of a loss, this notebook shows two.
#
# On two machines start the program on each with its `TF_CONFIG`.
# Here two terminals do, once the cells have run:
# in each set `TF_CONFIG`, with the addresses `localhost:4001` and `localhost:4002` and an `index` of its own,
# and start `python workers_programs/first.py`.

# %% joined
import functools

from lessons.strategies.workers.launcher import Cluster


def join(program, *pieces):
    text = "\n\n".join((programs / piece).read_text() for piece in pieces)
    (programs / program).write_text(text)


@functools.cache  # a run is made once, whoever asks for it first
def two_workers(program):
    with Cluster([programs / program], {"worker": 2}) as cluster:
        return cluster.wait()


def terminated(*command):
    with Cluster(command, {"worker": 2}) as cluster:
        cluster.wait_for("worker 1", "step 1 ")
        cluster.terminate("worker 1")
        return cluster.wait()


# %% equal
join("first.py", "start.py", "model.py", "first_loop.py")
both = [two_workers("first.py")[task].losses for task in ("worker 0", "worker 1")]
# The same program as a cluster of one: this process gets all 32 examples of each batch
with Cluster([programs / "first.py"], {"worker": 1}) as cluster:
    alone = cluster.wait()["worker 0"].losses
print("step  worker 0  worker 1  alone")
for step in alone:
    print(f"{step:4}  {both[0][step]:8.2f}  {both[1][step]:8.2f}  {alone[step]:5.2f}")
equal_to_9_decimals = both[0] == both[1]
alone_within_0_001 = max(abs(both[0][step] - alone[step]) for step in alone) < 0.001
print(f"{equal_to_9_decimals=} {alone_within_0_001=}")

# %% shards-text [markdown]
# Both workers print the loss of the global batch, from the all-reduce.
# One process alone adds up the 32 losses in another order: rounding makes a difference, below 0.001.
#
# ## Which example goes where
#
# Both workers run the same `tf.data` pipeline, on the same data.
# A distributed data set divides the examples, by a rule:
#
# - `FILE`: each worker reads files of its own;
# - `DATA`: each reads everything, and leaves out what is for others;
# - `OFF`: nothing is divided; for workers that shuffle by themselves.
#
# Without a choice, `AUTO`, it is `FILE` if TensorFlow finds files to divide, and else `DATA`.
#
# The next program has 16 numbers in four files, and batches of 4.

# %% shards
# %%writefile workers_programs/shards.py
import tempfile

import numpy as np
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
folder, rules = tempfile.mkdtemp(), tf.data.experimental.AutoShardPolicy
files = [f"{folder}/{number}.txt" for number in range(4)]
for name, numbers in zip(files, np.arange(16).reshape(4, 4)):
    np.savetxt(name, numbers, fmt="%d")
for rule in (rules.FILE, rules.DATA, rules.OFF):
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = rule
    dataset = tf.data.TextLineDataset(files).map(tf.strings.to_number).batch(4)
    for batch in strategy.experimental_distribute_dataset(dataset.with_options(options)):
        for mine in strategy.experimental_local_results(batch):
            print(rule.name, *mine.numpy().astype(int), flush=True)

# %% predict-file [markdown]
# 16 numbers lie in four files: 0 to 3, 4 to 7, 8 to 11, 12 to 15.
# Two workers, 0 and 1, read them, divided by `AutoShardPolicy.FILE`: each reads files of its own.
# Which numbers does worker 1 get?
#
# - [ ] `(2, 3, 6, 7, 10, 11, 14, 15)`
#   That is the second half of each batch of four: so `DATA` divides them.
# - [x] `(4, 5, 6, 7, 12, 13, 14, 15)`
#   Files are dealt like cards: of four files it gets the second and the fourth.
# - [ ] `(8, 9, 10, 11, 12, 13, 14, 15)`
#   These are two whole files.
#   But files are given out in turn, not in a row.
# - [ ] `(1, 3, 5, 7, 9, 11, 13, 15)`
#   This is every second number: each worker would have to read all files.

# %% reveal-file
batches_of_both = two_workers("shards.py").received_examples("FILE").batches
reveal("workers-file", tuple(number for _zero, one in batches_of_both for number in one))

# %% received
from IPython.display import display

for rule in ("FILE", "DATA", "OFF"):
    print(rule)
    display(two_workers("shards.py").received_examples(rule))

# %% pipeline-text [markdown]
# Each worker has one replica here.
# By `FILE` a batch has examples of two files.
# By `OFF` each worker gets all 16 numbers, two at a time: eight batches, with each number twice.
# `FILE` needs as many files as workers at least,
# or TensorFlow raises an error, with `AUTO` too.
#
# Or divide yourself.
# `strategy.distribute_datasets_from_function(function)` calls your function once on each worker,
# with an `InputContext` that says who it is:
# `num_input_pipelines`, `input_pipeline_id`, and `get_per_replica_batch_size(global_batch_size)`.
# The function makes batches for *one replica*; a worker with four GPUs takes four of them for a step.
#
# **Exercise 1.** Write `worker_batches(numbers, global_batch_size, context)`.
# `numbers` is a `tf.data.Dataset` of single examples.
# Of $n$ workers each gets every $n$-th example, the first worker the first one.
# Return this worker's data set of batches for one replica; the last one may be smaller.


# %% exercise-pipeline
def worker_batches(numbers, global_batch_size, context):
    # solution begin
    mine = numbers.shard(context.num_input_pipelines, context.input_pipeline_id)
    return mine.batch(context.get_per_replica_batch_size(global_batch_size))
    # solution end


# %%
check("workers-pipeline", worker_batches)

# %% loop-text [markdown]
# ## Save and go on
#
# The last piece, now with checkpoints:
#
# - **Who saves where.** All workers save: some kinds of variables must first be summed over all of them.
#   Two that write into one folder would spoil it.
#   So worker 0 saves into the folder that all see, and each other one into an empty folder of its own:
#   what the handler below finds there, it restores.
# - **Who restores what.** All restore the newest checkpoint of the shared folder,
#   `tf.train.latest_checkpoint(folder)`.
#   From `step` follow the epoch and the place in it.
# - **Do all agree?** TensorFlow does not compare what the workers restored; `total` adds up their steps.
#   Each waits there for the others, so worker 0 cannot save anew while another one still restores.
# - **SIGTERM.** Linux, Kubernetes and Slurm send this signal before a machine goes.
#   If one worker gets it, `PreemptionCheckpointHandler` tells the others;
#   all save after the same step, and call `leave`.
#   So it was here; on Google Cloud, by its source,
#   it saves nothing without GPUs, and with them asks a server instead.


# %% loop
# %%writefile workers_programs/loop.py
@tf.function
def total(number):  # over all workers: each waits here for the others
    return strategy.reduce("SUM", strategy.run(tf.identity, (number,)), axis=None)


def leave():
    print(f"SIGTERM: saved after step {int(step)}", flush=True)
    total(step.read_value())
    raise SystemExit(75)  # by convention: try again


step = tf.Variable(0, dtype=tf.int64)
checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, step=step)
if newest := options.folder and tf.train.latest_checkpoint(options.folder):
    checkpoint.restore(newest).assert_existing_objects_matched()
    print(f"goes on after step {int(step)}", flush=True)
assert total(step.read_value()) == workers * step, "others restored another step"
kept = options.folder if worker == 0 else None  # nobody reads what the others save
manager = tf.train.CheckpointManager(checkpoint, kept or tempfile.mkdtemp(), max_to_keep=3)
ending = tf.distribute.experimental.TerminationConfig(exit_fn=leave)
handler = tf.distribute.experimental.PreemptionCheckpointHandler(resolver, manager, termination_config=ending)
while step < options.steps:
    epoch, at = divmod(int(step), len(y) // BATCH)
    left = batches(epoch).skip(at).take(options.steps - int(step))
    for batch in strategy.experimental_distribute_dataset(left):
        loss, examples = train_step(*batch)
        step.assign_add(1)
        print(f"step {int(step)} loss {loss:.9f} examples {examples}", flush=True)
        handler.save_checkpoint_if_preempted()
        time.sleep(options.pause)
    manager.save()
total(step.read_value())  # all end together

# %% kill-given [markdown]
# This is the whole program, joined below to `worker.py`; [`worker.py`](../plain/worker.py) has it, too.
# It saves at the end of each epoch, so after steps 3 and 6.
#
# ## Kill one
#
# The next cell defines a run that starts after a question.
# In it worker 1 gets SIGKILL after step 4, as Linux sends it when memory runs out.
# Nothing can catch it.

# %% killed-run
import shutil
import tempfile


join("worker.py", "start.py", "model.py", "loop.py")


@functools.cache
def killed():
    folder = tempfile.mkdtemp()
    command = [programs / "worker.py", folder, "--pause", "1.5"]
    with Cluster(command, {"worker": 2}) as cluster:
        for each in ("worker 0", "worker 1"):
            cluster.wait_for(each, "step 4 ")
        cluster.kill("worker 1")
        return cluster.wait(), folder


# %% predict-kill [markdown]
# Two workers train synchronously, under a `MultiWorkerMirroredStrategy`, and after step 4 worker 1 is killed.
# What does worker 0 do?
#
# - [ ] `goes on` It goes on alone, with its half of each batch.
#   It cannot: an all-reduce takes all workers, and without worker 1 it fails.
# - [ ] `waits` It waits until worker 1 is started again.
#   The all-reduce fails, and so does every later one of this process: a new worker 1 comes in vain.
# - [x] `error` It ends with an error.
#   The all-reduce fails, and with it every later one of this process.

# %% reveal-kill
report, _folder = killed()
ended = {None: "waits", 0: "goes on"}.get(report["worker 0"].status, "error")
reveal("workers-kill", ended)

# %% resumed-text [markdown]
# Worker 0 ended with an error: the all-reduce failed.
# Only a new start helps: every later all-reduce fails.
# If a worker left early, the others would fail just so:
# the last line of `worker.py` makes each wait for all.
#
# The next cell starts both again, without `--pause`, on a copy of the folder.

# %% resumed
before, folder = killed()
resuming = shutil.copytree(folder, tempfile.mkdtemp(), dirs_exist_ok=True)  # so that this cell can run again
with Cluster([programs / "worker.py", resuming], {"worker": 2}) as cluster:
    resumed = cluster.wait()
print("killed:", *(each.heading() for each in before.tasks), sep="\n- ")
print("resumed:", resumed, sep="\n")
losses = {**before["worker 0"].losses, **resumed["worker 0"].losses}
undisturbed = two_workers("first.py")["worker 0"].losses
print(f"{losses == undisturbed = }")

# %% sigterm-text [markdown]
# Step 4 was done twice.
# All losses are those of the run that nobody stopped, `undisturbed`, to nine decimals:
# model, optimizer and `step` came from the checkpoint,
# and the order of the examples follows from a seed and the number of the epoch.
#
# Now worker 1 alone gets SIGTERM, after step 1 of a new training; then both start again.
# A worker of `first.py`, without a handler, gets it too.

# %% preempted
worker, folder = programs / "worker.py", tempfile.mkdtemp()
preempted = terminated(worker, folder, "--pause", "1")
with Cluster([worker, folder], {"worker": 2}) as cluster:
    after = cluster.wait()["worker 0"].losses
before = preempted["worker 0"].losses
losses = {**before, **after}
exit_statuses = [each.status for each in preempted.tasks]
done_twice = sorted(before.keys() & after.keys())
print(f"{exit_statuses=} {done_twice=} {losses == undisturbed = }")
no_handler = terminated(programs / "first.py", "--pause", "0.5")
exit_statuses = [each.status for each in no_handler.tasks]
print(f"first.py: {exit_statuses=} steps={list(no_handler['worker 1'].losses)}")

# %% client-text [markdown]
# Both saved and ended with the status 75; no step was done twice, and all losses are the same.
#
# But `first.py` trained on to its end.
# In a cluster, making the strategy makes a process deaf to SIGTERM.
# Without a handler, the process ends in SIGKILL when the machine goes.
#
# ## One mesh, two processes
#
# DTensor goes over several processes, too.
# Each is a *client*: it has its own devices, and runs the whole program.
# Other variables tell a client its place: `DTENSOR_JOBS`, despite its name, has all addresses,
# `DTENSOR_CLIENT_ID` says which one this is, `DTENSOR_JOB_NAME` what they are called together.
# Then `dtensor.initialize_accelerator_system` joins them,
# and `create_distributed_mesh` makes a mesh of the devices of all.
#
# Training code stays as it was, packing does not:
# `mesh.local_device_locations()` says where in the mesh a client's devices stand,
# and it makes their components alone.
# All clients call `save`, for one checkpoint.
# Of a sharded variable, the first device that has a part writes it: here always one of client 0.

# %% client
# %%writefile workers_programs/client.py
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

# %% clients
sharded = tempfile.mkdtemp()
client = [programs / "client.py"]
with Cluster([*client, sharded], {"client": 2}, variables="DTENSOR") as cluster:
    two = cluster.wait()
with Cluster([*client, sharded, "--steps", "8"], {"client": 1}, variables="DTENSOR") as cluster:
    then_one = cluster.wait()["client 0"].losses
with Cluster([*client, "--steps", "8"], {"client": 1}, variables="DTENSOR") as cluster:
    always_one = cluster.wait()["client 0"].losses
print(two)
print("step  two_then_one  always_one")
for step, loss in {**two["client 0"].losses, **then_one}.items():
    print(f"{step:4}  {loss:12.2f}  {always_one[step]:10.2f}")

# %% coordinator-text [markdown]
# Two clients saved after step 5; one process with eight devices took the checkpoint and went on,
# with the losses, to two decimals, of one process that trained from the beginning.
# The file is [`client.py`](../plain/client.py).
#
# Devices 0 to 3 are those of client 0.
# The rows of the 4 × 2 mesh are the groups along `model`, from 0 and 1 to 6 and 7.
# They stay within a process; groups along `batch` have devices of both.
# Data moves more slowly between machines,
# so the dimension along which most is moved should be the last, which here stays within one.
#
# ## Parameter servers
#
# A `ParameterServerStrategy` has no all-reduce.
# Variables lie on parameter servers, *servers* for short; a *partitioner* cuts large ones into parts.
# A *coordinator*, the chief, hands out steps:
# `coordinator.schedule(train_step, ...)` returns at once, and a worker that is free takes it.
# The worker fetches the variables, computes gradients,
# and sends them to the servers, which may have moved on since.
# `coordinator.join()` waits until all steps are done.
#
# Workers and servers run the same file, and stop at `Server(...).join()`:
# they serve until they are ended.
# Each worker shuffles all examples for itself, so no epoch takes each example once:
# five steps are called an epoch here.
#
# The next cell writes this program, also in [`coordinator.py`](../plain/coordinator.py).
# After a question it runs with a chief, two workers and two servers; some are killed.

# %% coordinator
# %%writefile workers_programs/coordinator.py
"""A coordinator, a worker or a server; TF_CONFIG says which: python coordinator.py [FOLDER] [--epochs 2]."""

import argparse
import faulthandler
import json
import os
import socket
import tempfile
import time

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("folder", nargs="?", help="of checkpoints")
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--pause", type=float, default=0, help="seconds after an epoch")
options = parser.parse_args()

if "TF_CONFIG" not in os.environ:  # alone: a worker and a server in this process
    sockets = [socket.create_server(("127.0.0.1", 0)) for _job in range(3)]
    addresses = [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]
    cluster = {job: [each] for job, each in zip(("chief", "worker", "ps"), addresses)}
    os.environ["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": {"type": "chief", "index": 0}})
    for each in sockets:
        each.close()
    inside = [tf.distribute.Server(cluster, job, 0, protocol="grpc") for job in ("worker", "ps")]

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
cluster = resolver.cluster_spec()
if resolver.task_type != "chief":
    tf.distribute.Server(cluster, resolver.task_type, resolver.task_id, protocol="grpc").join()

partitioner = tf.distribute.experimental.partitioners.MinSizePartitioner(2048, cluster.num_tasks("ps"))
faulthandler.dump_traceback_later(300, exit=True)  # TensorFlow itself waits without a limit
strategy = tf.distribute.ParameterServerStrategy(resolver, partitioner)
faulthandler.cancel_dump_traceback_later()
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)

random = np.random.default_rng(0)
y = np.arange(96) % 4
x = (random.normal(size=(96, 64)) + 4 * np.eye(4, 64)[y]).astype("float32")
with strategy.scope():
    W1 = tf.Variable(random.normal(0, 0.2, (64, 16)).astype("float32"), name="W1")
    W2 = tf.Variable(random.normal(0, 0.4, (16, 4)).astype("float32"), name="W2")
    updates, done = (tf.Variable(0, dtype=tf.int64, trainable=False) for _ in range(2))
parts = [part for whole in (W1, W2) for part in getattr(whole, "variables", [whole])]
for part in parts:
    print(part.name, part.shape, "on ps", tf.DeviceSpec.from_string(part.device).task, flush=True)


def loss_of(x, y):
    logits = tf.nn.relu(x @ tf.convert_to_tensor(W1)) @ tf.convert_to_tensor(W2)
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))


@tf.function
def train_step(iterator):
    x, y = next(iterator)
    with tf.GradientTape() as tape:
        loss = loss_of(x, y)
    for part, gradient in zip(parts, tape.gradient(loss, parts)):
        part.assign_sub(0.1 * gradient)
    updates.assign_add(1)
    return tf.distribute.coordinator.experimental_get_current_worker_index()


def batches():
    return tf.data.Dataset.from_tensor_slices((x, y)).shuffle(96).repeat().batch(32)


checkpoint = tf.train.Checkpoint(W1=W1, W2=W2, updates=updates, done=done)
manager = tf.train.CheckpointManager(checkpoint, options.folder or tempfile.mkdtemp(), max_to_keep=3)
manager.restore_or_initialize()
iterator = iter(coordinator.create_per_worker_dataset(batches))
while done < options.epochs:
    steps = [coordinator.schedule(train_step, args=(iterator,)) for _step in range(5)]
    coordinator.join()
    done.assign_add(1)
    took = sorted(int(each.fetch()) for each in steps)  # which worker did it
    print(f"epoch {int(done)} loss {loss_of(x, y):.3f} workers {took} updates {int(updates)}", flush=True)
    manager.save()
    time.sleep(options.pause)


# %% predict-worker [markdown]
# The coordinator of a `ParameterServerStrategy` hands out five steps an epoch to two workers.
# In the middle of the training worker 1 is killed.
# What does the training do then?
#
# - [ ] `error` It ends with an error.
#   So it is with an all-reduce, for which all workers are needed.
#   Here no worker waits for another.
# - [ ] `waits` It waits for worker 1, with the steps that this one was given.
#   No step belongs to a worker: another one can do it.
# - [ ] `one lost` It goes on with worker 0, and the step that worker 1 had is missing.
#   The coordinator has no result of that step, and has it done again.
# - [x] `all done` It goes on with worker 0, and each epoch has all its steps.
#   A step without a result is given to another worker: each epoch has all five.

# %% reveal-worker
command = [programs / "coordinator.py", "--epochs", "1000", "--pause", "0.3"]
with Cluster(command, {"chief": 1, "worker": 2, "ps": 2}) as cluster:
    cluster.wait_for("chief 0", "epoch 2 ")
    cluster.kill("worker 1")
    cluster.wait_for("chief 0", "epoch 6 ")
    cluster.restart("worker 1")
    cluster.wait_for("chief 0", "1] updates")  # it does steps again
    cluster.kill("ps 1")
    lost = cluster.wait()["chief 0"]
epochs = [line.split() for line in lost.lines if line.startswith("epoch")]
updates = [0, *(int(words[-1]) for words in epochs)]
fewest = min(np.diff(updates))
reveal("workers-worker", "waits" if len(epochs) < 6 else "all done" if fewest >= 5 else "one lost")

# %% slurm-text [markdown]
# Worker 1 was killed and came back.
# A step whose worker dies before its result is back is done again,
# so that all or some of its gradients may count twice.
#
# `W1`, the larger variable, lay in two parts, `W2` whole on one server.
# Then server 1 was killed.
# No other process kept its values, and the coordinator ended with an error.
# `print(*lost.lines, lost.heading(), sep="\n")` shows both.
# All are started again then, from the checkpoint.
#
# ## Beyond this machine
#
# On real machines another system starts, watches and mostly restarts the processes.
# `deploy/` has what these systems need for the three programs:
#
# | | who tells each its place | a lost worker |
# | --- | --- | --- |
# | Kubernetes | the manifest: an Indexed Job fixes the host names, so they can stand in it | once it is known to have ended, a pod with its number replaces it; errors, the survivors' too, count towards `backoffLimit`, evictions do not |
# | Slurm | `SlurmClusterResolver`, from Slurm's variables | ends Slurm's job: submit it again, unless the machine failed: then Slurm starts it again |
#
# Every machine must see the folder of checkpoints.
# None of this was run on a real cluster: the manifests were held against the schemas of Kubernetes,
# the batch scripts ran with a stand-in for `srun`.
#
# In a batch script one line starts all: `srun python place.py python worker.py checkpoints`.
# `place.py` sets `TF_CONFIG` to what the function below returns,
# here called as by the second of two tasks.
# TensorFlow sorts the names of the hosts as texts, `n10` before `n2`, Slurm does not:
# ask for hosts whose numbers have equally many digits.


# %% slurm
def place_in_slurm(jobs=None, port=12345):
    tasks = int(os.environ["SLURM_STEP_NUM_TASKS"])
    resolver = tf.distribute.cluster_resolver.SlurmClusterResolver(
        jobs,
        port_base=port,
        gpus_per_node=tasks,  # with one for each task no machine is searched for GPUs
        gpus_per_task=1,
        auto_set_gpu=False,
    )
    cluster = resolver.cluster_spec().as_dict()  # this call finds out which task it is
    job, index = resolver.get_task_info()
    return json.dumps({"cluster": cluster, "task": {"type": job, "index": index}})


slurm = {"STEP_NUM_TASKS": "2", "STEP_NODELIST": "cn[1-2]", "STEP_TASKS_PER_NODE": "1(x2)", "PROCID": "1"}
with patch.dict(os.environ, {f"SLURM_{name}": value for name, value in slurm.items()}, SLURMD_NODENAME="cn2"):
    print(place_in_slurm())

# %% drill-text [markdown]
# ## A fault drill
#
# Yesterday two machines, `host0` and `host1`, trained together and saved into a folder that both see.
# In the list of addresses `host0` is the first.
# The last line of either log was
#
# ```text
# step 6 loss 1.11 examples 32
# ```
#
# Today somebody set both up anew, to go on to step 9, with three settings on each:
# the index in `TF_CONFIG`, `BATCH` in its copy of the program,
# and the path of the folder of checkpoints.
#
# **Exercise 2.** Find out why it does not go on as it should, and repair it.
# There are three faults, and each hides the next; not each raises an error.
# The logs, with what is said above, tell the right values;
# who finds the checkpoint says `goes on after step 6`.
#
# 1. In the exercise's cell set `repaired` to a dictionary like `machines`, with other values.
# 2. Add the line `start_both(repaired, worker, resuming)`, run the cell, and read both logs.
# 3. Repeat until both go on after step 6 as yesterday.
#
# A machine that waits says nothing.
# `start_both` ends it soon after the other has failed; the report, made before, says that it runs.

# %% drill
from lessons.strategies.workers.checks_drill import start_both

machines = {
    "host0": {"index": 1, "BATCH": 48, "folder": "/mnt/nas/checkpoints"},
    "host1": {"index": 2, "BATCH": 48, "folder": "/mnt/nfs/checkpoints"},
}
start_both(machines, worker, resuming)

# %% exercise-drill
# solution begin
repaired = {
    "host0": {"index": 0, "BATCH": 32, "folder": "/mnt/nfs/checkpoints"},
    "host1": {"index": 1, "BATCH": 32, "folder": "/mnt/nfs/checkpoints"},
}
# solution end

# %%
check("workers-drill", repaired)

# %% repaired
from course_lib import yours_or_ours

start_both(yours_or_ours("workers-drill", repaired), worker, resuming)

# %% takeaways [markdown]
# ## Takeaways
#
# - All processes run one program.
#   `TF_CONFIG`, or DTensor's variables, tells each its place.
#   Without it a `MultiWorkerMirroredStrategy` trains alone, in silence.
# - Synchronous workers take the same steps, and end together.
#   What goes on after a death is the checkpoint: all see its folder, one keeps it, all restore the same step.
# - With parameter servers the others go on without a lost worker.
#   A lost server costs what was learned since the last checkpoint.
#
# {Lesson:how_long} scales out.

# %% score
score("workers")
