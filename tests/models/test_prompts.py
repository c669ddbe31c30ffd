"""Prompts as the papers print them and from files, and what a result says of how it was asked."""

from pathlib import Path
from typing import Any

import pytest

import adaptive_vtt as avtt
from adaptive_vtt.datasets.formats.endobench import from_endobench
from adaptive_vtt.datasets.vqa.medvqa_questions import NAMES, QUESTIONS
from adaptive_vtt.errors import InputError, JournalError
from adaptive_vtt.models.network.prompt_templates import TEMPLATES, template
from adaptive_vtt.oracles.choice import MultipleChoice
from adaptive_vtt.results.report.page import render
from adaptive_vtt.testing import ScriptedModel
from adaptive_vtt.types import Ask, Prompt, Unanswered
from tests.helpers.endobench_rows import row, write

CHOICE = Prompt(None, ("LT",), "s", "identity", 0, (Ask("What is it?", ("ulcer", "polyp")),))
LOOKED_AT = Prompt(None, ("LT",), "s", "prompt/box", 1, CHOICE.asks, "Look at the green box.")
MEDICAL = Prompt(
    None, NAMES, "s", "identity", 0, tuple(Ask(question.text) for question in QUESTIONS)
)


def file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "my.txt"
    path.write_text(text, encoding="utf-8")
    return path


# -- the papers' ------------------------------------------------------------------------


def test_endobench_is_asked_as_its_appendix_prints() -> None:
    printed = (
        "What is it?:\nA. ulcer\nB. polyp\nPlease select the correct answer from the options above."
    )
    assert template("endobench").render(CHOICE) == printed
    assert template("endobench").render(LOOKED_AT) == f"Look at the green box.\n{printed}"


def test_medtest_is_asked_as_its_thesis_prints() -> None:
    medtest = template("medtest")
    lines = medtest.render(MEDICAL).splitlines()
    assert lines[0].startswith("I'm working on the Visual Question Answering tasks on medical")
    assert lines[1:19] == [f'"Question": "{medtest.wordings[name]}"' for name in NAMES]
    assert lines[19] == (
        'Sample answers set1: "Polyp" "No" "Biopsy forceps" "No" "2" "1" "1" "No" "Yes" "Yes" '
        '"Red", "Pink" "Not relevant" ">20mm" "Paris ip" "Colonoscopy" "Center-right", '
        '"Upper-left" "Not relevant" "Lower-right"'
    )
    assert lines[20].startswith('Sample answers set2: "Polyp" "No" "No" "No" "1" "0" "1" "Yes"')
    assert lines[21].endswith("Please follow the format of the sample answers strictly.")
    assert len(lines) == 22
    assert all(tuple(answers) == NAMES for answers in medtest.examples)


def test_medtest_answers_in_quotation_marks_are_told_apart() -> None:
    split, reply = template("medtest").split, '"Polyp" "No"\n"Red", "Pink" "Not relevant"'
    assert split(reply, 4) == ("Polyp", "No", "Red, Pink", "Not relevant")
    assert all(isinstance(answer, Unanswered) for answer in split(reply, 5))
    assert split("1: Polyp\n2: No", 2) == ("Polyp", "No")


# -- from files -------------------------------------------------------------------------


def test_a_file_is_the_whole_prompt(tmp_path: Path) -> None:
    path = file(tmp_path, '{words}\n{question} ({concept})\n\n{options}\nReply {"answer": "X"}.\n')
    made = template("my.txt", tmp_path)
    assert made.render(CHOICE) == 'What is it? (LT)\n\nA. ulcer\nB. polyp\nReply {"answer": "X"}.'
    assert made.render(LOOKED_AT).splitlines()[0] == "Look at the green box."
    assert (made.name, made.takes_words) == ("my.txt", True)
    before = made.hash
    path.write_text(path.read_text() + "Be brief.")
    assert template(str(path)).hash != before
    file(tmp_path, "{questions}\nAnswer each.")
    assert template("my.txt", tmp_path).render(MEDICAL).count("\n") == 18
    asked = Prompt(None, ("polyp",), "s", "identity", 0)
    assert template("my.txt", tmp_path).render(asked).splitlines() == [
        "Question: Does the image show this: polyp?",
        "Answer each.",
    ]


