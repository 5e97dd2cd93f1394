# %% [markdown]
# # Any mesh
#
# Your training run has been going for three weeks, on eight devices arranged as 4 × 2.
# Tomorrow the cluster gives you six.
#
# Are the three weeks lost? Or *can a run move to another mesh?*
#
# In {lesson:whole_game} you saw it happen once: a run moved, and its losses never strayed from those of a single device.
# To see why, you look into a checkpoint, and assemble the part of a matrix that one device needs.
# Then you watch a program lose its values while all of TensorFlow's checks pass, and protect yours against that. Next, you send one run over four meshes and on to a single device.
# And because a run can go to any mesh, the second half asks which one to choose.
#
# **After this lesson you can**
#
# - move a run with its optimizer to another mesh, and show that nothing was lost on the way;
# - say what a checkpoint holds, and what each device reads from it;
# - compare meshes by what each device has to hold, to send, and to wait for.
#
# **Time:** 55 minutes.
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
# We train the network that you know, 1,200 → 48 → 2, on reviews, with Adam written by hand.
# The next five cells come from {lesson:a_run}, and are folded: just run them.
# This time all the reviews are for training, and the layouts come later.
# The last cell is the `newest` that you wrote, which finds the newest complete checkpoint in a folder.

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


# %% layouts-text [markdown]
# Each weight needs a layout. Its two Adam slots get the same one, so they will move with the weight.
#
# As in {lesson:splitting_the_model}, every axis has a name, and `splits` says which mesh dimension splits it.
# (The axis `features` is split by the dimension `feature`.)
# The same `splits` serves every mesh. Where a mesh lacks a dimension, the axis stays whole:

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

# %% resume-text [markdown]
# Our mesh has no dimension `feature`, so the axis `features` stays whole.
# The axis `hidden` is split in two, so `W1` has a left and a right half, and four devices hold each of them.
#
# The loop is simpler than that of {lesson:a_run}, because nothing is shuffled and the learning rate is constant.
# First it calls `resume`, which restores the newest checkpoint if the folder has one.
# It saves after every epoch, and once more at the end or when you press **Stop**:


# %% resume
def resume(checkpoint, folder):
    path = newest(folder)
    if path is not None:
        status = checkpoint.restore(path)
        status.assert_existing_objects_matched()


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
# The whole run will have 200 steps. We train the first 40 now:

# %% first-run
import tempfile

from course_lib import live

folder = tempfile.mkdtemp()
first_run = await live(train(four_by_two, folder, 40), steps=200)

# %% first-run-read [markdown]
# The model existed only inside `train`, so it is gone now. All that is left of the run is the checkpoint in the folder.
#
# ## What is in the file?
#
# On the mesh, at least four devices held each number of the model.
# How many of these copies went into the file?

# %% predict-disk [markdown]
# A model trains with Adam on a mesh of 4 × 2.
# Nearly all of the bytes of its weights and slots are in matrices that are split into two halves,
# and four devices hold each half. Then the run saves a checkpoint.
# About how many times as many bytes do its data files have as one whole copy of the weights and slots?
#
# - [ ] `0.5`
#   This is what one device holds. But then half of each matrix would be missing.
# - [x] `1`
#   Four devices hold each half, but only one of them writes it.
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

# %% files
for file in sorted(Path(folder).glob("ckpt-*")):
    kilobytes = file.stat().st_size / 1000
    print(f"{file.name:28} {kilobytes:4.0f} kB")

# %% files-read [markdown]
# The two large files have 346 kB each. Together they have 692 kB, three times the 231 kB of the weights. So the files hold everything exactly once: each weight, and its two slots.
# Device 0 wrote one of the files, with the left half of `W1`, the upper half of `W2`, their slots,
# and the variables that aren't split, such as `b2`. Device 1 wrote the other file, with the other halves.
# Devices 2 to 7 hold copies of the same data, and wrote nothing.
# The small data file has the step number and the names of the program's objects.
#
# The last file is the **index**. For each variable, the index records the full shape.
# For each stored piece, or *block*, it records which slice of the variable it is, and which file holds it.
# Let's list the matrices in the index:

# %% index
latest = newest(folder)
for key, shape in tf.train.list_variables(latest):
    if "/W" in key:
        print(key, shape)

