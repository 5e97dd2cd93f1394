# %% [markdown]
# # Parameter servers: what if nobody waited?
#
# Sixteen machines train your model. In every step an all-reduce averages their gradients, and for weeks all is well.
#
# On Monday one of the machines becomes slow. Somebody else's job has landed on it, and its steps take a second instead of a tenth of one.
# The other fifteen are as fast as ever, and yet your training is ten times slower.
#
# That is how an all-reduce works. It needs all sixteen gradients for the average, so in every step everybody waits for the slowest machine.
# This lesson asks: *what if nobody waited?*
#
# It can be done, and in this lesson you do it. But there is a price. While the slow machine computes its gradient, the others change the weights, so the gradient arrives too late, and nothing warns you.
# You'll see what such a gradient does to a training run, and how to choose a learning rate at which it does no harm.
#
# **After this lesson you can**
#
# - train with parameter servers, where no worker waits for another;
# - say how stale your gradients will be, and what learning rate that allows;
# - say what is lost when a worker, a server or the coordinator dies.
#
# **Time:** 35 minutes.
# **You need to know:** workers and `TF_CONFIG` ({lesson:workers}), asynchronous training ({lesson:strategies}).

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% all-wait-text [markdown]
# ## Everybody waits for the slowest
#
# Let's replay that Monday, with only two workers. We want a model you can train in your head, so ours has a single weight, `w`, which starts at 8.
# Its loss is $w^2/2$, so its gradient is `w` itself. With a learning rate of 0.5, each update halves it: 8, 4, 2, 1, …
#
# Instead of computing, the workers sleep: worker 0 for a tenth of a second, worker 1 for a whole second.

# %% programs-text [markdown]
# As before, each process stands for a machine, and each program is a file. The folded cell makes a folder for the files, beside this notebook:

# %% programs tags=["known"]
from pathlib import Path

programs = Path("parameter_servers_programs")
programs.mkdir(exist_ok=True)
# Empty files: so the cells below always say "Overwriting"
names = ["all_reduce", "roles", "first_step", "slowly", "stale_step"]
names += ["asynchronous", "coordinator_start", "variables"]
for name in [*names, "train_step", "coordinator", "slow"]:
    (programs / f"{name}.py").touch()

# %% all-reduce
# %%writefile parameter_servers_programs/all_reduce.py
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
# `Cluster` starts this program twice. Every cell that starts processes takes a few seconds, most of them spent starting TensorFlow.

# %% all-reduce-run
from lessons.strategies.launcher import Cluster


def run(program, tasks, *arguments):
    command = [programs / program, *arguments]
    with Cluster(command, tasks) as cluster:
        return cluster.wait()


waiting = run("all_reduce.py", {"worker": 2})
for each in waiting.tasks:
    print(each.task, *each.lines[:3], sep="\n  ")

# %% busy-text [markdown]
# Both took three steps, and both have $8/2^3 = 1$, as they should. What share of its time was each worker busy?

# %% busy
from course_lib import about
from lessons.strategies.parameter_servers import logs

busy_0 = 3 * 0.1 / logs.seconds(waiting["worker 0"])
busy_1 = 3 * 1.0 / logs.seconds(waiting["worker 1"])
# ≈: different in each run, but within these bounds
print("worker 0 is busy", about(busy_0, 0.02, 0.2))
print("worker 1 is busy", about(busy_1, 0.5, 1))

# %% all-reduce-read [markdown]
# Worker 0 was busy for less than a tenth of the time. The rest of the time it sat in the all-reduce, waiting for worker 1's gradient.
# Worker 1 was busy for nearly all of the time. The remaining part went into the all-reduces themselves, mostly into the first.
#
# Here are two seconds of such a run, drawn as if an all-reduce took no time. Below it is the run you would rather have.
# Each colored bar is the time spent on one gradient; its number says which update that gradient went into:

# %% timelines
from lessons.strategies.parameter_servers import picture

picture.timelines_picture()

