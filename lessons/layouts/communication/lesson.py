# %% [markdown]
# # What communication a layout costs
#
# Two matrices lie split over eight devices, and you multiply them.
# Under some layouts no device needs anything of the others; under others, whole matrices travel.
# What decides that, and how do you find out for your own function?
#
# After this lesson you can
#
# - tell from the layouts of two factors what the devices exchange, and how many bytes;
# - read from the graphs that TensorFlow ran which exchanges there were;
# - write the all-reduce of devices that stand in a ring, and say how much each of them sends;
# - spare needless exchanges;
# - find results that an exchange made wrong in silence.
#
# **Time:** 45 minutes.
# **You need to know:** {lesson:mesh_and_layout}, and how two matrices are multiplied.
#
# > **Where this was run.** TensorFlow 2.21 on eight virtual CPUs, in one cell twelve, not on GPUs or TPUs.
# > DTensor is experimental: its names may change.

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% factors-text [markdown]
# ## A product of two split matrices
#
# In a product A @ B, a number is a row of A times a column of B:
#
# $$(AB)_{ik} = \sum_j A_{ij} B_{jk}$$
#
# The sum runs over $j$, the *inner axis*: the columns of A and the rows of B.
#
# Let A and B be the same 8 × 8 numbers over eight devices:
# each holds one column of A and one row of B.
# The pictures show first A, then B; in them, the letters A to H name blocks.

# %% factors
tf = course_lib.start_tensorflow()
import numpy as np
from IPython.display import display
from tensorflow.experimental import dtensor

from course_lib import collectives, explain, shard, show, to_numpy

line = dtensor.create_mesh([("x", 8)], device_type="CPU")
rows_over_x = dtensor.Layout(["x", dtensor.UNSHARDED], line)
columns_over_x = dtensor.Layout([dtensor.UNSHARDED, "x"], line)
nothing_split = dtensor.Layout.replicated(line, rank=2)

numbers = np.arange(64, dtype="float32").reshape(8, 8)
by_columns, by_rows = shard(numbers, columns_over_x), shard(numbers, rows_over_x)
display(show(by_columns), show(by_rows))

# %% predict-own [markdown]
# A and B are 8 × 8 matrices over eight devices: device d holds column d of A and row d of B.
# It multiplies the two.
# How many of the 64 numbers of A @ B does device 0 then have?
#
# - [x] `0`
#   Each of the 64 numbers is a sum of eight terms; device 0 has one term of each.
# - [ ] `1`
#   It makes 64 numbers, but each is one term of a sum of eight.
# - [ ] `8`
#   It holds a column of A and a row of B, and not a column or a row of the product:
#   each number that it makes is one term of a sum of eight.
# - [ ] `64`
#   It makes 64 numbers, and none is finished: each is one term of a sum of eight.
# - otherwise
#   Write out one number of A @ B as a sum.
#   Which of its terms can device 0 compute?

# %% reveal-own
own = dtensor.unpack(by_columns)[0] @ dtensor.unpack(by_rows)[0]
reveal("communication-own", int(np.sum(own.numpy() == numbers @ numbers)))

# %% partial-sum-text [markdown]
# What a device makes is a *partial sum*: every number lacks seven terms.
# Nothing splits the rows of A or the columns of B, so A @ B is to be whole on every device:
# each must receive the total of the eight partial sums.
# That is an *all-reduce*.
# An exchange of all devices of a fixed group is a *collective*.
#
# `explain` draws what follows from the layouts, and beside it what TensorFlow ran.
# In the picture AB is the product, I the group of devices,
# and small letters name blocks, anew in each matrix.
# The *payload* is what one device holds as the result of the exchange, here 64 elements of 4 bytes.
# What it *sends* depends on how; it is computed for the ring below, not observed.

# %% partial-sum
explain(tf.matmul, by_columns, by_rows)

