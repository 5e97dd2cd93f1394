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

import json
import math
import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from string import Template

from course_lib.errors import one_of
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

    Raises:
        CourseError: another framework.
    """
    problem = _("There is no code for {framework!r}.", framework=framework)
    one_of(framework, FRAMEWORKS, problem, cure=_("Write one of these names."))
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
    sizes, names = _listed(mesh.sizes), list(map(_quoted, mesh.names))
    comma = "," if len(names) == 1 else ""  # of a tuple
    return {
        "size": str(mesh.size),
        "mesh_dims": ", ".join(f"({name}, {size})" for name, size in zip(names, mesh.sizes, strict=True)),
        "sizes": sizes,
        "mesh_shape": f"({sizes}{comma})",
        "mesh_names": f"({', '.join(names)}{comma})",
    }


def _of_plan(plan: Plan) -> dict[str, str]:
    splits = (f"{_quoted(axis)}: {_quoted(name)}" for axis, name in plan.splits.items())
    return {"splits": ", ".join(splits), "placement_names": "Replicate, Shard"}


def _of_sharding(sharding: Sharding) -> dict[str, str]:
    """Returns the layout in each framework, and the tensor: the numbers 0, 1, 2, ... for the reader's own."""
    specs = sharding.layout.sharding_specs
    placements = [
        f"Shard({specs.index(name)})" if name in specs else "Replicate()" for name in sharding.mesh.names
    ]
    return {
        "sharding_specs": _listed(
            "dtensor.UNSHARDED" if name == UNSHARDED else _quoted(name) for name in specs
        ),
        "partition_spec": _listed("None" if name == UNSHARDED else _quoted(name) for name in specs),
        "placements": _listed(placements),
        "placement_names": _listed(sorted({placement.split("(")[0] for placement in placements})),
        "count": str(math.prod(sharding.global_shape)),
        "shape": _listed(sharding.global_shape) or "()",
        "components": _components(sharding),
    }


def _components(sharding: Sharding) -> str:
    """Returns the lines that split the tensor along each axis that the layout splits."""
    part, lines = "value", []
    for axis, name in enumerate(sharding.layout.sharding_specs):
        if name != UNSHARDED:
            count = sharding.layout.num_shards(axis)
            lines.append(f"    part = tf.split({part}, {count}, axis={axis})[place[{_quoted(name)}]]")
            part = "part"
    if not lines:
        return f"components = [tf.constant(value)] * {sharding.mesh.size}"
    loop = ["components = []", "for place in mesh.local_device_locations():"]
    return "\n".join([*loop, *lines, "    components.append(part)"])


def _listed(values: Iterable[object]) -> str:
    return ", ".join(map(str, values))


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)
