# %% [markdown]
# # When a machine dies
#
# It's three in the morning. Sixteen machines are training your model, and one of them runs out of memory.
# The other fifteen are fine. What do they do now? And how much of the night's work is lost?
#
# In this lesson, you find out by breaking things. You kill a worker. You give one the wrong folder, warn another that its time is nearly up, and wait for one that never comes.
# Each time we ask the same question: *what do the other workers do, and what is lost?*
# At the end, a batch script starts the workers again, so that nobody has to get up at night.
#
# **After this lesson you can**
#
# - save and resume a training run of several workers, so that a failure costs only the steps since the last checkpoint;
# - find out why a cluster hangs without printing anything;
# - let a batch system warn the workers before their time is up, and start them again after a failure.
#
# **Time:** 60 minutes.
# **You need to know:** how several workers train together, and what `TF_CONFIG` says ({lesson:workers}); what belongs to the state of a run ({lesson:a_run}).

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% one-dies [markdown]
# ## A worker is killed
#
# The program is the one from {lesson:workers}. Two workers share each batch of 32 examples, and three batches make an epoch.
# As in that lesson, each worker is a process on this machine, and stands for a machine.
#
# Now the program also saves. At the end of each epoch, it writes a checkpoint into a folder that you name on the command line.
# When it starts, it resumes from the latest checkpoint in that folder.
#
# The next two cells are folded. They make a folder beside this notebook, and write the program into it. You needn't read the program yet: we go through its new lines later, a few at a time.

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
# A restore can get stuck too
faulthandler.dump_traceback_later(args.step_timeout, exit=True)


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
# First we let the program run for three epochs, and leave it alone. A run that fails and resumes should have the same losses, so these are our baseline:

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
# The loss falls from 2.34 to 0.84. Both workers print the same loss, because each computes its share and an all-reduce adds up the two.
# Each worker gets 16 of the 32 examples in a batch, as `mine` says.
# (The report shows two decimals. The program prints nine, and `baseline` keeps them all.)
#
# Now for the failure. In the next run, worker 1 gets SIGKILL after step 4. The operating system uses this signal when memory runs out ({lesson:a_run}).
# With `--pause 0.5`, the program waits half a second after each step, so that the kill falls between two steps.
#
# Predict first. The experiment is in the cell after the card, and takes up to 20 seconds.

# %% predict-kill [markdown]
# Two workers train together under `MultiWorkerMirroredStrategy`. After step 4, worker 1 is killed, and nobody starts it again.
# What does worker 0 do?
#
# - [ ] `continues` It trains on alone, with its half of each batch.
#   It can't. Each step has an all-reduce, and an all-reduce needs a number from every worker.
# - [ ] `waits` It waits for worker 1, in silence.
#   It would if it didn't notice that worker 1 is gone. But the workers keep sending heartbeats, short messages that say "still alive", and a killed process sends none.
# - [x] `UnavailableError` It ends with an error.
#   The workers keep sending heartbeats, short messages that say "still alive". Within about ten seconds, TensorFlow notices that those of worker 1 have stopped. The next all-reduce needs worker 1's part, so it fails, and so do all later ones.

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
# An error is better than silence: you see that the job has ended, and can start it again. Here is what both workers printed:

# %% killed
killed

# %% killed-read [markdown]
# Worker 0 has the error, although nothing is wrong with it. Worker 1 has none, because a process that gets SIGKILL can't write anything.
# So if one of sixteen machines dies, the other fifteen print errors. How do you find the one that died? The log of worker 0 gives the reason for its error. It begins with "Error reported from":

# %% reason
log = cluster.log("worker 0")
start = log.rfind("Error reported from")
for line in log[start:].splitlines()[:3]:
    print(line)

