"""The best constant answer of every target, by counting labels."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from adaptive_vtt import Audit, QuestionSpace, Versus
from adaptive_vtt.certify import named_targets
from adaptive_vtt.certify.targets import constants
from adaptive_vtt.datasets import from_table
from adaptive_vtt.datasets.table import WordedDataset
from adaptive_vtt.journal import MemoryJournal
from adaptive_vtt.journal.facts import Constant
from adaptive_vtt.models import PythonModel
from adaptive_vtt.oracles import Consistency, Correctness, MultipleChoice, TopClass
from adaptive_vtt.results.gate import gate
from adaptive_vtt.results.result import summarise
from adaptive_vtt.testing import ScriptedModel
from adaptive_vtt.types import Answer, Ask, Prompt

SITES = pd.DataFrame({"site": ["a", "a", "a", "a", "b", "b"]})
CLASSES = pd.DataFrame({"nut": [1, 1, 1, 0, 0, 0], "bolt": [0, 0, 0, 1, 1, 1]})
CLASSES.loc[5] = [1, 0]  # nut 4 times, bolt twice


def space_of(oracle: Any, labels: pd.DataFrame = CLASSES) -> QuestionSpace:
    data = from_table(np.zeros((6, 8, 8, 3), np.uint8), labels, metadata=SITES)
    return QuestionSpace(data, ["identity", "rotation"], oracle=oracle)


def found(space: QuestionSpace, *names: str) -> dict[str, Constant | None]:
    targets = named_targets(space, names)
    return dict(zip([t.id.handle for t in targets], constants(space, targets), strict=True))


def test_the_commonest_class_of_each_targets_images() -> None:
    rates = found(space_of(TopClass()), "overall", "relations", "group:site", "concepts")
    assert rates["overall"] == rates["relation:rotation"] == Constant("nut", pytest.approx(1 / 3))
    assert rates["group:site=a"] == Constant("nut", 0.25)
    assert rates["group:site=b"] == Constant("nut", 0.5)  # the first of equals
    assert rates["concept:nut:miss rate"] is None


def test_always_no_or_always_yes_of_labels_whichever_is_right_more_often() -> None:
    labels = pd.DataFrame({"blood": [0, 0, 0, 0, 0, 1], "polyp": [1, 1, 0, 1, 1, 1]})
    space = space_of(Correctness(), labels)
    where = {"polyps": {"concept": ["polyp"]}}
    targets = named_targets(space, ["overall", "polyps", "concepts"], where)
    rates = {t.name: one for t, one in zip(targets, constants(space, targets), strict=True)}
    assert rates["overall label error"] == Constant("No", 0.5)
    assert rates["polyps"] == Constant("Yes", pytest.approx(1 / 6))
    assert rates["blood: miss rate"] is None


def test_what_needs_no_label_has_none() -> None:
    assert set(found(space_of(Consistency()), "overall", "relations").values()) == {None}


def blind_audit(**protocol: str) -> MemoryJournal:
    """An audit of a model that says "bolt" of everything, as sure as it can be."""
    journal = MemoryJournal()
    labels = pd.DataFrame({"nut": [1] * 4 + [0] * 2, "bolt": [0] * 4 + [1] * 2})
    model = PythonModel(lambda images: np.tile([0.1, 0.9], (len(images), 1)))
    model.protocol = lambda: dict(protocol)  # type: ignore[method-assign]
    options: dict[str, Any] = {"strategy": "everything", "targets": ["overall"]}
    with Audit(space_of(TopClass(), labels), model, journal=journal, **options) as audit:
        audit.run(False)
    return journal


@pytest.fixture
def blind() -> MemoryJournal:
    return blind_audit()


def test_of_a_chat_model_words_are_questioned_and_no_columns() -> None:
    (text,) = [w for w in summarise(blind_audit(template="x")).warnings if "constant" in w]
    assert text.endswith(": read some replies; do the concept names mean what your labels mean?")


def test_a_model_that_is_no_better_is_told_so_everywhere(blind: MemoryJournal) -> None:
    result = summarise(blind)
    row = result.targets.set_index("target").loc["overall misclassification rate"]
    assert (row["estimate"], row["constant"], row["constant_answer"]) == (
        pytest.approx(2 / 3),
        pytest.approx(1 / 3),
        "nut",
    )
    (said,) = [w for w in result.warnings if "constant answer" in w]
    assert "'overall misclassification rate' (always 'nut': 33.3 %)" in said
    assert "are labels or columns swapped" in said
    passed = gate(blind, ["overall <= 0.7"])
    assert passed.state == "pass"
    assert passed.markdown().startswith("## Gate: pass, but no better than a constant answer\n")
    assert "always 'nut': 33.3 %" in str(passed.rulings[0])


def test_where_image_changes_alone_fail_no_column_is_in_doubt() -> None:
    model = ScriptedModel()

    def ask(prompts: Sequence[Prompt]) -> list[Answer]:
        changed = [prompt.relation != "identity" for prompt in prompts]
        nuts = [int(prompt.sample_id) in (0, 1, 2, 5) for prompt in prompts]
        return [Answer((0.2 + 0.6 * (a != b), 0.5)) for a, b in zip(nuts, changed, strict=True)]

    model.ask = ask  # type: ignore[assignment, method-assign]
    with Audit(space_of(TopClass()), model, strategy="everything", targets=["overall"]) as audit:
        warnings = audit.run(False).warnings
    (said,) = [warning for warning in warnings if "constant answer" in warning]
    assert said.endswith("33.3 %)")


def test_a_difference_of_two_models_stands_beside_no_constant_answer() -> None:
    """The pair's losses lie about one half, whatever one answer would lose."""
    models = [PythonModel(lambda images: np.tile([0.1, 0.9], (len(images), 1))) for _ in "ab"]
    options: dict[str, Any] = {"targets": ["overall"], "margin": 0.1, "budget": 6, "seed": 0}
    with Versus(space_of(TopClass()), *models, surrogate=False, **options) as versus:
        result = versus.run().result
    assert "constant" not in result.targets
    assert not [warning for warning in result.warnings if "constant answer" in warning]


def test_the_commonest_right_letter_of_questions_with_options() -> None:
    data = WordedDataset(
        np.zeros((6, 8, 8, 3), np.uint8),
        np.ones((6, 1), np.int8),
        [*"uvwxyz"],
        ["count"],
        asks=[{"count": Ask("How many?", ("one", "two", "three"))}] * 6,
        answers=[{"count": (letter,)} for letter in "ABBBCA"],
    )
    space = QuestionSpace(data, ["identity"], oracle=MultipleChoice())
    assert found(space, "overall") == {"overall": Constant("B", 0.5)}
