"""The 18 questions of MEDVQA-GI, in the order in which MedTest asks them.

Sources: ImageCLEFmed MEDVQA-GI 2023 (questions and answers); MedTest (thesis LYU2308, CUHK
2024), section 4.1.2: four questions are too vague to test by and are left out.
"""

import re
from dataclasses import dataclass

INSTRUMENTS, TEXT = "instruments present", "text present"
INSTRUMENT_COUNT, INSTRUMENT_PLACE = "number of instruments", "instrument position"
POSITIONS = ("abnormality position", "landmark position", INSTRUMENT_PLACE)


@dataclass(frozen=True)
class MedQuestion:
    """``number``: in MedTest; ``id``: in MEDVQA-GI; ``pattern`` finds it by its wording there."""

    number: int
    id: int
    name: str
    text: str
    pattern: str
    vague: bool = False


QUESTIONS = (
    MedQuestion(1, 12, "abnormalities present", "Which abnormalities does the image show?",
                r"\b(any|types? of) .*abnormalit"),
    MedQuestion(2, 13, "landmarks present", "Does the image show an anatomical landmark?",
                r"\bany .*landmark", vague=True),
    MedQuestion(3, 14, INSTRUMENTS, "Does the image show an instrument?", r"\bany .*instrum?[nm]"),
    MedQuestion(4, 1, "polyps removed", "Is every polyp removed?", r"polyps been removed"),
    MedQuestion(5, 7, "number of findings", "How many findings does the image show?",
                r"how many findings"),
    MedQuestion(6, 9, INSTRUMENT_COUNT, "How many instruments does the image show?",
                r"how many instrum?[nm]"),
    MedQuestion(7, 8, "number of polyps", "How many polyps does the image show?",
                r"how many polyps"),
    MedQuestion(8, 3, "box artefact", "Is a green or black box in the image, as devices add it?",
                r"box art[ei]fact"),
    MedQuestion(9, 4, TEXT, "Is any text in the image?", r"there (any )?text"),
    MedQuestion(10, 2, "easy to detect", "Can the finding be seen easily?", r"easy to detect",
                vague=True),
    MedQuestion(11, 5, "abnormality colour", "Which colour does the abnormality have?",
                r"colou?r .*abnormality"),
    MedQuestion(12, 6, "landmark colour", "Which colour does the anatomical landmark have?",
                r"colou?r .*landmark", vague=True),
    MedQuestion(13, 16, "polyp size", "How large is the polyp?", r"size of .*polyp"),
    MedQuestion(14, 17, "polyp type", "Of which type is the polyp?", r"type of polyp"),
    MedQuestion(15, 0, "procedure", "From which kind of procedure is the image?",
                r"type of procedure"),
    MedQuestion(16, 10, POSITIONS[0], "Where in the image is the abnormality?",
                r"where .*abnormality"),
    MedQuestion(17, 15, POSITIONS[1], "Where in the image is the anatomical landmark?",
                r"where .*landmark", vague=True),
    MedQuestion(18, 11, INSTRUMENT_PLACE, "Where in the image is the instrument?",
                r"where .*instrum?[nm]"),
)  # fmt: skip

NAMES = tuple(question.name for question in QUESTIONS)


def recognised(wording: str) -> str | None:
    """The name of the question that is worded so, in MEDVQA-GI or here; None for another."""
    for question in QUESTIONS:
        if wording in (question.name, question.text):
            return question.name
    return next((q.name for q in QUESTIONS if re.search(q.pattern, wording.lower())), None)