# %% index-read [markdown]
# `W1` has its full shape here, 1,200 × 48, although no file has more than half of it.
# And nowhere does the index mention a mesh. It doesn't know that there were eight devices, let alone that they stood as 4 × 2.
#
# So a program on any other mesh can take what its devices need out of the blocks. That is called **resharding**.
# Let's see what two more meshes need, one of 2 × 4 and one of only three devices:

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
# Here is `W1` in the file, and on three meshes that read it.
# Equal colors are equal data, and the numbers are devices:

# %% file-picture
from lessons.layouts.any_mesh.picture import file_picture

written = four_by_two["W1"]
readers = [four_by_two["W1"], two_by_four["W1"], three["W1"]]
file_picture((1200, 48), written, readers)

# %% file-picture-read [markdown]
# On 4 × 2, each device reads back a block as it was written. On 2 × 4, each device needs half of a block.
# On three devices, the border between the two blocks runs through the middle third.
# So device 1 needs the end of one block and the beginning of the other.
#
# **Exercise 1.** Be device 1.
# Write `read_columns(stored, first, stop)`, which returns the columns from `first` up to, but not including, `stop`.
# `stored` is a list of pairs `(start, block)`, in any order.
# `block` is an array, and `start` is the number of its first column in the whole matrix, counted from 0.
# Don't put the whole matrix together first, because it may not fit on your device.
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

# %% restore-text [markdown]
# TensorFlow does this job for each variable on each device.
# It is less frugal than our solution: if a device needs a part of a block, TensorFlow reads the whole block.
#
# Does every number arrive? We restore the checkpoint on each of the three meshes, compare every device's part of `W1` with the file, and count the numbers that differ.
# As in {lesson:one_step}, `value()` shows each device's copy as it is:

# %% restore
key = "model/weights/W1/.ATTRIBUTES/VARIABLE_VALUE"
in_file = tf.train.load_variable(latest, key)

for name, layouts in [
    ("4 x 2", four_by_two),
    ("2 x 4", two_by_four),
    ("three", three),
]:
    model = Model(layouts)
    status = tf.train.Checkpoint(model=model).restore(latest)
    status.expect_partial()  # we leave out the step number

    found = dtensor.unpack(model.weights["W1"].value())
    wanted = dtensor.unpack(shard(in_file, layouts["W1"]))
    count = 0
    for ours, theirs in zip(found, wanted):
        count += np.sum(ours.numpy() != theirs.numpy())
    print(f"{name}: {count}")

# %% restore-read [markdown]
# No number of `W1` differs on any device. For the other variables, the run itself is the proof: it goes on from them, so wrong values would show in its losses.
#
# ## Without a whole copy
#
# Our matrices are small, so a whole copy would do no harm.
# But suppose that you split a matrix because no device can hold it.
# If a device had to hold all of it for a moment, just to save it, the run would end there.
# Let's save a larger matrix, of 67 MB, in eight shards on our 4 × 2:

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
# Each device wrote its own shard, in a file of 8.4 MB. (The ninth file has only the names of the program's objects.)
# No file has the whole matrix, and no device had to hold it.
#
# Reading needs no whole copy either, as long as the blocks are small.
# But a matrix that was saved under data parallelism is a single block,
# and a device that needs a part of a block reads all of it.
# So the danger is in large blocks, not in large matrices.

# %% note-memory [markdown]
# How much memory does it take?
#
# We measured it with a matrix of 268 MB that was saved in eight blocks.
# The table has the peak of the extra memory, summed over all eight devices. It varies from run to run:
#
# | | extra memory |
# | --- | --- |
# | saving | up to 40 MB |
# | restoring into the same layout | 70 to 80 MB |
# | restoring into a different layout | 140 to 270 MB |
# | for comparison: a whole copy on each device | 2,147 MB |
#
# With a different layout, the sum reached the size of one whole copy. Did some device hold one?
# We let a single device read its new shard of 34 MB. Its memory peaked at 67 to 84 MB, far below the whole matrix.
# But when the matrix had been saved as a single block, reading it into eight shards took up to 670 MB.
#
# The figures are rough, because we looked at the memory only every half millisecond. A test of this course measures them again.
# On GPUs, all of this would happen in the host's memory. We haven't tried that.

