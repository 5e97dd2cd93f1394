# %% [markdown]
# # What must my own loop divide by?
#
# You move your training loop from one GPU to four.
# The loss falls, the accuracy climbs, and you ship it.
# Every gradient was four times too large.
# And because you train with Adam, the accuracy was just what it should have been, so you never found out.
#
# Four replicas share a batch, and each computes the losses of its own examples.
# Before it takes the gradient, it has to divide these losses by something.
# In {lesson:strategies} a loop divided by the number of examples. But other things divide, too: metrics, loss objects, Keras itself.
# So one question runs through this lesson: *what has been divided already, and what is left for you to divide by?*
# Divide by the wrong number, and hardly ever does anything fail.
#
# **After this lesson you can**
#
# - write a training step whose replicas together make the same update as a single device;
# - say what Keras has divided already, in a loop and under `fit`;
# - accumulate micro-batches, train a GAN, and name what no division cures.
#
# **Time:** 45 minutes.
# **You need to know:** `MirroredStrategy`, its scope and its replicas ({lesson:strategies}).

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% [markdown]
# ## A loop that learns
#
# Here are ten of the garments that we want to tell apart. There are ten kinds.
#
# The course draws them itself, as a stand-in for Fashion-MNIST.
# Set `SOURCE` to `"tfds"`, and you get photographs of the real data set.

# %% garments
import numpy as np

from course_lib import data, image_grid

tf = course_lib.start_tensorflow()

SOURCE = None
garments = data.load_fashion(SOURCE, num_train=1280, num_test=1000)
images = garments.train.features
labels = garments.train.labels
names = np.array(data.class_names())
print("images", images.shape, "labels", labels.shape)
image_grid(garments.train.images[:10], names[labels[:10]])

# %% model-text [markdown]
# A small convolutional network reads them.
# Before it has learned anything, it can only guess among ten kinds, and a guess costs a loss of $\ln 10 \approx 2.3$.
# Remember that number. Is it what one device reports?


# %% model
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
        optimizer.build(model.trainable_variables)
    return model, optimizer


from course_lib import about

cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits
one = tf.distribute.get_strategy()  # no strategy: one device
model, adam = build(one)
losses = cross_entropy(labels[:128], model(images[:128]))
print("mean loss", about(float(np.mean(losses)), 2.2, 2.4, digits=3))

# %% share-out-text [markdown]
# It is. Now for four devices.
#
# A distributed data set cuts every batch into parts, one for each replica.
# We do the same by hand, to see who gets what: `share_out` cuts a batch just as TensorFlow does.
# It divides the rows by the number of replicas, rounds up, and hands them out until none are left:

# %% share-out
import math


def mirrored(num_replicas):
    devices = [f"CPU:{number}" for number in range(num_replicas)]
    ops = tf.distribute.ReductionToOneDevice()
    return tf.distribute.MirroredStrategy(devices, ops)


def share_out(strategy, batch):
    rows = math.ceil(len(batch) / strategy.num_replicas_in_sync)

    def part_of(context):
        first = rows * context.replica_id_in_sync_group
        return tf.constant(batch[first : first + rows])

    values = strategy.experimental_distribute_values_from_function
    return values(part_of)


four = mirrored(4)
parts = share_out(four, images[:128])
for part in four.experimental_local_results(parts):
    print("a replica gets", part.shape)

# %% note-by-hand [markdown]
# Why not a distributed data set?
#
# In your own program, take one: `iter(strategy.experimental_distribute_dataset(dataset.repeat()))`, once for the whole run.
# The plain program at the end does that.
# But when such an iterator is given up, TensorFlow may sit idle for up to 1.5 times as long as the iterator existed.
# In a notebook, whose cells you run again and again, that would be minutes. The page *Troubleshooting* says why.

# %% local-step-text [markdown]
# This is what one replica does in a step. It computes the losses of its own examples, takes their mean, and hands the gradients to Adam.
# (`apply` is the `apply_gradients` of {lesson:strategies}, with two lists in place of pairs.)
# The last argument is the number of examples in the whole batch. This step ignores it; yours won't:


# %% local-step
def local_step(
    model, optimizer, images, labels, _size, divide=tf.reduce_mean
):
    with tf.GradientTape() as tape:
        logits = model(images, training=True)
        losses = cross_entropy(labels, logits)
        loss = divide(losses)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply(gradients, model.trainable_variables)
    return loss, logits


# %% train-step-text [markdown]
# And this is the step of all four.
# `strategy.run` calls a function on every replica, each with its own part of the batch.
# `strategy.reduce` makes a single number of what the replicas return.
# `axis=None` means: add up over the replicas, and leave the values themselves as they are.


# %% train-step
def count(labels):
    return tf.shape(labels)[0]


