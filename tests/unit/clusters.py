"""Small programs for clusters, without TensorFlow, and what is left of them in the process table."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from tests.unit.test_cases import is_alive

# Each process writes its id into the folder that it is given, and can wait until so many have.
WRITES_ITS_ID = """
import json, os, pathlib, signal, sys, time
folder = pathlib.Path(sys.argv[1])
task = json.loads(os.environ["TF_CONFIG"])["task"]
name = f"{task['type']} {task['index']}"
def write(name):
    (folder / f"unfinished {name}").write_text(str(os.getpid()))
    (folder / f"unfinished {name}").rename(folder / name)
def others(count):
    while len([each for each in folder.iterdir() if not each.name.startswith("unfinished")]) < count:
        time.sleep(0.01)
write(name)
"""
HAS_A_CHILD = """
if os.fork() == 0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN); write(f"{name} child"); time.sleep(600)
"""
NEVER_ENDS = "time.sleep(600)\n"


def places_in(folder: Path) -> dict[str, str]:
    """Returns a program that never ends, with a child, and the folder for the ids of its processes."""
    (folder / "ids").mkdir()
    (folder / "program.py").write_text(WRITES_ITS_ID + HAS_A_CHILD + NEVER_ENDS)
    return {"program": str(folder / "program.py"), "folder": str(folder / "ids")}


def ids(folder: Path) -> list[int]:
    """Returns the ids that the processes of a cluster have written."""
    return [int(path.read_text()) for path in folder.iterdir() if not path.name.startswith("unfinished")]


def left(folder: Path) -> list[int]:
    """Returns the ids of those that are still alive."""
    return [process for process in ids(folder) if is_alive(process)]


def eventually(holds: Callable[[], bool]) -> bool:
    """Returns whether it holds before long: the system takes its time to end a process."""
    return any(holds() or time.sleep(0.05) for _try in range(600))
