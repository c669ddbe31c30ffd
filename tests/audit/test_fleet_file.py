"""FLEET.toml: members are specs with what differs, and whatever is wrong is said in a sentence that
names file and field."""

import json
from pathlib import Path
from typing import Any

import pytest

from adaptive_vtt.audit.fleet.broker import Caps
from adaptive_vtt.config.fleet import read_fleet
from adaptive_vtt.errors import InputError
from tests.helpers.command_line import run

SPEC = """
[dataset]
kind = "phantom"
count = 20
size = 64
[model]
kind = "openai"
url = "http://127.0.0.1:9/v1"
model = "m"
max_input_tokens = 600
max_tokens = 64
price_input = 2.5
price_output = 10.0
[audit]
budget = 70
[certify]
half_width = 0.2
targets = ["overall"]
"""
MEMBER = '[[member]]\nspec = "a/SPEC.toml"\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "SPEC.toml").write_text(SPEC)
    (tmp_path / "c.toml").write_text(SPEC.replace("budget = 70", "max_cost = 0.5"))
    return tmp_path


def written(folder: Path, text: str) -> Path:
    path = folder / "FLEET.toml"
    path.write_text(text)
    return path


def test_members_are_specs_with_what_differs_under_the_fleets_caps(folder: Path) -> None:
    text = f"""[fleet]
max_cost = 2.0
max_calls = 50
{MEMBER}
[[member]]
spec = "c.toml"
[[member]]
spec = "b/SPEC.toml"
name = "strict"
set.certify = {{ half_width = 0.1, targets = ["overall", "relations"] }}
set.audit.budget = 30
"""
    found = read_fleet(written(folder, text))
    assert found.caps == Caps(2.0, 50)
    assert [m.name for m in found.members] == ["a", "c", "strict"]
    assert [m.base for m in found.members] == [folder / "a", folder, folder / "b"]
    assert [m.spec.audit.budget for m in found.members] == [50, 50, 30]
    assert [m.spec.audit.max_cost for m in found.members] == [2.0, 0.5, 2.0]
    assert [m.spec.certify.half_width for m in found.members] == [0.2, 0.2, 0.1]
    assert found.members[2].spec.certify.targets == ["overall", "relations"]
    assert {m.spec.certify.confidence for m in found.members} == {0.95}
    other = read_fleet(folder / "FLEET.toml", max_cost=0.25, max_calls=20)
    assert other.caps == Caps(0.25, 20)
    assert {m.spec.audit.max_cost for m in other.members} == {0.25}


def test_where_all_are_to_hold_members_share_what_may_go_wrong(folder: Path) -> None:
    head = '[fleet]\nmax_calls = 9\nguarantee = "all"\nconfidence = 0.9\n'
    found = read_fleet(written(folder, head + MEMBER + '[[member]]\nspec = "c.toml"\n'))
    assert found.caps.confidence == 0.9
    assert [m.spec.certify.confidence for m in found.members] == [0.95, 0.95]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[fleet\n", "FLEET.toml: is no TOML: "),
        (MEMBER, "fleet: expected max_cost (money), max_calls, or both"),
        (f"[fleet]\nmax_cost = 0\n{MEMBER}", "fleet: max_cost: expected greater than 0, got 0"),
        (f"[fleet]\nmax_costs = 1\n{MEMBER}", "unknown field 'max_costs'; did you mean 'max_cost'"),
        (f"[fleet]\nmax_calls = 1\n[fleets]\n{MEMBER}", "unknown section 'fleets'; expected [flee"),
        ("[fleet]\nmax_calls = 9\n", "member: expected one [[member]] per audit, got none"),
        (SPEC, "expected a FLEET.toml, got a SPEC.toml, which 'avtt audit' ta"),
        (
            '[fleet]\nmax_calls = 9\n[member]\nspec = "c.toml"\n',
            "expected [[member]], in double br",
        ),
        (
            "[fleet]\nmax_calls = 9\n[[member]]\n",
            "member 1: spec: expected the path of a SPEC.toml",
        ),
        (
            f'[fleet]\nmax_calls = 9\n{MEMBER}[[member]]\nspec = "d.toml"\n',
            "d.toml: no such file; d",
        ),
        (
            f"[fleet]\nmax_calls = 9\n{MEMBER}{MEMBER}",
            "expected another name for each, got 'a' twi",
        ),
        (
            f'[fleet]\nmax_calls = 9\n{MEMBER}name = "../x"\n',
            "member 1: name: expected letters, dig",
        ),
        (
            f"[fleet]\nmax_calls = 9\n{MEMBER}set.certify.half_with = 0.1\n",
            "FLEET.toml: member 1 (a), set: certify: unknown field 'half_with'; did you mean",
        ),
        (
            f'[fleet]\nmax_calls = 9\nguarantee = "all"\n{MEMBER}set.certify.guarantee = "each"\n',
            "fleet.guarantee: expected members with guarantee",
        ),
        (f"[fleet]\nmax_calls = 9\nconfidence = 0.9\n{MEMBER}", "fleet.confidence: expected none"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(folder: Path, text: str, said: str) -> None:
    with pytest.raises(InputError) as wrong:
        read_fleet(written(folder, text))
    assert said in str(wrong.value)
    assert "FLEET.toml: " in str(wrong.value)
    assert "\n" not in str(wrong.value)


def test_a_missing_file_and_a_broken_spec_are_named(folder: Path) -> None:
    with pytest.raises(InputError, match=r"FLEET.toml: cannot be read: .*; a FLEET.toml has"):
        read_fleet(folder / "none" / "FLEET.toml")
    path = written(folder, "[fleet]\nmax_calls = 9\n" + MEMBER)
    (folder / "a" / "SPEC.toml").write_text(SPEC + "half_with = 1\n")
    with pytest.raises(InputError, match=r"SPEC.toml: certify: unknown field 'half_with'"):
        read_fleet(path)


def test_a_dry_run_tells_calls_and_money_and_whether_the_cap_is_enough(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head = "[fleet]\nmax_cost = 0.5\n"
    path = written(folder, head + MEMBER + '[[member]]\nspec = "c.toml"\n')
    assert run("fleet", str(path), "--dry-run") == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    assert "the cap of $0.50 on cost is likely to be enough" in shown
    assert "nothing was asked" in shown
    assert run("fleet", str(path), "--dry-run", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in told["members"]] == ["a", "c"]
    assert told["calls"] == [sum(c) for c in zip(*_calls(told["members"]), strict=True)]
    assert run("fleet", str(path), "--dry-run", "--max-cost", "0.01") == 2
    assert "member 'a': max_cost: expected at least 0.01284" in capsys.readouterr().err


def _calls(members: list[dict[str, Any]]) -> list[list[int]]:
    return [[m["at_least"], *m["likely"].values(), m["at_most"]] for m in members]


def test_nothing_is_begun_where_there_is_nothing_to_go_on_with(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(folder, "[fleet]\nmax_calls = 9\n" + MEMBER)
    assert run("fleet", str(path), "--out", str(folder / "none"), "--resume") == 2
    assert "expected a fleet to go on with, found none" in capsys.readouterr().err
    assert not (folder / "none").exists()
