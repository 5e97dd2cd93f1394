"""Strategies: tf.distribute, on one machine and on many."""
