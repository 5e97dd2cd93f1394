"""Attempts at the exercises of `own_steps`."""

import tensorflow as tf

from tests.lessons.attempts import Attempts

cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits


def replicas():
    return tf.distribute.get_strategy().num_replicas_in_sync


def by_compute_loss(model, x, y, logits):
    return model.compute_loss(x, y, logits)


def by_own_mean(_model, _x, y, logits):
    return tf.reduce_mean(cross_entropy(y, logits))


def step(report, loss_of=by_compute_loss, training=True):
    """Returns an answer to own_steps-train-step."""

    def answer(model, x, y):
        with tf.GradientTape() as tape:
            logits = model(x, training=training)
            loss = loss_of(model, x, y, logits)
        variables = model.trainable_variables
        model.optimizer.apply(tape.gradient(loss, variables), variables)
        return report(model, loss, cross_entropy(y, logits))

    return answer


def fed(value_of):
    def report(model, loss, losses):
        model.metrics[0].update_state(value_of(loss, losses))
        return {metric.name: metric.result() for metric in model.metrics}

    return report


def fed_anew(model, _loss, losses):
    metric = model.metrics[0]
    metric.reset_state()
    metric.update_state(losses)
    return {"loss": metric.result()}


def all_reduced(gradients):
    return tf.distribute.get_replica_context().all_reduce("SUM", gradients)


def cut(gradients, limit):
    return tf.clip_by_global_norm(gradients, limit)[0]


ATTEMPTS = {
    "own_steps-train-step": Attempts(
        takes_long=True,
        right=(step(fed(lambda loss, losses: loss * replicas())),),
        wrong=(
            (step(lambda model, loss, losses: {"loss": loss * replicas(), "rows": 1.0}), "last batch only"),
            (step(fed_anew), "last batch only"),
            (step(fed(lambda loss, losses: losses), training=False), "called for training"),
            (step(lambda model, loss, losses: {"loss": loss}), "nothing was fed to it"),
            (step(lambda model, loss, losses: {"loss": loss, "rows": 1.0}), "last batch only"),
            (step(fed(lambda loss, losses: loss)), "once too often"),
            (step(fed(lambda loss, losses: losses), by_own_mean), "examples, and these are added up"),
            (step(lambda model, loss, losses: {"loss": loss, "rows": 1.0}, by_own_mean), "last batch only"),
            (step(lambda model, loss, losses: {"error": loss}), "undivided losses"),
        ),
    ),
    "own_steps-clipped": Attempts(
        takes_long=True,
        right=(
            lambda gradients, limit: cut(
                [each / replicas() for each in all_reduced(gradients)], limit / replicas()
            ),
        ),
        wrong=(
            (cut, "Add up first"),
            (lambda gradients, limit: cut(all_reduced(gradients), limit), "once more"),
            (
                lambda gradients, limit: cut([each / replicas() for each in all_reduced(gradients)], limit),
                "clip first, divide later",
            ),
            (lambda gradients, limit: cut(gradients, limit / replicas()), "Add up over the replicas, clip"),
            (lambda gradients, limit: [tf.clip_by_norm(each, limit) for each in gradients], "clip the sum"),
            (lambda gradients, limit: gradients, "clip the sum"),
        ),
    ),
    "own_steps-lines": Attempts(
        right=(),
        wrong=(
            ({4}, "which rows"),
            ({1, 3, 4}, "the global batch size"),
            ({1, 2, 4}, "Ask of each line"),
        ),
    ),
}
