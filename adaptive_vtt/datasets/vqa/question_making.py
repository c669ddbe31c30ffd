"""How each kind of question is made from a sample's labels, masks and boxes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from ...errors import InputError
from ...relations.visual_prompts import COLOURS, Box, Region, coordinates, draw_box, draw_contour
from ...types import Image, Sample
from .marked import CELLS, cell, distractors, is_boxed, places, reaches, shared
from .taxonomy import POSITION, ROLES, TASKS, Role, category_of
from .wordings import WORDS, role_of

MANY = ("0", "1", "2", "3", "4", "more than 4")
"""The options of counting questions, always in this order."""
SIMILAR = (0.8, 1.25)
"""Sides of wrong boxes over those of the right one."""
OVERLAP = 0.1
"""Share of the smaller of two boxes that both may cover, at most."""
SMALLEST = 0.002
"""Least share of the image that the box of a region covers of which anything is asked."""
MARKED = 4
"""Regions that a question about several of them marks, at most."""
Task = tuple[str, str]
"""EndoBench's task and subtask that a question belongs to."""
NO_TASK: Task = ("", "")
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
        return category_of(self.task)

    def moved(self, place: int) -> "Made":
        """The same with the right option at ``place``: it changes places with the one there."""
        options = list(self.options)
        options[place], options[self.right] = options[self.right], options[place]
        return replace(self, options=tuple(options), right=place)


@dataclass(frozen=True)
class Plan:
    """What questions may be about; see ``choose``.

    ``levels``: what is graded -> the grades that occur; ``wordings``: as ``wordings.WORDS``.
    """

    concepts: tuple[str, ...]
    counts: Mapping[str, str] = field(default_factory=dict)
    roles: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    grades: Mapping[str, str] = field(default_factory=dict)
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    wordings: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: WORDS)

    def worded(self, kind: str, rng: np.random.Generator, **told: Any) -> str:
        """A question of this kind, by one of its wordings."""
        there = self.wordings[kind]
        return there[int(rng.integers(len(there)))].format(**told)

    def role(self, concept: str) -> Role:
        return ROLES[self.role_name(concept)]

    def role_name(self, concept: str) -> str:
        """The name of its role: the one given, else the one that its words tell of."""
        return self.roles.get(concept) or role_of(self.word(concept))

    def word(self, concept: str) -> str:
        return self.words.get(concept, concept)

    def alike(self, concept: str) -> list[str]:
        """The other concepts of the same role."""
        return [c for c in self.concepts if c != concept and self.role(c) is self.role(concept)]


