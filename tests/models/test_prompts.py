"""Prompts as the papers print them and from files, and how a result shows them."""

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
MEDICAL = Prompt(None, NAMES, "s", "identity", 0, tuple(Ask(q.text) for q in QUESTIONS))


def file(tmp_path, text):
    path = tmp_path / "my.txt"
    path.write_text(text, encoding="utf-8")
    return path


# -- the papers' ------------------------------------------------------------------------


def test_endobench_is_asked_as_its_appendix_prints():
    printed = "What is it?:\nA. ulcer\nB. polyp\nPlease select the correct answer from the options"
    printed += " above."
    assert template("endobench").render(CHOICE) == printed
    assert template("endobench").render(LOOKED_AT) == f"Look at the green box.\n{printed}"


def test_medtest_is_asked_as_its_thesis_prints():
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


def test_medtest_answers_in_quotation_marks_are_split():
    split, reply = template("medtest").split, '"Polyp" "No"\n"Red", "Pink" "Not relevant"'
    assert split(reply, 4) == ("Polyp", "No", "Red, Pink", "Not relevant")
    assert all(isinstance(answer, Unanswered) for answer in split(reply, 5))
    assert split("1: Polyp\n2: No", 2) == ("Polyp", "No")


# -- from files -------------------------------------------------------------------------


def test_a_file_is_the_whole_prompt(tmp_path):
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


def test_what_a_value_says_in_braces_is_not_filled_in(tmp_path):
    file(tmp_path, "{question}\n{options}")
    asked = Prompt(None, ("LT",), "s", "identity", 0, (Ask("{concept}?", ("{words}", "b")),))
    assert template("my.txt", tmp_path).render(asked) == "{concept}?\nA. {words}\nB. b"


@pytest.mark.parametrize(
    ("text", "prompt", "message"),
    [
        ("Hello\n{quesion}", CHOICE, r", line 2: unknown placeholder 'quesion'; did you mean"),
        ("Look!", CHOICE, r": expected {question}, {questions} or {concept} where"),
        ("{question}" + " " * 70_000, CHOICE, ": expected at most 65,536 characters, got 70,010"),
        ("{question}", CHOICE, r": expected {options}, as questions have options"),
        ("{question}\n{options}", LOOKED_AT, r": expected {words}, as there is something to say"),
        ("{question}", MEDICAL, r": expected {questions}, as one call asks 18.*per_call"),
        ("{question}\n{options}", Prompt(None, ("c",), "s", "i", 0), "questions with options"),
    ],
)
def test_a_file_that_is_no_template_for_a_prompt_is_refused(tmp_path, text, prompt, message):
    file(tmp_path, text)
    with pytest.raises(InputError, match=f"my.txt'.*{message}"):
        template("my.txt", tmp_path).render(prompt)


# -- what a result says of it -----------------------------------------------------------


class Endobench(ScriptedModel):
    """A model with a template."""

    def __init__(self):
        super().__init__(answers="one")
        self.template_hash = TEMPLATES["endobench"].hash

    def protocol(self):
        return TEMPLATES["endobench"].protocol({"temperature": 0.0})


def audit(tmp_path, model, **options):
    dataset = from_endobench(write(tmp_path / "e.tsv", [row(k) for k in range(6)]))
    space = avtt.QuestionSpace(dataset, ["identity"], oracle=MultipleChoice(faithful=True))
    return avtt.Audit(space, model, half_width=0.2, targets=["overall"], **options)


def test_result_and_report_show_how_the_model_was_asked(tmp_path):
    made = audit(tmp_path, Endobench())
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


def test_a_changed_template_is_noticed_when_an_audit_is_resumed(tmp_path):
    journal = tmp_path / "journal.db"
    audit(tmp_path, Endobench(), journal=journal, seed=1).close()
    other = Endobench()
    other.template_hash = "0123456789abcdef"
    message = r"other words of the prompt, those of 'endobench' with the hash \w+, and .* 0123"
    with pytest.raises(JournalError, match=message):
        audit(tmp_path, other, journal=journal, seed=1)
