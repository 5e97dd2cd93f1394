"""Nobody is left of a cluster, whatever becomes of its kernel."""

import contextlib
import sys
from pathlib import Path

import pytest
from jupyter_client import KernelManager
from jupyter_client.kernelspec import KernelSpec

from tests.kernels import ROOT
from tests.unit.clusters import eventually, ids, left, places_in

WAITS = """
from course_lib import syllabus
Cluster = syllabus.module("workers.launcher").Cluster
with Cluster([{program!r}, {folder!r}], {{"worker": 2}}) as cluster:
    cluster.wait(600)
"""


class Manager(KernelManager):
    @property
    def kernel_spec(self):
        return KernelSpec(argv=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"])


@contextlib.contextmanager
def kernel_that_waits(folder):
    """Yields a kernel whose cell waits for a cluster, its client, the request, and the processes' folder."""
    places = places_in(folder)
    manager = Manager()
    manager.start_kernel(cwd=str(ROOT))
    client = manager.blocking_client()
    client.start_channels()
    client.wait_for_ready(timeout=120)
    try:
        # An error in a cell has a kernel refuse what is asked at once after it, unless it is told otherwise.
        asked = client.execute(WAITS.format(**places), stop_on_error=False)
        assert eventually(lambda: len(ids(Path(places["folder"]))) == 4)
        yield manager, client, asked, Path(places["folder"])
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def answer(client, asked):
    """Returns what a request came to; a kernel that started slowly has answered others before it."""
    while (reply := client.get_shell_msg(timeout=120))["parent_header"]["msg_id"] != asked:
        pass
    return reply["content"]


@pytest.mark.drill
def test_a_kernel_that_is_killed_takes_its_cluster_along(tmp_path):
    with kernel_that_waits(tmp_path) as (manager, _client, _asked, folder):
        manager.shutdown_kernel(now=True)
        assert eventually(lambda: left(folder) == [])


@pytest.mark.drill
def test_an_interrupted_cell_takes_its_cluster_along_and_the_kernel_goes_on(tmp_path):
    with kernel_that_waits(tmp_path) as (manager, client, asked, folder):
        manager.interrupt_kernel()
        assert answer(client, asked)["ename"] == "KeyboardInterrupt"
        reply = client.execute_interactive("1 + 1", timeout=120)
        assert reply["content"]["status"] == "ok"
        assert eventually(lambda: left(folder) == [])
