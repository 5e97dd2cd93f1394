"""SIGKILL at ten random moments of training and saving: it always goes on, and ends with the same bits."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

WORKER = Path(__file__).with_name("kill_worker.py")
KILLS, KILLS_IN_SAVING, MOST_KILLS = 10, 3, 16
FINISHED = re.compile(r"checkpoint-(\d+)-step-(\d+)")


def start(folder: Path, result: Path) -> subprocess.Popen:
    command = [sys.executable, str(WORKER), str(folder), str(result)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finished(folder: Path) -> list[tuple[int, int]]:
    """Returns the (number, step) of each checkpoint that has its final name, oldest first."""
    names = [FINISHED.fullmatch(entry.name) for entry in folder.glob("checkpoint-*")]
    return sorted((int(name[1]), int(name[2])) for name in names)


def newest_number(folder: Path) -> int:
    return max((number for number, _step in finished(folder)), default=0)


def bytes_of_unfinished(folder: Path) -> int:
    """Returns how many bytes lie in a checkpoint that was begun and not completed."""
    try:
        files = [file for file in folder.glob("unfinished-checkpoint-*/**/*") if file.is_file()]
        return sum(file.stat().st_size for file in files)
    except FileNotFoundError:  # renamed while we looked, the folder or a file: it is finished
        return 0


def wait_until(condition, worker: subprocess.Popen, timeout_seconds: float = 120) -> None:
    end = time.monotonic() + timeout_seconds
    while not condition():
        assert worker.poll() is None, worker.stderr.read()
        assert time.monotonic() < end
        time.sleep(0.001)


def wait_for_the_moment(worker: subprocess.Popen, folder: Path, in_saving: bool, dice: random.Random) -> None:
    new_checkpoints = dice.choice([0, 1, 1, 2, 3])
    last_number = newest_number(folder) + new_checkpoints
    wait_until(lambda: newest_number(folder) >= last_number, worker)
    if in_saving:
        wait_until(lambda: bytes_of_unfinished(folder), worker)
        time.sleep(dice.uniform(0, 0.01))
    else:
        time.sleep(dice.uniform(0, 0.4 if new_checkpoints else 1.0))


def kill_once(folder: Path, result: Path, in_saving: bool, dice: random.Random) -> bool:
    """Starts a worker, kills it, and returns whether that was between a checkpoint's first and last byte."""
    expected_step = finished(folder)[-1][1] if folder.exists() and finished(folder) else 0
    worker = start(folder, result)
    assert worker.stdout.readline().startswith(f"from step {expected_step} of "), worker.stderr.read()
    wait_for_the_moment(worker, folder, in_saving, dice)
    os.kill(worker.pid, signal.SIGKILL)
    worker.communicate()
    assert worker.returncode == -signal.SIGKILL
    return bytes_of_unfinished(folder) > 0


@pytest.mark.drill
def test_a_training_that_is_killed_again_and_again_ends_with_the_same_bits(tmp_path):
    seed = random.randrange(10**6)
    dice = random.Random(seed)
    folder, result, undisturbed = tmp_path / "killed", tmp_path / "killed.npz", tmp_path / "undisturbed.npz"
    alone = start(tmp_path / "undisturbed", undisturbed)
    assert alone.wait(timeout=600) == 0, alone.stderr.read()
    in_saving: list[bool] = []
    while len(in_saving) < KILLS or (sum(in_saving) < KILLS_IN_SAVING and len(in_saving) < MOST_KILLS):
        in_saving.append(kill_once(folder, result, len(in_saving) % 2 == 1, dice))
    print(f"seed {seed}: killed {len(in_saving)} times, {sum(in_saving)} of them while saving")
    assert sum(in_saving) >= KILLS_IN_SAVING
    last = start(folder, result)
    assert last.wait(timeout=600) == 0, last.stderr.read()
    assert list(folder.glob("unfinished-*")) == []
    with np.load(result) as killed, np.load(undisturbed) as expected:
        assert sorted(killed) == sorted(expected)
        assert all(np.array_equal(killed[name], expected[name]) for name in expected), f"seed {seed}"
