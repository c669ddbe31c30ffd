"""REIC's three reductions as relations: a severity is the number of a candidate follow-up.

Source: Metamorphic Testing of Image Captioning Systems via Image-Level Reduction (TSE 2024),
sections IV-C and IV-D. All candidates of an image are enumerated, and the best few by REIC's two
scores are kept, best first. The first score favours candidates that make objects disappear over
those that leave them half in view, which allow no expectation. The second favours parts of the
image that no chosen candidate shows.

The objects that scores count are known before any follow-up is made. They are those that a caption
names, recorded beforehand or the audited model's (``Naming``), or else all detected ones.
Severities 1 to 3 are then the follow-ups that REIC would ask about for such a caption.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Protocol

import numpy as np
import numpy.typing as npt

from ..types import CAPTION, Box, Floats, FollowUp, Received, Sample, mask_of
from ..utils.options import Option, check_options
from ..utils.random_streams import generator
from . import reduction
from .base import LabelPreserving, RelationDefaults, Rng
from .reduction import Crop, Reductions, Rotate, Stretch, visible_shares

Ints = npt.NDArray[np.int64]

T_DOWN, T_UP = 0.2, 0.9
"""Shares of an object in view: up to T_DOWN it has disappeared, from T_UP on it is retained, in
between it is ambiguous (REIC, section IV-D)."""


def statuses(shares: Floats, down: float = T_DOWN, up: float = T_UP) -> npt.NDArray[np.int8]:
    """Return 1 for retained, 0 for ambiguous, -1 for disappeared objects, by visible shares."""
    return (shares >= up).astype(np.int8) - (shares <= down).astype(np.int8)


def ambiguity(shares: Floats, down: float = T_DOWN, up: float = T_UP) -> Floats:
    """Return S_amb = N_disappear - N_ambiguous (n,) from visible shares (m, n) of m objects."""
    status = statuses(shares, down, up)
    return ((status == -1).sum(axis=0) - (status == 0).sum(axis=0)).astype(np.float64)


def spans(reductions: Reductions, height: int, width: int) -> Ints:
    """Return (n, 2, H): first and end (exclusive) of each row's interval in view."""
    return np.array([each.spans(height, width) for each in reductions], np.int64)


def differences(every: Ints, one: Ints) -> Floats:
    """Return Diff = 1 - |M_i and M_j| / |M_i or M_j| (n,), of n candidates' spans from one's."""
    first, end = np.moveaxis(every, -2, 0)
    shared = np.maximum(np.minimum(end, one[1]) - np.maximum(first, one[0]), 0).sum(axis=-1)
    union = (end - first).sum(axis=-1) + (one[1] - one[0]).sum() - shared
    return np.asarray(1 - shared / np.maximum(union, 1), np.float64)


def normalised(scores: Floats) -> Floats:
    """Return scores (n,) scaled to 0..1; all 0 where they are equal."""
    low, high = scores.min(), scores.max()
    return np.zeros_like(scores) if high == low else (scores - low) / (high - low)


def select(
    scores: Floats,
    every: Ints,
    k: int,
    *,
    by_ambiguity: bool = True,
    by_diversity: bool = True,
    rng: Rng | None = None,
) -> list[int]:
    """Return the places of up to k candidates, best first.

    The first has the highest S_amb. Each later one has the highest sum of S_amb and S_div, the
    difference from the nearest chosen one. Both are normalised over all candidates, chosen ones
    included (the paper does not say). Ties go to the lowest place.

    Args:
        scores: S_amb (n,) of the candidates.
        every: Their spans (n, 2, H).
        k: Number of candidates to select.
        by_ambiguity: False for the paper's Setting-1: the first is random, later ones follow
            diversity alone.
        by_diversity: False for the paper's Setting-2: all follow ambiguity.
        rng: Generator for the first candidate of Setting-1.
    """
    nearest = np.full(len(scores), np.inf)
    amb = normalised(scores) if len(scores) else scores
    chosen: list[int] = []
    while len(chosen) < min(k, len(scores)):
        total = amb.copy() if by_ambiguity else np.zeros(len(scores))
        if chosen and by_diversity:
            total += normalised(nearest)
        total[chosen] = -np.inf
        first = None if chosen or by_ambiguity else rng
        place = int(np.argmax(total) if first is None else first.integers(len(scores)))
        chosen.append(place)
        nearest = np.minimum(nearest, differences(every, every[place]))
    return chosen


