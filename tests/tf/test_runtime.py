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
from course_lib.runtime import _quiet_native_logs
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


# A process that has imported TensorFlow and not started it, as where a reader's cell does so before `setup`.
# What it forks starts TensorFlow anew, without the seconds that the import takes.
IMPORTED = """
import os; os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
with _quiet_native_logs():
    import tensorflow as tf
for body in json.loads(sys.argv[1]):
    if not (child := os.fork()):
        exec(body)
        sys.stdout.flush()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    print("---", flush=True)
"""


@pytest.fixture(scope="module")
def said():
    """Returns what each of these bodies said, by name, having checked that stderr stays empty."""
    bodies = {name: textwrap.dedent(body) for name, body in BODIES.items()}
    command = [sys.executable, "-c", PRELUDE + IMPORTED, json.dumps(list(bodies.values()))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    parts = done.stdout.split("---\n")[:-1]
    return {name: list(map(json.loads, part.splitlines())) for name, part in zip(bodies, parts, strict=True)}


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


STARTED_FIRST = """
    course_lib.setup(devices=1)
    course_lib.start_tensorflow()
    for wanted in ({"language": "en"}, {"language": "ja"}, {"devices": 1, "kind": "GPU"}):
        try:
            course_lib.setup(**({"devices": 8} | wanted))
        except CourseError as error:
            say(str(error))
    from course_lib import MeshSpec
    from course_lib.devices import dtensor
    say(dtensor.create_mesh(MeshSpec([("x", 1)])).device_type())
    """


def test_tensorflow_that_started_first_is_named_with_the_cure_in_the_readers_language(said):
    english, japanese, gpus, still = said["started first"]
    for phrase in ("already runs with 1 × CPU; 8 × CPU were asked for", "Restart the kernel"):
        assert phrase in english
    for phrase in ("TensorFlow", "1", "8", "カーネルを再起動"):
        assert phrase in japanese
    for phrase in ("with 0 × GPU; 1 × GPU were asked for", "Restart the kernel"):
        assert phrase in gpus
    assert still == "CPU"


@pytest.mark.parametrize("devices", [0, -1, 65, 2.0, True, "8"])
def test_an_impossible_number_of_devices_is_refused(devices):
    import course_lib

    with pytest.raises(course_lib.CourseError, match="cannot be had") as caught:
        course_lib.setup(devices=devices)
    assert "1 to 64" in caught.value.allowed


def test_an_unknown_kind_of_device_is_refused():
    import course_lib

    with pytest.raises(course_lib.CourseError, match="no kind of device 'TPU'"):
        course_lib.setup(kind="TPU")


# A machine with two GPUs, as far as TensorFlow's lists go: what is chosen of them is noted, not used.
TWO_GPUS = """
    seen, gpus, really_there = [], ["first", "second"], tf.config.list_physical_devices
    tf.config.list_physical_devices = lambda kind: gpus if kind == "GPU" else really_there(kind)
    tf.config.set_visible_devices = lambda devices, kind: seen.append([kind, devices])
    really_running = tf.config.list_logical_devices
    chosen = lambda: [tf.config.LogicalDevice(name, "GPU") for name in seen[0][1]]
    tf.config.list_logical_devices = lambda kind=None: chosen() if kind == "GPU" else really_running(kind)
"""


FEWER_GPUS = (
    TWO_GPUS
    + """
    for language in ("en", "ja"):
        course_lib.setup(language=language, devices=3, kind="GPU")
        try:
            course_lib.start_tensorflow()
        except CourseError as error:
            say(str(error))
    course_lib.setup(devices=6)
    course_lib.start_tensorflow()
    say(seen)
    say(len(really_running("CPU")))
    """
)


def test_fewer_gpus_than_asked_for_says_what_was_found_and_cpus_still_do_without_any(said):
    english, japanese, seen, devices = said["fewer GPUs"]
    assert all(phrase in english for phrase in ("3 × GPU were asked for", "finds 2 × GPU", 'kind="CPU"'))
    assert all(phrase in japanese for phrase in ("3", "2", "見つかった"))
    assert seen == [["GPU", []]]
    assert devices == 6


BODIES = {"started first": STARTED_FIRST, "fewer GPUs": FEWER_GPUS}


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
