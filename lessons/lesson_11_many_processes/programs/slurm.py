"""Starts a command with its place in the cluster, as Slurm tells it: TF_CONFIG and DTensor's variables.

    srun python -m lessons.lesson_11_many_processes.programs.slurm [--jobs ps=1,worker=2] COMMAND [ARGUMENT]

TensorFlow's `SlurmClusterResolver` reads Slurm's variables. Strategies do not get it directly: it always
counts GPUs (without `nvidia-smi` it fails, and with none it steps by zero), and a strategy would use as many
as it says. A TF_CONFIG made of its addresses leaves the devices to TensorFlow.
It sorts the machines as texts, so n10 comes before n2, and Slurm counts tasks along its own list: ask for
machines whose numbers have equally many digits.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping

from lessons.lesson_11_many_processes.programs.lines import run

PORT = 2222  # of the first task on a machine; the second has the next


def variables(jobs: Mapping[str, int] | None = None, port: int = PORT) -> dict[str, str]:
    """Returns TF_CONFIG and DTensor's variables for this task of a Slurm step.

    Args:
        jobs: how many tasks of each job, such as `{"chief": 1, "ps": 1, "worker": 2}`;
            all are workers if None.
        port: the first port on each machine.

    Source: `tf.distribute.cluster_resolver.SlurmClusterResolver`; Slurm's manual of `srun`.
    """
    import tensorflow as tf

    tasks = int(os.environ["SLURM_STEP_NUM_TASKS"])
    resolver = tf.distribute.cluster_resolver.SlurmClusterResolver(
        jobs=None if jobs is None else dict(jobs),
        port_base=port,
        gpus_per_node=tasks,  # told that each task has one device, it asks for no GPUs
        gpus_per_task=1,
        auto_set_gpu=False,
    )
    cluster = resolver.cluster_spec().as_dict()  # only after this does the resolver know its own task
    job, index = resolver.get_task_info()
    return {
        "TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": job, "index": index}}),
        "DTENSOR_JOBS": ",".join(cluster[job]),
        "DTENSOR_JOB_NAME": job,
        "DTENSOR_CLIENT_ID": str(index),
    }


def _jobs(text: str) -> dict[str, int]:
    """Returns the jobs of "worker=2,ps=1", for argparse, which reports a ValueError."""
    return {name: int(count) for name, _equals, count in (part.partition("=") for part in text.split(","))}


def main() -> None:
    """Replaces this process by the command, with the variables of its task."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--jobs", type=_jobs, default=None)
    parser.add_argument("--port", type=int, default=PORT)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    os.environ.update(variables(arguments.jobs, arguments.port))
    os.execvp(arguments.command[0], arguments.command)


if __name__ == "__main__":
    run(main)
