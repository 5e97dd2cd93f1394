# %% [markdown]
# # Mesh and layout
#
# TensorFlow's tutorial on DTensor has a function that cuts each batch into parts and hands them to eight devices.
# Arrange the devices as the tutorial does, and it works.
# Arrange them differently, and part of every batch may reach no device at all.
# In this lesson, a run that should train on 6,400 reviews trains on 3,200, and its loss curve hardly gives it away.
#
# You will start that run yourself, and see which line is to blame.
# To get there, we ask one question of every tensor that we meet: *which device holds which part?*
#
# **After this lesson you can**
#
# - arrange devices in a *mesh*, and say in one line how a tensor is spread over it;
# - work out what each device holds, how many bytes that is, and how many copies there are;
# - cut a tensor, place it, move it, and check that every part is where it should be.
#
# **Time:** 35 minutes.
# **You need to know:** NumPy slices, and how to train a small network in TensorFlow on one device.

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% mesh-text [markdown]
# ## A grid of devices
#
# Several devices can share a training run in two ways: each takes a part of the batch, or each takes a part of the model.
# These are the data parallelism and the tensor parallelism of {lesson:whole_game}. Large runs do both at once.
# So DTensor, the part of TensorFlow that spreads tensors over devices, arranges the devices in a grid:
# one direction for the batch, and one for the model.
#
# In this notebook your computer poses as eight devices. Let's begin with six of them, in three rows of two.
# With 3 × 2 you can't mistake a row for a column.

# %% mesh
tf = course_lib.start_tensorflow()
import numpy as np
from tensorflow.experimental import dtensor

from course_lib import show

six = ["CPU:0", "CPU:1", "CPU:2", "CPU:3", "CPU:4", "CPU:5"]
mesh = dtensor.create_mesh(
    [("batch", 3), ("model", 2)], devices=six
)
show(mesh)

# %% mesh-read [markdown]
# A **mesh** is a grid of devices. Each direction of the grid is a **mesh dimension**, and you choose its name.
# Ours are `batch`, of size 3, and `model`, of size 2.
#
# The list of devices fills the grid row by row:
# device 1 stands beside device 0, and device 2 begins the second row.

# %% note-virtual [markdown]
# How does one computer come to have eight devices?
#
# TensorFlow treats the processor, all cores included, as one device.
# Two statements turn it into eight *virtual* devices:
#
# ```python
# cpu = tf.config.list_physical_devices("CPU")[0]
# tf.config.set_logical_device_configuration(
#     cpu, [tf.config.LogicalDeviceConfiguration()] * 8
# )
# ```
#
# They must run before TensorFlow uses a device for the first time.
# In the notebooks of this course, `setup(devices=8)` remembers the number, and `start_tensorflow` runs the two statements.
# Since the virtual devices share one processor, they show you who holds what, but not how fast real devices would be.
# On a machine with GPUs you would list `"GPU:0"`, `"GPU:1"` and so on; we have not tried it.
#
# DTensor is experimental, so names may still change. This lesson was run on TensorFlow 2.21.

# %% note-clients [markdown]
# What if the devices belong to several machines?
#
# Here one program directs all the devices. TensorFlow calls that *single-client*.
# With several machines, each of them runs a copy of the program, and each copy directs the devices of its own machine.
# That is called *multi-client*, and {lesson:one_mesh} does it.

# %% layout-text [markdown]
# ## Who holds what?
#
# Now take a matrix of 6 rows and 4 columns. Which device should hold which part of it?
# This is the only decision you have to make.
# You write the computation much as you would for one device.
# TensorFlow works out who computes what, and what has to be sent.
#
# You write your decision down as a **layout**: a list with one entry for each axis of the matrix.
# The entry names the mesh dimension along which the axis is split.
# If the axis is not split, the entry is `dtensor.UNSHARDED`, which we'll call `WHOLE`.
#
# Let's split the rows along `batch` and the columns along `model`:

# %% both-split
WHOLE = dtensor.UNSHARDED

both_split = dtensor.Layout(["batch", "model"], mesh)
show(both_split, (6, 4))

# %% both-split-read [markdown]
# `batch` has size 3, so the rows are cut in three. `model` has size 2, so the columns are cut in two.
# That makes six blocks, A to F, one for each device.
# Device 3, for example, stands at position 1 along both dimensions,
# so it holds block D: the middle third of the rows, and the right half of the columns.
#
# The part of a tensor that a device holds is its **shard**.
# The shape of the whole tensor is its **global shape**, here (6, 4).
# The shape of one shard is its **local shape**, here (2, 2).
#
# No two devices have the same shard here, so the tensor is **fully sharded**.
# Now let's split nothing at all:

# %% replicated
nothing_split = dtensor.Layout([WHOLE, WHOLE], mesh)
show(nothing_split, (6, 4))

# %% replicated-read [markdown]
# Now all six devices hold block A, and block A is the whole matrix. The tensor is **fully replicated**.
# Same letter, same color: same data.
#
# Many layouts lie between the two extremes. Here is one that splits only the rows:

# %% rows-split
rows_split = dtensor.Layout(["batch", WHOLE], mesh)

# %% predict-hybrid [markdown]
# A matrix of 6 rows and 4 columns lies on a mesh of six devices: `batch` 3 × `model` 2.
# Its layout splits the rows along `batch`. The columns are not split.
# How many of the six devices hold the first row of the matrix?
#
# - [x] `2`
#   Two devices stand at position 0 along `batch`, and both hold the first third of the rows.
# - [ ] `1`
#   Only its position along `batch` decides which rows a device holds, and two devices share each position.
# - [ ] `3`
#   The rows are cut into three parts. Each part is held by two of the six devices.
# - [ ] `6`
#   All six would hold it if the rows were not split either.

# %% reveal-hybrid
num_copies = show(rows_split, (6, 4)).copies
reveal("mesh_and_layout-hybrid", num_copies)

# %% hybrid
show(rows_split, (6, 4))

# %% hybrid-read [markdown]
# This layout does not mention `model`.
# So both devices in a row of the grid hold the same block, and there are two copies of everything.
# *A mesh dimension that the layout does not use makes copies.*
#
# With three rules you can work out any layout in your head:
#
# - **Local shape:** divide each axis of the global shape by the size of the mesh dimension that splits it.
# - **Copies:** multiply the sizes of the mesh dimensions that the layout does not use. If it uses them all, there is one.
# - **Equal parts:** the division must leave no remainder. Five rows cannot be split along a dimension of size 3.
#
# Bytes follow from the local shape. Here a shard has 2 × 4 numbers of 4 bytes in float32, which makes 32.
#
# Nobody cares about 32 bytes. So take a weight matrix of 50,000 × 50,000 numbers, which is 10 GB in float32,
# and eight devices in a grid of `batch` 4 × `model` 2:
#
# | layout | one device holds | copies |
# | --- | --- | --- |
# | `[WHOLE, WHOLE]` | 10 GB | 8 |
# | `[WHOLE, "model"]` | 5 GB | 4 |
# | `["batch", WHOLE]` | 2.5 GB | 2 |
# | `["batch", "model"]` | 1.25 GB | 1 |
#
# Two words in a list, and 10 GB becomes 1.25.

# %% note-rules [markdown]
# What else must a layout obey? And is there a shorter way to write it?
#
# - It has one entry for each axis of the *tensor*, however many dimensions the mesh has.
#   A vector has a single entry, such as `["model"]`, and a single number has none: `[]`.
# - A mesh dimension may split one axis at most. `["batch", "batch"]` is refused.
# - TensorFlow complains about unequal parts only when you place the tensor.
#   Before that, `rows_split.local_shape_from_global_shape((5, 4))` simply returns `(1, 4)`.
#   {Lesson:coupled_rows} shows what to do with a batch that doesn't divide evenly.
#
# `dtensor.Layout.replicated(mesh, rank=2)` is short for `dtensor.Layout([WHOLE, WHOLE], mesh)`.
# And `dtensor.Layout.batch_sharded(mesh, "batch", rank=2)` is short for `dtensor.Layout(["batch", WHOLE], mesh)`:
# it splits only the first axis. The rank is the number of axes.

# %% first-dtensor-text [markdown]
# ## The first DTensor
#
# So far no device has held anything. We drew the pictures from the layouts alone. Do they tell the truth?
# Let's place a matrix on the six devices with `dtensor.copy_to_mesh`.
# Then `dtensor.unpack` gives us the shard of each device:

# %% first-dtensor
whole = np.arange(24, dtype="float32").reshape(6, 4)
rows = dtensor.copy_to_mesh(whole, rows_split)

print("shape", rows.shape)
for part in dtensor.unpack(rows):
    print(part.numpy().tolist())

