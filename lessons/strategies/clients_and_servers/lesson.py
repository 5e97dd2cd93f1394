# %% [markdown]
# # Clients and servers
#
# Sixteen machines train your model. In every step an all-reduce adds up their gradients, as in the lessons so far, and for weeks all is well.
#
# On Monday one of the machines becomes slow. Somebody else's job has landed on it, and its steps take a second instead of a tenth of one.
# The other fifteen are as fast as ever, and yet your training is ten times slower.
#
# On Thursday the model grows. One of its matrices now takes 10 GB, and its gradient takes 10 more.
# A device has 16 GB, so not one of the sixteen can take a single step.
#
# An all-reduce takes two things for granted: every worker is there in every step, and every worker has room for the whole model.
# Usually both are true, and then an all-reduce is what you want. This lesson is about the other days:
# *when would you want something other than an all-reduce?*
#
# Monday's answer is parameter servers: with them, no worker waits for another.
#
# Thursday's answer is a mesh that spans several processes. Devices along one of its dimensions share one copy of the model.
# Each of these processes is called a **client** of the mesh. It isn't the client of a server: such a mesh has no servers.
#
# **After this lesson you can**
#
# - train with parameter servers, where no worker waits for another, and say what that costs;
# - spread one DTensor mesh over several processes;
# - choose between these two and the all-reduce.
#
# **Time:** 45 minutes.
# **You need to know:** workers and `TF_CONFIG` ({lesson:workers}), a mesh with two dimensions ({lesson:splitting_the_model}).

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% all-wait-text [markdown]
# ## Everybody waits for the slowest
#
# Let's replay that Monday, with only two workers. We need a model that you can train in your head, so it has a single weight `w`, which starts at 8.
# Its loss is $w^2/2$, so its gradient is `w` itself. With a learning rate of 0.5, each update halves it: 8, 4, 2, 1, …
#
# Instead of computing, the workers sleep: worker 0 for a tenth of a second, worker 1 for a whole second.

# %% programs-text [markdown]
# As before, each process stands for a machine, and each program is a file. The folded cell makes a folder for the files, beside this notebook:

# %% programs tags=["known"]
from lessons.strategies.clients_and_servers import files

programs = files.make_folder()

# %% all-reduce
# %%writefile clients_and_servers_programs/all_reduce.py
import time

import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
worker = strategy.cluster_resolver.task_id
delay = [0.1, 1.0][worker]
with strategy.scope():
    w = tf.Variable(8.0)


def update():
    context = tf.distribute.get_replica_context()
    gradient = context.all_reduce("MEAN", w.read_value())
    w.assign_sub(0.5 * gradient)


begin = time.monotonic()
for number in range(1, 4):
    time.sleep(delay)
    strategy.run(update)
    print(f"step {number} w {w.numpy():.3f}", flush=True)
seconds = time.monotonic() - begin
print(f"seconds {seconds:.3f}", flush=True)

# %% all-reduce-run-text [markdown]
# `Cluster` starts this program twice. What share of its time is each worker busy?

# %% all-reduce-run
from course_lib import about
from lessons.strategies.clients_and_servers import logs
from lessons.strategies.launcher import Cluster

with Cluster([programs / "all_reduce.py"], {"worker": 2}) as cluster:
    waiting = cluster.wait()

for task in ("worker 0", "worker 1"):
    print(task, *waiting[task].lines[:3], sep="\n  ")
busy_0 = 3 * 0.1 / logs.seconds(waiting["worker 0"])
busy_1 = 3 * 1.0 / logs.seconds(waiting["worker 1"])
print("worker 0 is busy", about(busy_0, 0.02, 0.2))
print("worker 1 is busy", about(busy_1, 0.5, 1))

# %% all-reduce-read [markdown]
# Both took three steps, and both have $8/2^3 = 1$, as they should. But worker 0 was busy for only a tenth of the time.
# For the other nine tenths it sat in the all-reduce and waited for worker 1's gradient.
#
# Here are two seconds of that run, and below them what you would rather see.
# Each colored bar is the time spent on one gradient, and its number is the update that this gradient ends up in:

# %% timelines
from lessons.strategies.clients_and_servers import picture

picture.timelines_picture()

# %% timelines-read [markdown]
# With the all-reduce, four gradients are computed in two seconds. If nobody waits, there are twenty-two.
# But then the gradients don't come in together. Who adds them up? Nobody has to.
#
# ## Parameter servers
#
# Each gradient makes an update of its own, as soon as it is there. That is what **parameter servers** do.
# They are processes that hold the variables, divided up among them, and apply each gradient as it arrives.
# A worker *fetches* the variables, computes a gradient, and *pushes* it to the servers. (In papers, to fetch is often called to *pull*.)
#
# One more process, the **coordinator**, runs the training loop and keeps a queue of steps to be done. A worker that is free takes the next step from this queue:

# %% servers-picture
picture.servers_picture()

# %% servers-picture-read [markdown]
# This is the asynchronous training of {lesson:strategies}. For our weight, whose gradient is `w` itself, a step of asynchronous SGD looks like this:
#
# ```python
# fetched = w.read_value()
# ...
# w.assign_sub(0.5 * fetched)
# ```
#
# The first line fetches, and the last one pushes. In between the worker computes, which takes its time.
#
# To run it we need three things: processes that know who they are, a step that takes its time, and a coordinator that hands out steps.

