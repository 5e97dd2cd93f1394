# %% [markdown]
# # Any mesh
#
# Your training run has been going for three weeks, on eight devices that are arranged as 4 × 2.
# Tomorrow the cluster gives you six.
#
# Are the three weeks lost? Or *can a run move to another mesh?*
#
# In {lesson:whole_game} a run moved once, and its losses were those of one device, up to rounding.
# Now you find out how that is possible. You look into the file, and assemble by hand the part that one device needs.
# You see how a program can lose its values without failing any of the usual checks, and protect your own from it.
# Then you send one run over four meshes, and finally to a single device.
# And because a run that can go anywhere has to go somewhere, the second half asks which mesh to choose.
#
# **After this lesson you can**
#
# - move a run with its optimizer to another mesh, and show that nothing was lost on the way;
# - say what a checkpoint holds, and what each device reads from it;
# - compare meshes by what each device has to hold, to send, and to wait for.
#
# **Time:** 30 minutes.
# **You need to know:** checkpoints and what Adam keeps ({lesson:a_run}),
# and layouts from the names of axes ({lesson:splitting_the_model}).

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% data-heading [markdown]
# ## A run on 4 × 2
#
# This is the run that you know: reviews, a network of 1,200 → 48 → 2, and Adam written by hand.
# The next four cells are folded, so just run them. They are those of {lesson:a_run},
# except that all the reviews are for training, and that the layouts come later.

# %% data tags=["known"]
import numpy as np

from course_lib import data, shard

tf = course_lib.start_tensorflow()
from tensorflow.experimental import dtensor

WHOLE = dtensor.UNSHARDED

reviews = data.tf_idf(data.load_imdb())
train_x = reviews.train.features
train_y = reviews.train.labels

rng = np.random.default_rng(0)
W1 = rng.normal(0, np.sqrt(2 / 1200), (1200, 48))
W2 = rng.normal(0, np.sqrt(2 / 48), (48, 2))
values = {
    "W1": W1.astype("float32"),
    "b1": np.zeros(48, "float32"),
    "W2": W2.astype("float32"),
    "b2": np.zeros(2, "float32"),
}


# %% forward tags=["known"]
def logits_of(weights, x):
    hidden = tf.nn.relu(x @ weights["W1"] + weights["b1"])
    return hidden @ weights["W2"] + weights["b2"]


def adam(weight, mean, square, gradient, step, learning_rate):
    mean = 0.9 * mean + 0.1 * gradient
    square = 0.999 * square + 0.001 * gradient**2
    # Both averages begin at zero, and are corrected for that
    correction = tf.sqrt(1 - 0.999**step) / (1 - 0.9**step)
    rate = learning_rate * correction
    weight = weight - rate * mean / (tf.sqrt(square) + 1e-7)
    return weight, mean, square


# %% step tags=["known"]
@tf.function
def train_step(model, x, y, step, learning_rate):
    with tf.GradientTape() as tape:
        logits = logits_of(model.weights, x)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            y, logits
        )
        loss = tf.reduce_mean(losses)
    gradients = tape.gradient(loss, model.weights)

    # First compute everything, then write it
    updates = {}
    for name, gradient in gradients.items():
        weight = model.weights[name]
        mean = model.means[name]
        square = model.squares[name]
        updates[name] = adam(
            weight, mean, square, gradient, step, learning_rate
        )

    for name, (weight, mean, square) in updates.items():
        model.weights[name].assign(weight)
        model.means[name].assign(mean)
        model.squares[name].assign(square)

    hits = tf.cast(tf.argmax(logits, axis=1) == y, tf.float32)
    return loss, tf.reduce_mean(hits)


# %% model tags=["known"]
def place(array, layout):
    if layout is None:
        return tf.constant(array)
    return shard(array, layout)


def variable(array, layout):
    if layout is None:
        return tf.Variable(array)
    return dtensor.DVariable(shard(array, layout))


class Model(tf.Module):
    def __init__(self, layouts):
        super().__init__()
        self.weights = {}
        self.means = {}
        self.squares = {}
        for name, value in values.items():
            zeros = np.zeros_like(value)
            layout = layouts[name]
            self.weights[name] = variable(value, layout)
            self.means[name] = variable(zeros, layout)
            self.squares[name] = variable(zeros, layout)


# %% layouts-text [markdown]
# Adam's slots have the layouts of their weights, so they will move with them.
#
# Where do the layouts come from? As in {lesson:splitting_the_model}, every axis has a name,
# and `splits` says which mesh dimension splits it.
# There is one difference: if `splits` names a dimension that a mesh doesn't have, the axis simply stays whole.
# That takes one `if`, and then a single dictionary serves every mesh:

# %% layouts
axes = {
    "x": ("batch", "features"),
    "y": ("batch",),
    "W1": ("features", "hidden"),
    "b1": ("hidden",),
    "W2": ("hidden", "classes"),
    "b2": ("classes",),
}
splits = {"batch": "batch", "features": "feature", "hidden": "model"}


