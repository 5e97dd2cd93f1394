"""The tree tells the truth: the library holds what is shared, within its budget of lines."""

import ast
import functools
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import jupytext
import pytest

from tests.course import COURSE

ROOT = COURSE.root
# Lines of Python, all included; of lessons what they have beside their sources.
BUDGET = {"course_lib": 12_700, "lessons": 8_370, "tools and benchmarks": 6_990, "tests": 18_310}
TOPS = {"tools": "tools and benchmarks", "benchmarks": "tools and benchmarks"}


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {
    module_of(path): path
    for package in ("course_lib", "lessons")
    for path in (ROOT / package).rglob("*.py")
    if path.name != "lesson.py"
}


def code_of(path: Path) -> str:
    """Returns the Python of a module, or of a lesson's cells without what only a notebook can run."""
    if path.name != "lesson.py":
        return path.read_text("utf-8")
    cells = jupytext.reads(path.read_text("utf-8"), fmt="py:percent").cells
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    return re.sub(r"\bawait ", "", re.sub(r"^\s*%.*$", "", code, flags=re.M))


def named_in(path: Path) -> Iterator[str]:
    """Yields the names that a file imports, lazily too, or takes from a face."""
    tree = ast.parse(code_of(path))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Attribute):
            yield ast.unparse(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value  # of `import_module`, or of what draws a kind


def homes() -> dict[str, str]:
    """Returns for each name of each face the module that it stands for."""
    found = {}
    for module, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "face":
                names = eval(compile(ast.Expression(node.args[1]), "", "eval"), {"dict": dict})
                found |= {f"{module}.{name}": f"{module}.{home}" for name, home in names.items()}
    return found


HOMES = homes()


@functools.cache
def imported(path: Path) -> set[str]:
    found = set()
    aliases = {}
    for name in named_in(path):
        parts = name.split(".")
        if parts[0] in aliases:
            parts = [*aliases[parts[0]].split("."), *parts[1:]]
        if parts[0] not in ("course_lib", "lessons"):
            continue
        for end in range(len(parts), 0, -1):
            whole = ".".join(parts[:end])
            whole = HOMES.get(whole, whole)
            if whole in MODULES:
                found.add(whole)
                if end == len(parts):
                    aliases[parts[-1]] = whole
                break
    return found


def reached(paths: Iterator[Path]) -> set[str]:
    """Returns the modules that some files need, through others too."""
    seen: set[str] = set()
    waiting = [name for path in paths for name in imported(path)]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += [name.rpartition(".")[0]] if "." in name else []
            waiting += imported(MODULES[name])  # of a face only what it is made with: it names what it offers
    return seen


def test_the_library_holds_what_two_lessons_or_the_pipeline_use():
    users = defaultdict(set)
    for name in COURSE.lesson_names:
        for module in reached(COURSE.folder(name).rglob("*.py")):
            users[module].add(name)
    pipeline = [*(ROOT / "tools").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]
    for module in reached(path for path in pipeline):
        users[module].add("the pipeline")
    alone = {
        module: sorted(users[module])
        for module in MODULES
        if module.startswith("course_lib.") and len(users[module]) < 2 and users[module] != {"the pipeline"}
    }
    assert alone == {}


def test_lessons_import_few_names_of_the_face_alone_and_a_page_of_the_book_describes_each():
    used = set()
    for name in COURSE.lesson_names:
        code = code_of(COURSE.folder(name) / "lesson.py")
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("course_lib"):
                assert node.module == "course_lib", f"{name}: from {node.module}"
                used |= {alias.name for alias in node.names}
        used |= set(re.findall(r"\bcourse_lib\.(\w+)\(", code))
    page = (ROOT / "jupyter_book/pages/library.md").read_text("utf-8")
    described = {name for line in re.findall(r"^`.*", page, re.M) for name in re.findall(r"`(\w+)", line)}
    assert described == used
    assert len(used) <= 25


@pytest.mark.parametrize("kind", BUDGET)
def test_the_budget_holds(kind):
    names = subprocess.run(
        ["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    lines = defaultdict(int)
    for path in (ROOT / name for name in names):
        top = path.relative_to(ROOT).parts[0]
        if path.name != "lesson.py" and path.exists():
            lines[TOPS.get(top, top)] += len(path.read_text("utf-8").splitlines())
    assert lines[kind] <= BUDGET[kind]
