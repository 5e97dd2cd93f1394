"""NumPy multiplies in one thread: the matrices are small, and two processes with two threads each fight."""

import os

import pytest

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when NumPy is imported, later than this


@pytest.fixture
def program(tmp_path):
    """Writes a program, and returns its path."""

    def write(code):
        path = tmp_path / "program.py"
        path.write_text(code)
        return path

    return write
