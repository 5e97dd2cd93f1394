"""What the second exercise of lesson `communication` takes for granted."""

import itertools

from course_lib import MeshSpec
from course_lib.specs import communication
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED
from tests.course import from_lesson

checks = from_lesson("communication", "checks")


def test_no_other_way_of_exercise_2_has_a_smaller_payload():
    grid, shape = MeshSpec([("batch", 4), ("model", 2)]), (16, 16)
    source, target = LayoutSpec([UNSHARDED, "batch"], grid), LayoutSpec(["batch", "model"], grid)
    payloads = {}
    for pair in itertools.product([UNSHARDED, "batch", "model"], repeat=2):
        if pair[0] != pair[1] or pair[0] == UNSHARDED:
            way = LayoutSpec(pair, grid)
            legs = (
                communication.relayout(source.of(shape), way),
                communication.relayout(way.of(shape), target),
            )
            payloads[pair] = sum(each.payload_bytes for leg in legs for each in leg.collectives)
    assert min(payloads.values()) == payloads["batch", UNSHARDED] == checks._LEAST
    assert sorted(payloads.values())[1] > checks._LEAST
