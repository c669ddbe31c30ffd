"""Oracles that compare with the source image's answer: asked once, first, journaled, paid for."""

import html
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.benchmark.truth import all_answers, all_losses, calls_of
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.cli.progress import Live
from adaptive_vtt.datasets import from_table
from adaptive_vtt.datasets.base import Dataset
from adaptive_vtt.datasets.view import View
from adaptive_vtt.errors import InputError, JournalError, ModelError
from adaptive_vtt.journal import MemoryJournal, SQLiteJournal, check_chain
from adaptive_vtt.journal.answer_json import from_json, to_json
from adaptive_vtt.models import Answer, Prompt, PythonModel, Recorded, Unanswered
from adaptive_vtt.oracles import Consistency, MaskConsistency, MaskDrop, Ordinal, TopClass, overlap
from adaptive_vtt.relations import FollowUp, LabelPreserving, get
from adaptive_vtt.report import write_report
from adaptive_vtt.results import outcomes
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from adaptive_vtt.types import Case, Question, Sample

RELATIONS = ("identity", "gaussian_noise", "rotation")


def space(samples: int = 5, **options: Any) -> QuestionSpace:
    options = {"oracle": Consistency(), "severities": [1, 2], **options}
    return QuestionSpace(tiny_dataset(samples, 2), RELATIONS, **options)


class Negative(LabelPreserving):
    """The negative image, of which every answer should be the opposite."""

    name = "negative"
    severities = (1,)

    def transform(self, image: Any, severity: int, rng: Any) -> Any:
        return 255 - image

    def expect(self, truth: int, follow_up: FollowUp) -> int:
        return 1 - truth


# -- the source is asked once, first, within the budget -------------------------------------


@pytest.mark.parametrize("answers", ["one", "all"])
@pytest.mark.parametrize("batch", [1, 7])
@pytest.mark.parametrize("budget", [2, 9, 1000])
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
        assert result.reason == "8 of 9 calls were made; a question takes 2"


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


class Stopping(ScriptedModel):
    """Raises at its ``last`` question."""

    def __init__(self, last: int) -> None:
        super().__init__()
        self.last = last

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        if len(self.asked) + len(prompts) > self.last:
            raise RuntimeError("power cut")
        return super().ask(prompts)


@pytest.mark.parametrize("last", [0, 1, 2, 3, 6, 11])
def test_an_interrupted_audit_goes_on_and_pays_for_nothing_twice(tmp_path: Path, last: int) -> None:
    options = {"half_width": 0.2, "targets": ["overall", "relations"], "budget": 20}
    whole = Audit(space(), ScriptedModel(), **options)
    whole.run()
    first = Stopping(last)
    with (
        Audit(space(), first, journal=tmp_path / "j.db", **options) as audit,
        pytest.raises(ModelError, match="power cut"),
    ):
        audit.run()
    second = ScriptedModel()
    with Audit(space(), second, journal=tmp_path / "j.db", **options) as audit:
        result = audit.run()
        assert [r.law for r in audit.journal.draws()] == [r.law for r in whole.journal.draws()]
        verify(audit.journal)
    assert not set(first.asked) & set(second.asked)
    assert result.calls == len(first.asked) + len(second.asked) == whole.result().calls
    assert result.targets.equals(whole.result().targets)


# -- what an outcome is ---------------------------------------------------------------------


def test_consistency_needs_no_label_and_compares_with_the_source() -> None:
    labels = pd.DataFrame({"c": [np.nan, np.nan]}, index=["a", "b"])
    images = np.stack([np.full((8, 8, 3), 40, np.uint8), np.full((8, 8, 3), 220, np.uint8)])
    relations = [get("identity"), Negative(), get("brightness_down")]
    made = QuestionSpace(
        from_table(images, labels), relations, severities=[1], oracle=Consistency()
    )
    assert made.size == 4  # two images, two relations; the sources are no questions
    bright = PythonModel(lambda batch: np.array([[image.mean() / 255] for image in batch]))
    audit = Audit(made, bright)
    audit.run()
    table = outcomes(audit.journal).set_index(["sample", "relation"])
    assert table["loss"].to_dict() == {
        ("a", "negative"): 0,
        ("b", "negative"): 0,
        ("a", "brightness_down"): 0,
        ("b", "brightness_down"): 0,
    }
    stubborn = Audit(made, PythonModel(lambda batch: np.ones((len(batch), 1))))
    stubborn.run()
    assert outcomes(stubborn.journal).groupby("relation")["loss"].mean().to_dict() == {
        "negative": 1,
        "brightness_down": 0,
    }


