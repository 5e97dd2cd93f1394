# %% [markdown]
# # 1. Mesh and layout
#
# You have six devices and one matrix.
# Which device holds which part of it, and how do you say so in one line?
#
# After this lesson you can
#
# - describe devices as a *mesh* and the split of a tensor as a *layout*;
# - tell from a layout, before anything runs, what each device holds,
#   how many bytes that is and how many copies exist;
# - make a real DTensor, read back what every device holds, and explain why TensorFlow refuses some requests.
#
# **Time:** 45 minutes.
# **You need to know:** Python, NumPy slices, and what a tensor is.
#
# > **Experimental.** DTensor lives in `tf.experimental`: its names may change.
# > This lesson was run with TensorFlow 2.21 on virtual CPUs, not on GPUs or TPUs.
# > Virtual CPUs share the cores of one machine.
# > They show which device does what, and say nothing about the speed of real devices.

# %%
LANGUAGE = "en"

import course_lib

course_lib.setup(language=LANGUAGE, devices=8)

# %% mesh [markdown]
# ## A mesh is a grid of devices with names
#
# A mesh arranges devices in a grid.
# Each direction of the grid is a *mesh dimension*: it has a name and a size.
# Here are six devices as a grid of 3 by 2.
# `MeshSpec` is the course's own description of a mesh; it needs no TensorFlow, so the pictures come at once.

# %% first-mesh
from course_lib import UNSHARDED, LayoutSpec, MeshSpec

mesh = MeshSpec([("x", 3), ("y", 2)])
mesh

# %% mesh-rules [markdown]
# Devices are numbered row by row: the last mesh dimension changes fastest.
# Names must be unique, because a layout refers to a mesh dimension by its name.
# In training, the names say what a dimension is for: `batch`, `model`.

# %% [markdown]
# **Predict.** Without looking at the picture again: where does device 3 stand along `x` and along `y`?
# Which devices differ from each other only along `y`?

# %% reveal-coords
print(mesh.coords(3))
print(mesh.groups("y"))

# %% groups [markdown]
# Device 3 is at position 1 of `x` and 1 of `y`.
# The devices fall into three groups of two: within a group only the position along `y` differs.
# Remember groups.
# When devices must add up their results along `y`, each of these groups does so on its own.

# %% layout [markdown]
# ## A layout gives each axis a mesh dimension
#
# A tensor has *axes*, a mesh has *dimensions*.
# A layout says for each axis of the tensor which mesh dimension splits it, or that it is `"unsharded"`.
# We lay out one matrix of 6 rows and 4 columns in three ways.
#
# First, nothing is split.
# The tensor is *fully replicated*: every device holds all of it.

# %% fully-replicated
LayoutSpec([UNSHARDED, UNSHARDED], mesh).of((6, 4))

# %% [markdown]
# Second, both axes are split: the rows over `x`, the columns over `y`.
# The tensor is *fully sharded*: each device holds a block of its own, and no element is stored twice.
# Equal letters and colours mean equal data.

# %% fully-sharded
LayoutSpec(["x", "y"], mesh).of((6, 4))

# %% [markdown]
# **Predict.** Third, a hybrid: the rows are split over `x`, the columns are not split.
# How many rows and columns does one device hold?
# How many devices hold row 0?
# Draw it before you run the cell.

# %% reveal-hybrid
rows_over_x = LayoutSpec(["x", UNSHARDED], mesh)
print(rows_over_x.local_shape((6, 4)), rows_over_x.replicas)
rows_over_x.of((6, 4))

# %% rules [markdown]
# Each device holds 2 rows of 4 columns, and two devices hold row 0.
# The layout does not use `y`, so devices that differ only along `y` hold the same block.
# Two rules cover every layout:
#
# - The **local shape** is what one device holds.
#   It is the **global shape** with each axis divided by the size of the mesh dimension that splits it.
# - The number of **copies** $r$ is the product of the sizes $n_d$ of the mesh dimensions $d$ that the layout
#   $L$ does not use:
#
# $$r = \prod_{d \notin L} n_d$$
#
# A layout has one entry for each axis of the *tensor*, whatever the number of mesh dimensions.
# A vector on this two-dimensional mesh has a layout with a single entry:

