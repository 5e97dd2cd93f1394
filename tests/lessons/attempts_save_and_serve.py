"""Attempts at the exercises of `save_and_serve`."""

import numpy as np

import course_lib
from benchmarks.programs import program
from course_lib.devices.dtensor import to_numpy
from tests.lessons.attempts import Attempts

tf = course_lib.start_tensorflow()
from tensorflow.experimental import dtensor  # noqa: E402

TEXTS = tf.TensorSpec([None], tf.string)


def components(variable):
    return [part.numpy() for part in dtensor.unpack(variable.read_value())]


def everywhere(variable):
    return dtensor.Layout.replicated(variable.layout.mesh, variable.shape.rank)


def serving(answer, *, spec=TEXTS, kept=True):
    """Returns a class whose signature gives `answer(vectorizer, model, texts)`."""

    class Server(tf.Module):
        def __init__(self, vectorizer, model):
            super().__init__()
            self.parts = (vectorizer, model) if kept else lambda: (vectorizer, model)

        @tf.function(input_signature=spec and [spec])
        def __call__(self, texts):
            return answer(*(self.parts if kept else self.parts()), texts)

    return Server


def predicted(vectorizer, model, texts, *, scaled=True, axis=1, own_moments=False):
    rows = vectorizer(texts)
    hidden = model.hidden(tf.math.l2_normalize(rows, axis=axis) if scaled else rows)
    moments = tf.nn.moments(hidden, 0) if own_moments else (model.mean, model.variance)
    return tf.nn.softmax(model.logits(hidden, *moments))


def labelled(probabilities):
    label = tf.gather(["bad", "good"], tf.argmax(probabilities, axis=1))
    return {"label": label, "probability": tf.reduce_max(probabilities, axis=1)}


Classifier = program("save_and_serve").Classifier


class ByClassifier(tf.Module):
    """Asks the lesson's class, which a reader has written just before."""

    def __init__(self, vectorizer, model):
        super().__init__()
        self.classifier = Classifier(vectorizer, model)

    @tf.function(input_signature=[TEXTS])
    def __call__(self, texts):
        return labelled(self.classifier(texts)["probabilities"])


def in_python(vectorizer, model, texts):
    probabilities = tf.py_function(lambda given: predicted(vectorizer, model, given), [texts], tf.float32)
    return labelled(tf.ensure_shape(probabilities, [None, 2]))


ATTEMPTS = {
    "save_and_serve-gather": Attempts(
        right=(
            to_numpy,
            lambda variable: dtensor.relayout(variable, everywhere(variable)).numpy(),
            lambda variable: dtensor.unpack(dtensor.relayout(variable.read_value(), everywhere(variable)))[0],
        ),
        wrong=(
            (lambda variable: np.concatenate(components(variable)), "one after the other"),
            (lambda variable: dtensor.relayout(variable, everywhere(variable)), "still a DTensor"),
            (lambda variable: variable.numpy(), "non-replicated"),
            (lambda variable: to_numpy(variable).astype("float32"), "type of the numbers"),
        ),
    ),
    "save_and_serve-server": Attempts(
        takes_long=True,
        right=(serving(lambda *inputs: labelled(predicted(*inputs))), ByClassifier),
        wrong=(
            (serving(lambda *inputs: labelled(predicted(*inputs, own_moments=True))), "what else is asked"),
            (serving(lambda *inputs: labelled(predicted(*inputs, scaled=False))), "length 1"),
            (serving(lambda *inputs: labelled(predicted(*inputs, axis=0))), "Go through"),
            (serving(in_python), "In another process"),
            (serving(lambda *inputs: labelled(predicted(*inputs)), spec=None), "input_signature"),
            (
                serving(lambda *inputs: labelled(predicted(*inputs)), spec=tf.TensorSpec([2], tf.string)),
                "any length",
            ),
            (serving(lambda *inputs: labelled(predicted(*inputs)), kept=False), "tracked"),
        ),
    ),
}