def test_a_source_without_answer_excludes_its_follow_ups() -> None:
    class Silent(ScriptedModel):
        def _answer(self, prompt: Prompt) -> Answer | Unanswered:
            if prompt.sample_id == "s0" and prompt.relation == "identity":
                return Unanswered("refused")
            return Answer((0.9,) * len(prompt.concepts))

    made = space(samples=4)
    audit = Audit(made, Silent(), half_width=0.01, targets=["overall"])
    result = audit.run()
    table = outcomes(audit.journal)
    out = table[table["sample"] == "s0"]
    assert set(out["unanswered"]) == {"excluded: the source image was not answered"}
    assert out["answer"].isna().all()
    # a quarter of the questions do not count; all others are right
    row = result.targets.iloc[0]
    assert (row["lower"], row["upper"]) == (0, 0)
    assert [i.upper for i in verify(audit.journal)] == [0]


def test_questions_that_turn_out_not_to_count_are_marked_wherever_estimates_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Silent(ScriptedModel):
        silent = "s0"

        def _answer(self, prompt: Prompt) -> Answer | Unanswered:
            if prompt.sample_id == self.silent and prompt.relation == "identity":
                return Unanswered("refused")
            return Answer((0.9,) * len(prompt.concepts))

    options: dict[str, Any] = {"half_width": 0.01, "targets": ["overall"]}
    audit = Audit(space(samples=4), Silent(), **options)
    result = audit.run()
    excluded = int(outcomes(audit.journal)["unanswered"].notna().sum())
    assert result.targets["excluded"].tolist() == [excluded] != [0]
    (name,) = result.targets["target"]
    said = (
        f"questions that turned out not to count: {excluded} of {name!r}; rates are over the "
        "questions that count"
    )
    assert said in result.warnings
    write_report(audit.journal, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert said in " ".join(html.unescape(page).split())
    Live(audit, quiet=True).finish(result, tmp_path)
    assert f"warning: {said}" in " ".join(capsys.readouterr().out.split())
    sound = Silent()
    sound.silent = ""
    result = Audit(space(samples=4), sound, **options).run()
    assert result.targets["excluded"].tolist() == [0]
    assert not any("not to count" in warning for warning in result.warnings)


QUESTION = Question(0, "s", "r", 1, "polyp drop > 0.25", 1)


@pytest.mark.parametrize(
    ("before", "after", "loss"),
    [(0.8, 0.61, 0), (0.8, 0.6, 0), (0.8, 0.59, 1), (0.4, 0.8, 0), (1.0, 0.0, 1)],
)
def test_a_mask_fails_where_its_score_drops_by_more_than_the_share(
    before: float, after: float, loss: float
) -> None:
    outcome = MaskDrop().judge(QUESTION, after, (None, before))
    assert (outcome.loss, outcome.score) == (loss, after)


def test_a_source_that_scores_0_is_excluded() -> None:
    assert MaskDrop().judge(QUESTION, 0.9, (None, 0.0)).excluded == "the source image scores 0"


def test_overlap_of_masks() -> None:
    one, other = np.zeros((4, 4), bool), np.zeros((4, 4), bool)
    assert overlap(one, other) == overlap(one, other, "iou") == 1
    one[:2], other[1:3] = True, True
    assert overlap(one, other) == 0.5
    assert overlap(one, other, "iou") == pytest.approx(1 / 3)


def masked(count: int = 6) -> Dataset:
    """White squares on black; the last one of a sample that has none."""
    images = np.zeros((count, 16, 16, 1), np.uint8)
    for k in range(count - 1):
        images[k, 2 + k : 8 + k, 3:9] = 255
    masks = [image[:, :, 0] > 0 for image in images]
    labels = pd.DataFrame({"square": [1] * (count - 1) + [0]})
    return from_table(images, labels, masks={"square": [*masks[:-1], None]})


class Shift(LabelPreserving):
    """Moves the image, and masks with it, two pixels down."""

    name = "shift"
    severities = (1,)

    def transform(self, image: Any, severity: int, rng: Any) -> Any:
        return np.roll(image, 2, axis=0)

    def expect_mask(self, mask: Any, follow_up: FollowUp) -> Any:
        return np.roll(mask, 2, axis=0)


class Half(LabelPreserving):
    """Blacks out the left half of the square."""

    name = "half"
    severities = (1,)

    def transform(self, image: Any, severity: int, rng: Any) -> Any:
        changed = image.copy()
        changed[:, :6] = 0
        return changed


def segmenter(images: list[Any]) -> Any:
    return [image[None, :, :, 0] > 128 for image in images]


def test_a_segmenter_is_audited_at_every_threshold_in_one_call() -> None:
    made = QuestionSpace(
        masked(), ["identity", Shift(), Half()], oracle=MaskDrop(thresholds=(0.25, 0.5))
    )
    assert made.concepts == ("square drop > 0.25", "square drop > 0.5")
    assert made.asked == ("square",)
    assert made.size == 5 * 2 * 2  # without the sample that has no square
    audit = Audit(made, PythonModel(segmenter), half_width=0.01, targets=["concepts", "relations"])
    result = audit.run()
    table = outcomes(audit.journal)
    assert (table[table["relation"] == "shift"]["answer"] == 1).all()
    half = table[table["relation"] == "half"]
    assert np.allclose(half["answer"], 2 / 3)  # Dice of half a square
    assert half.groupby("concept")["loss"].mean().to_dict() == {
        "square drop > 0.25": 1,
        "square drop > 0.5": 0,
    }
    assert result.calls == 5 + 10
    assert result.targets["target"].tolist()[:2] == [
        "square drop > 0.25: EFR",
        "square drop > 0.5: EFR",
    ]
    verify(audit.journal)


def test_answers_of_a_segmenter_replay_as_their_scores() -> None:
    made = QuestionSpace(masked(), ["identity", Shift(), Half()], oracle=MaskDrop())
    kept = Recorded(all_answers(made, PythonModel(segmenter)))
    again, losses = all_losses(made, kept)
    assert losses.tolist() == all_losses(made, PythonModel(segmenter))[1].tolist()
    assert len(again) == made.size
    assert calls_of(made, kept) == 5 + 10


def test_masks_agree_without_any_true_mask() -> None:
    images = np.zeros((3, 16, 16, 1), np.uint8)
    images[:, 4:10, 3:9] = 255
    dataset = from_table(images, pd.DataFrame({"square": [np.nan] * 3}))
    made = QuestionSpace(dataset, ["identity", Shift(), Half()], oracle=MaskConsistency())
    audit = Audit(made, PythonModel(segmenter))
    audit.run()
    losses = outcomes(audit.journal).groupby("relation")["loss"].mean()
    assert losses.to_dict() == {"shift": 0, "half": 1}


def test_a_mask_of_another_size_is_refused() -> None:
    made = QuestionSpace(masked(), ["identity", Shift()], oracle=MaskDrop())
    wrong = PythonModel(lambda images: [np.zeros((1, 8, 8), bool) for _ in images], name="m")
    with pytest.raises(ModelError, match=r"mask of bool as large as the image, \(16, 16\), got"):
        Audit(made, wrong).run()


def test_a_sample_without_the_mask_to_score_by_is_named() -> None:
    images = np.zeros((2, 16, 16, 1), np.uint8)
    dataset = from_table(images, pd.DataFrame({"square": [1, 1]}, index=["a", "b"]))
    made = QuestionSpace(dataset, ["identity", Shift()], oracle=MaskDrop())
    with pytest.raises(
        InputError, match=r"sample '[ab]': expected a true mask to score the model's by, got none"
    ):
        Audit(made, PythonModel(segmenter)).run()


# -- classes --------------------------------------------------------------------------------


def classes(own: bool = False) -> QuestionSpace:
    """Image k shows class k % 4."""
    labels = pd.DataFrame(np.eye(4, dtype=int)[np.arange(8) % 4], columns=list("abcd"))
    return QuestionSpace(from_table(None, labels), oracle=Ordinal() if own else TopClass())


class Next(ScriptedModel):
    """Says the class after the true one, of the last the last."""

    def _answer(self, prompt: Prompt) -> Answer | Unanswered:
        said = min(int(prompt.sample_id) % 4 + 1, 3)
        return Answer(tuple(0.4 if k == said else 0.2 for k in range(4)))


def test_the_likeliest_class_counts_however_unlikely() -> None:
    audit = Audit(classes(), Next())
    audit.run()
    table = outcomes(audit.journal)
    misses = table[table["truth"] == 1].groupby("concept")["loss"].mean()
    alarms = table[table["truth"] == 0].groupby("concept")["loss"].mean()
    assert misses.to_dict() == {"a": 1, "b": 1, "c": 1, "d": 0}
    assert alarms.to_dict() == pytest.approx({"a": 0, "b": 1 / 3, "c": 1 / 3, "d": 1 / 3})


def test_the_first_of_equal_classes_wins_and_silence_is_a_loss() -> None:
    oracle = TopClass()
    cases = [
        Case(Question(k, "s", "identity", 0, c, int(k == 0)), k, 0.5, int(k == 0), None)
        for k, c in enumerate("ab")
    ]
    assert [o.loss for o in oracle.judge_call(cases, (0.5, 0.5))] == [0, 0]
    silent = (Unanswered("x"), Unanswered("x"))
    assert [o.loss for o in oracle.judge_call(cases, silent)] == [1, 1]


def test_grades_are_judged_by_their_distance() -> None:
    audit = Audit(classes(own=True), Next())
    audit.run()
    table = outcomes(audit.journal)
    assert len(table) == 8
    assert table.groupby("concept")["loss"].mean().to_dict() == pytest.approx(
        {"a": 1 / 3, "b": 1 / 3, "c": 1 / 3, "d": 0}
    )


def test_classes_need_a_model_that_answers_all_of_them() -> None:
    with pytest.raises(InputError, match=r"TopClass: needs a model that answers all concepts"):
        Audit(classes(), ScriptedModel(answers="one"))
    made = QuestionSpace(masked(), ["identity", Shift()], oracle=MaskDrop())
    with pytest.raises(InputError, match="MaskDrop: needs a model that answers all concepts"):
        Audit(made, ScriptedModel(answers="one"))


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
    found: Sample = view.sample(0)
    assert found.truth == {
        c: int(t) for c, t in zip(view.concepts, truths[0], strict=True) if t >= 0
    }


def test_values_survive_json() -> None:
    mask = np.random.default_rng(0).random((5, 7)) < 0.5
    assert from_json(to_json(0.25)) == 0.25
    assert from_json(to_json(Unanswered("late"))) == Unanswered("late")
    again = from_json(to_json(mask))
    assert isinstance(again, np.ndarray)
    assert (again == mask).all()
    assert again.dtype == bool


def test_source_rows_agree_in_memory_and_on_disk(tmp_path: Path) -> None:
    disk, memory = SQLiteJournal(tmp_path / "j.db"), MemoryJournal()
    for journal in (disk, memory):
        Audit(space(), ScriptedModel(), budget=9, journal=journal).run()
    rows = [[{**vars(r), "elapsed": 0} for r in j.sources()] for j in (disk, memory)]
    assert rows[0] == rows[1]
    assert rows[0]
    for journal in (disk, memory):
        check_chain(journal, journal.draws(), journal.calls())
    for journal in (disk, memory):
        with pytest.raises(JournalError):
            journal.add_sources(journal.sources()[:1])
    disk.close()


def test_verify_names_a_source_answer_that_was_altered(tmp_path: Path) -> None:
    options = {"half_width": 0.3, "targets": ["overall"], "budget": 9}
    with Audit(space(), ScriptedModel(), journal=tmp_path / "j.db", **options) as audit:
        audit.run()
    with closing(sqlite3.connect(tmp_path / "j.db")) as db, db:
        db.execute("UPDATE sources SET answers = '[1.0, 1.0]'")
    journal = SQLiteJournal(tmp_path / "j.db")
    with pytest.raises(JournalError, match=r"the answer of source \d was altered"):
        verify(journal)
    journal.close()


def test_masks_turn_with_the_image() -> None:
    image = np.zeros((32, 32, 1), np.uint8)
    image[6:12, 14:26] = 255
    mask = image[:, :, 0] > 0
    relation = get("rotation")
    made = relation.apply(Sample("s", image, {}), 4, np.random.default_rng(1))
    assert made.image is not None
    turned = relation.expect_mask(mask, made)
    assert overlap(turned, made.image[:, :, 0] > 127) > 0.9
    assert overlap(turned, mask) < 0.7
    with pytest.raises(InputError, match=r"rotation: expected a severity in .*, got 9"):
        relation.apply(Sample("s", image, {}), 9, np.random.default_rng(1))
