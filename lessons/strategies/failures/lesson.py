# %% [markdown]
# # When a machine dies
#
# It's three in the morning, and one of your sixteen machines has just run out of memory.
# Whether you lose five minutes or the whole night was decided before you started.
# A few lines of your program decide it: the ones that say who saves what, and where.
#
# In this lesson you kill a worker, and see how much is lost.
# Then you take the saving and restoring code apart, one question at a time, and write the hardest part of it yourself.
# You warn a worker that its time is nearly up, and you start a cluster in which one worker never shows up.
# At the end you hand the whole run to a batch system, which restarts it at night for you.
# One question runs through it all: *what do the other workers do, and what is lost?*
#
# **After this lesson you can**
#
# - save and resume a training run of several workers, so that a failure costs you only the steps since the last checkpoint;
# - find out why a cluster hangs when nothing is printed;
# - write a batch script that saves before its time is up, and goes back into the queue.
#
# **Time:** 40 minutes.
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
# Now the program also saves. At the end of each epoch it writes a checkpoint, and when it starts, it resumes from the newest one.
# How it does this is the subject of the lesson, and you'll read it piece by piece.
#
# As before, each process stands in for a machine. The next two cells are folded. They make a folder beside this notebook, and write the whole program into it.
# In the program's last part, from `if step > 0` on, the comment `# new` marks the lines that {lesson:workers} didn't have.

# %% programs tags=["known"]
from pathlib import Path

tf = course_lib.start_tensorflow()

programs = Path("failures_programs")
programs.mkdir(exist_ok=True)
# The cells below overwrite these
for name in ["worker.py", "place.py"]:
    (programs / name).touch()

# %% worker tags=["known"]
# %%writefile failures_programs/worker.py
"""One of several workers; TF_CONFIG says which.

python worker.py [FOLDER] [--steps 6] [--examples 96] [--replicas 2]
"""

import argparse
import faulthandler
import tempfile
import time

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("folder", nargs="?", help="of checkpoints")
parser.add_argument("--steps", type=int, default=6)
parser.add_argument("--examples", type=int, default=96)
parser.add_argument("--replicas", type=int, help="refuse others")
parser.add_argument("--pause", type=float, default=0)
parser.add_argument("--patience", type=int, default=300)
options = parser.parse_args()

faulthandler.dump_traceback_later(options.patience, exit=True)
strategy = tf.distribute.MultiWorkerMirroredStrategy()
faulthandler.cancel_dump_traceback_later()
resolver = strategy.cluster_resolver
worker = resolver.task_id or 0
workers = strategy.num_replicas_in_sync
print(f"worker {worker} of {workers}", flush=True)
if options.replicas and workers != options.replicas:
    raise ValueError(f"{workers} of {options.replicas} replicas")

