"""What the programs of several processes do before TensorFlow starts, and how their lines are read."""

import contextlib
import errno
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from course_lib import CourseError, i18n
from course_lib.data.examples import Examples
from lessons.lesson_11_many_processes.addresses import host_and_port
from lessons.lesson_11_many_processes.cluster.ports import HeldPorts, call, opened
from lessons.lesson_11_many_processes.cluster.program import without_proxy
from lessons.lesson_11_many_processes.programs import (
    arguments,
    by_hand,
    calls,
    facts,
    lines,
    meeting,
    multi_worker,
    parameter_server,
    peers,
    places,
)

TWO = {"worker": ["host0:1", "host1:1"]}


def config(cluster, job="worker", index=0):
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": job, "index": index}})}


@pytest.fixture
def addresses(monkeypatch):
    """Three processes; their ports are held for them, and they share them with who holds them."""
    monkeypatch.setenv("TF_GRPC_REUSE_PORT", "1")
    held = HeldPorts()
    cluster = held.of({"worker": 3})
    yield places.addresses_of(cluster, "worker")
    held.release()


@pytest.fixture
def free_addresses(addresses):
    """Three processes; their ports were free a moment ago: for what happens where nobody shares them."""
    with contextlib.ExitStack() as stack:
        free = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _port in addresses]
        ports = [each.getsockname()[1] for each in free]
    return {name: f"127.0.0.1:{port}" for name, port in zip(addresses, ports, strict=True)}


def met(addresses, facts_of, limit_seconds=20.0, meanwhile=lambda: None):
    """Lets processes, stood in for by threads, meet; returns what each was told, "" where all is well."""
    told = {}

    def take_part(name):
        try:
            meeting.meet(name, addresses, facts_of[name], limit_seconds)
            told[name] = ""
        except CourseError as error:
            told[name] = error.problem

    threads = [threading.Thread(target=take_part, args=(name,)) for name in facts_of]
    threads[0].start()
    meanwhile()
    for thread in threads[1:]:
        thread.start()
    for thread in threads:
        thread.join()
    return told


def test_processes_that_do_the_same_meet(addresses):
    same = {"arguments": "steps=20", "data": "ab12"}
    assert met(addresses, dict.fromkeys(addresses, same)) == dict.fromkeys(addresses, "")


@pytest.mark.parametrize("other", ["worker 0", "worker 2"])
def test_everybody_is_told_who_differs_and_in_what(addresses, other):
    same = {"arguments": "steps=20", "data": "ab12"}
    told = met(addresses, {**dict.fromkeys(addresses, same), other: {**same, "data": "cd34"}})
    assert set(told.values()) == {f"{other} differs from the others in its data: cd34, not ab12."}


def test_of_two_the_second_differs(addresses):
    two = dict(list(addresses.items())[:2])
    told = met(two, {"worker 0": {"code": "new"}, "worker 1": {"code": "old"}})
    assert set(told.values()) == {"worker 1 differs from the others in its code: old, not new."}


@pytest.mark.parametrize(("missing", "limit_seconds"), [("worker 0", 0.5), ("worker 1", 3.0)])
def test_who_does_not_come_is_named_to_all_others(addresses, missing, limit_seconds):
    there = {name: {"data": "ab12"} for name in addresses if name != missing}
    assert met(addresses, there, limit_seconds) == dict.fromkeys(there, f"Not there in time: {missing}.")


def test_who_comes_before_the_first_process_learns_from_it_who_does_not_come(addresses, monkeypatch):
    """The time of the first process ends after that of this one."""
    monkeypatch.setattr(meeting, "_GRACE_SECONDS", 0.1)
    there = {name: {"data": "ab12"} for name in ("worker 1", "worker 0")}
    told = met(addresses, there, 1.5, meanwhile=lambda: time.sleep(1.0))
    assert told == dict.fromkeys(there, "Not there in time: worker 2.")


def test_nobody_is_waited_for_by_one_alone():
    meeting.meet("worker 0", {}, {}, 0.0)
    meeting.meet("worker 0", {"worker 0": "nowhere:1"}, {}, 0.0)


