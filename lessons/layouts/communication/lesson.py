# %% [markdown]
# # What must devices tell each other?
#
# You want to train a small network on eight devices, and you know two ways to split it.
# With the first, the devices have to add up 2,052 bytes of data in the forward pass; with the second, only four.
# Yet the first way is the better choice. Why?
#
# You can find out with a pencil, before you rent a single machine.
# Take one operation after another, and ask: *what does a device lack?*
# It may lack some terms of a sum, or a part of a tensor. Whatever it lacks has to come from the others.
#
# **After this lesson you can**
#
# - say what devices exchange for a matrix product or a change of layout, and how many bytes that is;
# - do the same for the forward and backward pass of a small network;
# - check your answer against what TensorFlow really ran.
#
# **Time:** 35 minutes.
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
# We begin with a single product.
# The batch `x` has 16 examples with 24 features each, and the weight matrix `W` has 24 rows and 40 columns.
# There are eight devices, and each gets three columns of `x` and the matching three rows of `W`.
# So `x` is split by columns, and `W` by rows:

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
# Now we fill both matrices with numbers. The first picture shows `x`, the second `W`:

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
# An entry is finished if it equals that of the product.
num_finished = np.count_nonzero(own == product)
reveal("communication-own", num_finished)

# %% partial-sum-text [markdown]
# Here is one entry, written out. Below each group of terms stands the device that can compute them:
#
# $$\begin{aligned}&(xW)_{ik} = \\ &\quad \underbrace{x_{i0} W_{0k} + x_{i1} W_{1k} + x_{i2} W_{2k}}_{\text{device 0}} \\ &+ \underbrace{x_{i3} W_{3k} + x_{i4} W_{4k} + x_{i5} W_{5k}}_{\text{device 1}} + \dots\end{aligned}$$
#
# The sum runs over the features, which are the columns of `x` and the rows of `W`.
# The axis over which a product sums is called its **contracting dimension**.
# Here that axis is split, so each device ends up with a full-size 16 × 40 matrix in which no entry is finished.
# Such a matrix is a **partial sum**.
#
# To add up the eight partial sums, TensorFlow inserts an **all-reduce**, which you met in {lesson:whole_game}:
# every device contributes its matrix, and every device gets the sum.
# An exchange in which all devices of a group take part is called a **collective**.
#
# From the layouts alone, `explain` predicts which collectives a product needs, and then shows which ones TensorFlow ran.
# Stripes mark a partial sum, and the Roman numeral I stands for the group, here all eight devices:

# %% partial-sum
from course_lib import explain

explain(tf.matmul, x_by_columns, W_by_rows)

# %% rows-text [markdown]
# The two agree: one all-reduce over `devices`.
# We measure a collective by its **payload**: the size, in bytes, of the array that each device holds afterwards.
# After this all-reduce, each device holds the sum: 16 × 40 numbers of 4 bytes, which makes 2,560 bytes.
#
# ## The same product, split differently
#
# TensorFlow chooses its collectives when it compiles a function.
# It needs layouts and shapes for that, but no values, so you can predict its choice.
# To see it, give the function and its DTensors to `collectives`. We print the list that it returns, and add up the payloads:

# %% listing
from course_lib import collectives


def print_collectives(function, *arguments):
    total = 0
    for each in collectives(function, *arguments):
        print(each)
        total += each.payload_bytes
    print(f"payload in all: {total:,} bytes")


# %% rows-given [markdown]
# Now we split the *examples*. Each device gets two rows of `x`, with all of their features.
# For `W` we try two layouts: replicated, and split by rows.

# %% rows
replicated_layout = dtensor.Layout([WHOLE, WHOLE], mesh)
x_by_rows = shard(x_values, rows_layout)
W_replicated = shard(W_values, replicated_layout)

print("W replicated")
print_collectives(tf.matmul, x_by_rows, W_replicated)
print("W split by rows")
print_collectives(tf.matmul, x_by_rows, W_by_rows)

