"""Executes the stored notebooks again and compares every output, strictly, with nbval.

    python -m tools.checks.compare_notebooks [LESSON ...]

No sanitiser and no skip marker is in use. A notebook of which a code cell did not run is an error.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

import nbformat

from tools.lesson.execute import CELL_TIMEOUT_SECONDS
from tools.lesson.sources import Course, LessonError


def command(paths: Sequence[Path], report: Path, jobs: int = 2) -> list[str]:
    """Returns the command line that compares these notebooks, `jobs` at a time, and writes a JUnit report."""
    return [
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
        *("--nbval", "--nbval-current-env", f"--nbval-cell-timeout={CELL_TIMEOUT_SECONDS}"),
        *("-n", str(jobs), "--dist", "loadfile", f"--junitxml={report}"),
        f"--rootdir={paths[0].parent.parent}",  # so that the report names a notebook en.01_topic.ipynb
        *map(str, paths),
    ]


def compare(paths: Sequence[Path], jobs: int = 2) -> Iterator[str]:
    """Yields every difference between the stored outputs of these notebooks and new ones."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        run = subprocess.run(command(paths, report, jobs), capture_output=True, text=True, check=False)
        if run.returncode:
            yield f"{run.stdout}{run.stderr}".strip()
        else:
            yield from not_executed(paths, report)


def not_executed(paths: Sequence[Path], report: Path) -> Iterator[str]:
    """Yields the notebooks that a report does not say to have passed, cell by cell."""
    passed = Counter(
        case.attrib["classname"] for case in ElementTree.parse(report).iter("testcase") if not len(case)
    )
    for path in paths:
        cells = [cell for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]
        ran = passed[f"{path.parent.name}.{path.name}"]
        if ran != len(cells) or not cells:
            yield f"{path.parent.name}/{path.name}: {ran} of {len(cells)} code cells ran"


def main() -> int:
    """Runs the command line and returns its exit status."""
    arguments = argparse.ArgumentParser(prog="tools.checks.compare_notebooks", description=__doc__)
    arguments.add_argument("lesson", nargs="*", help="such as 01_mesh_and_layout; all where none is given")
    course = Course.here()
    try:
        lessons = list(course.lessons(tuple(arguments.parse_args().lesson)))
        paths = [
            course.notebook(language, lesson.name) for lesson in lessons for language in course.languages
        ]
        faults = [f"{path.parent.name}/{path.name} is not built" for path in paths if not path.exists()]
        faults = faults or list(compare(paths))
    except LessonError as error:
        faults = [str(error)]
    print("\n".join(faults) or "Every output is what the notebooks say.")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
