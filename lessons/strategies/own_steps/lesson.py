# %% [markdown]
# # Which lines of my step need the whole batch?
#
# You write your own `train_step`, and let `fit` do the rest. On one device, `fit` reports a loss of 2.4.
# On four devices, with the same step and the same batch, it reports 0.6.
# But all the weights are right. Only the number on the screen is wrong.
#
# A colleague's step looks almost the same. On four devices, it reports the right loss, but moves every weight four times too far.
#
# Both mistakes have the same cause. On one device, a step sees the whole batch.
# On four devices, the step runs four times at once, and each run sees only a quarter of the batch.
# {Lesson:custom_training} dealt with one such line, the one that divides the loss. In this lesson, we go through the other lines:
# *which lines of my step need the whole batch, and how do they get it?*
#
# **After this lesson you can**
#
# - write a `train_step` for `fit` that moves the weights correctly, and reports the loss correctly;
# - train two models against each other, with noise that doesn't depend on the number of devices;
# - find the lines of a step that see only part of the batch, and fix them;
# - save a model that several replicas have trained, and restore it on one device.
#
# **Time:** 55 minutes.
# **You need to know:** replica steps, `run`, `reduce`, and the global batch size ({lesson:custom_training}).

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% known-text [markdown]
# ## The line that reports the loss
#
# We run both steps on the garments of {lesson:custom_training}. The folded cell loads them, and defines four functions from that lesson.

# %% known tags=["known"]
import math

import numpy as np

from course_lib import about, data, image_grid

tf = course_lib.start_tensorflow()

SOURCE = None  # "tfds" takes the photographs of Fashion-MNIST
garments = data.load_fashion(SOURCE, num_train=1280, num_test=1000)
images = garments.train.features
labels = garments.train.labels
cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits


def mirrored(num_replicas):
    devices = [f"CPU:{number}" for number in range(num_replicas)]
    to_one = tf.distribute.ReductionToOneDevice()  # GPUs: leave it out
    return tf.distribute.MirroredStrategy(devices, to_one)


def share_out(strategy, batch):
    rows = math.ceil(len(batch) / strategy.num_replicas_in_sync)

    def part_of(context):
        first = rows * context.replica_id_in_sync_group
        return tf.constant(batch[first : first + rows])

    return strategy.experimental_distribute_values_from_function(
        part_of
    )


def build(strategy, make_model, make_optimizer):
    tf.keras.utils.set_random_seed(0)
    with strategy.scope():
        model = make_model()
        optimizer = make_optimizer()
        # A compiled step must not make variables
        optimizer.build(model.trainable_variables)
    return model, optimizer


def largest_difference(weights, others):
    differences = []
    for weight, other in zip(weights, others):
        differences.append(np.abs(weight - other).max())
    return float(max(differences))


one = tf.distribute.get_strategy()  # the default strategy: one device
two = mirrored(2)
four = mirrored(4)

# %% train-steps-text [markdown]
# To use your own step with `fit`, you override the method `train_step`. `fit` calls it on every replica, which here means on every device, and passes it that replica's part of the batch.
# So `train_step` is a replica step, like those in {lesson:custom_training}. But nothing tells it the global batch size. What should it divide by?
#
# Your colleague takes the mean over the part. You look it up, and find that Keras has a method for this: `self.compute_loss`.
# It calls the loss object that you passed to `compile`. That object takes the mean over the part, and divides it by the *number of replicas*. This is the replica's share of the loss. If all parts are equal, the shares add up to the mean over the batch.
#
# `OwnMean` is your colleague's step, and `ComputeLoss` is yours. They differ in the line below the comment:


# %% train-steps
class OwnMean(tf.keras.Sequential):
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            logits = self(x, training=True)
            # The mean over this replica's part
            loss = tf.reduce_mean(cross_entropy(y, logits))
        variables = self.trainable_variables
        self.optimizer.apply(tape.gradient(loss, variables), variables)
        return {"my_loss": loss}


class ComputeLoss(tf.keras.Sequential):
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            logits = self(x, training=True)
            # This replica's share
            loss = self.compute_loss(x, y, logits)
        variables = self.trainable_variables
        self.optimizer.apply(tape.gradient(loss, variables), variables)
        return {"my_loss": loss}


# %% under-fit-text [markdown]
# Each step trains a single dense layer: one update with SGD, on a batch of 64 images. We run both steps on one device and on four replicas.
# `one_step`, in the folded cell, returns what `fit` reports, and the largest change in any weight.
# The comparison may go on for some seconds after its last step: `fit` discards the iterator that distributed its batches, and TensorFlow may be slow to end one.

