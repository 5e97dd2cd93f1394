"""The table of operations, run again: a sample of it, and what is silently wrong or ends the process."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tools.operations import cases, table

ROOT = Path(__file__).parents[2]
TABLE = json.loads(max(Path(cases.__file__).parent.glob("[0-9]*.json")).read_text(encoding="utf-8"))
# TensorFlow is imported and not started where cases are forked from: so not in this process.
PROGRAM = """
import json, sys
from tools.operations import cases, table, worker
wanted = json.load(sys.stdin)
given = [case for case in cases.every_case() if case.key in wanted]
work, chunk = (table.one_program, 1) if sys.argv[1] == "alone" else (worker.run, 50)
print(json.dumps({record["key"]: record["verdict"] for record in table.answers(work, given, chunk)}))
"""


def verdicts():
    """Returns for each case what may come of it: its verdict, and another one if a fresh process gave it.

    Those on 12 devices are left out: whether messages get mixed up is chance.
    """
    answers = cases.unpacked(TABLE)
    keys = [case.key for case in cases.every_case() if case.sizes != table.MIXED_UP]
    return {
        key: {answers[key]["verdict"], answers[key].get("alone", answers[key]["verdict"])} for key in keys
    }


def run_again(keys, how):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, how],
        cwd=ROOT,
        input=json.dumps(keys),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.drill
def test_a_sample_says_what_the_table_says():
    stored = verdicts()
    again = run_again(random.Random(0).sample(list(stored), 200), "together")
    assert {key: verdict for key, verdict in again.items() if verdict not in stored[key]} == {}


@pytest.mark.parametrize(
    "of_each", [pytest.param(1, marks=pytest.mark.drill), pytest.param(10**6, marks=pytest.mark.drill_all)]
)
def test_the_program_shows_what_is_wrong_or_ends_the_process(of_each):
    """What reads foreign memory dies by chance: an expression may do what any of its cases did."""
    answers, stored = cases.unpacked(TABLE), verdicts()
    grave: dict[tuple[str, str], list[str]] = {}
    for case in cases.every_case():
        if case.key in stored and (verdict := answers[case.key]["verdict"]) in table.CHECKED:
            grave.setdefault((case.run, verdict), []).append(case.key)
    allowed = {key: set().union(*map(stored.get, keys)) for keys in grave.values() for key in keys[:of_each]}
    again = run_again(list(allowed), "alone")
    assert {key: verdict for key, verdict in again.items() if verdict not in allowed[key]} == {}
    assert again.keys() == allowed.keys()
