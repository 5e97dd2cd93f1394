# %% [markdown]
# # Mesh and layout
#
# You have several devices and one matrix.
# Which device holds which part of it, and how do you say so in one line?
#
# After this lesson you can
#
# - describe devices as a *mesh* and the split of a tensor as a *layout*;
# - tell, before anything runs, what each device holds, how many bytes that is and how many copies exist;
# - cut an array, make a DTensor of the parts, move it, and join the parts again;
# - say which mistakes TensorFlow refuses, which it takes in silence, and which end the process.
#
# **Time:** 40 minutes.
# **You need to know:** Python, NumPy slices, and what a tensor is.
#
# > **Where this was run.** TensorFlow 2.21 on eight virtual CPUs, not on GPUs or TPUs.
# > They share one machine's cores:
# > they show which device does what, not the speed of real devices.
# > DTensor is experimental: its names may change.

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% devices-text [markdown]
# ## Eight virtual devices on one CPU
#
# TensorFlow takes a machine's CPU, with all its cores, for one device.
# Two lines after `import tensorflow as tf` make eight *virtual devices* of it:
#
# ```python
# cpu = tf.config.list_physical_devices("CPU")[0]
# tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 8)
# ```
#
# They must run before TensorFlow first uses a device, and so starts; your own program needs no other call.
# In these lessons `setup` takes the number of devices in the first cell, and later `start_tensorflow`
# imports TensorFlow, hides GPUs, runs these two lines, starts TensorFlow and returns the module.
#
# The last line asks for four devices, too late.
# `outcome` calls a function, and returns its result, or the kind and first sentence of its error.

# %% devices
tf = course_lib.start_tensorflow()
import numpy as np
from tensorflow.experimental import dtensor

from course_lib import outcome, show

cpu = tf.config.list_physical_devices("CPU")[0]
four_devices = [tf.config.LogicalDeviceConfiguration()] * 4
num_devices = len(tf.config.list_logical_devices("CPU"))
print(f"{num_devices=}")
print(outcome(tf.config.set_logical_device_configuration, cpu, four_devices))

# %% mesh-text [markdown]
# ## A mesh is a grid of devices with names
#
# A mesh arranges devices in a grid.
# Each direction of it is a *mesh dimension*, with a name and a size.
# `dtensor.create_mesh` takes pairs of name and size, and a list of devices.
# Here six of the eight form a grid of 3 by 2; `show` draws it.

# %% mesh
devices = [f"CPU:{device_id}" for device_id in range(6)]
mesh = dtensor.create_mesh([("x", 3), ("y", 2)], devices=devices)
show(mesh)

# %% layout-text [markdown]
# The list fills the grid row by row: the last mesh dimension changes fastest.
#
# ## A layout gives each axis a mesh dimension
#
# A tensor has *axes*, a mesh has *dimensions*.
# A layout names for each axis of the tensor the mesh dimension that splits it;
# for an axis that is not split it has `dtensor.UNSHARDED`.
# There are three kinds of layouts:
#
# 1. Nothing is split.
#    The tensor is *fully replicated*: every device holds all of it.
# 2. Every mesh dimension splits an axis, in the cell below `x` the rows and `y` the columns.
#    The tensor is *fully sharded*: each device holds a block of its own, and no element is stored twice.
# 3. A hybrid: some of the mesh dimensions split an axis, and some do not.
#
# The cell makes one of each kind, and draws the first two for a matrix of 6 rows and 4 columns.
# Texts and pictures write the third, `rows_over_x`, as `[x, unsharded]`.
# The *global shape* in a picture is that of the whole tensor, the *local shape* that of one device's part.
# Within a picture, blocks of equal letter and colour hold equal data.

# %% two-layouts
from IPython.display import display

nothing_split = dtensor.Layout([dtensor.UNSHARDED, dtensor.UNSHARDED], mesh)
all_split = dtensor.Layout(["x", "y"], mesh)
rows_over_x = dtensor.Layout(["x", dtensor.UNSHARDED], mesh)
display(show(nothing_split, (6, 4)), show(all_split, (6, 4)))

