# %% [markdown]
# # Which lines of my step need the whole batch?
#
# You write a `train_step` of your own, and let `fit` do the rest. On one device, `fit` reports a loss of 2.4.
# On four devices, with the same step and the same batch, it reports 0.6. But every weight is what it should be: only the loss on the screen is wrong.
# A colleague's step looks almost the same. It reports the right loss on four devices, and moves every weight four times too far.
#
# Both happen for a single reason. On one device, a step sees the whole batch. On four devices the step runs four times at once, and each run sees only its own quarter of the batch.
# You know from {lesson:custom_training} what that does to the divisor. In this lesson we go through all the other lines:
# *which lines of my step need the whole batch, and how do they get it?*
#
# **After this lesson you can**
#
# - write a `train_step` for `fit` that moves the weights correctly, and reports the loss correctly;
# - train two models against each other, with noise that doesn't depend on the number of devices;
# - find the lines of a step that see only part of the batch, and fix them;
# - save a model that several replicas have trained, and restore it on one device.
#
# **Time:** 35 minutes.
# **You need to know:** replica steps, `run`, `reduce`, and the global batch size ({lesson:custom_training}).

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% known-text [markdown]
# ## The line that reports
#
# The folded cell brings back the garments and four helpers from {lesson:custom_training}.

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
# To put a step of your own under `fit`, you override `train_step`. `fit` calls it once *on every replica* (here, on every device), and hands it that replica's part of the batch.
# So it is a replica step, like those that you have written. But nobody tells it the global batch size. What should it divide by?
#
# Your colleague doesn't ask, and takes the mean over the part. You look it up, and find that Keras has a method for exactly this: `self.compute_loss`. It calls the loss object that you passed to `compile`. That object takes the mean over the replica's part, and divides it by the *number of replicas*. The result is this replica's share of the loss: if all parts are equal, the shares add up to the mean over the batch.
#
# `OwnMean` is the colleague's step, and `ComputeLoss` is yours. Each returns its loss and, for a reason that you'll see soon, the number of its rows:


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
        return {"loss": loss, "rows": tf.shape(x)[0]}


class ComputeLoss(tf.keras.Sequential):
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            logits = self(x, training=True)
            # This replica's share
            loss = self.compute_loss(x, y, logits)
        variables = self.trainable_variables
        self.optimizer.apply(tape.gradient(loss, variables), variables)
        return {"loss": loss, "rows": tf.shape(x)[0]}


# %% under-fit-text [markdown]
# Let each of them take one step of SGD with a dense layer and 64 images, on one device and on four replicas.
# What loss does `fit` report? And what is the largest change in any weight? (`one_step`, in the folded cell, returns both.)

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
            "  loss", about(history["loss"][0], 0.5, 2.5, digits=3),
            "  moved", about(moved, 0.005, 0.08, digits=3),
        )

# %% under-fit-read [markdown]
# On one device, the two steps are equal: the loss is 2.38, and the weights move by up to 0.0105.
#
# On four replicas, `OwnMean` moves them by 0.042, four times too far. And yet it reports the right loss!
# `ComputeLoss` moves them exactly as far as one device does. But it reports 0.596, a quarter of 2.38.
#
# How can a right step report a wrong loss, and a wrong step the right one? Follow the losses of the four replicas:

# %% report-picture
from lessons.strategies.own_steps import picture

picture.report_picture()

# %% report-read [markdown]
# The optimizer and `fit` do different things with what the replicas hand them. The optimizer *adds up* their gradients, while `fit` takes the *mean* of the numbers that they return.
# A mean over a part is right for `fit`, and wrong for the optimizer. A share is right for the optimizer, and wrong for `fit`, which divides it by four once more.
# So the loss on the screen tells you nothing about whether the step is right.
#
# And why do both steps return their rows as well? Leave the rows out, as most people would, and this happens:

# %% usual
class UsualReturn(ComputeLoss):
    def train_step(self, data):
        numbers = super().train_step(data)
        return {"loss": numbers["loss"]}


for strategy in [one, four]:
    history, moved = one_step(strategy, UsualReturn)
    print(
        f"replicas {strategy.num_replicas_in_sync}",
        f"  loss {history['loss'][0]}",
        "  moved", about(moved, 0.005, 0.08, digits=3),
    )

# %% usual-read [markdown]
# The same step, and a loss of 0.0! There is one rule behind it. `fit` compares the names in your dictionary with the names of the model's metrics.
#
# - If they are *exactly* the same names, `fit` reports what the metrics hold, and throws your numbers away.
# - With any other names, it reports your numbers: their mean over the replicas, and only for the last batch of the epoch.
#
# And every model has a metric: `model.metrics[0]` is a `Mean` with the name `loss`, even if you gave `compile` no metrics at all. So `fit` asked this metric, and nobody had fed it anything.
#
# Feed it, then. A metric is just what we need: it adds up what *all* replicas feed it in *all* batches, and divides by the number of these values.
#
# **Exercise 1.** Write `my_train_step(model, x, y)`. It does what a `train_step` does, with `model` instead of `self`.
# On any number of replicas, the weights must move as on one device, and `fit` must report the mean loss of the batch.
# The loss object was given to `compile`, and there are no other metrics. All parts are equal.
#
# - Take the gradient of what `compute_loss` returns, and let the optimizer apply it.
# - Feed `model.metrics[0]`. What should you feed it? `cross_entropy`, from the first folded cell, takes classes and logits: your `y`, and what the model returns.
# - Return the dictionary that makes `fit` report that metric.

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
# And if `compile` has an accuracy, too?
#
# Then the names are `loss` and `accuracy`. Feed both: `for metric in self.metrics:` gives `loss` the losses, and any other metric `metric.update_state(y, logits)`.
# And let Keras make the dictionary: `return self.get_metrics_result()` always has the right names.
#
# Penalties are not in the losses of single examples, so the loss that you report is without them.

# %% note-unequal [markdown]
# What if the last batch has unequal parts?
#
# Then `compute_loss` is slightly off, and so is plain `fit`, as you saw in {lesson:strategies}.
# For the exact step, count the rows of all replicas in the step: `tf.distribute.get_replica_context().all_reduce("SUM", rows)`.
# Divide the sum of your own losses by that number.

# %% pair-heading [markdown]
# ## The line that draws noise
#
# Some steps can't be written with `compile` and `fit` alone. A **GAN** (generative adversarial network) has two models that work against each other:
# a **generator** makes images out of noise, and a **discriminator** tells them from real ones.
#
# | | gets | its loss is small if | its gradient changes |
# | --- | --- | --- | --- |
# | discriminator | real images and fakes | real images score high and fakes low | the discriminator only |
# | generator | noise | the discriminator scores its fakes high | the generator only |
#
# Two losses and two optimizers are not difficult: both losses are divided by the global batch size, and both optimizers add up their gradients over the replicas, as in {lesson:custom_training}.
# What is new is the line that draws random numbers for the noise. Keras has a layer that does it. May we use that?

# %% predict-noise [markdown]
# The layer `tf.keras.layers.GaussianNoise(1.0)` is made in the scope of a strategy with two replicas.
# In one step, each replica calls it once with `training=True`. How does the noise of the two replicas compare?
#
# - [x] `same` It is the same on both.
#   The layer keeps its seed and a counter in a variable. Like every variable of the model, it is mirrored: both replicas begin with the same values.
# - [ ] `different` Each replica draws its own.
#   It would be so if the seed depended on the replica. But the seed is a variable of the model, and the copies of a variable are equal.
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
# So this is what a batch of four examples gets. Each letter is a vector of noise:

# %% noise-drawn
picture.noise_picture()

