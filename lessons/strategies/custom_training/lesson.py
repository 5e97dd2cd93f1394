# %% [markdown]
# # What must my own loop divide by?
#
# You move your training loop from one GPU to four.
# The loss falls, the accuracy climbs, and you ship it.
# Every gradient was four times too large.
# And because you train with Adam, the accuracy was just what it should have been, so you never found out.
#
# Four replicas share a batch, and each computes the losses of its own examples.
# Before it takes the gradient, it has to divide these losses by something. By what?
# Under `fit`, Keras decides. In your own loop, you do, and if you divide by the wrong number, usually nothing fails.
#
# So one question runs through this lesson: *what has been divided already, and what is left for you to divide by?* A table at the end answers it.
#
# **After this lesson you can**
#
# - write a training step whose replicas together make the same update as a single device;
# - say what Keras has divided already, and what it hasn't;
# - split a batch that is too large into micro-batches.
#
# **Time:** 45 minutes.
# **You need to know:** `MirroredStrategy`, its scope and its replicas ({lesson:strategies}).

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% example-text [markdown]
# ## Four losses and one weight
#
# We begin with the smallest model there could be: $y = wx$, with one weight, $w = 3$.
# The loss of an example is $|wx - t|$, where $t = 2x - 1$ is its target. Two replicas share a global batch of four examples:
#
# | | replica 0 | replica 1 |
# | --- | --- | --- |
# | $x$ | 1, 2 | 3, 4 |
# | target $t$ | 1, 3 | 5, 7 |
# | $wx$ | 3, 6 | 9, 12 |
# | loss | 2, 3 | 4, 5 |
# | gradient of the loss | 1, 2 | 3, 4 |
#
# One device would take the mean of the four losses, 14 / 4 = 3.5, with the gradient 10 / 4 = 2.5.
# With SGD and a learning rate of 0.4, $w$ goes from 3 to 3 − 0.4 · 2.5 = 2.
#
# The two replicas should get there, too. In {lesson:strategies}, you divided by the number of examples in the global batch, the **global batch size**, as one device does. Here it is 4. Let's divide by it again, and then see what happens if you don't.
#
# What one replica does with its part of the batch is a **replica step**. Look at the marked line:

# %% example
import numpy as np

tf = course_lib.start_tensorflow()


def mirrored(num_replicas):
    devices = [f"CPU:{number}" for number in range(num_replicas)]
    to_one = tf.distribute.ReductionToOneDevice()  # GPUs: leave it out
    return tf.distribute.MirroredStrategy(devices, to_one)


two = mirrored(2)
with two.scope():
    weight = tf.Variable(3.0)
    sgd = tf.keras.optimizers.SGD(0.4)
    sgd.build([weight])


def step_on_replica(x):
    target = 2 * x - 1
    with tf.GradientTape() as tape:
        losses = tf.abs(weight * x - target)
        share = tf.reduce_sum(losses) / 4  # the line to look at
    gradient = tape.gradient(share, weight)
    sgd.apply([gradient], [weight])  # adds up over the replicas
    return share


# %% loop-text [markdown]
# The loop needs three methods of the strategy:
#
# - `experimental_distribute_dataset` makes a **distributed dataset**, which splits each global batch into parts, one for each replica;
# - `run` calls a replica step on every replica, each with its own part;
# - `reduce` turns what the replicas return into one number. Here it adds up their shares of the loss.

# %% loop
x = np.array([1, 2, 3, 4], "float32")
batches = tf.data.Dataset.from_tensor_slices(x).batch(4)
for parts in two.experimental_distribute_dataset(batches):
    shares = two.run(step_on_replica, args=(parts,))
    # What each replica returned, only to print it
    for share in two.experimental_local_results(shares):
        print("share", share.numpy())
    # No axis: add up over the replicas only
    loss = two.reduce("SUM", shares, axis=None)
    print("loss ", loss.numpy(), "  w", weight.numpy())

# %% loop-read [markdown]
# Each replica returns its **share** of the loss, what its examples add to the mean: 5 / 4 = 1.25 and 9 / 4 = 2.25. Together that is 3.5. The weight is 2, as on one device.
# Its gradients were 3 / 4 and 7 / 4; the Keras optimizer has added them up over the replicas, to 2.5.
#
# Now for the line that everybody writes without thinking, because on one device it is right: `tf.reduce_mean(losses)`.
# On a replica, it takes the mean of *this replica's* losses.
#
# The folded cell has the same step and the same loop as a function, `one_step`. Its argument `divide` takes the place of the marked line.


# %% one-step tags=["known"]
def one_step(strategy, x, divide):
    with strategy.scope():
        weight = tf.Variable(3.0)
        sgd = tf.keras.optimizers.SGD(0.4)
        sgd.build([weight])

    def step_on_replica(x):
        target = 2 * x - 1
        with tf.GradientTape() as tape:
            losses = tf.abs(weight * x - target)
            share = divide(losses)
        gradient = tape.gradient(share, weight)
        sgd.apply([gradient], [weight])
        return share

    batches = tf.data.Dataset.from_tensor_slices(x).batch(len(x))
    for parts in strategy.experimental_distribute_dataset(batches):
        shares = strategy.run(step_on_replica, args=(parts,))
        loss = strategy.reduce("SUM", shares, axis=None)
    return float(loss), float(weight.numpy())


# %% predict-own [markdown]
# A model has one weight, `w` = 3, and two replicas have two examples each.
# The gradients of their losses are 1 and 2 on one replica, 3 and 4 on the other.
# Each replica takes the mean over its own two losses, and a Keras optimizer makes the step:
# SGD with the learning rate 0.4.
# What is `w` then?
#
# - [x] `1.0`
#   The means have the gradients 1.5 and 3.5, and the optimizer adds them up: 5, twice what is right.
# - [ ] `2.0`
#   That is the right step. It would be taken if the optimizer averaged the gradients, but it adds them up.
# - [ ] `1.6`
#   That is the step of the second replica alone. But all copies take the same step.
# - [ ] `2.4`
#   That is the step of the first replica alone. But all copies take the same step.
# - otherwise
#   Compute the gradient of each replica's mean, and add them up.

# %% reveal-own
_loss, weight = one_step(two, x, tf.reduce_mean)
reveal("custom_training-own", weight)

# %% own-why [markdown]
# With two replicas the gradient is twice what it should be; with four, it would be four times.
#
# The loss is doubled as well: the two means, 2.5 and 4.5, add up to 7 instead of 3.5. You may notice that, and change the `reduce` to `"MEAN"`.
# But this only corrects the number that you print. The mistake is in the replica step, where the gradient is computed.
#
# ## Why nobody notices
#
# If every gradient is four times too large, surely the training must go wrong?
# Let's see, with four replicas and a real network. It gets pictures of garments, and there are ten classes:

# %% garments
from course_lib import data, image_grid

SOURCE = None  # "tfds" takes the photographs of Fashion-MNIST
garments = data.load_fashion(SOURCE, num_train=1280, num_test=1000)
images = garments.train.features
labels = garments.train.labels
names = np.array(data.class_names())
image_grid(garments.train.images[:10], names[labels[:10]])

# %% network-text [markdown]
# The network is a small convolutional one of the usual kind. `build` makes it and an optimizer, in the scope of a strategy:


# %% network tags=["known"]
def convolutional():
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            tf.keras.Input((28, 28, 1)),
            layers.Conv2D(32, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(64, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(64, activation="relu"),
            layers.Dense(10),
        ]
    )


def build(
    strategy,
    make_model=convolutional,
    make_optimizer=tf.keras.optimizers.Adam,
):
    tf.keras.utils.set_random_seed(0)
    with strategy.scope():
        model = make_model()
        optimizer = make_optimizer()
        # A compiled step must not make variables
        optimizer.build(model.trainable_variables)
    return model, optimizer


# %% both-steps-text [markdown]
# Here are two replica steps that differ in one line. The first one makes the mistake. In the second, each replica divides by the global batch size, 128:

# %% both-steps
cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits


def local_step(model, optimizer, images, labels):
    with tf.GradientTape() as tape:
        logits = model(images, training=True)
        losses = cross_entropy(labels, logits)
        share = tf.reduce_mean(losses)
    variables = model.trainable_variables
    optimizer.apply(tape.gradient(share, variables), variables)
    return share, logits


def right_step(model, optimizer, images, labels):
    with tf.GradientTape() as tape:
        logits = model(images, training=True)
        losses = cross_entropy(labels, logits)
        share = tf.reduce_sum(losses) / 128  # was: reduce_mean
    variables = model.trainable_variables
    optimizer.apply(tape.gradient(share, variables), variables)
    return share, logits


