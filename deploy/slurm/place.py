"""Starts a command with its place as Slurm tells it: srun python place.py python worker.py FOLDER.

TensorFlow's resolver sorts machines as texts, so n10 comes before n2, and Slurm counts tasks along its own
list: ask for machines whose numbers have equally many digits.
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
        gpus_per_node=tasks,  # with one for each task no machine is searched for GPUs
        gpus_per_task=1,
        auto_set_gpu=False,
    )
    cluster = resolver.cluster_spec().as_dict()  # this call finds out which task it is
    job, index = resolver.get_task_info()
    return json.dumps({"cluster": cluster, "task": {"type": job, "index": index}})


if __name__ == "__main__":
    place = place_in_slurm(json.loads(os.environ.get("JOBS", "null")), int(os.environ.get("PORT", "12345")))
    task, addresses = json.loads(place)["task"], json.loads(place)["cluster"]
    own = {"DTENSOR_CLIENT_ID": str(task["index"]), "DTENSOR_JOB_NAME": task["type"]}
    os.environ.update(TF_CONFIG=place, DTENSOR_JOBS=",".join(addresses[task["type"]]), **own)
    os.execvp(sys.argv[1], sys.argv[1:])
