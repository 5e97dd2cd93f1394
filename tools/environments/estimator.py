"""Makes build/estimator-venv: TensorFlow 2.15, the last with Estimators, each file checked against its hash.

    python -m tools.environments.estimator

It needs Python 3.11: TensorFlow 2.15 has nothing for a later one. An environment that is as the lock says is
kept. Jupyter in the environment that runs this then finds its kernel, under the name that the appendices
ask for.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from tools.environments import pythons

HERE = Path(__file__).resolve().parent
LOCK = HERE / "estimator.lock"
ENVIRONMENT = HERE.parents[1] / "build" / "estimator-venv"
PYTHON = "3.11"
KERNEL, KERNEL_TITLE = "estimators", "TensorFlow 2.15 (Estimators)"
KERNEL_FILE = Path(sys.prefix) / "share" / "jupyter" / "kernels" / KERNEL / "kernel.json"


def main() -> None:
    """Makes the environment if it is missing or out of date, and shows its kernel to Jupyter."""
    if not _is_current():
        _make()
    pythons.show_kernel(ENVIRONMENT, KERNEL, KERNEL_TITLE)


def is_ready() -> bool:
    """Returns whether the environment is as the lock says, and Jupyter finds its kernel."""
    return _is_current() and KERNEL_FILE.exists()


def _is_current() -> bool:
    stamp = ENVIRONMENT / LOCK.name
    return stamp.exists() and stamp.read_bytes() == LOCK.read_bytes()


def _make() -> None:
    python = pythons.find(PYTHON)
    if python is None:
        sys.exit(
            f"TensorFlow 2.15 needs Python {PYTHON}, and none was found. Install one, then: make estimator"
        )
    pythons.make(ENVIRONMENT, python, "--require-hashes", "-r", str(LOCK))
    # Its checks alone run there: what else course_lib depends on is left out.
    pythons.install(ENVIRONMENT, "--no-deps", "--no-build-isolation", "-e", str(HERE.parents[1]))
    shutil.copyfile(LOCK, ENVIRONMENT / LOCK.name)


if __name__ == "__main__":
    main()