# %% predict-half [markdown]
# Eight devices form the mesh `x` 8.
# A of 16 × 64, in float32, has its columns split over `x`; B of 64 × 8 is whole on every device.
# They are multiplied.
# How many bytes is the payload of the exchange, that is what one device holds as its result?
#
# - [x] `512`
#   Each device takes the rows of B that belong to its columns of A,
#   and the partial sums, 16 × 8 numbers of 4 bytes, are added.
# - [ ] `0`
#   B is everywhere, but a device has some columns of A only: it can make a partial sum.
# - [ ] `4096`
#   That is all of A, which on every device would do too.
#   But a device can make its partial sum from what it has, and that has 128 elements only.
# - otherwise
#   Each number of A @ B is a sum: which of its terms can a device compute?
#   And what is the shape of what it makes?

# %% reveal-half
wide = shard(np.ones([16, 64], "float32"), columns_over_x)
tall = shard(np.ones([64, 8], "float32"), nothing_split)
reveal("communication-half", sum(each.payload_bytes for each in collectives(tf.matmul, wide, tall)))

# %% cases [markdown]
# Each device *cuts* its rows out of B without an exchange;
# then the partial sums are added, 16 × 8 numbers of 4 bytes.
#
# What a product needs depends on its factors' layouts (and, see below, on its use):
# on how the inner axis is split, unless one mesh dimension splits both the rows of A and the columns of B.
# In an *all-gather* every device receives the parts of all:
#
# | the inner axis is split | such as | what happens |
# | --- | --- | --- |
# | in neither factor | `[x, unsharded] @ [unsharded, y]` | **nothing moves** |
# | in one factor or both, over one mesh dimension that splits no other axis | `[unsharded, x] @ [x, unsharded]` | **all-reduce** of partial sums |
# | in one factor, over a mesh dimension that also splits the rows of A or the columns of B | `[x, unsharded] @ [x, unsharded]` | **all-gather** of this factor |
# | over one mesh dimension in A and another in B | `[unsharded, y] @ [x, unsharded]` | **refused** |
#
# In `[x, unsharded] @ [unsharded, x]`, `x` cannot split both axes of A @ B:
# two all-gathers make the product whole.
#
# The cell runs the all-gather:

# %% gathered
explain(tf.matmul, by_rows, by_rows)

# %% refused-text [markdown]
# On CPUs, also below, TensorFlow ran an all-reduce in place of every all-gather we have seen.
# In a ring each device sends twice as much; payload and result are the same.
#
# The next cell runs the last line of the table, then repairs it.

# %% refused tags=["error"]
grid = dtensor.create_mesh([("x", 4), ("y", 2)], device_type="CPU")
left = shard(numbers, dtensor.Layout([dtensor.UNSHARDED, "y"], grid))
right = shard(numbers, dtensor.Layout(["x", dtensor.UNSHARDED], grid))
try:
    tf.function(tf.matmul)(left, right)
except tf.errors.UnknownError as error:
    print(str(error).splitlines()[0].split("error: ")[-1])

over_y = dtensor.Layout(["y", dtensor.UNSHARDED], grid)
repaired = tf.matmul(left, dtensor.relayout(right, over_y))
print("repaired:", np.sum(to_numpy(repaired) == numbers @ numbers), "/ 64")

# %% product-explorer-text [markdown]
# The *contracting dimension* is the inner axis.
# You must change the layout of a factor yourself, as for `repaired`.
#
# ## Explore
#
# Choose the mesh, the layouts of both factors, and the layout in which AB is used:
# *as it comes* takes the product's.
# The explorer shows what is exchanged, and why.
# The button calls `observe`, which multiplies real DTensors.
#
# On the mesh `x` 4 × `y` 2, `[x, y] @ [y, x]` takes three collectives: see why.

# %% product-explorer
from lessons.layouts.communication.product_explorer import ProductExplorer


def observe(first, second, wanted):
    mesh = dtensor.create_mesh(list(first.mesh.dims), device_type="CPU")
    factors = [
        shard(
            np.ones(factor.global_shape, "float32"),
            dtensor.Layout(factor.layout.sharding_specs, mesh),
        )
        for factor in (first, second)
    ]
    reader = None
    if wanted is not None:
        reader = dtensor.Layout(wanted.sharding_specs, mesh)
    return explain(tf.matmul, *factors, wanted=reader)


ProductExplorer(observe)

