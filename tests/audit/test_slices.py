"""Slices: how they are found, from when on they are certified, and what of them verify refuses."""

import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.audit.rejudging import rejudge
from adaptive_vtt.audit.slices import Evidence, atoms_of, find
from adaptive_vtt.audit.slices import looking as looks
from adaptive_vtt.audit.slices.looking import is_due
from adaptive_vtt.audit.slices.proposers import by_values, joined
from adaptive_vtt.audit.slices.search import MIN_LIFT, Slice
from adaptive_vtt.certify import named_targets
from adaptive_vtt.certify.rules import Rules
from adaptive_vtt.certify.targets import masks_of, member, target_of
from adaptive_vtt.certify.tracks import tracks
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.certify.verify_facts import check_fixed, check_slices
from adaptive_vtt.datasets import from_table
from adaptive_vtt.engine.options import FIRST_LOOK
from adaptive_vtt.errors import InputError, JournalError
from adaptive_vtt.families import OfSlice
from adaptive_vtt.journal import MemoryJournal, SQLiteJournal
from adaptive_vtt.journal.facts import SliceFacts, read_facts
from adaptive_vtt.models import Recorded
from adaptive_vtt.results.result import summarise
from tests.helpers.sliced import SLICED, audited, world
from tests.helpers.twins import slowly


@pytest.fixture(scope="module")
def journal() -> Any:
    return audited()


def true_rate(space: QuestionSpace, model: Recorded, slice_: SliceFacts) -> float:
    """The mean loss over all questions of a slice."""
    numbers = space.nth(np.arange(space.size))
    sample, _, concept = space.parts(numbers)
    target = target_of(OfSlice(""), slice_.masks)
    truth = space.dataset.truth(sample, concept)
    inside = member(space, [target], *space.parts(numbers), truth)[0]
    said = model._values[sample, concept]
    return float(np.abs(said - truth)[inside].mean())


# -- an audit that looks ---------------------------------------------------------------------


def test_a_planted_slice_is_found_and_certified(journal):
    slices = read_facts(journal.facts()).certificate.slices
    assert [s.name for s in slices] == ["site north, device b, x"]
    found = slices[0]
    assert found.where == {"site": ["north"], "device": ["b"], "concept": ["x"]}
    assert len(found.seen) == found.images
    assert found.lift > MIN_LIFT
    assert found.least_lift > 1
    row = summarise(journal).targets.iloc[-1]
    rate = true_rate(*world(), found)
    assert (row["kind"], row["target"]) == ("slice", f"slice {found.name}")
    assert row["certified"]
    assert row["lower"] <= rate <= row["upper"]
    assert row["upper"] - row["lower"] <= 2 * 0.08 + 1e-12


@pytest.mark.parametrize("per_call", ["all", *slowly("one")])
@pytest.mark.parametrize("options", [{"unanswered": "both", "seed": 2}, *slowly({"batch": 8})])
def test_verify_recomputes_slices_and_everything_agrees(per_call, options):
    """With half-width .03, 140 draws or more are made: all of 30 audits tried found a slice, where
    with .05 two of 24 ended before the look that would have."""
    journal = audited(per_call=per_call, half_width=0.03, **options)
    certificate = read_facts(journal.facts()).certificate
    assert certificate.slices
    statuses = verify(journal)
    history = tracks(certificate, journal.draws(), journal.calls())
    stated = journal.facts()["intervals"]
    for interval, track, row in zip(statuses, history, stated, strict=True):
        ends = (interval.lower, interval.upper)
        assert ends == pytest.approx((track.lower[-1], track.upper[-1]), abs=1e-9)
        assert ends == pytest.approx((row["lower"], row["upper"]), abs=1e-9)
    questions = summarise(journal).targets["questions"].tolist()
    assert questions == [int(track.questions[-1]) for track in history]


@pytest.mark.slow
def test_an_interrupted_audit_finds_and_draws_the_same(tmp_path, journal):
    path = tmp_path / "journal.db"
    for budget in (40, FIRST_LOOK, FIRST_LOOK + 1, 75, 100, None):
        audited(SQLiteJournal(path), budget=budget)
    resumed = SQLiteJournal(path)
    assert [d.call for d in resumed.draws()] == [d.call for d in journal.draws()]
    assert resumed.facts()["slices"] == journal.facts()["slices"]
    assert resumed.facts()["intervals"] == journal.facts()["intervals"]
    verify(resumed)


