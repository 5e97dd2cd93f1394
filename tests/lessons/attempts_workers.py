"""Attempts at the exercises of `workers`."""

from tests.lessons.attempts import Attempts

SHARED, OWN = "/mnt/nfs/checkpoints", "/mnt/nas/checkpoints"


def plan(indices=(0, 1), batches=(32, 32), folders=(SHARED, SHARED)):
    settings = zip(("host0", "host1"), indices, batches, folders, strict=True)
    names = ("index", "BATCH", "folder")
    return {host: dict(zip(names, values, strict=True)) for host, *values in settings}


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


ATTEMPTS = {
    "workers-pipeline": Attempts(
        right=(by_counting,),
        wrong=(
            (own_batches, "all examples"),
            (by_number, "Follow the first numbers"),
            (
                lambda numbers, size, context: sharded(own_batches(numbers, size, context), context),
                "whole batches",
            ),
            (lambda numbers, size, context: sharded(numbers, context), "single examples"),
            (lambda numbers, size, context: list(numbers), "tf.data.Dataset"),
        ),
    ),
    "workers-drill": Attempts(
        right=(plan(("0", "1")),),
        wrong=(
            (plan((1, 2), (48, 48), (OWN, SHARED)), "who a machine is"),
            (plan((1, 0)), "first address"),
            (plan(batches=(48, 48), folders=(OWN, SHARED)), "Only one of the machines"),
            (plan(folders=(OWN, OWN)), "from the beginning"),
            (plan(batches=(32, 48)), "two different batches"),
            (plan(batches=(48, 48)), "yesterday"),
            ({"host0": plan()["host0"]}, "lacks a setting"),
            ({"host0": 1, "host1": 2}, "lacks a setting"),
            (plan((0, "zero")), "host1: `index = 'zero'`"),
        ),
    ),
}