def make_layouts(axes, splits, mesh):
    layouts = {}
    for tensor, names in axes.items():
        entries = []
        for name in names:
            entry = splits.get(name, WHOLE)
            if entry not in mesh.dim_names:
                entry = WHOLE
            entries.append(entry)
        layouts[tensor] = dtensor.Layout(entries, mesh)
    return layouts


four_by_two_mesh = dtensor.create_mesh(
    [("batch", 4), ("model", 2)], device_type="CPU"
)
four_by_two = make_layouts(axes, splits, four_by_two_mesh)

for tensor, layout in four_by_two.items():
    print(tensor, layout.sharding_specs)

# %% train-text [markdown]
# On this mesh `features` stays whole, because no dimension is called `feature`. A later mesh will have one.
# The hidden units are split, so `W1` has two shards, a left and a right half, and four devices hold each of them.
#
# The next cell is folded, too. It is the `newest` that you wrote in {lesson:a_run},
# which finds the newest checkpoint that is complete.

# %% newest tags=["known"]
from pathlib import Path


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


# %% resume-text [markdown]
# If there is a checkpoint, a run resumes from it, *whatever layouts the model has now*:


# %% resume
def resume(checkpoint, folder):
    path = newest(folder)
    if path is not None:
        status = checkpoint.restore(path)
        status.assert_existing_objects_matched()


# %% train-loop [markdown]
# Last comes the loop. It is simpler than that of {lesson:a_run}, because nothing is shuffled and the learning rate is constant.
# It saves after every epoch, and once more when it ends or is stopped:


# %% train
def train(layouts, folder, steps, batch_size=64, learning_rate=3e-3):
    model = Model(layouts)
    done = tf.Variable(0, dtype=tf.int64)
    checkpoint = tf.train.Checkpoint(model=model, step=done)
    manager = tf.train.CheckpointManager(
        checkpoint, folder, max_to_keep=3
    )
    resume(checkpoint, folder)

    steps_per_epoch = len(train_y) // batch_size
    rate = np.float32(learning_rate)
    try:
        for step in range(int(done), int(done) + steps):
            epoch, batch = divmod(step, steps_per_epoch)
            rows = slice(batch * batch_size, (batch + 1) * batch_size)
            x = place(train_x[rows], layouts["x"])
            y = place(train_y[rows], layouts["y"])
            number = np.float32(step + 1)
            loss, accuracy = train_step(model, x, y, number, rate)
            done.assign(step + 1)
            if batch + 1 == steps_per_epoch:
                manager.save()
            yield {
                "step": step + 1,
                "epoch": epoch + 1,
                "loss": float(loss),
                "accuracy": float(accuracy),
            }
    except GeneratorExit:
        pass  # the Stop button, between two steps
    manager.save()


# %% first-run-text [markdown]
# The whole run will have 200 steps. We train the first 40 now; the plot leaves room for the rest:

# %% first-run
import tempfile

from course_lib import live

folder = tempfile.mkdtemp()
first_run = await live(train(four_by_two, folder, 40), steps=200)

# %% first-run-read [markdown]
# The folder now has a checkpoint, and the model is gone, because it existed only inside `train`.
# The file is all that is left of the run.
#
# ## What is in the file?
#
# On the mesh, everything was there more than once. How much of that went into the file?

# %% predict-disk [markdown]
# A model and its optimizer lie on eight devices, as 4 × 2.
# Nearly all of their bytes are in matrices that are split into two halves, and each half lies on four devices.
# They are saved. On one device, without a mesh, the model and the optimizer would take a certain number of bytes.
# About how many times that number are in the data files?
#
# - [ ] `0.5`
#   This is what one device holds. But then half of each matrix would be missing.
# - [x] `1`
#   Each half is written once, by one of the four devices that hold it.
# - [ ] `4`
#   The mesh does hold each half four times. But the four are equal, so one of them is enough.
# - [ ] `8`
#   Then each device would write complete matrices, and no device has one.

# %% reveal-disk
on_disk = 0
for file in Path(folder).glob("*.data-*"):
    on_disk += file.stat().st_size

counted_once = 0
for value in values.values():
    counted_once += 3 * value.nbytes  # a weight and two slots

reveal("any_mesh-disk", round(on_disk / counted_once))

# %% files-text [markdown]
# Which files are these?

# %% files
for file in sorted(Path(folder).glob("ckpt-*")):
    kilobytes = file.stat().st_size / 1000
    print(f"{file.name:28} {kilobytes:4.0f} kB")

# %% files-read [markdown]
# The two large files have 346 kB each. Together that is three times the 231 kB of the weights,
# so each weight and its two slots are there exactly once.
# Device 0 wrote one of them. It has the left half of `W1`, the upper half of `W2`, their slots,
# and the variables that aren't split, such as `b2`.
# Device 1 wrote the other one, with the other halves.
# Devices 2 to 7 wrote nothing, because they hold copies. The tiny data file has the step number
# and the names of the program's objects.
#
# The most interesting file is the last one. This **index** records each variable's full shape.
# And for each stored piece, or *block*, it says which slice of the variable this is and which file holds it.
# Let's ask it for the variables:

# %% index
latest = newest(folder)
for key, shape in tf.train.list_variables(latest):
    if "/W" in key:
        print(key, shape)