def test_a_first_process_whose_host_can_have_no_such_name_is_not_there(addresses):
    there = {name: {"data": "ab12"} for name in addresses if name != "worker 0"}
    told = met({**addresses, "worker 0": "a..b:1234"}, there, 0.5)
    assert told == dict.fromkeys(there, "Not there in time: worker 0.")


def test_strangers_who_call_do_not_disturb_a_meeting(addresses):
    leader = host_and_port(addresses["worker 0"])

    def strangers_call():
        while not opened(addresses["worker 0"]):
            time.sleep(0.01)
        for said in (b"GET / HTTP/1.1\n", b"[1]\n", b'{"name": "worker 1"}\n', b""):
            with socket.create_connection(leader, 1) as stranger:
                stranger.sendall(said)

    same = {"data": "ab12"}
    told = met(addresses, dict.fromkeys(addresses, same), meanwhile=strangers_call)
    assert told == dict.fromkeys(addresses, "")


def test_a_port_that_is_taken_is_told(free_addresses, monkeypatch):
    monkeypatch.setattr(meeting, "_ANSWER_SECONDS", 0.5)  # who has the port says nothing
    with socket.create_server(("", host_and_port(free_addresses["worker 0"])[1])):
        told = met(free_addresses, {"worker 0": {}}, 0.5)
    assert told["worker 0"].startswith("The port of worker 0 cannot be had")


class Process(threading.Thread):
    """Takes part in a meeting, perhaps under the name of another; `told` is what went wrong."""

    def __init__(self, name, addresses):
        super().__init__()
        self.taken, self.addresses, self.told = name, addresses, ""
        self.start()
        while self.is_alive() and not opened(addresses[name]):
            time.sleep(0.01)  # who comes later than all others have failed waits in vain

    def run(self):
        try:
            meeting.meet(self.taken, self.addresses, {"data": "ab12"}, 20.0)
        except CourseError as error:
            self.told = error.problem


def together(addresses, *names):
    """Lets processes of these names meet, which may be the same; returns what went wrong with each."""
    started = [Process(name, addresses) for name in names]
    for each in started:
        each.join()
    return [each.told for each in started]


@pytest.mark.parametrize("ports", ["free_addresses", "addresses"])
@pytest.mark.parametrize(
    ("names", "twice"),
    [
        (["worker 0", "worker 0", "worker 1"], "worker 0"),
        (["worker 0", "worker 1", "worker 1"], "worker 1"),
        (["worker 2", "worker 2"], "worker 2"),  # worker 1 would wait for the first in vain
    ],
)
def test_two_that_say_that_they_are_the_same_are_told_in_seconds(ports, names, twice, request, monkeypatch):
    """The limit is far away."""
    of_processes = request.getfixturevalue(ports)
    monkeypatch.setenv("TF_GRPC_REUSE_PORT", "1" if ports == "addresses" else "0")
    monkeypatch.setattr(meeting, "_ASK_SECONDS", 0.05)
    monkeypatch.setattr(meeting, "_TELL_SECONDS", 0.1)
    assert together(of_processes, *names) == [f"Two processes say that they are {twice}."] * len(names)


def test_who_is_the_first_too_is_told_before_all_have_come(free_addresses, monkeypatch):
    monkeypatch.setenv("TF_GRPC_REUSE_PORT", "0")
    monkeypatch.setattr(meeting, "_TELL_SECONDS", 0.1)
    first, second = (Process("worker 0", free_addresses) for _time in range(2))
    second.join()
    third = Process("worker 1", free_addresses)
    for each in (first, third):
        each.join()
    twice = "Two processes say that they are worker 0."
    assert [each.told for each in (first, second, third)] == [twice] * 3


