"""Answers judged by another oracle, and replies read anew: the same draws, other losses."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import adaptive_vtt as avtt
from adaptive_vtt import Audit, QuestionSpace, Versus, rejudge
from adaptive_vtt.audit.everything import all_losses, means
from adaptive_vtt.audit.rereading import Rereading
from adaptive_vtt.certify import named_targets
from adaptive_vtt.certify.verify import recompute
from adaptive_vtt.datasets.formats.endobench import from_endobench
from adaptive_vtt.datasets.view import Subset
from adaptive_vtt.errors import InputError, JournalError
from adaptive_vtt.journal import MemoryJournal
from adaptive_vtt.journal.facts import read_facts
from adaptive_vtt.journal.rows import AnswerRow
from adaptive_vtt.models import Answer, Prompt, PythonModel, Unanswered
from adaptive_vtt.models.network.prompt_templates import TEMPLATES
from adaptive_vtt.models.reply_frames import KEPT, MORE, kept
from adaptive_vtt.oracles import Consistency, Correctness, MaskDrop, OracleDefaults, TopClass
from adaptive_vtt.results.outcomes import outcomes
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from adaptive_vtt.types import Ask, Outcome, Value, Version
from tests.helpers.endobench_rows import row, write
from tests.helpers.source_spaces import RELATIONS as COMPARED
from tests.oracles.test_outcomes import HALF, Shift, masked, segmenter

RELATIONS = ("identity", "gaussian_noise")
ENDS = ["lower", "upper", "pseudo_outcome_mean"]


def space(oracle: Any = None, samples: int = 40, seed: int = 0) -> QuestionSpace:
    return QuestionSpace(tiny_dataset(samples, 3, seed=seed), RELATIONS, oracle=oracle)


def audited(made: QuestionSpace | None = None, model: Any = None, **options: Any) -> MemoryJournal:
    journal = MemoryJournal()
    given = {"half_width": 0.1, "budget": 20, "seed": 1, "surrogate": False, "journal": journal}
    targets = ["overall", "concepts", "relations"]
    chosen = {**given, "self_taught": False, "targets": targets, **options}
    Audit(made or space(), model or ScriptedModel(), **chosen).run()
    return journal


@pytest.fixture(scope="module")
def plain() -> MemoryJournal:
    """An audit that nothing here changes."""
    return audited()


# -- what it comes to ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "options"),
    [
        (ScriptedModel(), {}),
        (ScriptedModel(refuse=0.2), {"unanswered": "both"}),
        (ScriptedModel(answers="one"), {"half_width": None, "at_most": 0.4}),  # strata, decisions
        (ScriptedModel(), {"guarantee": "each", "batch": 5}),
    ],
)
def test_the_same_oracle_gives_the_same_intervals(model: Any, options: dict[str, Any]) -> None:
    journal = audited(model=model, **options)
    before, again = avtt.results.result.summarise(journal), rejudge(journal, space())
    columns = [*ENDS, "certified", *(["decided"] if "at_most" in options else [])]
    pd.testing.assert_frame_equal(again.targets[columns], before.targets[columns])
    assert again.questions == before.questions
    assert (again.calls, again.cost) == (before.calls, before.cost)


def test_another_threshold_gives_its_own_intervals_from_the_same_draws(plain: MemoryJournal):
    """Expected: losses by hand, and intervals by verify's code, one target and draw at a time."""
    head = plain.head
    result = rejudge(plain, space(Correctness(threshold=0.8)))
    assert plain.head == head

    def strict(row: AnswerRow) -> AnswerRow:
        assert row.answer is not None
        return replace(row, loss=float((row.answer >= 0.8) != (row.truth == 1)))

    calls = [replace(c, answers=tuple(strict(a) for a in c.answers)) for c in plain.calls()]
    certificate = read_facts(plain.facts()).certificate
    expected = recompute(certificate, plain.draws(), calls)
    assert result.targets["target"].tolist() == [status.name for status in expected]
    rows = result.targets[ENDS].to_numpy()
    assert rows == pytest.approx(np.array([[i.lower, i.upper, i.estimate] for i in expected]))
    before = recompute(certificate, plain.draws(), plain.calls())
    assert rows[0].tolist() != pytest.approx([before[0].lower, before[0].upper, before[0].estimate])
    assert result.reason == "judged again: nothing was asked"
    assert "chosen without looking at these answers" in result.warnings[0]


