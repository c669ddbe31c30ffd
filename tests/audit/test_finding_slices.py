"""What is found in answers: groups that fail too often for chance, in words and as filters."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptive_vtt import QuestionSpace
from adaptive_vtt.audit.slices import Evidence, atoms_of, find
from adaptive_vtt.audit.slices.proposers import by_values, joined
from adaptive_vtt.certify import named_targets
from adaptive_vtt.certify.targets import masks_of, target_of
from adaptive_vtt.datasets import from_table
from adaptive_vtt.models import Recorded
from tests.helpers.sliced import audited, world

YOUNG = {"site": ["south"], "concept": ["y"], "truth": [1]}


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


def test_several_are_told_against_one_and_the_same_mean():
    space, model = world(samples=400)
    atoms, evidence = atoms_of(space, ["metadata", "cells"]), evidence_of(space, model)
    also = evidence.inside(space, named_targets(space, ["y"], {"y": YOUNG}))[0]
    evidence = replace(evidence, loss=np.where(also, 1.0, evidence.loss))
    slices = find(space, evidence, atoms, most=2)
    assert len(slices) == 2
    assert {one.base for one in slices} == {evidence.rate}
    assert [one.lift for one in slices] == [one.rate / evidence.rate for one in slices]
    assert all(one.least_lift <= one.lift for one in slices)


@settings(max_examples=20, deadline=None)
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
