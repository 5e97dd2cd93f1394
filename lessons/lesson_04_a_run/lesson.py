# %% [markdown]
# # 4. A run that you can watch, stop and resume
#
# A training may run for hours.
# Does it still learn?
# Can you interrupt it, and what is lost when the machine stops?
#
# After this lesson you can
#
# - watch a run on eight devices, stop and resume it, and say what is the same afterwards;
# - say what a checkpoint must hold, and choose settings without spoiling the test split;
# - evaluate on eight devices so that every review counts once;
# - say what makes eight devices faster or slower than one, and measure it.
#
# **Time:** 40 minutes.
# **You need to know:** lesson 3: the training step, padding, and why normalisation needs moving moments.
#
# > **Where this was run.** TensorFlow 2.21 on eight virtual CPUs, not on GPUs or TPUs.
# > DTensor is experimental: its names may change.

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% first-run-text [markdown]
# ## Train and watch
#
# The model of lesson 3, on eight devices, for three epochs of the stand-in:
# reviews that the course makes up, so that nothing has to be downloaded.
# The cell has a Stop button while it trains.

# %% first-run
from course_lib import data, live, models, pack, plan, to_numpy, training

tf = course_lib.start_tensorflow()
# None is the stand-in (or what COURSE_DATA says); "tfds" is the real set
SOURCE = None
reviews = data.tf_idf(data.load_imdb(SOURCE))
values = models.initial_values(seed=0)
model = models.MLP(values, plan.data_parallel(8))
run = training.train(model, reviews.train, reviews.test, epochs=3)
history = await live.watch(run)

# %% records-text [markdown]
# `training.train` returns a *run*.
# A run trains as you ask for its records: one for each step, one for each epoch.
# It draws nothing.
# `live.watch` asks for the records in a thread, collects them in a `History` and draws the curves.
# Those named *held out* show whatever examples the run was given to evaluate, here the test split.
#
# A step is the one of lesson 3: a batch of 64 reviews, split over eight devices,
# and plain SGD on the *sum* of their losses
# (`batch_size=64` and `learning_rate=1e-2`, where you give no others).
# The library packs 32 batches at a time and runs their 32 steps in one call of TensorFlow;
# then it hands out their records one by one.
# Losses are recorded per review, so that batches of different sizes can be compared.
#
# For the accuracy the next cell prints a bound.
# Another processor adds in another order, so the last bits differ, and the following steps amplify that:
# the last digits of a test accuracy, and the curves, differ from machine to machine.

# %% records
first, last = history.steps[0], history.epochs[-1]
print(len(reviews.train), run.steps_per_epoch, len(history.steps))
print(f"{first.loss:.2f}", first.examples)
print("above 0.8" if last.test_accuracy > 0.8 else "below 0.8")

# %% [markdown]
# 126 batches of 64 are 8,064 reviews: 36 are left out, other ones in each epoch.
# The first loss is above $\ln 2 \approx 0.69$,
# the loss of a model that gives both answers the same probability.
# For each review a random model is fairly sure of one answer, and it is wrong as often as right.
# At 0.9 a right answer has the loss 0.11 (0.6 less than $\ln 2$), a wrong one 2.30 (1.6 more).
#
# **Exercise 1.** The run minimises the sum of the losses of 64 reviews with a learning rate of 0.01.
# You change the loss to the *mean* over the batch.
# Which learning rate makes every update the same as before?

# %% exercise-learning-rate
# solution begin
# The gradient of the mean is the gradient of the sum divided by 64.
mean_learning_rate = 64 * 0.01
# solution end

# %% check-learning-rate [markdown]
# `mean_learning_rate`
#
# - [x] `0.64`
# - [ ] `0.01`
#   With the same rate every update is 64 times smaller: the mean is the sum divided by 64.
# - [ ] `0.00015625`
#   That goes the wrong way: the gradient of the mean is smaller, so the rate must be larger.
# - [ ] `0.08`
#   8 times the rate counts the devices, or takes a root of 64.
#   How many losses does the sum add up?
# - [ ] `64`
#   That is by how much the rate changes.
#   What is the rate then?
# - otherwise
#   Compare the gradient of the sum with the gradient of the mean over 64 reviews.

# %% choose-text [markdown]
# ## Reviews to choose by
#
# To find good settings you train several times and keep the best run.
# Best on which reviews?
# Here is the question without any training: a hundred models toss a coin for each review.
# All are tested on the same 100 reviews, and you keep the one with the highest accuracy.

