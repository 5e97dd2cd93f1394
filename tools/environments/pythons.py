"""Finds Pythons, and makes environments with them: with uv if it is there, else with venv and pip."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path


def find(version: str) -> str | None:
    """Returns a Python of this version, such as "3.11"; None where there is none."""
    return next((each for each in _candidates(version) if version_of(each) == version), None)


def _candidates(version: str) -> Iterator[str]:
    """Yields the places where a Python of this version may be."""
    yield sys.executable
    if on_path := shutil.which(f"python{version}"):
        yield on_path
    if uv := shutil.which("uv"):
        command = [uv, "python", "find", "--no-python-downloads", version]
        yield subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from map(str, sorted(pyenv.glob(f"versions/{version}.*/bin/python")))


def version_of(python: str) -> str:
    """Returns the major and minor version of a Python, or "" if it does not run."""
    command = [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def create(environment: Path, python: str) -> None:
    """Makes an empty environment."""
    if uv := shutil.which("uv"):
        subprocess.run([uv, "venv", "--quiet", "--python", python, environment], check=True)
    else:
        subprocess.run([python, "-m", "venv", environment], check=True)


def install(environment: Path, *arguments: str) -> None:
    """Installs packages into an environment."""
    if uv := shutil.which("uv"):
        command = [uv, "pip", "install", "--quiet", "--python", python_of(environment)]
    else:
        command = [python_of(environment), "-m", "pip", "install", "--quiet"]
    subprocess.run([*command, *arguments], check=True)


def python_of(environment: Path) -> str:
    """Returns the path of an environment's Python."""
    return str(environment / "bin" / "python")