# %% index-read [markdown]
# `W1` is listed with its global shape, 1,200 × 48, although no file has more than half of it.
# What the index does *not* have is a mesh. It says neither that there were eight devices, nor that they were arranged as 4 × 2.
#
# So any mesh can come and take what it needs. That is called **resharding**.
# Let's make two more meshes that will read `W1`, one of 2 × 4 and one of only three devices:

# %% more-meshes
two_by_four_mesh = dtensor.create_mesh(
    [("batch", 2), ("model", 4)], device_type="CPU"
)
two_by_four = make_layouts(axes, splits, two_by_four_mesh)

three_mesh = dtensor.create_mesh(
    [("model", 3)], devices=["CPU:0", "CPU:1", "CPU:2"]
)
three = make_layouts(axes, splits, three_mesh)

# %% file-picture-text [markdown]
# Here is `W1`, in the file and on the three meshes. Equal colors are equal data, and the numbers are devices:

# %% file-picture
from lessons.layouts.any_mesh.picture import file_picture

written = four_by_two["W1"]
readers = [four_by_two["W1"], two_by_four["W1"], three["W1"]]
file_picture((1200, 48), written, readers)

# %% file-picture-read [markdown]
# The first mesh gets back what it wrote. On 2 × 4, each device needs half of a stored half.
# With three devices it gets interesting: the middle third lies across the border of the two blocks.
# So device 1 needs the end of one block and the beginning of the other.
#
# **Exercise 1.** Be device 1.
# Write `read_columns(stored, first, stop)`. It returns the columns from `first` up to, but not including, `stop`.
# `stored` is a list of blocks, in any order. Each is a pair `(start, block)`:
# `block` is an array, and `start` is the number of its first column in the whole matrix, counted from 0.
# Don't put the whole matrix together first: a device may be too small for it.
# (The check includes a matrix too wide for memory, of which `stored` has only a few blocks.)


# %% exercise-columns
def read_columns(stored, first, stop):
    # solution begin
    pieces = []
    for start, block in sorted(stored):
        begin = max(first, start)
        end = min(stop, start + block.shape[1])
        if begin < end:
            pieces.append(block[:, begin - start : end - start])
    return np.concatenate(pieces, axis=1)
    # solution end


# %%
check("any_mesh-columns", read_columns)

# %% middle-text [markdown]
# The next cell uses your function once the check has accepted it, and ours until then.
# It cuts our initial `W1` into the two blocks of the file, and reads the middle third:

# %% middle
from course_lib import yours_or_ours

read = yours_or_ours("any_mesh-columns", read_columns)
left, right = values["W1"][:, :24], values["W1"][:, 24:]
middle = read([(0, left), (24, right)], 16, 32)

print(middle.shape)
print(np.sum(middle != values["W1"][:, 16:32]), "numbers differ")

# %% restore-text [markdown]
# TensorFlow does this job for each device and each variable.
# It is less frugal than our solution: to get a part of a block, it reads all of it. Does every number arrive?
# We restore the file under the three meshes, and compare `W1` on each device with `W1` in the file.
# To see the copies as they are, we look at them with `value()`, as in {lesson:one_step}:

# %% restore
key = "model/weights/W1/.ATTRIBUTES/VARIABLE_VALUE"
in_file = tf.train.load_variable(latest, key)


def restored_W1(layouts):
    model = Model(layouts)
    status = tf.train.Checkpoint(model=model).read(latest)
    status.expect_partial()  # we leave out the step number
    return model.weights["W1"]


def differing(layouts):
    found = dtensor.unpack(restored_W1(layouts).value())
    wanted = dtensor.unpack(shard(in_file, layouts["W1"]))
    count = 0
    for ours, theirs in zip(found, wanted):
        count += np.sum(ours.numpy() != theirs.numpy())
    return count


print("4 x 2:", differing(four_by_two))
print("2 x 4:", differing(two_by_four))
print("three:", differing(three))

# %% restore-read [markdown]
# No number differs, on any device: `W1` is the same to the last bit.
# We don't check the other variables this way: the run will go on from them, so its losses will show any mistake.
#
# ## Without a whole copy
#
# For our small network all this hardly matters.
# But think of a matrix that was split because no device could hold it.
# If a device had to hold all of it for a moment, just to save it, the run would end there.
# So let's save something bigger: 67 MB, split into eight shards on our 4 × 2.

# %% big
layout = dtensor.Layout(["batch", "model"], four_by_two_mesh)
big = dtensor.DVariable(
    shard(np.zeros((4096, 4096), "float32"), layout)
)
big_folder = tempfile.mkdtemp()
tf.train.Checkpoint(big=big).write(big_folder + "/big")

for file in sorted(Path(big_folder).glob("*.data-*")):
    megabytes = file.stat().st_size / 1e6
    print(f"{file.name:25} {megabytes:4.1f} MB")

# %% big-read [markdown]
# Eight of the nine files have 8.4 MB: each device wrote one.
# The other one is nearly empty, and has only the names of the program's objects.
# So no file has the whole matrix, and no device had to hold it.
#
# Reading needs no whole copy either, as long as the stored *blocks* are small.
# A device that needs a part of a block reads all of it, and a matrix that was saved under data parallelism is a single block.
# So the danger lies in large blocks, not in large matrices.

