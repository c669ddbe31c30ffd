"""Multiple-choice questions made from masks, boxes and labels, in EndoBench's format.

Kinds of questions and how they are made after EndoBench, section 3 and appendix A: wrong
options are other names of the same sort; wrong boxes are of similar size and overlap the
right one little; per class, questions are chosen by k-centre selection on embeddings, farthest
first (Gonzalez, Clustering to Minimize the Maximum Intercluster Distance, Theoretical Computer
Science 38, 1985). ``question_table`` writes what ``datasets.from_endobench`` reads.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from string import ascii_uppercase

import cv2
import numpy as np
import numpy.typing as npt

from ...errors import InputError, check_known, unknown
from ...types import Floats, Image, Sample
from ...utils.random_streams import generator
from ..base import Dataset, adapted_dataset
from .question_making import (
    AS,
    MAKERS,
    Made,
    Plan,
    as_text,
    is_counted_in_boxes,
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
                turn, at = divmod(made_of[among], options)  # all places once before any again
                order = generator(self.seed, f"build/{among}/place", turn).permutation(options)
                made = made.moved(int(order[at]))
                made_of[among] += 1
            yield Built(made, place[1], sample.id, place[2])


def choose(
    dataset: Dataset,
    kinds: Sequence[str] = tuple(MAKERS),
    *,
    concepts: Sequence[str] | None = None,
    per_class: int | None = None,
    counts: Mapping[str, str] | None = None,
    seed: int = 0,
    roles: Mapping[str, str] | None = None,
    words: Mapping[str, str] | None = None,
    grades: Mapping[str, str] | None = None,
) -> Chosen:
    """Which questions can be asked about the samples of ``dataset``, and of these which to take.

    ``kinds``: some of presence, type, severity, counting, position, grounding, selection, box,
    contour, multi, coordinate. ``concepts``: what is asked about (default: all); from position on
    they need masks or boxes, contours masks. ``per_class``: at most so many questions per kind and
    right answer, of images whose thumbnails are far apart. ``counts``: concept ->
    metadata column with its true number; otherwise boxes, or connected pieces of its mask, are
    counted. ``roles``: concept -> one of ``taxonomy.ROLES`` (default: what its words tell of, see
    ``role_of``), which says what task of EndoBench a question belongs to; wrong options have the
    same role, and of an artefact nothing is asked. ``words``: concept -> what
    it is called in questions. ``grades``: what is graded -> the metadata column of its grade.
    Where no four boxes fit (see ``Plan``), there is no question. Each image is decoded once.
    Raises InputError for unknown kinds, concepts, roles and columns, and values out of range.
    """
    plan = Plan(
        tuple(concepts or dataset.concepts),
        dict(counts or {}),
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
    places, looks = _seen(dataset, kinds, plan, seed, per_class is not None)
    pool: dict[tuple[str, str], list[_Place]] = {}
    for place in places:
        pool.setdefault(place[1:], []).append(place)
    taken: list[_Place] = []
    for klass in sorted(pool, key=lambda klass: (list(kinds).index(klass[0]), klass[1])):
        taken += _chosen(pool[klass], looks, per_class)
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
    dataset: Dataset, kinds: Sequence[str], plan: Plan, seed: int, by_looks: bool
) -> tuple[list[_Place], dict[int, Floats]]:
    """Return the questions that can be made, and the samples' looks, from one look at each."""
    places: list[_Place] = []
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
        asked = [(index, kind, about) for kind in kinds for about in subjects(kind, sample, plan)]
        places += [place for place in asked if _made(sample, place, plan, seed) is not None]
        if by_looks:
            looks[index] = look(sample.image)
    # of what no image shows any number would be 0, as only absence is known
    numbers = [about.split(AS) for _, kind, about in places if kind == "counting"]
    counted = {concept for concept, answer in numbers if answer != "0"} | {*plan.counts}
    places = [p for p in places if p[1] != "counting" or p[2].partition(AS)[0] in counted]
    return places, looks


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
