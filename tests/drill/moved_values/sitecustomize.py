"""On PYTHONPATH, moves the initial value of every variable that TensorFlow makes by a relative 1e-6 at most.

Python imports this module at its start. Whoever makes the variable is moved alike: the library, Keras, a
lesson's own cell. A value keeps the 20 leading bits of its 24 and is rounded to them. So

- equal values stay equal, under every layout and on every replica, and moving twice is moving once: what a
  lesson says about exact equality must still hold;
- 0, 1 and other numbers of few bits stay, so that hand-made tensors print as before;
- restored checkpoints stay as they are.
"""

import importlib.abc
import importlib.util
import sys

MODULE = "tensorflow.python.ops.resource_variable_ops"
DROPPED_BITS = 4  # of the 24 of float32: a relative 2 ** -20 at most


def moved(value):
    """Returns a float32 value with its mantissa rounded to the leading bits (Veltkamp's splitting)."""
    if str(getattr(value, "dtype", "")) not in ("float32", "<dtype: 'float32'>"):
        return value
    spread = value * (2.0**DROPPED_BITS + 1.0)
    return spread - (spread - value)


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


class _Loader(importlib.abc.Loader):
    def __init__(self, loader):
        self.loader = loader

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        self.loader.exec_module(module)
        wrap(module)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, *_path_and_target):
        if name != MODULE:
            return None
        sys.meta_path.remove(self)  # the next finder is the ordinary one
        spec = importlib.util.find_spec(name)
        spec.loader = _Loader(spec.loader)
        return spec


if __name__ == "sitecustomize":  # and not where a test imports it
    sys.meta_path.insert(0, _Finder())