# %% note-memory [markdown]
# How much memory does it take?
#
# We measured it, with a matrix of 268 MB that was saved in eight blocks.
# Here is the peak of the extra memory, summed over all eight devices. It varies from run to run:
#
# | | extra memory |
# | --- | --- |
# | saving | up to 40 MB |
# | restoring into the same layout | 70 to 80 MB |
# | restoring into a different layout | 140 to 270 MB |
# | for comparison: a whole copy on each device | 2,147 MB |
#
# A different layout took up to the size of one copy. Did some device hold one? The sum can't tell.
# So we let a single device read its new shard of 34 MB. Its memory peaked at 67 to 84 MB, far below the whole matrix.
# But when the matrix had been saved as a single block, reading it into eight shards took up to 670 MB.
#
# One process wrote the matrix, and another one restored it and looked at its own memory every half millisecond.
# A shorter peak is missed, so take the figures as rough. A test of this course measures them again.
# Eight virtual devices share the memory of one process, so the figures of the table are for all of them.
# For one device alone, a process without a mesh read one shard with `tf.raw_ops.RestoreV2`, to which you can give a slice of a variable.
#
# TensorFlow's source shows that a device reads stored blocks in full (`BundleReader::GetSliceValue`):
# a block that is exactly the wanted one is read in place, and any other is first read into memory of its own.
# Each device also has its new shard for a moment beside the old one.
# On GPUs, all of this would happen in the host's memory. That is untried here.

# %% silence-heading [markdown]
# ## Lost without a warning
#
# When a run moves, every variable of the new program has to find its value in the file.
# `resume` has the guard of {lesson:a_run} for this: `assert_existing_objects_matched` raises an error
# if a variable finds nothing, for example because its name has changed.
#
# Is this guard enough? Suppose that, in the meantime, somebody has widened the hidden layer.
# In the file, `W2` has 48 rows, and in the new program it has 96. The shape of `b2` is the same in both.
# To see which values we end up with, we fill the file with ones and the program with zeros:

# %% silence
saved = {
    "W2": variable(np.ones((48, 2), "float32"), four_by_two["W2"]),
    "b2": variable(np.ones(2, "float32"), four_by_two["b2"]),
}
file_of_ones = tempfile.mkdtemp() + "/ones"
tf.train.Checkpoint(**saved).write(file_of_ones)

program = {
    "W2": variable(np.zeros((96, 2), "float32"), four_by_two["W2"]),
    "b2": variable(np.zeros(2, "float32"), four_by_two["b2"]),
}

# %% silence-first-text [markdown]
# Now the program reads the file, and asks two guards whether all is well. Then it uses `W2`:

# %% silence-first tags=["error"]
from course_lib import last_line


def sum_on_device_0(variable):
    return dtensor.unpack(variable.read_value())[0].numpy().sum()


status = tf.train.Checkpoint(**program).read(file_of_ones)
status.assert_existing_objects_matched()
status.assert_consumed()
print("no complaint")

try:
    print(sum_on_device_0(program["W2"]))
except tf.errors.OpError as error:
    print(last_line(error))

# %% silence-second-text [markdown]
# Neither guard noticed. The error came later, when a tensor on a mesh was next used.
# Its message is clear, but you get it only once. What do the variables hold now?

# %% silence-second
print("W2", sum_on_device_0(program["W2"]))
print("b2", sum_on_device_0(program["b2"]))

# %% silence-second-read [markdown]
# Both sums are zero: these are the initial values, and this time there is no error.
# Look at `b2`: its shape was right, and it still never got its ones!
# A single wrong shape costs you *every* variable that is read with it.
# In a notebook, you would see the error, shrug, run the next cell, and train from the initial values without knowing it.
#
# Our `resume` calls `restore` instead of `read`. It waits for the values, so there the error comes at once.
# But safety shouldn't depend on which of the two a program calls.
# So compare the shapes first. The index has them, and reading it costs next to nothing:

# %% shapes
here = list(program["W2"].shape)
for key, shape in tf.train.list_variables(file_of_ones):
    if key.startswith("W2"):
        print(shape, "in the file,", here, "here")

# %% shapes-read [markdown]
# `resume` should do that for you, so we give it a guard of its own.
# It compares the shape of each weight. (The slots have the same shapes.)
# If a layer has grown or a weight was renamed, the program now stops before it restores anything, and says which weight it was:


# %% resume-guarded
def resume(checkpoint, folder):
    path = newest(folder)
    if path is None:
        return
    stored = dict(tf.train.list_variables(path))
    for name, weight in checkpoint.model.weights.items():
        key = f"model/weights/{name}/.ATTRIBUTES/VARIABLE_VALUE"
        shape = stored.get(key)
        if shape is None:
            raise ValueError(f"{name} is missing in {path}")
        if shape != list(weight.shape):
            raise ValueError(f"{name} has shape {shape} in {path}")
    status = checkpoint.restore(path)
    status.assert_existing_objects_matched()


