"""Drawings of devices as cards, and of the grid of devices that a mesh is.

The last mesh dimension runs to the right, the one before runs down, as NumPy prints arrays; what comes before
these two makes planes.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from course_lib.pictures import arranging, shapes
from course_lib.pictures.arranging import Drawing
from course_lib.pictures.cells import Line, cell, colour
from course_lib.pictures.shapes import Node, node
from course_lib.pictures.tensors import pieces_drawing, thumbnails, value_width, values_drawing
from course_lib.pictures.text import MOST_VALUES, device_sentences
from course_lib.specs.components import Components
from course_lib.specs.mesh import MeshSpec
from course_lib.specs.move import Move
from course_lib.specs.sharding import Block, Sharding

_HEAD, _LEAST_WIDTH, _NOTE_SIZE, _NOTE_HEIGHT = 20.0, 54.0, 10.0, 13.0
_MOST_COLUMNS_ON_ONE_LINE = 12  # characters of an index that fit under a device
_CARD_GAP, _PLANE_MARGIN, _HEADER, _GRID_WIDTH = 6.0, 14.0, 18.0, 660.0


def plain_cards(mesh: MeshSpec) -> list[Drawing]:
    """Returns the devices of a mesh with nothing on them."""
    cards = []
    for device_id in range(mesh.size):
        label = Line(str(device_id), 5, 14, bold=True)
        nodes = cell((0.5, 0.5, 51, 39), label, fill=shapes.EMPTY, radius=6)
        cards.append(Drawing(52, 40, (node("g", *nodes, class_="device", data_device=str(device_id)),)))
    return cards


def predicted_cards(sharding: Sharding, *, pressable: bool = False) -> list[Drawing]:
    """Returns the devices with the block that each is to hold.

    A card that is `pressable` is a button whose name says what its device holds.
    """
    maps, notes = thumbnails(sharding), [_index_lines(block) for block in sharding.blocks]
    cards = []
    for device_id, number in enumerate(sharding.holdings):
        says = device_sentences(sharding, device_id) if pressable else ""
        roles = {"role": "button", "tabindex": "-1", "aria_label": says} if pressable else {}
        label = sharding.blocks[number].label
        cards.append(_card(device_id, number, label, maps[number], notes[number], roles=roles))
    return cards


def observed_cards(components: Components) -> list[Drawing]:
    """Returns the devices with what each really holds, as values if these are few."""
    width = value_width([component for component in components.components if component.size <= MOST_VALUES])
    maps, expected = thumbnails(components.sharding), components.sharding.holdings
    cards = []
    for at, (component, held) in enumerate(zip(components.components, components.holdings, strict=True)):
        few = component.size <= MOST_VALUES
        drawing = values_drawing(component, colour(held), width) if few else maps[held]
        label = "?" if held is None else components.sharding.blocks[held].label
        notes = [] if few else [str(component.shape)]
        cards.append(_card(at, held, label, drawing, notes, wrong=held != expected[at]))
    return cards


def moved_cards(move: Move) -> list[Drawing]:
    """Returns the devices with what each holds after a move, and where it comes from."""
    devices = range(move.after.mesh.size)
    return [_card(device_id, None, "", pieces_drawing(move, device_id), []) for device_id in devices]


def mesh_parts(mesh: MeshSpec, cards: Sequence[Drawing]) -> list[Drawing]:
    """Returns the grid of devices in parts that may flow like words: its planes, or each device of a row."""
    *outer, columns = ([f"{name}={place}" for place in range(size)] for name, size in mesh.dims)
    if not outer:
        return [_column(name, card) for name, card in zip(columns, cards, strict=True)]
    *outer, rows = outer
    planes: list[Drawing] = []
    for places in itertools.product(*outer):
        first = len(planes) * len(rows) * len(columns)
        planes.append(_plane(", ".join(places), rows, columns, cards[first:]))
    *others, last = planes
    return [*(replace(plane, width=plane.width + _PLANE_MARGIN) for plane in others), last]


def mesh_drawing(mesh: MeshSpec, cards: Sequence[Drawing]) -> Drawing:
    """Returns the grid of devices, each drawn as its card, with the position along each dimension."""
    return arranging.flowing(mesh_parts(mesh, cards), _CARD_GAP, _GRID_WIDTH)


def _card(
    device_id: int,
    block: int | None,
    label: str,
    drawing: Drawing,
    notes: Sequence[str],
    *,
    wrong: bool = False,
    roles: Mapping[str, str] | None = None,
) -> Drawing:
    """Returns one device: its number and its block above in the block's colour, what it holds below."""
    notes_height = _NOTE_HEIGHT * len(notes)
    width = max([_LEAST_WIDTH, drawing.width + 14, *(len(note) * _NOTE_SIZE * 0.62 + 10 for note in notes)])
    height = _HEAD + drawing.height + 14 + notes_height
    place = 0.5, 0.5, width - 1, height - 1
    edge: dict[str, Any] = (
        {"stroke": shapes.ALARM, "stroke_width": 2, "dashes": "4 3"} if wrong else {"stroke_width": 1}
    )
    nodes = [
        *cell(place, fill=shapes.PANEL, stroke_width=0, radius=6),
        shapes.tab(0.5, 0.5, width - 1, _HEAD, fill=colour(block), radius=6),
        *cell(place, fill="none", radius=6, class_="edge", **edge),
        shapes.text(8, 15, str(device_id), size=12, bold=True),
        shapes.text(width - 8, 15, label, size=12, anchor="end", bold=True),
        drawing.at((width - drawing.width) / 2, _HEAD + 7),
    ]
    for row, note in enumerate(notes):
        y = height - notes_height + _NOTE_HEIGHT * row + 6
        nodes.append(shapes.text(width / 2, y, note, size=_NOTE_SIZE, anchor="middle", monospace=True))
    kind = "device wrong" if wrong else "device"
    data = {"data_device": str(device_id), "data_block": None if block is None else str(block)}
    return Drawing(width, height, (node("g", *nodes, class_=kind, **data, **(roles or {})),))


