"""What `make results` measured, and how: files, one loader, one table."""

from course_lib.lazy import face

__getattr__, __dir__ = face(
    __name__,
    {
        **dict.fromkeys(("load", "names"), "files"),
        "table": "tables",
        **dict.fromkeys(("accuracies", "exports", "picture", "restored", "spread"), "trainings"),
    },
)
