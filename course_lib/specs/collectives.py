"""Collectives: which devices exchange data, along which mesh dimensions, and how many bytes that costs."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.specs.mesh import MeshSpec

MOST_CPUS_IN_AN_ALL_TO_ALL = 11


class Kind(StrEnum):
    """What a collective makes of the arrays that the devices of a group bring."""

    ALL_REDUCE = "all-reduce"  # adds them; each device receives the sum
    ALL_GATHER = "all-gather"  # joins them; each device receives the whole
    REDUCE_SCATTER = "reduce-scatter"  # adds them; each device receives its part of the sum
    ALL_TO_ALL = "all-to-all"  # each device receives its part of every array


# How often what is exchanged goes round the n devices of a ring, in n - 1 messages.
ROUNDS = {Kind.ALL_REDUCE: 2, Kind.ALL_GATHER: 1, Kind.REDUCE_SCATTER: 1, Kind.ALL_TO_ALL: 1}


@dataclass(frozen=True)
class Collective:
    """One exchange among the devices that differ only along some mesh dimensions.

    >>> mesh = MeshSpec([("batch", 4), ("model", 2)])
    >>> gradients = Collective(Kind.ALL_REDUCE, mesh, ("batch",), 800)
    >>> gradients.group_size, gradients.groups, float(gradients.bytes_sent)
    (4, ((0, 2, 4, 6), (1, 3, 5, 7)), 1200.0)

    Attributes:
        kind: what is made of the arrays.
        mesh: the mesh that the devices form.
        mesh_dims: the mesh dimensions along which the devices of a group differ, in the order of the mesh.
        payload_bytes: the bytes of what one device holds afterwards.

    Source: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/usage/collectives.html.
    """

    kind: Kind
    mesh: MeshSpec
    mesh_dims: tuple[str, ...]
    payload_bytes: int

    def __post_init__(self) -> None:
        in_order = tuple(name for name in self.mesh.names if name in self.mesh_dims)
        object.__setattr__(self, "mesh_dims", in_order)

    @property
    def group_size(self) -> int:
        """How many devices exchange data with each other."""
        return math.prod(self.mesh.dim_size(name) for name in self.mesh_dims)

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The devices that exchange data with each other, group by group."""
        return self.mesh.groups(*self.mesh_dims)

    @property
    def bytes_sent(self) -> Fraction:
        """How many bytes each device sends if the devices of a group stand in a ring."""
        others = self.group_size - 1
        if self.kind is Kind.REDUCE_SCATTER:  # a device brings as many times its payload as there are devices
            return Fraction(others * self.payload_bytes)
        return Fraction(ROUNDS[self.kind] * others * self.payload_bytes, self.group_size)

    def as_run(self) -> Collective:
        """Returns the collective that TensorFlow 2.21 runs by default in the place of this one.

        In place of all-gather and reduce-scatter it all-reduces arrays of the size of the whole, in which a
        device that gathers has its own part and zeros. The environment variable
        LOWER_DTENSOR_GATHER_TO_COLLECTIVE_GATHER_V2 switches that off for all-gathers. By TensorFlow's source
        it is the same on GPUs; tried on CPUs.
        """
        if self.kind in (Kind.ALL_REDUCE, Kind.ALL_TO_ALL):
            return self
        whole = self.payload_bytes * (self.group_size if self.kind is Kind.REDUCE_SCATTER else 1)
        return Collective(Kind.ALL_REDUCE, self.mesh, self.mesh_dims, whole)

    def __str__(self) -> str:
        return f"{self.kind} over {' and '.join(self.mesh_dims)}, {self.payload_bytes} bytes"


def require_right(collectives: Iterable[Collective], device_kind: str) -> None:
    """Checks that TensorFlow 2.21 runs these collectives rightly.

    On CPUs it names the buffers of an all-to-all by two device numbers without a separator: 1 to 10 and 11
    to 0 have one name, and devices get each other's data in silence.

    Raises:
        CourseError: an all-to-all among 12 CPUs or more.
    """
    for each in collectives:
        is_large = each.group_size > MOST_CPUS_IN_AN_ALL_TO_ALL
        if device_kind == "CPU" and each.kind is Kind.ALL_TO_ALL and is_large:
            raise CourseError(
                _(
                    "It would take an all-to-all over {name!r}, among {size} CPUs.",
                    name=each.mesh_dims[0],
                    size=each.group_size,
                ),
                allowed=_("all-to-all among at most {most} CPUs", most=MOST_CPUS_IN_AN_ALL_TO_ALL),
                cure=_(
                    "Split the dimension in two, such as 4 × 3 in place of 12. TensorFlow would mix up the"
                    " data that so many CPUs send each other."
                ),
            )
