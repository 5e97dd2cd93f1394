# %% [markdown]
# # What must devices tell each other?
#
# Here are two ways to split the same network over eight devices.
# In the forward pass, the first makes the devices add up 2,052 bytes, and the second only four.
# Yet the second is the worse choice. Why?
#
# You can work that out with a pencil, before you rent a single machine.
# Ask of every operation: *what does a device lack?*
# It may lack terms of a sum, or a part of a tensor, and whatever it lacks must come from the others.
#
# **After this lesson you can**
#
# - say what devices exchange for a matrix product or a change of layout, and how many bytes that is;
# - do the same for the forward and the backward pass of a small network;
# - check your answer against what TensorFlow really ran.
#
# **Time:** 40 minutes.
# **You need to know:** meshes and layouts ({lesson:mesh_and_layout}), how two matrices are multiplied,
# and what a gradient is.

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% factors-text [markdown]
# ## One entry of a product
#
# Let's multiply a batch `x`, 16 examples with 24 features each, by a weight matrix `W` with 40 columns.
# Each of eight devices gets three columns of `x`, and the three rows of `W` that go with them.
#
# Every entry of the product is a row of `x` times a column of `W`, which makes a sum of 24 terms:
#
# $$\begin{aligned}&(xW)_{ik} = \\ &\quad \underbrace{x_{i0} W_{0k} + x_{i1} W_{1k} + x_{i2} W_{2k}}_{\text{device 0}} \\ &+ \underbrace{x_{i3} W_{3k} + x_{i4} W_{4k} + x_{i5} W_{5k}}_{\text{device 1}} + \dots\end{aligned}$$
#
# The sum runs over the features: the columns of `x`, and the rows of `W`.
# The axis over which a product sums is called its **contracting dimension**.
#
# This is how the devices get their parts. `x` is split by columns, and `W` by rows:

# %% factors
tf = course_lib.start_tensorflow()
import numpy as np
from IPython.display import display
from tensorflow.experimental import dtensor

from course_lib import shard, show

WHOLE = dtensor.UNSHARDED
mesh = dtensor.create_mesh([("devices", 8)], device_type="CPU")
rows_layout = dtensor.Layout(["devices", WHOLE], mesh)
columns_layout = dtensor.Layout([WHOLE, "devices"], mesh)

# %% split-text [markdown]
# Here is first `x`, then `W`:

# %% split
x_values = np.arange(16 * 24, dtype="float32").reshape(16, 24)
W_values = np.arange(24 * 40, dtype="float32").reshape(24, 40)
x_by_columns = shard(x_values, columns_layout)
W_by_rows = shard(W_values, rows_layout)
display(show(x_by_columns), show(W_by_rows))

# %% predict-own [markdown]
# `x` has 16 rows and 24 columns, and `W` has 24 rows and 40 columns.
# Each of eight devices holds three columns of `x`, and the three rows of `W` that go with them.
# It multiplies what it holds.
# How many of the 640 entries of `x @ W` are then finished on device 0?
#
# - [x] `0`
#   Each of the 640 entries is a sum of 24 terms.
#   Device 0 can compute three terms of every entry, and lacks the other 21.
# - [ ] `1`
#   To finish even one entry, it needs 24 terms. It can compute three of them.
# - [ ] `80`
#   That is an eighth of the product. But device 0 has no complete row of `x`, so it can't finish a single entry.
# - [ ] `640`
#   Its product has 640 entries, but each of them is a sum of three terms, where 24 are needed.
# - otherwise
#   Write one entry of `x @ W` as a sum. Which of its terms can device 0 compute?

# %% reveal-own
x_part = dtensor.unpack(x_by_columns)[0]
W_part = dtensor.unpack(W_by_rows)[0]
own = (x_part @ W_part).numpy()
product = x_values @ W_values
num_finished = np.count_nonzero(own == product)
reveal("communication-own", num_finished)

# %% partial-sum-text [markdown]
# So each device has a 16 × 40 matrix in which not a single entry is finished.
# Such a matrix is a **partial sum**. To add up all eight, TensorFlow inserts an **all-reduce**, as in {lesson:whole_game}:
# every device contributes its matrix, and every device gets the sum.
#
# Could the adding wait? Not past a `relu`. Say two devices hold 3 and -3.
# The relu of their sum is 0, but if each device took the relu first, the two would get 3 + 0 = 3.
#
# An exchange in which all devices of a group take part is called a **collective**.
# Could we have predicted this one from the layouts alone?
# Here is the prediction, beside what TensorFlow really ran.
# Stripes mark a partial sum, and the Roman numeral I stands for a group of devices: here a single group of all eight.