# %% silence-heading [markdown]
# ## Lost without a warning
#
# When a run moves, every variable of the new program has to get its value from the file.
# `resume` checks that as in {lesson:a_run}: `assert_existing_objects_matched` raises an error
# if a variable finds no value, for example because its name has changed.
#
# That isn't always enough. Suppose the hidden layer has been widened since the last save.
# In the file, `W2` has 48 rows, and in the new program it has 96. The shape of `b2` is the same in both.
# We fill the file with ones and the program with zeros, to see which values the program ends up with:

# %% silence
stored_W2 = variable(np.ones((48, 2), "float32"), four_by_two["W2"])
stored_b2 = variable(np.ones(2, "float32"), four_by_two["b2"])
file_of_ones = tempfile.mkdtemp() + "/ones"
stored = tf.train.Checkpoint(W2=stored_W2, b2=stored_b2)
stored.write(file_of_ones)

new_W2 = variable(np.zeros((96, 2), "float32"), four_by_two["W2"])
new_b2 = variable(np.zeros(2, "float32"), four_by_two["b2"])

# %% silence-first-text [markdown]
# The new program reads the file. Then it calls our check and a second one, `assert_consumed`,
# which raises an error if a value in the file was left unread. Then it uses `W2`:

# %% silence-first tags=["error"]
from course_lib import last_line


def sum_on_device_0(variable):
    return dtensor.unpack(variable.read_value())[0].numpy().sum()


status = tf.train.Checkpoint(W2=new_W2, b2=new_b2).read(file_of_ones)
status.assert_existing_objects_matched()
status.assert_consumed()
print("no complaint")

try:
    print(sum_on_device_0(new_W2))
except tf.errors.OpError as error:
    print(last_line(error))

# %% silence-second-text [markdown]
# Both checks passed. The error came only when the program next used a tensor on a mesh.
# The message is clear. But TensorFlow says it only once. Here are both variables again:

# %% silence-second
print("W2", sum_on_device_0(new_W2))
print("b2", sum_on_device_0(new_b2))

# %% silence-second-read [markdown]
# This time there is no error, and both sums are zero: the variables still have their initial values.
# Look at `b2`. Its shape was right, and it still never got its ones!
# A single wrong shape costs you *every* variable read with it.
# In a notebook, you would see the error, run the next cell, and train from the initial values without knowing it.
#
# Our `resume` calls `restore`, which waits for the values, so there the error comes at once.
# (With ordinary variables, `read` itself raises an error.)
# But safety shouldn't depend on whether a program calls `read` or `restore`, so compare the shapes first.
# The index has them, and reading it costs next to nothing:

# %% shapes
here = list(new_W2.shape)
for key, shape in tf.train.list_variables(file_of_ones):
    if key.startswith("W2"):
        print(shape, "in the file,", here, "here")

# %% shapes-read [markdown]
# We add this comparison to `resume`. It goes through the weights only, because the slots have the same shapes.
# If a layer has grown or a weight was renamed, the program now stops before it restores anything, and names the weight:


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


# %% trip-heading [markdown]
# ## One run, four meshes and one device
#
# Now we move the run. It has done 40 steps on 4 × 2. It does 40 more on 2 × 4,
# and then 40 on a cube, a mesh of 2 × 2 × 2.
# The cube has a dimension `feature`, so it splits the 1,200 features as well:

# %% cube
cube_mesh = dtensor.create_mesh(
    [("batch", 2), ("feature", 2), ("model", 2)],
    device_type="CPU",
)
cube = make_layouts(axes, splits, cube_mesh)

# %% trip-text [markdown]
# To move the run, we call `train` with the layouts of another mesh. Nothing else changes.
# (The cell works on a copy of the folder, so you can run it again.)

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
# Six is 3 × 2, so the obvious idea is to take our first mesh, 4 × 2, and shrink `batch` to 3.
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
# The weights would fit this mesh. The *batch* doesn't, because 64 rows can't be split into three equal shards.
# With batches of 63 or 66 you could train, but the gradients would differ, so it would be a different run.
# To continue the *same* run, the mesh has to fit the batch.
#
# **Exercise 2.** Find a mesh of six devices on which the run can go on with batches of 64.
# (There are several.) Write down its dimensions, as for `dtensor.create_mesh`.
# Take their names from the values of `splits`: `batch`, `feature` and `model`.

# %% exercise-six
# solution begin
six = [("batch", 2), ("model", 3)]
# solution end

# %%
check("any_mesh-six", six)

