"""constraints.txt pins whatever is installed; pyproject.toml has a lower bound for all it names."""

import re
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from adaptive_vtt.experiments.environments import lower_bounds, normal, pinned

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def pins() -> dict[str, str]:
    """Package -> version, of constraints.txt."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if not line.startswith("#"))


def installed_for(names: set[str]) -> set[str]:
    """The packages named, and all that they need here, as this environment knows them."""
    found: set[str] = set()
    while names - found:
        name = min(names - found)
        found.add(name)
        for line in _requires(name):
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                names = names | {normal(needed.name)}
    return found


def _requires(name: str) -> list[str]:
    try:
        return requires(name) or []
    except PackageNotFoundError:
        return []


def test_every_package_that_is_installed_is_pinned(pins: dict[str, str]) -> None:
    assert installed_for({*lower_bounds(ROOT)}) - {*pins} == set()


def test_pins_are_versions_alone_in_order(pins: dict[str, str]) -> None:
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    assert text.endswith(pinned(pins))
    assert all(re.fullmatch(r"[0-9][0-9a-z.]*", version) for version in pins.values())
    assert not {name for name in pins if name != normal(name)} | ({*pins} & {"adaptive-vtt"})


def test_no_pin_is_below_its_lower_bound(pins: dict[str, str]) -> None:
    def number(version: str) -> list[int]:
        return [int(part) for part in version.split(".")]

    bounds = lower_bounds(ROOT)
    assert not {n for n, bound in bounds.items() if number(pins[n]) < number(bound)}


def test_dependency_without_a_lower_bound_is_refused(tmp_path: Path) -> None:
    head = '[project]\ndependencies = ["numpy>=2.1", "scipy"]\n'
    text = f"{head}[project.optional-dependencies]\ntest = []\n"
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(ValueError, match="expected 'name>=version', got 'scipy'"):
        lower_bounds(tmp_path)


def test_classifiers_name_the_pythons_that_are_tried() -> None:
    from adaptive_vtt.experiments.environments import PYTHONS

    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert tuple(re.findall(r'"Programming Language :: Python :: (3\.\d+)"', text)) == PYTHONS
    assert f'requires-python = ">={PYTHONS[0]}"' in text
