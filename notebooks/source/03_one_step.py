# %% [markdown]
# # 3. One training step on eight devices
#
# Eight devices hold the same model, and 64 film reviews arrive.
# What does each device compute, what must the devices tell each other,
# and how do you know that the result is right?
#
# After this lesson you can
#
# - write a training step that carries no distribution code,
#   and run it on eight devices by choosing layouts;
# - write by hand the sums over the devices that such a step needs, and show that they give the same gradient;
# - say what the last, smaller batch and batch normalisation do to your numbers, and deal with both.
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

course_lib.setup(language=LANGUAGE, devices=8)

# %% load-reviews
import numpy as np

from course_lib import UNSHARDED, LayoutSpec, data, models, training
from course_lib.specs.plan import data_parallel, model_parallel, replicated
from course_lib.watch import live

tf = course_lib.start_tensorflow()

SOURCE = None  # None is the stand-in (or what COURSE_DATA says); "tfds" is the real set
reviews = data.load_imdb(SOURCE)
vectorized = data.tf_idf(reviews)
train_set, test_set = vectorized.train, vectorized.test
print(train_set.features.shape, reviews.train.labels[0], reviews.train.texts[0][:60])

# %% first-run
plan = data_parallel(8)
trained = models.MLP(models.initial_values(seed=0, scheme="he"), plan)
history = await live.watch(training.train(trained, train_set, test_set, epochs=3, batch_size=64))

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
# The model takes 1200 numbers for each review.
# `TextVectorization` gives a column to each of the 1199 most frequent words,
# and one to all other words together.
# Each word of a review is weighted by its *tf-idf*: how often it occurs in the review,
# times a factor that is larger for words that few reviews contain.
# Each row is then scaled to unit length, so that long and short reviews count alike
# (this lesson shows a part of what that changes, lesson 4 the rest).
#
# The lesson makes the rows once, before training, and keeps all of them in memory.
# That is fine for texts that fit into one machine.
# In production a batch job usually computes the vocabulary,
# and the vectoriser runs in the input pipeline or inside the served model,
# so that training and serving cannot differ.
#
# ## A layer is a sum
#
# The model has 1200 inputs, 48 hidden units with ReLU, a normalisation over the batch, and 2 outputs.
# For a review with the entries $x_i$ the hidden unit $j$ is
#
# $$y_j = \mathrm{relu}\Big(\sum_i x_i W_{ij} + b_j\Big)$$
#
# The letters say which layouts fit each other:
#
# - $x$ and $W$ share $i$, and $y$ lacks it: the product sums over it, it is *contracted*.
#   If both are split along $i$, both must be split over the same mesh dimension.
# - The product and the bias $b$ share $j$.
#   So we lay the bias out like the last axis of the weight, and nothing has to be sent:
#   its layout is the weight's without the first entry, `layout.delete([0])` in TensorFlow.
#
# Give the letters names, and say once for each variable which axes it has.
# A plan then says which mesh dimension splits which *named* axis.
# Two tensors with an axis of the same name cannot disagree.
# To see an entry that is not `unsharded`, here is a plan of lesson 5, which splits the hidden units:

# %% axes
from tensorflow.experimental import dtensor

from course_lib.dtensor import pack, to_layout, to_numpy, unpack

AXES = {
    "hidden_weight": ("features", "hidden"),
    "hidden_bias": ("hidden",),
    "logits_weight": ("hidden", "classes"),
    "logits_bias": ("classes",),
}
weight_layout = to_layout(model_parallel(4, 2).layout(AXES["hidden_weight"]))
print(weight_layout.sharding_specs, weight_layout.delete([0]).sharding_specs)
print(model_parallel(4, 2).layout(AXES["hidden_bias"]))

# %% normalise-text [markdown]
# Between the layers stands batch normalisation in its simplest form, without variables:
# subtract the mean of each column, divide by its standard deviation.
# The mean runs over the *global* batch: in DTensor a mean over an axis is the mean of the whole tensor,
# wherever its rows lie.
# (Under `MirroredStrategy`, Keras's batch normalisation by default uses each replica's own rows.)
#
# `make_variable` makes an ordinary variable when there is no layout: that is our one-device reference.
# The library's `models.MLP`, which you trained above,
# has the variables of the model below and computes the same.
# At the end of this lesson you will need what else it has.


