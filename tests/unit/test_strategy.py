"""Which strategy suits a situation, what lives where, and the picture of it."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

import pytest

from course_lib import CourseError
from course_lib.i18n import set_language
from lessons.lesson_09_strategies import strategy as specs
from lessons.lesson_09_strategies.strategy import Situation
from lessons.lesson_09_strategies.strategy_places import Held, places_of

TEXTS = Path(__file__).with_name("strategies")


def situations():
    """Yields every combination of answers that some strategy brings together."""
    for values in itertools.product(*specs.OFFERED.values()):
        try:
            yield Situation(*values)
        except CourseError:
            continue


# What FACTS say, as a list: devices, several machines, synchronous, variables -> strategy.
EXPECTED = {
    ("CPU", False, True, "on each device"): "default strategy",
    ("GPU", False, True, "on each device"): "OneDeviceStrategy",
    ("GPUs", False, True, "on each device"): "MirroredStrategy",
    ("GPUs", False, True, "on the CPU"): "CentralStorageStrategy",
    ("TPU", False, True, "on each device"): "TPUStrategy",
    ("CPU", True, True, "on each device"): "MultiWorkerMirroredStrategy",
    ("GPU", True, True, "on each device"): "MultiWorkerMirroredStrategy",
    ("GPUs", True, True, "on each device"): "MultiWorkerMirroredStrategy",
    ("TPU", True, True, "on each device"): "TPUStrategy",
    ("CPU", False, False, "on each device"): "ParameterServerStrategy",
    ("GPU", False, False, "on each device"): "ParameterServerStrategy",
    ("GPUs", False, False, "on each device"): "ParameterServerStrategy",
    ("CPU", True, False, "on each device"): "ParameterServerStrategy",
    ("GPU", True, False, "on each device"): "ParameterServerStrategy",
    ("GPUs", True, False, "on each device"): "ParameterServerStrategy",
}


def test_every_situation_has_its_strategy():
    found = {}
    for each in situations():
        asked = (each.devices, each.several_machines, each.synchronous, each.variables)
        found.setdefault(asked, set()).add(each.advice.strategy)
    assert found == {asked: {strategy} for asked, strategy in EXPECTED.items()}
    assert set(EXPECTED.values()) == set(specs.STRATEGIES)


def test_only_fit_of_keras_3_fails_and_only_over_machines_and_is_wrong_only_under_central_storage():
    for each in situations():
        asked = (each.loop, each.keras) == ("fit", "Keras 3")
        fails = asked and each.advice.strategy in ("MultiWorkerMirroredStrategy", "ParameterServerStrategy")
        misreports = asked and each.advice.strategy == "CentralStorageStrategy"
        assert bool(each.advice.warning) == (fails or misreports)
        assert each.advice.loop == ("custom loop" if fails else each.loop)
        if each.advice.warning:
            assert each.advice.strategy in each.advice.warning


def test_each_strategy_has_a_rule_of_its_own():
    rules = {each.advice.strategy: each.advice.rule for each in situations()}
    assert len(set(rules.values())) == len(rules) == 7


@pytest.mark.parametrize(
    ("answers", "says"),
    [
        ({"devices": "gpus"}, "devices is 'gpus'.\n  Allowed: CPU, GPU, GPUs, TPU"),
        ({"several_machines": 2}, "several_machines is 2.\n  Allowed: False, True"),
        ({"loop": "estimator"}, "loop is 'estimator'.\n  Allowed: fit, custom loop"),
        ({"keras": "Keras 2"}, "keras is 'Keras 2'"),
        ({"devices": []}, r"devices is \[\]"),
        ({"devices": "TPU", "synchronous": False}, "No strategy trains asynchronously on TPUs."),
        ({"variables": "on the CPU"}, "What to do: Leave it out: Situation()"),
        (
            {"devices": "GPUs", "several_machines": True, "variables": "on the CPU"},
            "here the strategy decides",
        ),
        ({"devices": "GPUs", "synchronous": False, "variables": "on the CPU"}, "here the strategy decides"),
    ],
)
def test_what_no_strategy_brings_together_is_refused_by_name(answers, says):
    with pytest.raises(CourseError, match=says.replace("(", r"\(").replace(")", r"\)")):
        Situation(**answers)


def test_its_name_says_the_answers_that_differ():
    assert repr(Situation()) == "Situation()"
    assert repr(Situation("GPUs", synchronous=False)) == "Situation(devices='GPUs', synchronous=False)"


# What lives where


def test_a_synchronous_strategy_has_as_many_copies_as_devices_and_splits_the_batch():
    for each in situations():
        shown = places_of(each)
        if shown.exchange != "all-reduce":
            continue
        holders = [holder for row in shown.rows for holder in row]
        several = each.devices in ("GPUs", "TPU")
        assert len(holders) == (2 if several else 1) * (2 if each.several_machines else 1)
        assert len({(holder.index, holder.device) for holder in holders}) == len(holders)
        variables, gradients, batches = zip(*(holder.held for holder in holders), strict=True)
        assert set(variables) == {Held("variables", copies=len(holders))}
        assert [(held.part, held.waits) for held in gradients] == [(at, True) for at in range(len(holders))]
        assert {(held.part, held.num_parts) for held in batches} == {
            (at, len(holders)) for at in range(len(holders))
        }


@pytest.mark.parametrize("several_machines", [False, True])
def test_a_server_has_what_no_other_has_and_no_worker_has_variables(several_machines):
    (coordinator, *servers), workers = places_of(Situation("GPU", several_machines, False)).rows
    assert [held.kind for held in coordinator.held] == ["steps"]
    assert [server.held for server in servers] == [(Held("variables", 0, 2),), (Held("variables", 1, 2),)]
    assert Counter(held.kind for worker in workers for held in worker.held) == {"gradients": 2, "batch": 2}
    assert len({worker.held[1] for worker in workers}) == 2


def test_central_storage_has_the_variables_once():
    (cpu,), gpus = places_of(Situation("GPUs", variables="on the CPU")).rows
    assert [held.kind for held in cpu.held] == ["variables", "sum of gradients"]
    assert all(held.kind != "variables" for gpu in gpus for held in gpu.held)


# Its picture

PICTURED = {
    "mirrored": Situation("GPUs"),
    "central-storage": Situation("GPUs", variables="on the CPU"),
    "multi-worker": Situation("GPUs", several_machines=True),
    "parameter-server": Situation("GPU", several_machines=True, synchronous=False, keras="tf_keras"),
    "one-device": Situation("GPU"),
    "default": Situation(),
    "tpu": Situation("TPU", several_machines=True),
}


@pytest.mark.parametrize("name", PICTURED)
def test_the_picture_says_this(name):
    assert PICTURED[name].picture().text == (TEXTS / f"{name}.txt").read_text("utf-8").rstrip("\n")


@pytest.mark.parametrize("language", ["en", "ja"])
def test_every_situation_can_be_drawn_without_a_backtick_in_either_language(language):
    set_language(language)
    for each in situations():
        svg = each.picture().svg
        assert "`" not in svg
        assert svg.count('class="holder"') == sum(map(len, places_of(each).rows))


def test_equal_variables_have_one_colour_and_parts_of_a_batch_two():
    svg = Situation("GPUs").picture().svg
    bars = [piece.partition('"')[0] for piece in svg.split('fill="#')[1:]]
    colours = Counter(bars)
    assert colours["91C9F6"] == 2  # the copies
    assert colours["F2E36B"] == colours["CD88B7"] == 1  # the parts
    assert svg.count('class="stripes"') == 2
