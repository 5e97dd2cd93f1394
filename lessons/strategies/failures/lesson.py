# %% [markdown]
# # When a machine dies
#
# It's three in the morning, and one of your sixteen machines has just run out of memory.
# Whether you lose five minutes or the whole night was decided before you started, by some fifty lines about who saves what, and where.
#
# In this lesson you write those lines.
# Then you kill a worker, you warn one that its time is up, you wait for one that never comes, and you hand the whole thing to a batch system that starts it again.
# One question runs through it all: *what do the others do, and what is lost?*
#
# **After this lesson you can**
#
# - save and resume a training run of several workers, so that of its steps a crash costs you only those since the last checkpoint;
# - find out why a cluster hangs when nothing is printed;
# - write a batch script that saves before its time is up, and goes back into the queue.
#
# **Time:** 40 minutes, exercises included.
# **You need to know:** several workers that train together, and `TF_CONFIG` ({lesson:workers}); what belongs to the state of a run ({lesson:a_run}).

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% one-dies [markdown]
# ## One of two dies
#
# We start with the finished program of {lesson:workers}. Two workers share each batch of 32 examples; there are 96 examples, so an epoch has three steps.
# Three options are new. `--pause` makes steps slow enough to kill a worker after the one we choose; `folder` and `--patience` wait for their turn.
# The program doesn't save anything yet.
#
# Each machine is a process here, as before. The next two cells make a folder beside this notebook, and write the program into it.

# %% programs tags=["known"]
from pathlib import Path

tf = course_lib.start_tensorflow()
programs = Path("failures_programs")
programs.mkdir(exist_ok=True)
# The cells below overwrite these
names = ["first", "folders", "restore", "agree", "sigterm", "loop"]
for name in [*names, "place"]:
    (programs / f"{name}.py").touch()

# %% first tags=["known"]
# %%writefile failures_programs/first.py
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


step = tf.Variable(0, dtype=tf.int64)
while step < options.steps:
    epoch, at = divmod(int(step), steps_per_epoch)
    left = batches(epoch).skip(at).take(options.steps - int(step))
    for batch in strategy.experimental_distribute_dataset(left):
        loss, examples, mine = train_step(*batch)
        step.assign_add(1)
        mine = strategy.experimental_local_results(mine)
        counts = f"examples {examples} mine {sum(map(int, mine))}"
        print(f"step {int(step)} loss {loss:.9f} {counts}", flush=True)
        time.sleep(options.pause)

# %% undisturbed-text [markdown]
# First a run that nobody disturbs. We keep its losses: a run that we interrupt and resume should have the same ones.

# %% undisturbed
from lessons.strategies.launcher import Cluster


def run(*command):
    with Cluster(command, {"worker": 2}) as cluster:
        return cluster.wait()


report = run(programs / "first.py")
undisturbed = report["worker 0"].losses
report

# %% undisturbed-read [markdown]
# Both workers print the same loss after each step, because it is a sum over both. `examples` is the size of the batch, and `mine` says how many of its 32 examples a worker has had: 16.
#
# Now the same again. But when both have taken step 4, worker 1 gets SIGKILL.
# That is the signal that Linux sends to a process when memory runs out, and no program can catch it.
# The cell of the answer does it, and takes up to 20 seconds.


# %% kill
def kill_worker_1_after_step_4(*command):
    with Cluster([*command, "--pause", 1], {"worker": 2}) as cluster:
        cluster.wait_for("worker 0", "step 4 ")
        cluster.wait_for("worker 1", "step 4 ")
        cluster.kill("worker 1")
        return cluster.wait(), cluster.log("worker 0")

# %% predict-kill [markdown]
# Two workers train together under `MultiWorkerMirroredStrategy`. After step 4 worker 1 is killed, and nobody starts it again.
# What does worker 0 do?
#
# - [ ] `continues` It trains on alone, with its half of each batch.
#   It can't. Each step has an all-reduce, which needs a number from every worker.
# - [ ] `waits` It waits for worker 1, in silence.
#   It would if the connection just fell silent and nobody asked. But the workers send each other heartbeats.
# - [x] `error` It ends with an error.
#   The all-reduce of step 5 needs worker 1. TensorFlow notices within seconds that the process is gone (if its whole machine froze, after about a minute). Then this all-reduce fails, and every later one too.

