"""`make bench`: one table of all that is measured, each pair in one run, medians of several repeats."""

from __future__ import annotations

from benchmarks import rows, sweep, training


def main() -> None:
    """Prints the table, part by part, since the whole takes minutes."""
    for part in (training, sweep):
        print(rows.table(part.measure()), flush=True)


if __name__ == "__main__":
    main()