# %% timelines-read [markdown]
# With the all-reduce, four gradients are computed in two seconds. If nobody waits, there are twenty-two.
# But then the gradients don't come in together. Who averages them? Nobody has to.
#
# ## Each gradient makes an update of its own
#
# That is what **parameter servers** do.
# These are processes that divide the variables among themselves and apply each gradient the moment it arrives.
# A worker **pulls** the variables from the servers, computes a gradient, and **pushes** it back to them.
#
# One more process, the **coordinator**, runs the training loop and keeps a queue of steps to be done. A worker that is free takes the next step from this queue:

# %% servers-picture
picture.servers_picture()

# %% roles-text [markdown]
# This is the asynchronous training of {lesson:strategies}. Let's start such a cluster, and take one step.
#
# All of its processes run the same program, and `TF_CONFIG` tells each of them its job: the coordinator is called `chief`, a worker `worker`, and a server `ps`.
# Only the coordinator runs a loop, so the program begins with a function that separates it from the rest.
# Workers and servers stay inside this function and wait for work. Only the coordinator returns from it:

# %% roles
# %%writefile parameter_servers_programs/roles.py
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

# %% first-step-text [markdown]
# So everything after the call of this function runs on the coordinator alone. It makes the variable, and defines the step.
#
# Why doesn't it simply call the step? Then the step would run in the coordinator's process, and the coordinator would wait for it.
# Instead it gives the step to `schedule`, which puts it into the queue and returns at once. `join` waits until every step is done:

# %% first-step
# %%writefile parameter_servers_programs/first_step.py
import tensorflow as tf
from roles import serve_unless_coordinator

resolver = serve_unless_coordinator()
strategy = tf.distribute.ParameterServerStrategy(resolver)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    w = tf.Variable(8.0)
print("w is on", w.device, flush=True)


@tf.function
def train_step():
    pulled = w.read_value()
    gradient = pulled  # of w * w / 2
    w.assign_sub(0.5 * gradient)  # the push


coordinator.schedule(train_step)
coordinator.join()
print("w is", w.numpy(), flush=True)

# %% first-step-run
one_server = {"chief": 1, "worker": 2, "ps": 1}
report = run("first_step.py", one_server)
for line in report["chief 0"].lines:
    print(line)

# %% first-step-read [markdown]
# The coordinator made `w`, but `w` lives on the server: `/job:ps`. One of the workers took the step. It pulled 8, and pushed the gradient, and the server made it 4.
#
# ## Nobody waits
#
# Now we repeat Monday without the all-reduce: two workers, many steps, and no waiting in between. For that, each step has to take its time.
# `time.sleep` can't help here, because a step is a `tf.function`, and its Python runs only once, while it is traced.
#
# So the folded cell defines a delay that works inside a graph. `slowly(value)` returns its argument unchanged, but late: by a tenth of a second on worker 0, by a whole second on worker 1.
# You need not read how it works.

# %% slowly tags=["known"]
# %%writefile parameter_servers_programs/slowly.py
import tensorflow as tf


def this_worker():
    coordination = tf.distribute.coordinator
    return coordination.experimental_get_current_worker_index()


def slowly(value):
    """The same value, but later."""
    seconds = tf.constant([0.1, 1.0])[this_worker()]
    with tf.control_dependencies([value]):
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
        return tf.identity(value)

# %% stale-step-text [markdown]
# The step is the one from above, with `slowly` in the middle, and with a counter.
# The server holds this counter, `updates`, beside `w`. A worker reads it when it pulls, and again when it pushes. In between, other workers may have made updates.
# Their number is the **staleness** of the worker's gradient:

# %% stale-step
# %%writefile parameter_servers_programs/stale_step.py
import tensorflow as tf
from roles import serve_unless_coordinator
from slowly import slowly, this_worker

resolver = serve_unless_coordinator()
strategy = tf.distribute.ParameterServerStrategy(resolver)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    w = tf.Variable(8.0)
    updates = tf.Variable(0)


@tf.function
def train_step():
    updates_at_pull = updates.read_value()
    pulled = w.read_value()
    gradient = slowly(pulled)
    with tf.control_dependencies([gradient]):
        w.assign_sub(0.5 * gradient)
        updates_now = updates.assign_add(1)
    staleness = updates_now - 1 - updates_at_pull
    return updates_now, this_worker(), staleness, w.read_value()

