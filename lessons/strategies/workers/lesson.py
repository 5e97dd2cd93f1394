# %% [markdown]
# # Several machines, one training run
#
# You start the same program on two machines in the evening.
# In the morning both have finished. Both losses have fallen, and they are even equal.
# You report that two machines trained one model.
#
# The two machines never talked to each other. In the cluster's settings somebody had written `clusters` instead of `cluster`, so each machine trained alone, on all the data. You paid for two machines and got the work of one.
#
# In this lesson you let two processes train together, and keep asking one question: *is this still the training step of a single process?* Half of the answer lies in who gets which example.
#
# **After this lesson you can**
#
# - write a program that several machines run together, and prove that they do;
# - say which worker gets which example, and choose how the data are split;
# - make the step right for any number of examples, not only for those that divide evenly.
#
# **Time:** 50 minutes.
# **You need to know:** replicas and the global batch ({lesson:strategies}), and what a loop of your own divides by ({lesson:custom_training}).

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% folder-text [markdown]
# ## Two processes meet
#
# In `MirroredStrategy`, one process drives all the devices of one machine.
# With several machines there is a process on each of them, called a **worker**, and all workers run *the same program*.
# `MultiWorkerMirroredStrategy` joins them.
#
# You write this program into files here, and start it as two processes on this one machine. TensorFlow sees no difference, because it tells workers apart by their addresses. The folded cell makes a folder for the files:

# %% folder tags=["known"]
from pathlib import Path

tf = course_lib.start_tensorflow()

programs = Path("workers_programs")
programs.mkdir(exist_ok=True)
# The cells below overwrite these
names = ["start", "model", "data", "step", "loop", "workers"]
for name in [*names, "rules", "blocks", "one_file"]:
    (programs / f"{name}.py").touch()

# %% start-text [markdown]
# Here is the beginning of the program. It creates the strategy, and prints its own number and how many workers there are. (Here, each worker is one replica.) Two options say how long to train, and on how many examples:

# %% start
# %%writefile workers_programs/start.py
import argparse
import math

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=6)
parser.add_argument("--examples", type=int, default=96)
args = parser.parse_args()

strategy = tf.distribute.MultiWorkerMirroredStrategy()
resolver = strategy.cluster_resolver
worker = resolver.task_id or 0
workers = strategy.num_replicas_in_sync
print(f"worker {worker} of {workers}", flush=True)

# %% start-read [markdown]
# Nothing in this program says which machine it runs on. So how does a process find out that it is worker 1, and where worker 0 is?
# It reads an environment variable, `TF_CONFIG`, which you set before you start it. The variable holds JSON with two entries:

# %% cluster-picture
from lessons.strategies.workers import picture

picture.cluster_picture()

# %% cluster-picture-read [markdown]
# The program and `cluster` are the same on both machines. One line differs: `task` says which of the addresses this process is.
# Its number, `index`, counts from 0.
#
# On real machines you set the variable on each, or a scheduler does. Here, `Cluster` plays the scheduler.
# It starts one process for each worker, gives each its `TF_CONFIG` with free ports of this machine,
# collects what they print, and makes sure that no process outlives the cell.
# Each run takes a few seconds, most of which TensorFlow needs to start:

# %% meet
from lessons.strategies.launcher import Cluster


def run(workers, program, *arguments):
    command = [programs / program, *arguments]
    with Cluster(command, {"worker": workers}) as cluster:
        return cluster.wait()


run(2, "start.py")

# %% meet-read [markdown]
# The two processes found each other: 0 of 2, and 1 of 2.
#
# The program must make the strategy before it uses anything else of TensorFlow. After a tensor, a model or a dataset it's too late: `RuntimeError: Collective ops must be configured at program startup`. A notebook creates one of these almost at once. So the training here lives in a separate program, not in the cells.

# %% note-terminals [markdown]
# How do I start them by hand?
#
# Open two terminals in the folder of this notebook. In the first one:
#
# ```sh
# export TF_CONFIG='{"cluster": {"worker": ["localhost:4001", "localhost:4002"]},
#   "task": {"type": "worker", "index": 0}}'
# python workers_programs/start.py
# ```
#
# It waits for the other. In the second terminal do the same with `"index": 1`, and both print who they are.
# Don't set `TF_CONFIG` in a notebook: its kernel would wait for the others, and couldn't be interrupted.
#
# The cells of this lesson need Linux or macOS, and were tried on Linux only.

