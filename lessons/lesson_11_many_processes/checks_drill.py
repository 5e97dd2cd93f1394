"""Exercise 11-drill: a training on two machines that fails in three ways, to be repaired from its logs."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from course_lib.errors import CourseError
from course_lib.exercises.checks import exercise
from course_lib.i18n import _, language
from lessons.lesson_11_many_processes.cluster import Cluster, Report

HOSTS = ("host0", "host1")
SETTINGS = ("index", "batch", "checkpoints")
SHARED, OWN = "/mnt/nfs/garments", "/mnt/nas/garments"  # where the checkpoint is, only the logs tell
_BATCH = 32  # of the run that is to go on
_WAIT_SECONDS = 90  # where nobody has failed, a machine waits for another one so long, and says so
_LIMIT_SECONDS, _GRACE_SECONDS = 240.0, 5.0  # once one has failed the other waits in vain
_ARGUMENTS = ("--steps", "9", "--examples", "96", "--digits", "2", "--wait", str(_WAIT_SECONDS))

Machines = Mapping[str, Mapping[str, object]]


def start(machines: Machines, checkpoints: str | os.PathLike[str]) -> Report:
    """Starts the workers' program on two machines, and returns what they said.

    Args:
        machines: for host0 and host1 the index in TF_CONFIG, the batch size and the folder of checkpoints.
        checkpoints: where those are that lie in the shared folder of the machines; they stay as they are.

    Raises:
        CourseError: that is no plan for these machines.
    """
    _require_plan(machines)
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(checkpoints, folder_of(Path(folder), HOSTS[0], SHARED))
        programs = [_program(host, machines[host], Path(folder)) for host in HOSTS]
        with Cluster(programs[0], {"worker": 2}, others={"worker 1": programs[1]}) as cluster:
            report = cluster.wait(_LIMIT_SECONDS, grace_seconds=_GRACE_SECONDS)
    hosts = dict(zip((told.task for told in report.told), HOSTS, strict=True))
    told = [
        replace(each, task=hosts[each.task], lines=_seen_by(hosts[each.task], Path(folder), each.lines))
        for each in report.told
    ]
    return Report(tuple(told), tuple(hosts[task] for task in report.ended))


def folder_of(folder: Path, host: str, path: str) -> Path:
    """Returns where a machine's path is found here: what lies below /mnt/nfs is the same for all.

    >>> [folder_of(Path("all"), "host1", path).as_posix() for path in (SHARED, OWN)]
    ['all/mnt/nfs/garments', 'all/host1/mnt/nas/garments']
    """
    return (folder if path.startswith("/mnt/nfs/") else folder / host) / path.strip("/")


def _seen_by(host: str, folder: Path, lines: Iterable[str]) -> tuple[str, ...]:
    """Returns lines with the paths that the machine has for what lies here."""
    return tuple(line.replace(str(folder / host), "").replace(str(folder), "") for line in lines)


def _program(host: str, settings: Mapping[str, object], folder: Path) -> list[str]:
    index, batch, checkpoints = (str(settings[name]) for name in SETTINGS)
    program = ["-m", "lessons.lesson_11_many_processes.programs.multi_worker", *_ARGUMENTS]
    own = ["--index", index, "--batch", batch, "--checkpoints", str(folder_of(folder, host, checkpoints))]
    return [*program, "--language", language(), *own]


def _require_plan(machines: object) -> None:
    if not (
        isinstance(machines, Mapping)
        and set(machines) == set(HOSTS)
        and all(set(settings) == set(SETTINGS) for settings in machines.values())
    ):
        raise CourseError(
            _("A machine lacks a setting, or has one too many."),
            allowed=_(
                "{hosts}, each with {settings}", hosts=_(", ").join(HOSTS), settings=_(", ").join(SETTINGS)
            ),
            cure=_("Copy `machines`, and change values only."),
        )


def _plan(index: int, batch: int, checkpoints: str) -> dict[str, object]:
    return {"index": index, "batch": batch, "checkpoints": checkpoints}


BROKEN = {"host0": _plan(1, 48, OWN), "host1": _plan(2, 48, SHARED)}
_RIGHT = {"host0": _plan(0, _BATCH, SHARED), "host1": _plan(1, _BATCH, SHARED)}


@exercise("11-drill", right=_RIGHT)
def drill(answer: Machines) -> str | None:
    """The settings of two machines whose training goes on."""
    try:
        _require_plan(answer)
    except CourseError as error:
        return f"{error.problem} {error.cure}"
    indices, batches, folders = (_values(answer, name) for name in SETTINGS)
    # The faults in the order in which they are met: each hides the next.
    hints = {
        _(
            "Here that trains, since both machines are one. But the first address in the cluster is that of"
            " host0."
        ): indices == ("1", "0"),
        _("Look at the log of each machine: its TF_CONFIG does not say who a machine is."): (
            indices != ("0", "1")
        ),
        _("The machines train with two different batches. Run it, and see whom the logs name."): (
            len(set(batches)) > 1
        ),
        _("They train, but from the beginning: the checkpoint of yesterday is in neither folder."): (
            SHARED not in folders
        ),
        _("Only one of the machines finds a checkpoint: the logs tell which."): len(set(folders)) > 1,
        _("They agree on the batch. But the training of yesterday had another one: see the logs."): (
            batches != (str(_BATCH),) * 2
        ),
    }
    return next((hint for hint, applies in hints.items() if applies), None)


def _values(machines: Machines, name: str) -> tuple[str, ...]:
    return tuple(str(machines[host][name]).rstrip("/") for host in HOSTS)
