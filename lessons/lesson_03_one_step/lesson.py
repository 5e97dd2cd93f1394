# %% [markdown]
# # 3. One training step on eight devices
#
# Eight devices hold the same model, and 64 film reviews arrive.
# What does each device compute, what must the devices tell each other,
# and how do you know that the result is right?
#
# After this lesson you can
#
# - run an ordinary training step on eight devices by choosing layouts,
#   and compare it with one device;
# - write the step of a group of devices by hand, and say which sums over the devices a step needs;
# - deal with the last, smaller batch, and with reviews that come one at a time.
#
# **Time:** 45 minutes.
# **You need to know:** lesson 1, and how gradient descent trains a small network.
#
# > **Where this was run.** TensorFlow 2.21 on eight virtual CPUs, not on GPUs or TPUs.
# > DTensor is experimental: its names may change.
#
# ## A model trains on eight devices
#
# The first cell asks for eight devices.
# The second starts TensorFlow, which takes some seconds, and turns film reviews into rows of numbers.
# The third trains the model and draws the curves as it goes.

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% load-reviews
import numpy as np

from course_lib import UNSHARDED, LayoutSpec, data, data_parallel, live
from course_lib import model_parallel, models, replicated, training

tf = course_lib.start_tensorflow()

# None is the stand-in (or what COURSE_DATA says); "tfds" is the real set
SOURCE = None
reviews = data.load_imdb(SOURCE)
vectorized = data.tf_idf(reviews)
train_set, test_set = vectorized.train, vectorized.test
print(train_set.features.shape, reviews.train.labels[0])
print(reviews.train.texts[0][:60])

# %% first-run
plan = data_parallel(8)
trained = models.MLP(models.initial_values(seed=0, scheme="he"), plan)
run = training.train(trained, train_set, test_set, epochs=3, batch_size=64)
history = await live.watch(run)

# %% data-text [markdown]
# In each of these steps 64 reviews went in, and all eight devices had a part in the update that came out.
# The rest of this lesson takes one step apart:
# what goes in, what each device computes, what they tell each other.
#
# ## Reviews become rows of numbers
#
# The task is sentiment: is a film review positive (label 1) or negative (label 0)?
# `SOURCE` says where the reviews come from.
# With `None` you get a *stand-in* that the course generates itself: invented reviews,
# the same on every machine.
# What a model learns from them says nothing about real reviews.
# `"tfds"` loads the 50,000 real IMDB reviews through TensorFlow Datasets; the first time that takes longer,
# then the rows are kept on disk.
#
# The model takes 1,200 numbers for each review.
# `TextVectorization` gives a column to each of the 1,199 most frequent words,
# and one to all other words together.
# Each word of a review is weighted by its *tf-idf*: how often it occurs in the review,
# times a factor that is larger for words that few reviews contain.
# The column of all other words takes the mean of the other factors.
# Each row is then scaled to unit length, so that long and short reviews count alike
# (the section on normalisation compares both).
#
# The lesson makes the rows once, before training, and keeps all of them in memory.
# That is fine for texts that fit into one machine.
# In production a batch job can compute the vocabulary.
# The same vectoriser then runs in the training pipeline and inside the served model,
# so both make the same rows.
#
# ## A layer is a sum
#
# The model has 1,200 inputs, 48 hidden units with ReLU, a normalisation over the batch, and 2 outputs.
# For a review with the entries $x_i$ the hidden unit $j$ is
#
# $$y_j = \mathrm{relu}\Big(\sum_i x_i W_{ij} + b_j\Big)$$
#
# The letters say which layouts fit each other:
#
# - $x$ and $W$ share $i$, and $y$ lacks it: the product sums over it, it is *contracted*.
#   If both are split along $i$, both must be split over the same mesh dimension.
# - The product and the bias $b$ share $j$.
#   So we lay the bias out like the last axis of the weight:
#   each device then holds exactly the entries that it adds.
#   Its layout is the weight's without the first entry, `layout.delete([0])` in TensorFlow.
#
# Give the letters names, and say once for each variable which axes it has.
# A plan then says which mesh dimension splits which *named* axis.
# Two tensors with an axis of the same name cannot disagree.
# A plan of lesson 5 splits the hidden units; weight and bias then end in the same entry, `model`:

