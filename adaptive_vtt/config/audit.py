"""The sections of a SPEC.toml about questions, choosing, stopping and certifying."""

from typing import Any, Literal

from pydantic import Field

from ..results.tracking.protocol import Name
from ..stopping import (
    MAX_CONFIDENCE,
    AllOf,
    FirstOf,
    MaxQuestions,
    StoppingRule,
    UncertaintyBelow,
    WallClock,
)
from .section import Section


class TransformSpec(Section):
    """A relation of another library's transform, or of a function image -> image."""

    transform: str = Field(
        description="'package.module:name' or 'file.py:name': a transform of albumentations, MONAI "
        "or TorchIO, or a function from H x W x C of uint8 to the same"
    )
    name: str | None = Field(None, description="what the relation is called (the transform's name)")
    severities: list[dict[str, Any]] = Field(
        [{}], description="the arguments of each severity, mildest first", min_length=1
    )
    options: dict[str, Any] | None = Field(None, description="the arguments of all severities")
    concepts: list[str] | None = Field(
        None,
        description="concepts whose answers stay as they are under it; no others are asked about "
        "(default: all)",
        min_length=1,
    )
    moves: bool | None = Field(
        None,
        description="of functions: whether things change their place; false lets masks stay as "
        "they are",
    )


class MedTestSpec(Section):
    """Files that MedTest's relations use; what is not given is drawn, or detected."""

    instruments: str | None = Field(
        None, description="folder with images/ and masks/ to cut instruments from"
    )
    feces: str | None = Field(None, description="the same for stool")
    blood: str | None = Field(None, description="the same for blood")
    field: str | None = Field(
        None, description="mask of the visible field, or a folder of masks named as the images"
    )
    similar: float | None = Field(
        None,
        description="cut only from this share of a folder, likest the image in light and colour",
        gt=0,
        le=1,
    )


class SpaceSpec(Section):
    """Which questions there are."""

    relations: list[str] = Field(
        ["identity"],
        description="relations to ask under: names (see 'avtt relations list'), 'file.py:name' or "
        "'package.module:name'",
        min_length=1,
    )
    severities: list[int] | None = Field(
        None, description="levels of the graded relations (default: all)", min_length=1
    )
    seed: int = Field(0, description="same seed, same follow-up images")
    without_region: Literal["refuse", "leave out"] = Field(
        "refuse",
        description="prompt: images in whose masks nothing is marked are an error, or are left out "
        "of the whole audit",
    )
    follow_ups: int | None = Field(
        None, description="reic: candidates of each image and relation (12)", ge=1
    )
    by_ambiguity: bool | None = Field(
        None, description="reic: prefer candidates that leave few objects half in view (true)"
    )
    by_diversity: bool | None = Field(
        None, description="reic: prefer candidates that show different parts (true)"
    )
    captions: str | None = Field(
        None,
        description="reic: captions of the images, recorded beforehand, CSV or JSON with sample "
        "and caption: candidates are chosen by what these name (default: all that is detected)",
    )
    choices: int | None = Field(
        None, description="rome: objects of an image to remove, one at a time (3)", ge=1
    )
    cut_outs: int | None = Field(
        None,
        description="metaic: objects of each kind to insert, from the dataset itself (5)",
        ge=1,
    )
    medtest: MedTestSpec | None = Field(
        None,
        description="medtest: files for cut-outs (instruments, feces, blood), the visible field, "
        "and similar, the share of cut-outs to choose from",
    )
    options: dict[str, dict[str, Any]] | None = Field(
        None, description="of relations and families that take any: name -> option -> value"
    )
    transforms: list[TransformSpec] | None = Field(
        None,
        description="further relations, of other libraries, each a [[space.transforms]]: transform "
        "('package.module:name' or 'file.py:name'), name, severities (arguments of each), options "
        "(arguments of all), concepts (whose answers stay), moves (of functions)",
    )


class AuditSpec(Section):
    """How to choose questions."""

    strategy: str | None = Field(
        None,
        description="which questions come next: a name (see 'avtt list strategies'), "
        "'file.py:name' or 'package.module:name' (default: certify where half_width or at_most is "
        "given, else the paper's uncertainty+unpredictability)",
    )
    strategy_options: dict[str, Any] | None = Field(
        None, description="options of the strategy, such as power = 2 of bald"
    )
    surrogate: str | None = Field(
        None,
        description="what predicts losses where targets are certified: a name (see 'avtt list "
        "surrogates'), 'file.py:name' or 'package.module:name' (default: question-gp)",
    )
    budget: int | None = Field(None, description="a limit: calls of the model, at most, ever", ge=1)
    max_cost: float | None = Field(
        None,
        description="a limit: money, at most, in the unit of the model's prices",
        gt=0,
    )
    fail_on_error: float | None = Field(
        None,
        description="end with an error when more than this share of calls stays unanswered, of "
        "20 calls or more; 1: never (default: when none of the first 20 calls was answered)",
        gt=0,
        le=1,
    )
    seed: int | None = Field(
        None, description="same seed, same audit (default: a new one each time, journaled)"
    )
    repeat_probes: int = Field(
        0, description="answered questions asked again, to notice a model that changes", ge=0
    )
    exploration: float | None = Field(
        None,
        description="share of the proposal that is even (default: 0.2 to certify, else 0)",
        ge=0,
        le=1,
    )
    candidates: int = Field(4096, description="unseen questions looked at per draw", ge=1)
    batch: int = Field(1, description="calls asked at a time, beliefs frozen", ge=1)
    form: Literal["std", "variance"] = Field(
        "std", description="uncertainty as area of 95 % regions (std) or integral of variances"
    )
    history: Literal["truth", "answer"] = Field(
        "truth", description="predictability given true answers (Geman) or the model's"
    )
    keep_masks: bool = Field(
        False,
        description="keep the masks that are answered in the journal, for 'avtt rejudge' with "
        "another overlap",
    )
    by_price: bool = Field(
        True,
        description="ask cheap calls more often than dear ones, where prices of tokens are given "
        "and targets are certified",
    )
    device: str = Field(
        "auto", description="where the GPs live: cpu, cuda, or auto, which is CUDA if there is one"
    )