def test_an_audit_that_certifies_nothing_has_other_raw_rates() -> None:
    journal = audited(half_width=None, targets=["overall"])
    result = rejudge(journal, space(Correctness(0.8)))
    assert result.guarantee is None
    table = outcomes(journal)
    wrong = (table["answer"] >= 0.8) != (table["truth"] == 1)
    assert result.targets.iloc[0]["estimate"] == pytest.approx(wrong.mean())


def test_what_comes_after_an_open_call_is_not_learnt_from() -> None:
    journal = MemoryJournal()
    made = space()
    audit = Audit(made, ScriptedModel(), half_width=0.1, seed=1, surrogate=False, journal=journal)
    calls = audit.ask(6)
    for call in [*calls[:2], *calls[3:]]:  # the third stays open
        audit.tell(call, (0.9, 0.9, 0.9))
    found = rejudge(journal, made)
    pd.testing.assert_frame_equal(found.targets[ENDS], audit.result().targets[ENDS])
    assert found.waiting == 1


@pytest.mark.slow
def test_intervals_hold_at_every_audit_but_for_alpha() -> None:
    """Audits that go by one threshold, judged by another: an interval misses in at most 5 of 100.

    That 13 of 100 or more do, were it 5 % each, has probability 2e-3."""
    made, strict = space(samples=20), space(Correctness(threshold=0.8), samples=20)
    targets, model = ["overall", "concept:c0"], ScriptedModel()
    truth = means(strict, named_targets(strict, targets), *all_losses(strict, model))
    missed = 0
    for seed in range(100):
        rows = rejudge(audited(made, seed=seed, budget=30, targets=targets), strict).targets
        missed += bool(((rows["lower"] > truth + 1e-9) | (rows["upper"] < truth - 1e-9)).any())
    assert missed <= 12


# -- masks ---------------------------------------------------------------------------------------


def segmented(oracle: Any, **options: Any) -> tuple[QuestionSpace, MemoryJournal]:
    made = QuestionSpace(masked(), ["identity", Shift(), HALF], oracle=oracle)
    chosen = {"targets": ["overall"], "half_width": 0.01, **options}  # until all is asked
    return made, audited(made, PythonModel(segmenter), **chosen)


def shapes(oracle: Any) -> QuestionSpace:
    return QuestionSpace(masked(), ["identity", Shift(), HALF], oracle=oracle)


@pytest.mark.parametrize(
    "oracle",
    [
        MaskDrop(thresholds=(0.3, 0.6)),
        MaskDrop(metric="iou", thresholds=(0.45, 0.51)),  # IoU of half a square is 1/2
    ],
)
def test_masks_that_were_kept_are_judged_by_any_overlap(oracle: MaskDrop) -> None:
    _, journal = segmented(MaskDrop(), keep_masks=True)
    other = shapes(oracle)
    asked, losses = all_losses(other, PythonModel(segmenter))
    result = rejudge(journal, other)
    assert result.questions == len(asked) == 20
    assert set(result.failures()["question"]) == set(asked[losses == 1].tolist())
    assert 0 < losses.sum() < 20


def test_scores_alone_do_for_other_thresholds_and_nothing_else() -> None:
    _, journal = segmented(MaskDrop())
    assert not any((a.details or {}).get("mask") for c in journal.calls() for a in c.answers)
    assert rejudge(journal, shapes(MaskDrop(thresholds=(0.3, 0.6)))).questions == 20
    for oracle in (MaskDrop(metric="iou"), MaskDrop("iou", (0.3, 0.6))):
        with pytest.raises(InputError, match=r"expected masks, got the scores .* keep_masks"):
            rejudge(journal, shapes(oracle))


# -- words ---------------------------------------------------------------------------------------


class Worded(OracleDefaults):
    """Right where the reply holds a letter."""

    def __init__(self, letter: str) -> None:
        self.letter = letter

    def judge(self, question: Any, answer: Any, expected: Any, source_answer: Any = None) -> Any:
        if isinstance(answer, Unanswered):
            return Outcome(1.0)
        right = self.letter in answer
        return Outcome(float(not right), score=float(right))


