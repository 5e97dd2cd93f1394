"""What models are trained on: stand-ins and the real sets, as examples on the host."""

from course_lib.lazy import face

__getattr__, __dir__ = face(
    __name__,
    {
        **dict.fromkeys(("load_imdb", "tf_idf"), "imdb"),
        "load_mnist": "mnist",
        **dict.fromkeys(("load_fashion", "class_names"), "fashion"),
    },
)