@given(st.integers(1, 30), st.integers(0, 200), st.floats(0.01, 0.9))
def test_no_more_alpha_is_spent_than_there_is(registered, slices, share):
    rules = Rules(0.1, 0.05, set_aside=share, slices=slices)
    alphas = rules.alphas(registered + slices)
    assert alphas.sum() <= 0.05 + 1e-12
    assert (alphas > 0).all()
    found = alphas[registered:]
    assert found == pytest.approx(
        [0.05 * share * 6 / (np.pi * j) ** 2 for j in range(1, slices + 1)]
    )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"discover": -1}, "discover: expected a whole number of at least 0, got -1"),
        ({"set_aside": 1.0}, "set_aside: expected a number above 0 and below 1, got 1.0"),
        ({"half_width": None, "at_most": 0.1}, "to a half_width alone.*got at_most"),
        ({"half_width": None, "targets": ["overall"]}, "half_width alone.*got nothing certified"),
        ({"discover_by": ["metdata"]}, "unknown proposer 'metdata'.*did you mean 'metadata'"),
    ],
)
def test_what_cannot_be_looked_for_is_refused(options, sentence):
    with pytest.raises(InputError, match=sentence):
        audited(**options)


def test_slices_cannot_be_certified_where_no_alpha_was_set_aside():
    journal = audited(discover=0, budget=20)
    with pytest.raises(InputError, match=r"set a share of its alpha aside.*got one that did not"):
        audited(journal, budget=40)


@pytest.mark.slow
def test_an_ended_audit_may_look_for_more_at_the_present_draw():
    journal = audited(discover=0, set_aside=0.1, half_width=0.05)
    assert "slices" not in journal.facts()
    ended = len(journal.draws())
    audited(journal, half_width=0.05)
    slices = read_facts(journal.facts()).certificate.slices
    assert [s.since for s in slices] == [ended]
    assert journal.facts()["discover"]["also"] == [ended]
    assert len(journal.draws()) > ended
    verify(journal)


def test_other_losses_leave_slices_out(journal):
    space, _ = world()
    result = rejudge(journal, space)
    registered = summarise(journal).targets[:1]
    assert result.targets["target"].tolist() == ["overall label error"]
    for side in ("lower", "upper"):
        assert result.targets[side].tolist() == pytest.approx(registered[side].tolist(), abs=1e-12)


def test_looks_lie_a_factor_apart():
    assert [draws for draws in range(500) if is_due(draws)] == [60, 90, 135, 202, 303, 454]


# -- what verify refuses ---------------------------------------------------------------------


def changed(journal: Any, **fields: Any) -> Any:
    """The journal with fields of its first slice changed, where they stand."""
    facts = read_facts(journal.facts())
    certificate = facts.certificate
    slices = (certificate.slices[0].model_copy(update=fields), *certificate.slices[1:])
    return facts.model_copy(
        update={"certificate": certificate.model_copy(update={"slices": slices})}
    )


def test_questions_seen_before_must_be_those_that_the_slice_selects(journal):
    seen = read_facts(journal.facts()).certificate.slices[0].seen
    assert seen
    with pytest.raises(JournalError, match=r"were seen before draw .* are not those that it sel"):
        check_slices(journal, changed(journal, seen=seen[1:]), journal.draws())


def rewritten(journal: Any, name: str, value: Any) -> MemoryJournal:
    """A journal with the same rows, in which a fact was given another value at the end."""
    other = MemoryJournal()
    facts = {row.name: json.loads(row.value) for row in journal.fact_rows() if row.name != "slices"}
    other.set_facts(**facts)
    since = read_facts(journal.facts()).certificate.slices[0].since
    draws, calls = journal.draws(), journal.calls()
    other.add(draws[:since])
    other.add(calls[:since])
    other.set_facts(slices=journal.facts()["slices"])
    other.add(draws[since:])
    other.add(calls[since:])
    other.set_facts(**{name: value})
    return other


def test_a_slice_that_was_fixed_too_late_is_refused(journal):
    slices = journal.facts()["slices"]
    later = rewritten(journal, "slices", [*slices, {**slices[0], "name": "late"}])
    with pytest.raises(JournalError, match=r"slice 'late' starts with draw .* written down before"):
        check_slices(later, read_facts(later.facts()), later.draws())


def test_a_slice_that_was_altered_or_taken_back_is_refused(journal):
    slices = journal.facts()["slices"]
    for value in ([], [{**slices[0], "size": 3}]):
        other = rewritten(journal, "slices", value)
        with pytest.raises(JournalError, match="a slice was altered after it was written down"):
            check_slices(other, read_facts(other.facts()), other.draws())


