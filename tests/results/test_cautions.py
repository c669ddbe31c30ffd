"""Cautions that follow from answers alone."""

from types import SimpleNamespace
from typing import Any

import pytest

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.journal.rows import AnswerRow, CallRow
from adaptive_vtt.results.cautions import same_answers
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from adaptive_vtt.types import SIDES

SAME, NEARLY = "the model gave the same answer (50.0 %", "answers, and is right no more often"


@pytest.mark.parametrize(
    ("concepts", "values", "truths", "said"),
    [
        (1, [0.5] * 6, [0, 1] * 3, SAME),
        (2, [0.5, 0.1] * 6, [0, 1] * 6, SAME),
        (1, [0.0001, 0.003] * 3, [0, 0] * 3, ""),  # all are right
        (14, [0.0001] * 14, [0] * 13 + [1], ""),  # one answer about each concept
        (14, [0.0001] * 17, [0] * 16 + [1], ""),  # 3 repeat the answer about their concept
        (1, [0.0001, 0.003] * 3, [0, 0, 1] * 2, ""),  # they differ, and are few
        (1, [0.0001, 0.003] * 12, [0, 0, 1] * 8, NEARLY),
        (14, [0.0001] * 14 + [0.7] * 10, [0, 1] * 12, ""),
    ],
)
def test_answers_are_called_the_same_where_several_about_a_concept_are(
    concepts: int, values: list[float], truths: list[int], said: str
) -> None:
    facts: Any = SimpleNamespace(
        settings=SimpleNamespace(oracle=SimpleNamespace(rates=SIDES, metric=None)),
        space=SimpleNamespace(concepts=range(concepts)),
    )
    calls = []
    for n, (value, truth) in enumerate(zip(values, truths, strict=True)):
        row = AnswerRow(n, n, truth, value, None, abs(value - truth), None)
        calls.append(CallRow(n, 0.0, 0.0, (row,)))
    caution = same_answers(facts, calls)
    assert said in caution
    assert bool(said) == bool(caution)
    assert len(f"warning: {caution}") <= 3 * 80


@pytest.mark.parametrize(
    ("field", "again"),
    [("oracle.kind", True), ("audit.strategy", False), ("certify.surrogate", False)],
)
def test_only_code_that_makes_answers_or_losses_casts_doubt_on_certificates(
    field: str, again: bool
) -> None:
    options: Any = {"budget": 2, "half_width": 0.3, "surrogate": False, "self_taught": False}
    notes = {"parts_changed": [field]}
    with Audit(QuestionSpace(tiny_dataset()), ScriptedModel(), notes=notes, **options) as audit:
        (caution,) = (text for text in audit.run().warnings if "was mended" in text)
    assert caution.startswith(f"the code of {field} was mended after an error")
    assert ("begin a new audit" in caution) == again