# %% one-step tags=["known"]
def one_step(strategy, model_class):
    tf.keras.utils.set_random_seed(0)
    layers = tf.keras.layers
    with strategy.scope():
        model = model_class(
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
    x, y = images[:64], labels[:64]
    fitted = model.fit(x, y, batch_size=64, verbose=0)
    moved = largest_difference(model.get_weights(), before)
    return fitted.history, moved

# %% under-fit
for model_class in [OwnMean, ComputeLoss]:
    print(model_class.__name__)
    for strategy in [one, four]:
        history, moved = one_step(strategy, model_class)
        print(
            f"  replicas {strategy.num_replicas_in_sync}",
            "  loss", about(history["my_loss"][0], 0.5, 2.5, digits=3),
            "  moved", about(moved, 0.005, 0.08, digits=3),
        )

# %% under-fit-read [markdown]
# On one device, the two steps agree: the loss is 2.38, and the weights move by up to 0.0105.
#
# On four replicas, `OwnMean` still reports 2.38, but it moves the weights by 0.042, four times too far.
# `ComputeLoss` moves them exactly as far as on one device, but it reports 0.596, a quarter of 2.38.
#
# The picture shows what the four replicas return, and what becomes of it:

# %% report-picture
from lessons.strategies.own_steps import picture

picture.report_picture()

# %% report-read [markdown]
# The optimizer *adds up* the gradients of the replicas, while `fit` takes the *mean* of the losses that they return.
#
# Each of your colleague's replicas computes the mean over its part. The mean of these four means is the right loss, but their gradients add up to four times the right gradient.
# Each of your replicas computes its share of the loss. The gradients add up to the right one, but `fit` takes the mean of the shares, dividing by four again.
#
# So the loss on the screen doesn't tell you whether your step is right.
#
# Both steps return their loss as `my_loss`. Most people would call it `loss`. Let's try that:

# %% usual
class UsualReturn(ComputeLoss):
    def train_step(self, data):
        numbers = super().train_step(data)
        return {"loss": numbers["my_loss"]}


for strategy in [one, four]:
    history, moved = one_step(strategy, UsualReturn)
    print(
        f"replicas {strategy.num_replicas_in_sync}",
        f"  loss {history['loss'][0]}",
        "  moved", about(moved, 0.005, 0.08, digits=3),
    )

# %% usual-read [markdown]
# The weights move as before, but now the loss is 0.0! `fit` compares the names in your dictionary with the names of the model's metrics.
#
# - If they are *exactly* the same names, `fit` reports the values of the metrics, and ignores your numbers.
# - If not, `fit` reports your numbers: their mean over the replicas, and only for the last batch of the epoch.
#
# Every model has at least one metric. Even if you pass none to `compile`, `model.metrics[0]` is a `Mean` with the name `loss`. So `fit` reported this metric, which our step had never fed.
#
# Let's feed it, then. A metric is just what we need: it adds up the values that *all* replicas feed it in *all* batches, and divides by their number.
#
# **Exercise 1.** Write `my_train_step(model, x, y)`. It does the work of a `train_step`, with `model` in place of `self`.
# On any number of replicas, the weights must move as on one device, and `fit` must report the mean loss of the batch.
# The loss object was passed to `compile`, there are no other metrics, and all parts are equal.
#
# - Take the gradient of what `compute_loss` returns, and let the optimizer apply it.
# - Feed `model.metrics[0]`, with `update_state`. The function `cross_entropy`, from the first folded cell, computes what you need. It takes classes and logits, here `y` and what the model returns.
# - Return the dictionary that makes `fit` report this metric.

# %% exercise-train-step
def my_train_step(model, x, y):
    # solution begin
    with tf.GradientTape() as tape:
        logits = model(x, training=True)
        loss = model.compute_loss(x, y, logits)
    variables = model.trainable_variables
    model.optimizer.apply(tape.gradient(loss, variables), variables)
    metric = model.metrics[0]
    # The mean of the part would do, as long as all parts are equal
    metric.update_state(cross_entropy(y, logits))
    # Only the name counts
    return {"loss": metric.result()}
    # solution end


# %%
check("own_steps-train-step", my_train_step)

# %% note-accuracy [markdown]
# What if there are other metrics, or unequal parts?
#
# If you pass an accuracy to `compile`, the names are `loss` and `accuracy`, and you feed both metrics.
# In a loop over `self.metrics`, give the losses to `loss`, and call `metric.update_state(y, logits)` for any other metric.
# Then `return self.get_metrics_result()`, which always has the right names. The loss reported then has no penalties in it.
#
# If the last batch has unequal parts, `compute_loss` is slightly off. So is plain `fit`, as you saw in {lesson:strategies}.
# For the exact step, add up the rows of all replicas with `tf.distribute.get_replica_context().all_reduce("SUM", rows)`, and divide the sum of your own losses by that number.

# %% pair-heading [markdown]
# ## The line that draws noise
#
# A step can train more than one model. A **GAN** (generative adversarial network) has two, which work against each other.
# The **generator** makes images out of noise, and the **discriminator** tells these fakes from real images:
#
# | | gets | its loss is small if | its gradient changes |
# | --- | --- | --- | --- |
# | discriminator | real images and fakes | real images score high and fakes low | the discriminator only |
# | generator | noise | the discriminator scores its fakes high | the generator only |
#
# The two losses and the two optimizers work as in {lesson:custom_training}: you divide each loss by the global batch size, and each optimizer adds up its gradients over the replicas.
# The new line is the one that draws random numbers for the noise. Keras has a layer that draws them. Can we use it?

# %% predict-noise [markdown]
# You make the layer `tf.keras.layers.GaussianNoise(1.0)` in the scope of a strategy with two replicas.
# In one step, each replica calls the layer once with `training=True`. How does the noise of the two replicas compare?
#
# - [x] `same` It is the same on both.
#   The layer keeps its seed and a counter in a variable. This variable is mirrored, as every variable of the model is, so both replicas begin with the same values.
# - [ ] `different` Each replica draws its own.
#   It would if the seed depended on the replica. But the seed is a variable of the model, and the copies of a variable are equal.
# - [ ] `error` It raises an error: noise is not allowed in a replica.
#   It runs without a word.

# %% reveal-noise
tf.keras.utils.set_random_seed(0)
with two.scope():
    layer = tf.keras.layers.GaussianNoise(1.0)


@tf.function
def noise_of_both():
    zeros = tf.zeros((1, 6))
    return two.run(layer, args=(zeros,), kwargs={"training": True})


first, second = two.experimental_local_results(noise_of_both())
same = np.array_equal(first, second)
reveal("own_steps-noise", "same" if same else "different")

# %% noise-printed
print("replica 0", first.numpy().round(2))
print("replica 1", second.numpy().round(2))

# %% noise-picture [markdown]
# All six numbers agree. What does that mean for a batch? Here are four examples, and the noise that each gets. A letter is a vector of noise:

# %% noise-drawn
picture.noise_picture()

# %% noise-why [markdown]
# On one device, the noise for the whole batch comes from one stream of random numbers. Under a strategy, each replica has a copy of this stream, and reads it from the start. With eight replicas, every vector occurs eight times in the batch. `Dropout` works in the same way: all replicas drop the same units.
#
# You could call `tf.random.normal` in the step instead. In one process, each replica then gets its own noise.
# But then the noise depends on the number of replicas, and you lose the best test that we know: comparing your step with a run on one device.
#
# So we draw the noise *in the data*, where the batch is still whole. `enumerate` numbers the examples, and each number goes into the seed of the noise:


# %% examples
def with_noise(number, image):
    noise = tf.random.stateless_normal((8,), seed=[0, number])
    return image, noise


examples = tf.data.Dataset.from_tensor_slices(images)
# `repeat` first, or every epoch would have the same noise
examples = examples.shuffle(1280, seed=0).repeat()
examples = examples.enumerate().map(with_noise)

# %% noise-in-data-text [markdown]
# Now each example brings its own noise, the same on one device as on eight:

# %% noise-in-data
picture.noise_in_data_picture()

# %% pair-step-text [markdown]
# Now we can write the step. Each gradient depends on both models, so we take both gradients before we change either model. Both come from one tape, so the tape has to be `persistent`.
# Each loss is a cross entropy, where the label 1 means real, and 0 means fake.

# %% pair-step
sigmoid_cross_entropy = tf.nn.sigmoid_cross_entropy_with_logits


def pair_step(models, optimizers, images, noise, batch_size):
    generator, discriminator = models
    with tf.GradientTape(persistent=True) as tape:
        fakes = generator(noise, training=True)
        real_scores = discriminator(images, training=True)
        fake_scores = discriminator(fakes, training=True)
        ones = tf.ones_like(real_scores)
        zeros = tf.zeros_like(fake_scores)
        # Generator: the label 1 for its fakes
        g_losses = sigmoid_cross_entropy(ones, fake_scores)
        # Discriminator: 1 for real images, 0 for fakes
        d_losses = sigmoid_cross_entropy(ones, real_scores)
        d_losses += sigmoid_cross_entropy(zeros, fake_scores)
        g_loss = tf.reduce_sum(g_losses) / batch_size
        d_loss = tf.reduce_sum(d_losses) / batch_size

    g_variables = generator.trainable_variables
    d_variables = discriminator.trainable_variables
    g_gradients = tape.gradient(g_loss, g_variables)
    d_gradients = tape.gradient(d_loss, d_variables)
    g_optimizer, d_optimizer = optimizers
    g_optimizer.apply(g_gradients, g_variables)
    d_optimizer.apply(d_gradients, d_variables)
    return d_loss

# %% pair-models-text [markdown]
# Both models are small dense networks. `make_pair` builds them, each with its own optimizer:

# %% pair-models tags=["known"]
def generator():
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            tf.keras.Input((8,)),
            layers.Dense(128, activation="relu"),
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
            layers.Dense(128, activation="leaky_relu"),
            layers.Dense(1),
        ]
    )


