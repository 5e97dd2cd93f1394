# %% [markdown]
# # 3. Data-parallel training
#
# Eight devices hold the same model, and 64 film reviews arrive.
# What does each device compute, what must the devices tell each other,
# and how do you know that the result is right?
#
# After this lesson you can
#
# - write a training step that carries no distribution code,
#   and train it on eight devices by choosing layouts;
# - show that it computes what one device would compute;
# - say what the last, smaller batch and batch normalisation do to your numbers, and deal with both;
# - watch a run, stop it, and resume it from its checkpoint.
#
# **Time:** 60 minutes.
# **You need to know:** lesson 1, and how gradient descent trains a small network.
#
# > **Where this was run.** TensorFlow 2.21 on eight virtual CPUs, not on GPUs or TPUs.
# > DTensor is experimental: its names may change.

# %%
LANGUAGE = "en"

import course_lib

course_lib.setup(language=LANGUAGE, devices=8)

# %% imports
import numpy as np

from course_lib import UNSHARDED, LayoutSpec, MeshSpec, data
from course_lib.dtensor import fetch_layout, pack, to_numpy, unpack

tf = course_lib.start_tensorflow()
from tensorflow.experimental import dtensor

# %% data-text [markdown]
# ## Reviews become rows of numbers
#
# The task is sentiment: is a film review positive (label 1) or negative (label 0)?
# `SOURCE` says where the reviews come from.
# With `None` you get a *stand-in* that the course generates itself: invented reviews,
# the same on every machine, ready in a few seconds.
# What a model learns from them says nothing about real reviews.
# `"tfds"` loads the 50,000 real IMDB reviews through TensorFlow Datasets; the first time that takes longer,
# then the rows are kept on disk.
# Near the end of this lesson you find what the same code measured on those.

# %% load-reviews
SOURCE = None  # None is the stand-in (or what COURSE_DATA says); "tfds" is the real set
reviews = data.load_imdb(SOURCE)
print(len(reviews.train), len(reviews.test))
print(reviews.train.labels[0], reviews.train.texts[0][:300])

# %% [markdown]
# The model takes 1200 numbers for each review.
# `TextVectorization` gives a column to each of the 1199 most frequent words,
# and one to all other words together.
# Each word of a review is weighed by its *tf-idf*: how often it occurs in the review,
# times a factor that is larger for words that few reviews contain.
# Each row is then scaled to unit length, so that long and short reviews count alike.
#
# The lesson does this once, for all reviews, before training.
# That is fine for texts that fit into the memory of one machine.
# In production the vocabulary is computed by a batch job,
# and the vectoriser runs in the input pipeline or inside the served model,
# so that training and serving cannot differ.

# %% tf-idf
vectorized = data.tf_idf(reviews)
train_set, test_set = vectorized.train, vectorized.test
print(train_set.features.shape, train_set.labels.shape)
print(np.allclose(np.linalg.norm(train_set.features, axis=1), 1))

# %% model-text [markdown]
# ## The model, layer by layer
#
# The network is small: 1200 inputs, 48 hidden units with ReLU, normalisation over the batch, 2 outputs.
# What is new is that each variable gets a layout.
# `make_variable` makes an ordinary variable when there is no layout: that is our one-device reference.


# %% make-variable
def make_variable(value, layout=None):
    if layout is None:
        return tf.Variable(value)
    return dtensor.DVariable(pack(value, layout))


# %% [markdown]
# The bias has one axis: the output axis of the weight.
# So its layout is the last entry of the weight's layout.
# If the two disagreed, TensorFlow would have to reconcile them in `__call__`:
# it may give the sum another layout than you meant, or move data.


# %% dense
class Dense(tf.Module):
    def __init__(self, weight, layout=None):
        super().__init__()
        bias_layout = layout and LayoutSpec(layout.sharding_specs[1:], layout.mesh)
        self.weight = make_variable(weight, layout)
        self.bias = make_variable(np.zeros(weight.shape[1], "float32"), bias_layout)

    def __call__(self, x):
        return tf.matmul(x, self.weight) + self.bias


# %% normalise-text [markdown]
# Batch normalisation without variables: subtract the mean of each column, divide by its standard deviation.
# The mean runs over the *global* batch: in DTensor a mean over an axis is the mean of the whole tensor,
# wherever its rows lie.
# (Under `MirroredStrategy`, Keras's batch normalisation by default uses each replica's own rows.)


