# %% [markdown]
# # Inside a transformer block
#
# Take a transformer with 80 blocks and a width of 8,192, about the size of [Llama 3 70B](https://arxiv.org/abs/2407.21783).
# In bfloat16, two bytes per element, the weights of these blocks take 129 GB. A GPU often has only 80 GB of memory.
# So you split every block over eight GPUs, and each holds 16 GB of weights. (Gradients and optimizer state come on top; you split them further, as in {lesson:zero_and_fsdp}.)
#
# Eight such groups train together, 64 GPUs in all. In every step, each group gets one text of 8,192 tokens.
# And in every step, each GPU sends 75 GB over the links of its group. That is more than four times the weights that it holds.
#
# No line of your program says so, and no error tells you.
# Where do these 75 GB come from? And could you have known about them before you rented a single GPU?
#
# You could, with a pencil.
# One question runs through this lesson: *what do devices exchange in a step of a transformer?*
# A single rule answers it for every product in the network, forward and backward.
# You know the rule for two matrices from {lesson:communication}. Here you extend it to any product, write attention yourself, and then predict every collective of a training step, to the byte.
#
# **After this lesson you can**
#
# - say what devices exchange for any product of a network, for its result and for its gradients;
# - split a transformer block over devices, and explain why the heads' own work needs no exchange;
# - work out how many bytes a step of a large transformer exchanges, before you run it.
#
# **Time:** 60 minutes, without the part called *Optional*.
# **You need to know:** tensor parallelism ({lesson:splitting_the_model}) and the all-reduce of a ring ({lesson:all_reduce}).

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% picture-text [markdown]
# ## A block, split in two
#
# Our own block is small enough to run here.
# Its input is a batch of 32 texts with 10 tokens each. Every token is a row of 32 numbers, its **features**.
#
# A block has two **sublayers**:
#
# - **Attention** lets each token collect something from the tokens of its text.
#   Four **heads** do this in parallel, each in its own way.
# - The **feed-forward network**, or MLP, works on each token by itself.
#   Its first dense layer expands the 32 features to 128 hidden units, and its second one brings them back to 32.
#
# Each sublayer adds its output to its input: the residual connection of {lesson:communication}.
#
# Our eight devices form a grid, `batch` 4 × `model` 2.
# Along `batch`, four pairs of devices share the texts, eight texts per pair. Along `model`, the two devices of a pair share the block. This is what the first pair, devices 0 and 1, hold of it:

# %% picture
from lessons.scale.transformer_block.picture import block_picture

block_picture()

# %% picture-read [markdown]
# Follow the colors from top to bottom. Blue is the first two heads, orange the other two.
# Green and yellow are the two halves of the hidden units. Whatever is gray is replicated: both devices hold all of it.
#
# You know the feed-forward network already. `up` is split by its columns and `down` by its rows, as in {lesson:splitting_the_model}.
# Now look at attention. It is the same picture!
# `query`, `key` and `value` make the heads, just as `up` makes the hidden units.
# `out` consumes the heads, just as `down` consumes the hidden units.
#
# So the block is split in two places, between the heads and between the hidden units,
# and each device holds half of every large matrix. What do the two devices have to exchange?
#
# ## One product
#
# Let's start with a single product, `x` times `up`.
# Most tensors in a transformer have three or four axes. `tf.einsum` multiplies such tensors.
# For that, each axis gets an index letter, or *subscript*. Here are ours:

# %% letters
sizes = {
    "b": 32,  # texts in a batch
    "s": 10,  # tokens in a text
    "t": 10,  # the tokens again, as those being attended to
    "v": 12,  # different tokens: the vocabulary
    "d": 32,  # features
    "h": 4,  # heads
    "k": 8,  # size of a head
    "f": 128,  # hidden units
}
splits = {"b": "batch", "h": "model", "f": "model"}

# %% letters-read [markdown]
# Take `bsd,df->bsf`. It multiplies `x`, with the axes `[b, s, d]`, by `up`, with the axes `[d, f]`.
# The result has the axes `[b, s, f]`: the letter `d` is gone, because the product sums over the features.
#
# `splits` is our plan. The mesh dimension `batch` splits the texts, and `model` splits the heads and the hidden units.
# No other axis is split. Let's make two random tensors with these layouts:

# %% random-tensor
import numpy as np

from course_lib import collectives, shard

tf = course_lib.start_tensorflow()
from tensorflow.experimental import dtensor

WHOLE = dtensor.UNSHARDED
mesh = dtensor.create_mesh(
    [("batch", 4), ("model", 2)], device_type="CPU"
)
rng = np.random.default_rng(0)


def random_tensor(letters):
    shape = []
    entries = []
    for axis in letters:
        shape.append(sizes[axis])
        entries.append(splits.get(axis, WHOLE))
    array = rng.normal(size=shape).astype("float32")
    return shard(array, dtensor.Layout(entries, mesh))


x = random_tensor("bsd")
up = random_tensor("df")

# %% product-text [markdown]
# Training computes three tensors for every product. The forward pass computes its result.
# In the backward pass, the next layer hands back the gradient of that result, from which we compute the gradients of the two factors.
#
# Each of these gradients is a product, too: the gradient of `x`, for example, is the gradient of the result times `up`.
# So `tf.einsum` can compute all three tensors. We have no next layer yet, so a random tensor stands in for what it hands back.
# Which collectives does each of the three need?