def make_train_step(
    strategy, model, optimizer, replica_step, accuracy
):
    def on_replica(images, labels, size):
        loss, logits = replica_step(
            model, optimizer, images, labels, size
        )
        accuracy.update_state(labels, logits)
        return loss

    @tf.function(reduce_retracing=True)
    def train_step(images, labels):
        counts = strategy.run(count, (labels,))
        size = strategy.reduce("SUM", counts, axis=None)
        losses = strategy.run(on_replica, (images, labels, size))
        return strategy.reduce("SUM", losses, axis=None)

    return train_step


# %% train-text [markdown]
# An epoch is ten batches of 128 images. The loop yields a record of each step:


# %% train
def train(strategy, model, optimizer, replica_step, steps):
    with strategy.scope():
        accuracy = tf.keras.metrics.SparseCategoricalAccuracy()
    train_step = make_train_step(
        strategy, model, optimizer, replica_step, accuracy
    )
    for step in range(steps):
        first = 128 * (step % 10)
        x = share_out(strategy, images[first : first + 128])
        y = share_out(strategy, labels[first : first + 128])
        accuracy.reset_state()
        loss = train_step(x, y)
        yield {
            "step": step + 1,
            "epoch": 1 + step // 10,
            "loss": float(loss),
            "accuracy": float(accuracy.result()),
        }


# %% first-run
from course_lib import live

model, adam = build(four)
steps = train(four, model, adam, local_step, steps=20)
local_run = await live(steps, steps=20)
first = local_run.steps[0]["loss"]
print("loss of the first step", about(first, 9.0, 9.4, digits=3))

# %% first-run-read [markdown]
# The loss falls, the accuracy rises. But look at the first loss: 9.15.
# The same network on the same images had 2.29. This is four times as much.
#
# You can see where it comes from. Each replica returns the mean loss of *its own* 32 images, and `reduce` adds up four such means.
# So make it `reduce("MEAN", ...)`, and the curve looks right.
# But would the *training* be right?
#
# ## Four losses and one weight
#
# Let's find out with the smallest model that there is: $y = wx$, with one weight, $w = 3$.
# The loss of an example is $|wx - t|$, where $t = 2x - 1$ is its target. Two replicas share four examples:
#
# | | replica 0 | replica 1 |
# | --- | --- | --- |
# | $x$ | 1, 2 | 3, 4 |
# | target $t$ | 1, 3 | 5, 7 |
# | $wx$ | 3, 6 | 9, 12 |
# | loss | 2, 3 | 4, 5 |
# | gradient of the loss | 1, 2 | 3, 4 |
# | **losses / 4, added up** | 5 / 4 = 1.25 | 9 / 4 = 2.25 |
# | **gradients / 4, added up** | 3 / 4 = 0.75 | 7 / 4 = 1.75 |
#
# One device would take the mean of the four losses, 14 / 4 = 3.5, with the gradient 10 / 4 = 2.5.
# With SGD and a learning rate of 0.4, $w$ goes from 3 to 3 − 0.4 · 2.5 = 2.
#
# The last two rows are how two replicas come to the same. Each divides the sum of its losses by 4, the size of the **global batch**,
# which is the batch of all replicas together.
# Then an all-reduce adds up the gradients, 0.75 + 1.75 = 2.5, and each copy of $w$ goes to 2.

# %% after-step-text [markdown]
# In code, `tf.nn.compute_average_loss` does the division, and the optimizer of Keras does the all-reduce:


# %% after-step
two = mirrored(2)


def after_step(strategy, x, divide):
    with strategy.scope():
        weight = tf.Variable(3.0)
        sgd = tf.keras.optimizers.SGD(0.4)
        sgd.build([weight])

    def on_replica(x):
        targets = 2 * x - 1
        with tf.GradientTape() as tape:
            losses = tf.abs(weight * x - targets)
            loss = divide(losses)
        gradient = tape.gradient(loss, weight)
        sgd.apply([gradient], [weight])
        return loss

    losses = strategy.run(on_replica, (share_out(strategy, x),))
    loss = strategy.reduce("SUM", losses, axis=None)
    return float(loss), float(weight.numpy())


def average_of_four(losses):
    return tf.nn.compute_average_loss(losses, global_batch_size=4)


x = np.array([1, 2, 3, 4], "float32")
loss, weight = after_step(two, x, average_of_four)
print("loss", loss, "  w", weight)

# %% after-step-read [markdown]
# The loss is 3.5 and $w$ is 2, as on one device.
# Now let each replica do what `local_step` does.

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
_loss, weight = after_step(two, x, tf.reduce_mean)
reveal("custom_training-own", weight)

# %% own-why [markdown]
# So `reduce_mean` in the step is the mistake, and another `reduce` at the end of it only corrects the plot.
# Two replicas make the gradient twice too large, four replicas four times.
#
# Then why did the accuracy rise so nicely? Let's train once more. One line of the step changes: each replica divides the sum of its losses by 128.


# %% global-step
def by_128(losses):
    return tf.reduce_sum(losses) / 128


