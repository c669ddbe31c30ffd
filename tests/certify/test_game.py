"""What the betting game promises beyond one interval: levels, decisions, questions left out."""

from bisect import bisect_left
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptive_vtt import Audit, Pool, QuestionSpace
from adaptive_vtt.certify.alpha import by_size, by_weight
from adaptive_vtt.certify.decisions import Decisions
from adaptive_vtt.certify.game import Bet, Game
from adaptive_vtt.certify.rules import Rules
from adaptive_vtt.certify.sequences import BETS, Sequences, Step
from adaptive_vtt.certify.verify import recompute, verify
from adaptive_vtt.datasets import from_table
from adaptive_vtt.engine import options as plan
from adaptive_vtt.errors import InputError, JournalError
from adaptive_vtt.families import Filtered, OfConcept, Overall
from adaptive_vtt.journal import FIGURES, MemoryJournal
from adaptive_vtt.journal.facts import read_facts
from adaptive_vtt.models import Recorded
from adaptive_vtt.oracles import Correctness
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from adaptive_vtt.types import Floats, Outcome, Question
from tests.golden.make_certifier import CASES, played
from tests.helpers.steps import step

OLD = replace(BETS, cap=0.9, ratio=False)


def space() -> QuestionSpace:
    return QuestionSpace(tiny_dataset(40, images=False), ["identity"])


# -- levels -------------------------------------------------------------------------------------

NEEDS = st.lists(
    st.tuples(st.floats(0, 1), st.integers(1, 20)), min_size=1, max_size=12
)  # share of the calls, questions in each


@given(NEEDS)
def test_shares_by_size_are_positive_and_sum_to_one(needs: list[tuple[float, int]]) -> None:
    touched, largest = np.array(needs, float).T
    found = np.array(by_size(1000 * touched, largest, 1000))
    assert found.sum() == pytest.approx(1)
    assert (found >= 0.1 / len(needs) - 1e-12).all()
    for k, j in zip(*np.triu_indices(len(needs), 1), strict=True):
        if touched[k] <= touched[j] and largest[k] <= largest[j]:
            assert found[k] >= found[j] - 1e-12