# %% graphs-text [markdown]
# ## Which collectives did it run?
#
# You write a program as for one big device, and TensorFlow makes of it one that every device runs on its own
# parts (*single program, multiple data*), in two steps:
#
# 1. *Layout propagation* finds a layout for each result inside the function,
#    from its arguments and from where it is used.
# 2. *SPMD expansion* rewrites each operation so that it works on local parts,
#    and where a device needs what it does not hold, it inserts a collective.
#
# If asked, TensorFlow keeps the graphs of a function's first call; each collective is a node on each device.
# So `graphs_that_ran` compiles a function anew, runs it, with all its effects, and returns its graphs.

# %% graphs
from collections import Counter

from tensorflow.python.eager import context  # not public: it may change with any release


def graphs_that_ran(function, *arguments):
    context.enable_run_metadata()
    try:
        context.async_wait()
        context.export_run_metadata()  # away with what ran before
        tf.function(function)(*arguments)
        context.async_wait()
        return [each.post_optimization_graph for each in context.export_run_metadata().function_graphs]
    finally:
        context.disable_run_metadata()


nodes = [node for graph in graphs_that_ran(tf.matmul, by_columns, by_rows) for node in graph.node]
print(Counter(node.op for node in nodes if node.op in ("MatMul", "CollectiveReduceV2")))

# %% groups-text [markdown]
# Each device has one `MatMul` of its local parts, and one `CollectiveReduceV2`:
# these eight are one all-reduce.
#
# Each node has a *group key*, and devices with the same key exchange with each other.
# The keys of all devices stand in a constant, on the way to the node's third input.
# `mesh_dims` reads them, and returns the mesh dimensions along which the devices of a group differ.


# %% groups
def mesh_dims(mesh, node, nodes):
    keys = nodes[node.input[2]]
    while keys.op != "Const":
        keys = nodes[keys.input[0].split(":")[0]]
    keys = tf.make_ndarray(keys.attr["value"].tensor).ravel()
    group = [place for place, key in zip(mesh.local_device_locations(), keys, strict=True) if key == keys[0]]
    return tuple(name for name in mesh.dim_names if len({place[name] for place in group}) > 1)


# %% reader-text [markdown]
# The kind is the name of the operation, and the payload follows from shape and number type of its output.
# All devices run the same program, so `collectives_that_ran` looks at one of them.

# %% reader
KINDS = {"CollectiveReduceV2": "all-reduce", "CollectiveAllToAllV2": "all-to-all"}
KINDS |= {"CollectiveGatherV2": "all-gather", "CollectiveReduceScatterV2": "reduce-scatter"}


def collectives_that_ran(mesh, function, *arguments):
    found = []
    for graph in graphs_that_ran(function, *arguments):
        nodes = {node.name: node for node in graph.node}
        for node in graph.node:
            if node.op in KINDS and node.device == mesh.local_devices()[0]:
                (shape,) = node.attr["_output_shapes"].list.shape
                element_bytes = tf.as_dtype(node.attr["T"].type).size
                payload = element_bytes * int(np.prod([axis.size for axis in shape.dim]))
                found.append((KINDS[node.op], mesh_dims(mesh, node, nodes), payload))
    return found


# %% merged-text [markdown]
# In `two_sums` each sum needs an all-reduce of one number;
# the environment variable `DTENSOR_ALLREDUCE_COMBINE_OPTIMIZATION_GROUP_SIZE` decides
# whether TensorFlow may merge the two.
# The course's `collectives` reads them, too.


# %% merged
import os


def two_sums(first, second):
    return tf.reduce_sum(first), tf.reduce_sum(second)


group_size = "DTENSOR_ALLREDUCE_COMBINE_OPTIMIZATION_GROUP_SIZE"
os.environ.pop(group_size, None)
print("merged:", collectives_that_ran(line, two_sums, by_columns, by_rows))
os.environ[group_size] = "1"
print("apart:", collectives_that_ran(line, two_sums, by_columns, by_rows))
del os.environ[group_size]
print("collectives:", *collectives(two_sums, by_columns, by_rows), sep="\n  ")

