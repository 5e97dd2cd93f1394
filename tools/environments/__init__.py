"""The environments that the course runs in: its own, and one with Google Colab's versions."""