# %% on-six-text [markdown]
# Your mesh takes the run from step 120 to 160. (Until the check accepts it, the cell uses ours.)
# For the last 40 steps even the six devices are gone, and one device finishes the run, without DTensor.
# For comparison, we also train all 200 steps on one device:

# %% on-six
from course_lib import yours_or_ours

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
# But the curve is a mean over twenty steps, and could hide a small jump. So we compare the losses step by step:

# %% same
from course_lib import about

differences = []
for ours, theirs in zip(moved, one):
    differences.append(abs(ours["loss"] - theirs["loss"]))

print(len(differences), "steps")
print("largest difference", about(max(differences), 0, 1e-5))

# %% same-read [markdown]
# In all 200 steps, the run that moved has the same loss as the run that stayed on one device, up to rounding.
# If a move had lost the slots or the place in the data, the losses would differ far more, as in {lesson:a_run}.
#
# So yes, a run can move. It takes along its weights, its slots and its place in the data.
# The mesh was never a part of it.

# %% note-order [markdown]
# What else has to come along?
#
# The batches. `train` takes them in a fixed order from the step number, which is in the checkpoint.
# If you shuffle, let the order follow from a seed and the step, as in {lesson:a_run}.
# Dropout masks must not depend on the layout either.
# The initial values may, because the checkpoint overwrites them.
#
# {Lesson:failures} deals with devices that disappear in the middle of a step.

# %% features-heading [markdown]
# ## Split the features as well
#
# If a run can go anywhere, which mesh should you choose? Let's first look at the new one, the cube, which splits the features.
# You need that when a single example is too large for a device.
# A medical scan of 512 × 512 × 512 voxels takes 0.54 GB in float32, and sixteen feature maps of that size take 8.6 GB.
# The backward pass needs the feature maps of all layers. With ten such layers, they take 86 GB, and an A100 has 80.
#
# Our examples are rows of 1,200 features, and the cube splits each row in two.
# TensorFlow's [tutorial](https://www.tensorflow.org/tutorials/distribute/dtensor_ml_tutorial) calls this **spatial parallelism**. (Elsewhere, the word means that images are split along their height or width.)
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
# `x` and `W1` share the axis `features`, so the columns of `x` and the rows of `W1` are split at the same place.
# No device has a whole review, or a whole column of `W1`.

# %% predict-features [markdown]
# A network with one hidden layer trains on a mesh of `batch` 2 × `feature` 2 × `model` 2.
# In its first product, `x` of shape (64, 1200) has the layout `[batch, feature]`,
# and `W1` of shape (1200, 48) has `[feature, model]`.
# In a whole training step, forward and backward, how many bytes do the all-reduces over `feature` carry?
# A number takes 4 bytes.
#
# - [ ] `0`
#   A hidden unit sums over all 1,200 features, and no device has more than 600 of them.
# - [x] `3072` 3,072 bytes
#   Only the first product sums over the features. A device has partial sums for 32 reviews and 24 hidden units:
#   32 × 24 × 4 bytes.
# - [ ] `57600` 57,600 bytes
#   That is a device's shard of the gradient of `W1`. But this gradient is a sum over the reviews, so its all-reduce runs over `batch`.
# - [ ] `60672` 60,672 bytes
#   That adds the gradient of `W1` to the sums of the first product. But the gradient is a sum over the reviews.

# %% reveal-features
from course_lib import collectives

cube_x = place(train_x[:64], cube["x"])
cube_y = place(train_y[:64], cube["y"])
step = np.float32(1)
rate = np.float32(3e-3)
found = collectives(train_step, Model(cube), cube_x, cube_y, step, rate)
over_feature = 0
for each in found:
    if "feature" in each.mesh_dims:
        over_feature += each.payload_bytes
reveal("any_mesh-features", over_feature)

# %% lanes-text [markdown]
# In the backward pass, nothing is summed over the features:
# each device computes the gradient of its own rows of `W1` from its own columns of `x`.
# So splitting the features costs only 3,072 of the 61,232 bytes that a device sends in a step.
# Walk through the step, and you meet one all-reduce over `feature`, one over `model` for the logits,
# and six over `batch`, for the four gradients, the loss and the accuracy:

# %% lanes
from lessons.layouts.step_explorer import StepExplorer

StepExplorer("spatial")