# %% mlp
def normalise(x):
    mean, variance = tf.nn.moments(x, axes=[0])
    return tf.nn.batch_normalization(x, mean, variance, None, None, 1e-5)


class MLP(tf.Module):
    def __init__(self, values, hidden_layout=None, logits_layout=None):
        super().__init__()
        self.hidden = Dense(values["hidden_weight"], hidden_layout)
        self.logits = Dense(values["logits_weight"], logits_layout)

    def __call__(self, x):
        return self.logits(normalise(tf.nn.relu(self.hidden(x))))


# %% [markdown]
# In lesson 1, random numbers depended on the layout.
# So the initial values are made once, on the host,
# with He's standard deviation $\sqrt{2 / n}$ for units with $n$ inputs,
# and packed under whatever layout we choose.

# %% initial-values
from course_lib.models import initial_values

values = initial_values(seed=0, scheme="he")
print({name: value.shape for name, value in values.items()})

# %% world-text [markdown]
# ## First, everything everywhere
#
# Before splitting anything, try the model on a mesh with one dimension, `world`, where all is replicated.

# %% [markdown]
# **Predict.** Eight devices, everything replicated, a batch of 64 reviews.
# How many of the 64 rows does each device compute?
# How much faster than one device can this be?

# %% reveal-world
replicated = LayoutSpec.replicated(MeshSpec([("world", 8)]), 2)
probe = MLP(values, replicated, replicated)
logits = probe(pack(train_set.features[:64], replicated))
print(fetch_layout(logits), unpack(logits)[0].shape)
replicated.of((64, 1200), element_bytes=4)

# %% [markdown]
# All 64, on every device: the work of one device, done eight times over.
# It cannot be faster.
# It is useful for one thing: if something fails here, the fault is not in the splitting.

# %% split-batch-text [markdown]
# ## Split the batch
#
# Data parallelism splits one thing: the batch axis.
# The mesh has one dimension, `batch`; inputs have the layout `[batch, unsharded]`, labels `[batch]`,
# and the variables are replicated.

# %% [markdown]
# **Predict.** A batch is a matrix of 64 rows and 1200 columns in float32.
# How many rows does each device get, and how many bytes?
# How many copies of each row exist?

# %% reveal-batch
mesh = MeshSpec([("batch", 8)])
inputs_layout = LayoutSpec(["batch", UNSHARDED], mesh)
labels_layout = LayoutSpec(["batch"], mesh)
inputs_layout.of((64, 1200), element_bytes=4)

# %% packing-text [markdown]
# `pack` cuts the batch on the host and sends each device its 8 rows and nothing else.
# Copying the batch to all devices first would send eight times as much.
#
# The labels are split in the same way, and the variables are not split at all:

# %% labels-picture
labels_layout.of((64,), element_bytes=8)

# %% weights-picture
weights_layout = LayoutSpec.replicated(mesh, 2)
weights_layout.of((1200, 48), element_bytes=4)

# %% dtensor-dataset [markdown]
# TensorFlow has an input pipeline for this, `dtensor.DTensorDataset`:
# it wraps a `tf.data` dataset and yields batches that are already laid out.
# The order of the batches is then part of that pipeline's state,
# and whoever wants to resume at an exact step must save that too.
# The course packs arrays by hand instead: it takes a few lines, and you see what is sent to whom.

# %% packing
batch = pack(train_set.features[:64], inputs_layout)
labels = pack(train_set.labels[:64], labels_layout)
print([component.shape for component in unpack(batch)][:3])

# %% step-text [markdown]
# ## A training step without distribution code
#
# This is an ordinary training step: summed cross entropy, gradients, plain SGD.
# Nothing in it mentions devices.
# TensorFlow propagates the layouts through the function and inserts the communication.
# Mind the order: all gradients first, then all assignments.
# In DTensor, a function that assigns a variable and then reads it may get the old value.


# %% train-step
@tf.function
def train_step(model, x, labels, learning_rate):
    with tf.GradientTape() as tape:
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=model(x))
        total_loss = tf.reduce_sum(losses)
    variables = model.trainable_variables
    gradients = tape.gradient(total_loss, variables)
    for variable, gradient in zip(variables, gradients):
        variable.assign_sub(learning_rate * gradient)
    return total_loss / len(x)