# %% partial-sum
from course_lib import explain

explain(tf.matmul, x_by_columns, W_by_rows)

# %% rows-text [markdown]
# The two agree: one all-reduce over `devices`.
# We measure an all-reduce by its **payload**, the array that it adds up.
# Here that is a matrix of 16 × 40 entries of 4 bytes: 2,560 bytes.
# (How many bytes a device has to send for that is a question for {lesson:all_reduce}.)
#
# ## The same product, split differently
#
# TensorFlow chooses its collectives when it compiles a function, from layouts and shapes alone, which is why you can predict them.
# To see its choice, give the function and its DTensors to `collectives`.
# We print the list, and add up the payloads:

# %% listing
from course_lib import collectives


def print_collectives(function, *arguments):
    total = 0
    for each in collectives(function, *arguments):
        print(each)
        total += each.payload_bytes
    print(f"payload in all: {total:,} bytes")


# %% rows-given [markdown]
# What if we split the *examples* instead?
# Each device then has two rows of `x`, with all of their features.
# We try it with `W` replicated, and with `W` split by rows:

# %% rows
replicated_layout = dtensor.Layout([WHOLE, WHOLE], mesh)
x_by_rows = shard(x_values, rows_layout)
W_replicated = shard(W_values, replicated_layout)

print("W replicated")
print_collectives(tf.matmul, x_by_rows, W_replicated)
print("W split by rows")
print_collectives(tf.matmul, x_by_rows, W_by_rows)

# %% rows-read [markdown]
# With `W` replicated, nothing is sent! A device has two rows of `x` and all of `W`,
# which is all it needs for its two rows of the product. This is the forward pass of data parallelism.
#
# With `W` split by rows, a device needs 24 rows of `W` and has only three.
# The other 21 come by an **all-gather**: every device contributes its part, and every device gets all parts.
# Its payload is what is gathered, all of `W`: 3,840 bytes.
# (The list calls it an all-reduce, because that is how TensorFlow runs it; a note below has more.)
# If `W` were 10 GB, this split would put 10 GB on every device, in every step.
#
# So there are three ways to split one product, and what a device lacks decides what is sent:
#
# | layout of `x` | layout of `W` | a device lacks | collective | payload |
# | --- | --- | --- | --- | --- |
# | `[unsharded, devices]` | `[devices, unsharded]` | 21 terms of every entry | all-reduce | 2,560 bytes |
# | `[devices, unsharded]` | `[unsharded, unsharded]` | nothing | none | 0 bytes |
# | `[devices, unsharded]` | `[devices, unsharded]` | 21 rows of `W` | all-gather | 3,840 bytes |

# %% note-gather [markdown]
# Why does the list say "all-reduce" for an all-gather?
#
# By default, DTensor runs each all-gather as an all-reduce of the whole array.
# Each device contributes its own part, and zeros for the rest, so the sum has all parts in their places.
# The payload is the same, but each device sends twice as much ({lesson:all_reduce}).
# Wherever the devices of this course gather something, the lists say "all-reduce".

# %% note-spmd [markdown]
# Who decides what is sent?
#
# You write a program as if for one large device. When TensorFlow compiles it, it first finds a layout for every tensor.
# This is called *layout propagation*.
# Then it rewrites each operation for the part of one device, and inserts a collective where the device lacks something.
# This is *SPMD expansion*: single program, multiple data.
# Both need the layouts and shapes, but no values.

# %% note-fsdp [markdown]
# Sometimes a weight is gathered on purpose
#
# Fully sharded data parallelism (FSDP, {lesson:zero_and_fsdp}) splits weights as in the last row, so that each device stores only a part,
# and gathers each weight just before it is used.
# In DTensor, you can write `dtensor.relayout(W, replicated_layout)` inside the loss function.
#
# That isn't FSDP yet. The gathered weight stays in memory until the backward pass, and its gradient is all-reduced in full,
# where FSDP would leave each device only its own part of the sum (a reduce-scatter, {lesson:all_reduce}).