class StopSpec(Section):
    """When to stop: at all goals together, those under [certify] among them, or at any limit."""

    questions: int | None = Field(None, description="a limit: answered questions", ge=1)
    uncertainty: float | None = Field(
        None,
        description="a goal: mean uncertainty of the answer GPs, as a share of its prior; with "
        "answers of 0 and 1 alone it cannot fall below 0.763 (form variance: 0.654)",
        gt=0,
        le=1,
    )
    max_uncertainty: float | None = Field(
        None,
        description="a goal: the same for the most uncertain side of any concept",
        gt=0,
        le=1,
    )
    seconds: float | None = Field(None, description="a limit: seconds of audit", gt=0)
    gate: list[str] | None = Field(
        None,
        description="a goal: rules such as 'overall <= 0.1' ('avtt gate') are all decided",
        min_length=1,
    )

    def limit(self) -> StoppingRule | None:
        """The limits that are set, joined by "or"; None where none is."""
        rules: list[StoppingRule] = []
        if self.questions is not None:
            rules.append(MaxQuestions(self.questions))
        if self.seconds is not None:
            rules.append(WallClock(self.seconds))
        return _joined(FirstOf, rules)

    def goal(self) -> StoppingRule | None:
        """The goals that are set, joined by "and"; None where none is."""
        rules: list[StoppingRule] = []
        if self.uncertainty is not None:
            rules.append(UncertaintyBelow(self.uncertainty))
        if self.max_uncertainty is not None:
            rules.append(UncertaintyBelow(self.max_uncertainty, over="max"))
        return _joined(AllOf, rules)


def _joined(join: type[FirstOf] | type[AllOf], rules: list[StoppingRule]) -> StoppingRule | None:
    if len(rules) > 1:
        return join(tuple(rules))
    return rules[0] if rules else None


class CertifySpec(Section):
    """What to certify; without half_width and at_most nothing: the audit explores (--explore)."""

    half_width: float | None = Field(
        None,
        description="a goal: every target's rate is known to plus or minus this share, below 0.5; "
        "0.05 is 5 percentage points",
        gt=0,
        lt=1,
    )
    at_most: float | None = Field(
        None,
        description="a goal: of every target's rate it is sure whether it lies above this share",
        gt=0,
        lt=1,
    )
    confidence: float = Field(
        0.95,
        description="probability that what is certified holds at all times",
        gt=0,
        le=MAX_CONFIDENCE,
    )
    guarantee: Literal["all", "each"] = Field(
        "all",
        description="what holds with that probability: all intervals at once, or each by itself",
    )
    weights: dict[str, float] | None = Field(
        None,
        description="a target's full name, such as 'overall error' -> its share of what may go "
        "wrong, relative to the others' 1: a larger one takes fewer questions",
    )
    targets: list[str] = Field(
        ["concepts", "relations"],
        description="overall, concepts, concept:NAME, relations, severities, group:COLUMN, "
        "misclassified, relation-concepts, relation-sides, "
        "or names of filters",
        min_length=1,
    )
    where: dict[str, dict[str, list[Any]]] | None = Field(
        None,
        description="filters: name -> field -> allowed values; fields: relation, severity, "
        "concept, truth (0 or 1), or a metadata column",
    )
    discover: int = Field(
        0,
        description="look for up to so many slices, groups in which failures concentrate, and "
        "certify each from then on",
        ge=0,
    )
    discover_by: list[str] = Field(
        ["metadata", "cells"],
        description="what proposes slices: metadata, cells (relation, severity, concept, truth), "
        "clusters (of images; needs scikit-learn), words (of prompts)",
        min_length=1,
    )
    set_aside: float | None = Field(
        None,
        description="the share of what may go wrong that is kept for slices (default: 0.1 where "
        "any are looked for); it may also be given to look for some later",
        gt=0,
        lt=1,
    )
    unanswered: Literal["loss", "both"] = Field(
        "loss", description="unanswered questions count as wrong, or (both) as either"
    )
    features: Literal["default", "efficientnet-lite0"] = Field(
        "default",
        description="image features of the question GP: thumbnails and colours, or an embedding "
        "(its packages are in the extra 'embedding')",
    )
    surrogate: bool = Field(True, description="predict losses; false: by each target's mean alone")
    proxies: dict[str, str] | None = Field(
        None, description="cheaper models: name -> CSV of answers, or file.py:name"
    )
    self_taught: bool | Literal["auto"] = Field(
        "auto",
        description="predict failures with small nets taught with the labelled source images: "
        "true, false, or where labels judge answers and are enough, and images are small",
    )
    prior_journal: str | None = Field(
        None, description="journal.db of an audit of an earlier version of the model"
    )
    cohort: str | list[str] | None = Field(
        None,
        description="run folders of audits of three or more other models on this space, or a "
        "pattern that finds them (--after)",
    )

    @property
    def certifies(self) -> bool:
        return self.half_width is not None or self.at_most is not None


class TrackSpec(Section):
    """Where figures of a running audit are sent; addresses and keys come from the environment."""

    to: Name = Field(description="the tracker; each is an extra of its name")
    every: int = Field(20, description="calls between two sendings", ge=1)
    project: str = Field("adaptive-vtt", description="experiment or project that runs go under")
