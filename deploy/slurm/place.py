"""Tells a task of Slurm its place, then starts its command.

srun python place.py python worker.py FOLDER
"""

import json
import os
import sys

import tensorflow as tf


def place_in_slurm(jobs=None, port=12345):
    tasks = int(os.environ["SLURM_STEP_NUM_TASKS"])
    resolver = tf.distribute.cluster_resolver.SlurmClusterResolver(
        jobs,
        port_base=port,
        gpus_per_node=tasks,  # one a task: so it looks for none
        gpus_per_task=1,
        auto_set_gpu=False,
    )
    cluster = resolver.cluster_spec().as_dict()
    job, index = resolver.get_task_info()
    task = {"type": job, "index": index}
    return json.dumps({"cluster": cluster, "task": task})


if __name__ == "__main__":
    jobs = json.loads(os.environ.get("JOBS", "null"))
    place = place_in_slurm(jobs, int(os.environ.get("PORT", "12345")))
    os.environ["TF_CONFIG"] = place

    # The same for DTensor, which has variables of its own
    place = json.loads(place)
    task, cluster = place["task"], place["cluster"]
    os.environ["DTENSOR_JOB_NAME"] = task["type"]
    os.environ["DTENSOR_CLIENT_ID"] = str(task["index"])
    os.environ["DTENSOR_JOBS"] = ",".join(cluster[task["type"]])

    os.execvp(sys.argv[1], sys.argv[1:])
