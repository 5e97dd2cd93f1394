# %% [markdown]
# # Parameter servers: what if nobody waited?
#
# Sixteen machines train your model, round after round: each of them runs a training step, and an all-reduce averages their sixteen gradients. For weeks, all goes well.
#
# On Monday, somebody else's job lands on one of the machines. A step used to take this machine a tenth of a second, and now it takes a second.
# The other fifteen are as fast as ever. And yet your whole training run is ten times slower.
#
# The reason is the average. The all-reduce needs all sixteen gradients, so in every round fifteen machines wait for the slowest one.
# This lesson asks: *what if nobody waited?*
#
# You'll start a training run in which nobody does. That has a price: while the slow machine computes its gradient, the others go on changing the weights.
# When the gradient arrives, it belongs to weights long since replaced. It is applied all the same, and nothing warns you.
# So you'll also see what such a gradient does, and choose a learning rate at which it does no harm.
#
# **After this lesson you can**
#
# - train with parameter servers, where no worker waits for another;
# - say how stale your gradients will be, and choose a learning rate for them;
# - say what you lose when a worker, a server or the coordinator dies.
#
# **Time:** 55 minutes.
# **You need to know:** workers and `TF_CONFIG` ({lesson:workers}), asynchronous training ({lesson:strategies}).

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% all-wait-text [markdown]
# ## Everybody waits for the slowest
#
# Let's replay that Monday with two workers. The model is so small that you can train it in your head.
# It has a single weight, `w`, which starts at 8. The loss is $w^2/2$, so the gradient is `w` itself.
# With a learning rate of 0.5, each update halves `w`: 8, 4, 2, 1, …
#
# We fake the time that a gradient takes: worker 0 sleeps for a tenth of a second, worker 1 for a whole second.

# %% programs-text [markdown]
# As in {lesson:workers}, a process plays the part of a machine, and each program is a file. The folded cell makes a folder for these files, beside this notebook:

# %% programs tags=["known"]
from pathlib import Path

programs = Path("parameter_servers_programs")
programs.mkdir(exist_ok=True)
# Empty at first, so that each %%writefile says "Overwriting"
names = ["all_reduce", "roles", "first_step", "slowly", "stale_step"]
names += ["asynchronous", "coordinator_start", "variables"]
for name in [*names, "train_step", "coordinator", "slow"]:
    (programs / f"{name}.py").touch()

# %% all-reduce-text [markdown]
# The first file, `all_reduce.py`, trains as you know it, in rounds. In each round, every worker runs a step: it sleeps, takes part in an all-reduce, and updates its own copy of `w`:

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
# `run` starts a program with `Cluster`, waits until it has ended, and returns what its processes printed.
# Here it starts two workers. A cell that starts processes takes a few seconds, mostly to start TensorFlow.

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
# Both workers ran three steps, and both have $8/2^3 = 1$, as they should. What share of its time did each spend on its gradients?

# %% busy
from course_lib import about
from lessons.strategies.parameter_servers import logs

busy_0 = 3 * 0.1 / logs.seconds(waiting["worker 0"])
busy_1 = 3 * 1.0 / logs.seconds(waiting["worker 1"])
# ≈: different in each run, but within these bounds
print("worker 0 is busy", about(busy_0, 0.02, 0.2))
print("worker 1 is busy", about(busy_1, 0.5, 1))

# %% all-reduce-read [markdown]
# Worker 0 was busy for less than a tenth of the time. The rest of the time, it sat in the all-reduce and waited for the gradient of worker 1.
# Worker 1 was busy for nearly all of the time. It spent the rest on the all-reduces themselves, mostly on the first one.
#
# The upper part of the next picture shows two seconds of such a run, drawn as if an all-reduce took no time. The lower part shows the run that you would rather have.
# Each colored bar is one gradient being computed, and its number says which update the gradient goes into:

# %% timelines
from lessons.strategies.parameter_servers import picture