# %% roles-text [markdown]
# First, who is who? All of these processes run the same program, and `TF_CONFIG` tells each of them its job: the coordinator is called `chief`, a worker `worker`, and a server `ps`.
# Only the coordinator runs a loop. Workers and servers just wait for orders, so on them the function with which the program begins never returns:

# %% roles
# %%writefile clients_and_servers_programs/roles.py
import tensorflow as tf


def serve_unless_coordinator():
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    job, index = resolver.task_type, resolver.task_id
    if job != "chief":
        server = tf.distribute.Server(
            resolver.cluster_spec(),
            job,
            index,
            protocol="grpc",
        )
        server.join()  # until somebody ends the process
    return resolver

# %% slowly-text [markdown]
# Second, the step has to take its time. `time.sleep` can't help here, because a step is a `tf.function`, and its Python runs only once, while it is traced.
#
# So the folded cell defines a sleep that works inside a graph: whatever you put into a `with seconds_later(n, …)` block runs `n` seconds later.
# `own_delay()` is 0.1 on worker 0 and 1 on worker 1. You need not read how they work.

# %% slowly tags=["known"]
# %%writefile clients_and_servers_programs/slowly.py
from contextlib import contextmanager

import tensorflow as tf


def this_worker():
    coordination = tf.distribute.coordinator
    return coordination.experimental_get_current_worker_index()


def own_delay():
    return tf.constant([0.1, 1.0])[this_worker()]


@contextmanager
def seconds_later(seconds, after):
    """What is in the block runs so many seconds after some tensors."""
    with tf.control_dependencies(after):
        one = tf.data.Dataset.range(1)
        # It sleeps twice: before the element, and before the end
        slow = tf.raw_ops.SleepDataset(
            input_dataset=tf.data.experimental.to_variant(one),
            sleep_microseconds=tf.cast(5e5 * seconds, tf.int64),
            output_types=[tf.int64],
            output_shapes=[[]],
        )
        spec = one.element_spec
        slow = tf.data.experimental.from_variant(slow, spec)
        done = slow.get_single_element()
    with tf.control_dependencies([done]):
        yield

# %% one-weight-text [markdown]
# Now the weight and its step. The coordinator makes the variables, and they live on a server. `train_step` will run on a worker.
#
# `train_step` is the three lines from above, and a counter. The server holds this counter, `updates`, beside `w`. By reading it twice, a worker learns how many updates came in between its fetch and its push.
# This number is the **staleness** of its gradient:

# %% one-weight
# %%writefile clients_and_servers_programs/one_weight.py
import tensorflow as tf
from roles import serve_unless_coordinator
from slowly import own_delay, seconds_later, this_worker

resolver = serve_unless_coordinator()
strategy = tf.distribute.ParameterServerStrategy(resolver)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    w = tf.Variable(8.0)
    updates = tf.Variable(0)


@tf.function
def train_step():
    # Fetch
    fetched = w.read_value()
    before = updates.read_value()
    # Compute, which takes its time
    with seconds_later(own_delay(), after=[fetched, before]):
        # Push
        w.assign_sub(0.5 * fetched)
        number = updates.assign_add(1)
        staleness = number - 1 - before
        return number, this_worker(), staleness, w.read_value()

# %% note-order [markdown]
# Why is there an `after`?
#
# A graph runs in any order that its data allows. Here nothing that is fetched is used by the wait, and nothing from the wait is used by the push.
# The block therefore makes the wait depend on the fetch, and the push on the wait.
# A real step needs none of this: its gradient is computed from the weights, so they have to be fetched first.

# %% schedule-text [markdown]
# Third, the coordinator hands out the steps, and it must not wait for one before it hands out the next.
# So it doesn't call the step, but gives it to `schedule`, which puts the step into the queue and returns at once, before anybody has run it.
# `schedule` hands you a `RemoteValue`: not the result, but a claim ticket for it (a *future*). `coordinator.join()` waits until every step is done, and then `fetch()` turns the ticket into what the step returned.
#
# A worker traces the step the first time it runs it, which is slow. So we run four steps to warm up, and then the 40 that count. We time those:

# %% schedule
# %%writefile clients_and_servers_programs/asynchronous.py
import time

from one_weight import coordinator, train_step, updates, w


def run(num_steps):
    w.assign(8.0)
    updates.assign(0)
    tickets = []
    for _ in range(num_steps):
        tickets.append(coordinator.schedule(train_step))
    coordinator.join()
    return [ticket.fetch() for ticket in tickets]


run(4)
begin = time.monotonic()
results = run(40)
print(f"seconds {time.monotonic() - begin:.3f}", flush=True)
for number, worker, staleness, value in results:
    print("update", number, worker, staleness, f"{value:.3f}")

# %% stale-given [markdown]
# Both workers begin by fetching `w`, which is 8. Worker 0 is done soon, and fetches again. Worker 1 takes ten times as long.

# %% predict-stale [markdown]
# A weight `w` starts at 8, and two workers make 40 updates of it. A worker fetches `w`, computes for a while, and then subtracts half of the fetched value from `w`.
# Worker 0 needs a tenth of a second for that, worker 1 a whole one. They don't wait for each other.
# What is the lowest value that `w` ever has, rounded to a whole number?
#
# - [ ] `0`
#   It would be, if each worker halved what `w` is when it pushes.
#   But it subtracts half of what `w` was when it fetched.
# - [x] `-4`
#   Worker 1 fetched 8, so it subtracts 4. By then worker 0 has brought `w` almost to 0.
# - [ ] `-8`
#   It would be with a learning rate of 1. With 0.5, worker 1 subtracts half of the 8 that it fetched.