# %% three-products
gradient = random_tensor("bsf")
for equation, first, second in [
    ("bsd,df->bsf", x, up),  # the result
    ("bsf,df->bsd", gradient, up),  # the gradient of x
    ("bsd,bsf->df", x, gradient),  # the gradient of up
]:
    print(equation)
    for each in collectives(tf.einsum, equation, first, second):
        print("  ", each)

# %% three-products-read [markdown]
# Each gradient needs an all-reduce. The result needs none. To see why, look at the letters that disappear at the arrow.
#
# - The result loses `d`: it sums over the features. A device has all features of its tokens, so it can finish the sum alone.
# - The gradient of `x` loses `f`: it sums over the hidden units. But a device has only half of them.
# - The gradient of `up` loses `b` and `s`: it sums over the texts and their tokens. But a device has only a quarter of the texts.
#
# The bytes are those of the tensor that is added up, at four bytes an element.
# A device holds 8 × 10 × 32 elements of the gradient of `x`, or 10,240 bytes,
# and 32 × 64 elements of the gradient of `up`, or 8,192 bytes.
#
# What happens if a device has only some of the terms of a sum? Let's look at `down`.
# It takes the hidden units back to features: `bsf,fd->bsd`. This time it is the *result* that sums over `f`:

# %% partial-sums
from lessons.scale.transformer_block.picture import (
    partial_sums_picture,
)

partial_sums_picture()

# %% partial-sums-read [markdown]
# Device 0 multiplies its half of the hidden units by its half of `down`.
# It gets a tensor of the right shape, but half the terms of every element are missing.
# That is a partial sum ({lesson:communication}). Device 1 has the other half of the terms, and an all-reduce adds up the two partial sums.
#
# So TensorFlow should insert an all-reduce for the result. Let's see.
# From here on, a `GradientTape` computes the two gradients, as in a training step:

# %% down
def product_and_gradients(equation, first, second, gradient):
    with tf.GradientTape() as tape:
        tape.watch([first, second])
        result = tf.einsum(equation, first, second)
    # `gradient` is what the next layer would hand back
    gradients = tape.gradient(
        result, [first, second], output_gradients=gradient
    )
    return result, gradients


hidden = random_tensor("bsf")
down = random_tensor("fd")
gradient = random_tensor("bsd")
for each in collectives(
    product_and_gradients, "bsf,fd->bsd", hidden, down, gradient
):
    print(each)

# %% down-read [markdown]
# There it is: the 10,240 bytes are the result, 8 × 10 × 32 elements. The 8,192 bytes are the gradient of `down`.
# The gradient of the hidden units needs no all-reduce, because it is `bsd,fd->bsf`, which sums over `d`.
#
# So it doesn't matter whether a tensor is a result or a gradient. One rule covers all three:
#
# > A product involves three tensors: its result, and the gradients of its two factors.
# > Each of them is a sum over the letters that it lacks.
# > If such a letter is split, each device has only a partial sum,
# > and an all-reduce over the mesh dimension that splits the letter must complete it.
#
# In this picture of `bsd,df->bsf`, each letter joins the two tensors that have it:

# %% rule-picture
from lessons.scale.transformer_block.picture import rule_picture

rule_picture()

# %% rule-read [markdown]
# Opposite each tensor are the letters that it lacks.
#
# - The gradient of `x` lacks `f`. `model` splits `f`, so this gradient is all-reduced over `model`.
# - The gradient of `up` lacks `b` and `s`. `batch` splits `b`, so this gradient is all-reduced over `batch`.
# - The result lacks `d`. Nothing splits `d`, so the result needs no all-reduce.
#
# Results are all-reduced in the forward pass, gradients in the backward pass. In either case, the payload is the part of the tensor that one device holds.
#
# **Exercise 1.** Write `reduced_over(equation, splits)` for any product of two factors.
# `equation` is the text that `tf.einsum` gets, and `splits` a dictionary such as ours.
# Return a list of three sets. The first has the mesh dimensions over which the gradient of the first factor must be all-reduced.
# The second set is for the gradient of the second factor, and the third for the result.
# For `"bsd,df->bsf"` and our plan, the list is `[{"model"}, {"batch"}, set()]`.

# %% exercise-added
def reduced_over(equation, splits):
    factors, result = equation.split("->")
    first, second = factors.split(",")
    # solution begin
    three_sets = []
    for tensor in [first, second, result]:
        dims = set()
        for axis in first + second + result:
            if axis not in tensor and axis in splits:
                dims.add(splits[axis])
        three_sets.append(dims)
    return three_sets
    # solution end


# %%
check("transformer_block-added", reduced_over)

# %% note-rule [markdown]
# Does the rule hold for every operation?
#
# It holds for all that you can write with such letters.
# Adding a bias is `bsf,f->bsf`. The gradient of the bias lacks `b` and `s`, so it is all-reduced over `batch`.
# A mean over the batch loses `b`, so it needs an all-reduce over `batch`, too.
# A softmax sums over `t`, which our plan doesn't split.
#
# The rule assumes a consistent plan:
# no mesh dimension splits two letters of one product, and a letter is split in the same way wherever it occurs.
# If the layouts clash, TensorFlow must add all-gathers ({lesson:splitting_the_model}).
#
# Our plan doesn't split `s`. If it did, TensorFlow would exchange more than the rule says, because `s` and `t` are the same tokens.
# Runs on very long texts do split the tokens, with an attention made for that: **ring attention**, a form of **context parallelism**.

