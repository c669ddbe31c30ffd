"""Multiple-choice questions made from masks, boxes and labels, in EndoBench's format.

Kinds of questions and how they are made after EndoBench, section 3 and appendix A: wrong
options are other names of the same sort; wrong boxes are of similar size and overlap the
right one little. Per class, questions are drawn at random. ``question_table`` writes what
``datasets.from_endobench`` reads.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from ...errors import InputError, check_known
from ...types import Sample
from ...utils.random_streams import generator
from ..base import Dataset
from .question_making import AS, MAKERS, ORDERED, Case, Plan, classes
from .question_table import Line
from .taxonomy import ARTEFACT, ROLES

_Place = tuple[int, str, str]
"""Sample, kind and class of a question."""


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
    places: tuple[_Place, ...]
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
    kinds: Sequence[str] = tuple(MAKERS),
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
        kinds: Some of ``MAKERS``.
        concepts: What is asked about; default: all. Questions about places need masks or boxes,
            contours masks.
        per_class: The most questions per kind, concept and right answer of presence and counting,
            drawn at random; default: all.
        seed: Of all random numbers.
        roles: Concept -> one of ``taxonomy.ROLES``; default: what its words tell of, see
            ``role_of``. It says which task of EndoBench a question belongs to; wrong options have
            the same role, and nothing is asked about an artefact.
        words: Concept -> what it is called in questions.

    Raises:
        InputError: Kinds, concepts or roles are unknown, or two concepts have one word.
    """
    if per_class is not None and per_class < 1:
        raise InputError(f"build: expected at least 1 question per class, got {per_class}")
    plan = Plan(tuple(concepts or dataset.concepts), roles or {}, words or {})
    _check(dataset, kinds, plan)
    taken_for = {concept: plan.role_name(concept) for concept in plan.concepts}
    plan = replace(plan, concepts=tuple(c for c in plan.concepts if taken_for[c] != ARTEFACT))
    pool: dict[tuple[str, str], list[_Place]] = {}
    for index in range(len(dataset)):
        sample = dataset.sample(index)
        if sample.asks:
            raise InputError(f"{dataset.name}: expected images with labels, got questions in words")
        for kind, about in ((k, about) for k in kinds for about in classes(k, sample, plan)):
            if _made(sample, index, kind, about, plan, seed) is not None:
                pool.setdefault((kind, about), []).append((index, kind, about))
    # of what no image shows any number would be 0, as only absence is known
    counted = {f.partition(AS)[0] for k, f in pool if k == "counting" and not f.endswith(f"{AS}0")}
    taken: list[_Place] = []
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