# %% note-spatial [markdown]
# How are images and volumes split?
#
# They are split along their height, width or depth.
# [Hou and others](https://arxiv.org/abs/1909.03108) train on medical scans in this way.
# A convolution at the edge of a shard needs the border of the neighbor's shard,
# so in each layer the devices exchange these borders, called *halos*, and no sum is needed.
# A dense layer sums over all features, so our devices add up partial sums instead.

# %% which-heading [markdown]
# ## Which mesh should you take?
#
# Let's compare three schemes on eight devices: data parallelism, our 4 × 2, and the cube.
# For a step of each, we want three numbers:
#
# - the bytes that device 0 **holds**: its shards of `x`, of the weights and of the slots;
# - the bytes that it **sends**;
# - the **time** that sending takes.
#
# The time comes from the ring formula of {lesson:all_reduce}, with its figures for eight A100s in one node.
# The next two cells count these numbers. You know all their parts from earlier lessons, so they are folded:

# %% ring tags=["known"]
LATENCY = 3.4e-6  # seconds
BANDWIDTH = 240e9  # bytes per second


def ring_seconds(devices, num_bytes, bandwidth, latency):
    messages = 2 * (devices - 1)
    chunk = num_bytes / devices
    return messages * (latency + chunk / bandwidth)


# %% costs tags=["known"]
def costs(layouts, rows):
    model = Model(layouts)
    x = place(train_x[:rows], layouts["x"])
    y = place(train_y[:rows], layouts["y"])
    held = dtensor.unpack(x)[0].numpy().nbytes
    for each in model.variables:
        held += dtensor.unpack(each.read_value())[0].numpy().nbytes

    step = np.float32(1)
    rate = np.float32(3e-3)
    sent = 0
    seconds = 0
    for each in collectives(train_step, model, x, y, step, rate):
        devices, payload = each.group_size, each.payload_bytes
        sent += 2 * (devices - 1) * payload / devices
        seconds += ring_seconds(devices, payload, BANDWIDTH, LATENCY)
    return {"held": held, "sent": sent, "seconds": seconds}


# %% schemes-text [markdown]
# We count with 64 and with 1,024 reviews. First the bytes:

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
# With 64 reviews, a device holds mostly weights and slots, so the more we split the model, the less it holds.
#
# With 1,024 reviews, data parallelism holds *least*. The batch is now larger than the model, and `batch` 8 splits it eight ways. On 4 × 2, two devices along `model` hold the same rows of `x`.
# So **split what is large**. If that is the model, split along `model` or `feature`.
# If it is the batch, split along `batch`, or along `feature`, which splits `x` as well.
#
# Now look at what a device sends. Gradients are as large as the weights, however many reviews there are.
# Under data parallelism a device sends hardly anything else, so its bar doesn't change.
# Partial sums of activations grow with the batch, so the bar of the spatial scheme grows from 61 to 111 kB.

# %% predict-time [markdown]
# Eight devices in one node can train a network under three schemes. In a step, a device sends
# 404,236 bytes under `data`, in 6 all-reduces around rings of eight;
# 173,384 under `model`, in 6 around rings of four and 1 around a ring of two;
# and 61,232 under `spatial`, in 8 around rings of two.
# The all-reduces run one after another.
# Each message waits for a latency, in which the link could carry 816,000 bytes.
# Under which scheme do the all-reduces take the least time?
#
# - [ ] `data` data: it has the fewest all-reduces
#   But each of them goes around a ring of eight: 14 messages that wait for each other.
# - [ ] `model` model: it is in the middle in both
#   Six of its seven all-reduces go around a ring of four: 6 messages that wait for each other.
# - [x] `spatial` spatial: it has the shortest rings
#   The bytes take next to no time, so count the messages that wait for each other.
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
# With 16 times as many reviews, the times are practically the same.
# There are 84, 38 and 16 messages that wait for 3.4 µs each, which makes 286, 129 and 54 µs. The bytes add less than 2 µs.
# Such all-reduces are **latency-bound**: the longer the ring, the slower, whatever it carries.
# In a large network it is the other way round. There the bytes decide, and then the bars of *sent* tell you the time.

# %% note-left-out [markdown]
# What do these times leave out?
#
# They are computed, not measured. TensorFlow fuses small all-reduces over the same mesh dimensions ({lesson:faster}).
# Fused, `data` needs two all-reduces, `model` three and `spatial` four. The times shrink to 97, 48 and 28 µs: the same order, closer together.
#
# A device also has to do the arithmetic. Under all three schemes, it does an eighth of the products with `W1`, which are most of it.
# The planner of {lesson:how_long} adds the arithmetic to the exchanges.

