"""The [oracle] section of a SPEC.toml."""

from typing import Literal

from pydantic import Field

from .section import Section


class OracleSpec(Section):
    """What makes an answer wrong."""

    kind: Literal[
        "correctness",
        "top-class",
        "ordinal",
        "consistency",
        "mask-drop",
        "mask-consistency",
        "multiple-choice",
        "contains-truth",
        "captions",
        "caption-classes",
    ] = Field(
        "correctness",
        description="correctness: P(yes) on the wrong side of the truth; top-class: the "
        "likeliest of classes that exclude each other is not the true one; ordinal: how far it "
        "is from the true grade; consistency: another answer than to the source image, no label "
        "needed; mask-drop: a segmentation much worse than the source image's; "
        "mask-consistency: a mask unlike the source image's, no true mask needed; "
        "multiple-choice: another letter; contains-truth: a reply without the true answer; "
        "captions: a caption that REIC's rules forbid, given the source image's, no label "
        "needed; caption-classes: one that MetaIC's or ROME's forbid",
    )
    threshold: float | None = Field(
        None,
        description="correctness, consistency: Yes from this on (default: 0.5); "
        "mask-consistency: least overlap (default: 0.75); captions: least similarity of vectors",
        gt=0,
        le=1,
    )
    thresholds: list[float] | None = Field(
        None,
        description="mask-drop: relative drops of the score above these are failures "
        "(default: 0.25 and 0.5)",
        min_length=1,
    )
    metric: Literal["dice", "iou"] | None = Field(
        None, description="mask-drop, mask-consistency: overlap of masks (default: dice)"
    )
    faithful: bool | None = Field(
        None, description="multiple-choice: read replies by EndoBench's own rule, quirks and all"
    )
    strict: bool | None = Field(
        None, description="contains-truth: whole words only (default: true)"
    )
    accept: Literal["either", "yes", "name"] | None = Field(
        None, description="contains-truth: what is right where an instrument was added"
    )
    unanswered_loss: float | None = Field(
        None, description="loss of a question without answer (default: 1)", ge=0, le=1
    )
    question: str | None = Field(
        None, description="captions, caption-classes: what to ask about every image", min_length=1
    )
    words: Literal["alike", "literal"] | None = Field(
        None,
        description="captions: which names mean the same object: alike ones (default), by "
        "number, last words, and what else is installed; or equal ones alone",
    )
    wordnet: str | None = Field(
        None, description="captions: folder of WordNet's database files (default: $WNSEARCHDIR)"
    )
    vectors: str | None = Field(
        None, description="captions: file of word vectors (GloVe, FastText) to compare names by"
    )
    tagger: str | None = Field(
        None, description="captions: spaCy model that finds nouns (default: the built-in tagger)"
    )
    places: bool | None = Field(
        None, description="captions: take nouns that say where (street) for objects, too (false)"
    )
    detection: bool | None = Field(
        None, description="captions: find objects by the names of boxes (default: true)"
    )
    occlusion: bool | None = Field(
        None,
        description="captions: find objects no box is named after by hiding boxes and asking "
        "again, 3 calls per box (default: true)",
    )
    most_boxes: int | None = Field(
        None, description="captions: hide at most so many boxes of an image (6)", ge=0
    )
    hide_named: bool | None = Field(
        None, description="captions: hide boxes that match a name, too, as REIC does (false)"
    )
    inpainting: str | None = Field(
        None, description="captions: LaMa as an ONNX file, to hide boxes (default: OpenCV's)"
    )
    down: float | None = Field(
        None, description="captions: up to this share in view an object is gone (0.2)", ge=0, le=1
    )
    up: float | None = Field(
        None, description="captions: from this share in view on it is still there (0.9)", gt=0, le=1
    )
    classes: list[str] | None = Field(
        None, description="caption-classes: the names that count (default: the dataset's)"
    )
