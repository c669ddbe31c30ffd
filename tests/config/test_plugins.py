"""Other people's parts: of an installed package or of a file, from a SPEC.toml to a report."""

import json
import re
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest

from adaptive_vtt.cli.list import KINDS
from adaptive_vtt.config import parse_spec
from adaptive_vtt.config.building import build_audit, build_space
from adaptive_vtt.errors import InputError
from adaptive_vtt.relations import Identity, resolve
from adaptive_vtt.strategies import get
from tests.helpers.command_line import refused, run, shown

HERE = Path(__file__).parents[1]
PLUGIN = HERE / "example_plugin"
SPEC = """
[dataset]
kind = "{greys}"
options = {{ count = 10 }}
[model]
kind = "{brightness}"
options = {{ threshold = 120.0 }}
[space]
relations = ["identity", "{darker}"]
[space.options]
"{darker}" = {{ share = 0.8 }}
[oracle]
kind = "{lenient}"
options = {{ margin = 0.1 }}
[audit]
strategy = "{evenly}"
strategy_options = {{ worth = 2.0 }}
budget = 8
seed = 0
"""
NAMES = ("greys", "brightness", "darker", "lenient", "evenly")
PARTS = dict(zip(NAMES, ("greys", "Brightness", "Darker", "Lenient", "Evenly"), strict=True))


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example package as pip installs it: its module and its metadata."""
    folder = tmp_path_factory.mktemp("installed")
    shutil.copytree(PLUGIN / "avtt_example", folder / "avtt_example")
    project = tomllib.loads((PLUGIN / "pyproject.toml").read_text())["project"]
    info = folder / f"avtt_example-{project['version']}.dist-info"
    info.mkdir()
    head = f"Name: {project['name']}\nVersion: {project['version']}\n"
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\n{head}")
    groups = [
        "\n".join([f"[{group}]", *(f"{name} = {target}" for name, target in entries.items())])
        for group, entries in project["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("\n".join(groups))
    return folder


@pytest.fixture
def package(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(installed))


@pytest.fixture
def by_file(tmp_path: Path) -> Path:
    """A SPEC.toml beside the file that has all its parts."""
    shutil.copy(PLUGIN / "avtt_example" / "parts.py", tmp_path)
    path = tmp_path / "SPEC.toml"
    path.write_text(SPEC.format(**{n: f"parts.py:{part}" for n, part in PARTS.items()}))
    return path


@pytest.fixture
def by_name(package: None, tmp_path: Path) -> Path:
    path = tmp_path / "SPEC.toml"
    path.write_text(SPEC.format(**{name: name for name in NAMES}))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("how", ["by_file", "by_name"])
def test_every_command_works_with_parts_of_others(how: str, request: pytest.FixtureRequest) -> None:
    spec: Path = request.getfixturevalue(how)
    out = spec.parent / "out"
    assert json.loads(shown("audit", str(spec), "--out", str(out), "--json"))["calls"] == 8
    assert run("resume", str(out)) == 0
    assert run("verify", str(out)) == 0
    assert run("report", str(out)) == 0
    compared = ("--strategies", "random", "--repeats", "1", "--out", str(spec.parent / "cmp"))
    assert run("compare", str(spec), *compared) == 0
    failures = ("--failures", str(spec.parent / "failures"), "--least-loss", "0.5")
    assert "is code, which is not run here; --run-code" in refused("export", str(out), *failures)
    assert run("export", str(out), *failures, "--run-code") == 0


def test_options_reach_the_parts(by_file: Path) -> None:
    spec = parse_spec(tomllib.loads(by_file.read_text()), "SPEC.toml")
    audit = build_audit(spec, by_file.parent)
    space = audit.space
    assert len(space.dataset) == 10
    assert audit.model.plain.threshold == 120.0  # type: ignore[attr-defined]
    settings = audit.journal.facts()["settings"]
    assert settings["strategy"] == "parts.py:Evenly"
    assert settings["strategy_options"] == {"worth": 2.0}
    assert settings["oracle"]["margin"] == 0.1


def test_resume_runs_no_part_that_was_changed(by_file: Path) -> None:
    out, mark = by_file.parent / "out", by_file.parent / "was-run"
    plain = ("--set", "certify.surrogate=false")
    assert run("audit", str(by_file), "--budget", "2", *plain, "--out", str(out)) == 0
    parts = by_file.parent / "parts.py"
    parts.write_text(f"open({str(mark)!r}, 'w').close()\n" + parts.read_text())
    for command in ("report", "verify", "label --summary", "export --failures f"):
        name, *options = command.split()
        run(name, str(out), *options)
        assert not mark.exists()
    for command in (["resume"], ["export", "--run-code", "--failures", str(out / "f")]):
        sentence = refused(command[0], str(out), *command[1:])
        assert "was changed after the audit began, and was not run" in sentence
        assert not mark.exists()


@pytest.mark.slow
@pytest.mark.usefixtures("package")
def test_list_shows_packages_and_what_cannot_be_used() -> None:
    def listed(kind: str) -> list[dict[str, Any]]:
        return json.loads(shown("list", kind, "--json"))

    relations = listed("relations")
    names = [entry["name"] for entry in relations if entry["package"] is None]
    assert {"identity", "rotation", "medtest"} <= set(names)
    plug_ins = {entry["name"]: entry for entry in relations if entry["package"]}
    darker = plug_ins["darker"]
    assert (darker["package"], darker["version"]) == ("avtt-example", "0.3.0")
    assert "not reached: 'identity' is built in" in plug_ins["identity"]["note"]
    broken = next(entry for entry in listed("datasets") if entry["name"] == "broken")
    assert "package 'avtt-example' cannot be imported: ModuleNotFoundError" in broken["note"]
    assert "[avtt-example 0.3.0]" in shown("list", "strategies")


@pytest.mark.parametrize("kind", KINDS)
def test_every_part_says_what_it_is_within_a_terminal(kind: str) -> None:
    assert all(entry["about"] for entry in json.loads(shown("list", kind, "--json")))
    assert max(map(len, shown("list", kind).splitlines())) <= 80


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        ({"kind": "parts.py:gone"}, r"dataset: parts\.py: unknown name 'gone'"),
        ({"kind": "none.py:x"}, r"none\.py' does not exist"),
        ({"kind": "parts.py:greys", "options": {"cuont": 3}}, r"'cuont'; did .* 'count'"),
        ({"kind": "parts.py:Evenly"}, r"expected an object with .* got Evenly without 'name'"),
        ({"kind": "nowhere.at.all:x"}, r"dataset: cannot import 'nowhere\.at\.all'"),
        ({"kind": "broken"}, r"dataset 'broken': package 'avtt-example' cannot be"),
    ],
)
@pytest.mark.usefixtures("package")
def test_what_cannot_be_used_is_one_sentence(
    by_file: Path, dataset: dict[str, Any], message: str
) -> None:
    table = {"dataset": dataset, "model": {"kind": "simulated", "target": "unbiased"}}
    with pytest.raises(InputError, match=message):
        build_space(parse_spec(table, "SPEC.toml"), by_file.parent)


def test_options_after_a_name_are_for_compare_alone() -> None:
    with pytest.raises(InputError, match="options after the name are for avtt compare, elsewhere"):
        get("own.py:Hard:power=3")


@pytest.mark.usefixtures("package")
def test_built_in_names_stay_what_they_are() -> None:
    assert isinstance(resolve(["identity"])[0], Identity)


GUIDE = (HERE.parent / "docs/how-to/own-parts.md").read_text(encoding="utf-8")
CODE = dict(re.findall(r'```python title="parts/(\w+\.py)"\n(.*?)```', GUIDE, re.DOTALL))
ROWS = re.findall(r"^\| (\w+) \| .* \| `(\[\w+\])`: (.*) \|$", GUIDE, re.MULTILINE)
"""Part, section of a spec, and its fields, each in code."""


@pytest.mark.parametrize(("name", "head", "row"), ROWS, ids=[row[0] for row in ROWS])
def test_the_examples_of_the_guide_run(name: str, head: str, row: str, tmp_path: Path) -> None:
    spec = "\n".join([head, *re.findall(r"`([^`]+)`", row), ""])
    (file,) = {*re.findall(r"\w+\.py", row)}
    (tmp_path / file).write_text(CODE[file])
    base = (
        '[dataset]\nkind = "fashion"\n[model]\nkind = "simulated"\ntarget = "unbiased"\n'
        "[audit]\nbudget = 4\n"
    )
    section = re.search(r"\[(\w+)\]", spec)
    assert section is not None
    rest = re.sub(rf"\[{section[1]}\]\n(?:[^\[].*\n)*", "", base)
    table = tomllib.loads(rest + spec)
    quick = {"surrogate": False, "half_width": 0.2, "self_taught": False}
    table["certify"] = quick | table.get("certify", {})
    with build_audit(parse_spec(table, "SPEC.toml"), tmp_path) as audit:
        assert audit.run().calls == 4


def test_the_guide_has_an_example_of_every_kind() -> None:
    kinds = ["relation", "oracle", "model", "dataset", "surrogate"]
    assert [name for name, *_ in ROWS] == kinds


def test_without_a_kind_the_kinds_are_listed() -> None:
    output = shown("list").splitlines()
    assert [line.split()[0] for line in output] == [*KINDS]
    assert "surrogates  what predicts the model" in output
