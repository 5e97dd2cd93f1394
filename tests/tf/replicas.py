"""Replicas on the virtual CPUs of these tests."""

from course_lib.runtime import start_tensorflow

tf = start_tensorflow()


def mirrored(count, ops=tf.distribute.ReductionToOneDevice):
    """Returns a strategy without collective operations, which collide when a process has two."""
    return tf.distribute.MirroredStrategy([f"CPU:{number}" for number in range(count)], ops())


def sent(strategy, parts):
    """Returns a distributed value: of each replica its part."""
    return strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant(parts[context.replica_id_in_sync_group], tf.float32)
    )
