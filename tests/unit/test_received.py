"""Who got which example: read from lists, drawn, and refused where it is none. Real ones: tests/tf."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.specs.received import ReceivedExamples

SVG = "{http://www.w3.org/2000/svg}"
UNEVEN = ReceivedExamples([[[0, 1], [2, 3]], [[4], []]])


def test_what_it_tells_of_uneven_and_empty_parts():
    assert UNEVEN.num_replicas == 2
    assert UNEVEN.sizes == ((2, 2), (1, 0))
    assert UNEVEN.batch_sizes == (4, 1)
    assert (UNEVEN.uneven, UNEVEN.empty, UNEVEN.repeated) == ((1,), ((1, 1),), ())


def test_numbers_of_numpy_are_taken():
    received = ReceivedExamples([[np.array([0, 1]), np.zeros(0, int)]])
    assert received.batches == (((0, 1), ()),)
    assert received == ReceivedExamples([[(0, 1), ()]])


@given(st.lists(st.tuples(*[st.lists(st.integers(0, 20), max_size=9)] * 3), min_size=1, max_size=4))
@settings(max_examples=25)
def test_every_part_is_in_the_picture_and_nothing_else(batches):
    received = ReceivedExamples(batches)
    tree = ElementTree.fromstring(received.picture().svg)
    empty = [each for each in tree.iter(f"{SVG}rect") if each.get("class") == "empty"]
    examples = [each for each in tree.iter(f"{SVG}rect") if each.get("class") == "example"]
    assert len(empty) == len(received.empty) == sum(not part for batch in batches for part in batch)
    parts = [part for batch in batches for part in batch if part]
    few = max((len(part) for part in parts), default=0) <= 8
    assert len(examples) == (sum(map(len, parts)) if few else len(parts))


def test_what_came_twice_has_a_thick_frame():
    tree = ElementTree.fromstring(ReceivedExamples([[[0, 1], [1, 2]]]).picture().svg)
    frames = [each.get("stroke-width") for each in tree.iter(f"{SVG}rect") if each.get("class") == "example"]
    assert frames == ["1", "3", "3", "1"]
