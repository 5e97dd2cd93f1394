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

course_lib.setup(language=LANGUAGE, devices=8)

# %% garments-text [markdown]
# ## Garments
#
# The images have 28 × 28 pixels, and ten kinds of garments are in them.
# With `SOURCE = None` they are a stand-in that the course draws itself;
# `"tfds"` loads Fashion-MNIST, with its 70,000 photographs of garments.
# Either way the lesson trains on the first 5,000 images and tests on the first 1,000.
# A convolution wants an axis of channels, so that an image is `[28, 28, 1]`, its pixels divided by 255.

# %% garments
from course_lib import strategies, training
from course_lib.data import fashion
from course_lib.models.fashion import convolutional
from course_lib.specs.confusion import ConfusionMatrix
from course_lib.specs.image_grid import ImageGrid
from course_lib.watch import live

tf = course_lib.start_tensorflow()
SOURCE = None  # the stand-in (or what COURSE_DATA says); "tfds" is the real set
garments = fashion.load(SOURCE, num_test=1_000)
names = fashion.class_names()
some = garments.train.take(slice(20))
ImageGrid(some.images, some.labels, names=names)

# %% first-run-text [markdown]
# Four virtual CPUs train a convolutional model on them, under a `MirroredStrategy`:
# each replica has a copy of the variables and gets 64 of the 256 images of a batch.
# `strategies.mirrored(4)` makes the strategy on the first four devices.
# Model and optimizer are made in its scope; `convolutional` does that for the model.
#
# This is the finished thing, with the library's trainer.
# Below you write what it does.
# (`epochs=10` trains on as TensorFlow's own tutorial does; three are enough to see the loss fall.)

# %% first-run
EPOCHS = 3
four = strategies.mirrored(4)
with four.scope():
    adam = tf.keras.optimizers.Adam()
model = convolutional(four)
trainer = training.StrategyTrainer(model, adam, four)
settings = training.Settings(EPOCHS, batch_size=64 * 4, last_batch="pad")
run = training.TrainingRun(trainer, garments.train, garments.test, settings=settings)
history = await live.watch(run)

# %% confusion
logits = model(garments.test.features)
predictions = tf.argmax(logits, axis=1).numpy()
print("above 0.5" if history.epochs[-1].test_accuracy > 0.5 else "below 0.5")
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
# Here 16 examples come in batches of 8.

# %% parts
from course_lib.distributed_input import received_examples
from course_lib.exercises import check, predict, reveal, score, yours_or_ours

received_examples(four, tf.data.Dataset.range(16).batch(8))

# %% [markdown]
# With 13 examples the second batch has only five.

# %% predict-parts
predict("10-parts")

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

# %% losses-text [markdown]
# ## What to divide by
#
# Training minimises the mean loss of a global batch.
# But a replica knows the losses of its own examples only.
#
# Take the smallest model, $y = wx$ with the loss $|wx - t|$, at $w = 3$.
# Two replicas have two examples each; their losses are 2 and 3, 4 and 5.
# The gradient of each loss with respect to $w$ is its $x$: 1 and 2, 3 and 4.
#
# `strategy.run` calls a function once on each replica, with that replica's part of the batch.
# What the replicas return comes back as one object, with a value for each replica.

# %% losses
two = strategies.mirrored(2)
inputs, targets = tf.constant([1.0, 2.0, 3.0, 4.0]), tf.constant([1.0, 3.0, 5.0, 7.0])
dataset = tf.data.Dataset.from_tensor_slices((inputs, targets)).batch(4)
(batch,) = two.experimental_distribute_dataset(dataset)


def losses(x, target):
    return tf.abs(3 * x - target)


two.run(losses, batch)

# %% shares-text [markdown]
# The mean of the four losses is $14 / 4 = 3.5$.
# It is a sum over the replicas, if each of them divides the sum of its own losses by 4,
# the number of examples in the *global* batch.
# `tf.nn.compute_average_loss` does that.
#
# `experimental_local_results` gives the values of the replicas as a tuple,
# `reduce` one value for all of them.
# Its `axis` has to be given: with `None` only the replicas are added up, and no axis of the values.

# %% shares


def share(x, target):
    return tf.nn.compute_average_loss(losses(x, target), global_batch_size=4)


shares = two.run(share, batch)
print(*(float(each) for each in two.experimental_local_results(shares)))
print(float(two.reduce("SUM", shares, axis=None)))

# %% after-step-text [markdown]
# A loss that is only printed may be mended later.
# A gradient is used at once:
# a Keras optimizer adds up the gradients of all replicas, and every copy of a variable takes the same step.
#
# `after_step` takes a step of SGD with the learning rate 0.1, from $w = 3$.
# `divide` makes of a replica's losses the number whose gradient it takes.
# With shares of the true mean the gradients are 0.75 and 1.75, in all 2.5, and $w$ becomes 2.75.


# %% after-step
def after_step(strategy, batch, divide):
    with strategy.scope():
        weight, sgd = tf.Variable(3.0), tf.keras.optimizers.SGD(0.1)
        sgd.build([weight])

    def step(x, target):
        with tf.GradientTape() as tape:
            loss = divide(tf.abs(weight * x - target))
        sgd.apply([tape.gradient(loss, weight)], [weight])
        return loss

    loss = strategy.reduce("SUM", strategy.run(step, batch), axis=None)
    return float(loss), float(weight.numpy())


# %% own-given [markdown]
# Now each replica takes the mean over its *own* two losses, as one would on one device.

# %% predict-own
predict("10-own")

# %% reveal-own
loss, weight = after_step(two, batch, tf.reduce_mean)
reveal("10-own", weight)

# %% own-why [markdown]
# The sum of two means is twice the mean of all, and with eight replicas it is eight times the mean.
# For SGD that is another learning rate.
# Adam divides a gradient by its own size, so that it hardly shows.
# And where parts are unequal, no learning rate mends it:
# an example counts more on a replica that has fewer of them.
#
# The extreme case are the five examples on four replicas.
# Again each takes the mean over its own.

# %% predict-empty
predict("10-empty")

# %% reveal-empty
import numpy as np

x = tf.range(1.0, 6.0)
five = tf.data.Dataset.from_tensor_slices((x, 2 * x - 1)).batch(8)
(batch_of_five,) = four.experimental_distribute_dataset(five)
loss, weight = after_step(four, batch_of_five, tf.reduce_mean)
nans = [name for name, value in {"loss": loss, "weight": weight}.items() if np.isnan(value)]
reveal("10-empty", " ".join(nans) or "none")

# %% empty-why [markdown]
# A mean over nothing is 0 / 0.
# But no example moves it, and TensorFlow's gradient of it is 0.
# So a curve has a hole at the end of each epoch while the weights go on.
# They go the wrong way by too much; shares of the five have the right length:


# %% five
def share_of_five(losses):
    return tf.nn.compute_average_loss(losses, global_batch_size=5)


for divide in (tf.reduce_mean, share_of_five):
    loss, weight = after_step(four, batch_of_five, divide)
    print(f"loss {loss:.1f} weight {weight:.1f}")

# %% metric-text [markdown]
# ### Metrics
#
# `tf.keras.metrics.Mean` shows the mean of everything that it was given.
# Made in the scope, it keeps a total and a count on each replica, and `result` adds them up.
# The next cell gives it, on each of the two replicas, the share that the replica returns: 1.25 and 2.25.

# %% predict-metric
predict("10-metric")

# %% reveal-metric
with two.scope():
    metric = tf.keras.metrics.Mean()


def report(x, target):
    metric.update_state(share(x, target))


two.run(report, batch)
reveal("10-metric", float(metric.result()))

# %% explorer-text [markdown]
# A share is no mean of anything that a metric could average.
# Give metrics what belongs to single examples: `metric.update_state(losses(x, target))` gives 3.5.
#
# In the explorer the model is the same, with losses 2, 3, 4, … and gradients 1, 2, 3, …
# Which divisions are right for eight examples?
# Which of them still are for seven, and which for five?
# Wrong gradients stand beside the right one.

# %% explorer
from course_lib.explorers.loss_scaling import LossScalingExplorer

LossScalingExplorer(num_replicas=4, batch_size=8, num_examples=8)

# %% keras-weights-text [markdown]
# ## What Keras has divided already
#
# A loss object of Keras 3 divides, if it is not told otherwise:
# by the number of elements that it gets, on a replica those of the replica's own examples,
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
# Three programs in which somebody did not choose.
# The old default of Keras 2 was called `AUTO` and meant `SUM_OVER_BATCH_SIZE`;
# of `tf_keras`, which is Keras 2, it still is.

# %% reductions tags=["error"]
import tf_keras


