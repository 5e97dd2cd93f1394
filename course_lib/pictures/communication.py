"""Pictures of collectives, of what an operation makes devices exchange, and of prediction beside reality."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from course_lib.i18n import _
from course_lib.pictures import arranging, shapes
from course_lib.pictures import communication_text as words
from course_lib.pictures.arranging import Drawing
from course_lib.pictures.cells import Line, cell
from course_lib.pictures.devices import mesh_drawing
from course_lib.pictures.figures import Figure, draw, headed
from course_lib.pictures.shapes import node
from course_lib.pictures.sharding import move_part, require_drawable
from course_lib.pictures.tensors import small_tensor
from course_lib.pictures.text import mark
from course_lib.specs.collectives import Collective
from course_lib.specs.communication import Communication, Rule, Step
from course_lib.specs.explanation import Explanation, Pair
from course_lib.specs.move import Move
from course_lib.specs.sharding import Sharding

_WIDTH, _GAP, _SMALL, _TEXT = 720.0, 24.0, 11.0, 12.0
_CELL, _CELL_HEIGHT, _ARROW = 31.0, 32.0, 22.0


@dataclass(frozen=True)
class Row:
    """A step of an operation: what is drawn of it, and what is read.

    Attributes:
        title: its number, its tensor, and from which layout it goes to which.
        change: the tensor before and after, or None where nobody predicted the step.
        exchanges: the collective, or the predicted and the observed one.
        heard: the collectives in words.
        why: the reasons.
    """

    title: str
    change: Drawing | None
    exchanges: Sequence[Drawing]
    heard: Sequence[str]
    why: Sequence[str]


@draw.register
def _explanation_figure(explanation: Explanation) -> Figure:
    """Returns the tensors, the steps and what they come to."""
    drawings = [arranging.flowing(tensor_drawings(explanation.predicted), _GAP, _WIDTH)]
    text = words.tensor_lines(explanation.predicted)
    if len(explanation.predicted.operands) == 1:
        moved, lines = move_part(Move(explanation.predicted.operands[0], explanation.predicted.result))
        drawings, text = [moved], [*text, "", *lines]
    for row in pair_rows(explanation):
        changes = [] if row.change is None else [row.change]
        exchanges = arranging.flowing(row.exchanges, _GAP, _WIDTH)
        drawn = arranging.stacked([*changes, exchanges, *map(_said, row.why)], 8)
        drawings.append(arranging.titled(row.title, drawn))
        text += ["", row.title, *(f"   {line}" for line in (*row.heard, *row.why))]
    totals, verdict = words.both_totals(explanation), words.verdict(explanation)
    return headed(
        words.title(explanation.predicted),
        [*drawings, *map(_said, totals)],
        [*text, "", *totals, verdict],
        width=_WIDTH,
        verdict=verdict,
        agrees=explanation.agrees,
    )


def pair_rows(explanation: Explanation) -> list[Row]:
    """Returns the steps, each with its predicted and its observed collective; then what ran besides."""
    return [_pair_row(at, pair) for at, pair in enumerate(explanation.pairs, start=1)]


def _pair_row(at: int, pair: Pair) -> Row:
    step = pair.step
    observed = " ".join([_("Observed"), mark(agrees=pair.agrees)])
    exchanges = [
        arranging.titled(_("Predicted"), collective_drawing(step.collective if step else None)),
        arranging.titled(observed, collective_drawing(pair.observed)),
    ]
    if step is None:
        return Row(_("{number}. Not predicted", number=at), None, exchanges, words.pair_lines(pair), [])
    why = [words.reason(step), *words.emulated(pair)]
    return Row(words.step_title(at, step), change_drawing(step), exchanges, words.pair_lines(pair), why)


def tensor_drawings(communication: Communication) -> list[Drawing]:
    """Returns what goes in and what comes out, each cut in its blocks."""
    named = words.tensor_names(communication)
    return [arranging.titled(f"{name} {each.global_shape}", _laid_out(each)) for name, each in named]


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
    """Returns a collective: what is sent, and the mesh, on which a group has a colour and a Roman number."""
    lines = arranging.lines_of_text(words.collective_lines(collective), size=_TEXT, max_width=300)
    if collective is None:
        return lines
    group_of = {device: at for at, group in enumerate(collective.groups) for device in group}
    members = [_member(device_id, group_of[device_id]) for device_id in range(collective.mesh.size)]
    return arranging.stacked([lines, mesh_drawing(collective.mesh, members)], 6)


def _laid_out(sharding: Sharding, *, partial: bool = False) -> Drawing:
    """Returns a tensor cut in its blocks, with its layout below."""
    require_drawable(sharding)
    layout = str(sharding.layout)
    name = Drawing(arranging.text_width(layout, _SMALL), 14, (shapes.text(0, 11, layout, size=_SMALL),))
    return arranging.stacked([small_tensor(sharding, partial=partial), name], 4)


def _member(device_id: int, group: int) -> Drawing:
    """Returns a device with the number of its group below."""
    lines = Line(str(device_id), -1, 13, bold=True), Line(words.roman(group + 1), 11, 9)
    shown = cell((0, 0, _CELL, _CELL_HEIGHT), *lines, fill=group, radius=4)
    return Drawing(_CELL, _CELL_HEIGHT, (node("g", *shown, class_="member"),))


def _said(sentence: str) -> Drawing:
    return arranging.lines_of_text([sentence], size=13, max_width=_WIDTH)
