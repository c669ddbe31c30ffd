"""Few images: their rate as they are is asked whole, and becomes exact."""

from typing import Any

import numpy as np
import pytest

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.certify import Certifier, named_targets
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.journal import MemoryJournal
from adaptive_vtt.testing import ScriptedModel, tiny_dataset

RELATIONS = ["identity", "rotation"]
PLAIN = "relation identity: label error"


def space_of(images: int, relations: list[str] = RELATIONS) -> QuestionSpace:
    return QuestionSpace(tiny_dataset(images, 2), relations)


def certifier_of(space: QuestionSpace, **options: Any) -> Certifier:
    chosen: dict[str, Any] = {"half_width": 0.1, "answers": "all"} | options
    return Certifier(space, named_targets(space, ["overall", "relations"]), **chosen)


def test_few_images_are_asked_about_whole_and_many_are_not() -> None:
    few, many = certifier_of(space_of(15)), certifier_of(space_of(40))
    place = [target.name for target in few.targets].index(PLAIN)
    assert few.asked_whole == place
    bets = few.fewest_draws(np.full(len(few.targets), 0.1))[place]
    assert 15 <= bets < 40
    assert many.asked_whole is None
    many.aim_at(0.04, 0)
    assert many.asked_whole == place
    assert certifier_of(space_of(40), half_width=0.04).asked_whole == place
    assert certifier_of(space_of(15), answers="one").asked_whole is None  # 30 calls
    assert certifier_of(space_of(15, ["identity"])).asked_whole is None  # it is all there is


def test_half_of_the_weight_goes_to_what_is_left_of_it() -> None:
    certifier = certifier_of(space_of(15))
    place = certifier.asked_whole
    inside = np.zeros((len(certifier.targets), 4), bool)
    inside[place, :2] = True
    found = certifier.half_on_whole(np.array([1.0, 3.0, 2.0, 2.0]), inside)
    assert found == pytest.approx([0.1875, 0.5625, 0.125, 0.125])
    settled = certifier.half_on_whole(np.array([0.0, 0.0, 1.0, 1.0]), inside)
    assert settled == pytest.approx([0.25, 0.25, 0.25, 0.25])
    weights = np.array([1.0, 3.0])
    assert certifier.half_on_whole(weights, inside[:, 2:]) is weights  # all of it was asked


@pytest.mark.parametrize(("answers", "half_width", "budget"), [("all", 0.1, 40), ("one", 0.05, 80)])
def test_its_rate_is_exact_while_others_are_open(
    answers: Any, half_width: float, budget: int
) -> None:
    journal = MemoryJournal()
    result = Audit(
        space_of(12, [*RELATIONS, "contrast_down"]),
        ScriptedModel(answers=answers),
        journal=journal,
        half_width=half_width,
        targets=["overall", "relations"],
        surrogate=False,
        self_taught=False,
        budget=budget,
    ).run()
    rows = result.targets.set_index("target")
    assert rows.loc[PLAIN, "upper"] == pytest.approx(rows.loc[PLAIN, "lower"])
    assert result.headline is not None
    assert "%, exact; including image changes: " in result.headline
    assert not rows["certified"].all()
    verify(journal)
