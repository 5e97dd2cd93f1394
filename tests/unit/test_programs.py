"""What the programs of several processes do before TensorFlow starts, and how their lines are read."""

import json
import signal
import subprocess
import sys

import numpy as np
import pytest

from course_lib import CourseError, i18n
from course_lib.data.examples import Examples
from lessons.lesson_11_many_processes.programs import (
    limit,
    lines,
    multi_client,
    multi_worker,
    peers,
    steps,
)

TWO = {"worker": ["host0:1", "host1:1"]}
SERVED = {"chief": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]}
CLIENTS = {"DTENSOR_JOBS": "host0:1,host1:1", "DTENSOR_JOB_NAME": "worker"}


@pytest.mark.parametrize(
    ("cluster", "task", "saves", "others"),
    [
        (TWO, "worker 0", True, ["worker 1"]),
        (TWO, "worker 1", False, ["worker 0"]),
        ({"worker": ["b:1"], "chief": ["a:1"]}, "worker 0", False, ["chief 0"]),
        (SERVED, "chief 0", True, ["worker 0", "ps 0"]),
    ],
)
def test_a_worker_knows_its_place(monkeypatch, cluster, task, saves, others):
    job, index = task.split()
    config = {"cluster": cluster, "task": {"type": job, "index": int(index)}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    place = multi_worker.place_of_worker()
    assert (str(place.task), place.saves, list(place.others)) == (task, saves, others)


def test_who_was_set_up_by_hand_takes_the_index_that_it_is_told(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": TWO, "task": {"type": "worker", "index": 0}}))
    assert str(multi_worker.place_of_worker("1").task) == "worker 1"
    assert json.loads(multi_worker.os.environ["TF_CONFIG"])["task"]["index"] == "1"  # for TensorFlow


def test_without_a_cluster_a_process_is_alone_and_saves(monkeypatch):
    for name in ("TF_CONFIG", "DTENSOR_JOBS"):
        monkeypatch.delenv(name, raising=False)
    for place in (multi_worker.place_of_worker(), multi_client.place_of_client()):
        assert (str(place.task), place.saves, place.others) == ("worker 0", True, {})


def test_a_client_knows_its_place(monkeypatch):
    for name, value in CLIENTS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("DTENSOR_CLIENT_ID", "1")
    place = multi_client.place_of_client()
    assert (str(place.task), place.saves, place.others) == ("worker 1", False, {"worker 0": "host0:1"})
    monkeypatch.setenv("DTENSOR_CLIENT_ID", "2")
    with pytest.raises(CourseError, match="no task 'worker 2'"):
        multi_client.place_of_client()


def facts(*words, label=0, folder=None):
    examples = Examples(np.array([[1.0]], np.float32), np.array([label], np.int64))
    checkpoints = [] if folder is None else ["--checkpoints", str(folder)]
    return peers.facts_of(steps.parser("").parse_args([*words, *checkpoints]), examples)


def test_who_differs_is_named_with_what_it_is_about(tmp_path):
    (tmp_path / "checkpoint-000001-step-000005").mkdir()
    usual = facts()
    peers.require_same({"worker 0": usual, "worker 1": facts("--language", "ja", "--pause", "2")})
    for other, says in (
        (facts("--batch", "48"), "arguments: batch=48 "),
        (facts(label=1), "data: "),
        (facts(folder=tmp_path), "newest checkpoint: checkpoint-000001-step-000005, not none"),
        ({**usual, "code": "other"}, "code: other, not "),
    ):
        with pytest.raises(CourseError, match=f"worker 1 differs from the others in its {says}"):
            peers.require_same({"worker 0": usual, "worker 1": other})


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
    lines.tell(CourseError("One line.", allowed="one", cure="Make it one."))
    words = zip(labels, ["One line.", "one", "Make it one."], strict=True)
    assert capsys.readouterr().out.splitlines() == [f"course: {label}{text}" for label, text in words]


def test_who_told_no_loss_has_failed_unless_all_was_done_before():
    assert lines.losses("course: goes on after step 4\ncourse: done\n") == {}
    for silent in ("", "Traceback\n", "course: worker 0 of 2, 2 replicas\n"):
        with pytest.raises(CourseError, match="told no loss"):
            lines.losses(silent)


@pytest.mark.parametrize("words", [["--wait", "soon"], ["--language", "fr"], ["--step", "3"]])
def test_a_wrong_argument_is_told(words, capsys):
    with pytest.raises(SystemExit):
        steps.parser("").parse_args(words)
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
