"""The options of an audit: what it certifies, how it samples, when it ends.

They form three groups: ``Certify``, ``Sampling`` and ``Limits``. An audit takes the groups, or each
option as a keyword (``Shorthands``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Annotated, Any, Literal, TypedDict, TypeVar

from ..certify.alpha import alpha_shares, by_weight
from ..certify.certifier import Certifier
from ..certify.decisions import MAX_AIM, Comparison
from ..certify.rules import Rules
from ..certify.sequences import BETS
from ..certify.strata import CallStrata
from ..certify.targets import Target, constants_of, fingerprint, named_targets, size, target_of
from ..cohort import Cohort
from ..errors import InputError, check_known
from ..families import ASKED, DROPS, OfDrop, OfSlice
from ..journal.facts import CertificateFacts, SliceFacts
from ..journal.prior import PriorSource
from ..models.base import ProxySource
from ..population import Population
from ..space import QuestionSpace
from ..stopping import (
    MAX_CONFIDENCE,
    AllOf,
    Certified,
    Compared,
    Decided,
    StoppingRule,
    check_half_width,
    check_rule,
    limits_of,
)
from ..strategies import EVERYTHING, Named, Strategy, default, named
from ..surrogates import Form, History
from ..surrogates import Named as NamedSurrogate
from ..types import CallMode, Guarantee, JsonObject
from ..utils.figures import USD
from ..utils.options import Option, check_options
from .proposals import Replay

Group = TypeVar("Group", bound="Certify | Sampling | Limits")
Filters = Mapping[str, Mapping[str, Sequence[object]]]
DECISION_WIDTH = 0.1
"""Half-width that bets aim at when a rate is only to be decided against a limit."""
FINE_CELL = 0.0005
"""Spacing of the means that bets are about when losses of two answers are subtracted: the scale is
half as long there, so the usual spacing would be twice as coarse."""
DEFAULT_EXPLORATION = 0.2
"""Default uniform share of the proposal in an audit that certifies targets."""
SET_ASIDE = 0.1
"""Default share of alpha that is reserved for slices in an audit that looks for them."""
DISCOVER_BY = ("metadata", "cells")
FIRST_LOOK = 60
"""Draw at which an audit first looks for slices: fewer answers seldom show any."""
DEFAULT_TARGETS = ("concepts", "relations")


@dataclass(frozen=True)
class Certify:
    """Options of what an audit certifies, how surely, and with which predictions.

    With neither ``half_width`` nor ``at_most`` nothing is certified, and the others have no effect.
    The text next to each field is its description in SPEC.toml. From Python, more is possible:

    - ``half_width``: a resumed audit may be given another, narrower or wider
      (``rules.Rules.aiming``).
    - ``targets``: names as in ``certify.named_targets``. Default: every concept's miss and
      false-alarm rate, and every relation's error; for a ``Pool``, the mean loss of all items.
    - ``weights``: default None. Under the strategy ``certify`` the shares then follow from the
      targets' sizes (``alpha.by_size``). Other strategies do not prefer the rarest targets by
      themselves, so shares are even.
    - ``surrogate``: also ``surrogates.named(name, options)`` (``docs/how-to/own-parts.md``).
    - ``proxies``: name -> answers of a cheaper model, as ``engine.proxies.Proxies`` takes them.
      They change which questions are asked, never what is certified.
    - ``self_taught``: trains ``models.SelfTaught``. "auto" trains it if labels decide what is right
      (oracles correctness and top-class), some concept has 30 labels on each side, and rendering
      all follow-ups takes a minute at most.
    - ``prior_journal``: a question GP learns its answers and becomes a proxy (``engine.priors``).
    - ``cohort``: a regression of each of the other models on the rest gives the prior of this
      model's losses (``engine.priors``).
    - ``discover``, ``discover_by``: see ``slices``. Each slice becomes a target with the draw after
      which it was discovered, and is certified to ``half_width``, too.
    - ``set_aside``: a resumed audit keeps the share that its journal began with.
    - ``compare``: the claim about two models that is decided, in place of ``half_width`` and
      ``at_most``; set by ``Versus``. Default None: nothing is compared.
    """

    half_width: Annotated[
        float | None,
        Option(
            "a goal: every target's rate is known to plus or minus this share, below 0.5; 0.05 is "
            "5 percentage points, of drops 5 points of the difference"
        ),
    ] = None
    at_most: Annotated[
        float | None,
        Option(
            "a goal: of every target's rate it is sure whether it lies above this share", gt=0, lt=1
        ),
    ] = None
    confidence: Annotated[
        float,
        Option("probability that what is certified holds at all times", gt=0, le=MAX_CONFIDENCE),
    ] = 0.95
    targets: Annotated[
        Sequence[str], Option(f"{', '.join(ASKED)}, or names of filters", min_length=1)
    ] = DEFAULT_TARGETS
    where: Annotated[
        Filters | None,
        Option(
            "filters: name -> field -> allowed values; fields: relation, severity, concept, truth "
            "(0 or 1), or a metadata column"
        ),
    ] = None
    unanswered: Annotated[
        Literal["loss", "both"], Option("unanswered questions count as wrong, or (both) as either")
    ] = "loss"
    surrogate: Annotated[
        "bool | str | NamedSurrogate",
        Option(
            "what predicts losses: true for the question GP, false for each target's mean alone, "
            "or a name (see 'avtt list surrogates'), 'file.py:name' or 'package.module:name'",
            type=bool | str,
        ),
    ] = True
    proxies: Annotated[
        Mapping[str, ProxySource] | None,
        Option("cheaper models: name -> CSV of answers, or file.py:name"),
    ] = None
    self_taught: Annotated[
        bool | Literal["auto"],
        Option(
            "predict failures with small nets taught with the labelled source images: true, false, "
            "or where labels judge answers and are enough, and images are small"
        ),
    ] = "auto"
    prior_journal: Annotated[
        PriorSource | None, Option("journal.db of an audit of an earlier version of the model")
    ] = None
    cohort: Annotated[
        Cohort | None,
        Option(
            "run folders of audits of three or more other models on this space, or a pattern that "
            "finds them (--after)"
        ),
    ] = None
    guarantee: Annotated[
        Guarantee,
        Option("what holds with that probability: all intervals at once, or each by itself"),
    ] = "all"
    weights: Annotated[
        Mapping[str, float] | None,
        Option(
            "a target's name, such as 'overall' -> its share of what may go wrong, "
            "relative to the others' 1: a larger one takes fewer questions"
        ),
    ] = None
    compare: Comparison | None = None
    discover: Annotated[
        int,
        Option(
            "look for up to so many slices, groups in which failures concentrate, and certify each "
            "from then on",
            ge=0,
        ),
    ] = 0
    discover_by: Annotated[
        Sequence[str],
        Option(
            "what proposes slices: metadata, cells (relation, severity, concept, truth), clusters "
            "(of images; needs scikit-learn), words (of prompts)",
            min_length=1,
        ),
    ] = DISCOVER_BY
    set_aside: Annotated[
        float | None,
        Option(
            "the share of what may go wrong that is kept for slices (default: 0.1 where any are "
            "looked for); it may also be given to look for some later",
            gt=0,
            lt=1,
        ),
    ] = None

    @property
    def certifies(self) -> bool:
        goals = (self.half_width, self.at_most, self.compare)
        return any(goal is not None for goal in goals)

    @property
    def drops(self) -> bool:
        """True if targets are drops: how much worse answers about changed images are."""
        return DROPS in self.targets

    @property
    def of_two(self) -> bool:
        """True if each target is a difference of two losses: a drop, or two models compared."""
        return self.drops or self.compare is not None

    @property
    def aim(self) -> float | None:
        """``half_width`` on the scale of a mean loss; the scale of a drop is twice as long."""
        if self.half_width is None:
            return None
        return self.half_width / OfDrop.scale if self.drops else self.half_width

    def check(self, exploration: float) -> None:
        """Raise InputError for an option out of range, or for two that exclude each other.

        Args:
            exploration: Uniform share of the proposal, from 0 to 1.
        """
        if self.drops:
            self._check_drops()
        if self.half_width is not None:
            check_half_width(self.half_width)
        check_options(Certify, vars(self))
        if self.guarantee == "each" and self.weights:
            raise InputError(
                'weights: expected none where the guarantee is "each", as no target shares with '
                f"others there; got {dict(self.weights)}"
            )
        goals = {"at_most": self.at_most, "a comparison": self.compare}
        others = [name for name, goal in goals.items() if goal is not None]
        if (self.discover or self.set_aside) and (self.half_width is None or others):
            raise InputError(
                "discover: expected an audit to a half_width alone, as slices are certified to it; "
                f"got {' and '.join(others) or 'nothing certified'}"
            )
        if self.certifies and exploration <= 0:
            raise InputError(
                f"exploration: expected a share above 0 where targets are certified, got "
                f"{exploration}"
            )

    def _check_drops(self) -> None:
        """Raise InputError for an option that is about a single rate."""
        names = ("at_most", "proxies", "prior_journal", "cohort", "discover", "where")
        refused = [name for name in names if getattr(self, name)]
        refused += ["self_taught"] if self.self_taught is True else []
        refused += ["surrogate"] if not isinstance(self.surrogate, bool) else []
        if refused:
            limit = "a gate decides limits: 'drop:RELATION <= 5 %'"
            raise InputError(
                f"targets {DROPS!r}: expected no {refused[0]}, which is about one rate and no "
                f"difference; {limit if refused[0] == 'at_most' else 'leave it out'}"
            )

    def suited(self, space: QuestionSpace) -> "Certify":
        """Return the options with defaults that fit the space.

        A space without concepts gets its first kind of target. Given losses are not predicted if
        nothing shows which items are alike.
        """
        certify = self
        similarity = [self.proxies, self.prior_journal, self.cohort, space.dataset.features]
        if space.oracle.tells_losses and all(source is None for source in similarity):
            certify = replace(certify, surrogate=False)
        if self.targets is not DEFAULT_TARGETS or "concepts" in space.kinds:
            return certify
        return replace(certify, targets=space.kinds[:1])

    def meaning(self) -> JsonObject:
        """Return the options that define the targets, for the audit's key."""
        return {
            "certifies": self.certifies,
            "confidence": self.confidence,
            "targets": tuple(self.targets),
            "where": self.where,
            "unanswered": self.unanswered,
        }

    def goal(self) -> dict[str, float]:
        """Return the goals by option, of those that are set. A resumed audit may have others."""
        compare = self.compare
        goal = {
            "half_width": self.half_width,
            "at_most": self.at_most,
            "margin": None if compare is None else compare.margin,
            "at_least": None if compare is None else compare.at_least,
        }
        # The audit's key hashes their text, and a journal returns 0 as 0.0.
        return {name: float(value) for name, value in goal.items() if value is not None}

    def rule(self) -> StoppingRule | None:
        """Return the rule that is met once every goal is reached; None without a goal."""
        if self.compare is not None:
            rule = Compared(self.compare.margin, self.compare.at_least)
            return rule if self.compare.stops else None
        precise = None if self.half_width is None else Certified(self.half_width)
        decided = None if self.at_most is None else Decided(self.at_most)
        return precise & decided if precise and decided else precise or decided

    def check_targets(self, space: QuestionSpace) -> None:
        """Raise InputError for targets or weights that do not fit ``space``."""
        targets = named_targets(space, self.targets, self.where)
        if self.weights:
            by_weight(self.weights, [target.id for target in targets])

    def certifier(
        self,
        space: QuestionSpace,
        answers: CallMode,
        begun: CertificateFacts | None = None,
        *,
        even: bool = False,
    ) -> Certifier | None:
        """Return the certifier of the targets in ``space``; None where nothing is certified.

        Args:
            space: All questions.
            answers: "one" where a call is one question, "all" where it is one image.
            begun: The certificate of the journal that is resumed, which fixes the constants of the
                bets. Default None: a new audit.
            even: True if targets share alpha evenly where no weights are given.

        Raises:
            InputError: For unknown targets, or slices that the journal reserved no alpha for.
        """
        if not self.certifies:
            return None
        targets = named_targets(space, self.targets, self.where)
        by_bets = self.at_most is not None and (begun is None or begun.decides)
        slices: Sequence[SliceFacts] = ()
        aim = self.aim or (DECISION_WIDTH if self.compare is None else MAX_AIM)
        bets = replace(BETS, cell=FINE_CELL) if self.of_two else BETS
        if begun is not None:
            slices, aim, bets = begun.slices, begun.aim, begun.bets
        shares = None
        if self.guarantee == "all":
            shares = alpha_shares(space, targets, answers, self.weights, begun, even=even)
        rules = Rules(
            aim,
            alpha=1 - self.confidence,
            guarantee=self.guarantee,
            weights=shares,
            limit=self.at_most if by_bets else None,
            by_distance=by_bets and self.half_width is None,
            bets=bets,
            changes=() if begun is None else begun.aims,
            compare=self.compare,
            set_aside=self._set_aside(begun),
            slices=len(slices),
            theta=() if begun is None else begun.theta,
        )
        discovered = [target_of(OfSlice(s.name), s.masks) for s in slices]
        since = [0] * len(targets) + [s.since for s in slices]
        return Certifier(space, [*targets, *discovered], answers=answers, rules=rules, since=since)

    def _set_aside(self, begun: CertificateFacts | None) -> float:
        """Return the share of alpha that is reserved for slices, fixed before the first bet."""
        if begun is None:
            return (self.set_aside or SET_ASIDE) if self.discover or self.set_aside else 0.0
        if self.discover and not begun.set_aside:
            raise InputError(
                "discover: expected an audit that set a share of its alpha aside for slices, got "
                "one that did not; 'avtt slices DIR' looks for some, and a new audit with "
                "discover = N certifies them"
            )
        return begun.set_aside

    def describe(self, certifier: Certifier | None) -> JsonObject | None:
        """Return the fact "certificate" of a new journal; None where nothing is certified."""
        if certifier is None:
            return None
        rules = certifier.rules
        strata = certifier.strata.assigned if isinstance(certifier.strata, CallStrata) else None
        decided = "by bets" if certifier.decisions is not None else "by intervals"
        return {
            **self.fact(certifier.space, certifier.registered, rules, decided),
            **({} if self.compare is None else {"versus": self.compare.describe()}),
            **({"set_aside": rules.set_aside} if rules.set_aside else {}),
            **({"aims": [list(change) for change in rules.changes]} if rules.changes else {}),
            **({"theta": [*rules.theta]} if rules.theta else {}),
            **({"strata": strata.tolist()} if strata is not None else {}),
        }

    def fact(
        self, space: Population, targets: Sequence[Target], rules: Rules, decided: str
    ) -> JsonObject:
        """Return the part of the fact "certificate" that drawn and counted targets share.

        Args:
            space: All questions.
            targets: The targets that the audit begins with.
            rules: Rules of their game.
            decided: How they are decided, in the journal's words.
        """
        return {
            "half_width": self.half_width,
            "at_most": self.at_most,
            "aim": rules.aim,
            "confidence": self.confidence,
            "guarantee": self.guarantee,
            "decided": decided,
            "weights": None if rules.weights is None else [*rules.weights],
            "unanswered": self.unanswered,
            "targets": [t.name for t in targets],
            "ids": [t.id.as_dict() for t in targets],
            "sizes": [size(space, t) for t in targets],
            "subsets": fingerprint(targets),
            # A constant answer has no meaningful rate where two losses are subtracted.
            "constants": [] if self.of_two else constants_of(space, targets),
            "bets": asdict(rules.bets),
        }

    def changes_width(self, begun: CertificateFacts | None) -> bool:
        """Return whether the half-width differs from the one that the journal has."""
        if begun is None or begun.half_width is None or self.half_width is None:
            return False
        return self.half_width != begun.half_width


