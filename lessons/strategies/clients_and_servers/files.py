"""The folder into which the reader's cells write the programs of this lesson."""

from __future__ import annotations

from pathlib import Path

_WEIGHT = ("all_reduce", "roles", "slowly", "one_weight", "asynchronous")
_COORDINATOR = ("coordinator_start", "variables", "coordinator", "slow")
_CLIENT = ("one_mesh", "client_start", "client")


def make_folder() -> Path:
    """Returns the folder, with an empty file for each program: what is written there is then overwritten."""
    folder = Path("clients_and_servers_programs")
    folder.mkdir(exist_ok=True)
    for name in (*_WEIGHT, *_COORDINATOR, *_CLIENT):
        (folder / f"{name}.py").touch()
    return folder