# %% check-text [markdown]
# The function returns the mean loss of the batch.
# Is it right?
# DTensor has ways to compute something else in silence, so compare before you trust it.
# Here is the same function with the same initial values, on eight devices and on one.
# The library's own training loop, which you will use below, is compared in the same way by its tests,
# on every layout.

# %% compare-one-device
eight_devices, one_device = MLP(values, weights_layout, weights_layout), MLP(values)
pairs = []
for start in range(0, 20 * 64, 64):
    x, y = train_set.features[start : start + 64], train_set.labels[start : start + 64]
    split_loss = train_step(eight_devices, pack(x, inputs_layout), pack(y, labels_layout), 1e-2)
    whole_loss = train_step(one_device, tf.constant(x), tf.constant(y), 1e-2)
    pairs.append((float(split_loss), float(whole_loss)))
print(np.round([pairs[0], pairs[9], pairs[19]], 2))
print(np.ptp(pairs, axis=1).max() < 1e-4)

# %% [markdown]
# **Predict.** Each device saw other reviews, 8 of each 64.
# After 20 steps, do the eight copies of the hidden weight still agree?
# How closely?

# %% reveal-replicas
copies = np.stack(unpack(eight_devices.hidden.weight))
print(copies.shape, float(np.ptp(copies, axis=0).max()))

# %% all-reduce [markdown]
# They are equal to the last bit.
# A sum over the rows of the batch runs over all devices, and each device has 8 of the rows:
# it computes a *partial sum*.
# Where the result must be replicated, TensorFlow inserts an *all-reduce*:
# the partial sums are added up and every device receives the total.
# The means and variances of the normalisation are such sums, and so are the gradients,
# because the variables are replicated.
# So all devices make the same update.
# (A device's part of a gradient is not what its 8 rows would give if they were the whole batch:
# through mean and variance, every row changes the outputs of all others.)

# %% constraints-text [markdown]
# ## Layouts that must agree
#
# With two dense layers there are two weight layouts, and they cannot be chosen freely.
# A matrix product sums over the last axis of its left factor and the first axis of its right factor.
# If both axes are split, they must be split over the same mesh dimension.
# On a mesh of 4 by 2, let us get that wrong.

# %% constraint-error tags=["error"]
grid = MeshSpec([("batch", 4), ("model", 2)])
hidden_layout = LayoutSpec([UNSHARDED, "model"], grid)
logits_layout = LayoutSpec(["batch", UNSHARDED], grid)
mixed_up = MLP(values, hidden_layout, logits_layout)
try:
    tf.function(mixed_up)(pack(train_set.features[:64], LayoutSpec(["batch", UNSHARDED], grid)))
except tf.errors.UnknownError as error:
    print(error.message.split("error: ")[1].splitlines()[0])

# %% constraints-trade-off [markdown]
# The hidden activations are split over `model`, and the second weight expects them split over `batch`.
# There are two ways to organise this in code:
#
# - **Pass one layout for each layer**, as `MLP` does.
#   You can express every legal combination, and illegal ones too.
# - **Pass one set of names**: which mesh dimension splits the batch, which the features,
#   which the hidden units.
#   The layouts follow from it and cannot disagree, but what the names do not foresee cannot be said.
#
# The course's `plan` module takes the second way.
# What remains to be refused is one mesh dimension for two axes of the same tensor:

# %% plan tags=["error"]
from course_lib.specs import plan

weight_axes = ("features", "hidden")
print(plan.data_parallel(8).layout(weight_axes), plan.model_parallel(4, 2).layout(weight_axes))
try:
    plan.Plan("mixed up", grid, {"features": "model", "hidden": "model"}).layout(weight_axes)
except course_lib.CourseError as error:
    print(error)

# %% [markdown]
# ## The last, smaller batch
#
# The number of reviews is rarely a multiple of the batch size, and every batch must divide by the 8 devices.
# Sixty rows do not:

# %% last-batch tags=["error"]
rest = len(train_set) % 64
print(len(train_set), len(train_set) // 64, rest)
try:
    pack(train_set.features[:60], inputs_layout)
except course_lib.CourseError as error:
    print(error)

# %% [markdown]
# Three ways out: **drop** the rest, **pad** it with empty rows to a full batch,
# or pad it and give each row a **weight**, 1 for a review and 0 for padding.
# Suppose the rest were 20 reviews, padded to 64 with rows of zeros and label 0.
# The right answer is the mean loss of these 20 reviews on one device.


# %% padding
@tf.function
def example_losses(model, x, y):
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=model(x))