# %% predict-hybrid [markdown]
# The matrix of 6 rows and 4 columns gets the layout `[x, unsharded]` on the mesh `x` 3 × `y` 2.
# What is the local shape: how many rows and columns does one device hold?
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
reveal("mesh_and_layout-hybrid", outcome(rows_over_x.local_shape_from_global_shape, (6, 4)))

# %% first-dtensor-text [markdown]
# Each device holds 2 rows and 4 columns.
# The layout does not use `y`, so the two devices that differ only along `y` hold the same block.
# Two rules cover every layout:
#
# - The local shape is the global shape with each axis divided by the size of the mesh dimension
#   that splits it.
#   Its bytes are elements times bytes per element: here $2 \cdot 4 \cdot 4 = 32$ in float32.
# - The number $r$ of copies is the product of the sizes $n_d$ of the mesh dimensions $d$ that the layout
#   $L$ does not use:
#
# $$r = \prod_{d \notin L} n_d$$
#
# If it uses all of them, the product is empty: $r = 1$.
#
# A layout has one entry for each axis of the tensor, however many dimensions the mesh has:
# a vector on this mesh has a single one, such as `[y]`.
# The size of the mesh dimension must divide the length of the axis, and a mesh dimension splits one axis at
# most.
#
# ## The first DTensor
#
# `dtensor.copy_to_mesh` takes a whole tensor or array and a layout, and returns a *DTensor*:
# the tensor, laid out on the mesh.
# `dtensor.unpack` returns its *component tensors*, for each device the block that it holds;
# `dtensor.fetch_layout` returns its layout.
# `compare` draws what each device should hold of the array, and what it really holds.

# %% first-dtensor
from course_lib import compare

whole = np.arange(24, dtype="float32").reshape(6, 4)
rows = dtensor.copy_to_mesh(whole, rows_over_x)
print("shape:", rows.shape, "layout:", dtensor.fetch_layout(rows).sharding_specs)
print("component 5:", dtensor.unpack(rows)[5].numpy().tolist())
compare(whole, rows)

# %% explorer-text [markdown]
# The shape of a DTensor is the global shape.
# Device 5 stands at position 2 along `x`, so it holds the last two rows.
#
# ## Explore
#
# Choose mesh, tensor shape and layout.
# Select a device to see what it holds and who holds the same.
# The button calls `observe`, which makes the real DTensor.
# With more than eight devices it ends in an error.
# Below is the choice's code; the next section explains `dtensor.pack`.
#
# **Exercise 1.** Leave the shape (8, 6) and take a mesh of eight devices.
# Find a layout under which each element is held by one device only.
# On the mesh shown first one obvious choice cannot divide an axis: read the reason that it shows.

# %% explorer
from lessons.layouts.mesh_and_layout.explorer import MeshLayoutExplorer


def observe(choice):
    all_devices = [f"CPU:{device_id}" for device_id in range(8)]
    chosen_devices = all_devices[: choice.mesh.size]
    chosen = dtensor.create_mesh(list(choice.mesh.dims), devices=chosen_devices)
    layout = dtensor.Layout(choice.layout.sharding_specs, chosen)
    numbers = np.arange(np.prod(choice.global_shape), dtype="float32")
    array = numbers.reshape(choice.global_shape)
    tensor = dtensor.copy_to_mesh(array, layout)
    return [component.numpy() for component in dtensor.unpack(tensor)]


explorer = MeshLayoutExplorer(observe)
explorer

# %% explore-one-copy
check("mesh_and_layout-explore-one-copy", explorer)

# %% by-hand-text [markdown]
# ## Cut and pack by hand
#
# `copy_to_mesh` takes the whole tensor.
# `dtensor.pack` takes the components, one for each device: each receives its own part.
#
# `mesh.local_device_locations()` lists the positions of the devices,
# in the order in which `dtensor.pack` wants the components.
# `layout.num_shards(axis)` is the number of parts into which an axis is cut.
#
# The cell cuts 24 rows into `parts` for `[batch, unsharded]` on a mesh of all eight devices
# (`device_type="CPU"`), with the usual names, `batch` and `model`.
# Each device gets the part whose number is its position along `batch`.

