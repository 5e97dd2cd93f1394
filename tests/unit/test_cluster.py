"""A case in several processes: one failure told, who did not end told, and nobody left."""

import pytest

from benchmarks import strategy_table
from benchmarks.cases import ANSWERED, ERROR, TIMEOUT, Case, Outcome
from benchmarks.strategy_table import run_in_cluster
from tests.unit.clusters import NEVER_ENDS, WRITES_ITS_ID, eventually, left

TELLS_ITS_PLACE = """
import json, os
print(json.dumps(json.loads(os.environ["TF_CONFIG"])))
"""
FAILS = "others(2)\nif task['index'] == 1: raise ValueError('no')\n"
LEADS = "if task['type'] != 'chief': time.sleep(600)\nothers(3)\nprint('{\"trained\": 20}')"


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


def test_each_process_answers(script):
    outcomes = run_in_cluster(Case(script(TELLS_ITS_PLACE)), {"worker": 2})
    assert sorted(outcomes) == ["worker 0", "worker 1"]
    found = [outcomes[f"worker {index}"].found for index in (0, 1)]
    assert [one["task"] for one in found] == [{"type": "worker", "index": index} for index in (0, 1)]


def test_one_failure_is_told_and_the_others_are_ended(script, ids, monkeypatch):
    monkeypatch.setattr(strategy_table, "GRACE_SECONDS", 0.1)
    outcomes = run_in_cluster(Case(script(WRITES_ITS_ID + FAILS + NEVER_ENDS), (str(ids),)), {"worker": 2})
    assert outcomes == {"worker 1": Outcome(ERROR, message="ValueError: no")}
    assert eventually(lambda: left(ids) == [])


def test_where_a_chief_leads_the_others_serve_until_it_has_ended(script, ids):
    case = Case(script(WRITES_ITS_ID + LEADS), (str(ids),))
    assert run_in_cluster(case, {"chief": 1, "ps": 1, "worker": 1}) == {
        "chief 0": Outcome(ANSWERED, {"trained": 20})
    }
    assert eventually(lambda: left(ids) == [])


def test_what_does_not_end_is_ended(script, ids):
    case = Case(script(WRITES_ITS_ID + NEVER_ENDS), (str(ids),))
    outcomes = run_in_cluster(case, {"worker": 2}, limit_seconds=0.5)
    assert outcomes == dict.fromkeys(
        ["worker 0", "worker 1"], Outcome(TIMEOUT, message="no end within 0.5 s")
    )
    assert eventually(lambda: left(ids) == [])
