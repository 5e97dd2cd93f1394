"""Clusters of local processes: real workers, real ports, real deaths; none outlives its cell."""

from lessons.lesson_11_many_processes.cluster.report import Report, Told
from lessons.lesson_11_many_processes.cluster.running import Cluster

__all__ = ["Cluster", "Report", "Told"]
