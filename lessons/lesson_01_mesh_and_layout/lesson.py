# %% [markdown]
# # 1. Mesh and layout
#
# You have several devices and one matrix.
# Which device holds which part of it, and how do you say so in one line?
#
# After this lesson you can
#
# - describe devices as a *mesh* and the split of a tensor as a *layout*;
# - tell from a layout, a shape and a number type, before anything runs, what each device holds,
#   how many bytes that is and how many copies exist;
# - cut a tensor for any mesh and layout, make a real DTensor of the parts,
#   and read back what every device holds;
# - say which mistakes TensorFlow refuses, and which it takes in silence.
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
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% mesh [markdown]
# ## A mesh is a grid of devices with names
#
# A mesh arranges devices in a grid.
# Each direction of the grid is a *mesh dimension*: it has a name and a size.
# Here are six devices as a grid of 3 by 2; the first cell asked for eight, and later parts use them all.
# `MeshSpec` is the course's own description of a mesh; it needs no TensorFlow, so the pictures come at once.

# %% first-mesh
from course_lib import UNSHARDED, LayoutSpec, MeshSpec

mesh = MeshSpec([("x", 3), ("y", 2)])
cube = MeshSpec([("batch", 2), ("feature", 2), ("model", 2)])
mesh

# %% mesh-rules [markdown]
# Devices are numbered row by row: the last mesh dimension changes fastest.
# Names must be unique, because a layout refers to a mesh dimension by its name.
# `MeshSpec` refuses a repeated name at once, TensorFlow only when the first tensor is put on the mesh
# (tried with TensorFlow 2.21).
# A mesh may have one, two, three or more dimensions: `cube` has three.
# In training, the names say what a dimension is for: `batch`, `model`.

# %% predict-neighbour [markdown]
# The mesh `batch` 2 × `feature` 2 × `model` 2 has eight devices.
# Which other device differs from device 5 only along `feature`?
#
# - [x] `7`
#   Device 5 is at (1, 0, 1).
#   A step along `feature` adds 2, the size of `model`.
# - [ ] `4`
#   Devices 4 and 5 differ along `model`, the last dimension, which changes fastest.
# - [ ] `1`
#   A step along `batch`, the first dimension, adds 4:
#   1 and 5 differ along it.
# - [ ] `6`
#   Device 6 stands at (1, 1, 0), device 5 at (1, 0, 1): they differ along two dimensions.
# - otherwise
#   Write 5 as 4·`batch` + 2·`feature` + `model`, each 0 or 1, and change `feature` alone.

# %% reveal-neighbour
place = cube.coords(5)
reveal("01-neighbour", cube.device_id({**place, "feature": 1 - place["feature"]}))

# %% [markdown]
# `cube.coords(5)` is the position of device 5, and `device_id` leads back from a position to the number.
# Devices whose positions differ in just one dimension form a *group* along it:
# 5 and 7 are a group along `feature`.
# Along `feature` this mesh has four groups: `cube.groups("feature")` lists them.
# When devices add up numbers along `feature`, each group adds up only the numbers of its own devices
# (the last prediction of this lesson measures it).
#
# ## A layout gives each axis a mesh dimension
#
# A tensor has *axes*, a mesh has *dimensions*.
# A layout says for each axis of the tensor which mesh dimension splits it, or that it is `"unsharded"`.
# We lay out one matrix of 6 rows and 4 columns in three ways; two are drawn now, the third you predict first:
#
# 1. Nothing is split.
#    The tensor is *fully replicated*: every device holds all of it.
# 2. Every mesh dimension splits an axis: `x` the rows and `y` the columns.
#    The tensor is *fully sharded*: each device holds a block of its own, and no element is stored twice.
# 3. A hybrid: some of the mesh dimensions split an axis, and some do not.
#
# In the pictures equal letters and colours mean equal data.

# %% two-layouts
from IPython.display import display

nothing_split, all_split = LayoutSpec([UNSHARDED, UNSHARDED], mesh), LayoutSpec(["x", "y"], mesh)
rows_over_x = LayoutSpec(["x", UNSHARDED], mesh)
display(nothing_split.of((6, 4)), all_split.of((6, 4)))

