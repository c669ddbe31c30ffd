"""Oracle that compares a follow-up's caption with the source's, without labels.

Source: REIC (Metamorphic Testing of Image Captioning Systems via Image-Level Reduction, TSE 2024),
section IV. Objects in the source's caption are located in the image. By the share of each that the
follow-up shows, its caption must, may, or must not name it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Annotated, Any

import numpy as np

from ..datasets.base import CompleteDataset
from ..errors import InputError
from ..relations.base import RelationDefaults
from ..relations.reduction import Crop, Rotate, Stretch, visible_shares
from ..relations.reic import T_DOWN, T_UP, statuses
from ..types import Box, Filler, JsonObject, Outcome, Question, Received, Sample, Version, mask_of
from ..utils.options import Option, check_options
from ..utils.other_code import fingerprint_of
from .base import Premise, UnansweredLoss
from .caption_rules import STATUS, Finding, check, comparable
from .captioned import NOT_CAPTIONED, QUESTION, CaptionOracle, QuestionOption, caption_of
from .captions import Reader, Same, callable_of, localising
from .captions.localising import HIDDEN, VERSIONS, Located, rounded
from .choice import scored

MAX_BOXES = 6
"""Default maximum number of boxes per image that are hidden in turn, those with the highest scores.
Each costs up to 3 captions."""


@dataclass(frozen=True)
class Expected:
    """The source image, as far as a follow-up's caption is compared with it.

    Attributes:
        caption: Its caption.
        located: Objects that the caption names, with their boxes.
        boxes: All its boxes.
        reduction: The reduction of the follow-up.
        size: Height and width of the source in pixels.
        captions: Number of its versions with captions.
        unnamed: Label -> boxes, of objects that the caption does not name.
        received: Names in the captions of its versions.
    """

    caption: str
    located: tuple[Located, ...]
    boxes: tuple[Box, ...]
    reduction: Crop | Stretch | Rotate
    size: tuple[int, int]
    captions: int
    unnamed: Mapping[str, tuple[Box, ...]]
    received: tuple[str, ...] = ()


class ReducedCaptions(CaptionOracle):
    """Oracle with loss 1 for a follow-up whose caption breaks one of REIC's three rules.

    Objects that cannot be located are not checked. A follow-up in which nothing can be checked has
    loss 0, as it reveals no violation. Follow-ups of a source without a caption are excluded.

    Args:
        reader: Reader of the objects that a caption names. Default: ``oracles.captions.language``.
        same: Function that decides whether two names mean the same. Default: as for ``reader``.
        detection: Whether an object is located by the boxes of its name.
        occlusion: Whether other objects are located by hiding boxes and asking again.
        most_boxes: Maximum number of boxes of an image that are hidden, in 3 versions each, those
            with the highest scores.
        hide_named: Whether boxes that match a name are hidden, too, as in the paper, which takes
            more calls.
        fill: Function that paints over a box, for the third version.
        down: Largest visible share, in [0, 1], of an object that has disappeared.
        up: Smallest visible share, in [0, 1], of an object that is retained.
        question: The question about each image.
        unanswered_loss: Loss of a question without answer.

    Raises:
        InputError: ``down`` is not below ``up``, or a number is out of range.
    """

    def __init__(
        self,
        reader: Reader | None = None,
        same: Same | None = None,
        *,
        detection: Annotated[bool, Option("find objects by the names of boxes")] = True,
        occlusion: Annotated[
            bool, Option("find other objects by hiding boxes and asking again, 3 calls per box")
        ] = True,
        most_boxes: Annotated[int, Option("most boxes of an image to hide", ge=0)] = MAX_BOXES,
        hide_named: Annotated[bool, Option("hide boxes that match a name, too")] = False,
        fill: Annotated[
            Filler,
            Option(
                "'file.py:name' or 'package.module:name' of what paints over a box "
                "(default: OpenCV's)",
                name="inpainting",
                reads=lambda target, base: callable_of(target, base, "oracle.inpainting"),
                type=str,
            ),
        ] = localising.inpainted,
        down: Annotated[float, Option("an object is gone up to this share", ge=0, le=1)] = T_DOWN,
        up: Annotated[float, Option("an object is there from this share", gt=0, le=1)] = T_UP,
        question: QuestionOption = QUESTION,
        unanswered_loss: UnansweredLoss = 1.0,
    ) -> None:
        from .captions import language

        super().__init__(question, unanswered_loss)
        if not 0 <= down < up <= 1:
            raise InputError(f"captions: expected 0 <= down < up <= 1, got {down} and {up}")
        check_options(ReducedCaptions, {"most_boxes": most_boxes}, "captions")
        self.reader = reader or language.reader()
        self.same = same or language.same()
        self.words = f"{fingerprint_of(self.reader)}; {fingerprint_of(self.same)}"
        self.filling, self.fill = fingerprint_of(fill), fill
        self.detection, self.occlusion = detection, occlusion
        self.most_boxes, self.hide_named = most_boxes, hide_named
        self.down, self.up = down, up

    def most_versions(self, dataset: CompleteDataset) -> int:
        most = dataset.most_boxes  # of any sample, where that is known
        boxes = self.most_boxes if most is None else min(self.most_boxes, most)
        return len(VERSIONS) * boxes if self.occlusion else 0

    def applies(self, relation: RelationDefaults, concept: str) -> bool:
        """Return True for reductions: other relations do not define which parts stay visible."""
        return relation.reduces

    # -- the source --------------------------------------------------------------------

    def versions(self, sample: Sample, received: Received | None) -> Mapping[int, Version]:
        """Return versions with one box hidden in three ways, while a name matches no box.

        A box contains an object only if none of the three captions names the object. So once all
        objects without a box were named, further versions of this box are not asked about. This
        gives the same result as all three versions, with fewer calls.
        """
        if not self.occlusion or sample.image is None:
            return {}
        located = [] if received is None else self._detected(sample, received)
        matched = {box for object_ in located for box in object_.boxes}
        versions = {}
        for number, box in enumerate(sample.boxes[: self.most_boxes]):
            candidates = [object_.name for object_ in located if not object_.boxes]
            if box in matched and not self.hide_named:
                continue
            for v, version in enumerate(VERSIONS):
                place = number * len(VERSIONS) + v
                if received is not None and not candidates:
                    break
                hiding = partial(localising.occluded, sample.image, box, version, fill=self.fill)
                versions[place] = Version(f"{HIDDEN}{version}", number + 1, hiding)
                if received is not None:
                    answer = received.versions.get(place)
                    if not isinstance(answer, str):  # it was not asked yet, or not answered
                        break
                    names = self.reader.objects(answer)
                    candidates = [n for n in candidates if not any(self.same(n, m) for m in names)]
        return versions

    def _detected(self, sample: Sample, received: Received) -> list[Located]:
        """Return the objects of the caption with the boxes of their names; [] without a caption."""
        caption = caption_of(received.answer, sample.id)
        names = () if caption is None else self.reader.objects(caption)
        return localising.by_detection(names, sample.boxes if self.detection else (), self.same)

    # -- the follow-up -----------------------------------------------------------------

    def expect(self, premise: Premise) -> Expected | None:
        """Return the facts by which a follow-up's caption is judged; None without a caption of the
        source."""
        sample = premise.sample
        answer: Any = premise.source_answer
        received = answer if isinstance(answer, Received) else Received(answer, {})
        caption = caption_of(received.answer, sample.id)
        if caption is None or sample.image is None:
            return None
        height, width = sample.image.shape[:2]
        reduction = premise.follow_up.details["reduction"]
        hidden = {
            place: self.reader.objects(answer)
            for place, answer in received.versions.items()
            if isinstance(answer, str)
        }
        boxes = sample.boxes[: self.most_boxes]
        located = localising.completed(self._detected(sample, received), boxes, hidden, self.same)
        for place, object_ in enumerate(located):
            mask = mask_of(object_.boxes, height, width)
            if mask.any():
                share = float(visible_shares([mask], [reduction])[0, 0])
                status = STATUS[int(statuses(np.array(share), self.down, self.up))]
                located[place] = replace(object_, visible=share, status=status)
        # labels whose boxes belong to an object of any name count as named
        used = {box.label for object_ in located for box in object_.boxes}
        unnamed: dict[str, tuple[Box, ...]] = {}
        for label in dict.fromkeys(box.label for box in sample.boxes if self.detection):
            if label and label not in used and not any(self.same(label, o.name) for o in located):
                unnamed[label] = tuple(box for box in sample.boxes if box.label == label)
        names, size = tuple(chain.from_iterable(hidden.values())), (height, width)
        parts = caption, tuple(located), sample.boxes, reduction, size
        return Expected(*parts, len(received.versions), unnamed, names)

    def judge(
        self, question: Question, answer: Any, expected: Expected | None, source_answer: Any = None
    ) -> Outcome:
        if expected is None:
            return NOT_CAPTIONED
        if (no_caption := self.unread(answer, question.sample_id)) is not None:
            return no_caption
        detected = expected.boxes if self.detection else ()
        names = self.reader.objects(answer)
        findings = check(expected.located, names, detected, self.same, expected.received)
        broken = any(finding.rule is not None for finding in findings)
        return replace(scored(not broken), details=describe(expected, findings, answer))


def describe(expected: Expected, findings: Sequence[Finding], caption: str) -> JsonObject:
    """Return the facts of a judged follow-up, for the report, as JSON."""
    height, width = expected.size
    kept = expected.reduction.image(np.zeros((height, width, 1), np.uint8)).shape[:2]
    return {
        "source": expected.caption,
        "caption": caption,
        "reduction": str(expected.reduction),
        "size": [height, width],
        "shown_size": list(kept),
        "boxes": [[b.label, *rounded(b)] for b in expected.boxes],
        "objects": [
            {
                "name": f.name,
                "label": next((b.label for b in f.boxes if b.label), None),
                "boxes": [rounded(b) for b in f.boxes],
                "shown": _shown(f.boxes, expected),
                "visible": None if f.visible is None else round(f.visible, 4),
                "status": f.status,
                "named": f.is_named,
                "rule": f.rule,
                "type": f.error,
            }
            for f in findings
        ],
        "unnamed": [
            {"name": label, "label": label, "boxes": [rounded(b) for b in boxes]}
            for label, boxes in expected.unnamed.items()
        ],
        "comparable": comparable(findings),
        "versions": expected.captions,
    }


def _shown(boxes: Sequence[Box], expected: Expected) -> list[list[float]]:
    """Return the visible parts of the boxes, in pixels of the follow-up."""
    if not boxes:
        return []
    visible = expected.reduction.boxes([rounded(b) for b in boxes], *expected.size)
    not_empty = (visible[:, 2] > visible[:, 0]) & (visible[:, 3] > visible[:, 1])
    return [[round(float(edge), 1) for edge in box] for box in visible[not_empty]]