# %% reason-read [markdown]
# The second line names the worker whose heartbeats have stopped. `task:1` is worker 1, so that's the machine to look at. The third line tells you to read its log.
#
# The first line is misleading. It sounds as if worker 1 had reported the error, but worker 1 was dead.
# Worker 0 noticed it, because its process runs TensorFlow's *coordination service*, which receives the heartbeats of all workers.
#
# Sometimes the log gives no reason at all, and says only `Socket closed`. Then compare how the workers ended.
# Those with an `UnavailableError` have only lost another worker. Look for one that ended differently, by a signal or another error.

# %% resumed-text [markdown]
# ## What is lost?
#
# Could worker 0 catch the error, and wait for a new worker 1? No: in its process, every later all-reduce would fail as well.
# So all workers have to end, and all have to be started again. Let's start them with the same folder:

# %% resumed
resumed = run(folder)
resumed

# %% resumed-read [markdown]
# Both workers resume after step 3, where the last checkpoint was written. The picture shows the killed run and the resumed one, with time running to the right:

# %% killed-picture
from lessons.strategies.failures.picture import killed_picture

killed_picture()

# %% killed-picture-read [markdown]
# The first flag is the checkpoint after step 3, at the end of the first epoch. What came after it is lost, so step 4 is done a second time.
# The failure cost us this one step, and the time until somebody started the workers again.
# With a checkpoint every 500 steps, it could cost 500 steps. Without checkpoints, it would cost the whole run.
#
# Is it still the same training run? `compare` holds the losses of both parts against the baseline:

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
# It is: every loss equals that of the baseline in all nine decimals, and step 4 gave the same loss both times.
#
# So the whole state of the run came back. The weights, Adam's slots and the step number were in the checkpoint.
# The position in the data wasn't. The loop computes it from the step number:
#
# ```python
# epoch, at = divmod(int(step), steps_per_epoch)
# left = batches(epoch).skip(at).take(args.steps - int(step))
# ```
#
# After step 3, `divmod(3, 3)` is `(1, 0)`: the run is in epoch 1, counted from 0, and no batch of this epoch is done.
# After step 4 it would be `(1, 1)`, and `skip(1)` would skip the one batch that is done.
# The order of the examples depends only on the epoch, so step 4 gets the same batch as before.
#
# Does it matter when the worker is killed? A test of this course kills one at twenty random times. Each time, the resumed run has the losses of an uninterrupted one.

# %% note-fewer [markdown]
# Do I need as many workers as before?
#
# No. The checkpoint says nothing about the workers, and a batch has 32 examples, however many workers share it.
# One worker, or three, would go on with the same losses up to rounding, just as another mesh did in {lesson:any_mesh}.

# %% who-saves [markdown]
# ## Who saves where?
#
# How does the program save? You know from {lesson:a_run} how a single process saves and resumes.
# With several workers, there are three more questions. Who saves where? Who restores what? And are all at the same step?
#
# Let's begin with the first. Suppose you change nothing, and every worker calls `model.save("model.keras")`.
# Then two processes write the same file at the same time. Often this damages the file, and yet *no save raises an error*. You find out when you try to load it.
#
# Should worker 0 save alone, then? That can hang, because a save may need all workers.
# A Keras metric, for example, is summed over the workers as it is saved. If worker 0 alone calls `save`, it waits for the others forever.
#
# So all workers have to save, and each needs its own folder. Worker 0 saves into the shared folder, from which all will restore.
# The others save into temporary folders, which nobody reads. They save only because worker 0 may need them for an all-reduce.
#
# **All workers save, but only worker 0 saves into the shared folder:**

# %% who-saves-picture
from lessons.strategies.failures.picture import saves_picture

saves_picture()

# %% who-saves-read [markdown]
# In the program, `folder` is the shared folder, and `own_folder` is where this worker saves:
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
# At the end of each epoch, every worker calls `manager.save()`. The manager keeps the last three checkpoints in its folder.

# %% note-chief [markdown]
# What if my cluster has a task called `chief`?
#
# A chief has index 0, and so has the first worker. Both would save into `folder`, so `worker.py` refuses such a cluster with an `assert`.
# Call every task `worker`.

