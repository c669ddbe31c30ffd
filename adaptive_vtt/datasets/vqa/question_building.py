"""Multiple-choice questions made from masks, boxes and labels, in EndoBench's format.

Kinds of questions and how they are made after EndoBench, section 3 and appendix A: wrong
options are other names of the same sort; wrong boxes are of similar size and overlap the
right one little; per class, questions are chosen by k-centre selection on embeddings, farthest
first (Gonzalez, Clustering to Minimize the Maximum Intercluster Distance, Theoretical Computer
Science 38, 1985). ``question_table`` writes what ``datasets.from_endobench`` reads.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from string import ascii_uppercase
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from ...errors import InputError, check_known, unknown
from ...types import Floats, Image, Sample
from ...utils.random_streams import generator
from ..base import Dataset, adapted_dataset
from .question_making import (
    MAKERS,
    Made,
    Number,
    Plan,
    as_text,
    class_of,
    counting_subjects,
    is_counted_in_boxes,
    large_numbers,
    numbers_in,
    subjects,
)
from .question_table import Line
from .taxonomy import ARTEFACT, ROLES


def k_centre(points: npt.ArrayLike, count: int) -> list[int]:
    """Which ``count`` rows of n x d to take, in the order in which they are; all if n <= count."""
    rows = np.asarray(points, np.float64)
    chosen = [int(((rows - rows.mean(axis=0)) ** 2).sum(axis=1).argmin())]
    nearest = np.full(len(rows), np.inf)
    while len(chosen) < min(count, len(rows)):
        nearest = np.minimum(nearest, ((rows - rows[chosen[-1]]) ** 2).sum(axis=1))
        nearest[chosen] = -1
        chosen.append(int(nearest.argmax()))
    return chosen


def look(image: Image) -> Floats:
    """An image as 8 x 8 pixels of its colours in [0, 1], flat: an embedding that needs no model."""
    return cv2.resize(image, (8, 8), interpolation=cv2.INTER_AREA).ravel() / 255.0


SIZES = (0.8, 1.25)
"""Sides of wrong boxes over those of the right one."""
Embed = Callable[[Image], npt.ArrayLike]
_Place = tuple[int, str, str]
"""Sample, kind and class of a question."""


@dataclass(frozen=True)
class Built:
    """A question with its image and where it is from; ``about``: its kind's class."""

    made: Made
    kind: str
    sample_id: str
    about: str = ""

    @property
    def answer(self) -> str:
        return ascii_uppercase[self.made.right]


@dataclass(frozen=True)
class Chosen:
    """Which questions are to be made; going through them makes them, one at a time.

    They come in the order of the samples, so that each image is decoded once more than in the
    choosing. The right option stands at every place equally often, within a kind and a number of
    options, but where options have an order of their own.
    """

    dataset: Dataset
    plan: Plan
    places: tuple[_Place, ...]
    seed: int
    roles: Mapping[str, str]
    """Concept -> what it was taken for."""

    def __len__(self) -> int:
        return len(self.places)

    @property
    def worded(self) -> list[str]:
        """The kinds of wordings that these questions have; see ``wordings.WORDS``."""
        kinds = dict.fromkeys(self._wording(*place) for place in self.places)
        return list(kinds)

    def _wording(self, index: int, kind: str, subject: str) -> str:
        if kind == "type":
            return f"type/{self.plan.role_name(subject)}"
        if kind == "counting" and is_counted_in_boxes(self.dataset.sample(index), subject):
            return "counting boxes"
        return kind

    def __iter__(self) -> Iterator[Built]:
        made_of: Counter[str] = Counter()
        sample: Sample | None = None
        index = -1
        for place in sorted(self.places, key=lambda place: place[0]):
            if sample is None or place[0] != index:
                index, sample = place[0], self.dataset.sample(place[0])
            made = _made(sample, place, self.plan, self.seed)
            if made is None:
                raise InputError(
                    f"sample {sample.id!r}: expected the image and masks it was first read with, "
                    f"got others; its files must not change while questions are built"
                )
            if not made.ordered:
                options = len(made.options)
                among = f"{place[1]}/{options}"
                made = made.moved(evenly(made_of[among], options, f"build/{among}", self.seed))
                made_of[among] += 1
            yield Built(made, place[1], sample.id, place[2])


