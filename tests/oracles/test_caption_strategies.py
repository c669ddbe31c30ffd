"""Which follow-ups come next in an audit of captions, and what that rests on."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from adaptive_vtt import Audit, QuestionSpace, strategies
from adaptive_vtt.engine.selector import Selector
from adaptive_vtt.errors import InputError
from adaptive_vtt.oracles.caption_memory import DISAPPEARED, RETAINED, UNNAMED, CaptionMemory, Rates
from tests.helpers.captioned import faulty, space


@cache
def at_random(budget: int) -> Audit:
    """An audit of uniform draws, for who only reads it."""
    return played("random", budget)


def played(name: str, budget: int, seed: int = 0, follow_ups: int = 6) -> Audit:
    audit = Audit(space(follow_ups), faulty(), strategy=name, budget=budget, seed=seed)
    audit.run()
    return audit


def memory(audit: Audit) -> CaptionMemory:
    assert isinstance(audit.belief.memory, CaptionMemory)
    return audit.belief.memory


@pytest.mark.slow
@pytest.mark.parametrize("name", ["reic", "distinct-violations"])
def test_weights_are_weights_after_any_history(name: str) -> None:
    strategy = strategies.get(name)
    for budget in (30, 60, 150):
        audit = at_random(budget)
        candidates = audit._loop.selector.pool.candidates(0)
        weights = strategy.weights(candidates, audit.belief)
        assert weights.shape == (len(candidates),)
        assert torch.isfinite(weights).all()
        assert (weights >= 0).all()
        assert weights.sum() > 0
        assert torch.equal(weights, strategy.weights(candidates, audit.belief))


@pytest.mark.parametrize("name", ["reic", "distinct-violations"])
def test_strategies_for_captions_need_captions(name: str) -> None:
    from adaptive_vtt.testing import tiny_dataset

    selector = Selector(QuestionSpace(tiny_dataset(), ["identity"]), strategies.get(name))
    with pytest.raises(InputError, match=f"strategy '{name}': needs an audit of captions"):
        selector.draw()


@pytest.mark.slow
def test_reic_takes_three_of_each_relation_and_finishes_an_image_before_the_next() -> None:
    audit = played("reic", 70)
    samples = [d.sample for d in audit.journal.draws()]
    drawn = memory(audit).drawn
    assert len(dict.fromkeys(samples)) == len(drawn)
    order = [s for i, s in enumerate(samples) if i == 0 or s != samples[i - 1]]
    assert order == list(dict.fromkeys(order))
    relation = memory(audit).relation
    for variants in list(drawn.values())[:-1]:
        assert np.unique(relation[variants], return_counts=True)[1].tolist() == [3, 3, 3]


@pytest.mark.slow
def test_distinct_violations_finds_more_than_random() -> None:
    found = {name: 0 for name in ("random", "distinct-violations")}
    for name in found:
        found[name] = sum(len(memory(played(name, 90, seed)).found) for seed in range(3))
    assert found["distinct-violations"] > 1.3 * found["random"]


def test_rates_tell_names_sizes_and_checks_apart() -> None:
    rates, rng = Rates(), np.random.default_rng(0)
    chances = {0: 0.05, 1: 0.3}
    for _ in range(600):
        name, share = int(rng.integers(2)), float(rng.choice([0.003, 0.1]))
        wrong = rng.random() < chances[name] * (2 if share < 0.01 else 1)
        rates.observe(name, share, 0, RETAINED, bool(wrong))
        rates.observe(name, share, 0, DISAPPEARED, False)
    sizes, passed = np.array([0.1, 0.1, 0.003, 0.1]), np.zeros(4, int)
    found = rates.predict(np.array([0, 1, 1, -1]), sizes, passed)
    assert found[1, RETAINED] == pytest.approx(0.3, abs=0.08)
    assert found[0, RETAINED] < 0.6 * found[1, RETAINED] < 0.6 * found[2, RETAINED]
    assert found[:3, DISAPPEARED].max() < 0.05
    assert found[0, UNNAMED] > found[0, RETAINED]  # never checked: the first guess
    assert (found[3] == 0).all()


@pytest.mark.slow
def test_memory_follows_from_the_journal_alone(tmp_path: Path) -> None:
    options: dict[str, Any] = {"strategy": "distinct-violations", "budget": 60}
    whole = Audit(space(), faulty(), **options)
    whole.run()
    for budget in (25, 60):
        with Audit(
            space(), faulty(), journal=tmp_path / "j.db", **options | {"budget": budget}
        ) as a:
            a.run()
            draws = [(d.question, d.probability) for d in a.journal.draws()]
    assert draws == [(d.question, d.probability) for d in whole.journal.draws()]
