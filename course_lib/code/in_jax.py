"""Meshes, layouts and plans in JAX.

`Mesh` keeps the devices in the order of the course. `jax.make_mesh` may order them otherwise, and its axes
are explicit ones by default (JAX 0.10), for which some operations must be told how their result is split.

Source: https://docs.jax.dev/en/latest/notebooks/Distributed_arrays_and_automatic_parallelization.html
"""

from __future__ import annotations

from course_lib.code import shared
from course_lib.code.writing import call, comment, display, quoted, section
from course_lib.i18n import _
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from course_lib.specs.plan import Plan
from course_lib.specs.sharding import Sharding

REQUIREMENT = "jax>=0.10,<0.11"


def of_sharding(sharding: Sharding) -> list[str]:
    """Returns the code that puts a tensor on the devices."""
    entries = ["None" if name == UNSHARDED else quoted(name) for name in sharding.layout.sharding_specs]
    return [
        *_mesh(sharding.mesh),
        section(
            shared.entries_comment(),
            call("spec = PartitionSpec(", entries),
            "sharding = NamedSharding(mesh, spec)",
        ),
        shared.own_tensor("np.arange({count}, dtype=np.float32)", sharding),
        section("tensor = jax.device_put(value, sharding)"),
    ]


def of_plan(plan: Plan) -> list[str]:
    """Returns the code that puts tensors on the devices by the names of their axes."""
    return [
        *_mesh(plan.mesh),
        shared.splits(plan),
        shared.function(
            "layout(*axes)",
            shared.layout_docstring(),
            "spec = PartitionSpec(*(splits.get(axis) for axis in axes))",
            "return NamedSharding(mesh, spec)",
        ),
        shared.function(
            "distributed(value, *axes)",
            shared.distributed_docstring(),
            "return jax.device_put(value, layout(*axes))",
        ),
    ]


def _mesh(mesh: MeshSpec) -> list[str]:
    sizes = [str(size) for size in mesh.sizes]
    return [
        shared.requirement(
            f'"{REQUIREMENT}"',
            "import jax",
            "import numpy as np",
            "from jax.sharding import Mesh, NamedSharding, PartitionSpec",
        ),
        section(
            comment(_("Virtual CPUs; leave these lines out where there are real devices.")),
            'jax.config.update("jax_platforms", "cpu")',
            f'jax.config.update("jax_num_cpu_devices", {mesh.size})',
        ),
        section(
            display("axis_names = (", [quoted(name) for name in mesh.names], ")"),
            call(f"devices = np.array(jax.devices()[:{mesh.size}]).reshape(", sizes),
            "mesh = Mesh(devices, axis_names)",
        ),
    ]
