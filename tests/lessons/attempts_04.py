"""Attempts at the exercises of lesson 04."""

import math

import numpy as np

import course_lib
from course_lib.dtensor import pack, to_numpy
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.plan import data_parallel
from tests.lessons.attempts import Attempts

tf = course_lib.start_tensorflow()

MESH = data_parallel(8).mesh
ROWS = LayoutSpec(["batch", "unsharded"], MESH)


def moving(start, values):
    for value in values:
        start = 0.9 * start + 0.1 * value
    return start


def swapped(start, values):
    for value in values:
        start = 0.1 * start + 0.9 * value
    return start


def while_any_is_left(start, values):
    while values:
        start = 0.9 * start + 0.1 * values.pop(0)
    return start


def measured(logits, labels, count):
    """Returns the sums over the rows, divided by a count."""
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    return float(tf.reduce_sum(losses)) / count, np.sum(np.argmax(logits, 1) == labels) / count


def logits_of(model, features, layout=ROWS, *, repeated=1):
    """Returns the logits of the features, with zeros to fill them up, and all of it so many times."""
    filled = np.pad(features, ((0, -len(features) % 8), (0, 0)))
    return to_numpy(model.evaluate_logits(pack(np.tile(filled, (repeated, 1)), layout)))


def evaluate(model, features, labels, *inputs, **options):
    return measured(logits_of(model, features, *inputs, **options)[: len(labels)], labels, len(labels))


def in_batches(rows):
    """Returns an evaluation of so many rows at a time."""

    def answer(model, features, labels):
        sums = [
            np.array(evaluate(model, features[at : at + rows], labels[at : at + rows]))
            * len(labels[at : at + rows])
            for at in range(0, len(labels), rows)
        ]
        return np.sum(sums, axis=0) / len(labels)

    return answer


def padding_counted(model, features, labels):
    logits = logits_of(model, features)
    return measured(logits, np.pad(labels, (0, -len(labels) % 8)), len(logits))


def padding_in_the_sums(model, features, labels):
    logits = logits_of(model, features)
    return measured(logits, np.pad(labels, (0, -len(labels) % 8)), len(labels))


def divided_by_rows(model, features, labels):
    logits = logits_of(model, features)
    return measured(logits[: len(labels)], labels, len(logits))


def rest_dropped(model, features, labels):
    rows = len(labels) // 8 * 8
    return evaluate(model, features[:rows], labels[:rows])


def without_the_model(model, features, labels):
    return evaluate(model._model, features, labels)


def as_in_training(model, features, labels):
    return model(pack(np.pad(features, ((0, -len(features) % 8), (0, 0))), ROWS))


def on_every_device(model, features, labels):
    return evaluate(model, features, labels, LayoutSpec.replicated(MESH, 2))


def copied_to_every_device(model, features, labels):
    return evaluate(model, features, labels, repeated=8)


ATTEMPTS = {
    "04-learning-rate": Attempts(
        right=(np.float32(0.01) * 64,),
        wrong=(
            (0.01, "64 times smaller"),
            (0.01 / 64, "wrong way"),
            (0.08, "counts the devices, or takes a root"),
            (64, "by how much"),
            (1.0, "the gradient of the mean"),
        ),
    ),
    "04-moving-average": Attempts(
        right=(
            lambda start, values: 0.9 ** len(values) * start + moving(0, values),
            lambda start, values: np.array([moving(start, values)]),
            while_any_is_left,
        ),
        wrong=(
            (swapped, "0.9 belongs to the old"),
            (lambda start, values: 0.9 * start + 0.1 * np.mean(values), "one update for each value"),
            (lambda start, values: moving(start, values[:1]), "inside the loop"),
            (lambda start, values: moving(start, values[-1:]), "the one before"),
            (lambda start, values: moving(start, values) if values else 0.0, "no value"),
            (lambda start, values: None, "return"),
            (0.9, "function"),
        ),
    ),
    "04-evaluate": Attempts(
        right=(in_batches(8), in_batches(64), lambda *inputs: np.array(evaluate(*inputs))),
        wrong=(
            (padding_counted, "counted like reviews"),
            (divided_by_rows, "number of reviews"),
            (padding_in_the_sums, "each sum leave out"),
            (rest_dropped, "every review"),
            (as_in_training, "evaluate_logits"),
            (on_every_device, "every device"),
            (copied_to_every_device, "every device"),
            (without_the_model, "never asked"),
            (lambda model, features, labels: model.evaluate_logits(features), "not packed"),
            (lambda *inputs: evaluate(*inputs)[::-1], "two numbers"),
            (lambda *inputs: None, "return"),
            ((0.5, 0.5), "function"),
        ),
    ),
    "04-break-even": Attempts(
        right=(
            lambda fixed, per_row, devices: fixed * devices / (per_row * (devices - 1)),
            lambda fixed, per_row, devices: np.linalg.solve([[per_row - per_row / devices]], [fixed]),
        ),
        wrong=(
            (lambda fixed, per_row, devices: fixed / per_row, "share of the rows"),
            (lambda fixed, per_row, devices: fixed / (per_row * devices), "is saved"),
            (lambda fixed, per_row, devices: fixed / per_row * (1 - 1 / devices), "multiplies"),
            (lambda *costs: math.ceil(costs[0] / (costs[1] * (1 - 1 / costs[2]))), "Do not round"),
            (lambda fixed, per_row, devices: fixed / (per_row * (devices - 1)), "by hand"),
            (lambda fixed, per_row: fixed / per_row, "positional argument"),
            (64, "function"),
        ),
    ),
}