# %% note-collectives [markdown]
# How does `collectives` know?
#
# It compiles your function anew, runs it once, and looks for operations such as `CollectiveReduceV2`
# in the graphs that ran. The payload follows from the shape and dtype of their outputs.
# If the function changes variables, `collectives` puts their old values back.
# The plain program of this lesson finds the collectives in the same way.
#
# In a normal run, TensorFlow fuses several all-reduces into one where it can. `collectives` prevents that,
# so that you see what belongs to what. Pass `combine=True` to see them fused.

# %% predict-half [markdown]
# Eight devices form a mesh with one dimension, `devices`.
# `x` has 16 rows and 72 columns, and its columns are split over `devices`.
# `W` has 72 rows and 8 columns, and is replicated. All numbers are float32.
# The devices compute `x @ W`.
# What do the payloads of all collectives come to, in bytes?
#
# - [x] `512` 512 bytes
#   A device needs only the nine rows of `W` that go with its columns of `x`.
#   It slices them from its own copy, which costs nothing.
#   But its product is a partial sum, and the partial sums have to be added up: 16 × 8 entries of 4 bytes, or 512 bytes.
# - [ ] `0` 0 bytes
#   Every device has all of `W`, but only nine columns of `x`. It can compute a partial sum and no more.
# - [ ] `2304` 2,304 bytes
#   That is `W`, which every device already has.
# - [ ] `4608` 4,608 bytes
#   That is all of `x`. With it, a device could compute everything alone.
#   But it is cheaper to add up partial sums, with 128 entries only.
# - otherwise
#   Each entry of `x @ W` is a sum. Which of its terms can a device compute? And what shape has its partial sum?

# %% reveal-half
wide = shard(np.ones([16, 72], "float32"), columns_layout)
tall = shard(np.ones([72, 8], "float32"), replicated_layout)
payload = 0
for each in collectives(tf.matmul, wide, tall):
    payload += each.payload_bytes
reveal("communication-half", payload)

# %% product-explorer-text [markdown]
# Let's make a rule of this. Write the two layouts side by side:
#
# ```
# [outer, inner] @ [inner, outer]
# ```
#
# The two inner entries belong to the contracting dimension. The two outer ones belong to axes that the product doesn't sum over,
# and they become the layout of the product: `[outer, outer]`.
# What a device lacks depends on the inner entries. Here `batch` and `model` are mesh dimensions:
#
# | the inner entries | for example | a device lacks | what happens |
# | --- | --- | --- | --- |
# | neither is split | `[batch, unsharded] @ [unsharded, model]` | nothing | **nothing** is sent |
# | both are split, over the same mesh dimension | `[unsharded, model] @ [model, unsharded]` | terms of each entry | **all-reduce** of the partial sums |
# | only one is split | `[unsharded, model] @ [unsharded, unsharded]` | terms of each entry | each device slices the other factor, then **all-reduce** |
# | only one is split, over a mesh dimension that already splits the other factor's outer axis | `[batch, unsharded] @ [batch, unsharded]` | a part of one factor | **all-gather** of the factor whose inner axis is split |
# | they are split over two different mesh dimensions | `[unsharded, model] @ [batch, unsharded]` | | an error |
#
# The explorer has our `x` and `W`, and runs their product on real DTensors when you press its button.
# Can you find another example for each line of the table?
# Begin with its first mesh, which has the single dimension `batch`.
# The last line needs a mesh with two dimensions, such as `batch 4 × model 2`.

# %% product-explorer
from lessons.layouts.communication.product_explorer import (
    ProductExplorer,
)

ProductExplorer()

# %% note-outer [markdown]
# A pair of layouts that doesn't fit the table
#
# By the table, `[batch, unsharded] @ [unsharded, batch]` would give `[batch, batch]`.
# But a mesh dimension can split only one axis of a tensor.
# So TensorFlow gathers `x` first, multiplies, and gathers the product as well. The product ends up replicated.

# %% note-wanted [markdown]
# Can a product cost less than the table says?
#
# It can, if TensorFlow sees in which layout the product is wanted.
# `[batch, unsharded] @ [unsharded, batch]` takes two all-gathers, as the note above says.
# But perhaps you want only the columns split. Then write `dtensor.relayout(x @ W, columns)` in one `tf.function`,
# for a layout `columns` that splits them over `batch`. Now TensorFlow gathers `x`, and leaves the second all-gather out.
# A `+` afterwards has the same effect. Another product, or a mean, does not.
#
# Some layouts can't be obtained in this way: TensorFlow raises an error about a "non-contracting dimension".
# Then do the relayout outside of the function.