# %% reveal-kill
killed, log = kill_worker_1_after_step_4(programs / "first.py")
status = killed["worker 0"].status
if status is None:
    outcome = "waits"
elif status == 0:
    outcome = "continues"
else:
    outcome = "error"
reveal("failures-kill", outcome)

# %% kill-why [markdown]
# That is good news: an error you can act on. Here is what both have printed, and the reason that TensorFlow gives in the log of worker 0:

# %% killed
print(killed)
print()
reason = log.split("aborted by: ")[-1].split(" Check")[0]
print(reason.replace(": ", ":\n"))

# %% killed-read [markdown]
# The machine of worker 0 is healthy, and worker 0 is the one with an error. Worker 1, which caused it, has none: it was killed before it could write one.
# So read the reason, not the traceback: it names `task:1`. (At another moment you may only find `Socket closed`.)
# And when many workers fail, pass over all that ended with `UnavailableError`: they are the victims. Look for the one that ended in another way, by a signal or by an error of its own.
#
# Could worker 0 catch the error and wait for a new worker 1? No. In its process every later all-reduce fails as well.
# So the only way on is to end them all, and start them all again. All four steps are gone.
#
# ## What we want instead
#
# Let both save a checkpoint at the end of each epoch, that is after steps 3 and 6. Then the same accident looks like this:

# %% killed-picture
from lessons.strategies.failures.picture import killed_picture

killed_picture()

# %% killed-picture-read [markdown]
# Time runs to the right. (Step 5, whose all-reduce fails, has no bar.) The price of the accident is one step: step 4 is done twice. With a checkpoint every 500 steps it would be up to 500.
#
# You know from {lesson:a_run} how one process saves a checkpoint. With several workers there are four questions to answer.
# Each answer is short, and gets a file of its own. At the end we join the files into one program.
#
# ## Who saves where?
#
# Left to itself, the program has every worker save into the same folder; it is the same program, after all.
# Then two processes write the same file at the same time.
# We tried that with `model.save("model.keras")`: two workers, eight attempts. Four of the eight files were damaged, and *not one of the saves raised an error*.
# You would have found out when you tried to load one. `tf.train.Checkpoint`, which we use, is less fragile, but makes no promise either.
#
# So should worker 0 save alone? With this model it could. But some variables are summed over all workers when they are saved, such as those of a Keras metric (`metric.variables`).
# If your checkpoint holds one, worker 0 waits inside `save`, for workers that never call it.
#
# So **all workers save, and only worker 0 saves into the folder that counts**:
#
# | | saves into | restores from |
# | --- | --- | --- |
# | worker 0 | the shared folder | the shared folder |
# | every other worker | a folder of its own, which nobody reads | the shared folder |
#
# (The folders that nobody reads are left behind in the machine's temporary folder. Clear it now and then.)

# %% folders
# %%writefile failures_programs/folders.py
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

# %% folders-read [markdown]
# (The first line refuses clusters that have a `chief`. That task has number 0, too, so two would save into `folder`.)
#
# ## Who restores what?
#
# Everybody restores the newest checkpoint, and everybody from the *shared* folder, since only the checkpoints there count.
# If the newest one lacks a variable of ours, the last line raises an error.
# It isn't `assert_consumed` as in {lesson:own_steps}, which would raise one for nothing: a handler that we meet soon adds a count of its own to every checkpoint, and no variable of ours takes it.

# %% restore
# %%writefile failures_programs/restore.py
newest = tf.train.latest_checkpoint(folder)
if newest is not None:
    checkpoint.restore(newest).assert_existing_objects_matched()

