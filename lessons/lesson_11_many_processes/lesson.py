# %% [markdown]
# # 11. Many processes
#
# A training on several machines is several processes.
# They start, look for each other and exchange numbers, and one day one of them dies.
# What do the others do then, and what is lost?
#
# After this lesson you can
#
# - tell each process its place, and find what is wrong when it has a wrong one;
# - start workers, clients of a mesh and parameter servers, and say who gets which example;
# - kill one of them, and go on with nothing lost but the steps since the last checkpoint;
# - say what starts the same programs on Kubernetes and Slurm.
#
# **Time:** 50 minutes.
# **You need to know:** of lesson 4 what a run and a checkpoint are, of lesson 5 a mesh with two dimensions,
# of lesson 9 what a strategy is.
#
# > **Where this was run.** TensorFlow 2.21, on one machine with two cores.
# > Every machine of this lesson is a process here, and they really talk, die and come back.
# > That takes Linux or macOS, of which Linux was tried; on Windows, take Colab or the Subsystem for Linux.
# > DTensor is experimental.
#
# ## Who is who
#
# All machines run the same program.
# What tells them apart is an environment variable, `TF_CONFIG`, which is set before the program starts.
# It holds two things in JSON: the addresses of the processes, and which of them this one is, its *task*.
#
# The next cell builds it.
# Click through the tasks: which part of the text changes, and which stays?
# Then let it make a mistake.

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% builder
import json
import os
from unittest.mock import patch

from course_lib import yours_or_ours
from lessons.lesson_11_many_processes.cluster_spec import ClusterSpec
from lessons.lesson_11_many_processes.explorer import ClusterExplorer

tf = course_lib.start_tensorflow()
ClusterExplorer(workers=3, servers=2, task="worker 1")

# %% builder-text [markdown]
# `cluster` is the same for everybody, `task` is not.
# A task is a *job* and a number in it, counted from 0:
#
# | job | does |
# | --- | --- |
# | `worker` | computes |
# | `chief` | computes too, and does what must be done once: it writes checkpoints and summaries. With parameter servers it is the *coordinator*, and computes no gradients. |
# | `ps` | holds variables; only with parameter servers |
# | `evaluator` | reads checkpoints and evaluates them; it needs no address, for nobody talks with it |
#
# Only parameter servers need a chief.
# Without one, worker 0 does what a chief would.
#
# **Exercise 1.** Write `saves(tf_config)`: given the text of `TF_CONFIG`,
# whether this process writes the checkpoints that are kept.
# (Without parameter servers all workers save, as you will see, and what one of them saves is kept;
# with them only the chief saves.)


# %% exercise-saves
def saves(tf_config):
    # solution begin
    config = json.loads(tf_config)
    saver = "chief" if "chief" in config["cluster"] else "worker"
    return config["task"] == {"type": saver, "index": 0}
    # solution end


# %%
check("11-saves", saves)

# %% mistakes-text [markdown]
# ### Mistakes
#
# The next cell makes three of them.
# A strategy reads each, and after it `ClusterSpec.from_tf_config`, the course's own reader.

# %% mistakes tags=["error"]
hosts = {"worker": ["host0:12345", "host1:12345"]}
task = {"type": "worker", "index": 0}
wrong = [
    str({"cluster": hosts, "task": task}),
    json.dumps({"cluster": hosts, "task": {**task, "index": 2}}),
    json.dumps({"cluster": {**hosts, "chief": ["host2:12345", "host3:12345"]}, "task": task}),
]
make = tf.distribute.MultiWorkerMirroredStrategy
for text in wrong:
    for read, given in ((make, ()), (ClusterSpec.from_tf_config, (text,))):
        try:
            with patch.dict(os.environ, TF_CONFIG=text):
                read(*given)
        except ValueError as error:
            print("-", error)

# %% alone-given [markdown]
# One more mistake is to forget `TF_CONFIG`.
# The next measurement makes a `MultiWorkerMirroredStrategy`, the strategy for several workers,
# in a process without `TF_CONFIG`.

