"""Small programs for clusters, without TensorFlow, and what is left of them in the process table."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.unit.test_cases import is_alive

# Each process writes its id into the folder that it is given, and can wait until so many have.
WRITES_ITS_ID = """
import json, os, pathlib, signal, subprocess, sys, time
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
# A child in the task's process group, one that leaves it, one of whom nothing is known any more, and a
# program of its own that inherits nothing.
HAS_CHILDREN = """
if os.fork() == 0:
    write(f"{name} child"); time.sleep(600)
if os.fork() == 0:
    os.setsid(); write(f"{name} leaves"); time.sleep(600)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN); write(f"{name} orphan"); time.sleep(600)
    os._exit(0)
"""
HAS_A_STRANGER = """
subprocess.Popen([sys.executable, "-c", "import os, pathlib, sys, time\\n"
    "pathlib.Path(sys.argv[1]).write_text(str(os.getpid())); time.sleep(600)", folder / f"{name} stranger"],
    env={}, start_new_session=True)
"""
NEVER_ENDS = "time.sleep(600)\n"

# What stands in for a kernel: it starts a cluster, says the guard's id, and waits.
OWNER = """
import signal, sys, time
from lessons.lesson_11_many_processes.cluster import Cluster
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background is deaf to it
cluster = Cluster(sys.argv[1:], {"worker": 2}).start()
print(cluster._started.guard._process.pid, flush=True)
cluster.wait(600)
"""
OWNER_THAT_FORKS = OWNER.replace("cluster.wait(600)", "import os, time\nos.fork()\ntime.sleep(600)")


def places_in(folder: Path) -> dict[str, str]:
    """Returns a program that never ends, with children, and the folder for the ids of its processes."""
    (folder / "ids").mkdir()
    (folder / "program.py").write_text(WRITES_ITS_ID + HAS_CHILDREN + NEVER_ENDS)
    return {"program": str(folder / "program.py"), "folder": str(folder / "ids")}


def ids(folder: Path) -> list[int]:
    """Returns the ids that the processes of a cluster have written."""
    return [int(path.read_text() or 0) for path in folder.iterdir() if not path.name.startswith("unfinished")]


def left(folder: Path) -> list[str]:
    """Returns the names of those that are still alive."""
    return sorted(
        path.name
        for path in folder.iterdir()
        if (path.read_text() or "0") != "0" and is_alive(int(path.read_text()))
    )


def eventually(holds: Callable[[], bool]) -> bool:
    """Returns whether it holds before long: the system takes its time to end a process."""
    return any(holds() or time.sleep(0.05) for _try in range(600))


on_linux = sys.platform == "linux"
