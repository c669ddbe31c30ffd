"""The proposal of a draw: probabilities that sum to one, keep the exploration, and are drawn
from."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.engine.proposals import Proposal, mix
from adaptive_vtt.testing import ScriptedModel
from adaptive_vtt.utils.random_streams import generator

weight_lists = st.lists(
    st.sampled_from([0.0, 1.0]) | st.floats(1e-12, 1e12), min_size=1, max_size=30
).filter(any)
floors = st.sampled_from([0.0, 0.01, 0.5, 1.0]) | st.floats(0, 1)


class Fixed:
    """A generator whose next uniform number is known."""

    def __init__(self, value: float) -> None:
        self.value = value

    def random(self) -> float:
        return self.value


@given(weights=weight_lists, exploration=floors)
def test_a_proposal_mixes_weights_and_exploration(weights: list[float], exploration: float):
    n, total = len(weights), sum(weights)
    proposal = mix(np.arange(n), np.array(weights), exploration)
    assert proposal.probabilities.sum() == pytest.approx(1, abs=1e-12)
    assert (proposal.probabilities >= exploration / n * (1 - 1e-12)).all()
    expected = [(1 - exploration) * w / total + exploration / n for w in weights]
    assert proposal.probabilities == pytest.approx(expected, rel=1e-9, abs=1e-15)


@given(
    rows=st.dictionaries(st.integers(0, 2**62 - 1), st.just(0.0) | st.floats(1e-300, 1)),
    order=st.randoms(use_true_random=False),
)
def test_packing_keeps_every_probability_above_zero_exactly(rows: dict[int, float], order: object):
    questions = list(rows)
    order.shuffle(questions)  # type: ignore[attr-defined]
    proposal = Proposal(np.array(questions, np.int64), np.array([rows[q] for q in questions]))
    back = Proposal.unpack(proposal.pack())
    kept = sorted((q, p) for q, p in rows.items() if p > 0)
    assert list(zip(back.calls.tolist(), back.probabilities.tolist(), strict=True)) == kept


def test_draws_follow_the_proposal() -> None:
    # 20,000 draws; a correct program fails for one seed in 1,000.
    proposal = mix(np.arange(6), np.array([0.0, 1.0, 3.0, 0.0, 0.5, 6.0]), exploration=0.1)
    rng = generator(11, "test")
    counts = np.bincount([proposal.draw(rng) for _ in range(20_000)], minlength=6)
    assert chisquare(counts, proposal.probabilities * 20_000).pvalue > 1e-3


def test_what_has_probability_zero_is_never_drawn() -> None:
    proposal = mix(np.arange(5), np.array([0.0, 0.3, 0.0, 0.6, 0.0]), exploration=0)
    almost_one = float(np.nextafter(1, 0))
    assert proposal.draw(Fixed(0.0)) == 1  # type: ignore[arg-type]
    assert proposal.draw(Fixed(almost_one)) == 3  # type: ignore[arg-type]
    assert {proposal.draw(generator(seed, "zero")) for seed in range(300)} == {1, 3}


def test_equal_chances_draw_equal_places() -> None:
    proposal = mix(np.array([40, 41, 42, 43]), np.ones(4), exploration=0)
    places = [proposal.draw(Fixed(u)) for u in (0.1, 0.26, 0.51, 0.99)]  # type: ignore[arg-type]
    assert places == [0, 1, 2, 3]


# -- the random numbers behind it ----------------------------------------------------------


def test_streams_follow_from_seed_purpose_and_numbers_alone() -> None:
    keys = [(0, "draw", 0), (1, "draw", 0), (0, "draw", 1), (0, "follow-up", 0), (0, "draw", 0, 0)]
    streams = [generator(*key).random(4).tolist() for key in keys]
    assert len({tuple(stream) for stream in streams}) == len(keys)
    assert [generator(*key).random(4).tolist() for key in reversed(keys)] == streams[::-1]


def test_streams_stay_what_they_were() -> None:
    # Philox keyed by BLAKE2b of the words; a change here would change every audit's draws.
    assert generator(0, "draw", 0).random(3).tolist() == GOLDEN
    assert generator(3, "draw", 12, 4).integers(0, 1000, 5).tolist() == GOLDEN_INTEGERS


GOLDEN = [0.7452674638775084, 0.7117039461846483, 0.8953115544077027]
GOLDEN_INTEGERS = [765, 111, 773, 580, 129]


def test_a_draw_that_rounding_puts_at_the_end_is_never_of_probability_zero() -> None:
    class Last(np.random.Generator):
        def random(self, *_: object, **__: object) -> float:  # type: ignore[override]
            return 1.0

    proposal = Proposal(np.arange(4), np.array([0.5, 0.5, 0.0, 0.0]))
    assert proposal.draw(Last(np.random.PCG64())) == 1


def test_a_baseline_with_next_to_no_exploration_stays_plain(space: QuestionSpace) -> None:
    """However noisy its draws look beside uniform ones, which others explore more for."""

    def furthest(exploration: float) -> float:
        options: dict[str, Any] = {"strategy": "random", "surrogate": False, "seed": 0}
        options |= {"half_width": 0.1, "budget": 12, "exploration": exploration}
        with Audit(space, ScriptedModel(), **options) as audit:
            audit._loop.selector.certifier.variance_ratio = lambda: 2.0  # type: ignore[union-attr, method-assign]
            audit.run()
            found = [row.probability * row.why["eligible"] for row in audit.journal.draws()]
        return float(np.abs(np.array(found) - 1).max())

    assert furthest(1e-6) < 1e-5
    assert furthest(0.2) > 0.01
