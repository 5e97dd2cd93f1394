"""Attempts at the exercises of lesson 08."""

import re

import tensorflow as tf
import tf_keras

from course_lib import UNSHARDED, LayoutSpec, MeshSpec
from tests.lessons.attempts import Attempts

Layout = tf.experimental.dtensor.Layout
IMAGES = MeshSpec([("batch", 2), ("model", 4)])
CHANNELS = ("gamma", "beta", "moving_mean", "moving_variance")


def all_with(*entries, mesh=IMAGES):
    return dict.fromkeys(CHANNELS, LayoutSpec(entries, mesh))


def by_hand(patterns, names):
    unused = list(patterns)
    for name in names:
        fitting = [each for each in patterns if each == name] + [p for p in patterns if re.match(p, name)]
        if fitting and fitting[0] in unused:
            unused.remove(fitting[0])
    return unused


def by_the_first(fits, *, name_itself=True):
    def unused(patterns, names):
        used = set()
        for name in names:
            fitting = [pattern for pattern in patterns if fits(pattern, name)]
            used.update([name] if name_itself and name in patterns else fitting[:1])
        return [pattern for pattern in patterns if pattern not in used]

    return unused


def other_mesh():
    dimensions, devices = [("batch", 4), ("model", 2)], [f"CPU:{at}" for at in range(8)]
    return tf.experimental.dtensor.create_mesh(dimensions, devices=devices)


def map_of(layouts, *, its_mesh=True, others_mesh=False):
    def small_enough(mesh):
        made = tf_keras.dtensor.experimental.LayoutMap(mesh=mesh if its_mesh else None)
        for pattern, entries in layouts.items():
            made[pattern] = Layout(entries, other_mesh() if others_mesh else mesh)
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
    every=1,
    make=lambda model, optimizer: optimizer,
    returns=lambda loss: loss,
):
    """Returns an answer to 08-step, with one of its parts in another way."""

    def make_step(model, optimizer):
        optimizer, variables = make(model, optimizer), model.trainable_variables[::every]

        @compute
        def loss_and_gradients(inputs, labels):
            with tf.GradientTape() as tape:
                losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, model(inputs))
                loss = loss_of(losses)
            return loss, [factor * each for each in tape.gradient(loss, variables)]

        @together
        def step(inputs, labels):
            loss, gradients = loss_and_gradients(inputs, labels)
            if optimizer is not None:
                optimizer.apply_gradients(zip(gradients, variables, strict=True))
            return returns(loss)

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


ATTEMPTS = {
    "08-normalisation": Attempts(
        right=({name: LayoutSpec.replicated(IMAGES, 1) for name in CHANNELS},),
        wrong=(
            (all_with("model"), "one number for each channel"),
            (all_with("batch"), "no entry for an example"),
            (all_with("batch", "model", UNSHARDED, UNSHARDED), "1 axis"),
            ({**all_with(UNSHARDED), **{"moving_mean": LayoutSpec(["model"], IMAGES)}}, "`moving_mean`"),
            ({"gamma": LayoutSpec([UNSHARDED], IMAGES)}, "beta"),
            (all_with(UNSHARDED, mesh=MeshSpec([("model", 8)])), "`mesh_of_images`"),
        ),
    ),
    "08-unmatched": Attempts(
        right=(by_hand, lambda patterns, names: tuple(by_hand(patterns, names))),
        wrong=(
            (
                lambda patterns, names: [p for p in patterns if not any(re.match(p, name) for name in names)],
                "takes its place",
            ),
            (by_the_first(re.search), "beginning"),
            (by_the_first(re.fullmatch), "the one pattern"),
            (by_the_first(re.match, name_itself=False), "goes first"),
            (by_the_first(lambda pattern, name: name.startswith(pattern)), "the one pattern"),
            (lambda patterns, names: [], "gives"),
            ("hiden.*", "function"),
        ),
    ),
    "08-layout-map": Attempts(
        right=(
            map_of({"(first|second).kernel": COLUMNS, ".*bias": [UNSHARDED]}),
            map_of({"first.kernel": ["batch", "model"], "second.kernel": ROWS}),
        ),
        wrong=(
            (map_of({}), "486,536"),
            (map_of({"second.kernel": ROWS}), "may hold 125,000"),
            (map_of({**RIGHT, "frist.bias": ["model"]}), "'frist.bias'"),
            (map_of({"first": COLUMNS, "second.kernel": ROWS}), "the tensor (96,) has 1"),
            (
                map_of({**RIGHT, "first.kernel": ["batch", "model"], "second.kernel": ["batch", UNSHARDED]}),
                "Contracting dimension",
            ),
            (map_of(RIGHT, its_mesh=False), "mesh=mesh"),
            (map_of(RIGHT, others_mesh=True), "on the mesh batch 2 × model 4"),
            (lambda mesh: map_of(RIGHT)(other_mesh()), "`mesh` that `small_enough` gets"),
            (lambda mesh: RIGHT, "LayoutMap"),
            (RIGHT, "function"),
        ),
    ),
    "08-step": Attempts(
        right=(applied_in_another_function,),
        wrong=(
            (maker(compute=lambda function: function, together=tf.function), "came a step late"),
            (maker(make=lambda model, optimizer: None), "no variable has changed"),
            (maker(loss_of=tf.reduce_sum), "sum of the losses"),
            (maker(factor=1 / 8), "whole batch"),
            (maker(every=2), "three batches"),
            (maker(compute=lambda function: function), "`@tf.function`"),
            (maker(returns=lambda loss: None), "`losses`"),
            (maker(loss_of=tf.identity), "A single number"),
            (lambda model, optimizer: None, "gives nothing"),
            (0.5, "function"),
        ),
    ),
}
