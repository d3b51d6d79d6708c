"""No way in: nothing in the package runs what a file says, and nothing is fetched unchecked."""

from __future__ import annotations

import ast
import hashlib
import io
import urllib.error
import urllib.request
from email.message import Message
from pathlib import Path

import pytest

import murp
from murp.errors import DataError
from murp.graph import datasets, download
from murp.graph.datasets import REGISTRY

SOURCES = sorted(Path(murp.__file__).parent.rglob("*.py"))
MODULES = {
    "pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "yaml", "pty", "ctypes",
    "code",
}  # fmt: skip
OF_NUMBERS = {"ctypes.c_int", "ctypes.c_long", "ctypes.c_size_t", "ctypes.c_void_p", "ctypes.get_errno"}
# Programs that run no code they find, and their first argument.
PROGRAMS = (["'git'", "'--no-optional-locks'"], ["'ffmpeg'", "'-v'"])
CALLS = {
    "eval", "exec", "compile", "__import__", "os.system", "os.popen", "os.execv", "os.execvp", "os.spawnl",
    "torch.load", "torch.save", "np.fromfile", "builtins.eval", "builtins.exec", "subprocess.getoutput",
    "shutil.unpack_archive", "tarfile.open",
}  # fmt: skip
# Text that is made of a table of operations and of numbers: tests/kernels/test_triton_formulas.py hands it other text.
MADE_OF_A_TABLE = {"kernels/triton_formulas.py": ["compile", "exec"]}


def forbidden(source: str) -> list[str]:
    """What a module does that would let data become code: imports and calls, with their lines."""
    found = []
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name != "ctypes" or not _asks_this_process_alone(tree)]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names] + [node.module or ""]
            names += ["eval"] * (node.module == "subprocess")  # only by its full name can its calls be looked at
        elif isinstance(node, ast.Call):
            names = []
            called = ast.unparse(node.func)
            if called in CALLS:
                found.append(f"line {node.lineno}: {called}")
            if called.startswith("subprocess.") and not _is_harmless(node):
                found.append(f"line {node.lineno}: {called} of another program")
            for keyword in node.keywords:
                constant = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
                if keyword.arg in ("shell", "allow_pickle") and constant is not False:
                    found.append(f"line {node.lineno}: {keyword.arg}={ast.unparse(keyword.value)}")
            if called in ("np.load", "numpy.load") and "allow_pickle" not in {k.arg for k in node.keywords}:
                found.append(f"line {node.lineno}: {called} without allow_pickle=False")
        else:
            continue
        found += [f"line {node.lineno}: {name}" for name in names if {name, name.partition(".")[0]} & (MODULES | CALLS)]
    return found


def _asks_this_process_alone(tree: ast.Module) -> bool:
    """Of ctypes ``CDLL(None)``, which is what this process has loaded already and no file, and names of numbers."""
    uses = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == "ctypes"]
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    opened = [node for node in calls if ast.unparse(node) in ("ctypes.CDLL(None)", "ctypes.CDLL(None, use_errno=True)")]
    numbers = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and ast.unparse(node) in OF_NUMBERS]
    return bool(opened) and len(uses) == len(opened) + len(numbers)


def _is_harmless(call: ast.Call) -> bool:
    """``subprocess.run(["git", "--no-optional-locks", …])``: no shell, and no Python, which would run code it finds."""
    first = call.args[0] if call.args else None
    return isinstance(first, ast.List) and [ast.unparse(word) for word in first.elts[:2]] in PROGRAMS


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(SOURCES[0].parent)))
def test_no_module_lets_data_become_code(path: Path) -> None:
    name = path.relative_to(SOURCES[0].parent).as_posix()
    found = [call.partition(": ")[2] for call in forbidden(path.read_text(encoding="utf-8"))]
    assert sorted(found) == MADE_OF_A_TABLE.get(name, [])


@pytest.mark.parametrize(
    "code",
    [
        "import pickle", "from pickle import loads", "import yaml", "eval('1')", "exec(x)", "os.system('ls')",
        "subprocess.run('ls')", "subprocess.run(['ls'])", "subprocess.run(x)",
        "subprocess.run([sys.executable, '-c', code])", "f(x, shell=True)", "f(x, shell=flag)",
        "torch.load(p)", "np.load(p)", "np.load(p, allow_pickle=True)", "from subprocess import run",
        "__import__('x')", "import ctypes", "import ctypes\nctypes.CDLL(None).f()\nctypes.CDLL(x)",
        "from ctypes import CDLL\nCDLL(None)", "import ctypes\nctypes.CDLL(None)\nctypes.string_at(x)",
    ],
)  # fmt: skip
def test_the_search_finds_what_it_looks_for(code: str) -> None:
    assert forbidden(code)


