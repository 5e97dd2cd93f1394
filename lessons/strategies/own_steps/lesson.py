# %% [markdown]
# # What else changes when the step is mine?
#
# You write a `train_step` of your own, and let `fit` do the rest. On one GPU, it reports a loss of 2.4.
# On four GPUs, the same step on the same batch reports 0.6.
#
# The training is fine, though. Every weight is what it should be; only the loss on the screen is a quarter of the true one.
# Your colleague's `train_step` looks almost the same, and it reports 2.4 on one GPU and on four.
# But on four, it moves every weight four times too far.
#
# Neither of you sees an error. Which of the two would you have trusted?
#
# By what a step divides, you know from {lesson:custom_training}. But `fit`, Keras's layers and one single device have done more for you than divide.
# So the question of this lesson is: *what was done for me until now, and must be done by my own step?*
#
# **After this lesson you can**
#
# - write a `train_step` for `fit` that moves the weights correctly, and reports the loss correctly;
# - train two models against each other, with noise that doesn't depend on the number of devices;
# - say what each replica does alone, and who decides to skip a step.
#
# **Time:** 30 minutes.
# **You need to know:** replica steps, `run`, `reduce`, and the global batch size ({lesson:custom_training}).

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% known-text [markdown]
# ## Two steps under `fit`
#
# The folded cell brings what you know from {lesson:custom_training}: the garments, `mirrored` and `share_out`, `build` and `largest_difference`.

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
# To put a step of your own under `fit`, you override `train_step`. `fit` calls it *on every replica*, each time with that replica's part of the batch:
# it is a replica step.
#
# Nobody hands it the global batch size. But it can call `self.compute_loss`, which calls the loss object that you gave to `compile`,
# and adds the penalties. What it returns is divided already: the loss by the replica's own examples and by the replicas, as you have seen,
# and the penalties, which your own loop had to divide, by the replicas.
#
# Here are the two steps of the opening, your colleague's `OwnMean` and your own `ComputeLoss`. They differ in one line:


# %% train-steps
class OwnMean(tf.keras.Sequential):
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            logits = self(x, training=True)
            loss = tf.reduce_mean(cross_entropy(y, logits))
        variables = self.trainable_variables
        self.optimizer.apply(tape.gradient(loss, variables), variables)
        return {"loss": loss, "rows": tf.shape(x)[0]}


class ComputeLoss(tf.keras.Sequential):
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            logits = self(x, training=True)
            loss = self.compute_loss(x, y, logits)
        variables = self.trainable_variables
        self.optimizer.apply(tape.gradient(loss, variables), variables)
        return {"loss": loss, "rows": tf.shape(x)[0]}


# %% under-fit-text [markdown]
# Both return the loss, and with it a second number, the rows of this replica.
# Let each of them train a dense layer for one step of SGD on 64 images, on one device and on four replicas.
# What does `fit` report, and how far does a weight move at most? (`one_step`, in the folded cell, returns both.)

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
            "  moved", about(moved, 0.005, 0.08),
        )

# %% under-fit-read [markdown]
# On one device, the two are equal: a loss of 2.38, and weights that move by 0.011.
#
# On four replicas, `OwnMean` moves them by 0.042, four times too far. That is the mistake of the last lesson. Still, it reports the right loss!
# `ComputeLoss` moves them just as far as one device, but reports 0.596, a quarter of 2.38.
#
# The reason is that `fit` has a divisor of its own. It reports the *mean over the replicas* of each number that you return.
# The mean of four means is right, as long as the parts are equal. But the losses of `compute_loss` have been divided by four already, and are now divided again.
#
# So a right number on the screen doesn't speak for the step, and a wrong one doesn't speak against it.
#
# There is a way out: let a metric do the reporting. Metrics divide by themselves, and they count the examples of all replicas.
# Under `fit`, the metric for the loss exists already, and the rule is:
#
# - `self.metrics` lists the metrics of the model. Without others in `compile`, it holds just one, a `Mean` with the name `loss`.
# - If the dictionary that you return has *exactly* the names of these metrics, `fit` reports what the metrics hold, and nothing that you returned.
# - With any other names, it reports what you returned, averaged over the replicas. That is why our two steps returned `rows` as well: with `return {"loss": loss}`, `fit` would report 0.0, since nobody has fed the metric.
#
# **Exercise 1.** Write `my_train_step(model, x, y)`, the body of a `train_step`; `model` is what `self` is there.
# On any number of replicas, the weights must move as on one device, and `fit` must report the mean loss of the batch.
# The loss object was given to `compile`, and there are no other metrics. All parts are equal.
#
# - Take the gradient of what `compute_loss` returns, and let the optimizer apply it.
# - Feed the metric, with the right thing. The labels `y` are classes, the outputs of the model are logits.
# - Return the dictionary with which `fit` reports that metric.

