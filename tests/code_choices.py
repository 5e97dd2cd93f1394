"""Choices whose code is run, in this process or in another one, and what each device must then hold."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from course_lib import CourseError, MeshSpec, code_of
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED
from course_lib.specs.plan import Plan, data_parallel
from course_lib.specs.sharding import Sharding, numbered_tensor
from lessons.layouts.mesh_layout_state import PAGE_MESHES, PAGE_SHAPES

MODEL_PARALLEL = Plan(
    "model parallel", MeshSpec([("batch", 4), ("model", 2)]), {"batch": "batch", "hidden": "model"}
)
SPATIAL = Plan(
    "spatial parallel",
    MeshSpec([("batch", 2), ("feature", 2), ("model", 2)]),
    {"batch": "batch", "features": "feature", "hidden": "model"},
)
PLANS = (
    data_parallel(8),
    Plan("replicated", MeshSpec([("world", 3)]), {}),
    MODEL_PARALLEL,
    SPATIAL,
    Plan("mine", MeshSpec([("x", 2), ("class", 4)]), {"batch": "x", "hidden": "x", "features": "class"}),
)
TENSORS = (("batch", "features"), ("features", "hidden"), ("hidden",), ())


def page_shardings() -> Iterator[Sharding]:
    """Yields every legal choice that the mesh and layout explorer offers on a page, and a number."""
    for mesh, shape in itertools.product(PAGE_MESHES, PAGE_SHAPES):
        for entries in itertools.product([UNSHARDED, *mesh.names], repeat=len(shape)):
            try:
                yield LayoutSpec(entries, mesh).of(shape)
            except CourseError:
                continue
    yield LayoutSpec([], PAGE_MESHES[1]).of(())


def program(choice: Sharding | Plan, framework: str) -> dict[str, Any]:
    """Returns the code of a choice, how many devices it takes, and the tensors to lay out if it is a plan."""
    tensors = [] if isinstance(choice, Sharding) else [(shape_of(choice, axes), axes) for axes in TENSORS]
    return {"code": code_of(choice, framework), "num_devices": choice.mesh.size, "tensors": tensors}


def expected(choice: Sharding | Plan) -> list[list[Any]]:
    """Returns for each tensor that a program makes the shard of each device."""
    if isinstance(choice, Sharding):
        return [[part.tolist() for part in choice.split(numbered_tensor(choice.global_shape))]]
    shardings = [choice.layout(axes).of(shape_of(choice, axes)) for axes in TENSORS]
    return [shards for sharding in shardings for shards in expected(sharding)]


def shape_of(plan: Plan, axes: tuple[str, ...]) -> list[int]:
    """Returns a shape that the plan splits evenly."""
    return [2 * plan.num_shards(axis) for axis in axes]


def untidy(folder: Path) -> str:
    """Returns what a formatter would change in the programs of a folder, and what a linter finds."""
    common = ["--isolated", "--no-cache", "--line-length", "79", str(folder)]
    checks = "E,F,W,I,B,UP,SIM,C4,PT,RET,PERF,RUF100"
    said = ""
    for command in (["format", "--diff"], ["check", "--select", checks]):
        ruff = [sys.executable, "-m", "ruff", *command, *common]
        done = subprocess.run(ruff, check=False, capture_output=True, text=True)
        said += done.stdout + done.stderr if done.returncode else ""
    return said