@dataclass(frozen=True)
class Sampling:
    """Options of how an audit chooses its questions, and what it keeps of the answers.

    The text next to each field is its description in SPEC.toml. From Python, more is possible:

    - ``strategy``: also a Strategy; ``strategies.names()`` lists the names.
    - ``strategy_options``: for a strategy that is given by name, or for the default one.
    - ``exploration``: above 0 where targets are certified.
    - ``seed``: all random choices follow from it and from what is audited (``engine.audit_key``).
      Default None: the journal's in a resumed audit, else a fresh one.
    - ``form``: see ``surrogates.AnswerGP``; ``history``: see ``surrogates.Predictability``.
    - ``keep_masks``: a mask of 512 x 512 pixels takes about 2 kB, in addition to its scores.
    - ``by_price``: weights are divided by the root of the expected cost, under the strategy
      ``certify`` (``engine.prices``).
    - ``replay``: an earlier audit whose draws come first; set by ``Versus``.
      Default None: the audit makes all draws itself.
    """

    strategy: Annotated[
        str | Strategy | Named | None,
        Option(
            "which questions come next: a name (see 'avtt list strategies'), 'file.py:name' or "
            "'package.module:name' (default: certify where half_width or at_most is given, else "
            "the paper's uncertainty+unpredictability)"
        ),
    ] = None
    strategy_options: Annotated[
        Mapping[str, Any] | None, Option("options of the strategy, such as power = 2 of bald")
    ] = None
    exploration: Annotated[
        float | None,
        Option("share of the proposal that is even (default: 0.2 to certify, else 0)", ge=0, le=1),
    ] = None
    candidates: Annotated[int, Option("unseen questions looked at per draw", ge=1)] = 4096
    batch: Annotated[int, Option("calls asked at a time, beliefs frozen", ge=1)] = 1
    seed: Annotated[
        int | None, Option("same seed, same audit (default: a new one each time, journaled)")
    ] = None
    repeat_probes: Annotated[
        int, Option("answered questions asked again, to notice a model that changes", ge=0)
    ] = 0
    form: Form = "std"
    history: History = "truth"
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
            "ask cheap calls more often than expensive ones, where prices of tokens are given and "
            "targets are certified"
        ),
    ] = True
    replay: Replay | None = None
    processes: Annotated[
        int | None,
        Option(
            "where everything is asked: processes that make images ahead of the model (default: "
            "one per spare processor, where that saves time)",
            ge=0,
        ),
    ] = None

    @property
    def name(self) -> str | None:
        """The strategy's name in the journal; None for the default strategy."""
        if self.strategy is None or isinstance(self.strategy, str):
            return self.strategy
        return named(self.strategy).name

    @property
    def everything(self) -> bool:
        """True if every question is asked, in order, and none is drawn."""
        return self.name == EVERYTHING

    def chosen(self, certifies: bool) -> Named:
        """Return the strategy with its name in the journal.

        Args:
            certifies: True if the audit certifies targets, which decides the default strategy.

        Raises:
            InputError: For an unknown name or option.
        """
        strategy = default(certifies) if self.strategy is None else self.strategy
        return named(strategy, self.strategy_options)

    def share(self, certifies: bool) -> float:
        """Return the uniform share of the proposal, from 0 to 1, as given or by default."""
        if self.exploration is not None:
            return self.exploration
        return DEFAULT_EXPLORATION if certifies else 0.0

    def check(self) -> None:
        """Raise InputError for an option out of range."""
        check_options(Sampling, vars(self))


