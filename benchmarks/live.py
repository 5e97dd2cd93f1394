"""What live plotting costs: training with `live.watch` against training whose records nobody looks at.

Both happen in turns in one real Jupyter kernel, which makes the widgets and sends the pictures, on random
data of the shape of the IMDB reviews. Each turn is a whole run: the model, the tracing of its function, every
step and evaluation.
"""

from __future__ import annotations

import argparse
import json
import statistics
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parent.parent

PREPARE = """
import json, time
import numpy as np
import course_lib
course_lib.setup(devices=8)
from course_lib import live, models, plan, training
from course_lib.examples import Examples

random = np.random.default_rng(0)
features = random.standard_normal((25_000, 1200), np.float32)
examples = Examples(features, (features[:, :100].sum(axis=1) > 0).astype(np.int64))
test_set = Examples(features[:2000], examples.labels[:2000])
timings = {"plain": [], "watched": [], "share": []}

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
timings["share"].append((time.thread_time() - used) / timings["watched"][-1])
"""
REPORT = "print(json.dumps(timings))"


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        what: what was trained.
        plain_seconds: the median time of a run whose records nobody looks at.
        watched_seconds: the median time of a run with curves, progress bar and Stop button.
        ratio: the median of their ratios, pair by pair.
        share: the part of a watched run for which its drawing thread used the processor, at the median. It is
            the most that watching can cost, and hardly depends on what else the machine does.
        pictures: how many pictures a watched run showed, at the median.
    """

    what: str
    plain_seconds: float
    watched_seconds: float
    ratio: float
    share: float
    pictures: float


def measure(repeats: int = 5, epochs: tuple[int, ...] = (1, 3, 9)) -> list[Row]:
    """Returns the table: a line for each length of a run.

    Args:
        repeats: how many pairs are measured for each line, after one to warm up.
        epochs: the lengths of the runs; an epoch has 390 steps.
    """
    return [measure_one(repeats, count) for count in epochs]


def measure_one(repeats: int, epochs: int) -> Row:
    """Returns one line of the table, measured in a kernel of its own."""
    pair = [PLAIN.format(epochs=epochs), WATCHED.format(epochs=epochs)]
    # Every other pair the other way round, so that a machine that gets slower wrongs neither.
    turns = [source for turn in range(repeats + 1) for source in (pair if turn % 2 else pair[::-1])]
    sources = [PREPARE, *turns, REPORT]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    kernel = _Counting(notebook, timeout=600, resources={"metadata": {"path": str(ROOT)}})
    kernel.execute()
    timings = json.loads(notebook.cells[-1].outputs[0].text)
    pairs = list(zip(timings["plain"], timings["watched"], strict=True))[1:]
    return Row(
        what=f"{epochs * 390} steps",
        plain_seconds=statistics.median(plain for plain, _watched in pairs),
        watched_seconds=statistics.median(watched for _plain, watched in pairs),
        ratio=statistics.median(watched / plain for plain, watched in pairs),
        share=statistics.median(timings["share"][1:]),
        pictures=statistics.median(sorted(kernel.pictures.values())[1:]),
    )


class _Counting(NotebookClient):
    """Executes cells and counts the pictures of each."""

    def __init__(self, notebook: nbformat.NotebookNode, **options: object) -> None:
        super().__init__(notebook, **options)
        self.pictures: dict[int, int] = {}

    def process_message(self, msg, cell, cell_index):  # type: ignore[no-untyped-def]
        if "image/png" in msg["content"].get("data", {}):
            self.pictures[cell_index] = self.pictures.get(cell_index, 0) + 1
        return super().process_message(msg, cell, cell_index)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--epochs", type=int, nargs="+", default=[1, 3, 9])
    arguments = parser.parse_args()
    print(f"{'training':>12} {'plain':>8} {'watched':>8} {'ratio':>7} {'share':>7} {'pictures':>9}")
    for row in measure(arguments.repeats, tuple(arguments.epochs)):
        times = f"{row.plain_seconds:7.2f}s {row.watched_seconds:7.2f}s"
        print(f"{row.what:>12} {times} {row.ratio:7.3f} {row.share:7.3f} {row.pictures:9.0f}")


if __name__ == "__main__":
    main()
