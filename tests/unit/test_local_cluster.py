"""Clusters of local processes: places, ports, logs, kills, and nobody left in any case."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from course_lib import CourseError
from course_lib.i18n import num_columns, set_language
from lessons.lesson_11_many_processes import checks_drill as lesson_11_drill
from lessons.lesson_11_many_processes.cluster import (
    Cluster,
    Report,
    Told,
    __main__,
    guarding,
    processes,
    running,
)
from lessons.lesson_11_many_processes.cluster.live import LiveLogs
from lessons.lesson_11_many_processes.cluster.logs import Log
from lessons.lesson_11_many_processes.cluster.ports import HOST, HeldPorts, opened
from lessons.lesson_11_many_processes.cluster.program import command_of, environment_of, without_proxy
from lessons.lesson_11_many_processes.cluster_spec import ClusterSpec, Task
from tests.unit.clusters import (
    HAS_A_STRANGER,
    HAS_CHILDREN,
    NEVER_ENDS,
    OWNER,
    OWNER_THAT_FORKS,
    WRITES_ITS_ID,
    eventually,
    ids,
    left,
    on_linux,
)

ROOT = Path(__file__).parents[2]
SAYS = """
import os, sys, time
print("not the course's")
for step in (1, 2, 3):
    print(f"course: step {step}", flush=True)
print("noise", file=sys.stderr)
"""
FAILS_OR_WAITS = (
    "import json, os, time\nif json.loads(os.environ['TF_CONFIG'])['task']['index']: raise ValueError('no')\n"
)
OPENS_ITS_PORT_OR_NOT = """
import json, os, socket, time
config = json.loads(os.environ["TF_CONFIG"])
task = config["task"]["index"]
host, port = config["cluster"]["worker"][task].split(":")
if task == 0:
    opened = socket.socket()
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    opened.bind((host, int(port)))
    opened.listen()
    print("course: open", flush=True)
time.sleep(600)
"""
SAYS_MORE = """
while True:
    step += 1
    print(f"course: step {step}", flush=True)
    time.sleep(0.001)