# %% restore-text [markdown]
# ## Who restores what?
#
# In the picture, every worker restores from the shared folder. So all machines must be able to read what worker 0 writes.
# On a cluster, that takes a network file system, a folder that all machines see.
#
# Each worker restores the latest checkpoint that it finds there:
#
# ```python
# latest = tf.train.latest_checkpoint(folder)
# if latest is not None:
#     checkpoint.restore(latest).assert_existing_objects_matched()
# ```
#
# If there is no checkpoint, the run is new. The assertion at the end is the one from {lesson:a_run}: it raises an error if the checkpoint lacks one of our variables.

# %% note-latest [markdown]
# Can I trust `latest_checkpoint`?
#
# After a kill, yes. It reads a small file called `checkpoint`, which TensorFlow writes last. (With variables on a mesh, TensorFlow may write it too early: see {lesson:a_run}.)
#
# But the checkpoint that this file names may be gone, because somebody deleted it, or because the machine lost power before the disk had it.
# Then `latest_checkpoint` returns `None` to all workers, and the run starts over. It raises no error: there is a line in TensorFlow's log, and the line `resumes after step` is missing.
# The function `newest` from {lesson:a_run} is safer: it looks for the checkpoints, and doesn't read that file.

# %% agree-text [markdown]
# ## Are all at the same step?
#
# Suppose one machine has mounted the wrong folder. Its worker finds no checkpoint and starts from step 0, while the other one resumes after step 6.
# TensorFlow doesn't compare what they have restored, so from now on they train two different models.
# You don't see it when you compare their logs: each worker prints the sum of both shares, so both print the same losses.
#
# That's why the program compares the steps before it trains. It has an all-reduce for that:
#
# ```python
# @tf.function
# def sum_over_workers(number):
#     numbers = strategy.run(tf.identity, (number,))
#     return strategy.reduce("SUM", numbers, axis=None)
# ```
#
# `strategy.reduce` adds up what the replicas return. So `strategy.run` first calls `tf.identity` on each replica, which returns the number unchanged.
#
# If all workers are at the same step, so is their average. If not, at least one worker's step differs from it, and that worker raises an error:
#
# ```python
# average = int(sum_over_workers(step.read_value())) / workers
# if int(step) != average:
#     raise ValueError(f"step {int(step)}, on average {average:g}")
# ```
#
# With steps 6 and 0, the average is 3, so both workers raise the error:

# %% agree-picture
from lessons.strategies.failures.picture import agree_picture

agree_picture()

# %% refused-text [markdown]
# Let's try it. Worker 0 gets the folder of the run that we killed and resumed. Its latest checkpoint was written after step 6.
# Worker 1 gets an empty one. (`others` names the workers that run a different command.)

# %% refused
wrong_folder = {"worker 1": [program, tempfile.mkdtemp()]}
command = [program, folder]
with Cluster(command, {"worker": 2}, others=wrong_folder) as cluster:
    refused = cluster.wait()

for worker in ["worker 0", "worker 1"]:
    first_line = refused[worker].message.splitlines()[0]
    print(f"{worker}: {refused[worker].error}: {first_line}")

# %% refused-read [markdown]
# Both workers end before they have trained a single step, and each says at which step it was. Worker 1 is at step 0, so look at the folder of worker 1.
# Nothing is lost but the time to start again.
#
# With more workers, one could be at the average by chance. It raises no error here, but fails in its next all-reduce, because the others have ended.
#
# The program compares step numbers, and nothing else. If two workers restore step 6 of two different runs, it doesn't notice. So give every run its own folder.