# %% exercise-train-step
def my_train_step(model, x, y):
    # solution begin
    with tf.GradientTape() as tape:
        logits = model(x, training=True)
        loss = model.compute_loss(x, y, logits)
    variables = model.trainable_variables
    model.optimizer.apply(tape.gradient(loss, variables), variables)
    metric = model.metrics[0]
    metric.update_state(cross_entropy(y, logits))
    return {"loss": metric.result()}
    # solution end


# %%
check("own_steps-train-step", my_train_step)

# %% note-unequal [markdown]
# What if the last batch has unequal parts?
#
# Then `compute_loss` is as far off as `fit` itself, since it divides by each replica's own examples.
# For the exact step, count the rows of all replicas in the step: `tf.distribute.get_replica_context().all_reduce("SUM", rows)`.
# Divide the sum of your own losses by that number.

# %% note-idle [markdown]
# Why may this cell take longer the second time?
#
# Each `fit` opens its own data iterator, and TensorFlow can be slow to close the old one. You are waiting for that.

# %% pair-heading [markdown]
# ## Two models, two optimizers
#
# Some steps don't fit into `compile` at all. A **GAN** (generative adversarial network) has two models that work against each other:
# a **generator** makes images out of noise, and a **discriminator** tells them from real ones.
#
# | | gets | its loss is small if | its gradient changes |
# | --- | --- | --- | --- |
# | discriminator | real images and fakes | real images score high and fakes low | the discriminator only |
# | generator | noise | the discriminator scores its fakes high | the generator only |
#
# Both losses are sums over examples, so both are divided by the global batch size, and both optimizers add up gradients over the replicas. Nothing new here.
# What is new is the noise. Could a Keras layer supply it?

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
def noise_of_both():
    zeros = tf.zeros((1, 8))
    return two.run(layer, args=(zeros,), kwargs={"training": True})


first, second = two.experimental_local_results(noise_of_both())
same = np.array_equal(first, second)
reveal("own_steps-noise", "same" if same else "different")

# %% noise-why [markdown]
# `Dropout` behaves in the same way: all replicas drop the same units. For dropout that may do.
# For a generator it means that with eight replicas only an eighth of its noise is distinct.
# And the training depends on the number of replicas.
#
# There is a better place for noise: **the data**. `enumerate` numbers the examples, and the number goes into the seed.
# So each example gets noise of its own, and it is the same on one device and on eight:


# %% examples
def with_noise(number, image):
    noise = tf.random.stateless_normal((8,), seed=[0, number])
    return image, noise


examples = tf.data.Dataset.from_tensor_slices(images)
examples = examples.shuffle(1280, seed=0).repeat()
examples = examples.enumerate().map(with_noise)

# %% note-repeat [markdown]
# Does it matter that `repeat` stands before `enumerate`?
#
# Yes. The other way round, the numbers start again with each epoch, and every epoch has the same noise.
# They start again, too, when you resume a run: `enumerate(start=...)` takes the number of examples that were seen before.
#
# In a replica step, `tf.random.normal` does give each replica noise of its own. But then the noise depends on the number of replicas.