def global_step(*arguments):
    return local_step(*arguments, divide=by_128)


# %% beside
model, adam = build(four)
steps = train(four, model, adam, global_step, steps=20)
right_run = await live(steps, steps=20)

print("step  loss: own mean  / 128   accuracy: own mean  / 128")
for step in [1, 5, 10, 15, 20]:
    wrong, right = local_run.steps[step - 1], right_run.steps[step - 1]
    print(
        f"{step:4}",
        f"{about(wrong['loss'], 2.5, 10, digits=2):>13}",
        f"{about(right['loss'], 0.6, 2.5, digits=2):>8}",
        f"{about(wrong['accuracy'], 0, 1):>16}",
        f"{about(right['accuracy'], 0, 1):>8}",
    )

# %% beside-read [markdown]
# One loss is four times the other. The accuracies are the same to about 0.01.
#
# **Adam hides the mistake.** It divides each step by the recent size of the gradients.
# Multiply every gradient by four, and the four cancels: $4g / \sqrt{(4g)^2} = g / \sqrt{g^2}$.
# That is so as long as the gradients are far larger than Adam's `epsilon` of $10^{-7}$, and as long as *all* of them are wrong by the same factor.
# SGD doesn't do that. With SGD you train at four times your learning rate, and you will wonder why a rate that worked on one GPU fails on four.
#
# And the mistake is harmless only because all replicas had equally many images.
#
# ## When the parts are unequal
#
# The last batch of an epoch is seldom full. Five examples are left, and four replicas share them: 2, 2, 1, and 0.
# How much does each example count?
#
# | each example counts | replica 0 | replica 1 | replica 2 | replica 3 |
# | --- | --- | --- | --- | --- |
# | divided by the replica's own examples | 1/2, 1/2 | 1/2, 1/2 | 1 | |
# | divided by the global batch | 1/5, 1/5 | 1/5, 1/5 | 1/5 | |
#
# With each replica's own mean, the example that is alone on its replica counts twice as much as the others.
# No learning rate corrects that.
#
# And replica 3 has no examples at all. It takes part all the same, with tensors that have no rows.

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
loss, weight = after_step(four, x, tf.reduce_mean)
found = []
if np.isnan(loss):
    found.append("loss")
if np.isnan(weight):
    found.append("weight")
reveal("custom_training-empty", " ".join(found) or "none")

# %% empty-why [markdown]
# So your curve has a hole at the end of each epoch, and the model trains on, with a wrong step.
# Dividing by the global batch is right here, too: over no examples a sum is 0, and so is its gradient.
#
# But the global batch is now 5, and not the batch size that you asked for.
# That is why `train_step` above counts the rows of each batch anew.
#
# The explorer has the model $y = wx$ with its losses 2, 3, 4 and so on, and five numbers to divide by:
# the examples of this global batch; the batch size that you asked for; the replica's own examples;
# these and the replicas, which is what Keras 3 does by default; or the replicas twice.
# Which of them are right for eight examples on four replicas? Which are still right for five?

# %% scaling
from lessons.strategies.custom_training import loss_scaling_explorer

loss_scaling_explorer.LossScalingExplorer(
    num_replicas=4, batch_size=8, num_examples=8, division="replica"
)

# %% scaling-read [markdown]
# With eight examples, three divisors work: the examples actually in the batch, the batch size, and the default of Keras 3.
# With five, only the first still does. It is right for every batch, on any number of replicas.

# %% note-onednn [markdown]
# Does a convolution accept an empty replica?
#
# Not always. On many processors TensorFlow 2.21 uses oneDNN, and there a convolution of no images has a wrong shape, so that the next convolution fails.
# The course switches oneDNN off; your programs may not.
# Nor does plain batch normalization accept it: its moving averages become NaN, for good. With `synchronized=True` it does.
# Choose batches that leave no replica empty, or drop the last one (`drop_remainder=True`).

# %% divided-heading [markdown]
# ## What has been divided already?
#
# Now you could divide by `size` everywhere. But three things need a second look.
# Metrics and the loss objects of Keras have divided already. Regularization hasn't, and every replica adds it once.
#
# **Metrics divide by themselves.** Give a `Mean` metric the two replicas' parts of the loss, 1.25 and 2.25, and see what it says:

# %% metric
with two.scope():
    of_parts = tf.keras.metrics.Mean()
    of_examples = tf.keras.metrics.Mean()


def measure(x):
    losses = tf.abs(3 * x - (2 * x - 1))
    of_parts.update_state(average_of_four(losses))
    of_examples.update_state(losses)


x = np.array([1, 2, 3, 4], "float32")
two.run(measure, (share_out(two, x),))
print("Mean of the parts   ", float(of_parts.result()))
print("Mean of the examples", float(of_examples.result()))

