"""A sharded checkpoint becomes an export that takes texts: python save_and_serve.py [FOLDER]."""

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
SPECS = {"W1": [dtensor.UNSHARDED, "model"], "b1": ["model"], "W2": ["model", dtensor.UNSHARDED]}
SPECS |= {"b2": [dtensor.UNSHARDED], "mean": ["model"], "variance": ["model"]}
LAYOUTS = {name: dtensor.Layout(spec, mesh) for name, spec in SPECS.items()}
SHAPES = {"W1": (1200, 48), "b1": 48, "W2": (48, 2), "b2": 2, "mean": 48, "variance": 48}


def make_variable(value, layout=None):
    if layout is None:
        return tf.Variable(value)
    return dtensor.DVariable(dtensor.copy_to_mesh(value, layout))


class MLP(tf.Module):
    def __init__(self, values, layouts=None):
        super().__init__()
        for name, value in values.items():
            setattr(self, name, make_variable(value, layouts and layouts[name]))

    def hidden(self, x):
        return tf.nn.relu(x @ self.W1 + self.b1)

    def logits(self, hidden, mean, variance):
        normal = tf.nn.batch_normalization(hidden, mean, variance, None, None, 1e-5)
        return normal @ self.W2 + self.b2


class Classifier(tf.Module):
    def __init__(self, vectorizer, model):
        super().__init__()
        self.vectorizer, self.model = vectorizer, model

    @tf.function(input_signature=[tf.TensorSpec([None, 1200], tf.float32)])
    def of_rows(self, rows):
        hidden = self.model.hidden(rows)
        logits = self.model.logits(hidden, self.model.mean, self.model.variance)
        return {"probabilities": tf.nn.softmax(logits)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def __call__(self, texts):
        return self.of_rows(tf.math.l2_normalize(self.vectorizer(texts), axis=1))


def ask(path, *requests):
    lines = "\n".join(json.dumps(texts) for texts in requests)
    command = [sys.executable, "-c", PROGRAM, str(path)]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    return [np.array(json.loads(line)) for line in done.stdout.splitlines()]


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
    texts = ["a good film", "a bad film", "good story, good film", "bad story", "a film"]
    vectorizer = tf.keras.layers.TextVectorization(1200, output_mode="tf_idf", pad_to_max_tokens=True)
    vectorizer.adapt(texts)
    random = np.random.default_rng(0)  # values such as a training leaves: a_run.py trains
    values = {name: random.normal(0, 0.3, shape).astype("float32") for name, shape in SHAPES.items()}
    values["variance"] = 1 + np.abs(values["variance"])
    sharded = MLP(values, LAYOUTS)
    saved = tf.train.Checkpoint(model=sharded, step=tf.Variable(64)).save(str(folder / "checkpoint"))
    restored = MLP({name: 0 * value for name, value in values.items()})
    tf.train.Checkpoint(model=restored).restore(saved).assert_existing_objects_matched()  # or nothing tells
    expected = Classifier(vectorizer, MLP(values))(tf.constant(texts))["probabilities"]
    for name, model in {"restored": restored, "sharded": sharded}.items():
        classifier = Classifier(vectorizer, model)  # servers without Python call it by its signature
        tf.saved_model.save(classifier, str(folder / name), {"serving_default": classifier.__call__})
        together, alone = ask(folder / name, texts, texts[:1])
        assert max(np.abs(together - expected).max(), np.abs(alone[0] - together[0]).max()) < 1e-5
        print(f"{name}: another process predicts the same for {len(together)} texts, alone and together")
