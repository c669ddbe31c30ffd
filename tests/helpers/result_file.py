"""The fields of result.json, their types and meanings, of which the published JSON schema is made.

``python -m tests.helpers.result_file`` writes ``results/result.schema.json``. A test compares the
two, and real results of every kind with these models. Fields may be added under the same
``schema_version``, so readers ignore those that they do not know.
"""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

import adaptive_vtt
from adaptive_vtt.families import FAMILIES
from adaptive_vtt.oracles.findings import Count, Findings, JudgeFindings
from adaptive_vtt.results.result import SCHEMA_VERSION
from adaptive_vtt.types import JsonObject

PUBLISHED = Path(adaptive_vtt.__file__).parent / "results" / "result.schema.json"
Share = Annotated[float, Field(ge=0, le=1)]
Difference = Annotated[float, Field(ge=-1, le=1)]
Decision = Literal["better", "worse", "within", "holds", "fails", "open"]


class _Part(BaseModel):
    """Numbers are never NaN: what is unknown is null."""

    model_config = ConfigDict(
        strict=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True
    )


class TargetEntry(_Part):
    """One target: a group of questions whose mean loss is certified."""

    target: str
    """Its name, for people."""
    estimate: Difference | None
    """Best single guess, a share, or of drops a difference; null before any answer."""
    lower: Difference | None
    """End of the interval; null: nothing is certified."""
    upper: Difference | None
    """End of the interval; null: nothing is certified."""
    half_width: Share | None
    """Half the length of the interval, a share; of drops, 0.05 is 5 points of difference."""
    certified: bool
    """As narrow, or decided, as asked, and not contradicted."""
    questions: Count
    """Its questions that were answered."""
    kind: Literal[tuple(f.kind for f in FAMILIES)]  # type: ignore[valid-type]
    """Overall, concept ..."""
    concept: str | None
    """Its concept, if it has one."""
    side: Literal[0, 1] | None
    """Its truth: 1 (misses), 0 (false alarms)."""
    rate: str
    """Name of its mean loss."""
    relation: str | None
    """Its image change, if it has one."""
    severity: int | None
    """Severity of that change."""
    group: str | None
    """Column of the metadata."""
    value: str | None
    """Value in that column."""
    filter: str | None
    """Name of a filter of your own."""
    also: list[str] | None = None
    """Other names of the same questions."""
    # in audits that certify
    pseudo_outcome_mean: float | None = None
    """The estimate by draws alone."""
    size: Count = 0
    """Its questions in the whole space."""
    variance_ratio: float | None = None
    """Variance relative to uniform draws without predictions."""
    effective_draws: float | None = None
    """Uniform draws of the same worth."""
    more_calls: Count | None = None
    """Likely missing; null: not known."""
    more_calls_least: Count | None = None
    """Lower end of their range."""
    more_calls_most: Count | None = None
    """Upper end; holds in 4 of 5 audits."""
    constant: Share | None = None
    """Loss of the best constant answer."""
    constant_answer: str | None = None
    """The best constant answer: a class, Yes, No, a letter."""
    emptied: bool = False
    """Nothing is left of its interval: the model changed."""
    invalidated: bool = False
    """Its draws contradict its interval."""
    excluded: Count = 0
    """Answered questions that did not count."""
    unanswered: Count = 0
    """In a census: questions without an answer."""
    images: Count = 0
    """In a census: images with a question."""
    any_wrong: Share | None = None
    """In a census: images with any wrong label."""
    decided: Literal["above", "at most", "below", "open"] | None = None
    """Side of `at_most` on which its rate lies; null or open: not known yet."""
    decision: Decision | None = None
    """In comparisons: see versus."""


class DerivedEntry(_Part):
    """A figure that follows from certified targets."""

    quantity: str
    """Name of the figure."""
    estimate: float | None
    """Best single guess."""
    lower: float | None
    """Lower end of the interval."""
    upper: float | None
    """Upper end of the interval."""
    note: str
    """A caution, or empty."""