# %% predict-best [markdown]
# Each of the hundred models is right for half of all reviews in the long run.
# Which accuracy does the best one show on the 100 reviews?
#
# - [ ] `0.5`
#   That is the mean of the hundred, and what to expect of the best one on other reviews.
#   But the best was chosen for its luck on these.
# - [ ] `0.55`
#   One model alone is off by about 0.05.
#   The luckiest of a hundred is off by far more.
# - [x] `0.62`
#   One model's accuracy is off by about 0.05, and the luckiest of a hundred by more than twice that.
#   The winner has learnt nothing.
# - [ ] `0.7`
#   That is four times what chance is usually off by.
#   One model reaches it once in about 25,000 tries, so that a hundred tries hardly do.
# - [ ] `0.9`
#   That would be eight times what chance is usually off by: no hundred tries get there.

# %% reveal-best
import numpy as np

random = np.random.default_rng(0)
labels = random.integers(2, size=200)
guesses = random.integers(2, size=(100, 200))
hits = guesses == labels
best = hits[:, :100].mean(axis=1).argmax()
reveal("04-best", float(hits[best, :100].mean()))

# %% winner
print("the same model on 100 other reviews:", hits[best, 100:].mean())

# %% [markdown]
# On other reviews the winner's accuracy is 0.5 on average; 0.44 is chance again.
#
# Reviews that decided between models flatter the winner.
# So a part of the *training* split is set aside to choose by: the validation split.
# You look at the test split once, at the end.
# (The first run used the test split; nothing had been chosen by then,
# except what the course had chosen before.)
#
# `hold_out` draws rows at random; the same seed draws the same rows on every machine.
# (Their texts helped to fit the tf-idf columns; their labels did not.)
# The third argument of `train` is what to evaluate on after each epoch, here the validation split.
# Its records call the results `test_loss` and `test_accuracy` all the same.
#
# The next cell chooses a learning rate by the loss on the validation split.
# For one epoch, 1e-4 is far too small.
# Where settings lie closer, loss and accuracy may prefer different ones:
# choose loss or accuracy as your criterion before you train.
#
# The models of the next cell have no plan, so that each lies on one device.
# The arithmetic is the same, but rounding differs, and tens of steps amplify that:
# the losses differ a little from those on eight devices.
# The choice between these two rates does not hang on it.

# %% validation
train_set, validation_set = reviews.train.hold_out(1_000)
print(len(train_set), len(validation_set), len(reviews.test))
losses = {}
for rate in (1e-4, 1e-2):
    options = {"epochs": 1, "learning_rate": rate}
    model = models.MLP(values)
    run = training.train(model, train_set, validation_set, **options)
    *_steps, epoch = run
    losses[rate] = epoch.test_loss
    print(f"{rate:6} {epoch.test_loss:.1f} {epoch.test_accuracy:.1f}")
print("chosen:", min(losses, key=losses.get))

# %% moments-text [markdown]
# ## Moving moments catch up
#
# Evaluation normalises with *moving moments*: a review's answer must not depend on its neighbours (lesson 3).
# Each training step replaces a moving moment $m$ by $0.9\,m + 0.1\,b$, where $b$ is the moment of its batch.
# So it is an average over the last steps, and during these steps the weights have moved on.
#
# At the end of an epoch the run therefore takes 32 more batches forward, in which the weights stand still.
# After 32 updates the old $m$ counts for $0.9^{32}$, about 3 %.
# Only then does the run evaluate and save.
# The next cell evaluates a model on one device right before and right after that, in each of three epochs.
# Its last line looks at the test split, once: the rate is chosen, and the model is trained.

# %% catch-up
import itertools

from course_lib import evaluate as evaluation

model = models.MLP(values)
run = training.train(model, train_set, epochs=3)
for epoch in (1, 2, 3):
    steps = list(itertools.islice(run, run.steps_per_epoch))
    before, (loss, _accuracy) = model.values(), evaluation.evaluate(model, validation_set)
    next(run)
    after, (caught_up, _accuracy) = model.values(), evaluation.evaluate(model, validation_set)
    same = all((before[name] == after[name]).all() for name in model.trained)
    print(epoch, "same weights:", same, " loss lower by over 0.05:", loss - caught_up > 0.05)
print("test accuracy above 0.8:", evaluation.evaluate(model, reviews.test)[1] > 0.8)

