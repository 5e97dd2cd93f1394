"""The picture of a strategy: its devices as boxes, and where variables, gradients and batches live."""

from __future__ import annotations

from dataclasses import dataclass

from course_lib.i18n import _
from course_lib.pictures import arranging, shapes
from course_lib.pictures.arranging import Drawing, text_width
from course_lib.pictures.cells import colour
from course_lib.pictures.shapes import node
from lessons.strategies.links import link
from lessons.strategies.strategies import strategy as strategies
from lessons.strategies.strategies.strategy import Situation

WIDTH, _HEAD, _CHIP, _PAD, _GAP, _SIZE = 660.0, 24.0, 24.0, 8.0, 12.0, 12.0
_SEVERAL = 2  # what is drawn where there are several
_BATCHES = 3  # how far into the palette the colours of batches begin


@dataclass(frozen=True)
class Held:
    """What a device holds of one kind.

    Attributes:
        text: what it is.
        data: which data it is: what is equal has equal numbers. None for what has no colour.
        waits: whether it is a partial sum that waits for those of the other devices.
    """

    text: str
    data: int | None = None
    waits: bool = False


@dataclass(frozen=True)
class Holder:
    """A device by its name, with its machine or process where there are several, and what lives there."""

    name: str
    held: tuple[Held, ...]


@dataclass(frozen=True)
class Places:
    """Where everything lives under a strategy.

    Attributes:
        rows: the devices, those with variables for all first, else those of each machine.
        exchange: how gradients become one update of the variables; "" where there is one device.
        between: whether the exchange is one between the first row and the others.
    """

    rows: tuple[tuple[Holder, ...], ...]
    exchange: str
    between: bool = False


def places_of(situation: Situation) -> Places:
    """Returns where variables, gradients and batches live under the strategy that suits a situation.

    Where there are several machines or devices it has two of each.

    >>> for holder in places_of(Situation("GPUs")).rows[0]:
    ...     print(holder.name, [held.text for held in holder.held])
    GPU:0 ['all variables (a copy)', 'gradients of its part', 'batch, part 1 of 2']
    GPU:1 ['all variables (a copy)', 'gradients of its part', 'batch, part 2 of 2']

    Source: https://www.tensorflow.org/guide/distributed_training
    """
    special = {strategies.CENTRAL_STORAGE: _central, strategies.PARAMETER_SERVER: _served}
    return special.get(situation.advice.strategy, _synchronous)(situation)


def _synchronous(situation: Situation) -> Places:
    devices, machines = _devices(situation), _SEVERAL if situation.several_machines else 1
    count = len(devices) * machines
    if count == 1:
        alone = Held(_("all variables"), 0), Held(_("gradients")), Held(_("a batch"), _BATCHES)
        return Places(((Holder(devices[0], alone),),), "")
    names = [_name(situation, machine, device) for machine in range(machines) for device in devices]
    copy = Held(_("all variables (a copy)"), 0)
    holders = [Holder(name, (copy, *_part(at, count))) for at, name in enumerate(names)]
    in_a_row = len(devices) if len(devices) > 1 else count
    rows = tuple(tuple(holders[at : at + in_a_row]) for at in range(0, count, in_a_row))
    return Places(rows, _("All-reduce: the gradients are added up, and every copy gets the same update."))


def _central(situation: Situation) -> Places:
    cpu = Holder("CPU:0", (Held(_("all variables"), 0), Held(_("sum of the gradients"))))
    devices = _devices(situation)
    holders = [Holder(device, _part(at, len(devices))) for at, device in enumerate(devices)]
    exchange = _("Gradients go up, are added up and applied once; values come down.")
    return Places(((cpu,), tuple(holders)), exchange, between=True)


def _served(situation: Situation) -> Places:
    coordinator = Holder(_in_process(_("coordinator"), "CPU:0"), (Held(_("list of steps to do")),))
    servers = [
        Holder(
            _in_process(_("parameter server {index}", index=at), "CPU:0"),
            (Held(_("variables, part {part} of {count}", part=at + 1, count=_SEVERAL), at),),
        )
        for at in range(_SEVERAL)
    ]
    batches = [_("a batch"), _("another batch")]
    workers = [
        Holder(
            _in_process(_("worker {index}", index=at), " + ".join(_devices(situation))),
            (Held(_("gradients")), Held(batch, _BATCHES + at)),
        )
        for at, batch in enumerate(batches)
    ]
    exchange = _("Values come down; gradients go up and are applied as soon as a worker has them.")
    return Places(((coordinator, *servers), tuple(workers)), exchange, between=True)


def _part(at: int, count: int) -> tuple[Held, Held]:
    """Returns what each of several replicas holds of a step: its gradients, and its part of the batch."""
    batch = _("batch, part {part} of {count}", part=at + 1, count=count)
    return Held(_("gradients of its part"), waits=True), Held(batch, _BATCHES + at)


def _name(situation: Situation, machine: int, device: str) -> str:
    if not situation.several_machines:
        return device
    is_host = situation.devices == strategies.TPU
    process = _("host {index}", index=machine) if is_host else _("worker {index}", index=machine)
    return _in_process(process, device)


def _in_process(process: str, device: str) -> str:
    return _("{process}, {device}", process=process, device=device)


def _devices(situation: Situation) -> list[str]:
    several = situation.devices in (strategies.GPUS, strategies.TPU)
    kind = "GPU" if situation.devices == strategies.GPUS else situation.devices
    return [f"{kind}:{number}" for number in range(_SEVERAL if several else 1)]


def places_drawing(shown: Places) -> Drawing:
    """Returns the devices as boxes with what they hold, and between or below them what they exchange."""
    holders = [holder for row in shown.rows for holder in row]
    texts = [text for holder in holders for text in (holder.name, *(held.text for held in holder.held))]
    width = max(text_width(each, _SIZE) for each in texts) + 4 * _PAD
    rows = [arranging.flowing([_box(each, width) for each in row], _GAP, WIDTH) for row in shown.rows]
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