@dataclass(frozen=True)
class Limits:
    """Options of when an audit ends, apart from the goals of ``Certify``.

    The text next to each field is its description in SPEC.toml. From Python, more is possible:

    - ``budget``: counts calls about source images and repeat probes, too. Default None: no limit.
    - ``max_cost``: calls in flight count at their worst price. Default None: no cap.
    - ``fail_on_error``: ``run`` ends with ModelError; a resumed audit counts from 0 again.
    - ``stop``: any other StoppingRule, which ends the audit by itself. Default None: no such rule.
    - ``goal``: a StoppingRule that must be met together with half_width and at_most, such as
      ``UncertaintyBelow(0.5)``. Default None: no further goal.
    """

    budget: Annotated[int | None, Option("a limit: calls of the model, not retries", ge=1)] = None
    max_cost: Annotated[
        float | None, Option("a limit: money, at most, in the unit of the model's prices", gt=0)
    ] = None
    fail_on_error: Annotated[
        float | None,
        Option(
            "end with an error when more than this share of calls stays unanswered, from 20 calls "
            "on, and in the end; 1: never (default: 0.5; also when none of the first 10 was "
            "answered)",
            gt=0,
            le=1,
        ),
    ] = None
    stop: StoppingRule | None = None
    goal: StoppingRule | None = None

    def check(self) -> None:
        """Raise InputError for an option out of range."""
        check_options(Limits, vars(self))

    def rules(self, certified: StoppingRule | None, currency: str = USD) -> list[StoppingRule]:
        """Return the stopping rules; each of them ends the audit by itself.

        Args:
            certified: The rule of ``Certify``, which is met together with ``goal``.
            currency: Unit of ``max_cost``.

        Raises:
            InputError: If ``stop`` or ``goal`` is no StoppingRule.
        """
        for name, rule in (("stop", self.stop), ("goal", self.goal)):
            if rule is not None:
                check_rule(rule, name)
        goals = tuple(rule for rule in (certified, self.goal) if rule is not None)
        reached = goals if len(goals) <= 1 else (AllOf(goals),)
        others = [rule for rule in (self.stop,) if rule is not None]
        return [*reached, *others, *limits_of(self.budget, self.max_cost, currency)]