# %% attention-text [markdown]
# ## Attention, head by head
#
# Now for attention. Here every token attends to every token of its text. Surely that takes some communication?
#
# Let's watch a single head on a text of four tokens.
# It makes three short vectors for each token, from the token's features:
#
# - The **query** says what the token is looking for.
# - The **key** says what the token has to offer.
# - The **value** is what the token gives.

# %% attention-picture
from lessons.scale.transformer_block.attention_picture import (
    attention_picture,
)

attention_picture()

# %% attention-read [markdown]
# Follow *drank*. Its query fits the key of *cat* best: the dot product is 6.
# So *cat* gets most of the weight, 64 %, and *drank* receives mostly what *cat* gives.
# Every other row of the table works in the same way.
#
# In letters, a row of the table is a token `s`, a column is a token `t`, and each vector has `k` numbers.
# For each token `s`, do three things:
#
# 1. Compare its query with the key of every token `t`.
#    The dot product, divided by $\sqrt{k}$, is the **score** of `t`. (In the picture, $\sqrt{k}$ is 2.)
# 2. Turn the scores into weights, by a softmax over all `t`. The weights add up to one.
# 3. Add up all values, each times its weight. That is what the token receives.
#
# That makes five products. Keys and values are computed alike, so they share a row:
#
# | product | letters |
# | --- | --- |
# | queries | `bsd,dhk->bhsk` |
# | keys and values | `btd,dhk->bhtk` |
# | scores | `bhsk,bhtk->bhst` |
# | what each token receives | `bhst,bhtk->bhsk` |
#
# Apply your rule to the last two rows.
# Only `b` and `h` are split, and *both appear in all three tensors* of each product.
# So no tensor is a sum over texts or over heads, neither forward nor backward. There is nothing to complete.
#
# No head needs another head. Devices that divide the heads among them have nothing to exchange here,
# however long the text is.
#
# **Exercise 2.** Write `attend(x, query, key, value)`, with `tf.einsum` and `tf.nn.softmax`. It takes the three steps above.
# `x` has the axes `[b, s, d]`, and each of the three weights has `[d, h, k]`.
# Return what each token receives, `[b, h, s, k]`.
# Every token attends to all tokens of its text, itself included.
#
# The check uses other sizes than ours. It runs your function on 4 × 2 devices, compares it with NumPy,
# and looks for collectives. There should be none.

# %% exercise-attend
def attend(x, query, key, value):
    # solution begin
    queries = tf.einsum("bsd,dhk->bhsk", x, query)
    keys = tf.einsum("btd,dhk->bhtk", x, key)
    values = tf.einsum("btd,dhk->bhtk", x, value)
    scores = tf.einsum("bhsk,bhtk->bhst", queries, keys)
    scores = scores / query.shape[-1] ** 0.5
    weights = tf.nn.softmax(scores, axis=-1)
    return tf.einsum("bhst,bhtk->bhsk", weights, values)
    # solution end


# %%
check("transformer_block-attend", attend)

# %% note-causal [markdown]
# Models that write text hide the future
#
# In GPT and Llama, a token attends only to itself and the tokens before it.
# A **causal mask** does that: it is added to the scores, and makes those of later tokens hugely negative.
# Each device adds it by itself. With such a mask, our block ran the very same collectives.

# %% block-text [markdown]
# ## What do the two devices exchange?
#
# Here is the whole block. It calls your `attend` (or ours, until the check accepts yours).
# Each sublayer first normalizes its input with **RMSNorm**: it divides the features of each token by their root mean square,
# and multiplies them by a learned gain.
# Between the dense layers comes `gelu`, a smooth relu that transformers often use.

# %% block
from course_lib import yours_or_ours

attention = yours_or_ours("transformer_block-attend", attend)


def rms_norm(x, gain):
    squares = tf.reduce_mean(x * x, axis=-1, keepdims=True)
    return gain * x * tf.math.rsqrt(squares + 1e-6)


def block(weights, x):
    # Attention
    normed = rms_norm(x, weights["gain_1"])
    query, key = weights["query"], weights["key"]
    received = attention(normed, query, key, weights["value"])
    x = x + tf.einsum("bhsk,hkd->bsd", received, weights["out"])

    # Feed-forward network
    normed = rms_norm(x, weights["gain_2"])
    hidden = tf.einsum("bsd,df->bsf", normed, weights["up"])
    hidden = tf.nn.gelu(hidden + weights["up_bias"])
    return x + tf.einsum("bsf,fd->bsd", hidden, weights["down"])


# %% axes-text [markdown]
# No line says what is split. As in {lesson:splitting_the_model}, the layouts follow from the names of the axes, here our letters. The next cell is folded.
# It lists the letters of each weight, and has a function that runs the block forward and backward.

# %% axes tags=["known"]
axes = {
    "tokens": "bs",
    "targets": "bs",
    "embedding": "vd",
    "position": "sd",
    "gain_1": "d",
    "query": "dhk",
    "key": "dhk",
    "value": "dhk",
    "out": "hkd",
    "gain_2": "d",
    "up": "df",
    "up_bias": "f",
    "down": "fd",
    "unembedding": "dv",
}


