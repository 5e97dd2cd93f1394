# %% [markdown]
# # Strategies
#
# Two extra lines take a Keras training run from one device to two.
# `fit` reports the same loss and the same accuracy as before.
# Then you show the model 2,000 new reviews. Trained on one device, it gets 85 % of them right.
# Trained on two, it answers every single one with `nan`.
#
# There was no error. The culprit is a single review, the 4,097th. Drop it, and the `nan` disappears, and with it your only warning. The weights are still wrong.
#
# In this lesson you reproduce that run, take it apart, and repair it. All the way through, you ask one question: *under `fit` on several devices, are the numbers still right?*
# "Right" means: the same as on one device, up to rounding.
#
# **After this lesson you can**
#
# - train a model under a strategy, and say what happens to the batch, the variables and the gradients;
# - find out whether its numbers are those of one device, and repair them if they aren't;
# - look up the strategy for your hardware.
#
# **Time:** 35 minutes.
# **You need to know:** how to train a Keras model, and what batch normalization computes ({lesson:coupled_rows}).

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% data-text [markdown]
# ## Two lines that go wrong
#
# The reviews are those of the earlier lessons: 1,200 numbers each, and the label 1 if the reviewer liked the film.
# We take the first 4,097 of them:

# %% data tags=["known"]
import numpy as np

from course_lib import about, data

tf = course_lib.start_tensorflow()
keras = tf.keras

reviews = data.tf_idf(data.load_imdb())
x = reviews.train.features[:4097]
y = reviews.train.labels[:4097]
test_x = reviews.test.features
test_y = reviews.test.labels

# For several strategies on virtual CPUs: see the note below
to_one = tf.distribute.ReductionToOneDevice()

# %% make-model-text [markdown]
# The network is the usual one, 1,200 → 48 → 2, but as in many networks, batch normalization follows the hidden layer. An epoch here has few steps, so its moving averages must forget fast: `momentum=0.9`. Like everything in this course, the network starts from the same weights each time.


# %% make-model
def make_model():
    keras.utils.set_random_seed(1)
    hidden = keras.layers.Dense(48, activation="relu")
    normalization = keras.layers.BatchNormalization(momentum=0.9)
    layers = [hidden, normalization, keras.layers.Dense(2)]
    model = keras.Sequential([keras.Input((1200,)), *layers])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    adam = keras.optimizers.Adam(3e-3)
    model.compile(adam, loss, metrics=["accuracy"])
    return model


# %% on-one-text [markdown]
# Here is the training run on one device. It makes one pass through the reviews, unshuffled, so that we can compare runs. (As in {lesson:whole_game}, ≈ marks a number that may come out slightly different on your machine.)

# %% on-one
one_device_model = make_model()
log = one_device_model.fit(
    x, y, batch_size=64, shuffle=False, verbose=0
)
print("loss    ", about(log.history["loss"][0], 0.44, 0.50))
print("accuracy", about(log.history["accuracy"][0], 0.74, 0.79))

# %% on-two-text [markdown]
# And now two devices. A **strategy** of `tf.distribute` knows which devices take part.
# `MirroredStrategy` is the one for several GPUs in one machine; ours are virtual CPUs.
# The two extra lines create the strategy and open its **scope**. The model is created inside that scope:

# %% on-two
mirrored = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], to_one)
with mirrored.scope():
    two_device_model = make_model()
log = two_device_model.fit(
    x, y, batch_size=64, shuffle=False, verbose=0
)
print("loss    ", about(log.history["loss"][0], 0.44, 0.50))
print("accuracy", about(log.history["accuracy"][0], 0.74, 0.79))

# %% note-devices [markdown]
# What is different on a machine with GPUs?
#
# You make no devices, and you name none: `tf.distribute.MirroredStrategy()` takes all GPUs.
# Here, `setup(devices=8)` in the first cell made eight virtual devices of one processor.
# To do so yourself, call `tf.config.set_logical_device_configuration` before TensorFlow first uses its devices.
#
# The second argument, `to_one`, is a `ReductionToOneDevice` from the folded cell: it lets one device do all the adding up. A single strategy on virtual CPUs works without it, as in {lesson:whole_game}.
# But here the checks of the exercises make strategies, too, and on CPUs the data of two strategies could get mixed up.
# On GPUs, leave it out.

# %% note-speed [markdown]
# Is it faster with two devices?
#
# Not here. Two devices share the work of each step, and only with large batches does that save time.
# {Lesson:faster} measured it with DTensor, on a machine with two cores: with batches of 16,384 reviews, eight virtual devices were 1.5 times as fast as one.
# With batches of 64, as here, they were slower. In this lesson we look only at the numbers.

# %% new-reviews-text [markdown]
# Both times the loss is 0.47 and the accuracy 76 %. You would ship this model.
#
# Let's first ask both models about the 2,000 reviews that they haven't seen:


# %% new-reviews
def accuracy_of(model):
    loss_and_accuracy = model.evaluate(test_x, test_y, verbose=0)
    return loss_and_accuracy[1]


print("one device ", about(accuracy_of(one_device_model), 0.82, 0.88))
print("two devices", accuracy_of(two_device_model))

answers = two_device_model.predict(test_x, verbose=0)
dead = np.isnan(answers).any(axis=1).sum()
print("nan answers", dead, "of", len(answers))

# %% new-reviews-read [markdown]
# That model is dead: every answer is `nan`.
# Then why is its accuracy 0.5, and not 0? Keras picks the class with the larger output.
# When both are `nan`, it falls back on class 0, and half of the reviews really are class 0.
#
# `fit` didn't notice. It computes each loss *before* the update of its step, and the model died in the very last step.
#
# To explain it, we need to know three things: what a strategy does with a batch, with the variables, and with the gradients.
#
# ## The batch
#
# With DTensor you wrote one program for the whole batch, and a mean was the mean over all of its rows, on whatever device they were.
# A strategy works differently: *it runs your program once for each replica, on the rows of that replica alone.*
#
# A **replica** is a copy of the model that works on examples of its own. Here there are two, one on each device.
# You gave `fit` 4,097 reviews and `batch_size=64`. Is 64 what each replica gets, or what they share? The number of updates tells you.

# %% predict-steps [markdown]
# An optimizer counts its updates in `iterations`.
# `fit` had 4,097 examples, `batch_size=64` and two replicas.
# How many updates did it make in the epoch?
#
# - [ ] `33`
#   It would be, if each replica took 64 examples in every step.
# - [x] `65`
#   64 full batches, and one with the example that is left, as on one device: the replicas share each batch.
# - [ ] `129`
#   It would be, if the replicas made their updates in turn, with 32 examples each.
# - otherwise
#   Divide the examples by what all replicas together take in a step, and round up.

# %% reveal-steps
updates = two_device_model.optimizer.iterations
reveal("strategies-steps", int(updates.numpy()))

# %% received-text [markdown]
# So `batch_size` is the size of the **global batch**, which all replicas share. Each replica gets its *part* of it: here, 32 of the 64 reviews.
# (Its size is called the *per-replica batch size*.)
# The batches of a `tf.data.Dataset` are global batches, too.
#
# Now for the last batch, which has a single review. To see where that goes, take an example that you can follow at a glance: five examples in batches of four.
# This is who gets what:

# %% received
from lessons.strategies.global_batches import received_examples

received_examples(mirrored, tf.data.Dataset.range(5).batch(4))

# %% received-read [markdown]
# Example 4 is alone in its batch, and it goes to replica 0. The part of replica 1 has *no* examples.
# And yet replica 1 doesn't sit the step out. It runs the model on zero rows, and batch normalization asks for their mean:

# %% empty-mean
no_rows = tf.zeros((0, 3))
print(tf.reduce_mean(no_rows, axis=0).numpy())

# %% copies-text [markdown]
# Zero divided by zero is `nan`. So replica 1 computes nonsense.
# But replica 0 had its review, and it has variables of its own. Why is *that* one dead, too?
#
# ## The variables and the gradients
#
# Let's look at a model that is small enough to print: the linear model $y = wx + b$, whose weight $w$ and bias $b$ start from 0.
# It gets the numbers 1, 2, 3 and 4, and should learn to return them.

# %% line
numbers = np.array([[1], [2], [3], [4]], "float32")


def linear_model():
    unit = keras.layers.Dense(1, kernel_initializer="zeros")
    model = keras.Sequential([keras.Input((1,)), unit])
    model.compile(keras.optimizers.SGD(0.05), "mse")
    return model


# %% alone-text [markdown]
# On two replicas, the first gets 1 and 2, and the second 3 and 4.
# Where would the weight go in one step if each were alone? And where would a single device take it, if it saw all four?


# %% alone
def weight_of(model):
    weight = model.get_weights()[0]
    return round(weight.item(), 2)


for part in (numbers[:2], numbers[2:], numbers):
    model = linear_model()
    model.fit(part, part, batch_size=4, verbose=0)
    print(part.ravel(), "weight", weight_of(model))

# %% two-copies-text [markdown]
# Alone, they would take it to 0.25 and to 1.25. A single device takes it to 0.75. Now the two replicas together.
#
# `MirroredStrategy` keeps a copy of each variable on each device. To see the copies of a Keras variable,
# pass its `.value`, the TensorFlow variable that it wraps, to `experimental_local_results`.
# Here are the copies of the weight, before the step and after it:


# %% copies
def copies_of(variable, strategy):
    copies = strategy.experimental_local_results(variable.value)
    return [copy.numpy() for copy in copies]


with mirrored.scope():
    model = linear_model()

weight = model.layers[0].kernel
print(type(weight.value).__name__)
print("before", *copies_of(weight, mirrored))
model.fit(numbers, numbers, batch_size=4, shuffle=False, verbose=0)
print("after ", *copies_of(weight, mirrored))

# %% copies-read [markdown]
# Your program sees one variable, a `MirroredVariable`. Behind it stand two copies, and both have gone from 0 to 0.75.
# Neither replica would have gone there alone. It's exactly where a single device goes when it sees all four numbers!
#
# What brought them there is an all-reduce, the one that you know: the gradients of all replicas are added up, and every replica gets the sum.
# Each replica computes the mean loss over its own examples, and Keras divides that by the number of replicas.
# So its gradient is half as large when it enters the sum, and both copies move by (0.25 + 1.25) / 2 = 0.75.
#
# Follow the step from top to bottom. The colors of the examples come back in the gradients: each gradient knows only its own examples.
# The stripes mark a partial sum, which waits for the others. Below the all-reduce, both replicas hold the same:

# %% step-picture
from lessons.strategies.strategies import picture

picture.step_picture()

# %% all-reduce-text [markdown]
# You can make such a sum yourself. `mirrored.run(function)` calls a function on every replica.
# Inside it, `get_replica_context()` gives you the number of the replica, and an `all_reduce`.
# First, replica 0 contributes a gradient of 2, and replica 1 a gradient of 3. Then replica 1 brings a `nan`:


# %% all-reduce
def add_up(gradients):
    context = tf.distribute.get_replica_context()
    replica = context.replica_id_in_sync_group  # 0 or 1
    own_gradient = tf.constant(gradients[replica])
    return context.all_reduce("SUM", own_gradient)


for gradients in ([2.0, 3.0], [2.0, np.nan]):
    totals = mirrored.run(add_up, args=(gradients,))
    first, second = mirrored.experimental_local_results(totals)
    print("gradients", gradients)
    print("  replica 0 gets", first.numpy())
    print("  replica 1 gets", second.numpy())

# %% all-reduce-read [markdown]
# Both replicas get the sum, 5. But one bad gradient spoils the sum for both. Is that what happened in the opening? Let's look into the dead model.
# Batch normalization has four variables for its 48 hidden units. How many `nan`s are in the copy of replica 0, and how many in that of replica 1?

# %% autopsy
for variable in two_device_model.layers[1].variables:
    first, second = copies_of(variable, mirrored)
    nans = [np.isnan(first).sum(), np.isnan(second).sum()]
    print(f"{variable.name:15}", *nans)

# %% autopsy-read [markdown]
# `gamma`, the scale, is `nan` in both copies. Its gradient depends on the mean of the rows, and on replica 1 that was the mean of no rows.
# This is how the model died, in step 65:

# %% death
picture.death_picture()

# %% death-read [markdown]
# The sum that makes two devices act as one is also what killed both.
# `beta`, the shift, was lucky: its gradient is a plain sum over the rows, and a sum over no rows is 0.
#
# But look at the moving averages. They are `nan` on replica 1 *alone*.
# They aren't trained, so they have no gradient, and nobody adds them up: each copy keeps its own.
# So the copies of a variable needn't be equal. Remember that; it comes back.

# %% last-given [markdown]
# ## Without batch normalization
#
# Batch normalization made the empty part visible. What happens in a model without it?
# Nothing turns into `nan` there: Keras takes the loss of no examples to be 0, and the gradient is 0, too.
#
# But remember how Keras divides. Each replica takes the mean loss over *its own part*, and Keras divides that by the number of replicas before the gradients are added up.
# If each replica has two examples, an example counts 1/2 in its replica's mean, and that mean is halved again: 1/4, just as in the mean over all four. But our last batch has the parts 1 and 0.

# %% predict-last [markdown]
# `fit` trains the linear model, whose weight and bias are 0, for one epoch with five examples, all (1, 1),
# and `batch_size=4`.
# The first step takes the weight and the bias from 0 to 0.1, so that the model predicts 0.2. On one device the second step, with the one example that is left, adds another 0.05 × 2 × 0.8 = 0.08: the learning rate, times twice the error of 0.8.
# What is the weight on two replicas after the epoch?
#
# - [ ] `0.18`
#   It would be, as on one device, if the only example counted in full.
#   But Keras divides its loss by the number of replicas, and the other replica adds nothing.
# - [x] `0.14`
#   Replica 0 has the mean over one example, Keras divides it by the two replicas, and replica 1 adds nothing: half a step.
# - [ ] `0.1`
#   It would be, if such a batch were left out.
#   Replica 0 still computes a gradient.
# - [ ] `0.12`
#   It would be, if the last example were divided by the batch size of 4.
#   Keras divides by the examples of the part, which is 1, and by the number of replicas.

