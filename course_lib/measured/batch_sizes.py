"""The times of training steps that `make results` recorded, for pages on which nothing can be measured."""

from __future__ import annotations

import importlib.metadata
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path

from course_lib.i18n import _, join_sentences, ngettext
from course_lib.training.records import StepTimes

NAME = "04_batch_sizes"
TIMES = "step_times"  # what tells this file from one with training runs
BATCH_SIZES = (64, 128, 256, 512, 1024, 2048, 4096, 8192)

_FOLDER = files("course_lib") / "measured"
_DIGITS = 7  # of seconds: tenths of a microsecond


@dataclass(frozen=True)
class Machine:
    """On what, and with how many threads, times were measured.

    Attributes:
        cores: how many processor cores this process may use.
        threads: how many threads one operation may use, 0 for as many as TensorFlow likes.
        operations: how many operations may run at a time, 0 for as many as TensorFlow likes.
        tensorflow: its version.
    """

    cores: int
    threads: int
    operations: int
    tensorflow: str

    def sentences(self) -> str:
        """Returns what it says, in the reader's language."""
        cores = ngettext("{count} core", "{count} cores", self.cores)
        where = _("TensorFlow {version} on {cores}.", version=self.tensorflow, cores=cores)
        threads = ngettext(
            "Each operation uses {count} thread.", "Each operation uses {count} threads.", self.threads
        )
        operations = ngettext(
            "{count} operation runs at a time.", "{count} operations run at a time.", self.operations
        )
        if not self.threads:
            threads = _("TensorFlow chooses how many threads an operation uses.")
        if not self.operations:
            operations = _("TensorFlow chooses how many operations run at a time.")
        return join_sentences([where, threads, operations])


@dataclass(frozen=True)
class Recorded:
    """Times of steps, and how they were obtained.

    Attributes:
        command: what measured them.
        machine: where.
        times: a measurement for each batch size.
    """

    command: str
    machine: Machine
    times: tuple[StepTimes, ...]


def this_machine(environment: Mapping[str, str] = os.environ) -> Machine:
    """Returns where this process runs, with the numbers of threads that `setup` chose or the reader did."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads, operations = (
        int(environment.get(name) or 0) for name in ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")
    )
    return Machine(cores, threads, operations, _tensorflow_version())


def recorded() -> Recorded | None:
    """Returns what was recorded; None where nothing was."""
    path = _FOLDER / f"{NAME}.json"
    if not path.is_file():
        return None
    content = json.loads(path.read_text(encoding="utf-8"))
    times = tuple(StepTimes(**each) for each in content[TIMES])
    return Recorded(content["command"], Machine(**content["machine"]), times)


def save(times: Sequence[StepTimes], machine: Machine, folder: Path) -> Path:
    """Writes times to `folder` and returns the file."""
    rounded = [
        StepTimes(
            each.batch_size,
            round(each.one_device_seconds, _DIGITS),
            round(each.eight_devices_seconds, _DIGITS),
        )
        for each in times
    ]
    content = {
        "command": "make results",
        "machine": asdict(machine),
        TIMES: [asdict(each) for each in rounded],
    }
    path = folder / f"{NAME}.json"
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return path


def _tensorflow_version() -> str:
    for package in ("tensorflow", "tensorflow-cpu"):
        try:
            return importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return "?"