# %% resume-text [markdown]
# **Exercise 1.** Now all machines have the right folder, but one of them sees the latest checkpoint a few seconds later than the others.
# The steps differ, so the program refuses to train, and your job ends with an error at three in the morning. It could have gone on from the previous checkpoint, which all of them see.
#
# Write `resume(worker, checkpoint, folder, all_reduce_min)`, which restores the latest checkpoint that *all* workers see, and returns a manager.
# Every worker calls it, with its own number as `worker` and with the same `folder`. You can use two functions:
#
# - `numbers_in(folder)` lists the checkpoints that this worker sees. `[1, 2]` means that it sees `ckpt-1` and `ckpt-2`.
# - `all_reduce_min(number)` waits until every worker has called it with a number. Then it returns the smallest of these numbers to all workers.
#
# In the picture, worker 1 doesn't see `ckpt-2` yet:

# %% late-picture
from lessons.strategies.failures.picture import late_picture

late_picture()

# %% resume-rules [markdown]
# Keep to these rules:
#
# 1. Checkpoints appear in the order in which they were written. So a worker that sees `ckpt-2` also sees `ckpt-1`, unless the manager has deleted it.
# 2. If no worker sees a checkpoint, the run is new. Then restore nothing.
# 3. If some workers see a checkpoint and others see none, somebody probably has the wrong folder. Starting from step 0 would throw the run away. So each worker that sees a checkpoint raises a `ValueError`. The others then fail in their next all-reduce.
# 4. Return the `tf.train.CheckpointManager` with which this worker will save. Remember who saves where.

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
# A worker that sees no checkpoint calls `all_reduce_min` with 0. If another worker passed 2 and gets back 0, it knows that somebody sees nothing, and raises the error.

# %% late-text [markdown]
# Does your function keep the job alive? `with_resume` puts `resume` into a copy of the program, in place of the lines that created the manager and restored. (If your function isn't right yet, it takes ours.)

# %% resuming
from lessons.strategies.failures.resuming import with_resume

resuming = programs / "resuming.py"
written = resuming.write_text(with_resume(program, resume))

# %% late-folder-text [markdown]
# Each worker gets a copy of the folder. In the copy for worker 1, we delete `ckpt-2`, the checkpoint after step 6:

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
# Both workers resume after step 3, from the latest checkpoint that worker 1 sees. They do steps 4 to 6 again, with the same losses.
# Three steps are lost, and the job goes on.

# %% warned-text [markdown]
# ## A worker gets SIGTERM
#
# So far, worker 1 was killed without warning. Often there is one. When a job's time is up, Slurm and Kubernetes first send SIGTERM, and SIGKILL some time later.
# Cloud providers also warn before they take back a *spot machine*, which is cheaper because they may take it back at any time. (This is called *preemption*.) Whether that reaches your process as a SIGTERM depends on the provider.
# The time between the two signals is the **grace period**. In it, the workers have to finish a step or two, and save a checkpoint.
#
# But what if only one machine gets the signal? All workers have to save, and all after the same step. So they have to agree on a step.

# %% predict-warned [markdown]
# Two workers train. Whenever a worker has finished a step, it first looks whether it has got a signal, and then it pauses.
# In the pause after step 2, worker 1 alone gets SIGTERM. When a worker finds the signal, it tells the other one after which step both will save. By that time, the other one may already have begun its next step.
# After which step do they save?
#
# - [ ] `2`
#   Nobody looks for the signal in the pause. Worker 1 finds it when it has finished step 3, and then step 2 is past.
# - [ ] `3`
#   When worker 1 has finished step 3, it knows. But worker 0 may have begun step 4 by then, and can't go back.
# - [x] `4`
#   Worker 1 finds the signal when it has finished step 3. By then worker 0 may have begun step 4, so the end of step 4 is the first that both can still reach.
# - [ ] `6`
#   They have no reason to wait so long: SIGKILL comes at the end of the grace period.

# %% reveal-warned
warned_folder = tempfile.mkdtemp()
command = [program, warned_folder, "--pause", 0.5]
with Cluster(command, {"worker": 2}) as cluster:
    cluster.wait_for("worker 1", "step 2 ")
    cluster.terminate("worker 1")
    warned = cluster.wait()

