"""Captions: what a follow-up's caption may name, judged by the source's. No label is needed.

Source: REIC (Metamorphic Testing of Image Captioning Systems via Image-Level Reduction, TSE
2024), section IV: objects of the source's caption are located, the share of each that the
follow-up still shows says whether its caption must name it, must not, or may.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..captions.base import Filler, Reader, Same
from ..captions.localising import Located, by_detection, by_occlusion, mask_of
from ..captions.occlusion import VERSIONS, inpainted, occluded
from ..captions.rules import STATUS, Finding, check, comparable
from ..captions.selection import T_DOWN, T_UP, statuses
from ..captions.view import CAPTION, QUESTION, Captioned
from ..datasets.base import Box, Dataset, Image, Sample
from ..errors import InputError, ModelError
from ..models.base import Unanswered, Value
from ..question import Question
from ..relations.base import FollowUp, Relation
from ..relations.reduction import Crop, Rotate, Stretch, visible_shares
from ..vqa.extraction import NO_ANSWER, REFUSED, refused
from .base import Heard, OracleDefaults, Outcome, Version

if TYPE_CHECKING:
    from ..captions.memory import CaptionMemory
    from ..space import QuestionSpace

VIOLATIONS = MappingProxyType({"violation rate": 1})
MOST_BOXES = 6
"""So many boxes of an image are hidden in turn at most, the surest first: 3 captions each."""


NOTHING: Mapping[str, Any] = {
    "source": "", "caption": "", "reduction": "", "size": [1, 1], "shown_size": [1, 1],
    "boxes": [], "objects": [], "unnamed": [], "comparable": False, "versions": 0,
}  # fmt: skip
"""The details of a follow-up whose source was not captioned."""
_FIRST_PERSON = re.compile(r"\s*(i\b|i['’]m|sorry|as an\b|unfortunately|(my )?apologies)", re.I)


@dataclass(frozen=True)
class Expected:
    """What a follow-up's caption is read against.

    ``located`` objects of the source's ``caption``, how much of each is ``visible``, and
    ``status`` of each; ``captions``: how many versions of the source were captioned, too;
    ``unnamed``: boxes by label of what was detected and the caption does not name.
    """

    caption: str
    located: tuple[Located, ...]
    visible: tuple[float | None, ...]
    status: tuple[str, ...]
    boxes: tuple[Box, ...]
    reduction: Crop | Stretch | Rotate
    size: tuple[int, int]
    captions: int
    unnamed: Mapping[str, tuple[Box, ...]]


class ReducedCaptions(OracleDefaults):
    """Loss 1 where a follow-up's caption breaks one of REIC's three rules.

    ``reader`` finds the objects that a caption names, ``same`` decides whether two names mean
    the same (default: ``captions.words``). An object is located by the boxes of its name
    (``detection``), else by hiding boxes and asking again (``occlusion``: up to ``most_boxes``
    boxes, the surest first, in 3 versions each; ``fill`` makes the third; boxes that match a
    name are left out unless ``hide_named``, as in the paper, which takes more calls). What is
    located by neither is not checked. ``down`` and ``up``: shares in view up to and from which
    an object has disappeared or is retained. A follow-up that shows nothing that could be
    checked has loss 0: it reveals no violation. Where the source was not captioned its
    follow-ups do not count. Raises InputError for thresholds out of order.
    """

    needs_source = True
    rates = VIOLATIONS

    def __init__(
        self,
        reader: Reader | None = None,
        same: Same | None = None,
        *,
        detection: bool = True,
        occlusion: bool = True,
        most_boxes: int = MOST_BOXES,
        hide_named: bool = False,
        fill: Filler = inpainted,
        down: float = T_DOWN,
        up: float = T_UP,
        question: str = QUESTION,
        unanswered_loss: float = 1.0,
    ) -> None:
        from ..captions import words

        if not 0 <= down < up <= 1:
            raise InputError(f"captions: expected 0 <= down < up <= 1, got {down} and {up}")
        self.reader = reader or words.reader()
        self.same = same or words.same()
        self.words = f"{words.describe(self.reader)}; {words.describe(self.same)}"
        if most_boxes < 0:
            raise InputError(f"captions: expected most_boxes of at least 0, got {most_boxes}")
        self.filling = str(getattr(fill, "describe", None) or getattr(fill, "__name__", fill))
        self.detection = detection
        self.occlusion = occlusion
        self.most_boxes = most_boxes
        self.hide_named = hide_named
        self.most_versions = len(VERSIONS) * most_boxes if occlusion else 0
        self.fill = fill
        self.down, self.up = down, up
        self.question = question
        self.unanswered_loss = unanswered_loss

    def view(self, dataset: Dataset) -> Dataset:
        """Raises InputError for a dataset without images."""
        if not dataset.has_images:
            raise InputError(f"captions: expected images, dataset {dataset.name!r} has none")
        most = getattr(dataset, "most_boxes", self.most_boxes)  # of any sample, where known
        self.most_versions = len(VERSIONS) * min(self.most_boxes, most) * self.occlusion
        return Captioned(dataset, self.question)

    def asked(self, dataset: Dataset) -> tuple[tuple[str, ...], Sequence[int]]:
        return (CAPTION,), range(1)

    def applies(self, relation: Relation, concept: str) -> bool:
        """After reductions alone: of other changes nothing is said of what stays in view."""
        return getattr(relation, "reduces", False)

    def memory(self, space: "QuestionSpace") -> "CaptionMemory":
        from ..captions.memory import CaptionMemory

        return CaptionMemory(space, self.down, self.up)

    # -- the source --------------------------------------------------------------------

    def versions(self, sample: Sample, heard: Heard | None) -> Mapping[int, Version]:
        """Boxes hidden in three ways, where a name of the caption matches no box.

        A box is an object's only if that is named in none of the three captions, so the next
        way to hide it is asked about while that may still be: this comes to the same as
        asking about all three, with fewer calls.
        """
        if not self.occlusion or sample.image is None:
            return {}
        found = {}
        for number, box in enumerate(sample.boxes[: self.most_boxes]):
            lost = ["anything"] if heard is None else self._lost(sample, heard.answer, box)
            for v, version in enumerate(VERSIONS):
                place = number * len(VERSIONS) + v
                if not lost:
                    break
                hiding = self._hiding(sample.image, box, version)
                found[place] = Version(f"hidden/{version}", number + 1, hiding)
                if heard is not None:
                    lost = self._still_lost(lost, heard.versions.get(place))
        return found

    def _lost(self, sample: Sample, answer: Value, box: Box) -> list[str]:
        """The names of the caption that match no box, and so may be this one's."""
        if not isinstance(answer, str) or refusal(answer):
            return []
        found = self._by_detection(self.reader.objects(answer), sample.boxes)
        if not self.hide_named and any(box in one.boxes for one in found):
            return []
        return [one.name for one in found if not one.boxes]

    def _still_lost(self, names: Sequence[str], said: Value | None) -> list[str]:
        """The names that are absent from a caption; none while that is not known."""
        if not isinstance(said, str):
            return []
        there = self.reader.objects(said)
        return [name for name in names if not any(self.same(name, n) for n in there)]

    def _hiding(self, image: Image, box: Box, version: str) -> Callable[[], Image]:
        return lambda: occluded(image, box, version, fill=self.fill)

    def _by_detection(self, names: Sequence[str], boxes: Sequence[Box]) -> list[Located]:
        return by_detection(names, boxes if self.detection else (), self.same)

    def _located(self, sample: Sample, heard: Heard) -> tuple[Located, ...]:
        """The objects of the source's caption, each where it is."""
        assert isinstance(heard.answer, str)
        hidden = {
            place: self.reader.objects(said)
            for place, said in heard.versions.items()
            if isinstance(said, str)
        }
        boxes = sample.boxes[: self.most_boxes]
        return tuple(
            one if one.boxes or not hidden else by_occlusion(one.name, boxes, hidden, self.same)
            for one in self._by_detection(self.reader.objects(heard.answer), sample.boxes)
        )

    # -- the follow-up -----------------------------------------------------------------

    def expect(
        self,
        relation: Relation,
        follow_up: FollowUp,
        sample: Sample,
        question: Question,
        source_answer: Any,
    ) -> Expected | None:
        """None where the source was not captioned."""
        heard = source_answer if isinstance(source_answer, Heard) else Heard(source_answer, {})
        said = heard.answer
        if isinstance(said, Unanswered) or said is None or sample.image is None:
            return None
        caption = _words(said, sample.id)
        if not caption.strip() or refusal(caption):
            return None
        height, width = sample.image.shape[:2]
        reduction = follow_up.details["reduction"]
        located, visible, status = [], [], []
        for one in self._located(sample, heard):
            mask = mask_of(one.boxes, height, width)
            seen = float(visible_shares([mask], [reduction])[0, 0]) if mask.any() else None
            located.append(one)
            visible.append(seen)
            status.append("unlocated" if seen is None else self._status(seen))
        return Expected(
            caption, tuple(located), tuple(visible), tuple(status), sample.boxes, reduction,
            (height, width), len(heard.versions), self._unnamed(sample.boxes, located),
        )  # fmt: skip

    def _unnamed(
        self, boxes: Sequence[Box], located: Sequence[Located]
    ) -> Mapping[str, tuple[Box, ...]]:
        labels = dict.fromkeys(b.label for b in boxes if b.label and self.detection)
        other = {b.label for one in located for b in one.boxes}  # named, by whatever name
        free = [
            n for n in labels if n not in other and not any(self.same(n, o.name) for o in located)
        ]
        return {label: tuple(b for b in boxes if b.label == label) for label in free}

    def _status(self, share: float) -> str:
        return STATUS[int(statuses(np.array(share), self.down, self.up))]

    def judge(
        self,
        question: Question,
        answer: Any,
        expected: Expected | None,
        source_answer: Any = None,
    ) -> Outcome:
        if expected is None:
            return Outcome(0.0, excluded="the source image was not captioned", details=NOTHING)
        if isinstance(answer, Unanswered):
            return Outcome(self.unanswered_loss)
        _words(answer, question.sample_id)
        no = refusal(answer)
        if no or not answer.strip():
            return Outcome(self.unanswered_loss, unanswered=REFUSED + no if no else NO_ANSWER)
        findings = check(
            expected.located, expected.visible, expected.status, self.reader.objects(answer),
            expected.boxes if self.detection else (), self.same,
        )  # fmt: skip
        loss = float(any(f.rule is not None for f in findings))
        details = describe(expected, findings, answer)
        return Outcome(loss, 1 - loss / 2, 1 - loss, details=details)


