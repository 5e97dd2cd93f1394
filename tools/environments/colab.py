"""Makes build/colab-venv: Google Colab's versions, with the library installed as Colab installs it.

    python -m tools.environments.colab

It prints the versions that it ends up with. An environment that is as described here is kept, and only the
library is installed anew. Colab's own front end cannot be had outside Colab. The closest to it is JupyterLab
with the widgets of ipywidgets 7 (jupyterlab_widgets 1.x), so the environment brings its own JupyterLab: the
one in .venv speaks the protocol of ipywidgets 8.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from tools.environments import pythons

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = ROOT / "build" / "colab-venv"

# Colab's list of August 2026: https://github.com/googlecolab/backend-info (pip-freeze.txt).
COLAB_PYTHON = "3.13"
COLAB_PACKAGES = (
    "anywidget==0.9.21",
    "ipykernel==6.17.*",
    "ipython==7.34.*",
    "ipywidgets==7.7.1",
    "keras==3.13.*",
    "matplotlib==3.10.*",
    "numpy==2.1.*",
    "tensorflow==2.20.*",
    "tf_keras==2.20.*",
)
FRONT_END = ("jupyterlab>=4.2,<5", "jupyterlab_widgets>=1.1,<2")


def main() -> None:
    """Makes the environment if it is missing or out of date, installs the library, prints the Python."""
    wanted = requirements()
    stamp = ENVIRONMENT / "requirements.txt"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        shutil.rmtree(ENVIRONMENT, ignore_errors=True)
        pythons.create(ENVIRONMENT, _python())
        pythons.install(ENVIRONMENT, *wanted.split())
        stamp.write_text(wanted, encoding="utf-8")
    pythons.install(ENVIRONMENT, "--no-deps", "--force-reinstall", str(ROOT))
    subprocess.run([pythons.python_of(ENVIRONMENT), "-c", _DESCRIBE], check=True)


_DESCRIBE = """
import platform
from importlib.metadata import version
print("Python", platform.python_version())
for name in ("tensorflow", "keras", "ipykernel", "ipython", "ipywidgets", "anywidget", "numpy", "matplotlib"):
    print(name, version(name))
"""


def requirements() -> str:
    """Returns what goes into the environment, one requirement a line: Colab's versions, then the rest.

    The rest is what the library needs beside them (pyproject.toml) and the front end.
    """
    with (ROOT / "pyproject.toml").open("rb") as file:
        needed = tomllib.load(file)["project"]["dependencies"]
    colab = {name_of(requirement) for requirement in COLAB_PACKAGES}
    rest = [requirement for requirement in needed if name_of(requirement) not in colab]
    return "\n".join([*COLAB_PACKAGES, *rest, *FRONT_END]) + "\n"


def name_of(requirement: str) -> str:
    """Returns the normalised name of the package that a requirement asks for.

    >>> name_of("jupyter_ui_poll>=1.0")
    'jupyter-ui-poll'
    """
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    return re.sub(r"[-_.]+", "-", match.group()).lower() if match else ""


def _python() -> str:
    """Returns a Python of Colab's version, or, where there is none, the Python that runs this script."""
    found = pythons.find(COLAB_PYTHON)
    if found is None:
        print(f"No Python {COLAB_PYTHON} was found; using {pythons.version_of(sys.executable)}.", flush=True)
    return found or sys.executable


if __name__ == "__main__":
    main()