def test_who_is_at_the_address_of_another_is_told(addresses, monkeypatch):
    """As on two machines whose indices were mixed up, where both have the same port."""
    monkeypatch.setattr(meeting, "_TELL_SECONDS", 0.0)
    known = socket.getaddrinfo

    def unknown_elsewhere(host, *args, **kwargs):
        if host.endswith(".invalid"):
            raise socket.gaierror
        return known(host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", unknown_elsewhere)
    port = host_and_port(addresses["worker 0"])[1]
    mixed = {"worker 0": f"127.0.0.1:{port}", "worker 1": f"elsewhere.invalid:{port}"}
    assert together(mixed, "worker 1") == [
        "A process says that it is worker 1, and is at the address of worker 0."
    ]


def test_who_comes_back_is_the_same_process_again(addresses):
    """A worker is killed while all meet, and started again: that is no second one."""
    two = dict(list(addresses.items())[:2])

    def first_one_leaves():
        while not opened(two["worker 0"]):
            time.sleep(0.01)
        with call(two["worker 0"]) as gone:
            calls.write(gone, {"to": "worker 0", "name": "worker 1", "id": "ab", "facts": {"data": "x"}})

    three = {**two, "worker 2": addresses["worker 2"]}
    told = met(three, {name: {"data": "x"} for name in three}, meanwhile=first_one_leaves)
    assert set(told.values()) == {""}


@pytest.mark.parametrize("ports", ["free_addresses", "addresses"])
def test_a_server_is_told_that_another_is_at_its_address(ports, request, monkeypatch):
    address = request.getfixturevalue(ports)["worker 0"]
    monkeypatch.setenv("TF_GRPC_REUSE_PORT", "1" if ports == "addresses" else "0")
    calls.require_free("ps 0", address)
    match = "The port of ps 0 cannot be had"
    with calls.listen("ps 0", address), pytest.raises(CourseError, match=match):
        calls.require_free("ps 0", address)


@pytest.mark.parametrize("name", ["127.0.0.1", "[::1]", "not-known-yet.invalid"])
def test_who_listens_is_reached_over_ipv4_and_ipv6_whatever_its_own_name_is(addresses, name):
    port = host_and_port(addresses["worker 0"])[1]
    reached = ["127.0.0.1"]
    with contextlib.suppress(OSError), socket.create_server(("::1", 0), family=socket.AF_INET6):
        reached.append("::1")  # this machine has IPv6
    with calls.listen("worker 0", f"{name}:{port}"):
        for host in reached:
            socket.create_connection((host, port), 5).close()


def test_who_does_not_listen_is_named(addresses):
    with socket.create_server(host_and_port(addresses["worker 0"]), reuse_port=True):
        one = {"worker 0": addresses["worker 0"]}
        meeting.wait_for(one, 1.0)
        with pytest.raises(CourseError, match=r"Not there in time: worker 1\."):
            meeting.wait_for({**one, "worker 1": addresses["worker 1"]}, 0.3)


@pytest.mark.parametrize(
    ("cluster", "job", "index", "saves", "names"),
    [
        (TWO, "worker", 0, True, ["worker 0", "worker 1"]),
        (TWO, "worker", 1, False, ["worker 0", "worker 1"]),
        ({"worker": ["b:1"], "chief": ["a:1"]}, "worker", 0, False, ["chief 0", "worker 0"]),
        ({"worker": ["b:1"], "chief": ["a:1"]}, "chief", 0, True, ["chief 0", "worker 0"]),
    ],
)
def test_a_worker_knows_its_place(cluster, job, index, saves, names):
    peers = places.workers_of(config(cluster, job, index))
    assert (peers.name, peers.saves, peers.count) == (f"{job} {index}", saves, 2)
    assert list(peers.addresses) == names
    assert peers.others == [name for name in names if name != peers.name]


@pytest.mark.parametrize("variables", [{}, {"TF_CONFIG": ""}])
def test_without_a_cluster_a_process_is_alone_and_saves(variables):
    peers = places.workers_of(variables)
    assert (peers.name, peers.count, peers.saves, peers.addresses) == ("worker 0", 1, True, {})
    assert places.clients_of({"DTENSOR_JOBS": ""}, 8) == peers


SERVED = {"chief": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]}


