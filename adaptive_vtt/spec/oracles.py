"""The [oracle] section of a SPEC.toml: one class per kind, and what it builds."""

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, Tag

from ..captions import TAGGERS
from ..datasets import Dataset
from ..oracles import REGISTRY, OracleDefaults, adapted
from ..oracles.judge_models import Regime
from ..utils.loading import is_target
from .judge import JudgeSpec
from .section import PLUG_IN, PlugIn, Section, kind_of

_METRIC = "overlap of masks (default: dice)"
_THRESHOLD = "Yes from this on (default: 0.5)"


class _Judge(Section):
    kind: Any
    unanswered_loss: float | None = Field(
        None, description="loss of a question without answer (default: 1)", ge=0, le=1
    )

    def build(self, base: Path, dataset: Dataset) -> OracleDefaults:
        """The oracle, for questions about ``dataset``; relative paths start at ``base``."""
        return REGISTRY.get(self.kind)(**self.given())


class CorrectnessJudge(_Judge):
    """P(yes) on the wrong side of the truth."""

    kind: Literal["correctness"] = "correctness"
    threshold: float | None = Field(None, description=_THRESHOLD, gt=0, le=1)


class TopClassJudge(_Judge):
    """The likeliest of classes that exclude each other is not the true one."""

    kind: Literal["top-class"] = "top-class"


class OrdinalJudge(_Judge):
    """How far the likeliest grade is from the true one."""

    kind: Literal["ordinal"] = "ordinal"


class ConsistencyJudge(_Judge):
    """Another answer than to the source image; no label needed."""

    kind: Literal["consistency"] = "consistency"
    threshold: float | None = Field(None, description=_THRESHOLD, gt=0, le=1)


class MaskDropJudge(_Judge):
    """A segmentation much worse than the source image's."""

    kind: Literal["mask-drop"] = "mask-drop"
    thresholds: list[float] | None = Field(
        None,
        description="relative drops of the score above these are failures (default: 0.25, 0.5)",
        min_length=1,
    )
    metric: Literal["dice", "iou"] | None = Field(None, description=_METRIC)


class MaskConsistencyJudge(_Judge):
    """A mask unlike the source image's; no true mask needed."""

    kind: Literal["mask-consistency"] = "mask-consistency"
    threshold: float | None = Field(None, description="least overlap (default: 0.75)", gt=0, le=1)
    metric: Literal["dice", "iou"] | None = Field(None, description=_METRIC)


class WordsJudge(_Judge):
    """Replies in words, which a model may be asked to read."""

    judge: JudgeSpec | None = Field(
        None, description="[oracle.judge]: a model that reads what the rule cannot"
    )
    _regime: ClassVar[Regime] = "option-matching"

    def build(self, base: Path, dataset: Dataset) -> OracleDefaults:
        judge = {}
        if self.judge is not None:
            judge["judge"] = self.judge.made(base, dataset, self._regime)
        return REGISTRY.get(self.kind)(**self.given("judge"), **judge)


class MultipleChoiceJudge(WordsJudge):
    """Another letter than the right one."""

    kind: Literal["multiple-choice"] = "multiple-choice"
    faithful: bool | None = Field(
        None, description="read replies by EndoBench's own rule, quirks and all"
    )


class ContainsTruthJudge(WordsJudge):
    """A reply without the true answer."""

    _regime: ClassVar[Regime] = "yes-no"

    kind: Literal["contains-truth"] = "contains-truth"
    strict: bool | None = Field(None, description="whole words only (default: true)")
    accept: Literal["either", "yes", "name"] | None = Field(
        None, description="what is right where an instrument was added"
    )


