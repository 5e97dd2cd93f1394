"""The table of operations, run again: a sample of it, and what is silently wrong or ends the process."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tools.operations import cases

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
    """Returns for each case what may come of it: its verdict, and another one if a fresh process gave it."""
    answers = cases.unpacked(TABLE).items()
    return {key: {each["verdict"], each.get("alone", each["verdict"])} for key, each in answers}


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
    stored, grave = verdicts(), {}
    for case in cases.every_case():
        if stored[case.key] in ({"wrong"}, {"dead"}):
            grave.setdefault((case.run, *stored[case.key]), []).append(case.key)
    wanted = {key: verdict for (_run, verdict), keys in grave.items() for key in keys[:of_each]}
    assert run_again(list(wanted), "alone") == wanted
