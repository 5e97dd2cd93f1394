"""The code of choices gives each device its shard in JAX and in PyTorch, in environments of their own.

`make jax` makes the one; `make torch` makes the other, of gigabytes, and runs its test.
"""

from __future__ import annotations

import json
import os
import subprocess
from itertools import chain, groupby
from pathlib import Path

import pytest

from tests.code_choices import PLANS, expected, page_shardings, program

HERE = Path(__file__).parent
BUILD = HERE.parents[1] / "build"
JAX, TORCHRUN = BUILD / "jax-venv/bin/python", BUILD / "torch-venv/bin/torchrun"


def assert_shards(framework, choices, command, folder):
    """Checks what a framework gives each device, all choices at once."""
    programs = folder / "programs.json"
    programs.write_text(json.dumps([program(choice, framework) for choice in choices]), "utf-8")
    done = subprocess.run(
        [*command, HERE / "shards.py", "jax" if framework == "JAX" else "torch", programs, folder],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    paths = sorted(folder.glob("[0-9]*.json"), key=lambda path: int(path.stem))
    processes = [json.loads(path.read_text("utf-8")) for path in paths]
    for number, choice in enumerate(choices):
        tensors = zip(*(held[number] for held in processes), strict=True)
        assert [[*chain(*shards)] for shards in tensors] == expected(choice), repr(choice)


def size_of(choice) -> int:
    return choice.mesh.size


def each_size(choices, folder):
    """Yields choices on equally many devices together, with a folder for them."""
    for num_devices, group in groupby(sorted(choices, key=size_of), key=size_of):
        (folder / str(num_devices)).mkdir()
        yield num_devices, list(group), folder / str(num_devices)


@pytest.mark.drill_all
@pytest.mark.skipif(not JAX.exists(), reason="`make jax` makes its environment")
def test_jax_gives_each_device_what_the_course_says(tmp_path):
    for _num_devices, choices, folder in each_size([*page_shardings(), *PLANS], tmp_path):
        assert_shards("JAX", choices, [JAX], folder)


@pytest.mark.drill_all
@pytest.mark.skipif(not TORCHRUN.exists(), reason="`make torch` makes its environment")
def test_pytorch_gives_each_process_what_the_course_says_of_a_device(tmp_path):
    for num_devices, choices, folder in each_size([*list(page_shardings())[::5], *PLANS], tmp_path):
        command = [TORCHRUN, "--standalone", f"--nproc-per-node={num_devices}"]
        assert_shards("PyTorch", choices, command, folder)
