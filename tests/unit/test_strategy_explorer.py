"""The strategy explorer: its questions, what it shows, its table for pages."""

from __future__ import annotations

from tests.course import from_lesson
from tests.explored import choose, pieces, questions, shown
from tests.unit.test_strategy import code_of, explorer_of

StrategyExplorer = from_lesson("strategies.explorer", "StrategyExplorer")
Situation = from_lesson("strategies.strategy", "Situation")


def test_the_first_view_is_of_several_gpus():
    explorer = StrategyExplorer()
    assert shown(explorer, "fact") == ["StrategyMirroredStrategy"]
    assert shown(explorer, "told")[0].startswith("Several GPUs of one machine that train synchronously")
    assert len(list(pieces(explorer.view, "holder"))) == 2
    assert shown(explorer, "listing") == [code_of(Situation("GPUs"))]


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
    explorer = explorer_of(Situation("GPU", several_machines=True, synchronous=False))
    assert "fit of Keras 3 fails under ParameterServerStrategy." in shown(explorer, "verdict")[0]
    assert "coordinator.schedule(train_step" in shown(explorer, "listing")[0]
    choose(explorer, "keras", "tf_keras")
    assert shown(explorer, "verdict") == []
    assert "model.fit(" in shown(explorer, "listing")[0]


def test_asynchronous_training_on_tpus_is_refused_in_the_view():
    explorer = explorer_of(Situation("TPU"))
    choose(explorer, "synchronous", False)
    assert "No strategy trains asynchronously on TPUs." in shown(explorer, "refusal")[0]
    assert "No strategy trains" in repr(explorer)
    choose(explorer, "devices", "GPU")
    assert shown(explorer, "fact") == ["StrategyParameterServerStrategy"]