def refusal(caption: str) -> str | None:
    """The words with which somebody refuses to caption; None where that is no refusal: what
    people in a picture cannot do is none, so only a beginning in the first person is."""
    return refused(caption) if _FIRST_PERSON.match(caption) else None


def _words(answer: Any, sample: str) -> str:
    """The answer; raises ModelError for one that is no text."""
    if not isinstance(answer, str):
        raise ModelError(f"captions: expected a text, got {answer!r} for sample {sample!r}")
    return answer


def describe(expected: Expected, findings: Sequence[Finding], caption: str) -> dict[str, Any]:
    """What the report tells of a judged follow-up, as JSON has it; pixels to one decimal."""
    height, width = expected.size
    kept = expected.reduction.image(np.zeros((height, width, 1), np.uint8)).shape[:2]
    return {
        "source": expected.caption,
        "caption": caption,
        "reduction": str(expected.reduction),
        "size": [height, width],
        "shown_size": list(kept),
        "boxes": [[b.label, *_edges(b)] for b in expected.boxes],
        "objects": [
            {
                "name": f.name,
                "label": next((b.label for b in f.boxes if b.label), None),
                "boxes": [_edges(b) for b in f.boxes],
                "shown": _shown(f.boxes, expected),
                "visible": None if f.visible is None else round(f.visible, 4),
                "status": f.status,
                "said": f.said,
                "rule": f.rule,
                "type": f.error,
            }
            for f in findings
        ],
        "unnamed": [
            {"name": label, "label": label, "boxes": [_edges(b) for b in boxes]}
            for label, boxes in expected.unnamed.items()
        ],
        "comparable": comparable(findings),
        "versions": expected.captions,
    }


def _shown(boxes: Sequence[Box], expected: Expected) -> list[list[float]]:
    """Where in the follow-up what is left of the boxes is."""
    if not boxes:
        return []
    there = expected.reduction.boxes([_edges(b) for b in boxes], *expected.size)
    left = (there[:, 2] > there[:, 0]) & (there[:, 3] > there[:, 1])
    return [[round(float(edge), 1) for edge in box] for box in there[left]]


def _edges(box: Box) -> list[float]:
    return [round(float(edge), 1) for edge in (box.left, box.top, box.right, box.bottom)]