# %% normalise
def normalise(hidden):
    mean, variance = tf.nn.moments(hidden, axes=[0])
    return tf.nn.batch_normalization(hidden, mean, variance, None, None, 1e-5)


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
# Before you split anything, see that the model runs at all: on a mesh with one dimension, `world`,
# under the plan `replicated(8)`, in which every entry of every layout is `unsharded`.
#
# The initial values are drawn on the host,
# with He's standard deviation $\sqrt{2 / n}$ for units with $n$ inputs,
# and then packed under whatever plan we choose, so that every plan begins with the same numbers.

# %% predict-world
from course_lib.exercises import check, predict, reveal, score

predict("03-world")

# %% reveal-world
values = models.initial_values(seed=0, scheme="he")
everywhere = replicated(8)
probe = MLP(values, everywhere)
logits = probe(pack(train_set.features[:64], everywhere.layout(("batch", "features"))))
reveal("03-world", unpack(logits)[0].shape[0])

# %% [markdown]
# Every device does the work of one device, and nothing is finished sooner.
# The mesh is useful for one thing: if something fails here, the fault is not in the splitting.
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
# Where it stands in the data is then a state of that pipeline:
# to resume at an exact step, save that too.
# The course packs arrays by hand: it takes a line, and you see what is sent to whom.

# %% packing
rows, row_labels = train_set.features[:64], train_set.labels[:64]
inputs = pack(rows, plan.layout(("batch", "features")))
labels = pack(row_labels, plan.layout(("batch",)))
print(unpack(inputs)[0].shape, unpack(labels)[0].shape)

tensors = {"x": ("batch", "features"), "W1": ("features", "hidden"), "W2": ("hidden", "classes")}
plan.of(tensors, {"batch": 64, "features": 1200, "hidden": 48, "classes": 2})

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
# Such a step can go wrong in silence, so compare before you trust it:
# the second cell from here runs 20 steps on eight devices and on one,
# with the same initial values and the same batches.


# %% train-step
@tf.function
def example_losses(model, inputs, labels):
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=model(inputs))


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
    x, y = train_set.features[start : start + 64], train_set.labels[start : start + 64]
    x_split, y_split = pack(x, plan.layout(("batch", "features"))), pack(y, plan.layout(("batch",)))
    split_loss = train_step(eight_devices, x_split, y_split, 1e-2)
    whole_loss = train_step(one_device, tf.constant(x), tf.constant(y), 1e-2)
    pairs.append((float(split_loss), float(whole_loss)))
print(np.round([pairs[0], pairs[9], pairs[19]], 2))
print(f"largest difference: {np.ptp(pairs, axis=1).max():.4f}")

# %% predict-copies
predict("03-copies")

# %% reveal-copies
copies = np.stack(unpack(eight_devices.hidden_weight))
reveal("03-copies", float(np.ptp(copies, axis=0).max()))

# %% [markdown]
# All devices made the same update, although each had other reviews.
# So they must have told each other something.
#
# ## Build the all-reduce
#
# What can a device compute of the gradient from its own 8 rows?
# Begin with a model without normalisation, in which no row sees another.
# Its loss is a sum over the rows, so the gradient is one too.
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


# %% summed
def total(partial):
    return {name: sum(gradients[name].numpy() for gradients in partial) for name in AXES}


def by_dtensor(model):
    return loss_and_gradients(model, inputs, labels)[1]


def difference(ours, theirs):
    ours = np.concatenate([np.ravel(ours[name]) for name in AXES])
    theirs = np.concatenate([np.ravel(to_numpy(theirs[name])) for name in AXES])
    return np.linalg.norm(ours - theirs) / np.linalg.norm(theirs)