# %% predict-alone [markdown]
# What does the strategy do?
#
# - [ ] `error` It ends with an error: it does not know its cluster.
#   That would be kind.
#   But a program may be meant for one machine, and then all is well.
# - [ ] `waits` It waits for the others.
#   For whom?
#   It knows of nobody.
# - [x] `'1'` It trains with one replica.
#   It trains alone, and so does each of its colleagues: several models, and no error.

# %% reveal-alone
os.environ.pop("TF_CONFIG", None)
try:
    found = str(tf.distribute.MultiWorkerMirroredStrategy().num_replicas_in_sync)
except (ValueError, RuntimeError):
    found = "error"
reveal("11-alone", found)

# %% equal-given [markdown]
# So a program should say how many replicas it has, before it trains.
#
# ## Two workers
#
# `lessons/lesson_11_many_processes/programs/multi_worker.py` is such a program.
# On real machines one starts it by hand, on each of them, with that machine's `TF_CONFIG`:
#
# ```sh
# python -m lessons.lesson_11_many_processes.programs.multi_worker --steps 6
# ```
#
# It trains a convolutional model on garments, with the loop of lesson 10
# and `tf.distribute.MultiWorkerMirroredStrategy()` in place of `MirroredStrategy`.
# The strategy is made before anything else of TensorFlow's:
# it starts a server, through which the others reach this process, and looks for theirs.
#
# Before that, the processes of our program meet, and compare code, arguments, data and the newest checkpoint.
# What differs they all name, and end; who is still missing after five minutes (`--wait`), too.
# TensorFlow compares none of these:
# it waits an hour for a missing one, and trains on in silence where one has other data.
#
# Here `Cluster` starts the program: one process for each task, on free ports, each with its `TF_CONFIG`.
# While it waits, the cell shows what all of them write.
# At the end of the block every process has ended, whatever happened in it.
#
# 96 images in batches of 32 are three steps an epoch.
# Each of the two workers has 16 images of each batch,
# and tells for every step the loss of the whole batch, to which both have added their part.

# %% predict-equal [markdown]
# In how many of the six steps do the two tell different losses, compared to nine decimals?
#
# - [x] `0`
#   What they tell is the loss of the global batch, which both get from the all-reduce.
# - [ ] `5`
#   They begin alike, and each step changes both in the same way: nothing parts them later.
# - [ ] `6`
#   So it would be if each told the loss of its own half of the batch.
# - otherwise
#   Think of what an all-reduce gives to each that takes part.

# %% reveal-equal
from lessons.lesson_11_many_processes.cluster import Cluster
from lessons.lesson_11_many_processes.programs import lines

program = ["-m", "lessons.lesson_11_many_processes.programs.multi_worker", "--language", LANGUAGE]
training = [*program, "--steps", "6", "--examples", "96"]
with Cluster([*training, "--digits", "9"], {"worker": 2}) as cluster:
    cluster.wait()
    first, second = (lines.losses(cluster.log(task).stdout) for task in ("worker 0", "worker 1"))
reveal("11-equal", sum(first[step] != second[step] for step in first))

# %% alone
# The same program as a cluster of one: this process gets all 32 images of each batch
with Cluster([*training, "--digits", "9"], {"worker": 1}) as cluster:
    cluster.wait()
    alone = lines.losses(cluster.log("worker 0").stdout)
print("step  two workers  one process")
for step in alone:
    print(f"{step:4}  {first[step]:11.2f}  {alone[step]:11.2f}")
print("largest difference below 0.001:", max(abs(first[step] - alone[step]) for step in alone) < 0.001)