# %% pair-step-text [markdown]
# Now the step. We need two gradients from one tape, so it is made `persistent`, and both are taken before either model changes.
# (A score is a logit, and `softplus(-score)` is the cross entropy for "this one is real".)

# %% pair-step
def pair_step(models, optimizers, images, noise, size):
    generator, discriminator = models
    with tf.GradientTape(persistent=True) as tape:
        fakes = generator(noise, training=True)
        real_scores = discriminator(images, training=True)
        fake_scores = discriminator(fakes, training=True)
        called_real = tf.nn.softplus(-fake_scores)
        mistakes = tf.nn.softplus(-real_scores)
        mistakes += tf.nn.softplus(fake_scores)
        g_loss = tf.reduce_sum(called_real) / size
        d_loss = tf.reduce_sum(mistakes) / size

    g_variables = generator.trainable_variables
    d_variables = discriminator.trainable_variables
    g_gradients = tape.gradient(g_loss, g_variables)
    d_gradients = tape.gradient(d_loss, d_variables)
    g_optimizer, d_optimizer = optimizers
    g_optimizer.apply(g_gradients, g_variables)
    d_optimizer.apply(d_gradients, d_variables)
    return d_loss

# %% pair-models-text [markdown]
# The two models are small dense networks:

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

# %% pair-run-text [markdown]
# First, the test that you know: SGD, unequal parts, and a comparison with one device.
# Seventy-one images fall to two replicas in parts of 36 and 35. After three steps, are all weights of both models the same?


# %% pair-run
def sgd():
    return tf.keras.optimizers.SGD(0.1)


def make_pair(strategy, make_optimizer):
    g_model, g_rule = build(strategy, generator, make_optimizer)
    d_model, d_rule = build(strategy, discriminator, make_optimizer)
    return [g_model, d_model], [g_rule, d_rule]


three = list(examples.batch(71).take(3).as_numpy_iterator())


def weights_after_three(strategy):
    models, optimizers = make_pair(strategy, sgd)
    for batch, noise in three:
        x = share_out(strategy, batch)
        z = share_out(strategy, noise)
        strategy.run(pair_step, args=(models, optimizers, x, z, 71))
    return models[0].get_weights() + models[1].get_weights()


on_two = weights_after_three(two)
on_one = weights_after_three(one)
gap = largest_difference(on_two, on_one)
print("off by", about(gap, 0, 1e-5))

# %% pair-read [markdown]
# They are, up to rounding.
#
# Three equal steps say that the step is right. They are far from a trained GAN. So let's take two thousand, with Adam; this takes a while:

# %% gan
def adam():
    return tf.keras.optimizers.Adam(1e-3, beta_1=0.5)


models, optimizers = make_pair(two, adam)


@tf.function
def gan_step(images, noise):
    arguments = (models, optimizers, images, noise, 128)
    return two.run(pair_step, args=arguments)


for batch, noise in examples.batch(128).take(2000).as_numpy_iterator():
    gan_step(share_out(two, batch), share_out(two, noise))

# %% gather-text [markdown]
# What has the generator learned? We give it noise for eleven images. The replicas make six and five of them,
# and `gather` joins them, in the order of the noise:

# %% gather
noise = np.random.default_rng(1).normal(size=(11, 8)).astype("float32")
parts = two.run(models[0], args=(share_out(two, noise),))
for part in two.experimental_local_results(parts):
    print("a replica made", part.shape)
fakes = two.gather(parts, axis=0)
print("gathered      ", fakes.shape)
image_grid(255 * fakes.numpy()[..., 0], ["fake"] * 11)