@given(st.sampled_from(["all", "each"]), st.lists(st.floats(0, 9), min_size=2, max_size=6))
def test_levels_sum_to_alpha_or_are_alpha_each(guarantee: Any, weights: list[float]) -> None:
    names = [f"t{k}" for k in range(len(weights))]
    weights[0] += 1
    chosen = by_weight(dict(zip(names, weights, strict=True)), [Filtered(name) for name in names])
    levels = Rules(0.1, 0.05, guarantee, None if guarantee == "each" else chosen).alphas(len(names))
    assert (levels >= 0).all()
    assert (levels.sum() if guarantee == "all" else levels.max()) == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"overal error": 1}, "weights: unknown target 'overal error'.*did you mean"),
        (
            {"overall label error": -1},
            "'overall label error': expected a number of 0 or more, got -1",
        ),
        ({"overall label error": 0, "p: e": 0}, "at least one target with a weight above 0"),
    ],
)
def test_weights_that_are_none_are_refused(weights: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        by_weight(weights, [Overall("label error"), OfConcept("p", 1, "e")])


def test_a_weight_goes_by_any_name_of_a_target() -> None:
    both = [Overall("label error", also=("mine",)), OfConcept("p", 1, "e")]
    for name in ("overall", "overall label error", "mine"):
        assert by_weight({name: 3}, both) == (0.75, 0.25)


def test_weights_and_a_guarantee_for_each_exclude_each_other() -> None:
    with pytest.raises(InputError, match='weights: expected none where the guarantee is "each"'):
        Audit(space(), ScriptedModel(), half_width=0.1, guarantee="each", weights={"a": 2})
    with pytest.raises(InputError, match="unknown guarantee 'some'"):
        Audit(space(), ScriptedModel(), half_width=0.1, guarantee="some")  # type: ignore[arg-type]


NAME = "a: miss rate"


@pytest.mark.slow
def test_a_larger_share_makes_a_narrower_interval_and_verify_knows_it() -> None:
    widths = []
    for weight in (0.001, 1000.0):
        audit = near(4, 0.1, half_width=0.05, budget=100, weights={NAME: weight})
        row = audit.run().targets.set_index("target").loc[NAME]
        widths.append(row["half_width"])
        (found,) = (i for i in verify(audit.journal) if i.name == NAME)
        assert (found.upper - found.lower) / 2 == pytest.approx(row["half_width"])
    assert widths[1] < 0.8 * widths[0]


def test_verify_refuses_shares_of_more_than_there_is() -> None:
    audit = Audit(space(), ScriptedModel(), half_width=0.2, targets=["concepts"], budget=5)
    audit.run()
    journal = audit.journal
    certificate = read_facts(journal.facts()).certificate
    assert certificate is not None
    assert sum(certificate.weights or ()) == pytest.approx(1)
    greedy = certificate.model_copy(update={"weights": (1.0,) * len(certificate.targets)})
    with pytest.raises(JournalError, match=r"expected weights of .* 1 in all"):
        recompute(greedy, journal.draws(), journal.calls())


@pytest.mark.slow
def test_an_audit_goes_on_with_the_bets_that_its_journal_tells(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"half_width": 0.15, "targets": ["overall", "concepts"], "seed": 2}
    with monkeypatch.context() as before:
        before.setattr(plan, "BETS", OLD)
        whole = Audit(space(), ScriptedModel(), **options).run().targets
        with Audit(
            space(), ScriptedModel(), budget=9, journal=tmp_path / "j.db", **options
        ) as audit:
            audit.run()
    with Audit(space(), ScriptedModel(), journal=tmp_path / "j.db", **options) as audit:
        pd.testing.assert_frame_equal(audit.run().targets, whole)
        assert verify(audit.journal)


def test_what_is_said_of_a_target_that_does_not_move_changes_nothing() -> None:
    """Drawn from a stratum without it, its figures keep no bound: log(1 + x) may be no number."""
    one, none = np.ones(1), np.zeros(1)
    sequences = Sequences(0.1 * one, 0.1 * one)
    still = Step(one < 0, none, one, none, one, 1e-3 * one, 9 * one, none, none, none, none)
    sequences.move(still)
    assert (sequences.lower, sequences.upper, sequences.emptied) == (0, 1, False)
    up, down = sequences.growth(still, np.zeros(3, np.int64), np.array([0.1, 0.5, 0.9]))
    assert (up == 0).all()
    assert (down == 0).all()


def test_at_level_zero_nothing_is_excluded_however_large_the_wealth() -> None:
    one, none = np.ones(1), np.zeros(1)
    sequences = Sequences(0.1 * one, none, replace(BETS, cell=0.02))
    with np.errstate(over="ignore"):
        for _ in range(1000):
            sequences.move(step(one, 0.01))
        sequences.bound(none, one)
    assert (sequences.lower, sequences.upper) == (0, 1)


# -- decisions ----------------------------------------------------------------------------------


def coins(rates: Floats, games: Any, draws: int, rng: np.random.Generator, aim: float) -> None:
    """Plays flips of coins with ``rates`` (K,), and tells ``games`` what each adds at its limit."""
    count = len(rates)
    one = np.ones(count)
    sequences = Sequences(aim * one, 0.1 * one, replace(BETS, cell=0.5))
    for _ in range(draws):
        flips = (rng.random(count) < rates).astype(float)
        sequences.aims = np.clip(np.abs(sequences.centre - 0.5), 0.02, aim)
        games(sequences.growth(step(flips), np.arange(count), 0.5 * one))
        sequences.move(step(flips))


@pytest.mark.slow
def test_wrong_decisions_are_as_rare_as_promised() -> None:
    """200 audits of 5 coins against .5 at level .2: P(more than 60 with an error) < .0005."""
    rng = np.random.default_rng(0)
    rates = rng.choice([0.3, 0.47, 0.5, 0.53, 0.62], (200, 5))
    audits = [Decisions(0.5, np.full(5, 0.04), shared=True) for _ in rates]

    def tell(grown: tuple[Floats, Floats]) -> None:
        up, down = (part.reshape(200, 5) for part in grown)
        for k, audit in enumerate(audits):
            audit.play(up[k], down[k])
            audit.settle(np.zeros(5), np.ones(5))

    coins(rates.ravel(), tell, 250, rng, 0.1)
    above, below = (np.array([getattr(a, side) for a in audits]) for side in ("above", "below"))
    assert not (above & below).any()
    wrong = (above & (rates <= 0.5)) | (below & (rates > 0.5))
    assert wrong.any(axis=1).sum() <= 60
    assert (above | below)[rates == 0.3].mean() > 0.9


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.floats(-3, 3), st.floats(-3, 3)), max_size=40),
    st.booleans(),
)
def test_no_target_is_decided_both_ways_or_taken_back(
    moves: list[tuple[int, float, float]], shared: bool
) -> None:
    game = Decisions(0.3, np.array([0.0, 0.01, 0.01, 0.02, 0.01]), shared)
    before = game.above.copy(), game.below.copy()
    for k, up, down in moves:
        grown = np.zeros((2, 5))
        grown[:, k] = up, down
        game.play(*grown)
        game.settle(np.zeros(5), np.ones(5))
        assert not (game.above & game.below).any()
        assert (game.above >= before[0]).all()
        assert (game.below >= before[1]).all()
        before = game.above.copy(), game.below.copy()
    assert not game.decided[0]  # nothing can be decided at level 0 but by the pool itself
    game.settle(np.full(5, 0.4), np.ones(5))
    assert game.decided.all()


