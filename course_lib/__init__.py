"""The library of the course: meshes, layouts, pictures, and training on them.

Importing it does not import TensorFlow.
"""

from course_lib.errors import CourseError
from course_lib.layout import LayoutSpec
from course_lib.mesh import UNSHARDED, MeshSpec
from course_lib.runtime import setup, start_tensorflow

__all__ = ["UNSHARDED", "CourseError", "LayoutSpec", "MeshSpec", "setup", "start_tensorflow"]