picture.timelines_picture()

# %% timelines-read [markdown]
# With the all-reduce, two seconds give four gradients. If nobody waits, they give twenty-two. But then the gradients come in one by one. Who averages them?
#
# ## Each gradient makes its own update
#
# Nobody has to. A gradient can change `w` as soon as it is there, without waiting for any other.
# But until now each worker had its own copy of `w`. If each worker updated only its own copy, the two copies would soon differ.
# So there must be only one `w`, in a place that all workers can reach.
#
# This is what **parameter servers** are for. They are processes that hold the variables, and apply each gradient the moment it arrives. If there are several servers, each holds a part of the variables.
# A worker **pulls** the variables from the servers, computes a gradient, and **pushes** the gradient to the servers.
#
# One more process, the **coordinator**, runs the training loop. It puts the steps into a queue, and a worker that is free takes the next step from there:

# %% servers-picture
picture.servers_picture()

# %% roles-text [markdown]
# You know this kind of training from {lesson:strategies}: it is asynchronous. Let's start such a cluster, and have it run a single step.
#
# All processes run the same program, and `TF_CONFIG` tells each of them its job. The coordinator is called `chief`, a worker `worker`, and a server `ps`.
# Only the coordinator runs a training loop. So the program must first hold back the workers and servers.
#
# Every program from here on has to do that. So we write it once, as a function in `roles.py`, and import it.
# Workers and servers stay in this function and wait for work. Only the coordinator returns from it:

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
# `first_step.py` is a whole program with parameter servers, the shortest in this lesson. It calls the function from `roles.py` first.
# Only the coordinator gets past that call. It makes the variable, defines the step, and has a worker run it.
#
# Why doesn't the coordinator simply call `train_step()`? That would run the step in its own process, and wait for it.
# Instead, it calls `schedule`. This puts the step into the queue, for any worker to take, and returns at once. At the end, `join` waits until all steps are done:

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
# The coordinator made `w`, but `w` lives on the server: the name of its device begins with `/job:ps`.
# One of the two workers ran the step. It pulled 8, so its gradient was 8. After its push, `w` is 8 − 0.5 · 8 = 4.
#
# ## Nobody waits
#
# Now let's replay Monday without the all-reduce. Worker 0 should again need a tenth of a second for a step, and worker 1 a whole second.
# But `time.sleep` doesn't help here. The step is a `tf.function`: its Python code runs only while TensorFlow traces it, not each time a worker runs the step.
#
# The next file, `slowly.py`, has a delay that works in a graph. `slowly(value)` returns its value unchanged, a tenth of a second later on worker 0, and a second later on worker 1.
# You need not read how it does that, so it's folded:

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
# `stale_step.py` begins like `first_step.py`, but its step differs in two ways. The gradient passes through `slowly`. Besides `w`, the server holds a counter, `updates`. Each push adds 1 to it.
#
# The counter shows how late a gradient is. A worker reads it twice: when it pulls `w`, and when it pushes the gradient.
# Suppose it reads 5 at the pull, and its own push raises the counter from 8 to 9. Then three updates came in while it was computing. This number, which the step returns, is the gradient's **staleness**:

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
    # The pull
    updates_at_pull = updates.read_value()
    pulled = w.read_value()
    gradient = slowly(pulled)
    with tf.control_dependencies([gradient]):
        # The push
        w.assign_sub(0.5 * gradient)
        updates_now = updates.assign_add(1)
    staleness = updates_now - 1 - updates_at_pull
    return updates_now, this_worker(), staleness, w.read_value()

# %% note-order [markdown]
# Why is there a `control_dependencies`?
#
# In a graph, an operation may run as soon as its inputs are there. Adding 1 to the counter doesn't need the gradient.
# So without this line, a worker might count its update before it has computed the gradient, and the staleness would be wrong.
# The larger model further down also counts updates, but computes no staleness, so there the order doesn't matter.

