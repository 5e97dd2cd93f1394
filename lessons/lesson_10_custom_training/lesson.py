# %% [markdown]
# # 10. Custom training on Fashion-MNIST
#
# Four replicas share a batch, and each computes the losses of its own images.
# What must each of them divide by, so that together they take the step of one device?
# And would you notice if they did not?
#
# After this lesson you can
#
# - write a training loop with `strategy.run` and `reduce` that is right for every number of replicas
#   and for every last batch;
# - scale losses, penalties and metrics, and say what Keras's losses have divided already;
# - resume a run to the bit, and restore its model without a strategy.
#
# **Time:** 50 minutes.
# **You need to know:** a Keras model, its loss and its optimizer;
# of lesson 4 what a run and a checkpoint are.
#
# > **Where this was run.** TensorFlow 2.21 with Keras 3.15 on virtual CPUs, not on GPUs or TPUs.

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% first-run-text [markdown]
# ## Garments
#
# The images have 28 × 28 pixels, and ten kinds of garments are on them.
# With `SOURCE = None` they are a stand-in that the course draws itself;
# `"tfds"` loads Fashion-MNIST, 70,000 photographs.
# Either way the lesson trains on the first 5,000 training images and tests on the first 1,000 test images.
# A convolution wants an axis of channels, so that an image is `[28, 28, 1]`, its pixels divided by 255.
#
# Four virtual CPUs train a convolutional model, under a `MirroredStrategy`:
# each replica has a copy of the variables and gets 64 of the 256 images of a full batch.
# `strategies.mirrored(4)` makes the strategy on the first four devices;
# model and optimizer are made in its scope (`convolutional` sees to it for the model).
#
# This is the finished thing, with the library's trainer.
# Below you write what it does.
# TensorFlow's own tutorial trains for ten epochs; three are enough here to see the loss fall.
#
# How good does the model become on photographs?
# The cell after the next begins with what `make results` measured from three seeds
# (`benchmarks/garments.py`):
# as here, on the stand-in (`built-in`) and on the first 5,000 photographs;
# and on all 60,000, for ten epochs on two replicas.
# The last checkpoint of each training was then read without a strategy, as you will do below.
# In brackets stands how many test images the restored model answered otherwise than the trained one,
# and the largest difference of a probability.

# %% first-run
from course_lib import ImageGrid, convolutional, fashion, live, measured
from course_lib import received_examples, strategies, training
from course_lib import yours_or_ours
from lessons.lesson_10_custom_training.confusion import ConfusionMatrix

tf = course_lib.start_tensorflow()
SOURCE = None  # the stand-in (or what COURSE_DATA says); "tfds" is the real set
garments, four = fashion.load_fashion(SOURCE, num_test=1_000), strategies.mirrored(4)
with four.scope():
    adam = tf.keras.optimizers.Adam()
trainer = training.StrategyTrainer(convolutional(four), adam, four)
settings = training.Settings(epochs=3, batch_size=64 * 4, last_batch="pad")
run = training.TrainingRun(trainer, garments.train, garments.test, settings=settings)
history = await live.watch(run)

# %% predicted
for name in measured.names():
    if name.startswith("10"):
        found = measured.load(name)
        print(found.how["data"])
        print(measured.restored(found.runs))
names, some = fashion.class_names(), garments.test.take(slice(20))
predictions = tf.argmax(trainer.model(garments.test.features), axis=1).numpy()
print("test accuracy above 0.6:", (predictions == garments.test.labels).mean() > 0.6)
ImageGrid(some.images, some.labels, predictions[:20], names=names)

# %% confusion
ConfusionMatrix.of(garments.test.labels, predictions, names=names)

# %% parts-text [markdown]
# Off the diagonal stand the mistakes: a row is what an image shows, a column what the model takes it for.
#
# ## Who gets which image
#
# A *distributed dataset* splits batches.
# It is given a `tf.data.Dataset` of global batches, and hands each replica its part of each.
#
# `received_examples` lets TensorFlow split a dataset of numbers, looks at what arrived, and draws it.
# The next cells give it 13 examples in batches of 8, on the four replicas:
# the second batch has only five.

