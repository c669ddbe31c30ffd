"""Multiple-choice questions made from masks, boxes and labels, in EndoBench's format.

Kinds of questions, and the way they are made, follow EndoBench, section 3 and appendix A. Wrong
options are other names of the same sort. Wrong boxes have a similar size, lie elsewhere in the
visible field, and overlap little with the right one. Questions are drawn at random per class.
``question_table`` writes a table that ``datasets.from_endobench`` reads.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

import numpy as np
from numpy.random import Generator

from ...errors import InputError, check_known
from ...relations import visual_prompts
from ...relations.medtest import visible_field
from ...relations.visual_prompts import COLOURS, LETTERS, Region
from ...relations.visual_prompts import Box as Corners
from ...types import Image, Sample
from ...utils.random_streams import generator
from ..base import Dataset
from .question_table import Line
from .taxonomy import ARTEFACT, PLACES, ROLES, WORDS, Role, category_of, role_of

MANY = ("0", "1", "2", "3", "4", "more than 4")
"""Options of counting questions, always in this order."""
ORDERED = ("presence", "counting")
"""Kinds of questions whose options keep their order."""
SIMILAR = (0.8, 1.25)
"""Sides of wrong boxes over those of the right one."""
OVERLAP = 0.1
"""Share of the smaller of two boxes that both may cover, at most."""
SMALLEST = 0.002
"""Least share of the image that the box of a region covers, for any question about it."""
MARKED = 4
"""Regions that a question about several of them marks, at most."""
AS = ", answer "
"""Separates a concept and the right answer in the name of a class."""
TRIES = 400
"""Random boxes that are tried."""
INSIDE = 0.9
"""Least share of a wrong box's area that lies in the visible field (or the right box's share, if
that is less): a box on the black frame would give itself away as wrong."""
Edges = tuple[float, float, float, float]
Place = tuple[int, str, str]
"""Sample, kind and class of a question."""


# -- which questions -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """The subjects of questions, see ``choose``, and their words, see ``taxonomy.WORDS``."""

    concepts: tuple[str, ...]
    roles: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    wordings: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: WORDS)

    def role(self, concept: str) -> Role:
        return ROLES[self.role_name(concept)]

    def role_name(self, concept: str) -> str:
        """Return the name of a concept's role: the given one, else by its words."""
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
    present = [c for c in known if sample.truth[c] == 1]
    if kind == "presence":
        return [f"{c}{AS}{'Yes' if c in present else 'No'}" for c in known if plan.role(c).presence]
    if kind == "type":  # one of them is present, and at least one of its sort is not
        alone = [c for c in present if not set(plan.alike(c)) & set(present)]
        return [c for c in alone if plan.role(c).naming and set(plan.alike(c)) & set(known)]
    marked = {c: places(sample, c) for c in present}
    if kind == "counting":  # without mask or box nobody counted
        numbers = {c: len(marked.get(c, ())) for c in known if plan.role(c).counting}
        return [f"{c}{AS}{MANY[min(n, 5)]}" for c, n in numbers.items() if n or c not in present]
    return [c for c in present if marked[c] and _covers(marked[c][0])]


def _covers(region: Region) -> bool:
    x1, y1, x2, y2 = region.box
    return (x2 - x1) * (y2 - y1) >= SMALLEST * region.mask.size


@dataclass(frozen=True)
class Built:
    """A question with its image and where it is from; ``about``: its class."""

    made: Line
    kind: str
    sample_id: str
    about: str = ""


@dataclass(frozen=True)
class Chosen:
    """Which questions are to be made; going through them makes them, one at a time.

    They come in the order of the samples, so that each image is decoded once more than in the
    choosing. The right option stands at every place equally often, within a kind and a number of
    options, unless options have an order of their own. ``roles``: concept -> what it was taken for.
    """

    dataset: Dataset
    plan: Plan
    places: tuple[Place, ...]
    seed: int
    roles: Mapping[str, str]

    @property
    def wording_kinds(self) -> list[str]:
        """The kinds of wordings that these questions have; see ``taxonomy.WORDS``."""
        kinds = (
            self.plan.wording(kind, self.dataset.sample(index), about.partition(AS)[0])
            for index, kind, about in self.places
        )
        return [*dict.fromkeys(kinds)]

    def __iter__(self) -> Iterator[Built]:
        counts: Counter[str] = Counter()
        for index, group in groupby(sorted(self.places, key=lambda p: p[0]), key=lambda p: p[0]):
            sample = self.dataset.sample(index)
            for _, kind, about in group:
                made = _made(sample, index, kind, about, self.plan, self.seed)
                if made is None:
                    raise InputError(f"sample {sample.id!r}: its files changed during the build")
                if kind not in ORDERED:
                    # all places come once, in random order, before any comes again
                    options, right = list(made.options), made.right
                    among = f"{kind}/{len(options)}"
                    turn, at = divmod(counts[among], len(options))
                    rng = generator(self.seed, f"build/{among}/place", turn)
                    place = int(rng.permutation(len(options))[at])
                    options[place], options[right] = options[right], options[place]
                    made = replace(made, options=tuple(options), right=place)
                    counts[among] += 1
                yield Built(made, kind, sample.id, about)