# %% first-dtensor-read [markdown]
# The picture was right: devices 0 and 1 have the first two rows, devices 2 and 3 the next two, devices 4 and 5 the last two.
#
# `rows` is a **DTensor**: one tensor, spread over a mesh. Its shape is the global shape,
# and most operations treat it as one matrix: `tf.reduce_sum(rows)` adds up all 24 numbers.
# TensorFlow's own name for the shards of a DTensor is **components**.
#
# Now let's turn `rows` back into a NumPy array.

# %% numpy tags=["error"]
from course_lib import last_line

try:
    rows.numpy()
except tf.errors.OpError as error:
    print(last_line(error))

# %% numpy-read [markdown]
# No! The message says why, if you read it twice: `rows` is on more than one device, and it is not fully replicated.
# No device has all six rows, so somebody would have to collect them. For our 10 GB matrix that means a lot of traffic, and 10 GB in a single place.
# So `.numpy()` doesn't do it unasked. In a moment you will ask.

# %% explorer-text [markdown]
# ## Explore
#
# Here the mesh dimensions are called `x` and `y`. At first the rows are split along `x`:
# devices 0 to 3 hold the upper half of the tensor, and devices 4 to 7 the lower half.
# Choose another mesh, shape or layout, and press a device to see what it holds.
# Then press *Make the real DTensor and compare* to see the real components beside the prediction.
#
# **Exercise 1.** Leave the shape at (8, 6), and use all eight devices.
# Find a layout under which every element is held by one device only.
# If your first idea is refused, the message says why.

# %% explorer
from lessons.layouts.mesh_and_layout.explorer import (
    MeshLayoutExplorer,
)

explorer = MeshLayoutExplorer()
explorer

# %% explore-one-copy
check("mesh_and_layout-explore-one-copy", explorer)

# %% note-one-copy [markdown]
# Solution
#
# A mesh dimension that splits no axis makes copies, so both must be used.
# The obvious choice is rows along `x` and columns along `y`. It is refused: 6 columns cannot be cut in four.
# Rows along `y` and columns along `x` works, and each device holds 2 rows and 3 columns.
#
# The obvious choice also works on a mesh of 4 × 2. So does a mesh with one dimension of size 8, splitting the rows.

# %% move-text [markdown]
# ## Move it
#
# A tensor need not keep its layout. `dtensor.relayout` returns the same tensor in another layout on the same mesh.
# What a device lacks, it gets from the others.
#
# Say that the next computation needs whole columns of our matrix.
# So far each device has whole rows; now it gets whole columns, split along `model`.
# Once the matrix has moved, does it take more memory, or less?

# %% move
columns_split = dtensor.Layout([WHOLE, "model"], mesh)
columns = dtensor.relayout(rows, columns_split)

# %% predict-move [markdown]
# A float32 matrix of 6 rows and 4 columns lies on the mesh `batch` 3 × `model` 2.
# Its rows are split along `batch`, and its columns are not split.
# Each of the six devices holds 32 bytes of it, 192 bytes in all.
# Now it moves: its columns are split along `model`, and its rows are no longer split.
# How many bytes do the six devices hold then, all together?
#
# - [x] `288`
#   Each of the six devices holds 6 rows and 2 columns: 12 numbers, 48 bytes.
# - [ ] `192`
#   The matrix stays the same, but not the number of copies.
# - [ ] `96`
#   That is the matrix once. But nothing is split along `batch` any more, and that makes copies.
# - [ ] `576`
#   That is the whole matrix on each device. But the columns are split along `model`.
# - otherwise
#   What is the new local shape? How many bytes are that on one device?

# %% reveal-move
num_bytes = 0
for part in dtensor.unpack(columns):
    num_bytes += part.numpy().nbytes
reveal("mesh_and_layout-move", num_bytes)

# %% moved
show(columns, before=rows)

# %% after-read [markdown]
# Before the move each device held a third of the matrix; now each holds half.
# So a move can cost memory.
# It also costs traffic. Of the 12 numbers that device 0 holds now, it already had 4. The other 8 were on devices 2 and 4. How much is really sent, {lesson:communication} will show.
#
# Relayout is also how you get the array back. If you replicate the tensor first,
# every device has all of it, and `.numpy()` gives you the copy of device 0:

# %% everywhere
everywhere = dtensor.relayout(rows, nothing_split)
print(everywhere.numpy())

# %% note-join [markdown]
# Can you get the array back without replicating it on the devices?
#
# Yes. Fetch the components, and put each in its place, in the memory of the computer that runs the notebook.
# In other lessons `to_numpy` of `course_lib` does this. The plain program of this lesson has a function for it, `join`.

