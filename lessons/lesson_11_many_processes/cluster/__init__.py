"""Clusters of local processes: real workers, real ports, real deaths, and no process that outlives its cell.

The processes run any Python program that finds its place in TF_CONFIG or in DTensor's variables, so the same
program runs on real machines, started by what starts programs there.
"""

from course_lib.lazy import face

__getattr__, __dir__ = face(
    __name__,
    {
        "Cluster": "running",
        "Report": "report",
        "Told": "report",
    },
)