def choose(
    dataset: Dataset,
    kinds: Sequence[str] = (),
    *,
    concepts: Sequence[str] | None = None,
    per_class: int | None = None,
    seed: int = 0,
    roles: Mapping[str, str] | None = None,
    words: Mapping[str, str] | None = None,
) -> Chosen:
    """Choose which questions to ask about a dataset. Each image is decoded once.

    Args:
        dataset: Images with labels, masks or boxes.
        kinds: Some of ``MAKERS``; default: all.
        concepts: What is asked about; default: all. Questions about places need masks or boxes,
            contours masks.
        per_class: The most questions per kind, concept and right answer of presence and counting,
            drawn at random; default: all.
        seed: Of all random numbers.
        roles: Concept -> one of ``taxonomy.ROLES``; default: by its words (``role_of``). The role
            decides which task of EndoBench a question belongs to. Wrong options have the same role,
            and no question is about an artefact.
        words: Concept -> what it is called in questions.

    Raises:
        InputError: Kinds, concepts or roles are unknown, or two concepts have one word.
    """
    if per_class is not None and per_class < 1:
        raise InputError(f"build: expected at least 1 question per class, got {per_class}")
    kinds = kinds or tuple(MAKERS)
    plan = Plan(tuple(concepts or dataset.concepts), roles or {}, words or {})
    _check(dataset, kinds, plan)
    taken_for = {concept: plan.role_name(concept) for concept in plan.concepts}
    plan = replace(plan, concepts=tuple(c for c in plan.concepts if taken_for[c] != ARTEFACT))
    pool: dict[tuple[str, str], list[Place]] = {}
    for index in range(len(dataset)):
        sample = dataset.sample(index)
        if sample.asks:
            raise InputError(f"{dataset.name}: expected images with labels, got questions in words")
        for kind, about in ((k, about) for k in kinds for about in classes(k, sample, plan)):
            if _made(sample, index, kind, about, plan, seed) is not None:
                pool.setdefault((kind, about), []).append((index, kind, about))
    # of what no image shows any number would be 0, as only absence is known
    counted = {f.partition(AS)[0] for k, f in pool if k == "counting" and not f.endswith(f"{AS}0")}
    taken: list[Place] = []
    for (kind, about), places in sorted(pool.items(), key=lambda p: (kinds.index(p[0][0]), p[0])):
        if kind != "counting" or about.partition(AS)[0] in counted:
            rng = generator(seed, f"build/{kind}/{about}/sample")
            taken += [places[k] for k in sorted(rng.permutation(len(places))[:per_class])]
    return Chosen(dataset, plan, tuple(taken), seed, taken_for)


def _check(dataset: Dataset, kinds: Sequence[str], plan: Plan) -> None:
    for kind in kinds:
        check_known("kind of question", kind, MAKERS, "build")
    for role in plan.roles.values():
        check_known("role", role, ROLES, "build")
    for concept in (*plan.concepts, *plan.roles, *plan.words):
        check_known("concept", concept, dataset.concepts, "build")
    word, times = Counter(map(plan.word, plan.concepts)).most_common(1)[0]
    if times > 1:
        raise InputError(f"build: expected another word for each concept, got {word!r} twice")


def _made(sample: Sample, index: int, kind: str, about: str, plan: Plan, seed: int) -> Line | None:
    rng = generator(seed, f"build/{kind}/{about}", index)
    return MAKERS[kind](Case(sample, kind, about, plan, rng))


# -- how each is made ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """The material of a question: a sample, the question's kind and class, and random numbers."""

    sample: Sample
    kind: str
    about: str
    plan: Plan
    rng: Generator

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
    """Ask which of four boxes holds the concept: by coordinates, or drawn in colours."""
    marked, image = places(case.sample, case.concept), case.image()
    if len(marked) != 1:
        return None
    wrong = distractors(image, marked[0].box, case.rng)
    if wrong is None:
        return None
    boxes = [marked[0].box, *wrong]
    if case.kind == "grounding":
        options = [str(list(box)) for box in boxes]
    else:
        options = case.colours()[:4]
        for box, colour in zip(boxes, options, strict=True):
            visual_prompts.draw_box(image, box, colour)
    return case.choice(image, options[0], options[1:])


