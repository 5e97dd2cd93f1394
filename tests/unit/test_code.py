"""The code of a choice: its text, its style, and what it makes on devices; frameworks stand in here.

TensorFlow runs it in tests/tf/test_code.py, JAX and PyTorch where they are, in tests/drill/test_code.py.
"""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from course_lib import MeshSpec
from course_lib.code import FRAMEWORKS, code_of
from course_lib.code.choices import REQUIREMENTS
from course_lib.i18n import languages, num_columns, set_language
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED
from course_lib.specs.plan import Plan, spatial_parallel
from course_lib.specs.sharding import Sharding, numbered_tensor
from tests.code_choices import PLANS, expected, page_shardings, program, untidy
from tests.unit.frameworks import JAX, Torch

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).with_name("programs")
GRID = MeshSpec([("x", 2), ("y", 4)])
CUBE = MeshSpec([("p", 2), ("q", 2), ("r", 2)])
CHOICES = {
    "rows": LayoutSpec(["x", UNSHARDED], GRID).of((8, 6)),
    "three-axes": LayoutSpec(["r", UNSHARDED, "p"], CUBE).of((4, 6, 8)),
    "whole": LayoutSpec([UNSHARDED], MeshSpec([("batch", 6)])).of((24,)),
    "plan": spatial_parallel(2, 2, 2),
}


def drawn_name(draw: random.Random) -> str:
    first, more = "abxyz_あ次", "abcxyz_019軸"
    word = draw.choice(first) + "".join(draw.choices(more, k=draw.randint(0, 16)))
    return draw.choice([word, word, "class", "lambda", "None"])


def drawn_choices(count: int):
    """Yields shardings and plans with names and sizes of all kinds."""
    draw = random.Random(7)
    for _choice in range(count):
        names = {drawn_name(draw) for _dim in range(draw.randint(1, 5))}
        mesh = MeshSpec([(name, draw.choice([1, 2, 3, 12])) for name in names])
        entries = draw.sample(mesh.names, draw.randint(0, len(names))) + [UNSHARDED] * draw.randint(0, 3)
        draw.shuffle(entries)
        layout = LayoutSpec(entries, mesh)
        yield layout.of([draw.choice([1, 5, 250]) * layout.num_shards(axis) for axis in range(len(entries))])
        axes = {
            draw.choice("ab 'é\"\\\n") * draw.randint(1, 9): draw.choice(mesh.names) for _axis in range(4)
        }
        yield Plan("drawn", mesh, axes)


# Its text


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("name", CHOICES)
def test_the_code_is_this(name, framework):
    assert code_of(CHOICES[name], framework) == (PROGRAMS / f"{name}.{framework}.txt").read_text("utf-8")


@pytest.mark.parametrize("language", languages())
def test_no_line_has_80_columns_in_any_language(language):
    set_language(language)
    for choice in (*CHOICES.values(), *PLANS):
        for framework in FRAMEWORKS:
            for line in code_of(choice, framework).splitlines():
                assert num_columns(line) < 80, line


def test_a_formatter_and_a_linter_find_nothing_to_change(tmp_path):
    choices = [*CHOICES.values(), *PLANS, *drawn_choices(60)]
    for number, choice in enumerate(choices):
        for framework in FRAMEWORKS:
            (tmp_path / f"choice_{number}_{framework}.py").write_text(code_of(choice, framework), "utf-8")
    assert untidy(tmp_path) == ""


# What it makes


def made_by(devices) -> list[dict[int, list]]:
    """Returns the shard of each device, of each tensor that was made."""
    return [[held[device].tolist() for device in sorted(held)] for held in devices.shards]


@pytest.mark.parametrize(("name", "framework"), [("JAX", JAX), ("PyTorch", Torch)], ids=["JAX", "PyTorch"])
def test_each_device_gets_what_the_sharding_says(name, framework):
    shardings = [*page_shardings(), *(each for each in drawn_choices(80) if is_small(each))]
    for sharding in shardings:
        devices = framework()
        devices.run(code_of(sharding, name))
        assert made_by(devices) == expected(sharding), repr(sharding)


def is_small(choice) -> bool:
    small = choice.mesh.size < 40
    return small and isinstance(choice, Sharding) and np.prod(choice.global_shape) < 10_000


@pytest.mark.parametrize(("name", "framework"), [("JAX", JAX), ("PyTorch", Torch)], ids=["JAX", "PyTorch"])
@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.name)
def test_each_device_gets_what_the_plan_says(plan, name, framework):
    devices, made = framework(), program(plan, name)
    distributed = devices.run(made["code"])["distributed"]
    for shape, axes in made["tensors"]:
        distributed(numbered_tensor(shape), *axes)
    assert made_by(devices) == expected(plan)


# What it needs


def test_what_to_install_is_what_is_tested():
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    make = (ROOT / "Makefile").read_text("utf-8")
    assert f'"{REQUIREMENTS["TensorFlow"]}"' in project
    assert f'install --quiet "{REQUIREMENTS["JAX"]}"' in make
    assert f'install --quiet "{REQUIREMENTS["PyTorch"]}" numpy' in make
