"""The ring stepper: its moves, what it shows, its table for pages."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib import CourseError
from course_lib.i18n import set_language
from course_lib.pictures import shapes
from course_lib.widgets import controls
from course_lib.widgets.base import key
from course_lib.widgets.controls import Choice
from course_lib.widgets.table import page_table
from lessons.lesson_02_communication.ring import KINDS, Ring
from lessons.lesson_02_communication.ring_explorer import WHOLE_BYTES, RingExplorer

DEVICES = range(2, 9)


def choose(explorer, path, value) -> None:
    """Does what the module sends when the reader sets a control."""
    explorer._handle_custom_msg({"kind": "change", "path": [path], "value": value}, [])


def pieces(view, class_: str):
    """Yields the nodes of a class in a view."""
    if isinstance(view, list):
        if class_ in view[1].get("class", "").split():
            yield view
        for child in view[2:]:
            yield from pieces(child, class_)


def text_of(view) -> str:
    return view if isinstance(view, str) else "".join(map(text_of, view[2:]))


def shown(explorer, class_: str) -> list[str]:
    return [text_of(piece) for piece in pieces(explorer.view, class_)]


def inputs(view):
    """Yields what the reader can press, in the order in which the module counts it."""
    if isinstance(view, list):
        if view[0] == "input":
            yield view[1]
        for child in view[2:]:
            yield from inputs(child)


def setting(option):
    """Returns the name in the state that an input sets, and to what."""
    (name,) = json.loads(option["data-path"])
    return name, json.loads(option["data-value"])


def test_the_first_view_says_what_is_wanted():
    explorer = RingExplorer()
    assert explorer.ring == Ring("all-reduce", 4, WHOLE_BYTES)
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
    assert explorer.moment == Ring("all-reduce", 3, WHOLE_BYTES).after(2)
    assert len(list(pieces(explorer.view, "sent"))) == 4
    assert "Reduce-scatter, step 2 of 2" in shown(explorer, "told")[0]
    choose(explorer, "move", -1)
    assert explorer.moment.step == 1
    choose(explorer, "step", 4)
    assert "4,480 of 4,480" in shown(explorer, "fact")[1]
    assert shown(explorer, "fact")[2] == "Times the array1.333 of 1.333"
    assert set(explorer.state) == {"kind", "num_devices", "step"}


def test_it_stays_between_the_first_and_the_last_step():
    explorer = RingExplorer(num_devices=2)
    choose(explorer, "move", -1)
    assert explorer.moment.step == 0
    for _press in range(4):
        choose(explorer, "move", 1)
    assert explorer.moment.step == 2
    choose(explorer, "kind", "all-gather")
    assert (explorer.ring.kind, explorer.moment.step) == ("all-gather", 1)


@pytest.mark.parametrize(("step", "idle"), [(0, ["← Back"]), (3, []), (6, ["Forward →"])])
def test_a_move_that_changes_nothing_says_so_and_keeps_its_place(step, idle):
    moves = [each for each in inputs(RingExplorer(step=step).view) if each["type"] == "button"]
    assert [each["value"] for each in moves] == ["← Back", "Forward →"]
    assert [each["value"] for each in moves if each.get("aria-disabled") == "true"] == idle
    assert not any("disabled" in each for each in moves)  # it would lose the focus


def test_it_ends_with_the_cost_of_the_ring():
    explorer = RingExplorer("all-reduce", 8, 14)
    assert shown(explorer, "told")[0].endswith(
        "Each device sent 2 (8 − 1) / 8 = 1.75 times the array."
        " To send its whole array to 7 other devices would have cost 7 times the array."
    )


@given(st.data())
@settings(max_examples=30, deadline=None)
def test_no_choice_breaks_it(data):
    explorer = RingExplorer()
    for _press in range(8):
        groups = explorer.controls(explorer.state, page=False)
        control = data.draw(st.sampled_from([control for group in groups for control in group.controls]))
        choose(explorer, control.path[0], data.draw(st.sampled_from(controls.leads_to(control))))
        moment = explorer.moment
        assert len(list(pieces(explorer.view, "holder"))) == moment.ring.num_devices
        assert shown(explorer, "whole") == ["".join(_digits(moment, *at)) for at in _whole(moment)]
        json.dumps(explorer.view)


def _whole(moment):
    rows = enumerate(moment.holdings)
    return [(row, at) for row, held in rows for at, holding in enumerate(held) if holding.whole]


def _digits(moment, device_id, chunk):
    return map(str, sorted(moment.holdings[device_id][chunk].sources))


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"num_devices": 9}, "9 is no number of devices for a ring.\n.*from 2 to 8"),
        ({"num_devices": 1}, "1 is no number of devices for a ring."),
        ({"kind": "all-to-all"}, "'all-to-all' does not run in a ring here."),
        ({"step": 7}, "The ring has no step 7.\n.*from 0 to 6"),
    ],
)
def test_what_it_cannot_show_is_refused(arguments, why):
    with pytest.raises(CourseError, match=why):
        RingExplorer(**arguments)


# On a page


@pytest.fixture(scope="module")
def table():
    return page_table(RingExplorer())


def whole(table, value):
    """Puts the shared parts back where numbers stand for them."""
    if isinstance(value, int):
        return whole(table, table["parts"][value])
    return [whole(table, child) for child in value] if isinstance(value, list) else value


def test_the_table_holds_every_step_of_every_ring_and_is_small(table):
    states = [
        {"kind": kind, "num_devices": count, "step": step}
        for kind in KINDS
        for count in DEVICES
        for step in range(Ring(kind, count, 0).num_steps + 1)
    ]
    assert sorted(table["keys"]) == sorted(map(key, states))
    explorer = RingExplorer()
    for state in states[::7]:
        view = whole(table, table["views"][table["keys"].index(key(state))])
        assert view == shapes.to_json(explorer.tree(state, page=True))
    assert len(json.dumps(table, ensure_ascii=False, separators=(",", ":")).encode()) < 320_000


def test_each_input_of_a_view_leads_where_its_value_says(table):
    """The module finds the next view by the place of the input among all inputs."""
    explorer = RingExplorer()
    for place, view in enumerate(table["views"]):
        options = list(inputs(whole(table, view)))
        after = [table["keys"][at] for at in table["leads_to"][place]]
        assert len(options) == len(after)
        chosen = dict(map(setting, (each for each in options if "checked" in each)))
        for option, reached in zip(options, after, strict=True):
            path, value = setting(option)
            assert reached == key(explorer.settled({**chosen, path: value}, page=True))
        choices = [each for group in explorer.controls(chosen, page=True) for each in group.controls]
        assert sum(isinstance(each, Choice) for each in choices) == len(chosen) == 3


def test_a_page_gets_the_picture_too_and_it_is_small():
    text = RingExplorer().to_html()
    assert '"table":"ring.en.json"' in text
    assert "</script><svg" in text
    assert len(text.encode()) < 40_000


def test_it_speaks_the_readers_language():
    set_language("ja")
    try:
        view = RingExplorer(step=1).view
        told = next(pieces(view, "told"))
    finally:
        set_language("en")
    assert view[1]["lang"] == "ja"
    assert "次のデバイス" in text_of(told)


def test_a_notebook_stores_a_text_that_follows_from_the_arguments():
    explorer = RingExplorer("all-gather", 3, 2)
    assert explorer._repr_mimebundle_()[0]["text/plain"] == explorer.moment.picture().text
