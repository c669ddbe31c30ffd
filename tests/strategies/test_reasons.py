"""What was asked, and why: journaled with each draw, shown in the report."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.certify.verify_draws import check_draws
from adaptive_vtt.engine.selector import Selector
from adaptive_vtt.errors import JournalError
from adaptive_vtt.journal import MemoryJournal
from adaptive_vtt.journal.facts import read_facts
from adaptive_vtt.results.report import render
from adaptive_vtt.strategies import ByNeed, get
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from adaptive_vtt.types import CallMode, Candidates

TARGETS = ["overall", "concepts", "relations"]


def space_of(samples: int = 12, concepts: int = 4) -> QuestionSpace:
    return QuestionSpace(tiny_dataset(samples, concepts), ["identity", "rotation"], severities=[1])


def audited(answers: CallMode = "all", budget: int = 20, **options: Any) -> Audit:
    options = {"half_width": 0.1, "targets": TARGETS, "seed": 1, **options}
    audit = Audit(space_of(), ScriptedModel(answers=answers), budget=budget, **options)
    audit.run()
    return audit


def looked_at(audit: Audit) -> Candidates:
    candidates = audit._loop.selector.pool.candidates(99)
    audit.belief.look_at(candidates)
    return candidates


# -- needs, by target and question --------------------------------------------------------


@pytest.mark.parametrize("answers", ["all", "one"])
def test_the_parts_of_a_need_add_up_to_it(answers: CallMode) -> None:
    audit = audited(answers, half_width=0.3, budget=8)  # no target is asked whole
    candidates = looked_at(audit)
    parts = audit.belief.needs_by_target(candidates)
    assert parts.shape == (len(audit.targets), len(candidates))
    assert (parts[~audit.belief.inside] == 0).all()
    unit = candidates.unit.numpy()
    calls = np.bincount(unit, parts.sum(axis=0), len(candidates.call))
    np.testing.assert_allclose(calls, audit.belief.needs(candidates), rtol=1e-12, atol=0)
    weights = ByNeed(curiosity=0).weights(candidates, audit.belief)
    by_call = np.bincount(unit, weights, len(candidates.call))
    np.testing.assert_allclose(by_call, np.sqrt(calls), rtol=1e-12, atol=0)


def test_certify_names_the_target_for_which_the_question_counts_most() -> None:
    audit = audited()
    for _ in range(3):
        candidates = looked_at(audit)
        draw = audit._loop.selector.draw()
        assert draw is not None
        candidates = audit._loop.selector.pool.candidates(draw.number)
        parts = audit.belief.needs_by_target(candidates)
        place = int((candidates.question == draw.question).nonzero())
        mine = (candidates.unit == candidates.unit[place]).numpy()
        worth = parts.sum(axis=0)
        assert worth[place] == worth[mine].max()
        assert draw.why.reasons["target"] == int(parts[:, place].argmax())
        need = float(parts[draw.why.reasons["target"], place] / parts[:, mine].sum())
        assert draw.why.reasons["need"] == pytest.approx(need, abs=1e-6)
        assert audit.belief.predictions is not None
        predicted = float(audit.belief.predictions[place])
        assert draw.why.reasons["predicted_loss"] == pytest.approx(predicted, abs=1e-6)
        audit.ask(1)


def test_among_equals_chance_names_the_question_and_moves_no_draw() -> None:
    named, calls = set(), set()
    for seed in range(12):
        selector = Selector(space_of(3, 4), get("random"), seed=seed, answers="all")
        draw, again = selector.draw(), selector.draw()
        assert draw is not None
        assert again is not None
        assert (again.call, again.question) == (draw.call, draw.question)
        named.add(draw.question % 4)
        calls.add(draw.call)
    assert named == {0, 1, 2, 3}
    assert len(calls) > 2


# -- in journal and report -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "reasons"),
    [
        ({}, ["target", "need", "predicted_loss", "by_need", "curiosity", "even"]),
        ({"half_width": None}, ["uncertainty", "predicted_yes"]),
        ({"half_width": None, "strategy": "uncertainty"}, ["uncertainty"]),
        ({"half_width": None, "strategy": "unpredictability"}, ["predicted_yes"]),
        ({"strategy": "neyman", "surrogate": False}, []),
        ({"strategy": "random", "surrogate": False}, []),
    ],
    ids=str,
)
def test_the_journal_holds_what_the_strategy_went_by_and_nothing_else(
    options: dict[str, Any], reasons: list[str]
) -> None:
    audit = audited("one", budget=6, **options)
    for row in audit.journal.draws():
        told = {name for name in row.why if not name.startswith(("stratum", "shares"))}
        assert told == {*reasons, "candidates", "eligible"}
    page = render(audit.journal)
    for name, heading in (
        ("target", "counts most for"),
        ("need", "part of its call&#39;s need"),
        ("uncertainty", "uncertainty of its side"),
        ("predicted_yes", "expected P(yes)"),
    ):
        assert (f">{heading}</th>" in page) is (name in reasons), name


@pytest.mark.slow
@pytest.mark.parametrize("target", [99, -1, "x", None, 1.5])
def test_a_target_that_is_none_is_shown_as_unknown(target: Any) -> None:
    audit, other = audited(budget=3), MemoryJournal()
    other.set_facts(**audit.journal.facts())
    draws = audit.journal.draws()
    other.add([replace(row, why={**row.why, "target": target}) for row in draws])
    assert "The draws counted most for" not in render(other)


# -- what a draw's probability is made of --------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("answers", ["all", "one"])
def test_the_papers_rule_has_its_share_of_the_weights_over_what_is_open(answers: CallMode) -> None:
    audit = audited(answers, targets=["concepts"])
    candidates, belief = looked_at(audit), audit.belief
    certifier = belief.certifying
    certifier.invalidated = np.zeros(len(certifier.sizes), bool)
    certifier.sequences.lower[:], certifier.sequences.upper[:] = 0.4, 0.5
    certifier.sequences.upper[0] = 0.9  # the first alone is open
    found = ByNeed(curiosity=0.3).mixture(candidates, belief)
    assert float(found["by_need"].sum()) == pytest.approx(0.7)
    assert float(found["curiosity"].sum()) == pytest.approx(0.3)
    open_ = torch.from_numpy(belief.inside[~certifier.settled].any(axis=0))
    assert 0 < int(open_.sum()) < len(candidates)
    p = belief.predictability.probability(candidates.image, candidates.concept)
    worth = belief.uncertainty().view(-1)[candidates.cell] * 4 * p * (1 - p) * open_
    expected = (worth / worth.sum()).double().numpy()
    np.testing.assert_allclose(found["curiosity"] / 0.3, expected)


@pytest.mark.parametrize("answers", ["all", "one"])
def test_the_parts_of_a_probability_add_up_to_it_and_verify_checks_that(answers: CallMode) -> None:
    journal = audited(answers).journal
    draws = journal.draws()
    for row in draws:
        parts = [row.why[name] for name in ("by_need", "curiosity", "even")]
        assert sum(parts) == pytest.approx(row.probability, abs=1e-9)
        assert min(parts) >= 0
    why = {**draws[2].why, "by_need": draws[2].why["by_need"] + 0.01}
    forged = [*draws[:2], replace(draws[2], why=why), *draws[3:]]
    with pytest.raises(JournalError, match="draw 2: expected parts of its probability"):
        check_draws(read_facts(journal.facts()), forged, set(), {})