reveal("failures-warned", max(warned["worker 0"].losses))

# %% warned-why [markdown]
# Here is this run, followed by the one that will go on from it:

# %% warned-picture
from lessons.strategies.failures.picture import warned_picture

warned_picture()

# %% warned-picture-read [markdown]
# The arrow is the message from worker 1 to worker 0: we save after step 4. (The flag after step 3 is the usual checkpoint at the end of an epoch.)
# No step is lost, because the next run goes on with step 5.
#
# TensorFlow's `PreemptionCheckpointHandler` does all this. It catches SIGTERM, which a process under `MultiWorkerMirroredStrategy` would otherwise ignore. You tell it how to save and how to leave:
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
# `resolver` tells it which worker this is. As soon as the handler is made, it also restores the latest checkpoint of the manager that it gets.
# We have restored already, so we give it `empty_manager`, whose folder is empty.
#
# The loop calls the handler after each step:
#
# ```python
# handler.save_checkpoint_if_preempted()
# ```
#
# As long as nobody gets SIGTERM, nothing happens here. After the step that the workers have agreed on, the handler calls `manager.save` and then `leave`, in every worker. We write `leave` ourselves:
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
# A worker that has saved must not leave at once, because the others may still need it for the all-reduces of their own saves. So it waits at a **barrier**, where everybody waits until all have arrived.
# Any all-reduce is a barrier, even one that adds up zeros. For the same reason, the program ends with a barrier.
#
# Then every worker ends with exit status 75. On Unix it is called `EX_TEMPFAIL`: a temporary failure, try again. Both workers ended with it:

# %% warned
warned

# %% note-cloud [markdown]
# Is it the same on Google Cloud?
#
# No. We have not tried it there, but this is what TensorFlow's source code says.
# The handler asks Google's metadata server whether it runs on such a machine. If it does, it doesn't listen for SIGTERM.
# With GPUs, it asks the metadata server again and again whether the machine will be taken away. With CPUs alone it only writes a warning, and the program runs on until SIGKILL.
#
# If you want it to listen for SIGTERM there too, let the question go nowhere: set the environment variable `GCE_METADATA_IP` to `127.0.0.1:9` before the program starts.
# This course does that for all programs that it starts. But Google's own libraries use the variable too, so reading and writing `gs://` may then fail.

# %% note-empty [markdown]
# What else does the handler do?
#
# As soon as it is made, it restores the latest checkpoint from the folder of the manager that it gets.
# If that were `manager`, worker 0 would restore again, from the shared folder, and the others would find nothing in their temporary folders. If your `resume` had chosen an older checkpoint, worker 0 alone would now jump to the latest.
# So the handler gets `empty_manager`, whose folder is empty.
#
# It also adds its own counter to the checkpoints. When the program restores, the handler doesn't exist yet, so nothing reads this counter, and `assert_consumed` ({lesson:own_steps}) would complain.

# %% nothing [markdown]
# ## A worker never comes
#
# Now we start this run again, so that it goes on with step 5. But only one of the two machines comes up. Worker 1 is in `TF_CONFIG`, but never starts: in the next cell it is `absent`.
#
# So that you needn't wait long, `--start-timeout 2` gives worker 0 two seconds to start, and then ends it.
# The cell also lets TensorFlow write its full log, which this course otherwise silences. We'll need it.

