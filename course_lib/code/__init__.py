"""The code that makes a choice of mesh and layout, in TensorFlow, JAX and PyTorch, to copy."""

from course_lib.lazy import face

__getattr__, __dir__ = face(__name__, {"code_of": "choices", "FRAMEWORKS": "choices"})
