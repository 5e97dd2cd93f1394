"""The program that every task of a cluster runs, and what its environment tells it."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from pathlib import Path

from course_lib.errors import CourseError, one_of
from course_lib.i18n import _
from lessons.lesson_11_many_processes.addresses import host_and_port
from lessons.lesson_11_many_processes.cluster import given
from lessons.lesson_11_many_processes.cluster_spec import ClusterSpec, Task

TF_CONFIG, DTENSOR = VARIABLES = ("TF_CONFIG", "DTENSOR")

Program = str | os.PathLike[str] | Sequence[str | int | float | os.PathLike[str]]

# So that a task can open the port that is held for it, again after a restart too; and what gRPC has to say
# of peers that end helps nobody. Each task would take the whole memory of a GPU of this machine, and NCCL
# refuses two participants on one.
_OF_EVERY_TASK = {
    "CUDA_VISIBLE_DEVICES": "",
    "TF_GRPC_REUSE_PORT": "1",
    "GRPC_VERBOSITY": "ERROR",
    "PYTHONUNBUFFERED": "1",
}


def command_of(program: Program, python: str) -> list[str]:
    """Returns the whole command line of a task.

    Args:
        program: what stands behind `python` there, such as `["train.py", "--steps", "20"]` or
            `["-m", "lessons.lesson_11_many_processes.programs.multi_worker"]`; or only the script.
        python: the interpreter.

    Raises:
        CourseError: there is no such script, module or Python.
    """
    words = _words(program)
    if not (_is_module(words[1]) if words[:1] == ["-m"] and words[1:] else _is_file(words)):
        raise _no_program(" ".join(words))
    if not isinstance(python, str | os.PathLike) or not Path(python).is_file():
        raise CourseError(
            _("There is no Python at {python}.", python=python),
            allowed=_("the Python of an environment that has what the program imports"),
            cure=_("Leave it out: then it is the Python of this notebook."),
        )
    return [os.fspath(python), *words]


def environment_of(
    cluster: ClusterSpec, task: Task, variables: str, more: Mapping[str, str] | None
) -> dict[str, str]:
    """Returns all environment variables of a task.

    Args:
        cluster: all tasks.
        task: this one.
        variables: which variables tell it its place: "TF_CONFIG", or "DTENSOR" for those of DTensor.
        more: what else is set.

    Raises:
        CourseError: there are no such variables, DTensor cannot have such a cluster, or no
            variables can be set to what was given.
    """
    problem = _("There are no variables {variables!r}.", variables=variables)
    one_of(variables, VARIABLES, problem, cure=_("DTensor has variables of its own, strategies TF_CONFIG."))
    named = (
        {"TF_CONFIG": cluster.tf_config(task)} if variables == TF_CONFIG else cluster.dtensor_variables(task)
    )
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(VARIABLES)}
    made = {**inherited, **_OF_EVERY_TASK, **named, **given.variables(more)}
    addresses = (address for _job, of_job in cluster.jobs for address in of_job)
    return {**made, **without_proxy(made, addresses)}


def without_proxy(environment: Mapping[str, str], addresses: Iterable[str]) -> dict[str, str]:
    """Returns the variables that keep tasks from asking a proxy for each other; what stood there stays.

    >>> without_proxy({"no_proxy": "intern"}, ["host0:12345", "host1:12345"])
    {'no_proxy': 'intern,host0,host1'}

    gRPC reads `no_grpc_proxy`, and `no_proxy` where that is not set; Python `no_proxy` before `NO_PROXY`.

    Source: https://github.com/grpc/grpc/blob/master/doc/environment_variables.md
    """
    hosts = {host_and_port(address)[0] for address in addresses}
    kept = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
    for_grpc = environment.get("no_grpc_proxy", "")
    if kept.strip() == "*":  # no proxy at all, but only where nothing stands beside it; gRPC has a list
        return _named(no_grpc_proxy=_joined(for_grpc, hosts))
    return _named(no_proxy=_joined(kept, hosts), no_grpc_proxy=_joined(for_grpc, hosts) if for_grpc else "")


def _named(**variables: str) -> dict[str, str]:
    return {name: value for name, value in variables.items() if value}


def _joined(kept: str, hosts: set[str]) -> str:
    """Returns a list of hosts with those that were not in it behind."""
    more = sorted(hosts - set(map(str.strip, kept.split(","))))
    return ",".join([*([kept] if kept else []), *more])


def _words(program: object) -> list[str]:
    """Returns what stands behind `python`, word by word.

    Raises:
        CourseError: something there is neither text nor a path nor a number.
    """
    if isinstance(program, str | os.PathLike):
        return [os.fsdecode(program)]
    if not isinstance(program, Sequence) or not all(map(_is_word, program)):
        raise _no_program(program)
    return [os.fsdecode(each) if isinstance(each, str | os.PathLike) else str(each) for each in program]


def _is_word(given: object) -> bool:
    """Returns whether something is an argument; None and True, which would be words too, are slips."""
    return isinstance(given, str | os.PathLike | Real) and not isinstance(given, bool)


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _is_file(words: Sequence[str]) -> bool:
    return bool(words) and Path(words[0]).is_file()


def _no_program(program: object) -> CourseError:
    return CourseError(
        _("There is no program {program!r}.", program=program),
        allowed=_("a Python file, or -m and a module, with its arguments"),
        cure=_("Write for example {example}.", example='["train.py", "--steps", "20"]'),
    )
