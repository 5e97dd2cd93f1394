# %% [markdown]
# # What must devices tell each other?
#
# Here are two ways to split the same network over eight devices.
# In the forward pass, the devices add up arrays of 2,052 bytes in the first way, and of four bytes in the second.
# Yet the second way is the worse choice. Why?
#
# You can work it out with a pencil, before you rent the machines.
# Ask of every operation: *what does a device lack?*
# It may lack terms of a sum, or a part of a tensor. Whatever it lacks must come from the others.
#
# **After this lesson you can**
#
# - say what devices exchange for a matrix product, a sum, or a change of layout, and how many bytes that is;
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
# Every entry of the product is a row of `x` times a column of `W`. That is a sum of 24 terms:
#
# $$\begin{aligned}&(xW)_{ik} = \\ &\quad \underbrace{x_{i0} W_{0k} + x_{i1} W_{1k} + x_{i2} W_{2k}}_{\text{device 0}} \\ &+ \underbrace{x_{i3} W_{3k} + x_{i4} W_{4k} + x_{i5} W_{5k}}_{\text{device 1}} + \dots\end{aligned}$$
#
# The sum runs over the features: the columns of `x`, and the rows of `W`.
# The axis over which a product sums is called its **contracting dimension**.

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
# With these two layouts we split the matrices. Here is first `x`, then `W`:

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
reveal("communication-own", np.count_nonzero(own == product))

# %% partial-sum-text [markdown]
# So each device has a 16 × 40 matrix, and not one entry of it is finished.
# Such a matrix is a **partial sum**. To add up all eight, TensorFlow inserts an **all-reduce**, as in {lesson:whole_game}:
# every device contributes its matrix, and every device gets the sum.
#
# Could the adding wait? Not if a `relu` comes next. Suppose that two devices hold 3 and -3.
# The relu of the sum is 0. If each device took the relu first, they would get 3 + 0 = 3.
# So TensorFlow usually adds up right after the product.
#
# An exchange in which all devices of a group take part is called a **collective**.
# Could we have predicted this one from the layouts alone?
# Here is the prediction, beside what TensorFlow really ran.
# Stripes mark a partial sum. The Roman numeral I names a group of devices; here a single group contains all eight.

# %% partial-sum
from course_lib import explain

explain(tf.matmul, x_by_columns, W_by_rows)

# %% rows-text [markdown]
# The two agree: one all-reduce over `devices`.
# We measure a collective by its **payload**, the whole array that it adds up or gathers.
# Here that is a matrix of 16 × 40 entries of 4 bytes: 2,560 bytes.
# The picture also says what a device sends in a ring. That is for {lesson:all_reduce}.
#
# ## The same product, split differently
#
# TensorFlow chooses the collectives when it compiles a function, from layouts and shapes alone.
# That is why you can predict them.
# To list what it chose, give the function and its DTensors to `collectives`:

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
# With `W` replicated, nothing is sent! A device has two rows of `x` and all of `W`.
# That is all it needs for its two rows of the product.
# This is data parallelism.
#
# With `W` split by rows, a device needs 24 rows of `W`, and it has three.
# It gets the other 21 by an **all-gather**: every device contributes its part, and every device gets all parts.
# The payload is all of `W`, 3,840 bytes.
# The list says "all-reduce" because TensorFlow, by default, runs an all-reduce instead of each all-gather.
# Each device then contributes its own rows, and zeros for the others.
#
# Three ways to split one product:
#
# | layout of `x` | layout of `W` | a device lacks | collective | payload |
# | --- | --- | --- | --- | --- |
# | `[unsharded, devices]` | `[devices, unsharded]` | 21 terms of every entry | all-reduce | 2,560 bytes |
# | `[devices, unsharded]` | `[unsharded, unsharded]` | nothing | none | 0 bytes |
# | `[devices, unsharded]` | `[devices, unsharded]` | 21 rows of `W` | all-gather | 3,840 bytes |
#
# If `W` were 10 GB, the last split would put 10 GB on every device, in every step.

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
# Fully sharded data parallelism (FSDP, {lesson:zero_and_fsdp}) splits weights as in the last row, so that each device stores only a part.
# It gathers each weight just before it is used.
# In DTensor, you can write `dtensor.relayout(W, replicated_layout)` inside the loss function.
# But that is not all of FSDP: the gathered weight stays until the backward pass,
# and its gradient takes an all-reduce, not a reduce-scatter, which would leave each device only its part of the sum.

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
# So what a device lacks depends on how the contracting dimension is split.
# Write the two layouts side by side: the contracting dimension is the inner pair of entries.
# The product doesn't sum over the other two axes. We call them the *outer* ones.
# Here `batch` and `model` are mesh dimensions:
#
# | the contracting dimension is split | for example | a device lacks | what happens |
# | --- | --- | --- | --- |
# | in neither factor | `[batch, unsharded] @ [unsharded, model]` | nothing | **nothing** is sent |
# | in both, over the same mesh dimension | `[unsharded, model] @ [model, unsharded]` | terms of each entry | **all-reduce** of the partial sums |
# | in one factor only | `[unsharded, model] @ [unsharded, unsharded]` | terms of each entry | each device slices the other factor, then **all-reduce** |
# | in one factor only, but the other factor already uses that mesh dimension for its outer axis, so it can't be sliced | `[batch, unsharded] @ [batch, unsharded]` | a part of one factor | **all-gather** of the factor whose contracting dimension is split |
# | over two different mesh dimensions | `[unsharded, model] @ [batch, unsharded]` | | an error |
#
# The outer entries become the layout of the product: its rows are split like the rows of `x`,
# and its columns like the columns of `W`.
#
# The explorer has our `x` and `W`, and runs their product on real DTensors when you press its button.
# Can you find a different example for each line of the table?
# The explorer's first mesh has one dimension, called `batch`.
# For the last line, choose one with two dimensions, `batch 4 × model 2`.

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