KINDS = ("crop", "stretch", "rotate")
MIN_CROP = 0.5
"""Least share of an image's area that a crop keeps. The paper only requires more than the mean area
of the image's objects. But 9 % of the objects disappear in its random crops (Table III, without the
ambiguity score), and crops of any size would lose far more, as most of them show nothing."""
LARGEST_LIMIT = 0.7
"""Upper bound of that least share. If objects fill the image, there would be no crop otherwise."""
FOLLOW_UPS, MOST = 12, len(reduction.rotations())
"""Default and largest number of candidates per image and relation, which are its severities."""


OWN = "own"
"""Replaces a file of captions: the audited model's captions."""
Objects = tuple[tuple[Box, ...], ...]
"""The boxes of each object of an image."""


class Naming(Protocol):
    """Captions of images.

    They were recorded before the audit, or are the audited model's (``own``), which is asked
    before an image's follow-ups are made.
    """

    own: bool

    @property
    def fingerprint(self) -> str:
        """Hash of the captions and of how they are read."""

    def objects(
        self, sample_id: str, boxes: Sequence[Box], received: Received | None = None
    ) -> Objects:
        """Return the boxes of each named object of a sample; objects without a box are omitted.

        Args:
            sample_id: Id of the sample.
            boxes: Its detected boxes.
            received: The audited model's answers about it, for ``own`` captions.
        """


@dataclass(frozen=True)
class Reduced(LabelPreserving):
    """One kind of reduction; a follow-up's ``details`` hold the ``reduction``.

    Args:
        kind: One of KINDS.
        follow_ups: Number of candidates of an image.
        by_ambiguity: See ``select``.
        by_diversity: See ``select``.
        naming: Captions whose objects choose the follow-ups. By default, and for images in which
            they name nothing in a box, all detected objects do.
        min_crop: Least share (0..LARGEST_LIMIT) of the image's area that a crop keeps.
    """

    kind: str
    follow_ups: int = FOLLOW_UPS
    by_ambiguity: bool = True
    by_diversity: bool = True
    naming: Naming | None = field(default=None, repr=False)
    min_crop: float = field(default=MIN_CROP, repr=False)

    reduces = True  # an object in view stays in view; see oracles.ReducedCaptions

    @property
    def fingerprint(self) -> str:
        """The options that follow-ups depend on."""
        crops = "" if self.min_crop == MIN_CROP else f", crops from {self.min_crop}"
        return f"{self!r}{crops}" + (f" by {self.naming.fingerprint}" if self.naming else "")

    @property
    def needs_answer(self) -> bool:  # type: ignore[override]
        return self.naming is not None and self.naming.own

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"reic/{self.kind}"

    @property
    def severities(self) -> tuple[int, ...]:  # type: ignore[override]
        return tuple(range(1, self.follow_ups + 1))

    @property
    def about(self) -> str:  # type: ignore[override]
        what = {"crop": "cropped", "stretch": "stretched along one axis", "rotate": "rotated"}
        return f"{what[self.kind]} so that objects stay whole or vanish; severity numbers these"

    def applies(self, concept: str) -> bool:
        """Return True for captions alone: objects may be out of view, and the size changes."""
        return concept == CAPTION

    def candidates(self, sample: Sample) -> Reductions:
        """Return up to ``follow_ups`` reductions of an image, best first."""
        if sample.image is None:
            return ()
        height, width = sample.image.shape[:2]
        return _chosen(self, sample.id, height, width, sample.boxes, sample.received)

    def objects(
        self, sample_id: str, boxes: Sequence[Box], received: Received | None = None
    ) -> Objects:
        """Return the objects by which the follow-ups of a sample are chosen."""
        named = () if self.naming is None else self.naming.objects(sample_id, boxes, received)
        return named or detected(boxes)

    def reduction(self, sample: Sample, severity: int) -> Crop | Stretch | Rotate:
        """Return the reduction of a severity.

        It is the last one if there are fewer, and keeps the whole source if that is too small.
        """
        self.check(severity)
        reductions = self.candidates(sample)
        return reductions[min(severity, len(reductions)) - 1]

    def apply(self, sample: Sample, severity: int, rng: Rng) -> FollowUp:
        """Return the follow-up, which has the size of the part that it keeps."""
        self.check(severity)
        if sample.image is None:
            return FollowUp(None)
        reduction = self.reduction(sample, severity)
        return FollowUp(reduction.image(sample.image), {"reduction": reduction})