# %% reveal-last
five_ones = np.ones((5, 1), "float32")
with mirrored.scope():
    model = linear_model()
model.fit(five_ones, five_ones, batch_size=4, shuffle=False, verbose=0)
reveal("strategies-last", weight_of(model))

# %% last-table [markdown]
# | the weight | at first | after the full batch | after the last example |
# | :--- | ---: | ---: | ---: |
# | one device | 0 | 0.10 | 0.18 |
# | two replicas | 0 | 0.10 | 0.14 |
#
# The last step was half a step. There is no `nan` this time, and no error. Does the loss that `fit` reports give it away? We compare two epochs:

# %% epochs
# The default strategy, with a single replica: one device
single = tf.distribute.get_strategy()

for strategy in (single, mirrored):
    with strategy.scope():
        model = linear_model()
    fitted = model.fit(
        five_ones,
        five_ones,
        batch_size=4,
        epochs=2,
        verbose=0,
    )
    first, second = fitted.history["loss"]
    print(f"first epoch {first:.3f}  second epoch {second:.3f}")

# %% epochs-read [markdown]
# The first epoch's loss doesn't give it away. Only the last update is wrong, and by then every loss of that epoch has been computed.
# The second epoch starts from the wrong weights, and reports 0.481 instead of 0.380.
# With thousands of examples in an epoch, you won't see such a difference in any curve.
# The reported loss isn't lying: it is the correct loss for these weights. The weights are wrong, because the *update* was.
#
# Under `fit`, an update is wrong whenever the parts are unequal. Here is how much each example counts:
#
# | batch of | parts | on two replicas | on one device |
# | ---: | :--- | :--- | ---: |
# | 4 | 2 and 2 | 1/4 each | 1/4 |
# | 3 | 2 and 1 | 1/4, 1/4 and 1/2 | 1/3 |
# | 1 | 1 and 0 | 1/2 | 1 |
#
# One device divides every example by the size of the *global* batch. Can't the replicas do the same?

# %% by-hand-text [markdown]
# They can, if you write the step yourself.
#
# **Exercise 1.** Write `replica_step(weight, features, labels, learning_rate, global_batch)`:
# what one replica does in a step of gradient descent. Parts may differ in size.
#
# - The model is `tf.linalg.matvec(features, weight)`, and the loss of an example is its squared error.
# - `features` and `labels` are this replica's part of the batch.
# - Minimize the mean loss over the *global* batch, which has `global_batch` examples.
# - `weight.assign_sub(change)` changes the copy of this replica alone. After the step, all copies must be equal.
# - Return what this replica contributes to that mean: the contributions of all replicas add up to it.
#
# The check runs your function on two replicas and on three, and compares with NumPy.


# %% exercise-by-hand
def replica_step(weight, features, labels, learning_rate, global_batch):
    # solution begin
    with tf.GradientTape() as tape:
        errors = tf.linalg.matvec(features, weight) - labels
        loss = tf.reduce_sum(tf.square(errors)) / global_batch
    gradient = tape.gradient(loss, weight)
    context = tf.distribute.get_replica_context()
    total = context.all_reduce("SUM", gradient)
    weight.assign_sub(learning_rate * total)
    return loss
    # solution end


# %%
check("strategies-by-hand", replica_step)

# %% cure-text [markdown]
# ## Repaired, or so it seems
#
# Your step is right however the batch is split. `fit` is right only if the parts are equal. So under `fit`, the cure is to *give every replica the same number of examples in every step.*
#
# - Choose a `batch_size` that can be divided by the number of replicas.
# - The last batch must be divisible, too. The simple way is to leave it out unless it is full.
# - With a dataset, that is `dataset.shuffle(n).batch(64, drop_remainder=True)`, in this order. Each epoch then leaves out different examples.
# - With arrays, cut them. `fit` shuffles only what you have kept, so the rest is lost in every epoch.
# - To *compare* with one device, don't shuffle the dataset. Even with a seed, the order under `fit` can be different on two replicas than on one device.

# %% note-first [markdown]
# When `fit` stops with an error about `AddN`
#
# If the *first* batch falls into unequal parts, `fit` of Keras 3 stops. With five examples on two replicas it says
# `InvalidArgumentError: Inputs to operation AddN of type AddN must have the same size and shape. Input 0: [3,1] != input 1: [2,1]`.
# Keras runs the model on the first batch to learn its shapes, and there it adds up the parts.

