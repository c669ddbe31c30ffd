"""Reading replies: the public rule's edge cases, what is read better, refusals, and judges."""

import time
from pathlib import Path

import pytest

from adaptive_vtt.errors import InputError
from adaptive_vtt.models import Prompt, Unanswered
from adaptive_vtt.models.network.prompt_templates import template
from adaptive_vtt.models.reply_frames import conclusion
from adaptive_vtt.models.yes_no import DECLINED, NO_IMAGE
from adaptive_vtt.oracles import ContainsTruth, MultipleChoice, Outcome, Premise
from adaptive_vtt.oracles.choice import Expected
from adaptive_vtt.oracles.choice_extraction import extract
from adaptive_vtt.oracles.contains_truth import contains
from adaptive_vtt.oracles.judge_models import JudgeModel
from adaptive_vtt.relations import FollowUp, get
from adaptive_vtt.space import Question
from adaptive_vtt.testing import ScriptedModel
from adaptive_vtt.types import Ask, Case, Sample
from tests.helpers.twins import slowly

FOUR = ("ulcer", "polyp", "bleeding", "normal")
TASK = "Organ Identification"
QUESTION = Question(0, "s", "identity", 0, TASK, 1)
SAMPLE = Sample(
    "s", None, {TASK: 1}, asks={TASK: Ask("What is shown?", FOUR)}, answers={TASK: ("B",)}
)


# What the public scoring code makes of a reply, and what is made of it here.
@pytest.mark.parametrize(
    ("reply", "options", "faithful", "usual"),
    [
        ("B", FOUR, "B", "B"),
        ("B) polyp", FOUR, "B", "B"),
        ("\\boxed{B}", FOUR, "B", "B"),
        ("b", FOUR, None, "B"),  # the public rule knows capitals alone
        ("A polyp is visible", FOUR, "A", "B"),  # the article
        ("B or C", FOUR, None, None),
        ("A. ulcer\nB. polyp\nC. bleeding\nD. normal\nFinal answer: C", FOUR, None, "C"),
        ("B/C", FOUR, None, None),
        ("option_B", FOUR, None, "B"),
        ("colon polyp", ("polyp", "colon polyp"), None, "B"),
        ("There are 12", ("1", "2"), None, None),
        ("not an ulcer", FOUR, "A", None),  # the public rule reads no denials
        ("I think the answer is yes", ("Yes", "No"), "A", "A"),
        ("I know what it is, yes", ("Yes", "No"), None, "A"),
        ("", FOUR, None, None),
    ],
)
def test_replies_are_read(
    reply: str, options: tuple[str, ...], faithful: str | None, usual: str | None
) -> None:
    assert extract(reply, options, faithful=True).letter == faithful
    assert extract(reply, options).letter == usual


def test_the_golden_replies_are_read_or_left_open() -> None:
    lines = (Path(__file__).parents[1] / "golden" / "replies.tsv").read_text("utf-8").splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    wrong, missed = [], []
    for text, options, meant in rows:
        reply = text.replace("\\n", "\n").replace("\\\\", "\\")
        letter = extract(reply, options.split("|")).letter or "-"
        if letter != meant:
            (missed if letter == "-" else wrong).append((reply, letter, meant))
    assert len(rows) >= 150
    assert wrong == []  # 40 of them before denials were read
    assert missed == [("The absence of ulceration suggests a polyp.", "-", "B")]  # 31 before


@pytest.mark.parametrize(
    "reply",
    [
        "I'm sorry, but I can't assist with medical images.",
        "I cannot help with images of people.",
        "As an AI, I am unable to provide a diagnosis. Please see a doctor.",
        "Sorry, but without the image provided I have nothing to go by.",
    ],
)
def test_refusals_are_recognised(reply: str) -> None:
    result = extract(reply, FOUR)
    assert result.letter is None
    assert result.reason in (DECLINED, NO_IMAGE)
    assert MultipleChoice().judge(QUESTION, reply, _expected()).unanswered == result.reason


@pytest.mark.parametrize(
    "reply",
    [
        "answer" + " " * 50_000,
        "not an A, " * 8_000,
        *slowly("I can't " * 8_000, "not " * 20_000, "no ( " * 12_000),
    ],
    ids=lambda reply: reply[:12],
)
def test_rambling_replies_take_no_time(reply: str) -> None:
    start = time.process_time()
    extract(reply, FOUR)
    extract(reply, FOUR, faithful=True)
    assert time.process_time() - start < 2  # a few milliseconds, but for runaway patterns


# -- the oracle -------------------------------------------------------------------------


