"""Writes the library's built-in data, or says whether they are still what this makes.

python -m tools.stand_ins [--check]

The same bytes on every machine: integers and `random.Random` alone. SHA256SUMS has the hash of each file's
content, before `xz`, whose bytes may change with its version. Other data mean other numbers in every lesson:
then run `make notebooks` and `make results`.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import lzma
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tools.stand_ins import digits, garments
from tools.stand_ins.reviews import make_reviews

FOLDER = Path(__file__).parents[2] / "course_lib" / "data" / "built_in"
SUMS = "SHA256SUMS"
NUM_IMAGES = 5_000  # of either split: the lessons take no more
_SEEDS = {"train": 2026, "test": 2027}


def contents() -> Iterator[tuple[str, bytes]]:
    """Yields the name and the content of each file, before it is compressed."""
    yield "reviews.json", json.dumps(make_reviews(), indent=0).encode()
    for name, make in (("digits", digits.make_digits), ("garments", garments.make_garments)):
        for split, seed in _SEEDS.items():
            array = io.BytesIO()
            np.save(array, make(NUM_IMAGES, seed))
            yield f"{name}-{split}.npy", array.getvalue()


def write(folder: Path) -> None:
    """Writes the files, compressed, and the hashes of their contents."""
    folder.mkdir(exist_ok=True)
    lines = []
    for name, content in contents():
        (folder / f"{name}.xz").write_bytes(lzma.compress(content, preset=9 | lzma.PRESET_EXTREME))
        lines.append(f"{hashlib.sha256(content).hexdigest()}  {name}\n")
    (folder / SUMS).write_text("".join(lines), "utf-8")


def different(folder: Path) -> list[str]:
    """Returns the names of the files that hold something else than this makes."""
    return [
        name
        for name, content in contents()
        if lzma.decompress((folder / f"{name}.xz").read_bytes()) != content
    ]


def main() -> int:
    """Runs the command line and returns its exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; say which files differ")
    if not parser.parse_args().check:
        write(FOLDER)
        return 0
    names = different(FOLDER)
    print("\n".join(names) or "The built-in data are what tools.stand_ins makes.")
    return 1 if names else 0


if __name__ == "__main__":
    sys.exit(main())
