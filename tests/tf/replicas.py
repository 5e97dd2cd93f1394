"""Replicas on the virtual CPUs of these tests."""

from course_lib.runtime import start_tensorflow

tf = start_tensorflow()


def mirrored(count, ops=tf.distribute.ReductionToOneDevice):
    """Returns a strategy without collective operations, which collide when a process has two."""
    return tf.distribute.MirroredStrategy([f"CPU:{number}" for number in range(count)], ops())