# %% reveal-stale
tasks = {"chief": 1, "worker": 2, "ps": 1}
with Cluster([programs / "asynchronous.py"], tasks) as cluster:
    report = cluster.wait()

done = logs.updates(report["chief 0"])
lowest = min(update.w for update in done)
reveal("clients_and_servers-stale", round(lowest))

# %% weight-text [markdown]
# Here is the whole run. Each dot is an update, in the color of the worker whose gradient it was:

# %% weight
picture.weight_picture(done)

# %% stale-text [markdown]
# Worker 0 has halved `w` until it is almost 0 when the first gradient of worker 1 arrives. That gradient was computed for the 8 that worker 1 fetched a second ago, so it subtracts 4, and `w` lands near −4.
#
# Worker 0 repairs the damage, but by then worker 1 has fetched that value, and its next gradient throws `w` up to about 2. Its third gradient throws `w` to about −1.
# Worker 1 means to halve `w`, too. But the half that it subtracts is half of a value that is long gone.
#
# Not waiting has a price. Before we look at the price: did we get what we paid for? How many of the 40 steps did each worker do? And how long would an all-reduce take for 40 gradients?

# %% counted
fast = [update for update in done if update.worker == 0]
slow = [update for update in done if update.worker == 1]
print("worker 0:", about(len(fast), 22, 39), "steps")
print("worker 1:", about(len(slow), 1, 18, digits=1), "steps")

# 40 gradients are 20 steps with an all-reduce: we measured three
with_all_reduce = logs.seconds(waiting["worker 0"]) / 3 * 20
without = logs.seconds(report["chief 0"])
times = about(with_all_reduce / without, 1.2, 8, digits=1)
print("the all-reduce takes", times, "times as long")

# %% counted-read [markdown]
# We got what we paid for: for the same 40 gradients, an all-reduce takes several times as long. The slow worker did a few of the steps, and the fast one did all the others. With an all-reduce, each would have done twenty.
#
# Ideally an all-reduce takes 5.5 times as long: in the timelines above it computes four gradients while the other run computes twenty-two.
# A real run gains less, because besides its wait, each step of worker 0 has to fetch and push, and here all processes share your processor's cores.
#
# Now the price. While worker 0 computes, worker 1 pushes at most once, so the gradients of worker 0 are fresh, or nearly so.
# But how many updates come in while worker 1 computes? The number comes from our run, and the picture shows the ideal case:

# %% staleness-picture
largest = max(update.staleness for update in slow)
print("largest staleness:", about(largest, 3, 20, digits=1))
picture.staleness_picture()

# %% staleness-picture-read [markdown]
# In the idealized timeline there are ten updates in between, and in a real run usually fewer, for the same reason.
#
# When worker 1 finally pushes, its gradient belongs to a weight that no longer exists: it is stale, as in {lesson:strategies}.
# The server can't tell a stale gradient from a fresh one, and applies both in full. That is how `w`, all but trained, could jump to about −4.
#
# ## How stale may a gradient be?
#
# Here the stale gradients did no lasting harm, because `w` came back. Three things decide whether they do harm: how stale the gradients are, how many of them are, and how large the learning rate is.
# In our run only a few were stale. Let's leave the cluster for a moment, and make *all* of them stale. This is `w` with our learning rate of 0.5:

# %% swings-picture
picture.swings_picture()

# %% swings-picture-read [markdown]
# With fresh gradients `w` goes to 0. A staleness of 1 makes it oscillate a little, and does no harm.
# If every gradient is three updates old, however, `w` oscillates further and further away from 0: it diverges. With a staleness of seven it does so faster.
#
# What does a smaller learning rate do? Here is how far from 0 `w` still gets after 60 updates:

# %% ages
def distance_after_60_updates(rate, staleness):
    history = [8.0]
    for update in range(60):
        fetched = history[max(0, update - staleness)]
        history.append(history[-1] - rate * fetched)
    # It oscillates: the largest distance from 0 in the last ten
    return max(abs(w) for w in history[-10:])


print("staleness  rate 0.5  rate 0.1")
for staleness in (0, 1, 3, 7, 15):
    large = distance_after_60_updates(0.5, staleness)
    small = distance_after_60_updates(0.1, staleness)
    print(f"{staleness:9}  {large:8.2f}  {small:8.2f}")

# %% ages-read [markdown]
# `w` began at 8. With the rate 0.5 and a staleness of 3, it is at 37.60 after 60 updates, and with 7 or 15 in the thousands.
#
# With a rate of 0.1, a staleness of 7 is still all right: 0.12. But with a staleness of 15, `w` is at 8.28, as far from 0 as in the beginning.
# *The staler the gradients, the smaller the learning rate must be.*
#
# How stale will your gradients be? Take $n$ workers that are equally fast. While one of them computes, each of the others pushes about once,
# so expect a staleness of about $n-1$. With two workers that is 1, which did no harm in the table. With eight workers it is 7, and with sixteen 15.
# The table is a worst case: it makes *every* gradient equally stale, while on a real cluster some are fresher.
#
# How much smaller should the rate be? Start by dividing it by $n$. An all-reduce averages $n$ gradients and takes one step.
# With servers, the same $n$ gradients are $n$ full-size steps. Dividing the rate by $n$ makes them add up to one again.
# For our `w` and sixteen workers the rate becomes 0.5/16, or about 0.03. That is safely below the 0.1 that was too large.
#
# ## Monday
#
# Back to Monday: one of sixteen workers is slow. While it computes for a second, the fifteen others push about 150 gradients. With an all-reduce they would contribute one each, fifteen in all, and wait.
#
# The gradients of the slow worker are about 150 updates old, but there are few of them, one in 150. And with the rate at 0.5/16, even its first gradient, that of 8, moves `w` by only 0.25.
# So the slow machine neither holds up the others nor throws `w` far.
#
# If all of your machines are equally fast, there is nobody to wait for. Then you would pay the price of stale gradients for nothing.

