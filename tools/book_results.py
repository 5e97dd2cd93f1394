"""Reads what `make results` measured on real data, for the page that shows it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

REQUIRED = ("how", "runs", "figures")


def load_results(folder: Path) -> dict[str, Any] | None:
    """Returns the results of every lesson in one record, or None while nothing was measured.

    Each JSON file holds `how` (how it was obtained: command, data, TensorFlow, hardware), `runs` (a name and the
    epochs of each training run) and `figures` (`file`, and `alt` and `caption` by language).

    Raises:
        SystemExit: a file lacks one of these, or names a picture that is not there or has no description.
    """
    files = sorted(folder.glob("*.json"))
    if not files:
        return None
    merged: dict[str, Any] = {key: [] for key in REQUIRED}
    for path in files:
        record = json.loads(path.read_text(encoding="utf-8"))
        _check(path, record)
        for key in REQUIRED:
            merged[key] += record[key] if isinstance(record[key], list) else [record[key]]
    return merged


def _check(path: Path, record: dict[str, Any]) -> None:
    missing = [key for key in REQUIRED if key not in record]
    if missing:
        raise SystemExit(f"{path} lacks {', '.join(missing)}; `make results` writes it whole.")
    for figure in record["figures"]:
        if not (path.parent / figure["file"]).exists() or not figure.get("alt"):
            raise SystemExit(
                f"{path} names the picture {figure['file']!r}, which is missing or has no description."
            )
