"""Attempts at the exercises of lesson 11."""

import json

import numpy as np

from tests.lessons.attempts import Attempts

SHARED, OWN = "/mnt/nfs/garments", "/mnt/nas/garments"


def plan(indices=(0, 1), batches=(32, 32), folders=(SHARED, SHARED)):
    settings = zip(("host0", "host1"), indices, batches, folders, strict=True)
    names = ("index", "batch", "checkpoints")
    return {host: dict(zip(names, values, strict=True)) for host, *values in settings}


def of_task(says):
    """Returns an answer to 11-saves from what a function says of the cluster, the job and the index."""

    def saves(tf_config):
        config = json.loads(tf_config)
        return says(config["cluster"], config["task"]["type"], config["task"]["index"])

    return saves


def cut(count):
    """Returns an answer to 11-local-parts that cuts the rows in `count` parts, by number."""

    def local_parts(rows, mesh, device_ids):
        parts = np.split(rows, count(mesh, device_ids))
        return [parts[at] for at in range(len(device_ids))]

    return local_parts


def parts_of(device_ids_of):
    def local_parts(rows, mesh, device_ids):
        parts = np.split(rows, mesh.dim_size("batch"))
        return [parts[mesh.coords(at)["batch"]] for at in device_ids_of(mesh, device_ids)]

    return local_parts


def by_counting(numbers, global_batch_size, context):
    workers, worker = context.num_input_pipelines, context.input_pipeline_id
    mine = numbers.enumerate().filter(lambda at, number: at % workers == worker)
    return mine.map(lambda at, number: number).batch(global_batch_size // context.num_replicas_in_sync)


def sharded(numbers, context):
    return numbers.shard(context.num_input_pipelines, context.input_pipeline_id)


def own_batches(numbers, global_batch_size, context):
    return numbers.batch(context.get_per_replica_batch_size(global_batch_size))


def nothing(*inputs):
    return None


ATTEMPTS = {
    "11-saves": Attempts(
        right=(of_task(lambda cluster, job, at: (job, at) == (min(cluster), 0)),),
        wrong=(
            (of_task(lambda cluster, job, at: at == 0), "every job has a task 0"),
            (of_task(lambda cluster, job, at: job == "chief"), "without a chief"),
            (of_task(lambda cluster, job, at: at == 0 and job in ("chief", "worker")), "Two tasks"),
            (of_task(lambda cluster, job, at: (job, at) == ("worker", 0)), "gives"),
            (nothing, "return"),
            (True, "function"),
        ),
    ),
    "11-pipeline": Attempts(
        right=(by_counting,),
        wrong=(
            (own_batches, "all examples"),
            (lambda numbers, size, context: sharded(numbers, context).batch(size), "a global batch"),
            (
                lambda numbers, size, context: sharded(own_batches(numbers, size, context), context),
                "whole batches",
            ),
            (lambda numbers, size, context: sharded(numbers, context).batch(1), "gives"),
            (lambda numbers, size, context: list(numbers), "tf.data.Dataset"),
            (nothing, "tf.data.Dataset"),
            (2, "function"),
        ),
    ),
    "11-local-parts": Attempts(
        right=(parts_of(lambda mesh, device_ids: np.array(device_ids)),),
        wrong=(
            (
                lambda rows, mesh, device_ids: [np.split(rows, mesh.size)[at] for at in device_ids],
                "along `model`",
            ),
            (cut(lambda mesh, device_ids: len(device_ids)), "all devices of the mesh"),
            (parts_of(lambda mesh, device_ids: range(len(device_ids))), "numbers in the whole mesh"),
            (parts_of(lambda mesh, device_ids: range(mesh.size)), "gives"),
            (nothing, "return"),
            (4, "function"),
        ),
    ),
    "11-drill": Attempts(
        right=(plan(("0", "1")),),
        wrong=(
            (plan((1, 2), (48, 48), (OWN, SHARED)), "who a machine is"),
            (plan((1, 0)), "first address"),
            (plan(batches=(32, 48)), "two different batches"),
            (plan(batches=(48, 48)), "yesterday"),
            (plan(batches=(48, 48), folders=(OWN, SHARED)), "Only one of the machines"),
            (plan(folders=(OWN, OWN)), "from the beginning"),
            ({"host0": plan()["host0"]}, "lacks a setting"),
        ),
    ),
}