# %% backward-text [markdown]
# ## The two ways of the opening
#
# A network is made of products, and so is its backward pass. You never write the backward pass, but its products send something, too.
# Let $y = xW + b$, and let $dy$ be the gradient of the loss with respect to $y$.
# Then the backward pass computes
#
# $$\begin{aligned}dW &= x^T\,dy \\ dx &= dy\,W^T \\ db_k &= \sum_i dy_{ik}\end{aligned}$$
#
# So every product in the forward pass brings two more in the backward pass, $dW$ and $dx$.
# The table above holds for them as well, but *they sum over other axes*:
# $dW$ sums over the examples, and $dx$ sums over the columns of $W$.
# The gradient $db$ is no product, but it sums over the examples, too.
# Two things cost nothing: transposing a matrix swaps the two entries of its layout,
# and `relu` and its gradient keep the layout.
#
# Our network has two layers and a **residual connection**, which means that it adds its input `x` to what they compute.
# It gets 128 examples with 16 features:


# %% backward
def loss_of(x, W1, b1, W2, b2):
    hidden = tf.nn.relu(x @ W1 + b1)
    y = x + hidden @ W2 + b2
    return tf.reduce_mean(y**2)


def both_layers(x, W1, b1, W2, b2):
    weights = [W1, b1, W2, b2]
    with tf.GradientTape() as tape:
        tape.watch(weights)
        loss = loss_of(x, W1, b1, W2, b2)
    return loss, tape.gradient(loss, weights)


# %% grid-text [markdown]
# The mesh now has two dimensions. Since we are going to write many layouts on it, a short function makes them:

# %% grid
grid = dtensor.create_mesh(
    [("batch", 4), ("model", 2)], device_type="CPU"
)


def layout(*entries):
    return dtensor.Layout(list(entries), grid)


# %% network-text [markdown]
# The *first way* is that of {lesson:whole_game}: the examples are split over `batch`, and the 48 hidden units over `model`.
# So `W1` is split by columns, and `W2` by rows.
# A bias is split like the columns of its weight:

# %% network
rng = np.random.default_rng(0)


def random(*shape):
    return rng.normal(size=shape).astype("float32")


x = shard(random(128, 16), layout("batch", WHOLE))
W1 = shard(random(16, 48), layout(WHOLE, "model"))
b1 = shard(random(48), layout("model"))
W2 = shard(random(48, 16), layout("model", WHOLE))
b2 = shard(random(16), layout(WHOLE))
network = [x, W1, b1, W2, b2]

# %% forward-text [markdown]
# Take a pencil. Go through the operations in their order, and write down the layout of each result.
# Then ask what a device lacks: over which axis does the operation sum, and is that axis split?
# The last three rows are yours:
#
# | operation | layout of the result | it sums over | collective |
# | --- | --- | --- | --- |
# | `hidden = relu(x @ W1 + b1)` | `[batch, model]` | features, not split | none |
# | `hidden @ W2` | `[batch, unsharded]` | hidden units, split over `model` | all-reduce over `model`: 32 × 16 numbers, 2,048 bytes |
# | `y = x + … + b2` | `[batch, unsharded]` | nothing | none |
# | the mean of `y**2` | `[]` | all of `y`, split over `batch` | all-reduce over `batch`: 4 bytes |
# | $db_2$ | `[unsharded]` | examples, split over `batch` | all-reduce over `batch`: 16 numbers, 64 bytes |
# | $dW_2 = \text{hidden}^T dy$ | `[model, unsharded]` | examples, split over `batch` | all-reduce over `batch`: 24 × 16 numbers, 1,536 bytes |
# | $d\text{hidden} = dy\,W_2^T$ | ? | ? | ? |
# | $db_1$ | ? | ? | ? |
# | $dW_1 = x^T d\text{hidden}$ | ? | ? | ? |
#
# The gradient $dy$ has the layout of `y`. Nobody needs the gradient of `x`, since here `x` is the data,
# so the first product brings only one more, $dW_1$.
# How many collectives do you have? Now ask TensorFlow. It lists them in an order of its own, so compare the bytes:

# %% forward
print("forward")
print_collectives(loss_of, *network)
print("forward and backward")
print_collectives(both_layers, *network)

# %% forward-read [markdown]
# The forward pass sends the 2,052 bytes of the opening. The backward pass adds four all-reduces:
# 64 bytes for $db_2$, 96 bytes for $db_1$, of which each device has 24 numbers, and twice 1,536 bytes for $dW_2$ and $dW_1$.
# But $d\text{hidden}$ sends nothing, because it sums over the features, which are not split.
# The three missing layouts are `[batch, model]` for $d\text{hidden}$, `[model]` for $db_1$,
# and `[unsharded, model]` for $dW_1$.
#
# All four run over `batch`, because the gradient of a weight or bias sums over the examples.
# None of them runs over `model`. Devices 0 and 1 hold the same 32 examples, so they have nothing to tell each other about them:
# each computes the gradients of its own hidden units, and both compute the same $db_2$.


# %% residual-exercise-text [markdown]
# Now the *second way*: split only the second layer over `model`, by its columns.
# So `x` stays `[batch, unsharded]`. `W1` and `b1` are replicated. `W2` is `[unsharded, model]`, and `b2` is `[model]`.
#
# Here, the two sides of the `+` have different layouts. If an axis is split on one side only,
# each device drops what it doesn't need of the other side, and the sum is split. Nothing is sent.
#
# **Exercise 1.** Which collectives does `both_layers` run now, forward and backward?
# Try it with a pencil first: TensorFlow's answer is below.
#
# Begin as we did, with the layouts of `hidden`, of `y` and of $dy$. And don't forget the loss:
# it sums over rows *and* columns. If both are split, TensorFlow does both in one all-reduce, over `batch and model`.
#
# Write one pair per collective, for example `("batch", 2048)`: the mesh dimension and the payload in bytes.
# The order doesn't matter.

# %% exercise-residual
# solution begin
predicted = [
    ("batch and model", 4),  # the loss: y is split in blocks
    ("batch", 32),  # db2: 8 numbers on each device
    ("batch", 1536),  # dW2: 48 rows, 8 columns on each device
    ("model", 6144),  # dhidden: 32 examples, 48 hidden units
    ("batch", 192),  # db1: 48 numbers
    ("batch", 3072),  # dW1: 16 rows, 48 columns
]
# solution end

# %%
check("communication-residual", predicted)

# %% observed-text [markdown]
# And what does TensorFlow say?

# %% observed
W1 = shard(random(16, 48), layout(WHOLE, WHOLE))
b1 = shard(random(48), layout(WHOLE))
W2 = shard(random(48, 16), layout(WHOLE, "model"))
b2 = shard(random(16), layout("model"))
second_network = [x, W1, b1, W2, b2]

print("forward")
print_collectives(loss_of, *second_network)
print("forward and backward")
print_collectives(both_layers, *second_network)

# %% observed-read [markdown]
# There is the answer to our riddle. In the forward pass, the second way sends four bytes, and the first way 2,052.
# But *with the backward pass*, the second way comes to 10,980 bytes, and the first to 5,284.
#
# The culprit is the all-reduce of 6,144 bytes. Splitting the columns of `W2` is free in the forward pass,
# where they are an outer axis. But in $d\text{hidden} = dy\,W_2^T$ they are the contracting dimension.
# Each device then lacks half of the terms, so the devices add up matrices of 32 examples × 48 hidden units.
#
# The second way is wasteful in one more respect. `W1` and `b1` are replicated, so the all-reduces of their gradients
# (3,072 and 192 bytes) are twice as large as in the first way, and devices 0 and 1 compute the same `hidden`.
#
# So far `x` was the data. In a deep network it is the output of the previous layer,
# and its gradient is needed as well. So let's compute all five gradients:


# %% input
def input_too(x, W1, b1, W2, b2):
    wanted = [x, W1, b1, W2, b2]
    with tf.GradientTape() as tape:
        tape.watch(wanted)
        loss = loss_of(x, W1, b1, W2, b2)
    return loss, tape.gradient(loss, wanted)


