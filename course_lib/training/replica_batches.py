"""Batches under a strategy of tf.distribute: which rows each replica gets, and where they are sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.runtime import start_tensorflow
from course_lib.specs.received import split
from course_lib.training.batches import Features, Labels, Weights
from course_lib.training.trainer import Batches

tf = start_tensorflow()


@dataclass(frozen=True)
class ReplicaBatches(Batches):
    """Batches on top of each other, of which each replica has its own rows: all parts are PerReplica.

    Attributes:
        sizes: the number of examples in each global batch, `[stack]`, the same for all replicas.
    """

    sizes: Any


def sent_batches(strategy: Any, inputs: Features, labels: Labels, weights: Weights | None) -> ReplicaBatches:
    """Returns a stack of batches, each replica having been sent its own rows.

    Args:
        strategy: whose replicas get them.
        inputs: `[stack, batch, ...] global`.
        labels: `[stack, batch] global`.
        weights: `[stack, batch] global`: 1 for an example, 0 for a row that fills up, all of these last.
    """
    counted = np.ones(labels.shape, np.float32) if weights is None else weights
    sizes = counted.sum(axis=1).astype(np.int32)
    rows = rows_of_replicas(sizes, labels.shape[1], strategy.num_replicas_in_sync)
    sent = [_sent(strategy, array, rows) for array in (inputs, labels, counted)]
    return ReplicaBatches(sent[0], sent[1], sent[2], len(labels), tf.constant(sizes))


def rows_of_replicas(
    sizes: npt.NDArray[np.int32], batch_size: int, num_replicas: int
) -> npt.NDArray[np.int64]:
    """Returns which rows each replica gets of each batch, as a distributed dataset would give them to it.

    Args:
        sizes: the number of examples in each batch.
        batch_size: the number in a full one.
        num_replicas: the number of replicas.

    Returns:
        `[replicas, stack, rows]`, with -1 where a replica has fewer rows than the fullest one.
    """
    rows = np.full((num_replicas, len(sizes), -(-batch_size // num_replicas)), -1, np.int64)
    for at, size in enumerate(sizes):
        for replica, part in enumerate(split(range(int(size)), num_replicas)):
            rows[replica, at, : len(part)] = part
    return rows


def _sent(strategy: Any, array: npt.NDArray[Any], rows: npt.NDArray[np.int64]) -> Any:
    """Returns the rows of each replica on its device, zeros where it has none."""
    filled = np.concatenate([array, np.zeros_like(array[:, :1])], axis=1)  # row -1
    stack = np.arange(len(array))[:, np.newaxis]

    def part(context: Any) -> Any:
        replica = context.replica_id_in_sync_group
        with tf.device(_device(strategy, replica)):
            return tf.constant(filled[stack, rows[replica]])

    return strategy.experimental_distribute_values_from_function(part)


def _device(strategy: Any, replica: int) -> str | None:
    """Returns where a replica computes; the default strategy does not say."""
    if strategy.num_replicas_in_sync == 1:
        return None
    devices = strategy.extended.worker_devices
    return str(devices[replica % len(devices)])
