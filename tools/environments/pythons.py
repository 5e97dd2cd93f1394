"""Finds Pythons, and makes environments with them: with uv if it is there, else with venv and pip."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path


def find(version: str) -> str | None:
    """Returns a Python of this version, such as "3.11"; None where there is none."""
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return sys.executable
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    if installed := sorted(pyenv.glob(f"versions/{version}.*/bin/python")):
        return str(installed[-1])
    if uv := shutil.which("uv"):
        command = [uv, "python", "find", "--no-python-downloads", version]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or None
    return shutil.which(f"python{version}")


def make(environment: Path, python: str, *requirements: str) -> None:
    """Makes an environment with these packages, in the place of what was there."""
    shutil.rmtree(environment, ignore_errors=True)
    uv = shutil.which("uv")
    command = [uv, "venv", "--quiet", "--python", python] if uv else [python, "-m", "venv"]
    subprocess.run([*command, environment], check=True)
    install(environment, *requirements)


def install(environment: Path, *arguments: str) -> None:
    """Installs packages into an environment."""
    if uv := shutil.which("uv"):
        command = [uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", python_of(environment)]
    else:
        command = [python_of(environment), "-m", "pip", "install", "--quiet"]
    subprocess.run([*command, *arguments], check=True)


def show_kernel(environment: Path, name: str, title: str) -> None:
    """Lets Jupyter, in the environment that runs this, find another environment's kernel."""
    command = [python_of(environment), "-m", "ipykernel", "install", "--prefix", sys.prefix]
    subprocess.run([*command, "--name", name, "--display-name", title], check=True)


def python_of(environment: Path) -> str:
    """Returns the path of an environment's Python."""
    return str(environment / "bin" / "python")