# %% model-text [markdown]
# ## One step on two workers
#
# Now let's train, on a task as small as can be: 96 patterns of 64 random numbers, of four kinds.
# A pattern of kind 0 has 4 added to its first number, kind 1 to its second, and so on. A network with one hidden layer has to tell the kinds apart.
# A global batch has 32 examples, so an epoch has three steps.
#
# Every worker runs these lines, so every worker makes *all* the examples and, in the strategy's scope, its own copy of the model.
# TensorFlow gives all copies the initial weights of worker 0. The seed isn't needed for that: it's there so that we can compare runs.

# %% model
# %%writefile workers_programs/model.py
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

# %% note-fit [markdown]
# Can't I use `fit`?
#
# Not with Keras 3 on two workers: it ends in `ValueError: Attempt to convert a value (PerReplica:{...}) ...`.
# With a single worker it runs, so a trial with one shows nothing. {Lesson:strategies} has the table of what works.

# %% data-text [markdown]
# The pipeline shuffles the examples anew in each epoch. Its seed depends only on the epoch, so all workers get the same order.
# `batch` makes *global* batches, and `AutoShardPolicy.DATA` lets each worker keep its part of every batch.
# (Further down you compare this with the other ways to split them.)

# %% data
# %%writefile workers_programs/data.py
def batches(epoch):
    order = np.random.default_rng([0, epoch]).permutation(len(y))
    examples = x[order].astype("float32"), y[order]
    dataset = tf.data.Dataset.from_tensor_slices(examples)
    options = tf.data.Options()
    policy = tf.data.experimental.AutoShardPolicy.DATA
    options.experimental_distribute.auto_shard_policy = policy
    return dataset.batch(BATCH).with_options(options)

# %% step-text [markdown]
# Now the step. A replica divides the sum of its losses by the size of the global batch, 32.
# The optimizer adds up the gradients over all replicas, on all machines: that's the all-reduce. (`apply_gradients` is the `apply` of {lesson:custom_training}, except that it takes pairs.)
# `reduce` adds up the loss and the number of examples, so that the program can print what went into a step:

# %% step
# %%writefile workers_programs/step.py
def replica_step(x, y):
    with tf.GradientTape() as tape:
        losses = tf.keras.losses.sparse_categorical_crossentropy(
            y,
            model(x),
            from_logits=True,
        )
        loss = tf.reduce_sum(losses) / BATCH
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

# %% loop-text [markdown]
# The loop counts the steps. `divmod` turns that count into the epoch and `at`, the number of batches already done in this epoch. Here `at` is always 0 and `skip` does nothing, but in {lesson:failures} a run is resumed in mid-epoch. `mine` holds the number of examples that this worker alone got:

# %% loop
# %%writefile workers_programs/loop.py
step = tf.Variable(0, dtype=tf.int64)
while step < args.steps:
    epoch, at = divmod(int(step), steps_per_epoch)
    left = batches(epoch).skip(at).take(args.steps - int(step))
    for batch in strategy.experimental_distribute_dataset(left):
        loss, examples, mine = train_step(*batch)
        step.assign_add(1)
        mine = strategy.experimental_local_results(mine)
        counts = f"examples {examples} mine {sum(map(int, mine))}"
        print(f"step {int(step)} loss {loss:.9f} {counts}", flush=True)

# %% first-text [markdown]
# Put the five pieces together, and run them as two workers:

# %% first
text = ""
for piece in ["start", "model", "data", "step", "loop"]:
    text += (programs / f"{piece}.py").read_text() + "\n\n"
(programs / "first.py").write_text(text)

together = run(2, "first.py")
together

# %% first-read [markdown]
# Each worker had 16 examples of each batch, and together they had 32. (The report shows the losses with two decimals.)
#
# Here are the first two steps as a picture. Row 0 is the first example in the shuffled order, and the same color means the same data:

# %% running-picture
picture.running_picture()

# %% running-picture-read [markdown]
# The rows differ from worker to worker, the weights never do. In each step the all-reduce adds up the gradients of both lanes, and both make the same update.
# A worker that gets there early waits for the other.
#
# But is this the step that a single process would take? Start the same program as a cluster of one, which gets all 32 examples, and compare:

# %% equal
from course_lib import about

alone = run(1, "first.py")["worker 0"].losses
first = together["worker 0"].losses
second = together["worker 1"].losses

print("step  worker 0  worker 1  alone")
for step in alone:
    both = f"{first[step]:8.2f}  {second[step]:8.2f}"
    print(f"{step:4}  {both}  {alone[step]:5.2f}")

print("equal on both workers:", first == second)
gap = max(abs(first[step] - alone[step]) for step in alone)
print("largest difference from alone:", about(gap, 0, 1e-6))

# %% equal-read [markdown]
# The two workers print the same loss, because it's the sum over both; the program wrote nine decimals, and all of them agree.
# A process alone adds up the 32 losses in a different order, and rounds a little differently. So with these batches, it is the same step.
#
# ## The mistake that trains
#
# Now look at the table as the person in the opening would, the morning after. Do equal losses prove that the machines worked together? Start both with the misspelled setting. `set_variables` replaces the `TF_CONFIG` of a task:

# %% misspelt
import json


def run_misspelled(program, *arguments):
    cluster = Cluster([programs / program, *arguments], {"worker": 2})
    for index in range(2):
        task = {"type": "worker", "index": index}
        wrong = {"clusters": cluster.addresses, "task": task}
        variables = {"TF_CONFIG": json.dumps(wrong)}
        cluster.set_variables(f"worker {index}", variables)
    with cluster:
        return cluster.wait()


run_misspelled("first.py")

# %% misspelt-read [markdown]
# Compare the losses with the table above. Both machines print the losses of the right run, in every digit that is shown! In the picture you see why:

# %% apart-picture
picture.running_picture(together=False)

# %% apart-picture-read [markdown]
# There is no all-reduce between the lanes. Each process makes the same examples and the same first weights from the same seeds, and trains on all the examples.
# (Without a seed the losses of the two would differ, and both would still fall.)
# Neither is told that anything is missing: without `cluster`, or without any `TF_CONFIG`, the strategy works with one replica.
# The same happens if `cluster` is spelled correctly but each machine lists only its own address.
#
# So the loss proves nothing. Look at two other places. The first line says **of 1**, where it should be *of 2*.
# And of `examples 32`, this process alone had `mine 32`. In the right run, 16 and 16 added up to 32: that's the proof that two took part.
# So let your program print both. Better still, let it refuse to train if the number of replicas isn't the one you expect, as the finished program will.
#
# Most other mistakes in `TF_CONFIG` raise an error, or wait for a machine that never comes.
# The explorer builds the text for the cluster that you choose. Click on a task, and on a mistake:

# %% builder
from lessons.strategies.workers.explorer import ClusterExplorer

ClusterExplorer(workers=2, servers=0, task="worker 0", chief=False)

# %% builder-read [markdown]
# Try *index counted from 1*: TensorFlow refuses it. It silently accepts *Evaluator in the cluster*.
# An evaluator is a process that only evaluates the model. It doesn't belong in that list: {lesson:parameter_servers} says why.
#
# The explorer also says that worker 0 acts *as chief*. One worker has to write the checkpoints. In a cluster without a task called `chief`, that's worker 0. Our program saves none yet.

# %% rules-text [markdown]
# ## Who gets which example?
#
# Every worker makes the same `tf.data` pipeline. `experimental_distribute_dataset` then decides which examples this worker gets. (`tf.data` calls that *sharding*.) A *policy* tells it how. The three main ones are:
#
# - `FILE`: each worker reads its own files.
# - `DATA`: each worker reads everything, and keeps its part of each batch.
# - `OFF`: each worker gets everything.
#
# To see who gets what, let's read numbers instead of patterns: 0 to 15, in four files, in global batches of 4.
# For every batch, each worker prints the policy's name and the numbers it received, and `received_examples` collects these lines:

# %% rules
# %%writefile workers_programs/rules.py
import tempfile

import numpy as np
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()

folder = tempfile.mkdtemp()
files = []
for number in range(4):
    files.append(f"{folder}/{number}.txt")
    np.savetxt(files[-1], np.arange(4 * number, 4 * number + 4))