# %% predict-parts [markdown]
# How many of the five examples does each replica get?
#
# - [ ] `(1, 1, 1, 2)`
#   So it would be if parts were rounded down, and the last took what is left.
# - [ ] `(2, 1, 1, 1)`
#   These parts would be as equal as they can be.
#   TensorFlow is simpler.
# - [x] `(2, 2, 1, 0)`
#   A quarter of five is rounded up to two, and the last replica gets nothing.
# - [ ] `(2, 2, 1, 2)`
#   That is seven: somebody would get an example for the second time.

# %% reveal-parts
received = received_examples(four, tf.data.Dataset.range(13).batch(8))
reveal("10-parts", received.sizes[1])

# %% received
received

# %% [markdown]
# A batch is cut into parts of a quarter of *its own* size, rounded up, until nothing is left.
# A replica without an example runs the step all the same, on tensors with no rows.
# The loop has to be right for it, too.
#
# **Exercise 1.** Write `part_sizes(num_examples, num_replicas)`:
# a list with the number of examples that each replica gets of a batch.


# %% exercise-parts
def part_sizes(num_examples, num_replicas):
    # solution begin
    size = -(-num_examples // num_replicas)  # rounded up
    return [max(0, min(size, num_examples - replica * size)) for replica in range(num_replicas)]
    # solution end


# %%
check("10-part-sizes", part_sizes)

# %% shares-text [markdown]
# ## What to divide by
#
# Training minimises the mean loss of a global batch.
# But a replica knows the losses of its own examples only.
#
# Take the smallest model, $y = wx$ with the loss $|wx - t|$, at $w = 3$.
# Two replicas have two examples each; their losses are 2 and 3, 4 and 5.
# The gradient of each loss with respect to $w$ is its $x$: 1 and 2, 3 and 4.
#
# The mean of the four losses is $14 / 4 = 3.5$.
# It is a sum over the replicas, if each of them divides the sum of its own losses by 4,
# the number of examples in the *global* batch.
# `tf.nn.compute_average_loss` does that.
# (Given a `sample_weight`, it multiplies the losses by it first.)
#
# `strategy.run` calls a function once on each replica, with that replica's part of the batch.
# What they return comes back as one object with a value for each replica:
# `experimental_local_results` gives these as a tuple, `reduce` makes one value of them.
# `reduce` has to be given an `axis`;
# with `"SUM"` and `None` it adds up the replicas, and no axis of the values.

# %% shares
two = strategies.mirrored(2)
inputs, targets = tf.constant([1.0, 2.0, 3.0, 4.0]), tf.constant([1.0, 3.0, 5.0, 7.0])
(batch,) = two.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices((inputs, targets)).batch(4))


def share(x, target):
    return tf.nn.compute_average_loss(tf.abs(3 * x - target), global_batch_size=4)


shares = two.run(share, batch)
print(*(float(each) for each in two.experimental_local_results(shares)))
print(float(two.reduce("SUM", shares, axis=None)))

# %% own-given [markdown]
# A loss that is only printed may be mended later.
# A gradient is used at once:
# a Keras optimizer adds up the gradients of all replicas, and every copy of a variable takes the same step.
#
# The cell after next takes a step of SGD with the learning rate 0.4, from $w = 3$.
# With shares of the true mean the gradients would be 0.75 and 1.75, in all 2.5, and $w$ would become 2.
# But here `divide` is `tf.reduce_mean`:
# each replica takes the mean over its *own* two losses, as one would on one device.

# %% predict-own [markdown]
# What is the weight after this step?
#
# - [x] `1.0`
#   The two means have the gradients 1.5 and 3.5, and these are added up:
#   5.
# - [ ] `2.0`
#   That is the right step.
#   It would be taken if gradients were averaged.
# - [ ] `1.6`
#   So it would be if the copies went their own ways: this one by 3.5.
# - [ ] `2.4`
#   So it would be if the copies went their own ways: this one by 1.5.
# - otherwise
#   Compute the gradient of each replica's mean, and add them up.


