"""Attempts at the exercises of `keras_layouts`."""

import tensorflow as tf
import tf_keras

from course_lib.devices.dtensor import no_combining
from tests.lessons.attempts import Attempts

Layout, UNSHARDED = tf.experimental.dtensor.Layout, tf.experimental.dtensor.UNSHARDED


def map_of(layouts):
    def small_enough(mesh):
        made = tf_keras.dtensor.experimental.LayoutMap(mesh=mesh)
        for pattern, entries in layouts.items():
            made[pattern] = Layout(entries, mesh)
        return made

    return small_enough


COLUMNS, ROWS = [UNSHARDED, "model"], ["model", UNSHARDED]
RIGHT = {"first.kernel": COLUMNS, "first.bias": ["model"], "second.kernel": ROWS}


def maker(
    *,
    loss_of=tf.reduce_mean,
    compute=tf.function,
    together=lambda step: step,
    factor=1.0,
    make=lambda model, optimizer: optimizer,
):
    """Returns an answer to keras_layouts-step, with one of its parts in another way."""

    def make_step(model, optimizer):
        optimizer, variables = make(model, optimizer), model.trainable_variables

        @compute
        def loss_and_gradients(inputs, labels):
            with tf.GradientTape() as tape:
                losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, model(inputs, training=True))
                loss = loss_of(losses)
            return loss, [factor * each for each in tape.gradient(loss, variables)]

        @together
        def step(inputs, labels):
            loss, gradients = loss_and_gradients(inputs, labels)
            optimizer.apply_gradients(zip(gradients, variables, strict=True))
            return loss

        return step

    return make_step


def applied_in_another_function(model, optimizer):
    @tf.function
    def apply(gradients):
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))

    class Applying:
        @staticmethod
        def apply_gradients(pairs):
            apply([gradient for gradient, _variable in pairs])

    return maker(make=lambda model, optimizer: Applying)(model, optimizer)


def uncombined(model, optimizer):
    step = IN_ONE_FUNCTION(model, optimizer)

    def uncombined_step(inputs, labels):
        with no_combining():
            return step(inputs, labels)

    return uncombined_step


def with_its_own(model, optimizer):
    return tf_keras.optimizers.SGD(0.37, momentum=0.8, mesh=optimizer._mesh)


IN_ONE_FUNCTION = maker(compute=lambda function: function, together=tf.function)

ATTEMPTS = {
    "keras_layouts-layout-map": Attempts(
        right=(
            map_of({"(first|second).kernel": COLUMNS, ".*bias": [UNSHARDED]}),
            map_of({"first.kernel": ["batch", "model"], "second.kernel": ROWS}),
        ),
        wrong=(
            (map_of({}), "486,536"),
            (map_of({**RIGHT, "frist.bias": ["model"]}), "'frist.bias'"),
            (map_of({"first": COLUMNS, "second.kernel": ROWS}), "the tensor (96,) has 1"),
            (map_of({".*kernel": COLUMNS}), "`logits.kernel` cannot"),
            (
                map_of({**RIGHT, "first.kernel": ["batch", "model"], "second.kernel": ["batch", UNSHARDED]}),
                "Contracting dimension",
            ),
            (lambda mesh: RIGHT, "LayoutMap"),
        ),
    ),
    "keras_layouts-step": Attempts(
        takes_long=True,
        right=(applied_in_another_function, uncombined),
        wrong=(
            (IN_ONE_FUNCTION, "came a step late"),
            (maker(make=with_its_own), "`optimizer.iterations` equal to `0`"),
            (maker(factor=1 / 8), "whole batch"),
            (maker(compute=lambda function: function), "`@tf.function`"),
            (maker(loss_of=tf.identity), "Return the mean loss"),
            (lambda model, optimizer: None, "gives nothing"),
        ),
    ),
}
