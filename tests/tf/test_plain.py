"""The plain programs: what each lesson taught, in one file that needs TensorFlow and NumPy alone."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = sorted((ROOT / "notebooks/plain").glob("*.py"))
ALONE = [program for program in PROGRAMS if program.stem[:2] != "11"]  # a lesson that starts its own


def packages(program: Path) -> set[str]:
    tree = ast.parse(program.read_text())
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    modules |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    return {module.partition(".")[0] for module in modules} - sys.stdlib_module_names


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_a_plain_program_is_short_and_needs_tensorflow_alone(program: Path) -> None:
    assert packages(program) <= {"numpy", "tensorflow", "tf_keras"}
    assert len(program.read_text().splitlines()) <= 90


@pytest.mark.drill
@pytest.mark.parametrize("program", ALONE, ids=lambda program: program.stem)
def test_a_plain_program_runs(program: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": ""}
    command = [sys.executable, program, tmp_path / "folder"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout
