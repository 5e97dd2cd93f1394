"""Rings: who sends what to whom, against a simulation; and their picture."""

from __future__ import annotations

from xml.etree import ElementTree

from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.pictures import shapes
from course_lib.pictures.arranging import document
from tests.course import from_lesson

KINDS, Ring = from_lesson("all_reduce.ring", "KINDS", "Ring")
chunks_drawing = from_lesson("all_reduce.ring_picture", "chunks_drawing")


@st.composite
def rings(draw) -> Ring:
    count = draw(st.integers(2, 8))
    return Ring(draw(st.sampled_from(KINDS)), count, 840)


@given(rings())
@settings(max_examples=40, deadline=None)
def test_devices_hold_what_messages_bring_and_end_with_what_is_wanted(ring):
    """Device d brings 2 ** d for each chunk that it has, so that a buffer's bits are the devices in it."""
    devices = range(ring.num_devices)
    gathers = ring.kind == "all-gather"
    buffers = [[0 if gathers and chunk != at else 1 << at for chunk in devices] for at in devices]
    for step in range(1, ring.num_steps + 1):
        moment, adds = ring.after(step), ring.phase(step) == "reduce-scatter"
        for message, bits in [(each, buffers[each.sender][each.chunk]) for each in moment.messages]:
            there = buffers[message.receiver]
            there[message.chunk] = bits + there[message.chunk] if adds else bits
            assert message.receiver == (message.sender + 1) % ring.num_devices
        held = [[sum(1 << at for at in holding.sources) for holding in row] for row in moment.holdings]
        assert held == buffers
    for at, row in enumerate(buffers):
        whole = 2**ring.num_devices - 1
        if ring.kind == "reduce-scatter":
            assert row[at] == whole
        else:
            assert row == [1 << chunk if gathers else whole for chunk in devices]


@given(rings(), st.data())
@settings(max_examples=20, deadline=None)
def test_the_picture_shows_whose_values_each_chunk_holds(ring, data):
    moment = ring.after(data.draw(st.integers(0, ring.num_steps)))
    drawn = ElementTree.fromstring(shapes.markup(document(chunks_drawing(moment), "ring")))
    rows = [each for each in drawn.iter() if each.get("data-device")]
    assert [row.get("data-device") for row in rows] == [*map(str, range(ring.num_devices))]
    for row, holdings in zip(rows, moment.holdings, strict=True):
        chunks = [each for each in row.iter() if each.get("class", "").startswith("chunk")]
        for chunk, holding in zip(chunks, holdings, strict=True):
            held, colours = sorted(holding.sources), [shapes.PALETTE[at] for at in sorted(holding.sources)]
            assert [each.text for each in chunk.iter() if each.text] == [*map(str, held)]
            whole = len(held) == (1 if ring.kind == "all-gather" else ring.num_devices)
            faces = [each.get("fill") for each in chunk.iter() if each.tag.endswith("rect")]
            assert [fill for fill in faces if fill != "none"] == (colours if whole else [])
            stripes = [each.get("stroke") for each in chunk.iter() if each.tag.endswith("path")]
            assert stripes == ([] if whole or holding.sent_on else colours)
