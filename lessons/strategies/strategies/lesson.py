# %% [markdown]
# # Strategies
#
# Two extra lines take a Keras training run from one device to two.
# `fit` reports the same loss and the same accuracy as before.
# Then you show the model 2,000 new reviews. Trained on one device, it gets 85 % of them right.
# Trained on two, it answers every single one with `nan`.
#
# There was no error. The culprit is *one review*: there were 4,097 of them. Drop one, and the `nan` disappears.
# So does your only warning, for the weights still aren't those of one device.
#
# In this lesson you make this run, take it apart, and repair it. One question leads through it:
# *under `fit` on several devices, are the numbers still right?*
#
# **After this lesson you can**
#
# - train a model under a strategy, and say what happens to the batch, the variables and the gradients;
# - find out whether its numbers are those of one device, and repair them if they aren't;
# - choose the strategy for your hardware.
#
# **Time:** 40 minutes.
# **You need to know:** how to train a Keras model, and what batch normalization computes ({lesson:coupled_rows}).

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% data-text [markdown]
# ## Five lines that go wrong
#
# The reviews are those of the earlier lessons: 1,200 numbers each, and the label 1 if the reviewer liked the film.
# We take the first 4,097 of them:

# %% data tags=["known"]
from course_lib import about, data

tf = course_lib.start_tensorflow()
keras = tf.keras

reviews = data.tf_idf(data.load_imdb())
x = reviews.train.features[:4097]
y = reviews.train.labels[:4097]
test_x = reviews.test.features
test_y = reviews.test.labels

# %% make-model-text [markdown]
# The network is the usual one, 1,200 → 48 → 2, with batch normalization after the hidden layer.
# Like everything in this course, it starts from the same weights each time.


# %% make-model
def make_model(synchronized=False):
    keras.utils.set_random_seed(1)
    hidden = keras.layers.Dense(48, activation="relu")
    normalization = keras.layers.BatchNormalization(
        momentum=0.9,
        synchronized=synchronized,
    )
    layers = [hidden, normalization, keras.layers.Dense(2)]
    model = keras.Sequential([keras.Input((1200,)), *layers])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    adam = keras.optimizers.Adam(3e-3)
    model.compile(adam, loss, metrics=["accuracy"])
    return model


# %% on-one-text [markdown]
# Here is the training run on one device. It goes through the reviews once, in the order in which they come,
# so that we can compare runs:

# %% on-one
on_one = make_model()
fitted = on_one.fit(x, y, batch_size=64, shuffle=False, verbose=0)
history = fitted.history
print("loss    ", about(history["loss"][0], 0.44, 0.50))
print("accuracy", about(history["accuracy"][0], 0.74, 0.79))

# %% on-two-text [markdown]
# And now two devices. A **strategy** of `tf.distribute` knows which devices take part.
# `MirroredStrategy` is the one for several GPUs in one machine; ours are virtual CPUs.
# The two extra lines make the strategy, and open its **scope**, in which the model is made.
# (`to_one` is for CPUs only; the note below says why.)

# %% on-two
to_one = tf.distribute.ReductionToOneDevice()
two = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], to_one)

with two.scope():
    on_two = make_model()
fitted = on_two.fit(x, y, batch_size=64, shuffle=False, verbose=0)
history = fitted.history
print("loss    ", about(history["loss"][0], 0.44, 0.50))
print("accuracy", about(history["accuracy"][0], 0.74, 0.79))

# %% note-devices [markdown]
# Where do the two devices come from, and what is `ReductionToOneDevice`?
#
# `setup(devices=8)`, in the first cell, made eight virtual devices of one processor. The first lines of the plain program show how you do it:
# by `tf.config.set_logical_device_configuration`, before TensorFlow first uses its devices.
# On a machine with GPUs you make none. `tf.distribute.MirroredStrategy()` then takes all GPUs.
#
# `ReductionToOneDevice` lets one device do all the adding up. On CPUs, the messages of several strategies can otherwise get mixed up,
# and this notebook makes more than one. On GPUs, leave it out.

