"""The first cell of every lesson: language, seeds, quiet logs, virtual devices before TensorFlow starts."""

from __future__ import annotations

import contextlib
import importlib
import os
import random
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np

from course_lib import i18n
from course_lib.errors import CourseError, one_of, whole_number
from course_lib.i18n import _

MAX_DEVICES = 64
_request = {"devices": 1, "seed": 0}

# TensorFlow's own variables, so that a reader's choice counts. Two operations at a time, one thread in each:
# with several virtual devices on few cores, more threads only wait for each other (chosen by trial with
# lesson 03's training). Without oneDNN, sums differ less from one kind of CPU to another.
_ENVIRONMENT = {
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TF_ENABLE_ONEDNN_OPTS": "0",
    "TF_NUM_INTEROP_THREADS": "2",
    "TF_NUM_INTRAOP_THREADS": "1",
}


def setup(*, language: str = i18n.SOURCE_LANGUAGE, devices: int = 8, seed: int = 0) -> None:
    """Prepares the notebook: language, seeds, quiet logs, and how many virtual CPUs TensorFlow will get.

    TensorFlow is not imported here, because that takes seconds: `start_tensorflow` does it when a lesson
    first needs it. Calling `setup` again is safe as long as the number of devices stays the same.

    Args:
        language: one of `i18n.languages()`.
        devices: the number of virtual CPUs.
        seed: for Python, NumPy and, once it starts, TensorFlow.

    Raises:
        CourseError: an unknown language, an impossible number of devices, or TensorFlow already runs
            with another number of devices.
    """
    _check_language(language)
    _check_devices(devices)
    i18n.set_language(language)
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    _use_japanese_font(language)
    _enable_colab_widgets()
    _request.update(devices=devices, seed=seed)
    _set_seeds(seed)
    if _tensorflow_has_started():
        _require_devices(sys.modules["tensorflow"], devices)


def start_tensorflow() -> Any:
    """Imports TensorFlow with the virtual CPUs that `setup` asked for, and returns the module.

    The first call takes 5 to 10 s. Later calls return at once.

    Raises:
        CourseError: TensorFlow was started before, with another number of devices.
    """
    with _quiet_native_logs():
        tf = importlib.import_module("tensorflow")
        _start(tf)
    _require_devices(tf, _request["devices"])
    return tf


def _start(tf: Any) -> None:
    if not _tensorflow_has_started():
        cpus = tf.config.list_physical_devices("CPU")
        virtual = [tf.config.LogicalDeviceConfiguration()] * _request["devices"]
        tf.config.set_logical_device_configuration(cpus[0], virtual)
        tf.get_logger().setLevel("ERROR")
        tf.random.set_seed(_request["seed"])
        tf.config.list_logical_devices()


@contextlib.contextmanager
def _quiet_native_logs() -> Iterator[None]:
    """Keeps what native code writes to stderr out of the notebook, unless the block fails.

    TensorFlow 2.21 writes a few lines about absent GPU drivers before it reads TF_CPP_MIN_LOG_LEVEL.
    """
    sys.stderr.flush()
    with tempfile.TemporaryFile() as log:
        saved = os.dup(2)
        os.dup2(log.fileno(), 2)
        try:
            yield
        except BaseException:
            log.seek(0)
            os.write(saved, log.read())
            raise
        finally:
            os.dup2(saved, 2)
            os.close(saved)


def _check_language(language: str) -> None:
    one_of(
        language,
        i18n.languages(),
        _("The course has no language {language!r}.", language=language),
        cure=_("Set LANGUAGE in the first cell to one of these."),
    )


def _check_devices(devices: int) -> None:
    whole_number(
        devices,
        _("{devices!r} virtual devices cannot be made.", devices=devices),
        least=1,
        most=MAX_DEVICES,
        cure=_("The lessons use 8."),
    )


def _tensorflow_has_started() -> bool:
    """Whether TensorFlow's devices are fixed: imported is not yet started."""
    if "tensorflow" not in sys.modules:
        return False
    context = importlib.import_module("tensorflow.python.eager.context")
    return bool(context.context()._initialized)  # no public way to ask without starting it


def _require_devices(tf: Any, devices: int) -> None:
    started_with = len(tf.config.list_logical_devices("CPU"))
    if started_with != devices:
        raise CourseError(
            _(
                "TensorFlow already runs with {started_with} virtual devices; {devices} were asked for.",
                started_with=started_with,
                devices=devices,
            ),
            allowed=_("the number of devices that TensorFlow was started with"),
            cure=_("Restart the kernel and run the first cell before anything else."),
        )


def _set_seeds(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)


def _use_japanese_font(language: str) -> None:
    if language == "ja":
        importlib.import_module("matplotlib_fontja").japanize()


def _enable_colab_widgets() -> None:
    if "google.colab" in sys.modules:
        importlib.import_module("google.colab.output").enable_custom_widget_manager()