class VersusEntry(_Part):
    """One target of a comparison of models A and B."""

    target: str
    """Its name."""
    delta: Difference
    """Error rate of model A minus that of model B."""
    lower: Difference
    """Lower end of its interval."""
    upper: Difference
    """Upper end of its interval."""
    decision: Decision
    """Better: B is wrong less often; within: inside the margin."""
    questions: Count
    """Judged questions of the target."""
    disagreement: Share | None
    """Estimated share with different losses; null: A was not asked."""
    calls_a: Count
    """Answered calls of model A for it."""
    calls_b: Count
    """Answered calls of model B for it."""


class RepeatProbeEntry(_Part):
    """Answers that were asked for again."""

    calls: Count
    """Calls that were repeated."""
    answers: Count
    """Answers in them."""
    differ: Count
    """Answers that differ."""
    share: Share
    """Their share."""


class ProtocolEntry(_Part):
    """How the model was asked."""

    template: str | None
    """Name of the prompt template; null: no words."""
    template_hash: str | None
    """Hash of its words."""
    temperature: float | None
    """Temperature of the replies."""
    per_call: str | None
    """One question, or all of an image."""
    regime: str | None
    """How replies in words were read."""
    judge: str | None
    """Model that read unclear replies."""
    left_out: Count
    """Images without a marked region, not asked about."""


class CensusEntry(_Part):
    """Tables of an audit that asks everything, row by row."""

    rates: list[JsonObject]
    """Exact rates, and intervals for other images."""
    perturbations: list[JsonObject]
    """Figures per relation and severity."""
    classes: list[JsonObject]
    """Figures per relation, severity and concept."""
    confusion: list[JsonObject] | None = None
    """Counts per relation, severity and true class."""


class ResultFile(_Part):
    """The result of an audit: result.json, ``Result.to_dict()`` and ``avtt audit --json``."""

    schema_version: Literal[SCHEMA_VERSION]  # type: ignore[valid-type]
    """Version of this format."""
    targets: list[TargetEntry]
    """One entry per target."""
    derived: list[DerivedEntry]
    """Figures that follow from certified targets."""
    calls: Count
    """All calls, of source images and repeat probes, too."""
    questions: Count
    """Questions that were judged."""
    cost: float = Field(ge=0)
    """Cost of all answers."""
    currency: str | None = None
    """As ISO 4217 names it; null: US dollars."""
    unconfirmed: float = Field(ge=0)
    """Part of the cost that no server confirmed."""
    stop_reason: str | None
    """Why the audit ended; null while it has not."""
    waiting: Count
    """Calls without an answer."""
    scoring: str | None
    """How replies in words were read."""
    protocol: ProtocolEntry | None = None
    """How the model was asked."""
    lost: Count
    """Calls on their way at an interruption, perhaps paid for twice."""
    captions: Findings | None
    """Objects in captions; null in other audits."""
    journal_head: str
    """Hash of the journal's last row, which depends on all rows."""
    repeat_probes: RepeatProbeEntry | None
    """Answers that were asked again; null without repeat probes."""
    warnings: list[str]
    """Cautions, a sentence each."""
    guarantee: str | None
    """The guarantee of the intervals, in words."""
    headline: str | None = None
    """Error rates of original and changed images, in words."""
    versus: list[VersusEntry] | None = None
    """Comparisons of two models; targets are rates of pairs then."""
    judge: JudgeFindings | None = None
    """A judge model's part; null without one."""
    census: CensusEntry | None = None
    """Tables of an audit that asked everything; null otherwise."""


def schema() -> JsonObject:
    """Return the JSON schema (draft 2020-12)."""
    published: JsonObject = _published(ResultFile.model_json_schema())
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **published}


def _published(part: Any) -> Any:
    """Return a part of the schema without pydantic's titles, and open to later fields."""
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
    """Return the schema as it is published."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PUBLISHED.write_text(text(), encoding="utf-8")
