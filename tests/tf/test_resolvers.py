"""Slurm's variables become TF_CONFIG; what TensorFlow's own resolvers do with them, and with Kubernetes."""

import json

import pytest
import tensorflow as tf

from lessons.lesson_11_many_processes.programs import slurm
from tests import manifests

PROCESSES = [
    pytest.param(job, index, variables, id=f"{path.stem}-{job}-{index}")
    for path in manifests.MANIFESTS
    for job, index, variables in manifests.variables_of(path)
    if "TF_CONFIG" in variables
]


@pytest.fixture
def step(monkeypatch):
    """Makes the environment that Slurm gives a task."""

    def fake(task, tasks, machines, tasks_per_machine, machine):
        monkeypatch.setenv("SLURM_PROCID", str(task))
        monkeypatch.setenv("SLURM_STEP_NUM_TASKS", str(tasks))
        monkeypatch.setenv("SLURM_STEP_NODELIST", machines)
        monkeypatch.setenv("SLURM_STEP_TASKS_PER_NODE", tasks_per_machine)
        monkeypatch.setenv("SLURMD_NODENAME", machine)

    return fake


@pytest.mark.parametrize(("task", "machine"), [(0, "cn1"), (1, "cn2")])
def test_a_task_a_machine(step, task, machine):
    step(task, 2, "cn[1-2]", "1(x2)", machine)
    found = slurm.variables()
    assert json.loads(found["TF_CONFIG"]) == {
        "cluster": {"worker": ["cn1:2222", "cn2:2222"]},
        "task": {"type": "worker", "index": task},
    }
    assert found["DTENSOR_JOBS"] == "cn1:2222,cn2:2222"
    assert found["DTENSOR_CLIENT_ID"] == str(task)


@pytest.mark.parametrize(
    ("task", "job", "index"), [(0, "chief", 0), (1, "ps", 0), (2, "worker", 0), (3, "worker", 1)]
)
def test_jobs_are_given_out_in_the_order_of_their_names(step, task, job, index):
    step(task, 4, "only", "4", "only")
    config = json.loads(slurm.variables({"worker": 2, "chief": 1, "ps": 1})["TF_CONFIG"])
    assert config["task"] == {"type": job, "index": index}
    assert {name: len(found) for name, found in config["cluster"].items()} == {
        "chief": 1,
        "ps": 1,
        "worker": 2,
    }


def test_ten_machines_are_sorted_as_texts_by_tensorflow(step):
    step(1, 10, "n[1-10]", "1(x10)", "n2")
    resolver = tf.distribute.cluster_resolver.SlurmClusterResolver(
        gpus_per_node=1, gpus_per_task=1, auto_set_gpu=False
    )
    assert resolver.cluster_spec().task_address("worker", 1) == "n10:8888"  # and this task runs on n2


@pytest.mark.parametrize(("job", "index", "variables"), PROCESSES)
def test_the_resolver_reads_what_a_manifest_gives(job, index, variables, monkeypatch):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    assert (resolver.task_type, resolver.task_id) == (job, index)
    assert resolver.cluster_spec().as_dict() == json.loads(variables["TF_CONFIG"])["cluster"]
