"""Runs programs in PyTorch, as one of the processes that torchrun starts: each holds one device's shards.

Run with a JSON file of programs and a folder, where process N writes the shards of each tensor to N.json.
"""

from __future__ import annotations

import functools
import json
import math
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed

# Each program starts the group of processes, which can be done once.
torch.distributed.init_process_group = functools.cache(torch.distributed.init_process_group)


def made(program: dict[str, Any]) -> list[Any]:
    """Returns this process's shard of each tensor that a program makes."""
    names: dict[str, Any] = {}
    exec(program["code"], names)
    if "tensor" in names:
        return [names["tensor"].to_local().tolist()]
    return [
        names["distributed"](numbered(shape), *axes).to_local().tolist() for shape, axes in program["tensors"]
    ]


def numbered(shape: list[int]) -> torch.Tensor:
    """Returns the tensor of the numbers 0, 1, 2, ..."""
    return torch.arange(math.prod(shape), dtype=torch.float32).reshape(shape)


if __name__ == "__main__":
    programs, folder = map(Path, sys.argv[1:])
    results = [made(program) for program in json.loads(programs.read_text("utf-8"))]
    (folder / f"{torch.distributed.get_rank()}.json").write_text(json.dumps(results), "utf-8")
    torch.distributed.destroy_process_group()
