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

import course_lib

ROOT = Path(__file__).parents[2]
course_lib.setup(devices=8)  # as other tests of the same process have it
tf = course_lib.start_tensorflow()


def start(folder: Path, last_step: int) -> subprocess.Popen:
    command = [sys.executable, ROOT / "notebooks/plain/a_run.py", folder, str(last_step)]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def newest(folder: Path) -> int:
    """Returns the number of the newest whole checkpoint; 0 if there is none."""
    return max((int(index.stem.removeprefix("ckpt-")) for index in folder.glob("ckpt-*.index")), default=0)


def saving(folder: Path) -> bool:
    """Returns whether a checkpoint was begun, or is named, and is not yet whole."""
    begun, state = newest(folder) + 1, folder / "checkpoint"
    named = state.exists() and f'"ckpt-{begun}"' in state.read_text()
    return named or any(folder.glob(f"ckpt-{begun}*"))


def kill_once(folder: Path, last_step: int, delay: float | None, dice: random.Random) -> bool:
    """Starts the program, kills it, in or after a save if there is a delay, and returns whether in one."""
    before = newest(folder)
    process = start(folder, last_step)
    assert process.stdout.readline().split()[:2] == ["step", str(110 * before + 1)]
    if delay is not None:
        while not process.stdout.readline().startswith("held out"):
            pass
        while not saving(folder):
            time.sleep(0.0005)
        time.sleep(delay)
    else:
        for _line in range(dice.randrange(110)):
            process.stdout.readline()
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    return saving(folder)


def variables(folder: Path) -> dict:
    """Returns what the newest checkpoint holds, by name."""
    reader = tf.train.load_checkpoint(f"{folder}/ckpt-{newest(folder)}")
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


@pytest.mark.parametrize(
    ("kills", "kills_in_saving"),
    [pytest.param(3, 1, marks=pytest.mark.drill), pytest.param(20, 5, marks=pytest.mark.drill_all)],
)
def test_a_training_that_is_killed_again_and_again_ends_with_the_same_bits(kills, kills_in_saving, tmp_path):
    seed = random.randrange(10**6)
    dice, last_step = random.Random(seed), 110 * (kills + 3)  # a kill loses most of an epoch
    folder, untouched = tmp_path / "killed", start(tmp_path / "untouched", last_step)
    delays = [None, 0, None, dice.uniform(0, 0.05), None, dice.uniform(0, 0.4)]  # the first hits a save
    in_saving = [kill_once(folder, last_step, delays[number % 6], dice) for number in range(kills)]
    print(f"seed {seed}: killed {kills} times, {sum(in_saving)} of them while saving")
    assert sum(in_saving) >= kills_in_saving
    losses = untouched.communicate()[0].splitlines()
    rest = start(folder, last_step).communicate()[0].splitlines()
    assert rest == losses[-len(rest) :]
    killed, expected = variables(folder), variables(tmp_path / "untouched")
    assert killed.keys() == expected.keys()
    assert all(np.array_equal(killed[name], expected[name]) for name in expected), f"seed {seed}"


# --- A kernel in which the training lab trains

MAKE_THE_LAB = """
import course_lib
from tests.course import from_lesson, program
from tests.explored import choose, press
course_lib.setup(devices=8)
lesson = program("any_mesh")
subject = dict(meshes=lesson.meshes, splits=lesson.splits, axes=lesson.axes,
               sizes=dict(batch=64, features=1200, hidden=48, classes=2))
lab = from_lesson("any_mesh.lab", "TrainingLab")(
    lesson.train, {folder!r}, num_examples=len(lesson.train_y), **subject)
"""
EPOCHS = 40  # of 20 steps
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


@pytest.mark.drill_all
def test_a_kernel_killed_while_its_lab_trains_leaves_runs_that_go_on(tmp_path):
    seed = random.randrange(10**6)
    dice = random.Random(seed)
    print("seed", seed)
    with kernel(tmp_path / "undisturbed") as undisturbed:
        undisturbed.run(BEGIN)
        expected = wait_for_the_end(undisturbed)
    assert sorted(expected) == list(range(1, 20 * EPOCHS + 1))
    begin = BEGIN
    for _kill in range(2):
        with kernel(tmp_path / "killed") as killed:
            killed.run(begin)
            while killed.value("lab.runs[-1].step - lab.runs[-1].saved_step") < 20:
                time.sleep(0.05)
            time.sleep(dice.uniform(0, 0.5))
        begin = GO_ON
    with kernel(tmp_path / "killed") as last:
        assert last.value("[run.step >= 20 and run.step % 20 == 0 for run in lab.runs]") == [True, True]
        last.run(begin)
        found = wait_for_the_end(last)
    lost = expected.keys() - found.keys()  # killed after a step was saved, before its record was written
    assert len(lost) <= 2
    assert {**found, **{step: expected[step] for step in lost}} == expected
    assert {step % 20 for step in lost} <= {0}