# %% restore-read [markdown]
# That is why a cluster needs a network file system: one folder that every machine can see.
# What if one machine has mounted another folder, or sees the newest file a few seconds late?
#
# ## Do all agree?
#
# TensorFlow doesn't compare what the workers have restored. One of them could go on from step 3 and the other from step 0.
# From then on their weights differ, and nothing tells you: both print the same loss, for it is the sum over both.
#
# So we compare. All workers add up their steps, by an all-reduce. If the steps differ, some worker's step isn't the average.
# That worker stops, and when one stops, all stop.


# %% agree
# %%writefile failures_programs/agree.py
@tf.function
def total(number):
    numbers = strategy.run(tf.identity, (number,))
    return strategy.reduce("SUM", numbers, axis=None)


def barrier():
    total(tf.constant(0.0))


average = int(total(step.read_value())) / workers
if int(step) != average:
    raise ValueError(f"step {int(step)}, on average {average:g}")

# %% agree-read [markdown]
# The all-reduce does us a second service. Nobody gets past it before all have restored,
# so worker 0 can't write a new checkpoint, and delete an old one, while another worker still reads.
# Such a place, where everybody waits for everybody, is called a **barrier**. We need two more of them, hence the function.
# (Only the steps are compared. Step 6 of this run and step 6 of another one would pass: give each run a folder of its own.)

# %% resume-text [markdown]
# **Exercise 1.** Our program refuses to train when the workers restore different steps.
# That is safe. But if one machine merely sees the newest checkpoint late, your job ends with an error at three in the morning. Do better:
# write `resume(worker, checkpoint, folder, smallest)`, which every worker calls with its own `worker` and with its own view of the shared `folder`.
#
# - It restores the newest checkpoint that *all* workers see. If there is none, it restores nothing.
# - It returns the `tf.train.CheckpointManager` with which this worker will save. Assume that `checkpoint` holds the variables of a Keras metric.
#
# Checkpoints are called `ckpt-1`, `ckpt-2` and so on; the newest three are kept. `numbers_in(folder)` lists the numbers that a worker sees.
# `smallest(number)` is an all-reduce that takes the minimum: it waits until every worker has called it, and gives each of them the smallest of their numbers.
# You may assume that whoever sees a checkpoint also sees the two before it. (After the exercise our program goes on with `restore.py`.)

# %% numbers-in
import tempfile


def numbers_in(folder):
    numbers = []
    for index in Path(folder).glob("ckpt-*.index"):
        numbers.append(int(index.stem.removeprefix("ckpt-")))
    return numbers

# %% exercise-resume
def resume(worker, checkpoint, folder, smallest):
    # solution begin
    newest = smallest(max(numbers_in(folder), default=0))
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

# %% sigterm-text [markdown]
# ## And what about SIGTERM?
#
# Some ends are announced. When a job's time is up, or when a cheaper machine is taken back (it is *preempted*), Slurm and Kubernetes first send SIGTERM, and SIGKILL some time later.
# In this **grace period** you can save, if the program listens. Ours doesn't:
# a process that has made a `MultiWorkerMirroredStrategy` ignores SIGTERM, unless you handle the signal.
#
# `PreemptionCheckpointHandler` does. If one worker gets the signal, it tells the others, they agree on a step, and after that step all save.
# Then the handler calls our function `leave`, in each of the processes.
#
# There is a trap. When you create the handler, it *restores*: whatever lies in the folder of the manager that you give it.
# With `manager`, worker 0 would load the newest checkpoint at this point and the others nothing, *after* all have agreed. Had your `resume` settled on an older one, that would be undone in worker 0 alone.
# So we give it a manager whose folder is empty, and tell it by `save_fn` to save with ours:


# %% sigterm
# %%writefile failures_programs/sigterm.py
def leave():
    print(f"SIGTERM: saved after step {int(step)}", flush=True)
    barrier()  # wait until all have saved
    raise SystemExit(75)


empty = tf.train.CheckpointManager(
    checkpoint,
    tempfile.mkdtemp(),
    max_to_keep=1,
)
preemption = tf.distribute.experimental
handler = preemption.PreemptionCheckpointHandler(
    resolver,
    empty,  # it restores what is there: nothing
    termination_config=preemption.TerminationConfig(
        save_fn=manager.save,
        exit_fn=leave,
    ),
)