# %% by-hand
grid = dtensor.create_mesh([("batch", 4), ("model", 2)], device_type="CPU")
places = grid.local_device_locations()
over_batch = dtensor.Layout(["batch", dtensor.UNSHARDED], grid)
print(f"{places[3]=}")
print(f"{over_batch.num_shards(0)=} {over_batch.num_shards(1)=}")

parts = tf.split(tf.ones([24, 4]), over_batch.num_shards(0), axis=0)
packed = dtensor.pack([parts[place["batch"]] for place in places], over_batch)
print("parts[0]:", parts[0].shape, "packed:", packed.shape)

# %% predict-packer [markdown]
# Mesh `batch` 4 × `model` 2, a matrix of 24 rows, and now the layout `[model, unsharded]`.
# A packer cuts the rows into `layout.shape[0]` parts in place of `layout.num_shards(0)`,
# and gives each device the part of its position along `model`.
# Here `layout.shape` is `[4, 2]`.
# How many rows does the resulting DTensor have?
#
# - [x] `12`
#   Two of the 4 parts of 6 rows, one for each position along `model`; the others reach no device.
# - [ ] `24`
#   So it should be.
#   But `shape[0]` is 4, and `model` has two positions: two of the 4 parts reach no device.
# - [ ] `6`
#   That is one component.
#   The DTensor is made of two different ones, one for each position along `model`.
# - [ ] `48`
#   That is 8 devices times 6 rows.
#   But the devices along `batch` hold copies, which count once.
# - otherwise
#   Into how many parts are the rows cut, and how many of these parts reach a device?

# %% reveal-packer
over_model = dtensor.Layout(["model", dtensor.UNSHARDED], grid)
parts = tf.split(tf.ones([24, 4]), over_model.shape[0], axis=0)
packed = dtensor.pack([parts[place["model"]] for place in places], over_model)
reveal("mesh_and_layout-packer", packed.shape[0])

# %% [markdown]
# Of 24 rows 12 are gone, and nothing complained: `dtensor.pack` is given components,
# and not how many rows there were.
# `layout.shape` is the shape of the *mesh*, whichever dimension splits an axis.
# For `[batch, unsharded]` above, `shape[0]` and `num_shards(0)` are both 4,
# which hides the mistake.
#
# **Exercise 2.** Write `cut(whole, layout)`: it returns a list with the component of each device,
# in the order of `layout.mesh.local_device_locations()`.
# `whole` is an array of any number of axes, and `layout` a `dtensor.Layout` for it.
# `layout.sharding_specs` has the name or `dtensor.UNSHARDED` for each axis.
# Cut with `tf.split`, `np.split` or slices, and keep the number type of the array.


# %% exercise-cut
def cut(whole, layout):
    # solution begin
    components = []
    for place in layout.mesh.local_device_locations():
        part = tf.constant(whole)
        for axis, dim in enumerate(layout.sharding_specs):
            if dim != dtensor.UNSHARDED:
                part = tf.split(part, layout.num_shards(axis), axis)[place[dim]]
        components.append(part)
    return components
    # solution end


# %%
check("mesh_and_layout-cut", cut)

# %% reading [markdown]
# With `cut`, `dtensor.pack(cut(array, layout), layout)` makes a DTensor of any array
# that the layout can divide.
# The course's `shard(array, layout)` does this.
#
# ## Read and join
#
# `.numpy()` works for a replicated DTensor: it gives the component of the first device.
# Of a split one TensorFlow refuses it.
# Either move the DTensor to a replicated layout first, with the `dtensor.relayout` of the next section,
# or fetch the components and put each in its place.
#
# `join` does that.
# The position of a device along the mesh dimension that splits an axis, `place.get(dim, 0)`
# (0 where none does), times the component's length is where the component begins.