# %% naive-text [markdown]
# By default TensorFlow can merge all-reduces of one group that do not depend on each other,
# and pads what it merged to a multiple of 1,024 numbers: here (`merged`) 4,096 bytes.
# With the environment variable 1 before a function is compiled, each stays by itself.
# `collectives` sets it too, and undoes what the function wrote to variables.
#
# ## All-reduce in a ring
#
# In the simplest all-reduce each device sends all it has to every other one, and all add.
# `naive_all_reduce` says so for one device: `mine` is its array, `device.id` its number,
# and `device.count` how many devices there are.
# `device.send` sends a copy of an array to another device;
# `device.receive` waits for another's next array, and returns it.
#
# `run_on_each` has threads of Python play the devices, one for each array: here each partial sum of A @ B.
# `equal` counts the numbers that are TensorFlow's on every device.

# %% naive
from lessons.layouts.communication.messages import run_on_each


def naive_all_reduce(mine, device):
    others = [at for at in range(device.count) if at != device.id]
    for other in others:
        device.send(other, mine)
    return mine + sum(device.receive(other) for other in others)


pairs = zip(dtensor.unpack(by_columns), dtensor.unpack(by_rows))
partial_sums = [np.ravel(column @ row) for column, row in pairs]
total = to_numpy(tf.matmul(by_columns, by_rows)).ravel()
exchange = run_on_each(naive_all_reduce, partial_sums)
equal = np.all(np.array(exchange.results) == total, axis=0)
print("equal:", np.sum(equal), "/ 64, bytes_sent:", exchange.bytes_sent)

# %% stepper-text [markdown]
# A *ring* sends less than these 7 × 256 bytes: each device sends to the next one only,
# and the last one to the first.
# The array is cut into *chunks*, as many as there are devices.
# In each step every device sends one chunk.
#
# - First a *reduce-scatter*: a chunk that arrives is added to the device's own chunk of the same letter,
#   and goes on.
#   At the end each device has one finished chunk.
# - Then an *all-gather*: the finished chunks go round, and everyone keeps a copy.
#
# Step through it, with 2 to 8 devices.
# *Times the array*, above the picture, then shows how much each device has sent.

# %% stepper
from lessons.layouts.communication.ring_explorer import RingExplorer

RingExplorer("all-reduce", num_devices=4)

# %% ring-exercise-text [markdown]
# **Exercise 1.** Write the ring: like `naive_all_reduce`, it returns the sum of all arrays,
# but a device sends to `device.next` only and receives from `device.previous` only.
#
# `np.array_split(mine, device.count)` cuts an array into chunks, and `np.concatenate` joins them.
# Chunk 0 is A in the stepper.
# As there, device $d$ begins with chunk $d - 1$, counted modulo `device.count`,
# and ends the first half with chunk $d$ finished.
# The check counts bytes too, and tries chunks of unequal lengths.
#
# The cell after it runs yours, or the course's until yours passes.


# %% exercise-ring
def ring_all_reduce(mine, device):
    # solution begin
    n, chunks = device.count, np.array_split(mine, device.count)
    for step in range(n - 1):
        device.send(device.next, chunks[(device.id - 1 - step) % n])
        at = (device.id - 2 - step) % n
        chunks[at] = chunks[at] + device.receive(device.previous)
    for step in range(n - 1):
        device.send(device.next, chunks[(device.id - step) % n])
        at = (device.id - 1 - step) % n
        chunks[at] = device.receive(device.previous)
    return np.concatenate(chunks)
    # solution end


# %%
check("communication-ring", ring_all_reduce)

# %% ring
from course_lib import yours_or_ours

ring = yours_or_ours("communication-ring", ring_all_reduce)
exchange = run_on_each(ring, partial_sums)
equal = np.all(np.array(exchange.results) == total, axis=0)
print("equal:", np.sum(equal), "/ 64, bytes_sent:", exchange.bytes_sent)