# %% schedule-text [markdown]
# `asynchronous.py` imports this step, schedules it 40 times, and only then waits.
#
# What does `schedule` return? It can't be the result of the step, because no worker has run the step yet. It is a `RemoteValue`: a *future*, an object that stands for a result still to come. After `join`, its method `fetch()` gives you the result.
#
# The first steps take longer than the others, because TensorFlow traces the step and sends it to each worker. So the program runs four steps to warm up, and then 40 that count:

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
# At the start, both workers pull `w`, which is 8. Worker 0 soon pushes its gradient, and pulls again. Worker 1 takes ten times as long.

# %% predict-stale [markdown]
# Two workers make 40 updates of a weight `w`, which starts at 8. For each update, a worker pulls `w`, computes for a while, and then subtracts half of the value that it pulled from `w`.
# Worker 0 needs a tenth of a second for this, and worker 1 a whole second. Neither waits for the other.
# What is the lowest value that `w` ever has, rounded to a whole number?
#
# - [ ] `0`
#   It would be 0 if a worker halved the `w` that it finds when it pushes.
#   But it subtracts half of the `w` that it pulled.
# - [x] `-4`
#   Worker 1 pulled 8, so it subtracts 4. By then, worker 0 has brought `w` almost to 0.
# - [ ] `-8`
#   It would be −8 with a learning rate of 1. With 0.5, worker 1 subtracts half of the 8 that it pulled.

# %% reveal-stale
report = run("asynchronous.py", one_server)
done = logs.updates(report["chief 0"])
lowest = min(update.w for update in done)
reveal("parameter_servers-stale", round(lowest))

# %% weight-text [markdown]
# Here are all 40 updates. Each dot is one update, in the color of the worker that pushed it:

# %% weight
picture.weight_picture(done)

# %% stale-text [markdown]
# The plunge to about −4 comes from the gradient that worker 1 spent a whole second on. It wasn't wrong: it was right for `w` = 8. But `w` isn't 8 any more.
#
# After that, worker 0 brings `w` back toward 0. But worker 1 has already pulled the −4, and its next push throws `w` up to about 2. The push after that throws `w` down to about −1.
# Both workers want to halve `w`. But worker 1 subtracts half of what `w` was a second ago.
#
# That is the price of not waiting. What do you get for it? Let's count the steps that each worker ran. And how much longer would 40 gradients take with an all-reduce?

# %% counted
fast = [update for update in done if update.worker == 0]
slow = [update for update in done if update.worker == 1]
print("worker 0:", about(len(fast), 22, 39), "steps")
print("worker 1:", about(len(slow), 1, 18, digits=1), "steps")

# With an all-reduce, 40 gradients are 20 rounds; we timed three
with_all_reduce = logs.seconds(waiting["worker 0"]) / 3 * 20
without = logs.seconds(report["chief 0"])
times = about(with_all_reduce / without, 1.2, 8, digits=1)
print("the all-reduce takes", times, "times as long")

# %% counted-read [markdown]
# You get a much faster run. Whenever we tried it, worker 1 ran four to eight of the 40 steps, and worker 0 the rest. With an all-reduce, each worker would run twenty, and the 40 gradients would take three to five times as long. The timelines above promise a factor of 5.5, 22 gradients instead of 4. But real pulls and pushes take time, and here all processes share the cores of one machine.
#
# Now let's look at the price again. How many updates come in while worker 1 computes one gradient? The cell prints the largest staleness of our run, and draws the ideal case, in which pulls and pushes take no time:

# %% staleness-picture
largest = max(update.staleness for update in slow)
print("largest staleness:", about(largest, 3, 20, digits=1))
picture.staleness_picture()

