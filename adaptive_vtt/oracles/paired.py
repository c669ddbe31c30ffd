"""Two models judged by one oracle: the loss of a pair is their difference, scaled to [0, 1].

With the losses L_A and L_B of models A and B, y = (1 + L_A - L_B) / 2 is 1/2 if they are equal, and
larger if B is better. The mean of y is certified like any rate, and with it the difference of the
models' rates, delta = 2 R_y - 1 = R_A - R_B.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import types
from ..datasets.base import CompleteDataset, Dataset
from ..errors import unexpected
from ..journal.answer_json import to_json
from ..relations.base import RelationDefaults
from ..types import Case, Indices, JsonObject, Outcome, PairedAnswer, PairedLoss, Sample, Value
from .base import Oracle, OracleDefaults, Premise
from .choice import ASKED
from .labels import MARGIN, margin

MODELS = ("a", "b")
"""The two models: names of attributes of paired values, and keys of an outcome's details."""
EARLIER = "journal_a"
"""The option that identifies the source of known answers of model A."""
SAME = (
    *("needs_source", "concepts_are", "rates", "unanswered_loss", "whole_call"),
    *("judges_masks", "judges_scores", "tells_losses"),
)
"""Members that are copied from the oracle that judges each model."""
NEUTRAL = 0.5
"""Loss of a model in an outcome without details."""


class Paired(OracleDefaults):
    """Oracle that judges the answers of two models (``PairedAnswer``) by another oracle.

    Loss and answer of each model are in the outcome's details, under "a" and "b". A question counts
    if it counts for both.

    Args:
        oracle: The oracle that judges each model.
        known: Questions whose answers by model A are known beforehand, (n,), ascending. Default
            None: none.
        earlier: A text that identifies the source of these answers. Default None: there is none.
    """

    models = 2
    compared = ("model A", "model B")
    """Names of the two answers in errors."""

    def __init__(
        self, oracle: OracleDefaults, known: Indices | None = None, earlier: str | None = None
    ) -> None:
        self.oracle = oracle
        self.known = np.zeros(0, np.int64) if known is None else known
        self.of = oracle.journal_name  # journaled as an attribute
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
            expected = "an oracle that judges each answer by itself"
            got = f"{self.of}, which asks about versions of the source image"
            raise unexpected("versus", expected, got, "audit each model alone")
        return 0

    def expect(self, premise: Premise) -> Any:
        """Return the expected answer, or two if each depends on its model's source answer."""
        pair = premise.source_answer
        if not isinstance(pair, PairedAnswer):
            return self.oracle.expect(premise)
        a, b = (replace(premise, source_answer=answer) for answer in (pair.a, pair.b))
        return Expected(self.oracle.expect(a), self.oracle.expect(b))

    def record(self, value: Value, sample: Sample, concept: str) -> float | None:
        remedy = "give an oracle that needs no source"
        raise unexpected("versus", "models that can be asked", "recorded answers", remedy)

    def models_asked(self, questions: Indices) -> Indices:
        """Return the number of models, 1 or 2, to which each question is sent, (n,)."""
        return self.models - np.isin(questions, self.known).astype(np.int64)

    def paired_losses(self, details: Mapping[str, Any] | None) -> Sequence[PairedLoss]:
        parts = [(details or {}).get(model, {}) for model in MODELS]
        return [PairedLoss(float(part.get("loss", NEUTRAL)), part.get(MARGIN)) for part in parts]

    def judge_call(self, cases: Sequence[Case], values: Sequence[Value]) -> list[Outcome]:
        sides = []
        for model in MODELS:
            of_model = [
                replace(case, **{n: _part(getattr(case, n), model) for n in PARTED})
                for case in cases
            ]
            outcomes = self.oracle.judge_call(of_model, [_part(value, model) for value in values])
            sides.append([*zip(of_model, outcomes, strict=True)])
        return [_outcome(a, b, self.compared) for a, b in zip(*sides, strict=True)]


PARTED = ("answer", "expected", "source_answer")
"""Fields of a case that differ between the models."""


@dataclass(frozen=True)
class Expected:
    """The expected answers of model A and of model B."""

    a: Any
    b: Any


def _part(value: Any, model: str) -> Any:
    """Return one model's part of a pair; other values unchanged."""
    return getattr(value, model) if isinstance(value, PairedAnswer | Expected) else value


def difference(lost_a: float, lost_b: float) -> float:
    """Return y, the loss of a pair, in [0, 1]."""
    return (1 + lost_a - lost_b) / 2


def _outcome(a: tuple[Case, Outcome], b: tuple[Case, Outcome], names: tuple[str, str]) -> Outcome:
    """Return the outcome of a pair.

    Args:
        a: The question and the outcome of model A.
        b: The question and the outcome of model B.
        names: Names of the two in errors.
    """
    details: JsonObject = {"a": _details(*a), "b": _details(*b)}
    if asked := (a[1].details or {}).get(ASKED):
        details[ASKED] = asked
    if excluded := a[1].excluded or b[1].excluded:
        return Outcome(0.0, excluded=excluded, details=details)
    loss = difference(a[1].loss, b[1].loss)
    for name, (case, outcome) in zip(names, (a, b), strict=True):
        answer = case.answer
        reason = answer.reason if isinstance(answer, types.Unanswered) else outcome.unanswered
        if reason is not None:
            return Outcome(loss, unanswered=f"{name}: {reason}", details=details)
    return Outcome(loss, score=loss, details=details)


def _details(case: Case, outcome: Outcome) -> JsonObject:
    """Return the answer, or the score of a mask, and the loss of one model, as JSON."""
    answer = outcome.score if isinstance(case.answer, np.ndarray) else to_json(case.answer)
    truth = case.expected if isinstance(case.expected, int) else 1
    given = {MARGIN: float(outcome.margin)} if outcome.margin is not None else outcome.details
    size = None if outcome.excluded else margin(truth, outcome.coordinate, given)
    details: JsonObject = {"answer": answer, "loss": float(outcome.loss)}
    return details if size is None else details | {MARGIN: size}