# %% note-order [markdown]
# Why is there a `control_dependencies`?
#
# A graph runs in any order that its data allows. The counter uses nothing of the gradient, so without this line the worker might count before its gradient is there, and the staleness would be wrong.
# The step of the real model below counts its updates, too, but nobody measures a staleness with them, so there the order doesn't matter.

# %% schedule-text [markdown]
# The coordinator schedules 40 steps, and waits only at the end.
# `schedule` can't return what a step returns, because nobody has run the step yet. What it returns is a `RemoteValue`, the kind of object programmers call a *future*: after `join`, you get the result with `fetch()`.
#
# The first steps are slow, because TensorFlow traces the step and sends it to each worker. So the program takes four steps to warm up, and then the 40 that count:

# %% schedule
# %%writefile parameter_servers_programs/asynchronous.py
import time

from stale_step import coordinator, train_step, updates, w


def run_steps(num_steps):
    w.assign(8.0)
    updates.assign(0)
    futures = []
    for _ in range(num_steps):
        futures.append(coordinator.schedule(train_step))
    coordinator.join()
    return [future.fetch() for future in futures]


run_steps(4)
begin = time.monotonic()
results = run_steps(40)
print(f"seconds {time.monotonic() - begin:.3f}", flush=True)
for number, worker, staleness, value in results:
    print("update", number, worker, staleness, f"{value:.3f}")

# %% stale-given [markdown]
# Both workers begin by pulling `w`, which is 8. Worker 0 is done soon, and pulls again. Worker 1 takes ten times as long.

# %% predict-stale [markdown]
# A weight `w` starts at 8, and two workers make 40 updates of it. A worker pulls `w`, computes for a while, and then subtracts half of the pulled value from `w`.
# Worker 0 needs a tenth of a second for that, worker 1 a whole one. They don't wait for each other.
# What is the lowest value that `w` ever has, rounded to a whole number?
#
# - [ ] `0`
#   It would be, if each worker halved what `w` is when it pushes.
#   But it subtracts half of what `w` was when it pulled.
# - [x] `-4`
#   Worker 1 pulled 8, so it subtracts 4. By then worker 0 has brought `w` almost to 0.
# - [ ] `-8`
#   It would be with a learning rate of 1. With 0.5, worker 1 subtracts half of the 8 that it pulled.

# %% reveal-stale
report = run("asynchronous.py", one_server)
done = logs.updates(report["chief 0"])
lowest = min(update.w for update in done)
reveal("parameter_servers-stale", round(lowest))

# %% weight-text [markdown]
# Here is the whole run. Each dot is an update, in the color of the worker whose gradient it was:

# %% weight
picture.weight_picture(done)

# %% stale-text [markdown]
# Worker 0 has halved `w` until it is almost 0 when the first gradient of worker 1 arrives. That gradient was computed for the 8 that worker 1 pulled a second ago, so it subtracts 4, and `w` lands near −4.
#
# Worker 0 repairs the damage, but by then worker 1 has pulled that value, and its next gradient throws `w` up to about 2. Its third gradient throws `w` to about −1.
# Worker 1 means to halve `w`, too. But it subtracts half of a value that `w` had a second ago.
#
# That is the price of not waiting. Before we look into it, let's see what we got for it. How many of the 40 steps did each worker do? And how much longer would 40 gradients take with an all-reduce?

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
# We did get something. Whenever we ran this, the slow worker did five to eight of the 40 steps, and the fast one all the others. With an all-reduce, each would do twenty, and 40 gradients would take three or four times as long.
#
# Now the price. How many updates come in while worker 1 computes its gradient? First our run, then the ideal case:

# %% staleness-picture
largest = max(update.staleness for update in slow)
print("largest staleness:", about(largest, 3, 20, digits=1))
picture.staleness_picture()