# %% axes
from tensorflow.experimental import dtensor

from course_lib import pack, to_layout, to_numpy, unpack

AXES = {
    "hidden_weight": ("features", "hidden"),
    "hidden_bias": ("hidden",),
    "logits_weight": ("hidden", "classes"),
    "logits_bias": ("classes",),
}
split_hidden = model_parallel(4, 2)
weight_layout = to_layout(split_hidden.layout(AXES["hidden_weight"]))
print(weight_layout.sharding_specs)
print(weight_layout.delete([0]).sharding_specs)
print(split_hidden.layout(AXES["hidden_bias"]))

# %% normalise-text [markdown]
# Between the layers stands batch normalisation in its simplest form, without variables:
# subtract the mean of each column, divide by its standard deviation.
# The mean runs over the *global* batch: in DTensor a mean over an axis is the mean of the whole tensor,
# wherever its rows lie.
#
# `make_variable` makes an ordinary variable when there is no layout: that is our one-device reference.
# The library's `models.MLP`, which you trained above,
# has the variables of the model below and computes the same in training,
# but its normalisation takes fewer exchanges between the devices
# (`course_lib/models/normalisation.py` says how).
# It also keeps moving moments, explained at the end.
#
# Three classes with the same weights and biases occur in this lesson:
#
# | class | normalisation | you meet it as |
# | --- | --- | --- |
# | `models.MLP` of the library | in fewer exchanges, with moving moments | `trained`, after the 3 epochs above; later `weighted` |
# | `MLP`, written below | in its simplest form | `eight_devices` and `one_device`, after 20 steps each; others untrained |
# | `Plain`, further down | none | several, to compare with |


# %% normalise
def normalise(hidden):
    mean, variance = tf.nn.moments(hidden, axes=[0])
    return scaled(hidden, mean, variance)


def scaled(hidden, mean, variance):
    moments, offset, scale = (mean, variance), None, None
    return tf.nn.batch_normalization(hidden, *moments, offset, scale, 1e-5)


def make_variable(value, layout=None):
    if layout is None:
        return tf.Variable(value)
    return dtensor.DVariable(pack(value, layout))


# %% mlp
class MLP(tf.Module):
    def __init__(self, values, plan=None):
        super().__init__()
        for name, axes in AXES.items():
            layout = plan and plan.layout(axes)
            setattr(self, name, make_variable(values[name], layout))

    @property
    def trained(self):
        return {name: getattr(self, name) for name in AXES}

    def __call__(self, inputs):
        return self._logits(normalise(self._hidden(inputs)))

    def _hidden(self, inputs):
        return tf.nn.relu(tf.matmul(inputs, self.hidden_weight) + self.hidden_bias)

    def _logits(self, normal):
        return tf.matmul(normal, self.logits_weight) + self.logits_bias


# %% world [markdown]
# ## First, a mesh called world
#
# Run a model of your own unsplit before you split it: on a mesh with one dimension, `world`,
# under the plan `replicated(8)`, in which every entry of every layout is `unsharded`.
#
# The initial values are drawn on the host,
# with He's standard deviation $\sqrt{2 / n}$ for units with $n$ inputs,
# and then packed under whatever plan we choose, so that every plan begins with the same numbers.

# %% predict-world [markdown]
# Eight devices form the mesh `world`, and every layout is unsharded.
# A batch of 64 reviews goes in.
# How many rows of logits does each device hold afterwards?
#
# - [x] `64`
#   Unsharded means replicated: every device has all rows, and computes the logits of all.
# - [ ] `8`
#   That would take a layout that splits the batch axis.
#   Eight devices alone split nothing: the layout here leaves every axis whole, so each device has all 64
#   rows.
# - [ ] `512`
#   So many rows are held by all devices together, each of the 64 eight times over.
#   One device holds 64.
# - [ ] `1`
#   A mesh dimension splits only what a layout gives to it, and here it is given nothing.
# - otherwise
#   Ask of the layout [unsharded, unsharded] what a device holds: the whole tensor, 64 rows.