# %% note-scaling [markdown]
# Should the batch and the learning rate grow with the number of devices?
#
# Usually you give each replica as many examples as one device had. The global batch is then
# the per-replica batch times `strategy.num_replicas_in_sync`, and an epoch has fewer updates.
#
# For the learning rate, start from the two rules of {lesson:faster}: the same factor for SGD
# ([Goyal and others](https://arxiv.org/abs/1706.02677), section 2.1, who warm up first),
# its square root for Adam ([Malladi and others](https://arxiv.org/abs/2205.10287)).
# Then tune the rate at the batch size that you'll use.

# %% full-batches-text [markdown]
# So let's go back to the reviews, and leave out the last one. Is the model alive? And does it have the same weights as the model of one device?
# We compare all that `get_weights` returns, which includes the moving averages of batch normalization.

# %% full-batches
full_x, full_y = x[:4096], y[:4096]


def trained(strategy):
    with strategy.scope():
        model = make_model()
    model.fit(full_x, full_y, batch_size=64, shuffle=False, verbose=0)
    return model


def difference(model, other):
    pairs = zip(model.get_weights(), other.get_weights())
    return max(np.abs(a - b).max() for a, b in pairs)


reference = trained(single)
unsynced = trained(mirrored)
print("accuracy  ", about(accuracy_of(unsynced), 0.82, 0.88))
print("difference", about(difference(reference, unsynced), 0.02, 0.2))

# %% full-batches-read [markdown]
# The model is alive, and it gets 85 % right.
# But it isn't the model of one device. The largest difference between the values of the two models is almost a tenth, and that isn't rounding.

# %% twice-text [markdown]
# ## What a replica does alone
#
# It gets stranger. Give this model the same review twice. Each row below shows the model's two outputs for one copy of the review. The larger output wins:

# %% twice
pair = np.stack([test_x[58], test_x[58]])
logits = unsynced.predict(pair, verbose=0)
for row in (0, 1):
    disliked, liked = logits[row]
    print("row", row, end="  ")
    print("disliked", about(disliked, -0.1, 0.4), end="  ")
    print("liked", about(liked, -0.1, 0.4))

# %% twice-read [markdown]
# One model, one review, two answers! In row 0 the model says that the reviewer disliked the film, and in row 1 that they liked it.
# In {lesson:coupled_rows} you saw such twins in a model that had been made to produce them. How common are they in a trained one? Let's give the model 200 reviews twice each, and count those with two verdicts:

# %% verdicts
twice = np.repeat(test_x[:200], 2, axis=0)  # each review twice
logits = unsynced.predict(twice, batch_size=2, verbose=0)
verdicts = logits.argmax(axis=1).reshape(200, 2)  # a row a review
disagree = verdicts[:, 0] != verdicts[:, 1]
print("two verdicts:", about(disagree.sum(), 3, 25), "of 200")

# %% verdicts-read [markdown]
# For one review in twenty, the verdict depends on which replica happens to read it.
# `predict` splits its batch as well: of each pair, one row goes to each replica, which answers with its own copies of the variables.
# So some of these copies differ, and the dead model has shown which ones can: the moving averages. How far apart are the two copies of `moving_mean`, and how large are its numbers?


# %% drift
def apart(model):
    moving_mean = model.layers[1].moving_mean
    first, second = copies_of(moving_mean, mirrored)
    return np.abs(first - second).max()


first, second = copies_of(unsynced.layers[1].moving_mean, mirrored)
print("mean size", about(np.abs(first).mean(), 0.02, 0.05))
print("apart by ", about(apart(unsynced), 0.002, 0.03))

# %% drift-read [markdown]
# At worst, the two copies differ by about a fifth of a typical value. Comparing `get_weights` can't reveal this, because it returns only the copy of replica 0. A saved file has only that copy, too.
#
# {Lesson:coupled_rows} had the reason. By default, batch normalization of Keras takes the *local* mean and variance, those of a replica's own rows.
# What does that do in training? Here are our four numbers, normalized first all together, then in the parts of the two replicas:


# %% own-rows
def normalized(rows):
    return np.round((rows - rows.mean()) / rows.std(), 2).ravel()


print("one device", normalized(numbers))
print("replica 0 ", normalized(numbers[:2]))
print("replica 1 ", normalized(numbers[2:]))

# %% own-rows-read [markdown]
# On one device, 2 becomes a negative number and 4 a positive one. On the replicas, both become 1:
# each is the larger of its pair. The two pairs have different means, 1.5 and 3.5, and each replica subtracts its own.
#
# So the replicas don't train on the same numbers as a single device would, which explains the weights. And each replica averages *its* means into *its* copy of `moving_mean`, which explains the copies.
#
# With DTensor, this couldn't happen: there, the mean in your program is the mean of the whole batch.
# Here, your program sees the rows of one replica. To normalize by the mean and variance of the whole batch (the *global* ones), you flip a switch of batch normalization:

# %% normalization-picture
picture.normalization_picture()