# %% rows-read [markdown]
# With `W` replicated, the devices send nothing!
# Each one has two rows of `x` and all of `W`, which is enough for two rows of the product.
# This is the forward pass of data parallelism.
#
# With `W` split by rows, each device needs all 24 rows of `W`, and has only three.
# The other 21 come by an **all-gather**: every device contributes its part, and every device gets all parts.
# Afterwards each device holds all of `W`, so the payload is 3,840 bytes.
# If `W` were 10 GB, every device would have to hold all 10 GB, in every step.
#
# Why does the list say "all-reduce"? Because by default, DTensor gathers by adding.
# Each device contributes an array as large as `W`, with zeros in place of the rows that it lacks, and the sum has all rows.
# The payload is the same, but each device sends twice as much ({lesson:all_reduce}).
# In this course, the lists show every gather as an all-reduce.

# %% note-fsdp [markdown]
# Sometimes a weight is gathered on purpose
#
# Under fully sharded data parallelism (FSDP, {lesson:zero_and_fsdp}), each device stores a part of each weight, which is gathered just before it is used.
# In DTensor, `dtensor.relayout(W, replicated_layout)` inside the loss function does that.
#
# This is not yet FSDP. The gathered weight stays in memory until the backward pass,
# and an all-reduce gives every device the whole gradient of `W`.
# Under FSDP, each device gets only its own part of the gradient (a reduce-scatter, {lesson:all_reduce}).

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
# ## A rule for products
#
# From two layouts, you can tell what their product sends. Write them side by side:
#
# ```
# [outer, inner] @ [inner, outer]
# ```
#
# The two inner entries belong to the contracting dimension.
# The two outer entries become the layout of the product, `[outer, outer]`, unless both name the same mesh dimension.
# (The note below has the other case.)
# This table shows what a device lacks; `batch` and `model` are mesh dimensions:
#
# | the inner entries | for example | a device lacks | what happens |
# | --- | --- | --- | --- |
# | neither is split | `[batch, unsharded] @ [unsharded, model]` | nothing | **nothing** is sent |
# | both are split, over the same mesh dimension | `[unsharded, model] @ [model, unsharded]` | terms of each entry | **all-reduce** of the partial sums |
# | only one is split | `[unsharded, model] @ [unsharded, unsharded]` | terms of each entry | each device slices the other factor, then **all-reduce** |
# | only one is split, and the other factor's outer entry already uses its mesh dimension | `[batch, unsharded] @ [batch, unsharded]` | a part of one factor | **all-gather** of the factor whose inner axis is split |
# | they are split over two different mesh dimensions | `[unsharded, model] @ [batch, unsharded]` | | an error |
#
# The explorer has our `x` and `W`, and its button runs their product on real DTensors.
# Try to find another example for each row of the table.
# The last row needs a mesh with two dimensions, such as `batch 4 × model 2`.

# %% product-explorer
from lessons.layouts.communication.product_explorer import (
    ProductExplorer,
)

ProductExplorer()

# %% note-outer [markdown]
# A product can cost more than the table says, or less
#
# It costs more if both outer entries name the same mesh dimension, as in `[batch, unsharded] @ [unsharded, batch]`.
# The product can't have the layout `[batch, batch]`, because a mesh dimension can split only one axis of a tensor.
# So TensorFlow gathers `x`, multiplies, and gathers the product as well.
#
# It costs less if TensorFlow sees which layout you want. Say you want this product split by columns.
# Write `dtensor.relayout(x @ W, columns)` with that layout, inside one `tf.function`, and TensorFlow leaves out the second gather.
# A `+` after the product has the same effect. Another product or a mean does not.
# Some layouts raise an error about a "non-contracting dimension". For these, relayout outside the function.

# %% network-heading [markdown]
# ## The two ways of the opening
#
# Now you can solve the riddle. The network has two layers and a **residual connection**:
# it adds its input `x` to what the layers compute.
# The batch has 128 examples with 16 features each, and there are 48 hidden units.


# %% loss
def loss_of(x, W1, b1, W2, b2):
    hidden = tf.nn.relu(x @ W1 + b1)
    y = x + hidden @ W2 + b2
    return tf.reduce_mean(y**2)


