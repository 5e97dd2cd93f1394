"""Writes the library's built-in data.

python -m tools.stand_ins

The same contents on every machine: integers and `random.Random` alone. The bytes of `xz` may change with its
version. Other data mean other numbers in all lessons: then run `make notebooks` and `make results`.
"""

from __future__ import annotations

import io
import json
import lzma
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tools.stand_ins import digits, garments
from tools.stand_ins.reviews import make_reviews

FOLDER = Path(__file__).parents[2] / "course_lib" / "data" / "built_in"
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


if __name__ == "__main__":
    for name, content in contents():
        (FOLDER / f"{name}.xz").write_bytes(lzma.compress(content, preset=9 | lzma.PRESET_EXTREME))
