"""Exercise failures-drill: a training on two machines fails in three ways, to be repaired from its logs."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from course_lib.errors import CourseError
from course_lib.exercises.checks import exercise
from course_lib.i18n import _
from lessons.strategies.cluster_spec import place
from lessons.strategies.launcher import Cluster
from lessons.strategies.report import Report

HOSTS = ("host0", "host1")
SETTINGS = ("index", "BATCH", "folder")
SHARED, OWN = "/mnt/nfs/checkpoints", "/mnt/nas/checkpoints"  # the logs tell which holds them
_BATCH, _STEPS = 32, 9
_LIMIT_SECONDS, _GRACE_SECONDS = 180.0, 3.0  # once one has failed the other waits in vain

Machines = Mapping[str, Mapping[str, object]]


def start_both(machines: Machines, program: str | os.PathLike[str], kept: str | os.PathLike[str]) -> Report:
    """Starts the workers' program on two machines, and returns what they said.

    Args:
        machines: for host0 and host1 the index in TF_CONFIG, the number in the program's line `BATCH = `, and
            the folder of checkpoints.
        program: the file that both have a copy of.
        kept: where the checkpoints are that lie in the shared folder of the machines; they stay as they are.

    Raises:
        CourseError: that is no plan for these machines.
    """
    _require_plan(machines)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(kept, folder_of(folder, HOSTS[0], SHARED))
        commands = [_command(host, machines[host], Path(program).read_text(), folder) for host in HOSTS]
        cluster = Cluster(commands[0], {"worker": 2}, others={"worker 1": commands[1]})
        for number, host in enumerate(HOSTS):
            index = int(str(machines[host]["index"]))
            cluster.set_variables(f"worker {number}", place(cluster.addresses, "worker", index))
        with cluster:
            report = cluster.wait(_LIMIT_SECONDS, grace_seconds=_GRACE_SECONDS)
    return Report(tuple(replace(each, task=host) for each, host in zip(report.tasks, HOSTS, strict=True)))


def folder_of(folder: Path, host: str, path: str) -> Path:
    """Returns where a machine's path is found here: what lies below /mnt/nfs is the same for all.

    >>> [folder_of(Path("all"), "host1", path).as_posix() for path in (SHARED, OWN)]
    ['all/mnt/nfs/checkpoints', 'all/host1/mnt/nas/checkpoints']
    """
    return (folder if path.startswith("/mnt/nfs/") else folder / host) / path.strip("/")


def _command(host: str, settings: Mapping[str, object], program: str, folder: Path) -> list[str]:
    """Returns the command line of a machine, which has a copy of the program with its batch size."""
    copy = folder / f"{host}.py"
    copy.write_text(re.sub(r"^BATCH = .*$", f"BATCH = {settings['BATCH']}", program, flags=re.M))
    return [str(copy), str(folder_of(folder, host, str(settings["folder"]))), "--steps", str(_STEPS)]


def _require_plan(machines: object) -> None:
    if not (
        isinstance(machines, Mapping)
        and set(machines) == set(HOSTS)
        and all(isinstance(each, Mapping) and set(each) == set(SETTINGS) for each in machines.values())
    ):
        raise CourseError(
            _("A machine lacks a setting, or has one too many. Copy `machines`, and change values only.")
        )
    for host, settings in machines.items():
        for name in ("index", "BATCH"):
            if not str(settings[name]).isdecimal():
                value = f"{name} = {settings[name]!r}"
                raise CourseError(_("{host}: `{value}` is no index or size.", host=host, value=value))


def _plan(index: int, batch: int, folder: str) -> dict[str, object]:
    return {"index": index, "BATCH": batch, "folder": folder}


BROKEN = {"host0": _plan(1, 48, OWN), "host1": _plan(2, 48, SHARED)}
_RIGHT = {"host0": _plan(0, _BATCH, SHARED), "host1": _plan(1, _BATCH, SHARED)}


@exercise("failures-drill", right=_RIGHT)
def drill(answer: Machines) -> str | None:
    """The settings of two machines whose training goes on."""
    _require_plan(answer)
    indices, batches, folders = (
        tuple(os.path.normpath(str(answer[host][name])) for host in HOSTS) for name in SETTINGS
    )
    # The faults in the order in which they are met: each hides the next.
    hints = {
        _(
            "Here that trains, since both machines are one. But the first address in the cluster is that of"
            " host0."
        ): indices == ("1", "0"),
        _("The index says who a machine is: its position in the list of addresses, counted from 0."): (
            indices != ("0", "1")
        ),
        _("Neither machine finds yesterday's checkpoint: they train from the beginning."): (
            SHARED not in folders
        ),
        _("Only one of the machines finds a checkpoint. The logs show which one."): len(set(folders)) > 1,
        _(
            "The machines have different batch sizes: no line of the logs has yesterday's number of examples."
        ): (len(set(batches)) > 1),
        _("They agree on the batch size, but yesterday's was different: see the last line of its log."): (
            batches != (str(_BATCH),) * 2
        ),
    }
    return next((hint for hint, applies in hints.items() if applies), None)
