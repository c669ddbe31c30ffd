"""``verify`` repeats every draw: whatever of it was changed is named, even where seals agree."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.certify.verify_draws import check_draws, unchecked
from adaptive_vtt.engine.candidates import CandidatePool
from adaptive_vtt.engine.selector import Proposal
from adaptive_vtt.errors import JournalError
from adaptive_vtt.journal import MemoryJournal
from adaptive_vtt.journal.facts import read_facts
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from adaptive_vtt.types import Candidates
from adaptive_vtt.utils.random_streams import generator
from tests.helpers.twins import crossed

OPTIONS = {"half_width": 0.1, "targets": ("overall", "concepts", "relations"), "budget": 25}
OPTIONS |= {"surrogate": False, "seed": 1}


def space_of() -> QuestionSpace:
    return QuestionSpace(tiny_dataset(12, 3), ["identity", "brightness_up"])


def journal_of(answers: str = "all", **options: object) -> MemoryJournal:
    audit = Audit(space_of(), ScriptedModel(answers=answers, refuse=0.1), **{**OPTIONS, **options})
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


@pytest.mark.parametrize(("answers", "options"), crossed(["one", "all"], PLANS))
def test_every_draw_follows_from_the_key_and_the_proposal(answers, options):
    journal = journal_of(answers, **options)
    verify(journal)
    assert unchecked(read_facts(journal.facts())) is None


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


@pytest.mark.parametrize("alias", [-1, 1])
def test_a_candidate_that_is_another_name_of_a_call_is_noticed(alias):
    """Else a call could stand for its twin, and what fails be left out."""
    journal = same_journal("one", targets=("overall",))
    row = next(r for r in journal.draws() if r.call < Proposal.unpack(r.proposal).calls[-2])
    proposal = Proposal.unpack(row.proposal)
    calls, probabilities = proposal.calls.copy(), proposal.probabilities.copy()
    calls[-1] += alias * space_of().total
    probabilities[-2:] = probabilities[-2:].sum() - 1e-12, 1e-12
    draws = _changed(journal, row.draw, proposal=Proposal(calls, probabilities).pack())
    with pytest.raises(JournalError, match=f"draw {row.draw}: expected candidates in ascending"):
        checked(journal, draws)


def _changed(journal: MemoryJournal, number: int, **changes: object) -> list:
    draws = journal.draws()
    draws[number] = replace(draws[number], **changes)
    return draws


def test_another_call_of_the_same_proposal_is_noticed():
    journal = same_journal("one")
    row = journal.draws()[3]
    proposal = Proposal.unpack(row.proposal)
    place = int(np.flatnonzero(proposal.calls != row.call)[0])
    other, probability = int(proposal.calls[place]), float(proposal.probabilities[place])
    with pytest.raises(
        JournalError, match=rf"draw 3 is call {other}, but the key and the proposal"
    ):
        checked(journal, _changed(journal, 3, call=other, probability=probability))


def test_another_proposal_is_noticed():
    journal = same_journal("one")
    row = journal.draws()[0]
    proposal = Proposal.unpack(row.proposal)
    place = int(np.flatnonzero(proposal.calls == row.call)[0])
    least = np.full(len(proposal.calls), 1e-9)
    least[int(place == 0)] = 1 - 1e-9 * (
        len(proposal.calls) - 1
    )  # all on a call that was not drawn
    bent = Proposal(proposal.calls, least).pack()
    with pytest.raises(JournalError, match="but the key and the proposal come to call"):
        checked(journal, _changed(journal, 0, proposal=bent, probability=1e-9))


@pytest.mark.parametrize(
    ("figure", "message"),
    [
        (4, "scale should be"),
        (5, "lo should be"),
        pytest.param(6, "hi should be", marks=pytest.mark.slow),
        pytest.param(7, "foreseen should be", marks=pytest.mark.slow),
        (9, "tilt_bound should be"),
        (8, "tilt passes"),
        (2, "predictions of its call"),
        (0, "passes the bounds"),
    ],
)
def test_a_figure_that_the_past_did_not_fix_is_noticed(figure, message):
    journal = same_journal()
    moves = list(journal.draws()[5].moves)
    figures = list(moves[0].figures)
    figures[figure] = (
        figures[figure] * 1000 + 1e5
        if figure not in (0, 2)
        else -1e6 * (figure == 0) + 0.3 * figures[2]
    )
    moves[0] = replace(moves[0], figures=tuple(figures))
    with pytest.raises(JournalError, match=f"draw 5, target 0.* {message}"):
        checked(journal, _changed(journal, 5, moves=tuple(moves)))


def test_questions_that_a_target_does_not_select_are_noticed():
    journal = same_journal()
    moves = list(journal.draws()[2].moves)
    moves[0] = replace(moves[0], members=moves[0].members[:-1])
    with pytest.raises(JournalError, match="its questions are not those that the target selects"):
        checked(journal, _changed(journal, 2, moves=tuple(moves)))


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
