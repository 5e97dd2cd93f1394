"""The strategy explorer: its questions, what it shows, its table for pages."""

from __future__ import annotations

from course_lib.widgets.table import page_table
from lessons.lesson_09_strategies.code import code_of
from lessons.lesson_09_strategies.explorer import StrategyExplorer
from lessons.lesson_09_strategies.strategy import Situation


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
    assert shown(explorer, "fact") == ["StrategyMirroredStrategy"]
    assert shown(explorer, "told")[0].startswith("Several GPUs of one machine that train synchronously")
    assert len(list(pieces(explorer.view, "holder"))) == 2
    assert shown(explorer, "listing") == [code_of(Situation("GPUs"))]
    assert repr(explorer) == Situation("GPUs").picture().text


def test_where_variables_are_is_asked_only_where_there_is_a_choice():
    explorer = StrategyExplorer()
    choose(explorer, "variables", "on the CPU")
    assert shown(explorer, "fact") == ["StrategyCentralStorageStrategy"]
    choose(explorer, "several_machines", True)
    assert "Variables" not in questions(explorer)
    assert shown(explorer, "fact") == ["StrategyMultiWorkerMirroredStrategy"]
    choose(explorer, "several_machines", False)
    assert explorer.situation == Situation("GPUs")


def test_where_fit_of_keras_3_fails_it_says_so_and_shows_what_works():
    explorer = StrategyExplorer(Situation("GPU", several_machines=True, synchronous=False))
    assert "fit of Keras 3 fails under ParameterServerStrategy." in shown(explorer, "verdict")[0]
    assert "coordinator.schedule(train_step" in shown(explorer, "listing")[0]
    choose(explorer, "keras", "tf_keras")
    assert shown(explorer, "verdict") == []
    assert "model.fit(" in shown(explorer, "listing")[0]


def test_asynchronous_training_on_tpus_is_refused_in_the_view():
    explorer = StrategyExplorer(Situation("TPU"))
    choose(explorer, "synchronous", False)
    assert "No strategy trains asynchronously on TPUs." in shown(explorer, "refusal")[0]
    assert "No strategy trains" in repr(explorer)
    choose(explorer, "devices", "GPU")
    assert shown(explorer, "fact") == ["StrategyParameterServerStrategy"]


def test_the_page_has_every_situation_and_the_refused_ones():
    assert len(page_table(StrategyExplorer())["keys"]) == 60 + 8
