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
from course_lib.specs.plan import Plan, data_parallel, model_parallel
from lessons.lesson_11_many_processes.cluster_jobs import WORKER
from lessons.lesson_11_many_processes.cluster_spec import ClusterSpec, Place, Task
from lessons.lesson_11_many_processes.programs.limit import within
from lessons.lesson_11_many_processes.programs.lines import run, say
from lessons.lesson_11_many_processes.programs.peers import compare, explaining_lost_peers, facts_of
from lessons.lesson_11_many_processes.programs.steps import epochs, parser, take_steps

if TYPE_CHECKING:
    from course_lib.data.examples import Examples

NUM_DEVICES, CLASSES, HIDDEN = 8, 10, 48
PLANS: dict[str, Callable[[], Plan]] = {"data": data_parallel, "model": model_parallel}
LEARNING_RATE = 1e-3


def main() -> None:
    """Trains as the client that the environment says."""
    arguments = parsed()
    set_language(arguments.language)
    place = place_of_client()
    num_local = NUM_DEVICES // len(place.cluster.tasks)
    setup(language=arguments.language, devices=num_local)
    examples = mnist.load_mnist(num_train=arguments.examples, num_test=1).train
    if not place.others:
        for name in ("DTENSOR_JOBS", "DTENSOR_CLIENT_ID", "DTENSOR_JOB_NAME"):
            os.environ.pop(name, None)  # TensorFlow would look for devices of a cluster
    with within(arguments.wait, place.others):
        start_devices(num_local)
    with explaining_lost_peers(place.others):
        compare(place, facts_of(arguments, examples))
        train(PLANS[arguments.plan](), place, examples, arguments)


def place_of_client() -> Place:
    """Returns the place of the client that DTensor's variables name; alone without them."""
    jobs = os.environ.get("DTENSOR_JOBS", "localhost:1").split(",")
    return ClusterSpec({WORKER: jobs}).place(Task(WORKER, int(os.environ.get("DTENSOR_CLIENT_ID", "0"))))


def start_devices(num_local: int) -> None:
    """Starts the devices of this process, and lets them and those of all other clients know each other."""
    tf = importlib.import_module("tensorflow")
    tf.get_logger().setLevel("ERROR")
    tf.experimental.dtensor.initialize_accelerator_system("CPU", num_logical_cpu_devices=num_local)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # TensorFlow only takes note of it, and trains on


def train(plan: Plan, place: Place, examples: Examples, arguments: argparse.Namespace) -> None:
    """Trains the model of lessons 3 and 4, here on digits, with their code."""
    from course_lib.models import sentiment
    from course_lib.training import SGD, Settings, TrainingRun
    from course_lib.training.trainer import ModelTrainer
    from lessons.lesson_11_many_processes.checkpoints import ClientCheckpoints

    values = sentiment.initial_values(dims=(examples.features.shape[1], HIDDEN, CLASSES))
    model = sentiment.MLP(values, plan)
    tell_places(place, model.hidden_weight)
    trainer = ModelTrainer(model, SGD(LEARNING_RATE))
    settings = Settings(epochs(arguments), model.place.require_batch(arguments.batch))
    mesh, checkpoints = model.hidden_weight.layout.mesh, arguments.checkpoints
    folder = ClientCheckpoints(checkpoints, mesh, writes_names=place.saves) if checkpoints else None
    training = TrainingRun(trainer, examples, settings=settings, checkpoints=folder, steps_per_call=1)
    take_steps(training, place, arguments)
    say("done")


def tell_places(place: Place, weight: Any) -> None:
    """Says which devices of the mesh are this process's, and what each holds of a weight."""
    from course_lib.dtensor import unpack

    devices = weight.layout.mesh.local_device_ids()
    say(f"{place.task} of {len(place.cluster.tasks)}, devices {devices[0]} to {devices[-1]}")
    shapes = sorted({part.shape for part in unpack(weight)})
    say(f"hidden weight {' '.join(map(str, shapes))} in each")


def parsed() -> argparse.Namespace:
    """Returns the arguments of the command line."""
    made = parser(__doc__.partition("\n")[0])
    made.add_argument("--plan", choices=PLANS, default="data", help="how the tensors are laid out")
    return made.parse_args()


if __name__ == "__main__":
    run(main)
