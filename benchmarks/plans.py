"""`make bench`: how long the planner takes for 146 billion parameters, and which plan is the best."""

from __future__ import annotations

import time

from lessons.scale.how_long.explorer import ranking

CHOICES = ((64, 512), (512, 512), (512, 2048), (4096, 512), (4096, 2048), (4096, 4096))


def main() -> None:
    """Prints a line for each choice of devices and batch."""
    print(f"{'H100':>5} {'batch':>5} {'plans':>6} {'fit':>6} {'near':>4} {'planned in':>10}  the best")
    for devices, examples in CHOICES:
        begin = time.perf_counter()
        found = ranking("146", "H100", devices, examples)
        taken = time.perf_counter() - begin
        best = found.plans[0]
        counts = f"{len(found.plans):6,} {found.num_fitting:6,} {len(found.best):4}"
        how = f"{best.training.microbatches} micro-batches, {best.training.chunks} chunks"
        how += f", ZeRO-{best.training.zero}, recompute {best.training.recompute}"
        told = f"{best.cost.seconds:.2f} s, {found.utilisation(best):.0%} of peak, {best.plan.mesh}, {how}"
        print(f"{devices:5,} {examples:5,} {counts} {taken:8.2f} s  {told}, {found.binds()} binds")


if __name__ == "__main__":
    main()
