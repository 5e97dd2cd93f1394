"""What lesson 11 quotes of TensorFlow."""

import pytest
import tensorflow as tf
from tensorflow.python.data.experimental.ops import distribute

from lessons.lesson_11_many_processes.programs.multi_worker import with_policy


def part_of_worker_0(dataset, policy):
    """Returns what the first of two workers reads: MultiWorkerMirroredStrategy divides data sets so."""
    return list(distribute._AutoShardDataset(with_policy(dataset, policy), 2, 0).as_numpy_iterator())


def test_one_file_is_not_divided_among_two_workers(tmp_path):
    (tmp_path / "one.txt").write_text("0\n1\n")
    lines = tf.data.TextLineDataset([str(tmp_path / "one.txt")])
    with pytest.raises(tf.errors.InvalidArgumentError) as raised:
        part_of_worker_0(lines, "file")
    quoted = (
        "Could not apply FILE based sharding: the dataset only has 1 file(s), "
        "which is not enough for the required 2 shards/workers."
    )
    assert quoted in str(raised.value)


def test_without_a_choice_files_are_divided(tmp_path):
    for number in range(2):
        (tmp_path / f"{number}.txt").write_text(f"{2 * number}\n{2 * number + 1}\n")
    names = [str(tmp_path / f"{number}.txt") for number in range(2)]
    assert part_of_worker_0(tf.data.TextLineDataset(names), "auto") == [b"0", b"1"]
    with pytest.raises(tf.errors.InvalidArgumentError, match="not enough"):
        part_of_worker_0(tf.data.TextLineDataset(names[:1]), "auto")
