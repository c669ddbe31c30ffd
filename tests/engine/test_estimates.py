"""The reported estimate: what it is made of, when it is worked out, what the journal says of it."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from adaptive_vtt import Audit, Pool, QuestionSpace
from adaptive_vtt.certify.sequences import Sequences, Step
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.cli.run_folder import rewrite
from adaptive_vtt.cli.verify import check
from adaptive_vtt.datasets import from_table
from adaptive_vtt.engine.estimates import APART, Guesses, guesses
from adaptive_vtt.errors import JournalError
from adaptive_vtt.experiments.engine.digits import RecordedRelation
from adaptive_vtt.journal import Journal, MemoryJournal, SQLiteJournal
from adaptive_vtt.models import Recorded
from adaptive_vtt.oracles import Correctness
from adaptive_vtt.surrogates import Named, Posterior
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from adaptive_vtt.types import Floats, Outcome, Question
from tests.helpers.copied_journals import add_rows

SHARE = 0.3
"""Of the questions that fail, by chance."""


def losses_of(samples: int = 200, seed: int = 0) -> Floats:
    """samples x 2, by relation."""
    return (np.random.default_rng(seed).random((samples, 2)) < SHARE).astype(float)


def recorded(losses: Floats, **options: Any) -> tuple[QuestionSpace, Recorded]:
    """One concept, true everywhere, under two relations; what was said of it."""
    labels = pd.DataFrame({"right": np.ones(len(losses), int)})
    relations = [RecordedRelation(name, [1]) for name in "ab"]
    rows = [
        (str(i), r, 1, 1 - losses[i, k]) for i in range(len(losses)) for k, r in enumerate("ab")
    ]
    answers = pd.DataFrame(rows, columns=["sample", "relation", "severity", "right"])
    return QuestionSpace(from_table(None, labels), relations, **options), Recorded(answers)


class Foresees:
    """Says one half until it has heard ``deaf`` answers, then what ``says`` makes of the losses."""

    def __init__(self, losses: Any, says: Any, deaf: int) -> None:
        self.losses, self.says, self.deaf = losses, says, deaf
        self.received = self.looked = 0

    def observe(self, losses: Any) -> None:
        self.received += len(losses.loss)

    def posterior(self, candidates: Any) -> Posterior:
        self.looked += 1
        loss = torch.from_numpy(self.losses)[candidates.sample, candidates.variant]
        mean = self.says(loss) if self.received >= self.deaf else torch.full_like(loss, 0.5)
        return Posterior(mean, mean * (1 - mean))


def audit_with(
    says: Any, *, deaf: int = 0, seed: int = 0, samples: int = 200, **options: Any
) -> tuple[Audit, Foresees]:
    """An audit whose losses are foreseen so, and what foresees them."""
    losses = losses_of(samples, seed)
    surrogate = Foresees(losses, says, deaf)
    chosen: dict[str, Any] = {"half_width": 0.001, "budget": 40, "targets": ["overall"], **options}
    named = Named("foresees", lambda **_: surrogate)
    space = {"oracle": chosen.pop("oracle")} if "oracle" in chosen else {}
    return Audit(*recorded(losses, **space), surrogate=named, seed=seed, **chosen), surrogate


# -- what it is made of ---------------------------------------------------------------------

numbers = st.floats(0, 1)
spread = st.floats(1e-6, 0.1)
targets = st.lists(st.tuples(numbers, spread, numbers, spread), min_size=1, max_size=5)


@given(targets)
def test_predictions_move_an_estimate_by_little_more_than_a_standard_error(rows: list[Any]) -> None:
    guess = Guesses(*np.array(rows).T)
    moved = np.abs(guess.combined() - guess.draws)
    assert (moved <= np.sqrt(APART * guess.variance) + 1e-9).all()


@given(numbers, spread, spread, st.floats(-1.4, 1.4))
def test_guesses_weigh_by_precision(draws: float, variance: float, error: float, away: float):
    predictions = draws + away * np.sqrt(variance)
    found = Guesses(*np.array([[draws], [variance], [predictions], [error]])).combined()
    expected = (draws / variance + predictions / error) / (1 / variance + 1 / error)
    assert found == pytest.approx([expected])


def ratio(says: Any, deaf: int = 0) -> float:
    """Root mean square error of the estimate over that of the draws' own, in 8 audits."""
    found = []
    for seed in range(8):
        audit, _ = audit_with(says, deaf=deaf, seed=seed)
        row = audit.run().targets.iloc[0]
        truth = losses_of(seed=seed).mean()
        found.append([row["estimate"] - truth, row["pseudo_outcome_mean"] - truth])
    ours, plain = np.sqrt(np.mean(np.square(found), axis=0))
    return float(ours / plain)