# %% vector
LayoutSpec(["y"], mesh).of((4,))

# %% explore [markdown]
# ## Explore
#
# Choose the mesh, the shape of the tensor and the layout.
# Select a device to see what it holds and who holds the same.
# The button at the end makes the real DTensor and puts what the devices really hold beside the prediction;
# it starts TensorFlow, so the first time takes some seconds.
#
# Try to find
#
# - a layout of the tensor of shape (8, 6) on eight devices with exactly two copies of each element;
# - two different layouts with the same local shape;
# - a layout that is refused, and the reason.

# %% explorer
from course_lib.explorers.mesh_layout import MeshLayoutExplorer, numbered_tensor


def observe(sharding):
    from course_lib.dtensor import pack, unpack  # starts TensorFlow

    return unpack(pack(numbered_tensor(sharding.global_shape), sharding.layout))


explorer = MeshLayoutExplorer(observe)
explorer

# %% tensorflow [markdown]
# ## The same in TensorFlow
#
# Now the real thing.
# `start_tensorflow` imports TensorFlow with the eight virtual CPUs that the first cell asked for.
# They can only be made before TensorFlow starts, which is why that cell comes first in every lesson.

# %% start-tensorflow
tf = course_lib.start_tensorflow()
from tensorflow.experimental import dtensor

from course_lib.dtensor import layout_spec, pack, to_layout, to_numpy, unpack

print(len(tf.config.list_logical_devices("CPU")))

# %% [markdown]
# `dtensor.create_mesh` takes the names and sizes of the mesh dimensions and a list of devices.
# A mesh may leave devices out: this one uses six of the eight.
# A `dtensor.Layout` takes the entry for each axis and the mesh.
# On a machine with GPUs the devices are called `GPU:0`, `GPU:1` and so on,
# and the rest of this lesson stays as it is; that was not tried here.

# %% real-mesh
devices = [f"CPU:{device_id}" for device_id in range(6)]
real_mesh = dtensor.create_mesh([("x", 3), ("y", 2)], devices=devices)
real_layout = dtensor.Layout(["x", dtensor.UNSHARDED], real_mesh)
print(real_layout.sharding_specs, real_layout.rank, real_layout.num_shards(0))

# %% shape-trap [markdown]
# > **A trap.** `layout.shape` sounds like the shape of the shards, but it is the shape of the *mesh*.
# > Ask `layout.num_shards(axis)` into how many parts an axis is split.
# > Code that splits by `layout.shape[axis]` works on some meshes and silently loses rows on others.

# %% pack [markdown]
# ### Components in, components out
#
# `dtensor.pack` makes one DTensor from *component tensors*, one for each device, in the order of the devices.
# `dtensor.unpack` gives the components back, and `dtensor.fetch_layout` gives the layout.

# %% [markdown]
# **Predict.** We pack six components of 6 rows and 2 columns, this time under the layout `[unsharded, y]`.
# The component of device `d` is filled with the number `d % 2`.
# How many rows and columns does the DTensor have?

# %% reveal-pack
components = [tf.fill([6, 2], float(device_id % 2)) for device_id in range(6)]
tensor = dtensor.pack(components, dtensor.Layout([dtensor.UNSHARDED, "y"], real_mesh))
print(tensor.shape)
print([int(component[0, 0]) for component in dtensor.unpack(tensor)])

# %% [markdown]
# 6 rows and 4 columns.
# Devices 0, 2 and 4 are replicas: their components are three copies of *one* block, the left half,
# and devices 1, 3 and 5 hold the right half.
# So the shape of a DTensor is always the global shape, as if there were one big device.
#
# The course's `pack` starts from the whole array:
# it cuts out the component of each device and sends each device only that.
# The next cell shows what the devices then hold, beside the prediction.