# %% metric-read [markdown]
# The first is the mean of 1.25 and 2.25, which is too small by the number of replicas.
# The second is 3.5. So give a metric per-example values, as `accuracy` gets labels and logits in our loop, and never a loss that you have divided.
#
# **A loss object of Keras 3 takes a mean, and divides that by the replicas.**
# That is its default under a strategy, and `fit` relies on it. With unequal parts, how far off is it?

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
    return absolute(2 * x - 1, 3 * x)


x = np.array([[1], [2], [3]], "float32")
losses = two.run(keras_loss, (share_out(two, x),))
total = float(two.reduce("SUM", losses, axis=None))
reveal("custom_training-keras", total)

# %% keras-why [markdown]
# With equal parts the default is right, and with unequal parts it is a little wrong, without a word.
# It goes badly wrong if you divide once more yourself. In a loop of your own, ask for the undivided losses and divide them once:
#
# ```python
# loss_of = tf.keras.losses.MeanAbsoluteError(reduction="none")
# ```
#
# **A regularization loss is the same on every replica.**
# A layer with `kernel_regularizer="l2"` adds its penalty to the list `model.losses`.
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
# Forty weights of 1, times 0.01, are a penalty of 0.4. Left whole, it counts four times.
# `tf.nn.scale_regularization_loss` adds up the list and divides by the number of replicas. (Under `fit`, Keras does.)
#
# But `model.losses` also holds what activity regularizers and `add_loss` put there, and these losses depend on the *examples*.
# A sum over examples, such as the KL term of a VAE, belongs to the division by `size`, like any other loss.
# Divided by the replicas alone, such a sum is wrong even when all parts are equal, and a mean is wrong when they are not.

# %% note-last-axis [markdown]
# My labels are images. What does `reduction="none"` leave?
#
# One loss for each pixel row, probably, and not one for each example.
# `MeanSquaredError`, `MeanAbsoluteError` and `BinaryCrossentropy` take the mean over the last axis, whatever it stands for, and over no other.
# For two images of shape `(4, 4)` they return losses of shape `(2, 4)`, and `compute_average_loss` would divide the sum of all eight by two examples: four times too much.
# Give the images a last axis of length 1, so that you get `(2, 4, 4)`, and take the mean over each example yourself:
# `tf.reduce_mean(losses, axis=(1, 2))`.
#
# And with labels of one axis, `MeanAbsoluteError` does not divide by the replicas at all. Give them two axes, as the cell above does.

# %% note-refuses [markdown]
# Does nothing ever complain?
#
# Two things do. `compute_average_loss` refuses a loss that is a single number already.
# And `tf_keras`, which is Keras 2, refuses its default reduction in a loop under a strategy.
# The older reductions `AUTO` and `SUM_OVER_BATCH_SIZE` are gone: Keras 3 calls its default `"sum_over_batch_size"` and does not know `"auto"`.
# A division that you write out yourself is never refused.
#
# (`compute_average_loss` also takes `sample_weight`. It multiplies the losses by the weights, and still divides by the number of examples.)

# %% step-exercise [markdown]
# **Exercise 1.** Write `replica_step`, to take the place of `local_step`.
# Together, the replicas must make exactly the update that one device would, however the batch is split, and with regularization of the weights or without.
# Return this replica's part of the loss, and the logits.
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
# Does it hold for the real network? Compare it with a plain step: the whole batch at once, no strategy, no `size`.
# That is better than to run the same step on one device, where its mistakes may be the same.
# A single step of SGD hides nothing. The batch has seven images, and the four replicas get 2, 2, 2 and 1.


# %% against-one
from course_lib import yours_or_ours


def sgd():
    return tf.keras.optimizers.SGD(0.1)


def weights_after(strategy, replica_step):
    model, optimizer = build(strategy, make_optimizer=sgd)
    with strategy.scope():
        accuracy = tf.keras.metrics.SparseCategoricalAccuracy()
    train_step = make_train_step(
        strategy, model, optimizer, replica_step, accuracy
    )
    x = share_out(strategy, images[:7])
    y = share_out(strategy, labels[:7])
    train_step(x, y)
    return [weight.numpy() for weight in model.trainable_variables]


def plain_weights():
    model, optimizer = build(one, make_optimizer=sgd)
    with tf.GradientTape() as tape:
        logits = model(images[:7], training=True)
        loss = tf.reduce_mean(cross_entropy(labels[:7], logits))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply(gradients, model.trainable_variables)
    return [weight.numpy() for weight in model.trainable_variables]


def largest_difference(weights, others):
    differences = []
    for weight, other in zip(weights, others):
        differences.append(np.abs(weight - other).max())
    return float(max(differences))


# Yours if it is right, ours otherwise
your_step = yours_or_ours("custom_training-replica-step", replica_step)
plain = plain_weights()
wrong = largest_difference(weights_after(four, local_step), plain)
right = largest_difference(weights_after(four, your_step), plain)
print("local_step   off by", about(wrong, 0.05, 0.15))
print("replica_step off by", about(right, 0, 1e-5))