# %% predict-hang [markdown]
# `TF_CONFIG` names two workers, but worker 1 never starts. Worker 0 begins with these two lines:
# `strategy = tf.distribute.MultiWorkerMirroredStrategy()`, and then a `print` that says `worker 0 of` and the number of workers. What does it print?
#
# - [ ] `worker 0 of 1` That it is the only worker. Then it trains alone.
#   For that, somebody would have to decide that worker 1 won't come. TensorFlow can't know: the machine may just be slow to start.
# - [ ] `worker 0 of 2` That it is one of two. Then it waits in its first step.
#   The number is in `TF_CONFIG`, so TensorFlow could say it. But the strategy connects the workers while it is being made, so worker 0 doesn't get as far as the second line.
# - [x] `nothing` Nothing, because it waits before that line.
#   The strategy connects the workers while it is being made. So the first line waits until all are there, for up to an hour, and the second line isn't reached.

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
# This failure is easy to miss, because the program says nothing. You start sixteen machines, and half an hour later it still hasn't printed a line. Even Ctrl-C doesn't help, because the call doesn't return to Python.
#
# How did our program get out of it? It sets a timeout around the strategy, as in {lesson:workers}:
#
# ```python
# faulthandler.dump_traceback_later(args.start_timeout, exit=True)
# strategy = tf.distribute.MultiWorkerMirroredStrategy()
# faulthandler.cancel_dump_traceback_later()
# ```
#
# `faulthandler` is a module of Python, and works even while the main thread is stuck in a call. If the strategy isn't there when the time is over, it prints the stack and ends the process. These are the functions in that stack:

# %% stack
def print_stack(log):
    # Lines of a stack end in `line 12 in some_function`
    for line in log.splitlines():
        if ", line " in line:
            print(line.split()[-1])


log = cluster.log("worker 0")
print_stack(log)

# %% stack-read [markdown]
# Read it from the bottom up. Our program, `<module>`, makes the strategy. The strategy initializes itself for several workers, and there it waits for TensorFlow's runtime, in `ensure_initialized`.
# Training hasn't begun, so the fault isn't in the data or in the model. **The workers haven't found each other.**
#
# Who is missing? TensorFlow's log lists the missing workers, in lines that begin with `/job:`. There is one here:

# %% missing
for line in log.splitlines():
    if line.startswith("/job:"):
        print(line)

# %% missing-read [markdown]
# Worker 1 is missing, so you know which machine to look at. Has the program started there? Does `TF_CONFIG` have its address right? Does a firewall block the port?
#
# Only worker 0 writes this list, at log level INFO. If worker 0 itself is missing, you have only the stack.
#
# A worker can also get stuck in the middle of training, for example because a file system doesn't answer. It's alive and sends heartbeats, so there is no error, and the others wait in their all-reduce.
# For this case, the program sets another timeout before it restores, and starts it anew before each step:
#
# ```python
# faulthandler.dump_traceback_later(args.step_timeout, exit=True)
# ```

# %% note-timeouts [markdown]
# How long should the timeouts be, and can I look before they end?
#
# `--start-timeout` must be longer than the time between the first machine's start and the last one's.
#
# `--step-timeout` must be longer than the longest time from one step to the next. That time can contain tracing, a save, or the end of an epoch, where TensorFlow may sleep for a minute before it gives up the data set's iterator.
#
# Both are 300 seconds if you don't set them.
#
# To see the stack earlier, put `faulthandler.register(signal.SIGUSR1)` at the beginning of your program. Then `kill -USR1 PID` makes the process `PID` print its stack and carry on waiting, even here, where Ctrl-C does nothing.

# %% all-there [markdown]
# ### All are there, and still they wait
#
# The same stack can have another cause. Both workers are up, the addresses are right, and still they don't find each other.
# Then look at an environment variable that many companies set on every machine: `http_proxy`.
# gRPC, which carries TensorFlow's messages, obeys it. It sends each message to the proxy instead of to the other worker:

# %% proxy-picture
from lessons.strategies.failures.picture import proxy_picture

proxy_picture()

# %% proxy-text [markdown]
# gRPC does so even for 127.0.0.1, so we can try it on one machine. `behind_a_proxy` makes a cluster of two workers with `http_proxy` set:

# %% proxy
from lessons.strategies.launcher import behind_a_proxy

command = [program, warned_folder, "--start-timeout", 20]
with behind_a_proxy(command) as cluster:
    print(cluster.wait())

