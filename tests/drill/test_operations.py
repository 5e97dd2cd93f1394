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

    Left out is what depends on chance: on 12 devices messages may get mixed up, and an operation of which a
    fresh process gave another verdict anywhere reads memory that is not its own.
    """
    answers = cases.unpacked(TABLE)
    given = [case for case in cases.every_case() if case.sizes != table.MIXED_UP]
    by_chance = {case.run for case in given if "alone" in answers[case.key]}
    return {case.key: answers[case.key]["verdict"] for case in given if case.run not in by_chance}


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
    assert {key: verdict for key, verdict in again.items() if verdict != stored[key]} == {}


@pytest.mark.parametrize(
    "of_each", [pytest.param(1, marks=pytest.mark.drill), pytest.param(10**6, marks=pytest.mark.drill_all)]
)
def test_the_program_shows_what_is_wrong_or_ends_the_process(of_each):
    stored = verdicts()
    grave: dict[tuple[str, str], list[str]] = {}
    for case in cases.every_case():
        if stored.get(case.key) in table.CHECKED:
            grave.setdefault((case.run, stored[case.key]), []).append(case.key)
    expected = {key: stored[key] for keys in grave.values() for key in keys[:of_each]}
    assert run_again(list(expected), "alone") == expected