def evenly(number: int, options: int, purpose: str, seed: int) -> int:
    """The place of the right option of the ``number``-th question: all, in random order, once each
    before any comes again."""
    order = generator(seed, f"{purpose}/place", number // options).permutation(options)
    return int(order[number % options])


def build(dataset: Dataset, kinds: Sequence[str] = tuple(MAKERS), **options: Any) -> list[Built]:
    """Questions about the samples of ``dataset``, in the order of kinds, classes and samples.

    All of them are in memory, with an image each; ``choose`` takes the same ``options`` and makes
    them one by one.
    """
    chosen = choose(dataset, kinds, **options)
    in_turn = sorted(chosen.places, key=lambda place: place[0])
    found = dict(zip(in_turn, chosen, strict=True))
    return [found[place] for place in chosen.places]


def choose(
    dataset: Dataset,
    kinds: Sequence[str] = tuple(MAKERS),
    *,
    concepts: Sequence[str] | None = None,
    per_class: int | None = None,
    counts: Mapping[str, str] | None = None,
    similar: tuple[float, float] = SIZES,
    overlap: float = 0.1,
    smallest: float = 0.002,
    embed: Embed = look,
    seed: int = 0,
    roles: Mapping[str, str] | None = None,
    words: Mapping[str, str] | None = None,
    grades: Mapping[str, str] | None = None,
) -> Chosen:
    """Which questions can be asked about the samples of ``dataset``, and of these which to take.

    ``kinds``: some of presence, type, severity, counting, position, grounding, selection, box,
    contour, multi, coordinate. ``concepts``: what is asked about (default: all); from position on
    they need masks or boxes, contours masks. ``per_class``: at most so many questions per kind and
    right answer, chosen by k-centre selection on ``embed`` of the images. ``counts``: concept ->
    metadata column with its true number; otherwise boxes, or connected pieces of its mask, are
    counted. ``roles``: concept -> one of ``taxonomy.ROLES`` (default: what its words tell of, see
    ``role_of``), which says what task of EndoBench a question belongs to; wrong options have the
    same role, and of an artefact nothing is asked. ``words``: concept -> what
    it is called in questions. ``grades``: what is graded -> the metadata column of its grade.
    ``similar``: sides of a wrong box over those of the right one; ``overlap``: the largest share of
    the smaller of two boxes that may be shared, 0 to 1. Where no four such boxes fit, there is no
    question, nor about a region whose box is less than ``smallest``, a share of the image. Each
    image is decoded once.
    Raises InputError for unknown kinds, concepts, roles and columns, and values out of range.
    """
    plan = Plan(
        tuple(concepts or dataset.concepts),
        dict(counts or {}),
        similar,
        overlap,
        smallest,
        dict(roles or {}),
        dict(words or {}),
        dict(grades or {}),
    )
    _check(dataset, kinds, plan)
    taken_for = {concept: plan.role_name(concept) for concept in plan.concepts}
    plan = replace(plan, concepts=tuple(c for c in plan.concepts if taken_for[c] != ARTEFACT))
    if per_class is not None and per_class < 1:
        raise InputError(f"build: expected at least 1 question per class, got {per_class}")
    plan = replace(plan, levels=_levels(dataset, plan))
    places, numbers, looks = _seen(dataset, kinds, plan, seed, embed if per_class else None)
    plan = replace(plan, numbers=large_numbers(one for _, one in numbers))
    places += [(k, "counting", subject) for k, subject in counting_subjects(numbers, plan)]
    pool = _pool(places, kinds, plan)
    taken = [place for class_ in pool.values() for place in _chosen(class_, looks, per_class)]
    return Chosen(dataset, plan, tuple(taken), seed, taken_for)


def _check(dataset: Dataset, kinds: Sequence[str], plan: Plan) -> None:
    for kind in kinds:
        check_known("kind of question", kind, MAKERS, "build")
    for concept in (*plan.concepts, *plan.counts, *plan.roles, *plan.words):
        if concept not in (*dataset.concepts, *plan.grades):
            raise unknown("concept", concept, dataset.concepts, "build")
    for role in plan.roles.values():
        check_known("role", role, ROLES, "build")
    called = [plan.word(concept) for concept in plan.concepts]
    if twice := next((word for word in called if called.count(word) > 1), None):
        raise InputError(f"build: expected another word for each concept, got {twice!r} twice")
    similar, overlap, smallest = plan.similar, plan.overlap, plan.smallest
    if not (0 <= overlap < 1 and 0 < similar[0] <= similar[1] < np.inf and 0 <= smallest < 1):
        raise InputError(
            f"build: expected an overlap and a smallest share in [0, 1) and a range of sizes "
            f"above 0, got {overlap}, {smallest} and {similar}"
        )


def _levels(dataset: Dataset, plan: Plan) -> dict[str, tuple[str, ...]]:
    """What is graded -> the grades that occur."""
    found = {}
    for what, column in plan.grades.items():
        columns = adapted_dataset(dataset).metadata_columns
        check_known("metadata column", column, columns, f"build: grades of {what!r}")
        levels = {as_text(value) for value in dataset.metadata_values(column)} - {""}
        found[what] = tuple(sorted(levels))
    return found


def _seen(
    dataset: Dataset, kinds: Sequence[str], plan: Plan, seed: int, embed: Embed | None
) -> tuple[list[_Place], list[tuple[int, Number]], dict[int, Floats]]:
    """What one look at each sample tells: the questions that can be made, but for counting, whose
    options depend on all samples; the numbers for these, where wanted; and the samples' looks."""
    places: list[_Place] = []
    numbers: list[tuple[int, Number]] = []
    looks: dict[int, Floats] = {}
    for index in range(len(dataset)):
        sample = dataset.sample(index)
        if sample.image is None:
            raise InputError(f"sample {sample.id!r}: expected an image to ask about, got none")
        if sample.asks:
            raise InputError(
                f"{dataset.name}: expected images with labels, got questions in words, which can "
                "be asked as they are"
            )
        if "counting" in kinds:
            numbers += [(index, one) for one in numbers_in(sample, plan)]
        asked = [
            (k, about) for k in kinds if k != "counting" for about in subjects(k, sample, plan)
        ]
        found = [(index, kind, about) for kind, about in asked]
        places += [place for place in found if _made(sample, place, plan, seed) is not None]
        if embed is not None:
            looks[index] = np.ravel(np.asarray(embed(sample.image), np.float64))
    return places, numbers, looks


def _pool(
    places: Iterable[_Place], kinds: Sequence[str], plan: Plan
) -> dict[tuple[str, str], list[_Place]]:
    """(kind, class) -> its questions, in the order of kinds and classes."""
    pool: dict[tuple[str, str], list[_Place]] = {}
    for place in places:
        _, kind, subject = place
        pool.setdefault((kind, class_of(subject, plan)), []).append(place)
    order = sorted(pool, key=lambda klass: (list(kinds).index(klass[0]), klass[1]))
    return {klass: pool[klass] for klass in order}


def _made(sample: Sample, place: _Place, plan: Plan, seed: int) -> Made | None:
    index, kind, subject = place
    return MAKERS[kind](sample, subject, plan, generator(seed, f"build/{kind}/{subject}", index))


def _chosen(class_: list[_Place], looks: Mapping[int, Floats], most: int | None) -> list[_Place]:
    """At most ``most`` of a class, far from each other in their looks."""
    if most is None or len(class_) <= most:
        return class_
    chosen = k_centre(np.stack([looks[index] for index, _, _ in class_]), most)
    return [class_[k] for k in sorted(chosen)]


def line_of(one: Built, scene: str = "", dataset: str = "") -> Line:
    made = one.made
    return Line(
        made.image,
        made.question,
        made.options,
        made.right,
        made.category,
        made.task,
        made.subtask,
        scene,
        dataset,
    )
