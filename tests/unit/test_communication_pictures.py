"""Collectives, communication and prediction beside reality as pictures: golden text, and what SVG shows."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib import UNSHARDED, CourseError, LayoutSpec, MeshSpec
from course_lib.pictures.communication_rules import reasons, told
from course_lib.pictures.communication_text import bytes_text, roman
from course_lib.specs.collectives import Collective, Kind
from course_lib.specs.communication import Communication, Rule, product, relayout
from course_lib.specs.compared import Compared

ROW = MeshSpec([("x", 8)])
GRID = MeshSpec([("x", 4), ("y", 2)])
CUBE = MeshSpec([("x", 2), ("y", 2), ("z", 2)])
ALONE = MeshSpec([("x", 1), ("y", 2)])
SVG_TAG = "{http://www.w3.org/2000/svg}"


def multiplied(mesh: MeshSpec, left, right, wanted=None) -> Communication:
    factors = LayoutSpec(left, mesh).of((16, 8)), LayoutSpec(right, mesh).of((8, 24))
    return product(*factors, wanted and LayoutSpec(wanted, mesh))


GATHERED = multiplied(ROW, ["x", UNSHARDED], [UNSHARDED, "x"])
SUMMED = multiplied(GRID, [UNSHARDED, "x"], ["x", "y"])


def ran(communication: Communication, kind: str = "CPU") -> Compared:
    seen = tuple(each.as_run(kind) for each in communication.collectives)
    return Compared(communication, seen, communication.result.layout, kind)


def picture(thing) -> ElementTree.Element:
    return ElementTree.fromstring(thing.picture().svg)


def of_class(root: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return [each for each in root.iter() if each.get("class") == name]


def words_of(element: ElementTree.Element) -> list[str]:
    return [each.text for each in element.iter(f"{SVG_TAG}text")]


def check_text(thing, golden: str) -> None:
    assert thing.picture().text == golden.strip("\n")


def test_a_collective():
    check_text(
        Collective(Kind.ALL_REDUCE, CUBE, ("x", "z"), 800),
        """
all-reduce over x, z on the mesh x 2 × y 2 × z 2
payload: 800 bytes
each device sends 1,200 bytes in a ring
I: 0 1 4 5 · II: 2 3 6 7
""",
    )


def test_an_all_to_all_is_no_ring():
    check_text(
        Collective(Kind.ALL_TO_ALL, MeshSpec([("x", 3)]), ("x",), 100),
        """
all-to-all over x on the mesh x 3
payload: 100 bytes
each device sends 66.7 bytes
I: 0 1 2
""",
    )


def test_a_product_that_needs_a_sum():
    check_text(
        SUMMED,
        """
The matrix product A @ B on the mesh x 4 × y 2
A (16, 8) [unsharded, x]
B (8, 24) [x, y]
AB (16, 24) [unsharded, y]

1. AB: partial sums [unsharded, y] → sums
   all-reduce over x
   payload: 768 bytes
   each device sends 1,152 bytes in a ring
   I: 0 2 4 6 · II: 1 3 5 7
   The axis that is summed over is split over x: each device has added its own terms only.\
 The all-reduce adds what the devices of a group hold; each receives the sum.

1 collective; each device sends 1,152 bytes.
""",
    )


def test_a_relayout_with_a_free_step():
    check_text(
        relayout(LayoutSpec([UNSHARDED, "x"], GRID).of((16, 8)), LayoutSpec(["x", "y"], GRID)),
        """
From the layout [unsharded, x] to [x, y] on the mesh x 4 × y 2
A (16, 8) [unsharded, x]

1. A: [unsharded, x] → [unsharded, unsharded]
   all-gather over x
   payload: 512 bytes
   each device sends 384 bytes in a ring
   I: 0 2 4 6 · II: 1 3 5 7
   Parts of A that lie on different devices along x have to come together.\
 The all-gather joins what the devices of a group hold; each receives the whole.

2. A: [unsharded, unsharded] → [x, y]
   free: nothing is sent
   Each device already holds all of its new block of A. Each device cuts its part out; nothing is sent.

