"""Who got which example, as a picture. Real ones: tests/tf, and the stored outputs of two lessons."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from lessons.strategies.received_examples import ReceivedExamples
from tests.drawn import elements


@given(st.lists(st.tuples(*[st.lists(st.integers(0, 20), max_size=9)] * 3), min_size=1, max_size=4))
@settings(max_examples=25)
def test_every_part_is_in_the_picture_and_nothing_else(batches):
    received = ReceivedExamples(batches)
    empty, examples = (elements(received, "rect", class_) for class_ in ("empty", "example"))
    assert len(empty) == len(received.empty) == sum(not part for batch in batches for part in batch)
    parts = [part for batch in batches for part in batch if part]
    few = max((len(part) for part in parts), default=0) <= 8
    assert len(examples) == (sum(map(len, parts)) if few else len(parts))


def test_what_came_twice_has_a_thick_frame():
    examples = elements(ReceivedExamples([[[0, 1], [1, 2]]]), "rect", "example")
    assert [each.get("stroke-width") for each in examples] == ["1", "3", "3", "1"]