# %% train-text [markdown]
# Each of them takes twenty steps with Adam: ten batches of 128 images, twice.
# The folded cell has the loop. Instead of a distributed dataset it uses `share_out`, which splits a batch in the same way.


# %% train tags=["known"]
import math

four = mirrored(4)


def share_out(strategy, batch):
    rows = math.ceil(len(batch) / strategy.num_replicas_in_sync)

    def part_of(context):
        first = rows * context.replica_id_in_sync_group
        return tf.constant(batch[first : first + rows])

    return strategy.experimental_distribute_values_from_function(
        part_of
    )


def train(model, optimizer, replica_step):
    with four.scope():
        accuracy = tf.keras.metrics.SparseCategoricalAccuracy()

    @tf.function
    def train_step(x, y):
        arguments = (model, optimizer, x, y)
        shares, logits = four.run(replica_step, args=arguments)
        four.run(accuracy.update_state, args=(y, logits))
        return four.reduce("SUM", shares, axis=None)

    losses, accuracies = [], []
    for step in range(20):
        first = 128 * (step % 10)
        x = share_out(four, images[first : first + 128])
        y = share_out(four, labels[first : first + 128])
        accuracy.reset_state()
        losses.append(float(train_step(x, y)))
        accuracies.append(float(accuracy.result()))
    return losses, accuracies


# %% both-runs
from course_lib import about
from lessons.strategies.custom_training.picture import two_runs

model, adam = build(four)
wrong = train(model, adam, local_step)
model, adam = build(four)
right = train(model, adam, right_step)

losses, accuracies = wrong
print("wrong first loss", about(losses[0], 8, 10, digits=3))
print("      last accuracy", about(accuracies[-1], 0.4, 0.9))
losses, accuracies = right
print("right first loss", about(losses[0], 2.2, 2.4, digits=3))
print("      last accuracy", about(accuracies[-1], 0.4, 0.9))
two_runs(wrong, right)

# %% both-runs-read [markdown]
# Look at the left panel first. The wrong loss starts at 9.15, and the right one at 2.29.
# Before it has learned anything, the network can only guess among ten classes, and a guess costs a loss of $\ln 10 \approx 2.30$.
# So 9.15 is four times what it should be, and the wrong loss stays about four times the right one in every step.
#
# Now look at the right panel. The two accuracies lie almost on top of each other, and end at 0.59 and 0.58!
#
# The reason is Adam, which hides a wrong factor, as in {lesson:one_step}. It divides each step by the recent size of the gradients.
# Multiply every gradient by four, and the four cancels: $4g / \sqrt{(4g)^2} = g / \sqrt{g^2}$.
# SGD hides nothing. With SGD you train at four times your learning rate, and wonder why a rate that worked on one GPU fails on four.
#
# So the mistake does no harm as long as you stay with Adam? It does none here, because all replicas have equally many images.

# %% note-torch [markdown]
# What if you come from PyTorch?
#
# Its DDP averages the gradients. There, a replica's own mean is right, as long as the parts are equal.

# %% note-by-hand [markdown]
# Why does this notebook split batches by hand?
#
# In your own program, take a distributed dataset: `iterator = iter(strategy.experimental_distribute_dataset(dataset.repeat()))`, once for the whole run.
# The plain program at the end does that.
# But when such an iterator is discarded, TensorFlow may wait longer than it existed.
# In a notebook, whose cells you run again and again, that would be minutes, so most cells here split their batches by hand. The page *Troubleshooting* says why.

# %% note-epsilon [markdown]
# Does Adam hide every wrong factor?
#
# Only where the gradients are far larger than its `epsilon` of $10^{-7}$, and where *all* of them are wrong by the same factor.
# If one part of the loss, such as a penalty, is divided wrongly, the sum is wrong, and Adam follows it.