# %% new-reviews-text [markdown]
# The loss is 0.47 both times, and the accuracy is 76 %. You would ship this model.
# Let's first ask both models about the 2,000 reviews that they haven't seen:


# %% new-reviews
def accuracy_of(model):
    loss_and_accuracy = model.evaluate(test_x, test_y, verbose=0)
    return loss_and_accuracy[1]


print("one device  ", about(accuracy_of(on_one), 0.82, 0.88))
print("two replicas", accuracy_of(on_two))
print(on_two.predict(test_x[:2], verbose=0))

# %% new-reviews-read [markdown]
# That model is dead: every answer is `nan`. Keras takes two `nan`s for class 0,
# and so half of the reviews, those with label 0, still count as right.
# `fit` didn't notice. It computes each loss *before* the update of its step, and the model died in the very last step.
#
# To explain it, we need to know three things: what a strategy does with a batch, with the variables, and with the gradients.
#
# ## The batch
#
# A **replica** is a copy of the model that works on examples of its own. Here there are two, one on each device.
# You gave `fit` 4,097 reviews and `batch_size=64`. Who gets how many?

# %% predict-steps [markdown]
# An optimizer counts its updates in `iterations`.
# `fit` had 4,097 examples, `batch_size=64` and two replicas.
# How many updates did it make in the epoch?
#
# - [ ] `33`
#   So it would be if each replica took 64 examples in every step.
# - [x] `65`
#   64 full batches, and one with the example that is left, as on one device: the replicas share each batch.
# - [ ] `129`
#   So it would be if the replicas made their updates in turn, with 32 examples each.
# - otherwise
#   Divide the examples by what all replicas together take in a step, and round up.

# %% reveal-steps
reveal("strategies-steps", int(on_two.optimizer.iterations.numpy()))

# %% received-text [markdown]
# So `batch_size` is the size of the **global batch**, which all replicas share: each of them gets 32 of its 64 reviews.
# It is the same for the batches of a `tf.data.Dataset`.
#
# From here on we use a smaller example, which you can compute in your head: five examples in batches of four.
# This is who gets what:

# %% received
from lessons.strategies.global_batches import received_examples

received_examples(two, tf.data.Dataset.range(5).batch(4))

# %% received-read [markdown]
# There it is. Example 4 is alone in its batch, and it goes to replica 0. Replica 1 gets a batch of *no* examples.
# It doesn't sit the step out. It runs the model on zero rows, and batch normalization asks for their mean:

# %% empty-mean
no_rows = tf.zeros((0, 3))
print(tf.reduce_mean(no_rows, axis=0).numpy())

# %% copies-text [markdown]
# Zero divided by zero is `nan`. So replica 1 computes nonsense.
# But replica 0 had its review, and it has a copy of the model of its own. Why is *that* one dead, too?
#
# ## The variables and the gradients
#
# Let's look at a model that is small enough to print: a line, $y = wx + b$, that starts from 0.
# It gets the numbers 1, 2, 3 and 4, and should learn to return them.

# %% line
import numpy as np

numbers = np.array([[1], [2], [3], [4]], "float32")


def line():
    unit = keras.layers.Dense(1, kernel_initializer="zeros")
    model = keras.Sequential([keras.Input((1,)), unit])
    model.compile(keras.optimizers.SGD(0.05), "mse")
    return model


# %% alone-text [markdown]
# On two replicas, the first gets 1 and 2, and the second 3 and 4. Where would each of them go alone, in one step? And where would one device go, which sees all four?

# %% alone
for part in (numbers[:2], numbers[2:], numbers):
    model = line()
    model.fit(part, part, batch_size=4, verbose=0)
    print(part.ravel(), f"weight {model.get_weights()[0].item():.2f}")

# %% two-copies-text [markdown]
# Alone, they would go to 0.25 and to 1.25. Now together. Keras keeps TensorFlow's variable in `.value`,
# and `experimental_local_results` lists the copies that it has:

# %% copies
with two.scope():
    model = line()
model.fit(numbers, numbers, batch_size=4, shuffle=False, verbose=0)

weight = model.trainable_variables[0].value
print(type(weight).__name__)
for copy in two.experimental_local_results(weight):
    print(copy.device[-5:], f"{copy.numpy().item():.2f}")

# %% copies-read [markdown]
# The program sees one variable, a `MirroredVariable`, and there is a copy of it on each device.
# Both copies are at 0.75. Neither replica would have gone there alone: it is where one device goes that sees all four examples.
#
# What brought them there is an all-reduce. `fit` divides the loss of each replica by the number of replicas.
# Before the optimizer changes a trainable variable, the strategy adds up the gradients of all replicas and gives each of them the sum.
# So both copies move by (0.25 + 1.25) / 2:

# %% step-picture
from lessons.strategies.strategies import picture

picture.step_picture()

# %% all-reduce-text [markdown]
# You can make such a sum yourself. `two.run(function)` calls a function on every replica.
# Inside it, `get_replica_context()` tells which replica it runs on, and has an `all_reduce`.
# Let replica 0 bring a healthy 2, and replica 1 a `nan`:


# %% all-reduce
def gradient_of_a_replica():
    context = tf.distribute.get_replica_context()
    if context.replica_id_in_sync_group == 0:
        gradient = tf.constant(2.0)
    else:
        gradient = tf.constant(np.nan, tf.float32)
    return context.all_reduce("SUM", gradient)


totals = two.run(gradient_of_a_replica)
for total in two.experimental_local_results(totals):
    print(total.device[-5:], total.numpy())

# %% all-reduce-read [markdown]
# One bad part spoils the sum for all. Is that what happened in the opening? Let's look into the dead model.
# Batch normalization has four variables for its 48 hidden units. How many `nan`s has each copy?

# %% autopsy
for variable in on_two.layers[1].variables:
    counts = []
    for copy in two.experimental_local_results(variable.value):
        counts.append(int(np.isnan(copy.numpy()).sum()))
    print(f"{variable.name:15}", *counts)

# %% autopsy-read [markdown]
# `gamma`, the scale, is `nan` in both copies. On no rows its gradient is `nan`, for the mean of no rows goes into it.
# The sum took that `nan` to replica 0. It is what makes two devices act as one, and it killed both.
#
# But look at the last two rows. `moving_mean` and `moving_variance` are `nan` on replica 1 *alone*. They aren't trained, so they have no gradient,
# and nobody adds them up: each copy keeps its own. So the copies of a variable needn't be equal. Remember that; it comes back.
#
# **Exercise 1.** Write `replica_step(weight, features, labels, learning_rate, global_batch)`:
# what one replica does in a step of gradient descent.
#
# - The model is `tf.linalg.matvec(features, weight)`, and the loss of an example is its squared error.
# - `features` and `labels` are this replica's part of the batch. Parts may differ in size.
# - Minimize the mean loss over the *global* batch, which has `global_batch` examples.
# - `weight.assign_sub(change)` changes the copy of this replica.
# - Return this replica's share of the loss: the shares of all replicas add up to the mean.
#
# Don't make `replica_step` a `tf.function`. The check runs it on two replicas and on three, and compares with NumPy.


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

# %% last-given [markdown]
# ## Half a step
#
# Batch normalization made the empty part visible. So what happens in a model without it?
# The gradient is a sum over the examples of the part, and a sum over no examples is 0. So no weight turns into `nan`.
#
# As you saw, `fit` takes the mean of the loss over *the part* of each replica,
# divides it by the number of replicas, and adds up the gradients.
# With equal parts, that gives the mean over the batch. But our last batch has the parts 1 and 0.