# %% predict-hybrid [markdown]
# The matrix of 6 rows and 4 columns gets the layout `[x, unsharded]` on the mesh `x` 3 × `y` 2.
# How many rows and columns does one device hold?
#
# - [x] `(2, 4)`
#   The 6 rows are cut into 3 parts of 2 over `x`; no mesh dimension cuts the columns.
# - [ ] `(2, 2)`
#   That is `[x, y]`: here no mesh dimension cuts the columns.
# - [ ] `(3, 4)`
#   3 is the number of parts into which `x` cuts the 6 rows, not their length.
# - [ ] `(1, 4)`
#   That shares the rows among all six devices, but `y` cuts nothing: it makes copies.

# %% reveal-hybrid
reveal("01-hybrid", rows_over_x.local_shape((6, 4)))

# %% rules [markdown]
# The layout does not use `y`, so devices that differ only along `y` hold the same block:
# there are two copies of each.
# Two rules cover every layout:
#
# - The **local shape** is the shape of what one device holds.
#   It is the **global shape** with each axis divided by the size of the mesh dimension that splits it.
#   Its bytes are elements times bytes per element: 4 for float32.
# - The number of **copies** $r$ is the product of the sizes $n_d$ of the mesh dimensions $d$ that the layout
#   $L$ does not use:
#
# $$r = \prod_{d \notin L} n_d$$
#
# If it uses all of them, the product is empty: $r = 1$.
#
# A layout must meet four conditions: it has one entry for each axis of the *tensor*;
# each entry is `"unsharded"` or the name of a dimension of the mesh;
# the size of the mesh dimension divides the length of the axis;
# and a mesh dimension splits one axis at most.
# The number of entries follows the tensor, not the mesh:
# a vector on this mesh has a layout with a single entry, such as `[y]`.

# %% hybrid
rows_over_x.of((6, 4))

# %% [markdown]
# **Exercise 1.** A matrix of shape (8, 8) on the mesh below.
# Write the layout, a `LayoutSpec`, that splits the rows and leaves four copies of each element.
# Replace the `...`, then run the cell and the check after it.

# %% exercise-four-copies
exercise_mesh = MeshSpec([("batch", 2), ("model", 4)])
four_copies = LayoutSpec(["batch", UNSHARDED], exercise_mesh)  # solution

# %%
check("01-four-copies", four_copies)

# %% explore [markdown]
# ## Explore
#
# Choose the mesh, the shape of the tensor and the layout.
# Select a device to see what it holds and who holds the same.
# The button at the end makes the real DTensor and puts what the devices really hold beside the prediction;
# it starts TensorFlow, so the first time takes some seconds.
#
# The notebook has eight devices: press the button on a larger mesh and it says why it cannot.
#
# Two tasks, each with a check that looks at what the explorer shows: run it before you choose anew.
# The tensor has the shape (8, 6), the mesh eight devices.
#
# 1. Each element is held by exactly two devices.
# 2. Each element is held by one device only.
#    On the mesh shown first one obvious choice is refused: read why.

# %% explorer
from lessons.lesson_01_mesh_and_layout.explorer import MeshLayoutExplorer, numbered_tensor


def observe(sharding):
    from course_lib import pack, unpack  # starts TensorFlow

    return unpack(pack(numbered_tensor(sharding.global_shape), sharding.layout))


explorer = MeshLayoutExplorer(observe)
explorer

# %% explore-two-copies
check("01-explore-two-copies", explorer)

# %% explore-one-copy
check("01-explore-one-copy", explorer)

# %% tensorflow [markdown]
# ## The same in TensorFlow
#
# `start_tensorflow` imports TensorFlow with the eight virtual CPUs that the first cell asked for.
# They can only be made before TensorFlow first uses its devices,
# which is why that cell comes first in every lesson.
#
# `dtensor.create_mesh` takes the names and sizes of the mesh dimensions and a list of devices.
# A mesh may leave devices out: this one uses six of the eight.
# A `dtensor.Layout` takes the entry for each axis and the mesh.
#
# `outcome` returns what a call gives, or the first sentence of the error that it raises.
# The last line shows it for a mesh dimension that does not exist.
# From here on each `reveal` measures through `outcome`, so the code does not show whether an error comes.
#
# `dtensor.pack` makes one DTensor from *component tensors*, one for each device, in the order of the devices.
# `dtensor.unpack` gives the components back, and `dtensor.fetch_layout` gives the layout.

