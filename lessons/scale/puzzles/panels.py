"""What a puzzle shows of a choice: cut tensors, devices, exchanges as lanes, stages and their schedule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from course_lib.explorers.stepping import lanes_panel
from course_lib.i18n import _, labelled
from course_lib.pictures import arranging
from course_lib.pictures.communication_text import collective_lines, exchange, totals
from course_lib.pictures.devices import mesh_parts, predicted_cards
from course_lib.pictures.shapes import Node, node
from course_lib.pictures.tensors import tensor_drawing as blocks_drawing
from course_lib.pictures.text import axis_notes, block_lines
from course_lib.specs.sharding import Sharding
from course_lib.widgets import pieces
from course_lib.widgets.pieces import words
from lessons.scale.cost import MIXED, STAGE
from lessons.scale.plan_bars import three_digits, time_text
from lessons.scale.puzzles import training_pictures
from lessons.scale.puzzles.pictures import nodes_drawings, nodes_line, tensor_drawing, tensor_line
from lessons.scale.puzzles.quantities import name_of, told
from lessons.scale.puzzles.tasks import Found, Setting


def panels_of(found: Found) -> Iterator[Node]:
    """Yields the pictures of what a choice gives."""
    if found.setting:
        yield from _of_a_training(found.setting)
    elif len(found.tensors) == 1:
        yield from _of_one_tensor(found.tensors[0].sharding)
    else:
        yield _tensors(found)
    if found.per_node:
        yield _nodes(found)
    if not found.setting and len(found.tensors) > 1:
        yield _exchanges(found)
    if sent := found.parts.get("sent"):
        lines = [
            labelled(what, told("sent", sent[what]))
            for what in sorted(sent, key=sent.__getitem__, reverse=True)
        ]
        yield pieces.panel(name_of("sent"), _list(lines))
    if found.spent_on:
        yield pieces.panel(_("How long each takes"), _list(_slowest_first(found)))


def _of_one_tensor(sharding: Sharding) -> Iterator[Node]:
    """Yields a tensor with its blocks, and the devices with what each holds: a click marks equal blocks."""
    image = pieces.image(blocks_drawing(sharding, outlines=True), "\n".join(block_lines(sharding)))
    yield pieces.panel(_("The tensor"), image, axis_notes(sharding))
    cards = mesh_parts(sharding.mesh, predicted_cards(sharding, pressable=True))
    held = _("Each holds {size} B.", size=f"{sharding.bytes_per_device():,}")
    yield pieces.panel(_("The devices"), pieces.usable(cards, _("The devices")), [held])


def _tensors(found: Found) -> Node:
    element_bytes = MIXED.element_bytes if found.per_node else 4
    how = found.devices, element_bytes
    shown = [
        node(
            "div",
            arranging.part_of_a_page(tensor_drawing(each, *how), aria_hidden="true"),
            role="img",
            aria_label=tensor_line(each, *how),
        )
        for each in found.tensors
    ]
    legend = [_("In a tensor, equal colors are equal data. The numbers are the devices that hold a block.")]
    if found.per_node:
        legend.append(_("Drawn is one block of the network, and one of its copies."))
    return pieces.panel(_("The tensors"), node("div", *shown, class_="flow tensors"), legend)


def _nodes(found: Found) -> Node:
    """Returns the devices that share a copy of the network, in their nodes."""
    setting = found.setting
    stages = setting.mesh.dim_size(STAGE) if setting else 1
    shared = len(found.devices) // stages
    shown = {
        device: (str(at // shared if setting else device), at // shared if setting else at)
        for at, device in enumerate(found.devices)
    }
    drawn = pieces.images(nodes_drawings(shown, found.per_node), nodes_line(found.devices, found.per_node))
    legend = [
        _("In color: the devices that work on the same examples, with the number of their stage.")
        if setting
        else _("In color: the devices that share one copy of the network."),
    ]
    title = _("One replica, in its nodes") if setting else _("One copy, in its nodes")
    return pieces.panel(title, drawn, legend)


def _exchanges(found: Found) -> Node:
    """Returns the lanes of a step, or that nothing is sent."""
    title = _("What is exchanged within a copy") if found.per_node else _("What is exchanged")
    notes = [
        _(
            "Over a lane stands the payload. Among n devices an all-reduce sends 2(n − 1)/n times as much, an"
            " all-gather (n − 1)/n times."
        )
    ]
    if found.per_node:
        notes = [
            _("One micro-batch of four, one block of the network, and tensors from a megabyte on."),
            _("Besides, the copies add up their gradients over batch, once a step."),
            _("↗ goes from node to node; all others stay inside one. The model says how long each takes."),
        ]
    if not found.events:
        return pieces.panel(title, node("p", totals([])), notes if found.per_node else [])
    told = [*_timed(found)] if found.per_node else [*_counted(found)]
    return lanes_panel(
        title,
        found.mesh,
        found.events,
        devices=found.devices,
        heads=[head for head, _line in told],
        lines=[line for _head, line in told],
        notes=notes,
    )


def _counted(found: Found) -> Iterator[tuple[list[str], str]]:
    """Yields what stands over the lanes of each exchange, and what is said of it: bytes."""
    for event in found.events:
        if collective := event.collective:
            head = f"{exchange(collective)} · {collective.payload_bytes:,} B"
            line = labelled(event.tensor, _(", ").join(collective_lines(collective)))
            yield [event.tensor, head], line


def _timed(found: Found) -> Iterator[tuple[list[str], str]]:
    """Yields the same where the time of a step counts: also how long each takes, and where it goes."""
    for event, (seconds, is_between) in zip(found.events, found.spent_on, strict=True):
        if collective := event.collective:
            size, time = f"{three_digits(collective.payload_bytes / 1e6)} MB", time_text(seconds)
            over = exchange(collective)
            way = _("inside a node")
            head = over
            if is_between:
                head, way = f"{over} ↗", _("from node to node")
            line = labelled(event.tensor, _(", ").join([over, size, way, time]))
            yield [event.tensor, f"{head} · {size} · {time}"], line


def _of_a_training(setting: Setting) -> Iterator[Node]:
    """Yields the blocks on their stages, what a device keeps of its part, and the schedule."""
    image = pieces.image(training_pictures.blocks_drawing(setting), _("The blocks, first to last"))
    yield pieces.panel(_("The network"), image, training_pictures.blocks_lines(setting))
    state, lines = training_pictures.state_drawing(setting)
    yield pieces.panel(_("What a device keeps of its part"), pieces.image(state, "\n".join(lines)))
    lanes = pieces.image(training_pictures.schedule_drawing(setting), _("What each stage does"))
    yield pieces.panel(_("A step, stage by stage"), lanes, training_pictures.schedule_lines(setting))


def _slowest_first(found: Found) -> list[str]:
    """Returns each exchange with its time."""
    timed = zip(found.spent_on, _timed(found), strict=True)
    return [line for _taken, (_head, line) in sorted(timed, key=lambda each: each[0][0], reverse=True)]


def _list(lines: Sequence[str]) -> Node:
    return node("ul", *(node("li", *words(line)) for line in lines), class_="exchanges")
