"""Make multiple-choice questions from masks, boxes and labels, in EndoBench's format.

Kinds of questions, and their construction, follow EndoBench, section 3 and appendix A. Wrong
options are names of other concepts with the same role. Wrong boxes have a similar size, lie
elsewhere in the visible field, and overlap little with the correct one. ``question_table`` writes
the questions to a table that ``datasets.from_endobench`` reads.
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
"""Range of the ratio between a side of a wrong box and that of the correct one."""
OVERLAP = 0.1
"""Maximum overlap of two boxes, as a share of the smaller one."""
SMALLEST = 0.002
"""Minimum area of a region's box, as a share of the image, for a question about it."""
MARKED = 4
"""Maximum number of regions that one question marks."""
AS = ", answer "
"""Separator of the concept and the correct answer in the name of a class of questions."""
TRIES = 400
"""Number of random boxes that are tried."""
INSIDE = 0.9
"""Minimum share of a wrong box in the visible field, or that of the correct box if it is less: a
box on the black frame would be recognised as wrong."""
Edges = tuple[float, float, float, float]
Place = tuple[int, str, str]
"""Index of the sample, kind and class of a question."""


# -- which questions -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """The subjects and wordings of questions.

    Attributes:
        concepts: As ``roles`` and ``words``, an argument of ``choose``.
        roles: See there.
        words: See there.
        wordings: Kind of question -> templates; see ``taxonomy.WORDS``.
    """

    concepts: tuple[str, ...]
    roles: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    wordings: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: WORDS)

    def role(self, concept: str) -> Role:
        """Return a concept's role."""
        return ROLES[self.role_name(concept)]

    def role_name(self, concept: str) -> str:
        """Return the name of a concept's role: that of the option, else by its words."""
        return self.roles.get(concept) or role_of(self.word(concept))

    def word(self, concept: str) -> str:
        """Return the name of a concept in questions."""
        return self.words.get(concept, concept)

    def alike(self, concept: str) -> list[str]:
        """Return the other concepts of the same role."""
        return [c for c in self.concepts if c != concept and self.role(c) is self.role(concept)]

    def wording(self, kind: str, sample: Sample, concept: str) -> str:
        """Return the key in ``wordings`` of a question of this kind."""
        # boxes count objects, and the parts of a mask count regions
        counting = "counting" if concept in sample.masks or not sample.boxes else "counting boxes"
        return {"type": f"type/{self.role_name(concept)}", "counting": counting}.get(kind, kind)


def classes(kind: str, sample: Sample, plan: Plan) -> list[str]:
    """Return the classes of the questions of this kind about a sample.

    A class is a concept and, for presence and counting, the correct answer. Questions are drawn at
    random within each class.
    """
    known = [c for c in plan.concepts if c in sample.truth]
    present = [c for c in known if sample.truth[c] == 1]
    if kind == "presence":
        return [f"{c}{AS}{'Yes' if c in present else 'No'}" for c in known if plan.role(c).presence]
    if kind == "type":  # one concept of its role is present, and at least one other is absent
        alone = [c for c in present if not set(plan.alike(c)) & set(present)]
        return [c for c in alone if plan.role(c).naming and set(plan.alike(c)) & set(known)]
    marked = {c: places(sample, c) for c in present}
    if kind == "counting":  # a present concept without mask or box has no known number
        numbers = {c: len(marked.get(c, ())) for c in known if plan.role(c).counting}
        return [f"{c}{AS}{MANY[min(n, 5)]}" for c, n in numbers.items() if n or c not in present]
    return [c for c in present if marked[c] and _covers(marked[c][0])]


def _covers(region: Region) -> bool:
    """Return whether a region is large enough for a question about it."""
    x1, y1, x2, y2 = region.box
    return (x2 - x1) * (y2 - y1) >= SMALLEST * region.mask.size


@dataclass(frozen=True)
class Built:
    """A finished question.

    Attributes:
        made: The question with its image.
        kind: Its kind.
        sample_id: The id of its sample.
        about: Its class.
    """

    made: Line
    kind: str
    sample_id: str
    about: str = ""


