"""On PYTHONPATH, moves the initial value of every variable that TensorFlow makes by a relative 1e-6 at most.

Python imports this module at its start. Whoever makes the variable is moved alike: the library, Keras, a
lesson's own cell. A value keeps the 20 leading bits of its 24 and is rounded to them. So

- equal values stay equal, under every layout and on every replica, and moving twice is moving once: what a
  lesson says about exact equality must still hold;
- 0, 1 and other numbers of few bits stay, so that hand-made tensors print as before;
- restored checkpoints stay as they are.
"""

import wrapt  # which TensorFlow needs, too

DROPPED_BITS = 4  # of the 24 of float32: a relative 2 ** -20 at most


def moved(value):
    """Returns a float32 value with its mantissa rounded to the leading bits (Veltkamp's splitting)."""
    if str(getattr(value, "dtype", "")) not in ("float32", "<dtype: 'float32'>"):
        return value
    spread = value * (2.0**DROPPED_BITS + 1.0)
    return spread - (spread - value)


@wrapt.when_imported("tensorflow.python.ops.resource_variable_ops")
def wrap(module):
    """Makes new variables of this module start from moved values."""
    init = module.ResourceVariable._init_from_args

    def init_moved(self, initial_value=None, **options):
        if callable(initial_value) and "Checkpoint" not in type(initial_value).__name__:
            make = initial_value

            def initial_value():
                return moved(make())
        else:
            initial_value = moved(initial_value)
        return init(self, initial_value=initial_value, **options)

    module.ResourceVariable._init_from_args = init_moved
