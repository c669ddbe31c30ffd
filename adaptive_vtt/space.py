"""All questions of an audit, numbered and counted but never listed.

A question is (sample, variant, concept), where a variant is one severity of one relation.
Its number is mixed-radix: ``(sample * V + variant) * C + concept``. The *eligible* questions
(truth known, relation applicable to the concept) fall into cells (concept, truth); within a
cell they are variants x samples. That product structure is why counts are exact and
sampling is uniform without ever listing anything.
"""

import hashlib
from collections.abc import Iterable, Sequence
from copy import copy
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt

from . import datasets
from .datasets.base import CompleteDataset, Dataset, adapted_dataset
from .datasets.view import Subset
from .errors import InputError, check_known, listed, unexpected
from .families import ASKED, DROPS
from .oracles import Correctness, Oracle, OracleDefaults, adapted
from .oracles.captioned import Captioned
from .oracles.drops import Drops
from .relations import FollowUp, Relation, RelationDefaults, resolve
from .relations.base import Variant as Variant
from .types import IDENTITY, UNKNOWN, Bools, Indices, Numbering, Sample, Truths
from .types import Question as Question
from .utils.options import Option
from .utils.random_streams import generator

WithoutRegion = Literal["refuse", "leave out"]
"""Treatment of samples without a region, where relations point at one."""
MAX_NUMBER = 2**62
"""Question numbers are 64-bit; a larger space is refused."""


