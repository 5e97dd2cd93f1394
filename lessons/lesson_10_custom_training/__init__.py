"""Lesson 10: Custom training on Fashion-MNIST."""
