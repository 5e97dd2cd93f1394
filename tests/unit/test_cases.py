"""The runner of cases: what they find, and every way in which they fail; a run that was stopped goes on."""

import os
import signal
import subprocess
import sys
import time
from functools import partial

from tools.cases import runner
from tools.cases.runner import CRASH, ERROR, TIMEOUT, Case, run

CALLS = []  # in one process, so of the cases that ran there


def finds(number):
    CALLS.append(number)
    return {"number": number, "together": len(CALLS)}


def dies():
    os.kill(os.getpid(), signal.SIGKILL)


def fails_late():
    if CALLS:  # of a case before, as TensorFlow tells some errors
        raise ValueError("late")
    return {"number": 0}


def hangs(pipe):
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], pass_fds=[pipe])
    time.sleep(600)


def test_every_end_of_a_case_is_told_and_the_others_go_on():
    reading, writing = os.pipe()
    cases = [
        Case("first", partial(finds, 1)),
        Case("dies", dies),
        Case("after it", partial(finds, 2)),
        Case("late", fails_late),
        Case("spoils", partial(dict, spoiled=True, number=3)),
        Case("raises", partial(int, "seven"), alone=True),
        Case("hangs", partial(hangs, writing), limit_seconds=2.0, alone=True),
    ]
    found = dict(run(cases))
    assert found["first"] == {"number": 1, "together": 1}
    assert found["dies"] == {"verdict": CRASH, "message": "SIGKILL"}
    assert found["after it"] == {"number": 2, "together": 1}  # in another process
    assert (found["late"], found["spoils"]) == ({"number": 0}, {"number": 3})
    message = "ValueError: invalid literal for int() with base 10: 'seven'"
    assert found["raises"] == {"verdict": ERROR, "message": message}
    assert found["hangs"] == {"verdict": TIMEOUT, "message": "no end within 2 s"}
    os.close(writing)
    assert os.read(reading, 1) == b""  # the end, once what it started has ended too


def test_a_stopped_run_goes_on_where_it_was(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "BUILD", tmp_path)
    cases = [Case(str(number), partial(finds, number)) for number in range(4)]
    before = runner.completed(cases[:2], "table", "1.0")
    cases[:2] = [Case(case.name, dies) for case in cases[:2]]  # they do not run again
    assert [each["number"] for each in runner.completed(cases, "table", "1.0").values()] == [0, 1, 2, 3]
    assert len((tmp_path / "table-1.0.jsonl").read_text().splitlines()) == 4
    assert [each["number"] for each in before.values()] == [0, 1]
