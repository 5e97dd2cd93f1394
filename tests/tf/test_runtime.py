"""The first cell, in fresh processes: TensorFlow starts once, late, with the devices that were asked for."""

import json
import subprocess
import sys
import textwrap

import pytest

PRELUDE = """
import json, sys
import course_lib
from course_lib import CourseError
def say(value): print(json.dumps(value, ensure_ascii=False))
"""


def run(body: str) -> list:
    """Runs `body` in a fresh process and returns what it said, having checked that stderr stays empty."""
    code = PRELUDE + textwrap.dedent(body)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stderr == ""
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_setup_leaves_tensorflow_alone_until_it_is_asked_for_and_may_run_twice():
    assert run(
        """
        course_lib.setup(devices=8)
        say("tensorflow" in sys.modules)
        for _ in range(2):
            course_lib.setup(devices=8)
            say(len(course_lib.start_tensorflow().config.list_logical_devices("CPU")))
        """
    ) == [False, 8, 8]


def test_tensorflow_that_is_imported_but_not_started_still_gets_its_devices():
    assert run(
        """
        import os; os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
        with course_lib.runtime._quiet_native_logs():
            import tensorflow as tf
        course_lib.setup(devices=6)
        say(len(course_lib.start_tensorflow().config.list_logical_devices("CPU")))
        """
    ) == [6]


@pytest.mark.parametrize(
    ("language", "phrases"),
    [
        ("en", ["already runs with 1 virtual device, not 8", "Restart the kernel"]),
        ("ja", ["TensorFlow", "1", "8", "カーネルを再起動"]),
    ],
)
def test_tensorflow_that_started_first_is_named_with_the_cure(language, phrases):
    (message,) = run(
        f"""
        course_lib.setup(devices=1)
        course_lib.start_tensorflow()
        try:
            course_lib.setup(language={language!r}, devices=8)
        except CourseError as error:
            say(str(error))
        """
    )
    for phrase in phrases:
        assert phrase in message


@pytest.mark.parametrize("devices", [0, -1, 65, 2.0, True, "8"])
def test_an_impossible_number_of_devices_is_refused(devices):
    import course_lib

    with pytest.raises(course_lib.CourseError, match="cannot be made") as caught:
        course_lib.setup(devices=devices)
    assert "1 to 64" in caught.value.allowed


def test_colab_gets_its_widget_manager():
    assert run(
        """
        import types
        calls = []
        output = types.ModuleType("google.colab.output")
        output.enable_custom_widget_manager = lambda: calls.append("enabled")
        sys.modules["google.colab"] = types.ModuleType("google.colab")
        sys.modules["google.colab.output"] = output
        course_lib.setup(devices=8)
        say(calls)
        """
    ) == [["enabled"]]
