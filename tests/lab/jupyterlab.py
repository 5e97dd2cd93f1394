"""A real JupyterLab in a real browser: the server, and what a reader does and sees on its page."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from playwright.sync_api import Browser, Page, expect, sync_playwright

ROOT = Path(__file__).resolve().parent.parent.parent
SCREENSHOTS = ROOT / "build" / "screenshots"
START_SECONDS = 60
BROWSER_OPTIONS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
RUN_SECONDS = 300

# What a fresh JupyterLab asks on the network, or hides from a test, is switched off.
SETTINGS = {
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/notebook-extension/tracker": {"windowingMode": "none"},  # cells out of sight are drawn too
}

# What is done with the notebook `panel` that JupyterLab, `app`, shows, and its `session` with a kernel.
SCRIPT = """async (given) => {{
  const app = window.jupyterapp;
  await app.restored;
  const panel = app.shell.currentWidget;
  const session = panel.context.sessionContext;
  {what}
}}"""

# A kernel that ends a cell with an error also drops what asked it in that moment: then it is asked again.
PRINTED = """
  for (;;) {
    const request = session.session.kernel.requestExecute({code: given, store_history: false});
    let text = "";
    request.onIOPub = ({content}) => { text += content.text ?? content.traceback?.join("\\n") ?? ""; };
    const reply = await request.done;
    if (reply.content.status !== "aborted") return text;
  }
"""
OUTPUTS = """
  return panel.content.widgets.flatMap(
    (cell) => cell.model.type === "code" ? cell.model.outputs.toJSON() : []);
