"""Makes the tables of what works: `python -m tools.cases [TABLE] ...`.

What was stopped goes on. A complete table is made anew with other versions, or when its journal in `build`
is deleted. Those of operations and of features are of the TensorFlow that runs this; the others need
`make jax` and `make estimator`, and are left out without.
"""

import argparse
from pkgutil import resolve_name

from course_lib.errors import CourseError

TABLES = {
    "operations": "tools.cases.operations.measure:measure",
    "features": "tools.cases.strategies.measure:measure",
    "keras_layouts": "tools.cases.keras.tables:measure_layouts",
    "estimator": "tools.cases.keras.tables:measure_estimator",
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="TABLE", help=", ".join(TABLES))
    for table in parser.parse_args().names or TABLES:
        try:
            resolve_name(TABLES[table])()
        except CourseError as error:
            print(f"left out: {table}. {error}", flush=True)
