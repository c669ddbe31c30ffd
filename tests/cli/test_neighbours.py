"""A seed that a run next to a new one has used draws a warning."""

from pathlib import Path

import pytest

from adaptive_vtt.cli.init import write_start
from adaptive_vtt.cli.run_folder import begin, same_seed
from adaptive_vtt.config import read_spec
from adaptive_vtt.config.building import build_space


def test_an_equal_seed_draws_a_warning_before_anything_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = read_spec(write_start(tmp_path))
    spec.audit.seed = 3
    begin(spec, tmp_path, tmp_path / "first", ["SPEC.toml"]).close()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "journal.db").write_text("no journal")
    assert capsys.readouterr().err == ""
    with begin(spec, tmp_path, tmp_path / "second", ["SPEC.toml"]) as audit:
        assert audit.state().calls == 0
    warning = "warning: run 'first' asked the same questions with the same seed"
    assert warning in capsys.readouterr().err
    same = build_space(spec, tmp_path).fingerprint
    assert same_seed(tmp_path / "third", same, "certify", spec) == "first"
    assert same_seed(tmp_path / "third", same, "stratified", spec) is None
    assert same_seed(tmp_path / "third", "other", "certify", spec) is None
    for seed in (4, None):
        spec.audit.seed = seed
        assert same_seed(tmp_path / "third", same, "certify", spec) is None
