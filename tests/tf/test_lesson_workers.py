"""What `workers` says: its programs are those that it writes, and what it quotes of TensorFlow is so."""

import importlib.util
import json
import re
from pathlib import Path

import pytest
import tensorflow as tf
from tensorflow.python.data.experimental.ops import distribute

from tools.lesson.sources import Course

ROOT = Path(__file__).parents[2]
PLAIN = ROOT / "notebooks" / "plain"


@pytest.fixture(scope="module")
def written():
    """Returns the programs that the lesson's cells write, by their names."""
    found = {}
    for cell in Course.here().lesson("workers").cells:
        if match := re.match(r"%%writefile workers_programs/(\w+)\.py\n", cell.source):
            found[match[1]] = cell.source[match.end() :] + "\n"
    return found


def test_the_plain_programs_are_what_the_lesson_writes(written):
    worker = "\n\n".join(written[piece] for piece in ("start", "model", "loop"))
    assert worker == (PLAIN / "worker.py").read_text()
    for name in ("client", "coordinator"):
        assert written[name] == (PLAIN / f"{name}.py").read_text()


def part_of_worker_0(dataset, rule):
    """Returns what the first of two workers reads: MultiWorkerMirroredStrategy divides data sets so."""
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = rule
    return list(distribute._AutoShardDataset(dataset.with_options(options), 2, 0).as_numpy_iterator())


@pytest.mark.parametrize("rule", ["FILE", "AUTO"])
def test_one_file_is_not_divided_among_two_workers(tmp_path, rule):
    (tmp_path / "one.txt").write_text("0\n1\n")
    lines = tf.data.TextLineDataset([str(tmp_path / "one.txt")])
    with pytest.raises(tf.errors.InvalidArgumentError) as raised:
        part_of_worker_0(lines, tf.data.experimental.AutoShardPolicy[rule])
    quoted = (
        "Could not apply FILE based sharding: the dataset only has 1 file(s), "
        "which is not enough for the required 2 shards/workers."
    )
    assert quoted in str(raised.value)


def test_without_a_choice_files_are_divided(tmp_path):
    for number in range(2):
        (tmp_path / f"{number}.txt").write_text(f"{2 * number}\n{2 * number + 1}\n")
    lines = tf.data.TextLineDataset([str(tmp_path / f"{number}.txt") for number in range(2)])
    assert part_of_worker_0(lines, tf.data.experimental.AutoShardPolicy.AUTO) == [b"0", b"1"]


@pytest.fixture
def place():
    """Returns deploy's `place_in_slurm`, which is the lesson's."""
    path = ROOT / "deploy" / "slurm" / "place.py"
    spec = importlib.util.spec_from_file_location("place", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    cells = Course.here().lesson("workers").cells
    (cell,) = (cell.source for cell in cells if "def place_in_slurm" in cell.source)
    function = cell.partition("\n\n\n")[0]
    assert function.strip() in path.read_text()
    return module.place_in_slurm


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


def test_a_task_a_machine(step, place):
    step(1, 2, "cn[1-2]", "1(x2)", "cn2")
    assert json.loads(place()) == {
        "cluster": {"worker": ["cn1:12345", "cn2:12345"]},
        "task": {"type": "worker", "index": 1},
    }


@pytest.mark.parametrize(
    ("task", "job", "index"), [(0, "chief", 0), (1, "ps", 0), (2, "worker", 0), (3, "worker", 1)]
)
def test_jobs_are_given_out_in_the_order_of_their_names(step, place, task, job, index):
    step(task, 4, "only", "4", "only")
    config = json.loads(place({"worker": 2, "chief": 1, "ps": 1}))
    assert config["task"] == {"type": job, "index": index}
    counts = {name: len(found) for name, found in config["cluster"].items()}
    assert counts == {"chief": 1, "ps": 1, "worker": 2}


def test_ten_machines_are_sorted_as_texts_by_tensorflow(step, place):
    step(1, 10, "n[1-10]", "1(x10)", "n2")
    assert json.loads(place())["cluster"]["worker"][1] == "n10:12345"  # and this task runs on n2
