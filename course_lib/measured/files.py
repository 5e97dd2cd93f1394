"""The files that `make results` writes, one for each measurement: one loader, and one function that saves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


class Record(dict[str, Any]):
    """An object of a file, whose entries are attributes too: `record["command"]` is `record.command`."""

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        raise AttributeError(f"the record has no {name!r}; it has {', '.join(self)}")


def names() -> tuple[str, ...]:
    """Returns what was measured, such as "a_run-imdb": the lesson's topic comes first."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.json")))


def load(name: str) -> Record:
    """Returns what was measured under that name; its `how` says by which command, and on what."""
    text = (FOLDER / f"{name}.json").read_text(encoding="utf-8")
    record: Record = json.loads(text, object_hook=Record)
    return record


def save(name: str, content: Mapping[str, Any]) -> Path:
    """Writes what was measured, so that `load` returns it, and returns the file."""
    text = json.dumps(content, indent=1)
    if '"accuracies"' in text:  # long lists of numbers, which nobody reads
        text = json.dumps(content, separators=(",", ":"))
    path = FOLDER / f"{name}.json"
    path.write_text(text + "\n", encoding="utf-8")
    return path
