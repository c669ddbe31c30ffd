"""What result.json holds: its fields, their types and meanings, and the published JSON schema.

``result.schema.json``, beside this file, is ``text()`` of it; a test holds the two together, and
real results of every kind to the models. Fields may be added under the same ``schema_version``,
so readers pass over those that they do not know.
"""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ..families import FAMILIES
from ..oracles.findings import Count, Findings, JudgeFindings
from ..types import JsonObject
from .result import SCHEMA_VERSION

PUBLISHED = Path(__file__).parent / "result.schema.json"
Share = Annotated[float, Field(ge=0, le=1)]
Difference = Annotated[float, Field(ge=-1, le=1)]
Decision = Literal["better", "worse", "within", "holds", "fails", "open"]


class _Part(BaseModel):
    """Numbers are never NaN: what is unknown is null."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class TargetEntry(_Part):
    """One target: a subset of the questions whose mean loss is to be known."""

    target: str = Field(description="its name, for people")
    estimate: Share | None = Field(description="of its mean loss; null before any answer")
    lower: Share | None = Field(description="of its interval; null where nothing is certified")
    upper: Share | None = Field(description="of its interval; null where nothing is certified")
    half_width: Share | None = Field(description="(upper - lower) / 2")
    certified: bool = Field(description="as precise, or decided, as was asked for")
    questions: Count = Field(description="of it that were answered")
    kind: Literal[tuple(f.kind for f in FAMILIES)] = Field(description="what it is about")  # type: ignore[valid-type]
    concept: str | None = Field(description="the concept it is about")
    side: Literal[0, 1] | None = Field(description="the truth it is about")
    rate: str = Field(description="what its mean loss is called")
    relation: str | None = Field(description="the change of images it is about")
    severity: int | None = Field(description="of that change")
    group: str | None = Field(description="the metadata column it is about")
    value: str | None = Field(description="what stands in that column")
    filter: str | None = Field(description="the name that the user gave to a filter")
    also: list[str] | None = Field(
        None, description="other names that select the same questions; null: none"
    )
    # in audits that certify
    pseudo_outcome_mean: float | None = Field(None, description="the estimate by draws alone")
    size: Count = Field(0, description="its questions in the whole space")
    variance_ratio: float | None = Field(
        None, description="of these draws, predictions included, to uniform ones without any"
    )
    effective_draws: float | None = Field(None, description="so many uniform ones tell as much")
    more_calls: Count | None = Field(
        None, description="until it is certified, likely; null: that cannot be told yet"
    )
    more_calls_least: Count | None = Field(None, description="the least that these may be")
    more_calls_most: Count | None = Field(None, description="the most; in four of five audits")
    constant: Share | None = Field(
        None, description="loss of the best answer that never depends on the image, by the labels"
    )
    constant_answer: str | None = Field(None, description="that answer: a class, Yes, No, a letter")
    emptied: bool = Field(False, description="nothing is left of its interval")
    invalidated: bool = Field(False, description="its draws contradict its interval")
    excluded: Count = Field(0, description="answered questions that did not count")
    unanswered: Count = Field(0, description="where everything is asked: without an answer")
    images: Count = Field(0, description="where everything is asked: that questions were about")
    any_wrong: Share | None = Field(
        None, description="of labels, where everything is asked: share of images with any wrong one"
    )
    decided: Literal["above", "at most", "below", "open"] | None = Field(
        None, description="on which side of at_most it lies; null or open: not known yet"
    )
    decision: Decision | None = Field(None, description="of two models; see versus")


class DerivedEntry(_Part):
    """A figure that follows from certified targets."""

    quantity: str
    estimate: float | None
    lower: float | None
    upper: float | None
    note: str = Field(description="what to mind, or empty")


class VersusEntry(_Part):
    """One target of a comparison: how much less often model B errs than model A."""

    target: str
    delta: Difference = Field(description="estimate of A's mean loss less B's")
    lower: Difference = Field(description="of its interval")
    upper: Difference = Field(description="of its interval")
    decision: Decision = Field(description="better: B errs less; within: the margin")
    questions: Count = Field(description="of it that were judged")
    disagreement: Share | None = Field(
        description="share of those that the models lost differently; null where A was not asked"
    )
    calls_a: Count = Field(description="calls of model A that brought an answer to it")
    calls_b: Count = Field(description="calls of model B that brought an answer to it")


class RepeatProbeEntry(_Part):
    """How many answers that were asked for again differ."""

    calls: Count
    answers: Count
    differ: Count
    share: Share


class ProtocolEntry(_Part):
    """How the model was asked."""

    template: str | None = Field(description="what the prompts' template is called")
    template_hash: str | None = Field(description="of its words")
    temperature: float | None = Field(description="of the replies")
    per_call: str | None = Field(description="one question, or all of an image")
    regime: str | None = Field(description="how replies in words were read")
    judge: str | None = Field(description="the model that read those the rule was not sure of")
    left_out: Count = Field(description="images not asked about: no region of them is marked")


class CensusEntry(_Part):
    """The tables of an audit that asks everything, row by row, as its folder's tables/ has them."""

    rates: list[JsonObject] = Field(
        description="per target: its exact mean loss, and an interval for other images"
    )
    perturbations: list[JsonObject] = Field(description="per relation and severity")
    classes: list[JsonObject] = Field(description="per relation, severity and concept")
    confusion: list[JsonObject] | None = Field(
        None, description="of one class per image: per relation, severity and true class"
    )


