# %% [markdown]
# # When a machine dies
#
# It's three in the morning, and one of your sixteen machines has just run out of memory.
# Whether you lose five minutes or the whole night was decided before you started.
# It comes down to a few lines of your program: the ones that say who saves what, and where.
#
# In this lesson you kill a worker, and see how much is lost.
# Then you take the saving and restoring code apart, and write the hardest part of it yourself.
# You warn a worker that its time is nearly up, you wait for one that never comes, and you repair a cluster in which three things are wrong.
# At the end you hand the whole run to a batch system, so that you can sleep.
# Each time we ask the same question: *what do the other workers do, and what is lost?*
#
# **After this lesson you can**
#
# - save and resume a training run of several workers, so that a failure costs you only the steps since the last checkpoint;
# - find out why a cluster hangs when nothing is printed;
# - write a batch script that saves before its time is up, and puts the job back into the queue.
#
# **Time:** 60 minutes.
# **You need to know:** several workers that train together, and `TF_CONFIG` ({lesson:workers}); what belongs to the state of a run ({lesson:a_run}).

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% one-dies [markdown]
# ## One of two dies
#
# You know the program from {lesson:workers}: two workers share each batch of 32 examples, and 96 examples make an epoch of three steps.
#
# Now the program also saves. At the end of each epoch it writes a checkpoint into a folder that you name, and when it starts, it resumes from the latest one it finds there.
# How it does that is what this lesson is about, so we'll read that part piece by piece.
#
# As in {lesson:workers}, each process stands in for a machine.
# The next two cells are folded: they make a folder beside this notebook, and write the program into it.
# The lines that {lesson:workers} didn't have are marked with the comment "new". The block in the middle, which saves and restores, is new from top to bottom; a single comment marks it.

# %% programs tags=["known"]
import shutil
from pathlib import Path

tf = course_lib.start_tensorflow()

programs = Path("failures_programs")
shutil.rmtree(programs, ignore_errors=True)
programs.mkdir()

# %% worker tags=["known"]
# %%writefile failures_programs/worker.py
"""One of several workers, saving and resuming; TF_CONFIG says which.

python worker.py FOLDER [--steps 6] [--examples 96] [--replicas 2]
"""

import argparse
import faulthandler
import math
import tempfile  # new
import time  # new

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("folder", help="of checkpoints")  # new
parser.add_argument("--steps", type=int, default=6)
parser.add_argument("--examples", type=int, default=96)
parser.add_argument("--replicas", type=int, help="refuse others")
parser.add_argument("--pause", type=float, default=0)  # new
parser.add_argument("--start-timeout", type=int, default=300)  # new
parser.add_argument("--step-timeout", type=int, default=300)  # new
args = parser.parse_args()

faulthandler.dump_traceback_later(args.start_timeout, exit=True)  # new
strategy = tf.distribute.MultiWorkerMirroredStrategy()
faulthandler.cancel_dump_traceback_later()
resolver = strategy.cluster_resolver
worker = resolver.task_id or 0
workers = strategy.num_replicas_in_sync
print(f"worker {worker} of {workers}", flush=True)
if args.replicas and workers != args.replicas:
    raise ValueError(f"{workers} of {args.replicas} replicas")

BATCH = 32
random = np.random.default_rng(0)
y = np.arange(args.examples) % 4
x = random.normal(size=(len(y), 64)) + 4 * np.eye(4, 64)[y]
steps_per_epoch = math.ceil(len(y) / BATCH)

with strategy.scope():
    tf.keras.utils.set_random_seed(0)
    model = tf.keras.Sequential(
        [
            tf.keras.Input((64,)),
            tf.keras.layers.Dense(16, "relu"),
            tf.keras.layers.Dense(4),
        ]
    )
    optimizer = tf.keras.optimizers.Adam(0.01)
    optimizer.build(model.trainable_variables)


def batches(epoch):
    order = np.random.default_rng([0, epoch]).permutation(len(y))
    examples = x[order].astype("float32"), y[order]
    dataset = tf.data.Dataset.from_tensor_slices(examples)
    options = tf.data.Options()
    policy = tf.data.experimental.AutoShardPolicy.DATA
    options.experimental_distribute.auto_shard_policy = policy
    return dataset.batch(BATCH).with_options(options)


def replica_step(x, y):
    context = tf.distribute.get_replica_context()
    examples = context.all_reduce("SUM", tf.shape(y)[0])
    with tf.GradientTape() as tape:
        losses = tf.keras.losses.sparse_categorical_crossentropy(
            y,
            model(x),
            from_logits=True,
        )
        loss = tf.reduce_sum(losses) / tf.cast(examples, "float32")
    weights = model.trainable_variables
    gradients = tape.gradient(loss, weights)
    optimizer.apply_gradients(zip(gradients, weights))
    return loss, tf.shape(y)[0]


@tf.function(reduce_retracing=True)
def train_step(x, y):
    loss, mine = strategy.run(replica_step, (x, y))
    loss = strategy.reduce("SUM", loss, axis=None)
    examples = strategy.reduce("SUM", mine, axis=None)
    return loss, examples, mine


# From here to `while`, all is new
assert resolver.task_type != "chief", "call every task `worker`"
folder = args.folder
own_folder = folder if worker == 0 else tempfile.mkdtemp()
step = tf.Variable(0, dtype=tf.int64)
checkpoint = tf.train.Checkpoint(
    model=model,
    optimizer=optimizer,
    step=step,
)
manager = tf.train.CheckpointManager(
    checkpoint,
    own_folder,
    max_to_keep=3,
)


latest = tf.train.latest_checkpoint(folder)
if latest is not None:
    checkpoint.restore(latest).assert_existing_objects_matched()