# %% reveal-world
values = models.initial_values(seed=0, scheme="he")
everywhere = replicated(8)
probe = MLP(values, everywhere)
copied = everywhere.layout(("batch", "features"))
logits = probe(pack(train_set.features[:64], copied))
reveal("03-world", unpack(logits)[0].shape[0])

# %% [markdown]
# Inputs, variables and result are whole on every device, so each one computes all of it,
# and nothing is finished sooner.
# This is a test: if something fails here, the fault is not in the splitting.
#
# ## Split the batch
#
# Data parallelism splits one axis, the batch.
# The mesh has one dimension, which we call `batch` too.
# No variable has a batch axis, so every device holds the whole model.
#
# `pack` cuts the batch on the host, as your `split` in lesson 1 did,
# and sends each device its 8 rows and nothing else.
# Copying the batch to all devices first would send eight times as much.
# The labels have one axis, and it is the batch.
#
# TensorFlow has an input pipeline for this, `dtensor.DTensorDataset`:
# it wraps a `tf.data` dataset and yields batches that are already laid out.
# Its iterator cannot be saved in a checkpoint (TensorFlow 2.21; tried in `tests/tf/test_lesson_03.py`).
# The course packs arrays by hand: it takes a line, and you see what is sent to whom.

# %% packing
rows, row_labels = train_set.features[:64], train_set.labels[:64]
rows_layout = plan.layout(("batch", "features"))
labels_layout = plan.layout(("batch",))
inputs, labels = pack(rows, rows_layout), pack(row_labels, labels_layout)
print(unpack(inputs)[0].shape, unpack(labels)[0].shape)

tensors = {
    "x": ("batch", "features"),
    "W1": ("features", "hidden"),
    "W2": ("hidden", "classes"),
}
sizes = {"batch": 64, "features": 1200, "hidden": 48, "classes": 2}
plan.of(tensors, sizes)

# %% layouts-text [markdown]
# **Exercise 1.** Now the inputs are images.
# The mesh is in the cell below.
# A batch has the shape (64, 28, 28), and its labels (64,).
# The step computes a loss for each image, (64,), a gradient for the first weight, (784, 100),
# and the mean loss, a single number.
# Write the layout of each as a `LayoutSpec`.

# %% exercise-layouts
mesh, image_layouts = plan.mesh, {}
# solution begin
image_layouts["images"] = LayoutSpec(["batch", UNSHARDED, UNSHARDED], mesh)
image_layouts["labels"] = LayoutSpec(["batch"], mesh)
image_layouts["losses"] = LayoutSpec(["batch"], mesh)
image_layouts["gradient"] = LayoutSpec([UNSHARDED, UNSHARDED], mesh)
image_layouts["mean_loss"] = LayoutSpec([], mesh)
# solution end

# %%
check("03-layouts", image_layouts)

# %% step [markdown]
# ## A training step without distribution code
#
# This is an ordinary training step: summed cross entropy, gradients, plain gradient descent.
# Nothing in it mentions devices.
# TensorFlow propagates the layouts of the batch and of the variables through the function,
# and adds whatever communication they need.
#
# The losses are summed, since sums over parts of a batch can simply be added.
# The learning rate is for that sum: with 64 rows, 0.01 on the sum is 0.64 on the mean.
# Mind the order: all gradients first, then all assignments.
#
# A distributed step can go wrong in silence.
# If each device took the mean over its own 8 rows and these means were added,
# it would still learn, but each step would be an eighth of what the sum gives.
# So compare before you trust it:
# the second cell from here runs 20 steps on eight devices and on one,
# with the same initial values and the same batches.
# A mistake in `train_step` that one device makes too stays hidden in this comparison.
# To find those, `tests/tf/test_lesson_03.py` compares with a step written in NumPy.


# %% train-step
cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits


@tf.function
def example_losses(model, inputs, labels):
    return cross_entropy(labels, model(inputs))


@tf.function
def loss_and_gradients(model, inputs, labels):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(example_losses(model, inputs, labels))
    return loss, tape.gradient(loss, model.trained)


@tf.function
def train_step(model, inputs, labels, learning_rate):
    loss, gradients = loss_and_gradients(model, inputs, labels)
    for name, variable in model.trained.items():
        variable.assign_sub(learning_rate * gradients[name])
    return loss / inputs.shape[0]


