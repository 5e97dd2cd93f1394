"""The strategy explorer: its questions, what it shows, its table for pages."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib import CourseError
from course_lib.i18n import set_language
from course_lib.pictures import shapes
from course_lib.widgets import controls
from course_lib.widgets.base import key
from course_lib.widgets.table import page_table
from lessons.lesson_09_strategies import strategy as specs
from lessons.lesson_09_strategies.code import code_of
from lessons.lesson_09_strategies.explorer import StrategyExplorer
from lessons.lesson_09_strategies.strategy import Situation
from tests.unit.test_strategy import situations
from tools.book.explorers import found


def choose(explorer, name: str, value) -> None:
    """Does what the module sends when the reader answers a question."""
    explorer._handle_custom_msg({"kind": "change", "path": [name], "value": value}, [])


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


def questions(explorer) -> list[str]:
    return [group.heading for group in explorer.controls(explorer.state, page=False)]


def test_the_first_view_is_of_several_gpus():
    explorer = StrategyExplorer()
    assert explorer.situation == Situation("GPUs")
    assert shown(explorer, "fact") == ["StrategyMirroredStrategy"]
    assert shown(explorer, "told")[0].startswith("Several GPUs of one machine that train synchronously")
    assert shown(explorer, "verdict") == shown(explorer, "refusal") == []
    assert len(list(pieces(explorer.view, "holder"))) == 2
    assert shown(explorer, "listing") == [code_of(Situation("GPUs"))]
    assert repr(explorer) == Situation("GPUs").picture().text


def test_where_variables_are_is_asked_only_where_there_is_a_choice():
    explorer = StrategyExplorer()
    assert "Variables" in questions(explorer)
    choose(explorer, "variables", "on the CPU")
    assert shown(explorer, "fact") == ["StrategyCentralStorageStrategy"]
    choose(explorer, "several_machines", True)
    assert "Variables" not in questions(explorer)
    assert shown(explorer, "fact") == ["StrategyMultiWorkerMirroredStrategy"]
    choose(explorer, "several_machines", False)
    assert shown(explorer, "fact") == ["StrategyMirroredStrategy"]


def test_where_fit_of_keras_3_fails_it_says_so_and_shows_what_works():
    explorer = StrategyExplorer(Situation("GPU", several_machines=True, synchronous=False))
    (warning,) = shown(explorer, "verdict")
    assert "fit of Keras 3 fails under ParameterServerStrategy." in warning
    assert "coordinator.schedule(train_step" in shown(explorer, "listing")[0]
    choose(explorer, "keras", "tf_keras")
    assert shown(explorer, "verdict") == []
    assert "model.fit(" in shown(explorer, "listing")[0]


def test_asynchronous_training_on_tpus_is_refused_in_the_view():
    explorer = StrategyExplorer(Situation("TPU"))
    choose(explorer, "synchronous", False)
    assert "No strategy trains asynchronously on TPUs." in shown(explorer, "refusal")[0]
    assert "No strategy trains" in repr(explorer)
    with pytest.raises(CourseError, match="asynchronously"):
        explorer.figure()
    choose(explorer, "devices", "GPU")
    assert shown(explorer, "fact") == ["StrategyParameterServerStrategy"]


@given(st.data())
@settings(max_examples=15)
def test_no_choice_breaks_it(data):
    explorer = StrategyExplorer()
    for _choice in range(6):
        groups = explorer.controls(explorer.state, page=False)
        control = data.draw(st.sampled_from([control for group in groups for control in group.controls]))
        choose(explorer, *control.path, data.draw(st.sampled_from(controls.leads_to(control))))
        json.dumps(explorer.view)
        refused = (explorer.state["devices"], explorer.state["synchronous"]) == ("TPU", False)
        assert bool(shown(explorer, "refusal")) == refused
        if not refused:
            assert shown(explorer, "fact") == [f"Strategy{explorer.situation.advice.strategy}"]


def test_the_page_has_every_situation_and_the_refused_ones():
    table = page_table(StrategyExplorer())
    asked = [
        dict(zip(specs.OFFERED, each, strict=True)) for each in itertools.product(*specs.OFFERED.values())
    ]
    legal = {key(vars(each)) for each in situations()}
    refused = {
        key(each)
        for each in asked
        if (each["devices"], each["synchronous"], each["variables"]) == ("TPU", False, "on each device")
    }
    assert set(table["keys"]) == legal | refused
    assert len(table["keys"]) == 60 + 8
    assert len(json.dumps(table)) < 60_000


def test_the_page_and_the_notebook_show_the_same():
    explorer = StrategyExplorer()
    first = explorer.for_a_page()["view"]
    assert first[2:-1] == explorer.view[2:-1]  # but for what each says of a late answer
    assert shapes.to_json(explorer.tree(explorer.state, page=False)) == explorer.view


def test_the_book_finds_it_and_it_speaks_japanese():
    assert StrategyExplorer in list(found())
    set_language("ja")
    explorer = StrategyExplorer()
    assert not {"Machines", "Updates", "Variables"} & set(questions(explorer))
    assert explorer.view[1]["aria-label"] != "Which strategy?"


@pytest.mark.parametrize("wrong", ["GPUs", {"devices": "GPUs"}, 2])
def test_what_is_no_situation_is_refused_by_name(wrong):
    with pytest.raises(CourseError, match="is no situation"):
        StrategyExplorer(wrong)
