"""Pictures of collectives, of what an operation makes devices exchange, and of prediction beside reality."""

from __future__ import annotations

from collections.abc import Sequence

from course_lib.i18n import _
from course_lib.pictures import arranging, shapes
from course_lib.pictures import communication_rules as rules
from course_lib.pictures import communication_text as words
from course_lib.pictures.arranging import Drawing
from course_lib.pictures.figures import Figure, draw, framed
from course_lib.pictures.grid import Plane, planes
from course_lib.pictures.shapes import Node, node
from course_lib.pictures.sharding import require_drawable
from course_lib.pictures.tensors import colour, small_tensor
from course_lib.specs.collectives import Collective
from course_lib.specs.communication import Communication, Rule, Step
from course_lib.specs.compared import Compared, Pair
from course_lib.specs.mesh import MeshSpec
from course_lib.specs.sharding import Sharding

_WIDTH, _GAP, _SMALL, _TEXT = 720.0, 24.0, 11.0, 12.0
_CELL, _CELL_HEIGHT, _CELL_GAP, _ARROW = 31.0, 32.0, 4.0, 22.0


@draw.register
def _collective_figure(collective: Collective) -> Figure:
    title = _("{exchange} on the mesh {mesh}", exchange=words.exchange(collective), mesh=collective.mesh)
    lines = words.collective_lines(collective)[1:]
    drawings = [_title(title), _told(lines), groups_drawing(collective)]
    return framed(title, drawings, [*lines, words.groups_text(collective)])


@draw.register
def _communication_figure(communication: Communication) -> Figure:
    title = words.title(communication)
    steps = [step_drawing(number, step) for number, step in enumerate(communication.steps, start=1)]
    drawings = [
        _title(title),
        tensors_drawing(communication),
        *steps,
        _said(words.totals(communication.collectives)),
    ]
    return framed(title, drawings, words.lines(communication))


@draw.register
def _compared_figure(compared: Compared) -> Figure:
    title, predicted = words.title(compared.predicted), compared.predicted
    steps = [pair_drawing(number, pair) for number, pair in enumerate(compared.pairs, start=1)]
    verdict = _said(words.verdict(compared), shapes.INK if compared.agrees else shapes.ALARM)
    totals = map(_said, words.both_totals(compared))
    drawings = [_title(title), tensors_drawing(predicted), *steps, *totals, verdict]
    return framed(title, drawings, words.compared_lines(compared))


def tensors_drawing(communication: Communication) -> Drawing:
    """Returns what goes in and what comes out, each cut in its blocks."""
    return arranging.flowing(tensor_drawings(communication), _GAP, _WIDTH)


def tensor_drawings(communication: Communication) -> list[Drawing]:
    """Returns the same, one drawing each."""
    named = words.tensor_names(communication)
    return [_named_tensor(f"{name} {each.global_shape}", each) for name, each in named]


def step_drawing(number: int, step: Step) -> Drawing:
    """Returns a step: what changes, the collective beside it, and the reason below."""
    row = arranging.flowing([change_drawing(step), collective_drawing(step.collective)], _GAP, _WIDTH)
    drawn = arranging.stacked([row, _said(rules.told(step))], 6)
    return arranging.titled(words.step_title(number, step), drawn)


def pair_drawing(number: int, pair: Pair) -> Drawing:
    """Returns a step with its predicted and its observed collective side by side."""
    row = arranging.flowing(pair_drawings(pair), _GAP, _WIDTH)
    change = [] if pair.step is None else [change_drawing(pair.step)]
    reasons = [] if pair.step is None else [rules.told(pair.step)]
    said = map(_said, [*reasons, *rules.emulated(pair)])
    return arranging.titled(words.pair_title(number, pair), arranging.stacked([*change, row, *said], 8))


def pair_drawings(pair: Pair) -> list[Drawing]:
    """Returns the predicted and the observed collective of a step, each under its heading."""
    predicted = collective_drawing(pair.step.collective if pair.step else None)
    observed = f"{words.observed()} {words.mark(pair.agrees)}"
    return [
        arranging.titled(words.predicted(), predicted),
        arranging.titled(observed, collective_drawing(pair.observed)),
    ]


def change_drawing(step: Step) -> Drawing:
    """Returns a tensor before and after a step, striped where it is a partial sum."""
    adds = step.rule is Rule.PARTIAL_SUM and step.collective is not None
    before = _laid_out(step.source, partial=adds)
    after = _laid_out(step.sharding)
    middle = min(before.height, after.height) / 2
    line = node("path", d=f"M0 {shapes.number(middle)}h{_ARROW - 8:g}", stroke=shapes.INK, stroke_width=2)
    head = node("path", d=f"M{_ARROW - 9:g} {shapes.number(middle - 5)}v10l9 -5z", fill=shapes.INK)
    return arranging.beside([before, Drawing(_ARROW, 2 * middle, (line, head)), after], 10)


