"""SIGKILL at random moments of training and saving: it always goes on, and ends with the same bits."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

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


def wait_until(condition, worker: subprocess.Popen, timeout_seconds: float = 120) -> None:
    end = time.monotonic() + timeout_seconds
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
