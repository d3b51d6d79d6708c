"""Run the notebooks under ``docs/notebooks`` and keep what they show; or make pages of them to look at.

    python tools/notebooks.py --run                 # run all as they stand and store their outputs
    python tools/notebooks.py --run first-graph     # this one
    python tools/notebooks.py --pages FOLDER        # as HTML pages

A notebook runs in an empty folder. The tests run them with few epochs and compare what kinds of outputs they have.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import io
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import nbformat

import small_png

HOME = Path(__file__).parents[1] / "docs" / "notebooks"
NAMES = ("first-graph", "your-ontology", "reproduce-a-table", "tree-in-the-disk")
PATIENCE = 600  # seconds for a cell

Outputs = list[list[Any]]


def read(name: str) -> Any:
    """A notebook as it is stored."""
    return nbformat.read(HOME / f"{name}.ipynb", as_version=4)


def quickened(notebook: Any, epochs: int) -> Any:
    """The same with so many epochs in every training, and no more validations than that."""
    for cell in notebook.cells:
        cell.source = re.sub(r"(\bepochs(?:=|\": ))\d+", rf"\g<1>{epochs}", cell.source)
        cell.source = re.sub(r"(\bvalidate_every(?:=|\": ))\d+", rf"\g<1>{epochs}", cell.source)
    return notebook


def run_in_kernel(notebook: Any, folder: Path) -> Any:
    """Run it in a kernel of its own, as a reader would; the notebook with its outputs."""
    from nbclient import NotebookClient

    with _homes():
        NotebookClient(notebook, timeout=PATIENCE, resources={"metadata": {"path": str(folder)}}).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # times, which differ every time
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if not _aside(output)]
    return notebook


@contextlib.contextmanager
def _homes() -> Iterator[Path]:
    """Folders for what Jupyter and IPython write: the user's own need not be there, and stay as they are."""
    names = ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR")
    before = {name: os.environ.get(name) for name in names}
    with tempfile.TemporaryDirectory() as home:
        os.environ.update({name: str(Path(home) / name.lower()) for name in names})
        try:
            yield Path(home)
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


def _aside(output: Any) -> bool:
    """Whether murp only says that something is compiled, which it does once on a machine; other words are an error."""
    if output.output_type != "stream" or output.name != "stderr":
        return False
    if not all(line.startswith("murp: compiling") for line in output.text.splitlines()):
        raise RuntimeError(f"a cell wrote to standard error: {output.text}")
    return True


def run_here(notebook: Any, folder: Path) -> Outputs:
    """Run its cells in this process, which has everything imported already; the outputs of each code cell."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    found: Outputs = []
    with _homes() as home, contextlib.chdir(folder):
        settings = Config(HistoryManager={"enabled": False})
        shell = InteractiveShell.instance(ipython_dir=str(home), config=settings)  # the one that display() asks for
        try:
            for cell in notebook.cells:
                if cell.cell_type == "code":
                    found.append(_outputs(shell, cell.source))
        finally:
            InteractiveShell.clear_instance()
    return found


def _outputs(shell: Any, source: str) -> list[Any]:
    """What one cell shows."""
    from IPython.utils.capture import capture_output

    results: list[Any] = []
    # What the last line of a cell gives, with all its forms, instead of its text on standard output.
    shell.displayhook.write_output_prompt = lambda: None
    shell.displayhook.write_format_data = lambda data, *_: results.append(data)
    with capture_output() as captured, contextlib.redirect_stderr(io.StringIO()):
        shell.run_cell(source).raise_error()
    printed = [{"stream": captured.stdout}] if captured.stdout.strip() else []
    return [*(output.data for output in captured.outputs), *results, *printed]


def kinds(outputs: Sequence[Any]) -> set[str]:
    """What kinds of output a cell has: mime types and streams; the bar of a training is not one of them."""
    found: set[str] = set()
    for output in outputs:
        if "stream" in output or output.get("output_type") == "stream":
            found.add("stream")
            continue
        data = output.get("data", output)
        if "<progress" not in str(data.get("text/html", "")):
            found |= set(data)
    return found


def store(name: str) -> None:
    """Run a notebook as it stands and keep its outputs."""
    with tempfile.TemporaryDirectory() as folder:
        notebook = run_in_kernel(read(name), Path(folder))
        for cell in notebook.cells:
            for output in cell.get("outputs", []):
                if "image/png" in output.get("data", {}):
                    output.data["image/png"] = _small(output.data["image/png"], Path(folder))
    (HOME / f"{name}.ipynb").write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")


def _small(picture: str, folder: Path) -> str:
    """The same picture in fewer bytes, in base64."""
    small_png.write(base64.b64decode(picture), folder / "small.png")
    return base64.b64encode((folder / "small.png").read_bytes()).decode()


def pages(folder: Path) -> None:
    """Every notebook as an HTML page."""
    from nbconvert import HTMLExporter

    folder.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        body, _ = HTMLExporter(template_name="classic").from_notebook_node(read(name))
        (folder / f"{name}.html").write_text(body, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", nargs="*", choices=NAMES, metavar="NAME", help="run these, or all, and store them")
    parser.add_argument("--pages", type=Path, metavar="FOLDER", help="write HTML pages")
    options = parser.parse_args()
    for name in (options.run or NAMES) if options.run is not None else ():
        store(name)
    if options.pages is not None:
        pages(options.pages)
    return 0


if __name__ == "__main__":
    sys.exit(main())
