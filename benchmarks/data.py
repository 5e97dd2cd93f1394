"""How long the data of lesson 03 takes: at the first start, and at the second, from the cache.

Every start is a process of its own, as it is for a reader, and is timed once TensorFlow is there. First and
second starts take turns; medians are compared.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time

from benchmarks.rows import Row, compared, table
from course_lib.data.sources import BUILT_IN, REAL


def measure(repeats: int = 3) -> list[Row]:
    """Returns a row for the stand-in, and one for the real reviews if TFDS_DATA_DIR says where they are."""
    sources = [BUILT_IN, REAL] if os.environ.get("TFDS_DATA_DIR") else [BUILT_IN]
    return [_measure_source(source, repeats) for source in sources]


def _measure_source(source: str, repeats: int) -> Row:
    pairs = [_measure_pair(source) for _repeat in range(repeats)]
    return compared(f"data, {source}: second start / first", pairs, "second start under 2 s")


def _measure_pair(source: str) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        first, second = (_start_in_new_process(source, folder) for _start in range(2))
        return second, first


def _start_in_new_process(source: str, folder: str) -> float:
    command = [sys.executable, "-m", "benchmarks.data", "--start", source]
    environment = {**os.environ, "COURSE_CACHE_DIR": folder}
    result = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return float(result.stdout)


def _start(source: str) -> float:
    """Returns the seconds from running TensorFlow to vectorised reviews."""
    import course_lib

    course_lib.setup(devices=8)
    tf = course_lib.start_tensorflow()
    _ = tf.keras.layers  # Keras is a part of TensorFlow that it imports when it is first used
    from course_lib.data import imdb as data

    begin = time.perf_counter()
    data.tf_idf(data.load_imdb(source))
    return time.perf_counter() - begin


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="how many pairs of starts")
    parser.add_argument("--start", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    print(_start(arguments.start) if arguments.start else table(measure(arguments.repeats)))


if __name__ == "__main__":
    main()
