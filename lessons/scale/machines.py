"""Devices and what joins them, and the time that a collective takes there: a latency and a bandwidth term."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from course_lib.specs.collectives import ROUNDS, Collective, Kind
from course_lib.specs.mesh import MeshSpec

Number = Any  # one number, or an array of them: then what is computed from it is one too


@dataclass(frozen=True)
class Device:
    """What one device computes and holds.

    Attributes:
        name: what it is called.
        flops_per_second: the most multiplications and additions of a matrix product.
        memory_bytes: of its own memory.
        memory_bytes_per_second: how fast it reads and writes that.
        source: where these numbers stand.
        efficiency: the share of `flops_per_second` that products reach.
    """

    name: str
    flops_per_second: float
    memory_bytes: float
    memory_bytes_per_second: float
    source: str
    efficiency: float = 1.0


@dataclass(frozen=True)
class Link:
    """What joins devices.

    Attributes:
        bytes_per_second: that one device sends while it receives as many.
        latency_seconds: of a message, however short.
        source: where these numbers stand.
    """

    bytes_per_second: float
    latency_seconds: float
    source: str


@dataclass(frozen=True)
class Cluster:
    """Equal nodes of equal devices; the devices of a node have consecutive numbers.

    Attributes:
        device: each of them.
        devices_per_node: how many share a node.
        inside: what joins those of a node.
        between: what joins nodes, for each device.
    """

    device: Device
    devices_per_node: int
    inside: Link
    between: Link


def ring_seconds(kind: Kind, num_devices: Number, payload_bytes: Number, link: Link) -> Number:
    """Returns the time of a collective in a ring: each round sends one of as many parts as there are devices.

    >>> link = Link(bytes_per_second=1e9, latency_seconds=1e-6, source="")
    >>> round(1e3 * ring_seconds(Kind.ALL_REDUCE, 4, 8e6, link), 3)
    12.006

    Source: https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md.
    """
    parts = 1 if kind is Kind.REDUCE_SCATTER else num_devices  # its payload is a part already
    message = payload_bytes / parts / link.bytes_per_second
    return ROUNDS[kind] * (num_devices - 1) * (link.latency_seconds + message)


def tree_seconds(num_devices: Number, payload_bytes: Number, link: Link) -> Number:
    """Returns the time of an all-reduce up and down two binary trees that have half of the payload each.

    Source: https://developer.nvidia.com/blog/massively-scale-deep-learning-training-nccl-2-4/.
    """
    return 2 * np.log2(num_devices) * link.latency_seconds + 2 * payload_bytes / link.bytes_per_second


def collective_seconds(collective: Collective, cluster: Cluster) -> float:
    """Returns the time of a collective; one that leaves the node sums up within nodes first.

    Between nodes each device of a node exchanges its part with those of its own place in other nodes.
    """
    sizes = group_sizes(collective.mesh, collective.mesh_dims, cluster.devices_per_node)
    return float(group_seconds(collective.kind, *sizes, collective.payload_bytes, cluster))


def group_sizes(mesh: MeshSpec, names: tuple[str, ...], devices_per_node: int) -> tuple[int, int]:
    """Returns how many devices of a group share a node, and over how many nodes it extends.

    >>> group_sizes(MeshSpec([("batch", 4), ("model", 4)]), ("batch",), devices_per_node=8)
    (2, 2)
    """
    inside, stride, size = 1, 1, 1
    for name, count in reversed(mesh.dims):
        if name in names:
            size *= count
            if mesh.size <= devices_per_node:
                inside *= count
            elif devices_per_node % stride == 0:  # only what fills nodes evenly shares them
                inside *= math.gcd(devices_per_node // stride, count)
        stride *= count
    return inside, size // inside


def group_seconds(
    kind: Kind, inside: Number, between: Number, payload_bytes: Number, cluster: Cluster
) -> Number:
    """Returns the time of a collective among `inside` devices of each of `between` nodes."""
    if kind is Kind.ALL_TO_ALL:
        link = cluster.inside if between == 1 else cluster.between
        return ring_seconds(kind, inside * between, payload_bytes, link)
    whole = payload_bytes * (inside * between if kind is Kind.REDUCE_SCATTER else 1)
    within = ring_seconds(Kind.ALL_GATHER, inside, whole, cluster.inside)
    if kind is not Kind.ALL_REDUCE:
        return within + ring_seconds(Kind.ALL_GATHER, between, whole / inside, cluster.between)
    in_a_node = _best(inside, payload_bytes, cluster.inside)
    return np.where(between == 1, in_a_node, 2 * within + _best(between, whole / inside, cluster.between))


def _best(num_devices: Number, payload_bytes: Number, link: Link) -> Number:
    """Returns the time of an all-reduce by a ring or by trees, whichever is faster."""
    ring = ring_seconds(Kind.ALL_REDUCE, num_devices, payload_bytes, link)
    return np.minimum(ring, tree_seconds(num_devices, payload_bytes, link))