for rule in ["FILE", "DATA", "OFF"]:
    options = tf.data.Options()
    policy = tf.data.experimental.AutoShardPolicy[rule]
    options.experimental_distribute.auto_shard_policy = policy
    dataset = tf.data.TextLineDataset(files)
    dataset = dataset.map(tf.strings.to_number).batch(4)
    dataset = dataset.with_options(options)
    for batch in strategy.experimental_distribute_dataset(dataset):
        for mine in strategy.experimental_local_results(batch):
            print(rule, *mine.numpy().astype(int), flush=True)

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
received = run(2, "rules.py")
numbers = []
for worker_0, worker_1 in received.received_examples("FILE").batches:
    numbers += worker_1
reveal("workers-file", tuple(numbers))

# %% file-why [markdown]
# Here is `FILE` as a picture. Each row, in its own color, is a global batch. A worker has one replica here, so *replica 1* is worker 1:

# %% received-file
received.received_examples("FILE")

# %% received-file-read [markdown]
# Each worker reads its own files in batches of 4, and TensorFlow splits these into batches of 2 for its replica.
# So batch 0 has 0 and 1 from the first file, and 4 and 5 from the second. A single process would have put 0, 1, 2 and 3 into it.
# With `FILE` no example is lost, but the batches are different, and so are the training steps. Now `DATA`:

# %% received-data
received.received_examples("DATA")

# %% received-data-read [markdown]
# These are the batches of one process, each split in two. That's why the program above uses `DATA`: it can be compared with one process.
# The price: each worker reads everything, and throws away what belongs to the others. With large data, you would rather have `FILE`.
#
# Note that `DATA` cuts by *position*: worker 1 keeps the second half of each batch, whatever is in it.
# If each worker shuffled with its own seed, some examples would come twice and others never. Last, `OFF`:

# %% received-off
received.received_examples("OFF")

# %% received-off-read [markdown]
# Everything twice! With `OFF` an epoch has twice as many steps, and every global batch has just two different examples, each of them twice.
# Use `OFF` if each worker shuffles in its own order, or if you have split the data already.
#
# If you choose nothing, the policy is `AUTO`: `FILE` if TensorFlow finds files in the pipeline, otherwise `DATA`.
# That sounds reasonable. What does it do if you have *one* file and two workers?

# %% one-file
# %%writefile workers_programs/one_file.py
import tempfile

import numpy as np
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()

file = f"{tempfile.mkdtemp()}/all.txt"
np.savetxt(file, np.arange(16))

dataset = tf.data.TextLineDataset([file])
dataset = dataset.map(tf.strings.to_number).batch(4)
for batch in strategy.experimental_distribute_dataset(dataset):
    print(batch, flush=True)

# %% one-file-run
import textwrap

with Cluster([programs / "one_file.py"], {"worker": 2}) as cluster:
    print(cluster.wait())
    log = cluster.log("worker 0")

start = log.index("Could not apply")
end = log.index("[[", start)
print(textwrap.fill(log[start:end], 72))

# %% one-file-read [markdown]
# `AUTO` does *not* fall back to `DATA`. Worker 0 says what is wrong, and how to cure it: `DATA`, or more files. (The message asks for more files than workers; as many will do.)
#
# But look at worker 1. It fails with an `UnavailableError`. Its log, which isn't shown here, says `Socket closed`, and not a word about files.
# Whoever reads that log first will look for a fault in the network. When a cluster fails, read the logs of *all* workers, and look for the one that names a cause in your program.

# %% note-uneven-files [markdown]
# And if the files, or the workers, don't divide evenly?
#
# With `FILE`, four files on three workers give them 8, 4 and 4 examples. Nothing is lost: when two workers have finished, they get empty parts.
# But then they have nothing to do, and the batches are smaller. Write files of equal size, and make their number a multiple of the number of workers.
#
# With `DATA`, the size of a part is the batch size divided by the number of replicas, rounded up.
# Of a batch of 4, three workers get 2, 2 and 0 examples, *in every step*: the third worker never does anything.
# Choose a batch size that the number of replicas divides.

# %% blocks-text [markdown]
# If none of these policies fits, split the data yourself.
# `distribute_datasets_from_function` calls your function once on each worker. It passes an `InputContext`, which says how many pipelines there are (`num_input_pipelines`) and which one this is (`input_pipeline_id`).
# Your function returns batches *for one replica*, and `context.get_per_replica_batch_size` gives you their size.
# Here each worker takes a block of eight numbers:

# %% blocks
# %%writefile workers_programs/blocks.py
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()


def block(context):
    numbers = tf.data.Dataset.range(16)
    mine = numbers.skip(8 * context.input_pipeline_id).take(8)
    return mine.batch(context.get_per_replica_batch_size(4))


for batch in strategy.distribute_datasets_from_function(block):
    for mine in strategy.experimental_local_results(batch):
        print("BLOCK", *mine.numpy(), flush=True)

# %% received-blocks
run(2, "blocks.py").received_examples("BLOCK")

# %% exercise-pipeline-text [markdown]
# Worker 0 has the first half, worker 1 the second, and of a global batch of 4 each takes 2.
#
# **Exercise 1.** Write `worker_batches(numbers, global_batch_size, context)`.
# `numbers` is a `tf.data.Dataset` of single examples.
# Deal them out like cards: with three workers, worker 0 gets the examples 0, 3, 6 and so on, worker 1 gets 1, 4, 7.
# Return this worker's `tf.data.Dataset` of batches for one replica. The last batch may be smaller.


# %% exercise-pipeline
def worker_batches(numbers, global_batch_size, context):
    # solution begin
    worker = context.input_pipeline_id
    mine = numbers.shard(context.num_input_pipelines, worker)
    size = context.get_per_replica_batch_size(global_batch_size)
    return mine.batch(size)
    # solution end


# %%
check("workers-pipeline", worker_batches)

# %% odd-text [markdown]
# ## Five examples too many
#
# The program was right for 96 examples, in batches of 32. 96 divides evenly. You have 101. What becomes of the five left over?
# In {lesson:custom_training}, you counted the examples of a last, smaller batch, and divided by their number. Our program always divides by 32, however many examples there are.
# How wrong is it, and would you notice?
#
# A run of the same program with one worker can't tell you, because it makes the same mistake. So let's ask something that knows nothing of our step: `fit`, with the same model and batches, on one device, where nothing is split. We call it once for each batch, so that it reports the mean loss of that batch:

# %% fit
import numpy as np

random = np.random.default_rng(0)
y = np.arange(101) % 4
x = random.normal(size=(101, 64)) + 4 * np.eye(4, 64)[y]

tf.keras.utils.set_random_seed(0)
model = tf.keras.Sequential(
    [
        tf.keras.Input((64,)),
        tf.keras.layers.Dense(16, "relu"),
        tf.keras.layers.Dense(4),
    ]
)
loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(tf.keras.optimizers.Adam(0.01), loss)

by_fit = {}
for epoch in range(2):
    order = np.random.default_rng([0, epoch]).permutation(101)
    for start in range(0, 101, 32):
        rows = order[start : start + 32]
        history = model.fit(x[rows], y[rows], batch_size=32, verbose=0)
        mean = history.history["loss"][0]
        step = len(by_fit) + 1
        by_fit[step] = mean
        print(f"step {step} loss {mean:.2f} examples {len(rows)}")

# %% fit-read [markdown]
# Steps 4 and 8 have the five examples. Their losses, 1.16 and 1.10, are about as large as those of the steps around them. Now the two workers.

# %% predict-last [markdown]
# Two workers train on 101 examples, in global batches of 32, so that the last batch of an epoch has 5.
# Each replica divides the sum of its own losses by 32, and the shares of both are added up.
# By what factor are the loss of that last step, and its gradients, too small?
#
# - [ ] `1.0` not at all: it is right
#   It would be, if each replica divided by the examples of this batch.
#   This program divides by 32, which is right for a full batch only.
# - [ ] `2.0`
#   That is the number of workers.
#   But both shares are divided by the global batch size already, and are added up.
# - [x] `6.4`
#   Five losses are added up and divided by 32, where 5 would be right: 32 / 5.
# - [ ] `12.8`
#   That would be 32 / 2.5, if each worker had to divide by its own examples.
#   The shares of both are added up, so 5 is right.
# - otherwise
#   What does the step divide by, and what would be right?

# %% reveal-last
eight = ["--examples", 101, "--steps", 8]
odd = run(2, "first.py", *eight)
before = odd["worker 0"].losses
reveal("workers-last", round(by_fit[4] / before[4], 1))