@tf.function
def sum_over_workers(number):
    numbers = strategy.run(tf.identity, (number,))
    return strategy.reduce("SUM", numbers, axis=None)


average = int(sum_over_workers(step.read_value())) / workers
if int(step) != average:
    raise ValueError(f"step {int(step)}, on average {average:g}")


def barrier():
    sum_over_workers(tf.constant(0.0))


def leave():
    print(f"SIGTERM: saved after step {int(step)}", flush=True)
    barrier()  # wait until all have saved
    raise SystemExit(75)


# The handler restores what lies in its manager's folder: nothing
empty_manager = tf.train.CheckpointManager(
    checkpoint,
    tempfile.mkdtemp(),
    max_to_keep=1,
)
experimental = tf.distribute.experimental
when_preempted = experimental.TerminationConfig(
    save_fn=manager.save,
    exit_fn=leave,
)
handler = experimental.PreemptionCheckpointHandler(
    resolver,
    empty_manager,
    termination_config=when_preempted,
)


if step > 0:
    print(f"resumes after step {int(step)}", flush=True)
while step < args.steps:
    epoch, at = divmod(int(step), steps_per_epoch)
    left = batches(epoch).skip(at).take(args.steps - int(step))
    for batch in strategy.experimental_distribute_dataset(left):
        # new: ends a step that takes too long
        faulthandler.dump_traceback_later(args.step_timeout, exit=True)
        loss, examples, mine = train_step(*batch)
        step.assign_add(1)
        mine = strategy.experimental_local_results(mine)
        counts = f"examples {examples} mine {sum(map(int, mine))}"
        print(f"step {int(step)} loss {loss:.9f} {counts}", flush=True)
        handler.save_checkpoint_if_preempted()  # new
        time.sleep(args.pause)  # new
    manager.save()  # new: the epoch has ended
barrier()  # new: no worker ends before the others

# %% undisturbed-text [markdown]
# First comes an uninterrupted run of three epochs. If a run is interrupted and resumed, it should have the same losses, so these are our baseline:

# %% undisturbed
import tempfile

from lessons.strategies.launcher import Cluster

program = programs / "worker.py"


def run(*arguments):
    with Cluster([program, *arguments], {"worker": 2}) as cluster:
        return cluster.wait()


report = run(tempfile.mkdtemp(), "--steps", 9)
baseline = report["worker 0"].losses
report

# %% undisturbed-read [markdown]
# The loss falls from 2.34 to 0.84. (The program prints nine decimals. The report shows two, but it keeps all nine.)
# Both workers print the same loss, because each computes its share of it and an all-reduce adds the two.
# Each worker handled 16 of the 32 examples in every batch: that is what `mine` counts.
#
# Now the failure. The program takes six steps, and waits half a second after each (`--pause 0.5`), so that we can kill a worker between two steps.
# When both workers have taken step 4, worker 1 gets SIGKILL, as if its machine had run out of memory ({lesson:a_run}).
#
# Make your prediction first. The cell after it runs the experiment, which takes up to 20 seconds.

# %% predict-kill [markdown]
# Two workers train together under `MultiWorkerMirroredStrategy`. After step 4 worker 1 is killed, and nobody starts it again.
# What does worker 0 do?
#
# - [ ] `continues` It trains on alone, with its half of each batch.
#   It can't. Each step has an all-reduce, which needs a number from every worker.
# - [ ] `waits` It waits for worker 1, in silence.
#   It would, if it never noticed. But each worker keeps sending heartbeats, short messages that say "still alive", and a killed process sends none.
# - [x] `UnavailableError` It ends with an error.
#   Each worker keeps sending heartbeats, short messages that say "still alive". Within about ten seconds TensorFlow notices that worker 1's have stopped. An all-reduce needs worker 1's part, so the next one fails, and so does every one after it.

# %% reveal-kill
folder = tempfile.mkdtemp()
command = [program, folder, "--pause", 0.5]
with Cluster(command, {"worker": 2}) as cluster:
    cluster.wait_for("worker 0", "step 4 ")
    cluster.wait_for("worker 1", "step 4 ")
    cluster.kill("worker 1")
    killed = cluster.wait()

reveal("failures-kill", killed["worker 0"].error)

# %% kill-why [markdown]
# An error is good news, because you can act on it. Here is what both workers printed:

# %% killed
killed

# %% killed-read [markdown]
# Worker 0, whose machine is healthy, has the error. Worker 1, where the trouble started, has none: it died before it could write anything.
# So the worker that complains is not the one that broke. To find the one that did break, look in worker 0's log, where TensorFlow gives the reason:

# %% reason
log = cluster.log("worker 0")
start = log.rfind("Error reported from")
for line in log[start:].splitlines()[:3]:
    print(line)

# %% reason-read [markdown]
# The second line names the task that stopped sending heartbeats: `task:1`, which is worker 1. That's the machine to look at, and the third line says where: in its log.
#
# The first line is misleading. It sounds as if worker 1 had reported the error, but a dead worker reports nothing.
# It was worker 0 that noticed: that is where TensorFlow runs its *coordination service*, which collects every worker's heartbeats.
#
# When many workers fail at once, skip every one that ended with `UnavailableError`. Those are the bystanders.
# Look for the worker that ended differently, by a signal or by an error of its own.

# %% note-socket [markdown]
# My log says only "Socket closed". Where is the reason?
#
# Sometimes there isn't one: if the connection breaks at the wrong moment, "Socket closed" is all you get.
# Then compare how the workers ended, as above.