# %% compare-one-device
eight_devices, one_device = MLP(values, plan), MLP(values)
pairs = []
for start in range(0, 20 * 64, 64):
    x = train_set.features[start : start + 64]
    y = train_set.labels[start : start + 64]
    x_split, y_split = pack(x, rows_layout), pack(y, labels_layout)
    split_loss = train_step(eight_devices, x_split, y_split, 1e-2)
    x_whole, y_whole = tf.constant(x), tf.constant(y)
    whole_loss = train_step(one_device, x_whole, y_whole, 1e-2)
    pairs.append((float(split_loss), float(whole_loss)))
print(np.round([pairs[0], pairs[9], pairs[19]], 2))
print(f"largest difference: {np.ptp(pairs, axis=1).max():.4f}")

# %% predict-copies [markdown]
# In each of the 20 steps a device got 8 reviews that no other device got.
# How far apart are the eight copies of the hidden weight now, at most?
#
# - [x] `0.0` 0: equal to the last bit
#   They began equal and were all changed by the same numbers, so they are equal to the last bit.
# - [ ] `1e-07` about 1e-7: equal up to rounding
#   Rounding would separate them if each device added the eight parts in its own order.
#   All of them get the same total, and subtract the same numbers.
# - [ ] `0.01` about 0.01: each learnt from other reviews
#   They would drift apart if each device applied the gradient of its own reviews.
#   The next section shows what it applies instead.
# - [ ] `0.0001` about 1e-4: too little to show in the losses above
#   Differences that grow from step to step would take updates that differ.
#   All devices subtract the same total from the same values.

# %% reveal-copies
copies = np.stack(unpack(eight_devices.hidden_weight))
reveal("03-copies", float(np.ptp(copies, axis=0).max()))

# %% [markdown]
# All devices made the same updates, and the losses are those of one device with all 64 reviews.
# No device had more than 8 of these.
# So they must have told each other something.
#
# ## Build the all-reduce
#
# What can a device compute of the gradient from its own 8 rows?
# Begin with a simpler model, `Plain`.
# Its loss is a sum over the rows, and each term depends on its own row only.
# So the gradients of the parts add up to that of the batch.
# Here one device computes the gradients of the eight parts of the batch, one after the other.


# %% partial-gradients
class Plain(MLP):
    def __call__(self, inputs):
        return self._logits(self._hidden(inputs))


parts = list(zip(np.split(rows, 8), np.split(row_labels, 8)))


def partial_gradients(model):
    return [loss_and_gradients(model, *part)[1] for part in parts]


partial = partial_gradients(Plain(values))
print(np.round([gradients["logits_bias"][1] for gradients in partial], 2))

# %% summed-text [markdown]
# These are eight parts of one number, the derivative with respect to the second bias of the last layer.
# What one device contributes to such a sum is its *partial sum*.
# To add the parts and give every device the total is an *all-reduce*.
#
# The next cell adds the parts of all 57,746 derivatives, and compares with the gradient
# that DTensor gives for the whole batch on eight devices.
# The difference is measured as a length, relative to that of the gradient.
# The picture shows the derivatives with respect to the two biases of the last layer:
# your parts, their sum, and what the eight devices really hold.
# Each number there is rounded, so the parts as printed may miss the printed sum in the last digit.


# %% summed
def total(partial):
    return {name: sum(each[name].numpy() for each in partial) for name in AXES}


def by_dtensor(model):
    return loss_and_gradients(model, inputs, labels)[1]


def difference(ours, theirs):
    ours = np.concatenate([np.ravel(ours[name]) for name in AXES])
    theirs = [np.ravel(to_numpy(theirs[name])) for name in AXES]
    theirs = np.concatenate(theirs)
    return np.linalg.norm(ours - theirs) / np.linalg.norm(theirs)


of_plain = by_dtensor(Plain(values, plan))
print(f"relative difference: {difference(total(partial), of_plain):.3f}")
to_biases = [gradients["logits_bias"] for gradients in partial]
received = unpack(of_plain["logits_bias"])
plan.mesh.reduction("batch", to_biases, received, digits=2)