# %% join
def join(tensor):
    layout = dtensor.fetch_layout(tensor)
    places = layout.mesh.local_device_locations()
    joined = np.zeros(tensor.shape, tensor.dtype.as_numpy_dtype)
    for place, part in zip(places, dtensor.unpack(tensor)):
        where = []
        for dim, size in zip(layout.sharding_specs, part.shape):
            start = place.get(dim, 0) * size
            where.append(slice(start, start + size))
        joined[tuple(where)] = part.numpy()
    return joined


print("numpy:", outcome(rows.numpy))
print("join:", np.sum(join(rows) == whole), "/", whole.size)

# %% move-text [markdown]
# The course's `to_numpy(tensor)` does the same as `join`, if copies are equal.
#
# ## Move: `relayout`
#
# `dtensor.relayout` returns the same values in another layout.
# Data that a device lacks comes from the others; {lesson:communication} shows what that costs.

# %% predict-move [markdown]
# A float32 matrix of 6 rows and 4 columns lies on the mesh `x` 3 × `y` 2 in the layout `[x, unsharded]`.
# Each of the six devices holds 32 bytes of it: 192 in all.
# Now the matrix moves to the layout `[unsharded, y]`.
# How many bytes do the six devices then hold in all?
#
# - [x] `288`
#   Each of the six holds 6 rows and 2 columns, 48 bytes.
# - [ ] `192`
#   The values stay the same, but not the number of devices that hold each of them.
# - [ ] `96`
#   That is the matrix once.
#   `x` now splits no axis, so devices that differ only along `x` hold the same.
# - [ ] `576`
#   That is the whole matrix on every device, but `y` splits the columns.
# - otherwise
#   What is the local shape now?
#   How many bytes are that on each device?

# %% reveal-move
moved = dtensor.relayout(rows, dtensor.Layout([dtensor.UNSHARDED, "y"], mesh))
reveal("mesh_and_layout-move", sum(part.numpy().nbytes for part in dtensor.unpack(moved)))

# %% move
columns_over_y = dtensor.Layout([dtensor.UNSHARDED, "y"], mesh)
columns = dtensor.relayout(rows, columns_over_y)
show(columns)

# %% random-text [markdown]
# Three copies of each half need more memory than two of each third.
#
# ## Make it where it belongs: `call_with_layout`
#
# `dtensor.call_with_layout` runs a `tf.function`, or one operation such as `tf.zeros`,
# so that its result has a given layout.
# For `tf.zeros` and random numbers each device makes its own block, without the whole tensor.
#
# Random numbers can then differ from ordinary ones:
# from one seed, `draw` makes an ordinary matrix, a replicated and a split one,
# and the cell counts how many numbers equal those of `ordinary`.

# %% random
from course_lib import shard, to_numpy

zeros = dtensor.call_with_layout(tf.zeros, rows_over_x, shape=[6, 4])
print("zeros:", zeros.shape, "component:", dtensor.unpack(zeros)[0].shape)

# without tf.function a layout that splits would be given to the seed too: an error
draw = tf.function(tf.random.stateless_normal)
ordinary = draw([6, 4], seed=[1, 2])
for layout in (nothing_split, rows_over_x):
    drawn = dtensor.call_with_layout(draw, layout, shape=[6, 4], seed=[1, 2])
    print(f"{layout.sharding_specs} equal:", np.sum(to_numpy(drawn) == ordinary), "/ 24")

# %% variable-text [markdown]
# Drawn under a layout that splits, the numbers are others, though the seed is the same.
# So two trainings under unlike layouts can start from unlike weights.
# To compare them, draw once as an ordinary array and `shard` it under each layout.
#
# ## Variables keep their layout
#
# A `dtensor.DVariable` takes its layout from its initial value and keeps it.
# It takes a DTensor on the same mesh, and moves it to that layout.
# The cell also assigns an ordinary array.

# %% variable
variable = dtensor.DVariable(rows)
variable.assign(columns + 100.0)
print("layout:", variable.layout.sharding_specs)
print("component 5:", dtensor.unpack(variable.read_value())[5].numpy().tolist())
print("whole:", outcome(variable.assign, whole))

