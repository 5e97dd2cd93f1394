"""Runs programs in JAX, or in PyTorch as one of the processes that torchrun starts, and writes the shards.

Run with "jax" or "torch", a JSON file of programs, and a folder, where process N writes for each tensor of
each program the shard of each of its devices to N.json. The Python that runs it has not the course.
"""

import functools
import json
import sys
from pathlib import Path

import numpy as np


def jax_shards(tensor):
    held = sorted(tensor.addressable_shards, key=lambda shard: shard.device.id)
    return [np.asarray(shard.data).tolist() for shard in held]


def torch_shards(tensor):
    return [tensor.to_local().tolist()]


def made(program, framework):
    """Returns the shards of each tensor that a program makes."""
    names = {}
    exec(program["code"], names)
    shards = torch_shards if framework == "torch" else jax_shards
    if "tensor" in names:
        return [shards(names["tensor"])]
    tensors = []
    for shape, axes in program["tensors"]:
        value = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        value = names["torch"].from_numpy(value) if framework == "torch" else value
        tensors.append(shards(names["distributed"](value, *axes)))
    return tensors


def main():
    framework, programs, folder = sys.argv[1:]
    process, finish = 0, lambda: None
    if framework == "torch":
        import torch.distributed as group

        group.init_process_group = functools.cache(group.init_process_group)  # each program starts the group
        group.init_process_group("gloo")
        process, finish = group.get_rank(), group.destroy_process_group
    results = [made(program, framework) for program in json.loads(Path(programs).read_text("utf-8"))]
    Path(folder, f"{process}.json").write_text(json.dumps(results), "utf-8")
    finish()


if __name__ == "__main__":
    main()
