# %% [markdown]
# # Save and serve
#
# On the mesh, your model gets 87 of 100 reviews right.
# A colleague takes its weights, correct to the last bit, and builds a web page around them.
# Her page gets 49 of 100 right. She could just as well toss a coin.
#
# Serving is the last step of all. The process behind a web page has no mesh, no notebook, and none of your classes.
# So *how does the model leave the mesh*, and what has to leave with it?
#
# This lesson follows the model all the way out.
# You bring the weights onto one device, find out what happened to your colleague,
# and pack everything needed for an answer into one folder.
# Then you send it texts from a process that knows nothing but TensorFlow.
#
# **After this lesson you can**
#
# - bring a sharded checkpoint onto one device, with an error if any variable gets no value;
# - export a model together with its preprocessing, so that it takes texts;
# - test an export in the way its users will use it.
#
# **Time:** 45 minutes.
# **You need to know:** checkpoints and what is in them ({lesson:a_run}, {lesson:any_mesh}),
# and a model that is split over devices ({lesson:splitting_the_model}).

# %%
LANGUAGE = "en"

import course_lib
from course_lib import check, predict, reveal, score

course_lib.setup(language=LANGUAGE, devices=8)

# %% data-text [markdown]
# ## Onto one device
#
# First we need a trained model on a mesh.
# We use the model of {lesson:any_mesh}, on 4 × 2 devices, trained for two epochs with Adam on our invented reviews.
# The next five cells are folded; just run them.

# %% data tags=["known"]
import numpy as np

from course_lib import data, shard

tf = course_lib.start_tensorflow()
from tensorflow.experimental import dtensor

WHOLE = dtensor.UNSHARDED

reviews = data.tf_idf(data.load_imdb())
train_x = reviews.train.features
train_y = reviews.train.labels

rng = np.random.default_rng(0)
W1 = rng.normal(0, np.sqrt(2 / 1200), (1200, 48))
W2 = rng.normal(0, np.sqrt(2 / 48), (48, 2))
values = {
    "W1": W1.astype("float32"),
    "b1": np.zeros(48, "float32"),
    "W2": W2.astype("float32"),
    "b2": np.zeros(2, "float32"),
}


# %% forward tags=["known"]
def logits_of(weights, x):
    hidden = tf.nn.relu(x @ weights["W1"] + weights["b1"])
    return hidden @ weights["W2"] + weights["b2"]


def adam(weight, mean, square, gradient, step, learning_rate):
    mean = 0.9 * mean + 0.1 * gradient
    square = 0.999 * square + 0.001 * gradient**2
    # Both averages begin at zero, and are corrected for that
    correction = tf.sqrt(1 - 0.999**step) / (1 - 0.9**step)
    rate = learning_rate * correction
    weight = weight - rate * mean / (tf.sqrt(square) + 1e-7)
    return weight, mean, square


# %% step tags=["known"]
@tf.function
def train_step(model, x, y, step, learning_rate):
    with tf.GradientTape() as tape:
        logits = logits_of(model.weights, x)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            y, logits
        )
        loss = tf.reduce_mean(losses)
    gradients = tape.gradient(loss, model.weights)

    # First compute everything, then write it
    updates = {}
    for name, gradient in gradients.items():
        weight = model.weights[name]
        mean = model.means[name]
        square = model.squares[name]
        updates[name] = adam(
            weight, mean, square, gradient, step, learning_rate
        )

    for name, (weight, mean, square) in updates.items():
        model.weights[name].assign(weight)
        model.means[name].assign(mean)
        model.squares[name].assign(square)

    hits = tf.cast(tf.argmax(logits, axis=1) == y, tf.float32)
    return loss, tf.reduce_mean(hits)


# %% model tags=["known"]
def place(array, layout):
    if layout is None:
        return tf.constant(array)
    return shard(array, layout)


def variable(array, layout):
    if layout is None:
        return tf.Variable(array)
    return dtensor.DVariable(shard(array, layout))


class Model(tf.Module):
    def __init__(self, layouts):
        super().__init__()
        self.weights = {}
        self.means = {}
        self.squares = {}
        for name, value in values.items():
            zeros = np.zeros_like(value)
            layout = layouts.get(name)
            self.weights[name] = variable(value, layout)
            self.means[name] = variable(zeros, layout)
            self.squares[name] = variable(zeros, layout)