class ResultFile(_Part):
    """The result of an audit: result.json, ``Result.to_dict()`` and ``avtt audit --json``."""

    schema_version: Literal[SCHEMA_VERSION]  # type: ignore[valid-type]
    targets: list[TargetEntry]
    derived: list[DerivedEntry]
    calls: Count = Field(description="drawn, and made about source images")
    questions: Count = Field(description="that were judged")
    cost: float = Field(ge=0, description="of all answers, in ``currency``")
    currency: str | None = Field(
        None, description="of all costs, as ISO 4217 calls it; null: US dollars"
    )
    unconfirmed: float = Field(
        ge=0, description="part of the cost that no server confirmed: it may not have been charged"
    )
    stop_reason: str | None = Field(description="null while the audit has not ended")
    waiting: Count = Field(description="calls without an answer")
    scoring: str | None = Field(description="how replies in words were read")
    protocol: ProtocolEntry | None = Field(None, description="how the model was asked")
    lost: Count = Field(description="calls that were on their way when it was interrupted")
    captions: Findings | None
    journal_head: str = Field(description="follows from every row of the journal")
    repeat_probes: RepeatProbeEntry | None
    warnings: list[str] = Field(description="what to know before trusting the rest")
    guarantee: str | None = Field(description="what holds of the intervals, and how surely")
    headline: str | None = Field(
        None, description="the error on images as they are, and with changes among them, in words"
    )
    versus: list[VersusEntry] | None = Field(
        None,
        description="in comparisons of two models; where both were asked, targets are rates of "
        "pairs, (1 + delta) / 2",
    )
    judge: JudgeFindings | None = Field(
        None, description="where a judge model was asked what replies mean"
    )
    census: CensusEntry | None = Field(None, description="of an audit that asks everything")


def schema() -> JsonObject:
    """The JSON schema (draft 2020-12)."""
    found: JsonObject = _published(ResultFile.model_json_schema())
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}


def _published(part: Any) -> Any:
    """Without pydantic's titles, and open to fields of later versions."""
    if isinstance(part, list):
        return [_published(p) for p in part]
    if not isinstance(part, dict):
        return part
    return {
        name: _published(p)
        for name, p in part.items()
        if name != "additionalProperties" and not (name == "title" and isinstance(p, str))
    }


def text() -> str:
    """The schema as it is published."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PUBLISHED.write_text(text(), encoding="utf-8")
