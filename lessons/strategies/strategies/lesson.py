# %% [markdown]
# # Strategies
#
# Two extra lines take a Keras training run from one device to two.
# `fit` reports the same loss and the same accuracy as before.
# Then you ask both models about 2,000 new reviews. The model from one device gets 85 % of them right.
# The model from two devices answers every review with `nan`.
#
# There was no error. The cause is a single review, the last of 4,097.
# Leave it out, and the `nan` is gone. But the weights still aren't those of one device, and now nothing tells you.
#
# In this lesson, you reproduce this run, find out what goes wrong in it, and repair it. One question runs through it: *under `fit` on several devices, are the numbers still right?* "Right" means the same as on one device, up to rounding.
#
# **After this lesson you can**
#
# - train a Keras model under a strategy, and say what happens to the batch, the variables and the gradients;
# - check whether its numbers are those of one device, and repair them if they aren't;
# - choose a strategy for your hardware.
#
# **Time:** 45 minutes.
# **You need to know:** how to train a Keras model, and what batch normalization computes ({lesson:coupled_rows}).

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% data-text [markdown]
# ## Two lines that go wrong
#
# We use the reviews of the earlier lessons. Each is a row of 1,200 numbers, and its label is 1 if the reviewer liked the film.
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
# The network is the one you know, 1,200 → 48 → 2, with batch normalization after the hidden layer.
# With `momentum=0.9`, its moving averages follow the data fast enough for our short run.
# `make_model` starts from the same weights each time:


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
# First, we train on one device. The run makes one pass through the reviews, in their order, so that we can compare it with the next run.
# (As in {lesson:whole_game}, ≈ marks a number that may differ slightly on your machine.)

# %% on-one
one_device_model = make_model()
log = one_device_model.fit(
    x, y, batch_size=64, shuffle=False, verbose=0
)
print("loss    ", about(log.history["loss"][0], 0.44, 0.50))
print("accuracy", about(log.history["accuracy"][0], 0.74, 0.79))

# %% on-two-text [markdown]
# Now we train on two devices. In `tf.distribute`, an object called a **strategy** says which devices take part.
# `MirroredStrategy` is made for several GPUs in one machine; ours gets two virtual CPUs.
# Two lines are new: one creates the strategy, and one opens its **scope**. We make the model inside the scope. (Virtual CPUs also need `to_one`; on GPUs, you leave it out.)

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
# What changes on GPUs, and is it faster?
#
# On a machine with GPUs, `tf.distribute.MirroredStrategy()` takes all of them, so you make no devices and name none.
# Here, `setup(devices=8)` in the first cell split one processor into eight virtual devices.
# In your own program, `tf.config.set_logical_device_configuration` does that. Call it before TensorFlow first uses its devices.
#
# `to_one`, from the folded cell, is a `ReductionToOneDevice`: it lets one device do all the adding up.
# Without it, several strategies on CPUs can mix up their data, and the exercises' checks make more strategies. On GPUs, leave it out.
#
# Two devices aren't faster here. In {lesson:faster}, on a machine with two cores, eight virtual devices were slower than one with batches of 64 reviews, and 1.5 times as fast with batches of 16,384.

# %% new-reviews-text [markdown]
# Both runs report a loss of 0.47 and an accuracy of 76 %. So far, the second model looks as good as the first.
#
# Let's ask both about the 2,000 reviews that they haven't seen:


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
# The second model is dead: all its answers are `nan`.
# Its accuracy is still 0.5, because Keras takes class 0 if both outputs are `nan`, and half of the reviews are of class 0.
#
# Why did `fit` report a healthy loss? In each step, it computes the loss *before* it updates the weights.
# If the model had died earlier, a later loss would have been `nan`, and with it the reported mean.
# So the model died in the very last update, the one with the 4,097th review. What happened in it?
#
# ## The batch
#
# With DTensor, you wrote one program for the whole batch. A mean was the mean over all rows, on whatever device they were.
# A strategy works differently: *it runs your program once for each replica, and each run sees only the rows of that replica.*
#
# A **replica** is a copy of the model that works on its own examples. Here there are two replicas, one on each device.
#
# You passed `fit` 4,097 reviews and `batch_size=64`. Either each replica takes 64 reviews in a step, or the two share 64. The number of updates tells you which:

# %% predict-steps [markdown]
# An optimizer counts its updates in `iterations`.
# `fit` had 4,097 examples, `batch_size=64` and two replicas.
# How many updates did it make in the epoch?
#
# - [ ] `33`
#   It would be 33 if each replica took 64 examples in every step.
# - [x] `65`
#   The replicas share each batch, so there are as many steps as on one device: 64 with full batches, and one with the example that is left.
# - [ ] `129`
#   It would be 129 if the replicas took turns, with 32 examples for each update.
# - otherwise
#   Divide the examples by what all replicas together take in a step, and round up.

# %% reveal-steps
updates = two_device_model.optimizer.iterations
reveal("strategies-steps", int(updates.numpy()))

# %% received-text [markdown]
# So `batch_size` is the size of the **global batch**, which all replicas share. Each replica gets its *part* of it, here 32 of the 64 reviews.
# If you pass `fit` a `tf.data.Dataset`, its batches are global batches, too.
#
# But the last batch has a single review, and two replicas can't share one review. Who gets it?
# A smaller case is easier to follow. Let's share out five examples in batches of four:

# %% received
from lessons.strategies.global_batches import received_examples

received_examples(mirrored, tf.data.Dataset.range(5).batch(4))

# %% received-read [markdown]
# Example 4 is alone in its batch, and it goes to replica 0. The part of replica 1 is *empty*.
# But replica 1 doesn't skip the step. It runs the model on zero rows, and batch normalization takes their mean:

# %% empty-mean
no_rows = tf.zeros((0, 3))
print(tf.reduce_mean(no_rows, axis=0).numpy())

# %% copies-text [markdown]
# The mean divides a sum of 0 by 0 rows, and 0 / 0 is `nan`. So replica 1 computed nonsense.
# But replica 0 had a review. Why did it die, too?
#
# ## The variables and the gradients
#
# To find out what the replicas have in common, we take a model that is small enough to print: the linear model $y = wx + b$.
# Its weight $w$ and its bias $b$ start from 0. The model gets the numbers 1, 2, 3 and 4, and should learn to return them:

# %% line
numbers = np.array([[1], [2], [3], [4]], "float32")


def linear_model():
    unit = keras.layers.Dense(1, kernel_initializer="zeros")
    model = keras.Sequential([keras.Input((1,)), unit])
    model.compile(keras.optimizers.SGD(0.05), "mse")
    return model


# %% alone-text [markdown]
# When two replicas share these numbers, the first gets 1 and 2, and the second gets 3 and 4.
# Before we train the replicas together, let's train three times on one device: with the numbers of the first replica, with those of the second, and with all four. Where does one step take the weight?


# %% alone
def weight_of(model):
    weight = model.get_weights()[0]
    return round(weight.item(), 2)


for part in (numbers[:2], numbers[2:], numbers):
    model = linear_model()
    model.fit(part, part, batch_size=4, verbose=0)
    print(part.ravel(), "weight", weight_of(model))

# %% two-copies-text [markdown]
# The weight goes to 0.25 or to 1.25. With all four numbers, it goes to 0.75.
#
# Now we train the two replicas together. `MirroredStrategy` keeps a copy of each variable on each device, and `experimental_local_results` returns the copies.
# It takes a TensorFlow variable, which a Keras variable keeps in its `.value`.
# Here are the copies of the weight before the step and after it:


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
# Your program sees one variable, a `MirroredVariable`. Behind it there are two copies, and both have gone from 0 to 0.75.
# Neither replica's own numbers would have taken the weight there. One device goes exactly there with all four!
#
# The replicas did this with an all-reduce. It added up their gradients, and gave the sum to both. Then both made the same update.
#
# Why does the sum lead to 0.75? Each replica computes the mean loss over its part, and Keras divides that by the number of replicas, here 2.
# This halves each gradient, and half of 0.25 plus half of 1.25 is 0.75.
# (Keras does so with its own losses. A loss function of yours that returns a single number isn't divided, and the weight would go to 1.5. So return one loss for each example.)
#
# Here is the whole step, from top to bottom. A gradient has the color of the examples that it comes from.
# Stripes mark a partial sum, which still has to be added to the others. Below the all-reduce, both replicas hold the same:

# %% step-picture
from lessons.strategies.strategies import picture

picture.step_picture()

# %% all-reduce-text [markdown]
# So the sum of the gradients reaches both replicas. What if one of the gradients is `nan`? Let's try that with our own all-reduce.
#
# `mirrored.run(function)` calls a function on every replica. Inside the function, `get_replica_context()` gives you the replica's number, and an `all_reduce`.
# The replicas bring the gradients 2 and 3 first, then 2 and `nan`:


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
# The first time, both replicas get 5. The second time, both get `nan`, although the gradient of replica 0 was fine.
#
# Is that what happened to our dead model? Its batch normalization has four variables, each with a number for every one of the 48 hidden units.
# Let's count the `nan`s in the copies of each variable, on replica 0 and on replica 1:

# %% autopsy
for variable in two_device_model.layers[1].variables:
    first, second = copies_of(variable, mirrored)
    nans = [np.isnan(first).sum(), np.isnan(second).sum()]
    print(f"{variable.name:15}", *nans)

# %% autopsy-read [markdown]
# `gamma`, the scale, is `nan` in both copies. Its gradient depends on the mean of the rows. On replica 1 that mean was `nan`, and the all-reduce passed it on to replica 0:

# %% death
picture.death_picture()

# %% death-read [markdown]
# So the sum that lets two devices train as one has killed both.
# `beta`, the shift, has survived: its gradient is a plain sum over the rows, and a sum over no rows is 0.
#
# `moving_mean` and `moving_variance`, the moving averages, are `nan` on replica 1 *only*.
# They aren't trained, so they have no gradients, and no all-reduce touches them. Each replica updates its own copy.
# So the copies of a variable can differ. We'll meet this again.

# %% last-given [markdown]
# ## Without batch normalization
#
# Without batch normalization, an empty part causes no `nan`: a Keras loss over no examples is 0, and so is the gradient. Is the last update right, then?
#
# Let's train the linear model on five examples, in batches of four. As before, replica 0 gets the last example, and replica 1 gets nothing.
# And as before, each replica takes the mean loss over *its own part*, and Keras divides that by the number of replicas.

# %% predict-last [markdown]
# The linear model gets five examples, all with input 1 and label 1, and `fit` trains it for one epoch with `batch_size=4`.
# The first step takes the weight from 0 to 0.1, on one device as well as on two replicas.
# On one device, the second step takes it from 0.1 to 0.18. The bias always has the same value as the weight.
# What is the weight on two replicas after the second step?
#
# - [ ] `0.18`
#   It would be 0.18 if the last example counted as much as on one device.
#   But Keras divides its loss by the number of replicas, and replica 1 adds nothing.
# - [x] `0.14`
#   Replica 0 takes the mean over its one example, Keras divides it by the two replicas, and replica 1 adds nothing. So the step is half as long: 0.04 instead of 0.08.
# - [ ] `0.1`
#   It would be 0.1 if a batch that isn't full were left out.
#   But replica 0 computes a gradient from its example.
# - [ ] `0.12`
#   It would be 0.12 if the loss of the last example were divided by the batch size of 4.
#   Keras divides by the size of the part, which is 1, and by the number of replicas.

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
# The last update is wrong again, but this time nothing becomes `nan`. Does the loss that `fit` reports show the mistake? Let's train for two epochs, on one device and on two replicas:

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
# In the first epoch, both report the same loss. Only the last update was wrong, and no loss was computed after it.
# The second epoch starts from the wrong weight, so it reports 0.481 instead of 0.380.
#
# Here one update in two is wrong. With our 4,097 reviews it is one in 65, so don't count on seeing it in a curve.
#
# The last example is only the extreme case. Under `fit`, the update is wrong whenever the parts are unequal. This is how much each example counts:
#
# | batch of | parts | on two replicas | on one device |
# | ---: | :--- | :--- | ---: |
# | 4 | 2 and 2 | 1/4 each | 1/4 |
# | 3 | 2 and 1 | 1/4, 1/4 and 1/2 | 1/3 |
# | 1 | 1 and 0 | 1/2 | 1 |
#
# On one device, each loss is divided by the size of the *global* batch. Can't the replicas do the same?

