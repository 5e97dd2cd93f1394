"""What models are trained on: stand-ins and the real sets, as examples on the host."""

from course_lib.lazy import face

__getattr__, __dir__ = face(__name__, {"load_imdb": "imdb", "tf_idf": "imdb"})
