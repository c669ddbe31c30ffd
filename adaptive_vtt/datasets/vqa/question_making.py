"""How each kind of question is made from a sample's labels, masks and boxes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from ...relations.visual_prompts import (
    COLOURS,
    Box,
    Region,
    coordinates,
    draw_box,
    draw_contour,
)
from ...types import Image, Sample
from .boxes import distractors, shared
from .marked import CELLS, cell, is_boxed, places, reaches
from .taxonomy import LESION, POSITION, ROLES, TASKS, Role, category_of
from .wording import worded

MANY = ("0", "1", "2", "3", "4", "more than 4")
"""The options of counting questions, always in this order, where few images show more than 4."""
APART = 0.25
"""Least difference of a wrong number from the right one, as a share of it, where the options are
numbers that occur: in a crowd nobody counts to one."""
MARKED = 4
"""Regions that a question about several of them marks, at most."""
AS = ", answer "
"""Between a concept and the right answer in a subject."""


@dataclass(frozen=True)
class Made:
    """A question: its image with whatever is drawn into it, options, and the right one's place.

    ``ordered``: the options stand in an order of their own, which is kept.
    """

    image: Image
    question: str
    options: tuple[str, ...]
    right: int
    task: str
    subtask: str
    ordered: bool = False

    @property
    def category(self) -> str:
        """EndoBench's category of the task."""
        return category_of(self.task)

    def moved(self, place: int) -> "Made":
        """The same with the right option at ``place``: it changes places with the one there."""
        options = list(self.options)
        options[place], options[self.right] = options[self.right], options[place]
        return replace(self, options=tuple(options), right=place)


@dataclass(frozen=True)
class Plan:
    """What questions may be about, and what wrong boxes may be like; see ``build``.

    ``levels``: what is graded -> the grades that occur; ``numbers``: concept -> the numbers that
    occur, where they are too large for MANY.
    """

    concepts: tuple[str, ...]
    counts: Mapping[str, str]
    similar: tuple[float, float]
    overlap: float
    smallest: float
    roles: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    grades: Mapping[str, str] = field(default_factory=dict)
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    numbers: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def role(self, concept: str) -> Role:
        """What the concept is; see ``taxonomy.ROLES``."""
        return ROLES[self.roles.get(concept, LESION)]

    def word(self, concept: str) -> str:
        """What the concept is called."""
        return self.words.get(concept, concept)

    def alike(self, concept: str) -> list[str]:
        """The other concepts of the same role."""
        return [c for c in self.concepts if c != concept and self.role(c) is self.role(concept)]


def subjects(kind: str, sample: Sample, plan: Plan) -> list[str]:
    """What questions of this kind about this sample would be about: their classes.

    The right answer of presence and severity questions belongs to the class, too. Those of
    counting follow from the numbers of all samples: ``counting.counting_subjects``.
    """
    there = [c for c in plan.concepts if sample.truth.get(c) == 1]
    known = [c for c in plan.concepts if c in sample.truth]
    if kind == "presence":
        looked_for = [c for c in known if plan.role(c).presence]
        return [f"{c}{AS}{'Yes' if c in there else 'No'}" for c in looked_for]
    if kind == "type":  # one of them is there, and at least one of its sort is not
        alone = [c for c in there if not set(plan.alike(c)) & set(there)]
        return [c for c in alone if plan.role(c).naming and set(plan.alike(c)) & set(known)]
    if kind == "severity":
        graded = {
            w: as_text(sample.metadata.get(c))
            for w, c in plan.grades.items()
            if sample.truth.get(w, 1) == 1
        }
        return [f"{what}{AS}{grade}" for what, grade in graded.items() if grade]
    return [c for c in there if _is_large(sample, c, plan)]


def class_of(subject: str, plan: Plan) -> str:
    """The class of a subject: large numbers are one, as each occurs in few images."""
    concept, _, answer = subject.partition(AS)
    large = concept in plan.numbers and answer.isdigit() and int(answer) >= len(MANY) - 1
    return f"{concept}{AS}{MANY[-1]}" if large else subject


def _is_large(sample: Sample, concept: str, plan: Plan) -> bool:
    """Whether the box of the largest region is no smaller than it should be."""
    marked = places(sample, concept)
    return bool(marked) and _covers(marked[0], plan)


def _covers(region: Region, plan: Plan) -> bool:
    x1, y1, x2, y2 = region.box
    return (x2 - x1) * (y2 - y1) >= plan.smallest * region.mask.size


