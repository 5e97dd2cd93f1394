"""Attempts at the exercises of lesson 06."""

import numpy as np

import course_lib
from course_lib.dtensor import fetch_layout, pack, to_numpy, unpack
from course_lib.exercises.evaluations import logits_of, small_values
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.plan import data_parallel
from tests.lessons.attempts import Attempts

tf = course_lib.start_tensorflow()

MESH = data_parallel(8).mesh
ROWS = LayoutSpec(["batch", "unsharded"], MESH)
TEXTS = tf.TensorSpec([None], tf.string)


def gathered(combine):
    """Returns an answer that makes each variable of its components and its sharding."""

    def gather(model):
        variables = {name: getattr(model, name) for name in model.spec.variables}
        return {
            name: combine(unpack(each), fetch_layout(each).of(tuple(each.shape)))
            for name, each in variables.items()
        }

    return gather


def by_place(components, sharding):
    whole = np.empty(sharding.global_shape, components[0].dtype)
    for device_id, component in enumerate(components):
        whole[sharding.shards[device_id]] = component
    return whole


def added(components, sharding):
    whole = np.zeros(sharding.global_shape, components[0].dtype)
    for device_id, component in enumerate(components):
        whole[sharding.shards[device_id]] += component
    return whole


gather = gathered(by_place)


def probabilities(logits, axis=-1):
    return tf.nn.softmax(logits, axis=axis)


def filled_up(rows):
    return np.pad(rows, ((0, -len(rows) % 8), (0, 0)))


def logits_on_mesh(model, rows, layout=ROWS):
    return to_numpy(model.evaluate_logits(pack(filled_up(rows), layout)))


def on_mesh(model, rows, *inputs):
    return probabilities(logits_on_mesh(model, rows, *inputs))[: len(rows)]


def cut_by_what_was_filled_up(model, rows):
    return probabilities(logits_on_mesh(model, rows))[: -(-len(rows) % 8)]


def alone(values, row):
    hidden = np.maximum(row @ values["hidden_weight"] + values["hidden_bias"], 0)
    return classified(values, (hidden - hidden) / np.sqrt(0 + 0.00001))


def classified(values, normal):
    powers = np.exp(normal @ values["logits_weight"] + values["logits_bias"])
    return powers / powers.sum()


def divided_by_zero(values, row):
    hidden = np.maximum(row[None] @ values["hidden_weight"] + values["hidden_bias"], 0)
    return classified(values, ((hidden - hidden.mean(axis=0)) / hidden.std(axis=0))[0])


def over_the_units(values, row):
    hidden = np.maximum(row @ values["hidden_weight"] + values["hidden_bias"], 0)
    return classified(values, (hidden - hidden.mean()) / np.sqrt(hidden.var() + 0.00001))


def serving(answer, *, spec=TEXTS, kept=True, **options):
    """Returns a class whose signature gives `answer(vectorizer, model, texts)`."""

    class Server(tf.Module):
        def __init__(self, vectorizer, model):
            super().__init__()
            self.parts = (vectorizer, model) if kept else lambda: (vectorizer, model)

        @tf.function(input_signature=spec and [spec], **options)
        def __call__(self, texts):
            return answer(*(self.parts if kept else self.parts()), texts)

    return Server


def served(vectorizer, model, texts):
    return probabilities(model.evaluate_logits(vectorizer(texts)))


def with_own_moments(vectorizer, model, texts):
    hidden = tf.nn.relu(vectorizer(texts) @ model.hidden_weight + model.hidden_bias)
    normal = tf.nn.batch_normalization(hidden, *tf.nn.moments(hidden, 0), None, None, 1e-5)
    return probabilities(normal @ model.logits_weight + model.logits_bias)


def nothing(*inputs):
    return None


ATTEMPTS = {
    "06-gather": Attempts(
        right=(gather, lambda model: {**gather(model), "step": 126}),
        wrong=(
            (gathered(lambda components, sharding: np.concatenate(components)), "one after the other"),
            (gathered(lambda components, sharding: components[0]), "first device"),
            (gathered(added), "once for each device"),
            (lambda model: {name: gather(model)[name] for name in model.trained}, "moving_mean"),
            (lambda model: {name: getattr(model, name) for name in model.spec.variables}, "still a DTensor"),
            (lambda model: {name: 2 * each for name, each in gather(model).items()}, "`sharding.shards[d]`"),
            (lambda model: list(gather(model).values()), "`sharding.shards[d]`"),
            (nothing, "return"),
            ({"hidden_weight": 1}, "function"),
        ),
    ),
    "06-on-mesh": Attempts(
        right=(on_mesh,),
        wrong=(
            (lambda model, rows: probabilities(logits_on_mesh(model, rows)), "filled up"),
            (lambda model, rows: logits_on_mesh(model, rows)[: len(rows)], "softmax"),
            (lambda model, rows: on_mesh(model, rows[: len(rows) // 8 * 8]), "every row"),
            (lambda model, rows: on_mesh(model, rows)[:, 1], "by hand"),
            (lambda model, rows: probabilities(logits_on_mesh(model, rows), axis=0), "by hand"),
            (cut_by_what_was_filled_up, "compare"),
            (lambda model, rows: model(pack(filled_up(rows), ROWS)), "moving"),
            (lambda model, rows: on_mesh(model, rows, LayoutSpec.replicated(MESH, 2)), "every device"),
            (lambda model, rows: probabilities(logits_of(small_values(), rows)), "never asked"),
            (lambda model, rows: model.evaluate_logits(rows), "not packed"),
            (nothing, "return"),
            ((0.5, 0.5), "function"),
        ),
    ),
    "06-alone": Attempts(
        right=(alone, lambda values, row: probabilities(values["logits_bias"])),
        wrong=(
            (lambda values, row: probabilities(logits_of(values, row)), "moving moments"),
            (lambda values, row: values["logits_bias"], "logits"),
            (divided_by_zero, "0 / 0"),
            (over_the_units, "compare"),
            (lambda values, row: alone(values, row)[None], "compare"),
            (lambda values, row: (0.5, 0.5), "compare"),
            (nothing, "return"),
            ((0.5, 0.5), "function"),
        ),
    ),
    "06-server": Attempts(
        right=(serving(served), serving(lambda *inputs: {"good": served(*inputs)})),
        wrong=(
            (serving(with_own_moments), "what else is asked"),
            (serving(lambda vectorizer, model, texts: probabilities(model(vectorizer(texts)))), "moments"),
            (serving(lambda vectorizer, model, texts: model.evaluate_logits(vectorizer(texts))), "logits"),
            (serving(lambda *inputs: tf.argmax(served(*inputs), axis=1)), "the class"),
            (serving(lambda *inputs: served(*inputs)[:, 1]), "by hand"),
            (serving(lambda *inputs: probabilities(served(*inputs), axis=0)), "by hand"),
            (serving(served, jit_compile=True), "jit_compile"),
            (serving(served, spec=None), "input_signature"),
            (serving(served, spec=tf.TensorSpec([2], tf.string)), "any number"),
            (serving(served, spec=tf.TensorSpec([None, 6])), "strings"),
            (serving(served, kept=False), "attribute"),
            (lambda vectorizer, model: None, "tf.Module"),
            (0.5, "function"),
        ),
    ),
}
