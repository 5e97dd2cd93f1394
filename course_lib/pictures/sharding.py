"""Pictures of meshes, shardings and real components."""

from __future__ import annotations

from collections.abc import Sequence

from course_lib.errors import CourseError
from course_lib.i18n import _, ngettext
from course_lib.pictures import arranging, shapes
from course_lib.pictures.arranging import Drawing
from course_lib.pictures.devices import (
    mesh_drawing,
    moved_cards,
    observed_cards,
    plain_cards,
    predicted_cards,
)
from course_lib.pictures.figures import Figure, draw, framed, headed
from course_lib.pictures.tensors import tensor_drawing
from course_lib.pictures.text import (
    axis_notes,
    block_lines,
    holding_lines,
    marked,
    move_lines,
    named_devices,
    relayout_title,
    summary,
    table,
)
from course_lib.specs.components import Array, Comparison, Components
from course_lib.specs.mesh import MeshSpec
from course_lib.specs.move import Move
from course_lib.specs.sharding import Sharding

_Part = tuple[str, Drawing, Sequence[str]]  # a heading, a drawing, and lines that say the same

_MOST_AXES = 3
_LEAST_WIDTH, _MAX_WIDTH, _GAP = 440.0, 700.0, 28.0


@draw.register
def _mesh_figure(mesh: MeshSpec) -> Figure:
    title = ngettext("Mesh {mesh}: {count} device", "Mesh {mesh}: {count} devices", mesh.size, mesh=mesh)
    drawing = arranging.titled(title, mesh_drawing(mesh, plain_cards(mesh)))
    return framed(title, [drawing], table(named_devices(mesh)))


@draw.register
def _sharding_figure(sharding: Sharding) -> Figure:
    title = _("Layout {layout} on the mesh {mesh}", layout=sharding.layout, mesh=sharding.mesh)
    return _figure(title, sharding, [_tensor_part(sharding), _predicted_part(_("Devices"), sharding)])


@draw.register
def _components_figure(components: Components) -> Figure:
    layout, shape = components.sharding.layout, components.sharding.global_shape
    sharding = layout.of(shape, element_bytes=components.whole.itemsize)
    parts = [_tensor_part(sharding, components.whole)]
    if not isinstance(components, Comparison):
        title = _(
            "Real components with the layout {layout} on the mesh {mesh}", layout=layout, mesh=layout.mesh
        )
        return _figure(title, sharding, [*parts, _observed_part(_("Devices"), components)])
    title = _("Prediction and reality: layout {layout} on the mesh {mesh}", layout=layout, mesh=layout.mesh)
    parts += [_predicted_part(_("Prediction"), sharding), _observed_part(_("Reality"), components)]
    return _figure(title, sharding, parts, components)


@draw.register
def _move_figure(move: Move) -> Figure:
    title = relayout_title(move.before, move.after)
    drawing, lines = move_part(move)
    return headed(title, [drawing], ["", *lines], width=max(drawing.width, _LEAST_WIDTH))


def move_part(move: Move) -> tuple[Drawing, list[str]]:
    """Returns the devices after a move, and lines that say the same."""
    require_drawable(move.before, most=2)
    notes = [
        _("Dashes: what a device held before. Thick edges: what stays."),
        _("←2: what comes from device 2. Equal colors: parts of the same block."),
    ]
    said = arranging.lines_of_text(notes, size=12, max_width=_LEAST_WIDTH, fill=shapes.SOFT_INK)
    cards = mesh_drawing(move.after.mesh, moved_cards(move))
    return arranging.stacked([said, cards], 12), move_lines(move)


def _figure(
    title: str, sharding: Sharding, parts: Sequence[_Part], comparison: Comparison | None = None
) -> Figure:
    drawings = arranging.flowing(
        [arranging.titled(heading, drawing) for heading, drawing, _lines in parts], _GAP, _MAX_WIDTH
    )
    width = max(drawings.width, _LEAST_WIDTH)
    text = [summary(sharding)]
    for heading, _drawing, lines in parts:
        text += ["", heading, *lines]
    verdict, agrees = "", True
    if comparison is not None:
        text += ["", comparison.sentence]
        verdict, agrees = marked(comparison.sentence, agrees=comparison.agrees), comparison.agrees
    return headed(
        title, [drawings], text, width=width, says=[summary(sharding)], verdict=verdict, agrees=agrees
    )


def _tensor_part(sharding: Sharding, whole: Array | None = None) -> _Part:
    require_drawable(sharding)
    notes = arranging.lines_of_text(axis_notes(sharding), size=11, max_width=240, fill=shapes.SOFT_INK)
    drawing = arranging.stacked([tensor_drawing(sharding), notes], 6)
    return _("Tensor"), drawing, block_lines(sharding, whole)


def _predicted_part(heading: str, sharding: Sharding) -> _Part:
    lines = holding_lines(sharding, sharding.holdings)
    return heading, mesh_drawing(sharding.mesh, predicted_cards(sharding)), lines


def _observed_part(heading: str, components: Components) -> _Part:
    lines = holding_lines(components.sharding, components.holdings, components.components)
    return heading, mesh_drawing(components.sharding.mesh, observed_cards(components)), lines


def require_drawable(sharding: Sharding, most: int = _MOST_AXES) -> None:
    """Checks that the tensor has few enough axes for a picture.

    Raises:
        CourseError: it has more than `most`.
    """
    if len(sharding.global_shape) > most:
        raise CourseError(
            ngettext(
                "A tensor of {count} axis cannot be drawn.",
                "A tensor of {count} axes cannot be drawn.",
                len(sharding.global_shape),
            ),
            allowed=_("0 to {most} axes", most=most),
            cure=_("Reshape the tensor, or look at it without a picture: layout.of(global_shape).shards."),
        )
