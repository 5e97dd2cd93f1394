"""Reductions: the partial sums of an all-reduce, their sum, and the copies that the devices then hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from course_lib.i18n import _, join_sentences, ngettext
from course_lib.specs.components import Array, same_values
from course_lib.specs.drawing import DrawsItself
from course_lib.specs.mesh import MeshSpec


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Reduction(DrawsItself):
    """One all-reduce with its real numbers. It draws itself.

    The devices that differ only along the mesh dimension form a group. Each holds a partial sum; the group
    adds them, and each of its devices receives a copy of the sum.

    >>> from course_lib import MeshSpec
    >>> mesh = MeshSpec([("batch", 2), ("model", 2)])
    >>> reduction = Reduction(mesh, "batch", [[1], [20], [3], [40]], [[4], [60], [4], [60]])
    >>> [total.tolist() for total in reduction.sums]
    [[4], [60]]
    >>> print(reduction.sentence)
    In each group the copies are equal to the last bit. They equal the sum.

    Attributes:
        mesh: the mesh that the devices form.
        mesh_dim: the mesh dimension along which is added.
        partials: what each device adds, `[...] local` each, in the order of the devices.
        copies: what each device holds afterwards, likewise.
        digits: with how many digits after the point numbers are shown and copies are compared with the sum.

    Raises:
        CourseError: the mesh has no such dimension.

    Source: https://www.tensorflow.org/guide/dtensor_overview (DTensor collective communications).
    """

    drawn_by = "lessons.lesson_03_one_step.reduction_picture"

    mesh: MeshSpec
    mesh_dim: str
    partials: tuple[Array, ...]
    copies: tuple[Array, ...]
    digits: int

    def __init__(
        self,
        mesh: MeshSpec,
        mesh_dim: str,
        partials: Sequence[npt.ArrayLike],
        copies: Sequence[npt.ArrayLike],
        digits: int = 3,
    ) -> None:
        mesh.require_dim(mesh_dim)
        object.__setattr__(self, "mesh", mesh)
        object.__setattr__(self, "mesh_dim", mesh_dim)
        object.__setattr__(self, "partials", tuple(map(np.asarray, partials)))
        object.__setattr__(self, "copies", tuple(map(np.asarray, copies)))
        object.__setattr__(self, "digits", digits)

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The devices that add among themselves, group by group."""
        return self.mesh.groups(self.mesh_dim)

    @cached_property
    def sums(self) -> tuple[Array, ...]:
        """The sum of each group, `[...] local` each, added on the host in float64, or in int64."""
        return tuple(_total([self.partials[device_id] for device_id in group]) for group in self.groups)

    @property
    def tolerance(self) -> float:
        """How far a copy may be from the sum: half a unit of the last digit shown; 0 for whole numbers."""
        return 0.0 if self.sums[0].dtype.kind in "iu" else 0.5 * 10.0**-self.digits

    @cached_property
    def sum_numbers(self) -> tuple[int, ...]:
        """For each group the number of its sum, counted from 0; groups with equal sums have one number."""
        return tuple(
            next(number for number, other in enumerate(self.sums) if same_values(other, total))
            for total in self.sums
        )

    @cached_property
    def holdings(self) -> tuple[int, ...]:
        """For each device the number of what it holds: of a sum, or one from `len(sums)` for other data."""
        others: list[Array] = []
        numbers = []
        for own, copy in zip(self._own_numbers, self.copies, strict=True):
            sums = (number for number in (own, *self.sum_numbers) if self._is_sum(copy, number))
            held = next(sums, None)
            numbers.append(len(self.sums) + _place(copy, others) if held is None else held)
        return tuple(numbers)

    @cached_property
    def wrong_devices(self) -> tuple[int, ...]:
        """The devices that hold something other than the sum of their group."""
        pairs = zip(self.holdings, self._own_numbers, strict=True)
        return tuple(device_id for device_id, (held, own) in enumerate(pairs) if held != own)

    @property
    def copies_are_equal(self) -> bool:
        """Whether the devices of each group hold the same afterwards, to the last bit."""
        return all(
            same_values(self.copies[group[0]], self.copies[device_id])
            for group in self.groups
            for device_id in group
        )

    @property
    def largest_difference(self) -> float:
        """How far an element of a copy is from the sum, at most."""
        differences: list[float] = [
            np.abs(copy - self.sums[number]).max(initial=0).item()
            for number, copy in zip(self._own_numbers, self.copies, strict=True)
        ]
        return max(differences)

    @property
    def sentence(self) -> str:
        """Whether the copies are equal, and whether they are the sum, in words."""
        return join_sentences([self._copies_in_words(), self._sum_in_words()])

    def form(self, value: object) -> str:
        """Returns one element as it is shown: whole numbers as they are, others with `digits` digits.

        >>> from course_lib import MeshSpec
        >>> shown = Reduction(MeshSpec([("batch", 2)]), "batch", [0.25, -0.25], [0.0, 0.0], digits=1).form
        >>> shown(0.55), shown(-0.01), shown(7)
        ('0.6', '0.0', '7')
        """
        if not isinstance(value, float):
            return str(value)
        rounded = f"{value:.{self.digits}f}"
        return rounded.lstrip("-") if not rounded.strip("-0.") else rounded

    @cached_property
    def _own_numbers(self) -> tuple[int, ...]:
        """For each device the number of its group's sum."""
        pairs = zip(self.groups, self.sum_numbers, strict=True)
        numbers = {device_id: number for group, number in pairs for device_id in group}
        return tuple(numbers[device_id] for device_id in range(self.mesh.size))

    def _is_sum(self, copy: Array, number: int) -> bool:
        close = np.isclose(copy, self.sums[number], rtol=0.0, atol=self.tolerance, equal_nan=True)
        return bool(close.all())

    def _copies_in_words(self) -> str:
        if not self.copies_are_equal:
            return _("The copies are not equal to the last bit.")
        if len(self.groups) > 1:
            return _("In each group the copies are equal to the last bit.")
        return ngettext(
            "There is {count} copy.",
            "The {count} copies are equal to the last bit.",
            len(self.copies),
        )

    def _sum_in_words(self) -> str:
        difference = self.form(self.largest_difference)
        if len(self.wrong_devices) == self.mesh.size:
            return _("They are not the sum: the largest difference is {difference}.", difference=difference)
        if self.wrong_devices:
            return ngettext(
                "{count} of them is not the sum: the largest difference is {difference}.",
                "{count} of them are not the sum: the largest difference is {difference}.",
                len(self.wrong_devices),
                difference=difference,
            )
        if not self.tolerance:
            return _("They equal the sum.")
        tolerance = f"{self.tolerance:.{self.digits + 1}f}"
        return _("They equal the sum to within {tolerance}.", tolerance=tolerance)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} over {self.mesh_dim!r} on {self.mesh!r}>"


def _total(partials: Sequence[Array]) -> Array:
    whole = all(partial.dtype.kind in "iu" for partial in partials)
    return np.asarray(np.sum(np.stack(partials), axis=0, dtype=np.int64 if whole else np.float64))


def _place(array: Array, seen: list[Array]) -> int:
    """Returns where an equal array stands in `seen`, after adding it if there is none."""
    for number, other in enumerate(seen):
        if same_values(array, other):
            return number
    seen.append(array)
    return len(seen) - 1