@lru_cache(maxsize=20_000)
def _chosen(
    relation: Reduced,
    sample_id: str,
    height: int,
    width: int,
    boxes: tuple[Box, ...],
    received: Received | None = None,
) -> Reductions:
    rng = generator(0, f"reic {relation.kind} {sample_id}")
    objects = relation.objects(sample_id, boxes, received)
    counted = [box for box in boxes if any(box in own for own in objects)]
    reductions = enumerated(relation.kind, height, width, counted, rng, relation.min_crop)
    if not reductions:  # too small to be reduced
        return (Crop(0, 0, width, height),)
    masks = [mask for own in objects if (mask := mask_of(own, height, width)).any()]
    shares = visible_shares(masks, reductions) if masks else np.zeros((0, len(reductions)))
    places = select(
        ambiguity(shares),
        spans(reductions, height, width),
        relation.follow_ups,
        by_ambiguity=relation.by_ambiguity,
        by_diversity=relation.by_diversity,
        rng=rng,
    )
    return tuple(reductions[place] for place in places)


def enumerated(
    kind: str, height: int, width: int, boxes: Sequence[Box], rng: Rng, min_crop: float = MIN_CROP
) -> Reductions:
    """Return all candidates of a kind.

    Crops are larger than the mean area of the boxes (REIC) and than ``min_crop`` of the image, but
    a crop of LARGEST_LIMIT is always large enough.
    """
    if kind == "crop":
        mean = float(np.mean([box.area for box in boxes])) if boxes else 0.0
        least, most = (share * height * width for share in (min_crop, LARGEST_LIMIT))
        return reduction.crops(height, width, rng, larger_than=min(max(mean, least), most))
    return reduction.stretches(height, width, rng) if kind == "stretch" else reduction.rotations()


def detected(boxes: Sequence[Box]) -> Objects:
    """Return the detected objects: one per label, and per box without a label."""
    labels = [box.label or f"box {place}" for place, box in enumerate(boxes)]
    return tuple(
        tuple(box for box, label in zip(boxes, labels, strict=True) if label == own)
        for own in dict.fromkeys(labels)
    )


def relations(
    *,
    follow_ups: Annotated[
        int, Option("reic: candidates of each image and relation (12)", ge=1, le=MOST)
    ] = FOLLOW_UPS,
    by_ambiguity: Annotated[
        bool, Option("reic: prefer candidates with few objects half in view (true)")
    ] = True,
    by_diversity: Annotated[bool, Option("reic: prefer different parts of images (true)")] = True,
    min_crop: Annotated[
        float,
        Option("reic: least share that a crop keeps; 0: as REIC (0.5)", ge=0, le=LARGEST_LIMIT),
    ] = MIN_CROP,
    naming: Annotated[
        Naming | None,
        Option(
            "reic: CSV or JSON of recorded captions with sample and caption, whose objects choose "
            'the candidates; or "own": the audited model\'s captions (default: detected objects)',
            name="captions",
            type=str,
        ),
    ] = None,
) -> list[RelationDefaults]:
    """Return REIC's crop, stretch and rotate.

    Raises:
        InputError: An option is out of its range.
    """
    check_options(relations, {"follow_ups": follow_ups, "min_crop": min_crop}, "reic")
    options = (follow_ups, by_ambiguity, by_diversity, naming, min_crop)
    return [Reduced(kind, *options) for kind in KINDS]