# %% all-reduce-text [markdown]
# TensorFlow inserts one such all-reduce into `train_step` of `Plain`
# (counted in `tests/tf/test_step.py`, for a smaller model of the same form).
# Each device holds all variables and updates them itself, so each needs the total.
#
# **Exercise 2.** The gradients of an MLP from 784 inputs to 700 hidden units to 10 classes, with biases,
# are all-reduced in every step, in float32.
# How many bytes of gradients does each of eight devices bring into the sum with a batch of 128?
# And with a batch of 1,024?

# %% exercise-gradient-bytes
# solution begin
bytes_with_128 = 4 * (784 * 700 + 700 + 700 * 10 + 10)
bytes_with_1024 = bytes_with_128
# solution end

# %% check-gradient-bytes [markdown]
# `(bytes_with_128, bytes_with_1024)`
#
# - [x] `(2226040, 2226040)`
# - [ ] `(2226040, 17808320)`
#   A gradient has the shape of its variable.
#   That does not depend on the batch.
# - [ ] `(278255, 278255)`
#   The variables are not split, so neither are their gradients.
# - [ ] `(556510, 556510)`
#   That is the number of elements.
#   How many bytes does a float32 take?
# - [ ] `(2223200, 2223200)`
#   Those are the two weights.
#   The biases have gradients too.
# - otherwise
#   Count the elements of each weight and each bias.
#   An element takes 4 bytes.

# %% predict-coupled [markdown]
# Now with batch normalisation: the gradients of the eight parts are again computed one by one on one device,
# and added.
# By how much does the sum differ from the gradient that DTensor gives for the batch on eight devices,
# compared with the length of that gradient?
#
# - [ ] `0.0` by less than a thousandth of its length
#   So it was without normalisation, where the loss is a sum over rows that know nothing of each other.
#   The moments of a batch depend on all its rows.
# - [ ] `0.01` by a thousandth to a tenth of its length
#   That would take moments of 8 rows that are nearly those of 64.
#   But a mean of 8 rows is off that of all 64 by about a third of the deviation.
# - [x] `0.77` ± 0.7 by a tenth to twice its length
#   So large because each part is normalised for itself: a mean of 8 rows is off that of all 64 by about a
#   third of the deviation, in every hidden unit, and so all values change.
# - [ ] `9.0` by more than twice its length
#   So far it would be off if each part divided its loss by its own 8 rows and the whole batch by 64: by about
#   nine times its length.
#   Here both sum the losses.

# %% reveal-coupled
expected = by_dtensor(MLP(values, plan))
by_parts = total(partial_gradients(MLP(values)))
reveal("03-coupled", difference(by_parts, expected))

# %% [markdown]
# The mean and the variance of each hidden unit run over all 64 rows.
# Normalising a part by the moments of its own 8 rows is a different computation.
# (Keras's `BatchNormalization` under `MirroredStrategy` makes this one,
# unless it is built with `synchronized=True`.)
# So the devices must tell each other two more things.
# The first is the sums from which the moments are computed; without them no device can compute its loss.
# The second, on the way back, is how the loss changes with these sums.
#
# Let $s = \sum_p s_p$ be the sums of the hidden units and of their squares, $s_p$ what part $p$ adds to them,
# and $L_p$ the loss of its rows, computed with $s$.
# By the chain rule the gradient with respect to a weight $w$ is
#
# $$\begin{aligned}
# \frac{dL}{dw} &= \sum_p \left( \frac{\partial L_p}{\partial w} + g \cdot \frac{ds_p}{dw} \right)
# \\ g &= \sum_p \frac{\partial L_p}{\partial s}
# \end{aligned}$$
#
# There are three sums over the parts: $s$, then $g$, then the gradient.
#
# The next two cells compute them, part by part on one device.
# The first tape gives what a part adds to $g$; `tape.watch(s)` makes it follow $s$, which is no variable.
# The second adds $g \cdot s_p$ to the loss of the part:
# the gradient of this sum is what stands in the brackets.
# Once $g$ is replaced by zeros, to see what is lost without it.


# %% one-part
def part_sums(model, inputs):
    hidden = model._hidden(inputs)
    return tf.reduce_sum(tf.stack([hidden, hidden**2]), axis=1)


