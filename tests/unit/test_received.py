"""Who got which example, as a picture. Real ones: tests/tf, and the stored outputs of two lessons."""

from __future__ import annotations

from lessons.strategies.global_batches import ReceivedExamples
from tests.drawn import elements


def test_an_empty_part_is_dashed_and_what_came_twice_has_a_thick_frame():
    parts = elements(ReceivedExamples([[[0, 1], [1, 2]], [[3], []]]), "rect", "part")
    assert [each.get("stroke-width") for each in parts] == ["3", "3", "1", "1"]
    assert [each.get("stroke-dasharray") for each in parts] == [None, None, None, "3 3"]