# %% synchronized-text [markdown]
# The first row is one device, with the mean 2.5 for all four. Below it, each replica has a mean of its own.
# With `synchronized=True`, at the bottom, the replicas add up the sums of their rows and of the squares, and all use the mean and variance of the whole batch.
# On one device the switch makes no difference beyond rounding.
#
# Let's train our model with the switch:


# %% synchronized
def make_model(synchronized=False):
    keras.utils.set_random_seed(1)
    hidden = keras.layers.Dense(48, activation="relu")
    normalization = keras.layers.BatchNormalization(
        momentum=0.9,
        synchronized=synchronized,  # the only change
    )
    layers = [hidden, normalization, keras.layers.Dense(2)]
    model = keras.Sequential([keras.Input((1200,)), *layers])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    adam = keras.optimizers.Adam(3e-3)
    model.compile(adam, loss, metrics=["accuracy"])
    return model


with mirrored.scope():
    synced = make_model(synchronized=True)
synced.fit(full_x, full_y, batch_size=64, shuffle=False, verbose=0)
print("difference", about(difference(reference, synced), 0, 1e-4))
print(f"apart by {apart(synced):.4f}")

# %% synchronized-read [markdown]
# The switch repairs the model. This time the difference *is* rounding, and the two copies are equal. At last, two devices do what one device does.
#
# The mistake that you have just repaired is the most treacherous of the lesson: no error, no `nan`, and a good accuracy.
# And it isn't the only one of its kind. Of what a step computes, a strategy adds up the gradients, and only the gradients. *Whatever a replica does before that sum, it does alone, unless told otherwise*, so the result may differ from that of one device. Batch normalization is the first of four examples:
#
# | in your program | what each replica does alone | what helps |
# | :--- | :--- | :--- |
# | `BatchNormalization()` | normalizes its own rows, and keeps its own moving averages | `synchronized=True` |
# | a mask, as of padded texts: `Masking`, `Embedding(mask_zero=True)` | divides the loss by the number of its own time steps that aren't masked | a custom training loop that divides by the number in the global batch |
# | `clipnorm`, `clipvalue` or `global_clipnorm` of an optimizer | clips its own gradient, before the sum | a custom training loop that clips the sum, or tf_keras (Keras 2), which does |
# | `Dropout` | chooses which units to drop, and all replicas choose alike: the first row of each replica loses the same units | tf_keras, in which each replica chooses others |
#
# Padded texts are the worst case: even if every replica gets equally many examples, the loss that `fit` and `evaluate` report is wrong. You write a *custom training loop* in {lesson:custom_training}.
#
# The page *What strategies get right* lists nearly 300 features of Keras and `tf.distribute`, each tried in a small program. Before you trust your model, look up there what it uses.

# %% note-unsynchronized [markdown]
# Is it wrong to leave batch normalization unsynchronized?
#
# Not always. The numbers aren't those of one device, but many networks are trained that way on purpose,
# since it saves an exchange in every layer. If you do so, evaluate the model that you will use: load the saved one.
# It has one copy of the moving averages, so an answer no longer depends on which replica gives it.
#
# `synchronized=True` alone also takes the `nan` out of the opening: one replica had no rows, but the two together had one.
# The parts of the last step are still unequal, though, and its gradients are half of those on one device.

# %% scope-text [markdown]
# ## What is made outside the scope
#
# There is one more way to go wrong, and it can be just as quiet. What if something isn't made in the scope of the strategy?

# %% predict-count [markdown]
# `counter = tf.Variable(0)` is made outside the scope.
# Two replicas of a `MirroredStrategy` run one step, in which each calls `counter.assign_add(1)`.
# What is the value of `counter` then?
#
# - [ ] `1`
#   It would be, if the variable were made in the scope: it would have two copies, and each of them would count to 1.
# - [x] `2`
#   Outside the scope there are no copies: each replica adds 1 to the same variable.
# - [ ] `error` no value: it is an error
#   TensorFlow lets a replica change a variable that has no copies, without a word.

# %% reveal-count
counter = tf.Variable(0)
mirrored.run(lambda: counter.assign_add(1))
reveal("strategies-count", int(counter.numpy()))

# %% outside-text [markdown]
# A step counter like this counts each step once for each replica. A learning-rate schedule that reads it runs too fast.
# And a whole model? Here are the four numbers once more, but nobody opened the scope of `mirrored`:

# %% outside
outside = linear_model()
outside.fit(numbers, numbers, batch_size=4, shuffle=False, verbose=0)
print("weight", weight_of(outside))

copies = copies_of(outside.layers[0].kernel, mirrored)
print("copies", len(copies))

# %% outside-read [markdown]
# The weight is right, 0.75. But there is only one copy of it: the strategy took no part in this training.
# On a machine with two GPUs, you pay for a second GPU that does nothing.
# So before a long run, look at a variable: it should have a copy on each device.