class Talker(ScriptedModel):
    """Says one word or the other, or nothing."""

    def _answer(self, prompt: Prompt) -> Answer | Unanswered:
        answer = super()._answer(prompt)
        if isinstance(answer, Unanswered):
            return answer
        return Answer(tuple("yes, a" if v > 0.5 else "b" for v in answer.values), 1.0)


def test_words_are_read_anew(tmp_path: Path) -> None:
    dataset = from_endobench(write(tmp_path / "e.tsv", [row(k) for k in range(30)]))
    made, other = (QuestionSpace(dataset, oracle=Worded(letter)) for letter in "ab")
    journal = audited(made, Talker(answers="one", refuse=0.2), targets=["overall"])
    before, wrong = outcomes(journal), rejudge(journal, other).failures()
    refused = before["unanswered"].notna()
    assert 0 < refused.sum() < len(before)
    assert len(wrong) == (~refused & (before["loss"] == 0)).sum() + refused.sum()
    assert set(wrong["answer_text"].dropna()) == {"yes, a"}


# -- what cannot be judged anew ------------------------------------------------------------------


class Silent(ScriptedModel):
    """Says nothing about one source image."""

    def _answer(self, prompt: Prompt) -> Answer | Unanswered:
        if prompt.sample_id == "s0" and prompt.relation == "identity":
            return Unanswered("refused")
        return Answer((0.6,) * len(prompt.concepts), 1.0)


class Forgiving(Consistency):
    """Takes a source without answer for a Yes."""

    def judge(self, question: Any, answer: Any, expected: Any, source_answer: Any = None) -> Any:
        return Outcome(float(not isinstance(answer, Unanswered) and answer < 0.5))


def compared(oracle: Any) -> QuestionSpace:
    return QuestionSpace(tiny_dataset(5, 2), COMPARED, oracle=oracle, severities=[1, 2])


def test_answers_that_did_not_count_are_not_guessed() -> None:
    journal = audited(compared(Consistency()), Silent())
    result = rejudge(journal, compared(Consistency(threshold=0.7)))
    assert result.targets["excluded"].tolist()[0] > 0
    with pytest.raises(InputError, match=r"did not count \(excluded: the source image was not a"):
        rejudge(journal, compared(Forgiving()))


class Elsewhere(Subset):
    """The same truths of the same samples, with boxes that lie elsewhere."""

    @property
    def fingerprint(self) -> str:  # type: ignore[override]
        return "elsewhere"


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (space(samples=41), r"samples 40 then and 41 now; its certificate remains valid"),
        (QuestionSpace(tiny_dataset(40, 3), ("identity",)), r"relations and severities .* now"),
        (QuestionSpace(tiny_dataset(40, 2), RELATIONS), r"concepts 3 then and 2 now"),
        (QuestionSpace(tiny_dataset(40, 3), RELATIONS, seed=3), r"seed of follow-ups 0 then and 3"),
        (space(seed=4), r"got others: what is true of the samples"),
        (space(Consistency()), r"Consistency compares with .* asked about none"),
        (QuestionSpace(Elsewhere(tiny_dataset(40, 3), range(40)), RELATIONS), r"truths, boxes or"),
    ],
)
def test_other_questions_are_refused(plain: MemoryJournal, other: QuestionSpace, message: str):
    with pytest.raises(InputError, match=message):
        rejudge(plain, other)


class Twice(Consistency):
    """Has to hear of a version of every source image."""

    def most_versions(self, dataset: Any) -> int:
        return 1

    def versions(self, sample: Any, received: Any) -> dict[int, Version]:
        return {0: Version("hidden", 1, lambda: sample.image)}


def test_sources_that_an_oracle_needs_beyond_those_asked_are_named() -> None:
    journal = audited(compared(Consistency()), budget=12)
    with pytest.raises(InputError, match=r"Twice compares .* needs for call \d+ was not asked"):
        rejudge(journal, compared(Twice()))


