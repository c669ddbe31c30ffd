"""The options of an audit: what it certifies, how it samples, when it ends.

They come in three groups, and each of them as a keyword of its own (``Shorthands``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Annotated, Any, Literal, TypedDict, TypeVar

import numpy as np

from ..certify.certifier import Certifier
from ..certify.constants import constants_of
from ..certify.decisions import MAX_AIM, Comparison
from ..certify.rules import Rules, by_size, shares
from ..certify.sequences import BETS
from ..certify.strata import CallStrata
from ..certify.targets import Target, calls, fingerprint, largest, named_targets, target_of
from ..cohort import Cohort
from ..errors import InputError, check_known
from ..families import ASKED, DROPS, OfDrop, OfSlice
from ..journal.facts import CertificateFacts, SliceFacts
from ..journal.prior import PriorSource
from ..models.base import ProxySource
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
from ..strategies import Named, Strategy, default, named
from ..surrogates import Form, History
from ..surrogates import Named as NamedSurrogate
from ..types import CallMode, Guarantee, JsonObject
from ..utils.figures import USD
from ..utils.options import Option, check_options
from .selector import Replay

Filters = Mapping[str, Mapping[str, Sequence[object]]]
DECISION_WIDTH = 0.1
"""Where only a decision is asked for, bets aim at intervals no wider than this to either side."""
FINE_CELL = 0.0005
"""Between the means that bets are about where models are compared: a difference is two of them."""
DEFAULT_EXPLORATION = 0.2
"""The even share of the proposal where targets are certified."""
SET_ASIDE = 0.1
"""The share of what may go wrong that is kept for slices where they are looked for."""
DISCOVER_BY = ("metadata", "cells")
FIRST_LOOK = 60
"""The draw at which an audit first looks for slices: fewer answers seldom tell anything."""
DEFAULT_TARGETS = ("concepts", "relations")


@dataclass(frozen=True)
class Certify:
    """What an audit certifies, how surely, and by which predictions.

    With neither ``half_width`` nor ``at_most`` nothing is certified, and the rest has no effect.
    Each field has its description from SPEC.toml next to it. Python takes more:

    - ``half_width``: an audit that is gone on with may be given another, narrower or wider: see
      ``rules.Rules.aiming``.
    - ``targets``: names as in ``certify.named_targets``. Default: every concept's miss and
      false-alarm rate, and every relation's error; of a ``Pool`` the mean loss of all items.
    - ``weights``: Default None: by what is known of the targets' sizes (``rules.by_size``) where
      the strategy is ``certify``; even under others, which do not turn to the rarest targets by
      themselves.
    - ``surrogate``: ``surrogates.named(name, options)``, too (``docs/how-to/own-parts.md``).
    - ``proxies``: name -> answers of a cheaper model, as ``engine.proxies.Proxies`` takes them.
      They move effort, never what is certified.
    - ``self_taught``: ``models.SelfTaught``. "auto": where labels decide what is right (oracles
      correctness and top-class), some concept has 30 of them on each side, and rendering every
      follow-up would take no more than a minute or so.
    - ``prior_journal``: a question GP that learns its answers is a proxy (``engine.priors``).
    - ``cohort``: how each of the other models follows from the others is the prior of this model's
      losses (``engine.priors``).
    - ``discover``, ``discover_by``: see ``slices``. Each slice becomes a target with the draw after
      which it was discovered, certified to ``half_width``, too.
    - ``set_aside``: what a journal was begun with stays.
    - ``compare``: what decides which of two models is better, in place of ``half_width`` and
      ``at_most``; set by ``Versus``. Default None: nothing is compared.
    """

    half_width: Annotated[
        float | None,
        Option(
            "a goal: every target's rate is known to plus or minus this share, below 0.5; 0.05 is "
            "5 percentage points, of drops 5 points of the difference",
            gt=0,
            lt=1,
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
        wanted = (self.half_width, self.at_most, self.compare)
        return any(each is not None for each in wanted)

    @property
    def drops(self) -> bool:
        """True where it certifies drops: how much worse answers are about changed images."""
        return DROPS in self.targets

    @property
    def of_two(self) -> bool:
        """True where its targets are differences of two losses."""
        return self.drops or self.compare is not None

    @property
    def aim(self) -> float | None:
        """``half_width`` as that of a mean loss, which a drop is twice."""
        return self.half_width and self.half_width / (OfDrop.scale if self.drops else 1)

    def check(self, exploration: float) -> None:
        """Raises InputError for anything out of range."""
        self._check_drops()
        if self.half_width is not None:
            check_half_width(self.half_width)
        check_options(Certify, vars(self))
        if self.guarantee == "each" and self.weights:
            raise InputError(
                'weights: expected none where the guarantee is "each", as no target shares with '
                f"others there; got {dict(self.weights)}"
            )
        self._check_discovery()
        if self.certifies and exploration <= 0:
            raise InputError(
                f"exploration: expected a share above 0 where targets are certified, got "
                f"{exploration}"
            )

    def _check_drops(self) -> None:
        if not self.drops:
            return
        refused: dict[str, object] = {
            name: getattr(self, name)
            for name in ("at_most", "proxies", "prior_journal", "cohort", "discover", "where")
        }
        refused |= {"self_taught": self.self_taught is True}
        refused |= {"surrogate": not isinstance(self.surrogate, bool) and self.surrogate}
        for name in (name for name, value in refused.items() if value):
            remedy = {"at_most": "; a gate decides limits: 'drop:RELATION <= 5 %'"}
            raise InputError(
                f"targets {DROPS!r}: expected no {name}, which is about one rate and no difference"
                f"{remedy.get(name, '; leave it out')}"
            )

    def _check_discovery(self) -> None:
        if not (self.discover or self.set_aside):
            return
        if self.half_width is None or self.at_most is not None or self.compare is not None:
            asked = {"at_most": self.at_most, "a comparison": self.compare}
            got = " and ".join(n for n, v in asked.items() if v is not None) or "nothing certified"
            raise InputError(
                "discover: expected an audit to a half_width alone, as slices are certified to it; "
                f"got {got}"
            )

    def meaning(self) -> JsonObject:
        """What of it decides what draws are about, predictions aside: for the audit's key."""
        return {
            "certifies": self.certifies,
            "confidence": self.confidence,
            "targets": tuple(self.targets),
            "where": self.where,
            "unanswered": self.unanswered,
        }

    def goal(self) -> dict[str, float]:
        """Return how precisely it certifies, by option: an audit may be resumed with others."""
        compare = self.compare
        goal = {
            "half_width": self.half_width,
            "at_most": self.at_most,
            "margin": None if compare is None else compare.margin,
            "at_least": None if compare is None else compare.at_least,
        }
        # float: the key hashes their text, and a journal gives 0 back as 0.0
        return {name: float(value) for name, value in goal.items() if value is not None}

    def rule(self) -> StoppingRule | None:
        """Certified or decided, whichever is asked for; both where both are."""
        if self.compare is not None:
            rule = Compared(self.compare.margin, self.compare.at_least)
            return rule if self.compare.stops else None
        rules: list[Any] = []
        if self.half_width is not None:
            rules.append(Certified(self.half_width))
        if self.at_most is not None:
            rules.append(Decided(self.at_most))
        if not rules:
            return None
        return rules[0] if len(rules) == 1 else rules[0] & rules[1]

    def check_targets(self, space: QuestionSpace) -> None:
        """Raises InputError for targets and weights that do not fit: before nets are taught, images
        are made and models are asked."""
        targets = named_targets(space, self.targets, self.where)
        if self.weights:
            shares(self.weights, [target.id for target in targets])

    def certifier(
        self,
        space: QuestionSpace,
        answers: CallMode,
        begun: CertificateFacts | None = None,
        *,
        even: bool = False,
    ) -> Certifier | None:
        """The certifier of the targets in ``space``; None where nothing is certified.

        ``begun``: the certificate of the journal that is gone on with, which says what the audit
        bets by. ``even``: whether targets share alpha evenly, unless their weights are given.
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
        rules = Rules(
            aim,
            1 - self.confidence,
            self.guarantee,
            self._shares(space, targets, answers, begun, even),
            self.at_most if by_bets else None,
            by_bets and self.half_width is None,
            bets,
            () if begun is None else begun.aims,
            self.compare,
            self._set_aside(begun),
            len(slices),
            () if begun is None else begun.theta,
        )
        discovered = [target_of(OfSlice(s.name), s.masks) for s in slices]
        since = [0] * len(targets) + [s.since for s in slices]
        return Certifier(space, [*targets, *discovered], answers=answers, rules=rules, since=since)

    def _set_aside(self, begun: CertificateFacts | None) -> float:
        """The share of alpha that is kept for slices: it was fixed before the first bet."""
        if begun is None:
            return (self.set_aside or SET_ASIDE) if self.discover or self.set_aside else 0.0
        if self.discover and not begun.set_aside:
            raise InputError(
                "discover: expected an audit that set a share of its alpha aside for slices when "
                "it began, got one that did not, so none can be certified any more; 'avtt slices "
                "DIR' looks for some, and a new audit, begun with discover = N, certifies them"
            )
        return begun.set_aside

    def _shares(
        self,
        space: QuestionSpace,
        targets: Sequence[Target],
        answers: CallMode,
        begun: CertificateFacts | None,
        even: bool,
    ) -> tuple[float, ...] | None:
        """Every target's share of alpha: as given, as journaled, or by its size; None: even."""
        if self.guarantee == "each" or len(targets) == 1:
            return None
        if self.weights:
            return shares(self.weights, [target.id for target in targets])
        if begun is not None:
            return begun.weights
        if even:
            return None
        return by_size(
            np.array([calls(space, t, answers) for t in targets], float),
            np.array([largest(space, t, answers) for t in targets], float),
            space.size if answers == "one" else len(space.dataset) * len(space.variants),
        )

    def describe(self, certifier: Certifier | None) -> JsonObject | None:
        """For the journal: what is certified, to what, and how sure."""
        if certifier is None:
            return None
        weights, changes = certifier.rules.weights, certifier.rules.changes
        targets, aside = certifier.registered, certifier.rules.set_aside
        given = certifier.strata.given if isinstance(certifier.strata, CallStrata) else None
        return {
            "half_width": self.half_width,
            "at_most": self.at_most,
            "aim": certifier.half_width,
            "confidence": self.confidence,
            "guarantee": self.guarantee,
            "decided": "by bets" if certifier.decisions is not None else "by intervals",
            "weights": weights if weights is None else [*weights],
            "unanswered": self.unanswered,
            "targets": [t.name for t in targets],
            "ids": [t.id.as_dict() for t in targets],
            "sizes": [int(n) for n in certifier.sizes[: len(targets)]],
            "subsets": fingerprint(targets),
            # for the difference of two models the rate of one answer has no meaning
            "constants": [] if self.of_two else constants_of(certifier.space, targets),
            "bets": asdict(certifier.rules.bets),
            **({} if self.compare is None else {"versus": self.compare.describe()}),
            **({"set_aside": aside} if aside else {}),
            **({"aims": [list(change) for change in changes]} if changes else {}),
            **({"theta": [*certifier.rules.theta]} if certifier.rules.theta else {}),
            **({"strata": given.tolist()} if given is not None else {}),
        }

    def changes_width(self, begun: CertificateFacts | None) -> bool:
        """Whether an audit begun with one half-width is gone on with to another."""
        widths = (self.half_width, None if begun is None else begun.half_width)
        return None not in widths and widths[0] != widths[1]


