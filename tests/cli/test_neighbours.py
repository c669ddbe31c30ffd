"""A seed that a run beside a new one has used draws a warning."""

from adaptive_vtt import Audit
from adaptive_vtt.cli.run_folder import neighbours, warning
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
    assert "give another seed, or none" in warning(used, *used)
    assert "no draw is shared and both certificates hold" in warning(used, "stratified")
