"""Every benchmark runs and prints its rows; how fast it is says `make bench`, by hand and weekly."""

import sys

import pytest

from benchmarks import data, explorer, live, rows, sweep, training, worker


@pytest.mark.parametrize(
    ("measure", "num_rows"),
    [
        (lambda: explorer._rows("a start", [explorer._start_seconds()], 1.0), 2),
        (lambda: [data._measure_source(data.BUILT_IN, repeats=1)], 1),
        (lambda: training.measure(repeats=1, num_steps=2, schemes=("data",)), 2),
        (lambda: sweep.measure(repeats=1, batch_sizes=(64,)), 3),
        (lambda: live.measure(repeats=1, epochs=1, schemes=("data",), num_examples=640), 4),
    ],
    ids=["explorer", "data", "training", "sweep", "live"],
)
def test_a_benchmark_runs_and_prints_its_rows(measure, num_rows, monkeypatch):
    monkeypatch.setattr(training, "jax_python", lambda: None)  # where JAX is, there are two rows more
    lines = rows.table(measure()).splitlines()
    assert len(lines) == 1 + num_rows
    assert all(" ms" in line for line in lines[1:])


def test_a_worker_answers_each_question_and_ends_with_the_block():
    double = "import sys\nfor line in sys.stdin: print(2 * float(line), flush=True)"
    with worker.worker([sys.executable, "-c", double]) as ask:
        assert [ask("1.5"), ask("4")] == [3.0, 8.0]