# %% trained tags=["known"]
mesh = dtensor.create_mesh(
    [("batch", 4), ("model", 2)], device_type="CPU"
)
layouts = {
    "x": dtensor.Layout(["batch", WHOLE], mesh),
    "y": dtensor.Layout(["batch"], mesh),
    "W1": dtensor.Layout([WHOLE, "model"], mesh),
    "b1": dtensor.Layout(["model"], mesh),
    "W2": dtensor.Layout(["model", WHOLE], mesh),
    "b2": dtensor.Layout([WHOLE], mesh),
}

trained = Model(layouts)
step = tf.Variable(0, dtype=tf.int64)
steps_per_epoch = len(train_y) // 64
while step < 2 * steps_per_epoch:
    batch = int(step) % steps_per_epoch
    rows = slice(64 * batch, 64 * batch + 64)
    x = place(train_x[rows], layouts["x"])
    y = place(train_y[rows], layouts["y"])
    number = np.float32(int(step) + 1)
    train_step(trained, x, y, number, np.float32(3e-3))
    step.assign_add(1)

# %% on-mesh-text [markdown]
# How good is it? We run it on the 2,000 test reviews, which it has never seen, with all eight devices sharing the work.
# For each review, the model gives the probability that it is positive. In our code, this probability is called `good`:

# %% on-mesh
from course_lib import about, show, to_numpy

test_x = reviews.test.features
test_y = reviews.test.labels


def accuracy_of(good):
    return np.mean((good > 0.5) == (test_y == 1))


logits = logits_of(trained.weights, place(test_x, layouts["x"]))
probabilities = tf.nn.softmax(to_numpy(logits)).numpy()
on_mesh = probabilities[:, 1]  # column 1: good
print("accuracy", about(accuracy_of(on_mesh), 0.80, 0.92))

show(trained.weights["W1"])

# %% on-mesh-read [markdown]
# There are your 87 of 100. And here is the problem: no device has the whole `W1`.
# Four of them hold its left half, and four its right half.
#
# A checkpoint is the way out.
# As you saw in {lesson:any_mesh}, it stores each half once, along with where it belongs, and records nothing about the mesh.
# So a program without any mesh can read it, too.
# We save the model and the step number:

# %% checkpoint
import tempfile
from pathlib import Path

folder = Path(tempfile.mkdtemp())
checkpoint = tf.train.Checkpoint(model=trained, step=step)
path = checkpoint.write(str(folder / "trained"))

# %% one-text [markdown]
# The weights are variables on a mesh, and `step` is an ordinary one. A checkpoint takes both.
#
# Now we read the weights into ordinary variables, on one device.
# How many of the numbers come out different?

# %% one
no_mesh = {}
one = Model(no_mesh)  # ordinary variables
tf.train.Checkpoint(model=one).read(path)

for name, weight in one.weights.items():
    on_the_mesh = to_numpy(trained.weights[name].value())
    print(name, np.sum(weight.numpy() != on_the_mesh), "differ")

# %% one-read [markdown]
# No number differs. TensorFlow has put the shards together, and every bit is right. That was easy!
#
# Perhaps too easy. The program that serves a model is usually not the one that trained it.
# Suppose that somebody else's program calls its model `network` instead of `model`:

# %% other
other = Model(no_mesh)
tf.train.Checkpoint(network=other).read(path)

changed = 0
for name, weight in other.weights.items():
    changed += np.sum(weight.numpy() != values[name])
print(changed, "numbers changed")

probabilities = tf.nn.softmax(logits_of(other.weights, test_x))
good = probabilities[:, 1].numpy()
print("accuracy", about(accuracy_of(good), 0.40, 0.60))

# %% other-read [markdown]
# Not a single number was restored. The names didn't match: the file has `model/weights/W1`,
# and this program asked for `network/weights/W1`.
# It kept its random initial values, and would answer every user with them.
# Is that what happened to your colleague? It can't be, because her weights are right. We'll get to her.
#
# TensorFlow did log fourteen warnings here, which the first cell of our notebooks hides.
# But in the log of a server, among a thousand other lines, who would see them?
#
# So don't wait for warnings. Keep the object that `read` returns, and call `assert_existing_objects_matched`, as in {lesson:a_run}.
# A server then refuses to start if any existing variable got no value:

# %% refused tags=["error"]
from course_lib import last_line

unmatched = tf.train.Checkpoint(network=other).read(path)
try:
    unmatched.assert_existing_objects_matched()
