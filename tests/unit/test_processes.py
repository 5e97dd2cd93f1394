"""Programs in processes of their own: what is told of each end, and that no process is left."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from course_lib import CourseError, i18n, run_program
from tests.unit.clusters import eventually
from tests.unit.test_cases import CHILD_WRITES_ITS_ID, is_alive

ROOT = Path(__file__).parents[2]


@pytest.fixture
def program(tmp_path):
    def write(code):
        path = tmp_path / "program.py"
        path.write_text(code)
        return path

    return write


def test_what_it_printed_is_shown_and_that_it_ended_well(program):
    code = "import sys; print('step', *sys.argv[1:]); print('a log line', file=sys.stderr)"
    ended = run_program(program(code), 1, "of 2")
    assert (ended.printed, ended.status, ended.ended) == ("step 1 of 2\n", 0, "ended with exit status 0")
    assert repr(ended) == "step 1 of 2\n→ ended with exit status 0"


@pytest.mark.parametrize(
    ("code", "status", "told"),
    [
        ("raise ValueError('no such plan')", 1, "ended with exit status 1: ValueError: no such plan"),
        ("import sys; sys.exit('Name a plan.')", 1, "ended with exit status 1: Name a plan."),
        ("import os; os._exit(75)", 75, "ended with exit status 75"),
        ("x = (", 1, "ended with exit status 1: SyntaxError: '(' was never closed"),
        *(
            (f"import os; os.kill(os.getpid(), {number})", status, told)
            for number, status, told in (
                (signal.SIGSEGV, 139, "ended by SIGSEGV, signal 11 (exit status 139)"),
                (signal.SIGKILL, 137, "ended by SIGKILL, signal 9 (exit status 137)"),
                (signal.SIGABRT, 134, "ended by SIGABRT, signal 6 (exit status 134)"),
            )
        ),
        (
            "import os, sys; sys.stderr.write('F0000 tensor.cc:8] Check failed: 1 == 2\\n'); os.abort()",
            134,
            "ended by SIGABRT, signal 6 (exit status 134): Check failed: 1 == 2",
        ),
    ],
)
def test_how_a_program_ended_is_told(program, code, status, told):
    ended = run_program(program(f"print('step 1')\n{code}"))
    assert (ended.status, ended.ended) == (status, told)
    assert ended.printed == ("" if "Syntax" in told else "step 1\n")


def test_how_it_ended_is_told_in_the_readers_language(program):
    i18n.set_language("ja")
    path = program("import os; os.kill(os.getpid(), 11)")
    assert run_program(path).ended == "SIGSEGV（シグナル11）で終了（終了コード139）"


def test_a_program_that_hangs_is_ended_with_what_it_started(program, tmp_path):
    ended = run_program(program(f"print('up')\n{CHILD_WRITES_ITS_ID}"), tmp_path / "child", seconds=3)
    assert ended.printed == "up\n"
    assert (ended.status, ended.ended) == (137, "ended at the limit, seconds=3: it was still running")
    assert eventually(lambda: not is_alive(int((tmp_path / "child").read_text())))


def test_what_a_program_leaves_behind_ends_with_it(program, tmp_path):
    code = CHILD_WRITES_ITS_ID.replace("time.sleep(600)\n", "")  # the child alone goes on
    began = time.monotonic()
    assert run_program(program(code), tmp_path / "child").status == 0
    assert time.monotonic() - began < 60
    assert eventually(lambda: not is_alive(int((tmp_path / "child").read_text())))


def test_a_program_ends_with_the_process_that_runs_it(program, tmp_path):
    path, child = program(CHILD_WRITES_ITS_ID), tmp_path / "child"
    code = f"from course_lib import run_program; run_program({str(path)!r}, {str(child)!r})"
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, start_new_session=True) as owner:
        assert eventually(child.exists)
        os.killpg(owner.pid, signal.SIGKILL)  # as Jupyter does with a kernel
    assert eventually(lambda: not is_alive(int(child.read_text())))


def test_a_missing_file_is_refused_with_the_cure(tmp_path):
    with pytest.raises(CourseError, match=r"(?s)no program .*nowhere\.py.*Run the cell that writes it"):
        run_program(tmp_path / "nowhere.py")
