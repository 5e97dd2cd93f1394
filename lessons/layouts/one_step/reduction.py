"""Reductions: the partial sums of an all-reduce, their sum, and the copies that the devices then hold."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.i18n import _, join_sentences, ngettext
from course_lib.pictures.figures import Figure
from course_lib.specs.components import Array, same_values
from course_lib.specs.drawing import DrawsItself
from course_lib.specs.mesh import MeshSpec


class Reduction(DrawsItself):
    """One all-reduce with its real numbers. It draws itself.

    Each device holds a partial sum; they are added, and each device receives a copy of the sum.

    >>> from course_lib import MeshSpec
    >>> reduction = Reduction(MeshSpec([("batch", 2)]), "batch", [[0.25], [0.5]], [[0.75], [0.75]])
    >>> reduction.total.tolist()
    [0.75]
    >>> print(reduction.sentence)
    The 2 copies are equal to the last bit. They equal the sum to within 0.0005.

    Attributes:
        mesh: the mesh that the devices form, of one dimension.
        mesh_dim: this dimension, along which is added.
        partials: what each device adds, `[...] local` each, in the order of the devices.
        copies: what each device holds afterwards, likewise.
        digits: with how many digits after the point numbers are shown and copies are compared with the sum.

    Raises:
        CourseError: the mesh has no such dimension.

    Source: https://www.tensorflow.org/guide/dtensor_overview (DTensor collective communications).
    """

    def __init__(
        self,
        mesh: MeshSpec,
        mesh_dim: str,
        partials: Sequence[npt.ArrayLike],
        copies: Sequence[npt.ArrayLike],
        digits: int = 3,
    ) -> None:
        mesh.require_dim(mesh_dim)
        self.mesh, self.mesh_dim, self.digits = mesh, mesh_dim, digits
        self.partials, self.copies = tuple(map(np.asarray, partials)), tuple(map(np.asarray, copies))

    @cached_property
    def total(self) -> Array:
        """The sum, `[...] local`, added on the host in float64."""
        return np.asarray(np.sum(np.stack(self.partials), axis=0, dtype=np.float64))

    @property
    def tolerance(self) -> float:
        """How far a copy may be from the sum: half a unit of the last digit shown."""
        return 0.5 * 10.0**-self.digits

    @cached_property
    def holdings(self) -> tuple[int, ...]:
        """For each device the number of what it holds: 0 of the sum, or one from 1 for other data."""
        others: list[Array] = []
        return tuple(0 if self._is_sum(copy) else 1 + _place(copy, others) for copy in self.copies)

    @property
    def wrong_devices(self) -> tuple[int, ...]:
        """The devices that hold something other than the sum."""
        return tuple(device_id for device_id, held in enumerate(self.holdings) if held)

    @property
    def copies_are_equal(self) -> bool:
        """Whether all devices hold the same afterwards, to the last bit."""
        return all(same_values(self.copies[0], copy) for copy in self.copies)

    @property
    def largest_difference(self) -> float:
        """How far an element of a copy is from the sum, at most."""
        differences: list[float] = [np.abs(copy - self.total).max(initial=0).item() for copy in self.copies]
        return max(differences)

    @property
    def sentence(self) -> str:
        """Whether the copies are equal, and whether they are the sum, in words."""
        return join_sentences([self._copies_in_words(), self._sum_in_words()])

    def form(self, value: Any) -> str:
        """Returns one element as it is shown: with `digits` digits, and without the sign of a zero.

        >>> from course_lib import MeshSpec
        >>> shown = Reduction(MeshSpec([("batch", 2)]), "batch", [0.25, -0.25], [0.0, 0.0], digits=1).form
        >>> shown(0.55), shown(-0.01)
        ('0.6', '0.0')
        """
        return f"{value:z.{self.digits}f}"

    def _is_sum(self, copy: Array) -> bool:
        close = np.isclose(copy, self.total, rtol=0.0, atol=self.tolerance, equal_nan=True)
        return bool(close.all())

    def _copies_in_words(self) -> str:
        if not self.copies_are_equal:
            return _("The copies are not equal to the last bit.")
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
        tolerance = f"{self.tolerance:.{self.digits + 1}f}"
        return _("They equal the sum to within {tolerance}.", tolerance=tolerance)

    def picture(self) -> Figure:
        """Returns the picture of the all-reduce."""
        from lessons.layouts.one_step.reduction_picture import reduction_figure

        return reduction_figure(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} over {self.mesh_dim!r} on {self.mesh!r}>"


def _place(array: Array, seen: list[Array]) -> int:
    """Returns where an equal array stands in `seen`, after adding it if there is none."""
    for number, other in enumerate(seen):
        if same_values(array, other):
            return number
    seen.append(array)
    return len(seen) - 1