@pytest.mark.slow
def test_a_comparison_and_a_misclassification_rate_keep_their_oracle() -> None:
    versus = Versus(space(), ScriptedModel(), ScriptedModel(seed=1), margin=0.2, budget=20)
    versus.run()
    with pytest.raises(InputError, match=r"expected an audit of one model, got a comparison"):
        rejudge(versus.audit.journal, space())
    journal = audited(space(TopClass()), targets=["misclassified"], half_width=0.1)
    with pytest.raises(InputError, match=r"certified, of images by their likeliest class, got"):
        rejudge(journal, space(Correctness()))


def test_a_damaged_journal_does_not_come_out_whole(tmp_path: Path) -> None:
    audited(journal=tmp_path / "one" / "journal.db")
    with closing(sqlite3.connect(tmp_path / "one" / "journal.db")) as file:
        file.execute("UPDATE answers SET answer = 0.99")
        file.commit()
    with pytest.raises(JournalError, match=r"was altered after it was written"):
        rejudge(tmp_path / "one", space(), out=tmp_path / "two")
    assert not (tmp_path / "two").exists()


def test_a_journal_of_other_answers_is_not_gone_on_with(plain: MemoryJournal, tmp_path: Path):
    strict = space(Correctness(threshold=0.8))
    rejudge(plain, strict, out=tmp_path)
    with pytest.raises(JournalError, match=r"holds answers of 'memory', judged again"):
        Audit(strict, ScriptedModel(), half_width=0.1, journal=tmp_path / "journal.db")
    with pytest.raises(InputError, match=r"holds an audit already; name a new folder"):
        rejudge(plain, strict, out=tmp_path)


# -- replies read anew -------------------------------------------------------------------

IMAGE = np.zeros((4, 4, 3), np.uint8)
ONE = Prompt(IMAGE, ("lesion",), "a", "identity", 0)
TWO = Prompt(IMAGE, ("lesion", "scar"), "a", "identity", 0)
CHOICE = Prompt(IMAGE, ("organ",), "a", "identity", 0, (Ask("Which?", ("colon", "liver")),))
NEITHER = Unanswered("neither yes nor no")


@pytest.mark.parametrize(
    ("reply", "before", "after"),
    [
        ("No.", 1.0, 0.0),
        ("A lesion is visible.", NEITHER, 1.0),
        ("<think>A?</think> B", "A", "B"),
        ("", NEITHER, NEITHER),
        (f"Yes, since{MORE}", NEITHER, NEITHER),
        ("No.", Unanswered("refused: no"), Unanswered("refused: no")),
        ("<html>No.</html>", Unanswered("malformed reply"), Unanswered("malformed reply")),
        ("No service.", Unanswered("http 503"), Unanswered("http 503")),
    ],
)
def test_a_whole_reply_is_read_again(reply: str, before: Value, after: Value) -> None:
    prompt = CHOICE if isinstance(before, str) else ONE
    assert Rereading(numbers=True).values(reply, prompt, (before,)) == (after,)


def test_numbers_of_other_sources_stay_unless_a_function_reads() -> None:
    assert Rereading().values("No", ONE, (0.8,)) == (0.8,)
    assert Rereading(rule=lambda reply, concept: "No" in reply).values("No", ONE, (0.8,)) == (1.0,)
    assert Rereading(rule=lambda *_: None).values("No", ONE, (0.8,)) == (Unanswered("no answer"),)
    with pytest.raises(InputError, match=r"expected True, False, .* got 3"):
        Rereading(rule=lambda *_: 3).values("No", ONE, (0.8,))


def test_a_template_splits_a_reply_to_several_questions() -> None:
    quoted = Rereading(TEMPLATES["medtest"], numbers=True)
    assert quoted.values('"Yes" "No"', TWO, (NEITHER, NEITHER)) == (1.0, 0.0)
    plain = Rereading(numbers=True).values('"Yes" "No"', TWO, (NEITHER, NEITHER))
    assert all(isinstance(value, Unanswered) for value in plain)


def test_a_long_reply_keeps_its_beginning_and_its_end() -> None:
    reply = "Reasons first. " * 500 + "Answer: No"
    assert len(kept(reply)) == KEPT
    assert kept(reply).startswith("Reasons first.")
    assert kept(reply).endswith("Answer: No")
    assert kept("No") == "No"
