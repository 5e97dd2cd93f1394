"""What must be the same in all processes of a training, as short texts that can be compared."""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from course_lib.data.examples import Examples
from course_lib.training.examples import fingerprint
from course_lib.training.saved import names_in

_PACKAGE = Path(__file__).parents[1]
_TOLD = ("tensorflow", "keras")
# Arguments that each process may have for itself; the folder may be called otherwise on another machine.
_OWN = ("language", "checkpoints", "wait", "start", "pause", "hold", "digits")


def facts_of(
    addresses: Mapping[str, str],
    arguments: Mapping[str, object],
    examples: Examples | None = None,
    checkpoint: str | None = None,
) -> dict[str, str]:
    """Returns what a process is going to do.

    Args:
        addresses: of all processes.
        arguments: those of the program that may not differ; the model follows from them.
        examples: what is trained on.
        checkpoint: the name of the checkpoint that is newest there, if there is one.
    """
    return {
        "cluster": digest(json.dumps(dict(addresses)).encode()),
        "arguments": " ".join(f"{name}={value}" for name, value in sorted(arguments.items())),
        "versions": " ".join(f"{package} {version(package)}" for package in _TOLD),
        "code": code_digest(_PACKAGE),
        "data": "" if examples is None else fingerprint(examples),
        "checkpoint": checkpoint or "",
    }


def code_digest(folder: Path) -> str:
    """Returns a digest of all Python files below a folder: of their names and of what stands in them."""
    parts = (
        f"{path.relative_to(folder).as_posix()} {digest(path.read_bytes())}"
        for path in sorted(folder.rglob("*.py"))
    )
    return digest("\n".join(parts).encode())


def digest(content: bytes) -> str:
    """Returns a short text that tells one content from another."""
    return hashlib.sha256(content).hexdigest()[:8]


def shared(arguments: argparse.Namespace) -> dict[str, object]:
    """Returns the arguments that must be the same for all."""
    return {name: value for name, value in vars(arguments).items() if name not in _OWN}


def newest(checkpoints: str | None) -> str | None:
    """Returns the name of the checkpoint from which this process would go on."""
    if checkpoints is None:
        return None
    return next(reversed(names_in(Path(checkpoints))), None)
