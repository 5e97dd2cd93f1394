"""Trains on one mesh over the devices of several processes, as the client that DTENSOR_CLIENT_ID says.

    python -m lessons.lesson_11_many_processes.programs.multi_client --plan model --steps 20 --checkpoints DIR

Start it on each machine, with the same arguments and code. DTENSOR_JOBS names the addresses of all clients,
such as host0:12345,host1:12345, DTENSOR_CLIENT_ID which of them this process is, and DTENSOR_JOB_NAME what
they are called together, such as worker; without them it is alone. The mesh has eight devices: those of two
clients have four in each. Each client writes its shards of a checkpoint into the folder that all share; any
number of clients goes on from it.

Source: https://www.tensorflow.org/api_docs/python/tf/experimental/dtensor/initialize_accelerator_system
"""

from __future__ import annotations

import argparse
import importlib
import os
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from course_lib.data import mnist
from course_lib.i18n import _
from course_lib.runtime import setup
from course_lib.specs.plan import Plan, data_parallel, model_parallel, spatial_parallel
from lessons.lesson_11_many_processes.cluster.program import without_proxy
from lessons.lesson_11_many_processes.programs import arguments as course_arguments
from lessons.lesson_11_many_processes.programs.facts import facts_of, newest, shared
from lessons.lesson_11_many_processes.programs.lines import run, say
from lessons.lesson_11_many_processes.programs.meeting import meet
from lessons.lesson_11_many_processes.programs.peers import explaining_lost_peers, within
from lessons.lesson_11_many_processes.programs.places import CLIENT, CLIENT_JOB, CLIENTS, Peers, clients_of
from lessons.lesson_11_many_processes.programs.steps import take_steps

if TYPE_CHECKING:
    from course_lib.data.examples import Examples

NUM_DEVICES, CLASSES, HIDDEN = 8, 10, 48
PLANS: dict[str, Callable[[], Plan]] = {
    "data": data_parallel,
    "model": model_parallel,
    "spatial": spatial_parallel,
}
LEARNING_RATE = 1e-3


def main() -> None:
    """Trains as the client that the environment says."""
    course_arguments.speak()
    arguments = _arguments()
    peers = clients_of(os.environ, NUM_DEVICES)
    num_local = NUM_DEVICES // peers.count
    setup(language=arguments.language, devices=num_local)
    os.environ.update(without_proxy(os.environ, peers.addresses.values()))
    examples = mnist.load(num_train=arguments.examples, num_test=1).train
    if not peers.others:
        for name in (CLIENTS, CLIENT, CLIENT_JOB):  # TensorFlow would look for devices of a cluster
            os.environ.pop(name, None)
    facts = facts_of(peers.addresses, shared(arguments), examples, newest(arguments.checkpoints))
    meet(peers.name, peers.addresses, facts, arguments.wait)
    with within(arguments.start, peers.others):
        start_devices(num_local)
    with explaining_lost_peers(peers.others):
        train(PLANS[arguments.plan](), peers, examples, arguments)


def start_devices(num_local: int) -> None:
    """Starts the devices of this process, and lets them and those of all other clients know each other."""
    tf = importlib.import_module("tensorflow")
    tf.get_logger().setLevel("ERROR")
    tf.experimental.dtensor.initialize_accelerator_system("CPU", num_logical_cpu_devices=num_local)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # TensorFlow only takes note of it, and trains on


def train(plan: Plan, peers: Peers, examples: Examples, arguments: argparse.Namespace) -> None:
    """Trains the model of lessons 3 and 4, here on digits, with their code."""
    from course_lib.models import sentiment
    from course_lib.training import SGD, Settings, TrainingRun
    from course_lib.training.trainer import ModelTrainer

    values = sentiment.initial_values(dims=(examples.features.shape[1], HIDDEN, CLASSES))
    model = sentiment.MLP(values, plan)
    say(f"{peers.name} of {peers.count}, {tell_places(model)}")
    say(tell_shapes(model))
    trainer = ModelTrainer(model, SGD(LEARNING_RATE))
    settings = Settings(course_arguments.epochs(arguments), model.place.require_batch(arguments.batch))
    folder = _folder(arguments.checkpoints, model, peers.saves)
    training = TrainingRun(trainer, examples, settings=settings, checkpoints=folder, steps_per_call=1)
    take_steps(training, peers, arguments)
    say("done")


def tell_places(model: Any) -> str:
    """Returns which devices of the mesh are this process's."""
    devices = model.hidden_weight.layout.mesh.local_device_ids()
    return f"devices {devices[0]} to {devices[-1]}"


def tell_shapes(model: Any) -> str:
    """Returns what each device of this process holds of the hidden weight."""
    from course_lib.dtensor import unpack

    shapes = sorted({part.shape for part in unpack(model.hidden_weight)})
    return f"hidden weight {' '.join(map(str, shapes))} in each"


def _folder(checkpoints: str | None, model: Any, saves: bool) -> Any:
    from lessons.lesson_11_many_processes.client_checkpoints import ClientCheckpoints

    if checkpoints is None:
        return None
    return ClientCheckpoints(checkpoints, model.hidden_weight.layout.mesh, writes_names=saves)


def _arguments() -> argparse.Namespace:
    parser = course_arguments.parser(
        _(
            "Trains on one mesh over the devices of several processes, as the client that DTENSOR_CLIENT_ID"
            " says among the addresses in DTENSOR_JOBS; alone without them. Start it on each machine, with"
            " the same arguments and code."
        )
    )
    course_arguments.add_hold(parser)
    plan = _("how the tensors are laid out: {names} (data)", names=_(", ").join(PLANS))
    parser.add_argument("--plan", type=course_arguments.named("--plan", PLANS), default="data", help=plan)
    arguments: argparse.Namespace = parser.parse_args()
    return arguments


if __name__ == "__main__":
    run(main)