class QuestionSpace:
    """All questions: samples x relations x severities x concepts.

    Args:
        dataset: A Dataset, or what ``datasets.as_dataset`` makes one of: a folder, a table.
        relations: Names or Relation objects.
        severities: Levels of every graded relation. None: all.
        oracle: Turns answers into outcomes. None: Correctness.
        seed: Decides how follow-ups are rendered, so that every audit of a space, whatever its own
            seed, asks about the same images.
        without_region: Where a relation points at a region (``needs_region``), samples whose masks
            are empty raise InputError ("refuse"), or no relation is asked about them ("leave out"),
            so that all relations have the same samples.

    Attributes:
        left_out: Number of samples left out.
        concepts: Concepts that are judged.
        asked: Concepts that a model is asked about; concept k is judged by the answer to
            ``asked[asked_by[k]]``.
        needs_answers: Whether follow-ups depend on the audited model's answers about their sources.

    Raises:
        InputError: Nothing can be asked.
    """

    kinds: tuple[str, ...] = ASKED

    def __init__(
        self,
        dataset: Any,
        relations: Iterable[str | Relation] = ("identity",),
        *,
        severities: Annotated[
            Iterable[int] | None,
            Option("levels of the graded relations (default: all)", min_length=1),
        ] = None,
        oracle: Oracle | None = None,
        seed: Annotated[int, Option("same seed, same follow-up images")] = 0,
        without_region: Annotated[
            WithoutRegion,
            Option(
                "prompt: images in whose masks nothing is marked are an error, or are left out of "
                "the whole audit"
            ),
        ] = "refuse",
    ) -> None:
        self.seed = seed
        self.oracle = adapted(oracle if oracle is not None else Correctness())
        chosen = resolve(relations)
        if not isinstance(dataset, Dataset):  # reading it takes a format's module, and pandas
            dataset = datasets.as_dataset(dataset)
        given = adapted_dataset(dataset)
        pointed_at = _with_regions(given, chosen, without_region)
        self.left_out = len(given) - len(pointed_at)
        self._given = pointed_at
        self.dataset = adapted_dataset(self.oracle.view(pointed_at))
        self.concepts = self.dataset.concepts
        self.asked, self.asked_by = self.oracle.asked(self.dataset)
        for relation in chosen:
            if relation.masks_lost and self.oracle.judges_masks:
                raise InputError(
                    f"relation {relation.name!r}: {type(self.oracle.original).__name__} compares "
                    f"masks, which cannot be moved along with the image: {relation.masks_lost}"
                )
        self.needs_answers = any(relation.needs_answer for relation in chosen)
        if self.needs_answers and not isinstance(self.dataset, Captioned):
            expected = "an oracle of captions with 'own' (kind = 'captions' in [oracle])"
            raise unexpected("space.captions", expected, type(self.oracle.original).__name__)
        wanted = None if severities is None else set(severities)
        self.variants = tuple(
            Variant(relation, severity)
            for relation in chosen
            for severity in relation.severities
            if wanted is None or severity in wanted or len(relation.severities) == 1
        )
        offered = {s for relation in chosen for s in relation.severities}
        if not chosen or (wanted is not None and not (wanted and wanted <= offered)):
            expected = f"some of {sorted(offered)} (relations {[r.name for r in chosen]})"
            raise unexpected("severities", expected, sorted(wanted or []))
        self.total = len(self.dataset) * len(self.variants) * len(self.concepts)
        if self.total > MAX_NUMBER:
            raise InputError(f"space: {self.total} questions, over the limit of {MAX_NUMBER}")
        if self.size == 0:
            raise InputError(
                f"space: no question can be asked: {self._why_nothing()} "
                f"({len(self.dataset)} samples x {len(self.variants)} variants x "
                f"{len(self.concepts)} concepts, relations {[r.name for r in chosen]}, oracle "
                f"{type(self.oracle).__name__})"
            )

    def judged_by(self, oracle: OracleDefaults) -> "QuestionSpace":
        """Return a space of the same questions for an oracle that wraps this space's.

        Raises:
            InputError: Follow-ups depend on one model's answers.
        """
        if self.needs_answers:
            raise unexpected(
                "versus",
                "follow-ups that are the same for both models",
                "those that each one's own captions choose",
                "leave captions = 'own' out of [space]",
            )
        other = copy(self)
        other.oracle = oracle
        return other

    def for_targets(self, targets: Sequence[str]) -> "QuestionSpace":
        """Return the questions that these targets are about: this space, or for "drops" that of
        changed images, each judged together with its original.

        Raises:
            InputError: There are other targets than "drops", or they cannot be judged so.
        """
        if DROPS not in targets or isinstance(self.oracle, Drops):
            return self
        where = "targets 'drops'"
        if others := [target for target in targets if target != DROPS]:
            got = f"{listed(others)}, too"
            raise unexpected(where, "no other targets", got, "certify those in another audit")
        if self.needs_answers:
            got = "those that the model's own captions choose"
            remedy = "leave captions = 'own' out of [space]"
            raise unexpected(where, "follow-ups that no answer decides on", got, remedy)
        other, oracle = copy(self), Drops(self.oracle)
        for name, member in vars(QuestionSpace).items():
            if isinstance(member, cached_property):
                vars(other).pop(name, None)
        other.oracle = oracle
        other.dataset = adapted_dataset(oracle.view(self._given))
        other.concepts = other.dataset.concepts
        other.asked, other.asked_by = oracle.asked(other.dataset)
        other.total = len(other.dataset) * len(other.variants) * len(other.concepts)
        if other.size == 0:
            remedy = "name some in [space]"
            raise unexpected(where, "a relation that changes images", "none", remedy)
        return other

    def without_answers(self) -> "QuestionSpace":
        """Return this space; where its follow-ups depend on a model's answers, a copy without any,
        for another model."""
        if not isinstance(self.dataset, Captioned) or not self.needs_answers:
            return self
        other = copy(self)
        other.dataset = copy(self.dataset)
        other.dataset.received = {}
        return other

    def _why_nothing(self) -> str:
        """Return why no question can be asked, and what to change."""
        by, changing = type(self.oracle.original).__name__, 'such as "brightness_down"'
        if self.oracle.needs_source and all(v.relation.name == IDENTITY for v in self.variants):
            return (
                f"{by} compares answers with those about the unchanged image, and no relation "
                f"changes it; add one to relations in [space], {changing}"
            )
        if not self.applicable.any():
            return (
                f"no relation applies to any of the concepts {listed(self.concepts)}; add one to "
                f"relations in [space] that does, {changing}"
            )
        if not np.any(self.dataset.counts):
            return (
                f"every label is unknown, and {by} needs them; fill some in, or audit without any: "
                f'kind = "consistency" in [oracle] and a relation, {changing}'
            )
        return "every label is unknown of the concepts that a relation applies to"

    # -- numbering ---------------------------------------------------------------------

    @cached_property
    def numbering(self) -> Numbering:
        """The codec of question numbers; ``number``, ``parts`` and ``image_of`` are its own, for
        arrays."""
        return Numbering(len(self.variants), len(self.concepts))

    def number(self, sample: Indices, variant: Indices, concept: Indices) -> Indices:
        """Return the question numbers of three broadcast index arrays."""
        return self.numbering.number(sample, variant, concept)

    def parts(self, questions: npt.ArrayLike) -> tuple[Indices, Indices, Indices]:
        """Return sample, variant and concept of each question number."""
        return self.numbering.parts(np.asarray(questions, np.int64))

    def image_of(self, questions: npt.ArrayLike) -> Indices:
        """Return the number of the follow-up image each question is about."""
        return self.numbering.image_of(np.asarray(questions, np.int64))

    def question(self, number: int) -> Question:
        """Return the question in words."""
        sample, variant, concept = self.numbering.parts(int(number))
        chosen = self.variants[variant]
        truth = int(self.dataset.truth(np.array([sample]), np.array([concept]))[0])
        return Question(
            number,
            self.dataset.sample_id(sample),
            chosen.relation.name,
            chosen.severity,
            self.concepts[concept],
            truth,
        )

    # -- eligibility and counts --------------------------------------------------------

    @cached_property
    def applicable(self) -> Bools:
        """V x C: whether a variant's questions about a concept make sense."""
        asked, applies = [self.asked[k] for k in self.asked_by], self.oracle.applies
        relations = [variant.relation for variant in self.variants]
        rows = [[r.applies(c) and applies(r, c) for c in asked] for r in relations]
        applicable = np.array(rows, dtype=bool)
        if self.oracle.needs_source:  # all others are compared with the source image
            applicable[[relation.name == IDENTITY for relation in relations]] = False
        return applicable

    @cached_property
    def cell_counts(self) -> Indices:
        """C x 2: eligible questions per concept and truth."""
        counts = np.asarray(self.dataset.counts, np.int64)
        return counts * self.applicable.sum(axis=0)[:, None]

    @cached_property
    def size(self) -> int:
        """Number of questions that can be asked."""
        return int(self.cell_counts.sum())

    @cached_property
    def images(self) -> int:
        """Number of follow-up images with anything to ask about."""
        truths, copies = self.dataset.profile
        patterns, times = np.unique(self.applicable, axis=0, return_counts=True)
        asked = [copies[(truths[:, p] != UNKNOWN).any(axis=1)].sum() for p in patterns]
        return int(np.array(asked) @ times)

    def truth(self, questions: npt.ArrayLike) -> Truths:
        """Return the source truth of each question: 0, 1 or UNKNOWN."""
        sample, _, concept = self.parts(questions)
        return self.dataset.truth(sample, concept)

    def eligible(self, questions: npt.ArrayLike) -> Bools:
        """Return whether each question can be asked."""
        sample, variant, concept = self.parts(questions)
        known = self.dataset.truth(sample, concept) != UNKNOWN
        return np.logical_and(known, self.applicable[variant, concept])

    # -- the eligible questions, by rank -----------------------------------------------

    def nth(self, ranks: npt.ArrayLike) -> Indices:
        """Return the eligible questions of these ranks: a bijection from 0..size-1."""
        wanted = np.asarray(ranks, np.int64)
        ends = np.cumsum(self.cell_counts.ravel())
        cells = np.searchsorted(ends, wanted, side="right")
        questions = np.empty(wanted.shape, np.int64)
        for cell in np.unique(cells):
            concept, side = divmod(int(cell), 2)
            here = cells == cell
            within = wanted[here] - (ends[cell] - self.cell_counts.flat[cell])
            place, rank = np.divmod(within, int(self.dataset.counts[concept, side]))
            variant = np.flatnonzero(self.applicable[:, concept])[place]
            sample = self.dataset.members(concept, side, rank)
            questions[here] = self.number(sample, variant, np.array(concept))
        return questions

    # -- follow-up images --------------------------------------------------------------

    def follow_up(self, image: int) -> FollowUp:
        """Return the follow-up image of this number: a function of (seed, image) alone, and where
        the space ``needs_answers`` of the answer about the source, without which it raises
        InputError."""
        return self.pair(image)[1]

    def pair(self, image: int) -> tuple[Sample, FollowUp]:
        """Return the source sample and the follow-up of this number."""
        source = self.dataset.sample(self.numbering.image_parts(image)[0])
        return source, self.made_of(source, image)

    def made_of(self, source: Sample, image: int) -> FollowUp:
        """Return the follow-up of this number, made of its ``source`` sample."""
        chosen = self.variants[self.numbering.image_parts(image)[1]]
        rng = generator(self.seed, "follow-up", image)
        return chosen.relation.apply(source, chosen.severity, rng)

    @cached_property
    def shared(self) -> dict[str, Any]:
        """Results that all audits of this space can use, by name: small follow-ups, helper nets."""
        return {}

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "shared"}

    @cached_property
    def fingerprint(self) -> str:
        """A short hash of the dataset, the variants, the fingerprints of relations that have one,
        what applies to what, and the seed of the follow-ups where it is not 0."""
        digest = hashlib.blake2b(digest_size=12)
        digest.update(self.dataset.fingerprint.encode())
        digest.update(repr([v.name for v in self.variants]).encode())
        digest.update(repr(self._options).encode() if self._options else b"")
        digest.update(self.applicable.tobytes())
        digest.update(f"seed {self.seed}".encode() if self.seed else b"")
        return digest.hexdigest()

    @cached_property
    def shown(self) -> dict[str, str]:
        """Short hashes of the sources of pictures and truths, before the oracle, by name."""
        made_of = {"truths, boxes or words of samples": self._given.fingerprint}
        made_of |= {f"options of relation {n!r}": text for n, text in self._options.items()}
        hashes = {n: hashlib.blake2b(text.encode(), digest_size=12) for n, text in made_of.items()}
        return {name: digest.hexdigest() for name, digest in hashes.items()}

    @property
    def _options(self) -> dict[str, str]:
        """The options of each relation with a fingerprint."""
        relations = {v.relation.name: v.relation for v in self.variants}
        return {n: r.fingerprint for n, r in relations.items() if r.fingerprint is not None}

    def __repr__(self) -> str:
        return (
            f"QuestionSpace({self.dataset.name}: {len(self.dataset)} samples x "
            f"{len(self.variants)} variants x {len(self.concepts)} concepts, "
            f"{self.size} questions)"
        )