except AssertionError as error:
    print(last_line(error).split(". ")[0])

# %% refused-read [markdown]
# The twelve are the four weights and the eight slots of `other`.

# %% note-warnings [markdown]
# What are the fourteen warnings, and when do they come?
#
# One says that something in the file wasn't restored. Each of the other thirteen names one such value: the step, four weights, and Adam's eight slots.
#
# TensorFlow warns only once both the `Checkpoint` and the object that `read` returned are gone.
# Our cell kept neither, so the warnings came at once. A program that keeps one of them is warned much later, or never.

# %% note-lazy [markdown]
# Which variables are *existing*?
#
# *Existing* variables are those already created when you call it. A Keras model that hasn't been built has no weights yet,
# and neither does a module that creates them on its first call.
# With wrong names in the file, the assertion passes anyway, and the first call makes random weights.
# So build such a model first. Then read, and assert.

# %% note-consumed [markdown]
# What about `assert_consumed`?
#
# `assert_consumed` is stricter: it also wants everything in the file to be used.
# Our good restore would fail it, because it left out the step.
# That is too strict for a server, which needs neither a step nor Adam's slots.
# If you leave something out on purpose, use `assert_existing_objects_matched`.
#
# But it wants a value for all twelve variables of `Model(no_mesh)`, so it rejects a file with only the four weights.
# To read such a file, build an object with just those four.
#
# Neither of the two compares shapes. With ordinary variables `read` does, and raises an error if one is wrong.
# For variables on a mesh, see {lesson:any_mesh}.

# %% note-two-meshes [markdown]
# Can one checkpoint hold models on two meshes?
#
# No. If you try to save a model on 4 × 2 and a second model on a mesh of eight in one `tf.train.Checkpoint`,
# `write` raises an error. DTensor saves all its variables in one operation, whose inputs must share a mesh.
# So write one checkpoint for each mesh. Ordinary variables may be in any of them.

# %% weights-task [markdown]
# **Exercise 1.** Write the part of a server that loads the weights.
# `weights_from(path)` returns a dictionary of ordinary variables or arrays, with the keys `W1`, `b1`, `W2` and `b2`.
# The checkpoint at `path` was written like the one above, with `tf.train.Checkpoint(model=..., step=...)`.
# The model may have been on one device or on any mesh.
# Every file also holds Adam's slots, so your function can rely on them.
#
# If the file lacks one of the four weights, raise an error of any kind.
# The check also tries files with a misnamed weight, and a file that has no `model` at all.


# %% exercise-weights
def weights_from(path):
    # solution begin
    model = Model({})
    status = tf.train.Checkpoint(model=model).read(path)
    status.assert_existing_objects_matched()
    return model.weights
    # solution end


# %%
check("save_and_serve-weights", weights_from)

# %% rows-heading [markdown]
# ## What are 1,200 numbers?
#
# The weights are off the mesh, and every bit is right.
# So are your colleague's, yet her page does no better than a coin toss.
# What is missing? Here is the whole path from text to answer:

# %% path
from lessons.layouts.save_and_serve.picture import path_picture

path_picture()

# %% path-read [markdown]
# The first arrow is missing. Your model has never seen a text:
# it was trained on rows of 1,200 numbers that `data.tf_idf` made from the reviews.
# A server has to make the same rows, so let's look at how that is done. Keras has a layer for it:

# %% vectorizer
texts = data.load_imdb()
train_texts = list(texts.train.texts)
test_texts = list(texts.test.texts)


def make_vectorizer():
    return tf.keras.layers.TextVectorization(
        1200, output_mode="tf_idf", pad_to_max_tokens=True
    )


vectorizer = make_vectorizer()
vectorizer.adapt(
    tf.data.Dataset.from_tensor_slices(train_texts).batch(2048)
)

# %% vectorizer-read [markdown]
# `adapt` reads the training reviews, and keeps their 1,199 most frequent words: the **vocabulary**.
# The most frequent one gets column 1, the next one column 2, and so on. Column 0 is for all words that aren't in the vocabulary.
#
# Given a text, the layer counts how often each word occurs, and multiplies each count by a factor.
# This factor is the word's *inverse document frequency* (idf): the more reviews a word occurs in, the smaller it is.
# The product is the word's **tf-idf**. Then we scale the row to length 1 ourselves, in `to_rows`:


# %% rows
def to_rows(vectorizer, texts):
    return tf.math.l2_normalize(vectorizer(texts), axis=1)


words = vectorizer.get_vocabulary()
one_text = tf.constant(["Wonderful! A wonderful story"])
row = to_rows(vectorizer, one_text)[0]
for column in np.flatnonzero(row):
    print(f"{column:4} {words[column]:10} {row[column]:.2f}")

# %% rows-read [markdown]
# Three different words, three numbers; the other 1,197 are zero.
# *Wonderful* occurs twice and has a large factor.
# *A* and *story* occur once each, but *a* is the more common word, so its number is smaller.
#
# Do raw texts get the same answers as the ready-made rows did on the mesh? Try it with the weights on one device:


# %% texts
def good_of(vectorizer, weights, texts):
    rows = to_rows(vectorizer, tf.constant(texts))
    probabilities = tf.nn.softmax(logits_of(weights, rows))
    return probabilities[:, 1].numpy()


good = good_of(vectorizer, one.weights, test_texts)
print("accuracy", about(accuracy_of(good), 0.80, 0.92))
print("difference", about(np.abs(good - on_mesh).max(), 0, 1e-4))

# %% texts-read [markdown]
# The answers are the same, up to rounding. With the right rows, one device answers as well as eight.
#
# So what did your colleague do? She had your weights and the code for the vectorizer, but not your training reviews.
# She called `adapt` with other reviews instead.
#
# Let's do the same, with the test reviews instead of hers. They come from the same source.
# How many words do the two vocabularies have in common?

# %% colleague
hers = make_vectorizer()
hers.adapt(tf.data.Dataset.from_tensor_slices(test_texts).batch(2048))
her_words = hers.get_vocabulary()

common = set(words[1:]) & set(her_words[1:])
print(len(common), "of 1199 words are in both")

# %% predict-columns [markdown]
# Two vectorizers give each of their 1,199 words a column, the most frequent word first.
# One was adapted to 8,100 reviews. There the word in column 500 occurs 309 times, and so do the words in columns 501 and 502.
# The other one was adapted to 2,000 other reviews from the same source. The two have 1,049 words in common.
# How many of these have the same column in both?
#
# - [ ] `1049` all of them
#   For that, both collections of reviews would have to put all words in the same order.
# - [ ] `525` about half of them
#   The first few words keep their places, because *the* is far more frequent than *a*.
#   But 500 columns further down, neighbors occur equally often, and chance decides which of them comes first.
# - [x] `40` very few of them
#   Only the commonest words differ enough in frequency to keep their rank.
#   Further down, neighbors occur almost equally often. Count in other reviews, and a word easily moves up or down
#   ten places, which shifts every word it passes.

# %% reveal-columns
same_column = 0
for column in range(1, 1200):
    if words[column] == her_words[column]:
        same_column += 1
reveal("save_and_serve-columns", same_column)

# %% columns-text [markdown]
# Only 40 of 1,049 keep their column: fewer than one in twenty-five. And behind each column there is a row of `W1` that was trained on that column's word.
# Here are a few rows, each with the word on which it was trained, and the word that her vectorizer gives it:

# %% columns
print("row of W1   trained on     gets from her")
for column in [1, 2, 3, 10, 100, 500, 1000]:
    print(f"{column:9}   {words[column]:14} {her_words[column]}")

# %% colleague-asked-text [markdown]
# In the first four lines the words agree. But row 100 learned what *alice* tells you about a film, and now it gets *eva*.
# How accurate are your weights on her rows?

# %% colleague-asked
good = good_of(hers, one.weights, test_texts)
print("accuracy", about(accuracy_of(good), 0.40, 0.60))

# %% colleague-read [markdown]
# There is the coin. Nearly every row of `W1` gets the number for a word that it wasn't trained on.
# But her rows have 1,200 columns, just as they should, so every shape fits, and nothing complains.
#
# The weights mean nothing without the vocabulary. So *the vectorizer has to leave together with the weights.*
# Can it simply go into the checkpoint? Let's try:

# %% both
both = tf.train.Checkpoint(model=one, vectorizer=vectorizer)
path_of_both = both.write(str(folder / "both"))

# %% lost-text [markdown]
# TensorFlow wrote this checkpoint without complaint. Now let's restore both, with the assertion:

# %% lost
empty = make_vectorizer()
restored = tf.train.Checkpoint(model=Model(no_mesh), vectorizer=empty)
status = restored.read(path_of_both)
status.assert_existing_objects_matched()
print("all variables restored")

# %% first-text [markdown]
# The assertion passes. Then the first text arrives:

# %% first tags=["error"]
try:
    empty(one_text)
except tf.errors.OpError as error:
    print(last_line(error))

# %% first-read [markdown]
# The *table* in this message is the vocabulary. A checkpoint of this layer holds the idf of each column, but not its word.
# And the assertion checks only variables, so it didn't notice. At least this mistake is loud.
#
# We need something that holds more than variables.
#
# ## One folder with everything
#
# A **SavedModel** is a folder that holds variables, tables and *functions*, as graphs.
# Whoever loads it needs TensorFlow, but none of your Python code.
#
# We'll export the whole path from text to answer. One object holds everything it needs.
# Its functions say in advance what they take, in an `input_signature`: `of_texts` takes any number of texts, and `of_rows` any number of rows.


# %% server
class ReviewServer(tf.Module):
    def __init__(self, vectorizer, weights):
        super().__init__()
        self.vectorizer = vectorizer
        self.weights = weights

    @tf.function(
        input_signature=[tf.TensorSpec([None, 1200], name="rows")]
    )
    def of_rows(self, rows):
        probabilities = tf.nn.softmax(logits_of(self.weights, rows))
        return {"good": probabilities[:, 1]}

    @tf.function(
        input_signature=[tf.TensorSpec([None], tf.string, name="texts")]
    )
    def of_texts(self, texts):
        return self.of_rows(to_rows(self.vectorizer, texts))


# %% server-text [markdown]
# For each `input_signature`, TensorFlow traces one graph, which accepts exactly such inputs.
#
# A function saved under a name is a **signature**. A request that names no signature gets `serving_default`:


# %% export
def export(server, path):
    signatures = {
        "serving_default": server.of_texts,
        "rows": server.of_rows,
    }
    tf.saved_model.save(server, str(path), signatures)


models = folder / "models" / "reviews"
export(ReviewServer(vectorizer, one.weights), models / "1")

# %% wonderful-text [markdown]
# Did the vocabulary come along this time? Look for one of its words, *wonderful*, in every file of the folder:

# %% wonderful
for file in sorted(models.rglob("*")):
    if file.is_file():
        has_word = b"wonderful" in file.read_bytes()
        print(file.relative_to(folder), has_word)

# %% wonderful-read [markdown]
# The vocabulary came along: the words are in `saved_model.pb`, together with the graphs.
# The weights are in `variables`, which looks like a checkpoint, because it is one.
#
# (The folder `1` in `reviews` is the version of the model.)
#
# Load the folder, and call the signature as a server does, with named tensors in and named tensors out:

# %% signature
served = tf.saved_model.load(str(models / "1"))
signature = served.signatures["serving_default"]
answer = signature(texts=one_text)
for name, tensor in answer.items():
    print(name, about(tensor[0], 0.5, 1))

# %% signature-read [markdown]
# A text goes in under the name `texts`, and a probability of 0.98 comes out under the name `good`.

# %% note-inputs [markdown]
# What if a model takes several inputs?
#
# Give every `TensorSpec` a `name`. A request sends the tensor under this name.
# Without a `name`, the input gets the name of the argument.
#
# In a dictionary of inputs, never leave it out:
#
# ```python
# @tf.function(input_signature=[{
#     "plus": tf.TensorSpec([None, 40], name="plus"),
#     "minus": tf.TensorSpec([None, 40], name="minus"),
# }])
# def difference(self, inputs):
#     return {"y": inputs["plus"] - inputs["minus"]}
# ```
#
# Now you can call the signature with a dictionary that has the same keys: `signature(**inputs)`.
# If you leave out the `name`s, the keys are lost.
# The tensors are then called `inputs` and `inputs_1`, after the argument, in the alphabetical order of the keys.
# So `inputs` is `minus`! Both have the same shape, and nothing complains if you swap them: we got −4 for 5 − 1.
# To see the names, run `saved_model_cli show` with `--dir`, `--tag_set serve` and `--signature_def serving_default`.
#
# Take care with whole numbers from JSON, too: `tf.constant` makes them int32, and a signature of floats refuses them.
# Write `tf.constant(numbers, tf.float32)`.

# %% note-forgetful [markdown]
# What if a function uses something that isn't in the object?
#
# Suppose that `of_rows` took `one.weights`, the variable of the notebook, instead of `self.weights`.
# Then `tf.saved_model.save` raises an error that speaks of an *untracked* resource.
# TensorFlow saves what it can reach from the object through attributes, and that variable is out of reach.
# A NumPy array outside the object does no harm: its numbers are saved in the graph, as a constant.
#
# What it can't see is Python. A function that calls `tf.py_function` can be saved, and answers in the process that made it.
# In any other process it fails. So test an export in another process.

# %% shards-heading [markdown]
# ## Straight from the shards
#
# Did we have to go through one device? `tf.saved_model.save` takes variables on a mesh, too.
# Version 2 of our model comes straight from the eight devices:

# %% shards
export(ReviewServer(vectorizer, trained.weights), models / "2")
served = tf.saved_model.load(str(models / "2"))

# %% predict-layout [markdown]
# A model on a mesh of eight devices was exported with `tf.saved_model.save`.
# Its weight `W1` was split: four devices had the left half of it, and four the right half.
# A process with eight devices loads the export with `tf.saved_model.load`.
# Where is `W1` then?
#
# - [ ] `halves` in halves on the eight devices, as before
#   For that, the folder would have to say which mesh there was.
#   Its variables are stored as in a checkpoint, which knows nothing of a mesh.
# - [ ] `everywhere` whole on each of the eight devices
#   That takes a mesh as well, and nobody has given one to `load`.
# - [x] `one` whole on one device
#   The variables are stored as in a checkpoint, without a mesh, and `load` was given none either.
#   So it makes an ordinary variable, and puts the halves of `W1` together.

# %% reveal-layout
W1 = served.weights["W1"].value()
if not dtensor.is_dtensor(W1):
    where = "one"
elif dtensor.unpack(W1)[0].shape == (1200, 48):
    where = "everywhere"
else:
    where = "halves"
reveal("save_and_serve-layout", where)

# %% layout
print("on a mesh:", dtensor.is_dtensor(W1), W1.shape)
good = served.of_texts(tf.constant(test_texts))["good"].numpy()
print("difference", about(np.abs(good - on_mesh).max(), 0, 1e-4))

# %% layout-read [markdown]
# The answers are those of the mesh, up to rounding. But the mesh and the layouts stayed behind:
# `W1` is an ordinary variable of full size, on one device.
#
# For our 230 kB that is just what we want. But what about the matrix of {lesson:splitting_the_model}, which doesn't fit on one device?
# `tf.saved_model.load` won't work for that one. To serve so large a model, build a mesh and restore the shards onto it, as in {lesson:any_mesh}, from a checkpoint or from the one in the export, `variables/variables`.

# %% note-versions [markdown]
# Can several devices share the work of a loaded export?
#
# Yes. Call the signature `rows` with rows that are split over a mesh, and the answers come back split, the same up to rounding.
# The loaded weights are ordinary variables, which DTensor treats as replicated: each device uses all the weights on its own part of the rows. So they share the work, but save no memory.
#
# TensorFlow's [tutorial](https://www.tensorflow.org/tutorials/distribute/dtensor_ml_tutorial), written for 2.9,
# says that a loaded function takes ordinary tensors and fully replicated DTensors.
# In 2.21 the signature of rows takes split ones as well. We tried that on virtual CPUs, not on GPUs.
#
# The signature of texts refuses every DTensor, even a replicated one:
# it "got a regular tensor for input 5 (shape [1200]) but was expecting a DTensor".
# These 1,200 numbers are the idf factors, an ordinary tensor that isn't on the mesh.
# So make the rows first, on one device, and then split *them*.

# %% outside-heading [markdown]
# ## Call it from outside
#
# In this process it was bound to work: your classes, your variables and eight devices are all here.
# A server has nothing but the folder. So call it from another process.
# TensorFlow comes with a program for that. In a terminal, you type this, with the path of your export after `--dir`:
#
# ```sh
# saved_model_cli run --dir models/reviews/1 \
#   --tag_set serve --signature_def serving_default \
#   --input_exprs "texts=['A wonderful film', 'A boring film']"
# ```
#
# For us, it gave the wonderful film 0.99 and the boring one 0.017.
#
# Now comes the test that would have warned your colleague: 2,000 reviews whose labels we know.
# The program that answers is short. It gets the name of the folder, reads texts, and writes a probability for each.
# Texts and answers travel as JSON:

# %% program-file tags=["known"]
Path("ask.py").touch()

# %% program
# %%writefile ask.py
# Answers the texts on its input: python ask.py FOLDER
import json
import sys

import tensorflow as tf

served = tf.saved_model.load(sys.argv[1])
signature = served.signatures["serving_default"]
texts = json.load(sys.stdin)
answer = signature(texts=tf.constant(texts))
print(json.dumps(answer["good"].numpy().tolist()))


# %% ask-function-text [markdown]
# We start this program with the texts as its input, and read what it prints:

# %% ask-function
import json
import subprocess
import sys


def ask(path, texts):
    done = subprocess.run(
        [sys.executable, "ask.py", str(path)],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=True,
    )
    return np.array(json.loads(done.stdout))


# %% ask-text [markdown]
# Users come one at a time, but a server may put several requests into one batch.
# So send all reviews together, and then the first one alone:

# %% ask
together = ask(models / "1", test_texts)
alone = ask(models / "1", test_texts[:1])

print("accuracy", about(accuracy_of(together), 0.80, 0.92))
difference = np.abs(together - on_mesh).max()
print("difference from the mesh", about(difference, 0, 1e-4))
difference = abs(alone[0] - together[0])
print("difference alone", about(difference, 0, 1e-5))

# %% ask-read [markdown]
# A process without a mesh is as accurate as the mesh, and its answers agree up to rounding.
# A review also gets the same answer alone as among 2,000 others.
# Our model handles each row independently, so we expected that. Test it anyway, because some models don't.

# %% note-coupled [markdown]
# Which models answer differently when a review comes alone?
#
# Those in which the rows of a batch depend on each other. With batch normalization ({lesson:coupled_rows}), export the moving mean and variance.
#
# Suppose that the export normalizes with the mean of the current batch instead.
# In a batch of one review, that mean is the review's own value. Subtract it, and everything becomes 0.
# So *every review gets the same answer.*
# In the model of {lesson:coupled_rows}, all that is left after these zeros is the last bias.
# In a large batch, the same export can look perfectly healthy.

# %% server-task [markdown]
# **Exercise 2.** A web page should say `good` or `bad`, and how sure it is. Write the class `Labeller`.
# `Labeller(vectorizer, weights)` gets a vectorizer and a dictionary of weights, as `ReviewServer` does.
# Its `__call__`, a `tf.function` with an `input_signature`, takes any number of texts, and returns a dictionary with two tensors.
# `"label"` has for each text the string `"good"` or `"bad"`, whichever is more probable, and `"probability"` has the probability of that label.
# The rows have length 1, as in training.
#
# Column 1 of the logits is for good reviews, and `tf.gather(["bad", "good"], numbers)` turns numbers into strings.
# The check exports an object of your class, and calls it in another process. One of its texts is empty.


# %% exercise-server
class Labeller(tf.Module):
    def __init__(self, vectorizer, weights):
        super().__init__()
        # solution begin
        self.vectorizer = vectorizer
        self.weights = weights
        # solution end

    # solution begin
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def __call__(self, texts):
        rows = to_rows(self.vectorizer, texts)
        probabilities = tf.nn.softmax(logits_of(self.weights, rows))
        number = tf.argmax(probabilities, axis=1)
        return {
            "label": tf.gather(["bad", "good"], number),
            "probability": tf.reduce_max(probabilities, axis=1),
        }

    # solution end


# %%
check("save_and_serve-server", Labeller)

# %% predict-unknown [markdown]
# A server turns each text into a row of 1,200 numbers.
# Column 0 counts all the words outside the vocabulary; every other column counts one word.
# Each column is multiplied by a number of its own, and the row is scaled to length 1.
# Two reviews are in Finnish. One says *hieno*, splendid, 40 times; the other one says *huono*, bad, 90 times.
# Neither word is in the vocabulary.
# What does the server answer?
#
# - [x] `same` the same to both, and not 0.5
#   In both rows everything but column 0 is zero. Scaled to length 1, each becomes a 1 followed by zeros, so the two rows are equal.
#   The answer isn't 0.5, because the biases were trained, and so was the row of `W1` for column 0.
# - [ ] `different` a different probability to each
#   40 words and 90 words give different counts. But the rows are scaled to length 1.
# - [ ] `half` exactly 0.5 to both, since it knows nothing of them
#   It would if both logits were equal. But the biases shift them for every text, and column 0 has a row of `W1` like every other.
# - [ ] `error` an error
#   A signature of texts takes any text.