def test_what_a_value_says_in_braces_is_not_filled_in(tmp_path: Path) -> None:
    file(tmp_path, "{question}\n{options}")
    asked = Prompt(None, ("LT",), "s", "identity", 0, (Ask("{concept}?", ("{words}", "b")),))
    assert template("my.txt", tmp_path).render(asked) == "{concept}?\nA. {words}\nB. b"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "Hello\n{quesion}",
            r"'my.txt', line 2: unknown placeholder 'quesion'; did you mean 'ques",
        ),
        ("Look!", r"'my.txt': expected {question}, {questions} or {concept} where"),
        ("{question}" + " " * 70_000, "my.txt': expected at most 65,536 characters, got 70,010"),
    ],
)
def test_a_file_that_is_no_template_is_refused(tmp_path: Path, text: str, said: str) -> None:
    file(tmp_path, text)
    with pytest.raises(InputError, match=said):
        template("my.txt", tmp_path)


@pytest.mark.parametrize(
    ("text", "prompt", "said"),
    [
        ("{question}", CHOICE, r"'my.txt': expected {options}, as questions have options"),
        ("{question}\n{options}", LOOKED_AT, r"'my.txt': expected {words}, as something is said"),
        ("{question}", MEDICAL, r"'my.txt': expected {questions}, as one call asks 18.*per_call"),
        ("{question}\n{options}", Prompt(None, ("c",), "s", "i", 0), "questions with options"),
    ],
)
def test_a_template_that_would_leave_something_out_is_refused(
    tmp_path: Path, text: str, prompt: Prompt, said: str
) -> None:
    file(tmp_path, text)
    with pytest.raises(InputError, match=said):
        template("my.txt", tmp_path).render(prompt)


# -- what a result says of it -----------------------------------------------------------


class Told(ScriptedModel):
    """Says how it is asked."""

    def __init__(self, name: str = "endobench", temperature: float | None = 0.0) -> None:
        super().__init__(answers="one")
        self.template_hash: str | None = TEMPLATES[name].hash
        self._told = TEMPLATES[name].protocol({"temperature": temperature})

    def protocol(self) -> dict[str, Any]:
        return self._told


def audit(tmp_path: Path, model: ScriptedModel, *relations: str, **options: Any) -> avtt.Audit:
    dataset = from_endobench(write(tmp_path / "e.tsv", [row(k) for k in range(6)]))
    space = avtt.QuestionSpace(
        dataset, relations or ["identity"], oracle=MultipleChoice(faithful=True)
    )
    return avtt.Audit(space, model, half_width=0.2, targets=["overall"], **options)


def test_result_and_report_say_how_the_model_was_asked(tmp_path: Path) -> None:
    made = audit(tmp_path, Told())
    result = made.run()
    assert result.to_dict()["protocol"] == {
        "template": "endobench",
        "template_hash": TEMPLATES["endobench"].hash,
        "temperature": 0.0,
        "per_call": "one",
        "regime": "exact",
        "judge": None,
        "left_out": 0,
    }
    page = render(made.journal)
    assert f"endobench (hash {TEMPLATES['endobench'].hash})" in page


def test_a_changed_template_is_noticed_when_an_audit_goes_on(tmp_path: Path) -> None:
    journal = tmp_path / "journal.db"
    audit(tmp_path, Told(), journal=journal, seed=1).close()
    other = Told()
    other.template_hash = "0123456789abcdef"
    said = r"other words of the prompt, those of 'endobench' with the hash \w+, and .* 0123456789ab"
    with pytest.raises(JournalError, match=said):
        audit(tmp_path, other, journal=journal, seed=1)