def subjects(kind: str, sample: Sample, plan: Plan) -> list[str]:
    """What questions of this kind about this sample would be about: their classes.

    The right answer of presence, severity and counting questions belongs to the class, too.
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
    if kind == "counting":
        numbers = {c: _count(sample, c, plan) for c in known if plan.role(c).counting}
        return [f"{c}{AS}{MANY[min(n, 5)]}" for c, n in numbers.items() if n is not None]
    marked = {c: places(sample, c) for c in there}
    return [c for c, found in marked.items() if found and _covers(found[0], plan)]


def _covers(region: Region, plan: Plan) -> bool:
    x1, y1, x2, y2 = region.box
    return (x2 - x1) * (y2 - y1) >= SMALLEST * region.mask.size


def _presence(sample: Sample, subject: str, plan: Plan, rng: np.random.Generator) -> Made | None:
    concept, _, answer = subject.partition(AS)
    question = plan.worded("presence", rng, subject=plan.word(concept))
    task = plan.role(concept).presence or NO_TASK
    return Made(_copy(sample), question, ("Yes", "No"), int(answer == "No"), *task, ordered=True)


def _type(sample: Sample, subject: str, plan: Plan, rng: np.random.Generator) -> Made | None:
    absent = [c for c in plan.alike(subject) if sample.truth.get(c) == 0]
    kind = f"type/{plan.role_name(subject)}"
    return _named(_copy(sample), kind, subject, absent, plan, rng, plan.role(subject).naming)


def _severity(sample: Sample, subject: str, plan: Plan, rng: np.random.Generator) -> Made | None:
    what, _, right = subject.partition(AS)
    others = [level for level in plan.levels[what] if level != right]
    if not others:
        return None
    question = plan.worded("severity", rng, subject=plan.word(what), column=plan.grades[what])
    return _asked(_copy(sample), question, right, others, rng, ROLES["grade"].naming)


def _counting(sample: Sample, subject: str, plan: Plan, rng: np.random.Generator) -> Made | None:
    concept, _, answer = subject.partition(AS)
    kind = "counting boxes" if is_counted_in_boxes(sample, subject) else "counting"
    question = plan.worded(kind, rng, subject=plan.word(concept))
    task = plan.role(concept).counting or NO_TASK
    return Made(_copy(sample), question, MANY, MANY.index(answer), *task, ordered=True)


def _position(sample: Sample, subject: str, plan: Plan, rng: np.random.Generator) -> Made | None:
    marked = places(sample, subject)
    right = cell(marked[0]) if len(marked) == 1 else None
    if right is None:
        return None
    others = [part for part in CELLS if part != right]
    question = plan.worded("position", rng, subject=plan.word(subject))
    return _asked(_copy(sample), question, right, others, rng, (POSITION, POSITION))


def _grounding(sample: Sample, subject: str, plan: Plan, rng: np.random.Generator) -> Made | None:
    found = _boxes(sample, subject, plan, rng)
    if found is None:
        return None
    right, *wrong = (str(list(box)) for box in found)
    question = plan.worded("grounding", rng, subject=plan.word(subject))
    return _asked(_copy(sample), question, right, wrong, rng, _GROUNDING)


def _selection(sample: Sample, subject: str, plan: Plan, rng: np.random.Generator) -> Made | None:
    found = _boxes(sample, subject, plan, rng)
    if found is None:
        return None
    names = [str(c) for c in rng.permutation(list(COLOURS))[: len(found)]]
    image = _copy(sample)
    for box, colour in zip(found, names, strict=True):
        draw_box(image, box, colour)
    question = plan.worded("selection", rng, subject=plan.word(subject))
    return _asked(image, question, names[0], names[1:], rng, _SELECTION)


def _recognition(kind: str, task: Task) -> "Maker":
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
        return _named(image, kind, subject, others, plan, rng, task, **told)

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
    return _named(image, "multi", subject, others, plan, rng, _MULTI, **told)


def _elsewhere(sample: Sample, concepts: Sequence[str], plan: Plan, marked: Region) -> list[Region]:
    """The largest regions of other concepts, one of each first, that do not cover each other."""
    queue = sorted(
        ((rank, region) for c in concepts for rank, region in enumerate(places(sample, c))),
        key=lambda pair: (pair[0], -int(pair[1].mask.sum())),
    )
    found: list[Region] = []
    for _, region in queue:
        apart = all(shared(region.box, other.box) <= OVERLAP for other in (marked, *found))
        if apart and _covers(region, plan) and len(found) < MARKED - 1:
            found.append(region)
    return found


Maker = Callable[[Sample, str, Plan, np.random.Generator], Made | None]
_GROUNDING, _SELECTION = ((task.name, task.name) for task in TASKS[-3:-1])
_BOX, _CONTOUR, _MULTI, _COORDINATE = ((TASKS[-1].name, name) for name, _, _ in TASKS[-1].subtasks)

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
    task: Task | None,
    **told: Any,
) -> Made | None:
    """A question whose options are names of concepts; none where there is no wrong one."""
    if not others:
        return None
    question = plan.worded(kind, rng, **told)
    wrong = [plan.word(concept) for concept in others]
    return _asked(image, question, plan.word(right), wrong, rng, task)


def _asked(
    image: Image,
    question: str,
    right: str,
    wrong: Sequence[str],
    rng: np.random.Generator,
    task: Task | None,
) -> Made:
    """A question with at most three of the wrong options, all in random order."""
    few = [str(text) for text in rng.permutation(list(wrong))[:3]]
    options = [right, *few]
    order = rng.permutation(len(options)).tolist()
    shown = tuple(options[k] for k in order)
    return Made(image, question, shown, order.index(0), *(task or NO_TASK))


def _boxes(sample: Sample, subject: str, plan: Plan, rng: np.random.Generator) -> list[Box] | None:
    """The right box and three wrong ones; None where the subject is in several places."""
    marked = places(sample, subject)
    if len(marked) != 1:
        return None
    image = sample.require_image()
    wrong = distractors(image, marked[0].box, 3, SIMILAR, OVERLAP, rng)
    return None if wrong is None else [marked[0].box, *wrong]


def _clean(sample: Sample, subject: str, plan: Plan) -> tuple[Region, list[str]] | None:
    """The largest region of which something of the same sort is a wrong name, and those names."""
    for region in places(sample, subject):
        if not _covers(region, plan):
            return None
        alike = plan.alike(subject)
        others = [c for c in alike if not reaches(sample, c, region, OVERLAP)]
        if others:
            return region, others
    return None


def is_counted_in_boxes(sample: Sample, subject: str) -> bool:
    """Whether what is counted are objects with boxes, and no regions."""
    return subject.partition(AS)[0] not in sample.masks and bool(sample.boxes)


def as_text(value: Any) -> str:
    """A metadata value as text, "" for one that is missing."""
    return "" if value is None or value != value else str(value).strip()


def _copy(sample: Sample) -> Image:
    return np.ascontiguousarray(sample.require_image().copy())


def _count(sample: Sample, concept: str, plan: Plan) -> int | None:
    """How many there are: as a column says, else boxes, else connected pieces of the mask; None
    where nobody counted, as an empty cell says, too.

    Raises InputError for a column that is not there, or holds no whole number.
    """
    if concept not in plan.counts:
        marked = concept in sample.masks or is_boxed(sample, concept)
        absent = sample.truth.get(concept) == 0
        return 0 if absent else len(places(sample, concept)) if marked else None
    column = plan.counts[concept]
    if column not in sample.metadata:
        raise InputError(f"build: sample {sample.id!r} has no metadata column {column!r}")
    value = sample.metadata[column]
    if as_text(value) == "":
        return None
    try:
        number = int(value)
    except (TypeError, ValueError):
        number = -1
    if number < 0:
        raise InputError(
            f"build: sample {sample.id!r}, column {column!r}: expected a whole number of "
            f"{concept!r}, 0 or more, got {value!r}"
        )
    return number
