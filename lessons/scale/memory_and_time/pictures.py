"""The picture of `memory_and_time`: what overlap cannot hide."""

from __future__ import annotations

from course_lib.i18n import _, labelled
from course_lib.pictures import arranging, shapes
from course_lib.pictures.arranging import Drawing, text_width
from course_lib.pictures.cells import Line, cell
from course_lib.pictures.figures import Figure, headed

_HEIGHT, _SIZE = 24.0, 12.0
_SLOT = 30.0  # a block's backward pass
_COMPUTE, _HIDDEN, _EXPOSED = *shapes.PALETTE[:2], shapes.ALARM
_BLOCKS, _SHORT, _LONG = 8, 0.6, 1.4  # the exchange of a block, in slots


def exposed_exchange() -> Figure:
    """Returns two backward passes over time, one of which hides nearly all of its exchange."""
    says = [
        _("Upper lane: the backward pass of each block, the last block of the network first."),
        _("Lower lane: the all-reduce of the gradients of that block. Red: exposed."),
    ]
    short, long = _("a short exchange"), _("a long exchange")
    drawn = [
        arranging.titled(short, _two_lanes(_SHORT)),
        arranging.titled(long, _two_lanes(_LONG)),
    ]
    lines = [
        labelled(short, _("only the all-reduce of the first block comes after the backward pass")),
        labelled(long, _("the all-reduces go on after the backward pass")),
    ]
    return headed(_("What overlap hides"), drawn, [*says, *lines], width=620, says=says)


def _two_lanes(exchange: float) -> Drawing:
    names = [_("backward pass"), _("all-reduce")]
    label = max(text_width(name, _SIZE) for name in names) + 10
    nodes = [
        shapes.text(0, lane * (_HEIGHT + 4) + _HEIGHT / 2 + 4, name, size=_SIZE)
        for lane, name in enumerate(names)
    ]
    end = 0.0
    for at in range(_BLOCKS):
        block = Line(str(_BLOCKS - 1 - at))
        nodes += cell((label + at * _SLOT, 0, _SLOT, _HEIGHT), block, fill=_COMPUTE)
        start, end = max(at + 1.0, end), max(at + 1.0, end) + exchange
        hidden = min(max(_BLOCKS - start, 0), exchange)
        for begin, long, fill in (
            (start, hidden, _HIDDEN),
            (start + hidden, exchange - hidden, _EXPOSED),
        ):
            if long > 0:
                place = label + begin * _SLOT, _HEIGHT + 4, long * _SLOT, _HEIGHT
                nodes += cell(place, *([block] if long > exchange / 2 else []), fill=fill)
    return Drawing(label + _SLOT * end, 2 * _HEIGHT + 4, tuple(nodes))
