"""Serving: a trained model leaves its mesh and this library, and answers texts wherever TensorFlow is."""

from course_lib.lazy import face

__getattr__, __dir__ = face(
    __name__,
    {
        "Served": "loading",
        "TextClassifier": "exporting",
        "export": "exporting",
        "load": "loading",
        "restore_model": "loading",
    },
)
