"""Programs in processes of their own: what is told of each end, and that no process is left."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from course_lib import run_program
from tests.alive import CHILD_WRITES_ITS_ID, eventually, is_alive

ROOT = Path(__file__).parents[2]


@pytest.fixture
def program(tmp_path):
    def write(code):
        path = tmp_path / "program.py"
        path.write_text(code)
        return path

    return write


def child_of(folder):
    return int((folder / "child").read_text())


def test_what_it_printed_is_shown_and_how_it_ended(program):
    code = "import sys; print('step', *sys.argv[1:]); print('a log line', file=sys.stderr)"
    assert repr(run_program(program(code), 1, "of 2")) == "step 1 of 2\n→ ended with exit status 0"


@pytest.mark.parametrize(
    ("code", "status", "ended"),
    [
        ("raise ValueError('no such plan')", 1, "ended with exit status 1: ValueError: no such plan"),
        ("import sys; sys.exit('Name a plan.')", 1, "ended with exit status 1: Name a plan."),
        (
            f"import os; os.kill(os.getpid(), {signal.SIGSEGV})",
            139,
            "ended by SIGSEGV, signal 11 (exit status 139)",
        ),
        (
            "import os, sys; sys.stderr.write('F0000 tensor.cc:8] Check failed: 1 == 2\\n'); os.abort()",
            134,
            "ended by SIGABRT, signal 6 (exit status 134): Check failed: 1 == 2",
        ),
    ],
)
def test_errors_signals_and_failed_checks_are_named(program, code, status, ended):
    done = run_program(program(f"print('step 1')\n{code}"))
    assert (done.printed, done.status, done.ended) == ("step 1\n", status, ended)


def test_a_program_that_hangs_is_ended_with_what_it_started(program, tmp_path):
    done = run_program(program(f"print('up')\n{CHILD_WRITES_ITS_ID}"), tmp_path / "child", seconds=3)
    assert done.printed == "up\n"
    assert (done.status, done.ended) == (137, "ended at the limit, seconds=3: it was still running")
    assert eventually(lambda: not is_alive(child_of(tmp_path)))


def test_what_a_program_leaves_behind_ends_with_it(program, tmp_path):
    code = CHILD_WRITES_ITS_ID.replace("time.sleep(600)\n", "")  # the child alone goes on
    assert run_program(program(code), tmp_path / "child").status == 0
    assert eventually(lambda: not is_alive(child_of(tmp_path)))


def test_a_program_ends_with_the_process_that_runs_it(program, tmp_path):
    path, child = program(CHILD_WRITES_ITS_ID), tmp_path / "child"
    code = f"from course_lib import run_program; run_program({str(path)!r}, {str(child)!r})"
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, start_new_session=True) as owner:
        assert eventually(child.exists)
        os.killpg(owner.pid, signal.SIGKILL)  # as Jupyter does with a kernel
    assert eventually(lambda: not is_alive(child_of(tmp_path)))