# %% unequal [markdown]
# ## When the parts are unequal
#
# The last batch of an epoch is seldom full. Take 13 examples in batches of 8: the last batch has five, for four replicas.
# TensorFlow divides the rows by the number of replicas, rounds up, and hands out parts of that size until no rows are left: 2, 2, 1, and 0.
# How much does each example count?
#
# | each example counts | replica 0 | replica 1 | replica 2 | replica 3 |
# | --- | --- | --- | --- | --- |
# | with the mean of the replica's own losses | 1/2, 1/2 | 1/2, 1/2 | 1 | |
# | divided by the global batch size | 1/5, 1/5 | 1/5, 1/5 | 1/5 | |
#
# With each replica's own mean, the example that is alone on its replica counts twice as much as the others.
# No learning rate corrects that.
#
# And replica 3 has no examples at all. It still takes part in the step, with tensors that have no rows.

# %% predict-empty [markdown]
# Five examples fall to four replicas in parts of 2, 2, 1 and 0.
# Each replica takes the mean over its own losses with `tf.reduce_mean`,
# and SGD takes a step with the sum of the gradients of these means.
# The sum of the four means is reported as the loss. What becomes NaN, not a number?
#
# - [ ] `none` neither of the two
#   The loss adds up the means, and the mean over nothing, 0 / 0, makes it NaN.
# - [x] `loss` only the loss
#   The mean over nothing is NaN, but its gradient is a sum over the examples, and a sum over nothing is 0.
# - [ ] `loss weight` both
#   It would be if the gradient of that mean were NaN, too. But it is a sum over the examples.
# - [ ] `weight` only the weight
#   The loss adds up the means, of which one is NaN; the gradients are numbers.

# %% reveal-empty
x = np.array([1, 2, 3, 4, 5], "float32")
loss, weight = one_step(four, x, tf.reduce_mean)
became_nan = []
if np.isnan(loss):
    became_nan.append("loss")
if np.isnan(weight):
    became_nan.append("weight")
reveal("custom_training-empty", " ".join(became_nan))

# %% empty-why [markdown]
# So your curve has a hole at the end of each epoch, and the model trains on, with a wrong step.
# Dividing by the global batch size is right here, too. A sum over no examples is 0, and so is its gradient.
#
# But the global batch size is now 5, not the 8 that you gave your dataset. So the loop has to count the rows of each batch before the step. Each replica counts its own rows, and `reduce` adds up the counts:


# %% count
def count(labels):
    return tf.shape(labels)[0]


last_labels = share_out(four, labels[:5])
counts = four.run(count, args=(last_labels,))
size = four.reduce("SUM", counts, axis=None)
print("global batch size", int(size))

# %% note-onednn [markdown]
# Which layers can't cope with an empty part?
#
# Convolutions, sometimes. On many processors TensorFlow 2.21 uses oneDNN, and there a convolution of no images has a wrong shape, so that the next convolution fails.
# The course switches oneDNN off; your programs may leave it on.
# Batch normalization accepts an empty part without a word, but unless you ask for `synchronized=True`, its answer is NaN: in {lesson:strategies} you saw a model die of it.
# Choose batches that leave no part empty, or drop the last one (`drop_remainder=True`).

# %% divided-heading [markdown]
# ## What has been divided already?
#
# Your own losses are now divided by `size`, and that is right. But a loop contains more than your own losses:
# metrics, loss objects of Keras, and penalties. What has each of them divided already?
#
# We begin with metrics. On the two replicas, the shares of the loss were 1.25 and 2.25. Give these to a `Mean` metric,
# and give the losses of the single examples to a second one:

# %% metric
with two.scope():
    of_shares = tf.keras.metrics.Mean()
    of_examples = tf.keras.metrics.Mean()


def update_metrics(x):
    losses = tf.abs(3 * x - (2 * x - 1))
    of_shares.update_state(tf.reduce_sum(losses) / 4)
    of_examples.update_state(losses)


x = np.array([1, 2, 3, 4], "float32")
two.run(update_metrics, args=(share_out(two, x),))
print("Mean of the shares  ", float(of_shares.result()))
print("Mean of the examples", float(of_examples.result()))

# %% metric-read [markdown]
# The first, 1.75, is the mean of 1.25 and 2.25, half of what it should be: the metric has divided by the number of shares, two.
# The second is 3.5. So feed a metric the losses of the single examples, never a loss that you have divided.
#
# That is also how you evaluate. Our model, which has taken twenty right steps, gets 1,000 test images in batches of 270.
# None of these batches splits evenly, and the last has only 190 images. What should you divide the losses by?

