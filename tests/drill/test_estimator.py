"""The appendix on Estimators in the environment that `make estimator` makes."""

import shutil

import nbformat
import pytest

from tests.course import COURSE
from tests.lab.conftest import chromium  # noqa: F401 - a fixture
from tests.lab.jupyterlab import OUTPUTS, Reader, jupyterlab
from tests.lab.reading import take_screenshot
from tests.notebooks.nbval import IN_THEIR_KERNELS, compared
from tools.environments import estimator
from tools.lesson.texts import OTHER_KERNEL

APPENDIX = COURSE.notebook("en", "estimators")


@pytest.fixture(autouse=True)
def ready():
    if not estimator.is_ready():
        pytest.skip("there is no current environment with Estimators in build/estimator-venv: make estimator")


@pytest.mark.drill_all
@pytest.mark.parametrize(
    "machine", [{"ONEDNN_MAX_CPU_ISA": "SSE41"}, {"TF_ENABLE_ONEDNN_OPTS": "0"}], ids=str
)
def test_the_outputs_of_the_appendix_stay_on_another_machine(machine):
    run = compared([APPENDIX], machine, IN_THEIR_KERNELS)
    assert run.returncode == 0, run.stdout
    code_cells = [cell for cell in COURSE.lesson(APPENDIX.stem).cells if cell.kind == "code"]
    assert f"{len(code_cells)} passed" in run.stdout


@pytest.fixture
def reader(chromium, tmp_path):  # noqa: F811
    folder = tmp_path / "notebooks"
    folder.mkdir()
    shutil.copy(APPENDIX, folder)
    with jupyterlab(folder, tmp_path / "state") as address:
        yield Reader(chromium, address, folder)


@pytest.mark.drill_all
def test_jupyterlab_runs_the_appendix_in_its_kernel(reader):
    def reading(lesson, name):
        lesson.run_all()
        assert lesson.errors() == []
        assert lesson.printed("print(tf.__version__)").startswith("2.15.")
        take_screenshot(lesson, "reveal-examples", name)

    reader.read(APPENDIX.name, reading, "appendix")


@pytest.mark.drill_all
def test_in_the_kernel_of_the_lessons_it_says_what_to_do(reader):
    path = reader.folder / APPENDIX.name
    notebook = nbformat.read(path, 4)
    notebook.metadata.kernelspec.name = "python3"
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    nbformat.write(notebook, path)

    def reading(lesson, name):
        lesson.start_all()
        lesson.locate("setup").locator(".jp-OutputArea-output").wait_for()
        take_screenshot(lesson, "setup", name)
        (shown,) = lesson.page.evaluate(OUTPUTS)  # and no cell after it ran
        assert shown["traceback"] == [OTHER_KERNEL]

    reader.read(APPENDIX.name, reading, "appendix-elsewhere")
