"""Stored outputs held against new ones: pytest with nbval, strictly, as `make nbval` runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Strict but for numbers that vary. A cell that hangs fails, and one kernel a notebook runs at a time.
OPTIONS = (
    *("--nbval", "--nbval-current-env", "--nbval-cell-timeout=600"),
    *("--nbval-sanitize-with=tests/notebooks/nbval.cfg", "-n", "2", "--dist", "loadfile"),
)
# Appendices name a kernel of their own.
IN_THEIR_KERNELS = tuple(option for option in OPTIONS if option != "--nbval-current-env")


def compared(
    paths: Sequence[Path], environment: Mapping[str, str] | None = None, options: Sequence[str] = OPTIONS
) -> subprocess.CompletedProcess[str]:
    """Executes notebooks again and returns how pytest ended: 0 where every output is what is stored.

    The environment is what kernels get beside this process's own.
    """
    # Outside its root pytest names files alike, en/01.ipynb and ja/01.ipynb, and runs one of them.
    root = os.path.commonpath([path.parent for path in paths])
    command = [sys.executable, "-m", "pytest", "-q", f"--rootdir={root}", *options]
    return subprocess.run(
        [*command, *(str(path.absolute()) for path in paths)],
        cwd=ROOT,  # below which the options name a file
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )
