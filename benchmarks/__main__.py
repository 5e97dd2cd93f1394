"""`make bench`: one table of all that is measured, each pair in one run, medians of several repeats."""

from __future__ import annotations

from benchmarks import rows, training

if __name__ == "__main__":
    print(rows.table(training.measure()))