# %% file-given [markdown]
# One process adds up the 32 images of a batch in another order than two, so the last digits may differ.
#
# A batch is global here too, and an update comes from the gradients of all workers.
# (`fit` of tf_keras does the same, and the program has it with `--fit`.
# That of Keras 3.15 fails under this strategy.)
#
# ## Which example goes where
#
# The program cuts each batch itself.
# With a `tf.data` pipeline both workers run the same one, on the same files.
# So that they do not train on the same examples, a distributed data set divides them, by a rule:
#
# - `FILE`: each worker reads files of its own, which are dealt out in turn, as cards are;
# - `DATA`: each reads everything, and leaves out what is for others;
# - `OFF`: nothing is divided.
#
# Without a choice, `AUTO`, it is `FILE` if TensorFlow finds files to divide, and else `DATA`.
#
# The next run has 16 examples in four files, 0 to 3 in the first, 4 to 7 in the second, and so on,
# and batches of 4.
# Each worker tells what it gets.

# %% predict-file [markdown]
# Divided by `FILE`: which examples does worker 1 get?
#
# - [ ] `(2, 3, 6, 7, 10, 11, 14, 15)`
#   That is the second half of every batch: so it is divided by `DATA`.
# - [x] `(4, 5, 6, 7, 12, 13, 14, 15)`
#   Files are dealt like cards: of four files it gets the second and the fourth.
# - [ ] `(8, 9, 10, 11, 12, 13, 14, 15)`
#   These are two whole files.
#   But files are given out in turn, not in a row.
# - [ ] `(1, 3, 5, 7, 9, 11, 13, 15)`
#   For that, every worker would have to read all files.

# %% reveal-file
rules = ("file", "data", "off")
with Cluster([*program, "--shards", *rules], {"worker": 2}) as cluster:
    cluster.wait()
    told = [cluster.log(task).stdout for task in ("worker 0", "worker 1")]
received = {rule: lines.received(told, rule) for rule in rules}
reveal("11-file", tuple(index for _zero, one in received["file"].batches for index in one))

# %% received
from IPython.display import display

for rule in rules:
    print(rule)
    display(received[rule])

# %% pipeline-text [markdown]
# Divided by file, a batch is another one: its examples come from two files.
# Each file is read once; by `DATA` every worker reads all of them.
# `FILE` needs as many files as workers at least, or TensorFlow raises an error, with `AUTO` too:
#
# ```text
# Could not apply FILE based sharding: the dataset only has 1 file(s),
# which is not enough for the required 2 shards/workers.
# ```
#
# With `OFF` each example is there twice.
# That is right where the pipeline has divided already, or where each worker shuffles by itself
# and an epoch means nothing.
#
# Or divide yourself.
# `strategy.distribute_datasets_from_function(function)` calls your function once on each worker,
# with an `InputContext` that says who it is:
# `num_input_pipelines`, `input_pipeline_id`, and `get_per_replica_batch_size(global_batch_size)`.
# The function makes batches for *one replica*; a worker with four GPUs takes four of them for a step.
#
# **Exercise 2.** Write `worker_batches(numbers, global_batch_size, context)`.
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
check("11-pipeline", worker_batches)

# %% kill-given [markdown]
# ## Kill one
#
# With `--checkpoints` the program saves at the end of each epoch, and when it ends: here after steps 3 and 6.
# *All* workers save, since some variables must first be summed over all of them.
# They have one folder, and only worker 0's checkpoint is to be kept there;
# the others write into a folder that is then deleted.
#
# Now worker 1 is killed after step 4, with SIGKILL, as Linux does when memory runs out.
# `--hold 4` has each wait after step 4 until the other is gone, so that neither gets further by chance.

# %% predict-kill [markdown]
# What does worker 0 do?
#
# - [ ] `goes on` It goes on alone, with its half of each batch.
#   Then half of each batch would be missing, and it would train another model.
# - [ ] `waits` It waits until worker 1 is started again.
#   The all-reduce fails, and so does every later one of this process: a new worker 1 comes in vain.
# - [x] `error` It ends with an error.
#   The all-reduce fails, and with it every later one of this process.

# %% reveal-kill
import shutil
import tempfile

folder = tempfile.TemporaryDirectory()
saving = [*training, "--checkpoints", folder.name]
with Cluster([*saving, "--digits", "2", "--hold", "4"], {"worker": 2}) as cluster:
    cluster.wait_for("worker 0", "step 4 ")
    cluster.kill("worker 1", after="step 4 ")
    killed = cluster.wait()
reveal("11-kill", "error" if killed["worker 0"].failed else "goes on")

# %% killed
killed

# %% resume-given [markdown]
# "No longer answers" is the program's word; TensorFlow raises an error of many lines.
# Where a machine vanishes together with its process, nobody refuses the connection:
# then the survivor must notice that heartbeats are missed, the messages by which each tells that it lives.
# That may take longer; it was not tried here.
# From then on every all-reduce of this process fails, so that it cannot wait for a new worker 1.
#
# So both are started again, with the same arguments but for `--hold`.
# They find the checkpoint of step 3, and go on after it.
# The next measurement holds their losses against those of the run that nothing disturbed, to nine decimals.
#
# SIGKILL cannot be caught.
# SIGTERM asks a process to end, so that it can save first:
# the cell after the measurement sends it to worker 1.

# %% predict-resume [markdown]
# In how many of the steps 4, 5 and 6 is the loss another one?
#
# - [x] `0`
#   Whatever a step depends on came back, so that it gives the same again.
# - [ ] `1`
#   Step 4 was done twice, but both times from the same values, with the same images.
# - [ ] `2`
#   Steps 5 and 6 follow from step 4, and that one was done again as before.
# - [ ] `3`
#   So it would be if the optimizer, or the order of the images, began anew.
# - otherwise
#   There are three steps.

# %% reveal-resume
resuming = tempfile.TemporaryDirectory()  # a copy: this cell can run again
shutil.copytree(folder.name, resuming.name, dirs_exist_ok=True)
again = [*training, "--checkpoints", resuming.name]
with Cluster([*again, "--digits", "9"], {"worker": 2}) as cluster:
    cluster.wait()
    resumed = lines.losses(cluster.log("worker 0").stdout)
reveal("11-resume", sum(first[step] != resumed.get(step) for step in (4, 5, 6)))

# %% preempted
# Once more, with SIGTERM in place of SIGKILL, and to worker 1 alone; then both are started again
fresh = tempfile.TemporaryDirectory()
ending = [*training, "--checkpoints", fresh.name, "--digits", "9"]
with Cluster([*ending, "--pause", "1"], {"worker": 2}) as cluster:
    cluster.wait_for("worker 0", "step 1 ")
    cluster.terminate("worker 1")
    preempted = cluster.wait()
    before = lines.losses(cluster.log("worker 0").stdout)
with Cluster(ending, {"worker": 2}) as cluster:
    cluster.wait()
    after = lines.losses(cluster.log("worker 0").stdout)
print("exit statuses:", [told.status for told in preempted.told])
print("steps done twice:", sorted(before.keys() & after.keys()))
print("losses as undisturbed:", {**before, **after} == first)

# %% clients-given [markdown]
# After the kill, model and optimizer came from the checkpoint;
# the order of the images follows from the seed and the number of the epoch, as in lesson 4.
# Only time was lost: step 4 ran twice, and both processes started twice.
#
# A machine that is taken away on purpose mostly sends its processes SIGTERM first.
# The cell above did that to worker 1, early in the first epoch.
# TensorFlow's `PreemptionCheckpointHandler` had *both* save after the same step,
# and the program ended with exit status 75, which by convention means: try again.
# So no step was done twice.
#
# ## One mesh, two processes
#
# DTensor goes over several processes as well.
# Each of them is a *client*: it has its own devices, and runs the whole program.
# Other variables tell a client its place:
# `DTENSOR_JOBS` has all addresses, `DTENSOR_CLIENT_ID` says which one this is.
# Then one call joins them, `dtensor.initialize_accelerator_system`.
# After that a mesh has the devices of all clients.
#
# Here devices 0 to 3 are those of one process, 4 to 7 those of the other,
# and the mesh is 4 × 2, `batch` and `model`.
# The next measurement looks at the groups in which devices exchange data.

