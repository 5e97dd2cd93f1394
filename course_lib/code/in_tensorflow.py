"""Meshes, layouts and plans in TensorFlow's DTensor, without this library.

Source: https://www.tensorflow.org/guide/dtensor_overview
"""

from __future__ import annotations

from course_lib.code import shared
from course_lib.code.writing import call, comment, display, quoted, section
from course_lib.i18n import _
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from course_lib.specs.plan import Plan
from course_lib.specs.sharding import Sharding

REQUIREMENT = "tensorflow>=2.20,<2.22"


def of_sharding(sharding: Sharding) -> list[str]:
    """Returns the code that packs a tensor out of the component of each device."""
    specs = ["dtensor.UNSHARDED" if name == UNSHARDED else quoted(name) for name in _specs(sharding)]
    return [
        _requirement("import numpy as np"),
        *_mesh(sharding.mesh),
        section(
            shared.entries_comment(),
            display("sharding_specs = [", specs, "]"),
            "layout = dtensor.Layout(sharding_specs, mesh)",
        ),
        shared.own_tensor("np.arange({count}, dtype=np.float32)", sharding),
        section(*_components(sharding), "tensor = dtensor.pack(components, layout)"),
    ]


def of_plan(plan: Plan) -> list[str]:
    """Returns the code that packs tensors by the names of their axes."""
    return [
        _requirement(),
        *_mesh(plan.mesh),
        shared.splits(plan),
        shared.function(
            "layout(*axes)",
            shared.layout_docstring(),
            "specs = [splits.get(axis, dtensor.UNSHARDED) for axis in axes]",
            "return dtensor.Layout(specs, mesh)",
        ),
        shared.function(
            "distributed(value, *axes)",
            shared.distributed_docstring(),
            "components = []",
            "for place in mesh.local_device_locations():",
            "    part = tf.constant(value)",
            "    for axis, name in enumerate(axes):",
            "        if name in splits:",
            "            dim = splits[name]",
            "            parts = tf.split(part, mesh.dim_size(dim), axis=axis)",
            "            part = parts[place[dim]]",
            "    components.append(part)",
            "return dtensor.pack(components, layout(*axes))",
        ),
    ]


def _specs(sharding: Sharding) -> tuple[str, ...]:
    return sharding.layout.sharding_specs


def _requirement(*imports: str) -> str:
    tensorflow = ("import tensorflow as tf", "from tensorflow.experimental import dtensor")
    return shared.requirement(f'"{REQUIREMENT}"', *imports, *tensorflow)


def _mesh(mesh: MeshSpec) -> list[str]:
    dims = [f"({quoted(name)}, {size})" for name, size in mesh.dims]
    return [
        section(
            comment(_("Virtual CPUs; leave these lines out where TensorFlow has started.")),
            'cpu = tf.config.list_physical_devices("CPU")[0]',
            f"virtual = [tf.config.LogicalDeviceConfiguration()] * {mesh.size}",
            "tf.config.set_logical_device_configuration(cpu, virtual)",
        ),
        section(
            display("mesh_dims = [", dims, "]"),
            f'devices = [f"CPU:{{device_id}}" for device_id in range({mesh.size})]',
            "mesh = dtensor.create_mesh(mesh_dims, devices=devices)",
        ),
    ]


def _components(sharding: Sharding) -> list[str]:
    """Returns the lines that split the tensor along each axis that the layout splits."""
    split = [(axis, name) for axis, name in enumerate(_specs(sharding)) if name != UNSHARDED]
    if not split:
        return [f"components = [tf.constant(value)] * {sharding.mesh.size}"]
    whole = ["value", *["part"] * (len(split) - 1)]
    lines = [
        call(
            f"part = tf.split({of}, {sharding.layout.num_shards(axis)}, axis={axis})[",
            [f"place[{quoted(name)}]"],
            "]",
            indent="    ",
        )
        for of, (axis, name) in zip(whole, split, strict=True)
    ]
    return [
        "components = []",
        "for place in mesh.local_device_locations():",
        *lines,
        "    components.append(part)",
    ]