# %% note-scope [markdown]
# What else goes wrong around the scope and the devices?
#
# | mistake | what TensorFlow or Keras does | what helps |
# | --- | --- | --- |
# | a model made outside the scope, and `fit` called inside of it | `AssertionError` without a message, or `Mixing different tf.distribute.Strategy objects` | make the model in the scope |
# | the model in the scope, but SGD of Keras 3, without momentum, outside | its `iterations` grow by 1 for each replica in every step, so that a learning-rate schedule runs too fast | make it in the scope |
# | the model in the scope, but Adam, or SGD with momentum, of Keras 3 outside | an error; if you have built it there with `build`, the copies can drift apart | make it in the scope |
# | a device that doesn't exist, such as `GPU:1` in a machine with one GPU | uses a different one, here `CPU:0`, without a word, so that two copies can lie on one device: look at their `device` | call `tf.config.set_soft_device_placement(False)` first: then it is an error |
# | a kind of device in lower case: `list_physical_devices("gpu")` | finds none | upper case |
# | a second `MirroredStrategy` on CPUs without `ReductionToOneDevice` | data of both can meet: `Shape mismatch in the collective instance`, or `Device … is joining a group with size3, but that group has size 2` | restart; then one strategy, or `ReductionToOneDevice()` |
# | `train_on_batch` instead of `fit` | gives every replica the *whole* batch: the numbers are right, but nothing is gained | `fit` |
# | `predict_on_batch` instead of `predict` | gives every replica the whole batch: three rows come back as six | `predict` |
#
# What if replicas assign different values to a variable of the scope? You choose when you make it:
# `tf.Variable(0, aggregation=tf.VariableAggregation.SUM)` adds them up.
# `MEAN`, for floats, and `ONLY_FIRST_REPLICA` are other choices.
# If you choose none, each copy silently keeps its own value.

# %% mend-text [markdown]
# ## Now repair it
#
# **Exercise 2.** A colleague has wrapped the training run from the opening in a function, and forgot even the scope:
#
# ```python
# def train(strategy, make_model, x, y):
#     model = make_model()
#     model.fit(x, y, batch_size=64, shuffle=False, verbose=0)
#     return model
# ```
#
# Write a `train(strategy, make_model, x, y)` that is right:
#
# - It calls `make_model`, which has the argument `synchronized` as above, and trains this model for one epoch of `fit`.
# - It takes the reviews in their order, in global batches of 64, and leaves out those at the end that don't fill a batch.
# - The strategy has one replica or two, and all of them take part.
# - With either strategy, it returns a model with the same weights, up to rounding.
#
# The check brings a small `make_model` of its own, and 143 reviews.


# %% exercise-mend
def train(strategy, make_model, x, y):
    # solution begin
    with strategy.scope():
        model = make_model(synchronized=True)
    full = len(x) // 64 * 64
    x, y = x[:full], y[:full]
    model.fit(x, y, batch_size=64, shuffle=False, verbose=0)
    return model
    # solution end


# %%
check("strategies-mend", train)

# %% chooser-text [markdown]
# ## Which strategy do I need?
#
# So far we had one machine with several devices. For other hardware there are other strategies.
# They differ in where the variables are, and in whether the devices wait for one another. The same color means the same data:

# %% strategies-picture
picture.strategies_picture()

# %% timelines-text [markdown]
# `MirroredStrategy` has two relatives: `MultiWorkerMirroredStrategy` for several machines, and `TPUStrategy` for TPUs. All three keep a copy of the variables on each device.
# `CentralStorageStrategy` keeps them once, on the CPU, and its GPUs have none.
# `ParameterServerStrategy` spreads them over *servers*, each with some of the variables, while the *workers* compute.
#
# Most strategies train **synchronously**: in every step, all replicas wait for the sum of the gradients, and make one update together.
# (`OneDeviceStrategy`, with its single replica, has nobody to wait for.)
# `ParameterServerStrategy` alone is made for **asynchronous** training: a worker fetches the variables, computes its gradients, sends them to the servers, and begins its next step. Nobody waits.
#
# Here are three steps of two devices, in both ways; in the asynchronous one, each device is a worker. Sometimes one is slower, sometimes the other:

# %% timelines
picture.timelines_picture()

# %% timelines-read [markdown]
# Nobody waits, so the work is done sooner. But it isn't the same training. Instead of three updates that each use the gradients of both devices, there are six that use only one.
#
# And look at the steps in red frames. While device 0 is still computing its second step, device 1 changes the variables, and not once but twice. So when device 0 sends its gradient, that gradient is **stale**: it was computed from weights that have since changed.
# Here, three gradients of six are stale. If all devices are about equally fast, nobody waits long. Then stale gradients buy you very little, and that is why most people train synchronously.
#
# Now you choose. You have two machines with four GPUs each, and a model that trains with `fit` of Keras 3.
# Set the explorer to several GPUs and several machines. Which strategy does it give you, and what does it warn you of?

