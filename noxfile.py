"""What an installation may consist of: the lock, the lowest versions, and other Pythons.

pip install nox uv
nox -s lock          # constraints.txt anew, of what pip would install now
nox -s lowest        # every direct dependency at its lower bound in pyproject.toml
nox -s pythons       # from the lock, with every other Python; nox -s pythons -- all: all tests
"""

import json
from pathlib import Path

import nox

PYTHONS = ("3.11", "3.12", "3.13")
HELD = {"torch": "2.13.0"}  # the version of which registries offer a plain CPU build
# Every dependency at work: models, journal, reports and the command line.
SMOKE = [f"tests/contracts/test_{name}.py" for name in ("models", "strategies", "surrogates")]
SMOKE += [f"tests/test_{name}.py" for name in ("audit", "cli", "http_json", "import", "journal")]
SMOKE += [f"tests/test_{name}.py" for name in ("killed", "onnx", "openai_chat", "parquet")]
SMOKE += ["tests/results/test_report.py", "tests/config/test_specs.py"]
HEAD = """\
# Made by 'make lock': every package that 'make demo', 'make test' and 'make docs' install, on Linux
# with Python {}. Packages that only some of them need do no harm to the others.
"""
LOCK = Path("constraints.txt")


@nox.session(python=PYTHONS)
def lock(session: nox.Session) -> None:
    """A later Python takes the versions found for the earlier ones and adds what only it needs."""
    first = session.python == PYTHONS[0]
    known = HELD if first else dict(line.split("==") for line in _pins())
    held, report = Path(session.create_tmp(), "held.txt"), Path(session.create_tmp(), "report.json")
    held.write_text(_lines(known))
    asked = ["--quiet", "--dry-run", "--ignore-installed", "--report", str(report)]
    session.run("pip", "install", *asked, "-c", str(held), f"{Path.cwd()}[test,docs]")
    for each in json.loads(report.read_text())["install"]:
        name = each["metadata"]["name"].lower().replace("_", "-").replace(".", "-")
        known = {**known, name: each["metadata"]["version"].partition("+")[0]}
    known.pop("adaptive-vtt")
    LOCK.write_text(HEAD.format(f"{', '.join(PYTHONS[:-1])} and {PYTHONS[-1]}") + _lines(known))


@nox.session(python=PYTHONS[0], venv_backend="uv")
def lowest(session: nox.Session) -> None:
    session.install("-e", ".[test]", "--resolution", "lowest-direct")
    session.run("pytest", "-n", "2", *SMOKE)


@nox.session(python=PYTHONS[1:])
def pythons(session: nox.Session) -> None:
    session.install("-c", str(LOCK), "setuptools", "setuptools-scm")
    session.install("-c", str(LOCK), "--no-build-isolation", "-e", ".[test]")
    session.run("pytest", "-n", "2", *([] if session.posargs == ["all"] else SMOKE))


def _pins() -> list[str]:
    return [line for line in LOCK.read_text().splitlines() if not line.startswith("#")]


def _lines(versions: dict[str, str]) -> str:
    return "".join(f"{name}=={versions[name]}\n" for name in sorted(versions))