# %% real-mesh
tf = course_lib.start_tensorflow()
import numpy as np
from tensorflow.experimental import dtensor

from course_lib import layout_spec, pack, pack_components, relayout, to_layout, to_numpy, unpack

devices = [f"CPU:{device_id}" for device_id in range(6)]
real_mesh = dtensor.create_mesh([("x", 3), ("y", 2)], devices=devices)
real_layout = dtensor.Layout(["x", dtensor.UNSHARDED], real_mesh)
print(real_layout.sharding_specs, real_layout.rank, real_layout.num_shards(0))


def outcome(action):
    try:
        return action()
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0].split('. ')[0]}"


print(outcome(lambda: dtensor.Layout(["z", dtensor.UNSHARDED], real_mesh)))

# %% predict-pack [markdown]
# Six components of 6 rows and 2 columns, one for each device of the mesh `x` 3 × `y` 2, are packed under the
# layout `[unsharded, y]`.
# What is the shape of the DTensor?
#
# - [x] `(6, 4)`
#   Two different blocks lie side by side over `y`; over `x` there are three copies of each.
# - [ ] `(6, 2)`
#   That is one component.
#   A DTensor has the shape of the whole.
# - [ ] `(18, 4)`
#   That is `[x, y]`.
#   Here `x` cuts nothing: its three components are copies.
# - [ ] `(6, 12)`
#   That puts all six side by side, but `y` has two positions only.

# %% reveal-pack
components = [tf.fill([6, 2], float(device_id % 2)) for device_id in range(6)]
packed = dtensor.pack(components, dtensor.Layout([dtensor.UNSHARDED, "y"], real_mesh))
reveal("01-pack", outcome(lambda: tuple(packed.shape)))

# %% [markdown]
# Devices 0, 2 and 4 are replicas: their components are three copies of *one* block, the left half,
# and devices 1, 3 and 5 hold the right half.
# The shape of a DTensor is the global shape, as if there were one big device.
#
# ### TensorFlow's `pack` and the course's
#
# Names that begin with `dtensor.` are TensorFlow's; `pack`, `unpack` and `relayout` alone are the course's.
# `dtensor.pack` wants the components, so whoever has the whole array must cut it first.
# The course's `pack` does both, and takes the course's own description of the layout:
#
# | call | it takes | it returns |
# | --- | --- | --- |
# | `dtensor.pack(components, layout)` | a list with the component of each device, and a `dtensor.Layout` | a DTensor |
# | `pack(value, layout, mesh=None)` | the whole array, a `LayoutSpec` and optionally a real mesh | a DTensor |
# | `dtensor.unpack(tensor)` | a DTensor | a list of tensors |
# | `unpack(tensor)` | a DTensor | a list of arrays |
# | `dtensor.relayout(tensor, layout)` | a DTensor and a `dtensor.Layout` | a DTensor |
# | `relayout(tensor, layout, mesh=None)` | a DTensor, a `LayoutSpec` and optionally a real mesh | a DTensor |
#
# `numbered_tensor(shape)` makes an array of the numbers 0, 1, 2 and so on, row by row.
# `compare` draws what the layout predicts and what the devices really hold.

# %% compare
numbers = numbered_tensor((6, 4))
rows = pack(numbers, rows_over_x, real_mesh)
rows_over_x.of((6, 4)).compare(numbers, unpack(rows))

# %% cutting [markdown]
# ### Cut it yourself
#
# Before `dtensor.pack` you must cut the array.
# For that you need to know into how many parts an axis is cut, and which of them belongs to which device.
# `real_mesh.local_device_locations()` lists the position of each device, as `coords` does.
# A `dtensor.Layout` has a method `num_shards(axis)` and a property `shape`.

