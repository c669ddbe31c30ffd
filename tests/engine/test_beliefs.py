"""What an audit believes at moments of its way: journaled, sealed, resumed, the same everywhere."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adaptive_vtt as avtt
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.engine import checkpoints
from adaptive_vtt.engine.tensors import array
from adaptive_vtt.errors import JournalError
from adaptive_vtt.journal import Journal, MemoryJournal, SQLiteJournal
from adaptive_vtt.journal.belief_groups import Groups, column
from adaptive_vtt.journal.rows import BeliefRow, Row
from adaptive_vtt.surrogates.difference_gp import DifferenceGP
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from tests.helpers.twins import slowly

SPACE = avtt.QuestionSpace(tiny_dataset(20, 2), ["identity", "gaussian_noise"], severities=[1, 3])
TARGETS = ["overall", "relations", "relation-concepts"]
OPTIONS: dict[str, Any] = {"half_width": 0.02, "targets": TARGETS, "budget": 30, "seed": 2}
OPTIONS["self_taught"] = False
MOMENTS = [4, 6, 8, 11, 15, 20, 26, 30]


def audited(journal: Any = None, **changed: Any) -> avtt.Audit:
    found = avtt.Audit(SPACE, ScriptedModel(refuse=0.1), journal=journal, **OPTIONS | changed)
    found.run()
    return found


@pytest.fixture(scope="module")
def ended() -> avtt.Audit:
    """An audit that nothing here changes."""
    return audited()


def figures_of(journal: Journal) -> list[tuple[int, Mapping[str, Any]]]:
    return [(row.draws, row.figures) for row in journal.beliefs()]


def test_moments_are_some_40_up_to_100_000_draws_and_the_end(ended: avtt.Audit) -> None:
    moments, n = [], checkpoints.FIRST
    while n <= 100_000:
        moments.append(n)
        n = max(n + 1, int(np.ceil(n * checkpoints.GROWTH)))
    assert 38 <= len(moments) <= 44
    assert [row.draws for row in ended.journal.beliefs()] == MOMENTS
    assert moments[:7] == MOMENTS[:7]


def test_the_figures_are_those_of_the_belief(ended: avtt.Audit) -> None:
    last, belief = ended.journal.beliefs()[-1], ended.belief
    groups = Groups(SPACE.concepts, [(v.relation.name, v.severity) for v in SPACE.variants])
    pool = list(ended._loop.selector.pool.everything())
    assert len(pool) == 1, "all questions at once"
    candidates, losses = pool[0], belief.losses
    assert losses is not None
    cell = array(candidates.concept) * len(SPACE.variants) + array(candidates.variant)
    f = array(losses.posterior(candidates).mean)
    whole = losses.joint(candidates).numpy()  # type: ignore[attr-defined]
    predicted, sd = column(last, "predicted", groups.cells), column(last, "sd", len(groups.all))
    spread = column(last, "spread", groups.cells)
    for k in range(groups.cells):
        inside = np.flatnonzero(cell == k)
        assert predicted[k] == pytest.approx(f[inside].mean(), abs=1e-5)
        assert spread[k] == pytest.approx(np.sqrt((f * (1 - f))[inside].mean()), abs=1e-5)
        exact = np.sqrt(whole[np.ix_(inside, inside)].mean())
        place = groups.start["cell"] + k
        assert sd[place] == pytest.approx(exact, abs=1e-5), "all are looked at: no estimate"
    assert sd[0] == pytest.approx(np.sqrt(whole.mean()), abs=1e-5)
    assert (sd > 0).all()
    assert (sd[groups.start["cell"] :] < spread).all()
    assert last.figures["uncertainty"] == np.round(array(belief.uncertainty()), 5).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("stop", [12, *slowly(5)])
def test_a_resumed_audit_adds_what_is_missing(tmp_path: Path, stop: int) -> None:
    path, whole = tmp_path / "journal.db", figures_of(audited().journal)
    first = audited(path, budget=stop)
    assert [draws for draws, _ in figures_of(first.journal)][-1] == stop
    first.close()
    with closing(audited(path)) as audit:
        found = figures_of(audit.journal)
        assert [row for row in found if row[0] != stop] == [row for row in whole if row[0] != stop]
        verify(audit.journal)


# -- what was changed afterwards -------------------------------------------------------------


def changed(path: Path, figures: Mapping[str, Any], draws: int = 8) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute(
            "UPDATE beliefs SET figures = ? WHERE draws = ?", (json.dumps(dict(figures)), draws)
        )
        db.commit()


def test_verify_notices_a_belief_that_was_changed_removed_or_added(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    audited(path, budget=12).close()
    data = path.read_bytes()
    for change, message in (
        ("UPDATE beliefs SET figures = replace(figures, '0.', '0.1')", "after 4 draws was altered"),
        ("DELETE FROM beliefs WHERE draws = 8", "belief 8 is missing"),
        ("INSERT INTO beliefs VALUES (7, '{}')", "after 7 draws is not in the chain"),
        ("UPDATE beliefs SET figures = '[]' WHERE draws = 8", "beliefs, row 8: expected"),
    ):
        path.write_bytes(data)
        with closing(sqlite3.connect(path)) as db:
            db.executescript(change)
        with (
            closing(SQLiteJournal(path, read_only=True)) as journal,
            pytest.raises(JournalError, match=message),
        ):
            verify(journal)


@pytest.mark.parametrize("name", ["asked", "failed"])
def test_verify_counts_anew_what_was_asked_and_failed(name: str) -> None:
    class Wrong(MemoryJournal):
        def add(self, rows: Sequence[Row]) -> None:
            for row in rows:
                if isinstance(row, BeliefRow) and row.draws == 8:
                    row.figures[name][3] += 1  # sealed as if it were so
            super().add(rows)

    with pytest.raises(JournalError, match=f"after 8 draws: '{name}' is not what the answers"):
        verify(audited(Wrong(), budget=12).journal)


def test_verify_notices_a_belief_of_draws_that_nobody_made() -> None:
    audit = audited(budget=12)
    figures = audit.journal.beliefs()[-1].figures
    audit.journal.add([BeliefRow(13, figures)])
    with pytest.raises(JournalError, match="after 13 draws: expected answers to all of them"):
        verify(audit.journal)


# -- audits of other kinds -------------------------------------------------------------------


def test_an_audit_that_explores_tells_uncertainties_and_counts() -> None:
    audit = avtt.Audit(SPACE, ScriptedModel(), budget=20, seed=1)
    audit.run()
    figures = audit.journal.beliefs()[-1].figures
    assert sorted(figures) == ["asked", "failed", "images", "uncertainty"]
    assert figures["images"] == {}
    assert sum(figures["asked"]) == audit.result().questions
    assert np.array(figures["uncertainty"]).shape == (2, 2)


@pytest.mark.slow
def test_a_comparison_believes_in_differences() -> None:
    with avtt.Versus(
        SPACE, ScriptedModel(), ScriptedModel(seed=5), margin=0.1, budget=40, seed=1
    ) as versus:
        versus.run()
        belief, row = versus.audit.belief, versus.audit.journal.beliefs()[-1]
        pool = next(iter(versus.audit._loop.selector.pool.everything()))
    gp = belief.losses
    assert isinstance(gp, DifferenceGP)
    parts = gp.a.joint(pool) + gp.b.joint(pool)
    assert np.allclose(gp.joint(pool), gp.slope**2 / 4 * parts)
    latent = gp.posterior(pool, latent=True)
    assert np.allclose(latent.variance, gp.joint(pool).diagonal(), atol=1e-9)
    assert np.allclose(latent.mean, gp.posterior(pool).mean)
    assert 0 <= row.figures["sd"][0] < 0.5
    assert row.figures["predicted"][0] is not None