# %% noise-why [markdown]
# On one device, one stream of random numbers serves the whole batch. Under a strategy, each replica has a copy of the stream, and all of them read from its beginning.
# With eight replicas, only one eighth of the noise in a batch is different noise; the rest are copies. It's the same with `Dropout`: all replicas drop the same units.
#
# You may be tempted to take `tf.random.normal` in the step instead. In one process, it does give each replica noise of its own. But then the noise depends on how many replicas you have.
# You can no longer compare your step with one device, and we know of no better test.
#
# So let's draw the noise where the batch is still whole: *in the data*. `enumerate` numbers the examples, and the number goes into the seed:


# %% examples
def with_noise(number, image):
    noise = tf.random.stateless_normal((8,), seed=[0, number])
    return image, noise


examples = tf.data.Dataset.from_tensor_slices(images)
examples = examples.shuffle(1280, seed=0).repeat()
examples = examples.enumerate().map(with_noise)

# %% noise-in-data-text [markdown]
# Now each example has noise of its own, and it is the same on one device and on eight:

# %% noise-in-data
picture.noise_in_data_picture()

# %% note-repeat [markdown]
# Does it matter that `repeat` stands before `enumerate`?
#
# Yes. With `enumerate` first, the numbers would start again with each epoch, and every epoch would have the same noise.
# If you resume a run, the numbers start again as well. Then give `enumerate(start=...)` the number of examples that were seen before.

# %% pair-step-text [markdown]
# Now the step. Each gradient depends on both models, so we take both gradients before either model changes. We take two gradients from one tape, so the tape has to be `persistent`.
# Each loss is a cross entropy: the discriminator should give real images the label 1 and fakes the label 0, and the generator wants a 1 for its fakes.

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
        g_losses = sigmoid_cross_entropy(ones, fake_scores)
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
# The two models are small dense networks. `make_pair` makes both, each with an optimizer of its own:

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
# Is this step right? We find out as in {lesson:custom_training}: run it on one device and on two replicas, and compare the weights.
# We take plain SGD, since Adam would hide a wrong factor, and batches of 71 images, so that the replicas get unequal parts, 36 and 35.
# After three steps, are all weights of both models the same? To see whether we would notice a mistake, we also divide by 36, the rows of one replica:



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
# All weights are the same, up to rounding. And we would have noticed the mistake at once: its gap is far more than a million times larger.
# But the one device ran the same code. So a mistake that doesn't depend on the number of replicas stays hidden, unless you compare with a step that is written some other way, as in {lesson:custom_training}.
#
# Three steps are far from a trained GAN. Let's take two thousand, with Adam. This may take a minute.
# Watch the loss of the discriminator: if it couldn't tell fakes from images at all, and gave both a score of 0, it would be $2\ln 2$, or 1.39.

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
# At first the discriminator's loss is about 1.6, worse than 1.39, because it has learned nothing yet. By step 100 it is well below, and at step 2,000 it still is: the discriminator tells most fakes from images, but the generator keeps up with it.
# What has the generator learned? We give it noise for eleven images. The replicas make six and five of them,
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
# The images are grainy, and nobody would buy these clothes. (Yours may look different.) But they have the outlines of garments, although the generator has never seen one. All it ever learned was what the discriminator wouldn't accept.
#
# ## The line that clips
#
# In a GAN, or in a large model, one bad batch can give a huge gradient, and a huge gradient ruins the weights.
# So you clip it, as in {lesson:large_trainings}. Keras does that for you, with `global_clipnorm`.
#
# Does clipping need the whole batch? Take the numbers of that lesson once more: the gradient is (3, 4), so its norm is 5, and the limit is 1. There, each of two devices held one of the two numbers. Here, each replica holds a vector of the full length, but that vector is only its *share*. The gradient of the batch is the sum of the shares. On two replicas, let the shares be (3, 0) and (0, 4).
# `step_with`, in the folded cell, gives each replica its share of the gradient, and lets an optimizer take a step. Weights begin at 0.


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
# SGD subtracts, hence the minus. One device takes a step whose norm is 1. The two replicas take a step of norm 1.41, and it points in a different direction.
# Here is why. The optimizer clips *before* it adds up:

# %% clip-picture
picture.clip_picture()

# %% clip-picture-read [markdown]
# On the left, each share is clipped to a norm of 1, and their sum ends outside the circle. On the right, the shares are added up first, and the sum is clipped.
# Sometimes nothing is clipped at all: (0.9, 0) and (0, 0.9) are both within the limit, but the norm of their sum is 1.27.
#
# So the clipping line needs the gradient of the whole batch. How does it get it? A replica step can ask for an all-reduce at any place.
# After `context = tf.distribute.get_replica_context()`, `context.all_reduce("SUM", gradients)` adds up a list of gradients over the replicas.
#
# **Exercise 2.** Write `clipped(gradients, limit)`, which a replica step calls. `gradients` is a list with this replica's share of each gradient.
# Return the list that goes to `optimizer.apply`. The weights must then move as on one device that clips the gradient of the whole batch to `limit`.
#
# - `tf.clip_by_global_norm(gradients, limit)` returns two things: the clipped list, and the norm before.
# - Remember that `apply` adds up over the replicas, whatever you pass it. `context.num_replicas_in_sync` is their number.

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
# The gradient of its table is a `tf.IndexedSlices`, which has the rows that occurred, and can't be divided. Begin `clipped` with `gradients = [tf.convert_to_tensor(each) for each in gradients]`.
# If the loss doesn't use a variable, its gradient is `None`: leave out both, the gradient here and the variable in `apply`.

# %% scaled-text [markdown]
# ## The line that decides
#
# In float16, a gradient of 0.00000001 is 0, since the type has no numbers that small. So you multiply the loss by a scale, say 1,000.
# The gradient becomes 0.00001, which float16 can hold, and it is divided by 1,000 again, in float32. That is **loss scaling**.
#
# But at this scale, a gradient of 100 becomes 100,000, and beyond 65,504, float16 has only infinity. That is an **overflow**: the scale was too large.
# Then the optimizer skips the step, and lowers the scale.
#
# In Keras, `LossScaleOptimizer` divides and skips. You wrap it around your optimizer. (If you use `compile` with the policy `mixed_float16`, Keras wraps it for you.) That leaves one line for you to write, right after the loss is computed: `loss = optimizer.scale_loss(loss)`, which does the multiplying.
#
# To skip or not to skip is a decision about the *whole* gradient, because a single infinite share makes the sum infinite. Which gradient does Keras look at?

# %% predict-mixed [markdown]
# Keras 3 has a `LossScaleOptimizer` to skip steps with infinite gradients.
# Two replicas take a step with it, around SGD, and their gradients are added up. The weight is 0 on both.
# Replica 0 has the gradient 1, and replica 1 an infinite one. Who skips the step?
#
# - [ ] `both` Both replicas skip it, and the weight stays 0.
#   It would be so if the optimizer looked at the gradients of all replicas, or at their sum. It looks at those of the first one only.
# - [ ] `second` Replica 1 skips it, and replica 0 takes it.
#   The copies would then differ. But the optimizer decides once for all replicas.
# - [x] `none` Neither does, and the weight becomes −∞.
#   The optimizer looks at the gradients of replica 0 only, since it takes for granted that they have been added up before. They are finite. So the step is taken, with the sum, which is infinite.

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
# The optimizer asks whether the gradients are finite *before* it adds up, like the clipping line. And it asks only on replica 0:

# %% skip-picture
picture.skip_picture()

# %% mixed-text [markdown]
# Does it at least work if the overflow is on replica 0?

