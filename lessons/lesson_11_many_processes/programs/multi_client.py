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
from course_lib.i18n import set_language
from course_lib.runtime import setup
from course_lib.specs.plan import Plan, data_parallel, model_parallel, spatial_parallel
from lessons.lesson_11_many_processes.cluster.environment import without_proxy
from lessons.lesson_11_many_processes.programs import arguments as course_arguments
from lessons.lesson_11_many_processes.programs.agreement import compare, facts_of
from lessons.lesson_11_many_processes.programs.limit import within
from lessons.lesson_11_many_processes.programs.lines import run, say
from lessons.lesson_11_many_processes.programs.lost import explaining_lost_peers
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
    arguments = parsed()
    set_language(arguments.language)
    peers = clients_of(os.environ)
    num_local = NUM_DEVICES // peers.count
    setup(language=arguments.language, devices=num_local)
    os.environ.update(without_proxy(os.environ, peers.addresses.values()))
    examples = mnist.load(num_train=arguments.examples, num_test=1).train
    if not peers.others:
        for name in (CLIENTS, CLIENT, CLIENT_JOB):  # TensorFlow would look for devices of a cluster
            os.environ.pop(name, None)
    with within(arguments.wait, peers.others):
        start_devices(num_local)
    with explaining_lost_peers(peers.others):
        compare(peers, facts_of(arguments, examples))
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
    from lessons.lesson_11_many_processes.client_checkpoints import ClientCheckpoints

    values = sentiment.initial_values(dims=(examples.features.shape[1], HIDDEN, CLASSES))
    model = sentiment.MLP(values, plan)
    tell_places(peers, model.hidden_weight)
    trainer = ModelTrainer(model, SGD(LEARNING_RATE))
    settings = Settings(course_arguments.epochs(arguments), model.place.require_batch(arguments.batch))
    mesh, checkpoints = model.hidden_weight.layout.mesh, arguments.checkpoints
    folder = ClientCheckpoints(checkpoints, mesh, writes_names=peers.saves) if checkpoints else None
    training = TrainingRun(trainer, examples, settings=settings, checkpoints=folder, steps_per_call=1)
    take_steps(training, peers, arguments)
    say("done")


def tell_places(peers: Peers, weight: Any) -> None:
    """Says which devices of the mesh are this process's, and what each holds of a weight."""
    from course_lib.dtensor import unpack

    devices = weight.layout.mesh.local_device_ids()
    say(f"{peers.name} of {peers.count}, devices {devices[0]} to {devices[-1]}")
    shapes = sorted({part.shape for part in unpack(weight)})
    say(f"hidden weight {' '.join(map(str, shapes))} in each")


def parsed() -> argparse.Namespace:
    """Returns the arguments of the command line."""
    parser = course_arguments.parser(
        "Trains on one mesh over the devices of several processes, as the client that DTENSOR_CLIENT_ID says"
        " among the addresses in DTENSOR_JOBS; alone without them. Start it on each machine, with the same"
        " arguments and code."
    )
    parser.add_argument("--plan", choices=PLANS, default="data", help="how the tensors are laid out")
    return parser.parse_args()


if __name__ == "__main__":
    run(main)