def test_alpha_that_is_set_aside_and_bets_that_are_chosen_afterwards_are_refused(journal):
    certificate = journal.facts()["certificate"]
    bets = {**certificate["bets"], "cap": 0.5}
    for name, value in ("set_aside", 0.5), ("bets", bets), ("strata", [0]):
        other = rewritten(journal, "certificate", {**certificate, name: value})
        with pytest.raises(JournalError, match=f"{name!r} was changed after the audit began"):
            check_fixed(other)


# -- coverage --------------------------------------------------------------------------------


def hostile(seed: int) -> int:
    """How many of an audit's intervals missed at any moment, slices chosen by the worst rule there
    is: the images whose losses were all 1 so far, and as many others."""
    rng = np.random.default_rng(seed)
    space, model = world(seed, samples=30, planted=0.5, per_call="one" if seed % 2 else "all")

    def worst(space: QuestionSpace, evidence: Evidence, *_: Any, **__: Any) -> list[Slice]:
        mask = rng.random(30) < 0.2
        mask[evidence.sample[evidence.loss == 1]] = True
        every = named_targets(space, ["overall"])[0]
        target = replace(every, id=OfSlice(f"{len(evidence)}"), rows=mask)
        return [Slice((), target, 1, 1.0, 0.5, 1.0, 1)]

    journal = MemoryJournal()
    options: dict[str, Any] = {"half_width": 0.02, "confidence": 0.5, "targets": ["overall"]}
    options |= {"set_aside": 0.9, "discover": 3, "surrogate": False, "budget": 27}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(looks, "find", worst)
        patch.setattr(looks, "is_due", lambda draws: draws in (4, 9, 15))
        Audit(space, model, journal=journal, seed=seed, **options).run()
    certificate = read_facts(journal.facts()).certificate
    assert len(certificate.slices) == 3
    history = tracks(certificate, journal.draws(proposals=False), journal.calls())[1:]
    missed = 0
    for slice_, track in zip(certificate.slices, history, strict=True):
        rate = true_rate(space, model, slice_)
        inside = (track.lower <= rate + 1e-9) & (rate - 1e-9 <= track.upper)
        missed += not inside[slice_.since :].all()
    return missed


@pytest.mark.slow
def test_slices_chosen_by_their_failures_are_covered_at_every_moment():
    """At confidence .5, of which .45 are for slices; of 300 audits more than 155 miss with
    probability .01 (binomial, 300 and .45)."""
    assert sum(hostile(seed) > 0 for seed in range(300)) <= 155


@pytest.mark.parametrize(
    ("budget", "wrong", "why"),
    [
        (20, True, "after 20 calls too few answers were known to look for any; call 60 is the"),
        (20, False, "nothing that was asked went wrong"),
        (70, True, r"no group that was looked at \(metadata, cells\) fails so much more often"),
    ],
)
def test_an_audit_that_found_none_says_why(budget: int, wrong: bool, why: str) -> None:
    space = QuestionSpace(from_table(None, np.ones((100, 1))))
    answers = pd.DataFrame({"0": [1 - wrong * (k % 2) for k in range(100)]}, map(str, range(100)))
    options: Any = {**SLICED, "surrogate": False, "budget": budget, "half_width": 0.02}
    result = Audit(space, Recorded(answers), **options).run()
    assert re.search(f"no slice was found: {why}", " ".join(result.warnings))


# -- what is found in answers ------------------------------------------------------------


def evidence_of(space: QuestionSpace, model: Recorded, weight: Any = 1.0) -> Evidence:
    """All answers."""
    numbers = space.nth(np.arange(space.size))
    sample, variant, concept = space.parts(numbers)
    truth = space.dataset.truth(sample, concept).astype(np.int64)
    loss = np.abs(model._values[sample, concept] - truth)
    weights = np.broadcast_to(np.asarray(weight, float), len(numbers))
    return Evidence(numbers, sample, variant, concept, truth, loss, weights)


def test_what_is_found_stands_in_words_and_as_a_filter():
    space, model = world()
    atoms = atoms_of(space, ["metadata", "cells"])
    slices = find(space, evidence_of(space, model), atoms, most=3)
    assert [one.words for one in slices][:1] == ["site north, device b, x"]
    best = slices[0]
    again = named_targets(space, ["mine"], {"mine": best.where})[0]
    for part in ("variants", "concepts", "sides", "rows"):
        assert (getattr(again, part) == getattr(best.target, part)).all()
    assert best.proposers == ("metadata", "cells")
    assert best.rate > 0.8 > 0.2 > best.base
    assert best.least_lift <= best.lift


