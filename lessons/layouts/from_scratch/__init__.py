"""From scratch with the Core API: MNIST and Adam."""