# %% staleness-picture-read [markdown]
# When we ran this, up to eight updates came in while worker 1 computed. In the ideal case of the picture, in which a pull or a push takes no time, there are ten.
#
# When worker 1 finally pushes, its gradient belongs to a weight that no longer exists: the gradient is stale, as in {lesson:strategies}.
# Gradients of worker 0 are fresh or nearly so, because worker 1 pushes at most once while worker 0 computes.
# The server can't tell a stale gradient from a fresh one, and applies both in full. That is how `w`, all but trained, could jump to about −4.

# %% note-ideal [markdown]
# How much faster could it be, without an all-reduce?
#
# With our two workers 5.5 times as fast: in the timelines above, an all-reduce computes four gradients while the other run computes twenty-two.
# A real run gains less, because worker 0 needs time to pull and push as well, and here all processes share your processor's cores. For the same reason fewer than ten updates come in while worker 1 computes.

# %% how-stale-text [markdown]
# ## How stale may a gradient be?
#
# Here the stale gradients did no lasting harm, because `w` came back. Three things decide whether they do harm: how stale they are, how many of the gradients are stale, and how large the learning rate is.
# In our run only the slow worker's gradients were old, at most one gradient in five. Let's leave the cluster for a moment, and make *all* of them stale. This is `w` with our learning rate of 0.5:

# %% swings-picture
picture.swings_picture()

# %% swings-picture-read [markdown]
# With fresh gradients `w` goes to 0. A staleness of 1 makes it oscillate a little, and does no harm.
# If every gradient is three updates old, however, `w` oscillates further and further away from 0: it diverges. With a staleness of seven it does so faster.
#
# What does a smaller learning rate do? Here is how far from 0 `w` still gets after 60 updates:

# %% ages
def add_update(history, rate, staleness):
    pulled_at = max(0, len(history) - 1 - staleness)
    pulled = history[pulled_at]
    history.append(history[-1] - rate * pulled)


def distance_after_60_updates(rate, staleness):
    history = [8.0]
    for _ in range(60):
        add_update(history, rate, staleness)
    # It oscillates: the largest distance from 0 in the last ten
    return max(abs(w) for w in history[-10:])


print("staleness  rate 0.5  rate 0.1")
for staleness in (0, 1, 3, 7, 15):
    large = distance_after_60_updates(0.5, staleness)
    small = distance_after_60_updates(0.1, staleness)
    print(f"{staleness:9}  {large:8.2f}  {small:8.2f}")

# %% ages-read [markdown]
# `w` began at 8. With the rate 0.5 and a staleness of 3, it still swings as far as 37.60 after 60 updates, and with 7 or 15 into the thousands.
#
# With a rate of 0.1, a staleness of 7 is still all right: 0.12. But with a staleness of 15, `w` swings as far as 8.28, as far from 0 as in the beginning.
# *The staler the gradients, the smaller the learning rate must be.*
#
# How stale will your gradients be? Take $n$ workers that are equally fast. While one of them computes, each of the others pushes about once,
# so expect a staleness of about $n-1$. With two workers that is a staleness of 1, which did no harm in the table. With eight workers it is 7, and with sixteen 15.
# The table is a worst case: it makes *every* gradient equally stale, while on a real cluster some are fresher.
#
# How much smaller should the rate be? Start by dividing it by $n$. An all-reduce averages $n$ gradients and takes one step.
# With servers, the same $n$ gradients are $n$ full-size steps. Divide the rate by $n$, and together they make one full step again.
# For our `w` and sixteen workers the rate becomes 0.5/16, or about 0.03. At a staleness of 15, 0.1 was too large; 0.03 leaves a comfortable margin.
#
# ## Monday
#
# Back to Monday: of your sixteen workers, fifteen are fast and one is slow. What would become of `w` there?
#
# In one second each fast worker pushes ten gradients, 150 in all. Each of these gradients is 14 updates old, because fourteen other fast workers push while it is computed.
# Then the slow worker pushes, and its one gradient is 150 updates old.
#
# So of 151 gradients one has a staleness of 150, and all the others have 14. Let's run three seconds of that, with the rate 0.5, and with 0.5/16:

# %% monday
def three_seconds_of_monday(rate):
    history = [8.0]
    for _ in range(3):
        for _ in range(150):
            add_update(history, rate, staleness=14)
        add_update(history, rate, staleness=150)
    return history


