"""The picture of a strategy: its devices as boxes, and where variables, gradients and batches live."""

from __future__ import annotations

from collections.abc import Sequence

from course_lib.i18n import _
from course_lib.pictures import arranging, shapes
from course_lib.pictures.arranging import Drawing, text_width
from course_lib.pictures.cells import colour
from course_lib.pictures.figures import Figure, draw, framed
from course_lib.pictures.links import link
from course_lib.pictures.shapes import Node, node
from lessons.lesson_09_strategies import strategy_places as places
from lessons.lesson_09_strategies.strategy import Situation
from lessons.lesson_09_strategies.strategy_places import Held, Holder, Places, places_of

_WIDTH, _HEAD, _CHIP, _PAD, _GAP, _SIZE = 660.0, 24.0, 24.0, 8.0, 12.0, 12.0
_BATCH_COLOURS = 3  # how far into the palette those of batches begin
_NO_COLOUR = {places.GRADIENTS, places.GRADIENT_SUM, places.STEPS}


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
    joined = link(exchange_text(shown), max(row.width for row in rows))
    first, *others = rows
    ordered = [*rows, joined] if shown.exchange == places.ALL_REDUCE else [first, joined, *others]
    return arranging.stacked(ordered, 8)


def places_lines(shown: Places) -> list[str]:
    """Returns what the picture shows: a line for each device, and what they exchange."""
    lines = [_line(holder) for row in shown.rows for holder in row]
    return [*lines, *([exchange_text(shown)] if shown.exchange else [])]


def _line(holder: Holder) -> str:
    held = _(", ").join(map(held_text, holder.held))
    return f"{holder_text(holder)}: {held}"


def legend(shown: Places) -> list[str]:
    """Returns how the picture is to be read."""
    held = [each for row in shown.rows for holder in row for each in holder.held]
    several = len(shown.rows) > 1 or len(shown.rows[0]) > 1
    return [
        *([_("The picture has two of what there are several of.")] if several else []),
        *([_("Equal colours are equal data.")] if any(each.copies > 1 for each in held) else []),
        *(
            [_("Stripes mark a partial sum that waits to be added.")]
            if any(each.waits for each in held)
            else []
        ),
    ]


def exchange_text(shown: Places) -> str:
    """Returns how gradients become one update of the variables."""
    return {
        places.ALL_REDUCE: _("All-reduce: the gradients are added up, and every copy gets the same update."),
        places.TO_THE_CPU: _("Gradients go up, are added up and applied once; values come down."),
        places.TO_THE_SERVERS: _(
            "Values come down; gradients go up and are applied as soon as a worker has them."
        ),
    }[shown.exchange]


def holder_text(holder: Holder) -> str:
    """Returns the name of a device, with its machine or process where there are several.

    >>> holder_text(Holder("worker", 1, "GPU:0", ()))
    'worker 1, GPU:0'
    """
    process = {
        places.MACHINE: "",
        places.WORKER: _("worker {index}", index=holder.index),
        places.HOST: _("host {index}", index=holder.index),
        places.SERVER: _("parameter server {index}", index=holder.index),
        places.COORDINATOR: _("coordinator"),
    }[holder.role]
    return _("{process}, {device}", process=process, device=holder.device) if process else holder.device


def held_text(held: Held) -> str:
    """Returns what a device holds.

    >>> held_text(Held("variables", copies=2)), held_text(Held("batch", 0, 2))
    ('all variables (a copy)', 'batch, part 1 of 2')
    """
    part = {"part": held.part + 1, "count": held.num_parts}
    if held.kind == places.VARIABLES and held.num_parts > 1:
        return _("variables, part {part} of {count}", **part)
    if held.kind == places.VARIABLES:
        return _("all variables (a copy)") if held.copies > 1 else _("all variables")
    if held.kind == places.BATCH:
        return _("batch, part {part} of {count}", **part) if held.num_parts > 1 else _whole_batch(held)
    return {
        places.GRADIENTS: _("gradients of its part") if held.waits else _("gradients"),
        places.GRADIENT_SUM: _("sum of the gradients"),
        places.STEPS: _("list of steps to do"),
    }[held.kind]


def _whole_batch(held: Held) -> str:
    return _("another batch") if held.part else _("a batch")


def _box_width(holder: Holder) -> float:
    words = [holder_text(holder), *(held_text(held) for held in holder.held)]
    return max(text_width(each, _SIZE) for each in words) + 4 * _PAD


def _box(holder: Holder, width: float) -> Drawing:
    """Returns a device: its name above, and a bar for all that it holds."""
    height = _HEAD + (_CHIP + 6) * len(holder.held) + 4
    nodes = [
        shapes.rectangle(
            0.5, 0.5, width - 1, height - 1, fill=shapes.PANEL, stroke=shapes.SOFT_INK, radius=6
        ),
        shapes.tab(1, 1, width - 2, _HEAD - 2, fill=shapes.EMPTY, radius=5),
        shapes.text(_PAD, 16, holder_text(holder), size=_SIZE, bold=True),
    ]
    for at, held in enumerate(holder.held):
        nodes.append(_chip(held, width - 2 * _PAD).at(_PAD, _HEAD + 3 + (_CHIP + 6) * at))
    return Drawing(width, height, (node("g", *nodes, class_="holder"),))


def _chip(held: Held, width: float) -> Drawing:
    fill = shapes.PANEL if held.kind in _NO_COLOUR else _colour(held)
    face: Sequence[Node] = [
        shapes.rectangle(0, 0, width, _CHIP, fill=fill, stroke_width=0),
        *([shapes.stripes(width, _CHIP, stroke=shapes.PALETTE[-1])] if held.waits else []),
        shapes.rectangle(0, 0, width, _CHIP, fill="none", stroke=shapes.SOFT_INK, radius=2),
    ]
    label = shapes.text(_PAD, 16, held_text(held), size=_SIZE, halo=held.waits)
    return Drawing(width, _CHIP, (*face, label))


def _colour(held: Held) -> str:
    return colour(held.part + (_BATCH_COLOURS if held.kind == places.BATCH else 0))
