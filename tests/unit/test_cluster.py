"""Several processes of one case: each its place, one failure told, and every process ended in every case."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks import cluster
from benchmarks.cases import ANSWERED, ERROR, TIMEOUT, Case, Outcome
from course_lib import CourseError
from tests.unit.test_cases import is_alive

ROOT = Path(__file__).parents[2]
TELLS_ITS_PLACE = """
import json, os
print(json.dumps(json.loads(os.environ["TF_CONFIG"])))
"""
WRITES_ITS_ID_AND = """
import json, os, pathlib, sys, time
task = json.loads(os.environ["TF_CONFIG"])["task"]
pathlib.Path(sys.argv[1], f"{task['type']} {task['index']}").write_text(str(os.getpid()))
def others(count):
    while len(list(pathlib.Path(sys.argv[1]).iterdir())) < count:
        time.sleep(0.01)
"""
FAILS = "others(2)\nif task['index'] == 1: raise ValueError('no')\ntime.sleep(600)"
LEADS = "if task['type'] != 'chief': time.sleep(600)\nothers(3)\nprint('{\"trained\": 20}')"
NEVER_ENDS = "time.sleep(600)"
SERVER_FAILS = "if task['type'] == 'ps': raise ValueError('no port')\ntime.sleep(600)"


@pytest.fixture
def script(tmp_path):
    def write(code):
        path = tmp_path / "script.py"
        path.write_text(code)
        return path

    return write


@pytest.fixture
def ids(tmp_path):
    folder = tmp_path / "ids"
    folder.mkdir()
    return folder


def left(ids, count):
    written = [int(path.read_text()) for path in ids.iterdir()]
    assert len(written) == count
    return [each for each in written if is_alive(each)]


def eventually(holds):
    """Returns whether it holds before long: the system takes its time to end a process."""
    return any(holds() or time.sleep(0.05) for _try in range(200))


def test_each_process_knows_its_place_and_all_ports_differ(script):
    outcomes = cluster.run(Case(script(TELLS_ITS_PLACE)), {"worker": 2})
    assert sorted(outcomes) == ["worker 0", "worker 1"]
    found = [outcomes[f"worker {index}"].found for index in (0, 1)]
    assert [one["task"] for one in found] == [{"type": "worker", "index": index} for index in (0, 1)]
    assert found[0]["cluster"] == found[1]["cluster"]
    hosts, ports = zip(*(address.split(":") for address in found[0]["cluster"]["worker"]), strict=True)
    assert set(hosts) == {"127.0.0.1"}
    assert len(set(ports)) == 2


def test_one_failure_is_told_and_the_others_are_ended(script, ids, monkeypatch):
    monkeypatch.setattr(cluster, "GRACE_SECONDS", 0.1)
    outcomes = cluster.run(Case(script(WRITES_ITS_ID_AND + FAILS), (str(ids),)), {"worker": 2})
    assert outcomes == {"worker 1": Outcome(ERROR, message="ValueError: no")}
    assert left(ids, 2) == []


def test_where_a_chief_leads_the_others_serve_until_it_has_ended(script, ids):
    case = Case(script(WRITES_ITS_ID_AND + LEADS), (str(ids),))
    assert cluster.run(case, {"chief": 1, "ps": 1, "worker": 1}) == {
        "chief 0": Outcome(ANSWERED, {"trained": 20})
    }
    assert left(ids, 3) == []


def test_a_server_that_fails_is_told(script, ids, monkeypatch):
    monkeypatch.setattr(cluster, "GRACE_SECONDS", 0.0)
    case = Case(script(WRITES_ITS_ID_AND + SERVER_FAILS), (str(ids),))
    assert cluster.run(case, {"chief": 1, "ps": 1}) == {"ps 0": Outcome(ERROR, message="ValueError: no port")}


def test_what_does_not_end_is_ended(script, ids):
    case = Case(script(WRITES_ITS_ID_AND + "others(2)\n" + NEVER_ENDS), (str(ids),))
    outcomes = cluster.run(case, {"worker": 2}, limit_seconds=5)
    assert {outcome.status for outcome in outcomes.values()} == {TIMEOUT}
    assert sorted(outcomes) == ["worker 0", "worker 1"]
    assert left(ids, 2) == []


@pytest.mark.parametrize(
    "ending",
    [
        signal.SIGTERM,
        pytest.param(
            signal.SIGKILL,
            marks=pytest.mark.skipif(shutil.which("setpriv") is None, reason="only Linux's setpriv does it"),
        ),
    ],
)
def test_what_ends_the_launcher_ends_the_processes(script, ids, ending):
    written = script(WRITES_ITS_ID_AND + NEVER_ENDS)
    command = [sys.executable, "-m", "benchmarks.cluster", "--worker", "2", str(written), str(ids)]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL) as launcher:
        for _try in range(1000):
            if sum(path.stat().st_size > 0 for path in ids.iterdir()) == 2:
                break
            time.sleep(0.02)
        launcher.send_signal(ending)
    assert launcher.returncode != 0
    assert eventually(lambda: left(ids, 2) == [])


def test_no_other_program_gets_a_port_meanwhile():
    with cluster._ports(3) as ports:
        assert len(set(ports)) == 3
        for port in ports:
            with socket.socket() as other, pytest.raises(OSError, match="in use"):
                other.bind((cluster.HOST, port))
            with socket.socket() as shared:  # as TensorFlow binds it
                shared.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
                shared.bind((cluster.HOST, port))


def test_a_configuration_is_what_tensorflow_reads():
    assert {
        name: json.loads(text) for name, text in cluster.configs({"chief": 1, "ps": 1}, [7, 8]).items()
    } == {
        f"{job} 0": {
            "cluster": {"chief": ["127.0.0.1:7"], "ps": ["127.0.0.1:8"]},
            "task": {"type": job, "index": 0},
        }
        for job in ("chief", "ps")
    }


@pytest.mark.parametrize("tasks", [{}, {"worker": 0}, {"chief": 2}, {"master": 1}])
def test_tasks_that_are_none_are_refused(script, tasks):
    with pytest.raises(CourseError, match="no tasks of a cluster"):
        cluster.run(Case(script("")), tasks)
    assert "TF_CONFIG" not in os.environ
