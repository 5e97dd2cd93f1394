"""Rings: who sends what to whom, against a simulation with real numbers; their words and pictures."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.pictures import shapes
from course_lib.pictures.arranging import document
from tests.course import from_lesson

ring_text = from_lesson("communication", "ring_text")
KINDS, Ring = from_lesson("communication.ring", "KINDS", "Ring")
chunks_drawing = from_lesson("communication.ring_picture", "chunks_drawing")

SVG_TAG = "{http://www.w3.org/2000/svg}"


@st.composite
def rings(draw, kinds=KINDS, most: int = 8) -> Ring:
    count = draw(st.integers(2, most))
    return Ring(draw(st.sampled_from(kinds)), count, count * draw(st.integers(0, 50)))


def messages(ring, step):
    return ring.after(step).messages


def chunks_of(array, count):
    return np.split(np.array(array), count)


def run(ring: Ring, arrays):
    """Sends real numbers as the messages say, all of a step at once; returns the chunks on each device.

    It knows what a message is and nothing else of the ring: each device keeps one buffer a chunk.
    """
    buffers = [chunks_of(array, ring.num_devices) for array in arrays]
    for step in range(1, ring.num_steps + 1):
        sent = messages(ring, step)
        on_their_way = [buffers[message.sender][message.chunk].copy() for message in sent]
        for message, values in zip(sent, on_their_way, strict=True):
            there = buffers[message.receiver]
            adds = ring.phase(step) == "reduce-scatter"
            there[message.chunk] = values + there[message.chunk] if adds else values
    return buffers


def arrays_for(ring: Ring, data, size: int = 3):
    seed = data.draw(st.integers(0, 2**32 - 1))
    return np.random.default_rng(seed).integers(-999, 999, (ring.num_devices, ring.num_devices * size))


# With real numbers


@given(rings(kinds=["all-reduce", "reduce-scatter"]), st.data())
@settings(max_examples=40, deadline=None)
def test_every_device_ends_with_the_sum_or_with_its_chunk_of_it(ring, data):
    arrays = arrays_for(ring, data)
    wanted = chunks_of(arrays.sum(axis=0), ring.num_devices)
    for device_id, buffers in enumerate(run(ring, arrays)):
        own = slice(None) if ring.kind == "all-reduce" else device_id
        np.testing.assert_array_equal(np.array(buffers)[own], np.array(wanted)[own])


@given(rings(kinds=["all-gather"]), st.data())
@settings(max_examples=40, deadline=None)
def test_after_an_all_gather_every_device_has_the_chunks_of_all(ring, data):
    whole = chunks_of(arrays_for(ring, data)[0], ring.num_devices)
    unknown = np.full_like(whole[0], 10**6)  # what a device has no chunk of yet: it must never arrive
    arrays = [
        np.concatenate([part if chunk == device_id else unknown for chunk, part in enumerate(whole)])
        for device_id in range(ring.num_devices)
    ]
    for buffers in run(ring, arrays):
        np.testing.assert_array_equal(buffers, whole)


@given(rings(kinds=["all-reduce", "reduce-scatter"]), st.data())
@settings(max_examples=40, deadline=None)
def test_holdings_name_the_devices_whose_numbers_are_in_a_buffer(ring, data):
    """Device d brings 2 ** d for each element, so that a buffer's bits are the devices in it."""
    step = data.draw(st.integers(0, ring.num_steps))
    buffers = [[1 << device_id] * ring.num_devices for device_id in range(ring.num_devices)]
    for number in range(1, step + 1):
        moved = [(message, buffers[message.sender][message.chunk]) for message in ring.after(number).messages]
        for message, bits in moved:
            assert {at for at in range(ring.num_devices) if bits >> at & 1} == set(message.sources)
            buffers[message.receiver][message.chunk] = (
                bits + buffers[message.receiver][message.chunk]
                if ring.phase(number) == "reduce-scatter"
                else bits
            )
    for row, bits in zip(ring.after(step).holdings, buffers, strict=True):
        for holding, held in zip(row, bits, strict=True):
            assert sum(1 << at for at in holding.sources) == held


# Bytes and steps


# Words


@pytest.mark.parametrize(
    ("ring", "step", "told"),
    [
        (Ring("reduce-scatter", 2, 2), 0, "It needs one chunk of the sum over all devices: device 0"),
        (Ring("reduce-scatter", 4, 4), 3, "Each device sent (4 − 1) / 4 = 0.75 of the array."),
        (
            Ring("all-reduce", 3, 3),
            4,
            "has all chunks. Each device sent 2 (3 − 1) / 3 ≈ 1.333 times",
        ),
        (Ring("all-gather", 3, 3), 0, "Each device has one chunk of 3: device 0 has chunk A"),
        (Ring("all-reduce", 2, 2), 2, "= 1 times the array. To send its whole array to 1 other device"),
    ],
)
def test_each_step_says_what_came_of_it(ring, step, told):
    assert told in " ".join(ring_text.sentences(ring.after(step)))


# Pictures


def elements(moment, tag: str, class_: str | None = None) -> list[ElementTree.Element]:
    found = ElementTree.fromstring(shapes.markup(document(chunks_drawing(moment), ""))).iter(
        f"{SVG_TAG}{tag}"
    )
    return [element for element in found if class_ is None or element.get("class") == class_]


@given(rings(), st.data())
@settings(max_examples=20, deadline=None)
def test_the_picture_shows_whose_values_each_chunk_holds(ring, data):
    moment = ring.after(data.draw(st.integers(0, ring.num_steps)))
    rows = elements(moment, "g", "holder")
    assert [row.get("data-device") for row in rows] == [*map(str, range(ring.num_devices))]
    for row, holdings in zip(rows, moment.holdings, strict=True):
        chunks = [each for each in row.iter(f"{SVG_TAG}g") if each.get("class", "").startswith("chunk")]
        for chunk, holding in zip(chunks, holdings, strict=True):
            digits = "".join(text.text for text in chunk.iter(f"{SVG_TAG}text"))
            stripes = [path.get("stroke") for path in chunk.iter(f"{SVG_TAG}path")]
            fills = [rect.get("fill") for rect in chunk.iter(f"{SVG_TAG}rect")][:-1]
            colours = [shapes.PALETTE[device_id] for device_id in sorted(holding.sources)]
            assert digits == "".join(map(str, sorted(holding.sources)))
            whole = len(holding.sources) == (1 if ring.kind == "all-gather" else ring.num_devices)
            assert fills == (colours if whole else [])
            assert stripes == ([] if whole or holding.sent_on else colours)
