"""The 18 questions of MEDVQA-GI, in the order in which MedTest asks them.

Sources: ImageCLEFmed MEDVQA-GI 2023 (questions and answers); MedTest (thesis LYU2308, CUHK
2024), section 4.1.2, which leaves out four questions as too vague for tests.
"""

import re
from dataclasses import dataclass

from .taxonomy import tuples_of

INSTRUMENTS, TEXT = "instruments present", "text present"
INSTRUMENT_COUNT, INSTRUMENT_PLACE = "number of instruments", "instrument position"
POSITIONS = ("abnormality position", "landmark position", INSTRUMENT_PLACE)


@dataclass(frozen=True)
class MedQuestion:
    """A question of MEDVQA-GI.

    Attributes:
        number: Its number in MedTest.
        id: Its id in MEDVQA-GI.
        name: Its name, which is the concept.
        text: Our wording.
        pattern: Regular expression of its wording in MEDVQA-GI, in lower case.
        vague: Whether MedTest leaves it out.
    """

    number: int
    id: int
    name: str
    text: str
    pattern: str
    vague: bool = False


QUESTIONS = tuple(MedQuestion(**fields) for fields in tuples_of("medvqa")["questions"])
NAMES = tuple(question.name for question in QUESTIONS)


def recognised(wording: str) -> str | None:
    """Return the name of the question with a wording of MEDVQA-GI or of ours; None if unknown."""
    for question in QUESTIONS:
        if wording in (question.name, question.text):
            return question.name
    return next((q.name for q in QUESTIONS if re.search(q.pattern, wording.lower())), None)