# %% mistakes-text [markdown]
# The layout is that of `rows`, the values are those of `columns`, plus 100.
# The ordinary array `whole` is refused: besides DTensors
#
# - a variable takes only arrays of fewer than 20 numbers of int32 or int64 and arrays of strings,
#   and a scalar, if it is one;
# - an operation takes these and any scalar, of the number type that it wants there,
#   but not `columns + whole`.
#
# Inside a `tf.function`, tensors that it makes and NumPy arrays that it captures are given a layout;
# ordinary tensors that it captures, and tensors and arrays that it is passed, have the same limits.
#
# ## Three ends of a mistake
#
# TensorFlow refuses some mistakes and takes others in silence; at some the process ends.
#
# In an operation each device uses its own block;
# a sum over a split axis then adds up along the mesh dimension that splits it.

# %% predict-replicas [markdown]
# A matrix of 6 rows and 4 columns lies on the mesh `x` 3 × `y` 2 in the layout `[unsharded, y]`:
# devices 0, 2 and 4 hold its left half, and 1, 3 and 5 its right half.
# By mistake `dtensor.pack` gets six unlike halves: each number of device `d`'s 6 × 2 block is `d`.
# What does `.numpy()` give for `tf.reduce_sum` of the resulting DTensor?
#
# - [x] `12`
#   `dtensor.pack` compares no values.
#   Devices 0 and 1, which differ only along `y`, add up their blocks, 0 and 12.
#   `.numpy()` reads device 0.
# - [ ] `60`
#   Devices 2 and 3 hold it, and averages of the copies would add up to it.
#   But `.numpy()` reads device 0, and nothing averages.
# - [ ] `180`
#   That adds up all six blocks, but under this layout there are only two: the rest are copies.
# - [ ] `refused` an error
#   `dtensor.pack` would have to compare the components, and it does not.

# %% reveal-replicas
unlike = [tf.fill([6, 2], float(device_id)) for device_id in range(6)]
total = tf.reduce_sum(dtensor.pack(unlike, columns_over_y))
reveal("mesh_and_layout-replicas", int(total.numpy()))

# %% refused-text [markdown]
# Devices 0 to 5 hold 12, 12, 60, 60, 108 and 108: one DTensor with three values.
#
# ### Refused
#
# Four mistakes:
#
# 1. a mesh of 8 for six devices;
# 2. a mesh dimension for two axes;
# 3. three components for six devices;
# 4. 5 rows over a mesh dimension of 3.

# %% mistakes tags=["error"]
mistakes = [
    lambda: dtensor.create_mesh([("x", 4), ("y", 2)], devices=devices),
    lambda: dtensor.Layout(["x", "x"], mesh),
    lambda: dtensor.pack(np.split(whole, 3), rows_over_x),
    lambda: dtensor.copy_to_mesh(whole[:5], rows_over_x),
]
for number, mistake in enumerate(mistakes, 1):
    try:
        mistake()
    except Exception as error:
        print(f"{number}. {type(error).__name__}: {str(error).splitlines()[0]}", end="\n\n")

# %% silent-given [markdown]
# The last message comes from TensorFlow's compiler: begin to read at `requires`.
# What it calls a dimension is an axis.
#
# ### Taken in silence
#
# Two cards showed such mistakes; here are two more, and the count of right numbers:
# components packed in a wrong order, and a slice to turn the rows round.
# It turns each device's block round and leaves the blocks in place; `tf.gather` is right.

# %% silent
backwards = dtensor.pack(dtensor.unpack(rows)[::-1], rows_over_x)
print("unpack(rows)[::-1]:", np.sum(to_numpy(backwards) == whole), "/ 24")

turned = rows[::-1]
print("rows[::-1]:", np.sum(to_numpy(turned) == whole[::-1]), "/ 24")
gathered = tf.gather(rows, [5, 4, 3, 2, 1, 0])
print("tf.gather:", np.sum(to_numpy(gathered) == whole[::-1]), "/ 24")