expected = by_dtensor(Plain(values, plan))
print(f"relative difference: {difference(total(partial), expected):.3f}")
to_biases = [gradients["logits_bias"] for gradients in partial]
plan.mesh.reduction("batch", to_biases, unpack(expected["logits_bias"]), digits=2)

# %% all-reduce-text [markdown]
# This is what TensorFlow does in `train_step` of a model without normalisation.
# The variables are replicated, so every device must make the whole update, so every device needs the total.
#
# **Exercise 2.** The gradients of an MLP from 784 inputs to 700 hidden units to 10 classes, with biases,
# are all-reduced in every step, in float32.
# How many bytes of gradients does each of eight devices bring into the sum with a batch of 128?
# And with a batch of 1,024?

# %% exercise-bytes
# solution begin
bytes_with_128 = 4 * (784 * 700 + 700 + 700 * 10 + 10)
bytes_with_1024 = bytes_with_128
# solution end

# %%
check("03-gradient-bytes", (bytes_with_128, bytes_with_1024))

# %% predict-coupled
predict("03-coupled")

# %% reveal-coupled
expected = by_dtensor(MLP(values, plan))
reveal("03-coupled", difference(total(partial_gradients(MLP(values))), expected))

# %% [markdown]
# The mean and the variance of each hidden unit run over all 64 rows.
# Normalising a part by the moments of its own 8 rows is a different computation.
# So the devices must tell each other more:
# the sums from which the moments are computed, before any device can compute its loss,
# and, on the way back, how the loss changes with these sums.
#
# Let $s = \sum_p s_p$ be the sums of the hidden units and of their squares, $s_p$ what part $p$ adds to them,
# and $L_p$ the loss of its rows, computed with $s$.
# By the chain rule the gradient with respect to a weight $w$ is
#
# $$\frac{dL}{dw} = \sum_p \left( \frac{\partial L_p}{\partial w} + g \cdot \frac{ds_p}{dw} \right)
# ,\qquad g = \sum_p \frac{\partial L_p}{\partial s}$$
#
# There are three sums over the parts: $s$, then $g$, then the gradient.


# %% one-part
def part_sums(model, inputs):
    hidden = model._hidden(inputs)
    return tf.stack([tf.reduce_sum(hidden, axis=0), tf.reduce_sum(hidden**2, axis=0)])


def part_loss(model, inputs, labels, s):
    mean, mean_of_squares = tf.unstack(s / 64)  # the whole batch has 64 rows
    variance = mean_of_squares - mean**2  # short, but loses digits where the mean is large
    normal = tf.nn.batch_normalization(model._hidden(inputs), mean, variance, None, None, 1e-5)
    logits = model._logits(normal)
    return tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


# %% three-sums
model, to_sums, without_g, with_g = MLP(values), [], [], []
s = sum(part_sums(model, x) for x, _y in parts)
for x, y in parts:
    with tf.GradientTape() as tape:
        tape.watch(s)
        loss = part_loss(model, x, y, s)
    to_sums.append(tape.gradient(loss, s))
g = sum(to_sums)
for factor, gradients in ((0 * g, without_g), (g, with_g)):
    for x, y in parts:
        with tf.GradientTape() as tape:
            loss = part_loss(model, x, y, s) + tf.reduce_sum(factor * part_sums(model, x))
        gradients.append(tape.gradient(loss, model.trained))
print(f"without g: {difference(total(without_g), expected):.2f}")
print(f"with g:    {difference(total(with_g), expected):.3f}")

# %% step-order
from course_lib.specs.step import mlp_step

mlp_step(plan)  # what TensorFlow makes of `train_step`