# %% note-ages [markdown]
# Why don't the numbers in the table simply grow with the staleness?
#
# At the rate 0.1, a little staleness even helps: 0.04, then 0.02, then 0.00. While `w` is shrinking, an older `w` is a larger one, so each update is a little larger.
#
# At the rate 0.5, a staleness of 15 looks no worse than 7 only because `w` oscillates more slowly: fewer oscillations fit into 60 updates.

# %% note-momentum [markdown]
# What about momentum? And can parameter servers train synchronously?
#
# Momentum keeps a running sum of gradients, so each stale gradient acts for longer. In our trials with two workers and momentum, the loss rose in 2 of 8 runs. So begin with plain SGD.
#
# They can train synchronously: schedule one step, wait with `coordinator.join()`, and only then schedule the next. Then every gradient is fresh, and you get the run of a single device. But only one worker is ever busy.

# %% exercise-epoch-text [markdown]
# ## A coordinator for a real model
#
# Now for a model with more than one weight: a small network, 64 → 16 → 4, that sorts noisy patterns into four classes.
# Its program has epochs, and saves a checkpoint after each.
#
# Only the coordinator saves. To do so, it reads the variables from the servers, one after another.
# If steps were still running, it might catch one variable before an update and the next one after it.
# So there is waiting after all: at the end of each epoch, everybody waits for the last step.
#
# **Exercise 1.** Write `run_epoch(coordinator, train_step, iterator, num_steps, save)`.
#
# - Schedule `num_steps` steps. Here a step takes an argument: `coordinator.schedule(train_step, args=(iterator,))`. Don't wait for one step before you schedule the next, or only one worker will be busy.
# - When all of the steps are done, and not before, call `save()` once.
# - Each step returns its loss. Return the mean loss of the epoch.
#
# The check calls your function with a fake coordinator that records the calls you make.

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

# %% coordinator-start-text [markdown]
# The beginning of the program is folded, because you know it: the options, the roles, the noisy patterns `x` and `y`, and our `run_epoch`.
# Only one part is new. If there is no `TF_CONFIG`, the program makes a worker and a server inside its own process, so that you can try it alone.

# %% coordinator-start tags=["known"]
# %%writefile clients_and_servers_programs/coordinator_start.py
"""A coordinator, a worker or a server; TF_CONFIG says which.

python coordinator.py [FOLDER] [--epochs 2]
"""

import argparse
import json
import os
import socket

import numpy as np
import tensorflow as tf
from roles import serve_unless_coordinator

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

resolver = serve_unless_coordinator()

y = np.arange(96) % 4
noise = np.random.default_rng(0).normal(size=(96, 64))
x = (noise + 4 * np.eye(4, 64)[y]).astype("float32")


def run_epoch(coordinator, train_step, iterator, num_steps, save):
    steps = []
    for _ in range(num_steps):
        step = coordinator.schedule(train_step, args=(iterator,))
        steps.append(step)
    coordinator.join()
    save()
    losses = [step.fetch() for step in steps]
    return sum(losses) / num_steps

# %% variables-text [markdown]
# Where do the variables live? A single weight lives on one server. But you'd want to spread a large matrix over several.
# A **partitioner** decides into how many shards a variable is split. Ours splits a variable into at most as many shards as there are servers, and makes no shard smaller than 2,048 bytes.
#
# `W1` has 64 × 16 numbers, that is 4,096 bytes. With two servers it is split in two. `W2` has 256 bytes, and stays whole.
#
# A variable that is split keeps its shards in `.variables`, and `parts_of` lists them:

# %% variables
# %%writefile clients_and_servers_programs/variables.py
import faulthandler

import numpy as np
import tensorflow as tf
from coordinator_start import resolver

servers = resolver.cluster_spec().num_tasks("ps")
partitioners = tf.distribute.experimental.partitioners
partitioner = partitioners.MinSizePartitioner(
    min_shard_bytes=2048,
    max_shards=servers,
)
# This strategy waits without a limit for the others: five minutes here
faulthandler.dump_traceback_later(300, exit=True)
strategy = tf.distribute.ParameterServerStrategy(resolver, partitioner)
faulthandler.cancel_dump_traceback_later()
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)

random = np.random.default_rng(0)
initial_W1 = random.normal(0, 0.2, (64, 16)).astype("float32")
initial_W2 = random.normal(0, 0.4, (16, 4)).astype("float32")
with strategy.scope():
    W1 = tf.Variable(initial_W1)
    W2 = tf.Variable(initial_W2)
    updates = tf.Variable(0, dtype=tf.int64, trainable=False)
    epoch = tf.Variable(0, dtype=tf.int64, trainable=False)


def parts_of(variable):
    if hasattr(variable, "variables"):
        return variable.variables
    return [variable]  # it is not split