# %% predict-input [markdown]
# A residual network computes `hidden = relu(x @ W1 + b1)` and `y = x + hidden @ W2 + b2`.
# The mesh is `batch` 4 × `model` 2.
# The examples are split over `batch`, and the hidden units (columns of `W1`, rows of `W2`) over `model`.
# `x` is 128 × 16, in float32, with the layout `[batch, unsharded]`.
# In the forward pass, an all-reduce over `model` adds up `hidden @ W2`. Its payload is 2,048 bytes.
# The backward pass now computes the gradient of `x` as well.
# How many bytes are all-reduced over `model` now, forward and backward together?
#
# - [ ] `2048` 2,048 bytes
#   The gradient of `x` contains a product of the gradient of `hidden` and `W1ᵀ`.
#   It sums over the hidden units, and they are split over `model`.
# - [x] `4096` 4,096 bytes
#   The gradient of `x` contains a product of the gradient of `hidden` and `W1ᵀ`.
#   It sums over the hidden units, and they are split over `model`, so there is a second all-reduce.
#   Each device has 32 examples of 16 features: 2,048 bytes.
# - [ ] `5120` 5,120 bytes
#   A device has 32 × 24 numbers of the gradient of `hidden`, 3,072 bytes.
#   But what the devices add up is its product with `W1ᵀ`, which has 16 columns.
# - [ ] `10240` 10,240 bytes
#   There is a second all-reduce. But a device needs the gradient of its own 32 examples only, not of all 128.

# %% reveal-input
model_bytes = 0
for each in collectives(input_too, *network):
    if "model" in each.mesh_dims:
        model_bytes += each.payload_bytes
reveal("communication-input", model_bytes)

# %% input-too
print("first way")
print_collectives(input_too, *network)
print("second way")
print_collectives(input_too, *second_network)

# %% input-read [markdown]
# The first way now comes to 7,332 bytes. The second stays at 10,980, since nothing splits its hidden units,
# but it is still the more expensive one.
#
# So the price of the first way is two all-reduces over `model` for every two layers, one in the forward pass and one in the backward pass.
# It is the price of tensor parallelism ({lesson:splitting_the_model}).

# %% refused-text [markdown]
# ## When layouts don't fit
#
# One line of the table is left, the error.
# Let's split the features over `model` in `x`, but over `batch` in `W`:

# %% refused tags=["error"]
from course_lib import last_line

x_in_two = shard(x_values, layout(WHOLE, "model"))
W_in_four = shard(W_values, layout("batch", WHOLE))
product_of = tf.function(tf.matmul)
try:
    product_of(x_in_two, W_in_four)
except tf.errors.UnknownError as error:
    print(last_line(error))

# %% repaired-text [markdown]
# There it is, the "contracting dimension". TensorFlow could gather one of the factors for you, but it doesn't.
# You have to say what you want, with `relayout`:

# %% repaired
from course_lib import to_numpy

W_in_two = dtensor.relayout(W_in_four, layout("model", WHOLE))
repaired = to_numpy(tf.matmul(x_in_two, W_in_two))
expected = x_values @ W_values
print("equal to NumPy's product:", np.array_equal(repaired, expected))

# %% blocks-text [markdown]
# The product is right. But we had to relayout `W` first, and what did that send?
# Let's look at a relayout by itself. A matrix of 16 × 16 has its columns split over `batch`.
# We want it in blocks, `[batch, model]`:

# %% blocks
square = np.arange(256, dtype="float32").reshape(16, 16)
by_columns = shard(square, layout(WHOLE, "batch"))
blocks_layout = layout("batch", "model")
explain(dtensor.relayout, by_columns, blocks_layout)

# %% blocks-exercise-text [markdown]
# What does a device lack? At most its new block of 4 × 8 numbers, 128 bytes.
# Yet every device gathers all of the matrix, 1,024 bytes, and then keeps an eighth of it.
# (I and II are two groups of devices, and each group gathers the matrix by itself.)
#
# **Exercise 2.** A payload of 256 bytes is enough, because two relayouts in a row can be cheaper than one:
#
# - If a mesh dimension isn't in use yet, splitting an axis over it is free:
#   each device just drops what it no longer needs.
# - It is also cheap to move a mesh dimension from rows to columns or back, as long as that is the only change.
#   Each device of a group sends each of the others only the piece that it lacks. This is an **all-to-all**.
#
# Write `in_blocks(matrix)`. It gets `by_columns` and returns its values in the layout `blocks_layout`.
# Use nothing but `dtensor.relayout`, and try it before you read on: the cells below show the way.


