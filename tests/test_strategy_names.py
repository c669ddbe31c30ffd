"""What "certify" and "uncertainty+unpredictability" stand for, now and in older journals."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden import make_journal3, make_journal4_names
from test_algorithm1 import allowed

from adaptive_vtt import Audit, QuestionSpace, strategies
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.engine.law import Law
from adaptive_vtt.errors import InputError, JournalError
from adaptive_vtt.journal import MemoryJournal
from adaptive_vtt.journal.facts import read_facts
from adaptive_vtt.report import render
from adaptive_vtt.strategies import ByStakes, Combined
from adaptive_vtt.testing import ScriptedModel, tiny_dataset

GOLDEN = Path(__file__).parent / "golden"
OLD = {
    "journal3": (make_journal3.old_space, make_journal3.OPTIONS),
    "journal4_names": (make_journal4_names.named_space, make_journal4_names.OPTIONS),
}
PAPER = "uncertainty+unpredictability"


@pytest.fixture(params=OLD)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """The arguments that go on with an audit of a version before "certify" was a name."""
    path, (space, options) = tmp_path / "journal.db", OLD[request.param]
    path.write_bytes(gzip.decompress((GOLDEN / f"{request.param}.db.gz").read_bytes()))
    return {"space": space(), "model": ScriptedModel(), "journal": path, **options}


def gone_on(old: dict[str, Any], **options: Any) -> Audit:
    audit = Audit(**old, **options)
    audit.run()
    return audit


# -- journals of before --------------------------------------------------------------------


@pytest.mark.parametrize(
    "strategy", [None, pytest.param("certify", marks=pytest.mark.slow), PAPER], ids=str
)
def test_an_old_journal_goes_on_by_stakes_whatever_that_is_called(
    old: dict[str, Any], strategy: str | None
) -> None:
    with Audit(**old, strategy=strategy) as audit:
        facts, draws = audit.journal.facts(), len(audit.journal.draws())
        selector = audit._selector
        assert isinstance(selector.strategy, ByStakes)
        assert audit.journal.facts().get("key") == facts.get("key")
        assert read_facts(facts).settings.strategy == "certify"
        assert facts["settings"]["strategy"] == PAPER  # the key is a hash of it
        audit.run()
        verify(audit.journal)
        for row in audit.journal.draws()[draws:]:
            # Algorithm 1 would give all that it takes the same weight
            assert len(np.unique(Law.unpack(row.law).probabilities)) > 2
            assert "uncertainty" not in row.why
        page = render(audit.journal)
    assert "by the strategy <b>certify</b>" in page
    assert "these two did not decide what was asked" in page


def test_an_old_journal_of_another_strategy_is_still_another_audit(old: dict[str, Any]) -> None:
    with pytest.raises(JournalError, match=r"begun with strategy 'uncertainty\+unpredictability'"):
        Audit(**old, strategy="random")


def test_options_of_old_journals_are_still_compared(old: dict[str, Any]) -> None:
    named = strategies.Named(PAPER, Combined(0.2))
    with pytest.raises(JournalError, match=r"strategy_options epsilon 0\.15, not 0\.2"):
        Audit(**old, strategy=named)


# -- names of now --------------------------------------------------------------------------


def test_the_default_is_certify_where_an_audit_certifies_and_else_the_papers(
    space: QuestionSpace,
) -> None:
    widths: dict[str, dict[str, Any]] = {"certify": {"half_width": 0.2}, PAPER: {}}
    for name, options in (*widths.items(), ("certify", {"at_most": 0.4})):
        audit = Audit(space, ScriptedModel(), budget=3, **options)
        assert audit.journal.facts()["settings"]["strategy"] == name


def test_where_an_audit_certifies_the_papers_strategy_is_algorithm_1_with_a_floor() -> None:
    dataset = tiny_dataset(8, 3)
    labels = dataset.truth(np.arange(8)[:, None], np.arange(3)[None, :])
    space = QuestionSpace(dataset, ["identity", "rotation"], severities=[1])
    journal = MemoryJournal()
    options: dict[str, Any] = {"half_width": 0.05, "targets": ["overall"], "journal": journal}
    for budget in (10, 25):  # gone on with in between
        model = ScriptedModel(answers="one")
        audit = Audit(space, model, strategy=PAPER, budget=budget, seed=2, **options)
        audit.run()
    answers = {c.call: a.answer for c in journal.calls() for a in c.answers if a.answer is not None}
    history: list[int] = []
    heard: list[float] = []
    for row in journal.draws():
        law = Law.unpack(row.law)
        high = law.probabilities > law.probabilities.min() + 1e-9
        taken = set(law.calls[high].tolist()) or set(law.calls.tolist())
        assert taken == allowed(PAPER, space, labels, history, heard)
        assert law.probabilities.min() >= 0.2 / len(law.calls) * (1 - 1e-9)
        history.append(row.question)
        heard.append(answers[row.call])
    verify(journal)


def test_certify_without_targets_says_what_it_needs(space: QuestionSpace) -> None:
    with pytest.raises(InputError, match="needs targets to certify: give half_width or at_most"):
        Audit(space, ScriptedModel(), strategy="certify", budget=3)


def test_every_strategy_has_one_line_that_ends() -> None:
    for entry in strategies.REGISTRY.entries():
        if entry.package is None:
            assert entry.about.endswith("."), entry.name
            assert len(entry.about) <= 90, entry.name
