"""Value types of the protocols: plain data that all rooms share."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from .errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int64]
JsonObject = dict[str, Any]
"""A JSON object, as it is journaled, written to a file, sent or received, or shown on a page."""
CallMode = Literal["one", "all"]
"""Content of one call of a model: one question, or all concepts of an image."""
Guarantee = Literal["all", "each"]
"""Claim that holds with the requested confidence: all intervals at once, or each by itself."""
EndedBy = Literal["", "gate"]
"""Cause of the end of an audit: "gate" if its own gate was decided, "" for anything else."""
ConceptsAre = Literal["classes", "labels", "choices", "other"]
"""Kind of an oracle's concepts; see ``OracleDefaults``."""


@dataclass(frozen=True)
class Question:
    """One question in words; ``truth`` is that of the source image."""

    number: int
    sample_id: str
    relation: str
    severity: int
    concept: str
    truth: int


Numbers = TypeVar("Numbers", int, Indices)


@dataclass(frozen=True)
class Numbering:
    """Numbers of questions and images in a space of V variants and C concepts.

    Sample s, variant v and concept c are question (s * V + v) * C + c, about image s * V + v. Each
    method takes a number or an array of numbers, and returns the same kind.

    Attributes:
        variants: V, the number of variants.
        concepts: C, the number of concepts.
    """

    variants: int
    concepts: int

    def number(self, sample: Numbers, variant: Numbers, concept: Numbers) -> Numbers:
        """Return the question's number."""
        return (sample * self.variants + variant) * self.concepts + concept

    def image_of(self, question: Numbers) -> Numbers:
        """Return the number of the follow-up image that a question is about."""
        return question // self.concepts

    def image_parts(self, image: Numbers) -> tuple[Numbers, Numbers]:
        """Return sample and variant of an image."""
        return image // self.variants, image % self.variants

    def parts(self, question: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """Return sample, variant and concept of a question."""
        sample, variant = self.image_parts(self.image_of(question))
        return sample, variant, question % self.concepts


Image = npt.NDArray[np.uint8]
"""An image, H x W x C."""
Mask = npt.NDArray[np.bool_]
"""A mask, H x W."""
Truths = npt.NDArray[np.int8]
"""Truths: 1 (present), 0 (absent) or ``UNKNOWN``."""
UNKNOWN = -1
"""The truth of a (sample, concept) that nobody labelled; such questions are never asked."""


@dataclass(frozen=True)
class Ask:
    """A question in words, with the options to choose from (A, B ...; none: a free answer)."""

    text: str
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Box:
    """Bounding box of an annotated or detected object.

    Attributes:
        label: Name of the object.
        left, top, right, bottom: Edges in pixels, the last two exclusive.
        score: The detector's confidence in [0, 1]; 1 for annotations.
    """

    label: str
    left: float
    top: float
    right: float
    bottom: float
    score: float = 1.0

    @property
    def edges(self) -> tuple[float, float, float, float]:
        """Left, top, right and bottom."""
        return self.left, self.top, self.right, self.bottom

    @property
    def area(self) -> float:
        """Area in square pixels."""
        return max(0.0, self.right - self.left) * max(0.0, self.bottom - self.top)


def mask_of(boxes: Sequence[Box], height: int, width: int) -> Mask:
    """Return the mask M_loc: the pixels of H x W whose centres lie in any of the boxes."""
    mask = np.zeros((height, width), dtype=bool)
    for box in boxes:
        left, top, right, bottom = (max(0, int(np.ceil(edge - 0.5))) for edge in box.edges)
        mask[top:bottom, left:right] = True
    return mask


def around(mask: Mask) -> tuple[int, int, int, int]:
    """Return the bounding box of a mask (H x W): left, top, right, bottom, the last two exclusive.

    All are 0 if the mask is empty.
    """
    import cv2

    left, top, width, height = cv2.boundingRect(mask.astype(np.uint8))
    return left, top, left + width, top + height


def common(one: Box, other: Box) -> float:
    """Return the area of the intersection of two boxes, in square pixels."""
    across = min(one.right, other.right) - max(one.left, other.left)
    down = min(one.bottom, other.bottom) - max(one.top, other.top)
    return max(0.0, across) * max(0.0, down)


def _size(image: npt.NDArray[Any] | None) -> str:
    """Return the size of an image or mask, for a repr without its pixels."""
    return "none" if image is None else " x ".join(map(str, image.shape))


@dataclass(frozen=True, repr=False)
class Sample:
    """One source image with its truth.

    Attributes:
        id: Its name in the dataset.
        image: H x W x C uint8; None if only answers are recorded.
        truth: By concept 1 (present), 0 (absent) or -1 (unknown).
        metadata: Fields by name, which groups and filters read.
        masks: By concept the H x W pixels that show it.
        asks: By concept the words of its question.
        answers: By concept what is right: a letter of an option, or any of several texts.
        boxes: Annotated or detected objects.
        received: The model's own answer about it, if that chooses its follow-ups.
    """

    id: str
    image: Image | None
    truth: Mapping[str, int]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    masks: Mapping[str, Mask] = field(default_factory=dict)
    asks: Mapping[str, Ask] = field(default_factory=dict)
    answers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    boxes: tuple[Box, ...] = ()
    received: "Received | None" = None

    @property
    def ignored(self) -> Mask | None:
        """Pixels that scores of masks ignore, H x W; None: all count."""
        return getattr(self.masks, "ignored", None)

    def require_image(self) -> Image:
        """Return the image, H x W x C uint8; raise InputError for a sample without one."""
        return _required(self.image, f"sample {self.id!r}: expected a source image")

    def __repr__(self) -> str:
        return f"Sample({self.id!r}, image {_size(self.image)}, truth {dict(self.truth)})"


@dataclass(frozen=True, repr=False)
class Prompt:
    """Input of the model: one image and the concepts asked about. It deliberately has no truth.

    Attributes:
        image: H x W x C uint8; None if the dataset has no images.
        concepts: Names of the concepts.
        sample_id: The name of the source image.
        relation: The relation that changed the image.
        severity: Severity of the change, from 1; 1 for relations without severities.
        asks: One per concept if questions are in words, else empty.
        words: Further words about the image, such as where to look; "" for none.
    """

    image: Image | None
    concepts: tuple[str, ...]
    sample_id: str
    relation: str
    severity: int
    asks: tuple[Ask, ...] = ()
    words: str = ""

    def __repr__(self) -> str:
        concepts = ", ".join(self.concepts[:3]) + (" ..." if len(self.concepts) > 3 else "")
        return (
            f"Prompt(sample {self.sample_id!r}, {self.relation} {self.severity}, asked about "
            f"{concepts}, image {_size(self.image)})"
        )


@dataclass(frozen=True)
class Unanswered:
    """A missing answer: a refusal, a timeout, an unreadable reply. It is never NaN or zero.

    Attributes:
        reason: Why it is missing, as a part of a sentence.
        cost: The cost of the call, at least 0.
        unconfirmed: The part of ``cost`` that no server confirmed; it may not have been charged.
        reply: A chat model's reply, before it is read; "" for other models.
    """

    reason: str
    cost: float = 0.0
    unconfirmed: float = field(default=0.0, compare=False)
    reply: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True)