# %% predict-last [markdown]
# `fit` trains a line, whose weight and bias are 0, for one epoch with five examples, all (1, 1),
# and `batch_size=4`.
# The first step takes the weight from 0 to 0.1.
# On one device the second step, with the one example that is left, adds another 0.08.
# What is the weight on two replicas after the epoch?
#
# - [ ] `0.18`
#   It would be, as on one device, if the only example counted in full.
#   But its gradient is divided by the number of replicas, and the other replica adds nothing.
# - [x] `0.14`
#   Replica 0 has the mean over one example and divides it by two, and replica 1 adds nothing: half a step.
# - [ ] `0.1`
#   It would be, if such a batch were left out.
#   Replica 0 still computes a gradient.
# - [ ] `0.12`
#   It would be, if the last example were divided by the batch size of 4.
#   `fit` divides by the examples of the part, which is 1, and by the number of replicas.

# %% reveal-last
ones = np.ones((5, 1), "float32")
with two.scope():
    halved = line()
halved.fit(ones, ones, batch_size=4, shuffle=False, verbose=0)
reveal("strategies-last", round(halved.get_weights()[0].item(), 2))

# %% last-table [markdown]
# | the weight | at first | after the full batch | after the last example |
# | :--- | ---: | ---: | ---: |
# | one device | 0 | 0.10 | 0.18 |
# | two replicas | 0 | 0.10 | 0.14 |
#
# No `nan` this time, and no error. Does the loss that `fit` reports give it away?
# To train on one device by the same code, we take TensorFlow's **default strategy**.
# `get_strategy()` returns it when you have chosen none, and it has a single replica.

# %% epochs
one = tf.distribute.get_strategy()

for strategy in (one, two):
    with strategy.scope():
        model = line()
    fitted = model.fit(
        ones,
        ones,
        batch_size=4,
        epochs=2,
        shuffle=False,
        verbose=0,
    )
    first, second = fitted.history["loss"]
    print(f"first epoch {first:.3f}  second epoch {second:.3f}")

# %% epochs-read [markdown]
# Not in the first epoch: the wrong update is the last one, and no loss comes after it.
# (Nor does the empty part show: the report weighs the loss of each part by its number of examples.)
# The second epoch starts from the wrong weights, and only there it shows: 0.481 instead of 0.380.
# With thousands of examples to an epoch, you won't see it in any curve.
# The reported losses are right for the weights that the model has, and so is `evaluate`. It is the *update* that is wrong.
#
# An update is wrong whenever the parts are unequal. In a batch that is split into 1 and 0, the one example has the weight 1/2 where it should have 1.
# In a batch split into 2 and 1, the lone example has the weight 1/2 and each of the pair 1/4, where each should have 1/3.
#
# ## Repaired, or so it seems
#
# The cure is short: *every replica gets equally many examples in every step.*
#
# - Choose a `batch_size` that can be divided by the number of replicas.
# - The last batch must be divisible, too. The simple way is to leave it out unless it is full.
# - With a dataset, that is `dataset.shuffle(n).batch(64, drop_remainder=True)`, in this order. Each epoch then leaves out other examples.
# - With arrays, cut them. `fit` shuffles only what you have kept, so the rest is lost in every epoch.

# %% note-first [markdown]
# When is `fit` not silent? And should the batch grow with the number of devices, and the learning rate, too?
#
# If the *first* batch falls into unequal parts, `fit` of Keras 3 stops. With five examples on two replicas it says
# `InvalidArgumentError: Inputs to operation AddN of type AddN must have the same size and shape. Input 0: [3,1] != input 1: [2,1]`.
# Keras runs the model on the first batch to learn its shapes, and there it adds up the parts.
#
# As to the batch: usually one gives each replica as many examples as one device had. The global batch is then
# the per-replica batch times `strategy.num_replicas_in_sync`, and an epoch has fewer updates.
# The **linear scaling rule** ([Goyal and others](https://arxiv.org/abs/1706.02677), section 2.1) says
# that the learning rate should then grow by the same factor, after a *warm-up* that begins with a small one.
# It is a rule for SGD. For Adam and RMSprop, [Malladi and others](https://arxiv.org/abs/2205.10287) derive the square root of the factor.
# Both are starting points: tune the rate at the batch size that you'll use.