# %% compare
numbers = numbered_tensor((6, 4))
rows = pack(numbers, rows_over_x, real_mesh)
rows_over_x.of((6, 4)).compare(numbers, unpack(rows))

# %% [markdown]
# ### `pack` or `copy_to_mesh`
#
# `dtensor.copy_to_mesh` takes an ordinary tensor and a layout.
# With a replicated layout every device receives the whole: the matrix has 96 bytes, so six copies are 576.
# Under `[x, unsharded]` the six components have 32 bytes each, 192 together.
# `pack` is given exactly these components, so TensorFlow never sees the whole.
# In TensorFlow 2.21 `copy_to_mesh` takes sharded layouts too.

# %% copy-to-mesh
whole = tf.constant(numbers)
replicated = dtensor.copy_to_mesh(whole, dtensor.Layout.replicated(real_mesh, rank=2))
sharded = dtensor.copy_to_mesh(whole, real_layout)
for copied in (replicated, sharded):
    print([tuple(part.shape) for part in dtensor.unpack(copied)])

# %% [markdown]
# ### The same values in another layout: `relayout`
#
# `dtensor.relayout` returns a tensor with the same values in another layout.
# Where a device then needs data that it does not hold, the devices send it to each other.
# We go from rows over `x` to columns over `y`.

# %% relayout
columns_over_y = LayoutSpec([UNSHARDED, "y"], mesh)
columns = dtensor.relayout(rows, to_layout(columns_over_y, real_mesh))
print(unpack(rows)[0].shape, "->", unpack(columns)[0].shape)
print((to_numpy(columns) == numbers).all())

# %% [markdown]
# **Predict.** `.numpy()` turns a tensor into an array.
# What will it do with the replicated tensor, and what with `rows`, whose rows are spread over devices?

# %% reveal-numpy tags=["error"]
print(replicated.numpy().shape)
try:
    rows.numpy()
except tf.errors.UnimplementedError as error:
    print(error.message.split(". Input")[0])

# %% [markdown]
# A replicated tensor can be read, because each device has all of it.
# A sharded one cannot: no device holds the whole,
# and fetching it from all devices would be costly on a real cluster.
# So TensorFlow makes you ask for that.
# Either use `relayout` to a replicated layout, which makes every device hold the whole,
# or fetch the components and join them on the host, as the course's `to_numpy` does.

# %% [markdown]
# ### Make it where it belongs: `call_with_layout`
#
# A large tensor should never exist in one place.
# `dtensor.call_with_layout` runs a function so that its result has a given layout,
# and each device makes only its own part.

# %% call-with-layout
zeros = dtensor.call_with_layout(tf.zeros, real_layout, shape=[6, 4])
print(layout_spec(dtensor.fetch_layout(zeros)), unpack(zeros)[0].shape)

# %% [markdown]
# **Predict.** We draw random numbers twice with the same seed: once laid out as `[x, unsharded]`,
# once as `[x, y]`.
# Is it the same matrix?

# %% reveal-random
draw = tf.function(tf.random.stateless_normal)
drawn_in_rows = dtensor.call_with_layout(draw, real_layout, shape=[6, 4], seed=[1, 2])
blocks = to_layout(LayoutSpec(["x", "y"], mesh), real_mesh)
drawn_in_blocks = dtensor.call_with_layout(draw, blocks, shape=[6, 4], seed=[1, 2])
print((to_numpy(drawn_in_rows) == to_numpy(drawn_in_blocks)).all())

# %% [markdown]
# No. Each device draws the numbers of its own part, so the result depends on the layout.
# Two training schemes that lay out their weights differently start from *different* weights,
# even with the same seed.
# To compare schemes, make the values once on the host and pack them under each layout.
# The course does so from lesson 3 on.

# %% [markdown]
# ### Variables keep their layout
#
# A `dtensor.DVariable` takes its layout from its initial value and keeps it.
# A value with another layout is laid out anew when it is assigned.
# A plain tensor like the one below is refused: pack it first.

# %% dvariable tags=["error"]
variable = dtensor.DVariable(rows)
variable.assign(columns)
print(layout_spec(variable.layout))
try:
    variable.assign(whole)
