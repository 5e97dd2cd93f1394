"""Eight virtual CPUs for every test in this folder, as the lessons have them; most graphs run as they are.

Half of the time of compiling for eight devices is Grappler's, TensorFlow's optimizer of graphs, which is not
what most tests are about. Those that hold steps against oracles on each kind of layout, or look at the graphs
that run, ask for `optimized` (docs/decisions/ci-time.md).
"""

import gc
import os

import pytest

import course_lib

course_lib.setup(devices=8)
OPTIMIZED_EVERYWHERE = "COURSE_TESTS_OPTIMIZE_GRAPHS" in os.environ


@pytest.fixture(scope="package", autouse=True)
def graphs_as_they_are():
    _optimize(OPTIMIZED_EVERYWHERE)
    gc.collect()
    gc.freeze()  # what the imports made stays, and need not be looked through again and again
    yield
    gc.unfreeze()
    _optimize(True)


@pytest.fixture
def optimized(graphs_as_they_are):
    """Lets TensorFlow optimize the graphs that a test compiles, as it does for readers."""
    _optimize(True)
    yield
    _optimize(OPTIMIZED_EVERYWHERE)


def _optimize(wanted):
    tf = course_lib.start_tensorflow()
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": not wanted})
