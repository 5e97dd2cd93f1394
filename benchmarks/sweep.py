"""How a train step's time depends on the size of the batch: one device against eight, under two settings.

With one thread a device, as `setup` has it, one device uses one core and eight use all; with TensorFlow's own
numbers of threads one device uses all cores too. Each setting is a process of its own; within it, one device
without DTensor and eight with it take turns. The batch lies on the devices already: the step alone is timed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence

from benchmarks.rows import Row, compared, table
from benchmarks.worker import serve, worker

BATCH_SIZES = (64, 512, 2048, 8192)
THREADS = {
    "one thread a device": {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "2"},
    "TensorFlow's threads": {"TF_NUM_INTRAOP_THREADS": "0", "TF_NUM_INTEROP_THREADS": "0"},
}


def measure(repeats: int = 5, batch_sizes: Sequence[int] = BATCH_SIZES) -> list[Row]:
    """Returns a row for each setting and size: eight devices, one device, and one / eight.

    Args:
        repeats: how many pairs are measured for each line.
        batch_sizes: numbers of rows that divide by eight.
    """
    rows = []
    for setting, environment in THREADS.items():
        with worker([sys.executable, "-m", "benchmarks.sweep", "--serve"], environment) as ask:
            for batch_size in batch_sizes:
                pairs = [(ask(f"eight {batch_size}"), ask(f"one {batch_size}")) for _repeat in range(repeats)]
                rows.append(compared(f"{setting}: batch {batch_size:,}, eight / one device", pairs))
    return rows


def make(what: str) -> Callable[[], float]:
    """Returns a function that trains some steps and returns the seconds a step.

    Args:
        what: "one" or "eight" devices, and the size of the batch, such as "eight 64".
    """
    devices, size = what.split()
    batch_size = int(size)
    num_steps = max(2, 4096 // batch_size)
    step = one_device_step(batch_size) if devices == "one" else eight_devices_step(batch_size)

    def measure_once() -> float:
        start = time.perf_counter()
        for _step in range(num_steps):
            wait = step()
        wait()  # each step needs the weights of the one before: the last one waits for all
        return (time.perf_counter() - start) / num_steps

    return measure_once


def one_device_step(batch_size: int) -> Callable[[], Callable[[], object]]:
    """Returns a function that trains one step on one device and returns how to wait for it."""
    from benchmarks import training

    examples = training.random_examples(batch_size)
    step = training.one_device_step(learning_rate=0.64 / batch_size)
    inputs, labels = training.tf.constant(examples.features), training.tf.constant(examples.labels)
    return lambda: step(inputs, labels).numpy


def eight_devices_step(batch_size: int) -> Callable[[], Callable[[], object]]:
    """Returns a function that trains one step on eight devices and returns how to wait for it."""
    from benchmarks import training
    from course_lib.training.optimizers.sgd import SGD
    from course_lib.training.trainer import ModelTrainer

    examples = training.random_examples(batch_size)
    model = training.MLP(training.initial_values(), training.data_parallel())
    trainer = ModelTrainer(model, SGD(0.64 / batch_size))
    stack = trainer.send(examples.features[None], examples.labels[None], None)
    return lambda: trainer.steps(stack, 1)


def main() -> None:
    """Prints the table, or measures for the process that asks."""
    if "--serve" in sys.argv:
        serve(make)
    else:
        print(table(measure()))


if __name__ == "__main__":
    main()