# %% three-sums-why [markdown]
# Moments of the whole batch are not enough: without $g$ the gradient is still far off.
# With all three sums the parts give the gradient of the whole batch.
#
# You wrote down three places where the devices must wait for each other; in `train_step` nobody wrote any.
# TensorFlow reads it off the layouts: the batch axis is split,
# and `tf.nn.moments`, the loss and the gradients sum over it.
# Each such sum becomes a partial sum on every device with an all-reduce behind it.
#
# The picture shows these all-reduces for the model with normalisation.
# Mean and variance make of a hidden unit $h$ the value $\mathrm{scale} \cdot h + \mathrm{shift}$;
# the gradients of scale and shift do the work of your $g$.
# The rounds are not your three: `tf.nn.moments` needs the mean before it can sum the variance.
# In the compiled function there are nine sums, and TensorFlow 2.21 combines them into four all-reduces.
# Without normalisation there are five sums and one all-reduce.
#
# **Exercise 3.** Write the step of a whole group of devices by hand, for a model without normalisation.
# `replicas` is a list of models with equal values, one a device,
# and `parts` a list of pairs `(inputs, labels)`, one a device too; parts may have different numbers of rows.
# After your step every replica holds what one device would hold
# after `train_step` on all the rows together.
# A replica may see its own part only.
# Use `loss_and_gradients`, and return `replicas`.


# %% exercise-step
def distributed_step(replicas, parts, learning_rate):
    # solution begin
    partial = [loss_and_gradients(replica, *part)[1] for replica, part in zip(replicas, parts)]
    for name in AXES:
        all_reduced = sum(gradients[name] for gradients in partial)
        for replica in replicas:
            replica.trained[name].assign_sub(learning_rate * all_reduced)
    return replicas
    # solution end


# %%
check("03-step", distributed_step)

# %% without-text [markdown]
# ## What normalisation buys
#
# Four all-reduces in every step in place of one: why not leave normalisation out?
# The next cell trains both models for one epoch, on one device since that is enough to see it:
# on our rows of unit length, and on raw rows of tf-idf.
# Guessing between two classes has the loss $\ln 2 \approx 0.69$.

# %% train-without
raw_set = data.tf_idf(reviews, unit_length=False).train
print(f"shortest raw row: {np.linalg.norm(raw_set.features, axis=1).min():.0f}")
for name, examples in (("unit length", train_set), ("raw", raw_set)):
    for kind in (MLP, Plain):
        model, losses = kind(values), []
        for at in range(0, 126 * 64, 64):
            x, y = examples.features[at : at + 64], examples.labels[at : at + 64]
            losses.append(float(train_step(model, x, y, 1e-2)))
        end = "below 0.6" if np.mean(losses[-20:]) < 0.6 else "above 0.6"
        print(f"{name:12} {kind.__name__:6} first {losses[0]:.2f} {losses[1]:.2f}   last 20: {end}")

# %% last-batch [markdown]
# With plain gradient descent at this learning rate normalisation makes both trainable.
# Without it an epoch is not enough on rows of unit length;
# on raw rows the first update throws the loss far up, and the epoch ends near guessing.
# Normalisation is not the only way: with Adam at 0.003 on the mean loss
# the model without it ends the epoch below 0.4 on both, and no row has to see another.
#
# ## The last, smaller batch
#
# The number of reviews is rarely a multiple of the batch size.
# The 8100 reviews here leave 36.
# We take only 20 of them, so that most of the batch is padding; 20 do not divide among 8 devices either.
# There are three ways out: **drop** them, **pad** them to a full batch with other rows, here zeros,
# or pad them and give each row a **weight**, 1 for a review and 0 for padding.
#
# These are the models from here on:
#
# | name | class | it has learnt |
# | --- | --- | --- |
# | `eight_devices`, `one_device` | `MLP` of this lesson | 20 steps |
# | `weighted` | `models.MLP` | nothing of its own: it gets the values of `eight_devices` |
# | `trained` | `models.MLP` | 3 epochs, at the beginning of this lesson |
#
# First see what happens if you do nothing.

# %% too-few-rows tags=["error"]
x, y = train_set.features[-20:], train_set.labels[-20:]
try:
    pack(x, plan.layout(("batch", "features")))
except course_lib.CourseError as error:
    print(error)

# %% predict-padding
predict("03-padding")

