"""What live plotting costs: `live.watch` against records that nobody reads, and the tutorial's loop.

All happen in turns in one real Jupyter kernel, which makes the widgets and sends the pictures, on random
data of the shape of the IMDB reviews. Each turn is a whole run: the model, the tracing of its function, every
step and evaluation.
"""

from __future__ import annotations

import argparse
import json
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
from course_lib.specs import plan
from course_lib.training import run as training
from course_lib.dtensor import create_mesh, to_layout
from course_lib.data.examples import Examples
from benchmarks import tutorial_loop

random = np.random.default_rng(0)
features = random.standard_normal((25_000, 1200), np.float32)
examples = Examples(features, (features[:, :100].sum(axis=1) > 0).astype(np.int64))
test_set = Examples(features[:2000], examples.labels[:2000])
timings = {"plain": [], "watched": [], "drawing": [], "tutorial": []}

def new_run(epochs):
    model = models.MLP(models.initial_values(), plan.data_parallel(8))
    return training.train(model, examples, test_set, epochs=epochs)
"""
PLAIN = """
run, start = new_run({epochs}), time.perf_counter()
for record in run:
    pass
timings["plain"].append(time.perf_counter() - start)
"""
WATCHED = """
run, start, used = new_run({epochs}), time.perf_counter(), time.thread_time()
history = await live.watch(run)
timings["watched"].append(time.perf_counter() - start)
timings["drawing"].append(time.thread_time() - used)
"""
TUTORIAL = """
start, scheme = time.perf_counter(), plan.data_parallel(8)
mesh = create_mesh(scheme.mesh)
axes = {{"inputs": models.MLP.spec.inputs, "labels": models.MLP.spec.labels}}
layouts = {{name: to_layout(scheme.layout(of), mesh) for name, of in axes.items()}}
model = models.MLP(models.initial_values(), scheme)
tutorial_loop.train(model, examples, layouts, {epochs} * 390)
timings["tutorial"].append(time.perf_counter() - start)
"""
REPORT = "print(json.dumps(timings))"
STEPS_PER_EPOCH = 390  # 25,000 examples in batches of 64


def measure(repeats: int = 5, epochs: int = 3) -> list[Row]:
    """Returns what watching costs, and what the tutorial's loop costs beside a watched run.

    Args:
        repeats: how many times each is measured, after one turn to warm up.
        epochs: the length of a run; an epoch has 390 steps.
    """
    kinds = [source.format(epochs=epochs) for source in (PLAIN, WATCHED, TUTORIAL)]
    # Every other turn the other way round, so that a machine that gets slower wrongs nobody.
    turns = [source for turn in range(repeats + 1) for source in (kinds if turn % 2 else kinds[::-1])]
    cells = [nbformat.v4.new_code_cell(source) for source in [PREPARE, *turns, REPORT]]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(ROOT)}}).execute()
    timings = json.loads(notebook.cells[-1].outputs[0].text)
    plain, watched, drawing, tutorial = (timings[kind][1:] for kind in timings)
    what = f"{epochs * STEPS_PER_EPOCH} steps with live curves"
    return [
        compared(f"{what} / without", list(zip(watched, plain, strict=True)), "at least 0.95"),
        compared(
            "drawing's processor time / that run", list(zip(drawing, watched, strict=True)), "at least 20"
        ),
        compared(f"{what} / tutorial's loop", list(zip(watched, tutorial, strict=True)), "at least 1.3"),
    ]


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=3)
    arguments = parser.parse_args()
    print(table(measure(arguments.repeats, arguments.epochs)))


if __name__ == "__main__":
    main()
