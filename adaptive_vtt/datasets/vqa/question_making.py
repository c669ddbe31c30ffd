"""How each kind of question is made from a sample's labels and masks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from ...errors import InputError
from ...relations.visual_prompts import (
    COLOURS,
    Box,
    Region,
    coordinates,
    draw_box,
    draw_contour,
    regions,
)
from ...types import Image, Sample
from .boxes import distractors
from .taxonomy import TASKS

MANY = ("0", "1", "2", "3", "4", "more than 4")
"""The options of counting questions, always in this order."""

_CATEGORY = {task.name: task.category for task in TASKS}

WORDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "presence": ("Is there any {subject} in this image?", "Does the image show any {subject}?"),
        "type": ("What does this image show?", "Which of these is to be seen in the image?"),
        "counting": (
            "How many separate regions of {subject} are in this image?",
            "Count the regions of {subject}: how many does the image show?",
        ),
        "grounding": (
            "Which box [x1, y1, x2, y2], in pixels, holds the {subject}?",
            "Where is the {subject}? Choose its box, [x1, y1, x2, y2] in pixels.",
        ),
        "selection": (
            "Which of the boxes is around the {subject}?",
            "What colour has the box that holds the {subject}?",
        ),
        "box": ("What is inside the {colour} box?", "What does the {colour} box mark?"),
        "contour": ("What is inside the {colour} outline?", "What does the {colour} outline mark?"),
        "coordinate": (
            "What is in the box {box}, in pixels [x1, y1, x2, y2]?",
            "The box {box} ([x1, y1, x2, y2] in pixels) holds something. What is it?",
        ),
    }
)
"""Wordings of each kind; one is drawn per question."""


@dataclass(frozen=True)
class Made:
    """A question: its image with whatever is drawn into it, options, and the right one's place."""

    image: Image
    question: str
    options: tuple[str, ...]
    right: int
    task: str
    subtask: str

    @property
    def category(self) -> str:
        """EndoBench's category of the task; "" for a task that is not EndoBench's."""
        return _CATEGORY.get(self.task, "")


@dataclass(frozen=True)
class Plan:
    """What questions may be about, and what wrong boxes may be like; see ``build``."""

    concepts: tuple[str, ...]
    counts: Mapping[str, str]
    similar: tuple[float, float]
    overlap: float
    smallest: float


def subjects(kind: str, sample: Sample, plan: Plan) -> list[str]:
    """What questions of this kind about this sample would be about: their classes.

    The right answer of presence and counting questions belongs to the class, too.
    """
    there = [c for c in plan.concepts if sample.truth.get(c) == 1]
    known = [c for c in plan.concepts if c in sample.truth]
    if kind == "presence":
        return [f"{c}{_AS}{'Yes' if c in there else 'No'}" for c in known]
    if kind == "type":  # one of them is there, and at least one is not
        return there if len(there) == 1 and len(known) > 1 else []
    if kind == "counting":
        return [f"{c}{_AS}{_count(sample, c, plan)}" for c in known if _countable(sample, c, plan)]
    return [c for c in there if c in sample.masks and _is_large(sample, c, plan)]


def _is_large(sample: Sample, concept: str, plan: Plan) -> bool:
    """Whether the box of the largest region is no smaller than it should be."""
    marked = regions({concept: sample.masks[concept]}, 1)
    if not marked:
        return False
    x1, y1, x2, y2 = marked[0].box
    return (x2 - x1) * (y2 - y1) >= plan.smallest * sample.masks[concept].size


_AS = ", answer "


def _presence(sample: Sample, subject: str, plan: Plan, rng: np.random.Generator) -> Made | None:
    concept, _, answer = subject.partition(_AS)
    question = _words("presence", rng, subject=concept)
    right = int(answer == "No")
    return Made(_copy(sample), question, ("Yes", "No"), right, "Lesion Presence", "Lesion Presence")


def _type(sample: Sample, subject: str, plan: Plan, rng: np.random.Generator) -> Made | None:
    absent = [c for c in plan.concepts if sample.truth.get(c) == 0]
    return _named(_copy(sample), "type", subject, absent, rng, _LESION_TYPE, _LESION_TYPE)


def _counting(sample: Sample, subject: str, plan: Plan, rng: np.random.Generator) -> Made | None:
    concept, _, answer = subject.partition(_AS)
    right = MANY.index(answer)
    question = _words("counting", rng, subject=concept)
    return Made(_copy(sample), question, MANY, right, _QUANTITY, _QUANTITY)


def _grounding(sample: Sample, subject: str, plan: Plan, rng: np.random.Generator) -> Made | None:
    found = _boxes(sample, subject, plan, rng)
    if found is None:
        return None
    options, right = _shuffled([str(list(box)) for box in found], rng)
    question = _words("grounding", rng, subject=subject)
    return Made(_copy(sample), question, options, right, "Visual Grounding", "Visual Grounding")