def block_and_gradients(weights, x, gradient):
    with tf.GradientTape() as tape:
        tape.watch([weights, x])
        result = block(weights, x)
    gradients = tape.gradient(
        result, [weights, x], output_gradients=gradient
    )
    return result, gradients


# %% count-given [markdown]
# How many all-reduces do devices 0 and 1 need between them in a training step?
# Go through the products of the block with your rule, forward and backward.

# %% predict-model [markdown]
# In a transformer block, the mesh dimension `model` splits the heads of `query`, `key`, `value` and `out`,
# and the hidden units of `up` and `down`.
# How many all-reduces over `model` does TensorFlow run for one such block in a training step, forward and backward?
#
# - [ ] `2`
#   Those are the two of the forward pass: `out` sums over the heads, and `down` over the hidden units.
#   In the backward pass, the gradients of what goes into the two sublayers sum over them, too.
# - [x] `4`
#   Two in the forward pass: `out` sums over the heads, and `down` over the hidden units.
#   And two in the backward pass: the gradient of what goes into attention sums over the heads,
#   and the gradient of what goes into the feed-forward network sums over the hidden units.
# - [ ] `6`
#   This counts an all-reduce for each of the gradients that come back through `query`, `key` and `value`.
#   But all three multiply the same tensor. On each device, TensorFlow first adds up their three contributions to its gradient, and one all-reduce completes the sum.
# - [ ] `12`
#   That is two for each of the six weights. But take `query`, for example: in the forward pass it sums over the features, and these are not split.

# %% reveal-model
names = ["gain_1", "query", "key", "value", "out"]
names += ["gain_2", "up", "up_bias", "down"]
weights = {}
for name in names:
    weights[name] = random_tensor(axes[name])

x = random_tensor("bsd")
gradient = random_tensor("bsd")
over_model = 0
for each in collectives(block_and_gradients, weights, x, gradient):
    if "model" in each.mesh_dims:
        over_model += 1
reveal("transformer_block-model", over_model)

# %% exchanges-text [markdown]
# Where in the block are these four all-reduces?

# %% exchanges
block_picture(exchanges=True)

# %% exchanges-read [markdown]
# Each sublayer has two all-reduces. The one at its output completes the result in the forward pass.
# The one at its input completes the gradient of the normalized input, in the backward pass.
#
# Did you expect three all-reduces at the input of attention? `query`, `key` and `value` each contribute to the gradient of the *same* tensor,
# and each contribution is a partial sum.
# TensorFlow adds up the three on each device first, so one all-reduce completes them all.
#
# Each of the four carries 10,240 bytes: all the features of all the tokens that the pair is working on.
# {Lesson:whole_game} announced these four, and the paper on [Megatron-LM](https://arxiv.org/abs/1909.08053) counts the same.
#
# ## Every byte of a step
#
# These four are not all. Along `batch`, each pair has its own texts, so the pairs exchange something, too. You needn't run a step to find out what: your rule can tell you.
#
# Take one product first, the queries:

# %% by-hand
rule = yours_or_ours("transformer_block-added", reduced_over)
of_input, of_query, of_queries = rule("bsd,dhk->bhsk", splits)
print("gradient of the input, over", sorted(of_input))
print("gradient of query, over    ", sorted(of_query))
print("queries, over              ", sorted(of_queries))

