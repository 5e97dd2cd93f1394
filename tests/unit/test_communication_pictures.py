"""Collectives, communication and prediction beside reality as pictures: golden text, and what SVG shows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from course_lib import MeshSpec
from course_lib.pictures.communication_text import reason, reasons
from course_lib.specs.collectives import Collective, Kind
from course_lib.specs.communication import Communication, Rule, product, relayout
from course_lib.specs.explanation import Explanation
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED
from tests.drawn import SVG, elements, words

ROW = MeshSpec([("x", 8)])
GRID = MeshSpec([("x", 4), ("y", 2)])
ALONE = MeshSpec([("x", 1), ("y", 2)])


def multiplied(mesh: MeshSpec, left, right) -> Communication:
    return product(LayoutSpec(left, mesh).of((16, 8)), LayoutSpec(right, mesh).of((8, 24)))


GATHERED = multiplied(ROW, ["x", UNSHARDED], [UNSHARDED, "x"])
SUMMED = multiplied(GRID, [UNSHARDED, "x"], ["x", "y"])


def ran(communication: Communication) -> Explanation:
    seen = tuple(each.as_run() for each in communication.collectives)
    return Explanation(communication, seen, communication.result.layout)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"observed": ()}, "✗ TensorFlow ran other collectives than predicted."),
        (
            {"layout": LayoutSpec(["x", UNSHARDED], ROW)},
            "✗ The result has the layout [x, unsharded]; predicted was [unsharded, unsharded].",
        ),
        ({"values_agree": False}, "✗ The values differ from those of NumPy."),
    ],
)
def test_what_differs_is_said(change, why):
    compared = replace(ran(GATHERED), **change)
    assert not compared.agrees
    assert compared.picture().text.splitlines()[-1] == why


def test_a_collective_that_nobody_predicted_has_a_row_of_its_own():
    compared = ran(GATHERED)
    besides = Collective(Kind.ALL_REDUCE, ROW, ("x",), 4)
    more = replace(compared, observed=(*compared.observed, besides))
    assert not more.agrees
    assert [pair.agrees for pair in more.pairs] == [True, True, False]
    assert "\n3. Not predicted\n   Predicted: free: nothing is sent\n   Observed: ✗ all-reduce" in (
        more.picture().text
    )
    assert len(elements(more, class_="member")) == 5 * ROW.size


def test_a_partial_sum_is_striped_and_its_sum_is_not():
    assert [words(part) for part in elements(ran(SUMMED), class_="partial")] == [["a"], ["b"]]
    assert elements(ran(GATHERED), class_="partial") == []


def test_groups_are_told_by_colour_and_by_number():
    members = elements(ran(SUMMED), class_="member")[:8]
    shown = [(*words(member), member.find(f"{SVG}rect").get("fill")) for member in members]
    first, second = shown[0][2], shown[1][2]
    assert first != second
    assert shown == [
        (str(device), "I" if device % 2 == 0 else "II", first if device % 2 == 0 else second)
        for device in range(8)
    ]


def test_every_rule_has_a_sentence_of_its_own():
    (step,) = SUMMED.steps
    sentences = reasons(step)
    assert set(sentences) == set(Rule)
    assert len(set(sentences.values())) == len(Rule)


@pytest.mark.parametrize(
    "communication",
    [
        relayout(LayoutSpec(["x", UNSHARDED], ALONE).of((16, 8)), LayoutSpec([UNSHARDED] * 2, ALONE)),
        multiplied(ALONE, [UNSHARDED, "x"], ["x", UNSHARDED]),
    ],
    ids=["relayout", "product"],
)
def test_a_group_of_one_device_sends_nothing_and_has_no_partial_sum(communication):
    (step,) = communication.steps
    assert step.collective is None
    assert reason(step) == "Along this mesh dimension there is one device only. Nothing is sent."
    assert elements(ran(communication), class_="partial") == []