# %% resumed-text [markdown]
# ## What is lost?
#
# Could worker 0 catch the error, and wait for a new worker 1? No, because every later all-reduce in its process would fail as well.
# We have to end all workers, and start them all again. Let's do that, with the same folder:

# %% resumed
resumed = run(folder)
resumed

# %% resumed-read [markdown]
# Both resume after step 3, where the last checkpoint was written. Here is the whole run as a picture, with time running to the right:

# %% killed-picture
from lessons.strategies.failures.picture import killed_picture

killed_picture()

# %% killed-picture-read [markdown]
# The first flag is the checkpoint after step 3, at the end of the first epoch. Both workers resume from it, so step 4 is done twice.
# The failure cost us this one step, and the time until somebody noticed it and started the workers again.
# With a checkpoint every 500 steps it could cost 500 steps, and without any checkpoint it would cost the whole run.
#
# But is it still the same training run? Let's compare the losses of both parts with the baseline:

# %% same-losses
def compare(*parts):
    same = True
    for losses in parts:
        print("steps", *losses)
        for step, loss in losses.items():
            if loss != baseline[step]:
                same = False
    print("same losses as the baseline:", same)


compare(killed["worker 0"].losses, resumed["worker 0"].losses)

# %% same-losses-read [markdown]
# Every loss matches the baseline in all nine decimals, and step 4 gave the same loss both times.
#
# So the whole state of the run came back. The weights, Adam's slots and the step number were in the checkpoint.
# The position in the data was not. It doesn't have to be, because the loop works it out from the step number:
#
# ```python
# epoch, at = divmod(int(step), steps_per_epoch)
# left = batches(epoch).skip(at).take(args.steps - int(step))
# ```
#
# After step 3, `divmod(3, 3)` is `(1, 0)`: epoch 1, counted from 0, with no batches done yet.
# After step 4 it would be `(1, 1)`, and `skip(1)` would skip the batch that has already been used.
# And because the epoch number fixes the order of the examples, step 4 gets exactly the batch it had before, and none is missed.
#
# Were we lucky with step 4? A test of this course kills a worker twenty times at random, sometimes in the middle of a save.
# Each time the resumed run has the losses of the uninterrupted one.

# %% note-fewer [markdown]
# Must there be as many workers as before?
#
# No. The checkpoint says nothing about the workers, and a batch has 32 examples for any number of them.
# One worker, or three, would go on with the same losses up to rounding, as {lesson:any_mesh} did with other meshes.

# %% who-saves [markdown]
# ## Who saves where?
#
# Now for the few lines that decide about your night.
# From {lesson:a_run} you know how one process saves and resumes. With several workers, three questions are new: who saves where, who restores what, and do all agree?
#
# What if both workers simply call `model.save("model.keras")`? That's what happens if you run the same program everywhere and don't think about it.
# Then two processes write to the same file at once. Often the file is damaged, and yet *no save raises an error*. You find out when you try to load it.
#
# So should worker 0 save alone? It can't always, because saving can itself involve an all-reduce.
# A Keras metric, for example, is summed over the workers as it is saved. If worker 0 called `save` alone, it would wait there for the others forever.
#
# Only one way is left. Every worker has to save, but no two of them into the same folder.
# So worker 0 saves into the shared folder, and each of the others into a temporary one, which nobody ever reads. They save at all only because worker 0 may need them for an all-reduce.
#
# **All workers save, and only worker 0 saves into the folder that counts:**

# %% who-saves-picture
from lessons.strategies.failures.picture import saves_picture

saves_picture()

# %% who-saves-read [markdown]
# In the program, `folder` is the shared folder, and `own_folder` is the one into which this worker saves:
#
# ```python
# folder = args.folder
# own_folder = folder if worker == 0 else tempfile.mkdtemp()
# step = tf.Variable(0, dtype=tf.int64)
# checkpoint = tf.train.Checkpoint(
#     model=model,
#     optimizer=optimizer,
#     step=step,
# )
# manager = tf.train.CheckpointManager(
#     checkpoint,
#     own_folder,
#     max_to_keep=3,
# )
# ```
#
# At the end of an epoch, every worker calls `manager.save()`. The manager keeps the last three checkpoints in its folder.

# %% note-chief [markdown]
# What if my cluster has a task called `chief`?
#
# The chief has index 0, and so has the first worker, so both would save into `folder`.
# That's why `worker.py` has an `assert` that refuses such a cluster. Call every task `worker`.

# %% restore-text [markdown]
# ## Who restores what?
#
# In the picture, every arrow marked "restore" comes from the shared folder. So workers on every machine must be able to read what worker 0 writes.
# A cluster therefore needs a network file system: one folder that all machines see.
#
# Each worker restores the latest checkpoint that it finds there:
#
# ```python
# latest = tf.train.latest_checkpoint(folder)
# if latest is not None:
#     checkpoint.restore(latest).assert_existing_objects_matched()
# ```
#
# The last line ends in an assertion: if the checkpoint lacks one of our variables, it raises an error.

# %% note-latest [markdown]
# Can I trust `latest_checkpoint`?
#
# It reads a small file called `checkpoint`. Lesson 6 warned you about that file: with variables on a mesh, TensorFlow may write it too early.
# Here there is no mesh, and the file is written last. So after a kill it names a checkpoint that is complete.
#
# It can still name one that isn't there, because somebody deleted it, or because the machine lost power before the disk had it.
# Then `latest_checkpoint` returns `None` to all workers, and the run starts over without an error. The only sign is a missing line, `resumes after step`.
# Where a run matters, call the function `newest` of {lesson:a_run} instead, which falls back to the checkpoint before.

