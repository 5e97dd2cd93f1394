"""What the programs of several processes do before TensorFlow starts, and how their lines are read."""

import json
import signal
import subprocess
import sys

import numpy as np
import pytest

from course_lib import CourseError, i18n
from course_lib.data.examples import Examples
from lessons.lesson_11_many_processes.programs import agreement, arguments, by_hand, limit, lines, places

TWO = {"worker": ["host0:1", "host1:1"]}
SERVED = {"chief": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]}
CLIENTS = {"DTENSOR_JOBS": "host0:1,host1:1", "DTENSOR_CLIENT_ID": "1", "DTENSOR_JOB_NAME": "worker"}


def config(cluster, job="worker", index=0):
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": job, "index": index}})}


@pytest.mark.parametrize(
    ("cluster", "job", "index", "saves", "others"),
    [
        (TWO, "worker", 0, True, ["worker 1"]),
        (TWO, "worker", 1, False, ["worker 0"]),
        ({"worker": ["b:1"], "chief": ["a:1"]}, "worker", 0, False, ["chief 0"]),
        (SERVED, "chief", 0, True, ["worker 0", "ps 0"]),
    ],
)
def test_a_worker_knows_its_place(cluster, job, index, saves, others):
    peers = places.workers_of(config(cluster, job, index))
    assert (peers.name, peers.saves, list(peers.others)) == (f"{job} {index}", saves, others)


@pytest.mark.parametrize("variables", [{}, {"TF_CONFIG": ""}])
def test_without_a_cluster_a_process_is_alone_and_saves(variables):
    peers = places.workers_of(variables)
    assert (peers.name, peers.count, peers.saves, peers.addresses) == ("worker 0", 1, True, {})
    assert places.clients_of({"DTENSOR_JOBS": ""}) == peers


def test_a_client_knows_its_place():
    peers = places.clients_of(CLIENTS)
    assert (peers.name, peers.saves, peers.others) == ("worker 1", False, {"worker 0": "host0:1"})
    with pytest.raises(CourseError, match="no task 'worker 2'"):
        places.clients_of({**CLIENTS, "DTENSOR_CLIENT_ID": "2"})


def facts(*words, label=0, folder=None):
    examples = Examples(np.array([[1.0]], np.float32), np.array([label], np.int64))
    checkpoints = [] if folder is None else ["--checkpoints", str(folder)]
    return agreement.facts_of(arguments.parser("").parse_args([*words, *checkpoints]), examples)


def test_who_differs_is_named_with_what_it_is_about(tmp_path):
    (tmp_path / "checkpoint-000001-step-000005").mkdir()
    usual = facts()
    agreement.require_same({"worker 0": usual, "worker 1": facts("--language", "ja", "--pause", "2")})
    for other, says in (
        (facts("--batch", "48"), "arguments: batch=48 "),
        (facts(label=1), "data: "),
        (facts(folder=tmp_path), "newest checkpoint: checkpoint-000001-step-000005, not none"),
        ([usual[0], "other", *usual[2:]], "code: other, not "),
    ):
        with pytest.raises(CourseError, match=f"worker 1 differs from the others in its {says}"):
            agreement.require_same({"worker 0": usual, "worker 1": other})


def test_the_newest_checkpoint_is_the_one_to_go_on_from(tmp_path):
    names = [f"checkpoint-00000{number}-step-000005" for number in (1, 2, 3)]
    for name in names:
        (tmp_path / name).mkdir()
    assert agreement.newest(str(tmp_path)) == names[2]
    assert agreement.newest(str(tmp_path / "none")) == agreement.newest(None) == ""


def test_the_lines_of_workers_tell_who_got_which_example():
    first = "I0000 noise\ncourse: file batch 0 examples 0 1\ncourse: file batch 1 examples 4\ncourse: done\n"
    second = "course: file batch 0 examples 2 3\n"
    received = lines.received([first, second], "file")
    assert received.batches == (((0, 1), (2, 3)), ((4,), ()))


@pytest.mark.parametrize(
    ("language", "labels"),
    [("en", ["error: ", "  Allowed: ", "  What to do: "]), ("ja", ["エラー：", "  条件：", "  対処法："])],
)
def test_an_error_is_told_in_three_lines_of_one_language_and_read_again(capsys, language, labels):
    i18n.set_language(language)
    lines.tell(CourseError("Two\nlines.", allowed="one", cure="Make it one."))
    told = capsys.readouterr().out
    words = zip(labels, ["Two lines.", "one", "Make it one."], strict=True)
    assert told.splitlines() == [f"course: {label}{text}" for label, text in words]
    with pytest.raises(CourseError) as raised:
        lines.losses("course: step 1 loss 2.3\n" + told)
    assert (raised.value.problem, raised.value.allowed) == ("Two lines.", "one")
    assert raised.value.cure == "Make it one."


def test_who_told_no_loss_has_failed_unless_all_was_done_before():
    assert lines.losses("course: goes on after step 4\ncourse: done\n") == {}
    for silent in ("", "Traceback\n", "course: worker 0 of 2, 2 replicas\n"):
        with pytest.raises(CourseError, match="told no loss"):
            lines.losses(silent)


@pytest.mark.parametrize(
    "words", [["--steps", "0"], ["--batch", "-32"], ["--wait", "soon"], ["--language", "fr"], ["--step", "3"]]
)
def test_a_wrong_argument_is_told(words, capsys):
    with pytest.raises(SystemExit):
        arguments.parser("").parse_args(words)
    assert f"{words[0]}" in capsys.readouterr().err


WAITS = """
import os, signal, time
from course_lib import i18n
from lessons.lesson_11_many_processes.programs.limit import within
i18n.set_language("LANGUAGE")
signal.signal(signal.SIGINT, lambda *_: None)  # as TensorFlow, which lets no handler run
with within(0.5, {"worker 1": "127.0.0.1:9"}):
    os.killpg(0, signal.SIGINT)  # a terminal interrupts all that it started
    time.sleep(60)
"""


@pytest.mark.parametrize(("language", "says"), [("en", "Not there in time: worker 1."), ("ja", "エラー：")])
def test_a_start_is_bounded_and_names_who_is_not_there(language, says):
    command = [sys.executable, "-c", WAITS.replace("LANGUAGE", language)]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, start_new_session=True
    )
    assert ended.returncode == -signal.SIGKILL, ended
    assert says in ended.stdout


def test_who_is_alone_is_not_bounded(monkeypatch):
    monkeypatch.setattr(limit, "subprocess", None)
    with limit.within(0.0, {}):
        pass


def test_who_was_set_up_by_hand_takes_the_index_that_it_is_told(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", config(TWO)["TF_CONFIG"])
    monkeypatch.setattr("sys.argv", ["by_hand", "1", "--steps", "1"])
    seen = []
    monkeypatch.setattr(by_hand.multi_worker, "main", lambda: seen.append(sys.argv[1:]))
    by_hand.main()
    assert seen == [["--steps", "1"]]
    assert places.workers_of(by_hand.os.environ).name == "worker 1"
