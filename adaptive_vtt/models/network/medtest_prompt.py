"""The prompt of MedTest's question answering (thesis LYU2308, CUHK 2024, section 7.2.1).

Its 18 questions in its words and two sets of sample answers in their order. Choices of ours: where
fewer questions are asked, samples of those alone are shown; a question that is not MedTest's is put
as its data set has it.
"""

from collections.abc import Mapping
from types import MappingProxyType

OPENING = (
    "I'm working on the Visual Question Answering tasks on medical endoscopic images. I will be "
    "sending you some endoscopic images, you need to answer all the questions I give you following "
    "the format of sample answer sets. You must not repeat the question or elaborate on your "
    "answer. From now on, answer all the questions below for the images that I send you."
)
CLOSING = (
    "In case the question is not applicable to the image or you don't know, please answer "
    '"Not relevant". Please follow the format of the sample answers strictly.'
)
NOT_RELEVANT = "Not relevant"

_ROWS = (
    (
        "abnormalities present",
        "What types of abnormalities are there in the image?",
        '"Polyp"',
        '"Polyp"',
    ),
    ("landmarks present", "Are there any anatomical landmarks in the image?", '"No"', '"No"'),
    ("instruments present", "Are there any instruments in the image?", '"Biopsy forceps"', '"No"'),
    ("polyps removed", "Have all polyps been removed?", '"No"', '"No"'),
    ("number of findings", "How many findings are present?", '"2"', '"1"'),
    ("number of instruments", "How many instruments are in the image?", '"1"', '"0"'),
    ("number of polyps", "How many polyps are in the image?", '"1"', '"1"'),
    ("box artefact", "Is there a green/black box artefact?", '"No"', '"Yes"'),
    ("text present", "Is there text?", '"Yes"', '"Yes"'),
    ("easy to detect", "Is this finding easy to detect?", '"Yes"', '"No"'),
    ("abnormality colour", "What color is the abnormality?", '"Red", "Pink"', '"Pink", "White"'),
    (
        "landmark colour",
        "What color is the anatomical landmark?",
        '"Not relevant"',
        '"Not relevant"',
    ),
    ("polyp size", "What is the size of the polyp?", '">20mm"', '"11-20mm"'),
    ("polyp type", "What type of polyp is present?", '"Paris ip"', '"Paris iia"'),
    (
        "procedure",
        "What type of procedure is the image taken from?",
        '"Colonoscopy"',
        '"Colonoscopy"',
    ),
    (
        "abnormality position",
        "Where in the image is the abnormality?",
        '"Center-right", "Upper-left"',
        '"Center", "Lower-right"',
    ),
    (
        "landmark position",
        "Where in the image is the anatomical landmark?",
        '"Not relevant"',
        '"Not relevant"',
    ),
    (
        "instrument position",
        "Where in the image is the instrument?",
        '"Lower-right"',
        '"Not relevant"',
    ),
)

QUESTIONS: Mapping[str, str] = MappingProxyType({name: words for name, words, *_ in _ROWS})
"""Question -> MedTest's words; names as in ``datasets.vqa.medvqa_questions``."""
SAMPLES = tuple(MappingProxyType({row[0]: row[place] for row in _ROWS}) for place in (2, 3))
"""The two sets of sample answers, each answer in quotation marks."""