for name, variable in (("W1", W1), ("W2", W2)):
    for part in parts_of(variable):
        server = tf.DeviceSpec.from_string(part.device).task
        print(name, part.shape, "on server", server, flush=True)

# %% shards-text [markdown]
# This much runs already. Let's start it with two servers:

# %% shards
tasks = {"chief": 1, "worker": 1, "ps": 2}
with Cluster([programs / "variables.py"], tasks) as cluster:
    report = cluster.wait()

for line in report["chief 0"].lines:
    print(line)

# %% coordinator-text [markdown]
# Each server holds half of `W1`, a shard of 32 × 16, and server 0 also holds the whole of `W2`.
#
# The rest of the program is the step and the loop. Where do they fetch, and where do they push?

# %% coordinator
# %%writefile clients_and_servers_programs/coordinator.py
import tempfile

import tensorflow as tf
from coordinator_start import options, run_epoch, x, y
from variables import W1, W2, coordinator, epoch, parts_of, updates


def batches():
    dataset = tf.data.Dataset.from_tensor_slices((x, y))
    return dataset.shuffle(96).repeat().batch(32)


def loss_of(x, y):
    hidden = tf.nn.relu(x @ tf.convert_to_tensor(W1))
    logits = hidden @ tf.convert_to_tensor(W2)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
    return tf.reduce_mean(losses)


parts = [*parts_of(W1), *parts_of(W2)]


@tf.function
def train_step(iterator):
    x, y = next(iterator)
    with tf.GradientTape() as tape:
        loss = loss_of(x, y)
    gradients = tape.gradient(loss, parts)
    for part, gradient in zip(parts, gradients):
        part.assign_sub(0.1 * gradient)
    updates.assign_add(1)
    return loss


checkpoint = tf.train.Checkpoint(
    W1=W1,
    W2=W2,
    updates=updates,
    epoch=epoch,
)
folder = options.folder or tempfile.mkdtemp()
manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=3)


def save():
    epoch.assign_add(1)
    manager.save()


def train(train_step):
    manager.restore_or_initialize()
    iterator = iter(coordinator.create_per_worker_dataset(batches))
    while epoch < options.epochs:
        loss = run_epoch(coordinator, train_step, iterator, 5, save)
        reached = f"epoch {int(epoch)} loss {loss:.3f}"
        print(reached, "updates", int(updates), flush=True)


if __name__ == "__main__":
    train(train_step)

# %% epochs-run-text [markdown]
# - In `loss_of`, `tf.convert_to_tensor(W1)` fetches. It gets both shards from their servers, and joins them into one matrix.
# - In `train_step`, `assign_sub` pushes. The tape follows `convert_to_tensor` back to the shards, so each shard has a gradient of its own, and gets only that.
#
# `create_per_worker_dataset(batches)` is new. It calls `batches` on every worker, so each worker shuffles *all* the examples for itself.
# The examples aren't divided among the workers, so "one pass over the data" has no meaning here. Our "epoch" is just five steps.
#
# First we try the program alone. One process is coordinator, worker and server:

# %% epochs-run
import subprocess
import sys

program = str(programs / "coordinator.py")
command = [sys.executable, program, "--epochs", "4"]
finished = subprocess.run(
    command,
    capture_output=True,
    text=True,
    check=True,
)


def print_epochs(lines):
    print("epoch    loss  updates so far")
    for each in logs.epochs(lines):
        loss = about(each.loss, 0.0, 3.0)
        print(f"{each.number:5}  {loss:>6}  {each.updates:14}")


print_epochs(finished.stdout.splitlines())

# %% note-believes [markdown]
# May this program believe the file `checkpoint`?
#
# `restore_or_initialize` does believe it, and in {lesson:a_run} that was a mistake: with variables on a mesh, TensorFlow may write this file before the index.
# The variables of this program lie on servers, not on a mesh. With them, TensorFlow writes the file last: in all of 23 saves that we watched, the index was already there.

# %% one-dies [markdown]
# It learns: in four epochs the loss falls from about 2 to less than 0.5. (The workers shuffle without a seed, so your losses differ a little.)
# The count of updates rises by five in each epoch, so no step was left out, and none counted twice.
#
# Five steps are a short epoch. With the slow worker of Monday it would last at least a second, while the fast worker alone would do all five in half a second.
# Make your own epochs long, with hundreds of steps.
#
# ## One dies
#
# With an all-reduce, a killed worker ends the whole training, as you saw in {lesson:failures}. Here there are workers and servers. Let's kill one of each while steps are running: first a server, then a worker.
#
# To hit a step in the middle, we need steps that last, and workers that announce when they begin and finish one.
# `slow.py`, which is folded, is `coordinator.py` with such a step. Again a step takes worker 0 a tenth of a second, and worker 1 a whole second:

# %% slow-step tags=["known"]
# %%writefile clients_and_servers_programs/slow.py
import sys

import tensorflow as tf
from coordinator import epoch, train, train_step
from slowly import own_delay, seconds_later


@tf.function
def slow_step(iterator):
    at = epoch + 1
    begins = tf.print("begins in", at, output_stream=sys.stdout)
    with seconds_later(own_delay(), after=[begins]):
        loss = train_step(iterator)
    with tf.control_dependencies([loss]):
        tf.print("done in", at, output_stream=sys.stdout)
    return loss


train(slow_step)