# %% sigterm-read [markdown]
# `leave` ends the process with the exit status 75. Unix calls it `EX_TEMPFAIL`: a temporary failure, try again.
#
# The last piece is the loop. What is new in it is marked:

# %% loop
# %%writefile failures_programs/loop.py
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

# %% loop-read [markdown]
# After each step the handler asks whether a signal has come. All save after each epoch, and after the last step. (What `faulthandler` is for comes later.)
# The barrier at the end lets nobody leave early: a worker that ends while another is still in a step makes that step fail, just as if it had been killed.
#
# Now we take `first.py` up to its loop, and add the five pieces:

# %% joined tags=["known"]
start = (programs / "first.py").read_text()
parts = [start.split("step = tf.Variable")[0].strip()]
for name in ["folders", "restore", "agree", "sigterm", "loop"]:
    parts.append((programs / f"{name}.py").read_text().strip())

program = programs / "worker.py"
program.write_text("\n\n\n".join(parts) + "\n")
print(len(program.read_text().splitlines()), "lines")

# %% joined-read [markdown]
# Some fifty of these lines are new. The whole program is also in [`worker.py`](../plain/worker.py).
#
# ## Kill it again
#
# The same accident, this time with a folder for checkpoints. Then we start both workers once more:

# %% resumed
kept = tempfile.mkdtemp()
killed, log = kill_worker_1_after_step_4(program, kept)
resumed = run(program, kept)
resumed

# %% resumed-read [markdown]
# Both resume after step 3, and step 4 comes a second time, just as in the picture. But is it still the same training run?
# Let's compare the losses of both parts with those of the run that nobody disturbed:


# %% same-losses
def compare(*parts):
    same = True
    for losses in parts:
        print("steps", *losses)
        for step, loss in losses.items():
            if loss != undisturbed[step]:
                same = False
    print("losses as undisturbed:", same)


compare(killed["worker 0"].losses, resumed["worker 0"].losses)

# %% same-losses-read [markdown]
# All losses are the same, step 4 both times, and in all nine decimals that the program prints (the report shows two).
# The whole state of the run came back: the weights, Adam's slots and `step` from the checkpoint;
# the order of the examples, because it follows from the number of the epoch. `skip` leaves out what was done, so no example was lost or seen twice.
#
# Was step 4 a lucky moment? In a test we kill a worker at twenty random moments, some of them in the middle of a save. Each time the run resumes with the undisturbed losses.
#
# ## A warning in time
#
# Now the gentler end. Worker 1 gets SIGTERM after step 2, and worker 0 gets no signal at all. When do they save?
# Worker 1 finds the signal after step 3, and proposes the end of the *next* step, since worker 0 may have begun it already. Worker 0 hears of it, and both save after step 4:

# %% warned-picture
from lessons.strategies.failures.picture import warned_picture

warned_picture()

# %% warned
folder = tempfile.mkdtemp()
command = [program, folder, "--pause", 1]
with Cluster(command, {"worker": 2}) as cluster:
    cluster.wait_for("worker 1", "step 2 ")
    cluster.terminate("worker 1")
    warned = cluster.wait()

for task in warned.tasks:
    print(task.task, "status", task.status, "|", task.lines[-1])
resumed = run(program, folder)
compare(warned["worker 0"].losses, resumed["worker 0"].losses)

# %% warned-read [markdown]
# One machine was warned, and both saved, after the same step. No step was done twice: a warning costs nothing but the time to start again.

# %% note-google [markdown]
# Is it the same on Google Cloud?
#
# Not quite, according to its source. On a machine of Google Cloud the handler asks Google's server whether the machine will be taken away, and doesn't wait for a signal.
# If the machine has no GPUs, it saves nothing. We couldn't try that.

