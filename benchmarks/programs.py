"""The plain programs of the lessons as modules, of which benchmarks and tests use what they define."""

from __future__ import annotations

from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

FOLDER = Path(__file__).parents[1] / "notebooks/plain"


def program(name: str) -> Any:
    """Returns a plain program, such as "a_run", as a new module: what it would run by itself does not run.

    It must find the devices that it makes, or none yet: TensorFlow makes them once in a process.
    """
    module = ModuleType(name)
    SourceFileLoader(name, str(FOLDER / f"{name}.py")).exec_module(module)
    return module