# %% note-ordinary [markdown]
# Does this happen without a mesh, too?
#
# No. With ordinary variables, on one device, `read` itself raises a `ValueError`.

# %% trip-heading [markdown]
# ## One run, four meshes and one device
#
# Now let's move the run, which has done 40 steps. First it moves to 2 × 4 for another 40.
# Then it moves to a mesh of three dimensions, a cube of 2 × 2 × 2, for 40 more.
# The cube has a dimension `feature`, so it splits the 1,200 features as well:

# %% cube
cube_mesh = dtensor.create_mesh(
    [("batch", 2), ("feature", 2), ("model", 2)],
    device_type="CPU",
)
cube = make_layouts(axes, splits, cube_mesh)

# %% trip-text [markdown]
# What has to change in the call of `train`? Only its first argument.
# We work on a copy of the folder, so you can run this cell again:

# %% trip
import shutil


def copy_of(folder):
    copied = tempfile.mkdtemp()
    shutil.copytree(folder, copied, dirs_exist_ok=True)
    return copied


trip_folder = copy_of(folder)
records = list(first_run.steps)  # 1 to 40, on 4 x 2
records.extend(train(two_by_four, trip_folder, 40))  # 41 to 80
records.extend(train(cube, trip_folder, 40))  # 81 to 120

# 120, unless you stopped the first run early
print("at step", records[-1]["step"])

# %% six-text [markdown]
# And now the cluster gives you six devices.
# Training that goes on while devices come and go is called **elastic training**.
# Six is 3 × 2, so the obvious idea is to take the 4 × 2 of the beginning, and shrink its `batch` from 4 to 3.
# Let's copy a batch to this mesh, and ask DTensor to split it:

# %% six-refused tags=["error"]
six_devices = ["CPU:0", "CPU:1", "CPU:2", "CPU:3", "CPU:4", "CPU:5"]
six_mesh = dtensor.create_mesh(
    [("batch", 3), ("model", 2)], devices=six_devices
)
copies = dtensor.Layout([WHOLE, WHOLE], six_mesh)
thirds = dtensor.Layout(["batch", WHOLE], six_mesh)
x = dtensor.copy_to_mesh(train_x[:64], copies)
try:
    dtensor.relayout(x, thirds)
except tf.errors.OpError as error:
    print(last_line(error))

# %% six-read [markdown]
# Our checkpoint is not the problem: the weights would fit this mesh.
# The problem is the *batch*: 64 rows can't be split into three equal shards.
# You could train with batches of 63 or 66, but then it would be a different run, with different gradients.
# If it is to stay the same run, the mesh has to fit the batch.
#
# **Exercise 2.** Find a mesh for the six devices on which the run can go on with batches of 64.
# (There are several.) Write down its dimensions, as for `dtensor.create_mesh`.
# Their names have to be values of `splits`:
# `batch`, `feature` or `model`.

# %% exercise-six
# solution begin
six = [("batch", 2), ("model", 3)]
# solution end

# %%
check("any_mesh-six", six)

# %% on-six-text [markdown]
# Your mesh (or ours) takes the run from step 120 to 160.
# For the last forty steps even the six devices are gone, and a single device finishes the run, without DTensor.
# For comparison, we also train on one device from the start:

# %% on-six
dims = yours_or_ours("any_mesh-six", six)
six_mesh = dtensor.create_mesh(list(dims), devices=six_devices)
on_six = make_layouts(axes, splits, six_mesh)
one_device = dict.fromkeys(axes)  # no layouts: ordinary tensors

last_folder = copy_of(trip_folder)
moved = list(records)  # 1 to 120
moved.extend(train(on_six, last_folder, 40))  # 121 to 160
moved.extend(train(one_device, last_folder, 40))  # 161 to 200
one = list(train(one_device, tempfile.mkdtemp(), 200))

# %% run-picture
from lessons.layouts.any_mesh.picture import run_picture

meshes_used = {
    0: "4 × 2",
    40: "2 × 4",
    80: "2 × 2 × 2",
    120: "six",
    160: "one",
}
run_picture(moved, one, meshes_used)

# %% run-picture-read [markdown]
# Each dashed line marks a move, and the curve doesn't show it.
# But the curve is a mean over twenty steps, and could hide a small jump. So let's compare the numbers, step by step:

# %% same
from course_lib import about

differences = []
for ours, theirs in zip(moved, one):
    differences.append(abs(ours["loss"] - theirs["loss"]))

print(len(differences), "steps")
print("largest difference", about(max(differences), 0, 1e-5))

# %% same-read [markdown]
# Two hundred steps, from mesh to mesh and finally on one device,
# and every loss matches that of the run that never left its one device, up to rounding.
# And the slots and the data? If one of them had been lost, the losses would differ by far more than that, as in {lesson:a_run}.
#
# So yes, a run can move. It keeps its weights, its slots and its place in the data.
# The mesh was never a part of it.

# %% note-order [markdown]
# What else has to come along?
#
# The batches have to come along. `train` takes them in a fixed order from the step number, which is in the checkpoint.
# If yours are shuffled, the order has to follow from a seed and the step, as in {lesson:a_run}.
# If you draw dropout masks, they must not depend on the layout either.
#
# The initial values may depend on the mesh, since the checkpoint overwrites them.
#
# And if devices disappear in the middle of a step? That is the subject of {lesson:failures}.