# %% gather-read [markdown]
# They are grainy, and nobody would buy them. (Yours may be others.) But they have the outlines of garments, wide ones and narrow ones, and the generator has never seen a garment:
# it has only learned from the discriminator what doesn't pass for one.
#
# ## What each replica does alone
#
# The noise of a layer was the first thing that a replica does alone, where one device does it for the whole batch. It isn't the last. In each of these, a replica looks at its own part only:
#
# - **Batch normalization** takes the moments of a replica's own part. `BatchNormalization(synchronized=True)` takes those of the batch.
# - **Losses over pairs** of examples, such as contrastive ones, see no pairs across replicas. `all_gather` in the replica context brings the others in.
#   Each replica then adds up the losses of its *own* examples against all, and divides by the global batch size.
# - **Clipping.** With `clipnorm` or `global_clipnorm`, each replica clips its own gradients *before* they are added up.
#
# Skipping a step, as `mixed_float16` does, needs a closer look below.
#
# Clipping you can mend yourself. In a replica step, `context = tf.distribute.get_replica_context()` has `context.all_reduce("SUM", gradients)`, which adds up a list of gradients over the replicas,
# and `context.num_replicas_in_sync`. `tf.clip_by_global_norm(gradients, limit)` returns a clipped list, and the norm before it was clipped.
#
# **Exercise 2.** Write `clipped(gradients, limit)`, to be called in a replica step. `gradients` is a list with this replica's share of each gradient.
# Return the list that goes to `optimizer.apply`, so that all replicas together make the step of one device that clips the whole gradient to `limit`.
# Don't forget what `apply` does.

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

# %% scaled-text [markdown]
# ### Who skips the step?
#
# In float16 small gradients vanish. The cure is **loss scaling**: the loss is multiplied by a large scale, and the gradients are divided by it again.
# When a gradient becomes infinite, the scale was too large. The optimizer then skips the step, and lowers the scale.
#
# `LossScaleOptimizer` wraps an optimizer and does this; under the policy `mixed_float16` Keras wraps yours. The folded cell has a step in which one replica has an infinite gradient, and the others the gradient 1.

# %% after-scaled-step tags=["known"]
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


# %% predict-mixed [markdown]
# Keras 3 has a `LossScaleOptimizer` to skip steps with infinite gradients.
# Two replicas take a step with it, around SGD. The weight is 3 in both copies.
# Replica 0 has the gradient 1, and replica 1 an infinite one. Who skips the step?
#
# - [ ] `both` Both replicas skip it, and the weight stays 3.
#   It would be so if the optimizer looked at the gradients of all replicas, or at their sum. It looks at those of the first one only.
# - [ ] `second` Replica 1 skips it, and replica 0 takes it.
#   The copies would then differ. But the optimizer decides once for all replicas.
# - [x] `none` Neither does, and the weight becomes infinite.
#   The optimizer looks at the gradients of replica 0 only, and these are finite. So the step is taken, with the sum, which is infinite.

# %% reveal-mixed
weight = after_scaled_step(two, infinite_on=1)
if weight == 3:
    skipped_by = "both"
elif np.isinf(weight):
    skipped_by = "none"
else:
    skipped_by = "second"
reveal("own_steps-mixed", skipped_by)

# %% mixed-text [markdown]
# Does it at least work when replica 0 is the one?

# %% mixed
print("one device           w", after_scaled_step(one, 0))
print("infinite on replica 0: w", after_scaled_step(two, 0))
print("infinite on replica 1: w", after_scaled_step(two, 1))

# %% mixed-read [markdown]
# It does: $w$ stays 3, as on one device. With the infinite gradient on replica 1, SGD subtracts it, and $w$ becomes −∞.
# If just one replica overflows, and any of them with the same chance, half of the overflows are caught with two replicas, and one in eight with eight.
#
# Train in `mixed_bfloat16` instead, where the range is that of float32 and nothing has to be scaled.
# The page *What strategies get right* tries nearly 300 features of Keras under strategies.

# %% note-own-variable [markdown]
# May I write a variable in a replica step, and read it again?
#
# Yes. In a compiled function, too, a read that comes after a write in your code sees what was written.
# We tried momentum written by hand: `velocity.assign(0.5 * velocity + gradient)`, then `weight.assign_sub(0.1 * velocity)`,
# with the all-reduced gradient 10 and the weight 3 to begin with.
# On four replicas, velocity and weight went to 10 and 2 in all copies, then to 15 and 0.5, as on one device.
#
# But each replica writes its own copy. If they write different values, the copies come apart without a word:
# after `seen.assign_add(number)` with the number of the replica, the four copies were 0, 1, 2 and 3.
# To count over the replicas, make the variable with `aggregation=tf.VariableAggregation.SUM`, and call `seen.assign_add(rows)` with the rows of the replica.
# `seen.assign(seen + rows)` would add up the old value once for each replica.

