"""Tells a task of Slurm its place, for TensorFlow and for DTensor, then starts its command.

JOBS='{"chief": 1, "worker": 2}' srun python deploy/slurm/place.py python coordinator.py FOLDER
"""

import json
import os
import sys

from tf_config import slurm_config

if __name__ == "__main__":
    config = slurm_config(json.loads(os.environ.get("JOBS", "null")))
    os.environ["TF_CONFIG"] = json.dumps(config)

    # The same for DTensor, which has variables of its own
    task, cluster = config["task"], config["cluster"]
    os.environ["DTENSOR_JOB_NAME"] = task["type"]
    os.environ["DTENSOR_CLIENT_ID"] = str(task["index"])
    os.environ["DTENSOR_JOBS"] = ",".join(cluster[task["type"]])

    os.execvp(sys.argv[1], sys.argv[1:])