# %% against-one-read [markdown]
# `local_step` is off by about 0.09 after one step, and most weights of this network begin between −0.06 and 0.06. `replica_step` is off by rounding.
#
# Do this with every step that you write: one step of SGD, unequal parts, a plain step to compare with.
#
# ## Your own step under `fit`
#
# Maybe you don't want a loop at all, only a step of your own: then you override `train_step`, and `fit` does the rest.
# But `fit` calls your `train_step` *on every replica*. So the question comes back: divide by what?
#
# Here nobody hands you `size`. What you have is `self.compute_loss`, which calls the loss object that you gave to `compile`,
# and that object divides by the number of replicas, as you know. It also adds the penalties, divided in the same way.
# First the mistake, then its cure:


# %% own-train-step
class LocalMean(tf.keras.Sequential):
    def loss_of(self, x, y, logits):
        return tf.reduce_mean(cross_entropy(y, logits))

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            logits = self(x, training=True)
            loss = self.loss_of(x, y, logits)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply(gradients, self.trainable_variables)
        for metric in self.metrics:  # what `fit` reports
            if metric.name == "loss":
                metric.update_state(cross_entropy(y, logits))
            else:
                metric.update_state(y, logits)
        return {each.name: each.result() for each in self.metrics}


class ComputeLoss(LocalMean):
    def loss_of(self, x, y, logits):
        return self.compute_loss(x, y, logits)


# %% under-fit-text [markdown]
# Both train a single dense layer for one step of SGD on 64 images, on four replicas and on one device. How far does a weight move?


# %% under-fit
def moved(strategy, kind):
    tf.keras.utils.set_random_seed(0)
    layers = tf.keras.layers
    with strategy.scope():
        model = kind(
            [
                tf.keras.Input((28, 28, 1)),
                layers.Flatten(),
                layers.Dense(10),
            ]
        )
        loss = tf.keras.losses.SparseCategoricalCrossentropy(
            from_logits=True
        )
        model.compile(tf.keras.optimizers.SGD(0.1), loss)
    before = model.get_weights()
    model.fit(images[:64], labels[:64], batch_size=64, verbose=0)
    return largest_difference(model.get_weights(), before)


for kind in [LocalMean, ComputeLoss]:
    print(
        f"{kind.__name__:11} on four",
        about(moved(four, kind), 0, 0.1, digits=2),
        " on one",
        about(moved(one, kind), 0, 0.1, digits=2),
    )

# %% under-fit-read [markdown]
# `LocalMean` moves the weights four times too far. `compute_loss` matches the single device.
#
# What does `fit` report? If the dictionary that you return has the names of the model's metrics, it shows what these metrics hold.
# So your `train_step` has to feed them, with per-example losses, because metrics divide by themselves. A `loss` that is never fed reads 0.0.
#
# With any other names in the dictionary, `fit` shows the values that you returned, *averaged* over the replicas.
# Return `{"loss": loss, "extra": 1.0}` with a loss from `compute_loss`, which is divided by the replicas already, and it is divided twice:
# two replicas report half of the loss, and four a quarter.
#
# There is one limit: `compute_loss` divides by each replica's own examples. With unequal parts in the last batch, it is as far off as `fit` itself.

# %% note-idle [markdown]
# The cell takes half a minute the second time. Why?
#
# `fit` makes a data iterator of its own, and TensorFlow gives it up late. Until then it may sit idle.

# %% accumulation-heading [markdown]
# ## A batch that doesn't fit
#
# Your batch of 256 images is too large for the memory of the GPUs. So each replica splits its part into **micro-batches**,
# adds up their gradients, and only then makes one update. That is **gradient accumulation**.
# Keras has an option for it, `gradient_accumulation_steps`: that many calls of `apply` make one update. Let's use it under a strategy, in a compiled step:

# %% accumulation-error tags=["error"]
from course_lib import last_line

with two.scope():
    weight = tf.Variable([3.0])
    accumulating = tf.keras.optimizers.SGD(
        0.4, gradient_accumulation_steps=2
    )
    accumulating.build([weight])


def on_replica():
    accumulating.apply([tf.constant([1.0])], [weight])


@tf.function
def step():
    two.run(on_replica)


try:
    step()
except RuntimeError as error:
    print(last_line(error))

# %% accumulation-read [markdown]
# To add up gradients, the replicas must synchronize; that is what `merge_call` is. Here they would have to do so inside an `if` ("is it time to update?").
# TensorFlow refuses that in a compiled function.
# We can do without the `if`: one call of the step takes *all* micro-batches of a replica, and synchronizes once.
#
# By what does each micro-batch divide its losses? And where does the tape go?
# A tape keeps the activations until you ask it for the gradient. One tape around all micro-batches would keep those of the whole batch, and save nothing.
#
# **Exercise 2.** Write `accumulated_step(model, optimizer, micro_batches, size)`.
# `micro_batches` is a Python list of pairs, images and labels. They are this replica's part of the global batch, and `size` is the size of the whole.
# For three of them, `[(images[k::3], labels[k::3]) for k in range(3)]` cuts any part, also one of two images: then a micro-batch has no rows, and counts nothing.
#
# - For each micro-batch call the model and take the gradient, add up the gradients, and let the optimizer apply them once.
# - Return this replica's part of the loss. (Leave out the logits. The models of this exercise have no regularization losses.)


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