def test_right_and_wrong_letters_are_scored() -> None:
    oracle = MultipleChoice()
    words = {"question": "What is shown?", "options": [*FOUR], "right": ["B"]}
    message = {"asked": words}  # for people: the report shows it
    assert oracle.judge(QUESTION, "B", _expected()) == Outcome(0.0, 1.0, 1.0, details=message)
    assert oracle.judge(QUESTION, "C", _expected()) == Outcome(1.0, 0.5, 0.0, details=message)
    assert oracle.judge(QUESTION, 1.0, _expected()).loss == 0  # recorded answers
    assert oracle.judge(QUESTION, 0.0, _expected()).loss == 1
    assert oracle.judge(QUESTION, Unanswered("timeout"), _expected()).loss == 1
    assert MultipleChoice(unanswered_loss=0.75).judge(QUESTION, "", _expected()).loss == 0.75
    assert dict(oracle.rates) == {"error rate": 1}


def test_a_sample_without_options_is_refused() -> None:
    bare = Sample("s7", None, {TASK: 1})
    with pytest.raises(InputError, match=r"sample 's7': expected options and one right letter"):
        MultipleChoice().expect(Premise(get("identity"), FollowUp(None), bare, QUESTION, None))


# -- free answers -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "truth", "strict", "plain"),
    [
        ("It is a POLYP.", "Polyp", True, True),
        ("lower right", "Lower-rigth", True, False),
        ("Lower-right, center", "Center, Lower-right", True, True),
        ("center", "Center, Lower-right", False, False),
        ("Center-left", "Center", False, True),
        ("10", "1", False, True),
        ("two polyps", "2", True, True),
        ("Not relevant", "No", False, True),
        ("11-20 mm", "11-20mm", True, True),
        ("> 20mm", ">20mm", True, True),
        ("red and pink", "Pink/Red", True, True),
        ("", "No", False, False),
    ],
)
def test_a_reply_contains_the_truth(reply: str, truth: str, strict: bool, plain: bool) -> None:
    assert contains(reply, truth) == strict
    if truth != "Lower-rigth":
        assert contains(reply, truth, strict=False) == plain


def test_only_what_follows_the_final_answer_counts() -> None:
    reply = "There may be text, yes, at the left.\nFinal answer: No"
    assert conclusion(reply) == "No"
    concept = "text present"
    sample = Sample("s", None, {concept: 1}, answers={concept: ("Yes",)})
    question = Question(0, "s", "identity", 0, concept, 1)
    for strict, loss in ((True, 1), (False, 0)):
        oracle = ContainsTruth(strict=strict)
        expected = oracle.expect(Premise(get("identity"), FollowUp(None), sample, question, None))
        assert oracle.judge(question, reply, expected).loss == loss


def test_a_judge_is_not_asked_about_a_refusal_nor_about_nothing() -> None:
    question = Question(0, "s", "identity", 0, "finding", 1)
    oracle = ContainsTruth(judge=JudgeModel(ScriptedModel(), regime="yes-no"))
    expected = Expected(("polyp",), ask=Ask("What?"))
    replies = ("I'm sorry, I can't help with that.", " ", "An adenoma")
    queries = [oracle.query(Case(question, 0, reply, expected, None)) for reply in replies]
    assert [query is not None for query in queries] == [False, False, True]


# -- prompts ----------------------------------------------------------------------------


def test_a_prompt_shows_question_options_and_form() -> None:
    text = template("zero-shot").render(_prompt((TASK,), (SAMPLE.asks[TASK],)))
    assert text.splitlines()[:3] == ["Question: What is shown?", "Options:", "A. ulcer"]
    assert "letter" in text.splitlines()[-1]
    assert "Final answer" in template("chain-of-thought").render(_prompt((TASK,), (Ask("Where?"),)))


def test_sample_answers_stand_in_the_order_of_the_questions() -> None:
    concepts = ("landmark colour", "procedure", "text present")
    text = template("few-shot").render(_prompt(concepts, tuple(Ask(c) for c in concepts)))
    lines = text.splitlines()
    start = lines.index("Sample answers 1:")
    assert lines[start + 1 : start + 4] == ["1: Not relevant", "2: Colonoscopy", "3: No"]
    assert lines.index("Question 1: landmark colour") > start
    bare = template("few-shot").render(_prompt((TASK,), (SAMPLE.asks[TASK],)))
    assert "Sample answers" not in bare  # none that fit


def test_answers_are_told_apart_by_number() -> None:
    split = template("zero-shot").split
    assert split("1: Yes\n**2.** 5-10mm", 2) == ("Yes", "5-10mm")
    assert split("Yes\nNo", 2) == ("Yes", "No")
    first, second = split("2) Red", 2)
    assert isinstance(first, Unanswered)
    assert second == "Red"


def _expected() -> object:
    return MultipleChoice().expect(Premise(get("identity"), FollowUp(None), SAMPLE, QUESTION, None))


def _prompt(concepts: tuple[str, ...], asks: tuple[Ask, ...] = ()) -> Prompt:
    return Prompt(None, concepts, "s", "identity", 0, asks)
