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
    """One target: a group of questions whose mean loss is certified."""

    target: str = Field(description="its name, for people")
    estimate: Difference | None = Field(
        description="best single guess, a share, or of drops a difference; null before any answer"
    )
    lower: Difference | None = Field(description="of the interval; null: nothing is certified")
    upper: Difference | None = Field(description="of the interval; null: nothing is certified")
    half_width: Share | None = Field(description="half the length of the interval")
    certified: bool = Field(description="as narrow, or decided, as asked, and not contradicted")
    questions: Count = Field(description="its questions that were answered")
    kind: Literal[tuple(f.kind for f in FAMILIES)] = Field(description="overall, concept ...")  # type: ignore[valid-type]
    concept: str | None = Field(description="its concept, if it has one")
    side: Literal[0, 1] | None = Field(description="its truth: 1 (misses), 0 (false alarms)")
    rate: str = Field(description="what its mean loss is called")
    relation: str | None = Field(description="its image change, if it has one")
    severity: int | None = Field(description="severity of that change")
    group: str | None = Field(description="column of the metadata")
    value: str | None = Field(description="value in that column")
    filter: str | None = Field(description="name of a filter of your own")
    also: list[str] | None = Field(None, description="other names of the same questions")
    # in audits that certify
    pseudo_outcome_mean: float | None = Field(None, description="the estimate by draws alone")
    size: Count = Field(0, description="its questions in the whole space")
    variance_ratio: float | None = Field(
        None, description="variance relative to uniform draws without predictions"
    )
    effective_draws: float | None = Field(None, description="uniform draws of the same worth")
    more_calls: Count | None = Field(None, description="likely missing; null: not known")
    more_calls_least: Count | None = Field(None, description="lower end of their range")
    more_calls_most: Count | None = Field(None, description="upper end; holds in 4 of 5 audits")
    constant: Share | None = Field(None, description="loss of the best constant answer")
    constant_answer: str | None = Field(None, description="that answer: a class, Yes, No, a letter")
    emptied: bool = Field(False, description="nothing is left of its interval: the model changed")
    invalidated: bool = Field(False, description="its draws contradict its interval")
    excluded: Count = Field(0, description="answered questions that did not count")
    unanswered: Count = Field(0, description="in a census: questions without an answer")
    images: Count = Field(0, description="in a census: images with a question")
    any_wrong: Share | None = Field(None, description="in a census: images with any wrong label")
    decided: Literal["above", "at most", "below", "open"] | None = Field(
        None, description="side of `at_most` on which its rate lies; null or open: not known yet"
    )
    decision: Decision | None = Field(None, description="in comparisons: see versus")


class DerivedEntry(_Part):
    """A figure that follows from certified targets."""

    quantity: str = Field(description="name of the figure")
    estimate: float | None = Field(description="best single guess")
    lower: float | None = Field(description="lower end of the interval")
    upper: float | None = Field(description="upper end of the interval")
    note: str = Field(description="a caution, or empty")


class VersusEntry(_Part):
    """One target of a comparison of models A and B."""

    target: str = Field(description="its name")
    delta: Difference = Field(description="error rate of model A minus that of model B")
    lower: Difference = Field(description="lower end of its interval")
    upper: Difference = Field(description="upper end of its interval")
    decision: Decision = Field(
        description="better: B is wrong less often; within: inside the margin"
    )
    questions: Count = Field(description="judged questions of the target")
    disagreement: Share | None = Field(
        description="share with different losses; null: A was not asked"
    )
    calls_a: Count = Field(description="answered calls of model A for it")
    calls_b: Count = Field(description="answered calls of model B for it")


class RepeatProbeEntry(_Part):
    """Answers that were asked for again."""

    calls: Count = Field(description="calls that were repeated")
    answers: Count = Field(description="answers in them")
    differ: Count = Field(description="answers that differ")
    share: Share = Field(description="their share")


class ProtocolEntry(_Part):
    """How the model was asked."""

    template: str | None = Field(description="name of the prompt template; null: no words")
    template_hash: str | None = Field(description="hash of its words")
    temperature: float | None = Field(description="temperature of the replies")
    per_call: str | None = Field(description="one question, or all of an image")
    regime: str | None = Field(description="how replies in words were read")
    judge: str | None = Field(description="model that read unclear replies")
    left_out: Count = Field(description="images without a marked region, not asked about")


class CensusEntry(_Part):
    """Tables of an audit that asks everything, row by row."""

    rates: list[JsonObject] = Field(description="exact rates, and intervals for other images")
    perturbations: list[JsonObject] = Field(description="figures per relation and severity")
    classes: list[JsonObject] = Field(description="figures per relation, severity and concept")
    confusion: list[JsonObject] | None = Field(
        None, description="counts per relation, severity and true class"
    )


class ResultFile(_Part):
    """The result of an audit: result.json, ``Result.to_dict()`` and ``avtt audit --json``."""

    schema_version: Literal[SCHEMA_VERSION] = Field(description="version of this format")  # type: ignore[valid-type]
    targets: list[TargetEntry] = Field(description="one entry per target")
    derived: list[DerivedEntry] = Field(description="figures that follow from certified targets")
    calls: Count = Field(description="all calls, of source images and repeat probes, too")
    questions: Count = Field(description="questions that were judged")
    cost: float = Field(ge=0, description="cost of all answers")
    currency: str | None = Field(None, description="as ISO 4217 names it; null: US dollars")
    unconfirmed: float = Field(ge=0, description="part of the cost that no server confirmed")
    stop_reason: str | None = Field(description="why the audit ended; null while it has not")
    waiting: Count = Field(description="calls without an answer")
    scoring: str | None = Field(description="how replies in words were read")
    protocol: ProtocolEntry | None = Field(None, description="how the model was asked")
    lost: Count = Field(description="calls on their way at an interruption, perhaps paid for twice")
    captions: Findings | None = Field(description="objects in captions; null in other audits")
    journal_head: str = Field(
        description="hash of the journal's last row, which depends on all rows"
    )
    repeat_probes: RepeatProbeEntry | None = Field(
        description="answers that were asked again; null without repeat probes"
    )
    warnings: list[str] = Field(description="cautions, a sentence each")
    guarantee: str | None = Field(description="what holds of the intervals, in words")
    headline: str | None = Field(
        None, description="error rates of original and changed images, in words"
    )
    versus: list[VersusEntry] | None = Field(
        None, description="comparisons of two models; targets are rates of pairs then"
    )
    judge: JudgeFindings | None = Field(None, description="a judge model's part; null without one")
    census: CensusEntry | None = Field(
        None, description="tables of an audit that asked everything; null otherwise"
    )


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