x, y = train_set.features[-20:], train_set.labels[-20:]
right = float(tf.reduce_mean(example_losses(one_device, tf.constant(x), tf.constant(y))))
x_padded, y_padded = np.pad(x, ((0, 44), (0, 0))), np.pad(y, (0, 44))
losses = to_numpy(example_losses(eight_devices, pack(x_padded, inputs_layout), pack(y_padded, labels_layout)))

# %% [markdown]
# **Predict.** `losses` holds 64 losses, of which the last 44 belong to padding.
# The next cell forms three means: of all 64; the sum of the 20 divided by 64;
# the sum of the 20 divided by 20.
# Which of them equals the right answer to 1 %?

# %% reveal-padding
weight = np.array([1.0] * 20 + [0.0] * 44)
means = [
    losses.mean(),
    (weight * losses).sum() / 64,
    (weight * losses).sum() / weight.sum(),
]
print(np.round(means, 3), round(right, 3))

# %% [markdown]
# None of them: the right answer is the last number, 0.428.
# Counting the padding is wrong, and so is dividing the loss of 20 reviews by 64.
# The last mean is what you would want, and it is still off:
# the rows of zeros take part in the *normalisation*, so they change the outputs of the real rows.
# That is why the course
#
# - **drops** the rest in training: the reviews are shuffled anew for each epoch,
#   so other reviews are left out each time;
# - **pads and weighs** in evaluation, where every review must count exactly once, and where,
#   as you will see next, rows no longer depend on each other.

# %% evaluation-text [markdown]
# ## A prediction must not depend on its neighbours
#
# Normalising with the moments of the batch is fine in training.
# What if someone sends one review?

# %% [markdown]
# **Predict.** A batch of one: every column of the hidden layer has a single value.
# What does normalisation make of it, and what are the logits then?
# Does the review's text matter?

# %% reveal-alone
one_review = LayoutSpec.replicated(mesh, 2)
bias = to_numpy(eight_devices.logits.bias)
for row in (0, 1, 2):
    logits = to_numpy(eight_devices(pack(test_set.features[row : row + 1], one_review)))
    print(logits.round(4), bias.round(4))

# %% [markdown]
# A single value minus its own mean is zero.
# All that is left is the bias of the last layer, the same for every review.
# Accuracy measured on batches of 64 hides this completely.
#
# The cure is to keep *moving moments* in training: running averages of the batch means and variances,
# in two variables that are replicated like the bias.
# Evaluation and the exported model use those.
# The library's `models.MLP` is the model from above with moving moments.
#
# Moving moments lag: they average over steps in which the weights have moved on.
# So at the end of an epoch the course runs 32 more batches that update only the moments.
# The weights stand still, the moments catch up, and only then it evaluates and saves.
# (A run that is stopped within an epoch is saved as it is: finish the epoch before you evaluate it.)
# Train for one epoch, then ask again.

# %% short-training
from course_lib import models, training

model = models.MLP(values, plan.data_parallel(8))
for record in training.train(model, train_set, epochs=1):
    pass
print(type(record).__name__, record.epoch, record.step)

# %% moving-moments
answers = model.evaluate_logits(pack(test_set.features[:64], inputs_layout))
alone = model.evaluate_logits(pack(test_set.features[:1], one_review))
print(np.abs(to_numpy(answers)[0] - to_numpy(alone)[0]).max() < 1e-5)

# %% live-text [markdown]
# ## Train and watch
#
# `training.train` is the loop from above in its fast form: it packs 32 batches at a time,
# runs these steps inside one `tf.function`, and *yields* a record for each step and each epoch.
# It draws nothing.
# `live.watch` takes the records and draws the curves while training goes on in a thread.
#
# The first run uses the settings of TensorFlow's own tutorial: tf-idf rows as they are,
# and weights drawn from $N(0, 1)$.
# SGD runs on the *summed* loss of 64 reviews with a learning rate of 0.01.

# %% tutorial-settings
from course_lib.watch import live

raw = data.tf_idf(reviews, unit_length=False)
model = models.MLP(models.initial_values(scheme="normal"), plan.data_parallel(8))
tutorial_settings = await live.watch(training.train(model, raw.train, raw.test, epochs=3))

# %% [markdown]
# **Predict.** Now rows of unit length, and He's initial values,
# which are about 24 times smaller in the first layer.
# Everything else stays.
# Which accuracy on the test reviews do you expect after 3 epochs: lower, about the same, higher?