# %% staleness-picture-read [markdown]
# In the ideal case, ten updates come in before worker 1 pushes. In our run there were nearly as many.
#
# So the gradient that worker 1 pushes is for a `w` nearly ten updates old. Such a gradient is stale, as you saw in {lesson:strategies}.
# The gradients of worker 0 have a staleness of 0 or 1, because worker 1 pushes at most once while worker 0 computes.
# The server can't tell a stale gradient from a fresh one, and applies both alike.

# %% how-stale-text [markdown]
# ## How stale may a gradient be?
#
# In our run, the stale gradients did no lasting harm: `w` always came back to 0. But only the few gradients of worker 1 were really stale, and worker 0 had time to repair what they did. What if *every* gradient is stale?
#
# Let's leave the cluster and simply compute this. Each part of the picture shows 30 updates of `w`, with our learning rate of 0.5. In each part, all gradients have the same staleness. With a staleness of 3, for example, each update subtracts half of what `w` was three updates ago:

# %% swings-picture
picture.swings_picture()

# %% swings-picture-read [markdown]
# With a staleness of 0, `w` goes straight to 0. With 1, it overshoots a little, but soon comes to rest at 0.
# With 3, it overshoots, comes back, and overshoots still further in the other direction. It never comes to rest: training *diverges*. With 7, it diverges faster.
#
# Does a smaller learning rate help? We make 60 updates with each of two rates, and print how far from 0 `w` is at the end.
# Since `w` may be passing through 0 just then, we take its largest distance in the last ten updates:

# %% ages
def add_update(history, rate, staleness):
    # What `w` was `staleness` updates ago; 8 before the first update
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
# `w` started at a distance of 8. With the rate 0.5 and a staleness of 3, it ends up further away, at 37.60. With 7 and 15, it is more than 1,600 away.
#
# With the rate 0.1, a staleness of 7 does no harm: the distance is down to 0.12. But with a staleness of 15 it is 8.28, no better than at the start.
# *The staler the gradients, the smaller the learning rate must be.*

# %% note-ages [markdown]
# Why doesn't the distance always grow with the staleness?
#
# With the rate 0.1, a little staleness even helps: the distance falls from 0.04 to 0.02 and to 0.00. While `w` shrinks, an older `w` is a larger one, so each update is a little larger.
#
# With the rate 0.5, the distance is smaller for 15 than for 7. But that is only because `w` swings more slowly there, so 60 updates have room for fewer swings.

# %% monday-text [markdown]
# ## What learning rate should you choose?
#
# First you need to know how stale your gradients will be. Suppose that you have $n$ workers, all equally fast. While one of them computes a gradient, each of the others pushes about once.
# So the staleness is about $n-1$: it is 1 with two workers, 7 with eight, and 15 with sixteen.
#
# Now the rate. An all-reduce averages $n$ gradients and makes a single update. With parameter servers, the same $n$ gradients make $n$ updates of about that size, and so move the weights about $n$ times as far. So as a first try, divide the rate by $n$.
# For our `w` and sixteen workers that is 0.5/16, or about 0.03. In the table, 0.1 was too large for a staleness of 15; 0.03 is well below 0.1.
#
# ## Back to Monday
#
# On Monday, your sixteen workers aren't equally fast. Fifteen are fast, and one is slow. Is 0.5/16 still small enough? First we need the staleness of each gradient.
#
# - *A fast worker* computes for a tenth of a second. Meanwhile, each of the other fourteen fast workers pushes once. The staleness is 14.
# - *The slow worker* computes for a whole second. Meanwhile, each of the fifteen fast workers pushes ten times. The staleness is 150.
#
# So in one second, 150 gradients come in with a staleness of 14, and then one with a staleness of 150. We compute three such seconds, once with the rate 0.5 and once with 0.5/16:

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
# With the rate 0.5, the run is lost after a tenth of a second. All fifteen fast workers have pulled 8, and each of them subtracts 4, so `w` is 8 − 15 · 4 = −52. From there it gets worse and worse. And the slow worker hasn't pushed anything yet!
#
# With the rate 0.5/16, `w` is practically 0 before the first second is over. Then the slow worker pushes its gradient of 8, and `w` falls by 8 · 0.5/16 = 0.25. Before the next second is over, the fast workers have brought it back to 0.
# If every gradient had a staleness of 150, this rate would be too large as well. But only one in 151 does, and the rest undo it.
# With an all-reduce, `w` is at 4 after one second, and still at 1 after three.
#
# So with the right learning rate, the slow machine neither holds up the others nor does lasting harm.
# And if all your machines are equally fast? Then use an all-reduce: nobody waits for long. With parameter servers, you would pay in stale gradients and gain almost nothing.

