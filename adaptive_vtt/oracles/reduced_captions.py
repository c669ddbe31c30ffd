"""Oracle of captions that judges a follow-up's caption by the source's, without any label.

Source: REIC (Metamorphic Testing of Image Captioning Systems via Image-Level Reduction, TSE 2024),
section IV. Objects of the source's caption are located. The share of each that the follow-up shows
decides whether its caption must name it, may name it, or must not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
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
"""Most boxes per image that are hidden in turn, the surest first. Each costs up to 3 captions."""


@dataclass(frozen=True)
class Expected:
    """The source that a follow-up's caption is compared with.

    Attributes:
        caption: Its caption.
        located: Objects that the caption names, with their boxes.
        boxes: All detected boxes.
        reduction: The reduction of the follow-up.
        size: Height and width of the source.
        captions: Number of its versions with captions.
        unnamed: Label -> boxes of detected things that the caption does not name.
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


def _filler(target: str, base: Path) -> Filler:
    filler: Filler = callable_of(target, base, "oracle.inpainting")
    return filler


class ReducedCaptions(CaptionOracle):
    """Oracle with loss 1 for a follow-up whose caption breaks one of REIC's three rules.

    Objects that cannot be located are not checked. A follow-up that shows nothing to check has loss
    0, as it reveals no violation. Follow-ups of a source without a caption do not count.

    Args:
        reader: Reads the objects that a caption names (default: ``oracles.captions.language``).
        same: Decides whether two names mean the same.
        detection: Whether an object is located by the boxes of its name.
        occlusion: Whether other objects are located by hiding boxes and asking again.
        most_boxes: Number of boxes of an image that are hidden, the surest first, in 3 versions
            each.
        hide_named: Whether boxes that match a name are hidden, too, as in the paper. It takes more
            calls.
        fill: Paints over a box, for the third version.
        down: Largest share in view (0..1) of an object that has disappeared.
        up: Smallest share in view (0..1) of an object that is retained.
        question: The question about every image.
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
                reads=_filler,
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
        """Return True for reductions, as others do not say what stays in view."""
        return relation.reduces

    # -- the source --------------------------------------------------------------------

    def versions(self, sample: Sample, received: Received | None) -> Mapping[int, Version]:
        """Return versions with a box hidden in three ways, where a name matches no box.

        A box holds an object only if none of the three captions names the object. So once every
        object in question was named, the box's other versions are not asked about. The result is
        that of asking about all three, with fewer calls.
        """
        if not self.occlusion or sample.image is None:
            return {}
        located = [] if received is None else self._detected(sample, received)
        matched = {box for one in located for box in one.boxes}
        versions = {}
        for number, box in enumerate(sample.boxes[: self.most_boxes]):
            lost = [one.name for one in located if not one.boxes]
            if box in matched and not self.hide_named:
                continue
            for v, version in enumerate(VERSIONS):
                place = number * len(VERSIONS) + v
                if received is not None and not lost:
                    break
                hiding = partial(localising.occluded, sample.image, box, version, fill=self.fill)
                versions[place] = Version(f"{HIDDEN}{version}", number + 1, hiding)
                if received is not None:
                    answer = received.versions.get(place)
                    if not isinstance(answer, str):  # what it names is not known yet
                        break
                    names = self.reader.objects(answer)
                    lost = [n for n in lost if not any(self.same(n, m) for m in names)]
        return versions

    def _detected(self, sample: Sample, received: Received) -> list[Located]:
        """Return the objects of the caption in the boxes of their names; [] without a caption."""
        caption = caption_of(received.answer, sample.id)
        names = () if caption is None else self.reader.objects(caption)
        return localising.by_detection(names, sample.boxes if self.detection else (), self.same)

    # -- the follow-up -----------------------------------------------------------------

    def expect(self, given: Premise) -> Expected | None:
        """Return the objects expected in a follow-up's caption; None for an uncaptioned source."""
        sample = given.sample
        answer: Any = given.source_answer
        received = answer if isinstance(answer, Received) else Received(answer, {})
        caption = caption_of(received.answer, sample.id)
        if caption is None or sample.image is None:
            return None
        height, width = sample.image.shape[:2]
        reduction = given.follow_up.details["reduction"]
        hidden = {
            place: self.reader.objects(answer)
            for place, answer in received.versions.items()
            if isinstance(answer, str)
        }
        boxes = sample.boxes[: self.most_boxes]
        located = localising.completed(self._detected(sample, received), boxes, hidden, self.same)
        for place, one in enumerate(located):
            mask = mask_of(one.boxes, height, width)
            if mask.any():
                share = float(visible_shares([mask], [reduction])[0, 0])
                status = STATUS[int(statuses(np.array(share), self.down, self.up))]
                located[place] = replace(one, visible=share, status=status)
        # a label is named, too, where its boxes are those of an object of another name
        taken = {box.label for one in located for box in one.boxes}
        unnamed: dict[str, tuple[Box, ...]] = {}
        for label in dict.fromkeys(box.label for box in sample.boxes if self.detection):
            if label and label not in taken and not any(self.same(label, o.name) for o in located):
                unnamed[label] = tuple(box for box in sample.boxes if box.label == label)
        named, sides = tuple(chain.from_iterable(hidden.values())), (height, width)
        parts = caption, tuple(located), sample.boxes, reduction, sides
        return Expected(*parts, len(received.versions), unnamed, named)

    def judge(
        self, question: Question, answer: Any, expected: Expected | None, source_answer: Any = None
    ) -> Outcome:
        if expected is None:
            return NOT_CAPTIONED
        unread = self.unread(answer, question.sample_id)
        if unread is not None:
            return unread
        detected = expected.boxes if self.detection else ()
        names = self.reader.objects(answer)
        findings = check(expected.located, names, detected, self.same, expected.received)
        broken = any(finding.rule is not None for finding in findings)
        return replace(scored(not broken), details=describe(expected, findings, answer))


def describe(expected: Expected, findings: Sequence[Finding], caption: str) -> JsonObject:
    """Return the report's facts of a judged follow-up, as JSON has them."""
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
                "said": f.is_named,
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
    left = (visible[:, 2] > visible[:, 0]) & (visible[:, 3] > visible[:, 1])
    return [[round(float(edge), 1) for edge in box] for box in visible[left]]
