"""The rate of a slice's questions that were unseen when it was found: it holds the truth, and the
failures by which the slice was found are not in it."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from adaptive_vtt.certify.targets import member, target_of
from adaptive_vtt.certify.tracks import Unseen, tracks, unseen
from adaptive_vtt.families import OfSlice
from adaptive_vtt.journal.facts import read_facts
from adaptive_vtt.journal.rows import EXCLUDED, AnswerRow, CallRow
from tests.helpers.sliced import audited, world


@pytest.mark.slow
def test_it_holds_the_truth_of_the_questions_that_were_unseen() -> None:
    """In six worlds, by audits long enough to find the group whatever they draw. Each misses a
    truth with probability .05 at most: P(two or more of six do) < .035."""
    checked = [held(seed) for seed in range(6)]
    assert any(checked)
    assert sum(not all(slices) for slices in checked) < 2


def held(seed: int) -> list[bool]:
    """Of each slice that was found, whether its interval of the unseen holds their truth."""
    space, model = world(seed)
    journal = audited(seed=seed, half_width=0.05)
    certificate = read_facts(journal.facts()).certificate
    assert certificate is not None
    played = tracks(certificate, journal.draws(), journal.calls())[certificate.registered :]
    ends = [(float(t.lower[-1]), float(t.upper[-1])) for t in played]
    rates = unseen(certificate, journal.calls(), ends)
    numbers = np.arange(space.size)
    sample, _, concept = space.parts(numbers)
    truth = space.dataset.truth(sample, concept)
    wrong = np.abs(model._values[sample, concept] - truth)
    checked = []
    for found, rate in zip(certificate.slices, rates, strict=True):
        target = target_of(OfSlice(found.name), found.masks)
        inside = member(space, [target], *space.parts(numbers), truth)[0]
        inside[list(found.seen)] = False
        assert rate is not None
        assert rate.questions == inside.sum() == found.size - len(found.seen)
        true = wrong[inside].mean()  # may be an end itself, of which the sums are rounded
        checked.append(bool(rate.lower - 1e-9 <= true <= rate.upper + 1e-9))
    return checked


def told(question: int, loss: float, **more: Any) -> CallRow:
    row = AnswerRow(
        question, question, 1, None if more else 0.5, more.get("unanswered"), loss, None
    )
    return CallRow(question, 0.0, 0.0, (row,))


def of(both: bool, size: int, *calls: CallRow) -> Unseen | None:
    slice_ = SimpleNamespace(size=size, seen=(0, 1, 2, 3))
    certificate: Any = SimpleNamespace(slices=(slice_,), both=both)
    return unseen(certificate, calls, [(0.3, 0.5)])[0]


def test_what_was_seen_is_subtracted() -> None:
    failed = [told(k, 1.0) for k in range(4)]
    found = of(False, 20, *failed)
    assert found is not None
    assert (found.questions, found.lower, found.upper) == (16, 2 / 16, 6 / 16)
    found = of(False, 20, *failed[:3])  # the fourth is not answered yet
    assert found is not None
    assert (found.lower, found.upper) == (pytest.approx(2 / 16), pytest.approx(7 / 16))
    found = of(True, 20, *failed[:3], told(3, 1.0, unanswered="too late"))  # counts both ways
    assert found is not None
    assert (found.lower, found.upper) == (pytest.approx(3 / 16), pytest.approx(6 / 16))


def test_nothing_is_said_where_it_is_not_known() -> None:
    failed = [told(k, 1.0) for k in range(4)]
    assert of(False, 4, *failed) is None
    assert of(False, 20, *failed, told(9, 0.0, unanswered=EXCLUDED + "no box")) is None
