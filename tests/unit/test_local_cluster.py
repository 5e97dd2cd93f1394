"""Clusters of small programs without TensorFlow: what each is told, what is reported, and that all end."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import IPython.display  # noqa: F401 - which the launcher asks for where it is there
import pytest

from course_lib import CourseError
from tests.course import from_lesson
from tests.unit.clusters import eventually, ids, left, places_in

checks_drill, launcher = from_lesson("workers", "checks_drill", "launcher")
BROKEN = from_lesson("workers.checks_drill", "BROKEN")
Cluster = from_lesson("workers.launcher", "Cluster")

ROOT = Path(__file__).parents[2]
TELLS = """
import json, os, sys, time
task = json.loads(os.environ["TF_CONFIG"])["task"]
def say(*words): print(*words, flush=True)
"""
WAITS = "time.sleep(600)\n"
COUNTS = "for step in range(1000):\n    say('step', step)\n    time.sleep(0.01)\n"


@pytest.fixture
def program(tmp_path):
    def write(code):
        path = tmp_path / "program.py"
        path.write_text(TELLS + code)
        return path

    return write


@pytest.fixture
def places(tmp_path):
    return places_in(tmp_path)


def lines_of(report):
    return [told.lines for told in report.told]


def test_each_process_knows_its_place_and_has_a_port_of_its_own(program, monkeypatch):
    monkeypatch.setenv("TF_CONFIG", "of the notebook")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    shows = "say(json.loads(os.environ['TF_CONFIG']), os.environ['CUDA_VISIBLE_DEVICES'], sys.argv[1:])"
    with Cluster([program(shows), 20], {"chief": 1, "worker": 2, "evaluator": 1}) as running:
        report = running.wait(60)
        jobs = running.addresses
    assert len({address for addresses in jobs.values() for address in addresses}) == 4
    for told in report.told:
        job, index = told.task.split()
        config = {"cluster": jobs, "task": {"type": job, "index": int(index)}}
        assert told.lines == (f"{config}  ['20']",)


def test_clients_of_dtensor_get_dtensors_variables(tmp_path):
    path = tmp_path / "client.py"
    path.write_text("import os; print(os.environ['DTENSOR_CLIENT_ID'], os.environ.get('TF_CONFIG'))")
    with Cluster([path], {"worker": 2}, variables="DTENSOR") as running:
        assert lines_of(running.wait(60)) == [("0 None",), ("1 None",)]


def test_a_port_is_held_for_its_task(program):
    opens = "import socket; server = socket.create_server(('127.0.0.1', int(sys.argv[1])), reuse_port=True)\n"
    with Cluster([program("time.sleep(1)")], {"worker": 1}) as running:
        port = int(running.addresses["worker"][0].split(":")[1])
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))
        with pytest.raises(ConnectionError):
            socket.create_connection(("127.0.0.1", port))
        with Cluster([program(opens + "say('open')\n" + WAITS), port], {"worker": 1}) as another:
            another.wait_for("worker 0", "open")
            socket.create_connection(("127.0.0.1", port)).close()


def test_the_report_shows_what_each_printed_with_two_decimals(program):
    code = "say('step 1 loss', 1.751 + task['index'])\nprint('more', file=sys.stderr)"
    with Cluster([program(code)], {"worker": 2}) as running:
        report = running.wait(60)
        assert running.written("worker 1") == ("step 1 loss 2.751\n", "more\n")
        assert running.log("worker 1") == "step 1 loss 2.751\nmore\n"
    assert repr(report).splitlines() == [
        *("worker 0: ended", "  step 1 loss 1.75"),
        *("worker 1: ended", "  step 1 loss 2.75"),
    ]
    assert report["worker 1"].losses == {1: 2.751}


def test_one_failure_is_told_with_its_cause_and_what_still_runs_is_ended(program):
    code = "if task['index'] == 1: raise ValueError('no')\n" + WAITS
    with Cluster([program(code)], {"worker": 2}) as running:
        report = running.wait(60, grace_seconds=0)
        assert report.failed == report.ended == ("worker 1",)
        with pytest.raises(CourseError, match=r"(?s)worker 0 did not say 'step 5'.*log\('worker 1'\)"):
            running.wait_for("worker 0", "step 5", 1)
    assert report["worker 0"].heading() == "worker 0: runs"
    assert repr(report).splitlines() == ["worker 0: runs", "worker 1: ended by ValueError", "  no"]
    assert running.report()["worker 0"].heading() == "worker 0: ended by SIGKILL"
    assert running.report().failed == ("worker 1",)


def test_who_does_not_end_in_time_is_named(program):
    code = "if task['index'] == 1: time.sleep(600)"
    waits = pytest.raises(CourseError, match=r"^worker 1 had not ended after 1 s")
    with Cluster([program(code)], {"worker": 2}) as running, waits:
        running.wait(1)


def test_where_there_are_servers_only_the_chief_is_waited_for(program):
    serves = program("if task['type'] != 'chief': time.sleep(600)")
    with Cluster([serves], {"chief": 1, "worker": 1, "ps": 1}) as running:
        assert running.wait(60).ended == ("chief 0",)


def test_a_killed_task_comes_back_and_says_the_same(program):
    with Cluster([program(COUNTS)], {"worker": 2}) as running:
        running.wait_for("worker 1", "step 3")
        running.kill("worker 1")
        before = running.report()["worker 1"].lines
        running.restart("worker 1")
        running.wait_for("worker 1", "step 2")
        running.kill("worker 1")
        report = running.report()
    assert report["worker 1"].status == -signal.SIGKILL
    assert before[:4] == ("step 0", "step 1", "step 2", "step 3")
    assert report["worker 1"].lines[len(before) :][:3] == before[:3]
    assert report.failed == ()
    assert report.ended == ("worker 1",)


def test_a_task_can_save_before_it_is_taken_away(program):
    code = "import signal\ndef end(*_): say('saved'); sys.exit(75)\n"
    code += "signal.signal(signal.SIGTERM, end)\nsay('up')\n"
    with Cluster([program(code + WAITS)], {"worker": 1}) as running:
        running.wait_for("worker 0", "up")
        running.terminate("worker 0")
        report = running.wait(60)
    assert (report["worker 0"].lines, report["worker 0"].status) == (("up", "saved"), 75)
    assert report.failed == ()


def test_a_task_can_run_another_program(program, tmp_path):
    other = tmp_path / "other.py"
    other.write_text("print('other')")
    with Cluster([program("say('same')")], {"worker": 2}, others={"worker 1": [other]}) as running:
        assert lines_of(running.wait(60)) == [("same",), ("other",)]


def test_words_are_waited_for_after_those_that_were_waited_for(program):
    with Cluster([program("for word in 'a b a c'.split(): say(word)\n" + WAITS)], {"worker": 1}) as running:
        for word in ("a", "b", "a", "c"):
            running.wait_for("worker 0", word)
        with pytest.raises(CourseError, match="did not say 'b'"):
            running.wait_for("worker 0", "b", 0.2)


def test_a_notebook_sees_the_last_lines_live_and_stores_none(monkeypatch):
    shown = []

    class Display:
        def update(self, data, **_options):
            shown.append(data)

    shell = SimpleNamespace(kernel=True)
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    monkeypatch.setattr("IPython.display.display", lambda data, **_: shown.append(data) or Display())
    with launcher._live(lambda: {"worker 0: runs": ["step 1 <loss>", "Traceback"]}) as refresh:
        refresh()
    assert shown[0] == shown[-1] == {"text/plain": ""}
    assert "<strong>worker 0: runs</strong>" in shown[1]["text/html"]
    assert ">step 1 &lt;loss&gt;\nTraceback</pre>" in shown[1]["text/html"]


@pytest.mark.parametrize("machines", [{"host0": BROKEN["host0"]}, {**BROKEN, "host1": {"index": 1}}])
def test_what_is_no_plan_starts_nothing(machines):
    with pytest.raises(CourseError, match="lacks a setting, or has one too many"):
        checks_drill.start_both(machines, "nothing.py", "nowhere")


def test_a_machine_of_the_drill_has_its_own_place_batch_and_folder(tmp_path, program):
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "kept").touch()
    path = program("BATCH = 32\nsay(task['index'], BATCH, os.path.exists(sys.argv[1] + '/kept'))")
    report = checks_drill.start_both(BROKEN, path, tmp_path / "checkpoints")
    assert {told.task: told.lines for told in report.told} == {
        "host0": ("1 48 False",),
        "host1": ("2 48 True",),
    }


def test_an_exception_in_the_block_ends_all_with_their_children(places):
    folder = Path(places["folder"])
    started = Cluster([places["program"], folder], {"worker": 2})
    with contextlib.suppress(ZeroDivisionError), started:
        assert eventually(lambda: len(ids(folder)) == 4)
        raise ZeroDivisionError
    assert eventually(lambda: left(folder) == [])


def test_a_killed_task_takes_its_child_with_it_but_no_other_task(places):
    folder = Path(places["folder"])
    with Cluster([places["program"], folder], {"worker": 2}) as running:
        assert eventually(lambda: len(ids(folder)) == 4)
        running.kill("worker 1")
        assert eventually(lambda: len(left(folder)) == 2)


OWNER = """
import signal, sys
from course_lib import syllabus
Cluster = syllabus.module("workers.launcher").Cluster
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background is deaf to it
with Cluster(sys.argv[1:], {"worker": 2}) as cluster:
    cluster.wait(600)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_what_ends_the_owner_ends_all(places, number):
    folder = Path(places["folder"])
    command = [sys.executable, "-c", OWNER, places["program"], places["folder"]]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL, start_new_session=True) as owner:
        assert eventually(lambda: len(ids(folder)) == 4)
        os.killpg(owner.pid, number)  # as Jupyter does with a kernel: with its process group
    assert eventually(lambda: left(folder) == [])