# %% accumulated-read [markdown]
# It is the same number as before: the global batch. On which replica or in which micro-batch an example sits makes no difference.
# It counts one part in `size`.
#
# The *penalty* is another matter. Each micro-batch would compute the whole of it.
# So divide it by the number of replicas *and* by the number of micro-batches, or add it once, outside the loop.
# Nothing warns you here either, and one device that runs the same step makes the same mistake: only a plain step shows it.

# %% note-memory [markdown]
# Is it the memory of one micro-batch, then?
#
# Not quite. In a compiled function nothing orders the micro-batches: their forward passes don't depend on each other, so TensorFlow may run some side by side.
# We measured 2,048 images in eight micro-batches, on two cores: 3.1 GB at once, 0.8 GB with the step above, which is about two micro-batches.
# When each micro-batch waits for the sums of the one before, it was 0.4 GB, as in eager mode:
#
# ```python
# with tf.control_dependencies(sums):
#     images = tf.identity(images)
# ```
#
# Put that at the beginning of the loop. We have not measured it on GPUs.

# %% pair-heading [markdown]
# ## Two models, two optimizers
#
# In a **GAN** (generative adversarial network) two models work against each other: a **generator** draws images out of noise, and a **discriminator** tells them from real ones.
# Two models, two losses, two optimizers. Everything is divided by `size`, so nothing is new, except for one thing: where does the noise come from?
#
# A layer of Keras can draw it.

# %% predict-noise [markdown]
# A model with the layer `tf.keras.layers.GaussianNoise(1.0)` is made in the scope of a strategy with two replicas.
# In one step, each replica calls it once with `training=True`. How does the noise of the two replicas compare?
#
# - [x] `same` It is the same on both.
#   The layer draws from a seed and a counter, which are a variable of the model. Both replicas have the same copy of it.
# - [ ] `different` Each replica draws its own.
#   It would be so if the seed depended on the replica. But the seed is a variable of the model, and the copies of a variable are equal.
# - [ ] `error` It raises an error: noise is not allowed in a replica.
#   It runs without a word.

# %% reveal-noise
with two.scope():
    layer = tf.keras.layers.GaussianNoise(1.0)


@tf.function
def noises():
    zeros = tf.zeros((1, 8))
    return two.run(lambda: layer(zeros, training=True))


first, second = two.experimental_local_results(noises())
if np.array_equal(first, second):
    found = "same"
else:
    found = "different"
reveal("custom_training-noise", found)

# %% noise-why [markdown]
# `Dropout` behaves in the same way: all replicas drop the same units. For dropout that may do.
# For a generator it means that with eight replicas only an eighth of its noise is distinct.
# (`tf.random.normal` in the replica step does differ between replicas, but not as on one device.)
#
# There is a better place for noise: **the data**. Draw it for each example, from the number of the example, and it will be the same on one device and on eight.
# In a data set, that is
#
# ```python
# dataset.shuffle(1000).repeat().enumerate().map(with_noise)
# ```
#
# with a function `with_noise(number, image)` that calls `tf.random.stateless_normal`, with `number` in its seed.
# Mind the order: `enumerate` *before* `repeat` would give every epoch the same noise again.
# Here we do without the data set:


# %% noise-of
def noise_of(number):
    return tf.random.stateless_normal((8,), seed=[0, number])


noise = np.array([noise_of(number) for number in range(71)])
print("noise", noise.shape)


# %% pair-step-text [markdown]
# Now the step. The discriminator's loss is small where it gives real images a high number and drawn ones a low number; the generator's, where drawn ones get a high number.
# A tape that is `persistent` can be asked for two gradients:


# %% pair-step
def pair_step(models, optimizers, images, noise, size):
    generator, discriminator = models
    with tf.GradientTape(persistent=True) as tape:
        drawn = generator(noise, training=True)
        on_real = discriminator(images, training=True)
        on_drawn = discriminator(drawn, training=True)
        losses = tf.nn.softplus(-on_real) + tf.nn.softplus(on_drawn)
        discriminator_loss = tf.nn.compute_average_loss(
            losses, global_batch_size=size
        )
        generator_loss = tf.nn.compute_average_loss(
            tf.nn.softplus(-on_drawn), global_batch_size=size
        )
    losses = [generator_loss, discriminator_loss]
    for model, optimizer, loss in zip(models, optimizers, losses):
        variables = model.trainable_variables
        optimizer.apply(tape.gradient(loss, variables), variables)
    return discriminator_loss