def part_loss(model, inputs, labels, s):
    mean, squares = tf.unstack(s / 64)  # the whole batch has 64 rows
    # This variance is short, but loses digits where the mean is large.
    normal = scaled(model._hidden(inputs), mean, squares - mean**2)
    logits = model._logits(normal)
    return tf.reduce_sum(cross_entropy(labels, logits))


model = MLP(values)
s = sum(part_sums(model, x) for x, _y in parts)


# %% three-sums
to_sums, without_g, with_g = [], [], []
for x, y in parts:
    with tf.GradientTape() as tape:
        tape.watch(s)
        loss = part_loss(model, x, y, s)
    to_sums.append(tape.gradient(loss, s))
g = sum(to_sums)
for factor, gradients in ((0 * g, without_g), (g, with_g)):
    for x, y in parts:
        with tf.GradientTape() as tape:
            linear = tf.reduce_sum(factor * part_sums(model, x))
            loss = part_loss(model, x, y, s) + linear
        gradients.append(tape.gradient(loss, model.trained))
print(f"without g: {difference(total(without_g), expected):.2f}")
print(f"with g:    {difference(total(with_g), expected):.3f}")

# %% step-order
from lessons.lesson_03_one_step.step import mlp_step

mlp_step(plan)  # an order in which the sums of `train_step` can happen

# %% three-sums-why [markdown]
# Moments of the whole batch are not enough: without $g$ the gradient is still far off.
# With all three sums the parts give the gradient of the whole batch.
#
# The code above has three places where the devices must wait for each other;
# in `train_step` nobody wrote any.
# TensorFlow finds these places from the layouts: the batch axis is split,
# and `tf.nn.moments`, the loss and the gradients sum over it.
# Each such sum becomes a partial sum on every device with an all-reduce behind it.
#
# The picture shows these for the model with normalisation:
# nine sums in four rounds, as TensorFlow 2.21 combines them
# (counted in `tests/tf/test_step.py` too).
# With the mean and variance, a hidden unit $y$ becomes $n = \mathrm{scale} \cdot y + \mathrm{shift}$,
# which the second layer multiplies by its weight;
# the gradients of scale and shift do the work of your $g$.
# Your two sums, mean and variance, scale and shift:
# from each of these pairs you can compute the other two.
# The rounds are not your three: `tf.nn.moments` needs the mean before it can sum the variance.
# No device needs the total loss before the end, so it is summed with the gradients.
# Without normalisation there are five sums in one round.
#
# **Exercise 3.** Write the step of a whole group of devices by hand, for a model without normalisation.
# `replicas` is a list of models with equal values, one for each device,
# and `parts` a list of pairs `(inputs, labels)`, also one for each device;
# parts may have different numbers of rows.
# After your step every replica holds what one device would hold
# after `train_step` on all the rows together.
# Each replica must compute with its own part, and may see no other.
# Use `loss_and_gradients`, and return `replicas`.


# %% exercise-step
def distributed_step(replicas, parts, learning_rate):
    # solution begin
    partial = []
    for replica, part in zip(replicas, parts):
        partial.append(loss_and_gradients(replica, *part)[1])
    for name in AXES:
        all_reduced = sum(gradients[name] for gradients in partial)
        for replica in replicas:
            replica.trained[name].assign_sub(learning_rate * all_reduced)
    return replicas
    # solution end


# %%
check("03-step", distributed_step)

# %% last-batch [markdown]
# ## The last, smaller batch
#
# The number of reviews is rarely a multiple of the batch size.
# The 8,100 reviews here leave 36.
# We take 20 of them.
# 20 rows cannot be split evenly among 8 devices, nor can 36.
# Three ways are common: **drop** them,
# **pad** them, which is to fill the batch up with other rows, here zeros,
# or pad them and give each row a **weight**, 1 for a review and 0 for padding.
#
# First see what happens if you do nothing.

# %% too-few-rows tags=["error"]
rest, rest_labels = train_set.features[-20:], train_set.labels[-20:]
try:
    pack(rest, rows_layout)
except course_lib.CourseError as error:
    print(error)