# %% reveal-own
def after_step(strategy, batch, divide):
    with strategy.scope():
        weight, sgd = tf.Variable(3.0), tf.keras.optimizers.SGD(0.4)
        sgd.build([weight])

    def step(x, target):
        with tf.GradientTape() as tape:
            loss = divide(tf.abs(weight * x - target))
        sgd.apply([tape.gradient(loss, weight)], [weight])
        return loss

    loss = strategy.reduce("SUM", strategy.run(step, batch), axis=None)
    return float(loss), float(weight.numpy())


loss, weight = after_step(two, batch, tf.reduce_mean)
reveal("10-own", weight)

# %% own-why [markdown]
# Where parts are equal, the sum of two means is twice the mean of all, that of eight is eight times the mean.
# For SGD that is another learning rate.
# Adam divides by the size of the gradients so far:
# a factor that is the same in every step hardly changes anything, and does not show.
# And where parts are unequal, no learning rate mends it:
# an example counts more on a replica that has fewer of them.
#
# The extreme case is that of the five examples on four replicas.
# Again each takes the mean over its own.

# %% predict-empty [markdown]
# What is not a number (NaN) after this step?
#
# - [ ] `none` nothing
#   The sum of the replicas' means has one that is a mean over nothing.
# - [x] `loss` the loss, and not the weight
#   So nothing seems to be wrong with the model, and nobody looks for the reason.
# - [ ] `loss weight` the loss and the weight
#   It would be if the gradient of that mean were NaN, too.
# - [ ] `weight` the weight, and not the loss
#   The loss is added up from the same four means.

# %% reveal-empty
x = tf.range(1.0, 6.0)
(batch_of_five,) = four.experimental_distribute_dataset(
    tf.data.Dataset.from_tensor_slices((x, 2 * x - 1)).batch(8)
)
loss, weight = after_step(four, batch_of_five, tf.reduce_mean)
found = [name for name, value in {"loss": loss, "weight": weight}.items() if str(value) == "nan"]
reveal("10-empty", " ".join(found) or "none")

# %% metric-given [markdown]
# A mean over nothing is 0 / 0.
# But its gradient is a sum over the examples, and a sum over nothing is 0.
# So the curve of the loss has a hole where a replica was empty, and the weights go on:
# here from 3 to −1, where shares of the five examples lead to 1.8.
# `compute_average_loss` of no example is 0, and so is its gradient.
#
# ### Metrics
#
# `tf.keras.metrics.Mean` shows the mean of everything that it was given.
# Made in the scope, it keeps a total and a count on each replica, and `result` adds them up.
# The next cells give it, on each of the two replicas, the share that this replica returned.

# %% predict-metric [markdown]
# What does the metric show?
#
# - [x] `1.75`
#   The mean of two shares.
#   It is too small by the number of replicas.
# - [ ] `3.5`
#   That is the mean of the four losses, and the metric does not know of the division.
# - [ ] `1.25`
#   That is the first replica's share; the metric is one for all replicas.
# - [ ] `2.25`
#   That is the second replica's share; the metric is one for all replicas.
# - [ ] `0.875`
#   It divides by how often it was updated: once on each replica.
# - otherwise
#   It was updated twice, once on each replica.

# %% reveal-metric
with two.scope():
    metric = tf.keras.metrics.Mean()


def report(x, target):
    metric.update_state(share(x, target))


two.run(report, batch)
reveal("10-metric", float(metric.result()))

# %% scaling-text [markdown]
# Shares are made to be added up; a metric takes their mean.
# Give metrics what belongs to single examples: the next cell prints what it shows after the four losses.
#
# In the explorer below it the model is the same, with losses 2, 3, 4, … and gradients 1, 2, 3, …
# Which divisions are right for five examples?
# Which others are for four, and which for eight?
# Wrong gradients stand beside the right one.

# %% scaling
from lessons.lesson_10_custom_training.loss_scaling_explorer import LossScalingExplorer

