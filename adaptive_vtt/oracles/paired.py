"""Two models judged by one oracle: the loss of a pair is where their difference lies in [0, 1].

With L_A and L_B the losses of models A and B, y = (1 + L_A - L_B) / 2: 1/2 where both lose alike,
more where B is the better one. So the mean of y certifies the difference of their rates,
delta = 2 R_y - 1 = R_A - R_B, by whatever certifies rates.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..datasets.base import CompleteDataset, Dataset
from ..errors import InputError
from ..journal.answer_json import to_json
from ..relations.base import RelationDefaults
from ..types import (
    Case,
    Indices,
    JsonObject,
    Outcome,
    PairedAnswer,
    PairedLoss,
    Sample,
    Unanswered,
    Value,
)
from .base import Oracle, OracleDefaults, Premise
from .choice import ASKED
from .labels import MARGIN, margin

MODELS = ("a", "b")
"""The two models: names of their parts of whatever is paired, and keys of the details."""
EARLIER = "journal_a"
"""The option that says what the known answers of model A rest on."""
SAME = (
    "needs_source",
    "concepts_are",
    "rates",
    "unanswered_loss",
    "whole_call",
    "judges_masks",
    "judges_scores",
    "tells_losses",
)
"""What a pair is and can as its oracle is and can."""
NEUTRAL = 0.5
"""The loss of a model of which nothing is told."""


class Paired(OracleDefaults):
    """Judges what two models said (``PairedAnswer``) by ``oracle``, each for itself.

    What each lost and said stands in the outcome's details, under "a" and "b". A question counts
    where it counts for both. ``known`` (n,), ascending: the questions whose answers by model A are
    known beforehand; ``earlier``: what that rests on, in words that tell it from anything else.
    Raises InputError for an oracle that asks about versions of source images.
    """

    models = 2

    def __init__(
        self, oracle: OracleDefaults, known: Indices | None = None, earlier: str | None = None
    ) -> None:
        self.oracle = oracle
        self.known = np.zeros(0, np.int64) if known is None else known
        self.of = type(oracle.original).__name__
        plain = {k: v for k, v in vars(oracle.original).items() if isinstance(v, int | float | str)}
        if earlier is not None:
            plain[EARLIER] = earlier
        self.options = tuple(f"{name} = {value}" for name, value in plain.items())
        for name in SAME:
            setattr(self, name, getattr(oracle, name))

    @property
    def code(self) -> tuple[Oracle, ...]:
        return (self, *self.oracle.code)

    @property
    def regime(self) -> str | None:
        return self.oracle.regime

    def view(self, dataset: Dataset) -> Dataset:
        return self.oracle.view(dataset)

    def asked(self, dataset: CompleteDataset) -> tuple[tuple[str, ...], Sequence[int]]:
        return self.oracle.asked(dataset)

    def applies(self, relation: RelationDefaults, concept: str) -> bool:
        return self.oracle.applies(relation, concept)

    def most_versions(self, dataset: CompleteDataset) -> int:
        if self.oracle.most_versions(dataset):
            raise InputError(
                f"versus: expected an oracle that judges each answer by itself, got {self.of}, "
                "which asks about versions of the source image; audit each model alone"
            )
        return 0

    def expect(self, given: Premise) -> Any:
        """What both should say; where that follows from what each said of the source, a pair."""
        said = given.source_answer
        if not isinstance(said, PairedAnswer):
            return self.oracle.expect(given)
        one, other = (replace(given, source_answer=each) for each in (said.a, said.b))
        return Expected(self.oracle.expect(one), self.oracle.expect(other))

    def record(self, value: Value, sample: Sample, concept: str) -> float | None:
        raise InputError(
            "versus: expected models that are asked about source images, got recorded answers; "
            "give an oracle that needs no source"
        )

    def models_asked(self, questions: Indices) -> Indices:
        """(n,): how many of the two models each question has to be asked."""
        return self.models - np.isin(questions, self.known).astype(np.int64)

    def paired_losses(self, details: Mapping[str, Any] | None) -> Sequence[PairedLoss]:
        return [_lost(details, model) for model in MODELS]

    def judge_call(self, cases: Sequence[Case], values: Sequence[Value]) -> list[Outcome]:
        sides = []
        for model in MODELS:
            mine = [
                replace(
                    case,
                    answer=_part(case.answer, model),
                    expected=_part(case.expected, model),
                    source_answer=_part(case.source_answer, model),
                )
                for case in cases
            ]
            said = [_part(value, model) for value in values]
            sides.append((mine, self.oracle.judge_call(mine, said)))
        (cases_a, lost_a), (cases_b, lost_b) = sides
        return [_pair(*four) for four in zip(cases_a, lost_a, cases_b, lost_b, strict=True)]


@dataclass(frozen=True)
class Expected:
    """What is expected of model A, and of model B."""

    a: Any
    b: Any


def _part(value: Any, model: str) -> Any:
    """One model's part of what both said, or are expected to say; else what both share."""
    return getattr(value, model) if isinstance(value, PairedAnswer | Expected) else value


def _lost(details: Mapping[str, Any] | None, model: str) -> PairedLoss:
    told = (details or {}).get(model, {})
    return PairedLoss(float(told.get("loss", NEUTRAL)), told.get(MARGIN))


def difference(lost_a: float, lost_b: float) -> float:
    """y in [0, 1]."""
    return (1 + lost_a - lost_b) / 2


def _pair(case_a: Case, lost_a: Outcome, case_b: Case, lost_b: Outcome) -> Outcome:
    loss = difference(lost_a.loss, lost_b.loss)
    details = {"a": _told(case_a, lost_a), "b": _told(case_b, lost_b)}
    if asked := (lost_a.details or {}).get(ASKED):
        details[ASKED] = asked
    if excluded := lost_a.excluded or lost_b.excluded:
        return Outcome(0.0, excluded=excluded, details=details)
    missing = _missing("A", case_a, lost_a) or _missing("B", case_b, lost_b)
    if missing is not None:
        return Outcome(loss, unanswered=missing, details=details)
    return Outcome(loss, score=loss, details=details)


def _missing(name: str, case: Case, outcome: Outcome) -> str | None:
    reason = case.answer.reason if isinstance(case.answer, Unanswered) else outcome.unanswered
    return None if reason is None else f"model {name}: {reason}"


def _told(case: Case, outcome: Outcome) -> JsonObject:
    """What one model said and lost, as JSON has it; of a mask its score."""
    said = outcome.score if isinstance(case.answer, np.ndarray) else to_json(case.answer)
    told: JsonObject = {"said": said, "loss": float(outcome.loss)}
    truth = case.expected if isinstance(case.expected, int) else 1
    details = outcome.details
    if outcome.margin is not None:
        details = {"margin": float(outcome.margin)}
    sure = None if outcome.excluded else margin(truth, outcome.coordinate, details)
    return told if sure is None else told | {"margin": sure}