# %% list-text [markdown]
# These mistakes can pass without an error; the site's page "What DTensor gets right" has more.
# `[::-2]` and the last five are not tried here.
#
# | mistake | what came out | instead |
# | --- | --- | --- |
# | unlike copies in `dtensor.pack` | unlike values | cut one array |
# | components in another order | 8 of 24 right | follow `local_device_locations()` |
# | `layout.shape[axis]` parts | 12 of 24 rows | `layout.num_shards(axis)` |
# | `[::-1]` or `[::-2]` on a split axis | 8 of 24 right, 4 of 12 | `tf.gather` |
# | random numbers drawn under a layout that splits | 0 of 24 as without | draw once, then `shard` |
# | an ordinary `tf.Variable` that a `tf.function` with DTensors on several devices changes | a constant 1 added four times gave 8 to 32, a 1 computed from the DTensors now and then 5 | change it outside, or take a `DVariable` |
# | `t[k:k+3]` with a tensor `k`, in a `tf.function` | empty blocks | Python numbers, or `tf.gather` |
# | `tf.where` of a split vector, `tf.boolean_mask` with a split mask | positions within each block; another mean on each device, or nan | weights of 0 and 1, as in {lesson:one_step} |
# | a `DVariable` written, then read, in one `tf.function` | the old value, in some cases | assign last, see {lesson:from_scratch} |
# | `dtensor.relayout` or `DVariable.assign` of three or more axes, or over a mesh dimension of 12 or more CPUs | in some cases numbers in wrong places | see {lesson:communication} |
#
# Compare what the devices hold with the array, as `compare` does,
# or the result with that of ordinary tensors.
#
# ### The process ends
#
# Fractions are float64 in NumPy by default, and usually float32 in TensorFlow.
# The next cell adds a DTensor of each twice: in a process of its own,
# whose exit status (`returncode`) should be 0, and then in a `tf.function`.

# %% ends
import subprocess
import sys

program = """
import numpy as np
from tensorflow.experimental import dtensor
mesh = dtensor.create_mesh([("x", 1)], devices=["CPU:0"])
layout = dtensor.Layout(["x"], mesh)
single = dtensor.copy_to_mesh(np.ones(4, "float32"), layout)
double = dtensor.copy_to_mesh(np.ones(4), layout)
print("float32 + float64 =", flush=True)
print(single + double)
"""
done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
print(done.stdout + f"returncode == 0: {done.returncode == 0}")
print("tf.function:", outcome(tf.function(tf.add), rows, tf.cast(rows, tf.float64)))

# %% takeaways [markdown]
# `program` printed no sum: its process (in a notebook: the kernel) ended on the way,
# which no `except` can catch.
#
# It can happen outside a `tf.function` when a DTensor whose layout splits an axis, even over one device,
# meets a tensor of another number type, as in `program`.
# `single + tf.constant(2)` would do it too; in `single + 2` the number is converted.
# Write `dtype="float32"` where you make arrays.
#
# Other calls can, too: `rows[:, None]` (take `tf.expand_dims`), `dtensor.pack([], layout)`,
# and `layout.num_shards(axis)` of an axis that the layout lacks.
#
# ## The plain program
#
# [`mesh_and_layout.py`](../plain/mesh_and_layout.py) is this lesson, without its mistakes,
# in one file that needs TensorFlow and NumPy alone, and compares after most steps.
# Its logs about CUDA or a DTensor cache are no errors.
#
# ## Takeaways
#
# - A mesh names the dimensions of a grid of devices;
#   a layout gives each axis of a tensor one of these names, or `UNSHARDED`.
# - Local shape: divide each axis of the global shape by the size of the mesh dimension that splits it.
#   Copies: multiply the sizes of the mesh dimensions that the layout does not use.
# - TensorFlow counts components, and refuses an axis that it cannot divide, but compares no values:
#   do so.
#   Outside a `tf.function`, unlike number types can end the process.
#
# {Lesson:communication} shows what communication a layout costs.
#
# TensorFlow's own pages: the [DTensor overview](https://www.tensorflow.org/guide/dtensor_overview)
# and the [reference](https://www.tensorflow.org/api_docs/python/tf/experimental/dtensor).

# %% score
score("mesh_and_layout")
