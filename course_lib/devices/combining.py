"""Whether DTensor makes one all-reduce of several: it reads the environment while it compiles a function."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

GROUP_SIZE = "DTENSOR_ALLREDUCE_COMBINE_OPTIMIZATION_GROUP_SIZE"


@contextlib.contextmanager
def no_combining() -> Iterator[None]:
    """Lets DTensor leave each all-reduce by itself in functions that are compiled meanwhile."""
    before = os.environ.get(GROUP_SIZE)
    os.environ[GROUP_SIZE] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[GROUP_SIZE]
        else:
            os.environ[GROUP_SIZE] = before
