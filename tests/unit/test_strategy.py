"""Which strategy suits a situation, what lives where, and the picture of it."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import asdict

import pytest

from course_lib.i18n import set_language
from course_lib.pictures.shapes import markup
from tests.course import from_lesson

specs = from_lesson("strategies", "strategy")
sections_of = from_lesson("strategies.code", "sections_of")
StrategyExplorer = from_lesson("strategies.explorer", "StrategyExplorer")
Situation = from_lesson("strategies.strategy", "Situation")
places_of = from_lesson("strategies.strategy_picture", "places_of")


def situations():
    """Yields every combination of answers that the explorer offers."""
    for answers in itertools.product(
        ("CPU", "GPU", "GPUs", "TPU"),
        (False, True),
        (True, False),
        ("on each device", "on the CPU"),
        ("fit", "custom loop"),
        ("Keras 3", "tf_keras"),
    ):
        devices, _several, synchronous, variables, *_ = answers
        is_offered = variables == "on each device" or specs.has_choice_of_variables(*answers[:3])
        if is_offered and (devices != "TPU" or synchronous):
            yield Situation(*answers)


def explorer_of(situation):
    explorer = StrategyExplorer()
    explorer.state = asdict(situation)
    return explorer


def code_of(situation):
    return "".join(sections_of(situation))


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
    **{
        (devices, several, False, "on each device"): "ParameterServerStrategy"
        for devices in ("CPU", "GPU", "GPUs")
        for several in (False, True)
    },
}


def test_every_situation_has_its_strategy():
    found = {}
    for each in situations():
        asked = (each.devices, each.several_machines, each.synchronous, each.variables)
        found.setdefault(asked, set()).add(each.advice.strategy)
    assert found == {asked: {strategy} for asked, strategy in EXPECTED.items()}


def test_only_fit_of_keras_3_fails_and_only_over_machines_and_is_wrong_only_under_central_storage():
    for each in situations():
        asked = (each.loop, each.keras) == ("fit", "Keras 3")
        fails = asked and each.advice.strategy in ("MultiWorkerMirroredStrategy", "ParameterServerStrategy")
        misreports = asked and each.advice.strategy == "CentralStorageStrategy"
        assert bool(each.advice.warning) == (fails or misreports)
        assert each.advice.loop == ("custom loop" if fails else each.loop)


# Its picture


@pytest.mark.parametrize("language", ["en", "ja"])
def test_every_situation_can_be_drawn_without_a_backtick_in_either_language(language):
    set_language(language)
    for each in situations():
        svg = markup(explorer_of(each).still())
        assert "`" not in svg
        assert svg.count('class="holder"') == sum(map(len, places_of(each).rows))


def test_equal_variables_have_one_colour_and_parts_of_a_batch_two():
    svg = markup(StrategyExplorer().still())
    colours = Counter(piece.partition('"')[0] for piece in svg.split('fill="#')[1:])
    assert colours["91C9F6"] == 2  # the copies
    assert colours["F2E36B"] == colours["CD88B7"] == 1  # the parts
    assert svg.count('class="stripes"') == 2