# %% lab-heading [markdown]
# ## The training lab
#
# The lab trains with the functions that you ran above, under any mesh and any splits.
# Before you run anything, its bars show what a device will hold (here with gradients and labels) and send.
#
# Choose *data parallel* and press **Run**. Choose *spatial parallel* and run again. The curves lie on top of each other,
# and the lab tells you the largest difference.
# Then raise the number of epochs, choose a finished run under *Start from*, pick another scheme, and press **Run**: the run moves.
# The lab keeps its runs in the folder `training_lab`, so you can resume them after you restart the kernel.
#
# And here is a puzzle. **With batches of 1,024, find a mesh and splits with which a device holds less than 900,000 bytes
# and sends less than 300,000 in a step.** None of the three schemes does it.

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
# Take a mesh of 2 × 4. The 2 splits the axis `batch`, the 4 splits the axis `features`, and the axis `hidden` stays whole.
# No other plan does it.
#
# A batch of 1,024 takes 4.9 MB, far more than the rest, so you have to split it eight ways.
# With its two axes, you can do that in four ways:
#
# | | a device holds | and sends |
# | --- | --- | --- |
# | `batch` 8 | 1,539,360 | 404,236 |
# | `batch` 4 × `features` 2 | 1,079,584 | 222,840 |
# | `batch` 2 × `features` 4 | 851,232 | 205,648 |
# | `features` 8 | 740,128 | 344,064 |
#
# If you split `features`, you split `W1` as well, with its gradient and its slots.
# But the devices have to add up the partial sums, in longer and longer rings.
#
# If the dimension that splits `batch` also splits `hidden`, a device holds still less.
# But it has to gather tensors along that dimension, and sends more than 770,000 bytes.

# %% plain-heading [markdown]
# ## The plain program
#
# [`any_mesh.py`](../plain/any_mesh.py) is this lesson in one file that needs TensorFlow and NumPy alone.
# It trains ten steps under each scheme in turn, and each scheme goes on where the one before stopped.
# If a loss differs from that of one device by 1e-5 or more, the program ends with an error.
# Give it a folder and the names of schemes, and it goes on from what is in the folder:
# `python any_mesh.py runs model spatial` today, `python any_mesh.py runs data` tomorrow.

# %% note-own [markdown]
# A project: move a network of your own
#
# Take a network with two residual connections. ({Lesson:splitting_the_model} says which layouts the residual stream needs.)
#
# 1. Name its axes. The stream needs a layout on each mesh, too, so add an entry to `axes`: `"stream": ("batch", "stream")`.
#    On one device there is no layout, so skip the `relayout` there.
# 2. Build the model from a dictionary of layouts, with slots for each weight.
# 3. Predict the collectives of a step on 4 × 2, and then list them with the plain program of {lesson:communication}.
#    Import `communication` first, because it makes the eight devices.
#    Set `os.environ["DTENSOR_ALLREDUCE_COMBINE_OPTIMIZATION_GROUP_SIZE"] = "1"`, or you will see only fused all-reduces.
#    Then call `collectives_that_ran(mesh, function, *arguments)` with a plain function. It runs the step, so the weights change.
# 4. Train on 4 × 2, in a program that saves every 20 steps, and kill it with `kill -9` after one of the saves.
# 5. Start it again on 2 × 4. If its first line says step 1, the program found no checkpoint, and began anew.
#    The losses alone would not tell you, because they are right in both cases.
# 6. Compare every loss with a run on one device that nobody killed. If they agree to 1e-5, you have moved a run.

# %% takeaways [markdown]
# ## Takeaways
#
# - A checkpoint stores each shard once, with its position, and no mesh. So any mesh can read it.
#   No device needs a whole copy, as long as the stored blocks are small.
# - A run is its weights, its slots, its step and the order of its data. Compare the shapes before you restore:
#   after `read`, TensorFlow's assertions let a wrong shape pass.
# - Split what is large. When messages are small, latency dominates, so keep the rings short.
#
# Your three weeks are not lost. Tomorrow the run goes on with six devices.
#
# {Lesson:large_trainings} asks what the training runs of large models add to a step.

# %% score
score("any_mesh")
