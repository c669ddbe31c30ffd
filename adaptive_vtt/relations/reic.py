"""REIC's three reductions as relations; severity k is the k-th best candidate of an image.

Source: Metamorphic Testing of Image Captioning Systems via Image-Level Reduction (TSE 2024),
sections IV-C and IV-D. All candidates of an image are enumerated, and REIC's two scores rank them.
The first score prefers candidates in which objects disappear to those in which they are partly
visible, which allow no expectation. The second prefers parts of the image that no chosen candidate
shows.

The scores count the objects that a caption names (``Naming``); the caption was recorded beforehand
or is the audited model's. Without a caption they count all detected objects. Severities 1 to 3 are
the follow-ups that REIC would use for such a caption.
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
"""Thresholds of an object's visible share: up to T_DOWN it has disappeared, from T_UP on it is
retained, in between it is ambiguous (REIC, section IV-D)."""


def statuses(shares: Floats, down: float = T_DOWN, up: float = T_UP) -> npt.NDArray[np.int8]:
    """Return 1 for retained, 0 for ambiguous and -1 for disappeared objects."""
    return (shares >= up).astype(np.int8) - (shares <= down).astype(np.int8)


def ambiguity(shares: Floats, down: float = T_DOWN, up: float = T_UP) -> Floats:
    """Return S_amb = N_disappear - N_ambiguous (n,) from visible shares (m, n) of m objects."""
    status = statuses(shares, down, up)
    return ((status == -1).sum(axis=0) - (status == 0).sum(axis=0)).astype(np.float64)


def spans(reductions: Reductions, height: int, width: int) -> Ints:
    """Return start and end (exclusive) of the visible interval of each row, (n, 2, H)."""
    return np.array([reduction.spans(height, width) for reduction in reductions], np.int64)


def differences(candidates: Ints, chosen: Ints) -> Floats:
    """Return REIC's Diff = 1 - |M_i and M_j| / |M_i or M_j|, (n,).

    Args:
        candidates: Spans (n, 2, H) of the candidates i.
        chosen: Spans (2, H) of the candidate j.
    """
    first, end = np.moveaxis(candidates, -2, 0)
    overlap = np.minimum(end, chosen[1]) - np.maximum(first, chosen[0])
    shared = np.maximum(overlap, 0).sum(axis=-1)
    union = (end - first).sum(axis=-1) + (chosen[1] - chosen[0]).sum() - shared
    return np.asarray(1 - shared / np.maximum(union, 1), np.float64)


def normalised(scores: Floats) -> Floats:
    """Return scores (n,) scaled to 0..1, or zeros if all are equal."""
    low, high = scores.min(), scores.max()
    return np.zeros_like(scores) if high == low else (scores - low) / (high - low)


def select(
    scores: Floats,
    candidates: Ints,
    k: int,
    *,
    by_ambiguity: bool = True,
    by_diversity: bool = True,
    rng: Rng | None = None,
) -> list[int]:
    """Return the indices of up to k candidates, best first.

    The first has the highest S_amb. The next ones have the highest sum of S_amb and S_div, the
    difference from the nearest chosen candidate. Both are normalised over all candidates, also the
    chosen ones, as the paper does not say. Ties go to the lowest index.

    Args:
        scores: S_amb (n,) of the candidates.
        candidates: Spans (n, 2, H) of the candidates.
        k: Number of candidates to select.
        by_ambiguity: False for the paper's Setting-1: the first is random, and diversity alone
            selects the next ones.
        by_diversity: False for the paper's Setting-2: ambiguity alone selects all.
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
        best = int(np.argmax(total) if first is None else first.integers(len(scores)))
        chosen.append(best)
        nearest = np.minimum(nearest, differences(candidates, candidates[best]))
    return chosen