# %% agree-text [markdown]
# ## Do all agree?
#
# Suppose that one machine has mounted the wrong folder. Its worker finds no checkpoint there and starts from step 0, while the other resumes after step 6.
# TensorFlow doesn't compare what they have restored, so it trains two different models from now on. And no log shows it, because both workers print the same loss, the sum of their shares.
#
# The program therefore compares the steps. For this it needs an all-reduce of its own:
#
# ```python
# @tf.function
# def sum_over_workers(number):
#     numbers = strategy.run(tf.identity, (number,))
#     return strategy.reduce("SUM", numbers, axis=None)
# ```
#
# `strategy.reduce` takes only values that come from replicas. So on each replica we first run `tf.identity`, which returns its argument unchanged.
#
# If all workers have restored the same step, then this step is also their average. If they haven't, at least one worker's step differs from the average, and that worker raises an error:
#
# ```python
# average = int(sum_over_workers(step.read_value())) / workers
# if int(step) != average:
#     raise ValueError(f"step {int(step)}, on average {average:g}")
# ```
#
# With steps 6 and 0 the average is 3, and no worker is at step 3:

# %% agree-picture
from lessons.strategies.failures.picture import agree_picture

agree_picture()

# %% refused-text [markdown]
# Let's try it. Worker 0 gets the folder of the run that we killed and resumed, whose latest checkpoint was written after step 6. Worker 1 gets an empty one:

# %% refused
wrong_folder = {"worker 1": [program, tempfile.mkdtemp()]}
command = [program, folder]
with Cluster(command, {"worker": 2}, others=wrong_folder) as cluster:
    refused = cluster.wait()

for worker in ["worker 0", "worker 1"]:
    first_line = refused[worker].message.splitlines()[0]
    print(f"{worker}: {refused[worker].error}: {first_line}")

# %% refused-read [markdown]
# Both end before they have trained a single step, and each says at which step it was. Worker 1 is at step 0, so look at the folder of worker 1.
#
# What do the other workers do, and what is lost? It is the same with sixteen workers: every worker whose step differs from the average stops, and any that remain fail at their next all-reduce, just as after a kill.
# Nothing is lost but the time to start again.

# %% note-two-runs [markdown]
# Does it notice every mix-up?
#
# No. It compares step numbers, and nothing else. If two workers restore step 6 of two different runs, it sees no difference.
# So give every run a folder of its own.

# %% resume-text [markdown]
# **Exercise 1.** Now suppose that all machines have the right folder, but one of them sees the latest checkpoint a few seconds late.
# The program refuses to train. That's safe, but your job ends with an error at three in the morning. Do better!
#
# Write `resume(worker, checkpoint, folder, all_reduce_min)`, which restores the latest checkpoint that *all* workers see, and returns a manager. Every worker calls it, with its own number as `worker` and with the same `folder`.
# You have two helpers:
#
# - `numbers_in(folder)` lists the checkpoints that this worker sees. `[1, 2]` means that it sees `ckpt-1` and `ckpt-2`.
# - `all_reduce_min(number)` is an all-reduce that takes the minimum. It waits until every worker has called it with a number, and then returns the smallest of these numbers to each of them.
#
# In the picture, worker 1 is late:

# %% late-picture
from lessons.strategies.failures.picture import late_picture

late_picture()

# %% resume-rules [markdown]
# These are the rules:
#
# 1. Checkpoints appear in the order in which they were written. So a worker that sees `ckpt-2` also sees `ckpt-1`, as long as the manager keeps it.
# 2. If no worker sees a checkpoint, the run is new. Then restore nothing.
# 3. If some workers see a checkpoint and others see none at all, somebody probably has the wrong folder. To start from step 0 would throw the run away. So a worker that sees a checkpoint raises a `ValueError`; the others then end in their next all-reduce.
# 4. Return the `tf.train.CheckpointManager` with which this worker will save. Remember who saves, and where.

# %% numbers-in
def numbers_in(folder):
    numbers = []
    for file in Path(folder).glob("ckpt-*.index"):
        _, number = file.stem.split("-")  # of "ckpt-3"
        numbers.append(int(number))
    return sorted(numbers)

# %% exercise-resume
def resume(worker, checkpoint, folder, all_reduce_min):
    # solution begin
    own = max(numbers_in(folder), default=0)
    common = all_reduce_min(own)
    if common == 0 and own > 0:
        raise ValueError("another worker sees no checkpoint")
    if common > 0:
        checkpoint.restore(f"{folder}/ckpt-{common}")
    own_folder = folder if worker == 0 else tempfile.mkdtemp()
    return tf.train.CheckpointManager(
        checkpoint,
        own_folder,
        max_to_keep=3,
    )
    # solution end

# %%
check("failures-resume", resume)

# %% note-resume [markdown]
# Why does our solution work?
#
# `all_reduce_min` returns the same number to all workers: the latest checkpoint of the worker that is furthest behind.
# All workers see this checkpoint, because a worker that sees a later one sees this one, too.
#
# Every worker calls `all_reduce_min`, even one that sees no checkpoint and passes 0. A worker that passes 2 and gets back 0 knows that somebody sees nothing.
# And every worker gets a manager, because every worker has to call `save`.

# %% late-text [markdown]
# Does your function keep the job alive? `with_resume` makes a copy of the program in which `resume` replaces the lines that created the manager and restored. (If yours isn't right yet, it takes ours.)

# %% resuming
from lessons.strategies.failures.resuming import with_resume

resuming = programs / "resuming.py"
written = resuming.write_text(with_resume(program, resume))

# %% late-folder-text [markdown]
# Worker 0 sees the whole folder. Worker 1 sees a copy of it in which `ckpt-2`, the checkpoint after step 6, is still missing:

# %% late
whole, late = tempfile.mkdtemp(), tempfile.mkdtemp()
shutil.copytree(folder, whole, dirs_exist_ok=True)
shutil.copytree(folder, late, dirs_exist_ok=True)
for file in Path(late).glob("ckpt-2.*"):
    file.unlink()

command = [resuming, whole, "--steps", 9]
late_worker = {"worker 1": [resuming, late, "--steps", 9]}
with Cluster(command, {"worker": 2}, others=late_worker) as cluster:
    report = cluster.wait()

for worker in ["worker 0", "worker 1"]:
    print(worker, report[worker].lines[1])
compare(report["worker 0"].losses)

# %% late-read [markdown]
# Both resume after step 3, from the latest checkpoint that worker 1 sees, and they agree. Steps 4 to 6 are done again, with the same losses. These three steps are the price, and the job goes on.

# %% warned-text [markdown]
# ## SIGTERM comes first
#
# So far the worker died without notice. Often you are told. When a job's time is up, systems such as Slurm and Kubernetes first send SIGTERM, and SIGKILL some time later.
# Cloud providers do the same with *spot machines*, which are cheaper because the provider may take them back at any time. The machine is then said to be *preempted*.
# The time between the two signals is the **grace period**. It's usually long enough to save, if the program listens.
#
# Listening is not enough, though, if only one machine gets the signal. Every worker has to save, and every one after the same step. So they have to settle on one.

# %% predict-warned [markdown]
# Two workers train. Worker 1 alone gets SIGTERM, in the pause after step 2. It looks for the signal only at the end of a step, and then tells worker 0 after which step both will save.
# By then, worker 0 may already have begun the next step. After which step do they save?
#
# - [ ] `2`
#   In the pause after step 2 nobody looks for a signal. When worker 1 looks, at the end of step 3, step 2 is past.
# - [ ] `3`
#   At the end of step 3 worker 1 knows. But worker 0 may have begun step 4 by then, and can't go back.
# - [x] `4`
#   Worker 1 finds the signal at the end of step 3. By then worker 0 may have begun step 4, so the end of step 4 is the first that both can still reach.
# - [ ] `6`
#   There is no reason to wait so long: SIGKILL comes at the end of the grace period.

# %% reveal-warned
warned_folder = tempfile.mkdtemp()
command = [program, warned_folder, "--pause", 0.5]
with Cluster(command, {"worker": 2}) as cluster:
    cluster.wait_for("worker 1", "step 2 ")
    cluster.terminate("worker 1")
    warned = cluster.wait()

reveal("failures-warned", max(warned["worker 0"].losses))

# %% warned-why [markdown]
# Here is this run, and the one that will go on from it:

# %% warned-picture
from lessons.strategies.failures.picture import warned_picture

warned_picture()

# %% warned-picture-read [markdown]
# The arrow is the message from worker 1 to worker 0: we save after step 4. The flag after step 3 has nothing to do with it; it's the regular checkpoint at the end of an epoch.
# What is lost? No step at all. The next start goes on with step 5.
#
# In TensorFlow, `PreemptionCheckpointHandler` does all this. It catches SIGTERM, which a process under `MultiWorkerMirroredStrategy` would otherwise ignore.
# You tell it how to save and how to leave:
#
# ```python
# experimental = tf.distribute.experimental
# when_preempted = experimental.TerminationConfig(
#     save_fn=manager.save,
#     exit_fn=leave,
# )
# handler = experimental.PreemptionCheckpointHandler(
#     resolver,
#     empty_manager,
#     termination_config=when_preempted,
# )
# ```
#
# After each step the loop asks whether it is time to save. If it is, the handler calls `manager.save` and then `leave`, in every worker:
#
# ```python
# handler.save_checkpoint_if_preempted()
# ```
#
# How to leave is up to us:
#
# ```python
# def barrier():
#     sum_over_workers(tf.constant(0.0))
#
#
# def leave():
#     print(f"SIGTERM: saved after step {int(step)}", flush=True)
#     barrier()
#     raise SystemExit(75)
# ```
#
# A worker that has saved must not leave before the others have saved, too, or their all-reduces would fail. So it waits for them at a **barrier**: a place that nobody passes until everybody has reached it.
# Any all-reduce is a barrier, even if nobody needs the sum. The program ends with one for the same reason.
#
# On Unix, exit status 75 is called `EX_TEMPFAIL`: a temporary failure, try again. Both workers ended with it:

# %% warned
warned

# %% note-empty [markdown]
# What is `empty_manager`?
#
# The handler wants a manager, and at once restores whatever lies in this manager's folder. We have restored already, so we give it a manager whose folder is empty, and tell it by `save_fn` to save with `manager`.
#
# If we gave it `manager`, worker 0 would restore a second time, from the shared folder, and the others would not, because their temporary folders are empty.
# Had your `resume` chosen an older checkpoint, worker 0 alone would now jump to the latest, *after* the workers had agreed.

# %% note-consumed [markdown]
# Why doesn't the program call `assert_consumed` when it restores?
#
# {Lesson:own_steps} does. But the handler puts a counter of its own into each checkpoint, and our `checkpoint` has no variable for it.
# So `assert_consumed` would complain although nothing is wrong.

# %% nothing [markdown]
# ## One never comes
#
# We start this run again, to go on with step 5. But this time only one machine comes up: in the next cell, worker 1 is in `TF_CONFIG` and never starts.
#
# So that you needn't wait long for the result, `--start-timeout 2` ends worker 0 two seconds after it began to make its strategy.
# We also let TensorFlow write its full log, which this course otherwise silences. You'll need it.