def make_pair(strategy, make_optimizer):
    g, g_optimizer = build(strategy, generator, make_optimizer)
    d, d_optimizer = build(strategy, discriminator, make_optimizer)
    return [g, d], [g_optimizer, d_optimizer]

# %% pair-run-text [markdown]
# Is this step right? As in {lesson:custom_training}, we run it on one device and on two replicas, and compare the weights.
# We use plain SGD, because Adam would hide a wrong factor, and batches of 71 images, so that the replicas get unequal parts, 36 and 35.
# After three steps, all weights of both models should agree. To see whether we would notice a mistake, we also divide by 36:



# %% pair-run
def sgd():
    return tf.keras.optimizers.SGD(0.1)


three_batches = list(examples.batch(71).take(3).as_numpy_iterator())


def weights_after_three(strategy, batch_size):
    models, optimizers = make_pair(strategy, sgd)
    for images, noise in three_batches:
        x = share_out(strategy, images)
        z = share_out(strategy, noise)
        arguments = (models, optimizers, x, z, batch_size)
        strategy.run(pair_step, args=arguments)
    return models[0].get_weights() + models[1].get_weights()


on_one = weights_after_three(one, 71)
right = largest_difference(weights_after_three(two, 71), on_one)
wrong = largest_difference(weights_after_three(two, 36), on_one)
print("divided by 71: off by", about(right, 0, 1e-5))
print("divided by 36: off by", about(wrong, 1e-3, 1, digits=1))