# %% predict-packer [markdown]
# Mesh `batch` 4 × `model` 2, layout `[model, unsharded]`, a matrix of 24 rows.
# A packer cuts the rows into `layout.shape[0]` parts and gives each device the part of its position along
# `model`.
# Here `layout.shape` is `[4, 2]`.
# How many rows does the resulting DTensor have?
#
# - [x] `12`
#   Two of the 4 parts of 6 rows, one for each position along `model`; the others reach no device.
# - [ ] `24`
#   So it should be.
#   But `model` has two positions: two of the 4 parts reach no device.
# - [ ] `6`
#   That is one component.
#   The DTensor is made of two, one for each position along `model`.
# - [ ] `48`
#   The devices along `batch` hold copies, which count once.
# - otherwise
#   Into how many parts are the rows cut, and how many of these parts reach a device?

# %% reveal-packer
grid = dtensor.create_mesh([("batch", 4), ("model", 2)])
over_model = dtensor.Layout(["model", dtensor.UNSHARDED], grid)
parts = tf.split(tf.ones([24, 4]), over_model.shape[0], axis=0)
places = grid.local_device_locations()
packed = dtensor.pack([parts[place["model"]] for place in places], over_model)
reveal("01-packer", outcome(lambda: packed.shape[0]))

# %% [markdown]
# Nothing complained: `dtensor.pack` cannot know how many rows there were.
# `num_shards(0)` is the number of parts; `shape` is the shape of the *mesh*.
# On a mesh `model` 2 × `batch` 4 the same code is right (tried with TensorFlow 2.21):
# there `shape[0]` and `num_shards(0)` are both 2.
#
# **Exercise 2.** Write `split(whole, layout)`:
# it returns a list with the component of each device, in the order of the devices.
# `whole` is an array and `layout` a `LayoutSpec`, both of any number of axes.
# Use `layout.sharding_specs`, `layout.num_shards(axis)`, `layout.mesh.size`
# and `layout.mesh.coords(device_id)`, and cut with `np.split`, `tf.split` or slices.
# The check calls it on many meshes and layouts.


# %% exercise-split
def split(whole, layout):
    # solution begin
    components = []
    for device_id in range(layout.mesh.size):
        part, place = whole, layout.mesh.coords(device_id)
        for axis, dim in enumerate(layout.sharding_specs):
            if dim != UNSHARDED:
                part = np.split(part, layout.num_shards(axis), axis=axis)[place[dim]]
        components.append(part)
    return components
    # solution end


# %%
check("01-split", split)

# %% moving [markdown]
# ### `copy_to_mesh` and `relayout`
#
# `dtensor.copy_to_mesh` takes an ordinary tensor and a layout.
# It takes the whole tensor; `dtensor.pack` takes the components.
# With a replicated layout every device receives the whole; in TensorFlow 2.21 it takes sharded layouts too.
#
# `dtensor.relayout` takes a DTensor and returns one in another layout.
# Where a device then needs data that it does not hold, the devices send it to each other.
# The cell shows what is held, not what is sent: the shape on one device, the bytes on all six together,
# and how many of the 24 numbers are the same as in `rows`.
# A matrix keeps its values.
# But along a mesh dimension of 12 or more CPUs TensorFlow 2.21 can mix up the blocks:
# lesson 2 shows it, and the course's `relayout` refuses it.


# %% move
def agreeing(tensor, other):
    return (to_numpy(tensor) == to_numpy(other)).astype(int)


whole = tf.constant(numbers)
replicated = dtensor.copy_to_mesh(whole, dtensor.Layout.replicated(real_mesh, rank=2))
copied = dtensor.copy_to_mesh(whole, real_layout)
columns = dtensor.relayout(rows, dtensor.Layout([dtensor.UNSHARDED, "y"], real_mesh))
for label, moved in {"replicated": replicated, "sharded": copied, "relayout": columns}.items():
    held = unpack(moved)
    num_bytes = sum(component.nbytes for component in held)
    print(f"{label:10} {held[0].shape}, {num_bytes} bytes, {agreeing(moved, rows).sum()} as in rows")

# %% [markdown]
# **Exercise 3.** A matrix of shape (8, 4) on a mesh `x` 4 × `y` 2 goes
# from `[x, unsharded]` to `[unsharded, y]`.
# Look at device 3, at position 1 of `x` and 1 of `y`.
# The numbers are float32: 4 bytes each.
# How many bytes does it hold afterwards that it did not hold before?

# %% exercise-missing-bytes
missing_bytes = (8 * 2 - 2 * 2) * 4  # solution