@pytest.mark.slow
def test_predictions_that_became_good_make_the_estimate_better_than_the_draws_alone() -> None:
    assert ratio(lambda loss: 0.9 * loss + 0.03, deaf=30) < 0.92


@pytest.mark.slow
def test_predictions_that_are_all_wrong_alike_hardly_worsen_the_estimate() -> None:
    """.9 is said of losses of .3. Over 48 audits the ratio is 1.04, and 1.51 without a term for
    what all share; 8 of them, drawn with replacement, pass 1.2 with probability .003."""
    assert ratio(lambda loss: torch.full_like(loss, 0.9)) < 1.2


def test_without_a_surrogate_an_item_is_predicted_by_its_group() -> None:
    """A mean counts the overall mean as one answer more, and that counts 1/2 as one more."""
    kind = np.where(np.arange(60) % 3, "long", "short")
    losses = np.where(np.arange(60) % 5, 0.0, 1.0)
    pool = Pool(60, groups=pd.DataFrame({"kind": kind}))
    options: dict[str, Any] = {"targets": ["overall", "group:kind"], "half_width": 0.01, "seed": 1}
    with Audit(pool, budget=24, **options) as audit:
        while calls := audit.ask():
            audit.tell_all((call.number, losses[call.item]) for call in calls)
        asked = np.array([row.call for row in audit.journal.draws()])
        selector = audit._loop.selector
        assert selector.certifier is not None
        both = guesses(selector, selector.certifier)
    rest = np.setdiff1d(np.arange(60), asked)
    common = (losses[asked].sum() + 0.5) / (len(asked) + 1)
    total = 0.0
    for target, name in enumerate(("short", "long"), start=1):
        own = losses[asked[kind[asked] == name]]
        mean, unseen = (own.sum() + common) / (len(own) + 1), (kind[rest] == name).sum()
        total += own.sum() + mean * unseen
        expected = (own.sum() + mean * unseen) / (kind == name).sum()
        assert both.predictions[target] == pytest.approx(expected)
    assert both.predictions[0] == pytest.approx(total / 60)


def test_questions_that_wait_for_an_answer_change_no_estimate() -> None:
    pool = Pool(60, groups=pd.DataFrame({"kind": np.where(np.arange(60) % 3, "long", "short")}))
    with Audit(pool, targets=["overall", "group:kind"], half_width=0.01, seed=1) as audit:
        audit.tell_all((call.number, float(call.item % 3 == 0)) for call in audit.ask(20))
        before = [status.estimate for status in audit.statuses()]
        assert len(audit.ask(12)) == 12
        assert [status.estimate for status in audit.statuses()] == pytest.approx(before)


def test_an_impossible_mean_of_the_draws_does_not_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    """A weighted mean below 0 is possible, as weights are inverse probabilities."""
    monkeypatch.setattr(Sequences, "mean", property(lambda self: np.full(len(self.lower), -0.2)))
    audit, _ = audit_with(lambda loss: torch.full_like(loss, 0.06))
    row = audit.run().targets.iloc[0]
    assert row["pseudo_outcome_mean"] == row["lower"]
    assert row["estimate"] > row["lower"] + 0.02


def test_when_everything_is_asked_the_estimate_is_the_truth() -> None:
    audit, surrogate = audit_with(lambda loss: 0.9 - 0 * loss, samples=30, budget=None)
    assert audit.run().targets["estimate"][0] == pytest.approx(surrogate.losses.mean())


class Partly(Correctness):
    """Does not count what was asked of every other sample."""

    def judge(self, question: Question, answer: Any, *told: Any) -> Outcome:
        if int(question.sample_id) % 2:
            return Outcome(0.0, excluded="spoilt")
        return super().judge(question, answer, *told)