# %% refused-text [markdown]
# And the last line of the table?
# It takes a mesh with two dimensions, and a short way to write its layouts:

# %% grid
grid = dtensor.create_mesh(
    [("batch", 4), ("model", 2)], device_type="CPU"
)


def layout(*entries):
    return dtensor.Layout(list(entries), grid)


# %% two-ways-text [markdown]
# Now let's split the features over `model` in `x`, but over `batch` in `W`:

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
# There it is, the "contracting dimension".
# TensorFlow could gather one of the factors for you, but it doesn't.
# You have to say what you want, with `relayout`:

# %% repaired
from course_lib import to_numpy

W_in_two = dtensor.relayout(W_in_four, layout("model", WHOLE))
repaired = to_numpy(tf.matmul(x_in_two, W_in_two))
expected = x_values @ W_values
print("equal to NumPy's product:", np.array_equal(repaired, expected))

# %% blocks-text [markdown]
# ## What does a relayout cost?
#
# The product is right, but we had to relayout `W` first. What does a relayout send?
# Let's look at one by itself. A matrix of 16 × 16 has its columns split over `batch`.
# We want it in blocks, `[batch, model]`:

# %% blocks
square = np.arange(256, dtype="float32").reshape(16, 16)
by_columns = shard(square, layout(WHOLE, "batch"))
blocks_layout = layout("batch", "model")
explain(dtensor.relayout, by_columns, blocks_layout)

# %% blocks-exercise-text [markdown]
# What does a device lack? At most its new block of 4 × 8 numbers, 128 bytes.
# Yet every device gathers all of the matrix, 1,024 bytes, and then keeps an eighth of it.
# In the picture, I and II are two groups of devices. Each group gathers the matrix by itself,
# once again by an all-reduce.
#
# **Exercise 1.** A payload of 256 bytes is enough.
# Write `in_blocks(matrix)`. It gets `by_columns` and returns its values in the layout `blocks_layout`.
# Use nothing but `dtensor.relayout`. Try it before you read on: the cells below show the way.
# Two relayouts in a row can be cheaper than one:
#
# - If a mesh dimension isn't in use yet, splitting an axis over it is free:
#   each device just drops what it no longer needs.
# - It is also cheap to move a mesh dimension from rows to columns or back, as long as that is the only change.
#   Each device of a group sends each of the others only the piece that it lacks. This is an **all-to-all**.


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
by_rows = dtensor.relayout(by_columns, layout("batch", WHOLE))
print_collectives(dtensor.relayout, by_columns, layout("batch", WHOLE))
print_collectives(dtensor.relayout, by_rows, blocks_layout)

# %% detour-read [markdown]
# First `batch` moves from the columns to the rows.
# After this all-to-all, each device has four complete rows. These 256 bytes are the payload of an all-to-all, which adds up nothing.
# Then `model` splits the columns, for free.
#
# Why didn't TensorFlow find this way? In the direct relayout `batch` moves and `model` comes in,
# so neither of the two cheap cases applies. In such a case TensorFlow usually plays safe:
# it gathers every axis whose split changes, and then splits afresh.
#
# So a relayout, which changes no value, can be the most expensive line of your program.

# %% note-three-axes [markdown]
# A relayout of three or more axes can go wrong
#
# With three or more axes, TensorFlow 2.21 sometimes runs the all-to-all and forgets what else should change.
# The values are then wrong, and there is no error.
# Relayout such a tensor to the replicated layout first, and from there to the one you want.
# The page *Silent mistakes* shows this, and other cases.

