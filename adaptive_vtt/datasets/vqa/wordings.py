"""The words of questions: five to eight ways to ask each, as EndoBench has (appendix A.3).

They are our own, in plain English; ``paraphrasing`` gets more of a chat model. Which thing is named
decides the words, too: a landmark is asked for otherwise than an organ.
"""

from collections.abc import Mapping
from types import MappingProxyType

_NAMING = (
    "Which {thing} does this image show?",
    "What {thing} can be seen in the image?",
    "Which of these is the {thing} in this image?",
    "Looking at this image, which {thing} do you recognise?",
    "Name the {thing} that the image shows.",
    "Choose the {thing} that fits this image.",
)
_THINGS = {
    "lesion": "finding",
    "polyp type": "type of polyp",
    "grade": "grade of severity",
    "landmark": "anatomical landmark",
    "organ": "organ",
    "preparation": "quality of bowel preparation",
    "phase": "phase of the operation",
    "step": "step of the operation",
    "action": "surgical action",
    "treatment": "treatment",
}
"""What an answer is called, by the role of labels that EndoBench asks to be named."""

WORDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "presence": (
            "Can any {subject} be seen in this image?",
            "Does the image show any {subject}?",
            "Is any {subject} visible in this image?",
            "Is there any {subject} in the image?",
            "Looking at this image, do you find any {subject}?",
        ),
        **{
            f"type/{role}": tuple(words.replace("{thing}", thing) for words in _NAMING)
            for role, thing in _THINGS.items()
        },
        "severity": (
            "How severe is the {subject} in this image, as {column}?",
            "Which grade ({column}) has the {subject} in this image?",
            "Going by {column}, how would you grade the {subject} in the image?",
            "Grade the {subject} that this image shows, as {column}.",
            "What {column} would you give to the {subject} in this image?",
        ),
        "counting": (
            "How many separate regions of {subject} are in this image?",
            "Count the regions of {subject}: how many does the image show?",
            "How many regions of {subject}, apart from each other, can be seen?",
            "What is the number of separate regions of {subject} in the image?",
            "Looking at this image, how many separate regions of {subject} do you find?",
        ),
        "counting boxes": (
            "How many objects of the kind {subject} are in this image?",
            "Count the objects of the kind {subject}: how many does the image show?",
            "How many objects of the kind {subject} can be seen?",
            "What is the number of objects of the kind {subject} in the image?",
            "Looking at this image, how many objects of the kind {subject} do you find?",
        ),
        "position": (
            "In which part of the image is the {subject}?",
            "The image is cut into three by three parts. Which of them holds the {subject}?",
            "Which of the nine parts of the image shows the {subject}?",
            "Where in the image does the {subject} lie?",
            "Say in which part of this image the {subject} can be seen.",
        ),
        "grounding": (
            "Which box [x1, y1, x2, y2], in pixels, holds the {subject}?",
            "Where is the {subject}? Choose its box, [x1, y1, x2, y2] in pixels.",
            "Which coordinates, [x1, y1, x2, y2] in pixels, are those of the {subject}?",
            "Locate the {subject} in this image: which box is it, [x1, y1, x2, y2] in pixels?",
            "In which of these boxes, [x1, y1, x2, y2] in pixels, does the {subject} lie?",
        ),
        "selection": (
            "Which of the boxes is around the {subject}?",
            "What colour has the box that holds the {subject}?",
            "Which box in the image marks the {subject}?",
            "The {subject} lies in one of the boxes. Which colour has it?",
            "Choose the colour of the box that is drawn around the {subject}.",
        ),
        "box": (
            "What is inside the {colour} box?",
            "What does the {colour} box mark?",
            "Which of these fits what the {colour} box holds?",
            "Name what the {colour} box in this image is drawn around.",
            "What can be seen in the {colour} box?",
        ),
        "contour": (
            "What is inside the {colour} outline?",
            "What does the {colour} outline mark?",
            "Which of these fits what the {colour} outline encloses?",
            "Name what the {colour} outline in this image is drawn around.",
            "What can be seen within the {colour} outline?",
        ),
        "multi": (
            "Several regions are marked. What does the {colour} {mark} mark?",
            "Of the regions that are marked, what is in the {colour} {mark}?",
            "Marks of several colours are drawn. Which of these fits the {colour} {mark}?",
            "Name what lies in the {colour} {mark}, among the regions that are marked.",
            "Which of these is marked by the {colour} {mark}, and not by the others?",
        ),
        "coordinate": (
            "What is in the box {box}, in pixels [x1, y1, x2, y2]?",
            "The box {box} ([x1, y1, x2, y2] in pixels) holds something. What is it?",
            "What can be seen at {box}, in pixels [x1, y1, x2, y2]?",
            "Which of these lies in the box {box}, [x1, y1, x2, y2] in pixels?",
            "Name what is found at {box} ([x1, y1, x2, y2] in pixels) in this image.",
        ),
    }
)
"""Wordings of each kind; one is drawn per question. Those of several regions name what is drawn by
``mark`` alone, by which the table's reader tells boxes from outlines."""