# %% pair-read [markdown]
# With the divisor 71, all weights agree, up to rounding. With 36, the difference is more than a million times as large, so we would have noticed the mistake.
# This test has a blind spot, though: both runs used the same code. To find mistakes that don't depend on the number of replicas, compare with a step written in another way, as in {lesson:custom_training}.
#
# Three steps are far from a trained GAN. Let's take 2,000, with Adam, which may take a minute.
# Watch the discriminator's loss. If the discriminator couldn't tell fakes from real images at all, and gave both a score of 0, its loss would be $2\ln 2$, or 1.39.

# %% gan
def adam():
    return tf.keras.optimizers.Adam(1e-3, beta_1=0.5)


models, optimizers = make_pair(two, adam)


@tf.function
def gan_step(images, noise):
    arguments = (models, optimizers, images, noise, 128)
    losses = two.run(pair_step, args=arguments)
    return two.reduce("SUM", losses, axis=None)


batches = examples.batch(128).take(2000).as_numpy_iterator()
for number, (batch, noise) in enumerate(batches, start=1):
    loss = gan_step(share_out(two, batch), share_out(two, noise))
    if number in (1, 100, 2000):
        print("step", number, about(float(loss), 0.05, 4, digits=2))

# %% gather-text [markdown]
# At first, the discriminator's loss is about 1.6, above 1.39, because the discriminator has learned nothing yet.
# At step 100, the loss is far below 1.39, and at step 2,000 it still is. So the discriminator tells most fakes from real images, but the generator keeps up.
#
# Let's see what the generator has learned. We give it noise for eleven images. The replicas make six and five of them,
# and `gather` joins them, in the order of the noise:

