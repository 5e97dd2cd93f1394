"""Models, one small file each."""

from course_lib.lazy import face

__getattr__, __dir__ = face(__name__, {"MLP": "sentiment", "initial_values": "sentiment", "mlp_step": "step"})