# %% chooser
from lessons.strategies.strategies.explorer import StrategyExplorer

StrategyExplorer()

# %% note-strategies [markdown]
# The strategies one by one
#
# - `OneDeviceStrategy` places the variables of its scope, and what `run` computes, on the device that you name.
#   With it you try out a program before it is distributed.
# - `MirroredStrategy` takes all GPUs if you name no devices, or all CPUs if there is no GPU. Its second argument says how values are added up:
#   `NcclAllReduce`, which calls NVIDIA's library, runs on GPUs alone.
# - `CentralStorageStrategy`, which is experimental, keeps each variable once, on the CPU, and computes on several GPUs.
# - `MultiWorkerMirroredStrategy` is `MirroredStrategy` over several machines. Each *worker* runs the same program,
#   and finds the others in the environment variable `TF_CONFIG` ({lesson:workers}).
#   They exchange values by `RING` (over gRPC), by `NCCL`, or as TensorFlow chooses (`AUTO`).
# - `ParameterServerStrategy` has a *coordinator*, which hands out the steps, besides workers and servers.
# - `TPUStrategy` has collectives of its own. A *resolver* finds the TPU, which must then be initialized; that clears its memory.
#   Without a TPU, `TPUClusterResolver()` says: `Please provide a TPU Name to connect to.`
#
# If you call `run` yourself, do it inside a `tf.function`.
# [TensorFlow's guide](https://www.tensorflow.org/guide/distributed_training) recommends eager calls only for debugging, and never on TPUs.
# For an eager call, TensorFlow warns of `significant overhead`; this notebook keeps that warning quiet.

# %% table-text [markdown]
# Set to several machines, the explorer gives you `MultiWorkerMirroredStrategy`, and warns you that `fit` of Keras 3 fails under it. So the program that it writes for you has a training loop of its own.
# In its picture, every GPU has a copy of all variables, and its own part of the batch; the striped gradients still have to be added up.
#
# So let's put the question of this lesson to every strategy except `TPUStrategy`, since we have no TPU: *are the numbers still right?*
# We tried them on the easiest case, two dense layers and full batches.
# "Equals one device" means that losses and weights match those of one device, up to rounding.

# %% table
from course_lib import measured

support = measured.load("strategies-support").support
measured.table(support, columns=["fit_keras_3", "loop_keras_3"])

# %% table-read [markdown]
# Read the column of `fit` before you plan your cluster.
# On one machine, `fit` trains this model correctly, though under `CentralStorageStrategy` it reports a wrong loss.
# On several machines `fit` ends in an error. A trial with one worker, on one machine, won't warn you, because there `fit` runs.
#
# A custom training loop is right in every row, even under `ParameterServerStrategy`. But there, our loop handed out one step at a time, so that no gradient could be stale.

# %% note-table [markdown]
# What stands behind this table?
#
# Every entry ran in processes of its own, on virtual CPUs, with two replicas or two workers. Nothing ran on a GPU,
# and there was no TPU: `TPUStrategy` was not tried.
#
# With tf_keras, which is Keras 2, `fit` equals one device in all rows but the last. Under `ParameterServerStrategy` it trains asynchronously:
# no two of its runs are alike, so there is nothing to compare them with. Its loss falls.
#
# The error is `ValueError: Attempt to convert a value (PerReplica:{...}) ...`.
#
# The wrong loss comes from how Keras 3 updates a metric: by `assign(old + new)`. `CentralStorageStrategy` adds up what the replicas assign.
# Each of them assigns `old` once more, so the sum has it once for each replica. A metric in a custom training loop goes wrong in the same way; the loop of the table had none.

# %% takeaways [markdown]
# ## The plain program
#
# [`strategies.py`](../plain/strategies.py) asks the question of this lesson without the course's library.
# As it stands, it trains the linear model and the network on one, two and four replicas, and ends with an error
# if a loss or a weight isn't that of one device, or if copies differ. For your own model, call its `compare` with the function that makes the model, and your data.
#
# ## Takeaways
#
# - `MirroredStrategy` splits the batch, copies the variables, and adds up the gradients. Whatever a replica does before that sum, it does alone, unless told otherwise.
# - Give every replica the same number of examples in every step, synchronize batch normalization, and make model and optimizer in the scope. With masks of padded texts, even that isn't enough.
# - A healthy loss proves nothing. Compare the weights with those of one device, and look at the copies.
#
# In {lesson:custom_training}, you write the training loop yourself, and have to find out what it must divide by.
# (Do you have an old program that uses Estimators? After that lesson, {lesson:estimators} shows you how to get off them.)

# %% score
score("strategies")