# %% pair-models-text [markdown]
# The two models are small (unfold the cell to see them):

# %% pair-models tags=["known"]
def generator():
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            tf.keras.Input((8,)),
            layers.Dense(784, activation="sigmoid"),
            layers.Reshape((28, 28, 1)),
        ]
    )


def discriminator():
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            tf.keras.Input((28, 28, 1)),
            layers.Flatten(),
            layers.Dense(32, activation="relu"),
            layers.Dense(1),
        ]
    )

# %% pair-run-text [markdown]
# Seventy-one images fall to four replicas in parts of 18, 18, 18 and 17. Is that the same as on one device?

# %% pair-run
def pair_weights(strategy):
    drawing, its_sgd = build(strategy, generator, sgd)
    judging, other_sgd = build(strategy, discriminator, sgd)
    models = [drawing, judging]
    optimizers = [its_sgd, other_sgd]

    @tf.function
    def step(images, noise, size):
        def on_replica(images, noise):
            return pair_step(models, optimizers, images, noise, size)

        strategy.run(on_replica, (images, noise))

    x = share_out(strategy, images[:71])
    z = share_out(strategy, noise)
    for _ in range(3):
        step(x, z, tf.constant(71))
    weights = []
    for model in models:
        weights += [each.numpy() for each in model.trainable_variables]
    return weights


gap = largest_difference(pair_weights(four), pair_weights(one))
print("off by", about(gap, 0, 1e-5))

# %% pair-read [markdown]
# It is, up to rounding.
#
# ## What no division cures
#
# Division cures everything that is a *sum over examples*. Some steps do things that are no such sum, and there each replica looks at its own part only:
#
# - **Clipping.** With `clipnorm` or `global_clipnorm` each replica clips its own gradients *before* they are added up.
# - **Batch normalization** takes the moments of a replica's own part. `BatchNormalization(synchronized=True)` takes those of the batch.
# - **Losses over pairs** of examples, such as contrastive ones, see no pairs across replicas. `all_gather` in the replica context brings the others in.
# - **`mixed_float16`** needs a closer look.
#
# In float16 small gradients vanish. The cure is **loss scaling**: the loss is multiplied by a large scale, and the gradients are divided by it again. When a gradient becomes infinite, the optimizer skips the step, and lowers the scale.
# So it has to check whether any gradient is infinite. Let the gradient of replica 1 be infinite, and that of replica 0 be 1:


# %% mixed
def after_scaled_step(strategy, infinite_on):
    with strategy.scope():
        weight = tf.Variable(3.0)
        inner = tf.keras.optimizers.SGD(0.1)
        scaled = tf.keras.optimizers.LossScaleOptimizer(
            inner, initial_scale=1.0
        )
        scaled.build([weight])

    def on_replica():
        context = tf.distribute.get_replica_context()
        number = context.replica_id_in_sync_group
        gradient = tf.where(number == infinite_on, np.inf, 1.0)
        scaled.apply([gradient], [weight])

    @tf.function
    def step():
        strategy.run(on_replica)

    step()
    return float(weight.numpy())


print("one device           w", after_scaled_step(one, 0))
print("infinite on replica 0: w", after_scaled_step(two, 0))
print("infinite on replica 1: w", after_scaled_step(two, 1))

# %% mixed-read [markdown]
# One device skips the step, and $w$ stays 3. Two replicas skip it if the first one has the infinite gradient.
# If the second one has it, the step is taken, and the weight is gone: Keras 3 checks the first replica only.
#
# Train in `mixed_bfloat16` instead, where the range is that of float32 and nothing has to be scaled.
# The page *What strategies get right* tries nearly 300 features of Keras under strategies.

# %% note-clip [markdown]
# How do I clip the whole gradient?
#
# Add up first, then clip, in the replica step:
#
# ```python
# context = tf.distribute.get_replica_context()
# gradients = context.all_reduce("SUM", gradients)
# gradients, norm = tf.clip_by_global_norm(gradients, 1.0)
# ```
#
# Now every replica holds the whole gradient, but `optimizer.apply` will add up over the replicas once more.
# So divide each gradient by `context.num_replicas_in_sync` before you apply it.
# With that, two replicas and four match one device up to rounding.

# %% note-own-variable [markdown]
# May I count in a variable of my own?
#
# Yes, with `aggregation=tf.VariableAggregation.SUM` and `seen.assign_add(rows)`.
# But `seen.assign(seen + rows)` adds up the old value once for each replica.

# %% out-heading [markdown]
# ## Out of the replicas
#
# The division is settled. Two things are left that a loop of your own decides: what is saved, and how often Python comes in.
#
# A checkpoint holds values, and knows no strategy.
# `restore` puts them into a model that was made without one, and `assert_consumed` makes sure that no value is left over.

# %% note-gather [markdown]
# How do predictions leave the replicas?
#
# `strategy.gather(values, axis=0)` joins what the replicas return from `strategy.run`, in the order of the batch, also from unequal parts.

