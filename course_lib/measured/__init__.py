"""What `make results` measured on real data, and how: files, one loader, one table."""

from course_lib.lazy import face

_HOMES = {
    "files": ("load", "names"),
    "tables": ("table",),
    "trainings": ("accuracies", "exports", "picture", "restored", "spread"),
    "distances": ("differences", "loss_differences"),
}
__getattr__, __dir__ = face(__name__, {name: home for home, names in _HOMES.items() for name in names})
