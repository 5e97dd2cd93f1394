"""The words that the tools put into notebooks; `ALL` is translated in `lessons/locale/*/shared.po`."""

SOLUTION = "Solution"
OPEN_IN_COLAB = "Open this lesson in Colab"
# In the first code cell of an appendix, and so in the catalogue of each.
OTHER_KERNEL = (
    "Run `make estimator` in a terminal, then choose Kernel, Change Kernel, “TensorFlow 2.15 (Estimators)”."
)

ALL = (SOLUTION, OPEN_IN_COLAB)