# %% reveal-unknown
praise = "hieno " * 40
blame = "huono " * 90
first, second = served.of_texts(tf.constant([praise, blame]))["good"]
if abs(first - second) > 1e-5:
    finnish = "different"
elif abs(first - 0.5) < 1e-5:
    finnish = "half"
else:
    finnish = "same"
reveal("save_and_serve-unknown", finnish)

# %% unknown-text [markdown]
# And what does it say to somebody who presses the button without having typed a word?

# %% unknown
answers = served.of_texts(tf.constant([praise, ""]))["good"]
for label, answer in zip(["hieno", "empty"], answers):
    print(label, about(answer, 0.35, 0.49))

# %% unknown-read [markdown]
# An empty text gets 0.42. Its row is all zeros, so the answer comes from the biases alone, by way of `W2`.
# A review without any known word gets 0.43. So all the unknown words change it by only 0.01.
#
# Neither number has anything to do with a film.
# An export that works has an answer to everything, and it won't tell you that it didn't understand a word.

# %% note-finnish [markdown]
# What does it make of whole sentences in Finnish?
#
# Whole sentences fare no better. *Tämä elokuva on hieno* means that this film is splendid, and *Näyttelijä on huono* that the actor is bad.
# *On*, which means *is*, happens to be an English word, too. It is in the vocabulary, and our model takes it for a good sign.
# Each sentence has it once, but the first has three unknown words besides, and the second only two.
# So *on* weighs more in the second row. When we asked, the bad actor beat the splendid film.

# %% note-serving [markdown]
# How do I start TensorFlow Serving?
#
# We haven't tried this, because the course was written on a machine without Docker.
# According to the documentation, these two commands start a server on the folder `models/reviews`, and send it a review.
# Replace `$PWD/models/reviews` with the path that `print(models)` shows:
#
# ```sh
# docker run -p 8501:8501 -e MODEL_NAME=reviews \
#   -v "$PWD/models/reviews:/models/reviews" tensorflow/serving
#
# curl -d '{"inputs": {"texts": ["A wonderful film"]}}' \
#   http://localhost:8501/v1/models/reviews:predict
# ```
#
# It serves the highest version it finds in the folder, and switches to `2` as soon as that appears.
# It calls `serving_default` unless the request names another signature, with `"signature_name"`.
# [Its guide](https://www.tensorflow.org/tfx/serving/docker) has the rest.

# %% widget-text [markdown]
# ## Your turn
#
# Type a review in English, and try to fool the model. It only counts words. What does it make of *not good*, of irony,
# or of a sad story in a good film?

# %% widget
from lessons.layouts.save_and_serve.explorer import ReviewExplorer


def ask_here(texts):
    return served.of_texts(tf.constant(texts))["good"].numpy()


ReviewExplorer(ask_here)

# %% note-real [markdown]
# And on the real reviews?
#
# Our reviews are invented. So we trained a model with batch normalization on the 25,000 real ones of IMDB.
# We restored it on one device, split it over a mesh of 4 × 2, and exported it from both.
# Both exports, called from another process, gave each of the 25,000 test reviews
# the label that the model itself gave, and got about 86 % right. The page *Measured results* has the figures.

# %% plain-heading [markdown]
# ## The plain program
#
# [`save_and_serve.py`](../plain/save_and_serve.py) is this lesson in one file that needs only TensorFlow and NumPy.
# It saves a model on 4 × 2 devices, restores it on one, and exports it from one device and from the shards.
# A second process loads the export and calls its signature. If its answers differ by 1e-5 or more, the program ends with an error.
# Its weights are random, not trained.

# %% takeaways [markdown]
# ## Takeaways
#
# - A process without a mesh can read a sharded checkpoint. But make the variables first, and call `assert_existing_objects_matched` on what `read` returns, because a restore that matches nothing raises no error.
# - Weights mean nothing without the vocabulary that they were trained with. Export the preprocessing together with the model, in one SavedModel.
# - Test an export where it will run: in another process, through its signature, with labeled texts, alone and together.
#
# {Lesson:from_scratch} tests the optimizer, which you have taken on trust so far.

# %% score
score("save_and_serve")
