"""Clusters of local processes: real workers, real ports, real deaths; none outlives its cell."""

from course_lib.lazy import face

__getattr__, __dir__ = face(
    __name__,
    {
        "Cluster": "running",
        "Report": "report",
        "Told": "report",
    },
)
