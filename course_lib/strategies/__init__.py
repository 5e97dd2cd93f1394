"""`tf.distribute` with its silent traps caught: strategies on the course's devices, and checks.

Each check raises a `CourseError` where TensorFlow would go on and be wrong.
"""

from course_lib.lazy import face

__getattr__, __dir__ = face(
    __name__,
    {
        "mirrored": "making",
        "require_alone": "making",
        "physical_devices": "devices",
        "require_devices": "devices",
        "require_in_scope": "checks",
        "require_no_plain_updates": "checks",
        "require_per_example": "checks",
    },
)
