"""The ring stepper: its moves, what it shows, its table for pages."""

from __future__ import annotations

import pytest

from course_lib import CourseError
from tests.course import from_lesson
from tests.explored import choose, inputs, pieces, shown

Ring = from_lesson("communication.ring", "Ring")
WHOLE_BYTES, RingExplorer, moment_of = from_lesson(
    "communication.ring_explorer", "WHOLE_BYTES", "RingExplorer", "moment_of"
)


def test_the_first_view_says_what_is_wanted():
    explorer = RingExplorer()
    assert moment_of(explorer.state).ring == Ring("all-reduce", 4, WHOLE_BYTES)
    assert shown(explorer, "told") == [
        "Each device has values of its own for all 4 chunks."
        " It needs the sum over all devices, every chunk of it."
    ]
    assert shown(explorer, "fact") == [
        "Bytes of the array3,360",
        "Bytes sent by each device0 of 5,040",
        "Times the array0 of 1.5",
    ]
    assert list(pieces(explorer.view, "sent")) == []


def test_the_reader_steps_forward_and_back_and_jumps():
    explorer = RingExplorer(num_devices=3)
    choose(explorer, "move", 1)
    choose(explorer, "move", 1)
    assert moment_of(explorer.state) == Ring("all-reduce", 3, WHOLE_BYTES).after(2)
    assert len(list(pieces(explorer.view, "sent"))) == 4
    assert "Reduce-scatter, step 2 of 2" in shown(explorer, "told")[0]
    choose(explorer, "move", -1)
    assert moment_of(explorer.state).step == 1
    choose(explorer, "step", 4)
    assert "4,480 of 4,480" in shown(explorer, "fact")[1]
    assert shown(explorer, "fact")[2] == "Times the array1.333 of 1.333"
    assert set(explorer.state) == {"kind", "num_devices", "step"}


def test_it_stays_between_the_first_and_the_last_step():
    explorer = RingExplorer(num_devices=2)
    choose(explorer, "move", -1)
    assert moment_of(explorer.state).step == 0
    for _press in range(4):
        choose(explorer, "move", 1)
    assert moment_of(explorer.state).step == 2
    choose(explorer, "kind", "all-gather")
    assert (moment_of(explorer.state).ring.kind, moment_of(explorer.state).step) == ("all-gather", 1)


@pytest.mark.parametrize(("step", "idle"), [(0, ["← Back"]), (3, []), (6, ["Forward →"])])
def test_a_move_that_changes_nothing_says_so_and_keeps_its_place(step, idle):
    explorer = RingExplorer()
    choose(explorer, "step", step)
    moves = [each for each in inputs(explorer.view) if each["type"] == "button"]
    assert [each["value"] for each in moves] == ["← Back", "Forward →"]
    assert [each["value"] for each in moves if each.get("aria-disabled") == "true"] == idle
    assert not any("disabled" in each for each in moves)  # it would lose the focus


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"num_devices": 1}, "1 is no number of devices for a ring.\n.*from 2 to 8"),
        ({"kind": "allreduce"}, "'allreduce' does not run in a ring here."),
    ],
)
def test_what_it_cannot_show_is_refused(arguments, why):
    with pytest.raises(CourseError, match=why):
        RingExplorer(**arguments)