# %% grid-text [markdown]
# The devices form a grid, with 4 devices along `batch` and 2 along `model`.
# Both ways split the examples over `batch`, so `x` has the layout `[batch, unsharded]`. They differ in what they split over `model`:
#
# | | `W1` | `b1` | `W2` | `b2` |
# | --- | --- | --- | --- | --- |
# | first way | `[unsharded, model]` | `[model]` | `[model, unsharded]` | `[unsharded]` |
# | second way | `[unsharded, unsharded]` | `[unsharded]` | `[unsharded, model]` | `[model]` |
#
# The *first way* splits the hidden units, as in {lesson:whole_game}: the columns of `W1`, and the rows of `W2`.
# The *second way* splits only the second layer, by its columns.
#
# A short function makes the layouts on this grid:

# %% grid
grid = dtensor.create_mesh(
    [("batch", 4), ("model", 2)], device_type="CPU"
)


def layout(*entries):
    return dtensor.Layout(list(entries), grid)


# %% network-text [markdown]
# This is the network under the first way:

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
# Let's go through the forward pass, operation by operation. Which layout does the result have? (`relu` keeps it.)
# Over which axis does the operation sum, and is that axis split?
#
# | operation | layout of the result | it sums over | collective |
# | --- | --- | --- | --- |
# | `hidden = relu(x @ W1 + b1)` | `[batch, model]` | features, not split | none |
# | `hidden @ W2` | `[batch, unsharded]` | hidden units, split over `model` | all-reduce over `model`: 32 × 16 numbers, 2,048 bytes |
# | `y = x + … + b2` | `[batch, unsharded]` | nothing | none |
# | the mean of `y**2` | `[]` | all of `y`, split over `batch` | all-reduce over `batch`: 4 bytes |
#
# And this is what TensorFlow runs:

# %% forward
print("forward")
print_collectives(loss_of, *network)

# %% backward-text [markdown]
# These are the 2,052 bytes of the opening.
#
# You never write the backward pass, but it consists of products, too.
# Let $y = xW + b$, and let $dy$ be the gradient of the loss with respect to $y$. Then the backward pass computes
#
# $$\begin{aligned}dW &= x^T\,dy \\ dx &= dy\,W^T \\ db_k &= \sum_i dy_{ik}\end{aligned}$$
#
# So every product in the forward pass brings two more in the backward pass, $dW$ and $dx$.
# The rule holds for them as well, but *they sum over other axes*:
# $dW$ sums over the examples, and $dx$ sums over the columns of $W$.
# The gradient $db$ isn't a product, but it sums over the examples, too.
# A transpose just swaps the two entries of a layout, and the gradient of `relu` leaves the layout alone, so neither costs anything.
#
# This function computes the loss, and then the gradients of both layers:


# %% backward
def both_layers(x, W1, b1, W2, b2):
    weights = [W1, b1, W2, b2]
    with tf.GradientTape() as tape:
        tape.watch(weights)
        loss = loss_of(x, W1, b1, W2, b2)
    return loss, tape.gradient(loss, weights)


# %% both-text [markdown]
# Here `x` is the data, so nobody needs its gradient. The gradient $dy$ has the layout of `y`.
# The last three rows are yours:
#
# | operation | layout of the result | it sums over | collective |
# | --- | --- | --- | --- |
# | $db_2$ | `[unsharded]` | examples, split over `batch` | all-reduce over `batch`: 16 numbers, 64 bytes |
# | $dW_2 = \text{hidden}^T dy$ | `[model, unsharded]` | examples, split over `batch` | all-reduce over `batch`: 24 × 16 numbers, 1,536 bytes |
# | $d\text{hidden} = dy\,W_2^T$ | ? | ? | ? |
# | $db_1$ | ? | ? | ? |
# | $dW_1 = x^T d\text{hidden}$ | ? | ? | ? |
#
# TensorFlow's list has an order of its own, so compare the bytes:

# %% both
print("forward and backward")
print_collectives(both_layers, *network)