# %% [markdown]
# No weight changed by a bit.
# The effect of catching up varies:
# in this run only the third epoch's lowers the loss by more than 0.05.
# With other seeds that we tried it was another epoch, or none.
# A run that is stopped within an epoch is saved without these 32 batches:
# finish the epoch before you evaluate it.
#
# **Exercise 2.** Write `moving_average(start, values)` for a number and a list of numbers:
# what $m$ is after one update for each value, the first value first, if it was `start` before.


# %% exercise-moving-average
def moving_average(start, values):
    # solution begin
    for value in values:
        start = 0.9 * start + 0.1 * value
    return start
    # solution end


# %%
check("04-moving-average", moving_average)

# %% evaluation-text [markdown]
# ## Evaluate on eight devices
#
# With moving moments each row is evaluated for itself.
# So the rows can be split over the devices as in training.
# Here the last, smaller batch must not be dropped: every review counts once.
# So it is filled up with rows of weight 0.
# `train` evaluates in this way after each epoch.
#
# **Exercise 3.** Write `evaluate(model, features, labels)` for a model on eight devices
# and NumPy arrays of any number of reviews: the mean loss and the accuracy, two numbers.
# Every device is to be given an eighth of the rows.
#
# `pack(array, layout)` splits a NumPy array over the devices, and `to_numpy` reads a DTensor back.
# The features are filled up and packed already.
# What is left to do:
#
# 1. Fill up and pack the labels, and a weight for each row: 1 for a review, 0 for a row that only fills up.
# 2. Ask `model.evaluate_logits` for the logits of the packed rows, and compute each row's loss
#    (`tf.nn.sparse_softmax_cross_entropy_with_logits`), and whether its largest logit is that of its label.
# 3. Multiply both by the weights, add up, read the two sums back and divide by the number of reviews.
#
# Features and weights are float32, labels int64:
# multiplying a float32 DTensor by an int64 one kills the kernel in TensorFlow 2.21.

# %% exercise-evaluate
rows_layout = plan.data_parallel(8).layout(("batch", "features"))
labels_layout = plan.data_parallel(8).layout(("batch",))


def evaluate(model, features, labels):
    rest = -len(labels) % 8
    x = pack(np.pad(features, ((0, rest), (0, 0))), rows_layout)
    # solution begin
    y = pack(np.pad(labels, (0, rest)), labels_layout)
    ones = np.ones(len(labels), "float32")
    weights = pack(np.pad(ones, (0, rest)), labels_layout)
    logits = model.evaluate_logits(x)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
    hits = tf.cast(tf.equal(tf.argmax(logits, axis=1), y), tf.float32)
    sums = [tf.reduce_sum(weights * each) for each in (losses, hits)]
    return [float(to_numpy(each)) / len(labels) for each in sums]
    # solution end


# %%
check("04-evaluate", evaluate)

# %% stop-text [markdown]
# ## Stop and resume
#
# A run that is given a `CheckpointFolder` writes a checkpoint after each epoch and keeps the last three.
# A stopped run leaves one, too.
# If the machine stops, the run loses what it did since its last checkpoint: at most one epoch.
# Where an epoch takes an hour, that may be too much.
# Then `close` the run within the epoch, which saves, and go on with a new one.
# (The new one compiles its steps again.)
#
# Run the next two cells and press **Stop** before the second one ends.
# Then run only the second one again, and watch the curves go on.
# If it has already ended, no step is left, and running it again trains nothing:
# run the first one too, which makes a new folder.
# (The second argument of `live.watch` is the records from before: its curves begin with them.)
# The last line printed names the checkpoints that were kept.
#
# The folder is a temporary one: each time you run the lesson it starts anew.
# With a path of your own, such as `CheckpointFolder("checkpoints")`,
# training also resumes after a restart of the kernel.

# %% folder
import tempfile

from course_lib import CheckpointFolder, StepRecord

folder, stoppable = CheckpointFolder(tempfile.mkdtemp()), None

# %% stoppable-run
model = models.MLP(values, plan.data_parallel(8))
options = {"epochs": 3, "checkpoints": folder}
run = training.train(model, train_set, validation_set, **options)
stoppable = await live.watch(run, stoppable)
print(folder.names())

# %% close-text [markdown]
# The same in code: take 40 records, then `close` the run, as **Stop** does.
# 3,200 reviews are enough here: an epoch has 50 steps.
# Remember: steps run 32 at a time in one call of TensorFlow, ahead of their records.