# %% proxy-read [markdown]
# Both workers were healthy, and neither program printed what was wrong. After 20 seconds, the timeout ended them.
#
# The second variable in the picture helps: `no_proxy` lists the hosts that are reached directly.
# Set it on every machine, before TensorFlow starts, and write the hosts as `TF_CONFIG` does, for example `export no_proxy=host0,host1`.
# Here, both workers have the address 127.0.0.1:

# %% no-proxy
with behind_a_proxy(command, no_proxy="127.0.0.1") as cluster:
    report = cluster.wait()
print(report)
print()
compare(warned["worker 0"].losses, report["worker 0"].losses)

# %% no-proxy-read [markdown]
# Nothing else has changed, and now the workers find each other. They also finish the run that got SIGTERM: it goes on with step 5, and no step is done twice.
#
# So when nothing happens, ask three questions. Where does the process wait? For whom? And is there a proxy? The page *Troubleshooting* has more causes.

# %% drill-heading [markdown]
# ## A fault drill
#
# Now it's your turn to find out what is wrong. Yesterday, two machines trained together, `host0` and `host1`. `host0` comes first in the list of addresses.
# They saved into a folder that both see. Both logs ended with this line:
#
# ```text
# step 6 loss 1.11 examples 32 mine 16
# ```
#
# Today, somebody has set up both machines again, so that the run goes on to step 9. Each machine has three settings:
# the index in `TF_CONFIG`, `BATCH` in its copy of the program, and the path of the folder with the checkpoints.
#
# Here, your machine plays both. Yesterday's run is the one that we killed and resumed, so its checkpoints are in `folder`. `start_both` makes a fresh copy of them, and starts both machines with these settings:

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
# `host1` ends with an error, and `host0` waits for it in silence. (`start_both` stops `host0` three seconds later. The report says that it was still running.)
#
# **Exercise 2.** Find out what's wrong, and repair it. Each of the three settings is wrong on at least one machine. You'll find them one after another, because each mistake hides the next. One of them raises no error at all.
# All you need is in the logs and in what you know about yesterday. Begin with the error above: which indices do two workers have?
#
# 1. In the next cell, set `repaired` to a dictionary like `machines`, with other values.
# 2. Add the line `start_both(repaired, program, folder)`, run the cell, and read both logs. Each try begins with a fresh copy of the checkpoints, so a wrong one spoils nothing.
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
# With all three settings repaired, yesterday's run goes on. If yours aren't right yet, the cell takes ours:

# %% repaired
from course_lib import yours_or_ours

repaired = yours_or_ours("failures-drill", repaired)
report = start_both(repaired, program, folder)
print(report)
print()
compare(report["host0"].losses)

# %% repaired-read [markdown]
# Steps 7 to 9 have the losses of the baseline. This is how you could find the faults:
#
# - **The index.** Two workers have the indices 0 and 1, and `host0` comes first in the list of addresses.
# - **The folder.** With the right indices, `host1` says `step 6, on average 3`, and `host0` says `step 0, on average 3`. So the checkpoints are in the folder of `host1`, under `/mnt/nfs`.
# - **The batch.** A wrong `BATCH` raises no error. But today's lines have another number of examples than yesterday's `examples 32`.
#
# The first two faults stopped the workers, so they cost little. With the third one alone, the run would have gone on with the wrong batches until somebody read the log.