# %% evaluate
test_images = garments.test.features
test_labels = garments.test.labels
with four.scope():
    mean_loss = tf.keras.metrics.Mean()


def evaluate(images, labels):
    logits = model(images, training=False)
    mean_loss.update_state(cross_entropy(labels, logits))


for first in range(0, 1000, 270):
    x = share_out(four, test_images[first : first + 270])
    y = share_out(four, test_labels[first : first + 270])
    four.run(evaluate, args=(x, y))

losses = cross_entropy(test_labels, model(test_images))
at_once = float(np.mean(losses))
print("metric ", about(mean_loss.result(), 0.9, 1.7, digits=3))
print("at once", about(at_once, 0.9, 1.7, digits=3))

# %% evaluate-read [markdown]
# By nothing. The metric counts the examples as they arrive, so it ends with 1.09, the mean over all 1,000. One device gets the same, in a single batch.
#
# Next, Keras's loss objects. In {lesson:strategies}, the last example took half a step,
# because Keras divided the mean over its part by the number of replicas.
# Where does Keras do that: in `fit`, or in the loss object that you give to `compile`? To find out, call a loss object without `fit`, in a replica step.

# %% predict-keras [markdown]
# Three examples have the losses 2, 3 and 4. The first two are on replica 0, the third is on replica 1.
# Each replica calls a loss object of Keras 3 with its default reduction, and the two results are added up.
# What is the sum?
#
# - [ ] `3.0`
#   That is the mean of the three. It would come out if both replicas had equally many examples.
# - [x] `3.25`
#   It is 2.5 / 2 + 4 / 2: the mean over each replica's own examples, divided by the two replicas.
# - [ ] `6.5`
#   These are the two means, 2.5 and 4. Keras also divides by the number of replicas.
# - otherwise
#   Take the mean on each replica, divide it by two, and add up.

# %% reveal-keras
absolute = tf.keras.losses.MeanAbsoluteError()


def keras_loss(x):
    # Keras's losses want a column: shape (rows, 1)
    return absolute(2 * x - 1, 3 * x)


x = np.array([[1], [2], [3]], "float32")
losses = two.run(keras_loss, args=(share_out(two, x),))
total = float(two.reduce("SUM", losses, axis=None))
reveal("custom_training-keras", total)

# %% keras-why [markdown]
# So the loss object divides, whether `fit` calls it or you do. Its default is right if the parts are equal. If they aren't, it is slightly wrong, and nothing tells you.
# If you divide once more, it is badly wrong. In your own loop, ask for the undivided losses and divide them once:
#
# ```python
# absolute = tf.keras.losses.MeanAbsoluteError(reduction="none")
# ```
#
# You have met four divisors: a replica's own examples, the global batch size, the batch size that you gave the dataset, and Keras's default.
# Try them on a loss of your own. `my_loss` gets the outputs $y = 3x$ and the targets $t = 2x - 1$ of eight examples,
# and returns a loss for each. The explorer starts with the first divisor, the mistake from the start of the lesson.
#
# Which divisors are right for eight examples on four replicas? Which are still right for five?
# And with the squared error, `(y - t) ** 2`?


# %% scaling
from lessons.strategies.custom_training import loss_scaling_explorer


def my_loss(y, t):
    return tf.abs(y - t)


loss_scaling_explorer.LossScalingExplorer(
    num_replicas=4,
    batch_size=8,
    num_examples=8,
    division="replica",
    loss=my_loss,
)

# %% scaling-read [markdown]
# The explorer starts with a gradient of 18, where 4.5 is right: four times too large again.
# The other three are all right for eight examples: the global batch size, the batch size that you gave the dataset, and Keras's default.
# With five examples, only the global batch size is still right. With the squared error, the losses and gradients change, but none of these verdicts does.
#
# Penalties come last. A layer with `kernel_regularizer="l2"` adds its penalty to the list `layer.losses`, and so to `model.losses`.
# The penalty depends on the weights alone, and all replicas have the same weights.
# So each replica computes the *whole* penalty. What is the sum over four replicas?

# %% penalty
with four.scope():
    layer = tf.keras.layers.Dense(
        10, kernel_initializer="ones", kernel_regularizer="l2"
    )
    layer.build((None, 4))


def whole_penalty():
    return tf.add_n(layer.losses)


def shared_penalty():
    return tf.nn.scale_regularization_loss(layer.losses)


