"""The page of silent mistakes: each of its programs prints what stands below it, or ends its process so."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.course import COURSE
from tools.book.page_programs import PAGE, Program, programs

# TensorFlow is imported and not started where the programs are forked from: so not in this process.
RUN = """
import json, sys, tensorflow
from tools.book.page_programs import Program, run
print(json.dumps(list(run([Program(*each) for each in json.load(sys.stdin)]))))
"""
PROGRAMS = programs()
MOST_PROCESSES = 200  # each has its memory otherwise


def printed_by(chosen: list[Program]) -> list[str]:
    command = [sys.executable, "-c", RUN]
    given = json.dumps(chosen)
    done = subprocess.run(command, cwd=COURSE.root, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = dict(json.loads(done.stdout.splitlines()[-1]))
    return [found[place] for place in range(len(chosen))]


def test_every_program_prints_what_the_page_says():
    chosen = [each for each in PROGRAMS if not each.varies]
    every = PAGE.read_text("utf-8").count("```python")
    assert len(PROGRAMS) == every - 1  # all begin with the first
    assert printed_by(chosen) == [each.printed for each in chosen]


@pytest.mark.drill_all
def test_what_programs_print_sometimes_comes_again():
    missing = [each for each in PROGRAMS if each.varies]
    for _process in range(MOST_PROCESSES):
        found = zip(missing, printed_by(missing), strict=True)
        missing = [each for each, printed in found if printed != each.printed]
        if not missing:
            break
    assert missing == []