# %% gather
noise = tf.random.stateless_normal((11, 8), seed=[1, 0])
parts = two.run(models[0], args=(share_out(two, noise),))
for part in two.experimental_local_results(parts):
    print("a replica made", part.shape)
fakes = two.gather(parts, axis=0)
print("gathered      ", fakes.shape)
image_grid(255 * fakes.numpy()[..., 0], range(1, 12))

# %% gather-read [markdown]
# The images are grainy, and yours may look different. But they have the outlines of garments, although the generator has never seen a garment. It has only learned what the discriminator rejects.
#
# ## The line that clips gradients
#
# In a GAN, or in a large model, one bad batch can give a huge gradient, and a huge gradient ruins the weights.
# So you clip it, as in {lesson:large_trainings}. Keras clips for you if you give the optimizer a `global_clipnorm`.
#
# Does clipping need the whole batch? Let's take the numbers of {lesson:large_trainings} again: the gradient is (3, 4), its norm is 5, and the limit is 1.
# Two replicas each compute a share of this gradient, say (3, 0) and (0, 4).
#
# `step_with`, in the folded cell, gives each replica its share, and lets an optimizer take one step. The weights begin at 0.


# %% step-with tags=["known"]
def step_with(strategy, shares, make_optimizer, prepare=None):
    with strategy.scope():
        weight = tf.Variable(tf.zeros(len(shares[0])))
        optimizer = make_optimizer()
        optimizer.build([weight])

    def on_replica(rows):
        gradients = [rows[0]]  # this replica's part is one row
        if prepare is not None:
            gradients = prepare(gradients)
        optimizer.apply(gradients, [weight])

    @tf.function
    def step(rows):
        strategy.run(on_replica, args=(rows,))

    step(share_out(strategy, shares))
    return weight.numpy()


# %% clip-apart
def clipping():
    return tf.keras.optimizers.SGD(1.0, global_clipnorm=1.0)


whole_gradient = [[3.0, 4.0]]
two_shares = [[3.0, 0.0], [0.0, 4.0]]
print("one device  ", step_with(one, whole_gradient, clipping))
print("two replicas", step_with(two, two_shares, clipping))

# %% clip-apart-read [markdown]
# The numbers are negative because SGD subtracts the gradient. One device takes a step of norm 1. Two replicas take one of norm 1.41, in a different direction, because the optimizer clips *before* it adds up:

# %% clip-picture
picture.clip_picture()

# %% clip-picture-read [markdown]
# On the left, each share is clipped to a norm of 1, and their sum ends outside the circle. On the right, the shares are added up first, and the sum is clipped.
#
# So the line that clips needs the gradient of the whole batch. A replica step can ask for an all-reduce at any place:
# after `context = tf.distribute.get_replica_context()`, `context.all_reduce("SUM", gradients)` adds up a list of gradients over the replicas.
#
# **Exercise 2.** Write `clipped(gradients, limit)`, which a replica step calls. `gradients` is a list with this replica's share of each gradient.
# Return the list that goes to `optimizer.apply`. The weights must then move as on one device that clips the gradient of the whole batch to `limit`.
#
# - `tf.clip_by_global_norm(gradients, limit)` returns two things: the clipped list, and the norm before clipping.
# - `apply` adds up over the replicas whatever you pass it. The number of replicas is `context.num_replicas_in_sync`.

# %% exercise-clipped
def clipped(gradients, limit):
    # solution begin
    context = tf.distribute.get_replica_context()
    totals = context.all_reduce("SUM", gradients)
    totals, _norm = tf.clip_by_global_norm(totals, limit)
    # `apply` adds up once more, over the replicas
    return [each / context.num_replicas_in_sync for each in totals]
    # solution end


# %%
check("own_steps-clipped", clipped)

# %% note-sparse [markdown]
# What if the model has an `Embedding`?
#
# The gradient of its table is a `tf.IndexedSlices`, which holds only the rows that occurred, and can't be divided. Begin `clipped` with `gradients = [tf.convert_to_tensor(each) for each in gradients]`.
# If the loss doesn't use a variable, its gradient is `None`. Then leave out the gradient here, and the variable in `apply`.