1 collective; each device sends 384 bytes.
""",
    )


def test_a_product_that_costs_nothing():
    free = multiplied(ROW, ["x", UNSHARDED], [UNSHARDED, UNSHARDED])
    assert free.picture().text.endswith("\n\nNo collective: no device needs data of another.")


def test_prediction_beside_reality_on_cpus():
    check_text(
        ran(relayout(LayoutSpec(["x", UNSHARDED], ROW).of((16, 8)), LayoutSpec([UNSHARDED] * 2, ROW))),
        """
From the layout [x, unsharded] to [unsharded, unsharded] on the mesh x 8
A (16, 8) [x, unsharded]

1. A: [x, unsharded] → [unsharded, unsharded]
   Parts of A that lie on different devices along x have to come together.\
 The all-gather joins what the devices of a group hold; each receives the whole.
   Predicted: all-gather over x; payload: 512 bytes; each device sends 448 bytes in a ring;\
 I: 0 1 2 3 4 5 6 7
   Observed: ✓ all-reduce over x; payload: 512 bytes; each device sends 896 bytes in a ring;\
 I: 0 1 2 3 4 5 6 7
   On CPUs DTensor (TensorFlow 2.21) runs an all-reduce of 512 bytes in place of the all-gather.\
 Each device adds its own part, and zeros for the others.

Predicted: 1 collective; each device sends 448 bytes.
Observed: 1 collective; each device sends 896 bytes.
✓ TensorFlow ran what was predicted. Layout and values of the result are right.
""",
    )


def test_on_gpus_nothing_runs_in_the_place_of_another():
    compared = ran(GATHERED, "GPU")
    assert compared.observed == GATHERED.collectives
    assert compared.agrees
    assert "CPU" not in compared.picture().text


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
    assert len(of_class(picture(more), "member")) == 5 * ROW.size


def test_a_partial_sum_is_striped_and_its_sum_is_not():
    root = picture(SUMMED)
    assert [words_of(part) for part in of_class(root, "partial")] == [["a"], ["b"]]
    assert of_class(picture(GATHERED), "partial") == []


def test_groups_are_told_by_colour_and_by_number():
    members = of_class(picture(Collective(Kind.ALL_GATHER, GRID, ("x",), 8)), "member")
    shown = [(*words_of(member), member.find(f"{SVG_TAG}rect").get("fill")) for member in members]
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
    assert told(step) == "Along this mesh dimension there is one device only. Nothing is sent."
    assert of_class(picture(communication), "partial") == []


def layouts(mesh: MeshSpec) -> list[LayoutSpec]:
    names = [UNSHARDED, *mesh.names]
    pairs = [(rows, columns) for rows in names for columns in names]
    return [LayoutSpec(each, mesh) for each in pairs if each[0] != each[1] or each[0] == UNSHARDED]


@given(st.sampled_from([ROW, GRID, CUBE]), st.data())
@settings(max_examples=60, deadline=None)
def test_every_product_can_be_drawn_and_says_what_it_costs(mesh, data):
    left, right = (data.draw(st.sampled_from(layouts(mesh))) for _factor in range(2))
    wanted = data.draw(st.sampled_from([None, *layouts(mesh)]))
    try:
        found = product(left.of((16, 8)), right.of((8, 24)), wanted)
    except CourseError:
        return
    root, text = picture(found), found.picture().text
    sharing = len(found.collectives)
    assert len(of_class(root, "member")) == sharing * mesh.size
    assert sum("free: nothing is sent" in line for line in text.splitlines()) == len(found.steps) - sharing
    assert (f"sends {bytes_text(found.bytes_sent)} bytes" in text) is bool(sharing)
    for before, after in zip(found.steps, found.steps[1:], strict=False):
        assert before.tensor != after.tensor or before.sharding == after.source
    assert ran(found).agrees
    assert len(of_class(picture(ran(found)), "member")) == 2 * sharing * mesh.size


def test_roman_numbers():
    assert " ".join(map(roman, range(1, 17))) == "I II III IV V VI VII VIII IX X XI XII XIII XIV XV XVI"
