"""The first cell, in fresh processes: TensorFlow starts once, late, with the devices that were asked for."""

import json
import subprocess
import sys
import textwrap

import pytest

import course_lib

PRELUDE = """
import json, sys
import course_lib
def say(value): print(json.dumps(value))
def refused(call, **arguments):
    try:
        call(**arguments)
    except course_lib.CourseError as error:
        say(str(error))
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
    """And no method is taken for the input that a kernel gave the cell that started TensorFlow."""
    assert run(
        """
        import builtins
        class Kernel:
            def raw_input(self): ...
        kernel, before = Kernel(), builtins.input
        course_lib.setup(devices=8)
        say("tensorflow" in sys.modules)
        builtins.input = kernel.raw_input
        course_lib.start_tensorflow()
        builtins.input = before
        for _ in range(2):
            course_lib.setup(devices=8)
            say(len(course_lib.start_tensorflow().config.list_logical_devices("CPU")))
        from tensorflow.python.autograph.pyct import inspect_utils
        methods = [kernel.raw_input for _ in range(100_000)]  # one of them had its id
        say(sum(id(method) in inspect_utils._BUILTIN_FUNCTION_IDS for method in methods))
        """
    ) == [False, 8, 8, 0]


def test_devices_that_cannot_be_had_are_named_with_the_cure_and_those_there_are_serve_on():
    fewer, other, gpus, size = run(
        """
        course_lib.setup(devices=64, kind="GPU")
        with course_lib.runtime._quiet_native_logs():
            import tensorflow  # as a reader's own cell does: imported is not yet started
        refused(course_lib.start_tensorflow)
        course_lib.setup(devices=2)
        course_lib.start_tensorflow()
        refused(course_lib.setup, devices=8)
        refused(course_lib.setup, devices=64, kind="GPU")
        from course_lib.devices import dtensor
        say(dtensor.create_mesh(course_lib.MeshSpec([("x", 2)])).size)
        """
    )
    assert all(phrase in fewer for phrase in ("64 × GPU were asked for", "finds ", 'kind="CPU"'))
    assert "already runs with 2 × CPU; 8 × CPU were asked for" in other
    assert "64 × GPU were asked for" in gpus
    assert all("Restart the kernel" in each for each in (other, gpus))
    assert size == 2


@pytest.mark.parametrize("devices", [0, 65, 2.0, True, "8"])
def test_an_impossible_number_of_devices_is_refused(devices):
    with pytest.raises(course_lib.CourseError, match="cannot be had") as caught:
        course_lib.setup(devices=devices)
    assert "1 to 64" in caught.value.allowed


def test_an_unknown_kind_of_device_is_refused():
    with pytest.raises(course_lib.CourseError, match="no kind of device 'TPU'"):
        course_lib.setup(kind="TPU")


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


def test_a_program_that_never_calls_setup_keeps_the_devices_that_it_made():
    assert run(
        """
        from course_lib import runtime
        with runtime._quiet_native_logs():
            import tensorflow as tf
        (cpu,) = tf.config.list_physical_devices("CPU")
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 3)
        say(len(course_lib.start_tensorflow().config.list_logical_devices("CPU")))
        """
    ) == [3]
