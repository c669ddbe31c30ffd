"""Stratum first: the partition, exactness by enumeration, coverage, and what verify refuses."""

from dataclasses import replace
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.certify import Certifier, named_targets
from adaptive_vtt.certify.strata import CallStrata, QuestionStrata, Stratum
from adaptive_vtt.certify.targets import members
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.certify.verify_draws import check_draws
from adaptive_vtt.datasets import from_table
from adaptive_vtt.engine.belief import Belief, Observation
from adaptive_vtt.engine.selector import Selector
from adaptive_vtt.errors import JournalError
from adaptive_vtt.journal import MemoryJournal
from adaptive_vtt.journal.facts import read_facts
from adaptive_vtt.strategies import get
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from tests.helpers.source_spaces import Named, uneven
from tests.helpers.twins import slowly

EVERYTHING = ["overall", "concepts", "relations"]


def certifier_of(
    space: QuestionSpace,
    names: list[str],
    limit: int = 4096,
    least: float = 0.9,
    spanning: int = 99,  # more than pay, and as exact
    **options: Any,
) -> Certifier:
    chosen: dict[str, Any] = {"half_width": 0.1, "confidence": 0.9, "answers": "one"} | options
    certifier = Certifier(space, named_targets(space, names), **chosen)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("adaptive_vtt.certify.strata.LEAST_CHANCE", least)
        patch.setattr("adaptive_vtt.certify.strata.MOST_SPANNING", spanning)
        certifier.stratify(limit)
    return certifier


@pytest.mark.parametrize("names", [["concepts", "relations"], ["concept:a"]])
def test_strata_are_what_counting_finds_and_every_rank_is_one_question(names):
    space = uneven(20)
    strata = QuestionStrata(space, named_targets(space, names))
    eligible = space.nth(np.arange(space.size))
    inside = certifier_of(space, names).members(eligible)
    place = strata.of(eligible)  # -1: in no target
    mine = place >= 0
    assert (mine == inside.any(axis=0)).all()
    assert (strata.inside[:, place[mine]] == inside[:, mine]).all()
    assert strata.sizes.tolist() == np.bincount(place[mine]).tolist()
    for c, size in enumerate(strata.sizes.tolist()):
        assert sorted(strata.nth(c, np.arange(size)).tolist()) == sorted(eligible[place == c])


def test_strata_of_calls_are_what_counting_finds_as_calls_are_drawn():
    space, rng = uneven(20), np.random.default_rng(2)
    targets = named_targets(space, [*EVERYTHING, "relation-sides"])
    strata = CallStrata(space, targets)
    left = space.nth(np.arange(space.size))
    images = [np.sort(strata.nth(c, np.arange(n))) for c, n in enumerate(strata.ranks)]
    assert sorted(np.concatenate(images)) == list(range(space.total // 2))
    for call in [-1, *rng.choice(np.unique(left // 2), 9, replace=False).tolist()]:
        strata.remove(left[left // 2 == call])
        left = left[left // 2 != call]
        inside, place = members(space, targets, left), strata.of(left)
        for c in range(len(strata)):
            here = left[place == c]
            assert set(here // 2) <= set(images[c])
            assert strata.unseen[c] == len(np.unique(here // 2))
            assert strata.questions[:, c].tolist() == inside[:, place == c].sum(axis=1).tolist()
            touching = [len(np.unique(here[mine] // 2)) for mine in inside[:, place == c]]
            assert strata.calls[:, c].tolist() == touching


@pytest.mark.parametrize(
    ("names", "answers", "limits", "chosen"),
    [
        (["overall"], "one", {}, False),  # there is no choice
        (["concepts"], "all", {}, False),
        (["group:site"], "one", {}, False),
        (EVERYTHING, "all", {"limit": 3}, False),  # 3 of 8 may touch no question of a side
        (["relations"], "all", {"spanning": 1}, True),  # at most one target spans the strata
        (["overall", "relations"], "all", {"spanning": 1}, True),
        (EVERYTHING, "all", {"spanning": 1}, False),
    ],
)
def test_strata_are_chosen_where_there_is_a_choice_that_pays(names, answers, limits, chosen):
    rng, count = np.random.default_rng(0), 40 if "spanning" in limits else 8
    table = pd.DataFrame(rng.integers(0, 2, (count, 2)), columns=["a", "b"])
    sites = pd.DataFrame({"site": ["x", "y"] * (count // 2)})
    space = QuestionSpace(from_table(None, table, metadata=sites), [Named("r"), Named("t")])
    certifier = certifier_of(space, names, answers=answers, **limits)
    assert (certifier.strata is not None) == chosen


# -- exactness ------------------------------------------------------------------------------


class Batch:
    """Three calls drawn, of which the last is not answered before a fourth is drawn. Some
    questions do not count (``out``), others, unanswered, count both ways."""

    def __init__(self, names: list[str], seed: int, answers: str, most: int) -> None:
        self.space, self.names, self.answers, self.most = uneven(4, seed), names, answers, most
        rng, total = np.random.default_rng([seed, 5]), self.space.total
        losses = (rng.random(total) < 0.4).astype(float)
        self.out = rng.random(total) < 0.2 + 0.4 * losses
        both = ~self.out & (rng.random(total) < 0.3)
        self.least = losses * ~(self.out | both)
        self.most_lost = np.where(both, 1.0, losses * ~self.out)
        self.eligible = np.sort(self.space.nth(np.arange(self.space.size)))
        self.call = self.eligible // (len(self.space.concepts) if answers == "all" else 1)
        self.seen = rng.choice(np.unique(self.call), 3, replace=False).tolist()
        strata = self.certifier().strata
        self.place = np.zeros_like(self.call) if strata is None else strata.of(self.eligible)
        shares = rng.dirichlet(np.ones(1 if strata is None else len(strata))) + 0.05
        shares[[len(self.pool(c)) == 0 for c in range(len(shares))]] = 0
        self.shares = shares / shares.sum()

    def certifier(self) -> Certifier:
        return certifier_of(self.space, self.names, self.most, 0.0, answers=self.answers)

    def pool(self, stratum: int) -> list[int]:
        """The calls of a stratum that may be drawn now."""
        return sorted({*self.call[self.place == stratum]} - {*self.seen})

    def wanted(self, m: Any) -> Any:
        """(2, n, K): sums of least and most losses, less ``m`` (n, 1), over what counts."""
        inside = self.certifier().members(self.eligible).astype(float)
        counting = inside @ ~self.out[self.eligible]
        sums = [inside @ x[self.eligible] for x in (self.least, self.most_lost)]
        return np.array([each - m * counting for each in sums])

    def play(self, subset: list[int], drawn: int, rng: Any, proposal: Any) -> tuple[Any, ...]:
        """The step of the fourth draw, and centre and sizes."""
        certifier, noted = self.certifier(), []
        sequences, even = certifier.sequences, np.full(len(self.shares), 1 / len(self.shares))
        move = sequences.move
        sequences.move = lambda step: (noted.append((step, sequences.centre)), move(step))
        one, before = np.ones(1), []
        for call in self.seen:
            before.append(self.drawn(certifier, [call], 0, np.random.default_rng(0), one, even))
            if call != self.seen[-1]:
                self.tell(certifier, before[-1], call)
        last = self.drawn(certifier, subset, drawn, rng, proposal, self.shares)
        self.tell(certifier, before[-1], self.seen[-1])
        self.tell(certifier, last, subset[drawn])
        return *noted[-1], certifier.sizes

    def drawn(
        self, certifier: Any, subset: list[int], place: int, rng: Any, proposal: Any, shares: Any
    ) -> Any:
        """What a draw from ``subset`` fixes; predictions are as bad as chance makes them."""
        mine = np.isin(self.call, subset)
        asked, unit = self.eligible[mine], np.searchsorted(subset, self.call[mine])
        stratum, strata = None, certifier.strata
        if strata is not None:
            stratum = Stratum(int(self.place[mine][0]), shares, 0.8, 0.2)
        f = rng.random(len(asked))
        move = certifier.bet(certifier.members(asked), unit, f, proposal, place, stratum)
        if strata is not None:
            strata.remove(asked[unit == place])
        return move

    def tell(self, certifier: Certifier, move: Any, call: int) -> None:
        asked = self.eligible[self.call == call]
        certifier.learn(
            move,
            certifier.members(asked),
            self.least[asked],
            self.most_lost[asked],
            self.out[asked],
        )


def steps(batch: Batch, seed: int) -> tuple[Any, ...]:
    """Every way in which the last draw of a batch can go, with its probability: what the game is
    played with against means 0, .3 and 1, less what that should come to on average (2, 3, K; NaN:
    does not move), and whether the bounds that bets went by were kept."""
    m = np.array([0.0, 0.3, 1.0])[:, None]
    wanted, found, weights, kept = batch.wanted(m), [], [], True
    for c, share in enumerate(batch.shares.tolist()):
        pool = batch.pool(c)
        subsets = list(combinations(pool, min(batch.most, len(pool)))) if pool else []
        for number, subset in enumerate(subsets):
            own = [seed, c, number]
            proposal = np.random.default_rng(own).dirichlet(np.ones(len(subset))) * 0.8
            proposal += 0.2 / len(subset)
            for drawn in range(len(subset)):
                rng = np.random.default_rng([*own, 1])
                step, centre, sizes = batch.play(list(subset), drawn, rng, proposal)
                moved = (m - centre) * step.tilt + m * step.out_now
                ends = [(m - centre) * bound for bound in (-step.tilt_bound, step.tilt_most)]
                low, high = np.minimum(*ends) - 1e-9, np.maximum(*ends) + 1e-9
                kept &= bool((step.low + moved >= step.lo + low)[:, step.active].all())
                kept &= bool((step.high + moved <= step.hi + high)[:, step.active].all())
                values = [a + moved - m * (1 - step.out) for a in (step.low, step.high)]
                found.append(np.where(step.active, np.array(values) * sizes - wanted, np.nan))
                weights.append(share / len(subsets) * proposal[drawn])
    return np.array(found), np.array(weights), kept


@pytest.mark.parametrize(
    ("names", "answers", "most"),
    [
        (["relation-sides", "overall"], "one", 2),
        (EVERYTHING, "all", 99),
        (["overall", "concepts"], "all", 2),  # without strata
        pytest.param(["overall"], "one", 2, marks=pytest.mark.slow),  # nor are there any here
        pytest.param(EVERYTHING, "all", 2, marks=pytest.mark.slow),  # some touch none of a side
        pytest.param(["concepts"], "one", 2, marks=pytest.mark.slow),
        pytest.param(EVERYTHING, "one", 2, marks=pytest.mark.slow),
        pytest.param(["overall", "relations"], "all", 2, marks=pytest.mark.slow),
        pytest.param(["relation-sides", "concepts"], "all", 99, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("seed", [0, *slowly(1)])
def test_the_mean_over_all_strata_candidates_and_calls_is_exactly_the_truth(
    names, answers, most, seed
):
    """Against any mean m, what is played is on average the sum of (L - m) over what counts, for any
    predictions, proposal and shares; no draw passes the bounds that bets went by."""
    values, weights, kept = steps(Batch(names, seed, answers, most), seed)
    assert kept
    assert weights.sum() == pytest.approx(1)
    moved = weights @ ~np.isnan(values[:, 0, 0])
    assert (moved > 0).sum() >= min(3, len(moved))
    mean = np.einsum("t,twmk->wmk", weights, np.nan_to_num(values))
    np.testing.assert_allclose(mean, 0, atol=1e-9)


@pytest.mark.parametrize("answers", ["one", "all"])
def test_a_target_does_not_move_where_a_share_of_it_is_zero(answers):
    space = uneven(12)
    certifier = certifier_of(space, EVERYTHING, answers=answers)
    strata = certifier.strata
    shares = np.full(len(strata), 1.0)
    shares[0] = 0
    shares /= shares.sum()
    question = space.nth(np.arange(space.size))
    question = question[strata.of(question) == 1][:1]
    inside = certifier.members(question)
    move = certifier.bet(inside, np.arange(1), None, np.ones(1), 0, Stratum(1, shares))
    unreachable = strata.questions[:, 0] > 0
    assert not move.active[unreachable].any()
    assert (move.scale[unreachable] == 0).all()
    alone = strata.inside[:, 1] & ~strata.inside[:, 0] & inside[:, 0]
    assert alone.any()
    assert move.active[alone].all()


# -- audits ---------------------------------------------------------------------------------


def test_rare_sides_have_as_many_candidates_as_common_ones():
    """20 positives of 3,000: an open side with few questions is asked for as soon as others."""
    labels = pd.DataFrame({"a": np.arange(3000) < 20})
    space = QuestionSpace(from_table(None, labels.astype(float)))
    certifier = certifier_of(space, ["concepts"], half_width=0.05)
    selector = Selector(
        space,
        get("certify"),
        exploration=0.2,
        candidates=50,
        belief=Belief(space, seed=0, certifier=certifier),
    )
    asked = 0
    for _ in range(40):
        draw = selector.draw()
        truth = int(space.truth([draw.question])[0])
        selector.take(np.array([draw.question]), draw.bet)
        selector.learn([Observation(draw.question, truth, 0.0)])
        asked += truth
    assert asked >= 8


def test_a_strategy_that_does_not_go_by_needs_draws_from_all_calls():
    space = uneven(12)
    audit = Audit(space, ScriptedModel(answers="one"), half_width=0.2, strategy="random", budget=5)
    audit.run()
    assert all("stratum" not in row.why for row in audit.journal.draws())


# -- the journal ----------------------------------------------------------------------------


@cache
def journal_of(answers: str = "one", **options: Any) -> MemoryJournal:
    space = QuestionSpace(tiny_dataset(20, 2), ["identity", "brightness_up"])
    targets = EVERYTHING if answers == "one" else ["overall", "relations"]
    chosen: dict[str, Any] = {"half_width": 0.1, "targets": targets, "budget": 20, "seed": 3}
    chosen |= {"surrogate": False} | options
    audit = Audit(space, ScriptedModel(answers=answers, refuse=0.1), **chosen)
    audit.run()
    return audit.journal


@pytest.mark.parametrize(
    "options",
    [
        {"answers": "all", "candidates": 10, "surrogate": True},
        {"budget": None, "half_width": 0.3},
        *slowly({"surrogate": True}, {"candidates": 10}, {"batch": 4}, {"answers": "all"}),
    ],
)
def test_every_stratum_and_figure_can_be_recomputed(options):
    journal = journal_of(**options)
    verify(journal)
    assert "stratum" in journal.draws()[0].why


def on_one(why: Any) -> dict[str, Any]:
    """Nearly all of the shares on the stratum that was drawn."""
    shares = np.full(len(why["shares"]), 1e-3)
    shares[why["stratum"]] = 1 - 1e-3 * (len(shares) - 1)
    return {"shares": shares.tolist()}


@pytest.mark.parametrize("answers", ["one", "all"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda why: {"stratum": why["stratum"] + 1}, "is of stratum .*, but the key and the sh"),
        (lambda why: {"shares": [2 * s for s in why["shares"]]}, "the shares of draw 2 are no pro"),
        (lambda why: {"shares": why["shares"][:-1]}, "the shares of draw 2 are no proposal over"),
        (on_one, r"draw 2, target .*: scale should be"),
        (lambda why: {"stratum_mean": 0.9}, r"draw \d+, target \d+: (lo|hi) should be"),
        (lambda why: {"stratum_mean": [0.9, 0.8]}, "draw 2 has not one mean for every target"),
    ],
    ids=["stratum", "too much", "too few", "other shares", "mean", "means"],
)
def test_other_reasons_of_a_draw_are_noticed(answers, change, message):
    journal = journal_of(answers)
    draws = journal.draws()
    draws[2] = replace(draws[2], why=draws[2].why | change(draws[2].why))
    losses = {a.question: (a.loss, a.loss) for c in journal.calls() for a in c.answers}
    with pytest.raises(JournalError, match=message):
        check_draws(read_facts(journal.facts()), draws, {c.call for c in journal.calls()}, losses)