for penalty in [whole_penalty, shared_penalty]:
    values = four.run(penalty)
    total = float(four.reduce("SUM", values, axis=None))
    print(f"{penalty.__name__:14} summed: {total:.2f}")

# %% penalty-read [markdown]
# Forty weights of 1, times 0.01, the factor of `"l2"`, are a penalty of 0.4. Left whole, it counts four times: 1.6.
# `tf.nn.scale_regularization_loss` adds up the list and divides by the number of replicas, and 0.4 is left.
#
# Two kinds of loss follow other rules. Activity regularizers put losses into `model.losses`, too, but these are sums over the *examples*, so you divide them by the global batch size, like your own losses. And where a mask hides some of the tokens, the divisor is the number of unmasked tokens in the whole global batch, not the number of examples. (The notes have the details.)

# %% note-activity [markdown]
# Is everything in `model.losses` divided by the replicas?
#
# No. Activity regularizers and `add_loss` put losses there, too, and these depend on the *examples*.
# A sum over examples, such as the KL term of a VAE, is divided by the global batch size, like any other loss.
# Dividing such a *sum* by the number of replicas is always wrong. Dividing a *mean* by it is right only when the parts are equal.
# (Under `fit`, the model divides this whole list by the number of replicas; the loss object doesn't get it.)

# %% note-weights [markdown]
# What if examples have weights, or tokens a mask?
#
# Then the divisor is no longer a number of examples. A mean over tokens is the sum of their losses, divided by the number of tokens that count, in the whole global batch.
# So make the mask float32, and count the tokens as we counted the rows: each replica returns `tf.reduce_sum(mask)`, and `reduce("SUM", ...)` makes `size` of it.
# Then each replica divides `tf.reduce_sum(mask * losses)` by this `size`. With weights instead of the mask, the result is a weighted mean.
#
# `compute_average_loss` also takes `sample_weight`. It multiplies the losses by the weights, and still divides by the number of examples.

# %% note-last-axis [markdown]
# My labels are images. What does `reduction="none"` leave?
#
# One loss for each pixel row, probably, and not one for each example.
# `MeanSquaredError`, `MeanAbsoluteError` and `BinaryCrossentropy` take the mean over the last axis, whatever it stands for, and over no other.
# For two images of shape `(4, 4)` they return losses of shape `(2, 4)`, and `compute_average_loss` would divide the sum of all eight by two examples: four times too much.
# Give the images a last axis of length 1, so that you get `(2, 4, 4)`, and take the mean over each example yourself:
# `tf.reduce_mean(losses, axis=(1, 2))`.
#
# There is one more trap. With labels of shape `(n,)`, `MeanAbsoluteError` returns one number even with `reduction="none"`,
# and with its default it skips the division by the replicas. Use the shape `(n, 1)`.

# %% note-no-rows [markdown]
# What does a loss object make of no rows?
#
# With a distributed dataset, in a compiled step, it returns 0; that is what the explorer shows.
# With parts of known size, such as those that we split by hand, it returns an empty tensor, and `reduce` or `tf.function` refuses it.

# %% step-exercise [markdown]
# ## Your replica step
#
# **Exercise 1.** Write `replica_step`. You are handed the global batch size as `size`.
# However the batch is split, and whether or not the weights are regularized, the replicas together must make exactly the update that one device would make.
# Return this replica's share of the loss, and the logits.
#
# `tf.nn.compute_average_loss(losses, global_batch_size=size)` adds up the losses and divides the sum by `size`, which is an integer.
# If you divide yourself, make it a float: `tf.cast(size, tf.float32)`.
#
# The check compares losses and weights with those of one device, on two replicas and on four,
# with equal, unequal and empty parts.

# %% exercise-step
def replica_step(model, optimizer, images, labels, size):
    # solution begin
    with tf.GradientTape() as tape:
        logits = model(images, training=True)
        losses = cross_entropy(labels, logits)
        loss = tf.nn.compute_average_loss(
            losses, global_batch_size=size
        )
        loss += tf.nn.scale_regularization_loss(model.losses)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply(gradients, model.trainable_variables)
    return loss, logits
    # solution end

# %%
check("custom_training-replica-step", replica_step)