# %% mixed
first_infinite = [[np.inf], [1.0]]
second_infinite = [[1.0], [np.inf]]
print("overflow on one device", step_with(one, [[np.inf]], scaled))
print("overflow on replica 0 ", step_with(two, first_infinite, scaled))
print("overflow on replica 1 ", step_with(two, second_infinite, scaled))

# %% mixed-read [markdown]
# With the overflow on replica 0, the step is skipped, as on one device: the weight stays 0. But with the overflow on replica 1, nothing stops SGD. It subtracts infinity, and the weight becomes −∞.
# Suppose that each overflow hits a single replica, and each replica with the same probability. With two replicas, half of the bad steps are skipped. With eight replicas, only one bad step in eight is skipped, and a single bad step that isn't skipped ruins the weights.
#
# You can't change this line, because it is Keras's. But with the all-reduce of Exercise 2, you can change what it sees: if the gradients are added up first, every replica has the overflow, replica 0 too. So we hand `step_with` a function that it calls with the gradients before `apply`:

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
# Now the step is skipped. And a step without overflow is still right: the gradients add up to 2, so at a rate of 0.1 the weight moves by 0.2.
#
# There is an easier way out. `mixed_bfloat16` has the range of float32, so nothing has to be scaled, and nobody has to decide.
#
# ## Your own list
#
# No list of such lines is ever complete, but you can ask the question of this lesson at every line of any step.
#
# **Exercise 3.** Here is the replica step of a classifier. Its model has two dense layers, with `tf.keras.layers.BatchNormalization()` between them (see {lesson:coupled_rows}).
# The step drops a gradient whose norm is 100 or more, and `accuracy` is a metric.
# Some of the numbered lines see only the replica's part, although they need the whole batch. Set `lines` to the set of their numbers.
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
# With the shares (3, 0) and (0, 400), only the second is dropped, and the weights take a step along (3, 0). One device would drop the whole gradient, (3, 400).

# %% table-text [markdown]
# Here are such lines, most of which you have met:
#
# | the line | on several replicas | what you write |
# | :--- | :--- | :--- |
# | a loss of your own, returned to `fit` | is averaged over the replicas, or thrown away | a metric, fed with the losses of single examples |
# | noise from a layer | is the same on every replica | noise in the data, with the example's number in its seed |
# | dropout | drops the same units on every replica | nothing, but the result no longer equals one device (in tf_keras, each replica drops others) |
# | `global_clipnorm`, `clipnorm`, a norm of your own | sees a share | all-reduce the gradients first, and divide by the replicas afterwards |
# | the skip of `LossScaleOptimizer` | sees the gradients of replica 0 | all-reduce first, as above; or use `mixed_bfloat16` |
# | batch normalization | takes the mean and variance of a part | `BatchNormalization(synchronized=True)` |
# | a contrastive loss, over pairs of examples | misses the pairs across replicas | `all_gather` the outputs; add up the losses of your own examples, and divide by the global batch size |
# | a variable that each replica writes | diverges silently | `aggregation=tf.VariableAggregation.SUM`, and `assign_add` |
#
# The page *What strategies get right* tries nearly 300 features of Keras and `tf.distribute`, and says which of them see only a part.

# %% note-own-variable [markdown]
# What exactly happens to a variable that each replica writes?
#
# Each replica writes its own copy. After `seen.assign_add(number)` with the number of the replica, the copies on four replicas are 0, 1, 2 and 3.
# To count over the replicas, make the variable with `aggregation=tf.VariableAggregation.SUM`, and call `seen.assign_add(rows)` with the rows of the replica, as a tensor.
# `seen.assign(seen + rows)` would add up the old value once for each replica.
# (Reading is safe: a read sees the writes above it, in a compiled function, too.)

# %% out-heading [markdown]
# ## And around the step?
#
# The step is complete. But `fit` did two more jobs *around* the step: it saved checkpoints, through a callback, and it could run several steps in one call. In a loop of your own, you do both.
#
# Saving is easy, because a checkpoint holds values and knows nothing about strategies. So you can restore it into a model that was built without one. `assert_consumed` raises an error if a value is left over.
# Let's save the generator of our two replicas, together with its optimizer, Adam, and restore both on a single device.

