"""What `workers` says: its program is the one that it writes, and what it quotes of TensorFlow is so."""

import re

import pytest
import tensorflow as tf
from tensorflow.python.data.experimental.ops import distribute

from lessons.strategies.launcher import Cluster
from tests.course import COURSE

PLAIN = COURSE.root / "notebooks" / "plain" / "workers.py"


def written():
    """Returns the files that the lesson writes, by name."""
    found = {}
    for cell in COURSE.lesson("workers").cells:
        if match := re.match(r"%%writefile workers_programs/(\w+)\.py\n", cell.source):
            found[match[1]] = cell.source[match.end() :] + "\n"
    return found


def test_the_plain_program_is_what_the_lesson_writes():
    assert written()["workers"] == PLAIN.read_text()


def test_the_finished_program_counts_the_examples_and_refuses_another_number_of_workers():
    pieces = [written()[piece] for piece in ("start", "model", "data", "step", "loop")]
    lines, finished = "\n".join(pieces).splitlines(), PLAIN.read_text().splitlines()[4:]
    assert set(lines) - set(finished) == {"        loss = tf.reduce_sum(losses) / BATCH"}
    assert [line for line in finished if line not in lines and "faulthandler" not in line] == [
        'parser.add_argument("--replicas", type=int, help="refuse others")',
        "if args.replicas and workers != args.replicas:",
        '    raise ValueError(f"{workers} of {args.replicas} replicas")',
        "    context = tf.distribute.get_replica_context()",
        '    examples = context.all_reduce("SUM", tf.shape(y)[0])',
        '        loss = tf.reduce_sum(losses) / tf.cast(examples, "float32")',
    ]


def part_of(dataset, rule, worker=0, workers=2):
    """Returns what a worker reads: MultiWorkerMirroredStrategy divides data sets so."""
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = rule
    shard = distribute._AutoShardDataset(dataset.with_options(options), workers, worker)
    return [int(line) for line in shard.as_numpy_iterator()]


def test_files_are_divided_without_a_choice_and_unevenly_where_they_do_not_divide(tmp_path):
    paths, rules = [tmp_path / f"{number}.txt" for number in range(4)], tf.data.experimental.AutoShardPolicy
    for first, path in enumerate(paths):
        path.write_text("".join(f"{4 * first + at}\n" for at in range(4)))
    lines = tf.data.TextLineDataset([str(path) for path in paths])
    assert part_of(lines, rules.AUTO) == [0, 1, 2, 3, 8, 9, 10, 11]
    assert [len(part_of(lines, rules.FILE, worker, 3)) for worker in range(3)] == [8, 4, 4]


def by_fit(examples):
    """Returns the losses of the lesson's `fit` on one device, which knows nothing of shares and divisors."""
    (cell,) = [cell for cell in COURSE.lesson("workers").cells if cell.cell_id == "fit"]
    names = {"tf": tf}
    exec(cell.source.replace("101", str(examples)).replace("range(2)", "range(3)"), names)
    return {step: names["by_fit"][step] for step in range(1, 9)}


@pytest.mark.parametrize(
    ("workers", "examples"),
    [
        *(pytest.param(*case, marks=pytest.mark.drill) for case in [(2, 97), (3, 101)]),
        *(pytest.param(*case, marks=pytest.mark.drill_all) for case in [(2, 96), (2, 101), (3, 96), (3, 97)]),
    ],
)
def test_any_number_of_workers_takes_the_steps_of_one_process_and_of_fit(examples, workers):
    def run(count):
        command = [PLAIN, "--examples", examples, "--steps", "8", "--replicas", count]
        with Cluster(command, {"worker": count}) as cluster:
            return cluster.wait().tasks

    alone = run(1)[0].losses
    assert alone == pytest.approx(by_fit(examples), abs=1e-6)
    assert [task.losses for task in run(workers)] == [pytest.approx(alone, abs=1e-6)] * workers


def test_a_forked_program_is_as_good_as_a_new_process(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("""import os, sys
import numpy as np
import tensorflow as tf
print(__name__, sys.argv[1], os.environ["ONE"], np.random.rand(), tf.random.uniform(()).numpy(), sep=",")
raise ValueError("last words")
""")
    cluster = Cluster([program, "argument"], {"worker": 2})
    for task in ("worker 0", "worker 1"):
        cluster.set_variables(task, {"ONE": task})
    with cluster:
        ends = cluster.wait().tasks
    tasks = [["__main__", "argument", task] for task in ("worker 0", "worker 1")]
    said = [end.lines[0].split(",") for end in ends]
    assert [words[:3] for words in said] == tasks
    assert len({number for words in said for number in words[3:]}) == 4
    assert [end.error for end in ends] == ["ValueError"] * 2
    traceback = cluster.log("worker 0").partition("Traceback")[2].splitlines()
    where = [line for line in traceback if line.startswith("  File")]
    assert where == [f'  File "{program}", line 5, in <module>']
