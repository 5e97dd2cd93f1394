"""What `workers` says: its programs are those that it writes, and what it quotes of TensorFlow is so."""

import json
import re
import runpy
from pathlib import Path

import pytest
import tensorflow as tf
from tensorflow.python.data.experimental.ops import distribute

from tools.lesson.sources import Course

ROOT = Path(__file__).parents[2]
PLAIN = ROOT / "notebooks" / "plain"


def test_the_plain_programs_are_what_the_lesson_writes():
    written = {}
    for cell in Course.here().lesson("workers").cells:
        if match := re.match(r"%%writefile workers_programs/(\w+)\.py\n", cell.source):
            written[match[1]] = cell.source[match.end() :] + "\n"
    written["worker"] = "\n\n".join(written[piece] for piece in ("start", "model", "loop"))
    for name in ("worker", "client", "coordinator"):
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


def test_deploys_place_is_the_lessons_and_tensorflow_sorts_ten_machines_as_texts(monkeypatch):
    path = ROOT / "deploy" / "slurm" / "place.py"
    (cell,) = (each.source for each in Course.here().lesson("workers").cells if each.cell_id == "slurm")
    assert cell.partition("\n\n\n")[0].strip() in path.read_text()
    for name, value in (
        ("SLURM_PROCID", "1"),
        ("SLURM_STEP_NUM_TASKS", "10"),
        ("SLURM_STEP_NODELIST", "n[1-10]"),
        ("SLURM_STEP_TASKS_PER_NODE", "1(x10)"),
        ("SLURMD_NODENAME", "n2"),
    ):
        monkeypatch.setenv(name, value)
    place = runpy.run_path(str(path))["place_in_slurm"]
    assert json.loads(place())["cluster"]["worker"][1] == "n10:12345"  # and this task runs on n2
