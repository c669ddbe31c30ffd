"""People answer what the model was asked, and are audited as a model by their recorded answers."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.datasets.formats.endobench import from_endobench
from adaptive_vtt.errors import InputError
from adaptive_vtt.journal import Journal, MemoryJournal
from adaptive_vtt.models.local.recorded import RecordedReader
from adaptive_vtt.oracles import Consistency, MultipleChoice
from adaptive_vtt.people.cards import Pictures
from adaptive_vtt.people.reading import questions, reading_task
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from adaptive_vtt.types import Answer
from tests.helpers.endobench_rows import row, write
from tests.helpers.labelled_audit import answers

SPACE = QuestionSpace(tiny_dataset(8, 2), ["identity", "brightness_up"])
CERTIFIED = {"half_width": 0.001, "targets": ["overall"], "self_taught": False, "surrogate": False}


def audited(space: QuestionSpace, model: Any, **options: Any) -> Journal:
    journal = MemoryJournal()
    with Audit(space, model, journal=journal, seed=1, surrogate=False, **options) as audit:
        audit.run()
    return journal


def test_a_person_is_audited_as_a_model_by_recorded_answers():
    """Everything is read, so that rates are exact: those of what the reader got wrong."""
    journal = audited(SPACE, ScriptedModel(), budget=SPACE.images)
    rng, rows, wrong = np.random.default_rng(0), [], []
    for card in questions(journal, SPACE):
        sample = SPACE.dataset.sample(SPACE.numbering.parts(card.question)[0])
        for one in card.asked:
            wrong.append(rng.random() < 0.3)
            says = bool(sample.truth[one.id]) != wrong[-1]
            rows.append((card.id, one.id, "ann", "yes" if says else "no"))
    assert len(rows) == SPACE.size
    reader = RecordedReader(answers(rows))
    with Audit(SPACE, reader, budget=SPACE.images, **CERTIFIED) as audit:
        overall = audit.run().targets.iloc[0]
    assert overall["estimate"] == pytest.approx(np.mean(wrong))
    assert overall["lower"] == overall["upper"] == overall["estimate"]


def test_questions_come_in_the_order_of_the_draws_and_give_nothing_away():
    journal = audited(SPACE, ScriptedModel(), budget=12)
    task = reading_task(journal, SPACE, Pictures(journal, SPACE, alone=True), 5)
    cards = task.known
    assert [card.call for card in cards] == [draw.call for draw in journal.draws()]
    assert task.cards() == cards[:5]
    assert [one.id for one in cards[0].asked] == [*SPACE.concepts]
    assert (cards[0].titles, cards[0].facts, cards[0].captions) == (("picture",), (), ())
    assert len(task.show(cards[0]).pictures) == 1
    given = [(cards[0].id, "c0", name, "yes") for name in ("ann", "bo")]
    figures = task.summarise(answers(given)).figures
    assert figures == {"readers": {"ann": 1, "bo": 1}, "kappa": {"answers": (None, 1)}}
    with pytest.raises(InputError, match="expected 1 or more questions, got 0"):
        reading_task(journal, SPACE, Pictures(journal), 0)


def test_options_are_letters(tmp_path: Path):
    file = write(tmp_path / "q.tsv", [row(k) for k in range(6)])
    space = QuestionSpace(from_endobench(file), ["identity"], oracle=MultipleChoice())

    class Lettered(ScriptedModel):
        def _answer(self, prompt: Any) -> Any:
            return Answer(("A",))

    cards = questions(audited(space, Lettered(answers="one"), budget=6), space)
    (one,) = cards[0].asked
    assert [*one.choices] == [*"ABCD"]
    for letter, rate in (("A", 1), ("B", 0)):
        rows = [(card.id, card.asked[0].id, "ann", letter) for card in cards]
        reader = RecordedReader(answers(rows))
        with Audit(space, reader, budget=6, **CERTIFIED) as audit:
            assert audit.run().targets.iloc[0]["estimate"] == rate


def test_what_people_cannot_be_judged_by_is_refused():
    space = QuestionSpace(tiny_dataset(8, 2), ["identity", "brightness_up"], oracle=Consistency())
    journal = audited(space, ScriptedModel(), budget=6)
    with pytest.raises(InputError, match="by the truth alone, got one that judges answers by"):
        reading_task(journal, space, Pictures(journal), None)