# `query` is [d, h, k], and a device holds half of the heads
elements = sizes["d"] * (sizes["h"] // 2) * sizes["k"]
print("query:", 4 * elements, "bytes on a device")

# %% by-hand-read [markdown]
# The gradient of the input is all-reduced over `model`, one of the four that you have just met.
# The gradient of `query` is all-reduced over `batch`, and its payload is 2,048 bytes. The queries themselves need no all-reduce.
#
# Now do the same for the whole network. For that, we list all its products, plus two additions (marked with a comment). Each row names the two factors and the result, and then gives the letters.
# The last three rows are outside of the block: `embedding` and `position` turn each token and its position in the text into features,
# and `unembedding` makes a logit for each of the 12 tokens of the vocabulary.

# %% operations
ATTENTION = [
    ("x", "gain_1", "normed_1", "bsd,d->bsd"),
    ("normed_1", "query", "queries", "bsd,dhk->bhsk"),
    ("normed_1", "key", "keys", "btd,dhk->bhtk"),
    ("normed_1", "value", "values", "btd,dhk->bhtk"),
    ("queries", "keys", "scores", "bhsk,bhtk->bhst"),
    ("scores", "values", "received", "bhst,bhtk->bhsk"),
    ("received", "out", "attention output", "bhsk,hkd->bsd"),
]
MLP = [
    ("x", "gain_2", "normed_2", "bsd,d->bsd"),
    ("normed_2", "up", "hidden", "bsd,df->bsf"),
    ("hidden", "up_bias", "biased", "bsf,f->bsf"),  # added
    ("biased", "down", "MLP output", "bsf,fd->bsd"),
]
BLOCK = ATTENTION + MLP
AROUND = [
    ("tokens", "embedding", "embedded", "bsv,vd->bsd"),
    ("embedded", "position", "x", "bsd,sd->bsd"),  # added
    ("x", "unembedding", "logits", "bsd,dv->bsv"),
]

# %% elements-text [markdown]
# The rule holds for the two additions as well:
# `up_bias` is added for every text and every token, so its gradient sums over `b` and `s`.
#
# The rule says over which mesh dimensions a tensor is all-reduced. For the payload, we also need to know how much of the tensor a device holds.
# So multiply the sizes of its axes, and divide by the mesh dimensions that split them:


# %% elements
def elements_held(letters, sizes, mesh_sizes):
    elements = 1
    for axis in letters:
        elements *= sizes[axis]
        if axis in splits:
            elements //= mesh_sizes[splits[axis]]
    return elements


mesh_sizes = {"batch": 4, "model": 2}
print(4 * elements_held("dhk", sizes, mesh_sizes))

# %% all-reduces-text [markdown]
# There are the 2,048 bytes of `query` again. Now go through the rows. Each of them has three tensors that may need an all-reduce.
#
# Three products read `normed_1`, but its gradient is all-reduced only once. So we store each payload in a dictionary under its tensor and mesh dimension. The second and third product find the entry already there, and overwrite it with the same number.


# %% all-reduces
def all_reduces(operations, sizes, mesh_sizes):
    payloads = {}
    for first, second, result, equation in operations:
        names = [f"gradient of {first}", f"gradient of {second}"]
        names.append(result)
        tensors = equation.replace("->", ",").split(",")
        reduced = rule(equation, splits)
        for name, tensor, dims in zip(names, tensors, reduced):
            for dim in dims:
                elements = elements_held(tensor, sizes, mesh_sizes)
                payloads[name, dim] = elements
    return payloads


# %% predicted-text [markdown]
# One sum isn't in our rows. The loss is a mean over the texts, and these are split, so the loss, a single number, is all-reduced over `batch`. Nothing else in the network needs a collective. Softmax and the means of RMSNorm sum only over letters that aren't split; `gelu` and the residual connections don't sum at all.
#
# Here is everything that we expect:

# %% predicted
payloads = all_reduces(BLOCK + AROUND, sizes, mesh_sizes)
payloads["loss", "batch"] = 1

for (name, dim), elements in payloads.items():
    print(f"{name:23} over {dim} {4 * elements:7,} bytes")

# %% predicted-read [markdown]
# Seventeen all-reduces. You know the four over `model`. All the others run over `batch`:
# one for the gradient of each of the twelve weights, and one for the loss. That is data parallelism, as it has always been.
# But where `model` splits a weight, each device holds half of its gradient, so the payload is half as large.
#
# Is the list right? To find out, we need the whole network:

# %% network
def logits_of(weights, tokens):
    # A token's row of the embedding, written as a product
    embedding = weights["embedding"]
    one_hot = tf.one_hot(tokens, embedding.shape[0])
    x = tf.einsum("bsv,vd->bsd", one_hot, embedding)
    x = x + weights["position"]
    x = block(weights, x)
    return tf.einsum("bsd,dv->bsv", x, weights["unembedding"])


# %% layouts-text [markdown]
# The rest is folded: the `make_layouts` of {lesson:splitting_the_model}, a model of variables, and a training step.
# Plain gradient descent will do here. The weights begin as small random numbers.

# %% layouts tags=["known"]
def make_layouts(axes, splits, mesh):
    layouts = {}
    for tensor, names in axes.items():
        entries = []
        for name in names:
            entries.append(splits.get(name, WHOLE))
        layouts[tensor] = dtensor.Layout(entries, mesh)
    return layouts


def place(array, layout):
    if layout is None:
        return tf.constant(array)
    return shard(array, layout)


def variable(array, layout):
    if layout is None:
        return tf.Variable(array)
    return dtensor.DVariable(shard(array, layout))


# %% step tags=["known"]
class Model(tf.Module):
    def __init__(self, layouts):
        super().__init__()
        self.weights = {}
        for name, value in values.items():
            self.weights[name] = variable(value, layouts.get(name))


@tf.function
def train_step(forward, model, tokens, targets, learning_rate):
    with tf.GradientTape() as tape:
        logits = forward(model.weights, tokens)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            targets, logits
        )
        loss = tf.reduce_mean(losses)
    gradients = tape.gradient(loss, model.weights)
    for name, gradient in gradients.items():
        model.weights[name].assign_sub(learning_rate * gradient)
    return loss


# %% values tags=["known"]
rng = np.random.default_rng(0)
values = {}
for name, letters in axes.items():
    shape = [sizes[axis] for axis in letters]
    if name in ["gain_1", "gain_2"]:
        values[name] = np.ones(shape, "float32")
    elif name not in ["tokens", "targets"]:
        values[name] = rng.normal(0, 0.15, shape).astype("float32")

layouts = make_layouts(axes, splits, mesh)
model = Model(layouts)

# %% observed-text [markdown]
# Now run one step and watch its collectives. Any tokens will do:

# %% observed
tokens = rng.integers(0, 12, (32, 10)).astype("int32")
tokens = place(tokens, layouts["tokens"])
targets = tokens  # any will do
rate = np.float32(0.3)
observed = collectives(
    train_step, logits_of, model, tokens, targets, rate
)
print(len(observed))

# %% compare-text [markdown]
# Seventeen, as predicted. But are they the same seventeen? To find out, put your list into the format that `collectives` uses:

# %% compare
predicted = []
for (name, dim), elements in payloads.items():
    predicted.append(f"all-reduce over {dim}, {4 * elements} bytes")

seen = [str(each) for each in observed]
print(sorted(seen) == sorted(predicted))