# %% predict-early [markdown]
# A model and `optimizer = tf.keras.optimizers.Adam()` are created from scratch, without a strategy.
# Then `tf.train.Checkpoint(model=model, adam=optimizer)`
# restores a checkpoint of a training with Adam on two replicas,
# and `assert_consumed()` is called on what `restore` returns.
# What happens?
#
# - [ ] `passes` It passes, and all values are in their variables.
#   It would if all variables were there.
#   Adam makes its two slots for each weight in its first step, or in its `build`.
# - [ ] `anew` It passes, but the slots of Adam keep their initial values.
#   It does not pass: a value that waits has not been used.
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
# Our function `build`, from the beginning of this lesson, calls `optimizer.build`, which makes the slots. With it, the restored generator should make the same images:

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
# Adam has counted its 2,000 steps, and the images are those of the two replicas. So a run may start on several replicas, and go on with one device.

# %% note-seed [markdown]
# What does a checkpoint not find?
#
# `tf.train.Checkpoint` doesn't find the seed and the counter of `Dropout` in a model of Keras 3, and `assert_consumed` says nothing about what was never saved.
# A program that sets its seed and resumes then repeats the dropout masks it began with.
# Name the variable beside the model: `tf.train.Checkpoint(model=model, seed=layer.seed_generator.state.value)`.

# %% several-heading [markdown]
# ## Several steps in a call
#
# In {lesson:faster} you put many steps into one call, and saved Python's overhead on each step. Under `fit`, that is `steps_per_execution`; in a program of your own, it is a compiled loop such as `several_steps`. The price is that until the call returns, no curve moves, and the Stop button does nothing. Is it worth it under a strategy?
#
# The explorer measures 20 steps on two replicas, with one, ten or all of them in a call. The network is a single dense layer. Choose a batch size, and press *Measure*:



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
    model, its_sgd = build(two, small, sgd)
    rows = np.arange(batch_size) % 1280  # there are no more images
    x = share_out(two, images[rows])
    y = share_out(two, labels[rows])

    def on_replica(x, y):
        with tf.GradientTape() as tape:
            losses = cross_entropy(y, model(x, training=True))
            loss = tf.reduce_sum(losses) / batch_size
        variables = model.trainable_variables
        its_sgd.apply(tape.gradient(loss, variables), variables)
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
# When we measured on two cores, steps of 64 images gained most. Python had taken more than half of their time, to prepare the call and fetch the loss. Steps of 2,048 images take longer, so the same savings hardly showed.
#
# So try several steps per call if a step takes about a millisecond, or less. If it takes much longer, stay with one, and keep your curves and the Stop button.

# %% note-profiler [markdown]
# Where does the time of a step go?
#
# Write `with tf.profiler.experimental.Profile(folder):` around a few steps, and open the folder in TensorBoard.

# %% plain-heading [markdown]
# ## The plain program
#
# [`own_steps.py`](../plain/own_steps.py) is the GAN without the course's library, on four replicas. Its noise comes with the dataset,
# it clips the whole gradient, and one device restores its checkpoint.

# %% takeaways [markdown]
# ## Takeaways
#
# - A replica step sees a part of the batch. Ask of each line whether it needs the whole batch. If it does, all-reduce first, or do the work in the data, where the batch is still whole.
# - Keras averages what `train_step` returns over the replicas, and keeps only the last batch. If the names are those of the metrics, it ignores your numbers altogether. Report the loss through a metric, fed with the losses of single examples.
# - To test a step, compare it with one device: SGD, no dropout, unequal parts, a few steps, all weights equal. Whatever depends on the number of replicas shows.
#
# In {lesson:workers}, the replicas live in several processes.

# %% score
score("own_steps")
