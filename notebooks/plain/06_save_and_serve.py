"""Restore a sharded checkpoint on one device, export it to take texts, ask it in another process.

Run it: python 06_save_and_serve.py FOLDER
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor

PROGRAM = """import json, sys
import tensorflow as tf

served = tf.saved_model.load(sys.argv[1])
for line in sys.stdin:
    predicted = served(tf.constant(json.loads(line)))["probabilities"]
    print(json.dumps(predicted.numpy().tolist()))
"""
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 8)
mesh = dtensor.create_mesh([("batch", 4), ("model", 2)], device_type="CPU")
WHOLE = dtensor.UNSHARDED
SPECS = {"W1": [WHOLE, "model"], "b1": ["model"], "W2": ["model", WHOLE], "b2": [WHOLE]}
SHAPES = {"W1": (8, 4), "b1": (4,), "W2": (4, 2), "b2": (2,), "mean": (4,), "variance": (4,)}
SPECS |= {"mean": ["model"], "variance": ["model"]}
LAYOUTS = {name: dtensor.Layout(spec, mesh) for name, spec in SPECS.items()}


def make_variable(value, layout=None):
    return tf.Variable(value) if layout is None else dtensor.DVariable(dtensor.copy_to_mesh(value, layout))


class MLP(tf.Module):
    def __init__(self, values, layouts=None):
        super().__init__()
        for name, value in values.items():
            setattr(self, name, make_variable(value, layouts and layouts[name]))

    def hidden(self, x):
        return tf.nn.relu(x @ self.W1 + self.b1)

    def logits(self, hidden, mean, variance):
        return tf.nn.batch_normalization(hidden, mean, variance, None, None, 1e-5) @ self.W2 + self.b2


class Classifier(tf.Module):
    def __init__(self, vectorizer, model):
        super().__init__()
        self.vectorizer, self.model = vectorizer, model

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def __call__(self, texts):
        hidden = self.model.hidden(tf.math.l2_normalize(self.vectorizer(texts), axis=1))
        logits = self.model.logits(hidden, self.model.mean, self.model.variance)  # never a batch's own
        return {"probabilities": tf.nn.softmax(logits)}


def ask(path, *requests):
    lines = "\n".join(json.dumps(texts) for texts in requests)
    command = [sys.executable, "-c", PROGRAM, str(path)]
    done = subprocess.run(command, input=lines, stdout=subprocess.PIPE, text=True, check=True)
    return [np.array(json.loads(line)) for line in done.stdout.splitlines()]


folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
texts = ["a good film", "a bad film", "good story, good film", "bad story", "a film"]
vectorizer = tf.keras.layers.TextVectorization(8, output_mode="tf_idf", pad_to_max_tokens=True)
vectorizer.adapt(texts)
random = np.random.default_rng(0)  # values such as a training leaves: lesson 4 trains
values = {name: random.uniform(0.5, 1.5, shape).astype("float32") for name, shape in SHAPES.items()}
sharded = MLP(values, LAYOUTS)
tf.train.Checkpoint(model=sharded, step=tf.Variable(64)).save(str(folder / "checkpoint"))
restored = MLP({name: np.zeros_like(value) for name, value in values.items()})
status = tf.train.Checkpoint(model=restored).restore(tf.train.latest_checkpoint(folder))
status.assert_existing_objects_matched()  # without it a wrong name restores nothing, in silence
assert all((getattr(restored, name).numpy() == value).all() for name, value in values.items())

one, eight = Classifier(vectorizer, restored), Classifier(vectorizer, sharded)
for name, classifier in {"restored": one, "from_shards": eight}.items():  # the export needs no gathering
    path = str(folder / name)
    tf.saved_model.save(classifier, path, signatures={"serving_default": classifier.__call__})
    together, alone = ask(path, texts, texts[:1])
    assert np.abs(together - one(tf.constant(texts))["probabilities"]).max() < 1e-5
    assert np.abs(alone[0] - together[0]).max() < 1e-5  # whatever else is asked for
    print(f"{name}: another process predicts the same for {len(together)} texts, alone and together")
