"""``verify`` repeats every draw: whatever of it was changed is named, even where seals agree."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.certify.verify_draws import check_draws, unchecked
from adaptive_vtt.engine.candidates import CandidatePool
from adaptive_vtt.engine.proposals import Proposal
from adaptive_vtt.errors import JournalError
from adaptive_vtt.journal import MemoryJournal
from adaptive_vtt.journal.facts import read_facts
from adaptive_vtt.journal.rows import DrawRow
from adaptive_vtt.oracles import Consistency
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from adaptive_vtt.types import Candidates
from adaptive_vtt.utils.random_streams import generator
from tests.helpers.twins import crossed

OPTIONS = {"half_width": 0.1, "targets": ("overall", "concepts", "relations"), "budget": 25}
OPTIONS |= {"surrogate": False, "seed": 1}


def space_of(compares: bool = False) -> QuestionSpace:
    oracle = Consistency() if compares else None
    return QuestionSpace(tiny_dataset(12, 3), ["identity", "brightness_up"], oracle=oracle)


def journal_of(answers: str = "all", compares: bool = False, **options: object) -> MemoryJournal:
    model = ScriptedModel(answers=answers, refuse=0.1)
    audit = Audit(space_of(compares), model, **{**OPTIONS, **options})
    audit.run()
    return audit.journal


same_journal = cache(journal_of)


def checked(journal: MemoryJournal, draws: list, facts: dict | None = None) -> None:
    losses = {
        a.question: (a.loss, a.loss)
        for c in journal.calls()
        for a in c.answers
        if a.loss is not None
    }
    calls = {c.call for c in journal.calls()}
    check_draws(read_facts(facts or journal.facts()), draws, calls, losses)


PLANS: list[dict] = [{}, {"candidates": 20}, {"strategy": "random"}]
PLANS += [{"unanswered": "both"}, {"batch": 4}, {"half_width": None}, {"surrogate": True}]
PLANS += [{"half_width": None, "at_most": 0.4, "targets": ("overall",)}]
PLANS += [{"targets": ("relations", "severities"), "exploration": 0.5}]
KINDS = [("one", False), ("all", True), ("all", False), ("one", True)]


@pytest.mark.parametrize(("kind", "options"), crossed(KINDS, PLANS))
def test_what_the_engine_draws_and_certifies_is_verified(kind, options):
    journal = journal_of(*kind, **options)
    verify(journal)
    assert unchecked(read_facts(journal.facts())) is None
    if options.get("half_width", 0.1) or "at_most" in options:
        ends = [(row["lower"], row["upper"]) for row in journal.facts()["intervals"]]
        assert any(lower > 0 or upper < 1 for lower, upper in ends)


@pytest.mark.parametrize(
    ("answers", "options"),
    crossed(["one", "all"], [{}, {"candidates": 40}, {"targets": ["overall"]}]),
)
def test_a_sampler_that_leaves_out_what_fails_is_caught(answers, options, monkeypatch):
    """Such an audit certifies a rate far below the truth, with proposals and draws that agree."""
    of_calls = CandidatePool._by_call

    def without_failures(pool: CandidatePool, table: np.ndarray) -> Candidates:
        call = table[0] if answers == "one" else table[1]
        kept = (call % 3 != 0) | (call % 10 >= 7)
        return of_calls(pool, table[:, kept if kept.any() else np.ones_like(kept)])

    monkeypatch.setattr(CandidatePool, "_by_call", without_failures)
    journal = journal_of(answers, **options)
    with pytest.raises(
        JournalError, match=r"draw \d+: expected \d+ candidates of \d+ unseen calls"
    ):
        verify(journal)


def test_a_sampler_that_the_key_does_not_lead_is_caught(monkeypatch):
    monkeypatch.setattr(
        "adaptive_vtt.engine.candidates.generator",
        lambda seed, purpose, number: generator(seed, purpose, number + 1),
    )
    for answers in ("one", "all"):
        journal = journal_of(answers, candidates=20)
        with pytest.raises(JournalError, match=r"draw \d+: expected the candidates that the key"):
            verify(journal)


@pytest.mark.parametrize("answers", ["one", "all"])
def test_candidates_are_drawn_again_to_the_last_call(answers):
    """Past the middle of a space they are picked from a list of what is left."""
    space = QuestionSpace(tiny_dataset(3, 3), ["identity", "brightness_up"])
    options = {"half_width": 0.001, "targets": ["overall", "concepts"], "surrogate": False}
    audit = Audit(space, ScriptedModel(answers=answers), candidates=12, **options)
    audit.run()
    verify(audit.journal)
    assert len(audit.journal.calls()) == (space.size if answers == "one" else space.images)


def another_call(row: DrawRow) -> dict[str, Any]:
    proposal = Proposal.unpack(row.proposal)
    place = int(np.flatnonzero(proposal.calls != row.call)[0])
    return {
        "call": int(proposal.calls[place]),
        "probability": float(proposal.probabilities[place]),
    }


def another_proposal(row: DrawRow) -> dict[str, Any]:
    """All on a call that was not drawn."""
    calls = Proposal.unpack(row.proposal).calls
    bent = np.full(len(calls), 1e-9)
    bent[int(calls[0] == row.call)] = 1 - 1e-9 * (len(calls) - 1)
    return {"proposal": Proposal(calls, bent).pack(), "probability": 1e-9}


def an_alias(row: DrawRow, alias: int) -> dict[str, Any]:
    """The last candidate under another name: a call could stand for its twin, and what fails be
    left out."""
    proposal = Proposal.unpack(row.proposal)
    calls, probabilities = proposal.calls.copy(), proposal.probabilities.copy()
    assert row.call < calls[-2]
    calls[-1] += alias * space_of().total
    probabilities[-2:] = probabilities[-2:].sum() - 1e-12, 1e-12
    return {"proposal": Proposal(calls, probabilities).pack()}


def fewer_questions(row: DrawRow) -> dict[str, Any]:
    first, *others = row.moves
    return {"moves": (replace(first, members=first.members[:-1]), *others)}


def figure(number: int, change: Callable[[float], float] = lambda x: 1000 * x + 1e5) -> Any:
    """Another value of a figure of the first target."""

    def changed(row: DrawRow) -> dict[str, Any]:
        first, *others = row.moves
        figures = list(first.figures)
        figures[number] = change(figures[number])
        return {"moves": (replace(first, figures=tuple(figures)), *others)}

    return changed


@pytest.mark.parametrize(
    ("answers", "change", "message"),
    [
        ("one", another_call, r"is call \d+, but the key and the proposal"),
        ("one", another_proposal, "but the key and the proposal come to call"),
        ("one", partial(an_alias, alias=-1), ": expected candidates in ascending"),
        ("one", partial(an_alias, alias=1), ": expected candidates in ascending"),
        ("all", fewer_questions, "its questions are not those that the target selects"),
        ("all", figure(0, lambda x: x - 1e6), ", target 0.* passes the bounds"),
        ("all", figure(2, lambda x: 0.3 * x), ", target 0.* predictions of its call"),
        ("all", figure(4), ", target 0.* scale should be"),
        ("all", figure(5), ", target 0.* lo should be"),
        ("all", figure(6), ", target 0.* hi should be"),
        ("all", figure(7), ", target 0.* foreseen should be"),
        ("all", figure(8), ", target 0.* tilt passes"),
        ("all", figure(9), ", target 0.* tilt_bound should be"),
    ],
)
def test_what_of_a_draw_is_not_what_the_past_and_the_key_fix_is_noticed(answers, change, message):
    options = {"targets": ("overall",)} if answers == "one" else {}
    journal = same_journal(answers, **options)
    draws = journal.draws()
    number = next(k for k, row in enumerate(draws) if k >= 3 and is_early(row))
    draws[number] = replace(draws[number], **change(draws[number]))
    with pytest.raises(JournalError, match=f"draw {number}.*{message}"):
        checked(journal, draws)


def is_early(row: DrawRow) -> bool:
    """Whether some candidates come after the one that was drawn."""
    return bool(row.call < Proposal.unpack(row.proposal).calls[-2])


def test_targets_that_select_something_else_are_noticed():
    journal = same_journal()
    facts = json.loads(json.dumps(journal.facts()))
    targets = facts["population"]["targets"]
    targets[0], targets[1] = targets[1], targets[0]
    with pytest.raises(JournalError, match="sizes are not what their definitions come to"):
        checked(journal, journal.draws(), facts)
    facts["population"]["truths"]["bytes"] = "AAAA"
    with pytest.raises(JournalError, match="definitions in the journal are damaged"):
        checked(journal, journal.draws(), facts)


def test_a_loss_out_of_range_is_noticed(monkeypatch):
    journal = journal_of()
    calls = journal.calls()
    answers = tuple(replace(a, loss=1.5) for a in calls[0].answers)
    calls[0] = replace(calls[0], answers=answers)
    monkeypatch.setattr(journal, "calls", lambda: calls)
    monkeypatch.setattr("adaptive_vtt.certify.verify.check_chain", lambda *_: None)
    with pytest.raises(JournalError, match=r"expected a loss in 0..1, got 1.5"):
        verify(journal)