def test_nothing_is_found_again_that_a_slice_explains():
    """North, device b and x fail more often than others, too, but only for the slice in them."""
    space, model = world(samples=400)
    atoms = atoms_of(space, ["metadata", "cells"])
    evidence = evidence_of(space, model)
    found = find(space, evidence, atoms, most=5)
    assert [one.words for one in found] == ["site north, device b, x"]
    assert find(space, evidence, atoms, most=5, slices=[found[0].target]) == []
    assert find(space, evidence, atoms, most=1, known=[found[0].target])[:1] != found[:1]


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10**6))
def test_where_all_fail_alike_hardly_anything_is_found(seed):
    space, model = world(seed, samples=150, planted=0.06)
    slices = find(space, evidence_of(space, model), atoms_of(space, ["metadata", "cells"]), most=3)
    assert len(slices) <= 1


def test_weights_undo_the_proposal():
    """Questions that failed were drawn three times as often: weighed, what is found is the same."""
    space, model = world()
    evidence, atoms = evidence_of(space, model), atoms_of(space, ["metadata", "cells"])
    often = np.where(evidence.loss == 1, 3, 1)
    drawn = evidence.only(np.repeat(np.arange(len(evidence)), often))
    weighed = replace(drawn, weight=1.0 / np.repeat(often, often))
    (even,), (found,) = (find(space, e, atoms, most=1) for e in (evidence, weighed))
    assert found.words == even.words
    assert (found.rate, found.base) == pytest.approx((even.rate, even.base))
    (raw,) = find(space, drawn, atoms, most=1)
    assert raw.base > 1.5 * even.base


def test_the_weight_of_a_draw_is_the_inverse_of_its_proposal():
    journal = audited(budget=20, discover=0)
    space, _ = world()
    draws = journal.draws()
    evidence = Evidence.of(space, draws[:10], journal.calls())
    assert len(evidence) == 20
    proposals = {d.call: 1 / (d.why["candidates"] * d.probability) for d in draws}
    calls = evidence.question // 2
    assert evidence.weight.tolist() == pytest.approx([proposals[call] for call in calls.tolist()])


def test_columns_of_many_numbers_become_quarters_and_names_are_left_alone():
    metadata = pd.DataFrame({"age": range(100), "name": [f"n{k}" for k in range(100)], "one": 1})
    labels = pd.DataFrame({"x": [0, 1] * 50})
    space = QuestionSpace(from_table(None, labels, metadata=metadata))
    atoms = atoms_of(space, ["metadata"])
    assert [a.field for a in atoms] == ["age"] * 4
    assert [int(a.target.rows.sum()) for a in atoms] == [25] * 4
    assert atoms[0].words == "age 0 to 24.75"


def test_words_that_concepts_share_are_proposed():
    labels = pd.DataFrame({"large polyp": [0, 1], "small polyp": [1, 0], "text": [0, 1]})
    atoms = atoms_of(QuestionSpace(from_table(None, labels)), ["words"])
    assert [a.words for a in atoms] == ["'polyp' in the question"]
    assert atoms[0].where == {"concept": ["large polyp", "small polyp"]}


def test_clusters_of_features_are_described_by_their_nearest_samples():
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(0)
    features = rng.normal(0, 0.1, (40, 3)) + np.repeat(np.eye(4, 3) * 5, 10, axis=0)
    labels = pd.DataFrame({"x": [0, 1] * 20}, index=[f"s{k}" for k in range(40)])
    space = QuestionSpace(from_table(None, labels, features=features))
    atoms = [a for a in atoms_of(space, ["clusters"]) if a.field == "one of 4 clusters"]
    assert [int(a.target.rows.sum()) for a in atoms] == [10] * 4
    for atom in atoms:
        one, other = (int(word[1:]) for word in atom.words.split() if word[0] == "s")
        assert atom.target.rows[[one, other]].all()
        assert atom.where is None


def test_masks_are_read_back_as_they_were():
    space, _ = world()
    north = by_values(space, "metadata", "site", ["north"], "site north")
    x = by_values(space, "cells", "concept", ["x"], "x")
    target = joined([north, x])
    again = target_of(target.id, json.loads(json.dumps(masks_of(target))))
    for part in ("variants", "concepts", "sides", "rows"):
        assert (getattr(again, part) == getattr(target, part)).all()