@dataclass(frozen=True)
class Chosen:
    """The chosen questions, which are made one at a time by iteration.

    They are ordered by sample, so that each image is decoded only once more. For each kind and
    number of options, the correct option is at each position equally often, unless options have a
    fixed order.

    Attributes:
        dataset: The images.
        plan: The subjects and wordings.
        places: Sample, kind and class of each question.
        seed: Seed of all random numbers.
        roles: Concept -> name of its role.
    """

    dataset: Dataset
    plan: Plan
    places: tuple[Place, ...]
    seed: int
    roles: Mapping[str, str]

    @property
    def wording_kinds(self) -> list[str]:
        """The keys in ``taxonomy.WORDS`` that these questions use."""
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
                    # each position is used once, in random order, before any is used again
                    options, right = list(made.options), made.right
                    group_name = f"{kind}/{len(options)}"
                    turn, number = divmod(counts[group_name], len(options))
                    rng = generator(self.seed, f"build/{group_name}/place", turn)
                    position = int(rng.permutation(len(options))[number])
                    options[position], options[right] = options[right], options[position]
                    made = replace(made, options=tuple(options), right=position)
                    counts[group_name] += 1
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
    """Choose the questions about a dataset. Each image is decoded once.

    Args:
        dataset: Images with labels, masks or boxes.
        kinds: Kinds of questions, of ``MAKERS``. Default: all.
        concepts: Concepts to ask about. Default None: all. Questions about places need masks or
            boxes, and those with contours masks.
        per_class: Maximum number of questions in a class (see ``classes``), drawn at random.
            Default None: all.
        seed: Seed of all random numbers.
        roles: Concept -> one of ``taxonomy.ROLES``. Default: by its words (``role_of``). The role
            decides to which task of EndoBench a question belongs. Wrong options have the same role,
            and no question is about an artefact.
        words: Concept -> its name in questions. Default: the name of the concept.

    Raises:
        InputError: Kinds, concepts or roles are unknown, or two concepts have the same name.
    """
    if per_class is not None and per_class < 1:
        raise InputError(f"build: expected at least 1 question per class, got {per_class}")
    kinds = kinds or tuple(MAKERS)
    plan = Plan(tuple(concepts or dataset.concepts), roles or {}, words or {})
    _check(dataset, kinds, plan)
    role_names = {concept: plan.role_name(concept) for concept in plan.concepts}
    plan = replace(plan, concepts=tuple(c for c in plan.concepts if role_names[c] != ARTEFACT))
    pool: dict[tuple[str, str], list[Place]] = {}
    for index in range(len(dataset)):
        sample = dataset.sample(index)
        if sample.asks:
            raise InputError(f"{dataset.name}: expected images with labels, got questions in words")
        for kind, about in ((k, about) for k in kinds for about in classes(k, sample, plan)):
            if _made(sample, index, kind, about, plan, seed) is not None:
                pool.setdefault((kind, about), []).append((index, kind, about))
    # a concept that no image shows is not counted, as the answer would always be 0
    counted = {c.partition(AS)[0] for k, c in pool if k == "counting" and not c.endswith(f"{AS}0")}
    chosen: list[Place] = []
    for (kind, about), places in sorted(pool.items(), key=lambda p: (kinds.index(p[0][0]), p[0])):
        if kind != "counting" or about.partition(AS)[0] in counted:
            rng = generator(seed, f"build/{kind}/{about}/sample")
            chosen += [places[k] for k in sorted(rng.permutation(len(places))[:per_class])]
    return Chosen(dataset, plan, tuple(chosen), seed, role_names)


def _check(dataset: Dataset, kinds: Sequence[str], plan: Plan) -> None:
    """Raise InputError for unknown names in the options of ``choose``."""
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
    """Return a question, None if the sample has none of this kind and class."""
    rng = generator(seed, f"build/{kind}/{about}", index)
    return MAKERS[kind](Case(sample, kind, about, plan, rng))


