"""Trains in a folder of checkpoints, from the newest one, until it is done or killed.

Usage: kill_worker.py CHECKPOINTS RESULT. Prints a line when training begins; RESULT gets the final values.
"""

import sys
import warnings

import numpy as np

import course_lib

EPOCHS, STEPS_PER_EPOCH, BATCH_SIZE = 40, 5, 32  # more checkpoints than the kills can wait for
DIMS = (1200, 1000, 2)  # large enough that writing a checkpoint takes a while


def main(checkpoints: str, result: str) -> None:
    course_lib.setup(devices=8)
    warnings.simplefilter("error")  # a killed process must never leave a damaged checkpoint behind
    from course_lib.data.examples import Examples
    from course_lib.models.sentiment import MLP, initial_values
    from course_lib.specs.plan import data_parallel
    from course_lib.training.checkpoints import CheckpointFolder
    from course_lib.training.run import train

    random = np.random.Generator(np.random.Philox(7))
    features = random.standard_normal((STEPS_PER_EPOCH * BATCH_SIZE + 9, DIMS[0])).astype(np.float32)
    examples = Examples(features, (features[:, :50].sum(axis=1) > 0).astype(np.int64))
    model = MLP(initial_values(dims=DIMS), data_parallel(8))
    folder = CheckpointFolder(checkpoints)
    run = train(model, examples, epochs=EPOCHS, batch_size=BATCH_SIZE, learning_rate=1e-3, checkpoints=folder)
    print(f"from step {run.start_step} of {run.total_steps}", flush=True)
    for _record in run:
        pass
    np.savez(result, **model.values())


if __name__ == "__main__":
    main(*sys.argv[1:])
