"""The picture of an all-reduce with its numbers: partial sums, their sum, and the copies of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from course_lib.i18n import _, join_sentences, labelled, ngettext
from course_lib.pictures import arranging, shapes
from course_lib.pictures.arranging import Drawing
from course_lib.pictures.cells import cell
from course_lib.pictures.figures import Figure, headed
from course_lib.pictures.shapes import Node, node, number
from course_lib.pictures.tensors import value_width, values_drawing
from course_lib.pictures.text import array_text, devices_text, marked
from course_lib.specs.components import Array
from course_lib.specs.drawing import DrawsItself
from course_lib.specs.mesh import MeshSpec

_GAP, _ARROW, _WIDTH, _HEADING = 7.0, 44.0, 440.0, 24.0


class Reduction(DrawsItself):
    """One all-reduce with its real numbers. It draws itself.

    Each device holds a partial sum; they are added, and each device receives a copy of the sum.

    Attributes:
        mesh: the mesh that the devices form, of one dimension.
        mesh_dim: this dimension, along which is added.
        partials: what each device adds, `[...] local` each, in the order of the devices.
        copies: what each device holds afterwards, likewise.
        digits: with how many digits after the point numbers are shown and copies are compared with the sum.

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
        self.mesh, self.mesh_dim, self.digits = mesh, mesh_dim, digits
        self.partials, self.copies = tuple(map(np.asarray, partials)), tuple(map(np.asarray, copies))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} over {self.mesh_dim!r} on {self.mesh!r}>"

    @cached_property
    def total(self) -> Array:
        """The sum, `[...] local`, added on the host in float64."""
        return np.asarray(np.sum(np.stack(self.partials), axis=0, dtype=np.float64))

    @cached_property
    def largest_difference(self) -> float:
        """How far an element of a copy is from the sum, at most."""
        return float(np.abs(np.stack(self.copies) - self.total).max())

    @property
    def is_right(self) -> bool:
        """Whether every copy is the sum, to within half a unit of the last digit shown."""
        return self.largest_difference <= 0.5 * 10.0**-self.digits

    @property
    def sentence(self) -> str:
        """Whether the copies are equal, and whether they are the sum, in words."""
        copies = ngettext(
            "There is {count} copy.", "The {count} copies are equal to the last bit.", len(self.copies)
        )
        if any(copy.tobytes() != self.copies[0].tobytes() for copy in self.copies):
            copies = _("The copies are not equal to the last bit.")
        tolerance = f"{0.5 * 10.0**-self.digits:.{self.digits + 1}f}"
        total = _("They equal the sum to within {tolerance}.", tolerance=tolerance)
        if not self.is_right:
            difference = self._form(self.largest_difference)
            total = _("They are not the sum: the largest difference is {difference}.", difference=difference)
        return join_sentences([copies, total])

    def picture(self) -> Figure:
        """Returns a lane for each device: from its partial sum to the sum, and on to its copy."""
        title = _("All-reduce over {name} on the mesh {mesh}", name=self.mesh_dim, mesh=self.mesh)
        summary = _(
            "Each device adds an array of shape {shape} and receives the sum.", shape=self.partials[0].shape
        )
        rows = [
            f"  {devices_text([at])}: {self._values(partial)} → {self._values(copy)}"
            for at, (partial, copy) in enumerate(zip(self.partials, self.copies, strict=True))
        ]
        total = labelled(_("Sum"), self._values(self.total))
        return headed(
            title,
            [self._lanes()],
            [summary, "", *rows, f"  {total}", "", self.sentence],
            width=_WIDTH,
            says=[summary, _("Stripes mark a partial sum that waits to be added.")],
            verdict=marked(self.sentence, agrees=self.is_right),
            agrees=self.is_right,
        )

    def _form(self, value: object) -> str:
        return f"{value:z.{self.digits}f}"

    def _values(self, array: Array) -> str:
        return array_text(array, self._form)

    def _lanes(self) -> Drawing:
        """Returns the columns of partial sums and of copies, the sum between them, and the lines there."""
        names = [devices_text([at]) for at in range(self.mesh.size)]
        left = max(arranging.text_width(name, 12) for name in names) + 10
        partials = [self._box(each, shapes.PANEL, at) for at, each in enumerate(self.partials)]
        width, step = partials[0].width, partials[0].height + _GAP
        copies = [self._box(each, 0 if self.is_right else None) for each in self.copies]
        total = self._box(self.total, 0)
        middle, end = left + width + _ARROW, left + 2 * (width + _ARROW)
        y = _HEADING + (len(names) * step - _GAP) / 2
        nodes: list[Node] = [
            shapes.text(x, 12, heading, fill=shapes.SOFT_INK, bold=True)
            for x, heading in ((left, _("Partial sums")), (middle, _("Sum")), (end, _("Copies")))
        ]
        for at, (name, partial, copy) in enumerate(zip(names, partials, copies, strict=True)):
            top = _HEADING + at * step
            lane = top + partial.height / 2
            nodes += [
                shapes.text(0, lane + 4, name),
                node("g", partial.at(left, top), class_="partial", data_device=str(at)),
                node("g", copy.at(end, top), class_="copy", data_device=str(at)),
                _line((left + width + 2, lane), (middle - 4, y)),
                _line((middle + width + 2, y), (end - 4, lane)),
            ]
        sum_node = node("g", total.at(middle, y - total.height / 2), class_="sum")
        return Drawing(end + width, _HEADING + len(names) * step, (*nodes, sum_node))

    def _box(self, array: Array, fill: str | int | None, device_id: int | None = None) -> Drawing:
        """Returns an array as its values in a cell; that of a device, a partial sum, has stripes."""
        width = value_width((*self.partials, self.total, *self.copies), self._form)
        values = values_drawing(array, "none", width, self._form, halo=device_id is not None)
        stripes = None if device_id is None else _stripes(device_id, values.width, values.height)
        frame = cell((0, 0, values.width, values.height), fill=fill, stripes=stripes)
        return Drawing(values.width, values.height, (*frame, *values.nodes))


def _stripes(device_id: int, width: float, height: float) -> Node:
    """Returns stripes in a colour of the device's own, which the sum has not."""
    rounds, at = divmod(device_id, len(shapes.PALETTE) - 1)
    return shapes.stripes(width, height, stroke=shapes.PALETTE[1 + at], falling=bool(rounds % 2))


def _line(start: tuple[float, float], end: tuple[float, float]) -> Node:
    path = f"M{number(start[0])} {number(start[1])}L{number(end[0])} {number(end[1])}"
    return node("path", d=path, stroke=shapes.SOFT_INK, stroke_width=1.2)
