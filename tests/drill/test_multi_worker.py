"""Workers in processes of their own: they train as one, and are killed, ended, and started again."""

import signal

import numpy as np
import pytest

from tests.drill.processes import processes

TWO = {"worker": 2}
BOTH = ["worker 0", "worker 1"]
SMALL = ("--examples", 64, "--digits", 9)  # two steps an epoch, every digit of a loss
SAME_MODEL_TOLERANCE = 1e-4  # FACTS: of a convolutional model on several replicas


@pytest.fixture(scope="module")
def alone():
    """Returns the losses of one device, by step."""
    from course_lib import setup

    setup(devices=8)
    from course_lib.data import fashion
    from course_lib.models.fashion import convolutional
    from course_lib.runtime import start_tensorflow
    from course_lib.training.records import StepRecord
    from course_lib.training.run import TrainingRun
    from course_lib.training.settings import Settings
    from course_lib.training.strategy_trainer import StrategyTrainer
    from lessons.lesson_11_many_processes.programs.multi_worker import FILTERS, HIDDEN, LEARNING_RATE

    tf = start_tensorflow()
    one = tf.distribute.get_strategy()
    model = convolutional(one, filters=FILTERS, hidden=HIDDEN)
    trainer = StrategyTrainer(model, tf.keras.optimizers.Adam(LEARNING_RATE), one)
    examples = fashion.load_fashion(num_train=64, num_test=1).train
    run = TrainingRun(trainer, examples, settings=Settings(epochs=20, batch_size=32))
    return {record.step: record.loss for record in run if isinstance(record, StepRecord)}


def require_equal(losses, expected):
    assert losses
    steps = sorted(losses)
    np.testing.assert_allclose(
        [losses[step] for step in steps], [expected[step] for step in steps], atol=SAME_MODEL_TOLERANCE
    )


@pytest.mark.drill
def test_two_workers_train_as_one_device_would(tmp_path, alone):
    with processes("multi_worker", TWO, "--steps", 5, "--checkpoints", tmp_path, *SMALL) as running:
        assert running.wait() == [0, 0], running.report()
        first, second = map(running.losses, BOTH)
        told = [running.told(name) for name in BOTH]
    assert first == second
    assert sorted(first) == [1, 2, 3, 4, 5]
    require_equal(first, alone)
    assert [line for line in told[0] if "step" not in line] == ["worker 0 of 2, 2 replicas", "done"]
    assert [line for line in told[0] if "saved" in line] == [f"saved after step {step}" for step in (2, 4, 5)]
    assert [line for line in told[1] if "saved" in line] == [
        f"saved after step {step}, and thrown away" for step in (2, 4, 5)
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"checkpoint-00000{number}-step-00000{step}" for number, step in ((1, 2), (2, 4), (3, 5))
    ]


@pytest.mark.parametrize(
    "victim",
    [
        pytest.param("worker 1", marks=pytest.mark.drill),
        pytest.param("worker 0", marks=pytest.mark.drill_all),
    ],
    ids=["worker", "chief"],
)
def test_after_a_kill_all_go_on_as_if_nothing_had_been(tmp_path, alone, victim):
    (survivor,) = set(BOTH) - {victim}
    arguments = ("--checkpoints", tmp_path, *SMALL)
    with processes("multi_worker", TWO, "--steps", 400, "--hold", 5, *arguments) as running:
        for name in BOTH:
            running.wait_for(name, "step 5 ")
        running.cluster.kill(victim)
        assert running.wait(victim, survivor) == [-signal.SIGKILL, 1]
        before, told = running.losses(survivor), running.told(survivor)
    assert sorted(before) == [1, 2, 3, 4, 5]
    assert told[-3] == f"error: {victim} no longer answers."
    with processes("multi_worker", TWO, "--steps", 12, *arguments) as running:
        assert running.wait() == [0, 0], running.report()
        assert "goes on after step 4" in running.told("worker 0")
        after = running.losses("worker 0")
        assert after == running.losses("worker 1")
    assert sorted(after) == list(range(5, 13))
    assert {step: after[step] for step in before if step > 4} == {
        step: loss for step, loss in before.items() if step > 4
    }
    require_equal(before | after, alone)


@pytest.mark.drill
def test_a_preemption_has_all_save_after_the_same_step(tmp_path, alone):
    arguments = ("--checkpoints", tmp_path, *SMALL)
    with processes("multi_worker", TWO, "--steps", 400, "--pause", 0.1, *arguments) as running:
        running.wait_for("worker 0", "step 4 ")
        running.cluster.terminate("worker 1")
        assert running.wait() == [75, 75], running.report()
        last = max(running.losses("worker 0"))
        for name in BOTH:
            assert running.told(name)[-1] == f"SIGTERM: saved after step {last}, to go on from there"
    with processes("multi_worker", TWO, "--steps", last + 3, "--pause", 0.1, *arguments) as running:
        assert running.wait() == [0, 0], running.report()
        assert f"goes on after step {last}" in running.told("worker 1")
        after = running.losses("worker 1")
    assert sorted(after) == [last + 1, last + 2, last + 3]
    require_equal(after, alone)


def epochs_of(count, *arguments):
    """Returns the mean losses that `fit` told, by epoch, the same in all of so many workers."""
    with processes("multi_worker", {"worker": count}, "--fit", *arguments, *SMALL) as running:
        assert set(running.wait()) == {0}, running.report()
        first, *others = (
            [line.split() for line in running.told(name) if line.startswith("epoch")]
            for name in running.names()
        )
    assert all(other == first for other in others)
    return {int(line[1]): float(line[3]) for line in first}


@pytest.mark.drill
def test_fit_of_tf_keras_on_two_workers_equals_one():
    one, two = (epochs_of(count, "--steps", 8) for count in (1, 2))
    assert list(one) == list(two) == [1, 2, 3, 4]
    np.testing.assert_allclose([two[epoch] for epoch in one], list(one.values()), atol=1e-6)


@pytest.mark.drill
def test_a_worker_that_never_comes_is_named(tmp_path):
    (tmp_path / "sleeps.py").write_text("import time; time.sleep(600)")
    with processes("multi_worker", TWO, "--wait", 1, others={"worker 1": tmp_path / "sleeps.py"}) as running:
        assert running.wait("worker 0") == [-signal.SIGKILL]
        assert running.told("worker 0")[0] == "error: Not there in time: worker 1."


@pytest.mark.drill
def test_a_worker_with_other_data_is_named_by_both(tmp_path):
    script = tmp_path / "other_data.py"
    script.write_text(
        "from lessons.lesson_11_many_processes.programs import lines, multi_worker\n"
        "load = multi_worker.fashion.load\n"
        "def changed(**numbers):\n"
        "    images = load(**numbers)\n"
        "    images.train.labels[0] += 1\n"
        "    return images\n"
        "multi_worker.fashion.load = changed\n"
        "lines.run(multi_worker.main)\n"
    )
    with processes("multi_worker", TWO, others={"worker 1": script}) as running:
        assert running.wait() == [1, 1], running.report()
        for name in BOTH:
            problem = "error: worker 1 differs from the others in its data: "
            assert running.told(name)[0].startswith(problem), running.report()