# %% scaled-text [markdown]
# ## The line that skips a step
#
# In float16, a gradient of 0.00000001 is 0, because float16 has no numbers that small. So you multiply the loss by a scale, say 1,000.
# The gradient becomes 0.00001, which float16 can hold, and is divided by 1,000 again in float32. That is **loss scaling**.
#
# But the same scale turns a gradient of 100 into 100,000. The largest number in float16 is 65,504, so you get infinity. That is an **overflow**, and it means that the scale was too large.
# Then the optimizer skips the step, and lowers the scale.
#
# In Keras, you wrap your optimizer in a `LossScaleOptimizer`. It divides the gradients by the scale, and it skips the step if there was an overflow. Under `compile`, the policy `mixed_float16` wraps it for you.
# The multiplication is left to you, right after you compute the loss: `loss = optimizer.scale_loss(loss)`.
#
# If one share isn't finite, the sum isn't either. So whether to skip depends on the gradient of the *whole* batch. Which gradient does Keras look at?

# %% predict-mixed [markdown]
# In Keras 3, a `LossScaleOptimizer` skips steps with infinite gradients. You wrap it around SGD, and two replicas take a step.
# The optimizer adds up their gradients. The weight is 0 on both replicas.
# Replica 0 has the gradient 1, and replica 1 has an infinite gradient. Which replica skips the step?
#
# - [ ] `both` Both replicas skip it, and the weight stays 0.
#   They would if the optimizer looked at the gradients of all replicas, or at their sum. It looks only at those of replica 0.
# - [ ] `second` Replica 1 skips it, and replica 0 takes it.
#   Then the copies of the weight would differ. But the optimizer decides once for all replicas.
# - [x] `none` Neither does, and the weight becomes −∞.
#   The optimizer takes for granted that the gradients have been added up before, and looks only at those of replica 0. They are finite, so it takes the step, with the sum, which is infinite.

# %% reveal-mixed
def scaled():
    return tf.keras.optimizers.LossScaleOptimizer(
        tf.keras.optimizers.SGD(0.1),
        initial_scale=1.0,
    )


weight = step_with(two, [[1.0], [np.inf]], scaled)[0]
if weight == 0:
    skipped_by = "both"
elif np.isinf(weight):
    skipped_by = "none"
else:
    skipped_by = "second"
reveal("own_steps-mixed", skipped_by)

# %% skip-picture-text [markdown]
# The order is the same as in clipping. Keras checks first, and adds up afterward:

# %% skip-picture
picture.skip_picture()

# %% mixed-text [markdown]
# Let's put the overflow on one device, on replica 0, and on replica 1:

# %% mixed
first_infinite = [[np.inf], [1.0]]
second_infinite = [[1.0], [np.inf]]
print("overflow on one device", step_with(one, [[np.inf]], scaled))
print("overflow on replica 0 ", step_with(two, first_infinite, scaled))
print("overflow on replica 1 ", step_with(two, second_infinite, scaled))

# %% mixed-read [markdown]
# With the overflow on replica 0, the step is skipped, as on one device, and the weight stays 0. With the overflow on replica 1, SGD subtracts infinity, and the weight becomes −∞.
#
# So an overflow on any replica but the first ruins the weights. With eight replicas, each as likely to overflow as any other, Keras catches one bad step in eight, and lets the other seven through.
#
# The check is part of Keras, so you can't change it. But you can change the gradients that it sees. If you add them up first, as in Exercise 2, every replica has the overflow, including replica 0.
# Here, `whole` adds them up, and `step_with` calls it before `apply`:

# %% mixed-whole
def whole(gradients):
    context = tf.distribute.get_replica_context()
    totals = context.all_reduce("SUM", gradients)
    # `apply` adds up once more, over the replicas
    return [each / context.num_replicas_in_sync for each in totals]


weight = step_with(two, second_infinite, scaled, whole)
print("overflow on replica 1", weight)
weight = step_with(two, [[1.0], [1.0]], scaled, whole)
print("overflow on none     ", weight)

# %% mixed-whole-read [markdown]
# Now the step with the overflow is skipped. The step without one is right, too: the gradients add up to 2, so at a learning rate of 0.1 the weight moves by 0.2.
#
# There is an easier way. `mixed_bfloat16` has about the range of float32, so nothing has to be scaled or skipped.
#
# ## Your own list
#
# No list of such lines is complete. But you can ask of each line in any step whether it needs the whole batch.
#
# **Exercise 3.** Here is the replica step of a classifier. Its model has two dense layers, with `tf.keras.layers.BatchNormalization()` between them (see {lesson:coupled_rows}).
# The step drops a gradient whose norm is 100 or more, and `accuracy` is a metric.
# Some of the numbered lines need the whole batch, but see only the replica's part. Set `lines` to the set of their numbers.
#
# ```python
# def replica_step(x, y, global_batch_size):
#     with tf.GradientTape() as tape:
#         logits = model(x, training=True)                         # 1
#         losses = cross_entropy(y, logits)                        # 2
#         loss = tf.reduce_sum(losses) / global_batch_size         # 3
#     variables = model.trainable_variables
#     gradients = tape.gradient(loss, variables)
#     norm = tf.linalg.global_norm(gradients)                      # 4
#     keep = tf.cast(norm < 100.0, tf.float32)
#     kept = [keep * each for each in gradients]
#     optimizer.apply(kept, variables)                             # 5
#     accuracy.update_state(y, logits)                             # 6
# ```