def _presence(sample: Sample, subject: str, plan: Plan, rng: np.random.Generator) -> Made | None:
    concept, _, answer = subject.partition(AS)
    question = worded("presence", rng, subject=plan.word(concept))
    task, subtask = plan.role(concept).presence or ("", "")
    right = int(answer == "No")
    return Made(_copy(sample), question, ("Yes", "No"), right, task, subtask, ordered=True)


def _type(sample: Sample, subject: str, plan: Plan, rng: np.random.Generator) -> Made | None:
    absent = [c for c in plan.alike(subject) if sample.truth.get(c) == 0]
    task, subtask = plan.role(subject).naming or ("", "")
    return _named(_copy(sample), "type", subject, absent, plan, rng, task, subtask)


def _severity(sample: Sample, subject: str, plan: Plan, rng: np.random.Generator) -> Made | None:
    what, _, right = subject.partition(AS)
    others = [level for level in plan.levels[what] if level != right]
    if not others:
        return None
    question = worded("severity", rng, subject=plan.word(what), column=plan.grades[what])
    task, subtask = ROLES["grade"].naming or ("", "")
    return _asked(_copy(sample), question, right, others, rng, task, subtask)


def _counting(sample: Sample, subject: str, plan: Plan, rng: np.random.Generator) -> Made | None:
    concept, _, answer = subject.partition(AS)
    boxed = concept not in sample.masks and sample.boxes
    question = worded("counting boxes" if boxed else "counting", rng, subject=plan.word(concept))
    task, subtask = plan.role(concept).counting or ("", "")
    image = _copy(sample)
    if concept not in plan.numbers:
        return Made(image, question, MANY, MANY.index(answer), task, subtask, ordered=True)
    right = int(answer)
    apart = least_apart(right)
    others: list[int] = []
    for number in rng.permutation(np.array(plan.numbers[concept])).tolist():
        if all(abs(number - other) >= apart for other in (right, *others)):
            others.append(number)
    wrong = [str(number) for number in others]
    return _asked(image, question, answer, wrong, rng, task, subtask) if wrong else None


def _position(sample: Sample, subject: str, plan: Plan, rng: np.random.Generator) -> Made | None:
    marked = places(sample, subject)
    right = cell(marked[0]) if len(marked) == 1 else None
    if right is None:
        return None
    others = [part for part in CELLS if part != right]
    question = worded("position", rng, subject=plan.word(subject))
    return _asked(_copy(sample), question, right, others, rng, POSITION, POSITION)


def _grounding(sample: Sample, subject: str, plan: Plan, rng: np.random.Generator) -> Made | None:
    found = _boxes(sample, subject, plan, rng)
    if found is None:
        return None
    right, *wrong = (str(list(box)) for box in found)
    question = worded("grounding", rng, subject=plan.word(subject))
    return _asked(_copy(sample), question, right, wrong, rng, _GROUNDING, _GROUNDING)


def _selection(sample: Sample, subject: str, plan: Plan, rng: np.random.Generator) -> Made | None:
    found = _boxes(sample, subject, plan, rng)
    if found is None:
        return None
    names = [str(c) for c in rng.permutation(list(COLOURS))[: len(found)]]
    image = _copy(sample)
    for box, colour in zip(found, names, strict=True):
        draw_box(image, box, colour)
    question = worded("selection", rng, subject=plan.word(subject))
    return _asked(image, question, names[0], names[1:], rng, _SELECTION, _SELECTION)


def _recognition(kind: str, subtask: str) -> "Maker":
    """The maker of questions that mark one region in one way."""

    def make(sample: Sample, subject: str, plan: Plan, rng: np.random.Generator) -> Made | None:
        clean = _clean(sample, subject, plan)
        if clean is None or (kind == "contour" and is_boxed(sample, subject)):
            return None
        marked, others = clean
        image, colour = _copy(sample), str(rng.choice(list(COLOURS)))
        if kind == "box":
            draw_box(image, marked.box, colour)
        if kind == "contour":
            draw_contour(image, marked.mask, colour)
        told = {"colour": colour, "box": coordinates([marked])}
        return _named(image, kind, subject, others, plan, rng, _RECOGNITION, subtask, **told)

    return make