# %% reveal-padding
x_padded = pack(np.pad(x, ((0, 44), (0, 0))), plan.layout(("batch", "features")))
y_padded = pack(np.pad(y, (0, 44)), plan.layout(("batch",)))
losses = to_numpy(example_losses(eight_devices, x_padded, y_padded))
weights = np.array([1.0] * 20 + [0.0] * 44, "float32")
right = example_losses(one_device, tf.constant(x), tf.constant(y)).numpy().mean()
means = {
    "all 64": losses.mean(),
    "20 by 64": np.dot(weights, losses) / 64,
    "20 by 20": np.dot(weights, losses) / 20,
    "right": right,
}
reveal("03-padding", {name: round(float(mean), 3) for name, mean in means.items()})

# %% [markdown]
# Counting the padding is wrong, and so is dividing the loss of 20 reviews by 64.
# `20 by 20` counts what you would want, and it is still off:
# the rows of zeros take part in the *normalisation*, so they change the outputs of the real rows.
# The weights must go into the moments too.
# The library's model takes them there:

# %% weighted-moments
# The moving moments stay as in `values`; the other variables are those of `eight_devices`.
now = {**values, **{name: to_numpy(variable) for name, variable in eight_devices.trained.items()}}
weighted = models.MLP(now, plan)
row_weights = pack(weights, plan.layout(("batch",)))
logits, _moments_of_this_batch = weighted.train_logits(x_padded, row_weights)
losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=np.pad(y, (0, 44)), logits=to_numpy(logits))
print(f"weighted moments: {np.dot(weights, losses) / 20:.3f}   right: {right:.3f}")

# %% mean-text [markdown]
# In training the course drops the rest: the reviews are shuffled anew for each epoch,
# so other reviews are left out each time.
# In evaluation, where each review must count exactly once, it pads and gives weights.
#
# **Exercise 4.** Write `mean_loss`: from the losses of a padded batch and their weights (1 for a review,
# 0 for padding), the mean loss of the reviews.
# A batch that is all padding has the mean 0.


# %% exercise-mean
def mean_loss(losses, weights):
    return float(np.dot(losses, weights) / max(np.sum(weights), 1))  # solution


# %%
check("03-mean-loss", mean_loss)

# %% evaluation [markdown]
# ## A prediction must not depend on its neighbours
#
# Normalising with the moments of the batch is fine in training.
# Then the model is put to use, and reviews come one at a time.
# The next cell asks `eight_devices` about the first three test reviews, each in a batch of its own
# (replicated, since one row does not divide among 8 devices),
# and counts how many different answers there are.

# %% predict-alone
predict("03-alone")

# %% reveal-alone
one_row = LayoutSpec.replicated(plan.mesh, 2)
alone = [to_numpy(eight_devices(pack(test_set.features[at : at + 1], one_row)))[0] for at in range(3)]
reveal("03-alone", len(np.unique(np.round(alone, 4), axis=0)))

# %% [markdown]
# A single value minus its own mean is zero, in every column.
# All that is left is the bias of the last layer, the same for every review.
# Accuracy measured on mixed batches of 64 hides this.
#
# The cure is to keep *moving moments*: running averages of the means and variances of the training batches,
# in two more variables, replicated like the biases.
# `models.MLP` has these two variables in addition.
# `trained`, the model of the first cells, answers with them; lesson 4 shows how they are updated.
# One review, once among 64 and once alone:

# %% moving-moments
among = to_numpy(trained.evaluate_logits(pack(test_set.features[:64], plan.layout(("batch", "features")))))
alone = to_numpy(trained.evaluate_logits(pack(test_set.features[:1], one_row)))
print(f"largest difference: {np.abs(among[0] - alone[0]).max():.4f}")

# %% takeaways [markdown]
# ## Takeaways
#
# - Data parallelism is a choice of layouts: split the batch, replicate the variables.
#   The training step stays as it is, and TensorFlow adds the all-reduces.
# - Gradients computed on parts alone may be added only where no row sees another.
#   With batch normalisation the devices must first sum the moments, and on the way back $g$.
# - Trust no distributed step that you have not compared with one device,
#   and in evaluation count every example once.
#
# Lesson 4 makes a run of these steps: one that you can watch, stop and resume, with moving moments.
# It also answers whether eight devices are any faster.

# %% score
score("03")
