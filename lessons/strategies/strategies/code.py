"""The program of a training under the strategy that suits a situation, without this library.

Its sections are the files in `templates`, each with the empty lines after it.

Source: https://www.tensorflow.org/guide/distributed_training
"""

from __future__ import annotations

from importlib import resources
from string import Template

from course_lib.code.choices import REQUIREMENTS
from course_lib.i18n import _
from lessons.strategies.strategies import strategy as strategies
from lessons.strategies.strategies.strategy import Situation

TF_KERAS_REQUIREMENT = "tf-keras>=2.20,<2.22"

_MAKERS = {
    strategies.DEFAULT: ["default"],
    strategies.ONE_DEVICE: ["one_device"],
    strategies.MIRRORED: ["several_gpus", "mirrored"],
    strategies.CENTRAL_STORAGE: ["several_gpus", "central_storage"],
    strategies.MULTI_WORKER: ["multi_worker"],
    strategies.PARAMETER_SERVER: ["parameter_server"],
    strategies.TPU_STRATEGY: ["tpu"],
}
# How to train, without parameter servers and with them.
_FITS = ["fit"], ["endless_fit"]
_LOOPS = (
    ["model", "replica_step", "train_step", "every_batch"],
    ["model", "replica_step", "scheduled_step", "scheduled"],
)


def sections_of(situation: Situation) -> tuple[str, ...]:
    """Returns a program that trains as a situation asks: one unit, 100 equal examples, two epochs.

    It runs as it stands, also on a machine with CPUs alone: two virtual ones then stand in for several GPUs.
    Only TPUs nothing stands in for, and a cluster needs `TF_CONFIG` on each of its machines. Its parts are to
    be joined: many situations have equal ones.
    """
    values = {
        "tensorflow": REQUIREMENTS["TensorFlow"],
        "tf_keras": TF_KERAS_REQUIREMENT,
        **_comments(),
    }
    served = situation.strategy == strategies.PARAMETER_SERVER
    names = [
        "keras_3" if situation.keras == strategies.KERAS_3 else "tf_keras",
        *_MAKERS[situation.strategy],
        "endless_data" if served else "data",
        *(_LOOPS if situation.advised_loop == strategies.CUSTOM_LOOP else _FITS)[served],
    ]
    folder = resources.files(__package__) / "templates"
    texts = [(folder / f"{name}.txt").read_text("utf-8") for name in names]
    return tuple(Template(text).substitute(values) for text in texts)


def _comments() -> dict[str, str]:
    """Returns what the programs say in the reader's language."""
    return {
        "missing_device": _("A device that does not exist is accepted, and CPU:0 used."),
        "virtual_devices": _("Where there are no GPUs, two virtual CPUs stand in for them."),
        "nccl": _("NCCL adds up on GPUs; without them, one of the devices does."),
        "each_machine": _("Start it on each machine, with TF_CONFIG set, such as:"),
        "only_worker": _("Without TF_CONFIG it is the only worker."),
        "each_task": _("Start it once for each task, with TF_CONFIG set, such as:"),
        "chief_ends": _("The chief, which coordinates, ends; stop the others then."),
        "tpu_address": _("On Colab no address is needed; initializing the TPU clears its memory."),
        "five_examples": _("Five examples for each replica in every step."),
        "made_in_scope": _("Model and optimizer are made in the strategy's scope."),
        "built_in_scope": _("Model and optimizer are made, and built, in the strategy's scope."),
        "on_replica": _("Trains on one replica's part of a batch."),
        "on_batch": _("Trains on a batch, and returns its loss."),
        "each_worker": _("Each worker makes the data set for itself; nobody waits."),
    }