# %% sums-text [markdown]
# ## What does a plus cost?
#
# Networks don't only multiply. A **residual connection** adds the input of some layers to their output,
# and the two sides of this `+` may have different layouts.
# A device can only add entries that it holds, so both sides must first get the same layout. Which one?
# Let's add a matrix in rows and one in blocks:

# %% sums
by_blocks = shard(square, blocks_layout)
print(dtensor.fetch_layout(by_rows + by_blocks).sharding_specs)
print_collectives(tf.add, by_rows, by_blocks)

# %% sums-read [markdown]
# Only on the right side are the columns split, but in the sum they are split as well.
# Nothing is sent: each device drops half of each row on the left, and adds.
#
# But there is a catch. On the left, a device had complete rows. In the sum it has half rows.
# If the next operation needs complete rows, it has to pay for them.
#
# Now let both sides split the rows, but over different mesh dimensions:

# %% left-wins
over_model = shard(square, layout("model", WHOLE))
print(dtensor.fetch_layout(by_rows + over_model).sharding_specs)
print_collectives(tf.add, by_rows, over_model)

# %% left-wins-read [markdown]
# The *left* side wins. Half of the devices lack their rows of the right side,
# so all of it is gathered, 1,024 bytes. As before, TensorFlow runs an all-reduce instead of the all-gather.
#
# The rule is short, and `-`, `*` and `maximum` follow it as well:
#
# - If an axis is split on one side only, it is split the same way in the sum.
# - If it is split on both sides, but differently, the left side decides.
# - If one mesh dimension splits the rows on one side and the columns on the other, TensorFlow gives up:
#   it gathers both, and the sum is replicated.
#
# A bias has a single axis, and it lines up with the columns.
# So `[batch, model] + [model]` sends nothing, and gives `[batch, model]`.

# %% backward-text [markdown]
# ## What does the backward pass send?
#
# You never write the backward pass. But it is made of the same operations, so it sends something as well.
# Let $y = xW + b$, and let $dy$ be the gradient of the loss with respect to $y$.
# Then the backward pass computes
#
# $$\begin{aligned}dW &= x^T\,dy \\ dx &= dy\,W^T \\ db_k &= \sum_i dy_{ik}\end{aligned}$$
#
# So every product in the forward pass brings two more in the backward pass, $dW$ and $dx$.
# You can use the table again, but with different axes to sum over: $dW$ sums over the *examples*,
# and $dx$ sums over the columns of $W$. The gradient $db$ is no product, but it is a sum over the examples as well.
# Transposing a matrix swaps the two entries of its layout, and sends nothing.
# `relu` and its gradient keep the layout.
#
# Let's try it on a residual network with two layers. It gets 128 examples with 16 features:


# %% backward
def loss_of(x, W1, b1, W2, b2):
    hidden = tf.nn.relu(x @ W1 + b1)
    y = x + hidden @ W2 + b2
    return tf.reduce_mean(y**2)


def both_layers(x, W1, b1, W2, b2):
    with tf.GradientTape() as tape:
        tape.watch([W1, b1, W2, b2])
        loss = loss_of(x, W1, b1, W2, b2)
    return loss, tape.gradient(loss, [W1, b1, W2, b2])


# %% network-text [markdown]
# We split it as in {lesson:whole_game}: the examples over `batch`, and the 48 hidden units over `model`.
# So `W1` is split by columns, and `W2` by rows.
# A bias is split like the columns of its weight.

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
# The gradient $dy$ has the layout of `y`. Here `x` is the data, and we don't need its gradient.
# So the first product brings only one more, $dW_1$. How many collectives do you have? Now ask TensorFlow:

# %% forward
print("forward")
print_collectives(loss_of, *network)
print("forward and backward")
print_collectives(both_layers, *network)

# %% forward-read [markdown]
# The backward pass adds four all-reduces, and you can tell them apart by their payloads.
# The 64 bytes are $db_2$, and the 96 bytes are $db_1$, with 24 numbers on each device.
# The two of 1,536 bytes are $dW_2$ and $dW_1$.
# And $d\text{hidden}$ sends nothing. It sums over the features, which are not split.
# The three missing layouts are `[batch, model]` for $d\text{hidden}$, `[model]` for $db_1$,
# and `[unsharded, model]` for $dW_1$.
#
# All four run over `batch`, because the gradient of a weight or bias sums over the examples.
# None runs over `model`, because devices 0 and 1 hold the same 32 examples.
# Each of the two sums over these examples by itself: for `W1`, `b1` and `W2`, each sums the gradients of its own hidden units.
# And for `b2`, both get the same sum.
#
# So far `x` was the data. In a deep network, it is the output of the previous layer,
# and its gradient is needed as well:


# %% input
def input_too(x, W1, b1, W2, b2):
    with tf.GradientTape() as tape:
        tape.watch([x, W1, b1, W2, b2])
        loss = loss_of(x, W1, b1, W2, b2)
    return loss, tape.gradient(loss, [x, W1, b1, W2, b2])


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
print_collectives(input_too, *network)