# %% exercise-blocks
def in_blocks(matrix):
    # solution begin
    by_rows = dtensor.relayout(matrix, layout("batch", WHOLE))
    return dtensor.relayout(by_rows, blocks_layout)
    # solution end


# %%
check("communication-blocks", in_blocks)

# %% detour-text [markdown]
# The cheap way goes through `[batch, unsharded]`. Here are its two halves:

# %% detour
in_rows = layout("batch", WHOLE)
by_rows = dtensor.relayout(by_columns, in_rows)

print("columns to rows")
print_collectives(dtensor.relayout, by_columns, in_rows)
print("rows to blocks")
print_collectives(dtensor.relayout, by_rows, blocks_layout)

# %% detour-read [markdown]
# First `batch` moves from the columns to the rows, so that each device has four complete rows.
# This all-to-all adds nothing up, so its payload is simply what each device hands in: 256 bytes.
# Then `model` splits the columns, for free.
#
# Why didn't TensorFlow find this way? In the direct relayout `batch` moves *and* `model` comes in,
# so it is neither of the two cheap cases. Then TensorFlow usually plays safe:
# it gathers every axis whose split changes, and splits afresh.
# That is how a relayout, which changes no value, can become the most expensive line of your program.

# %% note-three-axes [markdown]
# A relayout of three or more axes can go wrong
#
# With three or more axes, TensorFlow 2.21 sometimes runs the all-to-all and forgets what else should change.
# The values are then wrong, and there is no error.
# Relayout such a tensor to the replicated layout first, and from there to the one you want.
# The page *Silent mistakes* shows this, and other cases.

# %% note-plus [markdown]
# What if both sides of a `+` are split?
#
# The rule is short, and `-`, `*` and `maximum` follow it as well:
#
# - If an axis is split on one side only, it is split the same way in the sum, and nothing is sent.
# - If it is split on both sides, but differently, the left side decides. What devices lack of the right side is gathered.
# - If one mesh dimension splits the rows on one side and the columns on the other, TensorFlow gives up:
#   it gathers both, and the sum is replicated.
#
# A bias has a single axis, and it lines up with the columns.
# So `[batch, model] + [model]` sends nothing, and gives `[batch, model]`.

# %% note-skip [markdown]
# The `+` that costs nothing has a catch
#
# In the second way, `x` has complete rows, but the sum `y` is in blocks.
# If the next operation needs complete rows, it has to pay for them.
# And the gradient of a `+` goes to both sides unchanged, so `x` gets its gradient in blocks, too.
# If the previous layer sums over the columns of this gradient, it needs an all-reduce as well.
#
# You can prevent that. Relayout the right side to rows before you add it:
#
# ```python
# right_in_rows = dtensor.relayout(right, layout("batch", WHOLE))
# total = left + right_in_rows
# ```
#
# Now the left side gets its gradient in complete rows.
# `dtensor.relayout` has a gradient, too: since it gathers here, the backward pass returns the gradient of `right` to blocks.
# But the relayout costs an all-gather, so compare the bytes of both ways before you choose.

# %% note-rules [markdown]
# What do these rules not cover?
#
# They take you through dense layers, biases and residual connections,
# but not through a softmax over a split axis, a `tf.concat` along one, or a slice like `x[:8]` of split rows.
# There, ask `collectives`, and compare the values with those of one device.

# %% takeaways [markdown]
# ## The plain program
#
# [`communication.py`](../plain/communication.py) lists the collectives of both ways without the course's library.
#
# ## Takeaways
#
# - Ask of every operation what a device lacks. If it lacks terms of a sum, an all-reduce adds them up.
#   If it lacks part of a tensor, an all-gather brings it. With luck, an all-to-all is enough.
# - Every product in the forward pass brings two more in the backward pass, and they sum over different axes.
#   A layout that sends next to nothing in the forward pass may send the most in the backward pass.
# - A relayout changes no value, but it may gather all of a matrix.
#
# One number is still unexplained: in our first product the payload was 2,560 bytes, but the picture says that each device sends 4,480.
# {Lesson:all_reduce} shows why, and draws all the collectives side by side.

# %% score
score("communication")