# %% interrupted
def short_run(model, **changed):
    options = {"epochs": 2, "checkpoints": checkpoints, **changed}
    return training.train(model, short_set, **options)


short_set, _others = train_set.hold_out(3_900)
checkpoints = CheckpointFolder(tempfile.mkdtemp())
interrupted = short_run(models.MLP(values, plan.data_parallel(8)))
for record in itertools.islice(interrupted, 40):
    pass
interrupted.close()
saved = checkpoints.latest()

# %% predict-close [markdown]
# `close` left a checkpoint.
# Which step does its model belong to?
#
# - [ ] `32`
#   One call of 32 steps.
#   But the run does not throw away the eight steps whose records you took: it repeats them from the state
#   before the second call.
# - [x] `40`
#   The run keeps the state before each call.
#   `close` goes back to step 32 and repeats the eight steps whose records you took.
# - [ ] `50`
#   That is how far the second call had gone: to the end of the epoch.
#   A checkpoint there would skip ten steps that nobody has a record of, so `close` takes them back.
# - [ ] `64`
#   Two calls of 32 steps.
#   But an epoch has 50, so the second call ended there; and `close` takes back the steps that nobody has a
#   record of.
# - otherwise
#   You took 40 records, one a step.
#   What is there to do with steps beyond them?

# %% reveal-close
reveal("04-close", saved.step)

# %% [markdown]
# Within an epoch the model may be up to 31 steps ahead of the record that you hold; `close` takes it back.
#
# Now somebody comes back to the folder of the closed run, with another batch size in the code.

# %% predict-other-batch [markdown]
# The checkpoint is of step 40, in batches of 64.
# What does this course's `train` do with `batch_size=128`?
#
# - [ ] `counts` It goes on with step 41, in batches of 128
#   A library may do that.
#   But in batches of 128 an epoch has 25 steps: the last 640 reviews of the first epoch and 15 batches of the
#   second would be left out in silence.
# - [ ] `converts` It goes on with step 21, in batches of 128
#   40 steps of 64 reviews are 20 of 128.
#   But another batch size is another training: it would not end as either run would have ended.
#   `train` does not guess.
# - [ ] `keeps` It goes on with step 41, in batches of 64
#   Then the batch size that you wrote would be ignored in silence.
# - [x] `refused` It refuses
#   A checkpoint names the settings that it was trained with, and only the same ones go on from it, except the
#   number of epochs.
# - [ ] `afresh` It begins again with step 1
#   That would overwrite, checkpoint by checkpoint, the run that you wanted to go on with.

# %% reveal-other-batch
try:
    larger = models.MLP(values, plan.data_parallel(8))
    other = short_run(larger, batch_size=128)
    outcome = f"goes on after step {other.start_step}"
except course_lib.CourseError as error:
    outcome, refusal = "refused", error
reveal("04-other-batch", outcome)

# %% other-reviews tags=["error"]
print(refusal.cure)
try:
    training.train(larger, train_set, epochs=2, checkpoints=checkpoints)
except course_lib.CourseError as error:
    print(error.allowed)
    print(error.cure)

# %% resume-text [markdown]
# A run with the settings of the closed one may go on from its checkpoint.
# Its model must be made from the same initial values.
# The checkpoint overwrites them, but `train` compares them to know that it is the same training.
#
# A new model now continues the closed run to its end.
# Beside it, a run without a folder trains from the beginning, and nobody interrupts that.

# %% resumed
resumed = models.MLP(values, plan.data_parallel(8))
undisturbed = models.MLP(values, plan.data_parallel(8))
for each in (short_run(resumed), short_run(undisturbed, checkpoints=None)):
    steps = [record.step for record in each if isinstance(record, StepRecord)]
    print(each.start_step, len(steps), steps[-1])

# %% predict-resume [markdown]
# Every number in the variables of the resumed model is compared with the same number of the undisturbed one.
# What is the largest difference?
#
# - [x] `0.0` 0, to the last bit
#   The same values, the same reviews in the same order, the same arithmetic on the same machine: the same
#   bits.
#   (A run that began again would end at them, too.)
# - [ ] `1e-06` about 1e-6
#   That would be rounding.
#   But a checkpoint keeps every bit, and the same processor adds in the same order again.
#   Rounding would differ on another machine or under another layout.
# - [ ] `0.1` 0.1 or more
#   So it would be, or more, from other initial values or with the reviews in another order.
#   But the checkpoint holds the values, and the order follows from the seed, the epoch and the step, which it
#   holds too.