# %% note-other-mesh [markdown]
# How do you move a tensor to another mesh?
#
# Read the array back and place it on the new mesh.
# Directly, with `relayout` or `copy_to_mesh`, it works only if the tensor is replicated before and after.

# %% grid-text [markdown]
# ## Cut it yourself
#
# We gave `copy_to_mesh` the whole matrix. But a training run needs a new batch in every step,
# and each device should be sent its own rows of that batch and nothing more.
# That is what `dtensor.pack` is for. You hand it a list of parts, one for each device,
# and it sends each device its own part.
#
# But who cuts the parts? You do. This time, let's take all eight devices:

# %% grid
grid = dtensor.create_mesh(
    [("batch", 4), ("model", 2)], device_type="CPU"
)

# %% by-hand-text [markdown]
# Take a matrix of 8 rows, and split the rows along `batch`. Each device needs two rows, but which two?
# That depends on its position along `batch`. `local_device_locations` lists the positions of all devices,
# and `pack` expects the parts in the same order.
# Then `compare` shows what each device should hold, beside what it does hold:

# %% by-hand
from course_lib import compare

matrix = np.arange(24, dtype="float32").reshape(8, 3)
over_batch = dtensor.Layout(["batch", WHOLE], grid)

parts = []
for position in grid.local_device_locations():
    first = 2 * position["batch"]
    parts.append(matrix[first : first + 2])
    print(position, "rows", first, "and", first + 1)

packed = dtensor.pack(parts, over_batch)
compare(matrix, packed)

# %% by-hand-read [markdown]
# All eight devices hold the rows that they should.
#
# If a layout splits both axes, you cut twice: first the rows, then the columns.
# Let's do that for device 3 of our first mesh, and for the matrix of 6 rows and 4 columns.
# With `both_split`, the device should hold block D:

# %% twice
position = mesh.local_device_locations()[3]
bands = np.split(whole, 3, axis=0)
band = bands[position["batch"]]
blocks = np.split(band, 2, axis=1)
print(blocks[position["model"]])

# %% twice-read [markdown]
# There it is: the middle third of the rows, and the right half of the columns.
#
# Here we knew that the rows are cut in three and the columns in two. In general you have to ask the layout:
#
# - `layout.sharding_specs` is its list of entries, one for each axis;
# - `layout.num_shards(axis)` is the number of parts into which it cuts an axis: 1 if the axis is not split.
#
# **Exercise 2.** Write `cut(array, layout)`. It should work for any number of axes, and for any valid layout.
# Return a list with the part of each device, in the order of `layout.mesh.local_device_locations()`.
# Cut with `np.split`, `tf.split` or slices, and return arrays or tensors of the same dtype.

# %% exercise-cut
def cut(array, layout):
    # solution begin
    parts = []
    for position in layout.mesh.local_device_locations():
        part = array
        for axis, dim in enumerate(layout.sharding_specs):
            if dim != WHOLE:
                count = layout.num_shards(axis)
                pieces = np.split(part, count, axis)
                part = pieces[position[dim]]
        parts.append(part)
    return parts
    # solution end


# %%
check("mesh_and_layout-cut", cut)

# %% tutorial-text [markdown]
# With `cut`, you can place any array that divides evenly: `dtensor.pack(cut(array, layout), layout)`.
# From here on we write `shard(array, layout)`, a function of `course_lib` that does just this.
#
# ## A batch that shrinks
#
# Now for the function of TensorFlow's tutorial
# ([*Distributed training with DTensors*](https://www.tensorflow.org/tutorials/distribute/dtensor_ml_tutorial)).
# There it is called `repack_local_tensor`. Here it is, lightly rewritten.
# It loops over devices and axes, much as your `cut` does, and then packs the parts:

# %% tutorial
def pack_as_in_tutorial(array, layout):
    parts = []
    for position in layout.mesh.local_device_locations():
        part = array
        for axis, dim in enumerate(layout.sharding_specs):
            if dim != WHOLE:
                count = layout.shape[axis]
                pieces = np.split(part, count, axis)
                part = pieces[position[dim]]
        parts.append(part)
    return dtensor.pack(parts, layout)


# %% data-text [markdown]
# It looks right, doesn't it? The way to find out is to train with it.
# We take the film reviews of {lesson:whole_game}, and train for 100 steps of 64 reviews.

# %% data
from course_lib import data, shard

reviews = data.tf_idf(data.load_imdb())
train_x = reviews.train.features
train_y = reviews.train.labels

# %% step-text [markdown]
# The network couldn't be smaller: a single matrix `W` turns the numbers of a review into two logits.
# This is one step of its training:

# %% step
LEARNING_RATE = 5.0  # high, since the features are tiny


@tf.function
def linear_step(W, x, y):
    with tf.GradientTape() as tape:
        logits = x @ W
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            y, logits
        )
        loss = tf.reduce_mean(losses)
    W.assign_sub(LEARNING_RATE * tape.gradient(loss, W))
    return loss


# %% train-text [markdown]
# `W` changes while we train, so it becomes a `dtensor.DVariable`: a variable whose value is a DTensor.
# Every device holds all of `W`, and each batch is split along `batch`.
# The argument `to_devices` is the function that turns an array into a DTensor: the tutorial's, or `shard`.

# %% train
rng = np.random.default_rng(0)
initial_W = rng.normal(0, 0.1, (1200, 2)).astype("float32")


def train(mesh, to_devices):
    x_layout = dtensor.Layout(["batch", WHOLE], mesh)
    y_layout = dtensor.Layout(["batch"], mesh)
    W_layout = dtensor.Layout([WHOLE, WHOLE], mesh)
    W = dtensor.DVariable(shard(initial_W, W_layout))
    losses = []
    for first in range(0, 6400, 64):
        x = to_devices(train_x[first : first + 64], x_layout)
        y = to_devices(train_y[first : first + 64], y_layout)
        losses.append(float(linear_step(W, x, y)))
    return losses

# %% note-variable [markdown]
# What can a `DVariable` hold?
#
# A DTensor. An array like `whole` is refused, by `dtensor.DVariable(whole)` as well as by `assign`;
# the page *Silent mistakes* has the exceptions.
# A `DVariable` keeps the layout of its first value, even if you assign it a tensor in another layout on the same mesh.

# %% other-grid-text [markdown]
# In the tutorial, `batch` is always the first mesh dimension.
# Let's put it second, behind `model`, and change the sizes too: `model` 4 × `batch` 2.

# %% other-grid
from lessons.layouts.mesh_and_layout.picture import losses_picture

other_grid = dtensor.create_mesh(
    [("model", 4), ("batch", 2)], device_type="CPU"
)
runs = {"tutorial": train(other_grid, pack_as_in_tutorial)}
losses_picture(runs)

# %% packer-given [markdown]
# The loss wavers at first, and then falls to 0.57. It looks like any other training run.
# Yet one line of the tutorial's function is wrong. If you want to find it yourself, do it now.

# %% predict-packer [markdown]
# The mesh is `model` 4 × `batch` 2.
# The tutorial's function packs a batch of 64 rows, with a layout that splits the rows along `batch`.
# It cuts the rows into `layout.shape[0]` parts, and gives each device the part at its position along `batch`.
# For this layout, `layout.shape` is `[4, 2]`.
# How many rows does the packed DTensor have?
#
# - [x] `32`
#   The function cuts the rows into 4 parts of 16. But there are only two positions along `batch`, 0 and 1.
#   Parts 2 and 3 reach no device.
# - [ ] `64`
#   So it should be. But into how many parts does the function cut the rows, and which of them are handed out?
# - [ ] `16`
#   That is what one device holds. But the two positions along `batch` hold different rows.
# - [ ] `128`
#   That counts 16 rows on each of 8 devices. But the four devices along `model` hold copies, which count once.
# - otherwise
#   How many rows has a part? And how many of the parts reach a device?

# %% reveal-packer
x_layout = dtensor.Layout(["batch", WHOLE], other_grid)
x = pack_as_in_tutorial(train_x[:64], x_layout)
reveal("mesh_and_layout-packer", x.shape[0])

# %% lost-text [markdown]
# Half of the batch has fallen off the edge of the mesh. Our matrix of 8 rows shows how.
# The function cuts the rows in four, but `batch` has only two positions:
#
# | part | rows | position along `batch` |
# | --- | --- | --- |
# | 0 | 0 and 1 | 0 |
# | 1 | 2 and 3 | 1 |
# | 2 | 4 and 5 | *none* |
# | 3 | 6 and 7 | *none* |
#
# And this is what the devices really hold:

# %% lost
in_halves = dtensor.Layout(["batch", WHOLE], other_grid)
compare(matrix, pack_as_in_tutorial(matrix, in_halves))

