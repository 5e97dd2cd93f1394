"""Clusters of small programs: what is told where one fails, and that all end. The rest: stored outputs."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from course_lib import CourseError
from lessons.strategies.launcher import Cluster
from tests.alive import eventually, is_alive
from tests.kernels import execute, notebook_of

ROOT = Path(__file__).parents[2]
# Each task and its child, which is deaf to SIGTERM, write their ids into a folder, and never end.
WITH_A_CHILD = """
import os, pathlib, signal, sys, time
child = os.fork()
if not child:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path(sys.argv[1], str(os.getpid())).touch()
time.sleep(600)
"""
OWNER = """
import signal, sys
from lessons.strategies.launcher import Cluster
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background is deaf to it
with Cluster(sys.argv[1:], {"worker": 2}) as cluster:
    cluster.wait(600)
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "ids").mkdir()
    return tmp_path / "ids"


@pytest.fixture
def program(tmp_path):
    """Writes a program, and returns its path."""

    def write(code):
        path = tmp_path / "program.py"
        path.write_text(code)
        return path

    return write


def left(folder):
    return [int(path.name) for path in folder.iterdir() if is_alive(int(path.name))]


def test_one_failure_is_told_with_its_cause_and_what_still_runs_is_ended(program):
    code = "import os, time\nif '\"index\": 1' in os.environ['TF_CONFIG']: raise ValueError('no')\n"
    with Cluster([program(code + "time.sleep(600)")], {"worker": 2}) as running:
        report = running.wait(60, grace_seconds=0)
        with pytest.raises(CourseError, match=r"(?s)worker 0 did not say 'step 5'.*log\('worker 1'\)"):
            running.wait_for("worker 0", "step 5", 1)
        assert running.log("worker 1").endswith("ValueError: no\n")
    assert repr(report).splitlines() == ["worker 0: runs", "worker 1: ended by ValueError", "  no"]
    assert running.report()["worker 0"].heading() == "worker 0: ended by SIGKILL"
    with pytest.raises(CourseError, match=r"no task 'worker 2'.\n  Allowed: worker 0, worker 1"):
        report["worker 2"]
    with pytest.raises(CourseError, match="No line begins with 'FILE'"):
        report.received_examples("FILE")


def test_an_exception_in_the_block_ends_all_with_their_children(program, folder):
    cluster = Cluster([program(WITH_A_CHILD), folder], {"worker": 2})
    with contextlib.suppress(ZeroDivisionError), cluster:
        assert eventually(lambda: len(left(folder)) == 4)
        raise ZeroDivisionError
    assert eventually(lambda: left(folder) == [])


def test_a_killed_task_takes_its_child_with_it_but_no_other_task(program, folder):
    with Cluster([program(WITH_A_CHILD), folder], {"worker": 2}) as running:
        assert eventually(lambda: len(left(folder)) == 4)
        running.kill("worker 1")
        assert eventually(lambda: len(left(folder)) == 2)


IN_A_CELL = """
from lessons.strategies.launcher import Cluster
try:
    with Cluster([{!r}, {!r}], {{"worker": 2}}) as cluster:
        cluster.wait_for("worker 1", "nothing")
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupted_cell_takes_its_cluster_along_and_keeps_nothing_of_what_it_showed(program, folder):
    cell = IN_A_CELL.format(str(program(WITH_A_CHILD)), str(folder))
    notebook = execute(notebook_of(cell, "print(1 + 1)"), gesture="interrupt")
    (live, printed), (after,) = (each.outputs for each in notebook.cells)
    assert (live.data, printed.text, after.text) == ({"text/plain": ""}, "interrupted\n", "2\n")
    assert eventually(lambda: left(folder) == [])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_what_ends_the_owner_ends_all(program, folder, number):
    command = [sys.executable, "-c", OWNER, program(WITH_A_CHILD), folder]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL, start_new_session=True) as owner:
        assert eventually(lambda: len(left(folder)) == 4)
        os.killpg(owner.pid, number)  # as Jupyter does with a kernel: with its process group
    assert eventually(lambda: left(folder) == [])