# %% server-text [markdown]
# This time we start a real cluster, with two workers and two servers. In epoch 2, as soon as worker 0 has done a step, we kill server 1.
# Then we restart the processes that have ended, and let them finish the epoch:

# %% server
import tempfile

folder = tempfile.mkdtemp()
program = [programs / "slow.py", folder]
tasks = {"chief": 1, "worker": 2, "ps": 2}
with Cluster([*program, "--epochs", 2], tasks) as cluster:
    cluster.wait_for("worker 0", "done in 2")
    cluster.kill("ps 1")
    without_server_1 = cluster.wait()
    cluster.restart("ps 1")
    cluster.restart("chief 0")
    resumed = cluster.wait()

# %% first-half-text [markdown]
# Which processes were still running when server 1 had died?

# %% first-half
for task in without_server_1.tasks:
    print(task.heading())

# %% server-read [markdown]
# Half of `W1` was gone, because it had existed on server 1 and nowhere else. So the coordinator ended with an `UnavailableError`.
# The workers and the other server kept running, and waited for a new coordinator.
# A lost *server* therefore ends the training, and so does a lost coordinator.
#
# What remained was the checkpoint of epoch 1. We restarted server 1 and the coordinator, and the training resumed from there.
# Here is what the coordinator printed, epoch 1 before the kill and epoch 2 after the restart. How many steps of epoch 2 did the workers do in both lives together?

# %% again
print_epochs(resumed["chief 0"].lines)

# %% again-steps
steps = 0
for task in ("worker 0", "worker 1"):
    steps += resumed[task].lines.count("done in 2")
print("steps done in epoch 2:", about(steps, 6, 9, digits=1))

# %% worker-given [markdown]
# More than five steps were done (usually six), but epoch 2 has only five updates. The rest had been done before server 1 died.
# What they had pushed to server 1 went down with it, and what they had pushed to server 0 was overwritten by the checkpoint. So epoch 2 was done over. Nothing else was lost.
#
# Now a worker. We start the same cluster once more, for epoch 3. As soon as worker 1 announces that it begins a step, we kill it.

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
with Cluster([*program, "--epochs", 3], tasks) as cluster:
    cluster.wait_for("worker 1", "begins in 3")
    cluster.kill("worker 1")
    without_worker_1 = cluster.wait()

before = logs.epochs(resumed["chief 0"].lines)[-1].updates
after = logs.epochs(without_worker_1["chief 0"].lines)[-1].updates
answer = "all done" if after - before == 5 else "one lost"
reveal("clients_and_servers-worker", answer)

# %% ended-text [markdown]
# How many steps of epoch 3 did each worker begin, and how many did it finish?

# %% ended
print("epoch 3   begun  done")
for task in ("worker 0", "worker 1"):
    lines = without_worker_1[task].lines
    begun = lines.count("begins in 3")
    done_in_3 = lines.count("done in 3")
    print(f"{task}  {begun:5}  {done_in_3:4}")

# %% ended-read [markdown]
# Worker 1 had begun a step and never finished it. Worker 0 completed all five, including the one that worker 1 dropped. Losing a worker costs the time of one step. It costs no update.
#
# A step can also count twice. If a worker dies after it has pushed its gradient, or part of it, but before its result is back, the coordinator gives the whole step to somebody else.
# Then what had already been pushed is applied a second time. We killed worker 1 before it pushed anything.

# %% note-twice [markdown]
# What happens when workers come back, or when all are gone?
#
# When we restarted worker 1, the coordinator found it by itself and gave it steps again. Such a worker begins its dataset anew, with the first element, so without a shuffle it sees the same examples again.
#
# If *all* workers are gone, the coordinator waits for one, and says nothing.

# %% note-evaluator [markdown]
# Who evaluates the model while it is training?
#
# A process of its own, which reads the checkpoints. It needs no `TF_CONFIG` of its own, and must not be listed in anyone else's:
# if `cluster` lists an `evaluator`, the coordinator silently waits until a `tf.distribute.Server` answers there.
#
# ```python
# seen = None
# while int(epoch) < last_epoch:
#     newest = tf.train.latest_checkpoint(folder)
#     if newest != seen:
#         checkpoint.restore(newest)
#         evaluate()
#         seen = newest
#     time.sleep(1)
# ```
#
# Here the variables of `checkpoint` are whole. They can be restored from a checkpoint of sharded ones all the same.

# %% mesh-text [markdown]
# ## A model that is too large for one device
#
# Now comes Thursday. One matrix takes 10 GB, and a device has 16. Can parameter servers help? Four of them hold the matrix easily, 2.5 GB each.
# But look at `loss_of`: to compute with `W1`, a worker fetches all of it. That is 10 GB on one device, and its gradient is 10 GB more. So no, they can't help.
#
# There is one exception. From a table of embeddings, `tf.nn.embedding_lookup` fetches only the rows that the batch needs, however large the table is. With such tables parameter servers are at their best.

# %% note-embeddings [markdown]
# What would change in our program for a table of embeddings?
#
# Three things. `loss_of` looks the rows up with `tf.nn.embedding_lookup` instead of converting the whole table.
# The gradient of such a table is a `tf.IndexedSlices`, which can't be multiplied by a rate, so an optimizer has to apply it.
# And `initial_W1` makes the whole table in the coordinator first. One of TensorFlow's own initializers can make each shard by itself.