# %% last-half-text [markdown]
# Every device should hold four rows, and holds two. The numbers from 12 to 23 are on no device.
#
# The line to blame is `count = layout.shape[axis]`. It should say `count = layout.num_shards(axis)`,
# because `layout.shape` is the shape of the *mesh*.
# For axis 0 (the rows), the function looked up `layout.shape[0]`: the size of the first mesh dimension, which here is `model`, 4.
# But the rows are split along `batch`, which has size 2.
# In the tutorial `batch` comes first, so both happen to give the same number.
#
# And why was there no error here? `pack` gets only the parts, and never learns how many rows there were before.
# `x` and `y` lose the same half of each batch, so every review that is left still has its own label.
#
# Does the curve give it away? To see that, we need two more runs. One trains on all 64 reviews of each batch. The other reverses each batch before packing, so it loses the *first* half:

# %% last-half
def pack_reversed(array, layout):
    return pack_as_in_tutorial(array[::-1], layout)


runs["reversed"] = train(other_grid, pack_reversed)
runs["all 64"] = train(other_grid, shard)
losses_picture(runs)

# %% one-device-text [markdown]
# Hardly. The tutorial's run ends a little higher than the full run, but the reversed run ends where the full run ends.
# From either curve alone you would never guess that 3,200 of the 6,400 reviews went unused.
#
# Two habits would have caught this at once.
# First, look at the shape of what you packed. Ours was (32, 1200), not (64, 1200).
# Second, compare the first loss with that of a single device.
# All runs begin with the same weights and the same 64 reviews, so their first losses must agree, up to rounding:

# %% one-device
from course_lib import about

one_device = dtensor.create_mesh(
    [("batch", 1)], devices=["CPU:0"]
)
runs["one device"] = train(one_device, shard)
for name, losses in runs.items():
    first_loss = about(losses[0], 0.69, 0.70, digits=6)
    print(f"{name:10}", first_loss)

# %% first-losses-read [markdown]
# With all 64 reviews, the eight devices match the single device to the last digit printed.
# The two half-runs are wrong before they have learned anything.
# And look at the mean of their first losses: (0.698938 + 0.690200) / 2 = 0.694569.
# That is exactly the loss of the full batch: each run saw one half of it.

# %% note-error [markdown]
# On which mesh would there have been an error?
#
# On `model` 2 × `batch` 4. The function would make two parts, and then look for a third: an `IndexError`.

# %% note-values [markdown]
# What if the shape is right, and the values are wrong?
#
# Most operations on a DTensor give the right result, and some, such as `rows[0]`, are refused with an error.
# But some run and return wrong values. In TensorFlow 2.21, `rows[::-1]` is one of them:
# each device reverses its own shard, and no shard moves. (`tf.gather(rows, [5, 4, 3, 2, 1, 0])` is right.)
# So check the values yourself: use `compare`, or run the same operation on an ordinary tensor.
# The page *Silent mistakes* shows this case and lists the others that we know of.

# %% note-first-loss [markdown]
# Does comparing the first losses find every mistake?
#
# No. If the initial weights are zeros, the first loss is ln 2, whatever the reviews.
# And the first loss depends on the forward pass alone. {Lesson:one_step} shows how to find a wrong gradient.

# %% note-in-place [markdown]
# What if the initial values don't fit in any one memory?
#
# Then let each device make its own shard:
#
# ```python
# dtensor.call_with_layout(tf.zeros, layout, shape=[6, 4])
# ```
#
# But beware of random numbers. If the layout splits an axis, you must pass `tf.function(tf.random.stateless_normal)`. The same seed then gives *different numbers*, so runs with different layouts can't be compared.
# That is why this course draws initial values once, with NumPy, and then shards them.

# %% takeaways [markdown]
# ## The plain program
#
# [`mesh_and_layout.py`](../plain/mesh_and_layout.py) makes, cuts, moves and joins DTensors in one file.
# It needs only TensorFlow and NumPy, and makes its own virtual devices.
#
# ## Takeaways
#
# - A layout names, for each axis of a tensor, the mesh dimension that splits it.
#   Along a mesh dimension that it doesn't name, there are copies.
# - A run without an error can still be wrong.
#   You have to check for yourself that each device has the right values.
# - The number of parts is `layout.num_shards(axis)`. `layout.shape` is the shape of the mesh.
#
# You are ready for puzzles 1 to 3 on the page *Puzzles*. In the first two you split a vector and a matrix so that they fit.
# The third looks ahead to {lesson:communication}: find layouts for two matrices so that multiplying them sends nothing.
#
# Now you know who holds what. But a device can't compute with what it doesn't hold,
# so {lesson:communication} asks what devices must tell each other.

# %% score
score("mesh_and_layout")
