"""Makes build/estimator-venv: TensorFlow 2.15, the last with Estimators, each file checked against its hash.

    python -m tools.environments.estimator

It needs Python 3.11: TensorFlow 2.15 has nothing for a later one. An environment that is as the lock says is
kept.
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


def main() -> None:
    """Makes the environment if it is missing or out of date."""
    stamp = ENVIRONMENT / LOCK.name
    if stamp.exists() and stamp.read_bytes() == LOCK.read_bytes():
        return
    python = pythons.find(PYTHON)
    if python is None:
        sys.exit(
            f"TensorFlow 2.15 needs Python {PYTHON}, and none was found. Install one, then: make estimator"
        )
    shutil.rmtree(ENVIRONMENT, ignore_errors=True)
    pythons.create(ENVIRONMENT, python)
    pythons.install(ENVIRONMENT, "--require-hashes", "-r", str(LOCK))
    shutil.copyfile(LOCK, stamp)


if __name__ == "__main__":
    main()