def divided_again():
    loss = tf.keras.losses.MeanAbsoluteError()(targets, 3 * inputs)
    return tf.nn.compute_average_loss(loss, global_batch_size=4)


def default_of_tf_keras():
    with two.scope():
        return tf_keras.losses.MeanAbsoluteError()(targets, 3 * inputs)


for attempt in (divided_again, default_of_tf_keras, lambda: tf.keras.losses.MeanAbsoluteError("auto")):
    try:
        attempt()
    except ValueError as error:
        print(str(error).splitlines()[0])

# %% require-text [markdown]
# `compute_average_loss` refuses a single number, since it expects a loss for each example.
# A division that is written out, `loss / 2`, nobody refuses.
# The course's check looks at the loss object before there is a step:

# %% require tags=["error"]
try:
    strategies.require_per_example(tf.keras.losses.MeanAbsoluteError())
except course_lib.CourseError as error:
    print(error)

# %% axes-text [markdown]
# ### Labels with more axes
#
# Some labels are pictures: each of two examples has 4 × 4 numbers, `[2, 4, 4]`.
# `MeanSquaredError(reduction="none")` compares them with outputs of the same shape.

# %% predict-axes
predict("10-axes")

# %% reveal-axes
ones, zeros = tf.ones((2, 4, 4)), tf.zeros((2, 4, 4))
squared = tf.keras.losses.MeanSquaredError(reduction="none")
reveal("10-axes", squared(ones, zeros).shape)

# %% axes-why [markdown]
# A loss of Keras reduces the last axis and no other.
# `compute_average_loss` adds up what is left, here 2 × 4 numbers, and divides by the two examples:
# too large by the factor 4.
# With an axis of length 1 at the end every element keeps its loss.
# Then take the mean over an example's own elements.

# %% axes
rows = squared(ones, zeros)
elements = squared(ones[..., tf.newaxis], zeros[..., tf.newaxis])
examples = tf.reduce_mean(elements, axis=(1, 2))
for each in (rows, elements, examples):
    average = tf.nn.compute_average_loss(each, global_batch_size=2)
    print(each.shape, float(average))

# %% step-text [markdown]
# ## The loop
#
# Back to the garments.
# A step has two halves.
# This is the outer one, which is written once for all replicas.
# Since the last batch may be smaller, it asks each replica how many labels it has, and adds them up:
# that is the size of the global batch.


# %% step
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
# It computes the losses of the logits that the model gives
# (`tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)`),
# gives the gradients to the optimizer (`optimizer.apply(gradients, variables)`),
# and returns the replica's share of the mean loss of the global batch.
#
# The check runs it on two replicas, with equal parts, with unequal ones and with an empty one,
# and compares losses and variables with NumPy.


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
# Now the same model goes through 69 images under the strategy and on one device:
# `tf.distribute.get_strategy()` gives the strategy that is there when nobody asked for one.
# 64 images are 16 for each replica; five are left, 2, 2, 1 and 0.
# (Your `replica_step` is used if it is right, ours if not yet.)


# %% by-hand
def trained_by_hand(strategy, images):
    model = convolutional(strategy)
    with strategy.scope():
        adam = tf.keras.optimizers.Adam()
        adam.build(model.trainable_variables)
    step = make_step(strategy, model, adam, yours_or_ours("10-replica-step", replica_step))
    batches = tf.data.Dataset.from_tensor_slices((images.features, images.labels)).batch(64)
    losses = [float(step(*batch)) for batch in strategy.experimental_distribute_dataset(batches)]
    return model, losses


one = tf.distribute.get_strategy()
(on_four, four_losses), (on_one, one_losses) = (
    trained_by_hand(each, garments.train.take(slice(69))) for each in (four, one)
)

# %% compare
gaps = [np.abs(ours.numpy() - theirs.numpy()).max() for ours, theirs in zip(on_four.variables, on_one.variables)]
print(len(four_losses), "losses, within 0.001:", np.allclose(four_losses, one_losses, atol=1e-3))
print("variables within 0.001:", max(gaps) < 1e-3)

# %% objective-text [markdown]
# ### Penalties
#
# A layer with `kernel_regularizer="l2"` adds a penalty to `model.losses`, which depends on the variables alone.
# Every replica has the same variables, so each of them computes the whole penalty.
#
# **Exercise 4.** Write `objective(losses, penalties, global_batch_size)`, the number whose gradient a replica takes.
# `losses` are those of its own examples, `[rows]`, and `penalties` a list of numbers, the same on all replicas.
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
