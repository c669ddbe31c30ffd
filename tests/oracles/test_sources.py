"""Oracles that compare with the source image's answer: asked once, first, journaled, paid for."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.datasets import from_table
from adaptive_vtt.datasets.view import View
from adaptive_vtt.oracles import Consistency
from adaptive_vtt.testing import ScriptedModel
from adaptive_vtt.types import Sample
from tests.helpers.interrupted import assert_resumes
from tests.helpers.source_spaces import RELATIONS, space
from tests.helpers.twins import slowly

# -- the source is asked once, first, within the budget -------------------------------------


@pytest.mark.parametrize("answers", ["one", "all"])
@pytest.mark.parametrize(("batch", "budget"), [(1, 9), (7, 1000)])
def test_sources_are_asked_once_and_count(answers: Any, batch: int, budget: int) -> None:
    model = ScriptedModel(answers=answers)
    audit = Audit(space(), model, budget=budget, batch=batch)
    result = audit.run()
    assert len(model.asked) == len(set(model.asked)) == result.calls == result.cost
    assert result.calls <= budget
    sources = {a for a in model.asked if a[1] == "identity"}
    follow_ups = {a for a in model.asked if a[1] != "identity"}
    for sample, _, _, concepts in follow_ups:
        assert model.asked.index((sample, "identity", 0, concepts)) < min(
            i
            for i, a in enumerate(model.asked)
            if a[0] == sample and a[1:] not in {s[1:] for s in sources} and a[3] == concepts
        )
    if budget == 1000:
        per_sample = 2 if answers == "one" else 1
        assert (len(sources), len(follow_ups)) == (5 * per_sample, 20 * per_sample)
        assert result.reason == "every question was asked"


def test_the_last_call_of_a_budget_is_not_spent_on_half_a_question() -> None:
    audit = Audit(space(samples=40), ScriptedModel(), budget=9, seed=3)
    result = audit.run()
    assert result.calls in (8, 9)
    if result.calls == 8:
        assert result.reason == "8 of 9 calls were made; the next question may take 2"


def test_a_follow_up_is_not_handed_out_before_its_source_is_answered() -> None:
    images = np.zeros((1, 8, 8, 3), np.uint8)
    dataset = from_table(images, pd.DataFrame({"c": [np.nan]}))
    audit = Audit(QuestionSpace(dataset, RELATIONS, oracle=Consistency()), ScriptedModel())
    (source,) = audit.ask(3)
    assert (source.number, source.prompt.relation) == (-1, "identity")
    assert audit.ask(3) == []
    assert len(audit.journal.draws()) == 6  # at most three per ask, however slow the source
    audit.tell(source, [0.9])
    assert {call.prompt.relation for call in audit.ask(9)} == {"gaussian_noise", "rotation"}


def test_answers_in_any_order_come_to_the_same() -> None:
    def play(backwards: bool) -> list[Any]:
        audit, model = (
            Audit(space(), ScriptedModel(), half_width=0.3, targets=["overall"]),
            ScriptedModel(),
        )
        while calls := audit.ask(4):
            for call in calls[::-1] if backwards else calls:
                audit.tell(call, model.ask([call.prompt])[0])
        return [vars(row) | {"elapsed": 0} for row in audit.journal.draws()]

    assert play(False) == play(True)


@pytest.mark.parametrize("last", [6, *slowly(0, 1, 2, 3, 11)])
def test_an_interrupted_audit_goes_on_and_pays_for_nothing_twice(tmp_path: Path, last: int) -> None:
    options = {"half_width": 0.2, "targets": ["overall", "relations"], "budget": 20}
    assert_resumes(space, tmp_path / "j.db", last, "all", options)


# -- views, values, journal -----------------------------------------------------------------


@pytest.mark.parametrize("reading", [(1, 1, 1), (-1, 0, 1), (-1, -1, 1), (-1, 0, -1)])
def test_a_view_counts_as_its_truths_do(reading: tuple[int, int, int]) -> None:
    labels = pd.DataFrame({"a": [0, 1, np.nan, 1], "b": [1, np.nan, np.nan, 0]})
    dataset = from_table(None, labels)
    view = View(dataset, ["b", "a", "a again"], [1, 0, 0], reading)
    truths = view.truth(np.arange(4)[:, None], np.arange(3))
    known = {-1: reading[0], 0: reading[1], 1: reading[2]}
    before = dataset.truth(np.arange(4)[:, None], np.array([1, 0, 0]))
    assert (truths == np.vectorize(known.get)(before)).all()
    for concept in range(3):
        for side in (0, 1):
            there = np.flatnonzero(truths[:, concept] == side)
            assert view.counts[concept, side] == len(there)
            assert view.members(concept, side, np.arange(len(there))).tolist() == there.tolist()
    rows, copies = view.profile
    assert (rows[view.profile_row(np.arange(4))] == truths).all()
    assert copies.sum() == 4
    assert view.fingerprint != dataset.fingerprint
    got: Sample = view.sample(0)
    assert got.truth == {c: int(t) for c, t in zip(view.concepts, truths[0], strict=True) if t >= 0}