# %% predict-ring [markdown]
# Eight devices all-reduce an array of 256 bytes in a ring, and each device sends 448 bytes.
# Now the ring has 16 devices, and the array 256 bytes as before.
# How many bytes does each device send?
#
# - [x] `480`
#   There are 15 steps of adding and 15 of copying, and in each a device sends a chunk of 16 bytes.
# - [ ] `896`
#   That is twice 448.
#   The steps are about twice as many, 30 in place of 14, but a chunk has half as many bytes, 16.
# - [ ] `448`
#   Nearly.
#   A chunk has half as many bytes, 16, but the steps are a little more than twice as many, 30 in place of 14.
# - [ ] `3840`
#   That is 15 × 256: everything to everyone.
#   In a ring a step sends one chunk.
# - otherwise
#   How many steps has each half, and how many bytes has a chunk?

# %% reveal-ring
sixteen = run_on_each(ring, [np.ones(64, "float32")] * 16)
reveal("communication-ring", max(sixteen.bytes_sent))

# %% needless-text [markdown]
# An array of $S$ bytes has chunks of $S / n$ bytes for $n$ devices, and each half takes $n - 1$ steps.
# So a device sends
#
# $$2 (n - 1) \frac{S}{n} = 2 \frac{n - 1}{n} S$$
#
# less than twice the array, however many devices there are.
# Sending all to everyone takes $(n - 1) S$.
# TensorFlow's own all-reduce on CPUs is a ring, too.
#
# What one device holds before and after each collective, and sends, if the first three go round a ring:
#
# | collective | before | after | sends |
# | --- | --- | --- | --- |
# | all-reduce | $S$ bytes, to be added | the total | $2 \frac{n - 1}{n} S$ |
# | reduce-scatter | $S$ bytes, to be added | its $n$-th of the total | $\frac{n - 1}{n} S$ |
# | all-gather | its $n$-th of $S$ bytes | the whole | $\frac{n - 1}{n} S$ |
# | all-to-all | $S$ bytes: an $n$-th for each device | an $n$-th of each device | $\frac{n - 1}{n} S$ |
#
# ## Needless exchanges
#
# A change of a matrix's layout takes one of three ways:
#
# 1. What is whole can be cut for nothing: `[unsharded, unsharded]` to `[x, y]`.
# 2. Where one mesh dimension moves to the other axis and nothing else changes,
#    an all-to-all exchanges parts of the blocks.
# 3. Else one all-gather undoes the splits that are not to stay,
#    and the new ones are cut: before it, where the axis is whole and the mesh dimension free.
#
# `[unsharded, x]` to `[x, y]`, on 4 × 2 devices, goes the third way, and `x` is not free:
# every device receives the whole matrix, to keep an eighth of it.
#
# A product, too, can cost more where TensorFlow does not know in which layout it is used:
# `product_in_columns`, on the mesh `x` 8, says so by a `relayout` in the same function.


# %% needless
def product_in_columns(left, right):
    return dtensor.relayout(tf.matmul(left, right), columns_over_x)


matrix = np.arange(256, dtype="float32").reshape(16, 16)
blocks = dtensor.Layout(["x", "y"], grid)
across = shard(matrix, dtensor.Layout([dtensor.UNSHARDED, "x"], grid))
print("relayout:", *collectives(dtensor.relayout, across, blocks), sep="\n  ")

factors = shard(matrix, rows_over_x), shard(matrix, columns_over_x)
print("matmul:", *collectives(tf.matmul, *factors), sep="\n  ")
print("product_in_columns:", *collectives(product_in_columns, *factors), sep="\n  ")

# %% via-text [markdown]
# `matmul` alone makes the product whole, by two all-gathers (on CPUs, all-reduces);
# used in columns, in `product_in_columns`, it takes one.
#
# **Exercise 2.** Find a cheaper way from `[unsharded, x]` to `[x, y]`, by `dtensor.relayout` alone.
# Write `in_blocks(matrix)`: it takes a DTensor of the shape (16, 16) in the layout `[unsharded, x]` on `grid`
# and returns its values in the layout `blocks`, `[x, y]`.
# A device need send only 192 bytes; in `relayout` above it sends 1,536.


