"""What a process said at its end, and errors that only texts have: real ones of TensorFlow, in tests/tf."""

import pytest

from course_lib.messages import ending, last_line, plain

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


@pytest.mark.parametrize(
    ("log", "said", "line"),
    [
        (CHAINED, "package.TheirError: two\n  lines", "TheirError: two"),
        ("usage: plan [-h]\nplan.py: error: no such plan\n", "plan.py: error: no such plan", None),
        ("Name a plan.\n2026-11-21 10:00:00.1: I tensor.cc:8] bye\n", "Name a plan.", None),
        ("I0000 00:00:17.9 5 port.cc:153] oneDNN is on\n", "", None),
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
