"""What benchmarks write; each runs whole in `make results`, by hand."""

from benchmarks.results import MEASUREMENTS
from course_lib.measured.files import names


def test_each_file_has_its_measurement():
    tables = {"keras_layouts-support", "strategies-support"}  # tools.cases
    assert {*names()} == {*MEASUREMENTS} | tables
