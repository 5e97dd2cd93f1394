"""How long each cell of the lessons on strategies goes on after its last step, at its first and second run.

    python -m benchmarks.cells_end [--tries 10] [TOPIC ...]

A step is a call of a `tf.function`, those of `fit` too. A kernel runs all cells of a notebook, and then
all of them again. Two busy processes run beside it, since an iterator of a distributed data set ends late
where others use the cores.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from jupyter_client.manager import start_new_kernel

from tools.lesson.sources import Course

TOPICS = ("strategies", "custom_training", "own_steps")
BUSY_PROCESSES = 2
LEAST_SECONDS = 1.0  # cells that are shorter after their last step are not listed
CELL_SECONDS = 600
ASK = "#ask\nprint(_seconds)"

WATCH = """
import sys, time
from IPython import get_ipython
_seen, _seconds = {}, 0.0

def _watch_functions():
    from tensorflow.python.eager.polymorphic_function import polymorphic_function
    call = polymorphic_function.Function.__call__
    def watched(*args, **kwargs):
        try:
            return call(*args, **kwargs)
        finally:
            _seen["step"] = time.monotonic()
    polymorphic_function.Function.__call__ = watched

def _begin(info):
    if not info.raw_cell.startswith("#ask"):
        _seen.pop("step", None)

def _end(result):
    global _seconds
    if not result.info.raw_cell.startswith("#ask"):
        now = time.monotonic()
        _seconds = now - _seen.get("step", now)
        if "tensorflow" in sys.modules and "watched" not in _seen:
            _seen["watched"] = True
            _watch_functions()

get_ipython().events.register("pre_run_cell", _begin)
get_ipython().events.register("post_run_cell", _end)
"""


def run(client: Any, source: str) -> str:
    """Runs a cell, and returns what it printed.

    Raises:
        RuntimeError: the cell raised an error.
    """
    printed: list[str] = []

    def keep(message: dict[str, Any]) -> None:
        if message["msg_type"] == "stream":
            printed.append(message["content"]["text"])

    reply = client.execute_interactive(source, timeout=CELL_SECONDS, output_hook=keep)
    if reply["content"]["status"] != "ok":
        raise RuntimeError(f"{reply['content'].get('evalue')}: {source[:200]}")
    return "".join(printed)


def measure(path: Path) -> list[dict[str, float]]:
    """Returns, for the first and the second run, the seconds of each cell after its last step."""
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    cells = [cell for cell in cells if "raises-exception" not in cell["metadata"].get("tags", [])]
    manager, client = start_new_kernel(cwd=str(path.parent))
    try:
        run(client, WATCH)
        runs: list[dict[str, float]] = []
        for _run in range(2):
            runs.append({})
            for cell in cells:
                run(client, "".join(cell["source"]))
                runs[-1][cell["id"]] = float(run(client, ASK))
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    return runs


def main() -> None:
    """Prints the longest of all tries for each cell that is above a second, and for each notebook."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("topics", nargs="*", default=TOPICS)
    parser.add_argument("--tries", type=int, default=10)
    options = parser.parse_args()
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(BUSY_PROCESSES)]
    try:
        for topic in options.topics:
            tries = [measure(Course.here().notebook("en", topic)) for _try in range(options.tries)]
            print(f"{topic}: seconds after the last step, longest of {options.tries}", flush=True)
            longest = [
                {cell: max(each[at][cell] for each in tries) for cell in tries[0][at]} for at in (0, 1)
            ]
            for cell, first in longest[0].items():
                if max(first, longest[1][cell]) >= LEAST_SECONDS:
                    print(f"  {cell:24} first {first:6.1f}  second {longest[1][cell]:6.1f}", flush=True)
            first, second = (max(each.values()) for each in longest)
            print(f"  {'longest of all cells':24} first {first:6.1f}  second {second:6.1f}", flush=True)
    finally:
        for each in busy:
            each.kill()


if __name__ == "__main__":
    main()
