"""The program of each situation: its text, its style, and what it needs; tests/tf runs the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from course_lib.i18n import languages, num_columns, set_language
from tests.code_choices import untidy
from tests.course import from_lesson
from tests.unit.test_strategy import code_of, situations

TF_KERAS_REQUIREMENT = from_lesson("strategies.code", "TF_KERAS_REQUIREMENT")
Situation = from_lesson("strategies.strategy", "Situation")

ROOT = Path(__file__).resolve().parents[2]
CHOSEN = {
    "mirrored": Situation("GPUs", loop="custom loop"),
    "central-storage": Situation("GPUs", variables="on the CPU", keras="tf_keras"),
    "parameter-server": Situation("GPU", several_machines=True, synchronous=False),
}


@pytest.mark.parametrize("name", CHOSEN)
def test_the_program_is_this(name):
    stored = ROOT / "tests" / "unit" / "programs" / f"strategy-{name}.txt"
    assert code_of(CHOSEN[name]) == stored.read_text("utf-8")


@pytest.mark.parametrize("language", languages())
def test_every_program_compiles_and_no_line_has_80_columns(language):
    set_language(language)
    for each in situations():
        code = code_of(each)
        compile(code, repr(each), "exec")
        assert max(map(num_columns, code.splitlines())) < 80
        assert ("model.fit(" in code) == (each.advice.loop == "fit")
        assert ("import tf_keras" in code) == (each.keras == "tf_keras")


def test_a_formatter_and_a_linter_find_nothing_to_change(tmp_path):
    for at, code in enumerate({code_of(each) for each in situations()}):
        (tmp_path / f"strategy_{at}.py").write_text(code, "utf-8")
    assert untidy(tmp_path) == ""


def test_what_to_install_is_what_is_tested():
    assert f'"{TF_KERAS_REQUIREMENT}"' in (ROOT / "pyproject.toml").read_text("utf-8")