# %% batch-script-text [markdown]
# ## On a Slurm cluster, who starts the workers again?
#
# In the drill, there were faults to repair. After a kill or a SIGTERM there are none: somebody only has to start all workers again.
# On a cluster, a *batch system* such as Slurm can do that. You give it a script that begins with what you ask for:
#
# ```sh
# #SBATCH --nodes=2
# #SBATCH --time=01:00:00
# #SBATCH --signal=TERM@60
# #SBATCH --requeue
# ```
#
# That's two machines for an hour. About sixty seconds before the hour is over, the workers get SIGTERM. So they save, and end with 75.
# `--requeue` lets the script put the job back into the queue, and Slurm runs it again when its turn comes.
#
# The script mustn't do that after every failure: with a bug in the first step, the job would fail and come back again and again.
# So it puts the job back only if the run has failed, but has saved something new. Its function `latest` prints the file in which TensorFlow names the newest checkpoint. The script calls it before the workers start, keeps the result in `before`, and calls it again when they have ended:
#
# ```sh
# if [[ $status -ne 0 && $(latest) != "$before" ]]; then
#   scontrol requeue "$SLURM_JOB_ID"
# fi
# ```
#
# The next two cells are folded. One writes the whole script, `worker.sbatch`. The other writes `tf_config.py`, which makes `TF_CONFIG` from Slurm's variables on each machine, and then starts `worker.py`.

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

# %% batch-text [markdown]
# There is no Slurm here, so `run_batch` runs the script with stand-ins for its commands. In the first run, worker 1 is killed after step 4.
# The second run is the one that Slurm would start when the job's turn comes again:

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
# In the first run, worker 1 is killed after step 4, and worker 0 ends with an error, as at the beginning of this lesson.
# The exit status is 137, which is 128 + 9: a worker was ended by signal 9, SIGKILL.
# But the bottom lane shows that the checkpoint after step 3 was saved. So the script puts the job back into the queue.
#
# The second run does step 4 again, and finishes. All losses are those of the baseline. One step was lost, and nobody had to get up.
#
# Now let the job's time run out: write `terminate_after="step 1 "` instead of `kill_after="step 4 "`. The status is then 75, and no step is lost.
#
# For your own cluster, put `worker.sbatch`, `tf_config.py` and `worker.py` into a folder that all machines see, and type `sbatch worker.sbatch --steps 200` there.
# We had no cluster, and tried it only with the stand-ins. So begin with a short job, and kill a worker yourself.
# The folder `deploy/` of this course has these files, the same for Kubernetes, and a page on what to watch for.

# %% note-not-back [markdown]
# When does a failed job stay out of the queue?
#
# When it has saved nothing new, or when the script doesn't reach the line `scontrol requeue`. That happens if you cancel the job, or if time runs out during the save.
#
# If a whole machine fails, Slurm puts a job with `--requeue` back by itself, according to its documentation.

# %% table [markdown]
# ## What do the others do, and what is lost?
#
# That was the question of this lesson. Here are the answers:
#
# | what happens to one worker | what do the others do? | what is lost? |
# | :--- | :--- | :--- |
# | it is killed | they end with an error | the steps since the last checkpoint |
# | it gets SIGTERM | all save after the same step, and end with 75 | no step |
# | it never comes, or a proxy gets the messages | they wait for an hour, or until the timeout ends them | no step, but the time that they wait |
# | it gets stuck in a step | they wait in the all-reduce, until the timeout ends them | the steps since the last checkpoint, and the time that they wait |
# | it restores a different step | all end before they train, because they compare their steps | no step; without the comparison they would train different models |
#
# Each time, you also lose the time until the workers are started again. The batch script starts them by itself, if a new checkpoint has been saved.
#
# ## The plain program
#
# [`worker.py`](../plain/worker.py) is the program of this lesson, from its first line to its last.

# %% [markdown]
# ## Takeaways
#
# - When one worker dies, the others end with errors, and what you keep is the last checkpoint. On SIGTERM, save, end with 75, and let the batch system start all workers again.
# - All workers save, but only worker 0 saves into the shared folder. All restore from there, and compare their steps before they train.
# - If nothing happens, one worker is waiting for another. Set a timeout for the start and for every step. The stack then tells you where a worker waits.
#
# So far, every worker has waited for all the others in every step. In {lesson:parameter_servers}, workers train without waiting.

# %% score
score("failures")
