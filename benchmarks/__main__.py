"""`make bench`: the course's training step beside others, each pair in one run, by medians."""

from __future__ import annotations

from benchmarks import training

if __name__ == "__main__":
    print(f"{'':64} {'course':>11} {'other':>11} {'other/course':>13}")
    for what, course, other in training.measure():
        print(f"{what:64} {1000 * course:>8,.2f} ms {1000 * other:>8,.2f} ms {other / course:>13.3f}")
