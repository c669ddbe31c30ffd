"""The question space: all questions of an audit, numbered and counted but never listed.

A question is (sample, variant, concept), where a variant is one severity of one relation. With V
variants and C concepts its number is ``(sample * V + variant) * C + concept``. The *eligible*
questions, whose truth is known and whose relation applies to the concept, fall into cells (concept,
truth). Within a cell they are a product, variants x samples. So counts are exact and sampling is
uniform without a list of questions.
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
from .oracles import REGISTRY as ORACLES
from .oracles import Correctness, Oracle, OracleDefaults, adapted
from .oracles.captioned import Captioned
from .oracles.drops import Drops
from .relations import FollowUp, Relation, RelationDefaults, resolve
from .relations.base import Variant as Variant
from .relations.base import follow_up_of
from .types import IDENTITY, UNKNOWN, Bools, Indices, Numbering, Sample, Truths
from .types import Question as Question
from .utils.options import Option
from .utils.other_code import name_of, naming
from .utils.random_streams import generator

WithoutRegion = Literal["refuse", "leave out"]
"""Treatment of samples without a region, where relations point at one."""
MAX_NUMBER = 2**62
"""Most questions of a space, as their numbers have 64 bits."""


class QuestionSpace:
    """All questions: samples x relations x severities x concepts.

    Args:
        dataset: A Dataset, or a folder or table that ``datasets.as_dataset`` converts.
        relations: Names or Relation objects.
        severities: Levels of every graded relation. None: all.
        oracle: Turns answers into outcomes. None: Correctness.
        seed: Seed of the follow-up images. All audits of a space ask about the same images,
            whatever their own seeds.
        without_region: What happens to samples with empty masks if a relation points at a region
            (``needs_region``). "refuse": InputError. "leave out": no relation is asked about them,
            so that all relations have the same samples.

    Attributes:
        left_out: Number of samples left out.
        concepts: Concepts that are judged.
        asked: Concepts that a model is asked about; concept k is judged by the answer to
            ``asked[asked_by[k]]``.
        needs_answers: True if follow-ups depend on the audited model's answers about their sources.

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
        judges = Correctness() if oracle is None else oracle
        self.oracle = adapted(ORACLES.checked(judges, name_of(judges)))
        chosen = resolve(relations)
        if not isinstance(dataset, Dataset):  # reading it takes a format's module, and pandas
            dataset = datasets.as_dataset(dataset)
        samples = adapted_dataset(dataset)
        self._dataset = _with_regions(samples, chosen, without_region)  # before the oracle's view
        self.left_out = len(samples) - len(self._dataset)
        with naming("oracle", self.oracle.original, "view"):
            self.dataset = adapted_dataset(self.oracle.view(self._dataset))
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
        levels = {s for relation in chosen for s in relation.severities}
        wanted = levels if severities is None else set(severities)
        if not chosen or not wanted or not wanted <= levels:
            expected = f"some of {sorted(levels)} (relations {[r.name for r in chosen]})"
            raise unexpected("severities", expected, sorted(wanted))
        self.variants = tuple(
            Variant(relation, severity)
            for relation in chosen
            for severity in relation.severities
            if severity in wanted or len(relation.severities) == 1
        )
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
        """Return a space of the same questions with an oracle that wraps this space's oracle.

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
        """Return the space of the questions that these targets are about.

        It is this space, or for "drops" the space of changed images, each judged together with its
        original.

        Raises:
            InputError: There are other targets than "drops", or questions cannot be judged so.
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
        other, oracle = self._copied(), Drops(self.oracle)
        other.oracle = oracle
        other.dataset = adapted_dataset(oracle.view(self._dataset))
        other.concepts = other.dataset.concepts
        other.asked, other.asked_by = oracle.asked(other.dataset)
        other.total = len(other.dataset) * len(other.variants) * len(other.concepts)
        if other.size == 0:
            remedy = "name some in [space]"
            raise unexpected(where, "a relation that changes images", "none", remedy)
        return other

    def for_training(self, seed: int) -> "QuestionSpace":
        """Return a space of the same images, unchanged (first) and changed by the same relations.

        Args:
            seed: Seed of its follow-up images.
        """
        other = self._copied()
        changing = [variant for variant in self.variants if variant.relation.name != IDENTITY]
        (same,) = resolve([IDENTITY])
        other.seed, other.variants = seed, (Variant(same, same.severities[0]), *changing)
        other.total = len(other.dataset) * len(other.variants) * len(other.concepts)
        return other

    def _copied(self) -> "QuestionSpace":
        """Return a copy without what was computed of this space."""
        other = copy(self)
        for name, member in vars(QuestionSpace).items():
            if isinstance(member, cached_property):
                vars(other).pop(name, None)
        return other

    def without_answers(self) -> "QuestionSpace":
        """Return the space for another model.

        It is a copy without the answers that follow-ups depend on, or this space if there are none.
        """
        if not isinstance(self.dataset, Captioned) or not self.needs_answers:
            return self
        other = copy(self)
        other.dataset = copy(self.dataset)
        other.dataset.received = {}
        return other

    def _why_nothing(self) -> str:
        """Return why no question can be asked, and what to change."""
        oracle, such_as = type(self.oracle.original).__name__, 'such as "brightness_down"'
        if self.oracle.needs_source and all(v.relation.name == IDENTITY for v in self.variants):
            return (
                f"{oracle} compares answers with those about the unchanged image, and no relation "
                f"changes it; add one to relations in [space], {such_as}"
            )
        if not self.applicable.any():
            return (
                f"no relation applies to any of the concepts {listed(self.concepts)}; add one to "
                f"relations in [space] that does, {such_as}"
            )
        if not np.any(self.dataset.counts):
            return (
                f"every label is unknown, and {oracle} needs them; fill some in, or audit without "
                f'any: kind = "consistency" in [oracle] and a relation, {such_as}'
            )
        return "every label is unknown of the concepts that a relation applies to"

    # -- numbering ---------------------------------------------------------------------

    @cached_property
    def numbering(self) -> Numbering:
        """Conversion between question numbers and their parts, for numbers and arrays."""
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
        relation, severity = self.variants[variant].relation.name, self.variants[variant].severity
        truth = int(self.dataset.truth(np.array([sample]), np.array([concept]))[0])
        sample_id, name = self.dataset.sample_id(sample), self.concepts[concept]
        return Question(number, sample_id, relation, severity, name, truth)

    # -- eligibility and counts --------------------------------------------------------

    @cached_property
    def applicable(self) -> Bools:
        """V x C: True if a variant's questions about a concept make sense."""
        concepts = [self.asked[k] for k in self.asked_by]
        relations = [variant.relation for variant in self.variants]
        applicable = np.array(
            [[r.applies(c) and self.oracle.applies(r, c) for c in concepts] for r in relations],
            dtype=bool,
        )
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
        """Number of follow-up images with an eligible question."""
        truths, copies = self.dataset.profile
        # variants that apply to the same concepts have as many such images
        patterns, times = np.unique(self.applicable, axis=0, return_counts=True)
        asked = [copies[(truths[:, p] != UNKNOWN).any(axis=1)].sum() for p in patterns]
        return int(np.array(asked) @ times)

    def truth(self, questions: npt.ArrayLike) -> Truths:
        """Return the source truth of each question: 0, 1 or UNKNOWN."""
        sample, _, concept = self.parts(questions)
        return self.dataset.truth(sample, concept)

    def eligible(self, questions: npt.ArrayLike) -> Bools:
        """Return which questions (n,) are eligible."""
        sample, variant, concept = self.parts(questions)
        known = self.dataset.truth(sample, concept) != UNKNOWN
        return np.logical_and(known, self.applicable[variant, concept])

    # -- the eligible questions, by rank -----------------------------------------------

    def nth(self, ranks: npt.ArrayLike) -> Indices:
        """Return the eligible questions of these ranks, 0 to ``size`` - 1, one per rank."""
        ranks = np.asarray(ranks, np.int64)
        ends = np.cumsum(self.cell_counts.ravel())
        cells = np.searchsorted(ends, ranks, side="right")
        questions = np.empty(ranks.shape, np.int64)
        for cell in np.unique(cells):
            concept, side = divmod(int(cell), 2)
            here = cells == cell
            within = ranks[here] - (ends[cell] - self.cell_counts.flat[cell])
            place, rank = np.divmod(within, int(self.dataset.counts[concept, side]))
            variant = np.flatnonzero(self.applicable[:, concept])[place]
            sample = self.dataset.members(concept, side, rank)
            questions[here] = self.number(sample, variant, np.array(concept))
        return questions

    # -- follow-up images --------------------------------------------------------------

    def follow_up(self, image: int) -> FollowUp:
        """Return the follow-up image of this number.

        It depends on the seed and the number alone; in a space that ``needs_answers``, also on the
        answer about the source.

        Raises:
            InputError: The answer about the source is missing.
        """
        return self.pair(image)[1]

    def pair(self, image: int) -> tuple[Sample, FollowUp]:
        """Return the source sample and the follow-up of this number."""
        source = self.dataset.sample(self.numbering.image_parts(image)[0])
        return source, self.made_of(source, image)

    def made_of(self, source: Sample, image: int) -> FollowUp:
        """Return the follow-up of this number, made from its ``source`` sample."""
        chosen = self.variants[self.numbering.image_parts(image)[1]]
        rng = generator(self.seed, "follow-up", image)
        return follow_up_of(chosen.relation, source, chosen.severity, rng)

    @cached_property
    def shared(self) -> dict[str, Any]:
        """Results that all audits of this space share, by name: thumbnails, self-taught nets."""
        return {}

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "shared"}

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the dataset, the variants, ``applicable``, and the options of relations.

        It includes the seed of the follow-ups if that is not 0.
        """
        digest = hashlib.blake2b(digest_size=12)
        digest.update(self.dataset.fingerprint.encode())
        digest.update(repr([v.name for v in self.variants]).encode())
        digest.update(repr(self._options).encode() if self._options else b"")
        digest.update(self.applicable.tobytes())
        digest.update(f"seed {self.seed}".encode() if self.seed else b"")
        return digest.hexdigest()

    @cached_property
    def shown(self) -> dict[str, str]:
        """Short hashes of the sources of pictures and truths, before the oracle's view, by name."""
        sources = {"truths, boxes or words of samples": self._dataset.fingerprint}
        sources |= {f"options of relation {n!r}": text for n, text in self._options.items()}
        digests = (hashlib.blake2b(text.encode(), digest_size=12) for text in sources.values())
        return {name: d.hexdigest() for name, d in zip(sources, digests, strict=True)}

    @property
    def _options(self) -> dict[str, str]:
        """Fingerprint of the options of each relation that has one."""
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
    """Return the samples that all relations can be applied to.

    Raise InputError if some samples have no region and may not be left out.
    """
    check_known("value", without, ("refuse", "leave out"), "without_region")
    pointing = [relation.name for relation in relations if relation.needs_region]
    if not pointing or not dataset.has_images:
        return dataset
    has_region = np.array(
        [any(m.any() for m in dataset.sample(k).masks.values()) for k in range(len(dataset))]
    )
    marked, missing = np.flatnonzero(has_region), np.flatnonzero(~has_region)
    if not len(missing):
        return dataset
    got = (
        f"relation {pointing[0]!r}: expected a region to point at in every image, a mask in which "
        f"something is marked, got none in {len(missing)} of {len(dataset)} images, first of "
        f"sample {dataset.sample_id(int(missing[0]))!r}"
    )
    if not len(marked):
        raise InputError(f"{got}; give the dataset masks, or leave the relation out")
    if without == "refuse":
        raise InputError(
            f'{got}; without_region = "leave out" in [space] asks, of all relations, about the '
            f"other {len(marked)} alone"
        )
    return adapted_dataset(Subset(dataset, marked))