# %% observed-read [markdown]
# Not one is missing, and not one is off by a byte.
# So there is nothing mysterious about the compiler that inserts these collectives. It asks the same question as you: does this sum run over a split axis?
#
# When does each of them run? Press *Forward*, and they light up one by one:

# %% lanes
from lessons.scale.transformer_block.block_explorer import (
    BlockExplorer,
)

BlockExplorer()

# %% note-alike [markdown]
# Which tensor does an observed collective belong to?
#
# The observed list doesn't say. It has the mesh dimension and the bytes of each collective, and these are what we compared.
# The gradients of `query`, `key`, `value` and `out`, for example, all look alike.
# There are four such lines in our list, and there were four in the observed one.

# %% lanes-read [markdown]
# The short bands run over `model` and join the two devices of a pair, two in the forward pass and two in the backward pass. In the forward pass, both devices have to wait for the sum, because the next operation needs all of it. In the backward pass, a device could spend the wait computing the gradient of a weight, as Megatron-LM does.
#
# The long bands run over `batch`. Most are gradients of weights, which nobody needs before the update.
#
# The explorer also adds up what a device sends: 85,126 bytes in the whole step.
# Each all-reduce over `model` makes it send 10,240 bytes, so the four make 40,960. That is nearly half of the total.
# And our model is tiny.
#
# ## The 75 GB
#
# Now for the network of the opening. We count its 80 blocks alone, because they hold nearly all of its weights.
# The 64 GPUs form a mesh of `batch` 8 × `model` 8. Each group of eight GPUs along `model` works on one of the eight texts.
# Your rule stays the same. Only the sizes of the axes and of the mesh change, and in bfloat16 an element takes two bytes:

# %% large
large = {
    "b": 8,
    "s": 8192,
    "t": 8192,
    "d": 8192,
    "h": 64,
    "k": 128,
    "f": 32768,
}
in_a_block = all_reduces(BLOCK, large, {"batch": 8, "model": 8})

BLOCKS = 80
BYTES = 2  # of an element
in_all = {"model": 0, "batch": 0}
for (name, dim), elements in in_a_block.items():
    in_all[dim] += BLOCKS * BYTES * elements

for dim in ["model", "batch"]:
    print(f"over {dim}: {in_all[dim] / 1e9:.1f} GB")

# %% sent-text [markdown]
# These are the payloads. What does a GPU send? In a ring of eight, it is 2 · 7/8 times the payload ({lesson:all_reduce}):

# %% sent-picture
from lessons.scale.transformer_block.picture import sent_picture

sent = {}
for dim in ["model", "batch"]:
    sent[dim] = 2 * 7 / 8 * in_all[dim]

sent_picture(sent)

# %% large-read [markdown]
# There are the 75 GB. Each block runs its four all-reduces over `model`, so 80 blocks run 320.
# Each of these carries 8,192 tokens with 8,192 features, which is 134 MB. Together they carry 42.9 GB, and a GPU sends 1.75 times as much.
#
# The gradients of the weights that a GPU holds take 16.1 GB. To add them up over `batch`, it sends 28 GB.
# That is less than half of 75, and it is less urgent: nothing needs these gradients before the end of the step.
#
# Nor do they grow with the batch. Suppose each group works through four texts in a step, one after the other, and exchanges only the sum of their gradients. Over `batch`, a GPU then still sends 28 GB. Over `model`, it sends four times 75 GB, which is 300.
#
# So tensor parallelism needs the fast links inside a node: it exchanges activations in the middle of each pass, and the next layer can't begin without them.
#
# Would more devices along `model` bring the 75 GB down?

# %% predict-wider [markdown]
# Eight devices along `model` share a transformer block with 64 heads.
# They work on one text of 8,192 tokens, with 8,192 features in bfloat16.
# Each all-reduce over `model` carries 134 MB.
# Now sixteen devices along `model` share it, so each holds half as much of the block.
# How many MB does each all-reduce over `model` carry?
#
# - [ ] `67` 67, half as many
#   It would be so for a tensor that `model` splits. But the four tensors that are added up over `model` have the letters `b`, `s` and `d`, and `model` splits none of these.
# - [x] `134` 134, as before
#   The four tensors that are added up over `model` have the letters `b`, `s` and `d`, and `model` splits none of these.
#   So every device has a partial sum for all the features of the whole text, however many devices there are.
# - [ ] `268` 268, twice as many
#   Twice as many partial sums are added up, but each of them has the same size.

# %% reveal-wider
wider = all_reduces(BLOCK, large, {"batch": 8, "model": 16})
reveal(
    "transformer_block-wider",
    round(2 * wider["attention output", "model"] / 1e6),
)

# %% wider-sent
# A ring of sixteen sends 2 * 15 / 16 times the payload
print(f"{2 * 15 / 16 * in_all['model'] / 1e9:.1f} GB")

# %% wider-read [markdown]
# So sixteen devices don't bring the 75 GB down. In fact each sends slightly more, 80.5 GB, because the payload is the same and the ring is longer.
#
# That is the trouble with tensor parallelism. With twice as many devices, each holds and computes half as much, but what each has to exchange doesn't shrink.

# %% note-heads [markdown]
# How many devices can share the heads?
#
# This split leaves every head in one piece. Our block has four heads, so eight devices can't share them. DTensor says so:
#
# `'tf.DTensorLayout' op requires dimension 1 to be divisible by sharding specified in DTensorLayout, but got dimension size=4 is not divisible by number of shards in layout for this dimension=8.`
#
# You could split `k` as well. But the scores sum over `k`, so by your rule they would need an all-reduce.
# Usually you stop earlier, where the node and its fast links end.