# %% against-one-text [markdown]
# How would you find out without a check, in your own program?
# Compare with a **reference step**: the whole batch at once on one device, without a strategy, and with SGD, which hides nothing.
# Take a batch that splits unevenly. Ours has seven images, and the four replicas get 2, 2, 2 and 1.
#
# The folded cell has the reference step, and `largest_difference`, which compares two lists of weights.

# %% reference tags=["known"]
one = tf.distribute.get_strategy()  # the default strategy: one device


def sgd():
    return tf.keras.optimizers.SGD(0.1)


def reference_weights(rows):
    model, optimizer = build(one, make_optimizer=sgd)
    with tf.GradientTape() as tape:
        logits = model(images[:rows], training=True)
        loss = tf.reduce_mean(cross_entropy(labels[:rows], logits))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply(gradients, model.trainable_variables)
    return model.get_weights()


def largest_difference(weights, others):
    differences = []
    for weight, other in zip(weights, others):
        differences.append(np.abs(weight - other).max())
    return float(max(differences))


# %% against-one
from course_lib import yours_or_ours


def off_by(step, rows, *divisor):
    model, optimizer = build(four, make_optimizer=sgd)
    x = share_out(four, images[:rows])
    y = share_out(four, labels[:rows])
    four.run(step, args=(model, optimizer, x, y, *divisor))
    return largest_difference(
        model.get_weights(), reference_weights(rows)
    )


# Yours if it is right, ours otherwise
your_step = yours_or_ours("custom_training-replica-step", replica_step)
print("local_step   off by", about(off_by(local_step, 7), 0.05, 0.15))
# Seven images, divided by seven
print("replica_step off by", about(off_by(your_step, 7, 7), 0, 1e-5))

# %% against-one-read [markdown]
# After a single step, `local_step` is off by about 0.09. That is larger than most of the weights themselves: more than four in five of them start between −0.06 and 0.06. `replica_step` is off by no more than rounding.
#
# Do this with every step that you write: one step of SGD, unequal parts, and a reference step to compare with.

# %% accumulation-heading [markdown]
# ## A batch that doesn't fit
#
# Your batch of 256 images is too large for the memory of the GPUs. {Lesson:large_trainings} has the cure, gradient accumulation:
# each replica splits its part into micro-batches, adds up their gradients, and only then makes one update.
# Keras has an option for it, `gradient_accumulation_steps`: that many calls of `apply` make one update. Let's use it under a strategy, in a compiled function:

# %% accumulation-error tags=["error"]
from course_lib import last_line

with two.scope():
    weight = tf.Variable([3.0])
    accumulating = tf.keras.optimizers.SGD(
        0.4, gradient_accumulation_steps=2
    )
    accumulating.build([weight])


def step_on_replica():
    accumulating.apply([tf.constant([1.0])], [weight])


@tf.function
def accumulating_step():
    two.run(step_on_replica)


try:
    accumulating_step()
except RuntimeError as error:
    print(last_line(error))

# %% accumulation-read [markdown]
# Before they can add up their gradients, the replicas have to wait for one another, and `merge_call` is TensorFlow's name for that meeting point.
# Keras puts it inside an `if`: *is it time to update?* In a compiled function, TensorFlow won't allow a meeting point that some replicas might never reach.
# (The message suspects a nested `@tf.function`. Here there is none.)
#
# We can do without the `if`: one call of the replica step takes *all* micro-batches of a replica, and the replicas meet once, at its end.
#
# Where does the tape go? A tape keeps the activations until you ask it for the gradient.
# One tape around all micro-batches would keep the activations of the whole part, and save nothing. And what does each micro-batch divide its losses by?

# %% accumulated-exercise [markdown]
# **Exercise 2.** Write `accumulated_step(model, optimizer, micro_batches, size)`, a replica step for micro-batches.
# `micro_batches` is a Python list of pairs, images and labels, and `size` is the global batch size. A micro-batch may be empty.
#
# - For each micro-batch call the model and take the gradient. Add up the gradients, and let the optimizer apply them once.
# - The replicas mustn't communicate anywhere else, because one may have fewer micro-batches than another and would leave it waiting.
# - Return this replica's share of the loss. (Leave out the logits. The models of this exercise have no regularization losses.)