# %% note-momentum [markdown]
# What about momentum?
#
# Momentum adds up the gradients of many updates. With a momentum of 0.9, each gradient moves the weights ten times as far in the end, as if the rate were ten times as large.
# So begin with plain SGD, or with a tenth of its rate.

# %% exercise-epoch-text [markdown]
# ## A coordinator for a real model
#
# Your model has more than one weight. So let's train a small network, 64 → 16 → 4, that sorts noisy patterns into four classes. Its program trains in epochs, saves a checkpoint after each, and takes five files. Each imports what it needs from those before it:
#
# | file | what is in it |
# | --- | --- |
# | `run_epoch.py` | your function: the steps of one epoch |
# | `coordinator_start.py` | options, roles and data |
# | `variables.py` | the weights, spread over the servers |
# | `train_step.py` | the step that a worker runs |
# | `coordinator.py` | the epochs and the checkpoints; this file is started |
#
# We begin with `run_epoch.py`. The coordinator asks for a checkpoint, but each server writes its own variables. So with several machines, the checkpoint folder must be on a shared file system.
# If steps were still running, a server might save one variable before an update and the next one after it. So there is some waiting after all: the coordinator saves only when all steps of the epoch are done.
#
# **Exercise.** Write `run_epoch(coordinator, train_step, iterator, num_steps, save)`.
#
# - Schedule `num_steps` steps. This time a step takes an argument: `coordinator.schedule(train_step, args=(iterator,))`. Schedule all of them before you wait for any, or only one worker will be busy.
# - When all steps are done, and not before, call `save()` once.
# - Each step returns its loss. Return the mean loss of the epoch.
#
# The check passes your function a fake coordinator, which records how it is called.

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
# If your `run_epoch` passes the check, the next cell writes it into `run_epoch.py`. If not, it writes our solution:

# %% own-epoch
from lessons.strategies.own_file import write_own

run_epoch_file = programs / "run_epoch.py"
write_own(run_epoch_file, "parameter_servers-epoch", run_epoch)

# %% coordinator-start-why [markdown]
# The second file, `coordinator_start.py`, is folded, because most of it is familiar: options, roles, and the noisy patterns `x` and `y`.
# Only `strategy_with_time_limit` is new. A `ParameterServerStrategy` waits until all processes have started, however long that takes. This function makes one, and ends the program if that takes more than five minutes:

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
    # Ends the process if the others aren't there in five minutes
    faulthandler.dump_traceback_later(300, exit=True)
    strategy = tf.distribute.ParameterServerStrategy(
        resolver,
        partitioner,
    )
    faulthandler.cancel_dump_traceback_later()
    return strategy

# %% variables-text [markdown]
# The third file, `variables.py`, makes the two weight matrices. Where should they live? Our single weight had to live on one server. A large matrix is better spread over several.
#
# A **partitioner** decides into how many shards a variable is split. Ours makes at most one shard for each server, and none smaller than 2,048 bytes.
# `W1` has 64 × 16 numbers, which take 4,096 bytes. So with two servers it is split in two. `W2` takes only 256 bytes, and stays whole.
#
# A split variable has its shards in `.variables`. `shards_of` lists them; a whole variable counts as one shard:

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
# `variables.py` needs none of the later files, so we can run it now. Let's start it with two servers:

# %% shards
two_servers = {"chief": 1, "worker": 2, "ps": 2}
report = run("variables.py", two_servers)
for line in report["chief 0"].lines:
    print(line)

# %% train-step-text [markdown]
# Each server holds one half of `W1`, a shard of 32 × 16. Server 0 also holds the whole of `W2`. The picture shows what a worker pulls and pushes for `W1` in each step:

# %% shards-picture
picture.shards_picture()

# %% train-step-why [markdown]
# The fourth file, `train_step.py`, has the step. Which line pulls, and which one pushes?

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
# - In `loss_of`, `tf.convert_to_tensor(W1)` pulls. It fetches both shards from their servers, and joins them into one matrix.
# - In `train_step`, `shard.assign_sub` pushes. The tape follows the matrix back to its shards, and computes a gradient for each of them. So a server gets only the gradient of its own shard.
#
# However many servers there are, in each step a worker pulls all of `W1`. So the servers can store a matrix too large for one device, but no worker can compute with it this way.
# A table of embeddings is different: `tf.nn.embedding_lookup` pulls only the rows that the batch needs, however large the table is. Parameter servers are at their best with such tables.
#
# The last file, `coordinator.py`, has the loop. For each epoch it calls your `run_epoch`, which saves at the end.
# The loop also gives every worker its own iterator: `create_per_worker_dataset(batches)` makes the dataset of `batches` on each worker. So each worker goes through *all* the examples, in its own order: they aren't divided up, and an epoch isn't one pass over the data. Ours is simply five steps.

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
# The program is complete. Let's train for four epochs, with two workers and two servers:

# %% epochs-run
def print_epochs(task):
    print("epoch    loss  updates so far")
    for each in logs.epochs(task):
        loss = about(each.loss, 0.0, 3.0)
        print(f"{each.number:5}  {loss:>6}  {each.updates:14}")


report = run("coordinator.py", two_servers, "--epochs", 4)
print_epochs(report["chief 0"])

# %% epochs-read [markdown]
# The model learns: its loss falls from about 2 to less than 1. Each epoch adds five updates, so no step was left out or counted twice.
# Your losses will differ from ours, and from run to run: the workers shuffle without a seed, and nothing fixes the order of the updates.
#
# An epoch of five steps is too short in practice. If Monday's slow worker ran just one of the five, the epoch would last a whole second, because it ends only when all its steps are done. The fast worker alone would run all five in half a second.
# So give your own epochs hundreds of steps.

# %% note-pass [markdown]
# What if an epoch should be one pass over the data?
#
# Schedule each step with the number of its batch, and let the step pick the examples of this batch.

# %% note-optimizer [markdown]
# Can our step use an optimizer of Keras?
#
# Yes, and it keeps the moments of each shard on that shard's server. But the step has to go through `strategy.run`:
#
# ```python
# with strategy.scope():
#     optimizer = tf.keras.optimizers.Adam(0.001)
#     optimizer.build(shards)
#
#
# @tf.function
# def train_step(iterator):
#     def replica_step(x, y):
#         with tf.GradientTape() as tape:
#             loss = loss_of(x, y)
#         gradients = tape.gradient(loss, shards)
#         optimizer.apply(gradients, shards)
#         updates.assign_add(1)
#         return loss
#
#     return strategy.run(replica_step, next(iterator))
# ```
#
# Without `strategy.run`, the step ends with `AttributeError: 'NoneType' object has no attribute 'merge_call'`.
# Put the optimizer into the checkpoint, too: its moments belong to the state of the run.