# %% last-why [markdown]
# And nothing failed. Here is what each worker printed:

# %% odd
odd

# %% blind-text [markdown]
# Look at step 4: the loss falls from 1.79 to 0.18. That looks like progress. Now let's compare it with `fit`, and a single worker:

# %% blind
single = run(1, "first.py", *eight)["worker 0"].losses

print("step  two workers  one worker   fit")
for step, mean in by_fit.items():
    both = f"{before[step]:11.2f}  {single[step]:10.2f}"
    print(f"{step:4}  {both}  {mean:4.2f}")

# %% odd-read [markdown]
# 0.18 is the sum of five losses, divided by 32. Their mean, in the last column, is 6.4 times that, and the gradients of step 4 are too small by the same factor.
# (Adam hides a part of that. Under SGD the whole update would be 6.4 times too small.)
# From step 5 on, the weights of the program are no longer those of `fit`.
#
# And look at the column in the middle. Alone, the same program divides by 32 as well, and prints the same 0.18. So if the code makes the same mistake on one machine, a run on one machine can't reveal it. To prove a step, compare it with what you intended, computed another way.
#
# **Exercise 2.** Write `replica_loss(losses)`, so that the step is right for any batch, on any number of replicas.
#
# - `losses` are the losses of this replica's examples. There may be none.
# - Return this replica's share of the loss: the shares of all replicas must add up to the mean loss of the global batch.
# - The function runs inside of `strategy.run`. Nobody tells it how many examples the global batch has: it has to ask the other replicas.
#
# The check hands out batches of 32, 5 and 1 examples to two replicas and to three.


# %% exercise-divisor
def replica_loss(losses):
    # solution begin
    context = tf.distribute.get_replica_context()
    examples = context.all_reduce("SUM", tf.shape(losses)[0])
    return tf.reduce_sum(losses) / tf.cast(examples, "float32")
    # solution end


# %%
check("workers-divisor", replica_loss)

# %% note-on-purpose [markdown]
# Can it be right to divide by 32?
#
# Yes, on purpose: then each example of an epoch counts the same. But it isn't the step of `fit`, and the printed loss is no mean.

# %% workers-text [markdown]
# In the program it's the same. One small all-reduce in each step counts the examples that are really there.
# In `replica_step`, two lines are new, and the loss line has changed:
#
# ```python
# context = tf.distribute.get_replica_context()
# examples = context.all_reduce("SUM", tf.shape(y)[0])
# ...
# loss = tf.reduce_sum(losses) / tf.cast(examples, "float32")
# ```
#
# And the program has a new option, `--replicas`, for the number that you expect. With any other number it refuses to train:
#
# ```python
# if args.replicas and workers != args.replicas:
#     raise ValueError(f"{workers} of {args.replicas} replicas")
# ```
#
# It also gives up after five minutes if a machine doesn't come: the note below explains how. Unfold the cell to read the whole program:

# %% workers tags=["known"]
# %%writefile workers_programs/workers.py
"""One of several workers; TF_CONFIG says which.

python workers.py [--steps 6] [--examples 96] [--replicas 2]
"""

import argparse
import faulthandler
import math

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=6)
parser.add_argument("--examples", type=int, default=96)
parser.add_argument("--replicas", type=int, help="refuse others")
args = parser.parse_args()

faulthandler.dump_traceback_later(300, exit=True)
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


step = tf.Variable(0, dtype=tf.int64)
while step < args.steps:
    epoch, at = divmod(int(step), steps_per_epoch)
    left = batches(epoch).skip(at).take(args.steps - int(step))
    for batch in strategy.experimental_distribute_dataset(left):
        loss, examples, mine = train_step(*batch)
        step.assign_add(1)
        mine = strategy.experimental_local_results(mine)
        counts = f"examples {examples} mine {sum(map(int, mine))}"
        print(f"step {int(step)} loss {loss:.9f} {counts}", flush=True)

