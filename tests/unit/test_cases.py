"""Cases that run in processes of their own: an answer, an error, a crash and no end are all told apart."""

import os
import time

import pytest

from benchmarks.cases import ANSWERED, CRASH, ERROR, TIMEOUT, Case, Outcome, run
from tests.alive import CHILD_WRITES_ITS_ID, is_alive


@pytest.fixture
def script(tmp_path):
    def write(code):
        path = tmp_path / "script.py"
        path.write_text(code)
        return path

    return write


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        ("print('a note'); print('{\"difference\": 0.5}')", Outcome(ANSWERED, {"difference": 0.5})),
        ('import sys; print(\'{"asked": "%s"}\' % sys.argv[1])', Outcome(ANSWERED, {"asked": "fit"})),
        ("import os; print(os.environ['CASE_TEST'])", Outcome(ANSWERED, {"x": 7})),
        ("raise ValueError('no\\nsuch seed')", Outcome(ERROR, message="ValueError: no\nsuch seed")),
        ("import sys; sys.exit('Name a case')", Outcome(ERROR, message="Name a case")),
        ("print('no finding')", Outcome(ERROR, message="it printed no finding")),
        ("", Outcome(ERROR, message="it printed no finding")),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", Outcome(CRASH, message="SIGSEGV")),
    ],
)
def test_what_became_of_a_case(script, code, outcome):
    assert run(Case(script(code), ("fit",), environment={"CASE_TEST": '{"x": 7}'})) == outcome
    assert "CASE_TEST" not in os.environ


def test_a_case_without_end_is_stopped_with_what_it_started(script, tmp_path):
    written = tmp_path / "child"
    outcome = run(Case(script(CHILD_WRITES_ITS_ID), (str(written),)), limit_seconds=5)
    assert outcome == Outcome(TIMEOUT, message="no end within 5 s")
    deadline = time.monotonic() + 5
    while is_alive(int(written.read_text())):  # until the system has taken it away
        assert time.monotonic() < deadline, "the child lives on"
        time.sleep(0.05)