# %% reveal-settings
model = models.MLP(models.initial_values(scheme="he"), plan.data_parallel(8))
our_settings = await live.watch(training.train(model, train_set, test_set, epochs=3))


# %% settings-table
def in_words(accuracy):
    return "above 0.8" if accuracy > 0.8 else "below 0.7" if accuracy < 0.7 else "between"


print(in_words(tutorial_settings.epochs[-1].test_accuracy))
print(in_words(our_settings.epochs[-1].test_accuracy))

# %% [markdown]
# Why a bound and not a number?
# Another processor adds in another order, so the last bits differ,
# and hundreds of training steps amplify that to a percent or two of accuracy.
# A bound leaves room for that; your curves may differ from those stored here.
#
# Two things changed at once.
# Change one at a time to see which of them matters: He's values with raw rows,
# then $N(0, 1)$ with rows of unit length.


# %% one-at-a-time
def final_accuracy(scheme, reviews_as_rows):
    model = models.MLP(models.initial_values(scheme=scheme), plan.data_parallel(8))
    *_records, last = training.train(model, reviews_as_rows.train, reviews_as_rows.test, epochs=3)
    return in_words(last.test_accuracy)


print(final_accuracy("he", raw), final_accuracy("normal", vectorized))

# %% settings-why [markdown]
# On the stand-in the initial values make the difference.
# Normalisation cancels the size of the first layer's weights: if they are 24 times larger,
# the outputs are the same.
# But the gradient is 24 times smaller and has to turn weights that are 24 times larger,
# so this layer learns about $24^2 \approx 600$ times more slowly.
# Distribution has no part in this: the same difference shows on one device.
# Get the model right on one device first.

# %% checkpoint-text [markdown]
# ## Stop and resume
#
# A run that is given a `CheckpointFolder` writes a checkpoint after each epoch and keeps the last three.
# A stopped run leaves one at the very step where it stopped.
# Resuming goes on there, with the batches that would have come.
#
# Run the next two cells and press **Stop** before the second one ends.
# Then run only the second one again.
# If it has already ended, run the first one too: it makes a new folder.
#
# The folder is a temporary one, so that each pass through the lesson starts afresh.
# With a path of your own, such as `CheckpointFolder("checkpoints")`,
# training also resumes after a restart of the kernel.

# %% stop-and-resume
import itertools
import tempfile

from course_lib.training import CheckpointFolder

folder, stoppable = CheckpointFolder(tempfile.mkdtemp()), None

# %% stoppable-run
model = models.MLP(values, plan.data_parallel(8))
run = training.train(model, train_set, test_set, epochs=10, checkpoints=folder)
stoppable = await live.watch(run, stoppable)

# %% kept-checkpoints
print(folder.names())

# %% interrupt-text [markdown]
# The same by program: take 100 records and close the run.
# Training works up to 32 steps ahead of its records;
# `close` takes the model back to the last record that you took.


# %% interrupted
def interruptible_run(model):
    return training.train(model, train_set, epochs=2, checkpoints=checkpoints)


checkpoints = CheckpointFolder(tempfile.mkdtemp())
first = interruptible_run(models.MLP(values, plan.data_parallel(8)))
for record in itertools.islice(first, 100):
    pass
first.close()
print(record.step, first.total_steps, checkpoints.names())

# %% [markdown]
# **Predict.** A new model resumes from this folder and trains to the end.
# How far will its final weights be from those of a run that nobody interrupted: exactly equal, nearly equal,
# or different, because the remaining reviews came in another order?

# %% reveal-resume
resumed = models.MLP(values, plan.data_parallel(8))
second = interruptible_run(resumed)
print(second.start_step)
for record in second:
    pass
undisturbed = models.MLP(values, plan.data_parallel(8))
for record in training.train(undisturbed, train_set, epochs=2):
    pass
difference = to_numpy(resumed.hidden_weight) - to_numpy(undisturbed.hidden_weight)
print(record.step, float(np.abs(difference).max()))

# %% [markdown]
# It starts at step 100 and ends with the same weights, bit for bit.
# For that, a checkpoint must hold more than weights: the moving moments, the number of the step,
# and what decides the order of the reviews.
# A checkpoint knows nothing of layouts: it can be restored under any other plan, or on one device.
# The restored values are the same to the bit; later steps then agree with the original run up to rounding.

