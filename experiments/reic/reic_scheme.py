"""REIC's whole scheme: the captions that it pays for, one after the other, and its verdicts.

Source: Metamorphic Testing of Image Captioning Systems via Image-Level Reduction (TSE 2024),
sections IV and V. Images come in random order. The source image is captioned and its objects are
located, which may take captions of versions with hidden boxes. Then follow-ups of each relation are
captioned, chosen from all candidates by the two scores. An image without a located object has no
valid case (section IV-D1), so it has no follow-ups.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from adaptive_vtt.datasets.base import Dataset
from adaptive_vtt.errors import InputError
from adaptive_vtt.oracles import Premise
from adaptive_vtt.oracles.captions import Same
from adaptive_vtt.oracles.captions.localising import Located
from adaptive_vtt.oracles.reduced_captions import ReducedCaptions
from adaptive_vtt.relations.reduction import Crop, Reductions, Rotate, Stretch, visible_shares
from adaptive_vtt.relations.reic import KINDS, Reduced, ambiguity, enumerated, select, spans
from adaptive_vtt.types import (
    CAPTION,
    FollowUp,
    Image,
    Outcome,
    Question,
    Received,
    Sample,
    mask_of,
)
from adaptive_vtt.utils.random_streams import generator

Reduction = Crop | Stretch | Rotate


class Captioner(Protocol):
    """The model under test."""

    def caption(self, image: Image) -> str:
        """Return one sentence about H x W x C uint8."""


@dataclass(frozen=True)
class Step:
    """A follow-up, captioned and judged.

    Attributes:
        paid: Number of captions so far, with this one and those of sources.
        sample: The image's index.
        kind: The relation: "crop", "stretch" or "rotate".
        rank: 1 for the image's first follow-up of this kind.
        reduction: The change of the image.
        caption: The follow-up's caption.
        received: The captions of the source and of its versions.
        outcome: The verdict; see ``oracles.reduced_captions.describe`` for its details.
    """

    paid: int
    sample: int
    kind: str
    rank: int
    reduction: Reduction
    caption: str
    received: Received
    outcome: Outcome

    @property
    def objects(self) -> Sequence[dict[str, Any]]:
        """The findings, one for each object of either caption."""
        return (self.outcome.details or {}).get("objects", ())

    @property
    def violations(self) -> tuple[str, ...]:
        """The names of the objects that break a rule."""
        return tuple(each["name"] for each in self.objects if each["rule"] is not None)


@dataclass(frozen=True)
class Selection:
    """The choice of ``follow_ups`` follow-ups of each image and relation.

    The paper's ablations are Setting-1, without ``by_ambiguity``, and Setting-2, without
    ``by_diversity``.
    """

    follow_ups: int = 3
    by_ambiguity: bool = True
    by_diversity: bool = True
    seed: int = 0

    def candidates(self, kind: str, sample: Sample) -> Reductions:
        """Return all possible follow-ups of an image by one relation."""
        height, width = sample.require_image().shape[:2]
        rng = generator(self.seed, f"reic scheme/candidates/{kind}/{sample.id}")
        return enumerated(kind, height, width, sample.boxes, rng)

    def choose(
        self, kind: str, sample: Sample, located: Sequence[Located], oracle: ReducedCaptions
    ) -> Reductions:
        """Return up to ``follow_ups`` candidates, the best first; none without located objects."""
        height, width = sample.require_image().shape[:2]
        masks = [mask_of(one.boxes, height, width) for one in located]
        masks = [mask for mask in masks if mask.any()]
        candidates = self.candidates(kind, sample) if masks else ()
        if not candidates:
            return ()
        shares = visible_shares(masks, candidates)
        places = select(
            ambiguity(shares, oracle.down, oracle.up),
            spans(candidates, height, width),
            self.follow_ups,
            by_ambiguity=self.by_ambiguity,
            by_diversity=self.by_diversity,
            rng=generator(self.seed, f"reic scheme/first/{kind}/{sample.id}"),
        )
        return [candidates[place] for place in places]


def scheme(
    dataset: Dataset,
    captioner: Captioner,
    oracle: ReducedCaptions,
    *,
    follow_ups: int = 3,
    by_ambiguity: bool = True,
    by_diversity: bool = True,
    seed: int = 0,
) -> Iterator[Step]:
    """Yield every follow-up that REIC asks about, in its order.

    Each caption is asked for when its turn comes, so stopping early costs ``paid`` of the last
    step.

    Raises:
        InputError: ``follow_ups`` is below 1, or a sample has no image.
    """
    if follow_ups < 1:
        raise InputError(f"REIC: expected follow_ups of at least 1, got {follow_ups}")
    selection = Selection(follow_ups, by_ambiguity, by_diversity, seed)
    paid = 0
    for index in generator(seed, "reic scheme/order").permutation(len(dataset)).tolist():
        sample = dataset.sample(index)
        if sample.image is None:
            raise InputError(f"REIC: expected an image of sample {sample.id!r}, got none")
        received = captions_of(oracle, captioner, sample)
        paid += 1 + len(received.versions)
        located = locate(oracle, sample, received)
        for kind in KINDS:
            for rank, reduction in enumerate(selection.choose(kind, sample, located, oracle), 1):
                paid += 1
                caption = captioner.caption(reduction.image(sample.image))
                outcome = judge(oracle, sample, received, reduction, caption)
                yield Step(paid, index, kind, rank, reduction, caption, received, outcome)


def captions_of(
    oracle: ReducedCaptions,
    captioner: Captioner,
    sample: Sample,
    known: Received | None = None,
) -> Received:
    """Return the captions of an image, and of its versions that the oracle needs.

    Captions in ``known`` are not asked for again.
    """
    earlier = {} if known is None else known.versions
    received = Received(
        captioner.caption(sample.require_image()) if known is None else known.answer, {}
    )
    while True:
        wanted = oracle.versions(sample, received)
        new = {
            place: earlier[place] if place in earlier else captioner.caption(version.make())
            for place, version in wanted.items()
            if place not in received.versions
        }
        if not new:
            return received
        received = Received(received.answer, {**received.versions, **new})


def locate(oracle: ReducedCaptions, sample: Sample, received: Received) -> tuple[Located, ...]:
    """Return the located objects of the source's caption, none if the reply is no caption."""
    height, width = sample.require_image().shape[:2]
    whole = Crop(0, 0, width, height)
    follow_up = FollowUp(sample.require_image(), {"reduction": whole})
    expected = oracle.expect(
        Premise(Reduced("crop"), follow_up, sample, _question(sample, whole), received)
    )
    return () if expected is None else expected.located