# %% nothing [markdown]
# ## Nothing happens
#
# So far something always happened: an error, or an exit status. The worst nights are those on which nothing does.
# You start sixteen machines, and an hour later the log is still empty.
#
# Let's make that happen. Worker 1 ends before it has even started TensorFlow, as it would on a machine that didn't come up.
# Worker 0 waits for it in `MultiWorkerMirroredStrategy()`.
# TensorFlow would wait for an hour, and Ctrl-C doesn't stop it: the call never gives Python a chance to look.
# That's why the program has these three lines:
#
# ```python
# faulthandler.dump_traceback_later(options.patience, exit=True)
# strategy = tf.distribute.MultiWorkerMirroredStrategy()
# faulthandler.cancel_dump_traceback_later()
# ```
#
# `faulthandler` is a watchdog that doesn't need Python's main thread. If the strategy isn't there after `--patience` seconds, it prints where the process stands, and ends it.
# The default is 300 seconds, we take 8. We also let TensorFlow log everything, which this course otherwise turns off:

# %% hang
impatient = [program, "--patience", 8]
does_not_come_up = {"worker 1": ["-c", "pass"]}
cluster = Cluster(
    impatient,
    {"worker": 2},
    others=does_not_come_up,
)
log_all = {"TF_CPP_MIN_LOG_LEVEL": "0", "GRPC_VERBOSITY": "INFO"}
cluster.set_variables("worker 0", log_all)
with cluster:
    hung = cluster.wait()
hung

# %% hang-read [markdown]
# Not a line from worker 0, not even `worker 0 of 2`. *Timeout* means that the watchdog ended it. (Worker 1 just ended: a process that does nothing stands for the missing machine.) For whom did it wait? Its log knows:

# %% stragglers
log = cluster.log("worker 0")
for line in log.splitlines():
    if "Waiting for" in line or "stragglers" in line:
        print(line.split("] ")[1])
    if line.startswith("/job:"):
        print(line)

# %% stragglers-read [markdown]
# "1/2 tasks", and the straggler is task 1. Now you know which machine to look at: has it started? Is its address in `TF_CONFIG` the right one? Does a firewall close the port?
#
# You won't always have these lines. They need the log level INFO, and only worker 0 writes them, because the others report to it: if worker 0 itself is missing, nobody says so.
# What you always have is the stack that `faulthandler` wrote. These are its functions, the innermost first:


# %% stack
def print_stack(log):
    for line in log.splitlines():
        if ", line " in line:
            print(line.split()[-1])


print_stack(log)

# %% stack-read [markdown]
# Read it from below. Our program, `<module>`, makes the strategy; the strategy initializes itself for several workers, and there it waits for the runtime.
# So the training has not begun, and the data are not to blame: **this process is looking for the others.**
#
# A worker can also get stuck in the middle of the training, in a file system that doesn't answer, say. It is alive, so there is no error, and the others wait in their all-reduce.
# That's why the loop sets the watchdog anew before each step. `--patience` must be longer than your slowest step, with what follows it: the first one, which is traced, one with a save, or the last of an epoch, after which TensorFlow may sleep for a minute before it gives up the data set's iterator.

# %% note-look [markdown]
# Can I look into a process that waits, without ending it?
#
# Put `faulthandler.register(signal.SIGUSR1)` at the beginning of your program. Then `kill -USR1` and the number of the process make it print its stack, and it goes on waiting.
# That works even here, where Ctrl-C does nothing.

# %% all-there [markdown]
# ## All are there, and still nothing happens
#
# One more hang costs people days. Both workers are up, the addresses are right, and still they wait for each other.
# All it takes is one environment variable, which many companies set on every machine: `http_proxy`.

# %% proxy
from lessons.strategies.launcher import behind_a_proxy

with behind_a_proxy(impatient) as cluster:
    proxied = cluster.wait()
print(proxied)
print()
print_stack(cluster.log("worker 1"))

# %% proxy-read [markdown]
# Two healthy workers, and worker 1 stands where worker 0 stood before. `behind_a_proxy` has set `http_proxy` for both.
# gRPC, which carries the messages between tasks, obeys it: each message goes to the proxy, which doesn't pass it on.
# That holds even for the address 127.0.0.1, as you see here, where both workers are on one machine.
#
# The cure: set `no_proxy` to the hosts in `TF_CONFIG`, spelled the same way, in every task and before TensorFlow starts, for example by `export no_proxy=host0,host1`. With both variables set:

# %% no-proxy
command = [program, "--steps", 1]
with behind_a_proxy(command, no_proxy="127.0.0.1") as cluster:
    print(cluster.wait())

# %% slurm-heading [markdown]
# They found each other, and took their step. So when nothing happens, ask three things: who is the straggler, what does the stack say, and is there a proxy? The page *Troubleshooting* has more causes.
#
# ## Leave it to Slurm
#
# Nobody starts sixteen processes by hand, and at three in the morning nobody starts them again. A batch system does.
# For Slurm you write a batch script, and submit it with `sbatch`.
# (We have no cluster with Slurm: what you will see is as far as we could try it.) The complete script is folded here. These are the lines that matter, shortened:
#
# ```sh
# #SBATCH --nodes=2
# #SBATCH --time=01:00:00
# #SBATCH --requeue
# #SBATCH --signal=TERM@60
#
# srun python place.py python worker.py checkpoints || status=$?
#
# if ((status != 0)) && [[ $after != "$before" ]]; then
#   scontrol requeue "$SLURM_JOB_ID"
# fi
# ```

# %% batch-script tags=["known"]
batch_script = r"""#!/usr/bin/env bash
#SBATCH --job-name=worker
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=4
#SBATCH --mem-per-cpu=2G
#SBATCH --time=01:00:00
#SBATCH --requeue
#SBATCH --signal=TERM@60
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

# Once more, if it got on: an error at its start would come for ever
after=$(cat "$folder/checkpoint" 2>/dev/null || true)
if ((status != 0)) && [[ $after != "$before" ]]; then
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
"""
written = (programs / "worker.sbatch").write_text(batch_script)

# %% batch-script-read [markdown]
# - `--signal=TERM@60` makes Slurm send SIGTERM to the workers 60 seconds before the hour is over. They save, and end with 75.
# - `srun` starts one process on each machine. `place.py` (folded, too) makes `TF_CONFIG` from Slurm's variables, and then starts the command that follows.
#   In the complete script, `--kill-on-bad-exit=0` keeps Slurm from killing the others at once when one worker fails, and `--wait=30` gives them 30 seconds to end.
# - `scontrol requeue` puts the job back into the queue, and `--requeue` allows it. When its turn comes, it resumes.
#
# Look at the condition. `before` and `after` are what TensorFlow's file `checkpoint` says of the newest checkpoint. So the job is requeued if it failed *and got on*.
# That covers the warning, and a worker that is killed after a save. A bug that crashes the program before the next checkpoint is not requeued: it would crash, requeue and crash until you noticed.

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
# To try it we need stand-ins for two of Slurm's commands. Our `srun` starts both workers on this machine, and watches what worker 0 prints:
# at the words in `SIGTERM_AFTER` it sends SIGTERM to both, as Slurm does when the time is nearly up, and at those in `SIGKILL_AFTER` it kills worker 1.
# `scontrol` just prints what it was asked for.

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

words=${SIGTERM_AFTER:-${SIGKILL_AFTER:-}}
if [[ -n $words ]]; then
  while kill -0 "$first" && ! grep -qs "$words" task0.log; do
    sleep 0.1
  done
  if [[ -n ${SIGTERM_AFTER:-} ]]; then
    kill -TERM "$first" "$second"
  else
    kill -KILL "$second"
  fi
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
# Now let the night begin. The job runs three times. In its first run worker 1 is killed after step 4, in the second the time runs out soon after it has resumed, and nothing happens to the third.
# We start the second and the third ourselves, in place of Slurm's queue:

# %% batch
from lessons.strategies.launcher import run_batch

folder = tempfile.mkdtemp()
job = {"SLURM_JOB_ID": "17", "CHECKPOINTS": folder}