# %% features-heading [markdown]
# ## Split the features as well
#
# If a run can go anywhere, where should it go? Before we compare meshes, look at the one that is new, the cube.
# Why would anybody split the features? Because a single example can be too large for a device.
# A medical scan of 512 × 512 × 512 voxels takes 0.54 GB in float32, and sixteen feature maps of that size take 8.6 GB.
# The backward pass needs the feature maps of all layers. With ten such layers, they take 86 GB, more than the 80 GB of an A100.
# Then you have to split the example itself.
#
# Our examples are rows of 1,200 features, and the cube splits each row in two.
# TensorFlow's tutorial calls this scheme spatial parallelism, a word that elsewhere means images cut along their height or width.
# Here it is, drawn like the schemes in {lesson:splitting_the_model}:

# %% scheme
from course_lib import MeshSpec, Plan
from lessons.layouts.scheme import Scheme

sizes = {"batch": 64, "features": 1200, "hidden": 48, "classes": 2}
drawn = {"x": axes["x"], "W1": axes["W1"], "W2": axes["W2"]}
spec = MeshSpec([("batch", 2), ("feature", 2), ("model", 2)])
spatial = Plan("spatial", spec, splits)
Scheme(spatial, drawn, sizes)

# %% scheme-read [markdown]
# The columns of `x` and the rows of `W1` are split at the same place, since both have the axis `features`.
# No device ever sees a whole review, or a whole column of `W1`. What do the devices have to exchange?

# %% predict-features [markdown]
# On a mesh of `batch` 2 × `feature` 2 × `model` 2, `x` of shape (64, 1200) has the layout `[batch, feature]`,
# and `W1` of shape (1200, 48) has `[feature, model]`: the first product of a network with one hidden layer.
# In a whole training step, forward and backward, how many bytes do the all-reduces over `feature` carry?
# A number takes 4 bytes.
#
# - [ ] `0`
#   A hidden unit sums over all 1,200 features, and no device has more than 600 of them.
# - [x] `3072` 3,072 bytes
#   Only the first product sums over the features. A device has partial sums for 32 reviews and 24 hidden units:
#   32 × 24 × 4 bytes.
# - [ ] `57600` 57,600 bytes
#   That is a device's shard of the gradient of `W1`. But that gradient is a sum over the reviews, so it goes over `batch`.
# - [ ] `60672` 60,672 bytes
#   That adds the gradient of `W1` to the sums of the first product. But the gradient sums over the reviews.

# %% reveal-features
from course_lib import collectives

cube_x = place(train_x[:64], cube["x"])
cube_y = place(train_y[:64], cube["y"])
step = np.float32(1)
rate = np.float32(3e-3)
found = collectives(
    train_step, Model(cube), cube_x, cube_y, step, rate
)
over_feature = 0
for each in found:
    if "feature" in each.mesh_dims:
        over_feature += each.payload_bytes
reveal("any_mesh-features", over_feature)

# %% lanes-text [markdown]
# The backward pass has nothing to add up over the features:
# each device computes the gradient of its own rows of `W1` from its own columns of `x`.
# So this new split costs only 3,072 of the 61,232 bytes that a device sends in a step.
# Walk through the step, and you meet three kinds of bands: one over `feature`, one over `model` for the logits,
# and six over `batch`, for the four gradients, the loss and the accuracy:

# %% lanes
from lessons.layouts.step_explorer import StepExplorer

StepExplorer("spatial")

# %% note-spatial [markdown]
# What do others call spatial?
#
# The name comes from TensorFlow's [tutorial](https://www.tensorflow.org/tutorials/distribute/dtensor_ml_tutorial).
# Elsewhere the word means that images or volumes are split along their height, width or depth.
# [Hou and others](https://arxiv.org/abs/1909.03108) train on medical scans in this way.
# There, a convolution at the edge of a device's shard needs the border of its neighbor's shard.
# The devices exchange these borders, called *halos*, in each layer, and no sum is needed.
# A dense layer has no neighbors. It sums over all features, so our devices add up instead.

# %% which-heading [markdown]
# ## Which mesh should you take?
#
# Let's compare three schemes on eight devices. For each of them, we want three numbers:
#
# - the bytes that device 0 **holds**: its shards of `x`, of the weights and of the slots;
# - the bytes that it **sends** in a step;
# - the **time** that sending takes.
#
# As in {lesson:splitting_the_model}, the time of a ring comes from the formula of {lesson:all_reduce},
# here with the figures for eight A100s in one node:

# %% ring
LATENCY = 3.4e-6  # seconds
BANDWIDTH = 240e9  # bytes per second


def ring_seconds(devices, num_bytes, bandwidth, latency):
    messages = 2 * (devices - 1)
    chunk = num_bytes / devices
    return messages * (latency + chunk / bandwidth)


# %% costs-text [markdown]
# The first number is counted on the model, and the other two on its collectives:

# %% costs
def bytes_held(model, x):
    held = dtensor.unpack(x)[0].numpy().nbytes
    for each in model.variables:
        held += dtensor.unpack(each.read_value())[0].numpy().nbytes
    return held


def bytes_sent(found):
    sent = 0
    for each in found:
        devices = each.group_size  # in one ring
        sent += 2 * (devices - 1) * each.payload_bytes / devices
    return sent


def seconds_of(found):
    seconds = 0
    for each in found:
        devices, payload = each.group_size, each.payload_bytes
        seconds += ring_seconds(devices, payload, BANDWIDTH, LATENCY)
    return seconds


# %% three-costs-text [markdown]
# Now one step under each scheme, with 64 and with 1,024 reviews:


# %% three-costs
def costs(layouts, rows):
    model = Model(layouts)
    x = place(train_x[:rows], layouts["x"])
    y = place(train_y[:rows], layouts["y"])
    step = np.float32(1)
    rate = np.float32(3e-3)
    found = collectives(train_step, model, x, y, step, rate)
    return {
        "held": bytes_held(model, x),
        "sent": bytes_sent(found),
        "seconds": seconds_of(found),
    }


# %% schemes
meshes = {
    "data": [("batch", 8)],
    "model": [("batch", 4), ("model", 2)],
    "spatial": [("batch", 2), ("feature", 2), ("model", 2)],
}
of_64 = {}
of_1024 = {}
for scheme, dims in meshes.items():
    mesh = dtensor.create_mesh(dims, device_type="CPU")
    layouts = make_layouts(axes, splits, mesh)
    of_64[scheme] = costs(layouts, 64)
    of_1024[scheme] = costs(layouts, 1024)

# %% bytes-text [markdown]
# First the bytes:

# %% bytes-picture
from lessons.layouts.any_mesh.picture import costs_picture

costs_picture(
    {
        "64 reviews, held": ("held", of_64),
        "1,024 reviews, held": ("held", of_1024),
        "64 reviews, sent": ("sent", of_64),
        "1,024 reviews, sent": ("sent", of_1024),
    }
)

# %% bytes-read [markdown]
# With 64 reviews, most of what a device holds is weights and slots, so the more we split the model, the less it holds.
#
# With 1,024 reviews it is different: now the data-parallel scheme holds *least* of the three.
# The batch has become larger than the model, and `batch` 8 splits it eight ways,
# whereas on 4 × 2 two devices along `model` hold the same rows of `x`.
# So **split what is large**. If that is the model, split along `model` or `feature`.
# If it is the batch, split along `batch`, or along `feature`, which splits `x` as well.
#
# And what is sent? Gradients are as large as the weights, however many reviews there are.
# Under data parallelism there is hardly anything else, so the bar doesn't change.
# Partial sums of activations grow with the batch. You see this in the spatial scheme, whose bar has grown from 61 to 111 kB.
#
# Do the bytes also tell us the time?

# %% predict-time [markdown]
# Eight devices in one node train under one of three schemes.
# Under `data`, a step takes 6 all-reduces in rings of eight, and a device sends 404,236 bytes.
# Under `model` it takes 6 in rings of four and 1 in a ring of two, and a device sends 173,384 bytes.
# Under `spatial` it takes 8 in rings of two, and a device sends 61,232 bytes.
# The all-reduces run one after another.
# Each message waits for a latency, and in that time the link could carry 816,000 bytes.
# Under which scheme do the all-reduces take the least time?
#
# - [ ] `data` data: it has the fewest all-reduces
#   But each of them goes around a ring of eight: 14 messages that wait for each other.
# - [ ] `model` model: it is in the middle in both
#   Six of its seven all-reduces go around a ring of four: 6 messages that wait for each other.
# - [x] `spatial` spatial: it has the shortest rings
#   The bytes take next to no time, so what counts is the messages that wait for each other.
#   A ring of eight has 14, a ring of four 6, and a ring of two only 2.
#   That makes 6 × 14 = 84 under `data`, 6 × 6 + 2 = 38 under `model`, and 8 × 2 = 16 under `spatial`.

# %% reveal-time
fastest = "data"
for scheme, cost in of_64.items():
    if cost["seconds"] < of_64[fastest]["seconds"]:
        fastest = scheme
reveal("any_mesh-time", fastest)

# %% time-picture tags=["modelled"]
costs_picture(
    {
        "64 reviews, time": ("seconds", of_64),
        "1,024 reviews, time": ("seconds", of_1024),
    }
)

# %% time-read [markdown]
# The bytes hardly matter.
# The bars for 64 and for 1,024 reviews are practically the same: 84, 38 and 16 times 3.4 µs make 286, 129 and 54 µs.
# Less than 2 µs are left for the bytes. All-reduces like these are **latency-bound**: the longer the ring, the slower, whatever it carries.
# In a large network it is the other way round. There the bytes decide, and then the bars of *sent* tell you the time.

# %% note-left-out [markdown]
# What do these times leave out?
#
# They are computed, and they leave out two things.
#
# TensorFlow fuses small all-reduces that run over the same mesh dimensions ({lesson:faster}).
# Two are left under `data`, three under `model` and four under `spatial`, and the same formula gives 96.9, 48.4 and 27.5 µs. The order stays, but the three are closer.
#
# And a device also has to do the arithmetic. Under all three schemes, it does an eighth of the products with `W1`, which are most of it.
# The planner of {lesson:how_long} adds the arithmetic to the exchanges.

# %% lab-heading [markdown]
# ## The training lab
#
# Now try it yourself. The lab below trains with *your* functions, the ones above, under any mesh and any splits.
# Before you run anything, its bars show what a device will hold (here with gradients and labels) and send.
#
# Choose *data parallel* and press **Run**. Choose *spatial parallel* and run again. The curves lie on top of each other,
# and the lab tells you the largest difference.
# Then raise the number of epochs, choose a finished run under *Start from*, pick another scheme, and press **Run**: the run moves.
# The lab keeps its runs in the folder `training_lab`, beside this notebook.
# They are still there when you restart the kernel, and you can resume them.
#
# And here is a puzzle. **With batches of 1,024, find a mesh and splits with which a device holds less than 900,000 bytes
# (parameters, gradients, Adam's slots and its shard of the batch) and sends less than 300,000 in a step.**
# None of the three schemes does it.

# %% lab
from lessons.layouts.any_mesh.lab import TrainingLab

TrainingLab(
    train,
    "training_lab",
    meshes=meshes,
    splits=splits,
    axes=axes,
    sizes=sizes,
    num_examples=len(train_y),
)

# %% note-puzzle [markdown]
# The answer to the puzzle
#
# The names below are those of axes, not of mesh dimensions.
# Take a mesh of 2 × 4, where the 2 splits `batch`, the 4 splits `features`, and `hidden` stays whole.
# A device then holds 851,232 bytes and sends 205,648. No other plan does it.
#
# Why this one? A batch of 1,024 takes 4.9 MB, far more than all else, so it has to be split eight ways.
# Both of its axes can be split, so there are four ways to do that:
#
# | | a device holds | and sends |
# | --- | --- | --- |
# | `batch` 8 | 1,539,360 | 404,236 |
# | `batch` 4 × `features` 2 | 1,079,584 | 222,840 |
# | `batch` 2 × `features` 4 | 851,232 | 205,648 |
# | `features` 8 | 740,128 | 344,064 |
#
# Splitting `features` splits `W1` as well, and all that belongs to it. But then the partial sums have to be added up, in longer and longer rings.
#
# You could split `hidden`, too, along the dimension that already splits `batch`. A device would hold still less.
# But then tensors have to be gathered along that dimension, and it sends more than 770,000 bytes.

# %% own-text [markdown]
# ## Your own network
#
# Now move a network of your own, say one with two residual connections.
# ({Lesson:splitting_the_model} says which layouts the residual stream needs.)
#
# 1. Name its axes. The stream needs a layout on each mesh, too, so give it an entry in `axes`: `"stream": ("batch", "stream")`.
#    On one device there is no layout, so skip the `relayout` there.
# 2. Build the model from a dictionary of layouts, with slots for each weight.
# 3. Predict the collectives of a step on 4 × 2, and then list them (the note below says how, without the course's library).
# 4. Train on 4 × 2, in a program of its own. Save every 20 steps, and kill it with `kill -9` after one of the saves.
# 5. Start it again on 2 × 4, and look at its first line. If it says step 1, the program found no checkpoint, and began anew.
#    The losses alone would not tell you: they are right in both cases.
# 6. Compare every loss with a run on one device that nobody killed. If they agree to 1e-5, you have moved a run.

# %% note-listing [markdown]
# How do you list collectives without the course's library?
#
# The plain program of {lesson:communication}, `communication.py`, lists them. Import it first, because it makes the eight devices.
# Set `os.environ["DTENSOR_ALLREDUCE_COMBINE_OPTIMIZATION_GROUP_SIZE"] = "1"` before you call anything,
# because otherwise you see only fused all-reduces.
# Then call `collectives_that_ran(mesh, function, *arguments)` with a plain function. It runs the step, so the weights change.

# %% plain-heading [markdown]
# ## The plain program
#
# [`any_mesh.py`](../plain/any_mesh.py) is this lesson in one file that needs TensorFlow and NumPy alone.
# It trains ten steps under each scheme in turn, and each goes on where the one before stopped.
# If a loss differs from that of one device by 1e-5 or more, it ends with an error.
# Give it a folder and the names of schemes, and it goes on from what is in the folder:
# `python any_mesh.py runs model spatial` today, `python any_mesh.py runs data` tomorrow.

# %% takeaways [markdown]
# ## Takeaways
#
# - A checkpoint stores each shard once, with its place in the whole, and no mesh. So any mesh can read it.
#   No device needs a whole copy, as long as the stored blocks are small.
# - A run is its weights, its slots, its step and the order of its data. Compare the shapes before you restore:
#   after `read`, TensorFlow's assertions let a wrong shape pass.
# - Split what is large. When messages are small, latency dominates: keep the rings short.
#
# Your three weeks are not lost: tomorrow the run goes on with six devices.
#
# {Lesson:large_trainings} asks what the training runs of large models add to a step.

# %% score
score("any_mesh")