too_large = three_seconds_of_monday(0.5)
divided = three_seconds_of_monday(0.5 / 16)
print(f"rate 0.5, after a tenth of a second: {too_large[15]:.0f}")
print(f"rate 0.5/16, before the slow push: {divided[150]:.3f}")
print(f"rate 0.5/16, after the slow push: {divided[151]:.3f}")
picture.monday_picture(too_large, divided)

# %% monday-read [markdown]
# With the rate 0.5, `w` is at −52 after a tenth of a second, when each fast worker has pushed just once. From then on it only gets worse.
# And the slow worker hasn't pushed anything yet! A staleness of 14 is enough.
#
# With the rate 0.5/16, `w` is practically 0 before the first second is over. Then the slow worker pushes its gradient of 8, and `w` drops by 0.25. The fast workers repair that before the next second is over.
# With an all-reduce, `w` is at 4 after one second, and at 1 after three.
#
# So the slow machine neither holds up the others nor throws `w` far, *if* the learning rate is right.
# And if all of your machines are equally fast? Then nobody waits for long in an all-reduce, and stale gradients would be a price paid for nothing.

# %% note-ages [markdown]
# Why don't the distances from 0 simply grow with the staleness?
#
# At the rate 0.1, a little staleness even helps: 0.04, then 0.02, then 0.00. While `w` is shrinking, an older `w` is a larger one, so each update is a little larger.
#
# At the rate 0.5, a staleness of 15 looks no worse than 7 only because `w` oscillates more slowly: fewer oscillations fit into 60 updates.

# %% note-momentum [markdown]
# What about momentum?
#
# Momentum keeps a running sum of gradients, so each stale gradient acts for longer. In our trials with two workers and momentum, the loss rose in 2 of 8 runs. So begin with plain SGD.

# %% note-synchronous [markdown]
# Can parameter servers train synchronously?
#
# They can: schedule one step, wait with `coordinator.join()`, and only then schedule the next. Then every gradient is fresh, and you get the run of a single device. But only one worker is ever busy.

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
check("parameter_servers-epoch", run_epoch)

# %% coordinator-start-text [markdown]
# The program needs your `run_epoch`. This cell writes it into a file, if it passes the check, and otherwise ours:

# %% own-epoch
from lessons.strategies.own_file import write_own

run_epoch_file = programs / "run_epoch.py"
write_own(run_epoch_file, "parameter_servers-epoch", run_epoch)

# %% coordinator-start-why [markdown]
# The beginning of the program is folded, because you know most of it: the options, the roles, and the noisy patterns `x` and `y`.
# Only `strategy_with_time_limit` is new. The strategy waits without a limit until all processes have started, and this function ends the program after five minutes:

# %% coordinator-start tags=["known"]
# %%writefile parameter_servers_programs/coordinator_start.py
"""A coordinator, a worker or a server; TF_CONFIG says which.

python coordinator.py [FOLDER] [--epochs 2]
"""

import argparse
import faulthandler

import numpy as np
import tensorflow as tf
from roles import serve_unless_coordinator

parser = argparse.ArgumentParser()
parser.add_argument("folder", nargs="?", help="of checkpoints")
parser.add_argument("--epochs", type=int, default=2)
options = parser.parse_args()

resolver = serve_unless_coordinator()

y = np.arange(96) % 4
noise = np.random.default_rng(0).normal(size=(96, 64))
x = (noise + 4 * np.eye(4, 64)[y]).astype("float32")


def strategy_with_time_limit(partitioner):
    # It ends the process unless all others are there in five minutes
    faulthandler.dump_traceback_later(300, exit=True)
    strategy = tf.distribute.ParameterServerStrategy(
        resolver,
        partitioner,
    )
    faulthandler.cancel_dump_traceback_later()
    return strategy

# %% variables-text [markdown]
# Where do the variables live? A single weight lives on one server. But you'd want to spread a large matrix over several.
# A **partitioner** decides into how many shards a variable is split. Ours makes at most as many shards as there are servers, and no shard smaller than 2,048 bytes.
#
# `W1` has 64 × 16 numbers, that is 4,096 bytes. With two servers it is split in two. `W2` has 256 bytes, and stays whole.
#
# A variable that is split keeps its shards in `.variables`, and `shards_of` lists them:

