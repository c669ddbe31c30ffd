"""What the wheel holds, and that no module outgrows its room."""

import os
import shutil
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = ("strategies", "surrogates", "experiments")
LONGEST = 700
LEFT_OUT = shutil.ignore_patterns(
    "__pycache__", ".*", "build", "dist", "runs", "bench", "*.egg-info"
)


def package_files(root: Path) -> set[str]:
    """Every file of the package below ``root``, as it should stand in the wheel."""
    folders = [(root / "adaptive_vtt", "adaptive_vtt")]
    folders += [(root / room, f"adaptive_vtt/{room}") for room in ROOMS]
    return {
        f"{name}/{path.relative_to(folder).as_posix()}"
        for folder, name in folders
        for path in folder.rglob("*")
        if path.is_file()
        and "__pycache__" not in path.parts
        and not (name == "adaptive_vtt" and path.relative_to(folder).parts[0] in ROOMS)
    }


def committed(folder: Path) -> None:
    """Makes a repository of a folder, with one commit."""
    who = ("-c", "user.name=test", "-c", "user.email=test@example.org")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "all")):
        subprocess.run(["git", *who, *words], cwd=folder, check=True)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy so that nothing is left in the checkout.

    The copy is a repository without tags, as a fresh clone is: what finds versions in one finds
    files, too.
    """
    folder = tmp_path_factory.mktemp("wheel")
    shutil.copytree(ROOT, folder / "source", symlinks=True, ignore=LEFT_OUT)
    committed(folder / "source")
    words = ["-c", "import setuptools.build_meta as b; b.build_wheel('..')"]
    if find_spec("setuptools_scm") is None:  # then it is fetched
        words = ["-m", "build", "--wheel", "--outdir", ".."]
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder / "source",
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def names(wheel: Path) -> set[str]:
    """The files in the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if not name.endswith("/")}


def test_only_top_level_import_name_is_the_package(names: set[str]) -> None:
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"adaptive_vtt"}
    assert len(tops) == 2


def test_wheel_holds_every_file_of_the_package_and_nothing_else(wheel: Path, names: set[str]):
    packaged = {name for name in names if name.startswith("adaptive_vtt/")}
    assert packaged == package_files(wheel.parent / "source")


def test_wheel_holds_the_licences(names: set[str]) -> None:
    licences = {name.split("/licenses/")[1] for name in names if "/licenses/" in name}
    data_licence = "adaptive_vtt/datasets/formats/data/LICENSE-fashion-mnist.txt"
    assert licences == {"LICENSE", data_licence}


def test_wheel_has_the_command(wheel: Path, names: set[str]) -> None:
    (entry_points,) = [name for name in names if name.endswith("entry_points.txt")]
    with zipfile.ZipFile(wheel) as archive:
        assert "avtt = adaptive_vtt.cli:main" in archive.read(entry_points).decode()


@pytest.mark.slow
def test_version_is_that_of_the_tag_and_of_an_archive_the_fallback(tmp_path: Path) -> None:
    pytest.importorskip("setuptools_scm")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)

    def version() -> str:
        command = [sys.executable, "-m", "setuptools_scm"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stdout.strip()

    assert version() == "0.1.0"
    committed(tmp_path)
    subprocess.run(["git", "tag", "before-14"], cwd=tmp_path, check=True)  # no release
    assert "dev" in version()
    subprocess.run(["git", "tag", "v0.7.0"], cwd=tmp_path, check=True)
    assert version() == "0.7.0"


@pytest.mark.slow
def test_a_spec_elsewhere_names_drawn_worlds_of_an_installed_wheel(wheel: Path, tmp_path: Path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    (tmp_path / "SPEC.toml").write_text(
        '[dataset]\nkind = "adaptive_vtt.experiments.medtest.phantoms:frames"\n'
        "[dataset.options]\ncount = 1\n"
    )
    code = """
from pathlib import Path
import adaptive_vtt
from adaptive_vtt.config.datasets import read_dataset
from adaptive_vtt.experiments.medtest import phantom_unet
assert Path(adaptive_vtt.__file__).is_relative_to(Path("installed").resolve())
image = read_dataset(Path("SPEC.toml")).sample(0).require_image()
assert phantom_unet.predict([image])[0].shape[1:] == image.shape[:2]
"""
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "installed")}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True)


@pytest.mark.parametrize("room", ["adaptive_vtt", *ROOMS])
def test_no_module_is_too_long(room: str) -> None:
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for path in (ROOT / room).rglob("*.py")
    }
    assert lengths
    assert not {path: lines for path, lines in lengths.items() if lines > LONGEST}