BATCH = 32
random = np.random.default_rng(0)
y = np.arange(options.examples) % 4
x = random.normal(size=(len(y), 64)) + 4 * np.eye(4, 64)[y]
steps_per_epoch = -(-len(y) // BATCH)  # rounded up

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
    rule = tf.data.Options()
    policy = tf.data.experimental.AutoShardPolicy.DATA
    rule.experimental_distribute.auto_shard_policy = policy
    return dataset.batch(BATCH).with_options(rule)


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


assert resolver.task_type != "chief", "call every task `worker`"
folder = options.folder or tempfile.mkdtemp()
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


newest = tf.train.latest_checkpoint(folder)
if newest is not None:
    checkpoint.restore(newest).assert_existing_objects_matched()


@tf.function
def total(number):
    numbers = strategy.run(tf.identity, (number,))
    return strategy.reduce("SUM", numbers, axis=None)


def barrier():
    total(tf.constant(0.0))


average = int(total(step.read_value())) / workers
if int(step) != average:
    raise ValueError(f"step {int(step)}, on average {average:g}")


def leave():
    print(f"SIGTERM: saved after step {int(step)}", flush=True)
    barrier()  # wait until all have saved
    raise SystemExit(75)


# A new handler restores what its manager's folder holds
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


if step > 0:  # new
    print(f"resumes after step {int(step)}", flush=True)
while step < options.steps:
    epoch, at = divmod(int(step), steps_per_epoch)
    left = batches(epoch).skip(at).take(options.steps - int(step))
    for batch in strategy.experimental_distribute_dataset(left):
        seconds = options.patience  # new
        faulthandler.dump_traceback_later(seconds, exit=True)  # new
        loss, examples, mine = train_step(*batch)
        step.assign_add(1)
        mine = strategy.experimental_local_results(mine)
        counts = f"examples {examples} mine {sum(map(int, mine))}"
        print(f"step {int(step)} loss {loss:.9f} {counts}", flush=True)
        handler.save_checkpoint_if_preempted()  # new
        time.sleep(options.pause)
    manager.save()  # new, at the end of an epoch
barrier()  # new: nobody ends early

# %% undisturbed-text [markdown]
# First comes an uninterrupted run of three epochs. A run that is interrupted and resumed should have the same losses, so these are our baseline:

# %% undisturbed
from lessons.strategies.launcher import Cluster

program = programs / "worker.py"


def run(*arguments):
    with Cluster([program, *arguments], {"worker": 2}) as cluster:
        return cluster.wait()


report = run("--steps", 9)
baseline = report["worker 0"].losses
report

# %% undisturbed-read [markdown]
# The loss falls from 2.34 to 0.84. Both workers print the same loss: each computes its share, and an all-reduce adds the two shares up.
# Each worker handled 16 of the 32 examples in every batch.
#
# Now the failure. This time the program gets a folder for its checkpoints, and takes six steps.
# The option `--pause 0.5` makes it wait half a second after each step, so that we can kill a worker between two steps.
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
#   Each worker keeps sending heartbeats, short messages that say "still alive". Within about ten seconds TensorFlow notices that worker 1's have stopped. Then the next all-reduce, which needs worker 1, fails, and so does every one after it.

# %% reveal-kill
import tempfile

kept = tempfile.mkdtemp()
command = [program, kept, "--pause", 0.5]
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
# Worker 0, whose machine is healthy, has the error. Worker 1, where the trouble was, has none: it was dead before it could write one.
# So the worker that complains is not the one that broke. To find the one that did, look in worker 0's log for the reason that TensorFlow gives:

# %% reason
log = cluster.log("worker 0")
start = log.rfind("Error reported from")  # up to here it's a stack
for line in log[start:].splitlines()[:3]:
    print(line)

# %% reason-read [markdown]
# The machine to look at is `task:1`. The first line says `Error reported from` this task, but a dead worker reports nothing.
# It was worker 0 that noticed: it runs TensorFlow's *coordination service*, which collects the heartbeats of all tasks.
# The second line lists the tasks whose heartbeats have stopped, and the third says what to do: look in the log of that task.
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
resumed = run(kept)
resumed

# %% resumed-read [markdown]
# Both resume after step 3, where the last checkpoint was written. Here is the whole run as a picture, with time running to the right:

# %% killed-picture
from lessons.strategies.failures.picture import killed_picture

killed_picture()

# %% killed-picture-read [markdown]
# The first flag is the checkpoint after step 3, at the end of the first epoch. Both workers resume from it, so step 4 is done twice.
# This one step is what the failure cost. With a checkpoint every 500 steps it could be 500 steps, and without any checkpoint it would be the whole run.
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
# Every loss matches the baseline, and step 4 gave the same loss both times. The reports round to two decimals; the comparison uses all nine that the program prints.
#
# So the whole state of the run came back. The weights, Adam's slots and the step number were in the checkpoint.
# The position in the data wasn't saved. It doesn't have to be, because the loop works it out from the step number:
#
# ```python
# epoch, at = divmod(int(step), steps_per_epoch)
# left = batches(epoch).skip(at).take(options.steps - int(step))
# ```
#
# After step 3, `divmod(3, 3)` is `(1, 0)`: epoch 1, counted from 0, with no batches done yet.
# After step 4 it would be `(1, 1)`, and `skip(1)` would leave out the batch that is done.
# The order of the examples follows from the epoch number. So step 4 gets the same batch again, and no batch is skipped.
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
# What if both workers simply call `model.save("model.keras")`? That is what happens if you run the same program everywhere and don't think about it.
# We tried it eight times. Four of the eight files were damaged, and *not one save raised an error*. You would have found out when you tried to load one.
#
# What went wrong? Two processes wrote the same file at the same time. Our program uses `tf.train.Checkpoint`, which is sturdier.
# But nothing guarantees that two processes can safely write to one folder with it, either.
# From {lesson:a_run} you know how one process saves and resumes. With several workers three questions arise: who saves where, who restores what, and do all agree?
#
# Should worker 0 save alone? No, because saving can itself involve an all-reduce. A Keras metric, for example, is summed over the workers as it is saved.
# If worker 0 called `save` alone, it would wait there for the others forever.
#
# That leaves one way. **All workers save, and only worker 0 saves into the folder that counts:**

# %% who-saves-picture
from lessons.strategies.failures.picture import saves_picture

saves_picture()

# %% who-saves-read [markdown]
# In the program, `folder` is the shared folder, and `own_folder` is the one into which this worker saves:
#
# ```python
# folder = options.folder or tempfile.mkdtemp()
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
# Everybody restores the newest checkpoint, and everybody takes it from the *shared* folder, where worker 0 has saved:
#
# ```python
# newest = tf.train.latest_checkpoint(folder)
# if newest is not None:
#     checkpoint.restore(newest).assert_existing_objects_matched()
# ```
#
# The assertion raises an error if the checkpoint lacks one of our variables.
#
# `latest_checkpoint` reads the file `checkpoint`, of which {lesson:a_run} warned you: with variables on a mesh, TensorFlow may write it too early.
# Without a mesh it is written last, so after a kill it names a checkpoint that is whole.
#
# Every worker reads what worker 0 has written on a different machine. That's why a cluster needs a network file system: one folder that all machines see.

# %% note-latest [markdown]
# What if that file names a checkpoint that isn't there?
#
# Somebody may have deleted the checkpoint, or the machine lost power before the disk had it. Then `latest_checkpoint` returns `None`, to all workers alike.
# They agree on step 0, and the run starts over without an error. The only sign is a line that is missing: `resumes after step`.
# Where a run matters, call `newest` of {lesson:a_run} instead. It falls back to the checkpoint before.

# %% note-consumed [markdown]
# Why not `assert_consumed`?
#
# {Lesson:own_steps} uses it, but here it would raise an error although nothing is wrong.
# A handler, which you'll meet below, adds a counter of its own to each checkpoint, and our `checkpoint` has no variable for this counter.

# %% agree-text [markdown]
# ## Do all agree?
#
# Suppose that one machine has mounted the wrong folder. Its worker finds no checkpoint there and starts from step 0, while the other resumes from step 6.
# TensorFlow doesn't compare what they have restored. Their weights differ from now on, and no log shows it: both print the same loss, the sum of the two shares.
#
# The program therefore compares the steps itself, with an all-reduce. `total` adds up a number over all workers:
#
# ```python
# @tf.function
# def total(number):
#     numbers = strategy.run(tf.identity, (number,))
#     return strategy.reduce("SUM", numbers, axis=None)
# ```
#
# `strategy.reduce` needs values that come from replicas. So we first run a function on each replica that does nothing but return the number: `tf.identity`.
#
# If all have restored the same step, the average is that step:
#
# ```python
# average = int(total(step.read_value())) / workers
# if int(step) != average:
#     raise ValueError(f"step {int(step)}, on average {average:g}")
# ```
#
# With 6 and 0 the average is 3, and no worker is at step 3:

# %% agree-picture
from lessons.strategies.failures.picture import agree_picture

agree_picture()

# %% refused-text [markdown]
# Let's try it. Worker 0 gets the folder of the run that we killed and resumed, which is at step 6. Worker 1 gets an empty one:

# %% refused
elsewhere = {"worker 1": [program, tempfile.mkdtemp()]}
command = [program, kept]
with Cluster(command, {"worker": 2}, others=elsewhere) as cluster:
    cluster.wait()
for worker in ["worker 0", "worker 1"]:
    for line in cluster.log(worker).splitlines():
        if line.startswith("ValueError"):
            print(worker, line)

# %% refused-read [markdown]
# Both end before they train, and each error says which step its worker had restored.
#
# With sixteen workers, one of them may happen to equal the average. But unless all agree, at least one doesn't.
# That one ends, and without it everyone else's next all-reduce fails, as you saw above.
#
# The check compares step numbers, and nothing else. If two workers restored step 6 of two *different* runs, it would notice nothing. So give every run a folder of its own.
#
# The all-reduce has a second use. No worker gets past it before every worker has restored,
# so worker 0 can't write a new checkpoint and delete an old one while another worker is still reading it.
# A place where everybody waits for everybody is called a **barrier**. Any all-reduce is one, even if nobody needs the sum:
#
# ```python
# def barrier():
#     total(tf.constant(0.0))
# ```
#
# The program ends with a barrier, too. Otherwise one worker might end while the other is still in its last step, and that step would fail as if a worker had been killed.

# %% resume-text [markdown]
# **Exercise 1.** Now suppose that all have the right folder, but one machine sees the newest checkpoint a few seconds late. The program refuses to train.
# That is safe, but your job ends with an error at three in the morning. Do better!
# Write `resume(worker, checkpoint, folder, smallest)`. Every worker calls it with its own number, `worker`. The `folder` is the same for all, but they may not all see the same files in it yet.
#
# - It restores the newest checkpoint that *all* workers see. If nobody sees one, the run is new, and it restores nothing.
# - If one worker sees no checkpoint at all and another does, somebody probably has the wrong folder. Starting from step 0 would throw the run away, so a worker that sees a checkpoint raises a `ValueError`. The others then end in their next all-reduce.
# - It returns the `tf.train.CheckpointManager` with which this worker will save. Remember that every worker has to call `save`.
#
# You have two helpers. `numbers_in(folder)` lists the checkpoints that this worker sees: `[2, 3, 4]` stands for `ckpt-2`, `ckpt-3` and `ckpt-4`.
# `smallest(number)` is an all-reduce that takes the minimum: it waits until every worker has called it, and gives each of them the smallest of their numbers.
#
# A manager keeps three checkpoints, and a worker that sees one of them also sees the older ones.

# %% numbers-in
def numbers_in(folder):
    numbers = []
    for file in Path(folder).glob("ckpt-*.index"):
        _, number = file.stem.split("-")  # of "ckpt-3"
        numbers.append(int(number))
    return sorted(numbers)

# %% exercise-resume
def resume(worker, checkpoint, folder, smallest):
    # solution begin
    mine = max(numbers_in(folder), default=0)
    newest = smallest(mine)
    if newest == 0 and mine > 0:
        raise ValueError("another worker sees no checkpoint")
    if newest > 0:
        checkpoint.restore(f"{folder}/ckpt-{newest}")
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
# `smallest` gives all workers the same number: the newest checkpoint of the worker that is furthest behind.
# All of them see this checkpoint, because whoever sees a newer one also sees the older ones.
#
# Every worker calls `smallest`, even one that sees no checkpoint and passes 0. A worker that passes 2 and gets back 0 knows that somebody sees nothing.
# And every worker gets a manager, because everyone has to call `save`.

# %% late-text [markdown]
# Does your function keep the job alive? `with_resume` copies the program, and puts `resume` in the place of the lines that made the manager and restored. (If yours isn't right yet, it takes ours.)

# %% resuming
from lessons.strategies.failures.resuming import with_resume

resuming = programs / "resuming.py"
written = resuming.write_text(with_resume(program, resume))

# %% late-folder-text [markdown]
# Worker 0 sees the whole folder. Worker 1 sees a copy of it in which `ckpt-2`, the checkpoint after step 6, is still missing:

# %% late
import shutil

full, late = tempfile.mkdtemp(), tempfile.mkdtemp()
for copy in [full, late]:
    shutil.copytree(kept, copy, dirs_exist_ok=True)
for file in Path(late).glob("ckpt-2.*"):
    file.unlink()

behind = {"worker 1": [resuming, late, "--steps", 9]}
command = [resuming, full, "--steps", 9]
with Cluster(command, {"worker": 2}, others=behind) as cluster:
    both = cluster.wait()
print(both)
print()
compare(both["worker 0"].losses)

# %% late-read [markdown]
# Both resume after step 3, from the newest checkpoint that worker 1 sees. Steps 4 to 6 are done again, with the same losses. That is the price, and the job goes on.

# %% warned-text [markdown]
# ## SIGTERM comes first
#
# Not every failure comes without notice. When a job's time is up, systems that run jobs, such as Slurm and Kubernetes, first send SIGTERM, and SIGKILL some time later.
# Cloud providers do the same with *spot machines*, which are cheaper because the provider may reclaim them at any time. A reclaimed machine is said to be *preempted*.
# The time between the two signals is the **grace period**. It is long enough to save, if the program listens.
#
# Suppose that only worker 1 gets the signal. All workers have to save, and all after the same step. Which step will that be? This is how they settle it:

# %% warned-picture
from lessons.strategies.failures.picture import warned_picture

warned_picture()

# %% warned-picture-read [markdown]
# Worker 1 gets SIGTERM after step 2, and notices it when step 3 is done. By then worker 0 may already be in step 4,
# so worker 1 proposes to save after step 4 (the arrow). Both do, and both end with exit status 75.
# The flag after step 3 is the usual checkpoint, at the end of an epoch.
#
# In TensorFlow, `PreemptionCheckpointHandler` does all this. It is a signal handler: it catches SIGTERM.
# Without it the signal would do nothing, because under `MultiWorkerMirroredStrategy` a process ignores SIGTERM.
#
# You tell the handler how to save and how to leave. It also wants a manager, and restores at once whatever is in this manager's folder.
# We have restored already, so we give it a manager with an empty folder:
#
# ```python
# empty_manager = tf.train.CheckpointManager(
#     checkpoint,
#     tempfile.mkdtemp(),
#     max_to_keep=1,
# )
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
# After each step the loop asks the handler whether it is time to save:
#
# ```python
# handler.save_checkpoint_if_preempted()
# ```
#
# If it is, the handler calls `manager.save` and then `leave`, in each of the processes. `leave` is a function of ours:
#
# ```python
# def leave():
#     print(f"SIGTERM: saved after step {int(step)}", flush=True)
#     barrier()
#     raise SystemExit(75)
# ```
#
# The barrier makes it wait until all have saved. On Unix, exit status 75 is called `EX_TEMPFAIL`: a temporary failure, try again. Now let's send SIGTERM to worker 1:

# %% warned
preempted_folder = tempfile.mkdtemp()
command = [program, preempted_folder, "--pause", 0.5]
with Cluster(command, {"worker": 2}) as cluster:
    cluster.wait_for("worker 1", "step 2 ")
    cluster.terminate("worker 1")
    preempted = cluster.wait()
preempted

# %% warned-read [markdown]
# Only worker 1 got the signal, and yet both saved, after the same step. Nothing is lost: a new start goes on with step 5.
# We do this next, and run into trouble.

# %% note-empty [markdown]
# Why doesn't the handler get `manager`?
#
# If we gave it `manager`, worker 0 would restore a second time, from the shared folder, while the others found nothing in their temporary ones.
# And it would happen *after* the workers had agreed on a step. Had your `resume` chosen an older checkpoint, worker 0 would now jump to the newest, alone.
# So the handler gets `empty_manager`, and `save_fn` tells it to save with `manager`.

# %% nothing [markdown]
# ## Nothing happens
#
# So far something always happened: an error, or an exit status. The worst failures are silent.
# You start sixteen machines, and half an hour later the log is still empty.
#
# TensorFlow waits an hour for a worker that doesn't come. Ctrl-C doesn't end the wait, because the call doesn't return to Python.
# The program therefore sets itself a limit, with three lines that you know from {lesson:workers}:
#
# ```python
# faulthandler.dump_traceback_later(options.patience, exit=True)
# strategy = tf.distribute.MultiWorkerMirroredStrategy()
# faulthandler.cancel_dump_traceback_later()
# ```
#
# `faulthandler` is Python's watchdog: it works even while the main thread is stuck in a call.
# If the strategy hasn't been created within `--patience` seconds, the watchdog prints the stack and ends the process.
#
# Let's make this happen. We restart the run that received SIGTERM, but this time worker 1's machine never comes up.
# We also turn on TensorFlow's log in worker 0, which this course otherwise silences. You'll need it in a moment.

# %% hang
# Give up after 2 seconds, instead of the usual 300
impatient = [program, preempted_folder, "--patience", 2]
# Worker 1 runs `python -c pass`, which ends at once
absent = {"worker 1": ["-c", "pass"]}
cluster = Cluster(impatient, {"worker": 2}, others=absent)
verbose = {"TF_CPP_MIN_LOG_LEVEL": "0", "GRPC_VERBOSITY": "INFO"}
cluster.set_variables("worker 0", verbose)
with cluster:
    hung = cluster.wait()
hung

# %% hang-read [markdown]
# Worker 1 ended at once, as it should. Worker 0 printed nothing, not even `worker 0 of 2`. *Timeout* means that the watchdog ended it.
#
# Where did it wait? The stack that `faulthandler` printed tells us. These are its functions, the innermost first:

# %% stack
def print_stack(log):
    # Lines of a stack end in `line 12 in some_function`
    for line in log.splitlines():
        if ", line " in line:
            print(line.split()[-1])


log = cluster.log("worker 0")
print_stack(log)

# %% stack-read [markdown]
# Read it from the bottom up. Our program, `<module>`, creates the strategy. The strategy initializes itself for several workers, and there it waits for TensorFlow's runtime to be ready.
# Training has not even begun, so the data are not to blame: **this process is looking for the others.**
#
# For which of them? TensorFlow's log lists the missing workers, each on a line of its own. It calls them *stragglers*, like the slow devices of {lesson:faster}:

# %% stragglers
for line in log.splitlines():
    if line.startswith("/job:"):
        print(line)

# %% stragglers-read [markdown]
# Task 1 is missing, so you know which machine to look at. Has it started? Is its address in `TF_CONFIG` the right one? Does a firewall close the port?
#
# A worker can also get stuck in the middle of training, for example in a file system that doesn't answer. It is alive, so there is no error, and the others wait in their all-reduce.
# That's why the loop starts the watchdog again before each step:
#
# ```python
# seconds = options.patience
# faulthandler.dump_traceback_later(seconds, exit=True)
# ```

# %% note-list [markdown]
# Why does my log have no such list?
#
# The list appears only in worker 0's log, because everyone reports to worker 0, and only if the log level is INFO.
# If worker 0 itself is missing, no log says so. The stack is always there.

# %% note-patience [markdown]
# How long should `--patience` be?
#
# Longer than the longest gap between two steps. Three things stretch this gap: tracing, in the first step; a save;
# and the end of an epoch, where TensorFlow may sleep for a minute before it gives up the data set's iterator.

# %% note-look [markdown]
# Can I look into a process that waits, without ending it?
#
# Put `faulthandler.register(signal.SIGUSR1)` at the beginning of your program. Then `kill -USR1 PID` makes the process `PID` print its stack and carry on waiting.
# That works even here, where Ctrl-C does nothing.

# %% all-there [markdown]
# ## All are there, and still nothing happens
#
# There is another kind of hang, and people lose days to it. Both workers are up, the addresses are right, and still each waits for the other.
# The cause is an environment variable that many companies set on every machine: `http_proxy`.
#
# Now worker 1's machine has come up, and we start the same run once more. `behind_a_proxy` makes a cluster with this variable set on both machines:

# %% proxy
from lessons.strategies.launcher import behind_a_proxy

with behind_a_proxy(impatient) as cluster:
    proxied = cluster.wait()
print(proxied)
print()
print_stack(cluster.log("worker 1"))

# %% proxy-read [markdown]
# Both workers are healthy, and both gave up. This is the stack of worker 1. It waits where worker 0 waited before, so it is looking for the others.
#
# gRPC, which carries the messages between tasks, obeys `http_proxy`: each message goes to the proxy instead, and never arrives.
# It does so even for the address 127.0.0.1, so our two workers can't find each other although they are on the same machine.
#
# The cure is a second variable. `no_proxy` lists the hosts that are reached without a proxy.
# Set it to the hosts in `TF_CONFIG`, spelled the same way, in every task and before TensorFlow starts.
# On two machines you would write `export no_proxy=host0,host1`. Ours are both on this one, so:

# %% no-proxy
command = [program, preempted_folder]
with behind_a_proxy(command, no_proxy="127.0.0.1") as cluster:
    cured = cluster.wait()
print(cured)
print()
compare(preempted["worker 0"].losses, cured["worker 0"].losses)

# %% no-proxy-read [markdown]
# The two workers found each other, and finished the run that had received SIGTERM. No step was done twice, so a preemption costs nothing but the time to start again.
#
# When nothing happens, ask three things. Where does the process wait? For whom? And is there a proxy? The page *Troubleshooting* has more causes.

# %% batch-script-text [markdown]
# ## Leave it to Slurm
#
# Nobody wants to start sixteen processes by hand, or to restart them at three in the morning. A *batch system* does both.
# For the batch system Slurm you write a script, and submit it with `sbatch`. The script begins with what it asks of Slurm:
#
# ```sh
# #SBATCH --nodes=2
# #SBATCH --time=01:00:00
# #SBATCH --signal=TERM@60
# #SBATCH --requeue
# ```
#
# We want two machines for an hour. Sixty seconds before the hour is over, Slurm sends SIGTERM to the workers, which then save and end with 75. The last line allows the job to go back into the queue.
#
# Next, `srun` starts one process on each machine:
#
# ```sh
# srun --label --wait=30 --kill-on-bad-exit=0 \
#   python place.py python worker.py "$folder" "$@" || status=$?
# ```
#
# `place.py` makes `TF_CONFIG` from Slurm's variables, and then runs the command that follows it.
# When one worker has ended, `--wait=30` gives the others 30 seconds to end too, and `--kill-on-bad-exit=0` keeps Slurm from killing them at once.
# `status` now holds the exit status of the whole run: 0 if all went well.
#
# Should the job run once more? TensorFlow writes the name of the newest checkpoint into the file `checkpoint`. The script reads this file before the run:
#
# ```sh
# before=$(cat "$folder/checkpoint" 2>/dev/null || true)
# ```
#
# After the run it reads the file again, and compares:
#
# ```sh
# after=$(cat "$folder/checkpoint" 2>/dev/null || true)
# if ((status != 0)) && [[ $after != "$before" ]]; then
#   scontrol requeue "$SLURM_JOB_ID"
# fi
# ```
#
# If the file has changed, the job has saved something. So the job is requeued only if it didn't end well *and made progress*, that is, saved a new checkpoint.
# Without the second condition, a job whose bug ends it before its next checkpoint would fail and be requeued over and over, until you noticed.
#
# The next two cells are folded. They write this batch script, `worker.sbatch`, and `place.py` into files.

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
# Jobs that share a machine need ports of their own
export PORT=${PORT:-$((12000 + ${SLURM_JOB_ID:-0} % 5000 * 4))}

# Every new checkpoint changes the file with this name
folder=${CHECKPOINTS:-checkpoints}
before=$(cat "$folder/checkpoint" 2>/dev/null || true)

# When one worker has ended, the others have 30 seconds to end too
status=0
srun --label --wait=30 --kill-on-bad-exit=0 \
  python place.py python worker.py "$folder" "$@" || status=$?

# Once more, if it made progress: else a bug would requeue it for ever
after=$(cat "$folder/checkpoint" 2>/dev/null || true)
if ((status != 0)) && [[ $after != "$before" ]]; then
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
"""
script = programs / "worker.sbatch"
written = script.write_text(batch_script)

# %% place tags=["known"]
# %%writefile failures_programs/place.py
"""Tells a task of Slurm its place, then starts its command.

srun python place.py python worker.py FOLDER
"""

import json
import os
import sys

import tensorflow as tf


def place_in_slurm(jobs=None, port=12345):
    tasks = int(os.environ["SLURM_STEP_NUM_TASKS"])
    resolver = tf.distribute.cluster_resolver.SlurmClusterResolver(
        jobs,
        port_base=port,
        gpus_per_node=tasks,  # one a task: so it looks for none
        gpus_per_task=1,
        auto_set_gpu=False,
    )
    cluster = resolver.cluster_spec().as_dict()
    job, index = resolver.get_task_info()
    task = {"type": job, "index": index}
    return json.dumps({"cluster": cluster, "task": task})


if __name__ == "__main__":
    jobs = json.loads(os.environ.get("JOBS", "null"))
    place = place_in_slurm(jobs, int(os.environ.get("PORT", "12345")))
    os.environ["TF_CONFIG"] = place

    # The same for DTensor, which has variables of its own
    place = json.loads(place)
    task, cluster = place["task"], place["cluster"]
    os.environ["DTENSOR_JOB_NAME"] = task["type"]
    os.environ["DTENSOR_CLIENT_ID"] = str(task["index"])
    os.environ["DTENSOR_JOBS"] = ",".join(cluster[task["type"]])

    os.execvp(sys.argv[1], sys.argv[1:])

# %% stand-in-text [markdown]
# We have no Slurm cluster to test on, so the two scripts in the next cell, also folded, imitate `srun` and `scontrol`. The real ones we haven't tried.
# Our `srun` starts both workers on this machine, and can send a signal when worker 0 has printed certain words: SIGKILL to worker 1, or SIGTERM to both.

# %% stand-in tags=["known"]
srun = r"""#!/usr/bin/env bash
while [[ $1 == --* ]]; do shift; done
export SLURM_STEP_NUM_TASKS=2 SLURM_STEP_TASKS_PER_NODE=2
export SLURM_STEP_NODELIST=localhost SLURMD_NODENAME=localhost
rm -f task0.log task1.log
SLURM_PROCID=0 "$@" >task0.log 2>&1 &
first=$!
SLURM_PROCID=1 "$@" >task1.log 2>&1 &
second=$!

runs() { kill -0 "$1" 2>/dev/null; }

words=${SIGTERM_AFTER:-${SIGKILL_AFTER:-}}
if [[ -n $words ]]; then
  while runs "$first" && ! grep -qs "$words" task0.log; do
    sleep 0.1
  done
fi
if [[ -n ${SIGTERM_AFTER:-} ]]; then
  kill -TERM "$first" "$second"
elif [[ -n ${SIGKILL_AFTER:-} ]]; then
  kill -KILL "$second"
  limit=$((SECONDS + ${WAIT:-30}))
  while runs "$first" && ((SECONDS < limit)); do
    sleep 0.1
  done
  kill -KILL "$first" 2>/dev/null
fi

status=0
wait "$first" || status=$?
wait "$second" || status=$?
sed "s/^/0: /" task0.log
sed "s/^/1: /" task1.log
exit "$status"
"""
scontrol = """#!/usr/bin/env bash
echo "scontrol $*"
"""
for name, text in [("srun", srun), ("scontrol", scontrol)]:
    (programs / name).write_text(text)
    (programs / name).chmod(0o755)

# %% batch-text [markdown]
# Now let the night begin. The job runs twice. In the first run, worker 1 is killed after step 4. The second run is left alone.
# There is no queue here, so we start both runs ourselves:

# %% batch
from lessons.strategies.launcher import run_batch

folder = tempfile.mkdtemp()
first = run_batch(script, folder, kill_after="step 4 ")
second = run_batch(script, folder)
for job in [first, second]:
    print("exit status", job.status, "requeued:", job.requeued)
compare(first.losses, second.losses)

# %% night-picture
from lessons.strategies.failures.picture import night_picture

night_picture()

# %% batch-read [markdown]
# The first run has exit status 137, which is 128 + 9: a worker was killed by signal 9, SIGKILL.
# (Our `srun` gives worker 0 two seconds to end by itself, instead of 30.) There was a new checkpoint, the one after step 3, so the job went back into the queue.
# The second run did step 4 again, finished, and ended with 0. A run that succeeds is not requeued.
# All losses are those of the baseline, and nobody got up.
#
# When a job's time is up, you get 75 instead of 137, and lose no step. Try it: write `terminate_after="step 1 "` instead of `kill_after="step 4 "`.
#
# For your own cluster put `worker.sbatch`, `place.py` and `worker.py` into a folder that all machines see, and type there: `sbatch worker.sbatch --steps 200`.
# The folder `deploy/` of this course has these files, and others for Kubernetes.

# %% note-not-back [markdown]
# Which failed jobs are not requeued?
#
# Two kinds. One has saved nothing new, whether it hit a bug or was killed.
# The other never reaches the line `scontrol requeue`, because you canceled it or because time ran out during the save.
#
# By Slurm's documentation `--requeue` has a second effect: when a whole machine fails, Slurm requeues the job on its own.

# %% note-names [markdown]
# What about the names of the machines?
#
# `place.py` asks TensorFlow's `SlurmClusterResolver`, which sorts machine names alphabetically, so that `n10` comes before `n2`. Slurm numbers its tasks in an order of its own, in which `n2` comes first.
# If the two orders differ, one worker takes another's place. So ask for machines whose numbers all have the same number of digits.

# %% note-kubernetes [markdown]
# And on Kubernetes?
#
# `deploy/kubernetes/worker.yaml` starts the same program as an *Indexed Job*. Every pod has a number and a name that are known beforehand, so `TF_CONFIG` can be written into the manifest.
# Before a pod is taken away it gets SIGTERM, and has 60 seconds to save. A pod that ends with 75, or with an error, is replaced by a new one with the same number.
# An error counts towards `backoffLimit`, and 75 doesn't. When one worker dies, the others end with errors, and these count as well.
#
# The manifests were checked against Kubernetes's schemas. They have not run on a real cluster.

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
# the index in `TF_CONFIG`, `BATCH` in its copy of the program, and the path of the folder of checkpoints. We start both:

# %% drill
from lessons.strategies.failures.checks_drill import start_both

yesterday = kept  # six steps, by the run that we killed and resumed
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
start_both(machines, program, yesterday)

# %% exercise-drill-text [markdown]
# `host1` ends with an error. `host0` waits for it in silence. (`start_both` stops it after three seconds, so the report shows it as running.)
#
# **Exercise 2.** Find out what's wrong, and repair it.
# Each of the three settings is wrong on at least one machine. Each mistake hides the next, and one of them raises no error.
# All you need is in the logs and in what you know about yesterday. For a start, look at the error above: which indices do two workers have?
#
# 1. In the next cell, set `repaired` to a dictionary like `machines`, with other values.
# 2. Add the line `start_both(repaired, program, yesterday)`, run the cell, and read both logs. Each run gets a fresh copy of yesterday's folder, so a wrong try spoils nothing.
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
report = start_both(repaired, program, yesterday)
print(report)
print()
compare(report["host0"].losses)

# %% repaired-read [markdown]
# Steps 7 to 9 have the losses of the baseline, as if nobody had touched the machines.
#
# How could you find the faults?
#
# - The index: two workers have the indices 0 and 1, and `host0` comes first in the list of addresses.
# - The folder: with the right indices, `host1` says `step 6, on average 3`, and `host0` says `step 0, on average 3`. So the checkpoint is in the folder of `host1`, under `/mnt/nfs`.
# - The batch: a wrong `BATCH` raises no error. Only yesterday's `examples 32` gives it away.
#
# ## What do the others do, and what is lost?
#
# | what happens to one worker | what do the others do? | what is lost? |
# | :--- | :--- | :--- |
# | it is killed | they end with an error | the steps since the last checkpoint |
# | it gets SIGTERM | all save after the same step, and end with 75 | nothing but the time to start again |
# | it never comes, or a proxy keeps the messages | they wait for an hour, or until the watchdog ends them | the time that they wait |
# | it gets stuck in a step | they wait in the all-reduce, until the watchdog ends them | that time, and the steps since the last checkpoint |
# | it restores a different step | all end before they train, because they compare their steps | nothing; without the comparison they would train different models |
#
# ## The plain program
#
# [`worker.py`](../plain/worker.py) is the program of this lesson, from its first line to its last.

# %% [markdown]
# ## Takeaways
#
# - When one worker dies, the others end with errors in their logs, and what survives is the checkpoint. On SIGTERM, save, exit with 75, and let the batch system restart the whole job.
# - All workers save, worker 0 alone into the shared folder. All restore from there, and compare their steps before they train.
# - If nothing happens, somebody is waiting for somebody. Set a time limit, for the start and for every step, and let the stack tell you who is waiting where.
#
# So far every worker has waited for all the others, in every step. {Lesson:clients_and_servers} lets workers train without waiting.

# %% score
score("failures")
