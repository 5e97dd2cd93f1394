"""Attempts at the exercises of lesson 03."""

import numpy as np

from course_lib import UNSHARDED, LayoutSpec, MeshSpec, start_tensorflow
from course_lib.exercises.replicas import NAMES, gradient, joined
from tests.lessons.attempts import Attempts

MESH = MeshSpec([("batch", 8)])


def layouts(**changed):
    entries = {
        "images": ["batch", UNSHARDED, UNSHARDED],
        "labels": ["batch"],
        "losses": ["batch"],
        "gradient": [UNSHARDED, UNSHARDED],
        "mean_loss": [],
    }
    return {name: LayoutSpec(each, MESH) for name, each in {**entries, **changed}.items()}


def on_device(replica, part):
    """Returns the gradient of the summed loss of a part."""
    tf = start_tensorflow()
    with tf.GradientTape() as tape:
        logits = replica(tf.constant(part[0]))
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=part[1], logits=logits)
    return tape.gradient(losses, replica.trained)


def step(change=lambda partial, at: sum(partial), *, returned=lambda replicas: replicas):
    """Returns a step that subtracts what `change` makes of the partial gradients, right without one."""

    def distributed_step(replicas, parts, learning_rate):
        partial = [on_device(*both) for both in zip(replicas, parts, strict=True)]
        for at, replica in enumerate(replicas):
            for name in NAMES:
                total = change([gradients[name] for gradients in partial], at)
                replica.trained[name].assign_sub(learning_rate * total)
        return returned(replicas)

    return distributed_step


def by_averaging(replicas, parts, learning_rate):
    """Lets every replica step alone, eight times as far where there are eight, and then takes the mean."""
    step(lambda partial, at: partial[at] * len(partial))(replicas, parts, learning_rate)
    for name in NAMES:
        mean = np.mean([replica.trained[name].numpy() for replica in replicas], axis=0)
        for replica in replicas:
            replica.trained[name].assign(mean)
    return replicas


def taking_turns(replicas, parts, learning_rate):
    for replica, part in zip(replicas, parts, strict=True):
        gradients = on_device(replica, part)
        for changed in replicas:
            for name in NAMES:
                changed.trained[name].assign_sub(learning_rate * gradients[name])
    return replicas


def on_all_rows(replicas, parts, learning_rate):
    return step()(replicas, [joined(parts)] * len(parts), learning_rate)


def outside_the_replicas(replicas, parts, learning_rate):
    values = {name: variable.numpy() for name, variable in replicas[0].trained.items()}
    gradients = gradient(values, joined(parts))
    for replica in replicas:
        for name in NAMES:
            replica.trained[name].assign_sub(learning_rate * gradients[name].astype(np.float32))
    return replicas


def replacing_variables(replicas, parts, learning_rate):
    partial = [on_device(*both) for both in zip(replicas, parts, strict=True)]
    for replica in replicas:
        for name in NAMES:
            total = sum(gradients[name] for gradients in partial)
            setattr(replica, name, replica.trained[name] - learning_rate * total)
    return replicas


def failing(replicas, parts, learning_rate):
    raise ValueError(f"cannot use {replicas}")


ATTEMPTS = {
    "03-layouts": Attempts(
        right=(),
        wrong=(
            (layouts(images=[UNSHARDED, "batch", UNSHARDED]), "first axis"),
            (layouts(images=["batch", UNSHARDED]), "3 axes"),
            (layouts(labels=[UNSHARDED]), "like the images"),
            (layouts(losses=[UNSHARDED]), "its own images"),
            (layouts(gradient=["batch", UNSHARDED]), "whole weight"),
            ({"images": LayoutSpec(["batch", UNSHARDED, UNSHARDED], MESH)}, "labels"),
            ({name: LayoutSpec.replicated(MeshSpec([("x", 8)]), 3) for name in layouts()}, "plan.mesh"),
        ),
    ),
    "03-gradient-bytes": Attempts(
        right=(np.array([2226040, 2226040]),),
        wrong=(
            ((2226040, 17808320), "does not depend on the batch"),
            ((278255, 278255), "not split"),
            ((556510, 556510), "elements"),
            ((2223200, 2223200), "biases"),
            ((7, 7), "each weight and each bias"),
        ),
    ),
    "03-step": Attempts(
        right=(step(), by_averaging),
        wrong=(
            (step(lambda partial, at: partial[at]), "drift apart"),
            (step(lambda partial, at: sum(partial) / len(partial)), "mean of the partial gradients"),
            (step(lambda partial, at: 0.0 * partial[at]), "no replica has changed"),
            (replacing_variables, "no replica has changed"),
            (taking_turns, "before any replica"),
            (step(lambda partial, at: 2 * sum(partial)), "with `train_step` on one model"),
            (step(lambda partial, at: sum(partial) * (at == 0)), "replicas[1]"),
            (step(returned=lambda replicas: None), "return"),
            (on_all_rows, "replicas saw rows of other parts"),
            (outside_the_replicas, "replicas computed nothing"),
            (failing, "ValueError: cannot use [replicas[0], replicas[1], replicas[2]]"),
            (0.5, "function"),
        ),
    ),
    "03-mean-loss": Attempts(
        right=(
            lambda losses, weights: np.average(losses, weights=weights) if weights.any() else 0,
            lambda losses, weights: np.sum(losses * weights) / (np.sum(weights) + 1e-8),
            lambda losses, weights: np.mean([a for a, b in zip(losses, weights, strict=True) if b] or [0]),
        ),
        wrong=(
            (lambda losses, weights: losses.mean(), "padding counts"),
            (lambda losses, weights: np.mean(losses * weights), "all rows"),
            (lambda losses, weights: losses @ weights, "sum"),
            (
                lambda losses, weights: np.sum(losses[: int(sum(weights))]) / max(sum(weights), 1),
                "at the end",
            ),
            (lambda losses, weights: np.dot(losses, weights) / max(np.sum(weights), 2), "one review"),
            (lambda losses, weights: np.dot(losses, weights) / np.sum(weights), "all padding"),
            (lambda losses, weights: losses * weights, "single number"),
            (lambda losses, weights: None, "return"),
            (0.5, "function"),
        ),
    ),
}
