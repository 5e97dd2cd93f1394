"""The code of choices gives each device its shard in JAX and in PyTorch, in environments of their own.

`make jax` makes the one; `make torch` makes the other, of gigabytes, and runs its test.
"""

from __future__ import annotations

import json
import os
import subprocess
from itertools import groupby
from pathlib import Path

import pytest

from tests.code_choices import PLANS, expected, page_shardings, program

HERE = Path(__file__).parent
BUILD = HERE.parents[1] / "build"


def by_size(choices):
    """Yields choices on equally many devices together."""
    for num_devices, group in groupby(sorted(choices, key=size_of), key=size_of):
        yield num_devices, list(group)


def size_of(choice) -> int:
    return choice.mesh.size


def needed(path: Path, command: str) -> str:
    if not path.exists():
        pytest.skip(f"{path.name} is not in build/{path.parents[1].name}: {command}")
    return str(path)


@pytest.mark.drill_all
def test_jax_gives_each_device_what_the_course_says():
    python = needed(BUILD / "jax-venv" / "bin" / "python", "make jax")
    for _num_devices, choices in by_size([*page_shardings(), *PLANS]):
        asked = json.dumps([program(choice, "JAX") for choice in choices])
        done = subprocess.run(
            [python, HERE / "shards_in_jax.py"], input=asked, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        for choice, shards in zip(choices, json.loads(done.stdout), strict=True):
            assert shards == expected(choice), repr(choice)


@pytest.mark.drill_all
def test_pytorch_gives_each_process_what_the_course_says_of_a_device(tmp_path):
    torchrun = needed(BUILD / "torch-venv" / "bin" / "torchrun", "make torch")
    for num_devices, choices in by_size([*list(page_shardings())[::5], *PLANS]):
        programs, folder = tmp_path / f"{num_devices}.json", tmp_path / str(num_devices)
        folder.mkdir()
        programs.write_text(json.dumps([program(choice, "PyTorch") for choice in choices]), "utf-8")
        command = [torchrun, "--standalone", f"--nproc-per-node={num_devices}"]
        done = subprocess.run(
            [*command, HERE / "shards_in_pytorch.py", programs, folder],
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        held = [json.loads((folder / f"{at}.json").read_text("utf-8")) for at in range(num_devices)]
        for number, choice in enumerate(choices):
            shards = [list(parts) for parts in zip(*(each[number] for each in held), strict=True)]
            assert shards == expected(choice), repr(choice)