# %% clients-picture-text [markdown]
# For your matrix you need devices that compute with a part of it. You know how from {lesson:splitting_the_model}: a mesh with a second dimension, `model`, along which the weights are split.
#
# The only new thing is that such a mesh can span several processes, the clients. Each client has devices of its own, and all clients run the same program.
# This is the *multi-client* DTensor that {lesson:mesh_and_layout} promised. Here are two clients with four devices each:

# %% clients-picture
picture.clients_picture()

# %% mesh-read [markdown]
# Devices of the same color hold the same rows of the batch. Each such pair shares one copy of the model: either device holds half of `W1` and half of `W2`.
#
# Both devices of a pair belong to one client, so what they exchange along `model`, in the middle of a step, stays within a machine, where links are fast.
# Only what is added up along `batch`, the gradients and the loss, crosses the dashed line between the machines.
# That's why `model` is the last dimension, as in {lesson:all_reduce}: each client has four consecutive devices, so the two devices of a pair are never in different clients.
#
# If the model didn't fit on one machine, even when all of its devices shared it, `model` would have to span machines, too.

# %% one-mesh-text [markdown]
# How do the clients find each other? By three environment variables of DTensor instead of `TF_CONFIG`. `Cluster` sets these, too:
#
# - `DTENSOR_JOBS` lists the addresses of all clients (despite its name);
# - `DTENSOR_CLIENT_ID` says which of them this is;
# - `DTENSOR_JOB_NAME` is the name of the whole group.
#
# `initialize_accelerator_system` waits for all clients, and `create_distributed_mesh` makes a mesh of all their devices.
# We always want eight devices in all, so with two clients each one creates four:

# %% one-mesh
# %%writefile clients_and_servers_programs/one_mesh.py
import faulthandler

from tensorflow.experimental import dtensor

clients = dtensor.num_clients()
assert 8 % clients == 0, "clients must divide the eight devices"

# DTensor waits an hour for the other clients: five minutes here
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

# %% places-text [markdown]
# From here on you could almost reuse the one-process program. The model and the step stay as they are. Two things change: how a tensor is packed, and how the program saves.
#
# Packing you will write. Until now, when you packed a tensor, you made a component for each of the eight devices. A client can fill only the memory of its own four, so it has to know which four these are.
#
# `local_device_locations()` gives their positions in the mesh. To try this, we don't need two processes. This is the mesh as client 1 sees it:

# %% places
from lessons.strategies.clients_and_servers.checks import mesh_of_client

mesh_of_1 = mesh_of_client(1)
for position in mesh_of_1.local_device_locations():
    print(position)

