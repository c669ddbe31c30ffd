"""How each kind of question is made from a sample's labels, masks and boxes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ...relations.visual_prompts import COLOURS, Region, coordinates, draw_box, draw_contour
from ...types import Image, Sample
from .marked import distractors, is_boxed, places, reaches, shared
from .question_table import Line
from .taxonomy import PLACES, ROLES, WORDS, Role, category_of, role_of

MANY = ("0", "1", "2", "3", "4", "more than 4")
"""The options of counting questions, always in this order."""
ORDERED = ("presence", "counting")
"""Kinds of questions whose options have an order of their own, which is kept."""
SIMILAR = (0.8, 1.25)
"""Sides of wrong boxes over those of the right one."""
OVERLAP = 0.1
"""Share of the smaller of two boxes that both may cover, at most."""
SMALLEST = 0.002
"""Least share of the image that the box of a region covers of which anything is asked."""
MARKED = 4
"""Regions that a question about several of them marks, at most."""
AS = ", answer "
"""Between a concept and the right answer in the name of a class."""


@dataclass(frozen=True)
class Plan:
    """What questions may be about, see ``choose``, and in which words, see ``taxonomy.WORDS``."""

    concepts: tuple[str, ...]
    roles: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    wordings: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: WORDS)

    def role(self, concept: str) -> Role:
        return ROLES[self.role_name(concept)]

    def role_name(self, concept: str) -> str:
        """Return the name of a concept's role: the one given, else what its words tell of."""
        return self.roles.get(concept) or role_of(self.word(concept))

    def word(self, concept: str) -> str:
        return self.words.get(concept, concept)

    def alike(self, concept: str) -> list[str]:
        """Return the other concepts of the same role."""
        return [c for c in self.concepts if c != concept and self.role(c) is self.role(concept)]

    def wording(self, kind: str, sample: Sample, concept: str) -> str:
        """Return the key in ``wordings`` of a question of this kind."""
        # boxes are around objects; the pieces of a mask are regions
        counting = "counting" if concept in sample.masks or not sample.boxes else "counting boxes"
        return {"type": f"type/{self.role_name(concept)}", "counting": counting}.get(kind, kind)


def classes(kind: str, sample: Sample, plan: Plan) -> list[str]:
    """Return the classes of the questions of this kind about a sample.

    A class is a concept and, in presence and counting questions, the right answer.
    """
    known = [c for c in plan.concepts if c in sample.truth]
    there = [c for c in known if sample.truth[c] == 1]
    if kind == "presence":
        return [f"{c}{AS}{'Yes' if c in there else 'No'}" for c in known if plan.role(c).presence]
    if kind == "type":  # one of them is there, and at least one of its sort is not
        alone = [c for c in there if not set(plan.alike(c)) & set(there)]
        return [c for c in alone if plan.role(c).naming and set(plan.alike(c)) & set(known)]
    marked = {c: places(sample, c) for c in there}
    if kind == "counting":  # nobody counted what is there without mask or box
        numbers = {c: len(marked.get(c, ())) for c in known if plan.role(c).counting}
        return [f"{c}{AS}{MANY[min(n, 5)]}" for c, n in numbers.items() if n or c not in there]
    return [c for c in there if marked[c] and _covers(marked[c][0])]


def _covers(region: Region) -> bool:
    x1, y1, x2, y2 = region.box
    return (x2 - x1) * (y2 - y1) >= SMALLEST * region.mask.size