# %% full-batches-text [markdown]
# So let's go back to the reviews, and leave out the last one:


# %% full-batches
full_x, full_y = x[:4096], y[:4096]


def trained(strategy, synchronized):
    with strategy.scope():
        model = make_model(synchronized)
    model.fit(full_x, full_y, batch_size=64, shuffle=False, verbose=0)
    return model


def difference(model, other):
    gaps = []
    for a, b in zip(model.get_weights(), other.get_weights()):
        gaps.append(np.abs(a - b).max())
    return max(gaps)


on_one = trained(one, synchronized=False)
on_two = trained(two, synchronized=False)
print("accuracy  ", about(accuracy_of(on_two), 0.82, 0.88))
print("difference", about(difference(on_one, on_two), 0.02, 0.2))

# %% full-batches-read [markdown]
# The model is alive, and it gets 85 % right.
# But its weights are not those that one device finds. Some are off by almost a tenth, and that isn't rounding.
#
# ## What a replica computes from its own part
#
# It gets stranger. Give this model the same review twice:

# %% twice
twice = np.stack([test_x[0], test_x[0]])
logits = on_two.predict(twice, verbose=0)
print("row 0", about(logits[0, 0], 1.4, 2.0, digits=3))
print("row 1", about(logits[1, 0], 1.3, 1.9, digits=3))

# %% twice-read [markdown]
# One model, one review, two answers. `predict` shares out its batch as well: each replica got one of the two rows,
# and answered with *its own copy*. So the copies differ. You have met the suspect. How far apart are the copies of `moving_mean`?


# %% drift
def apart(model):
    variable = model.layers[1].moving_mean.value
    first, second = two.experimental_local_results(variable)
    return np.abs(first.numpy() - second.numpy()).max()


print("apart by", about(apart(on_two), 0.002, 0.03))

# %% drift-read [markdown]
# In training, batch normalization takes mean and variance over its rows. One device has all 64 rows. Each of two replicas has its own 32,
# so it normalizes by other numbers; you know that from {lesson:coupled_rows}. And each copy averages *its* means into its own `moving_mean`.
#
# This is the most treacherous mistake in this lesson. There is no error and no `nan`,
# and comparing weights doesn't show it: `get_weights`, like a saved file, has the copy of replica 0 alone.
#
# There is a switch for it, which changes nothing on one device, but for rounding:

# %% synchronized
on_two = trained(two, synchronized=True)
print("difference", about(difference(on_one, on_two), 0, 1e-4))
print(f"apart by {apart(on_two):.4f}")

# %% synchronized-read [markdown]
# The weights differ by a few millionths, which *is* rounding, and the copies don't differ at all.
# With `synchronized=True` the replicas add up what their means and variances are made of, before they use them.
# At last, two devices do what one device does.
#
# The rule behind it is worth more than the switch. The strategy adds up gradients, and nothing else.
# *Whatever a replica computes from its own part before that sum* can be different from one device.
# Here are three examples, and none of them raises an error:
#
# | in your program | what each replica does | what helps |
# | :--- | :--- | :--- |
# | `BatchNormalization()` | normalizes its own rows, and keeps its own moving averages | `synchronized=True` |
# | `clipnorm`, `clipvalue` or `global_clipnorm` of an optimizer | clips its own gradient, before the sum | a loop of your own, or tf_keras (Keras 2), which clips the sum |
# | `Dropout` | draws the same mask as all the others, so that a batch has fewer different masks | tf_keras, which draws another mask in each |
#
# The page *What strategies get right* has nearly 300 features of Keras and `tf.distribute`, each tried as a program.
# Look there for what your model uses, before you trust it.

# %% note-clipping [markdown]
# How do I clip in a loop? And is it wrong to leave batch normalization unsynchronized?
#
# To clip, replace the two lines of `on_replica` (below) that compute the gradients and apply them.
# Add up the gradients with `all_reduce`, clip the sum, and divide by the number of replicas, because `apply` adds up once more:
#
# ```python
# context = tf.distribute.get_replica_context()
# clipped = []
# for gradient in tape.gradient(loss, variables):
#     total = context.all_reduce("SUM", gradient)
#     total = tf.clip_by_norm(total, 0.5)
#     clipped.append(total / context.num_replicas_in_sync)
# model.optimizer.apply(clipped, variables)
# ```
#
# Many networks are trained with unsynchronized batch normalization on purpose, since it saves an exchange in every layer.
# Then know that you do it, and evaluate the model that you will use: load the saved one, which has one copy of the moving averages.
#
# `synchronized=True` alone also takes the `nan` out of the opening, where one replica had no rows: both together had one. The last step is still half a step.

# %% scope-text [markdown]
# ## What is made outside the scope
#
# There is one more way to go wrong with a strategy: something isn't made in its scope. What happens then?

# %% predict-count [markdown]
# `counter = tf.Variable(0)` is made outside the scope.
# Two replicas of a `MirroredStrategy` run one step, in which each calls `counter.assign_add(1)`.
# What is the value of `counter` then?
#
# - [ ] `1`
#   So it would be with a variable of the scope: it has two copies, and each of them counts to 1.
# - [x] `2`
#   Outside the scope there are no copies: each replica adds 1 to the same variable.
# - [ ] `error` no value: it is an error
#   TensorFlow lets a replica change a variable that has no copies, without a word.

# %% reveal-count
counter = tf.Variable(0)
two.run(lambda: counter.assign_add(1))
reveal("strategies-count", int(counter.numpy()))

# %% outside-text [markdown]
# A step counter like this is off by a factor of the number of replicas, and so is a learning rate that depends on it.
# How is it with a whole model? Here is `fit` once more, but nobody opened the scope of `two`:

# %% outside
outside = line()
outside.fit(numbers, numbers, batch_size=4, shuffle=False, verbose=0)
weight = outside.trainable_variables[0].value
print("copies:", len(two.experimental_local_results(weight)))

# %% outside-read [markdown]
# There is one copy. The numbers are right, and the second GPU that you pay for does nothing.
# So before a long run, look at a variable: it should have a copy on each device.
# (`train_on_batch` is another way to gain nothing: it gives every replica the *whole* batch. The numbers are right, too.)

# %% note-scope [markdown]
# More that goes wrong around the scope, and devices that don't exist
#
# | mistake | what TensorFlow or Keras does | what helps |
# | --- | --- | --- |
# | a model made outside the scope, and `fit` called inside of it | `AssertionError`, without a message | make the model in the scope |
# | the model in the scope, but SGD of Keras 3, without momentum, outside | counts each update once for each replica, so that a learning-rate schedule runs too fast | make it in the scope |
# | the model in the scope, but Adam, or SGD with momentum, of Keras 3 outside | an error; if you have built it there with `build`, the copies can drift apart | make it in the scope |
# | a device that doesn't exist, such as `GPU:1` in a machine without | uses another, here `CPU:0`, without a word | call `tf.config.set_soft_device_placement(False)` first: then it is an error |
# | a kind of device in lower case: `list_physical_devices("gpu")` | finds none | upper case |
# | a second `MirroredStrategy` on CPUs without `ReductionToOneDevice` | messages of both can meet: `Shape mismatch in the collective instance` | one strategy, or `ReductionToOneDevice()` |
#
# A variable of the scope can say what becomes of different values that replicas assign:
# `tf.Variable(0, aggregation=tf.VariableAggregation.SUM)` adds them up.
# `MEAN`, for floats, and `ONLY_FIRST_REPLICA` are other choices.
# If you choose none, each copy silently keeps its own value.

# %% mend-text [markdown]
# ## Now repair it
#
# **Exercise 2.** Here is a run like that of the opening, as a function. Repair it:
#
# ```python
# def train(strategy, x, y):
#     model = make_model()
#     model.fit(x, y, batch_size=64, shuffle=False, verbose=0)
#     return model
# ```
#
# Write `train(strategy, x, y)`: one epoch of `fit`, in global batches of 64, with the model that `make_model` makes.
# It gets a strategy with one replica or with two, and any number of reviews that is at least 64.
# With both strategies it must return the same weights, and all replicas must take part.
# Leave out examples if you have to, as long as you leave out the same ones on one device.
# The check trains on 143 reviews.