KINDS = ("crop", "stretch", "rotate")
MIN_CROP = 0.5
"""Minimum share of an image's area that a crop keeps. The paper only requires more than the mean
area of the image's objects. But 9 % of the objects disappear in its random crops (Table III,
without the ambiguity score). Crops of any size would lose far more, as most of them show
nothing."""
LARGEST_LIMIT = 0.7
"""Maximum of the minimum share: if objects fill the image, no crop would be left otherwise."""
FOLLOW_UPS, MOST = 12, len(reduction.rotations())
"""Default and maximum number of severities: candidates per image and relation."""
OWN = "own"
"""Stands for the audited model's captions in place of a file of captions."""
Objects = tuple[tuple[Box, ...], ...]
"""The boxes of each object of an image."""


class Naming(Protocol):
    """Captions of images, and the objects that they name."""

    own: bool
    """True for the audited model's captions, which are asked before the follow-ups are made; False
    for captions that were recorded before the audit."""

    @property
    def fingerprint(self) -> str:
        """Hash of the captions and of how they are read."""

    def objects(
        self, sample_id: str, boxes: Sequence[Box], received: Received | None = None
    ) -> Objects:
        """Return the boxes of each named object of a sample; objects without a box are omitted.

        Args:
            sample_id: Id of the sample.
            boxes: Detected boxes of the sample.
            received: The audited model's answers about the sample, for ``own`` captions.
        """


@dataclass(frozen=True)
class Reduced(LabelPreserving):
    """Relation of one kind of reduction; ``details`` of a follow-up hold the ``reduction``.

    Args:
        kind: One of KINDS.
        follow_ups: Number of severities: candidates per image.
        by_ambiguity: See ``select``.
        by_diversity: See ``select``.
        naming: Captions whose objects the scores count. Without captions, or if a caption names no
            object with a box, the scores count all detected objects.
        min_crop: Minimum share (0..LARGEST_LIMIT) of the image's area that a crop keeps.
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
        """Return whether the concept is CAPTION: other answers change with objects out of view."""
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
        """Return the objects of a sample that the scores count."""
        named = () if self.naming is None else self.naming.objects(sample_id, boxes, received)
        return named or detected(boxes)

    def reduction(self, sample: Sample, severity: int) -> Crop | Stretch | Rotate:
        """Return the reduction of a severity: the last candidate if there are fewer candidates.

        For an image that is too small to reduce it keeps the whole image.
        """
        self.check(severity)
        reductions = self.candidates(sample)
        return reductions[min(severity, len(reductions)) - 1]

    def apply(self, sample: Sample, severity: int, rng: Rng) -> FollowUp:
        """Return the follow-up in the size of the kept part."""
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
    counted = [box for box in boxes if any(box in parts for parts in objects)]
    reductions = enumerated(relation.kind, height, width, counted, rng, relation.min_crop)
    if not reductions:  # too small to be reduced
        return (Crop(0, 0, width, height),)
    masks = [mask for parts in objects if (mask := mask_of(parts, height, width)).any()]
    shares = visible_shares(masks, reductions) if masks else np.zeros((0, len(reductions)))
    best = select(
        ambiguity(shares),
        spans(reductions, height, width),
        relation.follow_ups,
        by_ambiguity=relation.by_ambiguity,
        by_diversity=relation.by_diversity,
        rng=rng,
    )
    return tuple(reductions[index] for index in best)


def enumerated(
    kind: str, height: int, width: int, boxes: Sequence[Box], rng: Rng, min_crop: float = MIN_CROP
) -> Reductions:
    """Return all candidates of a kind.

    Crops are larger than the mean area of the boxes (REIC) and than ``min_crop`` of the image, but
    a crop of LARGEST_LIMIT is always large enough.
    """
    if kind == "crop":
        mean = float(np.mean([box.area for box in boxes])) if boxes else 0.0
        smallest, limit = min_crop * height * width, LARGEST_LIMIT * height * width
        return reduction.crops(height, width, rng, larger_than=min(max(mean, smallest), limit))
    return reduction.stretches(height, width, rng) if kind == "stretch" else reduction.rotations()


def detected(boxes: Sequence[Box]) -> Objects:
    """Return the boxes of each detected object: one per label, or per box without a label."""
    objects: dict[str, list[Box]] = {}
    for number, box in enumerate(boxes):
        objects.setdefault(box.label or f"box {number}", []).append(box)
    return tuple(map(tuple, objects.values()))


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