def test_who_has_no_part_in_a_training_is_told():
    with pytest.raises(CourseError, match="has the job 'ps', which this program has no use for"):
        places.workers_of(config(SERVED, "ps"))
    with pytest.raises(CourseError, match="has the job 'evaluator', which"):
        places.workers_of(config(TWO, "evaluator"))
    assert str(places.server_place_of(config(SERVED, "ps")).task) == "ps 0"
    with pytest.raises(CourseError, match="worker 1 has no part in a training with parameter servers"):
        places.server_place_of(config(TWO, "worker", 1))
    with pytest.raises(CourseError, match="evaluator 0 has no part"):
        places.server_place_of(config(SERVED, "evaluator"))


CLIENTS = {"DTENSOR_JOBS": "host0:1,host1:1", "DTENSOR_CLIENT_ID": "1", "DTENSOR_JOB_NAME": "trainer"}


def test_a_client_knows_its_place():
    peers = places.clients_of(CLIENTS, 8)
    assert (peers.name, peers.saves, peers.others) == ("trainer 1", False, ["trainer 0"])
    assert peers.addresses == {"trainer 0": "host0:1", "trainer 1": "host1:1"}
    assert places.clients_of({"DTENSOR_JOBS": "host0:1"}, 8).name == "worker 0"


@pytest.mark.parametrize(
    ("changed", "num_devices", "problem"),
    [
        ({"DTENSOR_JOBS": "host0,host1:1"}, 8, "'host0' cannot be the address of worker 0"),
        ({"DTENSOR_CLIENT_ID": "one"}, 8, "DTENSOR_CLIENT_ID is 'one'"),
        ({"DTENSOR_CLIENT_ID": "2"}, 8, "The cluster has no task 'worker 2'"),
        ({"DTENSOR_JOBS": "host0:1,host0:1"}, 8, "worker 0 and worker 1 have the same address"),
        ({}, 5, "A mesh of 5 does not divide among 2 clients"),
    ],
)
def test_a_wrong_client_is_told(changed, num_devices, problem):
    with pytest.raises(CourseError) as told:
        places.clients_of(CLIENTS | changed, num_devices)
    assert told.value.problem.startswith(problem)


def test_facts_tell_what_differs(tmp_path):
    (tmp_path / "one.py").write_text("x = 1")
    digest = facts.code_digest(tmp_path)
    assert facts.code_digest(tmp_path) == digest
    (tmp_path / "notes.txt").write_text("not code")
    assert facts.code_digest(tmp_path) == digest
    (tmp_path / "one.py").write_text("x = 2")
    assert facts.code_digest(tmp_path) != digest

    def of(addresses=("host0:1", "host1:1"), arguments=None, label=0, checkpoint=None):
        examples = Examples([[1.0]], [label])
        return facts.facts_of(
            {f"worker {at}": each for at, each in enumerate(addresses)},
            arguments or {"steps": 20},
            _arrays(examples),
            checkpoint,
        )

    usual = of()
    assert usual["arguments"] == "steps=20"
    others = {
        "cluster": of(addresses=["host0:1"]),
        "arguments": of(arguments={"steps": 21}),
        "data": of(label=1),
        "checkpoint": of(checkpoint="checkpoint-000001-step-000005"),
    }
    for about, told in others.items():
        assert {name for name in usual if told[name] != usual[name]} == {about}


def test_the_newest_checkpoint_is_found(tmp_path):
    names = [f"checkpoint-00000{number}-step-000005" for number in (1, 2, 3)]
    for name in names:
        (tmp_path / name).mkdir()
    assert facts.newest(str(tmp_path)) == names[2]
    assert facts.newest(str(tmp_path / "none")) is None
    assert facts.newest(None) is None


def _arrays(examples):
    import numpy as np

    return Examples(np.array(examples.features, np.float32), np.array(examples.labels, np.int64))


def test_the_lines_of_workers_tell_who_got_which_example():
    first = "I0000 noise\ncourse: file batch 0 examples 0 1\ncourse: file batch 1 examples 4\ncourse: done\n"
    second = "course: file batch 0 examples 2 3\n"
    received = lines.received([first, second], "file")
    assert received.batches == (((0, 1), (2, 3)), ((4,), ()))