def test_the_search_passes_what_is_safe() -> None:
    assert forbidden("import json\nnp.load(p, allow_pickle=False)\nmodel.eval()\nre.compile('x')") == []
    assert forbidden("import ctypes\nctypes.CDLL(None).mallopt(1, 2)") == []
    assert forbidden("import subprocess\nsubprocess.run(['git', '--no-optional-locks', 'log'], check=True)") == []


class Reply(io.BytesIO):
    """An answer of a server, as an opener gives it."""

    def __init__(self, content: bytes, url: str, code: int = 200, headers: dict[str, str] | None = None) -> None:
        super().__init__(content)
        self.url, self.code, self.status, self.msg = url, code, code, "said"
        self.headers = Message()
        for name, value in (headers or {}).items():
            self.headers[name] = value

    def info(self) -> Message:
        return self.headers


class Web(urllib.request.HTTPSHandler):
    """A network of a few addresses."""

    def __init__(self, pages: dict[str, bytes | str]) -> None:
        super().__init__()
        self.pages = pages
        self.asked: list[str] = []

    def https_open(self, request: urllib.request.Request) -> Reply:  # type: ignore[override]
        return self.http_open(request)

    def http_open(self, request: urllib.request.Request) -> Reply:
        url = request.full_url
        self.asked.append(url)
        page = self.pages[url]
        return Reply(b"", url, 302, {"Location": page}) if isinstance(page, str) else Reply(page, url)


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Web:
    made = Web(
        {
            "https://good.example/a": b"content",
            "https://good.example/b": "https://good.example/a",
            "https://good.example/c": "http://good.example/a",
            "https://good.example/d": "file:///etc/passwd",
            "https://good.example/e": "https://good.example/c",
            "http://good.example/a": b"forged",
        }
    )
    build = urllib.request.build_opener
    monkeypatch.setattr(urllib.request, "build_opener", lambda *handlers: build(made, *handlers))
    return made


def test_https_is_fetched_and_its_redirects_are_followed(web: Web) -> None:
    assert download.fetch("https://good.example/a") == b"content"
    assert download.fetch("https://good.example/b") == b"content"


@pytest.mark.parametrize("address", ["https://good.example/c", "https://good.example/d", "https://good.example/e"])
def test_a_redirect_off_https_is_refused(web: Web, address: str) -> None:
    with pytest.raises((DataError, urllib.error.HTTPError), match=r"over https only|is not allowed"):
        download.fetch(address)
    assert all(url.startswith("https://") for url in web.asked)


@pytest.mark.parametrize(
    "address", ["http://good.example/a", "file:///etc/passwd", "ftp://x/y", "", "//good.example/a"]
)
def test_other_schemes_are_not_spoken(web: Web, address: str) -> None:
    with pytest.raises(DataError, match="over https only"):
        download.fetch(address)
    assert web.asked == []


def test_a_file_that_is_not_the_published_one_is_never_read(tmp_path: Path) -> None:
    wanted = next(entry for entry in REGISTRY if entry.sha256 and entry.base_url)
    read: list[Path] = []
    with pytest.raises(DataError, match=r"has SHA-256 \w+ instead of .* Nothing was kept"):
        download.download(wanted, tmp_path / "data", read.append, fetch=lambda url: b"a\tr\tb\n")
    assert read == []
    assert list(tmp_path.iterdir()) == []


def test_everything_that_can_be_downloaded_is_checked_by_a_hash() -> None:
    for entry in REGISTRY:
        assert set(entry.urls()) == set(entry.sha256) | set(entry.sha256_of_rows), entry.name


def test_rows_are_checked_in_whatever_order_and_with_whatever_line_ends() -> None:
    rows = [b"a\tr\tb", b"c\tr\td", b"a\tr\tb"]
    digest = hashlib.sha256(b"a\tr\tb\na\tr\tb\nc\tr\td").hexdigest()
    for content in (b"\n".join(rows), b"\r\n".join(reversed(rows)) + b"\r\n"):
        assert datasets.digest_of_rows(content) == digest
    for content in (b"\n".join(rows[:2]), b"a\tr\tb\nc\tr\td\nA\tr\tb", b""):
        assert datasets.digest_of_rows(content) != digest