# %% both-read [markdown]
# The backward pass adds four all-reduces: 64 bytes for $db_2$, 96 bytes for $db_1$ (24 numbers on each device),
# and 1,536 bytes each for $dW_2$ and $dW_1$.
# The product $d\text{hidden}$ needs none, because it sums over the features, and they are not split.
# The missing layouts are `[batch, model]` for $d\text{hidden}$, `[model]` for $db_1$,
# and `[unsharded, model]` for $dW_1$.
#
# All four run over `batch`, because the gradients of weights and biases sum over the examples.
# None runs over `model`. Devices 0 and 1 hold the same 32 examples, and neither needs the other for its sums.

# %% residual-exercise-text [markdown]
# Under the second way, the two sides of the `+` in `x + hidden @ W2` have different layouts.
# If only one side of a `+` splits an axis, each device keeps just the matching part of the other. The result is split too, and nothing is sent.
#
# **Exercise 1.** Which collectives does `both_layers` run under the second way, forward and backward?
# Try it with a pencil first: TensorFlow's answer is below.
#
# Begin with the layouts of `hidden`, of `y` and of $dy$. Don't forget the loss, which sums over rows *and* columns.
# If both are split, TensorFlow runs one all-reduce, over `batch and model`.
#
# Write each collective as a pair, such as `("batch", 2048)`: the mesh dimension and the payload in bytes.
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
# And this is what TensorFlow runs:

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
# That solves the riddle. In the forward pass, the second way adds up four bytes, and the first way 2,052.
# But *count the backward pass*, and the second way needs 10,980 bytes, the first only 5,284.
#
# The culprit is the all-reduce of 6,144 bytes.
# In the forward pass, the columns of `W2` are an outer axis, so splitting them is free.
# But $d\text{hidden} = dy\,W_2^T$ sums over these columns.
# Each device lacks half of the terms, so the devices add up matrices of 32 examples × 48 hidden units.
#
# The second way also replicates `W1` and `b1`, so the all-reduces of their gradients (3,072 and 192 bytes)
# are twice as large as under the first way.
#
# In a deep network, `x` is the output of the layer before, and its gradient is needed as well.
# So let's compute all five gradients:


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
# The first way now comes to 7,332 bytes. The second stays at 10,980, because its hidden units are not split.
# It is still more expensive.
#
# So the first way takes two all-reduces over `model` for every two layers: one in the forward pass, and one in the backward pass.
# They are the price of tensor parallelism ({lesson:splitting_the_model}).

# %% note-plus [markdown]
# What if the two sides of a `+` are split differently?
#
# A `+` follows three rules, and so do `-`, `*` and `maximum`:
#
# - If only one side splits an axis, the result splits it in the same way, and nothing is sent.
# - If both sides split an axis, but differently, the result follows the left side. What a device lacks of the right is gathered.
# - If one mesh dimension splits the rows on one side and the columns on the other, TensorFlow gathers both sides, and the result is replicated.
#
# A bias has a single axis, and it lines up with the columns.
# So `[batch, model] + [model]` sends nothing, and gives `[batch, model]`.
#
# The free `+` of the second way has a price later on. It leaves `y` and the gradient of `x` in blocks,
# and an operation that needs whole rows has to pay for them.
# To prevent that, relayout `hidden @ W2 + b2` to whole rows before you add it.
# But this costs an all-gather, so compare the bytes before you choose.

# %% refused-text [markdown]
# ## When layouts don't fit
#
# The last row of the table is an error.
# To see it, we split the features over `model` in `x`, and over `batch` in `W`:

# %% refused tags=["error"]
from course_lib import last_line

x_in_two = shard(x_values, layout(WHOLE, "model"))
W_in_four = shard(W_values, layout("batch", WHOLE))
product_of = tf.function(tf.matmul)
try:
    product_of(x_in_two, W_in_four)
except tf.errors.UnknownError as error:
    print(last_line(error))

# %% blocks-text [markdown]
# The contracting dimension, our features, is split over `model` on the left, and over `batch` on the right.
# TensorFlow could gather one of the factors, but it doesn't.
# You have to relayout one yourself, for example with `dtensor.relayout(W_in_four, layout("model", WHOLE))`.
#
# A relayout costs bytes, too, and sometimes more than it needs to.
# Take a matrix of 16 × 16 whose columns are split over `batch`. We want it in blocks, `[batch, model]`:

# %% blocks
square = np.arange(256, dtype="float32").reshape(16, 16)
by_columns = shard(square, layout(WHOLE, "batch"))
blocks_layout = layout("batch", "model")
explain(dtensor.relayout, by_columns, blocks_layout)

# %% blocks-exercise-text [markdown]
# A device lacks at most its new block of 4 × 8 numbers, 128 bytes.
# But each device gathers the whole matrix, 1,024 bytes, and then keeps an eighth of it.
# (I and II are two groups, and each of them gathers the matrix for itself.)
#
# **Exercise 2.** With two relayouts in a row, a payload of 256 bytes is enough. Two kinds of relayout are cheap:
#
# - Splitting an axis over a mesh dimension that is not in use yet is free:
#   each device just drops what it no longer needs.
# - Moving a mesh dimension from rows to columns or back is cheap, as long as nothing else changes.
#   Each device sends every other device in its group just the piece it lacks. This is an **all-to-all**.
#
# Write `in_blocks(matrix)`. It gets `by_columns`, and returns the same values in the layout `blocks_layout`.
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
# The cheap way goes through whole rows, `[batch, unsharded]`. These are its two halves:

# %% detour
in_rows = layout("batch", WHOLE)
by_rows = dtensor.relayout(by_columns, in_rows)

print("columns to rows")
print_collectives(dtensor.relayout, by_columns, in_rows)
print("rows to blocks")
print_collectives(dtensor.relayout, by_rows, blocks_layout)

# %% detour-read [markdown]
# First, an all-to-all moves `batch` from the columns to the rows.
# Afterwards each device holds four whole rows: 4 × 16 numbers, or 256 bytes.
# Then `model` splits the columns, which is free.
#
# The direct relayout does both at once: it moves `batch` and brings in `model`. So it is neither cheap kind. In such a case, TensorFlow usually gathers every axis whose split changes, and splits it afresh. That is how a relayout, which changes no value, can be your most expensive line.

# %% note-three-axes [markdown]
# A relayout of three or more axes can go wrong
#
# With three or more axes, TensorFlow 2.21 sometimes runs the all-to-all, and leaves out what else should change.
# The values are then wrong, and you get no error.
# Relayout such a tensor to the replicated layout first, and from there to the one that you want.
# The page *Silent mistakes* shows this, and other cases.

# %% plain-heading [markdown]
# ## The plain program
#
# [`communication.py`](../plain/communication.py) finds the collectives of both ways without the course's library.
#
# You can now predict what dense layers, biases and residual connections send.
# We haven't covered everything: a softmax over a split axis, a `tf.concat` along one, a slice like `x[:8]` of split rows. For these, ask `collectives`, and check the values against one device.

# %% note-collectives [markdown]
# How does TensorFlow choose its collectives, and how does `collectives` find them?
#
# You write a program as if for one large device. TensorFlow first finds a layout for every tensor (*layout propagation*). Then it rewrites each operation for the part of one device, and inserts a collective where that device lacks something.
# This is *SPMD expansion*: single program, multiple data.
#
# `collectives` compiles your function anew, runs it once, and looks for operations such as `CollectiveReduceV2`
# in the graphs that ran. If the function changes variables, `collectives` puts their old values back.
# In a normal run, TensorFlow fuses several all-reduces into one where it can. `collectives` prevents that,
# so that you see what each of them is for. Pass `combine=True` to see them fused.

# %% takeaways [markdown]
# ## Takeaways
#
# - Ask of every operation what a device lacks. If it lacks terms of a sum, an all-reduce adds them up.
#   If it lacks part of a tensor, an all-gather brings it. Sometimes an all-to-all is enough.
# - Every product in the forward pass brings two more in the backward pass, and they sum over other axes.
#   So a layout that sends almost nothing in the forward pass may send the most in the backward pass.
# - A relayout changes no value, but it may gather a whole matrix.
#
# In our first product, the payload was 2,560 bytes, but the picture says that each device sends 4,480.
# {Lesson:all_reduce} shows why, and draws all the collectives side by side.

# %% score
score("communication")
