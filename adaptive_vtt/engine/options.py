"""The options of an audit: what it certifies, how it samples, when it ends.

They come in three groups, and each of them as a keyword of its own (``Shorthands``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, TypedDict, TypeVar

import numpy as np

from ..certify.certifier import Certifier
from ..certify.comparison import MAX_AIM, Comparison
from ..certify.population import target_of
from ..certify.rules import Rules, by_size, shares
from ..certify.sequences import BETS
from ..certify.targets import Target, calls, fingerprint, largest, named_targets
from ..cohort import Cohort
from ..errors import InputError, unknown
from ..journal.facts import CertificateFacts, SliceFacts
from ..journal.prior import PriorSource
from ..models.base import ProxySource
from ..space import QuestionSpace
from ..stopping import (
    AllOf,
    Certified,
    Compared,
    Decided,
    StoppingRule,
    check_confidence,
    check_half_width,
    check_rule,
    limits_of,
)
from ..strategies import Named, Strategy, default, named
from ..surrogates import Named as NamedSurrogate
from ..types import CallMode, Guarantee, TargetId
from .budget import Lease
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
DEFAULT_TARGETS = ("concepts", "relations")


@dataclass(frozen=True)
class Certify:
    """What an audit certifies, how surely, and by which predictions.

    With neither ``half_width`` nor ``at_most`` nothing is certified, and the rest has no effect.

    - ``half_width``: in (0, 0.5). The audit ends when every interval reaches this far, or less, to
      either side. Default None: intervals may be as wide as they are. An audit that is gone on with
      may be given another, narrower or wider: see ``rules.Rules.aiming``.
    - ``at_most``: in (0, 1), a mean loss. The audit ends when every target is decided to lie above
      it, or not (``certify.decisions``). Default None: nothing is decided.
    - ``confidence``: in (0, 1), the probability that what is certified holds at all times.
      Default 0.95.
    - ``targets``: what is certified, names as in ``certify.named_targets``.
      Default: every concept's miss and false-alarm rate, and every relation's error; of a
      ``Pool`` the mean loss of all items.
    - ``where``: name of a target of one's own -> metadata column or field -> values.
      Default None: none.
    - ``unanswered``: "loss" counts an unanswered question as the oracle does, "both" as 0 in
      lower and 1 in upper bounds. Default "loss".
    - ``surrogate``: True predicts losses by the question GP, False by each target's mean alone:
      faster, wider intervals. A name is that of another surrogate of losses: one that a package
      declares, or ``file.py:name``; see CONTRIBUTING.md. Default True.
    - ``proxies``: name -> answers of a cheaper model, as ``engine.proxies.Proxies`` takes them.
      They move effort, never what is certified. Default None: none.
    - ``self_taught``: whether small nets, taught with the labelled source images, are a proxy of
      follow-ups (``models.SelfTaught``). Default "auto": where labels decide what is right
      (oracles correctness and top-class), some concept has 30 of them on each side, and rendering
      every follow-up would take no more than a minute or so.
    - ``prior_journal``: path of the journal of an audit of an earlier version of the model on
      the same space; a question GP that learns its answers is a proxy (``engine.priors``).
      Default None: none.
    - ``cohort``: what three or more other models lost on questions of this space (``Cohort``): how
      each follows from the others is the prior of this model's losses (``engine.priors``).
      Default None: nothing is known of others.
    - ``guarantee``: what holds with that probability: "all" intervals at once, or "each" by itself,
      which takes fewer questions and lets one of 20 be wrong at 0.95. Default "all".
    - ``weights``: name of a target -> its share of what may go wrong, relative to the others' 1;
      a target with a larger share takes fewer questions. Default None: by what is known of the
      targets' sizes (``rules.by_size``) where the strategy is ``certify``; even under others,
      which do not turn to the rarest targets by themselves.
    - ``compare``: what decides which of two models is better, in place of ``half_width`` and
      ``at_most``; set by ``Versus``. Default None: nothing is compared.
    - ``discover``: 0 or more. While the audit goes on, up to so many slices, groups of questions in
      which failures concentrate, are looked for (``slices``). Each becomes a target with the draw
      after which it was found, certified to ``half_width``, too. Default 0: none.
    - ``discover_by``: what proposes them, names of ``slices.PROPOSERS``.
      Default: metadata columns, and cells of relation, severity, concept and truth.
    - ``set_aside``: in (0, 1), the share of 1 - ``confidence`` that is kept for slices, whether any
      is found or not; all other intervals become that little wider. Default None: 0.1 where slices
      are looked for, else 0. What a journal was begun with stays.
    """

    half_width: float | None = None
    at_most: float | None = None
    confidence: float = 0.95
    targets: Sequence[str] = DEFAULT_TARGETS
    where: Filters | None = None
    unanswered: Literal["loss", "both"] = "loss"
    surrogate: "bool | str | NamedSurrogate" = True
    proxies: Mapping[str, ProxySource] | None = None
    self_taught: bool | Literal["auto"] = "auto"
    prior_journal: PriorSource | None = None
    cohort: Cohort | None = None
    guarantee: Guarantee = "all"
    weights: Mapping[str, float] | None = None
    compare: Comparison | None = None
    discover: int = 0
    discover_by: Sequence[str] = DISCOVER_BY
    set_aside: float | None = None

    @property
    def certifies(self) -> bool:
        wanted = (self.half_width, self.at_most, self.compare)
        return any(each is not None for each in wanted)

    def check(self, exploration: float) -> None:
        """Raises InputError for anything out of range."""
        if self.half_width is not None:
            check_half_width(self.half_width)
        if self.at_most is not None and not 0 < self.at_most < 1:
            raise InputError(f"at_most: expected a number between 0 and 1, got {self.at_most}")
        check_confidence(self.confidence)
        if self.guarantee not in ("all", "each"):
            raise unknown("guarantee", str(self.guarantee), ("all", "each"))
        if self.guarantee == "each" and self.weights:
            raise InputError(
                'weights: expected none where the guarantee is "each", as no target shares with '
                f"others there; got {dict(self.weights)}"
            )
        if self.unanswered not in ("loss", "both"):
            raise unknown("policy", str(self.unanswered), ("loss", "both"), "unanswered")
        if self.self_taught not in (True, False, "auto"):
            raise unknown("choice", str(self.self_taught), ("true", "false", "auto"), "self_taught")
        self._check_discovery()
        if self.certifies and exploration <= 0:
            raise InputError(
                f"exploration: expected a share above 0 where targets are certified, got "
                f"{exploration}"
            )

    def _check_discovery(self) -> None:
        if self.discover < 0:
            raise InputError(f"discover: expected 0 or more slices, got {self.discover}")
        if self.set_aside is not None and not 0 < self.set_aside < 1:
            raise InputError(f"set_aside: expected a share between 0 and 1, got {self.set_aside}")
        if not (self.discover or self.set_aside):
            return
        if self.half_width is None or self.at_most is not None or self.compare is not None:
            asked = {"at_most": self.at_most, "a comparison": self.compare}
            got = " and ".join(n for n, v in asked.items() if v is not None) or "nothing certified"
            raise InputError(
                "discover: expected an audit to a half_width alone, as slices are certified to it; "
                f"got {got}"
            )

    def meaning(self) -> dict[str, Any]:
        """What of it decides what draws are about, predictions aside: for the audit's key."""
        return {
            "certifies": self.certifies,
            "confidence": self.confidence,
            "targets": tuple(self.targets),
            "where": self.where,
            "unanswered": self.unanswered,
        }

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

    def certifier(
        self,
        space: QuestionSpace,
        answers: CallMode,
        begun: CertificateFacts | None = None,
        *,
        even: bool = False,
    ) -> Certifier | None:
        """The certifier of the targets in ``space``; None where nothing is certified.

        ``begun``: the certificate of the journal that is gone on with, which tells what the audit
        bets by. ``even``: whether targets share alpha evenly, unless their weights are given.
        """
        if not self.certifies:
            return None
        targets = named_targets(space, self.targets, self.where)
        by_bets = self.at_most is not None and (begun is None or begun.decides)
        slices: Sequence[SliceFacts] = ()
        aim = self.half_width or (DECISION_WIDTH if self.compare is None else MAX_AIM)
        bets = BETS if self.compare is None else replace(BETS, cell=FINE_CELL)
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
        )
        found = [target_of(TargetId("slice", filter=s.name), s.masks) for s in slices]
        since = [0] * len(targets) + [s.since for s in slices]
        return Certifier(space, [*targets, *found], answers=answers, rules=rules, since=since)

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
            return shares(self.weights, [target.name for target in targets])
        if begun is not None:
            return begun.weights
        if even:
            return None
        return by_size(
            np.array([calls(space, t, answers) for t in targets], float),
            np.array([largest(space, t, answers) for t in targets], float),
            space.size if answers == "one" else len(space.dataset) * len(space.variants),
        )

    def describe(self, certifier: Certifier | None) -> dict[str, Any] | None:
        """For the journal: what is certified, to what, and how sure."""
        if certifier is None:
            return None
        weights, changes = certifier.rules.weights, certifier.rules.changes
        targets, aside = certifier.registered, certifier.rules.set_aside
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
            "bets": asdict(certifier.rules.bets),
            **({} if self.compare is None else {"versus": self.compare.describe()}),
            **({"set_aside": aside} if aside else {}),
            **({"aims": [list(change) for change in changes]} if changes else {}),
        }

    def changes_width(self, begun: CertificateFacts | None) -> bool:
        """Whether an audit begun with one half-width is gone on with to another."""
        widths = (self.half_width, None if begun is None else begun.half_width)
        return None not in widths and widths[0] != widths[1]


