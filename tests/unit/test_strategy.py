"""Which strategy suits a situation, and its program; its explorer: test_explorers.py."""

from __future__ import annotations

import itertools
from pathlib import Path

from course_lib.i18n import num_columns
from tests.code_choices import untidy
from tests.course import from_lesson

specs = from_lesson("strategies", "strategy")
sections_of = from_lesson("strategies.code", "sections_of")
Situation = from_lesson("strategies.strategy", "Situation")


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
        found.setdefault(asked, set()).add(each.strategy)
    assert found == {asked: {strategy} for asked, strategy in EXPECTED.items()}


def test_only_fit_of_keras_3_fails_and_only_over_machines_and_is_wrong_only_under_central_storage():
    for each in situations():
        asked = (each.loop, each.keras) == ("fit", "Keras 3")
        fails = asked and each.strategy in ("MultiWorkerMirroredStrategy", "ParameterServerStrategy")
        misreports = asked and each.strategy == "CentralStorageStrategy"
        assert bool(each.warning) == (fails or misreports)
        assert each.advised_loop == ("custom loop" if fails else each.loop)


# Its program; tests/tf runs those that can run here


def test_a_program_that_cannot_run_here_is_this():
    code = code_of(Situation("GPU", several_machines=True, synchronous=False))
    assert code == (Path(__file__).parent / "programs/strategy-parameter-server.txt").read_text("utf-8")


def test_every_program_compiles_trains_as_advised_and_is_tidy(language, tmp_path):
    programs = {each: code_of(each) for each in situations()}
    for each, code in programs.items():
        compile(code, repr(each), "exec")
        assert max(map(num_columns, code.splitlines())) < 80
        assert ("model.fit(" in code) == (each.advised_loop == "fit")
        assert "drop_remainder=True" in code or ".repeat()" in code  # equal parts
        assert ("import tf_keras" in code) == (each.keras == "tf_keras")
    for at, code in enumerate(set(programs.values())):
        (tmp_path / f"strategy_{at}.py").write_text(code, "utf-8")
    assert untidy(tmp_path) == ""
