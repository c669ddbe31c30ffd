"""constraints.txt pins whatever is installed; pyproject.toml has a lower bound for all it names."""

import ast
import re
import tomllib
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name as normal
from packaging.version import Version

ROOT = Path(__file__).parent.parent


def lower_bounds() -> dict[str, Version]:
    """Package -> lower bound, of all that ``.[test]`` names; each has one."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    found = {}
    for line in [*project["dependencies"], *project["optional-dependencies"]["test"]]:
        needed = Requirement(line)
        (bound,) = needed.specifier
        assert bound.operator == ">=", line
        found[normal(needed.name)] = Version(bound.version)
    return found


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
    assert installed_for({*lower_bounds()}) - {*pins} == set()


def test_pins_are_versions_alone_in_order(pins: dict[str, str]) -> None:
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    assert text.endswith("".join(f"{name}=={pins[name]}\n" for name in sorted(pins)))
    assert all(re.fullmatch(r"[0-9][0-9a-z.]*", version) for version in pins.values())
    assert not {name for name in pins if name != normal(name)} | ({*pins} & {"adaptive-vtt"})


def test_no_pin_is_below_its_lower_bound(pins: dict[str, str]) -> None:
    bounds = lower_bounds()
    assert not {n for n, bound in bounds.items() if Version(pins[n]) < bound}


def test_classifiers_name_the_pythons_that_are_tried() -> None:
    told = re.search(r"^PYTHONS = (\(.*\))$", (ROOT / "noxfile.py").read_text("utf-8"), re.M)
    assert told is not None
    pythons = ast.literal_eval(told[1])
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert tuple(re.findall(r'"Programming Language :: Python :: (3\.\d+)"', text)) == pythons
    assert f'requires-python = ">={pythons[0]}"' in text
