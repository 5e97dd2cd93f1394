"""Stand-ins for JAX and PyTorch: what their documentation says of shards, in NumPy."""

from __future__ import annotations

import sys
import types

import numpy as np


class Devices:
    """Takes part of the programs that make a tensor, and keeps what each device gets: `{device: shard}`."""

    def __init__(self):
        self.shards = []

    def run(self, program: str) -> dict[str, object]:
        """Runs a program whose imports this stands in for, and returns its names."""
        names: dict[str, object] = {}
        before = dict(sys.modules)
        try:
            sys.modules.update(self.modules())
            exec(compile(program, "program", "exec"), names)
        finally:
            sys.modules.clear()
            sys.modules.update(before)
        return names


def module(name: str, **values: object) -> types.ModuleType:
    made = types.ModuleType(name)
    vars(made).update(values)
    return made


class JAX(Devices):
    """An entry of a `PartitionSpec` for each axis: the name of the mesh axis, or None for the whole of it."""

    def modules(self):
        sharding = module("jax.sharding", Mesh=self.mesh, NamedSharding=self.named, PartitionSpec=self.spec)
        config = types.SimpleNamespace(update=self.update)
        jax = module("jax", config=config, devices=self.devices, device_put=self.put, sharding=sharding)
        return {"jax": jax, "jax.sharding": sharding}

    def update(self, name, value):
        if name == "jax_num_cpu_devices":
            self.count = value

    def devices(self):
        return list(range(self.count))

    def mesh(self, devices, axis_names):
        assert devices.ndim == len(axis_names)
        return devices, axis_names

    def spec(self, *entries):
        return entries

    def named(self, mesh, entries):
        return mesh, entries

    def put(self, value, sharding):
        (devices, names), entries = sharding
        held = {}
        for place, device in np.ndenumerate(devices):
            at = dict(zip(names, place, strict=True))
            sizes = dict(zip(names, devices.shape, strict=True))
            index = []
            for axis, entry in enumerate(entries):
                length = value.shape[axis] // sizes.get(entry, 1)
                start = at.get(entry, 0) * length
                index.append(slice(start, start + length))
            held[device] = value[tuple(index)]
        self.shards.append(held)
        return held


class Torch(Devices):
    """A placement for each mesh dimension, one after the other: a chunk along an axis, or all of it."""

    def modules(self):
        group = types.SimpleNamespace(init_process_group=self.init)
        mesh = module("torch.distributed.device_mesh", init_device_mesh=self.mesh)
        tensor = module(
            "torch.distributed.tensor",
            Replicate=lambda: None,
            Shard=lambda axis: axis,
            distribute_tensor=self.distribute,
        )
        torch = module("torch", arange=np.arange, float32=np.float32, distributed=group)
        return {"torch": torch, "torch.distributed": group, mesh.__name__: mesh, tensor.__name__: tensor}

    def init(self, backend):
        assert backend == "gloo"

    def mesh(self, kind, shape, *, mesh_dim_names):
        assert kind == "cpu"
        assert len(mesh_dim_names) == len(shape)
        return np.arange(np.prod(shape)).reshape(shape)

    def distribute(self, value, mesh, placements):
        assert len(placements) == mesh.ndim
        held = {}
        for place, device in np.ndenumerate(mesh):
            part = value
            for at, axis, size in zip(place, placements, mesh.shape, strict=True):
                if axis is not None:
                    part = np.split(part, size, axis)[at]
            held[device] = part
        self.shards.append(held)
        return held