# %% residual-exercise-text [markdown]
# So two such layers need one all-reduce over `model` in the forward pass, and one more in the backward pass.
# That is the price of tensor parallelism ({lesson:splitting_the_model}). Is there a cheaper way?
#
# **Exercise 2.** Take `both_layers` again, but split only the second layer over `model`, by its columns.
# So `x` stays `[batch, unsharded]`. `W1` and `b1` are replicated. `W2` is `[unsharded, model]`, and `b2` is `[model]`.
# Which collectives run now, forward and backward? Don't ask TensorFlow yet,
# and try it before you read on: its answer stands below.
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
second_network = [
    x,
    shard(random(16, 48), layout(WHOLE, WHOLE)),  # W1
    shard(random(48), layout(WHOLE)),  # b1
    shard(random(48, 16), layout(WHOLE, "model")),  # W2
    shard(random(16), layout("model")),  # b2
]
print("forward")
print_collectives(loss_of, *second_network)
print("forward and backward")
print_collectives(both_layers, *second_network)

# %% observed-read [markdown]
# In the backward pass, the 6,144 bytes are $d\text{hidden}$, the 32 are $db_2$, the 1,536 are $dW_2$,
# the 192 are $db_1$, and the 3,072 are $dW_1$.
#
# Here are the two ways of the opening. In the forward pass, the first layout had payloads of 2,052 bytes.
# This one has only the loss, four bytes, so it seems to be the better layout by far.
# But with the backward pass, the payloads come to 10,980 bytes. In the first layout they came to 5,284.
# In a deep network, the gradient of `x` is needed as well. Then the first layout comes to 7,332 bytes.
# The second one stays at 10,980, because there the hidden units are not split.
#
# Why? Splitting the columns of `W2` is free in the forward pass, where they are an outer axis.
# But in $d\text{hidden} = dy\,W_2^T$ they are the contracting dimension. Each device lacks half of the terms.
# So an all-reduce adds up matrices of 32 examples × 48 hidden units, 6,144 bytes.
# What is more, `W1` and `b1` are replicated, so the all-reduces of their gradients are twice as large as before.
# And devices 0 and 1 compute the same `hidden`.
#
# The catch with the `+` is back as well. `x` has complete rows, but the sum `y` is in blocks.
# What layout does the gradient of `x` get?

# %% skip
compiled = tf.function(input_too)
loss, gradients = compiled(*second_network)
print("x", dtensor.fetch_layout(x).sharding_specs)
print("gradient", dtensor.fetch_layout(gradients[0]).sharding_specs)

# %% skip-read [markdown]
# The gradient of a `+` goes to both sides unchanged. So each side gets it in the layout of the *sum*, here in blocks.
# If the previous layer sums over the columns of this gradient, it needs an all-reduce as well.
#
# You can prevent that: relayout the right side to rows before you add it.
# `dtensor.relayout` has a gradient.
# Where the relayout gathers, as here, the backward pass brings the gradient back to the layout before the relayout:

# %% relayout-gradient
def gradients_of_sum(left, right):
    with tf.GradientTape() as tape:
        tape.watch([left, right])
        in_rows = dtensor.relayout(right, layout("batch", WHOLE))
        loss = tf.reduce_mean((left + in_rows) ** 2)
    return tape.gradient(loss, [left, right])


compiled = tf.function(gradients_of_sum)
for gradient in compiled(by_rows, by_blocks):
    print(dtensor.fetch_layout(gradient).sharding_specs)

# %% rules-read [markdown]
# The left side now gets its gradient in complete rows, and the right side still in blocks.
# The relayout costs an all-gather, so compare the bytes of both ways before you choose.
#
# These rules take you through dense layers, biases and residual connections.
# They don't cover a softmax over a split axis, a `tf.concat` along one, or a slice like `x[:8]` of split rows.
# There, ask `collectives`, and compare the values with those of one device.

# %% takeaways [markdown]
# ## The plain program
#
# [`communication.py`](../plain/communication.py) lists the collectives of both layouts without the course's library.
#
# ## Takeaways
#
# - Ask of every operation what a device lacks. If it lacks terms of a sum, an all-reduce adds them up.
#   If it lacks a part of a tensor, an all-gather brings it or, at best, an all-to-all.
# - A relayout or a `+` looks harmless. It may gather all of a matrix, or split one that you need complete later.
# - Every product in the forward pass brings two more in the backward pass, and they sum over different axes.
#   A layout that sends next to nothing in the forward pass may send the most in the backward pass.
#
# One number is still unexplained: in our first product the payload was 2,560 bytes, but each device sent 4,480.
# {Lesson:all_reduce} shows why, and draws all the collectives side by side.

# %% score
score("communication")