# %% predict-clients [markdown]
# Along which mesh dimensions do groups hold devices of both processes?
#
# - [x] `batch` `batch` only
#   Neighbours along `model` are numbered one after another, and stay in one process.
# - [ ] `model` `model` only
#   Work out the first groups: along `model` it is devices 0 and 1.
# - [ ] `batch model` both
#   The groups along `batch` do.
#   Those along `model` are pairs of neighbours.
# - [ ] `''` none
#   Then the two processes would never exchange a gradient.

# %% reveal-clients
import numpy as np

from course_lib import MeshSpec

mesh = MeshSpec([("batch", 4), ("model", 2)])
crossing = [
    name
    for name in mesh.names
    if any(len({device // 4 for device in group}) > 1 for group in mesh.groups(name))
]
reveal("11-clients", " ".join(crossing))

# %% clients-text [markdown]
# Between machines data moves more slowly than within one.
# So the mesh dimension along which most is moved in a step should stay within a machine:
# it should be the last.
# Here the last one is `model`.
# For the small model of lesson 5 it should be `batch`: with the model-parallel plan each device brought
# 115,200 bytes, the gradient of a weight, into the all-reduce along `batch`, and 128 into that along `model`.
#
# `lessons/lesson_11_many_processes/programs/multi_client.py` trains the model of lessons 3 and 4
# on such a mesh, here on digits,
# with a model-parallel plan.
# Plan, model, trainer and run are those of the lessons: for them nothing changes but the mesh.
# Two clients take five steps and save together, into one checkpoint that holds each part of a variable once.
# The cell after that has it restored by *one* process, which takes five more.

# %% clients
sharded = tempfile.TemporaryDirectory()
client = ["-m", "lessons.lesson_11_many_processes.programs.multi_client", "--language", LANGUAGE]
client += ["--plan", "model", "--digits", "2"]
saved = ["--checkpoints", sharded.name]
with Cluster([*client, *saved, "--steps", "5"], {"worker": 2}, variables="DTENSOR") as cluster:
    both = cluster.wait()
    of_two = lines.losses(cluster.log("worker 1").stdout)
both

# %% one-client
# One process with eight devices goes on from a copy of that checkpoint; another was alone from the beginning
copied = tempfile.TemporaryDirectory()
shutil.copytree(sharded.name, copied.name, dirs_exist_ok=True)
with Cluster(
    [*client, "--checkpoints", copied.name, "--steps", "10"], {"worker": 1}, variables="DTENSOR"
) as cluster:
    cluster.wait()
    of_one = lines.losses(cluster.log("worker 0").stdout)
with Cluster([*client, "--steps", "10"], {"worker": 1}, variables="DTENSOR") as cluster:
    cluster.wait()
    always_one = lines.losses(cluster.log("worker 0").stdout)
print("step  two, then one  always one")
for step, loss in {**of_two, **of_one}.items():
    print(f"{step:4}  {loss:13.2f}  {always_one[step]:10.2f}")

# %% local-text [markdown]
# Both columns are equal to two decimals: the checkpoint goes from two processes to one.
#
# Training code stays the same, packing does not: a client can send to its own devices only.
# `dtensor.pack` expects the parts of these, in the order of the mesh, and of no others.
#
# **Exercise 3.** Write `local_parts(rows, mesh, device_ids)`: what a client packs of a global batch.
# The rows are split along `batch`, and are the same along every other mesh dimension.
# `device_ids` are this client's devices, by their numbers in the whole mesh.
# Return a list: for each of them its rows.
# `mesh.dim_size("batch")` and `mesh.coords(device_id)["batch"]` help.


# %% exercise-local-parts
def local_parts(rows, mesh, device_ids):
    # solution begin
    parts = np.split(rows, mesh.dim_size("batch"))
    return [parts[mesh.coords(device_id)["batch"]] for device_id in device_ids]
    # solution end


# %%
check("11-local-parts", local_parts)

# %% worker-given [markdown]
# ## Parameter servers
#
# So far an all-reduce in each step kept all together.
# A `ParameterServerStrategy` has none.
# Variables lie on *servers*; large ones are cut into parts, which a *partitioner* sees to.
# A *coordinator*, the chief, hands out steps: `coordinator.schedule(step)` returns at once,
# and a worker that is free takes it.
# It fetches the variables, computes gradients, and sends them to the servers,
# which may have moved on since.
#
# `lessons/lesson_11_many_processes/programs/parameter_server.py` is the program,
# the same one for all five processes:
# a chief, two workers, two servers.
# Each worker shuffles all images for itself, so that an epoch is only a count here: five steps.
# At its end the chief tells which worker took how many of them, and how many updates the servers count.
# Once two epochs are done, worker 1 is killed, and then started again.

# %% predict-worker [markdown]
# Worker 1 is killed, with steps still to do.
# What does the training do until it is back?
#
# - [ ] `error` It ends with an error.
#   So it was with the all-reduce.
#   Here no worker waits for another.
# - [ ] `waits` It waits for worker 1, with the steps that this one was given.
#   No step belongs to a worker: another one can do it.
# - [ ] `one lost` It goes on with worker 0, and the step that worker 1 had is missing.
#   The coordinator has no result of that step, and so it knows that it was not done.
# - [x] `all done` It goes on with worker 0, and each epoch has all its steps.
#   A step without a result is given to another worker: each epoch has all five.

# %% reveal-worker
import re

asynchronous = ["-m", "lessons.lesson_11_many_processes.programs.parameter_server", "--language", LANGUAGE]
asynchronous += ["--steps", "10000", "--pause", "0.1"]
with Cluster(asynchronous, {"chief": 1, "worker": 2, "ps": 2}) as cluster:
    cluster.wait_for("chief 0", "step 10 ")
    cluster.kill("worker 1")
    cluster.wait_for("chief 0", "worker 1 no longer answers")
    cluster.restart("worker 1")
    cluster.wait_for("chief 0", "worker 1 answers again")
    cluster.kill("ps 1")
    served = cluster.wait(180, "chief 0")["chief 0"]
said = list(served.lines)
between = said[said.index("worker 1 no longer answers") : said.index("worker 1 answers again")]
updates = [int(number) for line in between for number in re.findall(r"(\d+) updates", line)]
reveal("11-worker", "waits" if not updates else "all done" if min(updates) >= 5 else "one lost")

# %% server-given [markdown]
# A step counts as done when its result has come back, says TensorFlow's documentation.
# One whose worker dies before that is done again by a worker that is there,
# so that all or some of its gradients may count twice.
# The same run held one more test: when worker 1 was back, server 1 was killed.

# %% predict-server [markdown]
# Then server 1 is killed.
# What does the training do?
#
# - [x] `error` It ends with an error.
#   Its variables were nowhere else, and no gradient can be computed without them.
# - [ ] `waits` It waits until the server is started again.
#   A new server would have the old one's name, and none of its values.
# - [ ] `goes on` It goes on with server 0.
#   A worker is replaced by any other.
#   A server holds what no other has.

# %% reveal-server
reveal("11-server", "error" if served.failed else "goes on")

# %% served
print(*(line for line in said if not line.startswith("step") and " took " not in line), sep="\n")

# %% slurm-text [markdown]
# Losses are left out there: the workers shuffle without a seed, and who is how fast differs from run to run.
#
# The first lines tell where the variables lay: the largest in two parts, the others whole.
# With a server its part is gone, and the coordinator ends with an error.
# This run saved no checkpoint; with one, all are started again and go on from it.
# Where only the coordinator was lost, it is enough to start that one.
#
# ## Beyond this machine
#
# On real machines something else starts the processes, watches them and, mostly, starts them again.
# The programs stay as they are; `deploy/` has what these systems need.
# If you know neither of them, skip the table:
#
# | | who tells each its place | a lost worker | files |
# | --- | --- | --- | --- |
# | Kubernetes with Kubeflow | its operator, for a `TFJob` | is started again under its name | `tfjob-multi-worker.yaml`, `tfjob-parameter-server.yaml` |
# | Kubernetes alone | the manifest: an Indexed Job has names that are known before | is replaced by a new pod with its number | `job-multi-worker.yaml`, `job-multi-client.yaml` |
# | Slurm | `lessons.lesson_11_many_processes.programs.slurm`, from Slurm's variables | ends the job; it is queued again where SIGTERM ended it or its machine was lost, after an error submit it again | `multi_worker.sbatch` and two more |
#
# Survivors of synchronous workers end with an error there as well, and all go on from the checkpoint.
# So its folder must be one that every machine sees.
# With GPUs one process of the workers' program has all GPUs of its machine.
# TensorFlow's collectives go by `RING`, its own ring over gRPC, unless the strategy is made
# with `communication_options` that ask for `NCCL`, NVIDIA's library; the program asks where it sees GPUs.
# The client of DTensor here uses CPUs.
# None of this was run on a real cluster, or with GPUs:
# the manifests were held against the schemas of their systems,
# and the batch scripts ran with a stand-in for Slurm.
#
# What reads a system's variables is a *resolver*.
# The next cell pretends to be the second task of a Slurm job on two machines, `cn1` and `cn2`.

# %% slurm
from lessons.lesson_11_many_processes.programs import slurm

of_a_step = {"STEP_NUM_TASKS": "2", "STEP_NODELIST": "cn[1-2]", "STEP_TASKS_PER_NODE": "1(x2)"}
of_a_task = {f"SLURM_{name}": value for name, value in {**of_a_step, "PROCID": "1"}.items()}
with patch.dict(os.environ, {**of_a_task, "SLURMD_NODENAME": "cn2"}):
    tf_config = slurm.variables()["TF_CONFIG"]
ClusterSpec.from_tf_config(tf_config)

# %% drill-text [markdown]
# ## A fault drill
#
# Yesterday two machines, `host0` and `host1`, trained together and saved into a folder that both see.
# (What lies there is the checkpoint of the run above, after step 6.)
# In the list of addresses `host0` is the first.
# Today somebody set the machines up anew, to go on to step 9.
# It fails.

# %% drill
from lessons.lesson_11_many_processes.checks_drill import start

machines = {
    "host0": {"index": 1, "batch": 48, "checkpoints": "/mnt/nas/garments"},
    "host1": {"index": 2, "batch": 48, "checkpoints": "/mnt/nfs/garments"},
}
start(machines, resuming.name)

# %% drill-exercise [markdown]
# **Exercise 4.** Find out why, and repair it.
# There are three faults, each hides the next, and the logs, with what is said above, tell the right values.
# Of two machines that differ they name the second, which need not be the wrong one.
# Change a value, run `start(repaired, resuming.name)`, read both logs, and so on,
# until both go on after step 6.
# (A machine that waits for another says nothing; `start` ends it soon after that one has failed,
# and the report, made before, says that it runs.)

# %% exercise-drill
# solution begin
repaired = {
    "host0": {"index": 0, "batch": 32, "checkpoints": "/mnt/nfs/garments"},
    "host1": {"index": 1, "batch": 32, "checkpoints": "/mnt/nfs/garments"},
}
# solution end

# %%
check("11-drill", repaired)

# %% repaired
start(yours_or_ours("11-drill", repaired), resuming.name)

# %% score
score("11")

# %% [markdown]
# ## Takeaways
#
# - All processes run one program.
#   `TF_CONFIG`, or DTensor's variables, tells each its place.
#   Without `TF_CONFIG` a `MultiWorkerMirroredStrategy` trains alone, in silence.
# - Synchronous workers compute what one process would, but for rounding.
#   When one dies the others end too, and all go on from the checkpoint, with the losses that would have been.
# - With parameter servers the others go on without a lost worker, and no step is lost.
#   A lost server costs what was learned since the last checkpoint.
#
# Lesson 12, in preparation, is about scaling out: what many machines gain, and what they cost.