# %% exercise-blocks
def in_blocks(matrix):
    # solution begin
    on_the_way = dtensor.Layout(["x", dtensor.UNSHARDED], grid)
    return dtensor.relayout(dtensor.relayout(matrix, on_the_way), blocks)
    # solution end


# %%
check("communication-blocks", in_blocks)

# %% silent-text [markdown]
# ## Wrong in silence
#
# With TensorFlow 2.21 `dtensor.relayout` can, without an error, mix up a tensor of three axes
# on a mesh of three dimensions, and one of four axes on a mesh of one.
# The cell moves one of each, `directly` and by way of the `replicated` layout,
# and counts the numbers in their places.

# %% relayouts
cube = dtensor.create_mesh([("x", 2), ("y", 2), ("z", 2)], device_type="CPU")
pair = dtensor.create_mesh([("x", 2)], devices=["CPU:0", "CPU:1"])
free = dtensor.UNSHARDED
moves = [
    (cube, ["z", "x", free], ["y", free, "x"]),
    (pair, [free, "x", free, free], [free, free, "x", free]),
]
for mesh, *specs in moves:
    source, target = (dtensor.Layout(spec, mesh) for spec in specs)
    array = np.arange(2.0**source.rank).reshape([2] * source.rank)
    tensor = shard(array, source)
    replicated = dtensor.relayout(tensor, dtensor.Layout.replicated(mesh, source.rank))
    for way, start in {"directly": tensor, "replicated": replicated}.items():
        moved = to_numpy(dtensor.relayout(start, target))
        print(f"{source.rank} axes, {way}:", np.sum(moved == array), "/", array.size)

# %% twelve-text [markdown]
# On the cube `x` moves to another axis, and on the first axis `y` takes the place of `z`.
# TensorFlow runs the all-to-all over `x` and forgets the other change, but the layout says both were made.
#
# On twelve CPUs even a matrix can go wrong.
# `silent.swapped` moves one of 12 × 12 from `[x, unsharded]` to `[unsharded, x]` in up to 20 other processes,
# since some errors of this move leave a process without collectives.
#
# It repeats this until each message that can bring another device's number has done so,
# and returns those that did.

# %% twelve
from lessons.layouts.communication import silent

swapped = silent.swapped()
print("swapped:", " ".join(f"{sender}→{receiver}" for sender, receiver in swapped))

# %% twelve-why [markdown]
# On CPUs TensorFlow names each message of an all-to-all by the joined numbers of sender and receiver
# (`all_to_all.cc` in its source).
# So `110` is both 1 to 10 and 11 to 0, and `111` is both 1 to 11 and 11 to 1.
#
# | wrong in silence | instead |
# | --- | --- |
# | `dtensor.relayout` of three or more axes, in some cases | by way of the replicated layout |
# | an all-to-all over a mesh dimension of 12 CPUs or more | the same, or for 12 a mesh of 4 × 3 |
# | `DVariable.assign` of a value in another layout, in the same cases | move it before, in one of these ways |
#
# {Lesson:from_scratch} shows one of another kind.
#
# The site's page "What DTensor gets right" has the verdicts on some 300 expressions of TensorFlow.
# For an operation of your own, `supported` compares what a function makes of your DTensors
# with what it makes of ordinary tensors,
# outside a `tf.function` ("eager") and within one, in processes that may end.

# %% supported
from course_lib import supported

supported(lambda t: tf.roll(t, 1, axis=0), by_rows)

# %% takeaways [markdown]
# ## The plain program
#
# [`communication.py`](../plain/communication.py) holds `graphs_that_ran`,
# `mesh_dims` and `collectives_that_ran`, and needs TensorFlow and NumPy alone.
#
# ## Takeaways
#
# - The layouts of two factors, and that in which the product is used, decide which exchanges it takes,
#   if any: an all-reduce of partial sums, all-gathers, an all-to-all.
# - In a ring of $n$ devices each sends $2 (n - 1) / n$ times the array for an all-reduce,
#   half of that for a reduce-scatter or an all-gather.
# - TensorFlow runs some needless exchanges and a few that give wrong values:
#   read them from the graphs that ran, and compare values with one device.
#
# {Lesson:one_step} trains a model.

# %% score
score("communication")