@dataclass(frozen=True)
class Case:
    """What a question is made of: a sample, the question's kind and class, and random numbers."""

    sample: Sample
    kind: str
    about: str
    plan: Plan
    rng: np.random.Generator

    @property
    def concept(self) -> str:
        return self.about.partition(AS)[0]

    @property
    def task(self) -> tuple[str, str]:
        """EndoBench's task and subtask."""
        role = self.plan.role(self.concept)
        by_role = {"presence": role.presence, "type": role.naming, "counting": role.counting}
        return by_role.get(self.kind) or PLACES[self.kind]

    def image(self) -> Image:
        """Return a copy of the sample's image, to draw into."""
        return np.ascontiguousarray(self.sample.require_image().copy())

    def colours(self) -> list[str]:
        """Return all colours in random order."""
        return [str(colour) for colour in self.rng.permutation(list(COLOURS))]

    def words(self, **fill: str) -> str:
        """Return the question in one of its wordings."""
        wordings = self.plan.wordings[self.plan.wording(self.kind, self.sample, self.concept)]
        wording = wordings[int(self.rng.integers(len(wordings)))]
        return wording.format(subject=self.plan.word(self.concept), **fill)

    def line(self, image: Image, question: str, options: Sequence[str], right: int) -> Line:
        category = category_of(self.task[0])
        return Line(image, question, tuple(options), right, category, *self.task)

    def choice(self, image: Image, right: str, wrong: Sequence[str], **fill: str) -> Line:
        """Return a question with at most three of the wrong options, all in random order."""
        question = self.words(**fill)
        options = [right, *self.rng.permutation(list(wrong))[:3].tolist()]
        order = self.rng.permutation(len(options)).tolist()
        return self.line(image, question, [options[k] for k in order], order.index(0))

    def names(self, image: Image, wrong: Sequence[str], **fill: str) -> Line | None:
        """Return a question whose options are names of concepts; None without a wrong one."""
        right, *others = map(self.plan.word, (self.concept, *wrong))
        return self.choice(image, right, others, **fill) if wrong else None


def _ordered(case: Case) -> Line:
    options = ("Yes", "No") if case.kind == "presence" else MANY
    answer = case.about.partition(AS)[2]
    return case.line(case.image(), case.words(), options, options.index(answer))


def _type(case: Case) -> Line | None:
    truth = case.sample.truth
    return case.names(case.image(), [c for c in case.plan.alike(case.concept) if truth.get(c) == 0])


def _boxes(case: Case) -> Line | None:
    """Ask which box holds the concept: of four that are told, or drawn in colours."""
    marked, image = places(case.sample, case.concept), case.image()
    if len(marked) != 1:
        return None
    wrong = distractors(image, marked[0].box, 3, SIMILAR, OVERLAP, case.rng)
    if wrong is None:
        return None
    boxes = [marked[0].box, *wrong]
    if case.kind == "grounding":
        options = [str(list(box)) for box in boxes]
    else:
        options = case.colours()[:4]
        for box, colour in zip(boxes, options, strict=True):
            draw_box(image, box, colour)
    return case.choice(image, options[0], options[1:])


def _recognition(case: Case) -> Line | None:
    """Ask what is in a region: one whose coordinates are told, that is marked, or one of several.

    It is the largest of which something of the same sort is a wrong name.
    """
    sample, image = case.sample, case.image()
    alike = case.plan.alike(case.concept)
    for region in filter(_covers, places(sample, case.concept)):
        wrong = [c for c in alike if not reaches(sample, c, region, OVERLAP)]
        if wrong:
            break
    else:
        return None
    shown, outlined = [region], case.kind == "contour"
    if case.kind == "multi":
        shown += _elsewhere(sample, wrong, region)
        if len(shown) == 1:
            return None
        outlined = not any(is_boxed(sample, r.concept) for r in shown) and case.rng.random() < 0.5
        colours = case.colours()
    elif outlined and is_boxed(sample, case.concept):
        return None
    else:
        colours = [str(case.rng.choice(list(COLOURS)))]
    for one, colour in zip(shown, colours, strict=False):
        if outlined:
            draw_contour(image, one.mask, colour)
        elif case.kind != "coordinate":
            draw_box(image, one.box, colour)
    mark = "outline" if outlined else "box"
    return case.names(image, wrong, colour=colours[0], mark=mark, box=coordinates([region]))


def _elsewhere(sample: Sample, concepts: Sequence[str], marked: Region) -> list[Region]:
    """Return the largest regions of other concepts, one of each first, that lie apart."""
    ranked = ((k, region) for c in concepts for k, region in enumerate(places(sample, c)))
    chosen: list[Region] = []
    for _, region in sorted(ranked, key=lambda pair: (pair[0], -int(pair[1].mask.sum()))):
        apart = all(shared(region.box, other.box) <= OVERLAP for other in (marked, *chosen))
        if apart and _covers(region) and len(chosen) < MARKED - 1:
            chosen.append(region)
    return chosen


MAKERS: Mapping[str, Callable[[Case], Line | None]] = {
    "presence": _ordered,
    "type": _type,
    "counting": _ordered,
    **{kind: _boxes if kind in ("grounding", "selection") else _recognition for kind in PLACES},
}
"""Every kind of question; what a maker cannot make is None."""