except tf.errors.UnimplementedError as error:
    print(error.message.split(" For other")[0])

# %% break-text [markdown]
# ## Break it on purpose
#
# TensorFlow explains some bad layouts in one clear line and others in the words of its compiler,
# and a few mistakes it accepts in silence.
# The course checks every mesh and layout before TensorFlow sees it.
# Read the three messages, and say for each what you would change.

# %% break-errors tags=["error"]
mistakes = [
    lambda: rows_over_x.local_shape((5, 4)),
    lambda: LayoutSpec(["x", "x"], mesh),
    lambda: MeshSpec([("x", 3), ("x", 2)]),
]
for mistake in mistakes:
    try:
        mistake()
    except course_lib.CourseError as error:
        print(error, end="\n\n")

# %% eight [markdown]
# ## Eight devices
#
# Lesson 3 trains on a mesh with one dimension `batch` of 8:
# the rows of a batch are split and everything else is replicated.
# Larger models also split their weights.
# Here the devices form a grid of 4 by 2, and the columns of a weight with 1200 rows and 48 columns are split
# over `model`.
# Each element takes 4 bytes.

# %% eight-devices
training_mesh = MeshSpec([("batch", 4), ("model", 2)])
weight_layout = LayoutSpec([UNSHARDED, "model"], training_mesh)
weight_layout.of((1200, 48), element_bytes=4)

# %% clients [markdown]
# ## One client or many
#
# In this notebook one Python process drives all devices: it is a *single client*.
# On several machines DTensor runs as *multi-client*:
# each machine runs the same program in a process of its own, the mesh covers the devices of all machines,
# and each process packs only the components of its own devices.
# Meshes and layouts are written in the same way.
# A later lesson runs two processes.

# %% exercises [markdown]
# ## Exercises
#
# Replace each `...` and run the cell and the check after it.
#
# **1.** A matrix of shape (8, 8) on the mesh below.
# Write the layout under which each device holds 4 rows and 8 columns and each element exists in four copies.

# %% exercise-four-copies
from course_lib.exercises import check

exercise_mesh = MeshSpec([("batch", 2), ("model", 4)])
four_copies = LayoutSpec(["batch", UNSHARDED], exercise_mesh)  # solution

# %%
check("01-four-copies", four_copies)

# %% [markdown]
# **2.** A weight of shape (1200, 48) in float32 has the layout `[feature, model]` on a mesh with the
# dimensions `batch` 2, `feature` 2 and `model` 2.
# How many bytes of it does one device hold?

# %% exercise-bytes
bytes_on_one_device = 1200 // 2 * (48 // 2) * 4  # solution

# %%
check("01-bytes", bytes_on_one_device)

# %% [markdown]
# **3.** The vector `[10, 20, 30, 40]` is to be packed on the mesh `x` 2, `y` 2 under the layout `[y]`.
# Write the list of the four components, one for each device, as Python lists.

# %% exercise-components
four_components = [[10, 20], [30, 40], [10, 20], [30, 40]]  # solution

# %%
check("01-components", four_components)

# %% [markdown]
# **4.** A tensor of shape (6, 4) is to be spread over eight devices with one copy of each element.
# Make the mesh with the dimensions `x` and `y` on which the layout `[x, y]` does this.

# %% exercise-mesh
one_copy_mesh = MeshSpec([("x", 2), ("y", 4)])  # solution

# %%
check("01-one-copy-mesh", one_copy_mesh)

# %% [markdown]
# ## Takeaways
#
# - A mesh names the dimensions of a grid of devices;
#   a layout gives each axis of a tensor one of these names or `"unsharded"`.
# - Local shape and copies follow from the layout alone: divide by the dimensions that it uses,
#   multiply those that it does not.
# - A DTensor looks like one big tensor.
#   What it costs shows when you read it, relayout it or draw random numbers in it.

# %% [markdown]
# ## Next
#
# Lesson 3 trains a model with these pieces: the batch is split over eight devices,
# and the first steps are checked against one device.