# %% real-text [markdown]
# ## The same on the real reviews
#
# The stand-in is made up, and real reviews differ.
# These figures are from the real IMDB reviews, 25,000 for training and 25,000 for testing,
# with the same code: `make results` repeats them.
# Each setting was trained from three random seeds.
# For each epoch you see the lowest and the highest test accuracy of the three: with the tutorial's settings,
# He's initial values alone, unit rows alone, and both.
# The picture shows the first seed.

# %% real-results
from course_lib import measured

results = measured.load("03_imdb")
for setting in results.runs.values():
    print([f"{lowest:.2f} to {highest:.2f}" for lowest, highest in setting.spread("test_accuracy")])
measured.picture(results)

# %% real-why [markdown]
# With both changes every seed reaches 0.86 after three epochs.
# Unit rows alone come to 0.74 and are still rising: here three epochs say only which setting learns faster.
# With raw rows the seeds lie far apart, from 0.51 to 0.69 with He's values:
# one seed would have told you little.
# On the stand-in, He's values alone were enough.

# %% speed-text [markdown]
# ## How fast is it?
#
# Data parallelism promises a speed-up close to the number of devices: each computes 1/8 of the batch.
# What stands in the way:
#
# - **The all-reduce.** Its cost depends on the size of the model, not of the batch.
#   The more examples each device computes in a step, the less the all-reduce weighs beside the computation.
# - **What is not split**: preparing batches on the host, the optimizer's update,
#   which every device makes in full, and starting each step.
# - **The slowest device**: in every step all wait for it.
#
# Virtual CPUs cannot tell you how much of the promise remains: they share the cores of one machine.
# With 64 reviews a step, this lesson trains *slower* on eight of them than on one device without DTensor.
# With thousands of reviews a step, eight can be faster, because `setup` gives each device one thread:
# one device then uses one core, and eight use all of them.
# With TensorFlow's own choice of threads one device uses all cores too.
# `make bench` measures each case.
# What you learn here is what the devices do; how fast real ones do it must be measured on them.

# %% exercises [markdown]
# ## Exercises
#
# Replace each `...` and run the cell and the check after it.
#
# **1.** This lesson minimises the *sum* of the losses of 64 reviews with a learning rate of 0.01.
# You change the loss to the *mean* over the batch.
# Which learning rate makes every update the same as before?

# %% exercise-learning-rate
from course_lib.exercises import check

mean_learning_rate = 0.64  # solution

# %%
check("03-learning-rate", mean_learning_rate)

# %% [markdown]
# **2.** You train data-parallel on images: a batch has the shape (64, 28, 28), its labels (64,),
# the weight of the first layer (784, 100).
# Write the three layouts on `mesh`, the mesh of this lesson.

# %% exercise-layouts
# solution begin
image_layouts = {
    "images": LayoutSpec(["batch", UNSHARDED, UNSHARDED], mesh),
    "labels": LayoutSpec(["batch"], mesh),
    "weight": LayoutSpec([UNSHARDED, UNSHARDED], mesh),
}
# solution end

# %%
check("03-layouts", image_layouts)

# %% [markdown]
# **3.** Write `mean_loss`: from the losses of a padded batch and their weights (1 for a review,
# 0 for padding), the mean loss of the reviews.
# A batch that is all padding has the mean 0.


# %% exercise-mean
def mean_loss(losses, weights):
    return float(np.dot(losses, weights) / max(np.sum(weights), 1))  # solution


# %%
check("03-mean-loss", mean_loss)

# %% [markdown]
# **4.** The gradients of this model (1200 to 48 to 2, with biases) are all-reduced in every step, in float32.
# How many bytes of gradients does each device contribute?
# And how many would it be with a batch of 128?

# %% exercise-bytes
# solution begin
bytes_with_64 = 4 * (1200 * 48 + 48 + 48 * 2 + 2)
bytes_with_128 = bytes_with_64
# solution end

# %%
check("03-gradient-bytes", (bytes_with_64, bytes_with_128))

# %% [markdown]
# ## Takeaways
#
# - Data parallelism is a choice of layouts: split the batch, replicate the variables.
#   The training step stays as it is, and TensorFlow adds the all-reduce.
# - Trust no distributed training that you have not compared with one device, step by step.
# - Count every example once: mind the last batch, the padding,
#   and what normalisation lets rows do to each other.

# %% [markdown]
# ## Next
#
# Lesson 4, in preparation, splits the weights as well and continues this lesson's checkpoints under other
# layouts.
