"""Runs the workers' program on machines that somebody set up by hand: each as the plan says, right or wrong.

    python -m course_lib.programs.by_hand PLAN FOLDER LANGUAGE

The plan is JSON: for each machine the index that stands in its TF_CONFIG, its batch size and where its
checkpoints are. Of the machines there is only what they see: folders below /mnt/shared are the same for all
of them, any other is a machine's own. All lie in FOLDER.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from course_lib.programs import multi_worker
from course_lib.programs.lines import run
from course_lib.programs.places import VARIABLE, Place, place_of

SHARED = "/mnt/shared"
_ARGUMENTS = ("--steps", "9", "--examples", "96", "--digits", "2", "--wait", "10")


def main() -> None:
    """Takes the place and the arguments that the plan has for this machine, and trains."""
    plan, folder = json.loads(sys.argv[1]), Path(sys.argv[2])
    place = place_of(os.environ)
    machine = f"host{place.index}"
    settings = plan[machine]
    os.environ[VARIABLE] = tf_config(place, settings["index"])
    checkpoints = str(folder_of(folder, machine, settings["checkpoints"]))
    own = ["--batch", settings["batch"], "--checkpoints", checkpoints, "--language", sys.argv[3]]
    sys.argv[1:] = [*_ARGUMENTS, *own]
    multi_worker.main()


def tf_config(place: Place, index: str) -> str:
    """Returns TF_CONFIG with this process's cluster, and another index."""
    cluster = {job: list(addresses) for job, addresses in place.cluster.items()}
    return json.dumps({"cluster": cluster, "task": {"type": place.job, "index": index}})


def folder_of(folder: Path, machine: str, path: str) -> Path:
    """Returns where a machine's path is found here.

    >>> [folder_of(Path("all"), "host1", path).as_posix() for path in ("/mnt/shared", "/var/own")]
    ['all/mnt/shared', 'all/host1/var/own']
    """
    shared = path == SHARED or path.startswith(f"{SHARED}/")
    return folder.joinpath(*([] if shared else [machine]), path.strip("/"))


if __name__ == "__main__":
    run(main)
