"""The sections of a SPEC.toml about questions, choosing, stopping and certifying.

The options of a constructor are described there, with their range and default, and become fields.
"""

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from ..engine.options import Certify, Limits, Sampling
from ..relations import reic, transformed
from ..relations.medtest import from_files
from ..space import QuestionSpace
from ..stopping import AllOf, FirstOf, MaxQuestions, StoppingRule, UncertaintyBelow, WallClock
from .section import Section, fields_of, made_of, option

_MedTest: Any = made_of(fields_of(from_files))
_Transform: Any = made_of(fields_of(transformed))
_RELATIONS = Field(
    ["identity"],
    description="relations to ask under: names (see 'avtt list relations'), 'file.py:name' or "
    "'package.module:name'",
    min_length=1,
)
_Space: Any = made_of(
    {"relations": (list[str], _RELATIONS)},
    fields_of(QuestionSpace),
    fields_of(reic.relations, set_here=False),
)
_Audit: Any = made_of(fields_of(Sampling, strategy=str), fields_of(Limits))
_Certify: Any = made_of(fields_of(Certify, proxies=dict[str, str], cohort=str | list[str]))


class TransformSpec(_Transform):  # type: ignore[misc]  # its fields are options
    """A relation of another library's transform, or of a function image -> image."""


class MedTestSpec(_MedTest):  # type: ignore[misc]
    """Files and choices of MedTest's relations; what is not given is drawn, or detected."""


class SpaceSpec(_Space):  # type: ignore[misc]
    """The questions."""

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


class AuditSpec(_Audit):  # type: ignore[misc]
    """How to choose questions."""

    on_progress: str | None = Field(
        None,
        description="a function that is called with the progress after every batch: 'file.py:name' "
        "or 'package.module:name'",
    )
    device: str = Field(
        "auto", description="where the GPs live: cpu, cuda, or auto, which is CUDA if there is one"
    )


class StopSpec(Section):
    """When to stop: at all goals together, those under [certify] among them, or at any limit."""

    questions: int | None = option(MaxQuestions, "questions", set_here=False)
    uncertainty: float | None = option(UncertaintyBelow, "uncertainty", set_here=False)
    max_uncertainty: float | None = Field(
        None, description="a goal: the same for the most uncertain side of any concept", gt=0, le=1
    )
    seconds: float | None = option(WallClock, "seconds", set_here=False)
    gate: list[str] | None = Field(
        None,
        description="a goal: rules such as 'overall <= 0.1' are all decided; the exit code is 0 "
        "whether they pass or fail ('avtt gate' exits with 1 where one fails)",
        min_length=1,
    )

    def limit(self) -> StoppingRule | None:
        """Return the limits that are set, joined by "or"; None if there is none."""
        limits: dict[Any, float | None] = {MaxQuestions: self.questions, WallClock: self.seconds}
        return _joined(FirstOf, [rule(most) for rule, most in limits.items() if most is not None])

    def goal(self) -> StoppingRule | None:
        """Return the goals that are set, joined by "and"; None if there is none."""
        goals: dict[Literal["mean", "max"], float | None]
        goals = {"mean": self.uncertainty, "max": self.max_uncertainty}
        rules = [UncertaintyBelow(u, over=over) for over, u in goals.items() if u is not None]
        return _joined(AllOf, rules)


def _joined(join: type[FirstOf | AllOf], rules: Sequence[StoppingRule]) -> StoppingRule | None:
    return join(tuple(rules)) if len(rules) > 1 else next(iter(rules), None)


class CertifySpec(_Certify):  # type: ignore[misc]
    """The certificates; without half_width and at_most nothing is certified (--explore)."""

    features: Literal["default", "efficientnet-lite0"] = Field(
        "default",
        description="image features of the question GP: thumbnails and colours, or an embedding "
        "(its packages are in the extra 'embedding')",
    )
    surrogate_options: dict[str, Any] | None = Field(
        None, description="options of the surrogate, such as exact_limit = 2000 of question-gp"
    )

    @property
    def certifies(self) -> bool:
        """True if anything is certified."""
        return self.half_width is not None or self.at_most is not None
