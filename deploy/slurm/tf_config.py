"""Makes TF_CONFIG from Slurm's variables, then runs a command.

srun python tf_config.py python worker.py FOLDER
"""

import json
import os
import sys

import tensorflow as tf


def slurm_config(jobs=None):
    tasks = int(os.environ["SLURM_STEP_NUM_TASKS"])
    resolver = tf.distribute.cluster_resolver.SlurmClusterResolver(
        jobs,
        port_base=int(os.environ.get("PORT", "12345")),
        # Left alone, the resolver counts GPUs, and fails without one
        gpus_per_node=tasks,
        gpus_per_task=1,
        auto_set_gpu=False,
    )
    cluster = resolver.cluster_spec().as_dict()
    job, index = resolver.get_task_info()
    return {"cluster": cluster, "task": {"type": job, "index": index}}


if __name__ == "__main__":
    os.environ["TF_CONFIG"] = json.dumps(slurm_config())
    os.execvp(sys.argv[1], sys.argv[1:])