class PairedAnswer:
    """Answers of two models about one concept; ``a`` is model A's, ``b`` is model B's."""

    a: "Value"
    b: "Value"


Value = float | Mask | str | Unanswered | PairedAnswer
"""A model's answer about one concept, or both models' where two are compared."""


@dataclass(frozen=True, repr=False)
class Answer:
    """The model's answer, and the cost of the call.

    Attributes:
        values: For each concept of the prompt P(yes) in [0, 1], a mask (bool, H x W of the image),
            words, or Unanswered.
        cost: The cost of the call, at least 0.
        unconfirmed: The part of ``cost`` that no server confirmed; it may not have been charged.
        reply: A chat model's reply, before it is read; "" for other models.
    """

    values: tuple[Value, ...]
    cost: float = 0.0
    unconfirmed: float = field(default=0.0, compare=False)
    reply: str = field(default="", compare=False)

    def __repr__(self) -> str:
        values = (f"mask {_size(v)}" if isinstance(v, np.ndarray) else repr(v) for v in self.values)
        return f"Answer(({', '.join(values)}), cost {self.cost:g})"


@dataclass(frozen=True, repr=False)
class FollowUp:
    """The changed image of a relation.

    Attributes:
        image: H x W x C uint8; None if the dataset has no images.
        details: Parameters of the change that the oracle needs, by name.
        words: Further sentences for the model; "" for none.
    """

    image: Image | None
    details: Mapping[str, Any] = field(default_factory=dict)
    words: str = ""

    def require_image(self) -> Image:
        """Return the image, H x W x C uint8; raise InputError for a follow-up without one."""
        return _required(self.image, "relation: expected a follow-up image")

    def __repr__(self) -> str:
        return f"FollowUp(image {_size(self.image)}, details: {', '.join(self.details) or 'none'})"


def _required(image: Image | None, expected: str) -> Image:
    """Return the image; raise InputError with the text ``expected`` if there is none."""
    if image is None:
        raise InputError(f"{expected}, got none: load the dataset with its images")
    return image


