"""What live plotting costs: `live.watch` against records that nobody reads, and the tutorial's loop.

All happen in turns in a real Jupyter kernel for each scheme, which makes the widgets and sends the pictures,
on random data of the shape of the IMDB reviews. Each turn is a run of a new model; its first epoch, in which
TensorFlow compiles, has a line of its own. Nothing is evaluated, since the tutorial evaluates nothing.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from benchmarks.rows import Row, compared, table

ROOT = Path(__file__).resolve().parent.parent

PREPARE = """
import json, time
import numpy as np
import course_lib
course_lib.setup(devices=8)
from course_lib.watch import live
from course_lib.models import sentiment as models
from course_lib.specs import plan as plans
from course_lib.training import run as training
from course_lib.training.records import EpochRecord
from course_lib.data.examples import Examples
from benchmarks import tutorial_loop

random = np.random.default_rng(0)
features = random.standard_normal((NUM_EXAMPLES, 1200), np.float32)
examples = Examples(features, (features[:, :100].sum(axis=1) > 0).astype(np.int64))
plan = getattr(plans, f"{SCHEME}_parallel")()
timings = {name: [] for name in ("plain", "watched", "drawing", "tutorial", "first", "tutorials_first")}

def timed(name, work):
    start = time.perf_counter()
    work()
    timings[name].append(time.perf_counter() - start)

def new_run():
    return training.train(models.MLP(models.initial_values(), plan), examples, epochs=EPOCHS + 1)

def train_an_epoch(run):
    while not isinstance(next(run), EpochRecord):
        pass
"""
PLAIN = """
run = new_run()
timed("first", lambda: train_an_epoch(run))
timed("plain", lambda: list(run))
"""
WATCHED = """
run = new_run()
train_an_epoch(run)
start, used = time.perf_counter(), time.thread_time()
history = await live.watch(run)
timings["watched"].append(time.perf_counter() - start)
timings["drawing"].append(time.thread_time() - used)
"""
TUTORIAL = """
train = tutorial_loop.training(SCHEME, examples)
timed("tutorials_first", lambda: train(NUM_EXAMPLES // 64))
timed("tutorial", lambda: train(EPOCHS * (NUM_EXAMPLES // 64)))
"""
REPORT = "print(json.dumps(timings))"
GOALS = {"data": 1.6, "model": 2.0, "spatial": 2.2}  # how often the tutorial's time is a watched run's


def measure(
    repeats: int = 3,
    epochs: int = 3,
    schemes: Sequence[str] = tuple(GOALS),
    *,
    num_examples: int = 25_000,
    warm_up: int = 1,
) -> list[Row]:
    """Returns for each scheme what watching costs, and the tutorial's loop beside a watched run.

    Args:
        repeats: how many times each is measured.
        epochs: the length of a run after its first epoch.
        schemes: which of `GOALS`.
        num_examples: the size of the training set; the last rows that fill no batch of 64 are left out.
        warm_up: how many turns do not count.
    """
    rows = []
    for scheme in schemes:
        settings = f"SCHEME, EPOCHS, NUM_EXAMPLES = {scheme!r}, {epochs}, {num_examples}"
        timings = _timings(settings, warm_up + repeats)
        counted = {kind: seconds[warm_up:] for kind, seconds in timings.items()}
        rows += _rows(scheme, epochs, num_examples // 64, counted)
    return rows


def _timings(settings: str, num_turns: int) -> dict[str, list[float]]:
    """Returns the seconds of each kind, turn by turn, measured in a kernel of its own."""
    kinds = [PLAIN, WATCHED, TUTORIAL]
    # Every other turn the other way round, so that a machine that gets slower wrongs nobody.
    turns = [source for turn in range(num_turns) for source in (kinds[::-1] if turn % 2 else kinds)]
    cells = [nbformat.v4.new_code_cell(source) for source in [settings, PREPARE, *turns, REPORT]]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(ROOT)}}).execute()
    timings: dict[str, list[float]] = json.loads(notebook.cells[-1].outputs[0].text)
    return timings


def _rows(scheme: str, epochs: int, steps: int, timings: Mapping[str, Sequence[float]]) -> list[Row]:
    what = f"{scheme} parallel, {epochs * steps:,} steps with live curves"
    lines = [
        (f"{what} / without", "watched", "plain", "at least 0.95"),
        ("drawing's processor time / that run", "drawing", "watched", "at least 20"),
        (f"{what} / tutorial's loop", "watched", "tutorial", f"at least {GOALS[scheme]}"),
        (f"the first {steps:,} steps, compiled / tutorial's", "first", "tutorials_first", ""),
    ]
    return [
        compared(line, list(zip(timings[ours], timings[other], strict=True)), goal)
        for line, ours, other, goal in lines
    ]


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--schemes", nargs="+", default=list(GOALS), choices=GOALS)
    options = parser.parse_args()
    print(table(measure(options.repeats, options.epochs, options.schemes)))


if __name__ == "__main__":
    main()