@pytest.mark.parametrize(
    ("language", "labels"),
    [("en", ["error: ", "  Allowed: ", "  What to do: "]), ("ja", ["エラー：", "  条件：", "  対処法："])],
)
def test_an_error_is_told_in_three_lines_of_one_language(capsys, language, labels):
    i18n.set_language(language)
    error = CourseError("Two\nlines.", allowed="one", cure="Make it one.")
    lines.tell(error)
    told = capsys.readouterr().out
    words = zip(labels, ["Two lines.", "one", "Make it one."], strict=True)
    assert told.splitlines() == [f"course: {label}{text}" for label, text in words]
    for before in ("", "course: step 1 loss 2.3\n"):
        with pytest.raises(CourseError) as raised:
            lines.losses(before + told)
        assert (raised.value.problem, raised.value.allowed) == ("Two lines.", "one")
        assert raised.value.cure == "Make it one."
    assert lines.losses(f"course: step 1 loss 2.3\n{told}", of_failed=True) == {1: 2.3}


def test_who_told_no_loss_has_failed_unless_all_was_done_before():
    assert lines.losses("course: goes on after step 4\ncourse: done\n") == {}
    for silent in ("", "Traceback\n", "course: worker 0 of 2, 2 replicas\n"):
        with pytest.raises(CourseError, match="told no loss"):
            lines.losses(silent)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (["--steps", "0"], "--steps is '0'."),
        (["--steps", "1e3"], "--steps is '1e3'."),
        (["--batch", "-32"], "--batch is '-32'."),
        (["--digits", "21"], "--digits is '21'."),
        (["--wait", "-1"], "--wait is '-1'."),
        (["--wait", "nan"], "--wait is 'nan'."),
        (["--pause", "soon"], "--pause is 'soon'."),
        (["--language", "fr"], "--language is 'fr'."),
        (["--checkpoints", __file__], f"--checkpoints is '{__file__}'."),
        (["--checkpoints", ""], "--checkpoints is ''."),
        (["--checkpoints", f"{__file__}/below"], f"--checkpoints is '{__file__}/below'."),
        (["--step", "3"], "The command line is not understood: unrecognized arguments: --step 3."),
        (["--steps"], "The command line is not understood: argument --steps: expected one argument."),
        (["20"], "The command line is not understood: unrecognized arguments: 20."),
    ],
)
def test_a_wrong_argument_is_told(given, problem):
    with pytest.raises(CourseError) as told:
        arguments.parser("").parse_args(given)
    assert told.value.problem == problem


def test_a_folder_below_one_that_is_closed_is_told(tmp_path, monkeypatch):
    """As /root is to others; the checks run as root too, whom no folder refuses."""
    closed, stat, access = tmp_path / "closed", os.stat, os.access
    closed.mkdir()

    def refusing(path, *args, **kwargs):
        if not isinstance(path, int) and os.fspath(path) == str(closed / "folder"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return stat(path, *args, **kwargs)

    monkeypatch.setattr(os, "stat", refusing)
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != closed and access(path, mode))
    with pytest.raises(CourseError, match="--checkpoints is"):
        arguments.parser("").parse_args(["--checkpoints", str(closed / "folder")])


@pytest.mark.parametrize(
    ("program", "given"),
    [
        (multi_worker, ["--fit", "--hold", "4"]),
        (multi_worker, ["--shards", "file", "--hold", "4"]),
        (multi_worker, ["--fit", "--shards", "file"]),
        (parameter_server, ["--hold", "4"]),
    ],
)
def test_what_has_no_effect_there_is_refused(program, given, monkeypatch):
    monkeypatch.setattr("sys.argv", [program.__name__, *given])
    with pytest.raises(CourseError, match="The command line is not understood"):
        program.main()


WAITING = """
import os, signal, time
from lessons.lesson_11_many_processes.programs.peers import within
signal.signal(signal.SIGINT, lambda *_: None)  # as TensorFlow, which lets no handler run
with within(0.5, ["worker 1"]):
    os.killpg(0, signal.SIGINT)
    time.sleep(60)
"""