# %% rows-given [markdown]
# Client 1 has two positions along `batch`, 2 and 3, and in each of them both positions along `model`.

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
reveal("clients_and_servers-rows", len(positions) * 32 // 4)

# %% mine-text [markdown]
# That is half of the batch. With real data, a client doesn't even open the files of the other half.
#
# **Exercise 2.** Write `mine(array, layout)`: a list with the components that this client must make, in the order of its devices.
# It should work for any array and any mesh. It is the `cut` of {lesson:mesh_and_layout}, for the devices of one client.
#
# - `layout.mesh.local_device_locations()` gives the positions of the client's devices in the mesh.
# - `layout.sharding_specs` has one entry for each axis of the array: the mesh dimension along which it is split, or `dtensor.UNSHARDED`.
#   `layout.num_shards(axis)` is the number of pieces, and `np.split(array, pieces, axis)` splits the array into them.
# - Begin with one device and one axis. *Which of the pieces is for this device?* If the axis is split along `batch`, a device at position 2 along `batch` gets piece 2, counted from 0.

# %% dtensor tags=["known"]
import numpy as np
from tensorflow.experimental import dtensor

# %% exercise-mine
def mine(array, layout):
    # solution begin
    components = []
    for position in layout.mesh.local_device_locations():
        part = array
        for axis, dimension in enumerate(layout.sharding_specs):
            if dimension != dtensor.UNSHARDED:
                count = layout.num_shards(axis)
                pieces = np.split(part, count, axis)
                part = pieces[position[dimension]]
        components.append(part)
    return components
    # solution end

# %%
check("clients_and_servers-mine", mine)

# %% client-start-text [markdown]
# The next cell is folded because you know it all: the options, the model and the step of {lesson:splitting_the_model} with other sizes, the noisy patterns, `newest` from {lesson:a_run}, and our `mine`.

# %% client-start tags=["known"]
# %%writefile clients_and_servers_programs/client_start.py
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

alone = dtensor.num_clients() == 1
assert options.folder or alone, "several clients need one FOLDER"

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


def mine(array, layout):
    components = []
    for position in layout.mesh.local_device_locations():
        part = array
        for axis, dimension in enumerate(layout.sharding_specs):
            if dimension != dtensor.UNSHARDED:
                count = layout.num_shards(axis)
                pieces = np.split(part, count, axis)
                part = pieces[position[dimension]]
        components.append(part)
    return components

# %% client-text [markdown]
# With `mine`, the program is short, because `dtensor.pack` takes the components of each client and makes one tensor of them all.
#
# Saving is the second thing that changes. *All* clients call `save`, into one folder that all of them see, and together they write *one* checkpoint.
# In {lesson:failures} that was forbidden, because there each worker wrote a whole checkpoint; here each shard is written just once, by one of the devices that hold it. Only client 0 removes old checkpoints.
#
# Finally, everyone waits at a barrier, so that they all finish together:

# %% client
# %%writefile clients_and_servers_programs/client.py
import tempfile

import numpy as np
import tensorflow as tf
from client_start import (
    MLP,
    mine,
    newest,
    options,
    train_step,
    values,
    x,
    y,
)
from one_mesh import client, mesh
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

step = tf.Variable(0, dtype=tf.int64)
checkpoint = tf.train.Checkpoint(model=model, step=step)
folder = options.folder or tempfile.mkdtemp()
keep = 3 if client == 0 else None  # only client 0 removes old ones
manager = tf.train.CheckpointManager(checkpoint, folder, keep)
path = newest(folder)
if path is not None:
    status = checkpoint.restore(path)
    status.assert_existing_objects_matched()

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

# %% clients-text [markdown]
# Two clients train for five steps. How much of `W1`, which has 64 × 16 numbers, does a device hold?

# %% clients
def clients_of(count, *arguments):
    command = [programs / "client.py", *arguments]
    return Cluster(command, {"client": count}, variables="DTENSOR")


shared = tempfile.mkdtemp()
with clients_of(2, shared, "--steps", 5) as cluster:
    two = cluster.wait()
two

# %% clients-read [markdown]
# A device holds 64 × 8 numbers, half of `W1`. That is what Thursday needed: split in the same way, your 10 GB matrix takes 5 GB of each device, and its gradient takes 5 more. Both fit into 16 GB, with plain SGD as here. (Adam's slots would need 10 GB more, so `model` would have to be larger.) With more devices along `model`, each would hold still less.
#
# Two processes share one mesh, and each knows which of the devices are its own. Both print the same loss in every step.
#
# But is this loss the right one? And can another number of clients go on from there? Let *one* process, with all eight devices, take that checkpoint on to step 8.
# Beside it runs a process that was always alone:

# %% then-one
later = clients_of(1, shared, "--steps", 8)
always = clients_of(1, "--steps", 8)
with later, always:  # both at the same time
    then_one = later.wait()["client 0"].losses
    alone = always.wait()["client 0"].losses

losses = dict(two["client 0"].losses)
losses.update(then_one)
print("step  two clients, then one  always one")
for step, loss in losses.items():
    print(f"{step:4}  {loss:21.2f}  {alone[step]:10.2f}")

# %% then-one-read [markdown]
# To the two decimals shown, every loss is the one that a single process gets. And one client could go on from the checkpoint of two, because the checkpoint doesn't depend on which process owns which device.
#
# When we killed one client, the other ended with an error, as with an all-reduce. Then you restart all clients from the checkpoint. You may have fewer of them than before: our program takes 1, 2, 4 or 8 clients, because their number has to divide its eight devices.
#
# ## Which one?
#
# Ask first whether the model fits on one device, and then whether the machines are equally fast:
#
# | your case | what you take | what it costs |
# | :--- | :--- | :--- |
# | the model fits on a device, and the machines are about equally fast | an all-reduce: `MultiWorkerMirroredStrategy` | all wait for the slowest, in each step |
# | it fits, but again and again a machine is slow, or dies | parameter servers: `ParameterServerStrategy` | stale gradients, a smaller learning rate, and no two runs alike |
# | it doesn't fit, but only because of a table of embeddings | parameter servers, too | the same |
# | it doesn't fit on a device | clients of one mesh: DTensor | all wait for the slowest, in each step, and devices exchange activations in the middle of every step |
#
# ## Can Keras use parameter servers?
#
# Not all of Keras can. This is what we measured with two dense layers:

# %% keras-table tags=["known"]
from course_lib import measured

support = measured.load("strategies-support").support
measured.table({"parameter_server": support["parameter_server"]})

# %% keras-read [markdown]
# `fit` of Keras 3 ends with an error, and `fit` of tf_keras, which is Keras 2, trains asynchronously. A custom loop works with both.
#
# For the two columns of the custom loop we scheduled one step at a time, so that the result could be compared with one device's. Asynchronous runs can't be compared like that: no two are alike.

# %% note-keras [markdown]
# Can variables of a Keras model be split?
#
# Those of Keras 3 can't. With a partitioner, the first step of its layers ends in `AttributeError: 'ShardedVariable' object has no attribute 'handle'`.
# A model of Keras 3 therefore lives on the servers in whole variables. To split a variable, make it a `tf.Variable`, as above, or take the layers of tf_keras.
#
# The page *What strategies get right* has many more features: choose `ParameterServerStrategy` there.

# %% takeaways [markdown]
# ## The plain programs
#
# [`coordinator.py`](../plain/coordinator.py) and [`client.py`](../plain/client.py) are the two programs of this lesson, each in one file, with what was folded here.
# Run either one by hand, with none of the environment variables set, and it is a complete cluster in a single process. To start them on Kubernetes or Slurm, see the folder `deploy/` of this course.
#
# We ran them all on the CPU of one machine, and haven't tried them on GPUs or on several machines.
#
# ## Takeaways
#
# - With an all-reduce, the slowest worker sets the pace of every step. With parameter servers no worker waits for another between two calls of `coordinator.join()`, but gradients are stale: the staler they are, the smaller the learning rate must be.
# - With parameter servers, a lost worker costs the time of a step. A lost server costs everything since the last checkpoint.
# - Clients share one mesh. Each makes the components of its own devices, and the rest of the program hardly changes.
#
# With a mesh that spans machines, you can train far larger models than ours. {Lesson:transformer_block} splits the one that most of them are made of.

# %% score
score("clients_and_servers")
