"""NumPy multiplies in one thread: the matrices are small, and two processes with two threads each fight."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when NumPy is imported, later than this