def collective_drawing(collective: Collective | None) -> Drawing:
    """Returns a collective: its groups on the mesh, and what is sent; or that nothing is."""
    lines = arranging.lines_of_text(words.collective_lines(collective), size=_TEXT, max_width=300)
    if collective is None:
        return lines
    return arranging.stacked([lines, groups_drawing(collective)], 6)


def groups_drawing(collective: Collective) -> Drawing:
    """Returns the mesh with its devices; those that exchange data share a colour and a Roman number."""
    group_of = {device: at for at, group in enumerate(collective.groups) for device in group}
    parts = [_plane(plane, group_of, collective.mesh) for plane in planes(collective.mesh)]
    return arranging.flowing(parts, _GAP / 2, _WIDTH / 2)


def holding_drawings(communication: Communication) -> list[Drawing]:
    """Returns for each device its block of each tensor."""
    named = words.tensor_names(communication)
    return [_holding(device_id, named) for device_id in range(communication.result.mesh.size)]


def _holding(device_id: int, named: Sequence[tuple[str, Sharding]]) -> Drawing:
    rows = arranging.beside([_held(name, sharding, device_id) for name, sharding in named], 8)
    width, height = rows.width + 16, rows.height + 30
    edge = shapes.rectangle(0.5, 0.5, width - 1, height - 1, fill="none", stroke=shapes.SOFT_INK, radius=6)
    number = shapes.text(8, 15, str(device_id), size=_TEXT, bold=True)
    return Drawing(width, height, (edge, number, rows.at(8, 22)))


def _held(name: str, sharding: Sharding, device_id: int) -> Drawing:
    """Returns the block that a device holds of a tensor, as a swatch with its letter."""
    width = max(30.0, arranging.text_width(name, _TEXT) + 4)
    nodes = (
        shapes.text(width / 2, 10, name, size=_SMALL, anchor="middle", fill=shapes.SOFT_INK),
        shapes.rectangle(0, 15, width, 22, fill=colour(sharding.holdings[device_id]), stroke=shapes.SOFT_INK),
        shapes.text(
            width / 2, 31, words.block_of(sharding, device_id), size=_TEXT, anchor="middle", bold=True
        ),
    )
    return Drawing(width, 38, nodes)


def _named_tensor(name: str, sharding: Sharding) -> Drawing:
    return arranging.titled(name, _laid_out(sharding))


def _laid_out(sharding: Sharding, *, partial: bool = False) -> Drawing:
    """Returns a tensor cut in its blocks, with its layout below."""
    require_drawable(sharding)
    layout = str(sharding.layout)
    name = Drawing(arranging.text_width(layout, _SMALL), 14, (shapes.text(0, 11, layout, size=_SMALL),))
    return arranging.stacked([small_tensor(sharding, partial=partial), name], 4)


def _plane(plane: Plane, group_of: dict[int, int], mesh: MeshSpec) -> Drawing:
    """Returns two dimensions of the mesh, or its only one, with the directions in which these run."""
    step, down = _CELL + _CELL_GAP, _CELL_HEIGHT + _CELL_GAP
    cells = tuple(
        _cell(device_id, group_of[device_id], column * step, row * down)
        for row, devices in enumerate(plane.devices)
        for column, device_id in enumerate(devices)
    )
    names = [f"{name} {arrow}" for name, arrow in zip(reversed(mesh.names), "→↓", strict=False)]
    place = [plane.name] if plane.name else []
    heading = " · ".join([*place, *reversed(names)])
    width = max(len(plane.columns) * step - _CELL_GAP, arranging.text_width(heading, _SMALL))
    name = shapes.text(0, 11, heading, size=_SMALL, fill=shapes.SOFT_INK)
    grid = Drawing(width, len(plane.rows) * down - _CELL_GAP, cells)
    return Drawing(width, grid.height + 17, (name, grid.at(0, 17)))


def _cell(device_id: int, group: int, x: float, y: float) -> Node:
    """Returns a device with the number of its group below."""
    middle = x + _CELL / 2
    return node(
        "g",
        shapes.rectangle(x, y, _CELL, _CELL_HEIGHT, fill=colour(group), stroke=shapes.SOFT_INK, radius=4),
        shapes.text(middle, y + 15, str(device_id), size=13, anchor="middle", bold=True),
        shapes.text(middle, y + 27, words.roman(group + 1), size=9, anchor="middle"),
        class_="member",
    )


def _title(content: str) -> Drawing:
    return arranging.lines_of_text([content], size=14, max_width=_WIDTH)


def _told(lines: Sequence[str]) -> Drawing:
    return arranging.lines_of_text(lines, size=12, max_width=_WIDTH, fill=shapes.SOFT_INK)


def _said(sentence: str, fill: str = shapes.INK) -> Drawing:
    return arranging.lines_of_text([sentence], size=13, max_width=_WIDTH, fill=fill)
