"""What `make results` measured, and how: files, one loader, one table."""

from course_lib.lazy import face

__getattr__, __dir__ = face(
    __name__,
    {
        "load": "files",
        "table": "tables",
        "picture": "trainings",
    },
)