# %% by-hand-text [markdown]
# They can, if you write the step yourself.
#
# **Exercise 1.** Write `replica_step(weight, features, labels, learning_rate, global_batch)`, which does the work of one replica in a step of gradient descent.
# It must be right for parts of different sizes.
#
# - The model is `tf.linalg.matvec(features, weight)`. The loss of an example is its squared error.
# - `features` and `labels` are this replica's part of the batch.
# - The step minimizes the mean loss over the *global* batch, which has `global_batch` examples.
# - `weight.assign_sub(change)` changes only the copy of this replica. After the step, all copies must be equal.
# - Return what this replica contributes to the mean loss. The contributions of all replicas must add up to it.
#
# The check runs your function on two replicas and on three, and compares the results with NumPy.


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
# Your step is right however the batch is split. `fit` is right only if the parts are equal. So under `fit`, *give every replica the same number of examples in every step:*
#
# - Choose a `batch_size` that the number of replicas divides, and leave out the last batch if it isn't full.
# - With a dataset, write `dataset.shuffle(n).batch(64, drop_remainder=True)`, in this order. Then each epoch leaves out different examples.
# - With arrays, cut them before you call `fit`. Then all epochs leave out the same examples.
# - To *compare* with one device, don't shuffle the dataset. Even with a seed, its order under `fit` can differ between one device and two replicas.
#
# If the *first* batch has unequal parts, `fit` of Keras 3 stops with an error. For five examples on two replicas, it says:
# `InvalidArgumentError: Inputs to operation AddN of type AddN must have the same size and shape. Input 0: [3,1] != input 1: [2,1]`.

# %% note-scaling [markdown]
# Should the batch and the learning rate grow with the number of devices?
#
# Usually you give each replica as many examples as one device had. If that number is `n`, the global batch has `n * strategy.num_replicas_in_sync` examples, and an epoch has fewer updates.
#
# For the learning rate, start from the two rules of {lesson:faster}: the same factor for SGD
# ([Goyal and others](https://arxiv.org/abs/1706.02677), section 2.1, who warm up first),
# its square root for Adam ([Malladi and others](https://arxiv.org/abs/2205.10287)).
# Then tune the rate at the batch size that you'll use.

# %% full-batches-text [markdown]
# Let's repair the run from the beginning of the lesson. We leave out the last review, and train on one device and on two.
# Is the second model alive? And does it have the weights of the first? We compare everything that `get_weights` returns, the moving averages of batch normalization included:

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
# The model is alive, and it gets 85 % of the new reviews right. You would think that it is repaired.
# But the largest difference between the two models is almost 0.1. Rounding would make a difference of about a millionth, so something must still be wrong.

# %% twice-text [markdown]
# ## What a replica does alone
#
# It gets stranger if you give this model the same review twice. Here are its two outputs for each of the two rows. The larger output wins:

# %% twice
pair = np.stack([test_x[58], test_x[58]])
logits = unsynced.predict(pair, verbose=0)
for row in (0, 1):
    disliked, liked = logits[row]
    print("row", row, end="  ")
    print("disliked", about(disliked, -0.1, 0.4), end="  ")
    print("liked", about(liked, -0.1, 0.4))

# %% twice-read [markdown]
# One model, one review, two answers! In row 0, the model says that the reviewer disliked the film, in row 1 that they liked it.
#
# You saw such twins in {lesson:coupled_rows}, but that model was made to produce them. How common are they in a model that was really trained?
# We give it 200 reviews, each of them twice, and count those with two different verdicts:

# %% verdicts
twice = np.repeat(test_x[:200], 2, axis=0)  # each review twice
logits = unsynced.predict(twice, batch_size=2, verbose=0)
verdicts = logits.argmax(axis=1)
disagree = verdicts[0::2] != verdicts[1::2]  # the two of a review
print("two verdicts:", about(disagree.sum(), 3, 25), "of 200")

