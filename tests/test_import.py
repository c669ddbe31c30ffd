"""Importing is quick and loads nothing heavy; the three rooms are found under one name only."""

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import adaptive_vtt
from tests.helpers.twins import slowly

ROOT = Path(__file__).parent.parent
HEAVY = ("torch", "pandas", "plotly", "gpytorch", "botorch", "scipy", "cv2", "numpy")


def fresh(code: str, *arguments: str) -> Any:
    """The last line that ``code`` prints in an interpreter of its own, as JSON."""
    command = [sys.executable, "-c", f"import json, sys\n{code}", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


TIMED = f"""
import time
start = time.process_time()
import adaptive_vtt
seconds = time.process_time() - start
print(json.dumps([seconds, [m for m in {HEAVY} if m in sys.modules]]))
"""


def test_import_loads_nothing_heavy_in_under_half_a_second() -> None:
    runs = [fresh(TIMED) for _ in range(2)]
    assert all(heavy == [] for _, heavy in runs)
    assert min(seconds for seconds, _ in runs) < 0.5


HELP = """
from adaptive_vtt.cli import main
try:
    main()
except SystemExit as ended:
    assert not ended.code, ended.code
print()
print(json.dumps(["torch" in sys.modules, "plotly" in sys.modules]))
"""


@pytest.mark.parametrize("arguments", [("--help",), *slowly(("audit", "--help"))], ids=" ".join)
def test_help_loads_no_torch(arguments: tuple[str, ...]) -> None:
    assert fresh(HELP, *arguments) == [False, False]


@pytest.mark.slow
def test_no_command_loads_torch_before_it_is_called() -> None:
    code = "from adaptive_vtt.cli.main import SUMMARIES, command\n[*map(command, SUMMARIES)]\n"
    assert fresh(f"{code}print(json.dumps('torch' in sys.modules))") is False


LOADED = """
before = set(sys.modules)
import importlib
importlib.import_module(sys.argv[1])
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def loaded(module: str) -> tuple[list[str], list[str]]:
    """Our modules that importing one loads, and the heavy libraries among all."""
    found = fresh(LOADED, module)
    heavy = {*HEAVY, "pydantic", "typer"} - {"numpy"}
    ours = [name for name in found if name.partition(".")[0] == "adaptive_vtt"]
    return ours, sorted(heavy.intersection(found))


@pytest.mark.parametrize("module", ["certify.sequences", *slowly("certify")])
def test_certificates_stand_alone_on_numpy(module: str) -> None:
    ours, heavy = loaded(f"adaptive_vtt.{module}")
    rooms = {name.split(".")[1] for name in ours if "." in name}
    assert heavy == []
    assert rooms <= {"certify", "errors", "families", "journal", "population", "types", "utils"}
    assert len(ours) <= 30


@pytest.mark.slow
@pytest.mark.parametrize(
    "module", ["audit", "datasets", "results", "results.gate", "certify.verify"]
)
def test_torch_is_loaded_where_a_tensor_is_made(module: str) -> None:
    _, heavy = loaded(f"adaptive_vtt.{module}")
    assert set(heavy) <= {"pandas", "pydantic"}


@pytest.mark.parametrize("room", ["datasets", "journal", "models", "oracles", "strategies"])
def test_rooms_list_names_that_they_have_not_loaded(room: str) -> None:
    module = importlib.import_module(f"adaptive_vtt.{room}")
    assert set(module.__all__) <= set(dir(module))
    assert [name for name in module.__all__ if getattr(module, name, None) is None] == []


def test_every_public_name_is_there_and_rooms_are_imported_under_the_package() -> None:
    import adaptive_vtt.experiments
    import adaptive_vtt.strategies
    import adaptive_vtt.surrogates

    names = adaptive_vtt.__all__
    assert [
        n for n in names if getattr(adaptive_vtt, n) is None or n not in dir(adaptive_vtt)
    ] == []
    assert {"strategies", "surrogates", "experiments"}.isdisjoint(sys.modules)
    assert {"Audit", "QuestionSpace", "datasets", "models"} <= set(names)


def test_name_that_is_not_there_is_named() -> None:
    with pytest.raises(AttributeError, match=r"module 'adaptive_vtt' has no attribute 'Audits'"):
        _ = adaptive_vtt.Audits


def test_rooms_cannot_be_imported_as_top_level_names() -> None:
    code = """
sys.path.insert(0, ".")
said = {}
for name in ("strategies", "surrogates", "experiments"):
    try:
        __import__(name)
    except ImportError as error:
        said[name] = str(error)
print(json.dumps(said))
"""
    assert fresh(code) == {
        name: f"this folder is imported as adaptive_vtt.{name}, not as {name}"
        for name in ("strategies", "surrogates", "experiments")
    }
