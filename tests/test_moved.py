"""Old dotted paths import what took their place, for one release."""

import sys
from importlib import import_module
from pathlib import Path

import pytest

import adaptive_vtt
from adaptive_vtt._moved import MOVED

PACKAGE = Path(adaptive_vtt.__file__).parent


@pytest.fixture(autouse=True)
def as_new():
    """Old paths are forgotten after each test: each import is a first one."""
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if sys.modules[name].__name__ != name:
            del sys.modules[name]


def moved(old: str):
    with pytest.warns(DeprecationWarning, match=f"adaptive_vtt.{old} is now adaptive_vtt."):
        return import_module(f"adaptive_vtt.{old}")


@pytest.mark.parametrize("old", MOVED)
def test_every_old_path_gives_the_one_module_that_took_its_place(old: str):
    assert moved(old) is import_module(f"adaptive_vtt.{MOVED[old]}")


@pytest.mark.parametrize("old", MOVED)
def test_no_old_path_hides_a_module_that_is_there(old: str):
    path = PACKAGE.joinpath(*old.split("."))
    assert not path.with_suffix(".py").exists()
    assert not (path / "__init__.py").exists()


@pytest.mark.parametrize("old", ["vqa", "serving", "comparing"])
def test_packages_that_are_gone_give_what_took_their_place(old: str):
    assert moved(old) is import_module(f"adaptive_vtt.{MOVED[old]}")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("serving.server", "demo_server.server"),
        ("comparing.runs", "benchmark.runs"),
        ("vqa.question_making", "datasets.vqa.question_making"),
        ("vqa.tables", "report.medtest_tables"),  # a line of its own goes before its package's
    ],
)
def test_of_a_path_that_is_not_in_the_table_the_longest_beginning_counts(old: str, new: str):
    assert moved(old) is import_module(f"adaptive_vtt.{new}")


@pytest.mark.filterwarnings("ignore:adaptive_vtt:DeprecationWarning")
@pytest.mark.parametrize("old", ["vqa.nothing", "queue.nothing", "nothing"])
def test_what_never_was_is_not_found(old: str):
    with pytest.raises(ModuleNotFoundError):
        import_module(f"adaptive_vtt.{old}")
