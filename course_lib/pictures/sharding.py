"""Pictures of meshes, shardings and real components."""

from __future__ import annotations

from collections.abc import Sequence

from course_lib.errors import CourseError
from course_lib.i18n import _, ngettext
from course_lib.pictures import arranging, shapes
from course_lib.pictures.arranging import Drawing
from course_lib.pictures.devices import mesh_drawing, observed_cards, plain_cards, predicted_cards
from course_lib.pictures.figures import Figure, draw, framed, headed
from course_lib.pictures.tensors import tensor_drawing
from course_lib.pictures.text import axis_notes, block_lines, holding_lines, marked, mesh_lines, summary
from course_lib.specs.components import Array, Comparison, Components
from course_lib.specs.mesh import MeshSpec
from course_lib.specs.sharding import Sharding

_Part = tuple[str, Drawing, Sequence[str]]  # a heading, a drawing, and lines that say the same

_MOST_AXES = 3
_LEAST_WIDTH, _MAX_WIDTH, _GAP = 440.0, 700.0, 28.0


@draw.register
def _mesh_figure(mesh: MeshSpec) -> Figure:
    title = ngettext("Mesh {mesh}: {count} device", "Mesh {mesh}: {count} devices", mesh.size, mesh=mesh)
    drawing = arranging.titled(title, mesh_drawing(mesh, plain_cards(mesh)))
    return framed(title, [drawing], mesh_lines(mesh))


@draw.register
def _sharding_figure(sharding: Sharding) -> Figure:
    title = _("Layout {layout} on the mesh {mesh}", layout=sharding.layout, mesh=sharding.mesh)
    return _figure(title, sharding, [_tensor_part(sharding), _predicted_part(_("Devices"), sharding)])


@draw.register
def _components_figure(components: Components) -> Figure:
    sharding = _with_bytes(components)
    title = _(
        "Real components with the layout {layout} on the mesh {mesh}",
        layout=sharding.layout,
        mesh=sharding.mesh,
    )
    parts = [_tensor_part(sharding, components.whole), _observed_part(_("Devices"), components)]
    return _figure(title, sharding, parts)


@draw.register
def _comparison_figure(comparison: Comparison) -> Figure:
    sharding = _with_bytes(comparison)
    title = _(
        "Prediction and reality: layout {layout} on the mesh {mesh}",
        layout=sharding.layout,
        mesh=sharding.mesh,
    )
    parts = [
        _tensor_part(sharding, comparison.whole),
        _predicted_part(_("Prediction"), sharding),
        _observed_part(_("Reality"), comparison),
    ]
    return _figure(title, sharding, parts, comparison)


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


def _with_bytes(components: Components) -> Sharding:
    sharding = components.sharding
    return sharding.layout.of(sharding.global_shape, element_bytes=components.whole.itemsize)


def require_drawable(sharding: Sharding) -> None:
    """Checks that the tensor has few enough axes for a picture.

    Raises:
        CourseError: it has more than 3.
    """
    if len(sharding.global_shape) > _MOST_AXES:
        raise CourseError(
            ngettext(
                "A tensor of {count} axis cannot be drawn.",
                "A tensor of {count} axes cannot be drawn.",
                len(sharding.global_shape),
            ),
            allowed=_("0 to {most} axes", most=_MOST_AXES),
            cure=_("Reshape the tensor, or look at it without a picture: layout.of(global_shape).shards."),
        )