class Shorthands(TypedDict, total=False):
    """Every field of the three groups, as a keyword of an Audit."""

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
    strategy_options: Mapping[str, Any] | None
    exploration: float | None
    candidates: int
    batch: int
    seed: int | None
    repeat_probes: int
    form: Form
    history: History
    keep_masks: bool
    by_price: bool
    replay: Replay | None
    processes: int | None
    budget: int | None
    max_cost: float | None
    fail_on_error: float | None
    stop: StoppingRule | None
    goal: StoppingRule | None


def grouped(
    keywords: Mapping[str, Any],
    certify: Certify | None,
    sampling: Sampling | None,
    limits: Limits | None,
) -> tuple[Certify, Sampling, Limits]:
    """Return the three groups: those that are given, the others made from the keywords.

    Raises:
        InputError: For a keyword that no group has, or of a group that is also given.
    """
    known = [field.name for kind in (Certify, Sampling, Limits) for field in fields(kind)]
    for name in keywords:
        check_known("option", name, known, "audit")
    return (
        _group("certify", Certify, certify, keywords),
        _group("sampling", Sampling, sampling, keywords),
        _group("limits", Limits, limits, keywords),
    )


def _group(name: str, kind: type[Group], group: Group | None, keywords: Mapping[str, Any]) -> Group:
    """Return ``group`` if it is given, otherwise one made from its keywords."""
    options = {f.name: keywords[f.name] for f in fields(kind) if f.name in keywords}
    if group is None:
        return kind(**options)
    if not isinstance(group, kind):
        raise InputError(
            f"{name}: expected a {kind.__name__}, got {group!r} of type {type(group).__name__}"
        )
    if options:
        field = next(iter(options))
        raise InputError(
            f"audit: expected {field!r} in {name} = {kind.__name__}(...) or as a keyword, got "
            f"both; write {name} = {kind.__name__}(..., {field} = {options[field]!r})"
        )
    return group