# %% predict-hang [markdown]
# `TF_CONFIG` names two workers, but worker 1 never starts. Worker 0 begins with these two lines:
# `strategy = tf.distribute.MultiWorkerMirroredStrategy()`, and then a `print` that says `worker 0 of` and the number of workers. What does it print?
#
# - [ ] `worker 0 of 1` That it is the only worker. Then it trains alone.
#   That would need somebody to decide that worker 1 won't come. TensorFlow can't know: the machine may just be slow to start.
# - [ ] `worker 0 of 2` That it is one of two. Then it waits in its first step.
#   The number is in `TF_CONFIG`, so TensorFlow could say it. But the strategy connects the workers as it is made, so worker 0 doesn't get as far as the second line.
# - [x] `nothing` Nothing, because it waits before that line.
#   The strategy connects the workers as it is made. So the first line waits until all are there, up to an hour, and the second line isn't reached.

# %% reveal-hang
command = [program, warned_folder, "--start-timeout", 2]
cluster = Cluster(command, {"worker": 2}, absent="worker 1")
full_log = {"TF_CPP_MIN_LOG_LEVEL": "0", "GRPC_VERBOSITY": "INFO"}
cluster.set_variables("worker 0", full_log)
with cluster:
    waiting = cluster.wait()

lines = waiting["worker 0"].lines
reveal("failures-hang", lines[0] if lines else "nothing")

# %% hang-why [markdown]
# That's the worst kind of failure: you start sixteen machines, and half an hour later the log is still empty. Ctrl-C doesn't help, because the call doesn't return to Python.
# How did our program get out of it? With three lines that you know from {lesson:workers}:
#
# ```python
# faulthandler.dump_traceback_later(args.start_timeout, exit=True)
# strategy = tf.distribute.MultiWorkerMirroredStrategy()
# faulthandler.cancel_dump_traceback_later()
# ```
#
# `faulthandler` is Python's watchdog: it works even while the main thread is stuck in a call.
# If the strategy isn't there when the time is over, the watchdog prints the stack and ends the process. These are the functions in that stack:

# %% stack
def print_stack(log):
    # Lines of a stack end in `line 12 in some_function`
    for line in log.splitlines():
        if ", line " in line:
            print(line.split()[-1])


log = cluster.log("worker 0")
print_stack(log)

# %% stack-read [markdown]
# Read it from the bottom up. Our program, `<module>`, makes the strategy. The strategy initializes itself for several workers, and there it waits for TensorFlow's runtime.
# Training has not even begun, so don't look for the fault in the data or the model: **the workers haven't found each other.**
#
# Who is missing? TensorFlow's log lists the missing workers, one per line:

# %% missing
for line in log.splitlines():
    if line.startswith("/job:"):
        print(line)

# %% missing-read [markdown]
# Worker 1 is missing, so you know which machine to look at. Has it started? Is its address in `TF_CONFIG` the right one? Does a firewall close the port?
#
# A worker can also get stuck in the middle of training, for example in a file system that doesn't answer. It's alive and sends heartbeats, so there is no error, and the others wait in their all-reduce.
# That's why the loop sets the watchdog again before each step, this time to `--step-timeout`:
#
# ```python
# faulthandler.dump_traceback_later(args.step_timeout, exit=True)
# ```

# %% note-list [markdown]
# Why does my log have no list of missing workers?
#
# Workers report to worker 0 when they start. So the list is only in worker 0's log, and only if its log level is INFO.
# If worker 0 itself is missing, no log says so. The stack is always there.

# %% note-timeouts [markdown]
# How long should the two timeouts be?
#
# `--start-timeout`: longer than the time between the first machine's start and the last one's.
#
# `--step-timeout`: longer than the longest time from one step to the next. Three things make it long: tracing, in the first step; a save;
# and the end of an epoch, where TensorFlow may sleep for a minute before it gives up the data set's iterator.
#
# Both are 300 seconds unless you say otherwise.

# %% note-look [markdown]
# Can I look into a process that waits, without ending it?
#
# Put `faulthandler.register(signal.SIGUSR1)` at the beginning of your program. Then `kill -USR1 PID` makes the process `PID` print its stack and carry on waiting.
# That works even here, where Ctrl-C does nothing.

# %% all-there [markdown]
# ### All are there, and still they wait
#
# The same stack has a second cause, and it has cost people days. Both workers are up, the addresses are right, and still neither finds the other.
# The culprit is an environment variable that many companies set on every machine: `http_proxy`.
# gRPC, which carries TensorFlow's messages, obeys it, and sends each message to the proxy instead of to the other worker:

# %% proxy-picture
from lessons.strategies.failures.picture import proxy_picture

proxy_picture()

# %% proxy-text [markdown]
# gRPC does so even for the address 127.0.0.1, so we can try it on one machine. `behind_a_proxy` makes a cluster of two workers with `http_proxy` set:

# %% proxy
from lessons.strategies.launcher import behind_a_proxy

command = [program, warned_folder, "--start-timeout", 20]
with behind_a_proxy(command) as cluster:
    print(cluster.wait())

# %% proxy-read [markdown]
# Both workers were healthy, and both gave up after 20 seconds without a word.
#
# The cure is the second variable in the picture. `no_proxy` lists the hosts that are reached directly.
# Set it before TensorFlow starts, on every machine, to the hosts as `TF_CONFIG` spells them, for example `export no_proxy=host0,host1`. Our workers are both on this machine, so:

# %% no-proxy
with behind_a_proxy(command, no_proxy="127.0.0.1") as cluster:
    report = cluster.wait()
print(report)
print()
compare(warned["worker 0"].losses, report["worker 0"].losses)