# %% out-heading [markdown]
# ## What is saved?
#
# Under `fit`, a callback saves the model. With a loop of your own, you save it yourself.
# A checkpoint holds values, and knows no strategy: `restore` puts them into models that were made without one, and `assert_consumed` makes sure that no value is left over.
#
# Let's save the generator of our two replicas, together with its Adam, and restore both for a single device.

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

saved = tf.train.Checkpoint(model=models[0], adam=optimizers[0])
path = saved.save(tempfile.mkdtemp() + "/trained")

unbuilt = tf.train.Checkpoint(model=generator(), adam=adam())
status = unbuilt.restore(path)
try:
    status.assert_consumed()
    answer = "passes"
except AssertionError:
    answer = "AssertionError"
reveal("own_steps-early", answer)

# %% early-why [markdown]
# `build` calls `optimizer.build`, which makes these variables. With it, the restored generator should make the same image:

# %% restored
alone, its_adam = build(one, generator, adam)
whole = tf.train.Checkpoint(model=alone, adam=its_adam)
whole.restore(path).assert_consumed()
gap = largest_difference(alone(noise), fakes)
print("steps of Adam", int(its_adam.iterations.numpy()))
print("images differ by", about(gap, 0, 1e-5))

# %% restored-read [markdown]
# All values are in place. Adam has counted its 2,000 steps, and the images are those of the two replicas.

# %% note-seed [markdown]
# What does a checkpoint not find?
#
# `tf.train.Checkpoint` doesn't find the seed and the counter of `Dropout` in a model of Keras 3, and `assert_consumed` says nothing about what was never saved.
# A resumed run then repeats the dropout masks it began with.
# Name the variable beside the model: `tf.train.Checkpoint(model=model, seed=layer.seed_generator.state.value)`.

# %% several-heading [markdown]
# ## How many steps per execution?
#
# `fit` can take several steps in one call of a compiled function: that is `steps_per_execution`. Your own loop can do so, too.
# Until the call returns, no curve moves and no Stop button works. How much time do you get for it?
#
# The explorer measures it on two replicas, with a dense layer and one batch of garments: 20 steps, with one, ten or all of them in a call.


# %% several tags=["known"]
@tf.function
def several_steps(step, images, labels, steps):
    total = 0.0
    for _ in tf.range(steps):
        total += step(images, labels)
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
# Read your times in the explorer. On our two cores, steps of 64 images gained most: more than half of their time wasn't training at all.
# Python prepared the call, and fetched the loss. Steps of 2,048 images took longer by themselves, and gained little.
#
# So try it where a step takes about a millisecond, or less. Where it takes much longer, leave it at one, and keep your curves and the Stop button.

# %% note-profiler [markdown]
# Where does the time of a step go?
#
# Write `with tf.profiler.experimental.Profile(folder):` around a few steps, and open the folder in TensorBoard.

# %% plain-heading [markdown]
# ## The plain program
#
# [`own_steps.py`](../plain/own_steps.py) is the GAN without the course's library: on four replicas, with a distributed data set that brings the noise,
# with whole gradients that are clipped, and with a checkpoint that one device restores.

# %% takeaways [markdown]
# ## Takeaways
#
# - `fit` averages over the replicas what your `train_step` returns, unless its names are those of the metrics. Report through a metric, and feed it the losses of the single examples.
# - A replica draws and clips alone, and replica 0 decides for all whether to skip. Noise belongs in the data, clipping comes after the all-reduce, and `mixed_bfloat16` has no need to skip.
# - A checkpoint knows no strategy. Build the optimizer before you restore, and call `assert_consumed`.
#
# In {lesson:workers}, the replicas live in several processes.

# %% score
score("own_steps")
