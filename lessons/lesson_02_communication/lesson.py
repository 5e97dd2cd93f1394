# %% [markdown]
# # 2. What communication a layout costs
#
# Two matrices lie split over eight devices, and you multiply them.
# Under some layouts no device needs anything of the others; under others, whole matrices travel.
# What decides, and how many bytes travel?
#
# After this lesson you can
#
# - tell from the layouts of two factors what the devices exchange to multiply them, and how many bytes;
# - write an all-reduce for devices that can only send and receive, first naively, then as a ring;
# - choose layouts that cost less, and look up what TensorFlow really sends;
# - say which exchanges of TensorFlow are needless, and which give wrong values in silence.
#
# **Time:** 60 minutes.
# **You need to know:** lesson 1, and how two matrices are multiplied.
#
# > **Where this was run.** TensorFlow 2.21 on virtual CPUs, not on GPUs or TPUs.
# > DTensor is experimental: its names may change.

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% factors-text [markdown]
# ## A product of two split matrices
#
# Eight devices hold two matrices A and B, both of 8 by 8.
# The columns of A are split and the rows of B: each device holds one column of A and one row of B.
#
# A number of A @ B is a row of A times a column of B:
#
# $$(AB)_{ik} = \sum_j A_{ij} B_{jk}$$
#
# The sum runs over $j$, the *inner axis*: the columns of A and the rows of B.
# A @ B has no axis $j$ any more: it is *contracted*.

# %% factors
import numpy as np
from IPython.display import display

from course_lib import UNSHARDED, LayoutSpec, MeshSpec, communication, numbered_tensor

line = MeshSpec([("x", 8)])
whole = LayoutSpec([UNSHARDED, UNSHARDED], line)
rows, columns = LayoutSpec(["x", UNSHARDED], line), LayoutSpec([UNSHARDED, "x"], line)
display(columns.of((8, 8)), rows.of((8, 8)))

# %% predict-own [markdown]
# Each device multiplies the column of A that it holds by the row of B that it holds.
# How many of the 64 numbers of A @ B does device 0 then have?
#
# - [x] `0`
#   Each of the 64 numbers is a sum of eight terms; device 0 has one term of each.
# - [ ] `1`
#   It makes 64 numbers, but each is one term of a sum of eight.
# - [ ] `8`
#   It holds a column of A and a row of B, and not a column or a row of the product.
# - [ ] `64`
#   It makes 64 numbers, and none is finished: each is one term of a sum of eight.
# - otherwise
#   Write out one number of A @ B as a sum.
#   Which of its terms can device 0 compute?

# %% reveal-own
numbers = numbered_tensor((8, 8))
pairs = zip(columns.of((8, 8)).split(numbers), rows.of((8, 8)).split(numbers))
parts = [a @ b for a, b in pairs]
right = numbers @ numbers
reveal("02-own", int((parts[0] == right).sum()))

# %% partial-sum-text [markdown]
# What a device makes is a *partial sum*: a matrix of the right shape in which every number lacks seven terms.
# The eight partial sums must be added.
# Nothing splits the rows of A or the columns of B, so A @ B is whole on every device:
# each must receive the total.
# That is an *all-reduce*.
#
# `communication.product` predicts what two layouts cost, before anything runs, and draws it.
# The picture tells two numbers of bytes.
# The *payload* is what one device holds after the exchange, here 64 numbers of float32, 4 bytes each.
# What each device *sends* depends on how the exchange is done: the section on the ring counts it.

# %% partial-sum
communication.product(columns.of((8, 8)), rows.of((8, 8)))

# %% half-text [markdown]
# ## Beside what TensorFlow runs
#
# `observed.product` multiplies two real DTensors
# and reads in the graph that TensorFlow ran which exchanges it inserted.
# It shows them beside the prediction.
# The next measurement starts TensorFlow, which takes some seconds.
#
# This time only one factor is split along the inner axis.