class _CaptionJudge(_Judge):
    question: str | None = Field(None, description="what to ask about every image", min_length=1)
    words: Literal["alike", "literal"] | None = Field(
        None,
        description="which names mean the same object: alike ones (default), by number, last "
        "words, and what else is installed; or equal ones alone",
    )
    wordnet: str | None = Field(
        None, description="folder of WordNet's database files (default: $WNSEARCHDIR)"
    )
    vectors: str | None = Field(
        None, description="file of word vectors (GloVe, FastText) to compare names by"
    )
    threshold: float | None = Field(None, description="least similarity of vectors", gt=0, le=1)
    tagger: str | None = Field(
        None,
        description="what finds nouns: a spaCy model, or 'file.py:name' or "
        "'package.module:name' of a Reader (default: the built-in tagger)",
    )
    places: bool | None = Field(
        None, description="take nouns that say where (street) for objects, too (false)"
    )

    def read_by(self, base: Path) -> tuple[Any, Any]:
        """What reads the objects of a caption, and what says which names mean the same."""
        from ..captions import language

        same = language.same(
            self.words or "alike",
            wordnet=None if self.wordnet is None else base / self.wordnet,
            vectors=None if self.vectors is None else base / self.vectors,
            threshold=self.threshold,
        )
        if self.tagger is not None and is_tagger(self.tagger):
            return TAGGERS.checked(TAGGERS.make(self.tagger, {}, base), self.tagger), same
        return language.reader(self.tagger, places=bool(self.places)), same


class CaptionsJudge(_CaptionJudge):
    """A caption that REIC's rules forbid, given the source image's; no label needed."""

    kind: Literal["captions"] = "captions"
    detection: bool | None = Field(
        None, description="find objects by the names of boxes (default: true)"
    )
    occlusion: bool | None = Field(
        None,
        description="find objects no box is named after by hiding boxes and asking again, 3 "
        "calls per box (default: true)",
    )
    most_boxes: int | None = Field(
        None, description="hide at most so many boxes of an image (6)", ge=0
    )
    hide_named: bool | None = Field(
        None, description="hide boxes that match a name, too, as REIC does (false)"
    )
    inpainting: str | None = Field(
        None, description="LaMa as an ONNX file, to hide boxes (default: OpenCV's)"
    )
    down: float | None = Field(
        None, description="up to this share in view an object is gone (0.2)", ge=0, le=1
    )
    up: float | None = Field(
        None, description="from this share in view on it is still there (0.9)", gt=0, le=1
    )

    def build(self, base: Path, dataset: Dataset) -> OracleDefaults:
        given = self.given(*_CaptionJudge.model_fields, "inpainting") | _asked(self)
        if self.inpainting is not None:
            from ..captions.lama import LaMa

            given["fill"] = LaMa(base / self.inpainting)
        return REGISTRY.get(self.kind)(*self.read_by(base), **given)


class CaptionClassesJudge(_CaptionJudge):
    """A caption that MetaIC's or ROME's rules forbid."""

    kind: Literal["caption-classes"] = "caption-classes"
    classes: list[str] | None = Field(
        None, description="the names that count (default: the dataset's)"
    )

    def build(self, base: Path, dataset: Dataset) -> OracleDefaults:
        classes = tuple(dataset.concepts if self.classes is None else self.classes)
        return REGISTRY.get(self.kind)(classes, *self.read_by(base), **_asked(self))


class PlugInJudge(PlugIn):
    """An oracle of a package or file of your own."""

    def build(self, base: Path, dataset: Dataset) -> OracleDefaults:
        """The oracle; its code is imported."""
        return adapted(REGISTRY.checked(REGISTRY.make(self.kind, self.options, base), self.kind))


def is_tagger(name: str) -> bool:
    """Whether a tagger is other people's code, and no model of spaCy's."""
    return is_target(name) or TAGGERS.package_of(name) is not None


def _asked(section: _CaptionJudge) -> dict[str, Any]:
    """What oracles about captions take beside reader and sameness."""
    return section.model_dump(include={"question", "unanswered_loss"}, exclude_none=True)


OracleSpec = Annotated[
    Annotated[CorrectnessJudge, Tag("correctness")]
    | Annotated[TopClassJudge, Tag("top-class")]
    | Annotated[OrdinalJudge, Tag("ordinal")]
    | Annotated[ConsistencyJudge, Tag("consistency")]
    | Annotated[MaskDropJudge, Tag("mask-drop")]
    | Annotated[MaskConsistencyJudge, Tag("mask-consistency")]
    | Annotated[MultipleChoiceJudge, Tag("multiple-choice")]
    | Annotated[ContainsTruthJudge, Tag("contains-truth")]
    | Annotated[CaptionsJudge, Tag("captions")]
    | Annotated[CaptionClassesJudge, Tag("caption-classes")]
    | Annotated[PlugInJudge, Tag(PLUG_IN)],
    Discriminator(kind_of(REGISTRY, "correctness")),
]
"""What makes an answer wrong."""
