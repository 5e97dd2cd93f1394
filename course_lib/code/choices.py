"""The code of a choice, in the framework that the reader asks for: a template with its values put in.

In JAX, `Mesh` keeps the devices in the order of the course: `jax.make_mesh` may order them otherwise, and its
axes are explicit ones by default (0.10), for which some operations must be told how their result is split.
In PyTorch, Gloo is named, since it may otherwise choose NCCL, which needs GPUs, also for a mesh of CPUs.

Source: https://www.tensorflow.org/guide/dtensor_overview,
https://docs.jax.dev/en/latest/notebooks/Distributed_arrays_and_automatic_parallelization.html,
https://docs.pytorch.org/docs/stable/distributed.tensor.html,
https://github.com/pytorch/pytorch/issues/117746
"""

from __future__ import annotations

import math
import re
from functools import cache
from importlib.resources import files
from string import Template

from course_lib.code.writing import call, display, quoted
from course_lib.i18n import _
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from course_lib.specs.plan import Plan
from course_lib.specs.sharding import Sharding

Choice = Sharding | Plan

REQUIREMENTS = {
    "TensorFlow": "tensorflow>=2.20,<2.22",
    "JAX": "jax>=0.10,<0.11",
    "PyTorch": "torch>=2.5,<3",
}
FRAMEWORKS = tuple(REQUIREMENTS)
_SECTIONS = re.compile(r"(?<=\n\n)(?=\S)")


def code_of(choice: Choice, framework: str) -> str:
    """Returns a program that makes what was chosen, without this library.

    For a sharding it makes `tensor`, and for a plan `distributed(value, *axes)`, which makes a tensor with
    named axes. Each device gets what the sharding says.

    Args:
        choice: `layout.of(global_shape)`, or a plan.
        framework: one of `FRAMEWORKS`.
    """
    return "".join(sections_of(choice, framework))


def sections_of(choice: Choice, framework: str) -> tuple[str, ...]:
    """Returns the parts of `code_of`, each with the empty lines after it: many choices have equal ones."""
    kind = "sharding" if isinstance(choice, Sharding) else "plan"
    of_choice = _of_sharding(choice) if isinstance(choice, Sharding) else _of_plan(choice)
    values = {
        "requirement": REQUIREMENTS[framework],
        **_comments(choice.mesh),
        **_of_mesh(choice.mesh),
    } | of_choice
    mesh = _template(framework, "mesh").substitute(values)
    text = _template(framework, kind).substitute(values, mesh=mesh)
    return tuple(_SECTIONS.split(text))


@cache
def _template(framework: str, part: str) -> Template:
    folder = files("course_lib.code") / "templates"
    return Template((folder / f"{framework}.{part}.txt").read_text("utf-8"))


def _comments(mesh: MeshSpec) -> dict[str, str]:
    """Returns the comments and docstrings in the reader's language."""
    command = f"torchrun --nproc-per-node={mesh.size} FILE.py"
    return {
        "virtual": _("Virtual CPUs; leave these lines out where there are real devices."),
        "virtual_until_started": _("Virtual CPUs; leave these lines out where TensorFlow has started."),
        "processes": _("A process for each device: {command}", command=command),
        "entries": _("An entry for each tensor axis."),
        "placement_entries": _("A placement for each mesh dimension, not for each tensor axis."),
        "own_tensor": _("Your own tensor of this shape goes here."),
        "split_axes": _("The axes that are split, each with its mesh dimension."),
        "layout": _("Returns the layout of a tensor with these axes."),
        "placements_told": _("Returns a placement for each mesh dimension, not for each axis."),
        "distributed": _("Returns a tensor with these axes as the plan splits it."),
    }


def _of_mesh(mesh: MeshSpec) -> dict[str, str]:
    sizes, names = [str(size) for size in mesh.sizes], [quoted(name) for name in mesh.names]
    dims = [f"({name}, {size})" for name, size in zip(names, sizes, strict=True)]
    return {
        "size": str(mesh.size),
        "mesh_dims": display("mesh_dims = [", dims, "]"),
        "axis_names": display("axis_names = (", names, ")"),
        "jax_devices": call(f"devices = np.array(jax.devices()[:{mesh.size}]).reshape(", sizes),
        "mesh_shape": display("mesh_shape = (", sizes, ")"),
        "mesh_dim_names": display("mesh_dim_names = (", names, ")"),
    }


def _of_plan(plan: Plan) -> dict[str, str]:
    entries = [f"{quoted(axis)}: {quoted(name)}" for axis, name in plan.splits.items()]
    return {"splits": display("splits = {", entries, "}"), "placement_names": "Replicate, Shard"}


def _of_sharding(sharding: Sharding) -> dict[str, str]:
    """Returns the layout in each framework, and the tensor: the numbers 0, 1, 2, ... for the reader's own."""
    specs, count = sharding.layout.sharding_specs, math.prod(sharding.global_shape)
    shape = [str(length) for length in sharding.global_shape] or ["()"]
    entries = ["dtensor.UNSHARDED" if name == UNSHARDED else quoted(name) for name in specs]
    partition = ["None" if name == UNSHARDED else quoted(name) for name in specs]
    placements = [
        f"Shard({specs.index(name)})" if name in specs else "Replicate()" for name in sharding.mesh.names
    ]
    return {
        "sharding_specs": display("sharding_specs = [", entries, "]"),
        "partition_spec": call("spec = PartitionSpec(", partition),
        "placements": display("placements = [", placements, "]"),
        "placement_names": ", ".join(sorted({placement.split("(")[0] for placement in placements})),
        "numpy_value": call(f"value = np.arange({count}, dtype=np.float32).reshape(", shape),
        "torch_value": call(f"value = torch.arange({count}, dtype=torch.float32).reshape(", shape),
        "components": "\n".join(_components(sharding)),
    }


def _components(sharding: Sharding) -> list[str]:
    """Returns the lines that split the tensor along each axis that the layout splits."""
    specs = sharding.layout.sharding_specs
    split = [(axis, name) for axis, name in enumerate(specs) if name != UNSHARDED]
    if not split:
        return [f"components = [tf.constant(value)] * {sharding.mesh.size}"]
    wholes = ["value", *["part"] * (len(split) - 1)]
    lines = [
        call(
            f"part = tf.split({whole}, {sharding.layout.num_shards(axis)}, axis={axis})[",
            [f"place[{quoted(name)}]"],
            "]",
            indent="    ",
        )
        for whole, (axis, name) in zip(wholes, split, strict=True)
    ]
    return [
        "components = []",
        "for place in mesh.local_device_locations():",
        *lines,
        "    components.append(part)",
    ]
