"""ARCHITECTURE.md and the tree say the same."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "adaptive_vtt"
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")


def table(heading: str) -> list[list[str]]:
    """The rows of the table under a heading, cell by cell, without its head."""
    part = TEXT.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def bare(cell: str) -> str:
    return cell.strip("`")


ROOMS = [bare(room) for _, room, _ in table("Rooms")]
PLACES = [(bare(file), bare(name)) for _, file, name in table("Where is ...?")]


def test_every_room_is_named_once():
    tree = {p.stem for p in PACKAGE.glob("*.py")} | {
        p.name for p in PACKAGE.iterdir() if (p / "__init__.py").is_file()
    }
    assert sorted(ROOMS) == sorted(tree - {"__init__"})


def test_rooms_stand_in_the_order_of_the_layers():
    layers = [int(layer) for layer, _, _ in table("Rooms")]
    assert layers == sorted(layers)
    assert tuple(ROOMS) == pytest.importorskip("tests.test_layers").ROOMS


def test_a_provider_is_its_class_and_a_line_of_the_registry():
    registry = PACKAGE / "models" / "__init__.py"
    lines = re.findall(r'"([\w-]+)": f"{__name__}\.network\.(\w+):(\w+)"', registry.read_text())
    assert len(lines) >= 6
    texts = {path: path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    for kind, file, name in lines:
        own = PACKAGE / "models" / "network" / f"{file}.py"
        literal = f'|"{kind}"' if "-" in kind else ""  # others are names of libraries, too
        named = re.compile(rf"\b{name}\b{literal}")
        places = {path for path, text in texts.items() if named.search(text)}
        assert places == {registry, own}, name


def test_every_path_exists():
    named = {path for path in re.findall(r"`([\w./-]+)`", TEXT) if "/" in path or ".py" in path}
    named |= set(re.findall(r"\]\(([^)]+)\)", TEXT))
    assert len(named) > 40
    missing = [p for p in named if not (ROOT / p).exists() and not (PACKAGE / p).exists()]
    assert missing == []


@pytest.mark.parametrize(("file", "name"), PLACES)
def test_what_is_looked_for_is_defined_there(file: str, name: str):
    tree = ast.parse((PACKAGE / file).read_text(encoding="utf-8"))
    made = {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }
    set_here = {
        ast.unparse(t) for node in tree.body if isinstance(node, ast.Assign) for t in node.targets
    }
    assert name in made | set_here


def test_the_page_is_two_screens_and_lists_fifteen_places_or_more_once():
    assert len(set(PLACES)) == len(PLACES) >= 15
    assert len(TEXT.splitlines()) <= 140


def test_readme_and_contributing_lead_here():
    for page in ("README.md", "CONTRIBUTING.md"):
        assert "ARCHITECTURE.md" in (ROOT / page).read_text(encoding="utf-8"), page
