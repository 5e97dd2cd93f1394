"""On what, and with how many threads, times were measured."""

from __future__ import annotations

import importlib.metadata
import os

from course_lib.i18n import _, join_sentences, ngettext
from course_lib.measured.files import Record


def this_machine() -> Record:
    """Returns where this process runs: cores, TensorFlow's version, and the numbers of threads.

    `threads` is how many threads one operation may use, `operations` how many operations may run at a time,
    as `setup` chose or the reader did; 0 is as many as TensorFlow likes.
    """
    version = importlib.metadata.version("tensorflow")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads, operations = (
        int(os.environ.get(name) or 0) for name in ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")
    )
    return Record(cores=cores, threads=threads, operations=operations, tensorflow=version)


def sentences(machine: Record) -> str:
    """Returns what `this_machine` returned, in the reader's language."""
    cores = ngettext("{count} core", "{count} cores", machine.cores)
    where = _("TensorFlow {version} on {cores}.", version=machine.tensorflow, cores=cores)
    threads = _("TensorFlow chooses how many threads an operation uses.")
    if machine.threads:
        threads = ngettext(
            "Each operation uses {count} thread.", "Each operation uses {count} threads.", machine.threads
        )
    operations = _("TensorFlow chooses how many operations run at a time.")
    if machine.operations:
        operations = ngettext(
            "{count} operation runs at a time.", "{count} operations run at a time.", machine.operations
        )
    return join_sentences([where, threads, operations])