"""


@dataclass(frozen=True)
class Reader:
    """Somebody with a browser, and a JupyterLab that shows a folder."""

    chromium: str
    address: str
    folder: Path

    def read(self, path: str, reading: Callable[[Lesson], None], name: str) -> None:
        """Opens the notebook `path` and does with it what `reading` says; a screenshot `name` shows the end.

        In a thread of its own, because Playwright allows one instance a thread, and other tests have theirs.
        """
        with ThreadPoolExecutor(1) as thread:
            thread.submit(self._read, path, reading, name).result()

    def _read(self, path: str, reading: Callable[[Lesson], None], name: str) -> None:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=self.chromium, args=BROWSER_OPTIONS)
            with contextlib.closing(Lesson(browser, self.address, self.folder, path)) as lesson:
                try:
                    reading(lesson)
                finally:
                    lesson.page.screenshot(path=SCREENSHOTS / f"{name}.png")
            browser.close()


@contextlib.contextmanager
def jupyterlab(folder: Path, state: Path, python: str = sys.executable) -> Iterator[str]:
    """Gives the address of a JupyterLab, of this or another Python's environment, that shows a folder.

    It keeps its settings in `state`, an empty folder.
    """
    for name, setting in SETTINGS.items():
        file = state / "settings" / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(setting))
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    options = {
        "ServerApp.ip": "127.0.0.1",
        "ServerApp.port": port,
        "ServerApp.port_retries": 0,
        "ServerApp.root_dir": folder,
        "IdentityProvider.token": "",
        "LabApp.expose_app_in_browser": True,
        "LabApp.extension_manager": "readonly",
    }
    command = [python, "-m", "jupyterlab", "--no-browser", "--allow-root"]
    command += [f"--{name}={value}" for name, value in options.items()]
    with (state / "server.log").open("wb") as log:
        server = subprocess.Popen(command, env=environment(state), stdout=log, stderr=log)
        try:
            wait_for(address, server, state / "server.log")
            yield address
        finally:
            server.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):  # a kernel may keep it on a busy machine
                server.wait(timeout=10)
            server.kill()


def environment(state: Path) -> dict[str, str]:
    """Returns an environment in which JupyterLab neither finds nor changes the settings of this user."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "IPYTHON"))}
    return kept | {
        "JUPYTER_CONFIG_DIR": str(state / "config"),
        "JUPYTER_DATA_DIR": str(state / "data"),
        "JUPYTER_RUNTIME_DIR": str(state / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(state / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(state / "workspaces"),
        "IPYTHONDIR": str(state / "ipython"),
    }


def write_notebook(path: Path, cells: Mapping[str, str], language: str) -> None:
    """Writes a notebook of sources, by the names of its cells; LANGUAGE becomes the language."""
    made = [
        nbformat.v4.new_code_cell(source.strip().replace("LANGUAGE", language), id=name)
        for name, source in cells.items()
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}  # or JupyterLab asks which
    nbformat.write(nbformat.v4.new_notebook(cells=made, metadata=kernel), path)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def wait_for(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    for _try in range(START_SECONDS * 5):
        with contextlib.suppress(urllib.error.URLError), urllib.request.urlopen(f"{address}/api"):
            return
        if server.poll() is not None:
            break
        time.sleep(0.2)
    raise RuntimeError("JupyterLab did not start:\n" + log.read_text(errors="replace"))


class Lesson:
    """A notebook that is open in JupyterLab; its path is from the folder on that JupyterLab shows.

    Its `problems` are uncaught errors in the page, and requests that left this machine.
    """

    def __init__(self, browser: Browser, address: str, folder: Path, path: str) -> None:
        cells = nbformat.read(folder / path, 4).cells
        self.cells = [cell.id for cell in cells]
        self.num_code_cells = sum(cell.cell_type == "code" for cell in cells)
        self.page: Page = browser.new_page(viewport={"width": 1280, "height": 960})
        self.page.set_default_timeout(START_SECONDS * 1000)  # an answer may wait until TensorFlow has started
        self.problems: list[str] = []
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("request", lambda request: self._note_request(request.url, address))
        self.page.goto(f"{address}/lab/workspaces/{Path(path).stem}/tree/{path}?reset")
        self.page.wait_for_selector(".jp-NotebookPanel .jp-CodeCell", timeout=START_SECONDS * 1000)
        self._do("await panel.context.ready; await session.ready; await session.session.kernel.info;")

    def close(self) -> None:
        """Shuts the kernel down, whatever it does, and closes the page."""
        self._do("await session.shutdown();")
        self.page.close()

    def _do(self, what: str, given: object = None) -> Any:
        """Runs a script in JupyterLab and returns what it gives."""
        return self.page.evaluate(SCRIPT.format(what=what), given)

    def _note_request(self, url: str, address: str) -> None:
        if not url.startswith((address, address.replace("http", "ws"), "data:", "blob:")):
            self.problems.append(f"request to {url}")

    def run_all(self) -> None:
        """Runs every cell and waits until the last has ended."""
        self.start_all()
        self.wait_for_all()

    def start_all(self) -> None:
        """Runs every cell without waiting."""
        run = "app.commands.execute('notebook:run-all-cells').then(() => { window.allRan = true; });"
        self._do(f"window.allRan = false; {run}")

    def wait_for_all(self) -> None:
        """Waits until the last of all cells that were started has ended."""
        self.page.wait_for_function("window.allRan", timeout=RUN_SECONDS * 1000)

    def see_pictures_in(self, cell: str, pictures: int) -> None:
        """Waits until a cell has shown so many different pictures."""
        picture, last = self.locate(cell).locator(".jp-OutputArea-output img").first, ""
        for _picture in range(pictures):
            expect(picture).not_to_have_attribute("src", last, timeout=RUN_SECONDS * 1000)
            last = picture.get_attribute("src") or ""

    def press_stop_in(self, cell: str, pictures: int) -> None:
        """Presses Stop in a cell, once it has shown so many different pictures."""
        self.see_pictures_in(cell, pictures)
        self.locate(cell).locator("button:has(.fa-stop)").click()

    def run_cell(self, cell: str) -> None:
        """Runs one cell and waits until it has ended."""
        run = "await app.commands.execute('notebook:run-cell');"
        self._do(f"panel.content.activeCellIndex = given; {run}", self.cells.index(cell))

    def restart(self) -> None:
        """Restarts the kernel, whatever it does."""
        self._do("await session.session.kernel.restart();")

    def printed(self, code: str) -> str:
        """Returns what the kernel prints for `code`, which leaves no trace in the notebook."""
        return str(self._do(PRINTED, code))

    def locate(self, cell: str) -> Any:
        """Returns the place of a cell on the page."""
        return self.page.locator(".jp-Notebook .jp-Cell").nth(self.cells.index(cell))

    def outputs(self) -> list[dict[str, Any]]:
        """Returns the outputs of all cells."""
        shown: list[dict[str, Any]] = self._do(OUTPUTS)
        return shown

    def errors(self) -> list[str]:
        """Returns a line for each code cell that did not run or ended with an error, and for each problem."""
        raised = [output for output in self.outputs() if output["output_type"] == "error"]
        errors = [f"{output['ename']}: {output['evalue']}" for output in raised]
        num_ran = int(self.printed("print(len(In) - 1)"))
        missing = [f"{num_ran} of {self.num_code_cells} cells ran"] if num_ran < self.num_code_cells else []
        return [*errors, *missing, *self.problems]
