"""What its environment tells each task of a cluster."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from course_lib.errors import one_of
from course_lib.i18n import _
from lessons.lesson_11_many_processes.addresses import host_and_port
from lessons.lesson_11_many_processes.cluster_spec import ClusterSpec, Task

TF_CONFIG, DTENSOR = VARIABLES = ("TF_CONFIG", "DTENSOR")

# So that a task can open the port that is held for it, again after a restart too; and what gRPC has to say
# of peers that end helps nobody. Each task would take the whole memory of a GPU of this machine, and NCCL
# refuses two participants on one.
_OF_EVERY_TASK = {
    "CUDA_VISIBLE_DEVICES": "",
    "TF_GRPC_REUSE_PORT": "1",
    "GRPC_VERBOSITY": "ERROR",
    "PYTHONUNBUFFERED": "1",
}


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
        CourseError: there are no such variables, or DTensor cannot have such a cluster.
    """
    problem = _("There are no variables {variables!r}.", variables=variables)
    one_of(variables, VARIABLES, problem, cure=_("DTensor has variables of its own, strategies TF_CONFIG."))
    place = (
        {"TF_CONFIG": cluster.tf_config(task)} if variables == TF_CONFIG else cluster.dtensor_variables(task)
    )
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(VARIABLES)}
    environment = {**inherited, **_OF_EVERY_TASK, **place, **(more or {})}
    addresses = (address for _job, of_job in cluster.jobs for address in of_job)
    return {**environment, **without_proxy(environment, addresses)}


def without_proxy(environment: Mapping[str, str], addresses: Iterable[str]) -> dict[str, str]:
    """Returns the variable that keeps tasks from asking a proxy for each other; what stood there stays.

    >>> without_proxy({"no_proxy": "intern"}, ["host0:12345", "host1:12345"])
    {'no_grpc_proxy': 'intern,host0,host1'}

    gRPC reads `no_grpc_proxy`, and `no_proxy` where that is not set.

    Source: https://github.com/grpc/grpc/blob/master/doc/environment_variables.md
    """
    hosts = dict.fromkeys(host_and_port(address)[0] for address in addresses)
    kept = environment.get("no_grpc_proxy") or environment.get("no_proxy")
    return {"no_grpc_proxy": ",".join([*([kept] if kept else []), *hosts])}