# %% note-blocks [markdown]
# Is your block different?
#
# Apply your rule to it. Four examples:
#
# - **SwiGLU.** Today's feed-forward networks often have a third matrix: `silu(x @ gate) * (x @ up)`, and then `down`.
#   `gate` is split as `up` is, and reads the same tensor, so a step still needs four all-reduces over `model`.
# - **Grouped-query attention.** In Llama 3 70B, the 64 heads share 8 keys and 8 values. So `key` and `value` are smaller, but the four all-reduces carry as much as before.
#   Beyond eight devices along `model`, keys and values have to be copied.
# - **The vocabulary.** `model` can split `v`, too. Then the embedding's result sums over `v`, and so do
#   the softmax of the loss and the gradient of the unembedding's input.
# - **Sequence parallelism.** Between the sublayers, `model` splits the tokens, so a device keeps fewer activations
#   ([Korthikanti and others](https://arxiv.org/abs/2205.05198)).
#   Each all-reduce becomes a reduce-scatter and an all-gather, which together send the same bytes.
#   But a device keeps only its own part of what it gathers in the forward pass. So it gathers that once more in the backward pass.

# %% fsdp-heading [markdown]
# ## Optional: the same model on other plans
#
# The question of this lesson is answered. If you have another ten minutes, let's add FSDP to tensor parallelism ({lesson:zero_and_fsdp}),
# and then move a training run from plan to plan ({lesson:any_mesh}).
#
# `model` splits the weights in two. But the devices along `batch` still hold the same half, four times over.
# FSDP splits each weight over `batch` as well, and gathers it before it is used.
# The function that you wrote in {lesson:zero_and_fsdp} finds an axis that `batch` can still split. It is folded below:

# %% split-over-batch tags=["known"]
def split_over_batch(entries, shape, devices):
    entries = list(entries)
    for axis, entry in enumerate(entries):
        if entry == WHOLE and shape[axis] % devices == 0:
            entries[axis] = "batch"
            return entries
    return entries


# %% fsdp-up
before = layouts["up"].sharding_specs
print("before:", before)
after = split_over_batch(before, values["up"].shape, 4)
print("after: ", after)

# %% fsdp-text [markdown]
# Now `batch` splits the rows of `up`, and `model` its columns. Each of the eight devices holds a different eighth of `up`.
#
# Do that for every weight. To use a weight, gather it over `batch` alone: that brings back the layout of tensor parallelism.

# %% fsdp
fsdp_layouts = dict(layouts)
for name, value in values.items():
    entries = layouts[name].sharding_specs
    entries = split_over_batch(entries, value.shape, 4)
    fsdp_layouts[name] = dtensor.Layout(entries, mesh)


def fsdp_logits(weights, tokens):
    gathered = {}
    for name, weight in weights.items():
        gathered[name] = dtensor.relayout(weight, layouts[name])
    return logits_of(gathered, tokens)


# %% held-text [markdown]
# What does device 0 hold now, and what does a step exchange?


# %% held
def bytes_on_device_0(model):
    held = 0
    for weight in model.weights.values():
        held += dtensor.unpack(weight.read_value())[0].numpy().nbytes
    return held


def count_over(exchanges, dim):
    count = 0
    for each in exchanges:
        if dim in each.mesh_dims:
            count += 1
    return count


fsdp_model = Model(fsdp_layouts)
fsdp_observed = collectives(
    train_step, fsdp_logits, fsdp_model, tokens, targets, rate
)


def report(title, model, exchanges):
    print(title)
    print(f"  device 0 holds {bytes_on_device_0(model):,} bytes")
    print("  over model:", count_over(exchanges, "model"))
    print("  over batch:", count_over(exchanges, "batch"))


report("tensor parallel", model, observed)
report("with FSDP", fsdp_model, fsdp_observed)

# %% held-read [markdown]
# With FSDP, device 0 holds about a quarter of what it held before.
# The price is 11 more collectives over `batch`: eleven of the twelve weights have to be gathered.
# (The twelfth is `up_bias`: `model` already splits its only axis, and only one mesh dimension can split an axis.)
# Over `model`, nothing has changed.
#
# Our program gathers each weight *once*, because it keeps the gathered weights until the backward pass.
# FSDP usually frees them after the forward pass, to save memory, and gathers them a second time ({lesson:zero_and_fsdp}).
#
# What does that mean for the network of the opening?
# Each of its 64 GPUs would hold 2 GB of weights instead of 16.
# An all-reduce in a ring is two passes, a reduce-scatter and an all-gather. So the 28 GB over `batch` are two passes of 14 GB.
# FSDP makes three passes, two all-gathers of the weights and a reduce-scatter of their gradients. That makes 42 GB. The 75 GB over `model` remain.
#
# Do both plans compute the same? To find out, we need something that the network can learn.
# At every position of a text, it must predict the token *before* it. At the first position, it must predict the last token of the text.

# %% texts
def texts(step):
    rng = np.random.default_rng(step)
    tokens = rng.integers(0, 12, (32, 10)).astype("int32")
    return tokens, np.roll(tokens, 1, axis=1)


tokens, targets = texts(0)
print("a text:     ", tokens[0])
print("its targets:", targets[0])

