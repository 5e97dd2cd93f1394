"""The code of a choice: its text and its style.

TensorFlow runs it in tests/tf/test_code.py, JAX and PyTorch where they are, in tests/drill/test_code.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from course_lib import MeshSpec
from course_lib.code.choices import FRAMEWORKS, REQUIREMENTS, code_of
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED
from tests.code_choices import PLANS, SPATIAL, page_shardings, untidy

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).with_name("programs")
GRID = MeshSpec([("x", 2), ("y", 4)])
CUBE = MeshSpec([("p", 2), ("q", 2), ("r", 2)])
CHOICES = {
    "rows": LayoutSpec(["x", UNSHARDED], GRID).of((8, 6)),
    "three-axes": LayoutSpec(["r", UNSHARDED, "p"], CUBE).of((4, 6, 8)),
    "whole": LayoutSpec([UNSHARDED], MeshSpec([("batch", 6)])).of((24,)),
    "plan": SPATIAL,
}


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("name", CHOICES)
def test_the_code_is_this(name, framework):
    assert code_of(CHOICES[name], framework) == (PROGRAMS / f"{name}.{framework}.txt").read_text("utf-8")


def test_a_formatter_and_a_linter_find_nothing_to_change(language, tmp_path):
    for number, choice in enumerate([*list(page_shardings())[::5], *CHOICES.values(), *PLANS]):
        for framework in FRAMEWORKS:
            (tmp_path / f"choice_{number}_{framework}.py").write_text(code_of(choice, framework), "utf-8")
    assert untidy(tmp_path) == ""


def test_what_to_install_is_what_is_tested():
    assert f'"{REQUIREMENTS["TensorFlow"]}"' in (ROOT / "pyproject.toml").read_text("utf-8")
    make = (ROOT / "Makefile").read_text("utf-8")
    assert all(f'install --quiet "{REQUIREMENTS[name]}"' in make for name in ("JAX", "PyTorch"))
