"""REIC's three reductions as relations: a severity is the number of a candidate follow-up.

Source: Metamorphic Testing of Image Captioning Systems via Image-Level Reduction (TSE 2024),
sections IV-C and IV-D. All candidates of an image are enumerated, and of these the best few
by REIC's own two scores are kept, best first. A candidate that makes objects disappear says more
than one that leaves them half in view, of which nothing can be expected; and one that shows
another part of the image than those already chosen says more than one that shows the same.

The objects that scores count are known before any follow-up is made: they are those that a caption
names, one recorded beforehand or the audited model's own, which is then asked for first
(``Naming``), and else all that a detector found, so that severities 1 to 3 are those that REIC
would ask about if the caption named what was detected.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Any, Protocol

import numpy as np
import numpy.typing as npt

from ..types import CAPTION, Box, Floats, FollowUp, Received, Sample, mask_of
from ..utils.options import Option, check_options
from ..utils.random_streams import generator
from .base import LabelPreserving, RelationDefaults
from .reduction import (
    Crop,
    Reductions,
    Rotate,
    Stretch,
    crops,
    rotations,
    stretches,
    visible_shares,
)

Ints = npt.NDArray[np.int64]

T_DOWN, T_UP = 0.2, 0.9
"""Shares of an object that stay in view: up to T_DOWN it has disappeared, from T_UP on it is
retained, in between it is ambiguous (REIC, section IV-D)."""


@dataclass(frozen=True)
class Counts:
    """How many objects each of n candidates retains, makes ambiguous, makes disappear: (n,)."""

    retained: Ints
    ambiguous: Ints
    disappeared: Ints


def statuses(shares: Floats, down: float = T_DOWN, up: float = T_UP) -> npt.NDArray[np.int8]:
    """1 retained, 0 ambiguous, -1 disappeared, for visible shares of any shape."""
    return (shares >= up).astype(np.int8) - (shares <= down).astype(np.int8)


def counts(shares: Floats, down: float = T_DOWN, up: float = T_UP) -> Counts:
    """Return the counts of n candidates, given the visible shares m x n of m objects."""
    status = statuses(shares, down, up)
    return Counts(*(np.asarray((status == s).sum(axis=0), np.int64) for s in (1, 0, -1)))


def ambiguity(counted: Counts) -> Floats:
    """S_amb = N_disappear - N_ambiguous (n,); how many are retained does not count."""
    return (counted.disappeared - counted.ambiguous).astype(np.float64)


@dataclass(frozen=True)
class Spans:
    """What n candidates leave in view: of each of H rows one interval, first (n x H) and end
    (n x H, exclusive)."""

    first: Ints
    end: Ints

    def __getitem__(self, places: Any) -> "Spans":
        return Spans(self.first[places], self.end[places])


def spans(reductions: Reductions, height: int, width: int) -> Spans:
    """Return what each of n reductions leaves in view of an image of H x W."""
    rows = np.array([reduction.spans(height, width) for reduction in reductions])
    return Spans(rows[:, 0], rows[:, 1])


def differences(every: Spans, one: Spans) -> Floats:
    """Diff = 1 - |M_i and M_j| / |M_i or M_j| (n,), of each candidate from one (its row)."""
    both = np.minimum(every.end, one.end) - np.maximum(every.first, one.first)
    shared = np.maximum(both, 0).sum(axis=-1)
    areas = (every.end - every.first).sum(axis=-1)
    union = areas + (one.end - one.first).sum(axis=-1) - shared
    return np.asarray(1 - shared / np.maximum(union, 1), np.float64)


def normalised(scores: Floats) -> Floats:
    """Scores (n,) from 0 to 1; all 0 where they are all the same."""
    low, high = scores.min(), scores.max()
    return np.zeros_like(scores) if high == low else (scores - low) / (high - low)


def select(
    scores: Floats,
    every: Spans,
    k: int,
    *,
    by_ambiguity: bool = True,
    by_diversity: bool = True,
    rng: np.random.Generator | None = None,
) -> list[int]:
    """Return up to k places of candidates, best first, given S_amb (n,) and what each leaves in
    view.

    The first is the one with the highest S_amb, each later one the highest sum of S_amb and
    S_div, the difference from the nearest one chosen, both normalised over all candidates,
    those chosen included (the paper is silent on that). Ties go to the lowest place.
    The paper's ablations: without ``by_ambiguity``
    the first is random (``rng``) and later ones go by diversity alone (Setting-1), without
    ``by_diversity`` all go by ambiguity alone (Setting-2).
    """
    nearest = np.full(len(scores), np.inf)
    amb = normalised(scores) if len(scores) else scores
    chosen: list[int] = []
    while len(chosen) < min(k, len(scores)):
        total = amb.copy() if by_ambiguity else np.zeros(len(scores))
        if chosen and by_diversity:
            total += normalised(nearest)
        total[chosen] = -np.inf
        if not chosen and not by_ambiguity and rng is not None:
            place = int(rng.integers(len(scores)))
        else:
            place = int(np.argmax(total))
        chosen.append(place)
        nearest = np.minimum(nearest, differences(every, every[place]))
    return chosen


KINDS = ("crop", "stretch", "rotate")
MIN_CROP = 0.5
"""Least share of an image's area that a crop keeps. The paper only asks for more than the mean area
of the image's objects; but in its random crops 9 % of the objects disappear (Table III, without the
ambiguity score), and crops of any size would lose far more, as most of them show nothing."""
LARGEST_LIMIT = 0.7
"""Upper bound of that least share: where objects fill the image, crops that keep more than this
will do, as there would be none otherwise."""
FOLLOW_UPS, MOST = 12, len(rotations())
"""Candidates kept per image and relation, and so the number of severities; the most is that of
rotations."""


OWN = "own"
"""In place of a file of captions: the audited model's own."""
Objects = tuple[tuple[Box, ...], ...]
"""The boxes of each object of an image."""


class Naming(Protocol):
    """What was said of images before the audit, the same whatever is asked in it; ``own``: what the
    audited model says of each before its follow-ups are made."""

    own: bool

    @property
    def fingerprint(self) -> str:
        """What was said, and how it is read: by a hash that differs where either does."""

    def objects(
        self, sample_id: str, boxes: Sequence[Box], received: Received | None = None
    ) -> Objects:
        """Return the boxes that each named object of a sample is in; objects in none are left out.

        ``received``: what the audited model said of the sample, where that is ``own``.
        """


@dataclass(frozen=True)
class Reduced(LabelPreserving):
    """One kind of reduction. ``by_ambiguity`` and ``by_diversity``: see ``select``; ``min_crop``
    (0..LARGEST_LIMIT): least share of the image's area that a crop keeps.

    ``naming``: says the objects that follow-ups are chosen by; without it, and for images of which
    it names nothing that a box bears, these are all that was detected. ``details`` of a
    follow-up: the ``reduction`` itself.
    """

    kind: str
    follow_ups: int = FOLLOW_UPS
    by_ambiguity: bool = True
    by_diversity: bool = True
    naming: Naming | None = field(default=None, repr=False)
    min_crop: float = field(default=MIN_CROP, repr=False)

    reduces = True  # what is in view of the source stays; see oracles.ReducedCaptions

    @property
    def fingerprint(self) -> str:
        """The options, on which the follow-ups depend."""
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
        """To captions alone: objects may be out of view, and the size is another."""
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
        """Return what the follow-ups of a sample are chosen by."""
        named = () if self.naming is None else self.naming.objects(sample_id, boxes, received)
        return named or detected(boxes)

    def reduction(self, sample: Sample, severity: int) -> Crop | Stretch | Rotate:
        """That of a severity: the last one there is where there are fewer, and the source
        itself where it is too small to be reduced, by a pixel or two."""
        self.check(severity)
        reductions = self.candidates(sample)
        return reductions[min(severity, len(reductions)) - 1]

    def apply(self, sample: Sample, severity: int, rng: np.random.Generator) -> FollowUp:
        """Return the follow-up at its own size."""
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
    every = enumerated(relation.kind, height, width, counted, rng, relation.min_crop)
    if not every:  # too small to be reduced
        return (Crop(0, 0, width, height),)
    masks = [mask for own in objects if (mask := mask_of(own, height, width)).any()]
    shares = visible_shares(masks, every) if masks else np.zeros((0, len(every)))
    places = select(
        ambiguity(counts(shares)),
        spans(every, height, width),
        relation.follow_ups,
        by_ambiguity=relation.by_ambiguity,
        by_diversity=relation.by_diversity,
        rng=rng,
    )
    return tuple(every[place] for place in places)


def enumerated(
    kind: str,
    height: int,
    width: int,
    boxes: Sequence[Box],
    rng: np.random.Generator,
    min_crop: float = MIN_CROP,
) -> Reductions:
    """Return all candidates of a kind; crops are larger than the mean area of the boxes (REIC), and
    keep at least ``min_crop`` of the image; no crop has to keep more than LARGEST_LIMIT."""
    if kind == "crop":
        mean = float(np.mean([box.area for box in boxes])) if boxes else 0.0
        least, most = (share * height * width for share in (min_crop, LARGEST_LIMIT))
        return crops(height, width, rng, larger_than=min(max(mean, least), most))
    return stretches(height, width, rng) if kind == "stretch" else rotations()


def detected(boxes: Sequence[Box]) -> Objects:
    """Return what was detected: an object per label, and per box without one."""
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
        bool, Option("reic: prefer candidates that leave few objects half in view (true)")
    ] = True,
    by_diversity: Annotated[
        bool, Option("reic: prefer candidates that show different parts (true)")
    ] = True,
    min_crop: Annotated[
        float,
        Option(
            "reic: least share of the image that a crop keeps; 0: as in the paper, only more than "
            "the mean area of the objects (0.5)",
            ge=0,
            le=LARGEST_LIMIT,
        ),
    ] = MIN_CROP,
    naming: Annotated[
        Naming | None,
        Option(
            "reic: captions of the images, recorded beforehand, CSV or JSON with sample and "
            'caption: candidates are chosen by what these name; or "own": by what the audited '
            "model's own caption of each image names (default: all that is detected)",
            name="captions",
            type=str,
        ),
    ] = None,
) -> list[RelationDefaults]:
    """Return all three. Raise InputError for options out of their range."""
    ranged = {"follow_ups": follow_ups, "min_crop": min_crop}
    check_options(relations, ranged, "reic")
    options = (follow_ups, by_ambiguity, by_diversity, naming, min_crop)
    return [Reduced(kind, *options) for kind in KINDS]
