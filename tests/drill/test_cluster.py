"""Nobody is left of a cluster, whatever becomes of its kernel; and TensorFlow runs in one."""

import contextlib
import sys
from pathlib import Path

import pytest
from jupyter_client import KernelManager
from jupyter_client.kernelspec import KernelSpec

from lessons.lesson_11_many_processes.cluster import Cluster
from tests.kernels import execute, notebook_of
from tests.unit.clusters import eventually, ids, left, places_in

ROOT = Path(__file__).parents[2]
TWO_WORKERS = Path(__file__).with_name("two_workers.py")
TWO_CLIENTS = Path(__file__).with_name("two_clients.py")
STARTS = """
from lessons.lesson_11_many_processes.cluster import Cluster
cluster = Cluster([{program!r}, {folder!r}], {{"worker": 2}}).start()
"""
WAITS = """
from lessons.lesson_11_many_processes.cluster import Cluster
with Cluster([{program!r}, {folder!r}], {{"worker": 2}}) as cluster:
    cluster.wait(600)
"""
SAYS = "for step in range(3):\n    print(f'course: step {step}', flush=True)\n    time.sleep(0.5)\n"


@pytest.fixture
def places(tmp_path):
    return places_in(tmp_path)


class Manager(KernelManager):
    @property
    def kernel_spec(self):
        return KernelSpec(argv=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"])


@contextlib.contextmanager
def kernel():
    manager = Manager()
    manager.start_kernel(cwd=str(ROOT))
    client = manager.blocking_client()
    client.start_channels()
    client.wait_for_ready(timeout=120)
    try:
        yield manager, client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def answer(client, asked):
    """Returns what a request came to; a kernel that started slowly has answered others before it."""
    while (reply := client.get_shell_msg(timeout=120))["parent_header"]["msg_id"] != asked:
        pass
    return reply["content"]


@pytest.mark.drill
@pytest.mark.parametrize("now", [True, False], ids=["killed", "shut down"])
def test_a_kernel_that_ends_takes_its_cluster_along(places, now):
    with kernel() as (manager, client):
        client.execute(STARTS.format(**places))
        assert eventually(lambda: len(ids(Path(places["folder"]))) == 8)
        manager.shutdown_kernel(now=now)
        assert eventually(lambda: left(Path(places["folder"])) == [])


@pytest.mark.drill
def test_an_interrupted_cell_takes_its_cluster_along_and_the_kernel_goes_on(places):
    with kernel() as (manager, client):
        # An error in a cell has a kernel refuse what is asked at once after it, unless it is told otherwise.
        asked = client.execute(WAITS.format(**places), stop_on_error=False)
        assert eventually(lambda: len(ids(Path(places["folder"]))) == 8)
        manager.interrupt_kernel()
        assert answer(client, asked)["ename"] == "KeyboardInterrupt"
        reply = client.execute_interactive("1 + 1", timeout=120)
        assert reply["content"]["status"] == "ok"
        assert left(Path(places["folder"])) == []


@pytest.mark.drill
def test_a_notebook_stores_the_report_and_nothing_of_what_was_live(tmp_path):
    (tmp_path / "program.py").write_text("import time\n" + SAYS)
    cell = (
        "from lessons.lesson_11_many_processes.cluster import Cluster\n"
        f"with Cluster({str(tmp_path / 'program.py')!r}, {{'worker': 2}}) as cluster:\n"
        "    report = cluster.wait(120)\n"
        "report"
    )
    live, report = execute(notebook_of(cell)).cells[0].outputs
    assert live["data"] == {"text/plain": ""}
    assert report["data"]["text/plain"].splitlines() == [
        "worker 0: ended  worker 1: ended",
        "---------------  ---------------",
        *(f"step {step}           step {step}" for step in range(3)),
    ]


@pytest.mark.drill_all
def test_two_workers_of_tensorflow_meet():
    with Cluster([TWO_WORKERS, "1"], {"worker": 2}) as cluster:
        report = cluster.wait(300)
    assert report.failed == (), cluster.log(report.failed[0])
    assert [told.lines for told in report.told] == [("2 replicas", "step 0, 1 + 2 = 3")] * 2


@pytest.mark.drill_all
def test_two_workers_of_tensorflow_meet_again_on_their_ports_after_one_was_killed():
    with Cluster([TWO_WORKERS, "50"], {"worker": 2}) as cluster:
        cluster.kill("worker 1", after="step 3", limit_seconds=300)
        report = cluster.wait(300, "worker 0")
        assert report.failed == ("worker 0",)
        for task in ("worker 0", "worker 1"):
            cluster.restart(task)
        report = cluster.wait(300)
    assert report.failed == (), cluster.log(report.failed[0])
    again = ("(started again)", "2 replicas", *(f"step {step}, 1 + 2 = 3" for step in range(50)))
    assert report["worker 1"].lines == ("2 replicas", *(f"step {at}, 1 + 2 = 3" for at in range(4)), *again)


@pytest.mark.drill_all
def test_two_clients_of_dtensor_meet():
    with Cluster(TWO_CLIENTS, {"worker": 2}, variables="DTENSOR") as cluster:
        report = cluster.wait(300)
    assert report.failed == (), cluster.log(report.failed[0])
    assert [told.lines for told in report.told] == [
        (f"client {client} has devices {devices}", "0 + 1 + 2 + 3 = 6")
        for client, devices in ((0, [0, 1]), (1, [2, 3]))
    ]