# -- making a question -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """Material of a question: a sample, the question's kind and class, and random numbers."""

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
        """The task and subtask of EndoBench to which the question belongs."""
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
        """Return the text of the question, in a wording that is drawn at random."""
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
        """Return a question whose options are names of concepts; None if no name is wrong."""
        right, *others = map(self.plan.word, (self.concept, *wrong))
        return self.choice(image, right, others, **fill) if wrong else None


def _ordered(case: Case) -> Line:
    """Ask whether a concept is present, or how many there are."""
    options = ("Yes", "No") if case.kind == "presence" else MANY
    answer = case.about.partition(AS)[2]
    return case.line(case.image(), case.words(), options, options.index(answer))


def _type(case: Case) -> Line | None:
    """Ask which of several concepts with the same role is present."""
    truth = case.sample.truth
    return case.names(case.image(), [c for c in case.plan.alike(case.concept) if truth.get(c) == 0])


def _boxes(case: Case) -> Line | None:
    """Ask which of four boxes contains the concept, by coordinates or drawn in colours."""
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
    """Ask for the concept in a region, which is marked or given by coordinates.

    It is the concept's largest region for which another concept of the same role is a wrong answer.
    Kind "multi" marks several regions.
    """
    sample, image = case.sample, case.image()
    alike = case.plan.alike(case.concept)
    for region in filter(_covers, places(sample, case.concept)):
        if wrong := [c for c in alike if not reaches(sample, c, region)]:
            break
    else:
        return None
    regions, outlined = [region], case.kind == "contour"
    if case.kind == "multi":
        regions += _elsewhere(sample, wrong, region)
        if len(regions) == 1:
            return None
        outlined = not any(is_boxed(sample, r.concept) for r in regions) and case.rng.random() < 0.5
        colours = case.colours()
    elif outlined and is_boxed(sample, case.concept):
        return None
    else:
        colours = [str(case.rng.choice(list(COLOURS)))]
    for marked, colour in zip(regions, colours, strict=False):
        if outlined:
            visual_prompts.draw_contour(image, marked.mask, colour)
        elif case.kind != "coordinate":
            visual_prompts.draw_box(image, marked.box, colour)
    mark = "outline" if outlined else "box"
    corners = visual_prompts.coordinates([region])
    return case.names(image, wrong, colour=colours[0], mark=mark, box=corners)


def _elsewhere(sample: Sample, concepts: Sequence[str], marked: Region) -> list[Region]:
    """Return the largest regions of other concepts, one of each first, that hardly overlap."""
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
"""Kind of question -> function that makes it, None where it cannot."""


# -- places of concepts ----------------------------------------------------------------------------


def distractors(image: Image, right: Corners, rng: Generator) -> list[Corners] | None:
    """Return three wrong boxes (x1, y1, x2, y2), the last two exclusive; None if they do not fit.

    Each side is that of the correct box times a factor within SIMILAR. No two of the four boxes
    overlap by more than OVERLAP. If factors were drawn around 1, the correct box would often have
    the middle size of the four, which gives it away. So all four are drawn from one range that is
    half as wide, and at a random position around 1.

    Args:
        image: The image.
        right: The correct box.
        rng: Source of randomness.
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
    """Return the overlap of two boxes as a share of the smaller one's area."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    smaller = min((b[2] - b[0]) * (b[3] - b[1]) for b in (one, other))
    return max(0, width) * max(0, height) / smaller


def _visible(field: np.ndarray, box: Corners) -> float:
    x1, y1, x2, y2 = box
    return float(field[y1:y2, x1:x2].mean())


def is_boxed(sample: Sample, concept: str) -> bool:
    """Return whether a concept has boxes, and no mask."""
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
    """Return whether a concept is in a marked region, so that its name is no wrong answer.

    Any pixel of its mask in the region's box counts. Its boxes count if they overlap the region's
    box by more than OVERLAP, as a box is larger than its object.
    """
    if concept in sample.masks:
        x1, y1, x2, y2 = region.box
        return bool(sample.masks[concept][y1:y2, x1:x2].any())
    boxes = (b.edges for b in sample.boxes if b.label == concept)
    return any(shared(region.box, edges) > OVERLAP for edges in boxes)