# %% predict-padding [markdown]
# The 20 reviews are padded to 64 rows, and `eight_devices` gives 64 losses.
# Which mean equals, to 1 %, the mean loss of a batch of just these 20 on one device?
#
# - [ ] `all 64` the mean of all 64 losses
#   This counts 44 rows that are no reviews.
# - [ ] `20 by 64` the sum of the 20 losses divided by 64
#   The padding has changed the 20 losses, and on top of that their sum is divided by 64.
# - [ ] `20 by 20` the sum of the 20 losses divided by 20
#   Each review counts once, as it should.
#   But its loss is another one: the padding took part in the mean and variance by which every row is
#   normalised.
# - [x] `{'all 64': 0.595, '20 by 64': 0.148, '20 by 20': 0.474, 'right': 0.428}` ± 0.02 none of them
#   Even the 20 losses themselves have changed: normalisation saw 44 rows of zeros.

# %% reveal-padding
x_padded = pack(np.pad(rest, ((0, 44), (0, 0))), rows_layout)
y_padded = pack(np.pad(rest_labels, (0, 44)), labels_layout)
losses = to_numpy(example_losses(eight_devices, x_padded, y_padded))
weights = np.array([1.0] * 20 + [0.0] * 44, "float32")
right = np.mean(example_losses(one_device, rest, rest_labels))
means = {
    "all 64": losses.mean(),
    "20 by 64": np.dot(weights, losses) / 64,
    "20 by 20": np.dot(weights, losses) / 20,
    "right": right,
}
means = {name: round(float(mean), 3) for name, mean in means.items()}
reveal("03-padding", means)

# %% [markdown]
# Counting the padding is wrong, and so is dividing the loss of 20 reviews by 64.
# `20 by 20` counts each review once, and is still off:
# the rows of zeros take part in the *normalisation*, so they change the outputs of the real rows.
# As long as the moments are those of the batch, the weights must go into them too.
# `models.MLP` takes them there.
# `weighted` is such a model, and gets the values that `eight_devices` has learnt:

# %% weighted-moments
learnt = eight_devices.trained
now = {**values, **{name: to_numpy(learnt[name]) for name in learnt}}
weighted = models.MLP(now, plan)
row_weights = pack(weights, labels_layout)
logits, _updates = weighted.train_logits(x_padded, row_weights)
weighted_losses = cross_entropy(to_numpy(y_padded), to_numpy(logits))
print(f"weighted moments: {np.dot(weights, weighted_losses) / 20:.3f}")
print(f"right:            {right:.3f}")

# %% mean-text [markdown]
# In training the course drops the rest: the reviews are shuffled anew for each epoch,
# so other reviews are left out each time.
# In evaluation each review must count exactly once:
# there it fills the last batch up with repeated reviews and gives these the weight 0.
#
# **Exercise 4.** Write `mean_loss`: from the losses of a padded batch and their weights (1 for a review,
# 0 for padding), the mean loss of the reviews.
# A batch that is all padding has the mean 0.


# %% exercise-mean
def mean_loss(losses, weights):
    return np.dot(losses, weights) / max(np.sum(weights), 1)  # solution


# %%
check("03-mean-loss", mean_loss)

# %% without-text [markdown]
# ## What normalisation buys
#
# Normalisation takes four all-reduces in place of one, and lets padding change a review's loss.
# Why not leave it out?
# The next cell trains both models for one epoch, on one device since that is enough to see it:
# on our rows of unit length, and on raw rows of tf-idf.
# A model that gives both classes the chance 1/2 has the loss $\ln 2 \approx 0.69$.

# %% train-without
raw_set = data.tf_idf(reviews, unit_length=False).train
lengths = np.linalg.norm(raw_set.features, axis=1)
print(f"shortest raw row: {lengths.min():.0f}")
for name, examples in (("unit length", train_set), ("raw", raw_set)):
    for kind in (MLP, Plain):
        learner, losses = kind(values), []
        for at in range(0, 126 * 64, 64):
            x = examples.features[at : at + 64]
            y = examples.labels[at : at + 64]
            losses.append(float(train_step(learner, x, y, 1e-2)))
        end = "below 0.6" if np.mean(losses[-20:]) < 0.6 else "above 0.6"
        first = f"first {losses[0]:.2f} {losses[1]:.2f}"
        print(f"{name:12} {kind.__name__:6} {first}   last 20: {end}")