# %% no-proxy-read [markdown]
# Nothing else has changed, and now they find each other. They also finish the run that had received SIGTERM: it goes on with step 5, and no step was done twice.
#
# So when nothing happens, ask three things. Where does the process wait? For whom? And is there a proxy? The page *Troubleshooting* has more causes.

# %% drill-heading [markdown]
# ## A fault drill
#
# Now it's your turn. Yesterday two machines, `host0` and `host1`, trained together, and saved into a folder that both see.
# `host0` comes first in the list of addresses. This was the last line in both logs:
#
# ```text
# step 6 loss 1.11 examples 32 mine 16
# ```
#
# Today someone has set up both machines again, to continue the run up to step 9. Each machine has three settings:
# the index in `TF_CONFIG`, `BATCH` in its copy of the program, and the path of the folder of checkpoints.
#
# Here, your one machine plays both. Yesterday's run is the one that we killed and resumed. `start_both` gives each machine its settings, and a fresh copy of yesterday's `folder`:

# %% drill
from lessons.strategies.failures.checks_drill import start_both

machines = {
    "host0": {
        "index": 1,
        "BATCH": 48,
        "folder": "/mnt/nas/checkpoints",
    },
    "host1": {
        "index": 2,
        "BATCH": 48,
        "folder": "/mnt/nfs/checkpoints",
    },
}
start_both(machines, program, folder)

# %% exercise-drill-text [markdown]
# `host1` ends with an error, and `host0` waits for it in silence. (`start_both` stops it three seconds later; the report says that it was still running.)
#
# **Exercise 2.** Find out what's wrong, and repair it.
# Each of the three settings is wrong on at least one machine. You'll find them one after another, because each mistake hides the next. One of them raises no error at all.
# All you need is in the logs and in what you know about yesterday. For a start, look at the error above: which indices do two workers have?
#
# 1. In the next cell, set `repaired` to a dictionary like `machines`, with other values.
# 2. Add the line `start_both(repaired, program, folder)`, run the cell, and read both logs. Each try begins with a fresh copy of the folder, so a wrong one spoils nothing.
# 3. Repeat this until both resume after step 6, with yesterday's batches.

# %% exercise-drill
# solution begin
repaired = {
    "host0": {
        "index": 0,
        "BATCH": 32,
        "folder": "/mnt/nfs/checkpoints",
    },
    "host1": {
        "index": 1,
        "BATCH": 32,
        "folder": "/mnt/nfs/checkpoints",
    },
}
# solution end

# %%
check("failures-drill", repaired)

# %% repaired-text [markdown]
# With all three settings repaired, yesterday's run goes on. If yours aren't right yet, these are ours:

# %% repaired
from course_lib import yours_or_ours

repaired = yours_or_ours("failures-drill", repaired)
report = start_both(repaired, program, folder)
print(report)
print()
compare(report["host0"].losses)

# %% repaired-read [markdown]
# Steps 7 to 9 have the losses of the baseline, as if nobody had touched the machines. This is how you could find the faults:
#
# - **The index.** Two workers have the indices 0 and 1, and `host0` comes first in the list of addresses.
# - **The folder.** With the right indices, `host1` says `step 6, on average 3`, and `host0` says `step 0, on average 3`. So the checkpoints are in the folder of `host1`, under `/mnt/nfs`.
# - **The batch.** A wrong `BATCH` raises no error. Only yesterday's `examples 32` gives it away.
#
# Be glad that two of the three faults stopped the workers. The third would have cost you the run: it would have gone on, with other batches than yesterday's, until somebody read the log.

# %% batch-script-text [markdown]
# ## Leave it to Slurm
#
# Now you can repair all of this. But who does it at three in the morning? After a kill, and after a SIGTERM, there is nothing to repair: somebody only has to start all the workers again.
# A *batch system* such as Slurm does this for you. You give it a script that begins with what you want:
#
# ```sh
# #SBATCH --nodes=2
# #SBATCH --time=01:00:00
# #SBATCH --signal=TERM@60
# #SBATCH --requeue
# ```
#
# That's two machines for an hour. Sixty seconds before the hour is over, Slurm sends SIGTERM to the workers, so they save and end with 75. And the script is allowed to put the job back into the queue, to *requeue* it.
#
# When should it do so? Always, if the job fails? Then a bug that ends the job before it has saved anything would be requeued again and again, until you noticed.
# So the script requeues a failed job only if the job has made progress. That's easy to see: each time TensorFlow saves, it writes the name of the latest checkpoint into a file. The script reads this file before the run (`before`) and after it (`latest`):
#
# ```sh
# if [[ $status -ne 0 && $(latest) != "$before" ]]; then
#   scontrol requeue "$SLURM_JOB_ID"
# fi
# ```
#
# The next two cells are folded. They write the whole script, `worker.sbatch`, and the little program `tf_config.py`, which makes `TF_CONFIG` from Slurm's variables on each machine.

# %% batch-script tags=["known"]
batch_script = r"""#!/usr/bin/env bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
#SBATCH --signal=TERM@60
#SBATCH --requeue
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=4
#SBATCH --mem-per-cpu=2G
#SBATCH --job-name=worker
#SBATCH --open-mode=append
#SBATCH --output=worker-%j.log
set -euo pipefail

# srun does not take this over from the lines above
export SRUN_CPUS_PER_TASK=${SLURM_CPUS_PER_TASK:-4}
# Two jobs on one machine need different ports: each job has four
export PORT=${PORT:-$((12000 + ${SLURM_JOB_ID:-0} % 5000 * 4))}

folder=${CHECKPOINTS:-checkpoints}
# TensorFlow writes the latest checkpoint's name into this file
latest() { cat "$folder/checkpoint" 2>/dev/null || true; }
before=$(latest)

# When one worker has ended, the others have 30 seconds to end too
status=0
srun --label --wait=30 --kill-on-bad-exit=0 \
  python tf_config.py python worker.py "$folder" "$@" || status=$?

# Once more, if it failed and has saved something new
if [[ $status -ne 0 && $(latest) != "$before" ]]; then
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
"""
script = programs / "worker.sbatch"
written = script.write_text(batch_script)