metric.reset_state()
two.run(lambda x, target: metric.update_state(tf.abs(3 * x - target)), batch)
print(float(metric.result()))
LossScalingExplorer(num_replicas=4, batch_size=8, num_examples=5)

# %% keras-weights-text [markdown]
# ## What Keras has divided already
#
# A loss object of Keras 3 divides, if it is not told otherwise:
# by the number of losses that it computes, on a replica those of the replica's own examples,
# and then, inside `strategy.run`, by the number of replicas.
# That is what `fit` uses.
# It is the true mean if all parts are equally large.
#
# **Exercise 2.** Write `example_weights(sizes)`, for replicas that have `sizes` examples:
# a list with the factor with which the loss of *one* example of each replica
# counts in the sum over the replicas, under this default.
# For a replica without examples it is 0.


# %% exercise-weights
def example_weights(sizes):
    return [1 / (size * len(sizes)) if size else 0 for size in sizes]  # solution


# %%
check("10-example-weights", example_weights)

# %% reductions-text [markdown]
# With parts of 3 and 2 that is 1/6 and 1/4, where each of the five should count 1/5.
# And a loop that divides such a loss again, by the replicas or by the batch, scales twice.
#
# In a loop of your own, choose `reduction="none"`, which returns the losses of the examples,
# or `"sum"`, and divide yourself, once.
#
# Four attempts of somebody who left the choice to Keras.
# The default of Keras 2 was called `AUTO` and meant `SUM_OVER_BATCH_SIZE`.
# `tf_keras`, which is Keras 2, has it still.
# The last is the course's own check, which looks at the loss object before there is a step.

# %% reductions tags=["error"]
import tf_keras

default = tf.keras.losses.MeanAbsoluteError()


def of_tf_keras():
    with two.scope():
        tf_keras.losses.MeanAbsoluteError()(targets, 3 * inputs)


attempts = [lambda: tf.nn.compute_average_loss(default(targets, 3 * inputs), global_batch_size=4)]
attempts += [lambda: tf.keras.losses.MeanAbsoluteError("auto"), of_tf_keras]
for attempt in [*attempts, lambda: strategies.require_per_example(default)]:
    try:
        attempt()
    except ValueError as error:
        message, _cut, _rest = str(error).partition("\nPlease see")
        print("-", message.partition(" Expected one of")[0])

# %% axes-given [markdown]
# `compute_average_loss` expects a loss for each example, so that it refuses what is one number already.
# But a division that is written out, `default(labels, outputs) / 2`, nobody refuses.
#
# ### Labels with more axes
#
# Some labels are pictures: each of two examples has 4 × 4 numbers, `[2, 4, 4]`.
# `MeanSquaredError(reduction="none")` compares them with outputs of the same shape.

# %% predict-axes [markdown]
# Which shape does the result have?
#
# - [ ] `(2,)`
#   That would be a loss for each example.
#   But Keras does not know which axes are theirs.
# - [x] `(2, 4)`
#   The last axis is averaged, whatever it stands for.
# - [ ] `(2, 4, 4)`
#   That would be a loss for each element.
#   `none` is about examples, not about elements.
# - [ ] `()` none: it is one number
#   That would be one number:
#   `none` keeps Keras from it.

# %% reveal-axes
ones, zeros = tf.ones((2, 4, 4)), tf.zeros((2, 4, 4))
squared = tf.keras.losses.MeanSquaredError(reduction="none")
reveal("10-axes", tuple(squared(ones, zeros).shape))

# %% step-text [markdown]
# This loss, as `MeanAbsoluteError` and `BinaryCrossentropy`,
# takes the mean over the last axis and over no other.
# `compute_average_loss` adds up all that is left, here 2 × 4 numbers, and divides by the two examples:
# too large by the factor 4.
# With an axis of length 1 at the end, as in `squared(ones[..., tf.newaxis], zeros[..., tf.newaxis])`,
# every element keeps its own loss, `[2, 4, 4]`.
# Then take the mean over the elements of each example, `tf.reduce_mean(losses, axis=(1, 2))`, and share that.
#
# ## The loop
#
# Back to the garments.
# A step has two halves.
# This is the outer one, written once for all replicas.
# Since the last batch may be smaller, it asks each replica how many labels it has, and adds them up:
# that is the size of the global batch.


# %% step
import numpy as np


def make_step(strategy, model, optimizer, replica_step):
    def on_replica(images, labels, size):
        return replica_step(model, optimizer, images, labels, size)

    @tf.function(reduce_retracing=True)
    def step(images, labels):
        sizes = strategy.run(tf.size, (labels,))
        size = strategy.reduce("SUM", sizes, axis=None)
        shares = strategy.run(on_replica, (images, labels, size))
        return strategy.reduce("SUM", shares, axis=None)

    return step


# %% step-exercise [markdown]
# **Exercise 3.** Write the inner half,
# `replica_step(model, optimizer, images, labels, global_batch_size)`.
# It runs on each replica, with that replica's images.
# It calls the model with `training=True`, for layers such as `Dropout`,
# computes the losses of the logits that it gives
# (`tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)`),
# gives the gradients to the optimizer (`optimizer.apply(gradients, variables)`),
# and returns the replica's share of the mean loss of the global batch.
#
# The check runs it on two replicas, inside a `tf.function`, with equal parts, with unequal ones
# and with an empty one, and compares losses and variables with NumPy.
# As in `make_step`, `global_batch_size` is a tensor with a whole number.


# %% exercise-step
def replica_step(model, optimizer, images, labels, global_batch_size):
    # solution begin
    with tf.GradientTape() as tape:
        logits = model(images, training=True)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        loss = tf.nn.compute_average_loss(losses, global_batch_size=global_batch_size)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply(gradients, model.trainable_variables)
    return loss
    # solution end


# %%
check("10-replica-step", replica_step)

# %% by-hand-text [markdown]
# Now the same model goes through 67 images, on two replicas and on one device.
# (`tf.distribute.get_strategy()` gives the strategy that is there when nobody asked for one.)
# 64 images are 32 for each replica; the last three are two and one.
# The optimizer is SGD with a large learning rate: Adam would hide a gradient of the wrong size.
# Your `replica_step` is used if it is right, and ours if not yet.
# `own_means` makes the mistake from above on purpose: it tells each replica the number of its own examples.
# Losses and variables after both steps are compared.
#
# Why no empty replica?
# With oneDNN, which `setup` switches off and TensorFlow switches on where the processor suits it,
# a convolution of TensorFlow 2.21 fails on a batch without images:
# "input depth must be evenly divisible by filter depth".
# Choose a number of images that leaves no replica empty, or fill the batch up with rows of weight 0,
# as the library's trainer does.


# %% by-hand
def by_hand(strategy, replica_step):
    model = convolutional(strategy)
    with strategy.scope():
        sgd = tf.keras.optimizers.SGD(0.1)
        sgd.build(model.trainable_variables)
    step = make_step(strategy, model, sgd, replica_step)
    losses = [float(step(*part)) for part in strategy.experimental_distribute_dataset(of_64)]
    return np.concatenate([losses, *(variable.numpy().ravel() for variable in model.variables)])


def own_means(model, optimizer, images, labels, _size):
    return inner(model, optimizer, images, labels, tf.size(labels))


one, images = tf.distribute.get_strategy(), garments.train.take(slice(67))
of_64 = tf.data.Dataset.from_tensor_slices((images.features, images.labels)).batch(64)
inner = yours_or_ours("10-replica-step", replica_step)
for name, each in {"replica_step": inner, "own_means": own_means}.items():
    print(name, "within 0.001:", np.allclose(by_hand(two, each), by_hand(one, inner), rtol=0, atol=1e-3))

# %% objective-text [markdown]
# ### Penalties
#
# A layer with `kernel_regularizer="l2"` adds a penalty to `model.losses`,
# which depends on the variables alone.
# Every replica has the same variables, so each of them computes the whole penalty.
#
# **Exercise 4.** Write `objective(losses, penalties, global_batch_size)`,
# the number whose gradient a replica takes.
# `losses` are those of its own examples, `[rows]`,
# and `penalties` is a list of numbers, the same on all replicas.
# The check runs it on two replicas and on four.
# Summed over the replicas it has to be the mean loss of the global batch plus the sum of the penalties.
# `tf.nn.scale_regularization_loss(penalties)` returns their sum, divided by the number of replicas.


# %% exercise-objective
def objective(losses, penalties, global_batch_size):
    # solution begin
    average = tf.nn.compute_average_loss(losses, global_batch_size=global_batch_size)
    return average + tf.nn.scale_regularization_loss(penalties)
    # solution end


# %%
check("10-objective", objective)

# %% saved-text [markdown]
# ## Stop, resume, restore
#
# A loop of one's own saves as it likes: this one saves model and optimizer every second epoch.
# Its model has `Dropout`, which leaves out about half of the pixels, other ones in every step.
#
# After four epochs the last checkpoint is read into a new model with a new optimizer.
# `assert_consumed` raises an error unless all values of the checkpoint were used.
# Then both models take one more step, with the same batch.


# %% saved
import itertools
import tempfile


def with_dropout(strategy):
    tf.keras.utils.set_random_seed(0)
    with strategy.scope():
        layers = tf.keras.layers.Flatten(), tf.keras.layers.Dropout(0.5, seed=5), tf.keras.layers.Dense(10)
        model, adam = tf.keras.Sequential([tf.keras.Input((28, 28, 1)), *layers]), tf.keras.optimizers.Adam()
        adam.build(model.trainable_variables)
    return model, adam


few, folder = garments.train.take(slice(128)), tempfile.mkdtemp()
dataset = tf.data.Dataset.from_tensor_slices((few.features, few.labels)).batch(64)
batches = list(two.experimental_distribute_dataset(dataset))

# %% predict-restored [markdown]
# Do the two models report the same loss for this step?
#
# - [ ] `equal` yes, within 0.00001
#   Weights and optimizer are equal.
#   But the loss depends on something else, too.
# - [x] `different` no, they differ
#   Their weights are the same.
#   It is the pixels left out that differ.
# - [ ] `error` there is no loss: reading the checkpoint ends with an error
#   An error would be welcome: it would say what the checkpoint does not hold.

# %% reveal-restored
model, adam = with_dropout(two)
inner = yours_or_ours("10-replica-step", replica_step)
step = make_step(two, model, adam, inner)
for epoch in range(1, 5):
    for part in batches:
        step(*part)
    if epoch % 2 == 0:
        path = tf.train.Checkpoint(model=model, optimizer=adam).write(f"{folder}/epoch-{epoch}")
expected = model(few.features).numpy()
restored, its_adam = with_dropout(two)
tf.train.Checkpoint(model=restored, optimizer=its_adam).read(path).assert_consumed()
its_step = make_step(two, restored, its_adam, inner)
loss, its_loss = float(step(*batches[0])), float(its_step(*batches[0]))
reveal("10-restored", "equal" if abs(loss - its_loss) < 1e-5 else "different")

# %% resumed-text [markdown]
# All values of the checkpoint were used, and nothing was raised.
# But `Dropout` draws from a seed and a counter, which are in a variable of the model.
# `tf.train.Checkpoint` does not find it in a model of Keras 3:
# it is not saved, and `assert_consumed` does not miss it.
# So a resumed training draws the pixels of the first steps again, and goes another way.
#
# The library's `StrategyTrainer` names these variables beside model and optimizer (`trainer.content()`).
# Its steps are those of this lesson, with rows of weight 0 in place of the missing ones,
# so that a smaller batch is not compiled anew.
# It runs in the `TrainingRun` of lesson 4: live curves, Stop, checkpoints.
# Here one run is closed after three steps and another one goes on, beside a run that nobody interrupts.
# The last line shows seed and counter of four models:
# the one above after nine steps, its restored twin after one, and the two of these runs after eight.

# %% resumed


