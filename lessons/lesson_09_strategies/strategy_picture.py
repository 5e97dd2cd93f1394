"""The picture of a strategy: its devices as boxes, and where variables, gradients and batches live."""

from __future__ import annotations

from course_lib.i18n import _
from course_lib.pictures import arranging, shapes
from course_lib.pictures.arranging import Drawing, text_width
from course_lib.pictures.cells import colour
from course_lib.pictures.figures import Figure, draw, framed
from course_lib.pictures.links import link
from course_lib.pictures.shapes import node
from lessons.lesson_09_strategies.strategy import Situation
from lessons.lesson_09_strategies.strategy_places import Held, Holder, Places, places_of

_WIDTH, _HEAD, _CHIP, _PAD, _GAP, _SIZE = 660.0, 24.0, 24.0, 8.0, 12.0, 12.0


@draw.register
def _situation_figure(situation: Situation) -> Figure:
    advice = situation.advice
    told = [advice.rule, *([advice.warning.replace("`", "")] if advice.warning else [])]
    shown = places_of(situation)
    drawings = [
        arranging.lines_of_text([advice.strategy], size=14, max_width=_WIDTH),
        arranging.lines_of_text(told, size=12, max_width=_WIDTH, fill=shapes.SOFT_INK),
        places_drawing(shown),
        arranging.lines_of_text(legend(shown), size=12, max_width=_WIDTH, fill=shapes.SOFT_INK),
    ]
    return framed(advice.strategy, drawings, [*told, "", *places_lines(shown)])


def places_drawing(shown: Places) -> Drawing:
    """Returns the devices as boxes with what they hold, and between or below them what they exchange."""
    width = max(_box_width(holder) for row in shown.rows for holder in row)
    rows = [arranging.flowing([_box(each, width) for each in row], _GAP, _WIDTH) for row in shown.rows]
    if not shown.exchange:
        return rows[0]
    joined = link(shown.exchange, max(row.width for row in rows))
    first, *others = rows
    return arranging.stacked([first, joined, *others] if shown.between else [*rows, joined], 8)


def places_lines(shown: Places) -> list[str]:
    """Returns what the picture shows: a line for each device, and what they exchange."""
    comma = _(", ")
    lines = [
        f"{holder.name}: {comma.join(held.text for held in holder.held)}"
        for row in shown.rows
        for holder in row
    ]
    return [*lines, *([shown.exchange] if shown.exchange else [])]


def legend(shown: Places) -> list[str]:
    """Returns how the picture is to be read."""
    held = [each for row in shown.rows for holder in row for each in holder.held]
    data = [each.data for each in held if each.data is not None]
    notes = {
        _("The picture has two of what there are several of."): bool(shown.exchange),
        _("Equal colours are equal data."): len(set(data)) < len(data),
        _("Stripes mark a partial sum that waits to be added."): any(each.waits for each in held),
    }
    return [note for note, applies in notes.items() if applies]


def _box_width(holder: Holder) -> float:
    words = [holder.name, *(held.text for held in holder.held)]
    return max(text_width(each, _SIZE) for each in words) + 4 * _PAD


def _box(holder: Holder, width: float) -> Drawing:
    """Returns a device: its name above, and a bar for all that it holds."""
    height = _HEAD + (_CHIP + 6) * len(holder.held) + 4
    nodes = [
        shapes.rectangle(
            0.5, 0.5, width - 1, height - 1, fill=shapes.PANEL, stroke=shapes.SOFT_INK, radius=6
        ),
        shapes.tab(1, 1, width - 2, _HEAD - 2, fill=shapes.EMPTY, radius=5),
        shapes.text(_PAD, 16, holder.name, size=_SIZE, bold=True),
    ]
    for at, held in enumerate(holder.held):
        nodes.append(_chip(held, width - 2 * _PAD).at(_PAD, _HEAD + 3 + (_CHIP + 6) * at))
    return Drawing(width, height, (node("g", *nodes, class_="holder"),))


def _chip(held: Held, width: float) -> Drawing:
    fill = shapes.PANEL if held.data is None else colour(held.data)
    face = [
        shapes.rectangle(0, 0, width, _CHIP, fill=fill, stroke_width=0),
        *([shapes.stripes(width, _CHIP, stroke=shapes.PALETTE[-1])] if held.waits else []),
        shapes.rectangle(0, 0, width, _CHIP, fill="none", stroke=shapes.SOFT_INK, radius=2),
    ]
    label = shapes.text(_PAD, 16, held.text, size=_SIZE, halo=held.waits)
    return Drawing(width, _CHIP, (*face, label))
