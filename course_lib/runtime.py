"""The first cell of every lesson: language, seeds, quiet logs, devices before TensorFlow starts."""

from __future__ import annotations

import builtins
import contextlib
import os
import random
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from course_lib import i18n
from course_lib.errors import CourseError, one_of, whole_number
from course_lib.i18n import _

MAX_DEVICES = 64
KINDS = ("CPU", "GPU")


@dataclass
class _Request:
    """What `setup` asked for."""

    devices: int = 0  # 0 before `setup`: then they are as the reader's own program made them
    kind: str = "CPU"
    seed: int = 0


_request = _Request()
_built_in: list[object] = []  # kept as long as TensorFlow knows them by their ids

# TensorFlow's own variables, so that a reader's choice counts. Two operations at a time, one thread in each:
# with several virtual devices on few cores, more threads only wait for each other (chosen by trial with
# `one_step`'s training). Without oneDNN, sums differ less from one kind of CPU to another.
_ENVIRONMENT = {
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TF_ENABLE_ONEDNN_OPTS": "0",
    "TF_NUM_INTEROP_THREADS": "2",
    "TF_NUM_INTRAOP_THREADS": "1",
}


def setup(
    *, language: str = i18n.SOURCE_LANGUAGE, devices: int = 8, kind: str = "CPU", seed: int = 0
) -> None:
    """Prepares the notebook: language, seeds, quiet logs, and which devices TensorFlow will get.

    TensorFlow is not imported here, because that takes seconds: `start_tensorflow` does it when a lesson
    first needs it. Calling `setup` again is safe as long as the devices stay the same.

    Args:
        language: one of `i18n.languages()`.
        devices: the number of devices.
        kind: "CPU" for virtual ones, which any machine has; "GPU" for the machine's own.
        seed: for Python, NumPy and, once it starts, TensorFlow.

    Raises:
        CourseError: an unknown language or kind, an impossible number of devices, or TensorFlow already runs
            with other devices.
    """
    one_of(
        language,
        i18n.languages(),
        _("The course has no language {language!r}.", language=language),
        cure=_("Set LANGUAGE in the first cell to one of these."),
    )
    i18n.set_language(language)
    one_of(
        kind,
        KINDS,
        _("There is no kind of device {kind!r}.", kind=kind),
        cure=_('Leave it out: the lessons use "CPU", which every machine has.'),
    )
    whole_number(
        devices,
        _("{devices!r} devices cannot be had.", devices=devices),
        least=1,
        most=MAX_DEVICES,
        cure=_("The lessons use 8."),
    )
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    use_wide_font()
    if "google.colab" in sys.modules:
        from google.colab.output import enable_custom_widget_manager

        enable_custom_widget_manager()
    if tensorflow_has_started():
        _require_devices(sys.modules["tensorflow"], devices, kind)
    _request.devices, _request.kind, _request.seed = devices, kind, seed
    random.seed(seed)
    np.random.seed(seed)


def start_tensorflow() -> Any:
    """Imports TensorFlow with the devices that `setup` asked for, and returns the module.

    The first call takes 5 to 10 s. Later calls return at once.

    Raises:
        CourseError: TensorFlow was started before, with other devices, or the machine has fewer GPUs.
    """
    # When imported, TensorFlow 2.21 writes down the ids of all built-in functions, and AutoGraph compiles
    # none of them. One is `input`, which a kernel makes anew for each cell: were it gone, its id would go
    # to another object, and a reader's method could be taken for a built-in function.
    if not _built_in:
        _built_in.extend(vars(builtins).values())
    with _quiet_native_logs():
        import tensorflow as tf

        if not tensorflow_has_started():
            if _request.devices:
                _choose_devices(tf)
            tf.get_logger().setLevel("ERROR")
            tf.random.set_seed(_request.seed)
            tf.config.list_logical_devices()
    _request.devices = _request.devices or len(tf.config.list_logical_devices("CPU"))
    _require_devices(tf, _request.devices, _request.kind)
    return tf


def device_kind() -> str:
    """Returns the kind of the devices that meshes are made of: what `setup` was given."""
    return _request.kind


def num_devices() -> int:
    """Returns how many devices there are to make meshes of: what `setup` was given, if it was called."""
    return _request.devices or 1


def _choose_devices(tf: Any) -> None:
    """Tells TensorFlow which devices to have: GPUs only where they were asked for, else it would use them.

    A GPU is not cut into virtual ones: NCCL refuses two participants on one. Beside GPUs there are as many
    virtual CPUs, because DTensor keeps a mesh of CPUs beside each mesh of GPUs.

    Source: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/usage/communicators.html.
    """
    wanted = _request.devices if _request.kind == "GPU" else 0
    gpus = tf.config.list_physical_devices("GPU")
    if len(gpus) < wanted:
        raise CourseError(
            _(
                "{wanted} × GPU were asked for, but TensorFlow finds {found} × GPU on this machine.",
                found=len(gpus),
                wanted=wanted,
            ),
            allowed=_(
                "as many GPUs as there are, or any number of virtual CPUs up to {most}", most=MAX_DEVICES
            ),
            cure=_('Write kind="CPU", or ask for fewer GPUs.'),
        )
    tf.config.set_visible_devices(gpus[:wanted], "GPU")
    cpus = tf.config.list_physical_devices("CPU")
    virtual = [tf.config.LogicalDeviceConfiguration()] * _request.devices
    tf.config.set_logical_device_configuration(cpus[0], virtual)


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


def tensorflow_has_started() -> bool:
    """Whether TensorFlow's devices are fixed: imported is not yet started."""
    if "tensorflow" not in sys.modules:
        return False
    from tensorflow.python.eager.context import context

    return bool(context()._initialized)  # no public way to ask without starting it


def _require_devices(tf: Any, devices: int, kind: str) -> None:
    # In a cluster TensorFlow lists the devices of all processes.
    local = {device.name.rpartition("device:")[2] for device in tf.config.list_logical_devices(kind)}
    if len(local) != devices:
        raise CourseError(
            _(
                "TensorFlow already runs with {started_with} × {kind}; {devices} × {kind} were asked for.",
                kind=kind,
                started_with=len(local),
                devices=devices,
            ),
            allowed=_("the devices that TensorFlow was started with"),
            cure=_("Restart the kernel and run the first cell before anything else."),
        )


def use_wide_font() -> None:
    """Has matplotlib write the reader's language, if that is one of wide characters."""
    if any(map(i18n.is_wide, _("Right."))):  # the reader's language is written in wide characters
        import matplotlib_fontja

        matplotlib_fontja.japanize()
