"""Custom training on Fashion-MNIST."""