# %% exercise-lines
# solution begin
lines = {1, 4}
# solution end

# %% check-lines [markdown]
# `lines`
#
# - [x] `{1, 4}`
# - [ ] `{4}`
#   There is one more. What does a layer of batch normalization compute, and from which rows?
# - [ ] `{1}`
#   There is one more. In one line, each replica measures something of its own share.
# - [ ] `{1, 3, 4}`
#   Line 3 adds up over the part, but it divides by the global batch size. So these are shares, and the optimizer adds them up.
# - [ ] `{1, 4, 5}`
#   `optimizer.apply` adds up over the replicas by itself. What is wrong is what it gets.
# - [ ] `{1, 4, 6}`
#   A metric counts the examples of all replicas.
# - otherwise
#   Ask of each line: if it gets only a few of the rows, does it compute the same for these rows? And if not, does a later line make up for it, by adding up over the replicas?

# %% note-lines [markdown]
# Why these lines?
#
# In line 1, batch normalization takes the mean and the variance of a replica's own rows. In line 4, each replica takes the norm of its own share.
# If the shares are (3, 0) and (0, 400), only the second is dropped, and the weights take a step along (3, 0). One device would drop the whole gradient, (3, 400).

# %% table-text [markdown]
# The table lists the lines that you have met, and two others:
#
# | the line | on several replicas | what you write |
# | :--- | :--- | :--- |
# | a loss of your own, returned to `fit` | is averaged over the replicas, or ignored | a metric, fed with the losses of single examples |
# | noise from a layer | is the same on every replica | noise in the data, with the example's number in its seed |
# | dropout | drops the same units on every replica | nothing, or tf_keras, in which each replica drops others; the result no longer equals one device |
# | `global_clipnorm`, `clipnorm`, a norm of your own | sees a share | all-reduce the gradients first, and divide by the number of replicas afterward |
# | the skip of `LossScaleOptimizer` | sees the gradients of replica 0 | all-reduce first, as above; or use `mixed_bfloat16` |
# | batch normalization | takes the mean and variance of a part | `BatchNormalization(synchronized=True)` |
# | a contrastive loss, over pairs of examples | misses the pairs across replicas | `all_gather` the outputs; add up the losses of your own examples, and divide by the global batch size |
# | a variable that each replica writes | diverges silently | `aggregation=tf.VariableAggregation.SUM`, and `assign_add` |
#
# For nearly 300 features of Keras and `tf.distribute`, the page *What strategies get right* says which of them see only a part.

# %% out-heading [markdown]
# ## Around the step: checkpoints
#
# Your step is complete. But `fit` did two more jobs around it: a callback saved checkpoints, and several steps could run in one call. In your own loop, you do both.
#
# A checkpoint holds values, and nothing about strategies, so you can restore it into a model that was built without one.
# Let's save the generator of our two replicas, with its optimizer, Adam, and restore both on a single device. `assert_consumed` raises an error if a value is left over.

# %% predict-early [markdown]
# You have a checkpoint of a model that two replicas trained with Adam.
# Without a strategy, you make the same model again, and `optimizer = tf.keras.optimizers.Adam()`.
# You restore the checkpoint with `tf.train.Checkpoint(model=model, adam=optimizer)`, and call `assert_consumed()` on what `restore` returns.
# What happens?
#
# - [ ] `passes` It passes, and all values are in their variables.
#   It would if all variables existed.
#   But Adam makes its two slots for each weight in its first step, or in its `build`.
# - [ ] `anew` It passes, but the slots of Adam keep their initial values.
#   A value that waits for its variable hasn't been used, so it doesn't pass.
#   But the value isn't lost: Adam gets it when it makes the variable.
# - [x] `AssertionError` It raises an error.
#   Adam makes its two slots for each weight in its first step, or in its `build`. Until then their values wait, and `assert_consumed` counts them as left over.

# %% reveal-early
import tempfile