"""
NEVER_ENDS_AT_ALL = "import time\ntime.sleep(600)\n"
SAYS_ITS_PLACE = """
import json, os
names = ("TF_CONFIG", "DTENSOR_CLIENT_ID", "DTENSOR_JOBS", "DTENSOR_JOB_NAME", "TF_GRPC_REUSE_PORT", "OWN")
names += ("CUDA_VISIBLE_DEVICES", "no_proxy", "no_grpc_proxy")
print(json.dumps({name: os.environ[name] for name in names if name in os.environ}))
"""
SAVES_ON_SIGTERM = """
import signal, sys, time
def save(*_):
    print("course: saved", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
print("course: ready", flush=True)
time.sleep(600)
"""


@pytest.fixture
def program(tmp_path):
    def write(code):
        path = tmp_path / "program.py"
        path.write_text(code)
        return path

    return write


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "ids"
    made.mkdir()
    return made


def places(program, tasks, **more):
    """Returns the variables of each task."""
    with Cluster(program(SAYS_ITS_PLACE), tasks, **more) as cluster:
        report = cluster.wait(60, *cluster.spec.tasks)  # an evaluator too, for which nobody waits else
    assert report.failed == ()
    return {told.task: json.loads(cluster.log(told.task).stdout) for told in report.told}


# Places and ports


def test_each_process_knows_its_place_and_has_a_port_of_its_own(program, monkeypatch):
    monkeypatch.setenv("DTENSOR_JOBS", "left over")
    found = places(program, {"worker": 2, "evaluator": 1}, environment={"OWN": "7"})
    configs = {name: json.loads(variables["TF_CONFIG"]) for name, variables in found.items()}
    assert {name: config["task"] for name, config in configs.items()} == {
        "worker 0": {"type": "worker", "index": 0},
        "worker 1": {"type": "worker", "index": 1},
        "evaluator 0": {"type": "evaluator", "index": 0},
    }
    addresses = configs["worker 0"]["cluster"]["worker"]
    assert all(config["cluster"] == {"worker": addresses} for config in configs.values())
    assert len(set(addresses)) == 2
    assert all(address.startswith("127.0.0.1:") for address in addresses)
    assert all((each["OWN"], each["TF_GRPC_REUSE_PORT"]) == ("7", "1") for each in found.values())
    assert all("DTENSOR_JOBS" not in variables for variables in found.values())


def test_clients_of_dtensor_get_dtensors_variables(program, monkeypatch):
    monkeypatch.setenv("TF_CONFIG", "left over")
    found = places(program, {"worker": 2}, variables="DTENSOR")
    assert [found[f"worker {at}"]["DTENSOR_CLIENT_ID"] for at in (0, 1)] == ["0", "1"]
    assert len(found["worker 0"]["DTENSOR_JOBS"].split(",")) == 2
    assert all("TF_CONFIG" not in variables for variables in found.values())


def test_tasks_see_a_gpu_only_where_the_cluster_is_told_which(program, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")  # what the notebook sees
    assert places(program, {"worker": 1})["worker 0"]["CUDA_VISIBLE_DEVICES"] == ""
    found = places(program, {"worker": 2}, environment={"CUDA_VISIBLE_DEVICES": "1"})
    assert [each["CUDA_VISIBLE_DEVICES"] for each in found.values()] == ["1", "1"]


@pytest.mark.parametrize(
    ("readers", "expected"),
    [
        ({}, {"no_proxy": HOST}),
        ({"no_proxy": "intern,10.0.0.1"}, {"no_proxy": f"intern,10.0.0.1,{HOST}"}),
        (
            {"NO_PROXY": "intern"},
            {"no_proxy": f"intern,{HOST}"},
        ),  # Python reads it where the other is not set
        ({"no_grpc_proxy": "a"}, {"no_proxy": HOST, "no_grpc_proxy": f"a,{HOST}"}),  # gRPC reads it first
    ],
)
def test_what_a_reader_keeps_from_a_proxy_stays_so(monkeypatch, readers, expected):
    for name in ("no_proxy", "NO_PROXY", "no_grpc_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name, value in readers.items():
        monkeypatch.setenv(name, value)
    cluster = ClusterSpec({"worker": [f"{HOST}:12345"]})
    for given in ({}, readers):  # the notebook's variables, or those of this cluster
        found = environment_of(cluster, Task("worker"), "TF_CONFIG", given)
        assert {name: found[name] for name in ("no_proxy", "no_grpc_proxy") if name in found} == expected


def test_what_is_kept_from_a_proxy_already_is_not_named_again():
    addresses = [f"{HOST}:12345", "[::1]:12345"]
    once = without_proxy({"no_proxy": "intern"}, addresses)
    assert once == {"no_proxy": f"intern,{HOST},::1"}
    assert without_proxy(once, addresses) == once


def test_no_other_program_gets_a_port_meanwhile_but_a_task_can_open_it():
    ports = HeldPorts()
    cluster = ports.of({"chief": 1, "worker": 2})
    for task in cluster.tasks:
        host, port = cluster.address(task).split(":")
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind((host, int(port)))
        with socket.socket() as shared:  # as TensorFlow binds it
            shared.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            shared.bind((host, int(port)))
            assert not opened(cluster.address(task))
            shared.listen()
            assert opened(cluster.address(task))
    ports.release()
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # what was called may linger
        other.bind((host, int(port)))


@pytest.mark.parametrize("shares", [False, True])
def test_a_port_that_is_taken_is_named(program, shares):
    with socket.socket() as other:
        if shares:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind((HOST, 0))
        address = f"{HOST}:{other.getsockname()[1]}"
        with pytest.raises(CourseError, match=f"The port of worker 0, {address}, is taken"):
            Cluster(program(SAYS), ClusterSpec({"worker": [address]}))


@pytest.fixture
def held(monkeypatch):
    """Returns what holds ports for the clusters of a test; a test that keeps them keeps their sockets."""
    made = []

    class Noted(HeldPorts):
        def __init__(self):
            super().__init__()
            made.append(self)

    monkeypatch.setattr(running, "HeldPorts", Noted)
    return made


@pytest.mark.parametrize(
    "wrong", [{"program": "none.py"}, {"environment": {"STEPS": 5}}, {"logs": __file__}, {"others": 5}]
)
def test_what_is_refused_holds_no_port(held, wrong):
    with pytest.raises(CourseError):
        Cluster(**{"program": __file__, "tasks": {"worker": 2}, **wrong})
    assert [ports._sockets for ports in held] == [[]]


@pytest.mark.skipif(not on_linux, reason="elsewhere 127.0.0.2 is no address of this machine")
def test_where_one_port_is_taken_the_others_are_let_go(held):
    with socket.socket() as other:
        other.bind((HOST, 0))
        port = other.getsockname()[1]
        spec = ClusterSpec({"worker": [f"127.0.0.2:{port}", f"{HOST}:{port}"]})
        with pytest.raises(CourseError, match="The port of worker 1"):
            Cluster(__file__, spec)
    assert [ports._sockets for ports in held] == [[]]


@pytest.mark.parametrize("host", ["a" * 64, "a..b", "gone"])
def test_where_there_is_no_such_host_nobody_listens(monkeypatch, host):
    def unknown(*_address, **_more):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    if host == "gone":  # others are no names at all: nobody is asked
        monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert not opened(f"{host}:12345")


def test_a_port_of_another_machine_cannot_be_had(program):
    with pytest.raises(CourseError, match="cannot be had"):
        Cluster(program(SAYS), ClusterSpec({"worker": ["192.0.2.1:2222"]}))  # an address that is nobody's


# What is said


def test_the_report_shows_the_marked_lines_side_by_side_in_the_order_of_the_cluster(program):
    with Cluster(program(SAYS), {"worker": 2}) as cluster:
        report = cluster.wait(60)
    assert repr(report) == (
        "worker 0: ended  worker 1: ended\n"
        "---------------  ---------------\n"
        "step 1           step 1\n"
        "step 2           step 2\n"
        "step 3           step 3"
    )
    assert "not the course's" in cluster.log("worker 1").stdout
    assert cluster.log("worker 1").stderr == "noise\n"
    assert repr(cluster.report()) == repr(report)


def test_an_address_in_a_line_becomes_the_name_of_its_task(program):
    says = """
import json, os
workers = json.loads(os.environ["TF_CONFIG"])["cluster"]["worker"]
print("course: from", workers)
print(f"course: not {workers[0]}0")  # the port of another program
"""
    with Cluster(program(says), {"worker": 2}) as cluster:
        report = cluster.wait(60)
        strange = f"{cluster.spec.address(cluster.spec.tasks[0])}0"
    assert [told.lines for told in report.told] == [("from ['worker 0', 'worker 1']", f"not {strange}")] * 2


def test_what_is_too_wide_stands_one_below_the_other_and_japanese_in_line():
    wide = Report((Told("worker 0", ("x" * 80,), 0), Told("worker 1", ("y" * 80,), 3)))
    assert repr(wide).splitlines() == [
        "worker 0: ended",
        "  " + "x" * 80,
        "worker 1: ended with exit status 3",
        "  " + "y" * 80,
    ]
    advice = (
        "error: worker 1 no longer answers.",
        "  What to do: Start all of them again, with the same arguments.",
    )
    assert repr(Report((Told("worker 0", advice, 1), Told("worker 1", ("step 1",), -9)))).splitlines() == [
        "worker 0: ended with exit status 1           worker 1: ended by SIGKILL",
        "-------------------------------------------  --------------------------",
        "error: worker 1 no longer answers.           step 1",
        "  What to do: Start all of them again, with",
        "    the same arguments.",
    ]
    set_language("ja")
    first, second, *_lines = repr(Report((Told("a", ("損失",), 0), Told("b", (), -9)))).splitlines()
    assert "SIGKILL" in first
    assert num_columns(first) == num_columns(second)


def test_one_failure_is_told_and_what_still_runs_is_ended(program):
    with Cluster(program(FAILS_OR_WAITS + NEVER_ENDS), {"worker": 2}) as cluster:
        report = cluster.wait(60, grace_seconds=0.1)
    assert report.failed == ("worker 1",)
    assert [told.ending() for told in report.told] == ["runs", "ended with exit status 1"]
    assert [told.ending() for told in cluster.report().told] == [
        "ended with the cluster",
        "ended with exit status 1",
    ]
    assert "ValueError: no" in cluster.log("worker 1").stderr


def test_the_report_shows_why_a_task_died_that_said_nothing(program):
    dies = "import os, sys, json\nsaid = json.loads(os.environ['TF_CONFIG'])['task']['index']\n"
    dies += "if said: print('course: step 1')\nraise ValueError('no ' + sys.argv[1])\n"
    with Cluster([program(dies), 5], {"worker": 2}) as cluster:
        report = cluster.wait(60)
        assert repr(report).splitlines() == [
            "worker 0: ended with exit status 1  worker 1: ended with exit status 1",
            "----------------------------------  ----------------------------------",
            "stderr: ValueError: no 5            step 1",
        ]
        assert report["worker 0"].lines == ()
        cluster.restart("worker 0")
        assert cluster.wait(60)["worker 0"].shown() == ("(started again)", "stderr: ValueError: no 5")


def test_a_report_has_the_tasks_of_its_cluster_only():
    report = Report((Told("worker 0", ()), Told("ps 0", ())))
    assert report["ps 0"].task == "ps 0"
    with pytest.raises(CourseError, match=r"The report has no task 'worker 9'.\n.*worker 0, ps 0"):
        report["worker 9"]


@pytest.mark.skipif(not on_linux, reason="elsewhere there are no such signals")
def test_a_signal_without_a_name_has_its_number():
    names = [Told("worker 0", (), -number).ending() for number in (signal.SIGRTMIN, signal.SIGRTMIN + 1)]
    assert names == ["ended by SIGRTMIN", f"ended by signal {signal.SIGRTMIN + 1}"]


def test_the_machines_of_the_drill_fail_by_name(tmp_path, monkeypatch):
    class Failed:
        def __init__(self, *_arguments, **_more):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_raised):
            pass

        def wait(self, *_limit, **_grace):
            return Report((Told("worker 0", (), 0), Told("worker 1", (), 1)), ("worker 1", "worker 0"))

    monkeypatch.setattr(lesson_11_drill, "Cluster", Failed)
    report = lesson_11_drill.start(lesson_11_drill.BROKEN, tmp_path)
    assert (report.ended, report.failed) == (("host1", "host0"), ("host1",))


def test_a_notebook_sees_the_last_lines_live_and_stores_none(monkeypatch):
    shown = []

    class Handle:
        def update(self, data, **_options):
            shown.append(data)

    monkeypatch.setattr("lessons.lesson_11_many_processes.cluster.live._in_a_kernel", lambda: True)
    monkeypatch.setattr(
        "lessons.lesson_11_many_processes.cluster.live._display", lambda data: shown.append(data) or Handle()
    )
    live = LiveLogs(lambda: {"worker 0: runs": ["step <1>"]})
    live.refresh()
    live.refresh()  # too soon
    live.finish()
    assert [set(data) for data in shown] == [{"text/plain"}, {"text/plain", "text/html"}, {"text/plain"}]
    assert {data["text/plain"] for data in shown} == {""}
    assert "step &lt;1&gt;" in shown[1]["text/html"]


def test_what_is_live_is_the_end_of_a_log_and_no_news_are_left_out(tmp_path):
    log = Log(tmp_path, "worker 1")
    log.stdout.write_text("".join(f"course: step {step}\n" for step in range(20)) + "by hand\n")
    log.stderr.write_text(
        "I0000 00:00:1795388692.257028  24915 cudart_stub.cc:31] Could not find cuda drivers\n"
        "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR\n"
        "E0000 00:00:1795388692.300000  24915 server.cc:7] no port\n"
        "2026-11-22 10:00:00.123456: I tensorflow/core/platform/cpu_feature_guard.cc:210] optimized\n"
        "2026-11-22 10:00:00.200000: W tensorflow/core/x.cc:1] slow\n"
    )
    tail = log.tail()
    assert tail[0] == "step 9"
    assert tail[11:13] == ["by hand", "E0000 00:00:1795388692.300000  24915 server.cc:7] no port"]
    assert tail[13:] == ["2026-11-22 10:00:00.200000: W tensorflow/core/x.cc:1] slow"]
    assert "cuda drivers" in log.written().stderr


# Ends, kills, restarts


def test_a_worker_that_never_comes_is_named_and_all_are_ended(program):
    cluster = Cluster(program(OPENS_ITS_PORT_OR_NOT), {"worker": 2}).start()
    cluster.wait_for("worker 0", "open", 60)
    with pytest.raises(CourseError) as raised:
        cluster.wait(0.1)
    assert raised.value.problem == (
        "worker 0, worker 1 had not ended after 0.1 s."
        " worker 1 never opened a port: the others may wait for it."
    )
    assert [told.ending() for told in cluster.report().told] == ["ended with the cluster"] * 2
    ports = HeldPorts()
    assert ports.of(cluster.spec) == cluster.spec  # there is no block that would let go of them
    ports.release()


def test_who_waits_for_words_hears_who_else_has_failed(program, monkeypatch):
    monkeypatch.setattr(running, "GRACE_SECONDS", 0.0)
    with Cluster(program(FAILS_OR_WAITS + NEVER_ENDS), {"worker": 2}) as cluster:
        with pytest.raises(CourseError) as raised:
            cluster.kill("worker 0", after="step 5", limit_seconds=60)
        assert [told.ending() for told in cluster.report().told] == [
            "ended with the cluster",
            "ended with exit status 1",
        ]
    assert raised.value.problem == "worker 0 did not say 'step 5'. worker 1 ended with an error."
    assert "cluster.log('worker 1')" in raised.value.cure


def test_who_was_killed_on_purpose_has_not_failed(program, monkeypatch):
    monkeypatch.setattr(running, "GRACE_SECONDS", 0.0)
    with Cluster(program(SAYS + SAYS_MORE), {"worker": 2}) as cluster:
        cluster.kill("worker 1", after="step 1", limit_seconds=60)
        cluster.wait_for("worker 0", "step 9", 60)


def test_a_guard_that_says_nothing_is_no_success(program, monkeypatch):
    with Cluster(program(NEVER_ENDS_AT_ALL), {"worker": 2}, others={"worker 1": None}) as cluster:
        monkeypatch.setattr(processes, "_KILL_SECONDS", 0.1)
        monkeypatch.setattr(guarding, "_START_SECONDS", 0.1)
        guard = cluster._started.guard._process.pid
        os.kill(guard, signal.SIGSTOP)
        try:
            with pytest.raises(CourseError, match=r"worker 0 was killed, but had not ended after 0\.1 s"):
                cluster.kill("worker 0")
            with pytest.raises(CourseError, match=r"worker 1 had not started after 0\.1 s"):
                cluster.restart("worker 1")
        finally:
            os.kill(guard, signal.SIGCONT)


@pytest.mark.parametrize("order", ["kill", "start"])
def test_a_guard_that_is_killed_while_it_is_waited_for_is_told(program, order):
    with Cluster(program(NEVER_ENDS_AT_ALL), {"worker": 2}, others={"worker 1": None}) as cluster:
        guard = cluster._started.guard._process.pid
        os.kill(guard, signal.SIGSTOP)  # it has the order, and does not follow it
        threading.Timer(0.2, os.kill, (guard, signal.SIGKILL)).start()
        with pytest.raises(CourseError, match="the process that guards it is gone"):
            cluster.kill("worker 0") if order == "kill" else cluster.restart("worker 1")


def test_a_worker_can_be_left_out_and_another_be_unlike(program, tmp_path):
    (tmp_path / "other.py").write_text("import sys\nprint('course: unlike', *sys.argv[1:])\n")
    others = {"worker 1": [tmp_path / "other.py", "them"], "worker 2": None}
    with Cluster(program(SAYS), {"worker": 3}, others=others) as cluster:
        report = cluster.wait(60)
        assert [told.ending() for told in report.told] == ["ended", "ended", "not started"]
        assert report["worker 1"].lines == ("unlike them",)
        with pytest.raises(CourseError, match="worker 2 is not running"):
            cluster.kill("worker 2")
        with pytest.raises(CourseError, match="worker 2 never opened a port"):
            cluster.wait(0.1, "worker 2")
    with Cluster(program(SAYS), {"worker": 2}, others={"worker 1": None}) as cluster:
        cluster.restart("worker 1")  # it comes late
        assert cluster.wait(60)["worker 1"].lines == ("step 1", "step 2", "step 3")
    with pytest.raises(CourseError, match="no task 'worker 5'"):
        Cluster(program(SAYS), {"worker": 2}, others={"worker 5": None})


def test_where_there_are_servers_only_the_chief_is_waited_for(program, folder):
    leads = "if task['type'] == 'chief':\n    others(3)\n    sys.exit()\n"
    with Cluster(
        [program(WRITES_ITS_ID + leads + NEVER_ENDS), folder], {"chief": 1, "worker": 1, "ps": 1}
    ) as cluster:
        report = cluster.wait(60)
        assert report.ended == ("chief 0",)
    assert left(folder) == []


def test_a_killed_task_comes_back_on_its_port_and_its_log_is_always_the_same(program, folder):
    with Cluster(program(SAYS + SAYS_MORE), {"worker": 2}) as cluster:
        address = cluster.spec.address("worker 1")
        cluster.kill("worker 1", after="step 5", limit_seconds=60)
        told = cluster.report()["worker 1"]
        assert (told.lines, told.ending()) == (tuple(f"step {at}" for at in range(1, 6)), "ended by SIGKILL")
        assert not told.failed
        with pytest.raises(CourseError, match="worker 1 is not running"):
            cluster.kill("worker 1")
        with pytest.raises(CourseError, match="worker 0 has not ended"):
            cluster.restart("worker 0")
        cluster.restart("worker 1")
        cluster.wait_for("worker 1", "step 7", 60)
        assert cluster.report()["worker 1"].lines[:8] == (*told.lines, "(started again)", "step 1", "step 2")
        assert cluster.spec.address("worker 1") == address
        cluster.kill("worker 0")
        cluster.kill("worker 1")
        assert cluster.wait(60).failed == ()


def test_a_task_can_save_before_it_is_taken_away(program):
    with Cluster(program(SAVES_ON_SIGTERM), {"worker": 1}) as cluster:
        cluster.wait_for("worker 0", "ready", 60)
        cluster.terminate("worker 0")
        report = cluster.wait(60)
    assert report["worker 0"].lines == ("ready", "saved")
    assert report["worker 0"].status == 0


def test_waiting_for_words_that_never_come_says_so(program):
    with Cluster(program(SAYS), {"worker": 1}) as cluster, pytest.raises(CourseError, match="'step 9'"):
        cluster.wait_for("worker 0", "step 9", 60)
    with Cluster(program(SAYS), {"worker": 1}) as cluster, pytest.raises(CourseError, match="did not say 5"):
        cluster.kill("worker 0", after=5)


def test_a_program_that_cannot_be_started_says_why(program, tmp_path):
    no_python = tmp_path / "python"
    no_python.write_text("not a program")
    with Cluster(program(SAYS), {"worker": 1}, python=str(no_python)) as cluster:
        report = cluster.wait(60)
    assert report["worker 0"].status == 127
    assert "python" in cluster.log("worker 0").stderr or "Exec format" in cluster.log("worker 0").stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((["none.py"], {"worker": 1}), "There is no program 'none.py'"),
        ((["-m", "no.such.module"], {"worker": 1}), "There is no program '-m no.such.module'"),
        (([], {"worker": 1}), "There is no program ''"),
        (([__file__], {}), "has no task"),
        (([__file__], {"worker": 0}), "The job 'worker' has 0 tasks"),
        (([__file__], {"worker": 33}), "has 33 tasks"),
        (([__file__], {"worker": 1, "evaluator": 2}), "The job 'evaluator' has 2 tasks"),
        (([__file__], {"master": 1}), "A cluster has no job 'master'"),
        (([__file__], {"worker": 1, "ps": 1}), "parameter servers, but no chief"),
        (([__file__], 2), "2 are no tasks of a cluster"),
        ((5, {"worker": 1}), "There is no program 5"),
        (([__file__, None], {"worker": 1}), "There is no program .*None"),
        (([__file__, "--fit", True], {"worker": 1}), "There is no program .*True"),
        (({__file__: 5}, {"worker": 1}), "There is no program {"),
    ],
)
def test_what_is_no_cluster_is_refused_by_name(arguments, says):
    with pytest.raises(CourseError, match=says):
        Cluster(*arguments)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"environment": {"STEPS": 5}}, "The variable STEPS cannot be 5"),
        ({"environment": {"A": "\0"}}, "The variable A cannot be"),
        ({"environment": {"A=B": "5"}}, "cannot be named 'A=B'"),
        ({"environment": ["A"]}, r"\['A'\] are no environment variables"),
        ({"others": ["worker 0"]}, "does not tell which tasks"),
        ({"others": {"worker 0": []}}, "There is no program ''"),
        ({"python": 3}, "There is no Python at 3"),
        ({"python": "/"}, "There is no Python at /"),
        ({"logs": __file__}, f"The logs cannot be written to {__file__}: File exists"),
        ({"logs": f"{__file__}/logs"}, "The logs cannot be written to .*: Not a directory"),
        ({"logs": 5}, "The logs cannot be written to 5"),
    ],
)
def test_wrong_options_are_refused_before_anything_starts(options, says):
    with pytest.raises(CourseError, match=says):
        Cluster([__file__], {"worker": 1}, **options)


@pytest.mark.parametrize("limit", ["5", None, -1, float("nan"), True])
def test_what_is_no_time_is_refused_by_name(program, limit):
    with Cluster(program(NEVER_ENDS_AT_ALL), {"worker": 1}) as cluster:
        says = re.escape(f"A wait cannot take {limit!r} seconds.")
        with pytest.raises(CourseError, match=says):
            cluster.wait(limit)
        with pytest.raises(CourseError, match=says):
            cluster.wait(1, grace_seconds=limit)
        with pytest.raises(CourseError, match=says):
            cluster.kill("worker 0", after="step", limit_seconds=limit)
        assert cluster.report()["worker 0"].ending() == "runs"


def test_where_the_working_directory_is_gone_it_is_said(program, tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    cluster = Cluster(program(SAYS), {"worker": 1})
    gone.rmdir()
    with pytest.raises(CourseError, match="The folder in which this process runs is gone"):
        cluster.start()
    assert cluster.report()["worker 0"].ending() == "ended with the cluster"


def test_a_program_gets_numbers_and_paths_as_words(program, tmp_path):
    says = program("import sys\nprint('course:', *sys.argv[1:])")
    with Cluster([says, "--steps", 5, 0.25, tmp_path], {"worker": 1}) as cluster:
        assert cluster.wait(60)["worker 0"].lines == (f"--steps 5 0.25 {tmp_path}",)
    (entry,) = os.scandir(tmp_path)
    assert command_of([entry, entry], sys.executable)[1:] == [str(says)] * 2


def test_logs_can_stay_in_a_folder_of_ones_own(program, tmp_path):
    for _time in range(2):
        with Cluster(program(SAYS), {"worker": 1}, logs=tmp_path / "logs") as cluster:
            assert cluster.wait(60)["worker 0"].lines == ("step 1", "step 2", "step 3")
    assert "course: step 3" in (tmp_path / "logs" / "worker-0.out").read_text()


def test_a_system_without_fork_is_told_what_to_do(program, monkeypatch):
    monkeypatch.delattr(os, "fork")
    with pytest.raises(CourseError, match="Linux or macOS"):
        Cluster(program(SAYS), {"worker": 1})


def test_other_wrong_orders_are_refused_by_name(program):
    with pytest.raises(CourseError, match="There are no variables 'SLURM'"):
        Cluster(program(SAYS), {"worker": 1}, variables="SLURM")
    with pytest.raises(CourseError, match="tasks that are no workers"):
        Cluster(program(SAYS), {"worker": 1, "chief": 1}, variables="DTENSOR")
    with pytest.raises(CourseError, match="There is no Python at /no/python"):
        Cluster(program(SAYS), {"worker": 1}, python="/no/python")
    cluster = Cluster(program(SAYS), {"worker": 1})
    with pytest.raises(CourseError, match="has not been started"):
        cluster.wait(1)
    with cluster:
        with pytest.raises(CourseError, match="was started before"):
            cluster.start()
        with pytest.raises(CourseError, match="The cluster has no task 'worker 1'"):
            cluster.kill("worker 1")


# On the command line


def test_the_command_line_prints_what_each_said(program, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["cluster", "--worker", "2", "--limit", "60", str(program(SAYS))])
    with pytest.raises(SystemExit) as raised:
        __main__.main()
    said = "not the course's\n" + "".join(f"course: step {step}\n" for step in (1, 2, 3))
    assert capsys.readouterr().out == "".join(f"worker {at}: ended\n{said}\n" for at in (0, 1))
    assert raised.value.code == 0


def test_the_command_line_prints_the_logs_of_those_that_did_not_end(program, monkeypatch, capsys):
    waits = Cluster.wait

    def wait_until_all_have_said(cluster, _limit):
        for task in cluster.spec.tasks:
            cluster.wait_for(task, "step 3", 60)
        return waits(cluster, 0)

    says = program("import sys\nprint('why', file=sys.stderr)\n" + SAYS + "time.sleep(600)")
    monkeypatch.setattr(Cluster, "wait", wait_until_all_have_said)
    monkeypatch.setattr(sys, "argv", ["cluster", "--worker", "1", "--", str(says)])
    with pytest.raises(SystemExit, match="worker 0 had not ended after 0 s"):
        __main__.main()
    printed = capsys.readouterr().out
    assert printed.startswith("worker 0: ended with the cluster\nnot the course's\n")
    assert "course: step 3\nwhy\n" in printed


# Nobody is left


def interrupted(program, folder, count):
    with Cluster([program, folder], {"worker": 2}):
        assert eventually(lambda: len(ids(folder)) == count)
        raise KeyboardInterrupt


def test_an_exception_in_the_block_ends_all_with_their_children(program, folder):
    written = program(WRITES_ITS_ID + HAS_CHILDREN + (HAS_A_STRANGER if on_linux else "") + NEVER_ENDS)
    with pytest.raises(KeyboardInterrupt):
        interrupted(written, folder, 10 if on_linux else 8)
    assert left(folder) == []


def test_a_killed_task_takes_its_children_with_it_but_no_other_task(program, folder):
    with Cluster([program(WRITES_ITS_ID + HAS_CHILDREN + NEVER_ENDS), folder], {"worker": 2}) as cluster:
        assert eventually(lambda: len(ids(folder)) == 8)
        cluster.kill("worker 1")
        assert left(folder) == ["worker 0", "worker 0 child", "worker 0 leaves", "worker 0 orphan"]


def test_what_a_task_leaves_behind_ends_with_it(program, folder):
    ends = "others(8)\nif task['index'] == 1: sys.exit()\n"
    with Cluster(
        [program(WRITES_ITS_ID + HAS_CHILDREN + ends + NEVER_ENDS), folder], {"worker": 2}
    ) as cluster:
        cluster.wait(60, "worker 1")
        assert eventually(lambda: not [each for each in left(folder) if each.startswith("worker 1")])
        assert len(left(folder)) == 4


def test_a_cluster_to_which_nothing_refers_any_more_is_closed(program, folder):
    cluster = Cluster([program(WRITES_ITS_ID + NEVER_ENDS), folder], {"worker": 1}).start()
    assert eventually(lambda: len(ids(folder)) == 1)
    del cluster
    assert left(folder) == []


@pytest.fixture
def owner(program, folder):
    """Yields a process that owns a cluster, as a kernel does, and the id of its guard."""
    tasks = program(WRITES_ITS_ID + HAS_CHILDREN + NEVER_ENDS)
    command = [sys.executable, "-c", OWNER, str(tasks), str(folder)]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    ) as process:
        guard = int(process.stdout.readline())
        assert eventually(lambda: len(ids(folder)) == 8)
        yield process, guard
        process.kill()


@pytest.mark.skipif(not on_linux, reason="elsewhere nothing tells of children that left their group")
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_what_ends_the_owner_ends_all(owner, folder, ending):
    process, guard = owner
    os.killpg(process.pid, ending)  # as Jupyter does: the kernel and all in its process group
    assert eventually(lambda: left(folder) == [])
    assert process.wait() != 0
    assert eventually(lambda: not Path(f"/proc/{guard}").exists())


@pytest.mark.skipif(not on_linux, reason="elsewhere nothing tells of children that left their group")
def test_a_fork_of_the_owner_does_not_keep_the_cluster_alive(program, folder):
    tasks = program(WRITES_ITS_ID + HAS_CHILDREN + NEVER_ENDS)
    command = [sys.executable, "-c", OWNER_THAT_FORKS, str(tasks), str(folder)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, start_new_session=True) as owner:
        owner.stdout.readline()
        assert eventually(lambda: len(ids(folder)) == 8)
        os.kill(owner.pid, signal.SIGKILL)  # the fork, which has the guard's pipe open too, lives on
        assert eventually(lambda: left(folder) == [])
        os.killpg(owner.pid, signal.SIGKILL)


@pytest.mark.skipif(not on_linux, reason="elsewhere nothing tells of children that left their group")
def test_where_the_guard_is_killed_the_owner_ends_all_and_says_so(owner, folder):
    process, guard = owner
    os.kill(guard, signal.SIGKILL)
    assert eventually(lambda: left(folder) == [])
    assert process.wait() == 1  # CourseError


@pytest.mark.skipif(not on_linux, reason="elsewhere nothing tells of children that left their group")
def test_where_guard_and_owner_are_killed_at_once_nobody_is_left(owner, folder):
    process, guard = owner
    both = (process.pid, guard)
    for each in both:
        os.kill(each, signal.SIGSTOP)  # so that neither sees the other's end
    for each in both:
        os.kill(each, signal.SIGKILL)
    assert eventually(lambda: left(folder) == [])
