"""Slurm's variables become TF_CONFIG; what TensorFlow's own resolvers do with them, and with Kubernetes."""

import json
from types import SimpleNamespace

import pytest
import tensorflow as tf

from course_lib.errors import CourseError
from lessons.lesson_11_many_processes.programs import multi_worker, slurm
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


def test_tasks_on_one_machine_get_ports_of_their_own(step):
    step(2, 3, "a,b", "2,1", "b")
    config = json.loads(slurm.variables(port=5000)["TF_CONFIG"])
    assert config["cluster"]["worker"] == ["a:5000", "a:5001", "b:5000"]
    assert config["task"] == {"type": "worker", "index": 2}


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


def test_strategies_read_it(step, monkeypatch):
    step(1, 2, "cn[1-2]", "1(x2)", "cn2")
    monkeypatch.setenv("TF_CONFIG", slurm.variables()["TF_CONFIG"])
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    assert (resolver.task_type, resolver.task_id) == ("worker", 1)
    assert resolver.cluster_spec().as_dict() == {"worker": ["cn1:2222", "cn2:2222"]}


def test_without_gpus_tensorflows_resolver_fails_by_itself(step, monkeypatch):
    step(0, 2, "cn[1-2]", "1(x2)", "cn1")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    with pytest.raises(ValueError, match="must not be zero"):
        tf.distribute.cluster_resolver.SlurmClusterResolver(gpus_per_node=0, gpus_per_task=0).cluster_spec()


def test_ten_machines_are_sorted_as_texts_by_tensorflow_and_refused_by_us(step):
    step(1, 10, "n[1-10]", "1(x10)", "n2")
    resolver = tf.distribute.cluster_resolver.SlurmClusterResolver(
        gpus_per_node=1, gpus_per_task=1, auto_set_gpu=False
    )
    assert resolver.cluster_spec().task_address("worker", 1) == "n10:8888"  # and this task runs on n2
    with pytest.raises(CourseError, match="n10"):
        slurm.variables()


def test_ten_machines_with_equally_many_digits_are_right(step):
    step(1, 10, "n[01-10]", "1(x10)", "n02")
    assert json.loads(slurm.variables()["TF_CONFIG"])["cluster"]["worker"][1] == "n02:2222"


@pytest.mark.parametrize("names", ["cn[1-2]-ib", "rack[1-2]n[1-3]"])
def test_names_that_tensorflow_cannot_read_are_told(step, names):
    step(0, 2, names, "1(x2)", "cn1-ib")
    with pytest.raises(CourseError, match=r"cannot read .* \w+\[1-2\]"):
        slurm.variables()


def test_machines_of_several_kinds_are_read(step):
    step(2, 3, "cn[08-09],gpu1", "1(x3)", "gpu1")
    assert json.loads(slurm.variables()["TF_CONFIG"])["cluster"]["worker"] == [
        "cn08:2222",
        "cn09:2222",
        "gpu1:2222",
    ]


def test_tasks_dealt_out_in_turn_are_refused(step):
    """As with `srun --distribution=cyclic`: TensorFlow counts along the machines."""
    step(1, 4, "cn[1-2]", "2(x2)", "cn2")
    with pytest.raises(CourseError, match="cn1"):
        slurm.variables()


def test_outside_of_slurm_the_missing_variables_are_named(monkeypatch):
    for name in slurm.READ:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(CourseError, match="SLURM_PROCID, SLURM_STEP_NUM_TASKS"):
        slurm.variables()


@pytest.mark.parametrize("jobs", [{}, {"worker": 3}, {"worker": 2, "ps": 0}, {"worker": 1}])
def test_jobs_that_are_not_the_tasks_are_refused(step, jobs):
    step(0, 2, "cn[1-2]", "1(x2)", "cn1")
    with pytest.raises(CourseError, match="2 tasks"):
        slurm.variables(jobs)


def test_tensorflows_resolver_of_kubernetes_answers_machines_and_no_task():
    pods = [
        SimpleNamespace(
            metadata=SimpleNamespace(name=f"pod-{index}"),
            status=SimpleNamespace(phase="Running", host_ip="10.0.0.1", pod_ip=f"10.244.0.{index}"),
        )
        for index in range(2)
    ]
    client = SimpleNamespace(list_pod_for_all_namespaces=lambda label_selector: SimpleNamespace(items=pods))
    resolver = tf.distribute.cluster_resolver.KubernetesClusterResolver(
        {"worker": ["job-name=multi-worker"]}, tf_server_port=2222, override_client=client
    )
    # Two pods on one machine get one address, and not that of either pod.
    assert resolver.cluster_spec().as_dict() == {"worker": ["10.0.0.1:2222", "10.0.0.1:2222"]}
    assert (resolver.task_type, resolver.task_id) == (None, None)


@pytest.mark.parametrize(("job", "index", "variables"), PROCESSES)
def test_the_resolver_reads_what_a_manifest_gives(job, index, variables, monkeypatch):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    assert (resolver.task_type, resolver.task_id) == (job, index)
    assert resolver.cluster_spec().as_dict() == json.loads(variables["TF_CONFIG"])["cluster"]


@pytest.mark.parametrize(("gpus", "implementation"), [([], "AUTO"), (["one", "two"], "NCCL")])
def test_with_gpus_the_collectives_go_through_nccl(gpus, implementation, monkeypatch):
    """By default TensorFlow hints "auto" to its kernels, which take NCCL for the hint "nccl" only."""
    made = []
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: gpus if kind == "GPU" else ["cpu"])
    monkeypatch.setattr(
        tf.distribute,
        "MultiWorkerMirroredStrategy",
        lambda communication_options: made.append(communication_options.implementation),
    )
    multi_worker.make_strategy()
    assert [each.value for each in made] == [implementation]