Group = TypeVar("Group")


@dataclass(frozen=True)
class Sampling:
    """How an audit chooses what to ask, and what it keeps of the answers.

    Each field has its description from SPEC.toml next to it. Python takes more:

    - ``strategy``: also a Strategy; names are ``strategies.names()``.
    - ``strategy_options``: of a strategy that is given by its name, or of the default one.
    - ``exploration``: above 0 where targets are certified.
    - ``seed``: random choices follow from it and from what is audited (``engine.audit_key``).
      Default None: the journal's where one is continued, else fresh.
    - ``form``: see ``surrogates.AnswerGP``; ``history``: see ``surrogates.Predictability``.
    - ``keep_masks``: about 2 kB for a mask of 512 x 512 pixels, in addition to its scores.
    - ``by_price``: by the root of what calls are expected to cost, where the strategy is
      ``certify``: see ``engine.prices``.
    - ``replay``: an earlier audit whose draws come first; set by ``Versus``.
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
            "ask cheap calls more often than dear ones, where prices of tokens are given and "
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
        """What the strategy is called in the journal; None where it is left to the default."""
        if self.strategy is None or isinstance(self.strategy, str):
            return self.strategy
        return named(self.strategy).name

    def chosen(self, certifies: bool) -> Named:
        """The strategy and its name in the journal; raises InputError for an unknown name or
        option."""
        strategy = default(certifies) if self.strategy is None else self.strategy
        return named(strategy, self.strategy_options)

    def share(self, certifies: bool) -> float:
        """The even share of the proposal, as given or by default."""
        if self.exploration is not None:
            return self.exploration
        return DEFAULT_EXPLORATION if certifies else 0.0

    def check(self) -> None:
        """Raises InputError for anything out of range."""
        check_options(Sampling, vars(self))


@dataclass(frozen=True)
class Limits:
    """When an audit ends, apart from what it is to certify.

    Each field has its description from SPEC.toml next to it. Python takes more:

    - ``budget``: calls about source images and repeat probes included. Default None: as many as it
      takes.
    - ``max_cost``: calls on their way count at their worst price. Default None: no cap.
    - ``fail_on_error``: ``run`` ends with ModelError; resuming counts anew.
    - ``stop``: any other StoppingRule. Default None: none.
    - ``goal``: what else must be known before the audit has reached its end, such as
      ``UncertaintyBelow(0.5)``: needed with half_width and at_most, where those are given, while
      a limit ends it anyway. Default None: nothing else.
    """

    budget: Annotated[int | None, Option("a limit: calls of the model, at most, ever", ge=1)] = None
    max_cost: Annotated[
        float | None, Option("a limit: money, at most, in the unit of the model's prices", gt=0)
    ] = None
    fail_on_error: Annotated[
        float | None,
        Option(
            "end with an error when more than this share of calls stays unanswered, of 20 calls or "
            "more, or of all in the end; 1: never (default: 0.5, and when none of the first 10 "
            "calls was answered)",
            gt=0,
            le=1,
        ),
    ] = None
    stop: StoppingRule | None = None
    goal: StoppingRule | None = None

    def check(self) -> None:
        """Raises InputError for anything out of range."""
        check_options(Limits, vars(self))

    def rules(self, certified: StoppingRule | None, currency: str = USD) -> list[StoppingRule]:
        """The stopping rules, any of which ends the audit: all goals together, ``certified`` among
        them, and each limit, that on cost in ``currency``. Raises InputError for a limit that is
        none."""
        for name, given in (("stop", self.stop), ("goal", self.goal)):
            if given is not None:
                check_rule(given, name)
        goals = [rule for rule in (certified, self.goal) if rule is not None]
        first = AllOf(tuple(goals)) if len(goals) > 1 else next(iter(goals), None)
        limits = limits_of(self.budget, self.max_cost, currency)
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
    """The three groups: those given, the others made of the keywords.

    Raises InputError for a keyword of a group that is given too, and for one that no group has.
    """
    known = [field.name for kind in (Certify, Sampling, Limits) for field in fields(kind)]
    for name in keywords:
        check_known("option", name, known, "audit")
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