# %% train-text [markdown]
# The feed-forward network sees one token at a time, so it could only guess. Attention can look back.
#
# One run goes through three plans: 20 steps on 4 × 2, then 20 on 2 × 4, then 20 on 4 × 2 with FSDP.
# Each plan goes on from the checkpoint of the one before. The training loop is folded, and so is the `newest` of {lesson:a_run}:

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

# %% train tags=["known"]
def train(forward, layouts, folder, steps):
    model = Model(layouts)
    done = tf.Variable(0, dtype=tf.int64)
    checkpoint = tf.train.Checkpoint(model=model, step=done)
    manager = tf.train.CheckpointManager(
        checkpoint, folder, max_to_keep=3
    )
    path = newest(folder)
    if path is not None:
        status = checkpoint.restore(path)
        status.assert_existing_objects_matched()

    losses = []
    for step in range(int(done), int(done) + steps):
        tokens, targets = texts(step)
        tokens = place(tokens, layouts.get("tokens"))
        targets = place(targets, layouts.get("targets"))
        rate = np.float32(0.3)
        loss = train_step(forward, model, tokens, targets, rate)
        losses.append(float(loss))
        done.assign(step + 1)
    manager.save()
    return losses

# %% three-plans
import tempfile

tall_mesh = dtensor.create_mesh(
    [("batch", 2), ("model", 4)], device_type="CPU"
)
tall = make_layouts(axes, splits, tall_mesh)

folder = tempfile.mkdtemp()
losses = train(logits_of, layouts, folder, 20)
losses += train(logits_of, tall, folder, 20)
losses += train(fsdp_logits, fsdp_layouts, folder, 20)

one_device = train(logits_of, {}, tempfile.mkdtemp(), 60)

# %% run-picture
from lessons.scale.transformer_block.picture import run_picture

plans = {0: "4 × 2", 20: "2 × 4", 40: "4 × 2, FSDP"}
run_picture(losses, one_device, plans)

# %% same
from course_lib import about

print("guessing:", round(np.log(12), 2))
print("step  1:", about(losses[0], 2.9, 3.1))
print("step 20:", about(losses[19], 1.5, 1.9))
print("step 40:", about(losses[39], 0.01, 0.04))
print("step 60:", about(losses[59], 0.003, 0.02))

differences = np.abs(np.array(losses) - np.array(one_device))
print("largest difference", about(max(differences), 0, 1e-4))

# %% same-read [markdown]
# A network that gives all 12 tokens the same probability has a loss of ln 12, or 2.48.
# Ours starts above that, at 3.0: random weights prefer some tokens. By step 40 it has learned to look back, and the loss is about 0.02.
#
# You can't see in the curve where the plan changed. Over all 60 steps, no loss differs from that of one device by more than rounding.

# %% note-relu [markdown]
# A comparison that fails though nothing is wrong
#
# With `relu` instead of `gelu`, we saw a loss that differed by 0.011. The layouts were right all the same:
# *one* device, run twice, differed from itself by as much.
#
# In step 19, one of the 40,960 values of the hidden units came out at 0.000000015. Rounding decided whether that was above zero,
# and TensorFlow doesn't always round alike. With `relu`, the sign decides whether a unit's gradient counts.
# So from there on the two runs had different weights.
#
# If a comparison fails, first compare one device with itself.

# %% code-heading [markdown]
# The plan is a mesh and a dictionary of names, so you can take it to a different library.
# Here is the JAX code that uses the dictionary. (Ask for `"PyTorch"` if you prefer.)

# %% code
from course_lib import MeshSpec, Plan, code_of

grid = MeshSpec([("batch", 4), ("model", 2)])
program = code_of(Plan("tensor parallel", grid, splits), "JAX")
print(program[program.index("def layout") :])

# %% code-read [markdown]
# `distributed(weight, "d", "h", "k")` places a weight. JAX's compiler inserts the collectives.

# %% note-jax [markdown]
# Does JAX run the same 17 collectives?
#
# No. Your rule tells you which sums must be completed. How they are grouped into collectives is up to the compiler.
# We ported the block to JAX 0.10, on CPUs. There, a step had 5 collectives, because everything over `batch` went into one.
# And the other four carried six payloads over `model`, because `query`, `key` and `value` each had one.

# %% plain-heading [markdown]
# ## The plain program
#
# [`transformer_block.py`](../plain/transformer_block.py) is the network and its run through the three plans,
# with TensorFlow and NumPy alone.
#
# Now write one for a block of your own, say with SwiGLU, the third matrix of the note above.
# Predict its collectives, count them with the plain program of {lesson:communication}, and compare its losses with one device.
# If losses differ or become NaN, look at one device first. A learning rate that is too large looks like a wrong layout.

# %% takeaways [markdown]
# ## Takeaways
#
# - The result of a product and the gradients of its two factors are sums over the letters that they lack. If such a letter is split, an all-reduce must complete the sum.
# - A transformer block that is split by its heads and its hidden units needs four all-reduces over `model`: two forward, two backward.
#   Each carries the features of all tokens, however many devices share the block.
# - No head needs another head, so the heads' own work, from the scores to what each token receives, exchanges nothing.
#
# Puzzles 8 to 12 on the page *Puzzles* split such a transformer.
#
# 320 all-reduces of 134 MB each: how long does that take? {Lesson:how_long} works it out.

# %% score
score("transformer_block")