def test_questions_that_do_not_count_are_in_no_part_of_it() -> None:
    """Predictions are right but for .02; 80 of 120 questions are asked, of which half count."""
    options: dict[str, Any] = {"oracle": Partly(), "samples": 60, "budget": 80, "seed": 1}
    audit, surrogate = audit_with(lambda loss: 0.96 * loss + 0.02, **options)
    row = audit.run().targets.iloc[0]
    rate = surrogate.losses[::2].mean()
    selector = audit._loop.selector
    assert selector.certifier is not None
    both = guesses(selector, selector.certifier)
    asked = [one for call in audit.journal.calls() for one in call.answers]
    assert row["excluded"] == sum("spoilt" in (one.unanswered or "") for one in asked) > 20
    assert row["lower"] <= rate <= row["upper"]
    (checked,) = verify(audit.journal)
    assert (checked.lower, checked.upper) == pytest.approx((row["lower"], row["upper"]), abs=1e-9)
    assert both.predictions[0] == pytest.approx(rate, abs=0.05)
    assert row["estimate"] == pytest.approx(rate, abs=0.08)  # were they errors, it would be .15


@pytest.mark.parametrize("left_out", [pytest.param(0.0, marks=pytest.mark.slow), 0.6])
def test_the_variance_of_the_draws_mean_grows_with_the_share_that_does_not_count(left_out: float):
    """150 targets, 100 even draws each; at .6 it was told as .4 of the error that there is."""
    rng, ones, none = np.random.default_rng(3), np.ones(150), np.zeros(150)
    sequences = Sequences(0.1 * ones, 0.05 * ones)
    for _ in range(100):
        out = (rng.random(150) < left_out).astype(float)
        loss = (rng.random(150) < SHARE) * (1 - out)
        step = Step(ones > 0, loss, loss, none, ones, 0.25 * ones, none, none, none, none, out)
        sequences.move(step)
    error = np.sqrt(np.mean((sequences.mean - SHARE) ** 2))
    told = np.sqrt(sequences.mean_variance.mean())
    assert told / error == pytest.approx(1, abs=0.15)  # the error's own is good to 6 %


# -- when it is worked out ------------------------------------------------------------------


def test_it_is_worked_out_when_read_and_changes_no_draw() -> None:
    quiet, once = audit_with(lambda loss: 0.5 * loss + 0.2)
    quiet.run()
    # a look per draw, one when it ended, one for the result, and one per journaled belief
    beliefs = len(quiet.journal.beliefs())
    assert once.looked == len(quiet.journal.draws()) + 2 + beliefs
    asked, _ = audit_with(lambda loss: 0.5 * loss + 0.2)
    asked.run(lambda step: asked.statuses() and None)
    proposals = [[row.proposal for row in audit.journal.draws()] for audit in (quiet, asked)]
    assert proposals[0] == proposals[1]


# -- what the journal says of it ------------------------------------------------------------


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an audit that ended, its result and its report."""
    out = tmp_path_factory.mktemp("estimates")
    space = QuestionSpace(tiny_dataset(30, images=False), ["identity"])
    audit = Audit(space, ScriptedModel(), half_width=0.05, budget=25, journal=out / "journal.db")
    with audit:
        audit.run()
    rewrite(out)
    return out


def rewritten(out: Path, change: Any) -> Journal:
    """The journal with other intervals, chained as if it had always had them."""
    forged = MemoryJournal()
    with closing(SQLiteJournal(out / "journal.db", must_exist=True)) as journal:
        facts = journal.facts()
        forged.set_facts(**{**facts, "intervals": [change(dict(r)) for r in facts["intervals"]]})
        add_rows(forged, journal)
    return forged


def test_the_journal_has_both_estimates_and_the_result_says_the_same(ended: Path) -> None:
    assert "as they were written" in check(ended)[0]
    rows = json.loads((ended / "result.json").read_text())["targets"]
    with closing(SQLiteJournal(ended / "journal.db", must_exist=True)) as journal:
        stated, drawn = journal.facts()["intervals"], verify(journal)
    for name in ("estimate", "pseudo_outcome_mean"):
        assert [row[name] for row in rows] == [row[name] for row in stated]
    assert [row["pseudo_outcome_mean"] for row in rows] == pytest.approx(
        [interval.estimate for interval in drawn]
    )
    assert any(row["estimate"] != row["pseudo_outcome_mean"] for row in rows)
    assert all(row["lower"] <= row["estimate"] <= row["upper"] for row in rows)


@pytest.mark.parametrize("value", [1.5, -0.2, float("nan"), None, "0.3", True])
def test_verify_refuses_an_estimate_that_is_no_number_within_its_interval(ended: Path, value: Any):
    with pytest.raises(JournalError, match=r"expected an estimate within \[|damaged"):
        verify(rewritten(ended, lambda row: {**row, "estimate": value}))