def short_run(folder):
    model, adam = with_dropout(two)
    trainer = training.StrategyTrainer(model, adam, two)
    settings = training.Settings(epochs=4, batch_size=64)
    return model, training.TrainingRun(trainer, few, settings=settings, checkpoints=folder)


checkpoints = training.CheckpointFolder(tempfile.mkdtemp())
_model, interrupted = short_run(checkpoints)
list(itertools.islice(interrupted, 4))  # three steps, and the end of an epoch
interrupted.close()
(resumed, run), (undisturbed, whole) = short_run(checkpoints), short_run(None)
print("goes on after step", run.start_step, "and hands out", len(list(run)), "records of", len(list(whole)))
pairs = zip(resumed.variables, undisturbed.variables)
gaps = [np.ptp([a.numpy(), b.numpy()], axis=0).max() for a, b in pairs]
print("largest difference of a variable:", float(max(gaps)))
print(*(each.layers[1].seed_generator.state.numpy() for each in (model, restored, resumed, undisturbed)))

# %% restore-text [markdown]
# To serve a model, or to train on elsewhere, nobody wants its strategy.
# A checkpoint does not hold one: it can be read without any.
# A value waits until its variable is made.
# So nobody notices if it never is: ask `assert_consumed`, with all variables there.
# An optimizer makes its own with the first step, or with `build`.
# Somebody asked too early:

# %% restore tags=["error"]
alone, built = with_dropout(one)
for optimizer in (tf.keras.optimizers.Adam(), built):
    try:
        tf.train.Checkpoint(model=alone, optimizer=optimizer).read(path).assert_consumed()
        print("all values were used")
    except AssertionError as error:
        print(str(error).partition(":")[0].rpartition(".")[0])
print("logits within 0.00001:", np.abs(alone(few.features) - expected).max() < 1e-5)

# %% iterate-text [markdown]
# ## Three ways through an epoch
#
# - **A `for` loop in Python** starts each step: the simplest, and Python sees every batch.
# - **An iterator**, handed to a function that takes several batches from it with `next`:
#   TensorFlow is started once for several steps.
# - **The whole epoch inside `tf.function`**: Python starts it and waits.
#   No Python code runs between the steps: no curve is drawn, and a Stop button waits for the end.
#
# All three stand in `course_lib/training/iterating.py`, in some ten lines each.
# They give the same losses, as the next cell shows.
# Its widget measures how long a step takes with each, on two replicas of a small model.
# Choose a batch size and press; then a larger one.
# What Python costs hardly depends on the batch size: it matters where steps are short.
#
# If a step itself is slow, look into it with the profiler:
# `with tf.profiler.experimental.Profile(folder):` around a few steps writes a trace into the folder.
# It is read by TensorBoard's profile plugin, which the course does not install.
# Leave the first step out, since it compiles.

# %% iterate
from course_lib import iterating, step_times
from lessons.lesson_10_custom_training.iterating_explorer import IterationExplorer

found = []
for way in (iterating.for_loop, lambda step: iterating.several_steps(step, 2), iterating.whole_epoch):
    step = make_step(two, *with_dropout(two), inner)
    found.append(way(step)(two.experimental_distribute_dataset(dataset)))
print(len(found[0]), "losses, the same within 0.00001:", np.ptp(found, axis=0).max() < 1e-5)
IterationExplorer(step_times.measure_iteration)

# %% score
score("10")

# %% [markdown]
# ## Takeaways
#
# - Each replica divides its losses by the examples of the *global* batch, once,
#   and penalties by the number of replicas.
#   Then the sum over the replicas is the step of one device, for every last batch,
#   if no layer mixes examples or draws at random, as `BatchNormalization` and `Dropout` do,
#   and the optimizer does not clip gradients: with `clipnorm`, Keras 3 clips those of each replica.
# - Metrics take what belongs to single examples; they divide by themselves.
# - A checkpoint needs no strategy, but everything that the next step depends on.
#   `assert_consumed` knows only what TensorFlow finds: it does not miss what was never saved.
#
# Lesson 11 has many processes.