# %% predict-half [markdown]
# A of 8 × 64 has its columns split over the eight devices;
# B of 64 × 8 is whole on every device.
# What does TensorFlow exchange to multiply them?
#
# - [x] `256` partial sums of A @ B: 256 bytes
#   Each device takes the rows of B that belong to its columns of A; the sums are 8 × 8.
# - [ ] `0` nothing, since B is everywhere
#   B is everywhere, but a device has some columns of A only: it can make a partial sum.
# - [ ] `2048` the columns of A: every device receives all, 2,048 bytes
#   That would do too.
#   But a device can make its partial sum from what it has.
#   TensorFlow does not compare the two: for A of 64 × 8 and B of 8 × 64 it all-reduces 16,384 bytes, where
#   all of A would be 2,048.
# - [ ] `error` an error, since the inner axis is split in one factor only
#   Rows of B can be left out where they are not needed: that takes no exchange.

# %% reveal-half
tf = course_lib.start_tensorflow()
from course_lib import observed, pack, unpack

half = observed.product(columns.of((8, 64)), whole.of((64, 8)))
reveal("02-half", sum(each.payload_bytes for each in half.observed))

# %% half
half

# %% cases [markdown]
# Each device *cuts* its rows out of the B that it holds: that takes no exchange.
# Then the partial sums are added as before.
# The inner axis decides:
#
# | the inner axis is split | such as | what happens |
# | --- | --- | --- |
# | in neither factor | `[x, unsharded] @ [unsharded, y]` | **nothing moves** |
# | over one mesh dimension, which splits no other axis | `[unsharded, x] @ [x, unsharded]` | **partial sums**, all-reduced; where one factor only is split, the other is cut |
# | over one mesh dimension, which also splits the rows of A or the columns of B | `[x, unsharded] @ [x, unsharded]` | **a gather** of the factor whose inner axis it splits |
# | over one in A and another in B | `[unsharded, y] @ [x, unsharded]` | **refused** |
#
# One more rule: a mesh dimension cannot split both axes of A @ B.
# Where it splits the rows of A and the columns of B, as in `[x, unsharded] @ [unsharded, x]`,
# two gathers come on top; a later section shows them.
# TensorFlow 2.21 followed these rules for all 49 pairs of layouts on a mesh of 4 by 2
# (`tests/tf/test_communication.py`).
#
# Here is the example of a gather.
# `x` splits the rows of A, so a device needs all rows of B for its rows of A.
# In an *all-gather* each device receives the parts of all.

# %% gathered
observed.product(rows.of((8, 8)), rows.of((8, 8)))

# %% products-text [markdown]
# An all-gather is predicted, and an all-reduce of the same payload was run.
# On CPUs DTensor (TensorFlow 2.21) does so in place of every all-gather that we saw:
# each device fills in zeros for the parts that it does not hold, and all of them are added.
# The result is the same, but a device sends twice as many bytes: the section on the ring tells why.
# We have not tried it on GPUs.
#
# **Exercise 1.** A has the shape (32, 8), B the shape (8, 4), in float32, on the mesh `grid`, `x` 4 × `y` 2.
# Each of two products takes one collective:
#
# 1. `[x, y] @ [y, unsharded]`
# 2. `[x, unsharded] @ [x, y]`
#
# Say for each `(kind, mesh dimension, bytes)`, such as `("all-reduce", "x", 4)`.
# The kind is `"all-reduce"`, `"all-gather"` or `"all-to-all"`,
# and the bytes are the payload: what one device holds after the exchange.

