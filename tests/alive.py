"""Programs that start processes and never end, and what is left of them in the process table."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

CHILD_WRITES_ITS_ID = """
import pathlib, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
pathlib.Path(sys.argv[1]).write_text(str(child.pid))
time.sleep(600)
"""


def is_alive(process_id: int) -> bool:
    """Returns whether a process runs: it is there, and no zombie."""
    try:
        os.kill(process_id, 0)
        stat = Path(f"/proc/{process_id}/stat").read_text() if sys.platform == "linux" else "1 (x) S"
    except (ProcessLookupError, FileNotFoundError):  # the latter: it was there a moment ago
        return False
    return stat.split()[2] != "Z"


def eventually(holds: Callable[[], bool]) -> bool:
    """Returns whether it holds before long: the system takes its time to end a process."""
    return any(holds() or time.sleep(0.05) for _try in range(600))