trained = tf.train.Checkpoint(model=models[0], adam=optimizers[0])
path = trained.save(tempfile.mkdtemp() + "/trained")

new = tf.train.Checkpoint(model=generator(), adam=adam())
status = new.restore(path)
try:
    status.assert_consumed()
    answer = "passes"
except AssertionError:
    answer = "AssertionError"
reveal("own_steps-early", answer)

# %% early-why [markdown]
# The function `build`, from the first folded cell, calls `optimizer.build`, which makes the slots. With `build`, the restored generator should make the same images:

# %% restored
restored_generator, restored_adam = build(one, generator, adam)
restored = tf.train.Checkpoint(
    model=restored_generator,
    adam=restored_adam,
)
restored.restore(path).assert_consumed()
gap = largest_difference(restored_generator(noise), fakes)
print("steps of Adam", int(restored_adam.iterations.numpy()))
print("images differ by", about(gap, 0, 1e-5))

# %% restored-read [markdown]
# Adam has counted its 2,000 steps, and the images are those of the two replicas. So you can start a run on several replicas, and continue it on one device.

# %% note-seed [markdown]
# What does a checkpoint leave out?
#
# In a model of Keras 3, `tf.train.Checkpoint` doesn't find the seed and the counter of `Dropout`, and `assert_consumed` says nothing about what was never saved.
# A program that sets its seed and resumes then repeats its first dropout masks.
# So name the variable beside the model: `tf.train.Checkpoint(model=model, seed=layer.seed_generator.state.value)`.
#
# The numbers of the examples aren't saved either. When you resume, give `enumerate(start=...)` the number of examples that were seen before.

# %% several-heading [markdown]
# ## Around the step: several steps in a call
#
# In {lesson:faster}, you put many steps into one call, and saved Python's work for each of them. Under `fit`, you set `steps_per_execution`. In your own loop, you compile a function such as `several_steps`.
# The price is that until the call returns, no curve moves, and the Stop button does nothing. Is it worth it under a strategy?
#
# The explorer measures 20 steps of a single dense layer on two replicas, with one, ten or all of them in a call. Choose a batch size, and press *Measure*:



# %% several
@tf.function
def several_steps(step, images, labels, steps):
    total = 0.0
    for _ in tf.range(steps):
        total += step(images, labels)
    return total


# %% ways-of tags=["known"]
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
    model, optimizer = build(two, small, sgd)
    rows = np.arange(batch_size) % 1280  # there are no more images
    x = share_out(two, images[rows])
    y = share_out(two, labels[rows])

    def on_replica(x, y):
        with tf.GradientTape() as tape:
            losses = cross_entropy(y, model(x, training=True))
            loss = tf.reduce_sum(losses) / batch_size
        variables = model.trainable_variables
        optimizer.apply(tape.gradient(loss, variables), variables)
        return loss

    @tf.function
    def step(x, y):
        losses = two.run(on_replica, args=(x, y))
        return two.reduce("SUM", losses, axis=None)

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
from lessons.strategies.own_steps import iterating_explorer

measure_ways = iterating_explorer.measuring(ways_of, steps=20)
iterating_explorer.IterationExplorer(measure_ways)

# %% ways-read [markdown]
# On two cores, we gained the most with steps of 64 images. More than half of their time had gone to Python, which prepared every call and fetched every loss. Steps of 2,048 images take longer, so the same saving hardly showed.
#
# So try several steps per call if a step takes about a millisecond, or less. If it takes much longer, stay with one.
# To see where the time of a step goes, write `with tf.profiler.experimental.Profile(folder):` around a few steps, and open the folder in TensorBoard.

# %% plain-heading [markdown]
# ## The plain program
#
# [`own_steps.py`](../plain/own_steps.py) trains the GAN on four replicas, without the course's library. Its noise comes with the dataset, its step clips the gradient of the whole batch, and one device restores its checkpoint.

# %% takeaways [markdown]
# ## Takeaways
#
# - A replica step sees a part of the batch. Ask of each line whether it needs the whole batch. If it does, all-reduce first, or do the work in the data, where the batch is still whole.
# - `fit` averages what `train_step` returns over the replicas, and keeps only the last batch. If you return the names of the metrics, it ignores your numbers. So feed a metric the losses of single examples.
# - To test a step, compare it with one device: SGD, no dropout, unequal parts, a few steps, all weights equal. If the single device's step is written another way, the test also finds mistakes that don't depend on the number of replicas.
#
# In {lesson:workers}, the replicas run in several processes.

# %% score
score("own_steps")