def judge(
    oracle: ReducedCaptions, sample: Sample, received: Received, reduction: Reduction, caption: str
) -> Outcome:
    """Return the verdict on a follow-up's caption."""
    question = _question(sample, reduction)
    relation = Reduced(_kind(reduction))
    follow_up = FollowUp(None, {"reduction": reduction})
    expected = oracle.expect(Premise(relation, follow_up, sample, question, received))
    return oracle.judge(question, caption, expected, received)


STATUSES = ("ambiguous", "disappeared", "retained")


def statuses(steps: Iterable[Step]) -> dict[str, int]:
    """Return the number of named objects of the sources per status after the follow-ups."""
    counts = Counter(each["status"] for step in steps for each in step.objects)
    return {status: counts[status] for status in STATUSES}


def distinct(steps: Iterable[Step], same: Same) -> Iterator[tuple[Step, tuple[str, ...]]]:
    """Yield each step with its new violations.

    They are of objects whose name does not mean the ``same`` as one reported before in the image.
    """
    known: dict[int, list[str]] = {}
    for step in steps:
        names = known.setdefault(step.sample, [])
        new: list[str] = []
        for name in step.violations:
            if not any(same(name, other) for other in names):
                names.append(name)
                new.append(name)
        yield step, tuple(new)


def _kind(reduction: Reduction) -> str:
    return {Crop: "crop", Stretch: "stretch", Rotate: "rotate"}[type(reduction)]


def _question(sample: Sample, reduction: Reduction) -> Question:
    return Question(0, sample.id, f"reic/{_kind(reduction)}", 1, CAPTION, 1)