# %% evaluation [markdown]
# At this learning rate one epoch is enough with normalisation, and not without.
# On raw rows without it the first update throws the loss far up.
# After six epochs `Plain` is below 0.55 too;
# on raw rows it needs a smaller rate for that, 0.0003 (measured in `tests/tf/test_lesson_03.py`).
# Adam, at 0.003 on the mean loss, trains `Plain` in one epoch, on both kinds of rows:
# it ends below 0.4 (measured there too).
#
# So normalisation is a choice: here it lets plain gradient descent learn in one epoch,
# at the price of three more all-reduces in every step, and of rows that see each other.
# The normalisation of the library's `models.MLP` costs two (counted in `tests/tf/test_normalisation.py`).
#
# ## One review at a time
#
# In use, reviews come one at a time.
# The next cells ask `eight_devices` about the first three test reviews, each in a batch of its own
# (replicated, since one row does not divide among 8 devices).

# %% predict-alone [markdown]
# Three different reviews, each alone in its batch.
# How many different pairs of logits come back?
#
# - [ ] `3`
#   So it should be.
#   But with one row the mean of a column is that row's value, and the difference of the two is zero whatever
#   the review says.
# - [ ] `2`
#   There are two classes, but logits are not rounded to them.
#   All three pairs are equal.
# - [x] `1`
#   Every review becomes zeros, and only the bias of the last layer is left.
# - [ ] `0` 0: the logits are not numbers
#   The variance of one value is 0, and dividing by its root would give no numbers; a small constant is added
#   to it to prevent that.

# %% reveal-alone
one_row = LayoutSpec.replicated(plan.mesh, 2)
answers = []
for row in np.split(test_set.features[:3], 3):
    answers.append(to_numpy(eight_devices(pack(row, one_row)))[0])
reveal("03-alone", len(np.unique(np.round(answers, 4), axis=0)))

# %% [markdown]
# A single value minus its own mean is zero, in every column.
# All that is left is the bias of the last layer, the same for every review.
# Accuracy measured on mixed batches of 64 hides this:
# the next cell prints it, and below it the accuracy of the one answer that every review gets alone.
#
# The usual cure is to keep *moving moments*:
# running averages of the means and variances of the training batches,
# in two more variables, replicated like the biases.
# `models.MLP` has these two variables in addition.
# `evaluate_logits` of `trained`, the model of the first cells, answers with them;
# lesson 4 shows how they are updated.
# So the course normalises with the moments of the batch in training and with moving moments in evaluation.
# The last line compares its answers to one review, once among 64 and once alone.


# %% moving-moments
def hits(logits, labels):
    return np.argmax(logits, axis=-1) == labels


of_batches = []
for at in range(0, len(test_set.labels), 64):  # the last batch is smaller
    x = test_set.features[at : at + 64]
    y = test_set.labels[at : at + 64]
    of_batches.extend(hits(one_device(x), y))
print(f"in batches of 64:   {np.mean(of_batches):.2f}")
print(f"each review alone:  {np.mean(hits(answers[0], test_set.labels)):.2f}")
batch, single = test_set.features[:64], test_set.features[:1]
among = to_numpy(trained.evaluate_logits(pack(batch, rows_layout)))
alone = to_numpy(trained.evaluate_logits(pack(single, one_row)))
print(f"largest difference: {np.abs(among[0] - alone[0]).max():.4f}")

# %% takeaways [markdown]
# ## Takeaways
#
# - Data parallelism is a choice of layouts: split the batch, replicate the variables.
#   The training step stays as it is, and TensorFlow adds the all-reduces.
# - Gradients computed on parts alone may be added only where no row sees another.
#   With batch normalisation the devices must also combine the moments on the way forward
#   and their gradients on the way back.
# - Trust no distributed step that you have not compared with one device,
#   and in evaluation count every example once.
#
# Lesson 4 makes a run of these steps: one that you can watch, stop and resume, with moving moments.
# It also answers whether eight devices are any faster.

# %% score
score("03")
