"""What is done with a long journal grows with its length and no faster: counted, not timed."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.certify import verify as verifying
from adaptive_vtt.certify import verify_draws
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.journal import MemoryJournal, with_proposal
from adaptive_vtt.results.report.page import render
from adaptive_vtt.results.result import summarise
from adaptive_vtt.testing import ScriptedModel

OPTIONS: dict[str, Any] = {"half_width": 0.01, "targets": ["overall", "relations"], "budget": 30}
OPTIONS |= {"surrogate": False}


class Counting(MemoryJournal):
    """Counts how often all rows of a kind are read, and single proposals; leaves proposals out if
    it may."""

    def __init__(self) -> None:
        super().__init__()
        self.read: Counter[str] = Counter()

    def draws(self, *, proposals: bool = True) -> Any:
        self.read["draws with proposals" if proposals else "draws"] += 1
        return [row if proposals else replace(row, proposal=b"") for row in super().draws()]

    def proposal(self, draw: int) -> bytes:
        self.read["proposals"] += 1
        return super().proposal(draw)

    def calls(self) -> Any:
        self.read["calls"] += 1
        return super().calls()


@pytest.fixture
def journal(space: QuestionSpace) -> Counting:
    """An audit of 30 calls that certifies; nothing of it counted yet."""
    journal = Counting()
    Audit(space, ScriptedModel(), journal=journal, **OPTIONS).run()
    journal.read.clear()
    return journal


def spied(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[Any]:
    """The first argument of every call of ``owner.name`` from now on."""
    seen: list[Any] = []
    real = getattr(owner, name)

    def spy(*arguments: Any) -> Any:
        seen.append(arguments[0])
        return real(*arguments)

    monkeypatch.setattr(owner, name, spy)
    return seen


@pytest.mark.slow
@pytest.mark.parametrize(("use", "proposals"), [(verify, 60), (summarise, 0), (render, 0)])
def test_a_journal_is_read_once_for_each_use(journal: Counting, use: Any, proposals: int) -> None:
    """Proposals one at a time, to seal each and to check each: they are most of a long journal."""
    use(journal)
    assert journal.read == Counter({"draws": 1, "calls": 1, "proposals": proposals})


@pytest.mark.slow
def test_going_on_reads_each_proposal_once_to_check_the_chain(
    journal: Counting, space: QuestionSpace
) -> None:
    Audit(space, ScriptedModel(), journal=journal, **OPTIONS)
    assert journal.read == {"draws": 2, "calls": 2, "proposals": 30}


def test_a_file_gives_draws_without_proposals_and_each_proposal_alone(
    tmp_path: Path, space: QuestionSpace
) -> None:
    with Audit(space, ScriptedModel(), journal=tmp_path / "j.db", **OPTIONS) as audit:
        audit.run()
        lean = audit.journal.draws(proposals=False)
        assert {row.proposal for row in lean} == {b""}
        assert [with_proposal(audit.journal, row) for row in lean] == audit.journal.draws()


def test_verify_unpacks_every_proposal_once(
    journal: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpacked = spied(monkeypatch, verify_draws, "unpack_proposal")
    verify(journal)
    assert len(unpacked) == len(journal.draws()) == 30


def test_means_that_are_excluded_are_bet_against_no_more(
    journal: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    games = spied(monkeypatch, verifying._Game, "play")
    verify(journal)
    for game in games:
        width = game.upper - game.lower
        assert len(game.m) <= 1000 * width + 3
        assert len(game.m) == len(game.rising) == len(game.falling)
    assert min(len(game.m) for game in games) < 1001