def submit(**signals):
    script = programs / "worker.sbatch"
    command = [script, "--pause", "0.5"]
    status, lines = run_batch(*command, **job, **signals)
    requeued = "scontrol requeue 17" in lines
    print("exit status", status, "requeued:", requeued)
    losses = {}
    for line in lines:
        if line.startswith("0: step "):
            words = line.split()
            losses[int(words[2])] = float(words[4])
    return losses


first = submit(SIGKILL_AFTER="step 4 ")
second = submit(SIGTERM_AFTER="resumes after")
third = submit()
compare(first, second, third)

# %% batch-read [markdown]
# 137 is 128 + 9, the number of SIGKILL: step 4 was lost, and the job went back into the queue. The second run was warned and ended with 75, so the job went back once more. The third run finished. All losses are the undisturbed ones, and nobody got up.
#
# Which jobs that fail do *not* come back? One that failed before it had saved anything new, be it by a bug or by a kill. And one whose script was ended, too, before it came to `scontrol requeue`: you cancelled it, or the time was up before all had saved.
# (By its documentation `--requeue` has a second effect: when a whole machine fails, Slurm requeues the job on its own.)
#
# For your own cluster put `worker.sbatch`, `place.py` and `worker.py` into a folder that all machines see, and type there: `sbatch worker.sbatch --steps 200`.
# The folder `deploy/` of this course has these files, and others for Kubernetes.

# %% note-names [markdown]
# What about the names of the machines?
#
# TensorFlow's `SlurmClusterResolver`, which `place.py` asks, sorts the names of machines as texts: `n10` comes before `n2`. Slurm numbers its tasks in its own order, by number.
# If the two differ, a worker takes another one's place. So ask for machines whose numbers all have the same number of digits.

# %% note-kubernetes [markdown]
# And on Kubernetes?
#
# `deploy/kubernetes/worker.yaml` starts the same program as an *Indexed Job*: every pod has a number and a name that is known beforehand, so `TF_CONFIG` can stand in the manifest.
# Before a pod is taken away it gets SIGTERM, and has 60 seconds to save. A pod that ends with 75 is replaced by a new one with the same number, and so is one that fails;
# only failures count towards `backoffLimit`, the error of a survivor among them. The manifests were checked with Kubernetes's schemas, and have not run on a real cluster.

# %% drill-heading [markdown]
# ## A fault drill
#
# Yesterday two machines, `host0` and `host1`, trained together, and saved into a folder that both see.
# In the list of addresses `host0` comes first. The last line in both logs was:
#
# ```text
# step 6 loss 1.11 examples 32 mine 16
# ```
#
# Today somebody has set up both machines anew, to train on to step 9. There are three settings on each:
# the index in `TF_CONFIG`, `BATCH` in its copy of the program, and the path of the folder of checkpoints.
#
# **Exercise 2.** It doesn't work. Find out why, and repair it.
# There are three faults, each one hides the next, and not all of them raise an error. Everything that you need is in the logs and in what you know about yesterday.
#
# 1. In the cell of the exercise, set `repaired` to a dictionary like `machines`, with other values.
# 2. Add the line `start_both(repaired, program, yesterday)`, run the cell, and read both logs.
# 3. Repeat that until both resume after step 6, with yesterday's batches.
#
# A machine that waits says nothing. `start_both` ends it soon after the other one has failed; the report then says that it "runs".

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
# With all three repaired, the run goes on as if nothing had happened.
# `host0` comes first in the list, so its index is 0. The log of `host1` tells that the checkpoint lies under `/mnt/nfs`. And yesterday's line says `examples 32`: a wrong `BATCH` is the one fault that raises no error. (If yours isn't right yet, this is our repair.)

# %% repaired
from course_lib import yours_or_ours

repaired = yours_or_ours("failures-drill", repaired)
start_both(repaired, program, yesterday)

# %% [markdown]
# ## Takeaways
#
# - When one worker dies, the others end with errors in their logs; what survives is the checkpoint. On SIGTERM, save and end with 75, and let the batch system start all again.
# - All workers save, worker 0 alone into the shared folder. All restore from there, and compare their steps before they train.
# - When nothing happens, a process waits for another one. Set a limit, at the start and in each step, and read where it waited.

# %% score
score("failures")
