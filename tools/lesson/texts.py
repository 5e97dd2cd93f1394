"""The words that the tools put into notebooks; translated in `notebooks/locale/*/shared.po`."""

SOLUTION = "Solution"
OPEN_IN_COLAB = "Open this lesson in Colab"

ALL = (SOLUTION, OPEN_IN_COLAB)