# %% reveal-resume
ended, expected = resumed.values(), undisturbed.values()
gaps = [np.abs(ended[name] - expected[name]).max() for name in expected]
reveal("04-resume", float(max(gaps)))

# %% checkpoint-content [markdown]
# The resumed run handed out 60 records of steps, the other one 100: the first 40 steps were not repeated.
#
# On the same machine, with the same code and layout, the remaining steps depend on what follows.
# A checkpoint holds it, or a digest of it:
#
# - every variable: weights, moving moments, and the slots of an optimizer that has any, such as Adam;
# - where the run stands: the step, and the sums from which the epoch's mean loss is made;
# - the settings: the optimizer and its learning rate, the seed, the batch size,
#   and what is done with the last batch.
#   The order of the reviews need not be saved: it follows from the seed and the number of the epoch;
# - digests of the training reviews and of the initial values, which are not in the checkpoint themselves.
#
# `train` refuses a run in which any of the settings or digests differs.
# Of the model it compares the name of its class, its sizes and its initial values, not its code.
# Other validation reviews are accepted: no step depends on them.
# So is another number of epochs, unless the run is already beyond it.
#
# The layouts are not in it.
# A checkpoint can be restored under another plan or on one device, with the same values to the bit.
# Another layout adds in another order: the first later steps agree up to rounding,
# and the following ones amplify the difference.
# (`tests/tf/test_training.py` tries refusals and numbers of epochs, `test_checkpoints.py` layouts.)

# %% speed-text [markdown]
# ## When are eight devices faster?
#
# Data parallelism promises a speed-up close to the number of devices: each computes an eighth of the batch.
# Below, one step is timed per call of TensorFlow, with its batch on the devices already.

# %% predict-step [markdown]
# A step with 64 reviews: which is faster, one device that computes all of them, or eight that compute 8 each?
#
# - [x] `1` one device
#   64 reviews are little work, so little can be saved.
#   What is added is eight computations to start instead of one, and all-reduces.
# - [ ] `equal` about equal: the longer time is less than 1.25 times the shorter one
#   They would be if the time that is saved equalled the time that is added.
#   But 64 reviews are little work, so little can be saved.
# - [ ] `8` eight devices
#   Each of the eight computes less, but 64 reviews are little work in any case.
#   What is added, the all-reduces and eight computations to start, takes longer than what is saved.

# %% reveal-step
from course_lib import measured, step_times
from lessons.lesson_04_a_run.explorer import BatchSizeExplorer

times = step_times.measure(64)
ratio = times.eight_devices_seconds / times.one_device_seconds
faster = "equal" if 0.8 < ratio < 1.25 else 1 if ratio > 1 else 8
reveal("04-step", faster)

# %% widget-text [markdown]
# The one device works without DTensor, here and below.
#
# What stands in the way of a speed-up:
#
# - **The all-reduce.** It adds up gradients, which are as large as the weights, whatever the batch:
#   its cost depends on the size of the model and the number of devices.
# - **What is not split**: preparing batches on the host, the optimizer's update,
#   which every device makes in full, and starting each step on each device.
# - **The slowest device**: in every step all wait for it, since the all-reduce needs its gradients.
#
# Your eight devices are virtual and share the cores of one machine.
# `setup` lets an operation use one thread, so one device has little use for a second core.
# Operations of different devices run side by side,
# but only two at a time (`setup` sets `TF_NUM_INTEROP_THREADS` to 2):
# so a speed-up much above 2 is not to be had here.
#
# How do the times change with the batch?
# From 64 to 8,192 reviews a step has 128 times the rows.
# By how much does its time grow on one device, and by how much on eight?
# Write down two numbers, then choose both batch sizes and measure.
# Press again to see how much the times vary.
#
# The cell below the widget prints what `make results` recorded on two cores:
# the milliseconds of a step on one device, then on eight.

# %% widget
BatchSizeExplorer(step_times.measure)

# %% recorded
for each in measured.load("04_batch_sizes").step_times:
    one = 1_000 * each.one_device_seconds
    eight = 1_000 * each.eight_devices_seconds
    print(f"{each.batch_size:5} reviews: {one:4.1f} {eight:4.1f}")