# %% exercise-mend
def train(strategy, x, y):
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

# %% loop-text [markdown]
# ## A loop of your own
#
# Sometimes you can't leave out examples, or want to decide yourself what is divided by what.
# Then you write the loop. It takes three calls of the strategy:
#
# - `experimental_distribute_dataset(dataset)` splits each global batch over the replicas.
# - `run(function, arguments)` calls the function on every replica, with its part.
# - `reduce("SUM", values, axis=None)` makes one value of what the replicas returned.
#
# So that no example has half its weight, we first count the examples of the batch, and let every replica divide by this number.


# %% on-replica
def on_replica(model, x, y, num_examples):
    with tf.GradientTape() as tape:
        errors = model(x, training=True) - y
        total = tf.reduce_sum(tf.square(errors))
        loss = total / tf.cast(num_examples, tf.float32)
    variables = model.trainable_variables
    gradients = tape.gradient(loss, variables)
    # This adds up the gradients of all replicas, then updates
    model.optimizer.apply(gradients, variables)
    return loss


# %% train-in-loop
def count(y):
    return tf.shape(y)[0]


@tf.function(reduce_retracing=True)  # parts differ in size
def step(strategy, model, x, y):
    # How many examples have all replicas together?
    sizes = strategy.run(count, (y,))
    num_examples = strategy.reduce("SUM", sizes, axis=None)
    # Each replica computes its share of the loss, and updates
    losses = strategy.run(on_replica, (model, x, y, num_examples))
    return strategy.reduce("SUM", losses, axis=None)


def train_in_loop(strategy, model, x, y, batch_size):
    with strategy.scope():
        # Adam would otherwise make its variables inside the step
        model.optimizer.build(model.trainable_variables)
    dataset = tf.data.Dataset.from_tensor_slices((x, y))
    dataset = dataset.batch(batch_size)
    batches = strategy.experimental_distribute_dataset(dataset)
    losses = []
    for features, labels in batches:
        loss = step(strategy, model, features, labels)
        losses.append(float(loss))
    return losses


# %% looped-text [markdown]
# The five ones, in batches of four, on one device and on two replicas:

# %% looped
for strategy in (one, two):
    with strategy.scope():
        model = line()
    losses = train_in_loop(strategy, model, ones, ones, 4)
    weight = model.get_weights()[0].item()
    print(f"weight {weight:.2f}  losses", *np.round(losses, 2))

# %% looped-read [markdown]
# The weight is 0.18 and the losses are 1 and 0.64, on two replicas as on one device. The last batch, with parts of 1 and 0, takes its full step.
# The loop has no `if` for one device: the default strategy's `run` just calls the function.
#
# Two warnings. Without the line with `build`, this step fails under Adam, or with momentum, as soon as a second model comes:
# `tf.function only supports singleton tf.Variables created on the first call`.
# And each call makes a new iterator over the dataset. When Python gives one up, TensorFlow may wait idle for a while,
# so a long run should make one and keep it, as {lesson:custom_training} does.
# There you also learn what else Keras has divided already.

# %% chooser-text [markdown]
# ## Which strategy?
#
# So far we had one machine with several devices. For other hardware there are other strategies.
# They differ in where the variables are. Equal colours are equal data:

# %% strategies-picture
picture.strategies_picture()

# %% timelines [markdown]
# All but one of them train **synchronously**. In every step, all replicas wait for the sum of the gradients,
# and make one update together. Here are three steps of two devices, time to the right.
# Sometimes one device is slower, sometimes the other. Dots mark the waiting:
#
# | synchronous | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 |
# | :--- | :---: | :---: | :---: | :---: | :---: | :---: | :---: | :---: | :---: |
# | device 0 | step 1 | step 1 | · | step 2 | step 2 | step 2 | step 3 | step 3 | · |
# | device 1 | step 1 | step 1 | step 1 | step 2 | step 2 | · | step 3 | step 3 | step 3 |
#
# `ParameterServerStrategy` can also train **asynchronously**. A worker fetches the variables from the servers, computes its gradients,
# sends them, and begins its next step. Nobody waits:
#
# | asynchronous | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 |
# | :--- | :---: | :---: | :---: | :---: | :---: | :---: | :---: | :---: | :---: |
# | worker 0 | step 1 | step 1 | *step 2* | *step 2* | *step 2* | step 3 | step 3 | | |
# | worker 1 | step 1 | step 1 | step 1 | step 2 | step 2 | step 3 | step 3 | step 3 | |
#
# The six parts are done sooner, but it isn't the same training. Above, there are three updates, each from the gradients of both devices.
# Below, there are six, each from those of one worker.
# And look at worker 0 in its second step, from 3 to 5. At the end of 3, worker 1 updates the variables.
# So by the time worker 0 sends its gradient, it is *stale*: computed from weights that have since changed.
# And no two runs are alike. That is why the synchronous strategies are the usual choice where all devices are about equally fast.
#
# What would you take for two machines with four GPUs each? Ask the explorer. It names the strategy, shows what lives where, and writes the program:

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
# Call `run` inside a `tf.function`, as `step` does.
# [TensorFlow's guide](https://www.tensorflow.org/guide/distributed_training) recommends calling it eagerly only for debugging, and never on TPUs. It then warns of `significant overhead`; this notebook keeps that warning quiet.
#
# *Estimators* are gone since TensorFlow 2.16. [{Lesson:estimators}]({notebook:estimators}) runs some, and says what became of them.

# %% table-text [markdown]
# ## Does it work with `fit`?
#
# We tried the strategies with `fit` and with a loop, in both packages of Keras, on the easiest case: two dense layers, full batches.
# "Equals one device" means that losses and weights are those of one device, but for rounding. A dash means "not tried".
# (Estimators, the last column, are gone since TensorFlow 2.16.)

# %% table
from course_lib import measured

measured.table(measured.load("strategies-support").support)

# %% table-read [markdown]
# Look at the column of Keras 3's `fit` before you plan your cluster.
# In one machine it trains this model rightly, though `CentralStorageStrategy` reports a wrong loss.
# On two workers of `MultiWorkerMirroredStrategy` it ends in an error: `ValueError: Attempt to convert a value (PerReplica:{...}) ...`.
# With one worker it runs, so a trial with one shows nothing. With parameter servers it ends in an error as well.
# A loop of your own works in every row. With parameter servers it took one step after the other here, and then it equals one device.
# `fit` of tf_keras is asynchronous there, so its runs are never alike, and there is nothing that they could equal.

# %% note-table [markdown]
# How was this measured, and why is that loss wrong?
#
# Every entry ran in processes of its own, on virtual CPUs, with two replicas or two workers. Nothing ran on a GPU,
# and there was no TPU: `TPUStrategy` was not tried.
#
# Keras 3 updates a metric with `assign(old + new)`. `CentralStorageStrategy` adds up what the replicas assign,
# so `old` is counted once for each replica. A metric in your own loop goes wrong in the same way.

# %% takeaways [markdown]
# ## The plain program
#
# [`strategies.py`](../plain/strategies.py) has the line, `fit` and the loop, without the course's library.
# It trains on one, two and four replicas, and ends with an error if a loss or a weight isn't that of one device.
#
# ## Takeaways
#
# - A strategy splits the batch and adds up the gradients, nothing else. What a replica computes from its own part before that sum can differ from one device, and then even the copies of one model can differ.
# - Give every replica equally many examples in every step, and synchronize batch normalization.
# - Make everything in the scope, look at the copies, and compare the first steps with one device. A healthy loss proves nothing.
#
# In {lesson:custom_training}, you write the loop for a network that looks at images.

# %% score
score("strategies")
