"""Meshes, layouts and plans in PyTorch: a process for each device, which all run the same program.

Gloo is named, since PyTorch may otherwise choose NCCL, which needs GPUs, also for a mesh of CPUs.

Source: https://docs.pytorch.org/docs/stable/distributed.tensor.html,
https://github.com/pytorch/pytorch/issues/117746
"""

from __future__ import annotations

from collections.abc import Sequence

from course_lib.code import shared
from course_lib.code.writing import comment, display, quoted, section
from course_lib.i18n import _
from course_lib.specs.mesh import MeshSpec
from course_lib.specs.plan import Plan
from course_lib.specs.sharding import Sharding

REQUIREMENT = "torch>=2.5,<3"


def of_sharding(sharding: Sharding) -> list[str]:
    """Returns the code that scatters a tensor among the processes."""
    specs = sharding.layout.sharding_specs
    placements = [
        f"Shard({specs.index(name)})" if name in specs else "Replicate()" for name in sharding.mesh.names
    ]
    return [
        *_mesh(sharding.mesh, sorted({placement.split("(")[0] for placement in placements})),
        section(
            comment(_("A placement for each mesh dimension, not for each tensor axis.")),
            display("placements = [", placements, "]"),
        ),
        shared.own_tensor("torch.arange({count}, dtype=torch.float32)", sharding),
        section("tensor = distribute_tensor(value, mesh, placements)"),
    ]


def of_plan(plan: Plan) -> list[str]:
    """Returns the code that scatters tensors by the names of their axes."""
    return [
        *_mesh(plan.mesh, ["Replicate", "Shard"]),
        shared.splits(plan),
        shared.function(
            "placements(*axes)",
            _("Returns a placement for each mesh dimension, not for each axis."),
            "split = {splits.get(name): axis for axis, name in enumerate(axes)}",
            "return [",
            "    Shard(split[dim]) if dim in split else Replicate()",
            "    for dim in mesh_dim_names",
            "]",
        ),
        shared.function(
            "distributed(value, *axes)",
            shared.distributed_docstring(),
            "return distribute_tensor(value, mesh, placements(*axes))",
        ),
    ]


def _mesh(mesh: MeshSpec, placements: Sequence[str]) -> list[str]:
    """Returns the sections up to the mesh; the program uses the placements of these names."""
    command = f"torchrun --nproc-per-node={mesh.size} FILE.py"
    return [
        shared.requirement(
            f'"{REQUIREMENT}" numpy',
            "import torch",
            "from torch.distributed.device_mesh import init_device_mesh",
            f"from torch.distributed.tensor import {', '.join(placements)}, distribute_tensor",
        ),
        section(
            comment(_("A process for each device: {command}", command=command)),
            'torch.distributed.init_process_group("gloo")',
        ),
        section(
            display("mesh_shape = (", [str(size) for size in mesh.sizes], ")"),
            display("mesh_dim_names = (", [quoted(name) for name in mesh.names], ")"),
            'mesh = init_device_mesh("cpu", mesh_shape, mesh_dim_names=mesh_dim_names)',
        ),
    ]
