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

import course_lib
from tests.course import COURSE

ROOT = COURSE.root
# Lines of Python and JavaScript, of lessons what they have beside their sources. They sink as code goes;
# where one was raised, docs/decisions/lines.md says what for.
CEILINGS = {
    "course_lib": (("course_lib",), 8_795),
    "course_lib and lessons": (("course_lib", "lessons"), 24_350),
    "tools, benchmarks and tests": (("tools", "benchmarks", "tests"), 22_185),
}


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
    """Yields the names that a file imports, or takes from a face."""
    tree = ast.parse(code_of(path))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Attribute):
            yield ast.unparse(node)
        match node:
            case ast.Call(ast.Attribute(attr="module"), [ast.Constant(str() as name)]):  # of the syllabus
                topic, _dot, inner = name.partition(".")
                yield f"lessons.{COURSE.place(topic).part}.{topic}.{inner}"


# For each name of the library's face the module that it stands for.
HOMES = {f"course_lib.{name}": f"course_lib.{home}" for name, home in course_lib._HOMES.items()}


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


# The folders of lessons, and others of a part, such as that of the puzzles.
FOLDERS = {path.parent.name: path.parent for path in (ROOT / "lessons").glob("*/*/__init__.py")}


def parts_of(names: set[str]) -> set[str]:
    return {FOLDERS[name].parent.name for name in names}


def reached_by_lesson() -> dict[str, set[str]]:
    """Returns for each module the names of the folders that need it: topics of lessons, and others."""
    users = defaultdict(set)
    for name, folder in FOLDERS.items():
        for module in reached(folder.rglob("*.py")):
            users[module].add(name)
    return users


def test_the_library_holds_what_two_parts_or_the_pipeline_use():
    users = reached_by_lesson()
    pipeline = reached(path for top in ("tools", "benchmarks") for path in (ROOT / top).rglob("*.py"))
    alone = {}
    for module in MODULES:
        alone_in_its_part = len(parts_of(users[module])) < 2
        if module.startswith("course_lib.") and alone_in_its_part and module not in pipeline:
            alone[module] = sorted(users[module])
    assert alone == {}


OVERVIEW = "whole_game"  # shows what the lessons have


def test_a_part_holds_what_two_of_its_lessons_use_and_a_lesson_is_for_itself():
    users = reached_by_lesson()
    for module, path in MODULES.items():
        match path.relative_to(ROOT).parts:
            case ("lessons", part, file) if file != "__init__.py":
                assert len(users[module] - {OVERVIEW}) > 1, module
                assert parts_of(users[module] - {OVERVIEW}) == {part}, module
            case ("lessons", _part, topic, _file):
                assert users[module] <= {topic, OVERVIEW}, module


def test_lessons_import_few_names_of_the_face_alone_and_a_page_of_the_book_describes_each():
    used = set()
    for name in COURSE.topics:
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


@pytest.mark.parametrize("kind", CEILINGS)
def test_the_tree_stays_below_its_ceilings(kind):
    tops, ceiling = CEILINGS[kind]
    command = ["git", "ls-files", *(f"{top}/**.{ending}" for top in tops for ending in ("py", "js"))]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    paths = [ROOT / name for name in names if not name.endswith("/lesson.py")]
    assert sum(len(path.read_text("utf-8").splitlines()) for path in paths if path.exists()) <= ceiling