# %% note-embeddings [markdown]
# What would change in our program for a table of embeddings?
#
# Three things would change:
#
# - `loss_of` looks up the rows with `tf.nn.embedding_lookup`, instead of converting the whole table.
# - The gradient of a shard is a `tf.IndexedSlices`: the numbers of some rows in `indices`, and their gradients in `values`. It can't be multiplied by a rate.
#   So multiply `values`, make a `tf.IndexedSlices` of the result, and push it with `shard.scatter_sub`. Or take an optimizer, as above.
# - Our `initial_W1` makes the whole matrix on the coordinator first. For a large table, take one of TensorFlow's own initializers, which can make each shard separately.

# %% one-dies [markdown]
# ## What do you lose when one dies?
#
# In {lesson:failures}, we killed one of the workers, and the whole training run ended. With an all-reduce it has to, because every round needs all the workers.
# Now there are workers and servers. We'll kill a server first and then a worker, each while steps are running.
#
# To catch a worker in the middle of a step, we need steps that take a while. And the workers must say when they begin a step, and when they are done.
# So `slow.py`, in the folded cell, is `coordinator.py` with another step. That step prints a line, waits with `slowly`, runs the old step, and prints a line. Again, worker 0 waits a tenth of a second, and worker 1 a whole second:

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
# First the server. In epoch 2, as soon as worker 0 has finished a step, we kill server 1. Then we wait until the run has ended, restart the processes that are down, and let them finish epoch 2.
# The server comes first: its `restart` returns once it answers again. Only then do we restart the coordinator. This takes about half a minute:

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
# After the kill, and before any restart, which processes were still running?

# %% first-half
for task in without_server_1.tasks:
    print(task.heading())

# %% server-read [markdown]
# Half of `W1` was gone, because only server 1 had it. So the coordinator couldn't go on, and ended with an `UnavailableError`. The workers and server 0 kept running, and waited for a new coordinator.
# So when you lose a server, your training run ends. The same holds when you lose the coordinator, which runs the loop.
#
# But the checkpoint of epoch 1 was left. So we restarted server 1 and the coordinator, and the run resumed from this checkpoint.
# Why the server first? A worker that finds a server gone waits a moment before it tries again, and any step that it gets in that moment fails, even if the server is back. Then the coordinator ends again, and you restart it once more.
#
# The coordinator printed epoch 1 before the kill, and epoch 2 after its restart:

# %% again
print_epochs(resumed["chief 0"])

# %% again-steps-text [markdown]
# Epoch 2 has its five updates. The workers were never restarted, so what they printed shows every step that they ran. How many did they finish in epoch 2, before and after the kill together?

# %% again-steps
steps = 0
for task in ("worker 0", "worker 1"):
    steps += resumed[task].lines.count("done in 2")
print("steps done in epoch 2:", about(steps, 6, 9, digits=1))

# %% again-steps-read [markdown]
# They finished more than five. The extra steps were done before the kill, and all their changes were lost. What they had pushed to server 1 went down with it. What they had pushed to server 0 was lost as well: the new coordinator made new variables there, and restored the checkpoint into them.
# So we lost the part of epoch 2 that was done before the kill, and nothing else.

# %% note-restarts [markdown]
# What becomes of the old variables on a server?
#
# They stay in its memory until the server ends. If you restart the coordinator often, restart the servers, too.

# %% worker-given [markdown]
# Now a worker. We start the program again, and it resumes with epoch 3. As soon as worker 1 prints that it begins a step, we kill it, before it has pushed anything. This cell, too, takes nearly half a minute.

# %% predict-worker [markdown]
# The coordinator of a `ParameterServerStrategy` schedules five steps in each epoch, for two workers.
# In epoch 3, worker 1 is killed in the middle of a step. What does the training run do then?
#
# - [ ] `error` It ends with an error.
#   With an all-reduce it would, because an all-reduce needs all workers.
#   Here no worker waits for another.
# - [ ] `waits` It waits until worker 1 is back.
#   A step doesn't belong to a worker. Any other worker can run it.
# - [ ] `one lost` It goes on with worker 0, and epoch 3 has four updates.
#   The coordinator never got a result of the step that worker 1 began, so another worker runs the step again.
# - [x] `all done` It goes on with worker 0, and epoch 3 has five updates.
#   The connection to worker 1 breaks, so the coordinator gives its step to the other worker. No update is missing.

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
# Worker 1 began one step and never finished it. Worker 0 finished all five, including the one that worker 1 had begun. So losing a worker costs the time of one step, but no update.
#
# On rare occasions, a step counts twice. Suppose that a worker dies right after it has pushed its gradient, or part of it. Then the coordinator gets no result for it, and gives it to another worker, which pushes a second time.
# In our run this couldn't happen, because we killed worker 1 before it pushed.