# %% predict-early [markdown]
# A model and `adam = tf.keras.optimizers.Adam()` are made anew, without a strategy.
# Then `tf.train.Checkpoint(model=model, adam=adam)`
# restores a checkpoint of a training with Adam,
# and `assert_consumed()` is called on what `restore` returns.
# What happens?
#
# - [ ] `passes` It passes, and all values are in their variables.
#   It would if all variables were there.
#   Adam makes its two moment estimates for each weight in its first step, or in its `build`.
# - [ ] `anew` It passes, but the moment estimates of Adam keep their first values.
#   It does not pass: a value that waits has not been used.
#   Nor is it lost: Adam gets it when it makes the variable.
# - [x] `AssertionError` It raises an error.
#   Adam makes its two moment estimates for each weight in its first step, or in its `build`. Until then their values wait, and `assert_consumed` counts them as left over.

# %% reveal-early
import tempfile

saved = tf.train.Checkpoint(model=model, adam=adam)
path = saved.save(tempfile.mkdtemp() + "/trained")

unbuilt = tf.train.Checkpoint(
    model=convolutional(), adam=tf.keras.optimizers.Adam()
)
status = unbuilt.restore(path)
try:
    status.assert_consumed()
    answer = "passes"
except AssertionError:
    answer = "AssertionError"
reveal("custom_training-early", answer)

# %% early-why [markdown]
# `optimizer.build`, in the function `build` from the beginning of the lesson, makes these variables:

# %% restored
alone, its_adam = build(one)
whole = tf.train.Checkpoint(model=alone, adam=its_adam)
whole.restore(path).assert_consumed()
print("steps of Adam", int(its_adam.iterations.numpy()))

# %% restored-read [markdown]
# All values are in place, and Adam has counted its 20 steps.
# How a run is saved again and again, killed, and resumed, is in {lesson:a_run}. The plain program below does it under a strategy.

# %% note-seed [markdown]
# What does a checkpoint not find?
#
# `tf.train.Checkpoint` doesn't find the seed and the counter of `Dropout` in a model of Keras 3, and `assert_consumed` says nothing about what was never saved.
# A resumed run then draws the masks of its beginning again.
# Name the variable beside the model: `tf.train.Checkpoint(model=model, seed=layer.seed_generator.state.value)`.

# %% several-heading [markdown]
# ## How many steps per execution?
#
# You can call the step once for each batch. Or one call of a compiled function takes several steps, as `steps_per_execution` does under `fit`.
# Until the call returns, you can draw no curve and press no Stop button.
#
# How much time does it save? Choose how many images a step has, and measure: a step of a small model on two replicas, with 1, 10 and 20 steps in a call.
# Python's share hardly depends on the batch, so it matters most where steps are short.


# %% several tags=["known"]
@tf.function
def several_steps(train_step, images, labels, count):
    total = 0.0
    for _ in tf.range(count):
        total += train_step(images, labels)
    return total


def small():
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            tf.keras.Input((28, 28, 1)),
            layers.Flatten(),
            layers.Dense(10),
        ]
    )


def ways_of(batch_size):
    model, adam = build(two, small)
    with two.scope():
        accuracy = tf.keras.metrics.SparseCategoricalAccuracy()
    step = make_train_step(two, model, adam, your_step, accuracy)
    x = share_out(two, images[:batch_size])
    y = share_out(two, labels[:batch_size])

    def one_in_a_call():
        return sum(float(step(x, y)) for _ in range(20))

    def ten_in_a_call():
        return sum(
            float(several_steps(step, x, y, 10)) for _ in range(2)
        )

    def all_in_a_call():
        return float(several_steps(step, x, y, 20))

    return [one_in_a_call, ten_in_a_call, all_in_a_call]


# %% ways
from lessons.strategies.custom_training import iterating_explorer

measure = iterating_explorer.measuring(ways_of, steps=20)
iterating_explorer.IterationExplorer(measure)

# %% note-profiler [markdown]
# Where does the time of a step go?
#
# Write `with tf.profiler.experimental.Profile(folder):` around a few steps, and open the folder in TensorBoard.

# %% plain-heading [markdown]
# ## The plain program
#
# [`custom_training.py`](../plain/custom_training.py) is this lesson without the course's library, with a distributed data set and its one iterator:
# it trains on four replicas, saves, resumes with a new model, and restores without a strategy.

# %% takeaways [markdown]
# ## Takeaways
#
# - Each replica, and each micro-batch, divides its losses by the examples of the global batch, once. The penalty of the weights is divided by replicas and by micro-batches.
# - Adam hides a wrong factor. Compare the weights after one step of SGD with those of a plain step, on a batch that falls into unequal parts.
# - Division cures sums over examples. Clipping, batch statistics, noise and float16 need a cure of their own.
#
# In {lesson:workers} the replicas live in many processes, and one of them dies.

# %% score
score("custom_training")