# %% check-missing-bytes [markdown]
# `missing_bytes`
#
# - [x] `48`
# - [ ] `64`
#   That is all that device 3 holds afterwards.
#   Some of it is there already.
# - [ ] `32`
#   32 is what it holds before, and also 64 - 32.
#   Not all it held is in its half of the columns: count only what is new.
# - [ ] `16`
#   That is what it holds already of its half of the columns.
# - [ ] `12`
#   That is a number of elements; the question is about bytes.
# - otherwise
#   Which rows of its half of the columns does device 3 hold before, and which not?

# %% reading [markdown]
# ### Read it
#
# `.numpy()` turns a tensor of ordinary TensorFlow into a NumPy array.
# Now call it on a DTensor.

# %% predict-numpy [markdown]
# `rows` is split over `x`.
# What does `rows.numpy()` give?
#
# - [x] `UnimplementedError` an error
#   The layout splits an axis, and `.numpy()` does not collect the parts.
# - [ ] `whole` the whole matrix, of the shape (6, 4)
#   The blocks would have to be fetched from three devices;
#   `.numpy()` leaves that to you.
# - [ ] `first` the block of device 0, of the shape (2, 4)
#   A part would then pass for the whole.
# - [ ] `all` all six blocks, of the shape (6, 2, 4)
#   `dtensor.unpack` gives them, as a list of six tensors of the shape (2, 4).

# %% reveal-numpy
reveal("01-numpy", outcome(lambda: rows.numpy().shape))

# %% [markdown]
# TensorFlow refuses: the layout splits an axis, and `.numpy()` does not collect the parts.
# (Some operations do: `tf.cumsum(rows, axis=0)` comes back replicated, tried with TensorFlow 2.21.)
# With a replicated layout `.numpy()` gives the whole matrix, as a cell below shows.
# So either use `relayout` to a replicated layout, and every device holds the whole,
# or fetch the components and join them on the host, as the course's `to_numpy` does.
#
# ## Make it where it belongs: `call_with_layout`
#
# `dtensor.call_with_layout` runs a function so that its result has a given layout,
# without a whole tensor to begin with.
# Here the function draws random numbers.
# Each device draws its own block only, row by row.
# In TensorFlow 2.21 a device at position 0 of `y` draws the same series of numbers
# under `[x, y]` as under `[x, unsharded]`.

# %% predict-random [markdown]
# 24 random numbers, a matrix of 6 by 4, are drawn twice with the same seed: once under the layout `[x,
# unsharded]`, once under `[x, y]`.
# At how many of the 24 places is the number the same?
#
# - [x] `[[1, 1, 0, 0], [0, 0, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0]]` at some of them
#   At each position of `x` the left block begins like the block of four columns: the first two numbers fill
#   the same places.
#   The next ones do not, because the blocks have other shapes.
# - [ ] `[[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1]]` at all of them
#   The seed is the same, but a block of 4 columns is filled differently from one of 2.
# - [ ] `[[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]` at none of them
#   Device 0 draws the same series both times, so both its blocks begin with the same number; and it has the
#   first block both times.

# %% reveal-random
draw = tf.function(tf.random.stateless_normal)


def drawn(layout, function=draw):
    return dtensor.call_with_layout(function, layout, shape=[6, 4], seed=[1, 2])


in_rows = drawn(real_layout)
in_blocks = drawn(dtensor.Layout(["x", "y"], real_mesh))
reveal("01-random", outcome(lambda: agreeing(in_rows, in_blocks)))

# %% drawn-blocks
for drawing in (in_rows, in_blocks):
    print(unpack(drawing)[0].round(2), end="\n\n")
everywhere = drawn(dtensor.Layout.replicated(real_mesh, rank=2))
ordinary = tf.random.stateless_normal([6, 4], seed=[1, 2])
print(everywhere.numpy()[0, 0].round(2), (everywhere.numpy() == ordinary.numpy()).sum())
print(outcome(lambda: drawn(real_layout, tf.random.stateless_normal)))