# %% variables
# %%writefile parameter_servers_programs/variables.py
import numpy as np
import tensorflow as tf
from coordinator_start import resolver, strategy_with_time_limit

servers = resolver.cluster_spec().num_tasks("ps")
partitioners = tf.distribute.experimental.partitioners
partitioner = partitioners.MinSizePartitioner(
    min_shard_bytes=2048,
    max_shards=servers,
)
strategy = strategy_with_time_limit(partitioner)

random = np.random.default_rng(0)
initial_W1 = random.normal(0, 0.2, (64, 16)).astype("float32")
initial_W2 = random.normal(0, 0.4, (16, 4)).astype("float32")
with strategy.scope():
    W1 = tf.Variable(initial_W1)
    W2 = tf.Variable(initial_W2)


def shards_of(variable):
    if hasattr(variable, "variables"):
        return list(variable.variables)
    return [variable]  # it is not split


for name, variable in (("W1", W1), ("W2", W2)):
    for shard in shards_of(variable):
        server = tf.DeviceSpec.from_string(shard.device).task
        print(name, shard.shape, "on server", server, flush=True)

# %% shards-text [markdown]
# This much runs already. Let's start it with two servers:

# %% shards
two_servers = {"chief": 1, "worker": 2, "ps": 2}
report = run("variables.py", two_servers)
for line in report["chief 0"].lines:
    print(line)

# %% train-step-text [markdown]
# Each server holds half of `W1`, a shard of 32 × 16, and server 0 also holds the whole of `W2`. This is what a worker does with `W1` in each step:

# %% shards-picture
picture.shards_picture()

# %% train-step-why [markdown]
# Now the step. Where does it pull, and where does it push?

# %% train-step
# %%writefile parameter_servers_programs/train_step.py
import tensorflow as tf
from coordinator_start import x, y
from variables import W1, W2, shards_of, strategy

with strategy.scope():
    updates = tf.Variable(0, dtype=tf.int64, trainable=False)


def batches():
    dataset = tf.data.Dataset.from_tensor_slices((x, y))
    return dataset.shuffle(96).repeat().batch(32)


def loss_of(x, y):
    hidden = tf.nn.relu(x @ tf.convert_to_tensor(W1))
    logits = hidden @ tf.convert_to_tensor(W2)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
    return tf.reduce_mean(losses)


shards = shards_of(W1) + shards_of(W2)


@tf.function
def train_step(iterator):
    x, y = next(iterator)
    with tf.GradientTape() as tape:
        loss = loss_of(x, y)
    gradients = tape.gradient(loss, shards)
    for shard, gradient in zip(shards, gradients):
        shard.assign_sub(0.1 * gradient)
    updates.assign_add(1)
    return loss

# %% coordinator-text [markdown]
# - In `loss_of`, `tf.convert_to_tensor(W1)` pulls. It gets both shards from their servers, and joins them into one matrix.
# - In `train_step`, `assign_sub` pushes. The tape follows `convert_to_tensor` back to the shards, so each shard receives just its own part of the gradient.
#
# In every step, each worker pulls all of `W1`, however many servers share it. So servers can store a matrix that is too large for one device, but no worker can compute with it.
# A table of embeddings is the exception: `tf.nn.embedding_lookup` pulls only the rows that the batch needs, however large the table is. With such tables parameter servers are at their best.
#
# Only the loop is missing. It runs your epochs, and saves after each. Every worker needs its own iterator, and `create_per_worker_dataset(batches)` makes it: it calls `batches` on every worker.
# So each worker shuffles *all* the examples for itself. The examples aren't divided among the workers, so "one pass over the data" has no meaning here. Our "epoch" is just five steps:

# %% coordinator
# %%writefile parameter_servers_programs/coordinator.py
import tempfile

import tensorflow as tf
from coordinator_start import options
from run_epoch import run_epoch
from train_step import batches, train_step, updates
from variables import W1, W2, strategy

