"""Eight virtual CPUs, as the tests with TensorFlow have them."""

from tests.tf.conftest import graphs_as_they_are, optimized  # noqa: F401 - fixtures
