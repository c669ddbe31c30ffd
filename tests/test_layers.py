"""Which room may import which: rooms stand in a list, and imports only ever point up that list."""

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = (
    # 0: what every room may use
    "errors",
    "types",
    "population",
    "families",
    "utils",
    # 1: what an audit is put together from
    "journal",
    "relations",
    "datasets",
    "models",
    "oracles",
    "surrogates",
    # 2: the questions
    "space",
    "pool",
    "cohort",
    # 3: what intervals hold, when to end, and what to ask
    "certify",
    "stopping",
    "strategies",
    # 4: the loop
    "engine",
    # 5: who drives it, and what comes of it
    "results",
    "audit",
    # 6: what is made of audits
    "inspect",
    "people",
    "benchmark",
    "demo",
    "testing",
    # 7: what users write
    "config",
    # 8: what users type
    "cli",
    "__main__",
    "experiments",
)
"""Rooms of the package, lowest first; a room may import those before it and itself."""


@cache
def sources() -> dict[str, Path]:
    """Every module of the package by its dotted name; the linked rooms included."""
    found = {}
    for top in ("adaptive_vtt", "strategies", "surrogates", "experiments"):
        for path in sorted((ROOT / top).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            name = ".".join(parts if top == "adaptive_vtt" else ("adaptive_vtt", *parts))
            found[name.removesuffix(".__init__")] = path
    return found


def imports(module: str, path: Path, known: dict[str, Path]) -> Iterator[str]:
    """The package's modules that ``module`` imports anywhere: lazily, or for type checks, too."""
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name in known)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            for name in node.names:
                full = f"{base}.{name.name}"
                if full in known:
                    yield full
                elif base in known:
                    yield base


def room(module: str) -> str:
    """The room a module stands in; "" for the package itself."""
    return module.split(".")[1] if "." in module else ""


@cache
def graph() -> dict[str, set[str]]:
    """The package's modules that each module imports."""
    return {m: set(imports(m, p, sources())) - {m} for m, p in sources().items()}


def test_every_module_stands_in_a_room():
    assert {room(m) for m in graph()} - {""} == set(ROOMS)


@pytest.mark.parametrize("name", ROOMS)
def test_rooms_import_from_lower_rooms_only(name):
    place = ROOMS.index(name)
    upwards = {
        f"{module} imports {other}"
        for module, others in graph().items()
        if room(module) == name
        for other in others
        if room(other) in ROOMS[place + 1 :]
    }
    assert not upwards


def test_no_file_takes_part_in_a_circle_of_imports():
    inner = {m: {o for o in others if room(o)} for m, others in graph().items() if room(m)}
    TopologicalSorter(inner).prepare()  # raises CycleError, which names the circle


ENGINE = [module for module in sources() if room(module) == "engine"]


def outside(module: str) -> set[str]:
    """What a module imports from outside the package, by its first name, and ``open`` if used."""
    found = set()
    for node in ast.walk(ast.parse(sources()[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add((node.module or "").split(".")[0])
        elif isinstance(node, ast.Name) and node.id == "open":
            found.add("open")
    return found


@pytest.mark.parametrize("module", ENGINE)
def test_the_engine_reads_and_writes_nothing_and_knows_no_captions(module):
    assert not outside(module) & {"io", "os", "pathlib", "sqlite3", "open", "httpx", "asyncio"}
    opening = {"utils.files", "utils.image_files", "journal.opening", "journal.sqlite"}
    for other in graph()[module]:
        assert other.removeprefix("adaptive_vtt.") not in opening
        assert not other.startswith("adaptive_vtt.oracles.captions")


def test_one_module_of_the_engine_knows_torch():
    assert [m for m in ENGINE if "torch" in outside(m)] == ["adaptive_vtt.engine.tensors"]