# %% tf-config tags=["known"]
# %%writefile failures_programs/tf_config.py
"""Makes TF_CONFIG from Slurm's variables, then runs a command.

srun python tf_config.py python worker.py FOLDER
"""

import json
import os
import sys

import tensorflow as tf


def slurm_config(jobs=None):
    tasks = int(os.environ["SLURM_STEP_NUM_TASKS"])
    resolver = tf.distribute.cluster_resolver.SlurmClusterResolver(
        jobs,
        port_base=int(os.environ.get("PORT", "12345")),
        # Left alone, the resolver counts GPUs, and fails without one
        gpus_per_node=tasks,
        gpus_per_task=1,
        auto_set_gpu=False,
    )
    cluster = resolver.cluster_spec().as_dict()
    job, index = resolver.get_task_info()
    return {"cluster": cluster, "task": {"type": job, "index": index}}


if __name__ == "__main__":
    os.environ["TF_CONFIG"] = json.dumps(slurm_config())
    os.execvp(sys.argv[1], sys.argv[1:])

# %% note-srun [markdown]
# What does the line with `srun` say?
#
# `srun` starts one process on each machine: `tf_config.py`, which in turn runs the command behind it, `python worker.py`. `--label` puts the worker's number before each line.
#
# When one worker dies, the others need some seconds to notice and to write their errors. `--wait=30` gives them 30, and `--kill-on-bad-exit=0` keeps Slurm from killing them at once.
# What `srun` returns, the script keeps in `status`: 0 if all went well.

# %% batch-text [markdown]
# Now let the night begin. There is no Slurm here, so `run_batch` runs the script with stand-ins for `srun` and `scontrol`.
# The job runs twice. In the first run, worker 1 is killed after step 4. The second run is what Slurm would start when the job's turn comes again:

# %% batch
from lessons.strategies.failures.batch import run_batch

night_folder = tempfile.mkdtemp()
first = run_batch(script, night_folder, kill_after="step 4 ")
second = run_batch(script, night_folder)
for job in [first, second]:
    print("exit status", job.status, "requeued:", job.requeued)
compare(first.losses, second.losses)

# %% night-picture
from lessons.strategies.failures.picture import night_picture

night_picture()

# %% batch-read [markdown]
# Follow the picture from left to right. Worker 1 is killed after step 4, and a few seconds later worker 0 ends with an error, as you saw at the beginning.
# The exit status of this run is 137, which is 128 + 9, because a worker was killed by signal 9, SIGKILL. That's a failure.
# But the bottom lane shows progress, too: the run began without a checkpoint, and left the one after step 3 behind. So the script requeues the job.
#
# The second run does step 4 again, finishes, and ends with 0. A run that succeeds isn't requeued.
# All losses are those of the baseline. One step was lost, and nobody got up.
#
# When a job's time is up, you get 75 instead of 137, and lose no step. Try it: write `terminate_after="step 1 "` instead of `kill_after="step 4 "`.
#
# For your own cluster, put `worker.sbatch`, `tf_config.py` and `worker.py` into a folder that all machines see, and type there `sbatch worker.sbatch --steps 200`.
# We had no cluster to try this on, only the stand-ins. So begin with a short job, and kill a worker yourself.
# The folder `deploy/` of this course has these files, the same for Kubernetes, and a page on what to watch for.

# %% note-not-back [markdown]
# Which failed jobs does the script not requeue?
#
# Two kinds. One has saved nothing new, whether it hit a bug or was killed.
# The other never reaches the line `scontrol requeue`, because you canceled it or because time ran out during the save.
#
# The script isn't the only one who can requeue. By Slurm's documentation, a job with `--requeue` is also put back by Slurm when a whole machine fails.

# %% table [markdown]
# ## What do the others do, and what is lost?
#
# That was the question of this lesson. Here are all the answers:
#
# | what happens to one worker | what do the others do? | what is lost? |
# | :--- | :--- | :--- |
# | it is killed | they end with an error | the steps since the last checkpoint |
# | it gets SIGTERM | all save after the same step, and end with 75 | no step |
# | it never comes, or a proxy swallows the messages | they wait for an hour, or until the watchdog ends them | no step, but the time that they wait |
# | it gets stuck in a step | they wait in the all-reduce, until the watchdog ends them | the steps since the last checkpoint, and the time that they wait |
# | it restores a different step | all end before they train, because they compare their steps | no step; without the comparison they would train different models |
#
# Each time, you also lose the time until somebody notices and starts the workers again. The batch script starts them by itself, if a new checkpoint has been saved.
#
# ## The plain program
#
# [`worker.py`](../plain/worker.py) is the program of this lesson, from its first line to its last.

# %% [markdown]
# ## Takeaways
#
# - When one worker dies, the others end with errors, and what survives is the checkpoint. On SIGTERM, save, exit with 75, and let the batch system restart the whole job.
# - All workers save, worker 0 alone into the shared folder. All restore from there, and compare their steps before they train.
# - If nothing happens, somebody is waiting for somebody. Set a timeout, for the start and for every step, and let the stack tell you where a worker waits.
#
# So far every worker has waited for all the others, in every step. {Lesson:parameter_servers} lets workers train without waiting.

# %% score
score("failures")