@pytest.mark.parametrize(
    ("theta", "last", "above"),
    [
        (None, 2.5, [True] * 4),  # three, then the last at 1 / .1
        (np.full(4, 0.5), 3.6, [True] * 3 + [False]),  # beside intervals nothing steps down
    ],
    ids=["alone", "beside intervals"],
)
def test_decisions_step_down_within_a_direction_and_start_at_half(
    theta: Any, last: float, above: list[bool]
) -> None:
    game = Decisions(0.3, np.full(4, 0.05), shared=True, theta=theta)
    assert np.exp(game.needed()) == pytest.approx(np.full((2, 4), 40))
    game.play(np.array([5.0, 5.0, 5.0, last]), np.zeros(4))
    game.settle(np.zeros(4), np.ones(4))
    assert game.above.tolist() == above
    two = Decisions(0.3, np.full(2, 0.05), shared=True)
    assert np.exp(two.needed()) == pytest.approx(np.full((2, 2), 20))


@pytest.mark.parametrize("rate", [0.3, 0.301])
@pytest.mark.slow
def test_beside_an_interval_a_decision_errs_where_the_interval_does(rate: float) -> None:
    """400 audits of a coin at the limit, and just above it: the level is .05."""
    one, none = np.ones(400), np.zeros(400)
    sequences = Sequences(0.05 * one, 0.05 * one, BETS)
    game = Decisions(0.3, 0.05 * one, shared=False, theta=0.5 * one)
    missed, rng = none > 0, np.random.default_rng(2)
    for _ in range(400):
        flips = (rng.random(400) < rate).astype(float)
        game.play(*sequences.growth(step(flips), np.arange(400), 0.3 * one))
        sequences.move(step(flips))
        sequences.bound(none, one)
        game.settle(none, one)
        # what the bets exclude: an interval is a grid cell wider
        missed |= (sequences.lower > rate - BETS.cell) | (sequences.upper < rate + BETS.cell)
    wrong = game.above if rate <= 0.3 else game.below
    assert wrong.any()
    assert not (wrong & ~missed).any()
    assert missed.mean() <= 0.05


def near(seed: int, rate: float, **options: Any) -> Audit:
    """An audit of 400 questions of which a share ``rate`` is answered wrongly."""
    rng = np.random.default_rng(seed)
    names = [f"s{i}" for i in range(400)]
    truth = rng.integers(0, 2, 400).astype(float)
    wrong = rng.permutation(400) < round(400 * rate)
    table = from_table(None, pd.DataFrame(truth[:, None], index=names, columns=["a"]))
    says = pd.DataFrame(
        {"sample": names, "relation": "identity", "severity": 0, "a": np.abs(truth - wrong)}
    )
    return Audit(
        QuestionSpace(table, ["identity"]),
        Recorded(says),
        targets=["overall", "concepts"],
        seed=seed,
        surrogate=False,
        **options,
    )


@pytest.mark.slow
@pytest.mark.parametrize("guarantee", ["all", "each"])
def test_verify_comes_to_the_same_decisions_beside_intervals(guarantee: str) -> None:
    """At the very call by which the first of them falls, at the one before it, and at the end."""
    options: dict[str, Any] = {"at_most": 0.25, "half_width": 0.08, "guarantee": guarantee}
    whole = near(0, 0.12, **options)
    calls = whole.run().calls
    certificate = read_facts(whole.journal.facts()).certificate
    draws, answers = whole.journal.draws(), whole.journal.calls()
    assert len(draws) == len(answers) == calls

    def is_decided(count: int) -> bool:
        found = recompute(certificate, draws[:count], answers[:count])
        return any(i.decided == "below" for i in found)

    first = bisect_left(range(calls + 1), True, lo=1, key=is_decided)  # none is taken back
    for budget in (first - 1, first, calls):
        audit = near(0, 0.12, budget=budget, **options)
        stated = audit.run().targets["decided"].tolist()
        assert [i.decided for i in verify(audit.journal)] == stated
        assert ("below" in stated) == (budget >= first)


@pytest.mark.parametrize("guarantee", ["all", "each"])
def test_verify_comes_to_the_same_decisions(guarantee: str) -> None:
    audit = near(0, 0.05, at_most=0.4, guarantee=guarantee)
    result = audit.run()
    assert result.targets["decided"].tolist() == ["below"] * 3
    assert result.targets["certified"].all()
    assert [i.decided for i in verify(audit.journal)] == ["below"] * 3
    facts = audit.journal.facts()
    stated = [{**row, "decided": "above"} for row in facts["intervals"]]
    forged = MemoryJournal()
    forged.set_facts(**{**facts, "intervals": stated})
    forged.add(audit.journal.draws())
    forged.add(audit.journal.calls())
    with pytest.raises(JournalError, match="otherwise: decided above"):
        verify(forged)


# -- what is foreseen before the first draw ------------------------------------------------------


def foreseen(**options: Any) -> Audit:
    """An audit of 60 items, whose first half never fails, as a proxy knows."""
    losses = np.repeat([0.0, 1.0], 30)
    groups = pd.DataFrame({"half": np.repeat(["first", "second"], 30)})
    options = {"proxies": {"knows": 0.1 + 0.8 * losses}, "half_width": 0.2} | options
    audit = Audit(Pool(60, groups=groups), targets=["overall", "group:half"], seed=1, **options)
    for call in iter(lambda: audit.ask(1), []):
        audit.tell(call[0], losses[call[0].item or 0])
    return audit


@pytest.mark.parametrize("options", [{"half_width": 0.2}, {"at_most": 0.3}])
def test_the_end_that_decides_gets_most_of_alpha_and_verify_knows_it(options: Any) -> None:
    audit = foreseen(**options)
    certificate = read_facts(audit.journal.facts()).certificate
    assert certificate is not None
    assert certificate.theta[1:] == (0.25, 0.75)
    stated = audit.result().targets
    for status, lower, upper in zip(
        verify(audit.journal), stated["lower"], stated["upper"], strict=True
    ):
        assert (status.lower, status.upper) == pytest.approx((lower, upper))
    changed = certificate.model_copy(update={"theta": (0.5, 0.75, 0.25)})
    found = recompute(changed, audit.journal.draws(), audit.journal.calls())
    assert [s.upper for s in found] != pytest.approx(stated["upper"].tolist())
    audit.journal.set_facts(certificate=changed.model_dump(mode="json"))
    with pytest.raises(JournalError, match="'theta' was changed after the audit began"):
        verify(audit.journal)
    short = certificate.model_copy(update={"theta": (0.5,)})
    with pytest.raises(JournalError, match="expected theta of 3 targets"):
        recompute(short, audit.journal.draws(), audit.journal.calls())


def test_without_predictions_both_ends_share_alpha_evenly() -> None:
    facts = foreseen(proxies=None, budget=3).journal.facts()
    assert "theta" not in facts["certificate"]


# -- questions that do not count ----------------------------------------------------------------


def test_where_everything_counts_ratio_bets_are_the_plain_ones_to_the_last_bit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from tests.golden import make_certifier

    for case in list(CASES.values())[:1]:
        plain = played(*case)
        with monkeypatch.context() as other:
            ratio = replace(make_certifier.BETS, ratio=True)
            other.setattr(make_certifier, "BETS", ratio)
            assert played(*case) == plain


def populations(count: int, size: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Losses and whether they do not count: of each pool right ones, or wrong ones, do not."""
    losses = (rng.random((count, size)) < rng.choice([0.1, 0.4], (count, 1))).astype(float)
    out = rng.random((count, size)) < np.where(losses == rng.integers(0, 2, (count, 1)), 0.5, 0.02)
    out[:, 0] = False
    return losses * ~out, out.astype(float)


def draw(left: Floats, out: Floats, rng: np.random.Generator) -> tuple[np.ndarray, Floats]:
    """A question of each pool, and 1 / its probability; what does not count is likelier."""
    proposal = left * (1 + 2 * out)
    proposal /= proposal.sum(axis=1, keepdims=True)
    place = (proposal.cumsum(axis=1) < rng.random((len(proposal), 1))).sum(axis=1)
    place = np.minimum(place, proposal.shape[1] - 1)
    return place, 1 / proposal[np.arange(len(proposal)), place]


@pytest.mark.slow
def test_rates_over_what_counts_are_covered_at_every_moment() -> None:
    """300 audits of 60 questions, level .1: P(more than 48 misses) < .0005; a census is exact."""
    rng = np.random.default_rng(5)
    losses, out = populations(300, 60, rng)
    truth = losses.sum(axis=1) / (1 - out).sum(axis=1)
    rows, left = np.arange(300), np.ones((300, 60))
    one, none = np.ones(300), np.zeros(300)
    game = Game(60 * one, Rules(0.1, 0.1, "each"))
    held = one > 0
    for t in range(60):
        place, scale = draw(left, out, rng)
        unseen = (60 - t) * one
        figures = dict.fromkeys(FIGURES, none) | {
            "high_base": unseen, "high_predicted": one, "scale": scale, "hi": unseen,
            "foreseen": 0.25 * 60 * unseen, "uniform": one,
        }  # fmt: skip
        loss = losses[rows, place]
        game.play(Bet(one > 0, **figures), loss, loss, one.astype(np.int64), out[rows, place])
        left[rows, place] = 0
        lower, upper = game.sequences.lower, game.sequences.upper
        held &= (lower <= truth + 1e-9) & (truth <= upper + 1e-9)
    assert (~held).sum() <= 48
    sound = ~game.sequences.emptied
    assert game.sequences.lower[sound] == pytest.approx(truth[sound])
    assert game.sequences.upper[sound] == pytest.approx(truth[sound])


class Excluding(Correctness):
    """Counts no answer."""

    def judge(self, question: Question, answer: Any, *told: Any) -> Outcome:
        return Outcome(0.0, excluded="spoilt")


def test_a_target_of_which_nothing_counts_has_no_rate() -> None:
    spoilt = QuestionSpace(tiny_dataset(images=False), ["identity"], oracle=Excluding())
    audit = Audit(spoilt, ScriptedModel(), half_width=0.1, targets=["overall"], surrogate=False)
    row = audit.run().targets.iloc[0]
    assert (row["lower"], row["upper"]) == (0, 1)
    assert row["excluded"] == spoilt.size
    assert not row["certified"]
    assert verify(audit.journal)


def test_targets_share_alpha_evenly_under_other_strategies() -> None:
    """The rule by size suits a proposal that turns to rare targets; uniform draws would pay for
    it."""
    wide = QuestionSpace(tiny_dataset(40, images=False), ["identity", "brightness_up"])
    names = ["overall", "concepts"]
    found = {}
    for strategy in ("certify", "random"):
        audit = Audit(wide, ScriptedModel(), half_width=0.2, targets=names, strategy=strategy)
        certificate = read_facts(audit.journal.facts()).certificate
        assert certificate is not None
        found[strategy] = certificate.weights
    assert found["certify"] is not None
    assert len({*found["certify"]}) > 1
    assert found["random"] is None