# %% verdicts-read [markdown]
# That is one review in twenty. The verdict depends on which replica gets them: `predict` splits its batches, too, so each replica gets one row of each pair.
#
# A replica answers with its own copies of the variables, so some of these copies must differ.
# The dead model has shown which ones can: the moving averages. Let's compare the two copies of `moving_mean`:


# %% drift
def apart(model):
    moving_mean = model.layers[1].moving_mean
    first, second = copies_of(moving_mean, mirrored)
    return np.abs(first - second).max()


first, second = copies_of(unsynced.layers[1].moving_mean, mirrored)
print("mean size", about(np.abs(first).mean(), 0.02, 0.05))
print("apart by ", about(apart(unsynced), 0.002, 0.03))

# %% drift-read [markdown]
# The largest difference is a fifth of the mean size of these numbers. `get_weights` can't show it, because it returns only the copy of replica 0. A saved file holds only that copy, too.
#
# Why do the copies differ? As you know from {lesson:coupled_rows}, Keras's batch normalization takes the mean and the variance of a device's own rows.
# Let's do that with our four numbers: first on one device, and then in the parts of the two replicas.


# %% own-rows
def normalized(rows):
    return np.round((rows - rows.mean()) / rows.std(), 2).ravel()


print("one device", normalized(numbers))
print("replica 0 ", normalized(numbers[:2]))
print("replica 1 ", normalized(numbers[2:]))

# %% own-rows-read [markdown]
# On one device, 2 becomes −0.45, and 4 becomes 1.34. On the replicas, both become 1, since each is the larger number of its part.
# Replica 0 has subtracted its mean of 1.5, and replica 1 its mean of 3.5.
#
# This explains both findings. The replicas train on other numbers than one device does, so they find other weights.
# And each replica puts *its* means into *its* copy of `moving_mean`, so the copies differ.
#
# With DTensor, this can't happen, because there a mean is the mean of the whole batch.
# Under a strategy, you have to ask for that: you give the layer the argument `synchronized=True`. Here are all three cases:

# %% normalization-picture
picture.normalization_picture()

# %% synchronized-text [markdown]
# At the top is one device, with a mean of 2.5. In the middle, each replica has its own mean. At the bottom is `synchronized=True`: the replicas add up their sums of rows and of squares. So both have the mean and the variance of the whole batch.
#
# Let's train our network once more, now with this argument:


# %% synchronized
def make_model(synchronized=False):
    keras.utils.set_random_seed(1)
    hidden = keras.layers.Dense(48, activation="relu")
    normalization = keras.layers.BatchNormalization(
        momentum=0.9,
        synchronized=synchronized,  # new
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
# Now the difference *is* rounding, and the two copies are equal. Two devices do what one device does.
#
# No mistake of this lesson was harder to notice: no error, no `nan`, and a good accuracy. And there are others of its kind.
# A strategy adds up the gradients, but *what a replica computes before that sum, it computes alone, unless you say otherwise*. Here are five cases in which this matters:
#
# | in your program | what each replica does alone | what helps |
# | :--- | :--- | :--- |
# | `BatchNormalization()` | normalizes its own rows, and keeps its own moving averages | `synchronized=True` |
# | a mask, as of padded text: `Masking`, `Embedding(mask_zero=True)` | divides its loss by the number of its own time steps that aren't masked | a custom training loop that divides by their number in the global batch |
# | a loss function of your own that returns a single number | takes the mean over its own part, which nobody divides by the number of replicas | return one loss for each example |
# | `clipnorm`, `clipvalue` or `global_clipnorm` of an optimizer | clips its own gradient, before the sum | a custom training loop that clips the sum, or tf_keras (Keras 2), which does |
# | `Dropout` | drops units, the same on all replicas: the first row of each replica loses the same units | tf_keras, in which each replica chooses others |
#
# With a mask, equal parts don't help: `fit` and `evaluate` even report a wrong loss. You write a *custom training loop* in {lesson:custom_training}.
#
# The page *What strategies get right* has nearly 300 features of Keras and `tf.distribute`, each tried in a small program. Look up there what your model uses.

# %% note-unsynchronized [markdown]
# Must batch normalization always be synchronized?
#
# No. Many networks are trained without that on purpose, because it costs an exchange in every layer.
# If you do so, save the model, load it again, and evaluate the loaded one. It has one copy of the moving averages, so its answers don't depend on which replica gives them.
#
# `synchronized=True` alone also takes the `nan` out of our first run: one replica had no rows, but the two together had one.
# The parts of the last step are still unequal, though, and its gradients are half of those on one device.

# %% scope-text [markdown]
# ## What is made outside the scope
#
# Under the strategy, we have made every model in the scope. What happens if you forget that? Let's begin with a single variable.

# %% predict-count [markdown]
# `counter = tf.Variable(0)` is made outside the scope.
# Two replicas of a `MirroredStrategy` run one step, in which each calls `counter.assign_add(1)`.
# What is the value of `counter` then?
#
# - [ ] `1`
#   It would be 1 if the variable were made in the scope: it would have two copies, and each of them would count to 1.
# - [x] `2`
#   Outside the scope there are no copies, so both replicas add 1 to the same variable.
# - [ ] `error` no value: it is an error
#   TensorFlow lets a replica change a variable that has no copies, and says nothing.

# %% reveal-count
counter = tf.Variable(0)
mirrored.run(lambda: counter.assign_add(1))
reveal("strategies-count", int(counter.numpy()))

# %% outside-text [markdown]
# So a step counter that is made outside counts each step once for each replica, and a learning-rate schedule that reads it runs too fast.
#
# And what if the whole model is made outside? Here are our four numbers once more, without the scope:

# %% outside
outside = linear_model()
outside.fit(numbers, numbers, batch_size=4, shuffle=False, verbose=0)
print("weight", weight_of(outside))

copies = copies_of(outside.layers[0].kernel, mirrored)
print("copies", len(copies))

# %% outside-read [markdown]
# The weight is right: 0.75. But there is only one copy of it, because one device did all the work, and the strategy took no part.
# On a machine with two GPUs, the second would have nothing to do.
# So before a long run, look at a variable: it should have a copy on each device.

# %% note-scope [markdown]
# What else goes wrong around the scope and the devices?
#
# | mistake | what TensorFlow or Keras does | what helps |
# | --- | --- | --- |
# | the model in the scope, but SGD of Keras 3, without momentum, outside | its `iterations` grow by 1 for each replica in every step, so a learning-rate schedule runs too fast | make it in the scope |
# | the model in the scope, but Adam, or SGD with momentum, of Keras 3 outside | an error; if you have built it there with `build`, the copies can drift apart | make it in the scope |
# | a device that doesn't exist, such as `GPU:1` in a machine with one GPU | silently uses another one, here `CPU:0`, so two copies can lie on one device | call `tf.config.set_soft_device_placement(False)` first: then it is an error |
# | a second `MirroredStrategy` on CPUs without `ReductionToOneDevice` | data of both can meet: `Shape mismatch in the collective instance`, or `Device … is joining a group with size3, but that group has size 2` | restart; then one strategy, or `ReductionToOneDevice()` |
#
# For other errors, see the page *Troubleshooting*.

# %% mend-text [markdown]
# ## Now repair it
#
# **Exercise 2.** A colleague has put the run from the beginning of this lesson into a function, and even forgot the scope:
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
# - It takes the reviews in their order, in global batches of 64. Those at the end that don't fill a batch are left out.
# - The strategy has one replica or two, and all of them take part.
# - With both strategies, the weights of the returned model are the same, up to rounding.
#
# The check brings a small `make_model` of its own, and 143, 128 and 100 reviews.


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
# `MirroredStrategy` is for several GPUs in one machine. For other hardware, there are other strategies. Are the numbers right under these, too?
#
# Strategies differ in two things. The first is where they keep the variables. In the picture, the same color means the same data:

# %% strategies-picture
picture.strategies_picture()

# %% timelines-text [markdown]
# `MirroredStrategy`, `MultiWorkerMirroredStrategy` for several machines, and `TPUStrategy` keep a copy of all variables on every device.
# `CentralStorageStrategy` keeps one copy, on the CPU. `ParameterServerStrategy` divides the variables among *servers*, and *workers* compute with them.
#
# The second difference is whether devices wait for each other. Under most strategies, they train **synchronously**: in every step, all devices wait for the sum of the gradients, and make one update together.
# `ParameterServerStrategy` alone is made for **asynchronous** training: each worker fetches the variables, computes a gradient, sends it to the servers, and begins its next step at once.
#
# Here are both ways, with two devices that take three steps each. Sometimes one is slower, sometimes the other:

# %% timelines
picture.timelines_picture()

# %% timelines-read [markdown]
# If nobody waits, the six gradients are done sooner. But each of them makes a separate update, so the numbers aren't those of one device.
#
# Look at the steps in red frames. While device 0 computes its second step, device 1 changes the variables twice.
# So when device 0 sends its gradient, that gradient is **stale**: it was computed from weights that have changed since.
# If all devices are about equally fast, nobody waits long. Then train synchronously.
#
# Now choose a strategy yourself. You have two machines with four GPUs each, and you train with `fit` of Keras 3.
# Set the explorer to several GPUs and several machines. Which strategy does it give you, and what does it warn you of?

# %% chooser
from lessons.strategies.strategies.explorer import StrategyExplorer

StrategyExplorer()

# %% table-text [markdown]
# It gives you `MultiWorkerMirroredStrategy`, and warns you that `fit` of Keras 3 fails under it. So the program that it shows has a custom training loop.
#
# And what about the others? We tried all strategies except `TPUStrategy`, since we have no TPU, on an easy case: two dense layers and full batches.
# "Equals one device" means that losses and weights match those of one device, up to rounding:

# %% table
from course_lib import measured

support = measured.load("strategies-support").support
measured.table(support, columns=["fit_keras_3", "loop_keras_3"])

# %% table-read [markdown]
# On one machine, `fit` trains this model correctly, although it reports a wrong loss under `CentralStorageStrategy`.
# On several machines, `fit` ends in an error. With a single worker it runs, so a trial with one worker won't warn you.
#
# A custom training loop is right under all five. But under `ParameterServerStrategy`, ours handed out one step at a time, so that no gradient could be stale.

# %% note-table [markdown]
# More about the strategies, and about this table
#
# `MirroredStrategy` takes all CPUs if there is no GPU. Its second argument says how values are added up: `NcclAllReduce`, which calls NVIDIA's library, runs on GPUs only.
# `TPUStrategy` finds its TPU through a *resolver*. The TPU must then be initialized, which clears its memory.
# Without a TPU, `TPUClusterResolver()` says: `Please provide a TPU Name to connect to.`
#
# If you call `run` yourself, do so inside a `tf.function`.
# [TensorFlow's guide](https://www.tensorflow.org/guide/distributed_training) recommends eager calls only for debugging, and never on TPUs.
# TensorFlow warns of their `significant overhead`; this notebook hides that warning.
#
# Everything in the table ran on virtual CPUs, with two replicas or two workers. Nothing ran on a GPU.
# The error is `ValueError: Attempt to convert a value (PerReplica:{...}) ...`. With tf_keras (Keras 2), `fit` equals one device in all rows but the last, in which it trains asynchronously.
#
# The loss under `CentralStorageStrategy` is wrong because Keras 3 updates a metric by `assign(old + new)`.
# The strategy adds up what the replicas assign, so the sum has `old` once for each replica. A metric in a custom training loop goes wrong in the same way; our loop had none.

# %% takeaways [markdown]
# ## The plain program
#
# [`strategies.py`](../plain/strategies.py) asks the question of this lesson without the course's library.
# It trains the linear model and the network on one, two and four replicas. It ends with an error if a loss or a weight isn't that of one device, or if copies differ.
# To check your own model, call its function `compare` with a function that makes the model, and with your data.
#
# ## Takeaways
#
# - `MirroredStrategy` splits the batch, copies the variables, and adds up the gradients. What a replica computes before that sum, it computes alone, unless you say otherwise.
# - Under `fit`, give every replica the same number of examples in every step, synchronize batch normalization, and make model and optimizer in the scope. With masks of padded texts, even that isn't enough.
# - A healthy loss proves nothing. Compare the weights with those of one device, and compare the copies.
#
# In {lesson:custom_training}, you write the training loop yourself, and have to find out what it must divide by.
# (If you have an old program that uses Estimators, read {lesson:estimators} after that.)

# %% score
score("strategies")
