"""What an installation may consist of: the lock, the lowest versions, and other Pythons.

lock: asks pip, for each Python in turn, what ``.[test,docs]`` would install, and writes every
version into constraints.txt. A later Python takes the versions found for the earlier ones and adds
what only it needs, so that one line per package serves them all.

lowest: a fresh environment with every direct dependency at the lower bound that pyproject.toml
declares for it, in which the tests below ``SMOKE`` run.

pythons: a fresh environment from the lock for each Python, in which the same tests run.

Needs nothing but the standard library, so that it runs before anything is installed:

    python -m adaptive_vtt.experiments.environments lock
    python -m adaptive_vtt.experiments.environments lowest
    python -m adaptive_vtt.experiments.environments pythons --python 3.12 --tests all
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from adaptive_vtt.utils.files import write_text

PYTHONS = ("3.11", "3.12", "3.13")
HELD = {"torch": "2.13.0"}
"""Not simply the newest: torch is held at a version of which registries offer a plain CPU build."""
SMOKE = (
    "tests/contracts/test_models.py",
    "tests/contracts/test_strategies.py",
    "tests/contracts/test_surrogates.py",
    "tests/test_audit.py",
    "tests/test_cli.py",
    "tests/test_http_json.py",
    "tests/test_import.py",
    "tests/test_journal.py",
    "tests/test_killed.py",
    "tests/test_onnx.py",
    "tests/test_openai_chat.py",
    "tests/test_parquet.py",
    "tests/test_report.py",
    "tests/test_specs.py",
)
"""Every dependency at work: tests of models, journal, reports and the command line."""
HEAD = """\
# Made by 'make lock': every package that 'make demo', 'make test' and 'make docs' install, on Linux
# with Python {pythons}. Packages that only some of them need do no harm to the others.
"""
_BOUND = re.compile(r"([A-Za-z0-9._-]+)>=([0-9.]+)")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="locks, lower bounds and other Pythons")
    parser.add_argument("what", choices=("lock", "lowest", "pythons"))
    parser.add_argument("--python", nargs="+", default=None, help="versions, e.g. 3.12 3.13")
    parser.add_argument("--tests", choices=("smoke", "all"), default="smoke")
    options = parser.parse_args(arguments)
    root = Path.cwd()
    if options.what == "lock":
        lock(root, options.python or PYTHONS)
        return
    tests = SMOKE if options.tests == "smoke" else ()
    if options.what == "lowest":
        python = (options.python or PYTHONS)[0]
        write_text(root / ".venvs" / "lowest.txt", pinned(lower_bounds(root)))
        try_out(root, python, f"lowest-{python}", root / ".venvs" / "lowest.txt", tests)
        return
    for python in options.python or PYTHONS[1:]:
        try_out(root, python, python, root / "constraints.txt", tests)


# -- the lock ---------------------------------------------------------------------------------


def lock(root: Path, pythons: Sequence[str]) -> None:
    """Writes constraints.txt from what pip would install now on each of ``pythons``."""
    versions = dict(HELD)
    for python in pythons:
        found = resolved(root, python, versions)
        print(f"Python {python}: {len(found)} packages", flush=True)
        versions |= found
    listed = f"{', '.join(pythons[:-1])} and {pythons[-1]}" if len(pythons) > 1 else pythons[0]
    write_text(root / "constraints.txt", HEAD.format(pythons=listed) + pinned(versions))


def resolved(root: Path, python: str, versions: Mapping[str, str]) -> dict[str, str]:
    """Package -> version that pip picks for ``.[test,docs]`` on this Python, under ``versions``."""
    pip, scratch = environment(root, f"lock-{python}", python), root / ".venvs"
    write_text(scratch / "lock.txt", pinned(versions))
    report = scratch / "lock.json"
    _run(
        [
            pip,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--dry-run",
            "--ignore-installed",
            "--report",
            report,
            "-c",
            scratch / "lock.txt",
            f"{root}[test,docs]",
        ]
    )
    packages = [each["metadata"] for each in json.loads(report.read_text("utf-8"))["install"]]
    return {
        normal(each["name"]): str(each["version"]).partition("+")[0]
        for each in packages
        if normal(each["name"]) != "adaptive-vtt"
    }


def pinned(versions: Mapping[str, str]) -> str:
    """One line ``name==version`` per package, in order of name."""
    return "".join(f"{name}=={versions[name]}\n" for name in sorted(versions))


def normal(name: str) -> str:
    """A package's name as indexes compare it: lower case, with dashes."""
    return re.sub(r"[-_.]+", "-", name).lower()


# -- lower bounds and other Pythons -----------------------------------------------------------


def lower_bounds(root: Path) -> dict[str, str]:
    """Package -> lower bound, of all that ``.[test]`` names in pyproject.toml.

    Raises ValueError for a dependency without one: what was never tried is not promised.
    """
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    bounds = {}
    for line in [*project["dependencies"], *project["optional-dependencies"]["test"]]:
        found = _BOUND.fullmatch(line)
        if found is None:
            raise ValueError(f"pyproject.toml: expected 'name>=version', got {line!r}")
        bounds[normal(found[1])] = found[2]
    return bounds


def try_out(root: Path, python: str, name: str, pins: Path, tests: Sequence[str]) -> None:
    """Installs ``.[test]`` under ``pins`` into a fresh environment and runs ``tests`` in it.

    Raises SystemExit where one of the two fails.
    """
    there = environment(root, name, python)
    install: list[Path | str] = [there, "-m", "pip", "install", "--quiet", "-c", pins]
    _run([*install, "setuptools", "setuptools-scm"])
    _run([*install, "--no-build-isolation", "-e", f"{root}[test]"])
    print(f"{name}: installed; now the tests", flush=True)
    _run([there, "-m", "pytest", "-n", "2", *tests])


def environment(root: Path, name: str, python: str) -> Path:
    """The interpreter of a new, empty virtual environment below ``.venvs``."""
    folder = root / ".venvs" / name
    _run([f"python{python}", "-m", "venv", "--clear", folder], PYENV_VERSION=python)
    return folder / "bin" / "python"


def _run(command: Sequence[Path | str], **more: str) -> None:
    """Runs a command to its end; ``more`` goes into its environment."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, env={**os.environ, **more}, check=False)
    except FileNotFoundError:
        sys.exit(f"environments: expected {words[0]!r} on the PATH, found no such program")
    if done.returncode:
        sys.exit(f"environments: exit code {done.returncode} from: {' '.join(words)}")


if __name__ == "__main__":
    main()