# %% note-twice [markdown]
# What happens when a worker comes back, when it is stuck, or when all are gone?
#
# When we restarted worker 1, the coordinator noticed it without any help, and gave it steps again. But the dataset of such a worker starts again at its first element. Without a shuffle, it gives the same examples again.
#
# A worker that is stuck, but not dead, keeps its step: its connection still stands, so the coordinator doesn't give the step to another. The epoch waits until the worker goes on, or until you kill it.
#
# If *all* workers are gone, the coordinator waits until every one of them is back; one alone isn't enough.

# %% note-evaluator [markdown]
# Who evaluates the model while it is training?
#
# You start one more process for that, an evaluator. It waits for new checkpoints, and evaluates the newest. It needs no `TF_CONFIG`.
# And it must not be listed in the `TF_CONFIG` of the others: if their `cluster` has an `evaluator`, the coordinator silently waits until a `tf.distribute.Server` answers there.
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
# `evaluate` and `last_epoch` are yours. Make `checkpoint` from variables that aren't split: it can restore what was saved from split ones.

# %% keras-text [markdown]
# ## Can Keras use parameter servers?
#
# That depends on the version. We tried it with a model of two dense layers:

# %% keras-table tags=["known"]
from course_lib import measured

support = measured.load("strategies-support").support
measured.table({"parameter_server": support["parameter_server"]})

# %% keras-read [markdown]
# With Keras 3, `fit` ends with an error. With tf_keras, which is Keras 2, `fit` trains asynchronously. A custom loop works with both, and matches one device if only one step runs at once.

# %% note-keras [markdown]
# How was this measured? And can variables of a Keras model be split?
#
# No two asynchronous runs are alike, so none can be compared with one device. For the two columns of the custom loop, we therefore trained synchronously: we scheduled one step, waited with `coordinator.join()`, and only then scheduled the next. That way no gradient is stale, but only one worker is ever busy.
#
# The variables of a Keras 3 model can't be split. With a partitioner, the first step that uses its layers ends with `AttributeError: 'ShardedVariable' object has no attribute 'handle'`.
# To split a variable, make it a `tf.Variable`, as above, or take the layers of tf_keras.
#
# The page *What strategies get right* has many more features: choose `ParameterServerStrategy` there.

# %% takeaways [markdown]
# ## The plain program
#
# [`coordinator.py`](../plain/coordinator.py) joins the five files and `roles.py` into a single program. It can do one thing more: if you run it by hand, without `TF_CONFIG`, it makes a worker and a server in its own process, so you can try it without a cluster.
# To start it on Kubernetes or Slurm, see the folder `deploy/` of this course.
#
# We ran it on the CPU of one machine. We haven't tried it on GPUs, or on several machines.
#
# ## Takeaways
#
# - With an all-reduce, all workers wait for the slowest one in every round. With parameter servers, no worker waits for another, except at the end of an epoch.
# - The price is stale gradients. The staler they are, the smaller the learning rate must be.
# - If you lose a worker, the others run its step and go on, and on rare occasions a step counts twice. If you lose a server or the coordinator, you lose everything since the last checkpoint.
#
# One thing our program can't do: compute with a matrix that is too large for a worker's device. The program of {lesson:one_mesh} can.

# %% score
score("parameter_servers")
