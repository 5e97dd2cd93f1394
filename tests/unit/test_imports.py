"""What importing costs: TensorFlow starts late, so that explorers, pictures and checks are there at once."""

import re
import subprocess
import sys
import tomllib

import course_lib
from tests.course import COURSE

ROOT = COURSE.root
# Imports all modules of library and lessons but those of some packages, in a process without TensorFlow.
IMPORT_ALL = """
import pkgutil, sys
from importlib import import_module

sys.modules |= dict.fromkeys(("tensorflow", "tensorflow_datasets", "keras", "tf_keras"))
import course_lib, lessons

for package in (course_lib, lessons):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not module.name.startswith(tuple(sys.argv[1:])) and not module.name.endswith(".lesson"):
            import_module(module.name)
"""


def tensorflows_side() -> list[str]:
    """Returns the packages of the library that a contract lets import TensorFlow."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    (contract,) = [
        each for each in settings["tool"]["importlinter"]["contracts"] if each["type"] == "protected"
    ]
    allowed = [name for name in contract["allowed_importers"] if name.startswith("course_lib.")]
    return [name for name in allowed if (ROOT / name.replace(".", "/")).is_dir()]


def test_no_module_but_those_of_tensorflows_side_needs_tensorflow_when_it_is_imported():
    command = [sys.executable, "-c", IMPORT_ALL, *(f"{package}." for package in tensorflows_side())]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_help_lists_each_name_and_leaves_tensorflow_to_setup():
    modules = {"data", "measured"}
    listed = re.findall(r"^  (\w+)  +\w", course_lib.__doc__, re.M)
    assert sorted(listed) == sorted({*course_lib._HOMES, *modules})
    ask = "import course_lib, pydoc, sys; pydoc.render_doc(course_lib); sys.exit('tensorflow' in sys.modules)"
    subprocess.run([sys.executable, "-c", ask], cwd=ROOT, check=True)
