"""Exercise 11-drill: a training on two machines that fails in three ways, to be repaired from its logs."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from course_lib.errors import CourseError
from course_lib.exercises.answers import is_number, plain
from course_lib.exercises.checks import exercise
from course_lib.i18n import _, language
from lessons.lesson_11_many_processes.cluster import Cluster, Report

HOSTS = ("host0", "host1")
SETTINGS = ("index", "batch", "checkpoints")
SHARED, OWN = "/mnt/nfs/garments", "/mnt/nas/garments"  # where the checkpoint is, only the logs tell
_MOUNTED = "/mnt/nfs"  # what both machines see
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
        return Report(
            tuple(
                replace(
                    told, task=host, lines=tuple(_seen_by(host, Path(folder), line) for line in told.lines)
                )
                for told, host in zip(report.told, HOSTS, strict=True)
            ),
            tuple(hosts[task] for task in report.ended),
        )


def folder_of(folder: Path, host: str, path: str) -> Path:
    """Returns where a machine's path is found here: what lies below /mnt/nfs is the same for all.

    >>> [folder_of(Path("all"), "host1", path).as_posix() for path in (SHARED, OWN)]
    ['all/mnt/nfs/garments', 'all/host1/mnt/nas/garments']
    """
    shared = path == _MOUNTED or path.startswith(f"{_MOUNTED}/")
    return folder.joinpath(*([] if shared else [host]), path.strip("/"))


def _seen_by(host: str, folder: Path, line: str) -> str:
    """Returns a line with the paths that the machine has for what lies here."""
    return line.replace(str(folder / host), "").replace(str(folder), "")


def _program(host: str, settings: Mapping[str, object], folder: Path) -> list[str]:
    index, batch, checkpoints = (_text(settings[name]) for name in SETTINGS)
    own = ["--batch", batch, "--checkpoints", str(folder_of(folder, host, checkpoints))]
    return [
        "-m",
        "lessons.lesson_11_many_processes.programs.by_hand",
        index,
        *_ARGUMENTS,
        "--language",
        language(),
        *own,
    ]


def _require_plan(machines: object) -> None:
    if not isinstance(machines, Mapping) or set(machines) != set(HOSTS):
        problem = _("These are not the two machines.")
    elif not all(isinstance(each, Mapping) and set(each) == set(SETTINGS) for each in machines.values()):
        problem = _("A machine lacks a setting, or has one too many.")
    else:
        return
    raise CourseError(
        problem,
        allowed=_(
            "{hosts}, each with {settings}", hosts=_(", ").join(HOSTS), settings=_(", ").join(SETTINGS)
        ),
        cure=_("Copy `machines`, and change values only."),
    )


def _plan(
    indices: tuple[object, object] = (0, 1),
    batches: tuple[int, int] = (_BATCH, _BATCH),
    folders: tuple[str, str] = (SHARED, SHARED),
) -> dict[str, dict[str, object]]:
    settings = zip(HOSTS, indices, batches, folders, strict=True)
    return {
        host: {"index": index, "batch": batch, "checkpoints": folder}
        for host, index, batch, folder in settings
    }


BROKEN = _plan((1, 2), (48, 48), (OWN, SHARED))


@exercise(
    "11-drill",
    right=_plan(),
    also=[_plan(("0", "1"))],
    wrong=[
        (BROKEN, "who a machine is"),
        (_plan((1, 0)), "first address"),
        (_plan((0, 0)), "who a machine is"),
        (_plan((1, 1)), "who a machine is"),
        (_plan(batches=(_BATCH, 48)), "two different batches"),
        (_plan(batches=(48, 48)), "yesterday"),
        (_plan(batches=(48, 48), folders=(OWN, SHARED)), "Only one of the machines"),
        (_plan(folders=(SHARED, OWN)), "Only one of the machines"),
        (_plan(folders=(OWN, OWN)), "from the beginning"),
        (_plan(batches=(48, 48), folders=(OWN, OWN)), "from the beginning"),
        ({"host0": _plan()["host0"]}, "not the two machines"),
        ({host: {"index": at} for at, host in enumerate(HOSTS)}, "lacks a setting"),
    ],
)
def drill(answer: Machines) -> str | None:
    """The settings of two machines whose training goes on."""
    try:
        _require_plan(answer)
    except CourseError as error:
        return f"{error.problem} {error.cure}"
    indices, batches, folders = (_values(answer, name) for name in SETTINGS)
    if indices == ("1", "0"):
        return _(
            "Here that trains, since both machines are one. But the first address in the cluster is that of"
            " host0."
        )
    if indices != ("0", "1"):
        return _("Look at the log of each machine: its TF_CONFIG does not say who a machine is.")
    if len(set(batches)) > 1:
        return _("The machines train with two different batches. Run it, and see whom the logs name.")
    if SHARED not in folders:
        return _("They train, but from the beginning: the checkpoint of yesterday is in neither folder.")
    if folders != (SHARED, SHARED):
        return _("Only one of the machines finds a checkpoint: the logs tell which.")
    if batches != (str(_BATCH),) * 2:
        return _("They agree on the batch. But the training of yesterday had another one: see the logs.")
    return None


def _values(machines: Machines, name: str) -> tuple[str, ...]:
    return tuple(_text(machines[host][name]).rstrip("/") for host in HOSTS)


def _text(value: object) -> str:
    number = plain(value)
    return f"{number:g}" if is_number(number) else str(number)