SIDES = MappingProxyType({"miss rate": 1, "false-alarm rate": 0})
"""Names of the mean losses of a concept's two sides, and the truth that each is about."""
ERROR = "error"
"""Name of the mean loss of any other target."""


@dataclass(frozen=True)
class Bets:
    """Constants of the betting game; see ``certify.sequences``.

    Attributes:
        cap: Largest fraction of its wealth that one bet may lose, in (0, 1). Below 1, no single
            draw can ruin a bet against a mean that is still possible.
        eagerness: Distance from the centre, in half-widths aimed at, of the mean that bets are
            best at excluding.
        prior: Pseudo-outcomes that the first guesses of centre and variance count as.
        most_skew: Largest factor by which bets against a mean differ for its skew.
        cell: Distance of neighbouring means of the grid.
        ratio: True if rates are over the questions that count. If False, a question that does not
            count is 0 in lower and 1 in upper bounds.
        tilts_capped: True if bets move predictions even where that takes so much room that the cap
            decides their size.
    """

    cap: float
    eagerness: float
    prior: float
    most_skew: float
    cell: float = 0.001
    ratio: bool = False
    tilts_capped: bool = True


@dataclass(frozen=True)
class Outcome:
    """The verdict on one answer.

    Attributes:
        loss: Loss in [0, 1].
        coordinate: The paper's a = (f + truth) / 2 in [0, 1]; None for unanswered questions.
        score: Number that the journal keeps in place of a mask or words.
        unanswered: Why words are no answer; None if they are.
        excluded: Why the question does not count, as only its answer shows; None if it counts.
            Rates are over the questions that count.
        details: Further results for the report, as JSON.
        margin: By how much the answer was right, on any scale. Default None: the logit of the
            probability that it gave to the truth, which follows from ``coordinate``.
    """

    loss: float
    coordinate: float | None = None
    score: float | None = None
    unanswered: str | None = None
    excluded: str | None = None
    details: Mapping[str, Any] | None = None
    margin: float | None = None


@dataclass(frozen=True)
class PairedLoss:
    """Loss of one of two models, and by how much its answer was right; None: unknown."""

    loss: float
    margin: float | None


@dataclass(frozen=True)
class Version:
    """A version of a source image that the model must answer before an oracle can judge.

    Attributes:
        relation: The relation that its prompt names.
        severity: The severity that its prompt names.
        make: Returns the image, H x W x C uint8.
    """

    relation: str
    severity: int
    make: Callable[[], Image]


@dataclass(frozen=True)
class Received:
    """The model's answers about a source image and its versions.

    Attributes:
        answer: The answer about the image itself.
        versions: Number of a version -> the answer about it.
    """

    answer: Value
    versions: Mapping[int, Value]

    def __hash__(self) -> int:
        return hash((self.answer, *sorted(self.versions.items())))


SourceAnswer = Value | Received | tuple[Value, ...] | None
"""The answer about a source image. It is a ``Received`` if versions were asked about, too, and a
tuple if the oracle takes the answers about all concepts."""


@dataclass(frozen=True)
class Case:
    """One answered question of a call.

    Attributes:
        question: The question.
        place: Number of its concept in the space.
        answer: The model's answer.
        expected: What the oracle's ``expect`` returned.
        source_answer: The answer about the source image; None if the oracle needs none.
    """

    question: Question
    place: int
    answer: Value
    expected: Any
    source_answer: SourceAnswer


class Filler(Protocol):
    """Inpainting: paints over a part of an image."""

    def __call__(self, image: Image, box: Box) -> Image:
        """Return a copy of H x W x C uint8 without the content of ``box``."""


CAPTION = "caption"
"""The only concept of a caption audit."""
IDENTITY = "identity"
"""The relation that leaves an image unchanged."""


@dataclass(frozen=True)
class Candidates:
    """n questions that may be drawn, and the m calls that answer them.

    They are int64 tensors (arrays in audits without predictions whose strategy is ``certify``), and
    views: the next draw changes them.

    Attributes:
        question: (n,), the question's number.
        image: (n,), the number of the follow-up image that it is about.
        sample: (n,), the number of the source image.
        variant: (n,), relation and severity, by number.
        concept: (n,), by number.
        truth: (n,), 0 or 1.
        unit: (n,), the place of its call in ``call``, from 0 to m - 1, ascending.
        call: (m,), the call's number.
    """

    question: "Tensor"
    image: "Tensor"
    sample: "Tensor"
    variant: "Tensor"
    concept: "Tensor"
    truth: "Tensor"
    unit: "Tensor"
    call: "Tensor"

    def __len__(self) -> int:
        return len(self.question)

    @property
    def cell(self) -> "Tensor":
        """concept * 2 + truth, the number of the concept's side that a question belongs to."""
        return self.truth.add(self.concept, alpha=2)