# %% note-waiting [markdown]
# How long does it wait for a machine that never comes?
#
# Up to an hour. If worker 1 is missing, worker 0 says so in TensorFlow's log: `Waiting for 1/2 tasks to connect`, and then which one. (In this course that log is silenced.)
# If worker 0 is missing, the others say nothing.
# Meanwhile a process is deaf to `Ctrl+C` and to SIGTERM. `kill -9` ends it.
#
# So the finished program has two more lines around the strategy:
#
# ```python
# faulthandler.dump_traceback_later(300, exit=True)
# strategy = tf.distribute.MultiWorkerMirroredStrategy()
# faulthandler.cancel_dump_traceback_later()
# ```
#
# If the strategy isn't there after 300 seconds, Python prints where the process waits, and ends it.

# %% mended-text [markdown]
# Is it now the step that `fit` takes? Compare two workers with it, and with the program as it was:

# %% mended
expect = ["--replicas", 2]
two = run(2, "workers.py", *eight, *expect)["worker 0"].losses

print("step  before  two workers   fit")
for step, mean in by_fit.items():
    both = f"{before[step]:6.2f}  {two[step]:11.2f}"
    print(f"{step:4}  {both}  {mean:4.2f}")

gap = max(abs(two[step] - by_fit[step]) for step in by_fit)
print("largest difference from fit:", about(gap, 0, 1e-5))

# %% mended-read [markdown]
# All eight losses agree, although `fit` knows nothing of workers or of our divisor.
#
# The hardest case is a last batch of a single example, which nobody can split in two:

# %% single
run(2, "workers.py", "--examples", 97, "--steps", 4, *expect)

# %% single-read [markdown]
# In step 4, worker 1 has nothing: `mine 0`. It still takes part, with a sum of 0 and gradients of 0,
# and both print the loss of the one example. A worker may come empty-handed, but it must not stay away: the others wait for it in the all-reduce.
#
# One thing is left: the mistake of the opening. Start the finished program with the misspelled setting, and tell it what you expect:

# %% refused
run_misspelled("workers.py", *expect)

# %% refused-read [markdown]
# Neither machine trains. Two machines that stop after a few seconds cost you nothing; two that train apart cost you the night.
# As long as you tell it the number, no misspelled `TF_CONFIG` makes this program train alone.

# %% note-gpus [markdown]
# What if each machine has several GPUs?
#
# Then every GPU is a replica, and `num_replicas_in_sync` is machines times GPUs. That's the number behind *of* in the first line, and the one to give to `--replicas`.
# A worker splits its part of a batch among its GPUs. If you split the data yourself, a worker with four GPUs takes four of your batches in each step. The program needn't change: `mine` adds up all replicas of this worker.
#
# How the workers exchange is an option of the strategy. Without it, TensorFlow chooses (`AUTO`):
#
# ```python
# communication = tf.distribute.experimental.CommunicationOptions(
#     implementation=tf.distribute.experimental.CommunicationImplementation.NCCL
# )
# strategy = tf.distribute.MultiWorkerMirroredStrategy(
#     communication_options=communication
# )
# ```
#
# `RING` goes over gRPC, and `NCCL` is NVIDIA's library. `RING` was tried for this course, on CPUs. Several GPUs per worker and `NCCL` are *untried*: there were no such machines.

# %% note-empty [markdown]
# Does every layer survive an empty part?
#
# Plain batch normalization doesn't: it takes a mean over no examples. {Lesson:strategies} shows what to do.

# %% note-rounding [markdown]
# Why is `steps_per_epoch` rounded up?
#
# 101 examples make four batches of 32 or less, but `101 // 32` is 3. With that, `divmod(4, 3)` says after four steps: epoch 1, and one batch is done.
# The loop would skip this batch, and from then on leave out 32 examples of each epoch. No error says so.

# %% plain-heading [markdown]
# ## The plain program
#
# [`workers.py`](../plain/workers.py) is the finished program. Without a `TF_CONFIG` it trains alone, and says so: `worker 0 of 1`. With `--replicas 2` it refuses to.

# %% takeaways [markdown]
# ## Takeaways
#
# - All machines run one program, and `TF_CONFIG` tells each who it is. Machines that don't know of each other train without an error: check the number of replicas, because the loss won't tell you.
# - Know who gets which example. `DATA` cuts the batches of one process. `FILE` makes different batches, out of whole files, and fails if there are fewer files than workers.
# - Count the examples of each batch over all replicas, and divide by that. Prove the step against something that doesn't share its code.
#
# So far every machine has survived. In {lesson:failures}, one of them dies.

# %% score
score("workers")