# %% random-why [markdown]
# The measurement has a 1 where both drawings have the same number: columns 0 and 1 of rows 0, 2 and 4.
# The cell above prints the blocks of device 0 under `[x, unsharded]` and under `[x, y]`.
# Row by row both begin with the same four numbers, but only the first two are in the same places.
#
# The line after them begins with the number in the corner of the replicated matrix.
# It is not the first number of these blocks: device 0 did not cut its block out of the whole.
# All 24 numbers of the replicated matrix are those that an ordinary tensor gets from this seed.
# Without `tf.function` the layout is applied to every operation inside,
# also to the one that makes a vector of the seed: here an error (the last line), though `tf.zeros` works.
#
# So two training schemes that draw their weights under different layouts can start from *different* weights,
# even with one seed.
# To compare schemes, draw replicated and use `relayout`,
# or make the values once on the host and pack them under each layout,
# as the course does from lesson 3 on.
#
# ## Variables keep their layout
#
# A `dtensor.DVariable` takes its layout from its initial value and keeps it.
# A DTensor on the same mesh with another layout is laid out anew when it is assigned.
# An ordinary float tensor of the same shape is refused:

# %% dvariable
variable = dtensor.DVariable(rows)
variable.assign(columns + 100.0)
print(layout_spec(variable.layout), unpack(variable)[5], sep="\n")
print(outcome(lambda: variable.assign(whole)))
print(outcome(lambda: columns + whole))

# %% break-text [markdown]
# The layout is that of `rows`, the values are the new ones: device 5 holds the last two rows.
#
# Pack an ordinary tensor first, as `rows` was.
# TensorFlow takes only three kinds of ordinary value as they are:
# a scalar, fewer than 20 whole numbers (int32 or int64), and strings (tried with TensorFlow 2.21).
# Operations and the arguments of a `tf.function` follow the same rule:
# `columns + 100.0` works, `columns + whole` is refused (the last line).
#
# ## Break it on purpose
#
# The cell makes three mistakes and prints the first line of each message:
# a mesh of 8 for six devices, a mesh dimension for two axes, and 5 rows over 3 positions.
# The third is also put to the course, as a `LayoutSpec`: its message comes last.

# %% break-errors tags=["error"]
mistakes = [
    lambda: dtensor.create_mesh([("x", 4), ("y", 2)], devices=devices),
    lambda: dtensor.Layout(["x", "x"], real_mesh),
    lambda: dtensor.call_with_layout(tf.zeros, real_layout, shape=[5, 4]),
    lambda: rows_over_x.local_shape((5, 4)),
]
for mistake in mistakes:
    try:
        mistake()
    except Exception as error:
        print(str(error).splitlines()[0], end="\n\n")

# %% predict-replicas [markdown]
# Under `[unsharded, y]` devices 0, 2 and 4 are to hold one 6 × 2 block, and 1, 3 and 5 another.
# We give `dtensor.pack` six unlike components instead: device `d` gets a block filled with the number `d`.
# Then `tf.reduce_sum` adds up the DTensor.
# What comes out?
# A list gives the sum on each device.
#
# - [x] `[12, 12, 60, 60, 108, 108]`
#   `dtensor.pack` compares no values, and each group along `y` adds up its own two blocks.
# - [ ] `[12, 12, 12, 12, 12, 12]`
#   Devices 0 and 1 have this sum.
#   Nobody sent the others the blocks of devices 0 and 1.
# - [ ] `[180, 180, 180, 180, 180, 180]`
#   That adds up all six blocks, but the sum runs over the groups along `y` only.
# - [ ] `refused` an error
#   `dtensor.pack` would have to compare the components, and it does not.

# %% reveal-replicas
unlike = [tf.fill([6, 2], float(device_id)) for device_id in range(6)]
columns_over_y = dtensor.Layout([dtensor.UNSHARDED, "y"], real_mesh)


def add_up():
    return [int(total) for total in unpack(tf.reduce_sum(dtensor.pack(unlike, columns_over_y)))]


reveal("01-replicas", outcome(add_up))

# %% silent-mistakes
print("unlike replicas:", tf.reduce_sum(dtensor.pack(unlike, columns_over_y)).numpy())
backwards = dtensor.pack(dtensor.unpack(rows)[::-1], real_layout)
print("backwards, in place:", agreeing(backwards, rows).sum())
print("pack_components:", outcome(lambda: pack_components(unlike, columns_over_y)))

