"""The exercises of lesson 11 on places, data and parts; importing it registers that on the drill."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.errors import CourseError
from course_lib.exercises.answers import answered
from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import drawn, judge
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow
from course_lib.specs.mesh import MeshSpec
from lessons.lesson_11_many_processes import checks_drill  # noqa: F401 - it registers its exercise

Array = npt.NDArray[Any]
Batches = list[list[int]]
_MOST_BATCHES = 100  # a pipeline that repeats would never end


def _saves(tf_config: str) -> bool:
    config = json.loads(tf_config)
    job, index = config["task"]["type"], config["task"]["index"]
    return bool(index == 0 and job == ("chief" if "chief" in config["cluster"] else "worker"))


def _first_of_any_job(tf_config: str) -> bool:
    return bool(json.loads(tf_config)["task"]["index"] == 0)


def _only_a_chief(tf_config: str) -> bool:
    return bool(json.loads(tf_config)["task"]["type"] == "chief")


def _chief_or_worker_0(tf_config: str) -> bool:
    return _first_of_any_job(tf_config) and json.loads(tf_config)["task"]["type"] in ("chief", "worker")


def _draw_tf_config(random: np.random.Generator) -> tuple[str]:
    counts = {"chief": int(random.integers(2)), "worker": int(random.integers(1, 4)), "ps": 0}
    counts["ps"] = int(random.integers(3)) if counts["chief"] else 0
    addresses = iter(f"host{number}:12345" for number in range(10))
    order = [list(counts)[at] for at in random.permutation(len(counts))]  # JSON has none
    cluster = {job: [next(addresses) for _task in range(counts[job])] for job in order if counts[job]}
    tasks = [(job, index) for job, each in cluster.items() for index in range(len(each))]
    job, index = [*tasks, ("evaluator", 0)][int(random.integers(len(tasks) + 1))]
    return (json.dumps({"cluster": cluster, "task": {"type": job, "index": index}}),)


@exercise("11-saves", right=_saves)
def saves(answer: Callable[..., Any]) -> str | None:
    """Whether the task of a TF_CONFIG writes the checkpoints that are kept."""
    return judge(
        answer,
        _saves,
        drawn(_draw_tf_config),
        misconceptions={
            _first_of_any_job: _("The index alone does not tell: every job has a task 0."),
            _only_a_chief: _("In a cluster without a chief nobody would save."),
            _chief_or_worker_0: _("Two tasks would save where there is a chief: it and worker 0."),
        },
    )


def _cut(numbers: range, size: int) -> Batches:
    return [list(numbers[start : start + size]) for start in range(0, len(numbers), size)]


def _own_batches(count: int, batch_size: int, context: Any) -> Batches:
    mine = range(context.input_pipeline_id, count, context.num_input_pipelines)
    return _cut(mine, context.get_per_replica_batch_size(batch_size))


def _all_examples(count: int, batch_size: int, context: Any) -> Batches:
    return _cut(range(count), context.get_per_replica_batch_size(batch_size))


def _global_batches(count: int, batch_size: int, context: Any) -> Batches:
    return _cut(range(context.input_pipeline_id, count, context.num_input_pipelines), batch_size)


def _batches_in_turn(count: int, batch_size: int, context: Any) -> Batches:
    batches = _all_examples(count, batch_size, context)
    return batches[context.input_pipeline_id :: context.num_input_pipelines]


def _pipeline(numbers: Any, global_batch_size: int, context: Any) -> Any:
    mine = numbers.shard(context.num_input_pipelines, context.input_pipeline_id)
    return mine.batch(context.get_per_replica_batch_size(global_batch_size))


@exercise("11-pipeline", right=_pipeline, on_devices=True)
def pipeline(answer: Callable[..., Any]) -> str | None:
    """The batches that one worker makes for its replicas."""
    return judge(
        answer,
        _own_batches,
        drawn(_draw_worker, count=8),
        run=_batches_of,
        misconceptions={
            _all_examples: _("Every worker reads all examples: each is trained on once for each worker."),
            _global_batches: _("Each replica would get as many examples as a global batch has."),
            _batches_in_turn: _(
                "The workers take whole batches in turn. Here they take single examples in turn."
            ),
        },
    )


def _draw_worker(random: np.random.Generator) -> tuple[int, int, Any]:
    workers, replicas, size = (int(each) for each in random.integers(2, 4, 3))
    num_replicas = workers * replicas
    make = start_tensorflow().distribute.InputContext
    context = make(workers, int(random.integers(workers)), num_replicas)
    return 2 * num_replicas * size + workers + 1, num_replicas * size, context


def _batches_of(answer: Callable[..., Any], count: int, batch_size: int, context: Any) -> Batches:
    data = start_tensorflow().data
    found = answered(answer(data.Dataset.range(count), batch_size, context))
    if not isinstance(found, data.Dataset):
        raise CourseError(
            _("Your function returns no data set."),
            allowed=_("a tf.data.Dataset of batches"),
            cure=_("Return what `shard` and `batch` make of `numbers`."),
        )
    return [np.atleast_1d(batch).tolist() for batch in islice(found.as_numpy_iterator(), _MOST_BATCHES)]


def _local_parts(rows: Array, mesh: MeshSpec, device_ids: Sequence[int]) -> list[Array]:
    parts = np.split(rows.copy(), mesh.dim_size("batch"))
    return [parts[mesh.coords(device)["batch"]] for device in device_ids]


def _part_for_each_device(rows: Array, mesh: MeshSpec, device_ids: Sequence[int]) -> list[Array]:
    size = len(rows) // mesh.size
    return [rows[device * size : (device + 1) * size] for device in device_ids]


def _as_if_alone(rows: Array, mesh: MeshSpec, device_ids: Sequence[int]) -> list[Array]:
    size = len(rows) // len(device_ids)
    return [rows[at * size : (at + 1) * size] for at in range(len(device_ids))]


def _counted_from_0(rows: Array, mesh: MeshSpec, device_ids: Sequence[int]) -> list[Array]:
    return _local_parts(rows, mesh, range(len(device_ids)))


def _draw_client(random: np.random.Generator) -> tuple[Array, MeshSpec, list[int]]:
    batch, model = (2, 4)[int(random.integers(2))], (2, 4)[int(random.integers(2))]
    dims = [("batch", batch), ("model", model)]
    mesh = MeshSpec(dims if random.integers(2) else dims[::-1])
    rows = np.arange(batch * model * int(random.integers(1, 3)) * 2.0).reshape(-1, 2)
    clients = 2
    client, devices = int(random.integers(clients)), mesh.size // clients
    return rows, mesh, list(range(client * devices, (client + 1) * devices))


@exercise("11-local-parts", right=_local_parts)
def local_parts(answer: Callable[..., Any]) -> str | None:
    """What one client of a mesh packs of a batch."""
    return judge(
        answer,
        _local_parts,
        drawn(_draw_client),
        misconceptions={
            _part_for_each_device: _("Devices that differ along `model` only hold the same rows."),
            _as_if_alone: _("The rows are those of all devices of the mesh, not only of this client's."),
            _counted_from_0: _(
                "`device_ids` are numbers in the whole mesh: those of a second client begin later."
            ),
        },
    )