def _selection(sample: Sample, subject: str, plan: Plan, rng: np.random.Generator) -> Made | None:
    found = _boxes(sample, subject, plan, rng)
    if found is None:
        return None
    names = [str(c) for c in rng.permutation(list(COLOURS))[: len(found)]]
    image = _copy(sample)
    for box, colour in zip(found, names, strict=True):
        draw_box(image, box, colour)
    options, right = _shuffled(names, rng)
    question = _words("selection", rng, subject=subject)
    return Made(image, question, options, right, "Region Selection", "Region Selection")


def _recognition(kind: str, subtask: str) -> "Maker":
    """The maker of questions that mark one region in one way."""

    def make(sample: Sample, subject: str, plan: Plan, rng: np.random.Generator) -> Made | None:
        marked = _largest(sample, subject)
        image, colour = _copy(sample), str(rng.choice(list(COLOURS)))
        if kind == "box":
            draw_box(image, marked.box, colour)
        if kind == "contour":
            draw_contour(image, marked.mask, colour)
        others = [c for c in plan.concepts if c != subject and not _reaches(sample, c, marked)]
        told = {"colour": colour, "box": coordinates([marked])}
        return _named(image, kind, subject, others, rng, "Region Recognition", subtask, **told)

    return make


Maker = Callable[[Sample, str, Plan, np.random.Generator], Made | None]
_LESION_TYPE, _QUANTITY = "Lesion Type Identification", "Lesion Quantification"
_BOX, _CONTOUR, _, _COORDINATE = (name for name, _, _ in TASKS[-1].subtasks)

MAKERS: Mapping[str, Maker] = MappingProxyType(
    {
        "presence": _presence,
        "type": _type,
        "counting": _counting,
        "grounding": _grounding,
        "selection": _selection,
        "box": _recognition("box", _BOX),
        "contour": _recognition("contour", _CONTOUR),
        "coordinate": _recognition("coordinate", _COORDINATE),
    }
)
"""Every kind of question; what a maker cannot make is None."""


def _named(
    image: Image,
    kind: str,
    right: str,
    others: Sequence[str],
    rng: np.random.Generator,
    task: str,
    subtask: str,
    **told: Any,
) -> Made | None:
    """A question whose options are names, at most four; none where there is no wrong one."""
    if not others:
        return None
    wrong = [str(c) for c in rng.permutation(list(others))[:3]]
    options, place = _shuffled([right, *wrong], rng)
    return Made(image, _words(kind, rng, **told), options, place, task, subtask)


def _boxes(sample: Sample, subject: str, plan: Plan, rng: np.random.Generator) -> list[Box] | None:
    """The right box and three wrong ones; None where the subject is in several places."""
    marked = regions({subject: sample.masks[subject]})
    if len(marked) != 1:
        return None
    image = _copy(sample)
    wrong = distractors(image, marked[0].box, 3, plan.similar, plan.overlap, rng)
    return None if wrong is None else [marked[0].box, *wrong]


def _largest(sample: Sample, subject: str) -> Region:
    return regions({subject: sample.masks[subject]}, 1)[0]


def _reaches(sample: Sample, concept: str, marked: Region) -> bool:
    """Whether some of another concept is in the marked box, so that it is no wrong answer."""
    x1, y1, x2, y2 = marked.box
    mask = sample.masks.get(concept)
    return mask is not None and bool(mask[y1:y2, x1:x2].any())


def _countable(sample: Sample, concept: str, plan: Plan) -> bool:
    return concept in plan.counts or concept in sample.masks or sample.truth.get(concept) == 0


def _count(sample: Sample, concept: str, plan: Plan) -> str:
    """The number as an option."""
    if concept in plan.counts:
        column = plan.counts[concept]
        if column not in sample.metadata:
            raise InputError(f"build: sample {sample.id!r} has no metadata column {column!r}")
        number = int(sample.metadata[column])
    elif sample.truth.get(concept) == 0:
        number = 0
    else:
        number = len(regions({concept: sample.masks[concept]}))
    return MANY[min(number, len(MANY) - 1)]


def _words(kind: str, rng: np.random.Generator, **told: Any) -> str:
    wording = WORDS[kind][int(rng.integers(len(WORDS[kind])))]
    return wording.format(**told)


def _shuffled(options: Sequence[str], rng: np.random.Generator) -> tuple[tuple[str, ...], int]:
    """The options in random order, and where the first one went."""
    order = rng.permutation(len(options)).tolist()
    return tuple(options[k] for k in order), order.index(0)


def _copy(sample: Sample) -> Image:
    if sample.image is None:
        raise InputError(f"sample {sample.id!r}: expected an image to ask about, got none")
    return np.ascontiguousarray(sample.image.copy())
