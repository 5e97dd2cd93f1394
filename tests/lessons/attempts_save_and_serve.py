"""Attempts at the exercises of `save_and_serve`."""

import sys

import numpy as np

import course_lib
from benchmarks.programs import program
from tests.lessons.attempts import Attempts

tf = course_lib.start_tensorflow()
TEXTS = tf.TensorSpec([None], tf.string)
SHAPES = {"W1": (1200, 48), "b1": (48,), "W2": (48, 2), "b2": (2,)}
SERVING = program("save_and_serve")


def restored(path, guard="assert_existing_objects_matched", layouts=None):
    """Restores weights alone, with any guard."""
    weights = {
        name: SERVING.variable(np.zeros(shape, "float32"), (layouts or {}).get(name))
        for name, shape in SHAPES.items()
    }
    status = tf.train.Checkpoint(model=tf.train.Checkpoint(weights=weights)).read(path)
    getattr(status, guard)()
    return weights


def or_exit(path):
    try:
        return restored(path)
    except AssertionError:
        sys.exit("a weight is missing")


def by_name(path):
    reader = tf.train.load_checkpoint(path)
    return {name: reader.get_tensor(f"model/weights/{name}/.ATTRIBUTES/VARIABLE_VALUE") for name in SHAPES}


def serving(answer, *, spec=TEXTS, kept=True):
    """Returns a class whose signature gives `answer(vectorizer, weights, texts)`."""

    class Server(tf.Module):
        def __init__(self, vectorizer, weights):
            super().__init__()
            self.parts = (vectorizer, weights) if kept else lambda: (vectorizer, weights)

        @tf.function(input_signature=spec and [spec])
        def __call__(self, texts):
            return answer(*(self.parts if kept else self.parts()), texts)

    return Server


def probabilities(vectorizer, weights, texts, scaled=lambda rows: tf.math.l2_normalize(rows, axis=1)):
    return tf.nn.softmax(SERVING.logits_of(weights, scaled(vectorizer(texts))))


def labelled(probabilities):
    label = tf.gather(["bad", "good"], tf.argmax(probabilities, axis=1))
    return {"label": label, "probability": tf.reduce_max(probabilities, axis=1)}


class ByReviewServer(tf.Module):
    """Asks the lesson's class, which a reader has just read."""

    def __init__(self, vectorizer, weights):
        super().__init__()
        self.server = SERVING.ReviewServer(vectorizer, weights)

    @tf.function(input_signature=[TEXTS])
    def __call__(self, texts):
        good = self.server.of_texts(texts)["good"]
        return {
            "label": tf.where(good > 0.5, "good", "bad"),
            "probability": tf.where(good > 0.5, good, 1 - good),
        }


def with_an_own_vectorizer(vectorizer, weights):
    return serving(right)(SERVING.make_vectorizer(), weights)


def in_python(vectorizer, weights, texts):
    found = tf.py_function(lambda given: probabilities(vectorizer, weights, given), [texts], tf.float32)
    return labelled(tf.ensure_shape(found, [None, 2]))


def scaling(scaled):
    return serving(lambda *parts: labelled(probabilities(*parts, scaled)))


def right(*parts):
    return labelled(probabilities(*parts))


ATTEMPTS = {
    "save_and_serve-weights": Attempts(
        right=(restored, by_name, or_exit),
        wrong=(
            (lambda path: restored(path, "expect_partial"), "returns all the same"),
            (lambda path: restored(path, "assert_consumed"), "Your function fails"),
            (lambda path: restored(path, layouts=SERVING.layouts), "still on a mesh"),
            (lambda path: list(restored(path).values()), "dictionary with the keys"),
        ),
    ),
    "save_and_serve-server": Attempts(
        takes_long=True,
        right=(serving(right), ByReviewServer),
        wrong=(
            (scaling(lambda rows: rows), "length 1"),
            (scaling(lambda rows: rows / tf.norm(rows, axis=1, keepdims=True)), "What do you divide by"),
            (serving(lambda *parts: labelled(probabilities(*parts)[:, ::-1])), "Go through"),
            (serving(in_python), "In another process"),
            (with_an_own_vectorizer, "has seen no texts"),
            (serving(right, spec=None), "input_signature"),
            (serving(right, spec=tf.TensorSpec([2], tf.string)), "any length"),
            (serving(right, kept=False), "tracked"),
        ),
    ),
}
