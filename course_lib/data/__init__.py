"""What models are trained on: stand-ins and the real sets, as examples on the host."""

from course_lib.data.images import class_names, load_fashion, load_mnist
from course_lib.data.imdb import load_imdb, tf_idf

__all__ = ["class_names", "load_fashion", "load_imdb", "load_mnist", "tf_idf"]