Group = TypeVar("Group")


@dataclass(frozen=True)
class Sampling:
    """How an audit chooses what to ask, and what it keeps of the answers.

    - ``strategy``: a name (``strategies.names()``), or a Strategy. Default None: "certify" where
      targets are certified, else the paper's "uncertainty+unpredictability".
    - ``exploration``: in [0, 1], the share of the proposal that is even; above 0 where targets are
      certified. Default None: 0.2 there, else 0.
    - ``candidates``: at least 1, how many unseen questions are looked at per draw.
      Default 4096.
    - ``batch``: at least 1, calls that ``run`` asks at a time, with beliefs frozen. Default 1.
    - ``seed``: a whole number. Random choices follow from it and from what is audited
      (``engine.audit_key``). Default None: the journal's where one is continued, else fresh.
    - ``repeat_probes``: 0 or more, answered questions asked again, to notice a model that changes.
      Default 0.
    - ``form``: whether uncertainty integrates standard deviations ("std") or variances
      ("variance"; see ``surrogates.AnswerGP``). Default "std".
    - ``history``: whether predictability conditions on true answers ("truth") or on the model's
      ("answer"; see ``surrogates.Predictability``). Default "truth".
    - ``keep_masks``: whether the journal keeps the masks that are answered, beside their scores, so
      that any oracle of masks can judge them again (``rejudge``): about 2 kB for one of 512 x 512
      pixels. Default False.
    - ``by_price``: whether cheap calls are asked more often, by the root of what they are expected
      to cost, where the strategy is ``certify`` and the model knows what tokens cost: see
      ``engine.prices``. Default True.
    - ``replay``: an earlier audit whose draws come first; set by ``Versus`` and for readers.
      Default None: all draws are its own.
    """

    strategy: str | Strategy | Named | None = None
    exploration: float | None = None
    candidates: int = 4096
    batch: int = 1
    seed: int | None = None
    repeat_probes: int = 0
    form: Literal["std", "variance"] = "std"
    history: Literal["truth", "answer"] = "truth"
    keep_masks: bool = False
    by_price: bool = True
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

    - ``budget``: above 0, at most so many calls, ever, those about source images and repeat probes
      included. Default None: as many as it takes.
    - ``max_cost``: above 0, at most so much money, in the unit of the model's prices; calls on
      their way count at their worst price. Default None: no cap.
    - ``fail_on_error``: in (0, 1]. ``run`` ends with ModelError when more than this share of the
      calls it made, of 20 or more, stays unanswered; resuming counts anew. 1: never. Default
      None: when none of 20 was answered.
    - ``stop``: any StoppingRule beside these. Default None: none.
    - ``goal``: what else must be known before the audit has reached its end, such as
      ``UncertaintyBelow(0.5)``: needed beside half_width and at_most, where those are given, while
      a limit ends it anyway. Default None: nothing else.
    - ``lease``: what it may spend for now, in a fleet of audits that share one purse; see
      ``engine.budget``. Default None: nothing is shared.
    """

    budget: int | None = None
    max_cost: float | None = None
    fail_on_error: float | None = None
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
