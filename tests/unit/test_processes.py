"""Programs in processes of their own: what ended each, in which words, and that no process is left."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from course_lib import CourseError
from course_lib.messages import ending, last_line, plain
from course_lib.processes import died, run
from tests.alive import CHILD_WRITES_ITS_ID, eventually, is_alive

ROOT = Path(__file__).parents[2]


def child_of(folder):
    return int((folder / "child").read_text())


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("raise ValueError('no such plan')", "ValueError: no such plan"),
        ("import sys; sys.exit('Name a plan.')", "Name a plan."),
        (f"import os; os.kill(os.getpid(), {signal.SIGSEGV})", "SIGSEGV"),
        ("import os; os.write(2, b'F0 t.cc:8] Check failed: 1 == 2'); os.abort()", "Check failed: 1 == 2"),
    ],
)
def test_errors_signals_and_failed_checks_are_named(code, why):
    done = run([sys.executable, "-c", f"print('step 1')\n{code}"])
    assert (done.stdout, died(done.returncode, done.stderr)) == ("step 1\n", why)


def test_a_program_that_hangs_is_ended_with_what_it_started(tmp_path):
    with pytest.raises(CourseError, match="still ran after 3 s"):
        run([sys.executable, "-c", CHILD_WRITES_ITS_ID, tmp_path / "child"], seconds=3)
    assert eventually(lambda: not is_alive(child_of(tmp_path)))


def test_what_a_program_leaves_behind_ends_with_it(tmp_path):
    code = CHILD_WRITES_ITS_ID.replace("time.sleep(600)\n", "")  # the child alone goes on
    assert run([sys.executable, "-c", code, tmp_path / "child"]).returncode == 0
    assert eventually(lambda: not is_alive(child_of(tmp_path)))


def test_a_program_ends_with_the_process_that_runs_it(tmp_path):
    child = tmp_path / "child"
    command = [sys.executable, "-c", CHILD_WRITES_ITS_ID, str(child)]
    code = f"from course_lib.processes import run; run({command})"
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, start_new_session=True) as owner:
        assert eventually(lambda: child.exists() and child.read_text())
        os.killpg(owner.pid, signal.SIGKILL)  # as Jupyter does with a kernel
    assert eventually(lambda: not is_alive(child_of(tmp_path)))


# What a process said at its end, and errors that only texts have: real ones of TensorFlow, in tests/tf

CHAINED = """Traceback (most recent call last):
  File x
KeyError: 1

During handling of the above

Traceback (most recent call last):
  File "y"
    z
package.TheirError: two
  lines
"""
FINALIZED_LATER = """Exception ignored in: <function Late.__del__ at 0x7fe2>
Traceback (most recent call last):
  File "y", line 4, in __del__
TypeError: 'NoneType' object is not callable
"""


@pytest.mark.parametrize(
    ("log", "said", "line"),
    [
        (CHAINED + FINALIZED_LATER, "package.TheirError: two\n  lines", "TheirError: two"),
        ("usage: plan [-h]\nplan.py: error: no such plan\n", "plan.py: error: no such plan", None),
        ("Name a plan.\n2026-11-21 10:00:00.1: I tensor.cc:8] bye\n", "Name a plan.", None),
        ("I0000 00:00:17.9 5 port.cc:153] oneDNN is on\n" + FINALIZED_LATER, "", None),
    ],
)
def test_the_end_of_a_process_is_its_last_exception_or_its_last_words(log, said, line):
    assert ending(log) == said
    assert plain(ending(log)) == (said if line is None else line)


def test_the_kind_stands_alone_where_there_is_no_message_and_long_messages_are_cut():
    assert last_line(AssertionError()) == "AssertionError"
    assert len(last_line(ValueError("x" * 1000))) == len("ValueError: ") + 300
    assert last_line(ValueError("x" * 1000), 3) == "ValueError: xx…"


def test_an_error_that_autograph_wrapped_twice_is_the_innermost():
    within = (
        '    in user code:\n\n        File "b.py", line 2, in g  *\n            h()\n\n        KeyError: 1\n'
    )
    error = ValueError(
        f'in user code:\n\n    File "a.py", line 1, in f  *\n        g()\n\n    ValueError:{within[3:]}'
    )
    assert last_line(error) == "KeyError: 1"