def test_an_interrupt_of_a_process_that_waits_does_not_take_its_bound():
    """A terminal interrupts all that it started."""
    command = [sys.executable, "-c", WAITING]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=30, check=False, start_new_session=True
    )
    assert ended.returncode == -signal.SIGKILL, ended
    assert "TensorFlow waits in vain for worker 1." in ended.stdout


def test_a_process_that_waits_is_bounded_though_nobody_hears_it():
    """Whoever read its output is gone, or its output has no Japanese letters."""
    waiting = WAITING.replace("worker 1", "ワーカー 1")
    command = [sys.executable, "-X", "utf8=0", "-c", waiting.replace("time.sleep(60)", "time.sleep(20)")]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, start_new_session=True) as deaf:
        deaf.stdout.close()
        assert deaf.wait(30) == -signal.SIGKILL
    ended = subprocess.run(
        command, capture_output=True, timeout=30, check=False, env=environment, start_new_session=True
    )
    assert ended.returncode == -signal.SIGKILL, ended
    assert b"TensorFlow waits in vain for ???? 1." in ended.stdout


def test_who_is_alone_is_not_bounded(monkeypatch):
    monkeypatch.setattr(peers, "subprocess", None)
    with peers.within(0.0, []):
        pass


def test_a_proxy_is_not_asked_for_the_others_and_what_stood_there_stays():
    hosts = ["b:1", "a:1", "a:2", "[::1]:1"]
    assert without_proxy({}, hosts) == {"no_proxy": "::1,a,b"}
    assert without_proxy({"no_proxy": "x,y"}, hosts) == {"no_proxy": "x,y,::1,a,b"}
    both = {"no_proxy": "x", "no_grpc_proxy": "z"}  # gRPC reads only the second
    assert without_proxy(both, hosts) == {"no_proxy": "x,::1,a,b", "no_grpc_proxy": "z,::1,a,b"}
    assert without_proxy(both, []) == both
    assert without_proxy({}, []) == {}
    at_all = {"no_proxy": "*"}  # Python takes it only alone
    assert without_proxy(at_all, hosts) == {"no_grpc_proxy": "::1,a,b"}
    assert without_proxy({**at_all, "no_grpc_proxy": "a,z"}, hosts) == {"no_grpc_proxy": "a,z,::1,b"}


def test_arguments_are_told_in_the_language_that_they_name():
    arguments.speak([])
    arguments.speak(["--language", "fr"])
    arguments.speak(["--checkpoints", "ja"])
    arguments.speak(["--checkpoints=ja", "ja"])
    assert i18n.language() == "en"
    arguments.speak(["--steps", "3", "--language=ja"])
    assert i18n.language() == "ja"
    assert "--steps" in arguments.parser("").format_help()


@pytest.mark.parametrize(
    ("tf_config", "problem"),
    [(None, "TF_CONFIG is not set"), ("", "TF_CONFIG is not set"), ("[]", "TF_CONFIG is")],
)
def test_who_was_set_up_by_hand_without_a_cluster_is_told(tf_config, problem, monkeypatch):
    """Else it would train alone, whatever index it was given."""
    monkeypatch.delenv("TF_CONFIG", raising=False)
    if tf_config is not None:
        monkeypatch.setenv("TF_CONFIG", tf_config)
    monkeypatch.setattr("sys.argv", ["by_hand", "1", "--steps", "1"])
    monkeypatch.setattr(by_hand.multi_worker, "main", lambda: pytest.fail("it trains"))
    with pytest.raises(CourseError, match=problem):
        by_hand.main()


@pytest.mark.parametrize(
    ("message", "others", "name"),
    [
        (
            "from remote target /job:worker/replica:0/task:1: Socket closed",
            ["worker 1", "worker 2"],
            "worker 1",
        ),
        ("/job:worker/replica:0/task:0 lost /job:chief/replica:0/task:0", ["chief 0", "worker 1"], "chief 0"),
        ("Socket closed", ["chief 0", "worker 1"], "another process"),
        ("Socket closed", ["worker 1"], "worker 1"),
    ],
)
def test_a_lost_process_is_named(message, others, name):
    assert peers.lost(message, others).problem == f"{name} no longer answers."
