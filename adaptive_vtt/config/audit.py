"""The sections of a SPEC.toml about questions, choosing, stopping and certifying.

What is an option of a constructor is told there: its words, its range, its default.
"""

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from ..engine.options import Certify, Limits, Sampling
from ..relations import reic, transformed
from ..relations.medtest import from_files
from ..space import QuestionSpace, WithoutRegion
from ..stopping import AllOf, FirstOf, MaxQuestions, StoppingRule, UncertaintyBelow, WallClock
from ..surrogates import Form, History
from ..types import Guarantee
from .section import Section, told


class TransformSpec(Section):
    """A relation of another library's transform, or of a function image -> image."""

    transform: str = told(transformed, "transform")
    name: str | None = told(transformed, "name")
    severities: list[dict[str, Any]] = told(transformed, "severities")
    options: dict[str, Any] | None = told(transformed, "options")
    concepts: list[str] | None = told(transformed, "concepts")
    moves: bool | None = told(transformed, "moves")


class MedTestSpec(Section):
    """What MedTest's relations use; what is not given is drawn, or detected."""

    instruments: str | None = told(from_files, "instruments")
    feces: str | None = told(from_files, "feces")
    blood: str | None = told(from_files, "blood")
    field: str | None = told(from_files, "field")
    similar: float | None = told(from_files, "similar")
    clipped: bool = told(from_files, "clipped")
    stool_anywhere: bool = told(from_files, "stool_anywhere")


class SpaceSpec(Section):
    """Which questions there are."""

    relations: list[str] = Field(
        ["identity"],
        description="relations to ask under: names (see 'avtt list relations'), 'file.py:name' or "
        "'package.module:name'",
        min_length=1,
    )
    severities: list[int] | None = told(QuestionSpace, "severities")
    seed: int = told(QuestionSpace, "seed")
    without_region: WithoutRegion = told(QuestionSpace, "without_region")
    follow_ups: int | None = told(reic.relations, "follow_ups", set_here=False)
    by_ambiguity: bool | None = told(reic.relations, "by_ambiguity", set_here=False)
    by_diversity: bool | None = told(reic.relations, "by_diversity", set_here=False)
    min_crop: float | None = told(reic.relations, "min_crop", set_here=False)
    captions: str | None = told(reic.relations, "captions")
    medtest: MedTestSpec | None = Field(
        None,
        description="medtest: files for cut-outs (instruments, feces, blood), the visible field, "
        "and how cut-outs, light and stool are chosen",
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

    strategy: str | None = told(Sampling, "strategy")
    strategy_options: dict[str, Any] | None = told(Sampling, "strategy_options")
    budget: int | None = told(Limits, "budget")
    max_cost: float | None = told(Limits, "max_cost")
    fail_on_error: float | None = told(Limits, "fail_on_error")
    seed: int | None = told(Sampling, "seed")
    repeat_probes: int = told(Sampling, "repeat_probes")
    exploration: float | None = told(Sampling, "exploration")
    candidates: int = told(Sampling, "candidates")
    batch: int = told(Sampling, "batch")
    form: Form = told(Sampling, "form")
    history: History = told(Sampling, "history")
    keep_masks: bool = told(Sampling, "keep_masks")
    by_price: bool = told(Sampling, "by_price")
    on_progress: str | None = Field(
        None,
        description="a function that is called with the progress after every batch: 'file.py:name' "
        "or 'package.module:name'",
    )
    processes: int | None = told(Sampling, "processes")
    device: str = Field(
        "auto", description="where the GPs live: cpu, cuda, or auto, which is CUDA if there is one"
    )


class StopSpec(Section):
    """When to stop: at all goals together, those under [certify] among them, or at any limit."""

    questions: int | None = told(MaxQuestions, "questions", set_here=False)
    uncertainty: float | None = told(UncertaintyBelow, "uncertainty", set_here=False)
    max_uncertainty: float | None = Field(
        None,
        description="a goal: the same for the most uncertain side of any concept",
        gt=0,
        le=1,
    )
    seconds: float | None = told(WallClock, "seconds", set_here=False)
    gate: list[str] | None = Field(
        None,
        description="a goal: rules such as 'overall <= 0.1' are all decided; the exit code is 0 "
        "whether they pass or fail ('avtt gate' exits with 1 where one fails)",
        min_length=1,
    )

    def limit(self) -> StoppingRule | None:
        """Return the limits that are set, joined by "or"; None where none is."""
        limits: dict[Any, float | None] = {MaxQuestions: self.questions, WallClock: self.seconds}
        return _joined(FirstOf, [rule(most) for rule, most in limits.items() if most is not None])

    def goal(self) -> StoppingRule | None:
        """Return the goals that are set, joined by "and"; None where none is."""
        goals = [UncertaintyBelow(self.uncertainty)] if self.uncertainty is not None else []
        if self.max_uncertainty is not None:
            goals.append(UncertaintyBelow(self.max_uncertainty, over="max"))
        return _joined(AllOf, goals)


def _joined(join: type[FirstOf | AllOf], rules: Sequence[StoppingRule]) -> StoppingRule | None:
    return join(tuple(rules)) if len(rules) > 1 else next(iter(rules), None)


class CertifySpec(Section):
    """What to certify; without half_width and at_most nothing: the audit explores (--explore)."""

    half_width: float | None = told(Certify, "half_width")
    at_most: float | None = told(Certify, "at_most")
    confidence: float = told(Certify, "confidence")
    guarantee: Guarantee = told(Certify, "guarantee")
    weights: dict[str, float] | None = told(Certify, "weights")
    targets: list[str] = told(Certify, "targets")
    where: dict[str, dict[str, list[Any]]] | None = told(Certify, "where")
    discover: int = told(Certify, "discover")
    discover_by: list[str] = told(Certify, "discover_by")
    set_aside: float | None = told(Certify, "set_aside")
    unanswered: Literal["loss", "both"] = told(Certify, "unanswered")
    features: Literal["default", "efficientnet-lite0"] = Field(
        "default",
        description="image features of the question GP: thumbnails and colours, or an embedding "
        "(its packages are in the extra 'embedding')",
    )
    surrogate: bool | str = told(Certify, "surrogate")
    surrogate_options: dict[str, Any] | None = Field(
        None, description="options of the surrogate, such as exact_limit = 2000 of question-gp"
    )
    proxies: dict[str, str] | None = told(Certify, "proxies")
    self_taught: bool | Literal["auto"] = told(Certify, "self_taught")
    prior_journal: str | None = told(Certify, "prior_journal")
    cohort: str | list[str] | None = told(Certify, "cohort")

    @property
    def certifies(self) -> bool:
        return self.half_width is not None or self.at_most is not None