def _with_regions(
    dataset: CompleteDataset, relations: Sequence[RelationDefaults], without: WithoutRegion
) -> CompleteDataset:
    """Return the samples that all relations can be applied to. Raise InputError where some are
    lacking and may not be left out."""
    check_known("value", without, ("refuse", "leave out"), "without_region")
    pointing = [relation.name for relation in relations if relation.needs_region]
    if not pointing or not dataset.has_images:
        return dataset
    masks = (dataset.sample(index).masks.values() for index in range(len(dataset)))
    marked = [index for index, own in enumerate(masks) if any(mask.any() for mask in own)]
    lacking = len(dataset) - len(marked)
    if lacking == 0:
        return dataset
    first = next(k for k in range(len(dataset)) if k >= len(marked) or marked[k] != k)
    got = (
        f"relation {pointing[0]!r}: expected a region to point at in every image, a mask in which "
        f"something is marked, got none in {lacking} of {len(dataset)} images, first of sample "
        f"{dataset.sample_id(first)!r}"
    )
    if not marked:
        raise InputError(f"{got}; give the dataset masks, or leave the relation out")
    if without == "refuse":
        raise InputError(
            f'{got}; without_region = "leave out" in [space] asks, of all relations, about the '
            f"other {len(marked)} alone"
        )
    return adapted_dataset(Subset(dataset, np.array(marked)))
