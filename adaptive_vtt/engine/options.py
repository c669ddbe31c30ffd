"""The options of an audit in groups, and each of them as a keyword of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, TypedDict, TypeVar

from ..certify.comparison import Comparison
from ..cohort import Cohort
from ..errors import InputError, unknown
from ..journal.prior import PriorSource
from ..models.base import ProxySource
from ..stopping import AllOf, StoppingRule, check_rule, limits_of
from ..strategies import Named, Strategy, default, named
from ..surrogates import Named as NamedSurrogate
from ..types import Guarantee
from ..utils.options import Option
from .lease import Lease
from .plan import DEFAULT_EXPLORATION, Certify, Filters
from .replay import Replay

Group = TypeVar("Group")


@dataclass(frozen=True)
class Sampling:
    """How an audit chooses what to ask, and what it keeps of the answers.

    What fields say is told beside them, in the words of SPEC.toml. Python takes more:

    - ``strategy``: also a Strategy; names are ``strategies.names()``.
    - ``exploration``: above 0 where targets are certified.
    - ``seed``: random choices follow from it and from what is audited (``engine.audit_key``).
      Default None: the journal's where one is continued, else fresh.
    - ``form``: see ``surrogates.AnswerGP``; ``history``: see ``surrogates.Predictability``.
    - ``keep_masks``: about 2 kB for a mask of 512 x 512 pixels, beside its scores.
    - ``by_price``: by the root of what calls are expected to cost, where the strategy is
      ``certify``: see ``engine.prices``.
    - ``replay``: an earlier audit whose draws come first; set by ``Versus`` and for readers.
      Default None: all draws are its own.
    """

    strategy: Annotated[
        str | Strategy | Named | None,
        Option(
            "which questions come next: a name (see 'avtt list strategies'), 'file.py:name' or "
            "'package.module:name' (default: certify where half_width or at_most is given, else "
            "the paper's uncertainty+unpredictability)"
        ),
    ] = None
    exploration: Annotated[
        float | None,
        Option("share of the proposal that is even (default: 0.2 to certify, else 0)", ge=0, le=1),
    ] = None
    candidates: Annotated[int, Option("unseen questions looked at per draw", ge=1)] = 4096
    batch: Annotated[int, Option("calls asked at a time, beliefs frozen", ge=1)] = 1
    seed: Annotated[
        int | None,
        Option("same seed, same audit (default: a new one each time, journaled)"),
    ] = None
    repeat_probes: Annotated[
        int, Option("answered questions asked again, to notice a model that changes", ge=0)
    ] = 0
    form: Annotated[
        Literal["std", "variance"],
        Option("uncertainty as area of 95 % regions (std) or integral of variances"),
    ] = "std"
    history: Annotated[
        Literal["truth", "answer"],
        Option("predictability given true answers (Geman) or the model's"),
    ] = "truth"
    keep_masks: Annotated[
        bool,
        Option(
            "keep the masks that are answered in the journal, for 'avtt rejudge' with another "
            "overlap"
        ),
    ] = False
    by_price: Annotated[
        bool,
        Option(
            "ask cheap calls more often than dear ones, where prices of tokens are given and "
            "targets are certified"
        ),
    ] = True
    replay: Replay | None = None

    @property
    def name(self) -> str | None:
        """What the strategy is called in the journal; None where it is left to the default."""
        if self.strategy is None or isinstance(self.strategy, str):
            return self.strategy
        return named(self.strategy).name

    def chosen(self, certifies: bool) -> Named:
        """The strategy and its name in the journal; raises InputError for an unknown name."""
        return named(default(certifies) if self.strategy is None else self.strategy)

    def share(self, certifies: bool) -> float:
        """The even share of the proposal, as given or by default."""
        if self.exploration is not None:
            return self.exploration
        return DEFAULT_EXPLORATION if certifies else 0.0

    def check(self, certifies: bool) -> None:
        """Raises InputError for anything out of range."""
        exploration = self.share(certifies)
        if not 0 <= exploration <= 1:
            raise InputError(f"exploration: expected a share between 0 and 1, got {exploration}")
        for name, value in (("candidates", self.candidates), ("batch", self.batch)):
            if value < 1:
                raise InputError(f"{name}: expected at least 1, got {value}")
        for kind, reading, choices in (
            ("form", self.form, ("std", "variance")),
            ("history", self.history, ("truth", "answer")),
        ):
            if reading not in choices:
                raise unknown(kind, reading, choices)


@dataclass(frozen=True)
class Limits:
    """When an audit ends, beside what it is to certify.

    What fields say is told beside them, in the words of SPEC.toml. Python takes more:

    - ``budget``: calls about source images and repeat probes included. Default None: as many as it
      takes.
    - ``max_cost``: calls on their way count at their worst price. Default None: no cap.
    - ``fail_on_error``: ``run`` ends with ModelError; resuming counts anew.
    - ``stop``: any StoppingRule beside these. Default None: none.
    - ``goal``: what else must be known before the audit has reached its end, such as
      ``UncertaintyBelow(0.5)``: needed beside half_width and at_most, where those are given, while
      a limit ends it anyway. Default None: nothing else.
    - ``lease``: what it may spend for now, in a fleet of audits that share one purse; see
      ``engine.lease``. Default None: nothing is shared.
    """

    budget: Annotated[int | None, Option("a limit: calls of the model, at most, ever", ge=1)] = None
    max_cost: Annotated[
        float | None,
        Option("a limit: money, at most, in the unit of the model's prices", gt=0),
    ] = None
    fail_on_error: Annotated[
        float | None,
        Option(
            "end with an error when more than this share of calls stays unanswered, of 20 calls or "
            "more; 1: never (default: when none of the first 20 calls was answered)",
            gt=0,
            le=1,
        ),
    ] = None
    stop: StoppingRule | None = None
    goal: StoppingRule | None = None
    lease: Lease | None = None

    def rules(self, certified: StoppingRule | None) -> list[StoppingRule]:
        """The stopping rules, any of which ends the audit: all goals together, ``certified`` among
        them, and each limit. Raises InputError for a limit that is none."""
        for name, given in (("stop", self.stop), ("goal", self.goal)):
            if given is not None:
                check_rule(given, name)
        goals = [rule for rule in (certified, self.goal) if rule is not None]
        first = AllOf(tuple(goals)) if len(goals) > 1 else next(iter(goals), None)
        limits = limits_of(self.budget, self.max_cost)
        return [*(rule for rule in (first, self.stop) if rule is not None), *limits]


class Shorthands(TypedDict, total=False):
    """Every field of every group as a keyword of an Audit; see there what it says."""

    half_width: float | None
    at_most: float | None
    confidence: float
    guarantee: Guarantee
    weights: Mapping[str, float] | None
    compare: Comparison | None
    discover: int
    discover_by: Sequence[str]
    set_aside: float | None
    targets: Sequence[str]
    where: Filters | None
    unanswered: Literal["loss", "both"]
    surrogate: bool | str | NamedSurrogate
    proxies: Mapping[str, ProxySource] | None
    self_taught: bool | Literal["auto"]
    prior_journal: PriorSource | None
    cohort: Cohort | None
    strategy: str | Strategy | Named | None
    exploration: float | None
    candidates: int
    batch: int
    seed: int | None
    repeat_probes: int
    form: Literal["std", "variance"]
    history: Literal["truth", "answer"]
    keep_masks: bool
    by_price: bool
    replay: Replay | None
    budget: int | None
    max_cost: float | None
    fail_on_error: float | None
    stop: StoppingRule | None
    goal: StoppingRule | None
    lease: Lease | None


def grouped(
    keywords: Mapping[str, Any],
    certify: Certify | None,
    sampling: Sampling | None,
    limits: Limits | None,
) -> tuple[Certify, Sampling, Limits]:
    """The three groups: those given, the others made of the keywords.

    Raises InputError for a keyword of a group that is given too, and for one that no group has.
    """
    known = [field.name for kind in (Certify, Sampling, Limits) for field in fields(kind)]
    for name in keywords:
        if name not in known:
            raise unknown("option", name, known, "audit")
    return (
        _group("certify", Certify, certify, keywords),
        _group("sampling", Sampling, sampling, keywords),
        _group("limits", Limits, limits, keywords),
    )


def _group(name: str, kind: type[Group], given: Group | None, keywords: Mapping[str, Any]) -> Group:
    own = {f.name: keywords[f.name] for f in fields(kind) if f.name in keywords}  # type: ignore[arg-type]  # dataclasses
    if given is None:
        return kind(**own)
    if not isinstance(given, kind):
        raise InputError(
            f"{name}: expected a {kind.__name__}, got {given!r} of type {type(given).__name__}"
        )
    if own:
        field = next(iter(own))
        raise InputError(
            f"audit: expected {field!r} in {name} = {kind.__name__}(...) or as a keyword, got "
            f"both; write {name} = {kind.__name__}(..., {field} = {own[field]!r})"
        )
    return given
