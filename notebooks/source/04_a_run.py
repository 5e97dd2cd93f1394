# %% [markdown]
# # 4. A run that you can watch, stop and resume
#
# A training may run for hours.
# Does it still learn?
# Can you interrupt it, and what is lost when the machine stops?
#
# After this lesson you can
#
# - watch a run on eight devices, stop it, and resume it so that it ends with the same weights, bit for bit;
# - say what a checkpoint must hold, and choose settings without spoiling the test split;
# - evaluate on eight devices so that every review counts once;
# - predict when eight devices are faster than one, and measure it.
#
# **Time:** 40 minutes.
# **You need to know:** lesson 3: the training step, padding, and why normalisation needs moving moments.
#
# > **Where this was run.** TensorFlow 2.21 on eight virtual CPUs, not on GPUs or TPUs.
# > DTensor is experimental: its names may change.

# %%
LANGUAGE = "en"

import course_lib

course_lib.setup(language=LANGUAGE, devices=8)

# %% first-run-text [markdown]
# ## Train and watch
#
# The model of lesson 3, on eight devices, for three epochs of the stand-in reviews.
# The cell has a Stop button while it trains.

# %% first-run
from course_lib import data, models, training
from course_lib.specs import plan
from course_lib.watch import live

SOURCE = None  # None is the stand-in (or what COURSE_DATA says); "tfds" is the real set
reviews = data.tf_idf(data.load_imdb(SOURCE))
values = models.initial_values(seed=0)
model = models.MLP(values, plan.data_parallel(8))
run = training.train(model, reviews.train, reviews.test, epochs=3, batch_size=64, learning_rate=1e-2)
history = await live.watch(run)

# %% records-text [markdown]
# `training.train` returns a *run*.
# A run trains when it is asked for its next record: one for each step, one for each epoch.
# It draws nothing.
# `live.watch` asks for the records in a thread, collects them in a `History` and draws the curves.
#
# A step is the one of lesson 3: a batch of 64 reviews, split over eight devices,
# and plain SGD on the *sum* of their losses.
# The library packs 32 batches at a time and runs their 32 steps in one call of TensorFlow.
# Losses are recorded per review, so that batches of different sizes can be compared.

# %% records
first, last = history.steps[0], history.epochs[-1]
print(len(reviews.train), run.steps_per_epoch, len(history.steps))
print(f"{first.loss:.2f}", first.examples)
print("above 0.8" if last.test_accuracy > 0.8 else "below 0.8")

# %% [markdown]
# A model that gives both classes the same probability has the loss $\ln 2 = 0.69$;
# ours begins near it.
# For the accuracy the lesson prints a bound.
# Another processor adds in another order, so the last bits differ,
# and hundreds of steps amplify that to a percent or two: your curves may differ from those stored here.
#
# **Exercise 1.** The run minimises the sum of the losses of 64 reviews with a learning rate of 0.01.
# You change the loss to the *mean* over the batch.
# Which learning rate makes every update the same as before?

# %% exercise-learning-rate
from course_lib.exercises import check, predict, reveal, score

mean_learning_rate = 0.64  # solution

# %%
check("04-learning-rate", mean_learning_rate)

# %% validation-text [markdown]
# ## Reviews to choose by
#
# To find a good learning rate you train several times and keep the best run.
# Best on which reviews?
# Here is the question without any training: twenty models toss a coin for each review.
# All are tested on the same 200 reviews, and you keep the one with the highest accuracy.

# %% predict-best
predict("04-best-of-twenty")

# %% reveal-best
import numpy as np

random = np.random.default_rng(0)
labels, guesses = random.integers(2, size=400), random.integers(2, size=(20, 400))
accuracies = (guesses[:, :200] == labels[:200]).mean(axis=1)
best = accuracies.argmax()
print("the same model on 200 other reviews:", (guesses[best, 200:] == labels[200:]).mean().round(2))
reveal("04-best-of-twenty", float(accuracies[best].round(2)))

# %% [markdown]
# Reviews that decided between models flatter the winner.
# So a part of the *training* split is set aside to choose by: the validation split.
# The test split is evaluated when nothing is left to choose.
#
# `hold_out` draws rows at random; the same seed draws the same rows everywhere.
# The third argument of `train` is what to evaluate on after each epoch, here the validation split.
# (Its records call the results `test_loss` and `test_accuracy` all the same.)

# %% validation
train_set, validation_set = reviews.train.hold_out(1_000)
print(len(train_set), len(validation_set), len(reviews.test))
accuracies = {}
for learning_rate in (1e-5, 1e-2):
    model = models.MLP(values, plan.data_parallel(8))
    run = training.train(model, train_set, validation_set, epochs=1, learning_rate=learning_rate)
    *_steps, epoch = run
    accuracies[learning_rate] = epoch.test_accuracy
print(max(accuracies, key=accuracies.get))

# %% moments-text [markdown]
# ## Moving moments catch up
#
# Evaluation normalises with *moving moments*, so that a review's answer does not depend on its neighbours (lesson 3).
# Each training step replaces a moving moment $m$ by $0.9\,m + 0.1\,b$, where $b$ is the moment of its batch.
# So they are averages over the last steps, and in these steps the weights have moved on.
#
# At the end of an epoch the run therefore takes 32 more batches forward, without an update of the weights.
# Only then it evaluates and saves.
# The next cell stops a run between the last step of the epoch and this end, and evaluates before and after it.