# %% [markdown]
# From 64 to 512 reviews, a step on eight devices takes about the same time:
# nearly all of it is a fixed cost, which does not depend on the rows.
# With more rows the step grows by less on eight devices than on one: two cores share the rows.
# So the fixed cost matters less and less.
#
# At 8,192, and now and then at 4,096, one device also pays for memory, because of how Linux hands it out.
# The page *Troubleshooting* of the book has a setting that avoids this; `make bench` measures with it too.
# In two such runs one device took 0.96 and 0.99 of the time of eight at 4,096, 1.31 and 1.41 at 8,192.
# So at 4,096 the fixed cost is about made up for without the cost of memory, too.
# That eight devices are 1.6 times as fast in the table at 8,192 is partly memory.
#
# How far eight virtual devices get depends on the cores that they share
# and on the numbers of threads that TensorFlow is given; the widget names both.
# On eight GPUs measure again.
#
# **Exercise 4.** Suppose that each device has a core of its own, unlike yours.
# A step with `rows` rows takes `per_row * rows` on one device,
# and `fixed + per_row * rows / devices` on `devices` devices.
# Write `break_even(fixed, per_row, devices)`: the number of rows for which both take the same time.
# Do not round it.


# %% exercise-break-even
def break_even(fixed, per_row, devices):
    # solution begin
    # per_row * rows = fixed + per_row * rows / devices, solved for rows
    return fixed / (per_row * (1 - 1 / devices))
    # solution end


# %%
check("04-break-even", break_even)

# %% real-text [markdown]
# ## The real reviews
#
# Before this lesson the course chose how rows are scaled and from where the weights begin.
# The figures below compare such settings on the real IMDB reviews,
# 25,000 to train on and 25,000 to test on, with the same code.
# `make results` repeats them.
#
# Four settings were trained: tf-idf rows as they are or scaled to unit length,
# with initial weights from $N(0, 1)$ or with He's standard deviation.
# Raw rows and $N(0, 1)$ are the settings of
# [TensorFlow's own tutorial](https://www.tensorflow.org/tutorials/distribute/dtensor_ml_tutorial).
# Raw rows have very unequal norms: those of long reviews are large.
# Each setting was trained for three epochs only, from three seeds.
# A seed draws the initial values and the order of the reviews.

# %% predict-seeds [markdown]
# Three runs on the real reviews, with raw tf-idf rows and He's initial values.
# They differ only in the seed.
# How far apart are the best and the worst test accuracy after three epochs?
#
# - [ ] `0.01` about 0.01
#   So close together that one run would do.
#   With unit rows and He's values it is so, with these settings it is not.
# - [ ] `0.05` about 0.05
#   With raw rows and N(0, 1) it is about that.
#   Here one seed has begun to learn, two have not.
# - [x] `0.2` ± 0.05 about 0.2
#   From 0.51, hardly better than a guess, to 0.69.
#   Whoever tries one seed may report either.

# %% reveal-seeds
from course_lib import measured

results = measured.load("04_imdb")
lowest, highest = measured.spread(results.runs["he"], "test_accuracy")[-1]
reveal("04-seeds", round(highest - lowest, 2))

# %% real-results
for name, seeded in results.runs.items():
    by_epoch = zip(*seeded.epochs, strict=True)
    groups = [" ".join(f"{seed.test_accuracy:.2f}" for seed in seeds) for seeds in by_epoch]
    print(f"{name:9}", "   ".join(groups))
measured.picture(results.runs)

# %% [markdown]
# Each group holds the test accuracies of the three seeds, after epochs 1, 2 and 3.
# The settings are named in the order of the legend: `tutorial` has raw rows and $N(0, 1)$,
# `he` He's initial values alone, `unit` rows of unit length alone, and `ours` both.
# The picture shows the first seed only.
# One seed is one try: with `he`, two of three are hardly better than a guess, at 0.51 and 0.52.
#
# The course uses `ours`, the best on these test reviews, so its figure may be slightly too good.
# Where settings lie closer, choose by a validation split.
#
# What initial values do has nothing to do with the number of devices.
# The page *Initial values* of the book has the argument, and the figures of the stand-in beside these.

# %% score
score("04")

# %% [markdown]
# ## Takeaways
#
# - On the same machine, code and layout a run can be resumed to the bit,
#   if its checkpoint holds what else the remaining steps depend on:
#   variables, position, and what decides the order of the data.
# - Choose by a validation split, and from several seeds: a choice by one can be chance.
#   Keep the test split for the end.
# - More devices pay when the work they save is more than the fixed cost they add.
#   Measure it where you will train.

# %% [markdown]
# ## Next
#
# Lesson 5 splits the weights as well
# and continues a run like this one under other layouts.
