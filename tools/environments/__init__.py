"""The environments that the course runs in: its own, Google Colab's versions, and that of the appendices."""
