"""Attempts at the exercises of `workers`."""

import tensorflow as tf

from tests.lessons.attempts import Attempts


def by_counting(numbers, global_batch_size, context):
    workers, worker = context.num_input_pipelines, context.input_pipeline_id
    mine = numbers.enumerate().filter(lambda at, number: at % workers == worker)
    return mine.map(lambda at, number: number).batch(global_batch_size // context.num_replicas_in_sync)


def by_number(numbers, global_batch_size, context):
    workers, worker = context.num_input_pipelines, context.input_pipeline_id
    return own_batches(
        numbers.filter(lambda number: (number - 1) % workers == worker), global_batch_size, context
    )


def sharded(numbers, context):
    return numbers.shard(context.num_input_pipelines, context.input_pipeline_id)


def own_batches(numbers, global_batch_size, context):
    return numbers.batch(context.get_per_replica_batch_size(global_batch_size))


def staying_away(losses):
    return by_gathering(losses) if len(losses) else 0.0


def by_gathering(losses):
    everyone = tf.distribute.get_replica_context().all_gather(tf.ones_like(losses), axis=0)
    return tf.reduce_sum(losses) / tf.cast(tf.size(everyone), "float32")


ATTEMPTS = {
    "workers-pipeline": Attempts(
        right=(by_counting,),
        wrong=(
            (own_batches, "all examples"),
            (by_number, "Follow the first numbers"),
            (lambda numbers, size, context: sharded(numbers, context), "single examples"),
            (lambda numbers, size, context: list(numbers), "tf.data.Dataset"),
        ),
    ),
    "workers-divisor": Attempts(
        right=(by_gathering,),
        wrong=(
            (lambda losses: tf.reduce_sum(losses) / 32, "divide by 32"),
            (tf.reduce_sum, "how many examples"),
            (lambda losses: losses, "share of the loss"),
            (staying_away, "stays away"),
            (lambda losses: tf.stop_gradient(by_gathering(losses)), "gradients"),
        ),
    ),
}
