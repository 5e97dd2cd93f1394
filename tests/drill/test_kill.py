"""SIGKILL at random moments of training and saving: it always goes on, and ends with the same bits."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from jupyter_client.manager import start_new_kernel

ROOT = Path(__file__).parents[2]


def start(folder: Path, result: Path) -> subprocess.Popen:
    command = [sys.executable, "-m", "tests.drill.kill_worker", str(folder), str(result)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def newest(folder: Path) -> int:
    """Returns the number of the newest whole checkpoint; 0 if there is none."""
    return max((int(index.stem.removeprefix("ckpt-")) for index in folder.glob("ckpt-*.index")), default=0)


def saving(folder: Path) -> bool:
    """Returns whether a checkpoint was begun and is not yet whole."""
    return any(folder.glob(f"ckpt-{newest(folder) + 1}*"))


def wait_until(condition, worker: subprocess.Popen) -> None:
    end = time.monotonic() + 120
    while not condition():
        assert worker.poll() is None, worker.stderr.read()
        assert time.monotonic() < end
        time.sleep(0.001)


def wait_for_the_moment(worker: subprocess.Popen, folder: Path, in_saving: bool, dice: random.Random) -> None:
    new_checkpoints = dice.choice([0, 1, 1, 2, 3])
    last_number = newest(folder) + new_checkpoints
    wait_until(lambda: newest(folder) >= last_number, worker)
    if in_saving:
        wait_until(lambda: saving(folder), worker)
        time.sleep(dice.uniform(0, 0.01))
    else:
        time.sleep(dice.uniform(0, 0.4 if new_checkpoints else 1.0))


def kill_once(folder: Path, result: Path, in_saving: bool, dice: random.Random) -> bool:
    """Starts a worker, kills it, and returns whether that was between a checkpoint's first and last byte."""
    before = newest(folder)
    worker = start(folder, result)
    begins = worker.stdout.readline().split()
    assert begins[:2] == ["from", "step"], worker.stderr.read()
    assert int(begins[2]) == 3 * before  # a checkpoint an epoch, of three steps
    wait_for_the_moment(worker, folder, in_saving, dice)
    os.kill(worker.pid, signal.SIGKILL)
    worker.communicate()
    assert worker.returncode == -signal.SIGKILL
    return saving(folder)


@pytest.mark.parametrize(
    ("kills", "kills_in_saving"),
    [pytest.param(3, 1, marks=pytest.mark.drill), pytest.param(5, 2, marks=pytest.mark.drill_all)],
)
def test_a_training_that_is_killed_again_and_again_ends_with_the_same_bits(kills, kills_in_saving, tmp_path):
    seed = random.randrange(10**6)
    dice = random.Random(seed)
    folder, result, undisturbed = tmp_path / "killed", tmp_path / "killed.npz", tmp_path / "undisturbed.npz"
    alone = start(tmp_path / "undisturbed", undisturbed)
    assert alone.wait(timeout=600) == 0, alone.stderr.read()
    in_saving: list[bool] = []
    while len(in_saving) < kills or (sum(in_saving) < kills_in_saving and len(in_saving) < kills + 4):
        in_saving.append(kill_once(folder, result, len(in_saving) % 2 == 1, dice))
    print(f"seed {seed}: killed {len(in_saving)} times, {sum(in_saving)} of them while saving")
    assert sum(in_saving) >= kills_in_saving
    last = start(folder, result)
    assert last.wait(timeout=600) == 0, last.stderr.read()
    with np.load(result) as killed, np.load(undisturbed) as expected:
        assert sorted(killed) == sorted(expected)
        assert all(np.array_equal(killed[name], expected[name]) for name in expected), f"seed {seed}"


# --- A kernel in which the training lab trains

MAKE_THE_LAB = """
import course_lib
from tests.course import from_lesson, program
from tests.explored import choose, press
course_lib.setup(devices=8)
lesson = program("splitting_the_model")
subject = dict(meshes=lesson.MESHES, splits=lesson.SPLITS, axes=lesson.AXES,
               sizes=dict(batch=64, features=1200, hidden=48, classes=2))
lab = from_lesson("splitting_the_model.lab", "TrainingLab")(
    lesson.train, {folder!r}, num_examples=len(lesson.train_y), **subject)
"""
EPOCHS = 40  # of 16 steps
BEGIN = f"choose(lab, 'epochs', {EPOCHS}); press(lab, 'run')"
GO_ON = f"choose(lab, 'start', str(lab.runs[-1].number)); {BEGIN}"
LOSSES = "{record['step']: record['loss'] for run in lab.runs for record in run.history.steps}"


class Kernel:
    """A kernel with a lab; it is killed at the end, whatever it does then."""

    def __init__(self, folder: Path):
        self.manager, self.client = start_new_kernel(cwd=str(ROOT))
        self.process = psutil.Process(self.manager.provisioner.process.pid)
        self.run(MAKE_THE_LAB.format(folder=str(folder)))

    def run(self, code: str) -> None:
        reply = self.client.execute_interactive(code, output_hook=lambda _message: None, timeout=300)
        assert reply["content"]["status"] == "ok", "\n".join(reply["content"]["traceback"])

    def value(self, expression: str):
        asked = {"value": f"__import__('json').dumps({expression})"}
        reply = self.client.execute_interactive("", user_expressions=asked, timeout=300)
        return json.loads(eval(reply["content"]["user_expressions"]["value"]["data"]["text/plain"]))

    def kill(self) -> None:
        family = [self.process, *self.process.children(recursive=True)]
        self.process.kill()
        self.manager.shutdown_kernel(now=True)
        self.client.stop_channels()
        _gone, left = psutil.wait_procs(family, timeout=30)
        assert left == []


@contextlib.contextmanager
def kernel(folder: Path):
    made = Kernel(folder)
    try:
        yield made
    finally:
        made.kill()


def wait_for_the_end(kernel: Kernel) -> dict[int, float]:
    while kernel.value("lab.runs[-1].trains"):
        time.sleep(0.2)
    assert kernel.value("[lab.runs[-1].status, lab.runs[-1].error]") == ["finished", ""]
    return {int(step): loss for step, loss in kernel.value(LOSSES).items()}


@pytest.mark.drill
def test_a_kernel_killed_while_its_lab_trains_leaves_runs_that_go_on(tmp_path):
    seed = random.randrange(10**6)
    dice = random.Random(seed)
    print("seed", seed)
    with kernel(tmp_path / "undisturbed") as undisturbed:
        undisturbed.run(BEGIN)
        expected = wait_for_the_end(undisturbed)
    assert sorted(expected) == list(range(1, 16 * EPOCHS + 1))
    begin = BEGIN
    for _kill in range(2):
        with kernel(tmp_path / "killed") as killed:
            killed.run(begin)
            while killed.value("lab.runs[-1].step - lab.runs[-1].saved_step") < 20:
                time.sleep(0.05)
            time.sleep(dice.uniform(0, 0.5))
        begin = GO_ON
    with kernel(tmp_path / "killed") as last:
        assert last.value("[run.step > 16 and run.step % 16 == 0 for run in lab.runs]") == [True, True]
        last.run(begin)
        found = wait_for_the_end(last)
    lost = expected.keys() - found.keys()  # killed after a step was saved, before its record was written
    assert len(lost) <= 2
    assert {**found, **{step: expected[step] for step in lost}} == expected
    assert {step % 16 for step in lost} <= {0}
