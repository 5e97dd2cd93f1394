"""Makes build/colab-venv: Google Colab's versions, with the library installed as Colab installs it.

    python -m tools.environments.colab

Jupyter in the environment that runs this then finds its kernel, `colab`.
An environment that is as `colab.in` says is kept, and only the library is installed anew. Colab's own front
end cannot be had outside Colab. The closest to it is JupyterLab with the widgets of ipywidgets 7
(jupyterlab_widgets 1.x), so the environment brings its own JupyterLab: the one in .venv speaks the protocol
of ipywidgets 8.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.environments import pythons

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = ROOT / "build" / "colab-venv"
PYTHON = "3.13"  # Colab's; where there is none, the Python that runs this


def main() -> None:
    """Makes the environment if need be, installs the library, and shows its kernel to Jupyter."""
    wanted = requirements()
    stamp = ENVIRONMENT / "requirements.txt"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        pythons.make(ENVIRONMENT, pythons.find(PYTHON) or sys.executable, *wanted.split())
        stamp.write_text(wanted, encoding="utf-8")
    pythons.install(ENVIRONMENT, "--no-deps", "--force-reinstall", str(ROOT))
    pythons.show_kernel(ENVIRONMENT, "colab", "Google Colab's versions")


def requirements() -> str:
    """Returns what goes into the environment, one requirement a line: Colab's versions, then the rest.

    The rest is what the library needs beside them (pyproject.toml).
    """
    with (ROOT / "pyproject.toml").open("rb") as file:
        needed = tomllib.load(file)["project"]["dependencies"]
    lines = Path(__file__).with_suffix(".in").read_text("utf-8").splitlines()
    colab = [line for line in lines if not line.startswith("#")]
    names = set(map(_name_of, colab))
    return "\n".join([*colab, *(line for line in needed if _name_of(line) not in names)]) + "\n"


def _name_of(requirement: str) -> str:
    return canonicalize_name(Requirement(requirement).name)


if __name__ == "__main__":
    main()