def _multi(sample: Sample, subject: str, plan: Plan, rng: np.random.Generator) -> Made | None:
    """Regions of several concepts are marked in colours, and one colour is asked about."""
    clean = _clean(sample, subject, plan)
    if clean is None:
        return None
    marked, others = clean
    more = _elsewhere(sample, others, plan, marked)
    if not more:
        return None
    shown = [marked, *more]
    outlined = not any(is_boxed(sample, region.concept) for region in shown) and rng.random() < 0.5
    image, names = _copy(sample), [str(c) for c in rng.permutation(list(COLOURS))]
    for region, colour in zip(shown, names, strict=False):
        if outlined:
            draw_contour(image, region.mask, colour)
        else:
            draw_box(image, region.box, colour)
    told = {"colour": names[0], "mark": "outline" if outlined else "box"}
    return _named(image, "multi", subject, others, plan, rng, _RECOGNITION, _MULTI, **told)


def _elsewhere(sample: Sample, concepts: Sequence[str], plan: Plan, marked: Region) -> list[Region]:
    """The largest regions of other concepts, one of each first, that do not cover each other."""
    queue = sorted(
        ((rank, region) for c in concepts for rank, region in enumerate(places(sample, c))),
        key=lambda pair: (pair[0], -int(pair[1].mask.sum())),
    )
    found: list[Region] = []
    for _, region in queue:
        apart = all(shared(region.box, other.box) <= plan.overlap for other in (marked, *found))
        if apart and _covers(region, plan) and len(found) < MARKED - 1:
            found.append(region)
    return found


Maker = Callable[[Sample, str, Plan, np.random.Generator], Made | None]
_GROUNDING, _SELECTION, _RECOGNITION = (task.name for task in TASKS[-3:])
_BOX, _CONTOUR, _MULTI, _COORDINATE = (name for name, _, _ in TASKS[-1].subtasks)

MAKERS: Mapping[str, Maker] = MappingProxyType(
    {
        "presence": _presence,
        "type": _type,
        "severity": _severity,
        "counting": _counting,
        "position": _position,
        "grounding": _grounding,
        "selection": _selection,
        "box": _recognition("box", _BOX),
        "contour": _recognition("contour", _CONTOUR),
        "multi": _multi,
        "coordinate": _recognition("coordinate", _COORDINATE),
    }
)
"""Every kind of question; what a maker cannot make is None."""


def _named(
    image: Image,
    kind: str,
    right: str,
    others: Sequence[str],
    plan: Plan,
    rng: np.random.Generator,
    task: str,
    subtask: str,
    **told: Any,
) -> Made | None:
    """A question whose options are names of concepts; none where there is no wrong one."""
    if not others:
        return None
    question = worded(kind, rng, **told)
    wrong = [plan.word(concept) for concept in others]
    return _asked(image, question, plan.word(right), wrong, rng, task, subtask)


def _asked(
    image: Image,
    question: str,
    right: str,
    wrong: Sequence[str],
    rng: np.random.Generator,
    task: str,
    subtask: str,
) -> Made:
    """A question with at most three of the wrong options, all in random order."""
    few = [str(text) for text in rng.permutation(list(wrong))[:3]]
    options = [right, *few]
    order = rng.permutation(len(options)).tolist()
    shown = tuple(options[k] for k in order)
    return Made(image, question, shown, order.index(0), task, subtask)


def _boxes(sample: Sample, subject: str, plan: Plan, rng: np.random.Generator) -> list[Box] | None:
    """The right box and three wrong ones; None where the subject is in several places."""
    marked = places(sample, subject)
    if len(marked) != 1:
        return None
    image = sample.require_image()
    wrong = distractors(image, marked[0].box, 3, plan.similar, plan.overlap, rng)
    return None if wrong is None else [marked[0].box, *wrong]


def _clean(sample: Sample, subject: str, plan: Plan) -> tuple[Region, list[str]] | None:
    """The largest region of which something of the same sort is a wrong name, and those names."""
    for region in places(sample, subject):
        if not _covers(region, plan):
            return None
        alike = plan.alike(subject)
        others = [c for c in alike if not reaches(sample, c, region, plan.overlap)]
        if others:
            return region, others
    return None


def as_text(value: Any) -> str:
    """A metadata value as text, "" for one that is missing."""
    return "" if value is None or value != value else str(value).strip()


def least_apart(right: int) -> float:
    """How far from the right number the other options are."""
    return max(1, APART * right)


def _copy(sample: Sample) -> Image:
    return np.ascontiguousarray(sample.require_image().copy())
