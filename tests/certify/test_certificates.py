"""Certificates: targets, coverage, what is refused, resumption, and what verify notices."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from adaptive_vtt.audit import Audit
from adaptive_vtt.certify import named_targets
from adaptive_vtt.certify.targets import calls, largest, member, size
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.datasets import from_table
from adaptive_vtt.errors import InputError, JournalError
from adaptive_vtt.journal import SQLiteJournal
from adaptive_vtt.journal.rows import DrawRow
from adaptive_vtt.models import Recorded
from adaptive_vtt.space import QuestionSpace
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from tests.helpers.source_spaces import Named, uneven
from tests.helpers.twins import slowly

FAMILIES = ["overall", "concepts", "relations", "severities", "group:site", "mine"]
WHERE = {"mine": {"relation": ["r"], "site": ["y"], "concept": ["a", "b"], "truth": [1]}}


# -- targets --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(2))
def test_sizes_and_calls_of_every_target_are_those_of_counting(seed: int) -> None:
    space = uneven(30, seed, "abc")
    targets = named_targets(space, FAMILIES, WHERE)
    everything = np.arange(space.total)
    eligible = everything[space.eligible(everything)]
    sample, variant, concept = space.parts(eligible)
    truth = space.dataset.truth(sample, concept)
    inside = member(space, targets, sample, variant, concept, truth)
    for row, target in zip(inside, targets, strict=True):
        assert size(space, target) == row.sum()
        assert calls(space, target, "one") == row.sum()
        assert calls(space, target, "all") == len(np.unique(space.image_of(eligible[row])))
        count = np.bincount(space.image_of(eligible[row]))
        assert count.max() <= largest(space, target, "all")


@pytest.mark.parametrize(
    ("names", "where", "message"),
    [
        (["conzepts"], {}, "unknown target 'conzepts'; did you mean 'concepts'"),
        (["group:age"], {}, "unknown metadata column 'age'"),
        (["m"], {"m": {"relation": ["q"]}}, "target 'm': unknown relation 'q'"),
        (["m"], {"m": {"concept": "a"}}, "concept: expected a list of values, got 'a'"),
        (["m"], {"m": {"relation": ["t"], "concept": ["b"]}}, "selects no question"),
    ],
)
def test_targets_that_cannot_be_are_named(names, where, message) -> None:
    with pytest.raises(InputError, match=message):
        named_targets(uneven(30), names, where)


# -- intervals --------------------------------------------------------------------------------


def test_intervals_never_grow_and_end_at_the_truth_when_everything_is_asked() -> None:
    space = QuestionSpace(tiny_dataset(images=False), ["identity"])
    model = ScriptedModel(answers="one")
    options = {"half_width": 0.001, "targets": ["overall", "concepts"], "surrogate": False}
    audit = Audit(space, model, seed=3, **options)
    widths = [np.ones(len(audit.targets)) / 2]
    while calls_ := audit.ask():
        for call in calls_:
            audit.tell(call, model.ask([call.prompt])[0])
        widths.append(np.array([target.half_width for target in audit.state().targets]))
        assert (widths[-1] <= widths[-2] + 1e-12).all()
    result = audit.result().targets
    losses = {a.question: a.loss for c in audit.journal.calls() for a in c.answers}
    overall = np.mean(list(losses.values()))
    assert result["lower"][0] == pytest.approx(overall)
    assert result["upper"][0] == pytest.approx(overall)


# -- audits ---------------------------------------------------------------------------------


def recorded(seed: int, samples: int = 60) -> tuple[QuestionSpace, Recorded, dict[str, float]]:
    """A space with recorded answers, and the true value of its overall label error."""
    rng = np.random.default_rng(seed)
    labels = pd.DataFrame(
        rng.integers(0, 2, (samples, 2)),
        index=[f"s{i}" for i in range(samples)],
        columns=["a", "b"],
    )
    space = QuestionSpace(from_table(None, labels), [Named("r", (1, 2, 3)), Named("t", (1,))])
    hard = rng.random(samples)
    rows, losses = [], []
    for i in range(samples):
        for variant in space.variants:
            wrong = rng.random(2) < 0.5 * hard[i] * variant.severity / 2
            truth = labels.iloc[i].to_numpy()
            says = np.where(wrong, 1 - truth, truth)
            losses.append(wrong.mean())
            rows.append((f"s{i}", variant.relation.name, variant.severity, *says.astype(float)))
    frame = pd.DataFrame(rows, columns=["sample", "relation", "severity", "a", "b"])
    return space, Recorded(frame), {"overall label error": float(np.mean(losses))}


@pytest.mark.parametrize(
    "options",
    [
        {"surrogate": False},
        *slowly(
            {},
            {"strategy": "random"},
            {"batch": 7},
            {"strategy": "uncertainty", "exploration": 0.4},
            {"candidates": 40},
            {"adversary": True},
        ),
    ],
)
def test_audits_cover_the_truth_at_every_moment(options) -> None:
    """At level .8 with one target, 6 audits: P(more than 4 misses) < .002."""
    missed = 0
    options = dict(options)
    adversary = options.pop("adversary", False)
    for seed in range(6):
        space, model, truth = recorded(seed)
        if adversary:
            wrong = np.array([a for a in model._values]).reshape(60, 4, 2)
            options["proxies"] = {"liar": 1 - wrong}
        audit = Audit(
            space, model, half_width=0.12, confidence=0.8, targets=["overall"], seed=seed, **options
        )
        held = True

        def watch(progress, truth=truth) -> None:
            nonlocal held
            low, high = progress.state.targets[0].lower, progress.state.targets[0].upper
            held &= bool(low - 1e-9 <= truth["overall label error"] <= high + 1e-9)

        result = audit.run(watch)
        assert bool(result.targets["certified"].all())
        missed += not held
    assert missed <= 4


def test_unanswered_both_ways_bounds_what_any_answer_would_have_given() -> None:
    space = QuestionSpace(tiny_dataset(20, images=False), ["identity"])
    model = ScriptedModel(answers="one", refuse=0.2)
    options = {"half_width": 0.01, "targets": ["overall"], "surrogate": False}
    audit = Audit(space, model, unanswered="both", **options)
    row = audit.run().targets.iloc[0]
    answers = [a for c in audit.journal.calls() for a in c.answers]
    known = sum(a.loss for a in answers if a.unanswered is None)
    refused = sum(a.unanswered is not None for a in answers)
    assert refused > 0
    assert row["lower"] == pytest.approx(known / len(answers))
    assert row["upper"] == pytest.approx((known + refused) / len(answers))


def test_a_decision_stops_the_audit_when_every_target_is_on_one_side() -> None:
    space, model, truth = recorded(5)
    audit = Audit(space, model, at_most=0.5, targets=["overall"], surrogate=False)
    result = audit.run()
    assert "every target is decided" in str(result.reason)
    assert result.targets["decided"].tolist() == ["below"]
    assert truth["overall label error"] < 0.5
    assert result.calls < len(space.dataset) * len(space.variants)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"half_width": 0.0}, "half_width: expected a share above 0 and below 0.5, .*, got 0$"),
        ({"half_width": 0.5}, r"below 0.5, such as 0.05 for \+-5 points, got 0.5$"),
        ({"half_width": 15}, r"such as 0.15 for \+-15 points, got 15$"),
        ({"half_width": "0.1"}, "expected a share above 0 .*, got '0.1'$"),
        ({"half_width": 0.1, "confidence": 1.0}, "confidence: expected .* got 1.0"),
        ({"at_most": -1}, "at_most: expected a number above 0 and below 1, got -1"),
        ({"half_width": 0.1, "exploration": 0.0}, "exploration: expected a share above 0"),
        ({"half_width": 0.1, "unanswered": "maybe"}, "unknown unanswered 'maybe'"),
        ({"half_width": 0.1, "proxies": {"p": np.zeros((2, 2))}}, r"proxy 'p': expected an array"),
        (
            {"half_width": 0.1, "proxies": {"p": np.full((60, 4, 2), np.nan)}},
            r"proxy 'p': expected P\(yes\) between 0 and 1, got nan at sample 's0', r:1",
        ),
    ],
)
def test_settings_that_cannot_certify_are_refused(options, message) -> None:
    space, model, _ = recorded(0)
    with pytest.raises(InputError, match=message):
        Audit(space, model, **options)


def test_a_prior_journal_of_another_space_is_refused(tmp_path: Path) -> None:
    space, model, _ = recorded(0)
    with Audit(space, model, budget=5, journal=tmp_path / "old.db") as audit:
        audit.run()
    other, same_model, _ = recorded(0, samples=59)
    with pytest.raises(InputError, match="expected an audit of this space"):
        Audit(other, same_model, half_width=0.1, prior_journal=tmp_path / "old.db")
    Audit(space, model, half_width=0.1, budget=8, prior_journal=tmp_path / "old.db").run()


# -- resuming and verifying -----------------------------------------------------------------


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("certified") / "journal.db"
    space, model, _ = recorded(7)
    options = {"half_width": 0.15, "targets": ["overall", "relations"], "surrogate": False}
    with Audit(space, model, journal=path, **options) as audit:
        audit.run()
    return path.read_bytes()


@pytest.fixture
def finished(certified: bytes, tmp_path: Path) -> Path:
    """The journal of a finished certified audit, to be tampered with."""
    path = tmp_path / "journal.db"
    path.write_bytes(certified)
    return path


def opened(path: Path) -> SQLiteJournal:
    return SQLiteJournal(path, must_exist=True)


INTERRUPTED = {"half_width": 0.25, "targets": ["overall", "relations"]}


@cache
def undisturbed(batch: int) -> pd.DataFrame:
    """The certificate of an audit that nothing interrupts."""
    space, model, _ = recorded(7)
    return Audit(space, model, batch=batch, **INTERRUPTED).run().targets


@pytest.mark.parametrize(
    ("batch", "stop_at"),
    [(5, 10), *(pytest.param(*s, marks=pytest.mark.slow) for s in [(1, 1), (1, 17), (5, 15)])],
)
def test_an_interrupted_audit_ends_with_the_same_certificate(tmp_path, batch, stop_at) -> None:
    space, model, _ = recorded(7)
    options = {**INTERRUPTED, "batch": batch}
    path = tmp_path / "journal.db"
    with Audit(space, model, budget=stop_at, journal=path, **options) as audit:
        assert audit.run().calls == stop_at
    with Audit(space, model, journal=path, **options) as audit:
        resumed = audit.run()
    assert resumed.calls > stop_at
    pd.testing.assert_frame_equal(undisturbed(batch), resumed.targets)


def test_verify_agrees_with_the_engine(finished: Path) -> None:
    journal = opened(finished)
    intervals = verify(journal)
    stated = journal.facts()["intervals"]
    assert [i.name for i in intervals] == [row["target"] for row in stated]
    for found, row in zip(intervals, stated, strict=True):
        assert found.lower == pytest.approx(row["lower"], abs=1e-9)
        assert found.upper == pytest.approx(row["upper"], abs=1e-9)


DRAW_4 = "(SELECT call FROM draws WHERE draw = 4)"


@pytest.mark.parametrize(
    ("change", "message"),  # other edits: journal/test_journal_chain.py
    [
        ("UPDATE moves SET scale = scale * 1.01 WHERE draw = 3", "draw 3 was altered"),
        ("UPDATE moves SET active = 2 WHERE draw = 3", "draw 3, active .* expected 0 or 1, got 2"),
        (
            f"DELETE FROM moves WHERE draw = 4; DELETE FROM answers WHERE call = {DRAW_4};"
            f"DELETE FROM calls WHERE call = {DRAW_4}; DELETE FROM draws WHERE draw = 4",
            "draw 4 is missing",
        ),
    ],
)
def test_verify_names_what_was_tampered_with(finished: Path, change: str, message: str) -> None:
    with sqlite3.connect(finished) as database:
        database.executescript(change)
    with pytest.raises(JournalError, match=message):
        verify(opened(finished))


def rewritten(path: Path, **changes: Any) -> SQLiteJournal:
    """The journal as a forger makes it who knows how to chain: other rows, or other facts."""
    with closing(opened(path)) as journal:
        rows = {"draws": journal.draws(), "calls": journal.calls(), "facts": journal.facts()}
    rows |= {name: change(rows[name]) for name, change in changes.items()}
    forged = SQLiteJournal(path.with_name("forged.db"))
    forged.set_facts(**rows["facts"])
    forged.add(rows["draws"])
    forged.add(rows["calls"])
    return forged


def test_verify_refuses_a_proposal_that_does_not_sum_to_one(finished: Path) -> None:
    from adaptive_vtt.engine.proposals import Proposal

    def spoilt(draws: list[DrawRow]) -> list[DrawRow]:
        proposal = Proposal.unpack(draws[-1].proposal)
        packed = Proposal(proposal.calls, proposal.probabilities * 1.1).pack()
        return [*draws[:-1], replace(draws[-1], proposal=packed)]

    with pytest.raises(JournalError, match="does not sum to one"):
        verify(rewritten(finished, draws=spoilt))


@pytest.mark.parametrize("field", ["lower", "pseudo_outcome_mean", "half_width", "certified"])
def test_verify_refuses_figures_that_the_rows_do_not_come_to(finished: Path, field: str) -> None:
    def spoilt(facts: dict[str, Any]) -> dict[str, Any]:
        aim = facts["certificate"]["aim"]
        # a row as wide as asked for to the last digit is certified or not by rounding
        row = max(facts["intervals"], key=lambda row: abs(row["half_width"] - aim))
        row[field] = not row[field] if field == "certified" else row[field] * 0.9
        return facts

    with pytest.raises(JournalError, match=f"the rows come to .*{field}"):
        verify(rewritten(finished, facts=spoilt))