with strategy.scope():
    epoch = tf.Variable(0, dtype=tf.int64, trainable=False)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
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
    for _ in range(int(epoch), options.epochs):
        loss = run_epoch(coordinator, train_step, iterator, 5, save)
        reached = f"epoch {int(epoch)} loss {loss:.3f}"
        print(reached, "updates", int(updates), flush=True)


if __name__ == "__main__":
    train(train_step)

# %% epochs-run-text [markdown]
# Let's train for four epochs, with two workers and two servers:

# %% epochs-run
def print_epochs(task):
    print("epoch    loss  updates so far")
    for each in logs.epochs(task):
        loss = about(each.loss, 0.0, 3.0)
        print(f"{each.number:5}  {loss:>6}  {each.updates:14}")


report = run("coordinator.py", two_servers, "--epochs", 4)
print_epochs(report["chief 0"])

# %% epochs-read [markdown]
# It learns: in four epochs the loss falls from about 2 to less than 1.
# The count of updates rises by five in each epoch, so no step was left out, and none counted twice.
#
# Five steps are a short epoch. With the slow worker of Monday it would last at least a second, while the fast worker alone would do all five in half a second.
# Make your own epochs long, with hundreds of steps.

# %% note-losses [markdown]
# Why do the losses differ from run to run?
#
# The workers shuffle without a seed, and nobody waits, so the order of the updates is a different one each time.

# %% note-embeddings [markdown]
# What would change in our program for a table of embeddings?
#
# Three things. `loss_of` looks the rows up with `tf.nn.embedding_lookup` instead of converting the whole table.
# The gradient of such a table is a `tf.IndexedSlices`, which can't be multiplied by a rate, so an optimizer has to apply it.
# And `initial_W1` makes the whole table in the coordinator first. One of TensorFlow's own initializers can make each shard by itself.

# %% one-dies [markdown]
# ## One dies
#
# With an all-reduce, a killed worker ends the whole training run, as you saw in {lesson:failures}. Here there are workers and servers. Let's kill one of each while steps are running: first a server, then a worker.
#
# To catch a worker in the middle of a step, we need steps that take a while, and workers that say when they begin and finish one.
# `slow.py`, which is folded, is `coordinator.py` with such a step. Again a step takes worker 0 a tenth of a second, and worker 1 a whole second:

# %% slow-step tags=["known"]
# %%writefile parameter_servers_programs/slow.py
# The step of coordinator.py, which also prints when it begins,
# then waits with `slowly`, and prints when it is done
import sys

import tensorflow as tf
from coordinator import epoch, train, train_step
from slowly import slowly


@tf.function
def slow_step(iterator):
    number = epoch + 1
    begins = tf.print("begins in", number, output_stream=sys.stdout)
    with tf.control_dependencies([begins]):
        waited = slowly(number)
    with tf.control_dependencies([waited]):
        loss = train_step(iterator)
    with tf.control_dependencies([loss]):
        tf.print("done in", number, output_stream=sys.stdout)
    return loss


train(slow_step)

# %% server-text [markdown]
# In epoch 2, as soon as worker 0 has done a step, we kill server 1.
# Then we restart the processes that have ended, and let them finish the epoch. This takes about half a minute:

# %% server
import tempfile

folder = tempfile.mkdtemp()
two_epochs = [programs / "slow.py", folder, "--epochs", 2]
with Cluster(two_epochs, two_servers) as cluster:
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
# A lost *server* therefore ends the training run, and so does a lost coordinator.
#
# What remained was the checkpoint of epoch 1. We restarted server 1 and the coordinator, and the training run resumed from there.
# Here is what the coordinator printed, epoch 1 before the kill and epoch 2 after the restart. The workers were never restarted. How many steps of epoch 2 did they do, before and after the kill taken together?

# %% again
print_epochs(resumed["chief 0"])

# %% again-steps
steps = 0
for task in ("worker 0", "worker 1"):
    steps += resumed[task].lines.count("done in 2")
print("steps done in epoch 2:", about(steps, 6, 9, digits=1))

# %% worker-given [markdown]
# Epoch 2 has five updates, but the workers did more than five steps. The extra ones had been done before server 1 died.
# What they had pushed to server 1 went down with it, and what they had pushed to server 0 was overwritten by the checkpoint. So epoch 2 was done over. Nothing else was lost.
#
# Now a worker. We start the same cluster once more, for epoch 3. As soon as worker 1 announces that it begins a step, we kill it, before it has pushed anything. The cell takes nearly as long as the last one.

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
three_epochs = [programs / "slow.py", folder, "--epochs", 3]
with Cluster(three_epochs, two_servers) as cluster:
    cluster.wait_for("worker 1", "begins in 3")
    cluster.kill("worker 1")
    without_worker_1 = cluster.wait()

updates_before = logs.epochs(resumed["chief 0"])[-1].updates
updates_after = logs.epochs(without_worker_1["chief 0"])[-1].updates
all_done = updates_after == updates_before + 5
answer = "all done" if all_done else "one lost"
reveal("parameter_servers-worker", answer)

# %% ended-text [markdown]
# How many steps of epoch 3 did each worker begin, and how many did it finish?

# %% ended
print("epoch 3   begun  done")
for task in ("worker 0", "worker 1"):
    lines = without_worker_1[task].lines
    begun = lines.count("begins in 3")
    finished = lines.count("done in 3")
    print(f"{task}  {begun:5}  {finished:4}")

# %% ended-read [markdown]
# Worker 1 had begun a step and never finished it. Worker 0 completed all five, including the one that worker 1 dropped. Losing a worker costs the time of one step. It costs no update.

# %% note-applied-twice [markdown]
# Can a step also count twice?
#
# It can. If a worker dies after it has pushed its gradient, or part of it, but before its result is back, the coordinator gives the whole step to another worker.
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
# A process of its own, which reads the checkpoints as they are saved. It needs no `TF_CONFIG` of its own, and must not be listed in anyone else's:
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
# In this process `checkpoint` is made from variables that aren't split. They can be restored from a checkpoint of split variables all the same. `evaluate` and `last_epoch` are yours.

# %% keras-text [markdown]
# ## Can Keras use parameter servers?
#
# It depends on the version. This is what we measured with two dense layers:

# %% keras-table tags=["known"]
from course_lib import measured

support = measured.load("strategies-support").support
measured.table({"parameter_server": support["parameter_server"]})

# %% keras-read [markdown]
# `fit` of Keras 3 ends with an error, and `fit` of tf_keras, which is Keras 2, trains asynchronously. A custom loop works with both.

# %% note-keras [markdown]
# How was this measured? And can variables of a Keras model be split?
#
# For the two columns of the custom loop we scheduled one step at a time, so that the result could be compared with one device's. Asynchronous runs can't be compared like that: no two are alike.
#
# Variables of a Keras 3 model can't be split. With a partitioner, the first step of its layers ends in `AttributeError: 'ShardedVariable' object has no attribute 'handle'`.
# To split a variable, make it a `tf.Variable`, as above, or take the layers of tf_keras.
#
# The page *What strategies get right* has many more features: choose `ParameterServerStrategy` there.

# %% takeaways [markdown]
# ## The plain program
#
# [`coordinator.py`](../plain/coordinator.py) is the program of this lesson in one file, with what was folded here and one thing more:
# run by hand, without `TF_CONFIG`, it makes a worker and a server in its own process, so that you can try it alone. To start it on Kubernetes or Slurm, see the folder `deploy/` of this course.
#
# We ran it on the CPU of one machine, and haven't tried it on GPUs or on several machines.
#
# ## Takeaways
#
# - With an all-reduce, the slowest worker sets the pace of every step. With parameter servers no worker waits for another, except at the end of an epoch.
# - The price is stale gradients: the staler they are, the smaller the learning rate must be.
# - A lost worker costs the time of a step, and on rare occasions a step is applied twice. A lost server costs everything since the last checkpoint.
#
# One thing parameter servers can't do: help a worker compute with a matrix that is larger than its device. {Lesson:one_mesh} can.

# %% score
score("parameter_servers")
