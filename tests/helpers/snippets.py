"""Run the blocks of a page of the documentation, as its reader would.

The blocks run in their order and in one empty folder, so later ones can read files of earlier ones.

- A block of any language with ``title="FILE"`` is that file.
- ``python`` is executed, all blocks of a page in one namespace.
- ``sh`` is a command per line. ``avtt`` runs in this process, and a server with ``&`` in another
  one until the page's end. Commands that install or build (``NOT_RUN``) are left out. A command
  ends with exit code 0, or with the N of a comment "exit code N".
- ``toml`` without a title must be TOML; blocks of other languages are not run.

The port ``PORT``, the demo server's default, is replaced by a free one.

As a program it runs pages with the package of its Python, and needs nothing else:
``PYTHON -I tests/helpers/snippets.py PAGE...`` in an empty folder.
"""

import os
import re
import shlex
import socket
import subprocess
import sys
import time
import tomllib
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import adaptive_vtt
from adaptive_vtt.cli import main

ROOT = Path(__file__).parents[2]
PORT = "8008"
NOT_RUN = ("pip", "uv", "git", "make", "docker", "python3", ".")
SECONDS = 180
_BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"exit code (\d+)")
_TITLE = re.compile(r'title="([^"]+)"')


class Block(NamedTuple):
    """A fenced block: its language, the name of its file (or None), and its text."""

    language: str
    file: str | None
    text: str


def blocks(page: str) -> list[Block]:
    """Return the fenced blocks of a page that name a language, in their order."""
    fenced = []
    for language, rest, text in _BLOCK.findall(page):
        title = _TITLE.search(rest)
        fenced.append(Block(language, title[1] if title else None, text))
    return fenced


def run_page(page: str, folder: Path) -> None:
    """Run all blocks of a page; the current folder must be ``folder``."""
    page = page.replace(PORT, str(free_port()))
    names: dict[str, Any] = {"__name__": "snippets"}
    with ExitStack() as servers:
        for block in blocks(page):
            if block.file is not None:
                path = folder / block.file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(block.text, encoding="utf-8")
            elif block.language == "python":
                exec(compile(block.text, f"<{block.text.splitlines()[0]}>", "exec"), names)
            elif block.language == "sh":
                for line in block.text.replace("\\\n", " ").splitlines():
                    command(line, servers)
            elif block.language == "toml":
                tomllib.loads(block.text)


def command(line: str, servers: ExitStack) -> None:
    """Run a line of a terminal. Raise AssertionError if its exit code is not the expected one."""
    words = shlex.split(line, comments=True)
    if not words or words[0] in NOT_RUN:
        return
    if words[-1] == "&":
        _serve(words[:-1], line, servers)
        return
    comment = _CODE.search(line)
    code = run_here(words[1:]) if words[0] == "avtt" else _run(words)
    assert code == (int(comment[1]) if comment else 0), f"exit code {code} from: {line}"


def run_here(arguments: list[str]) -> int:
    """Return the exit code of ``avtt ARGUMENTS``."""
    try:
        main(arguments)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return 0


def free_port() -> int:
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return int(trial.getsockname()[1])


def _environment() -> dict[str, str]:
    """Return the environment in which commands find the package that runs here."""
    installed = Path(adaptive_vtt.__file__).parents[1] != ROOT
    return {**os.environ} if installed else {**os.environ, "PYTHONPATH": str(ROOT)}


def _run(words: list[str]) -> int:
    program = [sys.executable, *words[1:]] if words[0] == "python" else words
    return subprocess.run(program, env=_environment(), timeout=SECONDS).returncode


def _serve(words: list[str], line: str, servers: ExitStack) -> None:
    """Start ``avtt serve-demo ...`` until the page ends, and return when it listens."""
    code = "from adaptive_vtt.cli import main; main()"
    assert words[0] == "avtt", line
    port = words[words.index("--port") + 1]
    server = subprocess.Popen([sys.executable, "-c", code, *words[1:]], env=_environment())
    servers.callback(server.wait)
    servers.callback(server.terminate)
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        with socket.socket() as trial:
            if trial.connect_ex(("127.0.0.1", int(port))) == 0:
                return
        assert server.poll() is None, f"it ended: {line}"
        time.sleep(0.1)
    raise AssertionError(f"nothing listens on port {port}: {line}")


if __name__ == "__main__":
    for page in sys.argv[1:]:
        run_page(Path(page).read_text(encoding="utf-8"), Path.cwd())