# %% exercise-accumulated
def accumulated_step(model, optimizer, micro_batches, size):
    # solution begin
    variables = model.trainable_variables
    sums = [tf.zeros_like(variable) for variable in variables]
    total = 0.0
    for images, labels in micro_batches:
        with tf.GradientTape() as tape:
            logits = model(images, training=True)
            losses = cross_entropy(labels, logits)
            loss = tf.nn.compute_average_loss(
                losses, global_batch_size=size
            )
        gradients = tape.gradient(loss, variables)
        for number, gradient in enumerate(gradients):
            sums[number] += gradient
        total += loss
    optimizer.apply(sums, variables)
    return total
    # solution end

# %%
check("custom_training-accumulated", accumulated_step)

# %% accumulated-run-text [markdown]
# Now for the real network. Of 23 images the four replicas get 6, 6, 6 and 5, and each splits its part into three micro-batches: every third image goes to the same one.
# Which divisor agrees with the reference step: the 2 images of a micro-batch, the 6 of a replica, or the 23 of the global batch?


# %% accumulated-run
your_accumulated = yours_or_ours(
    "custom_training-accumulated", accumulated_step
)


def in_three(model, optimizer, images, labels, divisor):
    micro_batches = []
    for start in range(3):  # every third image, from `start` on
        micro_batches.append((images[start::3], labels[start::3]))
    return your_accumulated(model, optimizer, micro_batches, divisor)


for divisor in [2, 6, 23]:
    gap = off_by(in_three, 23, divisor)
    print(f"divided by {divisor:2}: off by", about(gap, 0, 2))

# %% accumulated-read [markdown]
# Only the global batch size agrees, as before. It doesn't matter in which replica or micro-batch an example lands.
# Divided by 6, the step is 23 / 6 ≈ 3.8 times as large as it should be; divided by 2, it is 11.5 times as large.
#
# A *penalty* is a different matter. Each micro-batch would compute the whole of it.
# So divide it by the number of replicas *and* by the number of micro-batches, or add it once, outside the loop.

# %% note-memory [markdown]
# Is it the memory of one micro-batch, then?
#
# Not quite. In a compiled function nothing orders the micro-batches: no forward pass depends on another, so TensorFlow may run some side by side.
# We measured 2,048 images in eight micro-batches, on two cores, with this lesson's network: 0.67 GB at once, and 0.22 GB with `accumulated_step`.
# With oneDNN, making each micro-batch wait for the one before, as eager mode does, brought that down to 0.12 GB. Without oneDNN, waiting changed nothing.
#
# ```python
# with tf.control_dependencies(sums):
#     images = tf.identity(images)
# ```
#
# These two lines at the beginning of the loop make it wait. We have not measured it on GPUs.

# %% answer [markdown]
# ## The answer
#
# What has been divided already, and what is left for you to divide by? You have met every row of this table:
#
# | in a replica step | has been divided by | you divide by |
# | --- | --- | --- |
# | losses of the single examples, also those of `reduction="none"` | nothing | the global batch size |
# | the same, in a micro-batch | nothing | the global batch size |
# | losses of tokens under a mask | nothing | the tokens that count, in the global batch |
# | `tf.reduce_mean(losses)` | `reduce_mean`: the replica's own examples | the number of replicas, if all parts are equal; if not, no divisor is right: use `reduce_sum` |
# | a loss object with its default | Keras: the replica's own examples, and the replicas | nothing, and only equal parts are right |
# | penalties of weights | nothing, and each replica has the whole | the replicas, and the micro-batches |
# | activity losses that are sums over examples | nothing | the global batch size |
# | what you feed to a metric | nothing, the metric will do it | nothing |
# | gradients | nothing, the optimizer adds them up | nothing |

# %% plain-heading [markdown]
# ## The plain program
#
# [`custom_training.py`](../plain/custom_training.py) is this lesson without the course's library, with a distributed dataset and its one iterator. It trains on four replicas. It also saves and restores, which {lesson:own_steps} explains.

# %% takeaways [markdown]
# ## Takeaways
#
# - Each replica, and each micro-batch, divides the sum of its losses by the global batch size, once.
# - Before you divide, ask what has been divided already: metrics and loss objects of Keras divide, penalties don't.
# - Adam hides a wrong divisor. Compare the weights after one step of SGD with those of a reference step, on a batch that falls into unequal parts.
#
# The divisor is settled. In {lesson:own_steps}, we'll see what else changes when the step is yours.

# %% score
score("custom_training")