# %% exercise-products
grid = MeshSpec([("x", 4), ("y", 2)])
# solution begin
first = ("all-reduce", "y", 32 // 4 * 4 * 4)
second = ("all-gather", "x", 8 * (4 // 2) * 4)
# solution end

# %% check-products [markdown]
# `(first, second)`
#
# - [x] `(("all-reduce", "y", 128), ("all-gather", "x", 64))`
# - [ ] `(("all-reduce", "y", 512), ("all-gather", "x", 64))`
#   The second is right.
#   In the first, 512 bytes are the whole product: a device has some of its rows only.
# - [ ] `(("all-reduce", "y", 128), ("all-gather", "x", 128))`
#   The first is right.
#   In the second, 128 bytes are all of B, but its columns are split too.
# - [ ] `(("all-reduce", "y", 32), ("all-gather", "x", 16))`
#   These are numbers of elements; an element has 4 bytes.
# - [ ] `(("all-reduce", "y", 128), ("all-gather", "x", 16))`
#   The first is right.
#   In the second, 16 bytes are what one device brings: count what it holds afterwards.
# - otherwise
#   Where A and B are split alike along the inner axis, a device computes a partial sum;
#   where it lacks rows of B, they are gathered, over the mesh dimension that splits them.
#   The bytes are those of the part that one device holds afterwards.

# %% refused-text [markdown]
# TensorFlow refuses the last line of the table:
# `y` splits the inner axis of A, and `x` that of B.


# %% refused tags=["error"]
def ones(sharding):
    return pack(np.ones(sharding.global_shape, "float32"), sharding.layout)


over_y = LayoutSpec([UNSHARDED, "y"], grid).of((8, 8))
over_x = LayoutSpec(["x", UNSHARDED], grid).of((8, 8))
try:
    tf.matmul(ones(over_y), ones(over_x))
except tf.errors.UnknownError as error:
    print("TensorFlow:", str(error).splitlines()[0].split("): ")[-1], end="\n\n")
try:
    communication.product(over_y, over_x)
except course_lib.CourseError as error:
    print("The course:", error)

# %% explore [markdown]
# What a device holds of A does not fit what it holds of B:
# they share a part of the inner axis only, or nothing of it.
# TensorFlow could gather one of them, but does not: `relayout` one of them first.
# `observed.product` asks the course's rules first, so that TensorFlow's compiler never sees such a product.
#
# ## Explore
#
# Choose the mesh, the shapes and the layouts of both factors.
# The explorer shows what is exchanged, why, and in what layout the product comes out.
# The button runs the real thing.
#
# Find two factors whose product takes three collectives.
# (On a mesh of one dimension there are none.)

# %% product-explorer
from lessons.lesson_02_communication.product_explorer import ProductExplorer

ProductExplorer(observe=observed.product)

# %% spmd [markdown]
# ## One program for all devices
#
# You write a program as for one big device, and TensorFlow makes of it a program that every device runs
# on its own parts: *single program, multiple data*.
# DTensor calls that *SPMD expansion*, and does three things:
#
# 1. It propagates layouts: from those of the arguments follow those of every result inside the function.
# 2. It rewrites each operation so that it works on local parts.
# 3. Where a device needs what it does not hold, it inserts a collective.
#
# An operation that treats each number by itself, such as ReLU, works on any block of finished numbers.
# Partial sums must be added first: ReLU of a sum is not the sum of ReLUs.
#
# Here are two layers.
# `observed.collectives` compiles a function, runs it once
# and returns the collectives in which device 0 took part.

# %% predict-layers [markdown]
# On the mesh `x` 4 × `y` 2 the batch is split over `x`, the first weight is `[unsharded, y]`, the second `[y,
# unsharded]`:
# `tf.nn.relu(batch @ first) @ second`.
# How many collectives does TensorFlow insert?
#
# - [x] `1`
#   Only the second product sums over a split axis: the hidden units, over `y`.
# - [ ] `0`
#   The second product sums over the hidden units, and they are split over `y`.
# - [ ] `2`
#   The first product needs nothing: its inner axis is whole on every device.
# - [ ] `3`
#   ReLU works on each number by itself, so it needs no data of others.
# - otherwise
#   Go through the three operations: does a device have all that it needs for its part?

# %% reveal-layers
batch = LayoutSpec(["x", UNSHARDED], grid).of((16, 8))
first_weight = LayoutSpec([UNSHARDED, "y"], grid).of((8, 32))
second_weight = LayoutSpec(["y", UNSHARDED], grid).of((32, 4))
arguments = [ones(each) for each in (batch, first_weight, second_weight)]


def two_layers(batch, first, second):
    return tf.nn.relu(batch @ first) @ second


found = observed.collectives(two_layers, *arguments, mesh=grid)
reveal("02-layers", len(found))

# %% [markdown]
# The output axis of the first weight and the input axis of the second are split over the same mesh dimension.
# So the hidden units never travel: each device makes those that it needs.
# With the inner axis of the first product split, there would be partial sums to add before ReLU.
# Lesson 5 trains with these layouts.
#
# Left to itself, TensorFlow joins all-reduces that can run together, and pads them:
# two of 4 bytes became one of 4,096 (`tests/tf/test_lesson_02.py`).
# `observed.collectives` keeps them apart, so that you can tell which is which, unless you say `combine=True`.
# In code of your own, set the environment variable
# `DTENSOR_ALLREDUCE_COMBINE_OPTIMIZATION_GROUP_SIZE=1` before a function is compiled.
#
# **Exercise 2.** A has the shape (32, 8), B the shape (8, 4), on `grid`.
# Lay out both so that nothing is sent, and that the devices share the work:
# each of the eight makes an eighth of the multiplications.
# The check runs the product on real devices.

# %% exercise-free
# solution begin
left_layout = LayoutSpec(["x", UNSHARDED], grid)
right_layout = LayoutSpec([UNSHARDED, "y"], grid)
# solution end

# %%
check("02-free", (left_layout, right_layout))

# %% ring-text [markdown]
# ## How devices add: the ring
#
# How would you let eight devices all-reduce?
# The simplest way is that each sends all it has to every other one, and all add.
# A *ring* sends less: each device sends to the next one only, and the last one to the first.
# The array is cut into *chunks*, as many as there are devices.
# In each step every device sends one chunk, all at the same time.
#
# - First a *reduce-scatter*: a chunk that arrives is added to the chunk of the same number, and goes on.
#   At the end each device has one finished chunk, a part of the total.
# - Then an *all-gather*: the finished chunks go round, and everyone keeps a copy.
#
# After the prediction, step through it, forward and back, with 2 to 8 devices.
# *Times the array* shows how much each device has sent.

# %% predict-ring [markdown]
# Eight devices all-reduce 800 numbers as a ring, in chunks of 100 numbers.
# How many numbers does each device send in all?
#
# - [x] `1400`
#   Seven steps of adding and seven of copying, with a chunk of 100 numbers in each.
# - [ ] `700`
#   That is the first half.
#   Then the finished chunks go round too.
# - [ ] `800`
#   That is the array once.
#   Count the steps: in each, a chunk leaves every device.
# - [ ] `5600`
#   That is 7 × 800: everything to everyone.
#   In a ring a step sends one chunk.
# - [ ] `1600`
#   Almost: a chunk needs only seven steps to get from one device to all others.
# - otherwise
#   How many steps has each half, and how many numbers does a device send in one step?

# %% reveal-ring
from lessons.lesson_02_communication import all_reduces as course_solutions
from lessons.lesson_02_communication.messages import run_on_each
from lessons.lesson_02_communication.ring import Ring
from lessons.lesson_02_communication.ring_explorer import RingExplorer

ring = Ring("all-reduce", num_devices=8, whole_bytes=4 * 800)
reveal("02-ring", ring.bytes_sent(ring.num_steps) // 4)

# %% stepper
RingExplorer("all-reduce", num_devices=4)

# %% collectives [markdown]
# An array of $S$ bytes has chunks of $S / n$ bytes for $n$ devices, and each half takes $n - 1$ steps.
# So a device sends
#
# $$2 \cdot (n - 1) \cdot \frac{S}{n} = 2 \cdot \frac{n - 1}{n} \cdot S$$
#
# which stays below twice the array, however many devices there are.
# Sending all to everyone takes $(n - 1) \cdot S$, but only one step:
# for a small array that can be the faster way.
# TensorFlow's own all-reduce on CPUs is a ring too (`ring_reducer.cc` in its source);
# Patarasuk and Yuan showed in 2009 that the busiest device cannot send less.
#
# So much does a device send in each collective:
# the first three go round a ring,
# and in an all-to-all each of the $n - 1$ parts goes straight to its receiver.
#
# | collective | before | after | sent by a device |
# | --- | --- | --- | --- |
# | all-reduce | $S$ bytes to add | the total, $S$ | $2 \cdot \frac{n - 1}{n} \cdot S$ |
# | reduce-scatter | $S$ bytes to add | its $n$-th of the total | $\frac{n - 1}{n} \cdot S$ |
# | all-gather | its $n$-th | the whole, $S$ | $\frac{n - 1}{n} \cdot S$ |
# | all-to-all | $S$ bytes: an $n$-th for each device | $S$ bytes: an $n$-th of each device | $\frac{n - 1}{n} \cdot S$ |
#
# *Fully sharded* data parallelism keeps an $n$-th of each weight on each device.
# In a step it gathers weights of $S$ bytes twice and reduce-scatters their gradient:
# $3 \cdot \frac{n - 1}{n} \cdot S$.
# With whole weights the gradient is all-reduced: two thirds of that,
# but each device must hold all weights (Rajbhandari and others, *ZeRO*, 2020).
#
# ### Write it
#
# Now build both.
# You write a function of one device; it runs on all devices at the same time, each in a thread of its own.
#
# - `mine` is the vector of this device.
# - `device.id` is its number, `device.count` how many there are.
# - `device.send(to, array)` sends a copy of an array to another device.
# - `device.receive(sender)` waits for the next array of that device, and returns it.
#
# **Exercise 3.** Write the naive all-reduce: every device sends its whole vector to each other device,
# and returns the sum of all vectors.
# The check takes any other way too, if no device sends more numbers than in this one.


# %% exercise-naive
def naive_all_reduce(mine, device):
    # solution begin
    others = [at for at in range(device.count) if at != device.id]
    for other in others:
        device.send(other, mine)
    total = mine
    for other in others:
        total = total + device.receive(other)
    return total
    # solution end


# %%
check("02-naive", naive_all_reduce)

# %% ring-exercise-text [markdown]
# **Exercise 4.** Now the ring.
# A device can reach its neighbours only:
# it sends to `device.next` and receives from `device.previous`.
#
# `np.array_split(mine, device.count)` cuts a vector into chunks, and `np.concatenate` joins them.
# As in the stepper, device $d$ begins with chunk $d - 1$, counted modulo `device.count`,
# and ends the first half with chunk $d$ finished.
# The check counts bytes too, and tries vectors whose chunks are of unequal lengths.


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
check("02-ring", ring_all_reduce)

# %% both-text [markdown]
# The next cell takes the real components of the first two matrices of this lesson,
# multiplies them device by device, and adds the partial sums in both ways.
# It counts the numbers that equal those of TensorFlow's own product, on every device.
# `course_solutions` are the course's functions: put yours in their place.

# %% both
pair = [pack(numbers, layout) for layout in (columns, rows)]
partial_sums = [(a @ b).ravel() for a, b in zip(*map(unpack, pair))]
by_tensorflow = unpack(tf.matmul(*pair))[0].ravel()

for all_reduce in (course_solutions.naive, course_solutions.ring):
    exchange = run_on_each(all_reduce, partial_sums)
    equal = {int((result == by_tensorflow).sum()) for result in exchange.results}
    print(f"{all_reduce.__name__}: bytes sent {exchange.bytes_sent}, equal {equal}")

# %% relayout-text [markdown]
# ## Changing the layout
#
# A change of layout takes one of three ways:
#
# - What is whole can be cut for nothing: from `[unsharded, unsharded]` to `[x, y]`.
# - Where one mesh dimension moves from one axis to the other and nothing else changes,
#   an all-to-all exchanges parts of the local blocks: the first picture below.
# - Else three things are done, as far as they are needed:
#   an axis that is whole is cut if the mesh dimension wanted for it is free;
#   one all-gather joins what is not to stay split; the rest is cut.
#
# `[unsharded, x]` to `[x, y]` is of the last kind: `x` is not free at first.
# So all is gathered and then cut, though that is needless: the second picture.

# %% gathers-all
across = LayoutSpec([UNSHARDED, "x"], grid).of((16, 16))
target = LayoutSpec(["x", "y"], grid)
display(observed.relayout(rows.of((16, 16)), columns), observed.relayout(across, target))

# %% via-text [markdown]
# In the second, every device receives the whole matrix, to keep an eighth of it.
#
# **Exercise 5.** Go by way of another layout, in two calls:
# `relayout(relayout(matrix, via), target)`.
# Choose `via` so that a device sends as few bytes as possible.
# The check runs both on real devices.

# %% exercise-via
via = LayoutSpec(["x", UNSHARDED], grid)  # solution

# %%
check("02-via", via)

# %% reader-text [markdown]
# ### The reader decides
#
# What becomes of a product also decides what it costs.
# With `[x, unsharded] @ [unsharded, x]` both axes of the product would be split over `x`.
# TensorFlow then makes the product whole, in two exchanges:

# %% no-reader
observed.product(rows.of((16, 16)), columns.of((16, 16)))

# %% predict-reader [markdown]
# Now `[x, unsharded] @ [unsharded, x]` is wanted as `[unsharded, x]`, in one `tf.function` with the product.
# How many collectives are there?
#
# - [x] `1`
#   All rows of A reach every device; each then makes the columns that it must keep.
# - [ ] `0`
#   A device has one eighth of the rows of A.
#   For whole columns it needs all of them.
# - [ ] `2`
#   The second exchange was there to make the product whole, and nobody wants that.
# - [ ] `3`
#   To keep fewer columns takes no exchange, and here they are not even made whole.
# - otherwise
#   What does a device lack to compute the columns that it must keep?

# %% reveal-reader
wanted = observed.product(rows.of((16, 16)), columns.of((16, 16)), columns)
reveal("02-reader", len(wanted.observed))

# %% silent-text [markdown]
# Layouts travel backwards too: the one reader of a result decides how it is made.
# So say what you want, with a `relayout` right behind the product, in the same `tf.function`.
# For partial sums that are wanted split, a reduce-scatter would do.
# On CPUs DTensor all-reduces them even so, and each device cuts its part out.
#
# ## Wrong in silence
#
# An exchange of the wrong data is worse than a needless one.
# We know of two cases in which TensorFlow brings wrong values and raises no error.
# The first comes from the names of messages.

# %% predict-names [markdown]
# A program names each message by the number of its sender and that of its receiver, one after the other with
# nothing between.
# Devices are numbered from 0.
# From how many devices on do two messages have the same name?
#
# - [x] `12`
#   Device 11 is needed:
#   `110` is both 1 to 10 and 11 to 0, and `111` 1 to 11 and 11 to 1.
# - [ ] `11`
#   The numbers go to 10:
#   `110` can only be 1 to 10 while there is no device 11.
# - [ ] `10`
#   All numbers have one digit then, so that every name has two and is unique.
# - [ ] `112`
#   `1112` is both 11 to 12 and 111 to 2 then, but shorter names are the same earlier.
# - otherwise
#   Try names of three digits: which two pairs of numbers make the same one?

# %% reveal-names
from lessons.lesson_02_communication import silent

count = next(count for count in range(1, 20) if silent.same_names(count))
reveal("02-names", count)

# %% silent
seen = silent.seen()  # in processes of their own: it makes them unusable
swapped = " ".join(f"{sender}→{receiver}" for sender, receiver in seen.swapped)
print("12 devices, with another's values:", swapped)
print("three axes, device 1 holds", seen.three_axes, "and should hold", seen.three_axes_right)

# %% silent-why [markdown]
# TensorFlow names the messages of an all-to-all on CPUs in just that way
# (`StrCat(..., src_rank, target_rank)` in its `tensorflow/core/common_runtime/all_to_all.cc`).
# In a `dtensor.relayout` of a matrix from rows to columns over 12 devices
# these messages brought the values of others, and no error said so.
# (Not in every try: the cell tries in up to 20 processes until all four were seen.
# Some tries end with an error; after it no collective of that process works.)
# With 11 devices no two names are the same.
#
# The second line is the mistake that lesson 1 met in a `dtensor.relayout` of three axes:
# one mesh dimension moves to another axis, a further axis changes its dimension,
# and TensorFlow forgets the latter.
# It does so in every try.
#
# The course's `relayout` refuses an all-to-all among 12 CPUs or more.
# Where it cannot know the layout, in a `tf.function`, it goes by way of the unsharded one,
# and with three axes or more always.
# Code that calls TensorFlow directly is not protected: compare with one device,
# such as `np.array_equal(to_numpy(moved), matrix)` with `to_numpy` of `course_lib.dtensor`.

# %% score
score("02")

# %% [markdown]
# ## Takeaways
#
# - The layouts of two factors decide what a product costs:
#   nothing, an all-reduce of partial sums, or a gather; and who reads the product has a say.
# - In a ring of $n$ devices each sends $2 (n - 1) / n$ times the array for an all-reduce,
#   and half of that for a reduce-scatter or an all-gather.
# - TensorFlow inserts some exchanges that are needless and a few that are wrong:
#   look them up, and compare values with one device.
#
# Lesson 3 trains a model with these pieces and follows one step in every detail.
