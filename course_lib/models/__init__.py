"""The model that the library trains, and where its variables lie."""

from course_lib.lazy import face

__getattr__, __dir__ = face(__name__, {"MLP": "sentiment", "initial_values": "sentiment"})