def _index_lines(block: Block) -> list[str]:
    """Returns the index on one line, or on one line an axis if it is long."""
    if len(block.index_text) <= _MOST_COLUMNS_ON_ONE_LINE:
        return [block.index_text]
    *first, last = block.index_text.split(", ")
    return [*(f"{line}," for line in first), last]


def _plane(name: str, rows: Sequence[str], columns: Sequence[str], cards: Sequence[Drawing]) -> Drawing:
    """Returns a plane of the mesh under its name: its cards with the positions along rows and columns."""
    shown = cards[: len(rows) * len(columns)]
    labels = [arranging.text_width(column, 12) for column in columns]
    width, height = max([*labels, *(card.width for card in shown)]), max(card.height for card in shown)
    margin = max(arranging.text_width(row, 12) for row in rows) + 8
    lefts = [margin + at * (width + _CARD_GAP) for at in range(len(columns))]
    tops = [_HEADER + at * (height + _CARD_GAP) for at in range(len(rows))]
    nodes = [_place_name(left + width / 2, column) for left, column in zip(lefts, columns, strict=True)]
    rest = iter(shown)
    for top, row in zip(tops, rows, strict=True):
        nodes.append(shapes.text(0, top + height / 2 + 4, row, fill=shapes.SOFT_INK))
        for left, card in zip(lefts, rest, strict=False):
            nodes.append(card.at(left + (width - card.width) / 2, top))
    grid = Drawing(lefts[-1] + width, tops[-1] + height, tuple(nodes))
    return arranging.titled(name, grid) if name else grid


def _column(name: str, card: Drawing) -> Drawing:
    """Returns one device of a mesh of one dimension under its position."""
    width = max(card.width, arranging.text_width(name, 12))
    nodes = (_place_name(width / 2, name), card.at((width - card.width) / 2, _HEADER))
    return Drawing(width, _HEADER + card.height, nodes)


def _place_name(x: float, name: str) -> Node:
    return shapes.text(x, 12, name, anchor="middle", fill=shapes.SOFT_INK)
