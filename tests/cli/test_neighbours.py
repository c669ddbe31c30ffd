"""A seed that a run beside a new one has used draws a warning."""

from pathlib import Path

import pytest

from adaptive_vtt import Audit
from adaptive_vtt.cli.init import write_start
from adaptive_vtt.cli.run_folder import begin, neighbours, warning
from adaptive_vtt.config import read_spec
from adaptive_vtt.testing import ScriptedModel


def test_a_neighbour_of_the_same_space_and_seed_is_found(space, tmp_path):
    for name, seed in (("first", 3), ("second", 4)):
        path = tmp_path / name / "journal.db"
        Audit(space, ScriptedModel(), seed=seed, budget=2, journal=path).close()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "journal.db").write_text("no journal")
    found = neighbours(tmp_path / "third", 3)
    (used,) = found.values()
    assert [*found] == [space.fingerprint]
    assert [*used.values()] == ["first"]
    assert neighbours(tmp_path / "first", 3) == {}
    assert neighbours(tmp_path / "third", 5) == {}
    assert neighbours(tmp_path / "third", None) == {}
    assert "give another --seed, or none" in warning(used, *used)
    assert "no draw is shared, and both certificates hold" in warning(used, "stratified")


def test_an_equal_seed_is_told_before_anything_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_start(tmp_path)
    spec = read_spec(tmp_path / "SPEC.toml")
    spec.audit.seed = 3
    begin(spec, tmp_path, tmp_path / "first", ["SPEC.toml"]).close()
    assert capsys.readouterr().err == ""
    with begin(spec, tmp_path, tmp_path / "second", ["SPEC.toml"]) as audit:
        assert audit.state().calls == 0
        assert "warning: run 'first' asked the same questions with the same seed" in (
            capsys.readouterr().err
        )
