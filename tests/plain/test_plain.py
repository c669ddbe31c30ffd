"""What README shows, and every command, in an environment that README's install lines made.

All other tests run with packages that users do not have. Here nothing else is installed, home
cannot be written to, and neither git nor a compiler is on the PATH.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.plain.environment import ROOT, folder_of, install_lines, make, present

VERSIONS = [None, "3.13"]
PROGRAMS = ("bash", "sh", "uname")
"""What the PATH holds besides the environment's own programs."""

ALIEN = """
import re
from importlib.metadata import distribution, distributions
from pip._vendor.packaging.requirements import Requirement

def plain(name):
    return re.sub("[-_.]+", "-", name).lower()

seen, waiting = set(), [("adaptive-vtt", "")]  # packages, each with an extra that is asked for
while waiting:
    package = waiting.pop()
    if package not in seen:
        seen.add(package)
        name, extra = package
        for need in map(Requirement, distribution(name).requires or ()):
            if need.marker is None or need.marker.evaluate({"extra": extra}):
                waiting += [(plain(need.name), wanted) for wanted in ("", *need.extras)]
print(*sorted({plain(d.name) for d in distributions()} - {name for name, _ in seen}))
"""
"""What is installed that the wheel does not ask for, itself or by way of others."""


@pytest.fixture(scope="module", params=VERSIONS, ids=lambda v: v or "python3")
def environment(request: pytest.FixtureRequest) -> Path:
    """The folder of a plain environment, made where it is not there."""
    if request.param is not None and not present(request.param):
        pytest.skip(f"no python{request.param} here")
    return make(request.param)


@pytest.fixture
def variables(environment: Path, tmp_path: Path) -> dict[str, str]:
    """The environment's variables in which a user's programs run."""
    return variables_of(environment, tmp_path)


def variables_of(environment: Path, folder: Path) -> dict[str, str]:
    programs = folder / "programs"
    programs.mkdir()
    for name in PROGRAMS:
        (programs / name).symlink_to(str(shutil.which(name)))
    path = os.pathsep.join([str(environment / "bin"), str(programs)])
    return {"PATH": path, "HOME": "/nonexistent", "LANG": "C.UTF-8", "TERM": "dumb"}


def run(words: list[str], folder: Path, variables: dict[str, str], seconds: int = 180) -> str:
    """Run a program, which must end with exit code 0; return what it printed."""
    done = subprocess.run(
        words, cwd=folder, env=variables, capture_output=True, text=True, timeout=seconds
    )
    assert done.returncode == 0, f"{words}:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def page(environment: Path, path: Path, folder: Path, variables: dict[str, str]) -> None:
    """Run a page's snippets by the installed package."""
    python = str(environment / "bin" / "python")
    run([python, "-I", str(ROOT / "tests/helpers/snippets.py"), str(path)], folder, variables)


def figures(report: Path) -> set[str]:
    """Return the names of the figures in a report, each of which has data to draw."""
    found = re.findall(
        r'<script type="application/json" id="([^"]+)">(.*?)</script>',
        report.read_text(encoding="utf-8"),
        re.DOTALL,
    )
    assert 'id="plotly-js"' in report.read_text(encoding="utf-8")
    return {name for name, data in found if json.loads(data)}


def test_nothing_is_installed_that_the_package_does_not_ask_for(
    environment: Path, tmp_path: Path
) -> None:
    python = str(environment / "bin" / "python")
    assert {*run([python, "-I", "-c", ALIEN], tmp_path, {}).split()} <= {"pip", "setuptools"}


def test_lines_of_readme_run_in_a_plain_environment(
    environment: Path, tmp_path: Path, variables: dict[str, str]
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    page(environment, ROOT / "README.md", work, variables)
    for folder in ("ten", "first"):
        assert json.loads((work / "runs" / folder / "result.json").read_text())["targets"]
        assert figures(work / "runs" / folder / "report.html") >= {"map-data", "widths-chart-data"}


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, dict[str, str]]:
    """README's environment, a folder with an audit that was killed, and the variables."""
    environment, folder = make(), tmp_path_factory.mktemp("plain")
    variables = variables_of(environment, folder)
    run(["avtt", "init", "mine"], folder, variables)
    spec = (folder / "mine/SPEC.toml").read_text()
    (folder / "mine/other.toml").write_text(spec)
    begun = ["avtt", "audit", "mine/SPEC.toml", "--half-width", "0.3", "--out", "runs/killed"]
    avtt = str(environment / "bin" / "avtt")
    audit = subprocess.Popen([avtt, *begun[1:]], cwd=folder, env=variables)
    until = time.monotonic() + 60
    while not (folder / "runs/killed/journal.db").is_file() and time.monotonic() < until:
        time.sleep(0.02)
    time.sleep(0.3)  # some calls
    audit.send_signal(signal.SIGKILL)
    audit.wait()
    return environment, folder, variables


def test_every_command_runs_in_a_plain_environment(
    usual: tuple[Path, Path, dict[str, str]],
) -> None:
    environment, folder, variables = usual
    page(environment, ROOT / "tests/plain/commands.md", folder, variables)


def test_install_lines_of_readme_name_no_extra() -> None:
    assert install_lines()[-1] == "pip install -c constraints.txt ."
    assert folder_of(None).name == ".venv"