cube_mesh = dtensor.create_mesh(list(cube.dims))
turned = LayoutSpec(["feature", UNSHARDED, "batch"], cube)
small = pack(numbered_tensor((2, 2, 2)), LayoutSpec(["model", "batch", UNSHARDED], cube), cube_mesh)
print("dtensor.relayout:", unpack(dtensor.relayout(small, to_layout(turned, cube_mesh)))[1].ravel())
print("relayout:", unpack(relayout(small, turned, cube_mesh))[1].ravel())

# %% replicas-why [markdown]
# Three mistakes pass in silence:
#
# 1. Unlike replicas, as in the measurement: one DTensor with three sums.
#    `.numpy()` shows 12, the sum of device 0.
# 2. Components in the wrong order.
#    With those of `rows` backwards, 8 of the 24 numbers are still in their places.
# 3. One of TensorFlow's own.
#    With three axes on a mesh of three dimensions, or with four axes even on a mesh with one dimension,
#    `dtensor.relayout` of TensorFlow 2.21 can return wrong values.
#    Device 1 is at position 0 of `feature` and 0 of `batch`: `[feature, unsharded, batch]` gives it 0 and 2.
#    `dtensor.relayout` gave it 4 and 6, under a layout that says `[feature, unsharded, batch]`.
#
# The course's `pack` makes neither of the first two:
# it cuts one array itself and gives each device the block of its position.
# For components of your own there is `pack_components`:
# it compares the replicas, and refuses these.
# In place of `dtensor.relayout` use the course's `relayout`:
# tests try it with three axes on a mesh of 2 × 2 × 2,
# from every layout to every other (`tests/tf/test_dtensor.py`).
#
# ## Layouts for training
#
# Lesson 3 trains on a mesh with one dimension `batch` of 8:
# the rows of a batch are split and everything else is replicated.
# A layout can split weights as well.
#
# **Exercise 4.** A weight of shape (1200, 48) in float32 has the layout `[feature, model]` on a mesh with the
# dimensions `batch` 2, `feature` 3 and `model` 2.
# What does one device hold of it?
# Answer with a pair: the local shape, and the bytes.

# %% exercise-weight-part
weight_part = ((1200 // 3, 48 // 2), 1200 // 3 * (48 // 2) * 4)  # solution

# %% check-weight-part [markdown]
# `weight_part`
#
# - [x] `((400, 24), 38400)`
# - [ ] `((600, 16), 38400)`
#   A layout has its entries in the order of the axes: which one splits the rows?
# - [ ] `((200, 24), 19200)`, `((400, 12), 19200)`
#   The dimension batch does not split the weight: it makes copies of it.
# - [ ] `((400, 48), 76800)`, `((1200, 24), 115200)`
#   That divides only one axis; the layout splits both.
# - [ ] `((400, 24), 9600)`
#   That is the number of elements.
#   How many bytes does a float32 take?
# - otherwise
#   First the shape: divide each axis by the size of the mesh dimension that splits it.
#   Then the bytes of such a part, 4 for each element.

# %% score
score("01")

# %% [markdown]
# ## Takeaways
#
# - A mesh names the dimensions of a grid of devices;
#   a layout gives each axis of a tensor one of these names or `"unsharded"`.
# - You can work out both the local shape and the copies without running anything.
#   Local shape: divide each axis of the global shape by the size of its mesh dimension.
#   Copies: multiply the sizes of the unused mesh dimensions.
# - TensorFlow checks shapes and names, not values: lost rows, unlike replicas
#   and a wrong `dtensor.relayout` of three axes on a mesh of three dimensions pass in silence.
#   So compare what the devices hold with what you expect.
#
# ## Next
#
# Lesson 2 shows what communication a layout costs.
# Lesson 3 trains a model with these pieces, the batch split over eight devices,
# and takes one step of the training apart.
#
# In this notebook one Python process drives all devices: it is a *single client*.
# On several machines DTensor runs as *multi-client*:
# several processes run the same program, usually one on each machine.
# One mesh covers the devices of all of them, and each process packs only the components of its own devices.
# Lesson 11 does so with two processes.
#
# TensorFlow's own pages: the [DTensor overview](https://www.tensorflow.org/guide/dtensor_overview)
# and the [reference](https://www.tensorflow.org/api_docs/python/tf/experimental/dtensor).