def _recognition(case: Case) -> Line | None:
    """Ask what is in a region, by coordinates or a mark, or in one of several marked ones.

    It is the largest region for which something of the same sort is a wrong name.
    """
    sample, image = case.sample, case.image()
    alike = case.plan.alike(case.concept)
    for region in filter(_covers, places(sample, case.concept)):
        wrong = [c for c in alike if not reaches(sample, c, region)]
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
            visual_prompts.draw_contour(image, one.mask, colour)
        elif case.kind != "coordinate":
            visual_prompts.draw_box(image, one.box, colour)
    mark = "outline" if outlined else "box"
    return case.names(
        image, wrong, colour=colours[0], mark=mark, box=visual_prompts.coordinates([region])
    )


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


# -- where a concept is ----------------------------------------------------------------------------


def distractors(image: Image, right: Corners, rng: Generator) -> list[Corners] | None:
    """Return three boxes (x1, y1, x2, y2), the last two exclusive; None if they do not fit.

    Sides are those of ``right`` times a factor from SIMILAR each; no two boxes, the
    right one included, share more than OVERLAP of the smaller one's area.
    Were factors drawn around 1, the right box would mostly be of middle size among the four, which
    gives it away. So all four are drawn from one range, half as wide, in which the right one stands
    anywhere.
    """
    height, width = image.shape[:2]
    field = visible_field(image) if image.shape[2] == 3 else np.ones((height, width), bool)
    least = min(INSIDE, _visible(field, right))
    sides = np.array([right[2] - right[0], right[3] - right[1]])
    boxes = [right]
    half_range = (np.log(SIMILAR[1]) - np.log(SIMILAR[0])) / 2
    smallest = np.log(SIMILAR[0]) + half_range * rng.uniform(size=2)
    for _ in range(TRIES):
        factors = np.exp(smallest + half_range * rng.uniform(size=2))
        wide, tall = np.maximum(1, np.rint(sides * factors)).astype(int).tolist()
        if wide >= width or tall >= height:
            continue
        x, y = int(rng.integers(width - wide + 1)), int(rng.integers(height - tall + 1))
        box = (x, y, x + wide, y + tall)
        if all(shared(box, b) <= OVERLAP for b in boxes) and _visible(field, box) >= least:
            boxes.append(box)
        if len(boxes) > 3:
            return boxes[1:]
    return None


def shared(one: Edges, other: Edges) -> float:
    """Return the area that two boxes share, over that of the smaller one."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    smaller = min((b[2] - b[0]) * (b[3] - b[1]) for b in (one, other))
    return max(0, width) * max(0, height) / smaller


def _visible(field: np.ndarray, box: Corners) -> float:
    x1, y1, x2, y2 = box
    return float(field[y1:y2, x1:x2].mean())


def is_boxed(sample: Sample, concept: str) -> bool:
    """Return whether boxes alone say where the concept is."""
    return concept not in sample.masks and any(box.label == concept for box in sample.boxes)


def places(sample: Sample, concept: str) -> tuple[Region, ...]:
    """Return the regions of a concept, largest first: at most six of a mask, all of its boxes."""
    if concept in sample.masks:
        return visual_prompts.regions({concept: sample.masks[concept]})
    marked = []
    for box in sorted((b for b in sample.boxes if b.label == concept), key=lambda b: -b.area):
        left, top = math.floor(box.left), math.floor(box.top)
        right, bottom = math.ceil(box.right), math.ceil(box.bottom)
        mask = np.zeros(sample.require_image().shape[:2], np.bool_)
        mask[top:bottom, left:right] = True
        corners = (left, top, right, bottom)
        marked.append(Region(concept, corners, LETTERS[0], next(iter(COLOURS)), mask))
    return tuple(marked)


def reaches(sample: Sample, concept: str, region: Region) -> bool:
    """Return whether some of a concept is in a marked region, so that its name is no wrong answer.

    Of a mask any pixel in the region's box counts; of boxes, which hold more than the thing, one
    that covers more than the share OVERLAP of the smaller of the two.
    """
    if concept in sample.masks:
        x1, y1, x2, y2 = region.box
        return bool(sample.masks[concept][y1:y2, x1:x2].any())
    boxes = (b.edges for b in sample.boxes if b.label == concept)
    return any(shared(region.box, edges) > OVERLAP for edges in boxes)
