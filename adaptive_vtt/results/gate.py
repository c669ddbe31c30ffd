"""Gates: rules about certified rates that decide from a journal whether a model may pass.

Nothing is asked, and a gate may be tried repeatedly, as its rules are about intervals that hold
at every moment and together. A rule passes once its target's whole interval fulfils it, fails once
no part does, and is open until then. It must name a target that was registered when the audit
began: the guarantee of the intervals does not cover one chosen after seeing the answers.
"""

import re
import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Literal
from xml.sax.saxutils import escape

from ..certify.status import TargetStatus
from ..certify.targets import Target, named_targets
from ..certify.verify import verify
from ..errors import InputError, unexpected, unknown
from ..families import FAMILIES, Family, TargetId, family_of
from ..journal import Journal, check_head
from ..journal.facts import CertificateFacts, Constant
from ..space import QuestionSpace
from ..stopping import Combinable
from ..stopping import State as AuditState
from ..utils.figures import CHANGED_ORIGINAL, estimate_percent, is_exact, percent, span
from ..utils.web import text_of
from .cautions import cautions, no_better, silence
from .difference import brief, extent, names_of, point_span, points, wrong
from .outcomes import is_mute
from .run import Run

State = Literal["pass", "fail", "open"]
VERSUS = "versus:"
"""Rules about how much more often the new model is wrong than the old one, R_B - R_A."""
SHAPE = re.compile(
    r"\s*(?P<about>.+?)(?<![=<>])\s*(?P<sign><=|>=|<|>)\s*"
    r"(?P<limit>[-+]?(?:\d+\.?\d*|\.\d+)(?:e-?\d+)?)(?P<percent>\s*%)?\s*"
)
DROP = re.compile(r"drops?\b")
"""Beginning of rules about drops, whose limits may be below 0 as those about two models."""
ROUNDING = 1e-9
MAX = 8
"""Most targets that an error names."""
EXIT_CODES = {"pass": 0, "fail": 1, "open": 4}
BELOW = {"below": True, "holds": True, "above": False, "fails": False}
"""Decision -> whether a rate is below its limit. Claims are about R_A - R_B, rules about R_B - R_A,
so a claim that holds is a rule that is fulfilled."""


@dataclass(frozen=True)
class Rule:
    """A rule: ``about`` ``sign`` ``limit``.

    Attributes:
        text: The rule as it was written.
        about: Name of a target.
        sign: How its rate is compared with the limit.
        limit: Limit of the rate in [0, 1], or of the difference in [-1, 1].
        versus: True if the rule is about the new model's rate less the old one's.
    """

    text: str
    about: str
    sign: Literal["<=", "<", ">=", ">"]
    limit: float
    versus: bool = False

    @classmethod
    def parse(cls, text: str) -> "Rule":
        """Read a rule such as "relation:fog <= 0.2", "overall < 10 %" or "versus:overall <= +0.01".

        Raises InputError for anything else, and for a limit that no rate can have.
        """
        match = SHAPE.fullmatch(text)
        if match is None:
            raise InputError(
                f"rule {text!r}: expected TARGET, one of <= < >= >, and a number, such as "
                "'relation:fog <= 0.2' or 'versus:overall <= +0.01'"
            )
        limit = float(match["limit"]) / (100 if match["percent"] else 1)
        versus = match["about"].startswith(VERSUS)
        least = -1 if versus or DROP.match(match["about"]) else 0
        if not least <= limit <= 1:
            remedy = f"for percent write '{limit:g} %'" if 1 < limit <= 100 else ""
            remedy = "" if match["percent"] else remedy
            where, wanted = f"rule {text!r}", f"a limit from {least} to 1"
            raise unexpected(where, wanted, f"{limit:g}", remedy)
        sign: Any = match["sign"]
        return cls(text.strip(), match["about"].removeprefix(VERSUS), sign, limit, versus)

    def state(self, lower: float, upper: float) -> State:
        """Return whether an interval of the rate, or the difference, decides the rule."""
        limit = self.limit
        if self.sign[0] == ">":
            lower, upper, limit = -upper, -lower, -limit
        edge = limit - ROUNDING if len(self.sign) == 1 else limit + ROUNDING
        return "pass" if upper <= edge else "fail" if lower > edge else "open"

    def decided_by(self, limit: float | None) -> bool:
        """Return whether bets about ``limit`` decide this very rule.

        They are right with the probability that the intervals hold with, but not both at once: a
        gate uses the one or the other for all its rules.
        """
        return self.limit == limit and self.sign in ("<=", ">")

    def check_kind(self, versus: bool) -> None:
        """Raise InputError for a rule about two models where one is audited, or the reverse."""
        where = f"rule {self.text!r}"
        if self.versus and not versus:
            remedy = "without 'versus:' a rule is about its rate"
            wanted = "a comparison of two models ('avtt versus')"
            raise unexpected(where, wanted, "an audit of one", remedy)
        if versus and not self.versus:
            raise InputError(
                f"{where}: expected a rule about the difference of two models, such as "
                f"'{VERSUS}{self.about} {self.sign} {self.limit:g}', as two were compared"
            )


@dataclass(frozen=True)
class Ruling:
    """A rule's state for one of the targets it names.

    Attributes:
        rule: The rule.
        target: Name of the target.
        estimate: Estimate of its rate, or of the difference.
        lower: Lower end of the interval.
        upper: Upper end of the interval.
        state: Whether the rule passes, fails or is open.
        note: Reason why a rule is open that its interval would decide, else "".
        model: Name of the new model in a rule about two models, else "".
        constant: The best constant answer.
        signed: True for a difference, which may be negative.
    """

    rule: Rule
    target: str
    estimate: float
    lower: float
    upper: float
    state: State
    note: str = ""
    model: str = ""
    constant: Constant | None = None
    signed: bool = False

    @classmethod
    def of(cls, rule: Rule, status: TargetStatus, by_bets: bool) -> "Ruling":
        """Decide a rule for a target.

        Args:
            rule: The rule.
            status: The target.
            by_bets: Whether the audit decided exactly this rule by bets, which decide earlier
                than the interval.
        """
        estimate, lower, upper = status.estimate, status.lower, status.upper
        if rule.versus and (delta := status.difference):
            # how much more often the new model is wrong: R_B - R_A
            estimate, lower, upper = -delta.estimate, -delta.upper, -delta.lower
        state, note = rule.state(lower, upper), ""
        if by_bets:
            below = BELOW.get(str(status.decision if rule.versus else status.decided))
            state = "open" if below is None else "pass" if below == (rule.sign == "<=") else "fail"
        if state != "open" and status.invalidated:
            state, note = "open", "the model's answers contradict each other: nothing is certified"
        more: Any = {"constant": status.baseline, "signed": status.id.signed}
        return cls(rule, status.name, estimate, lower, upper, state, note, **more)

    @property
    def no_better(self) -> bool:
        """True if the model is certainly wrong as often as a constant answer, or more."""
        return self.constant is not None and no_better(self.lower, self.constant.rate)

    @property
    def estimated(self) -> str:
        """The estimate in percent, or the difference in words."""
        if self.rule.versus:
            return wrong(self.model, self.estimate)
        if self.signed:
            return f"{points(self.estimate)} points, {CHANGED_ORIGINAL}"
        return estimate_percent(self.estimate, self.lower, self.upper)

    @property
    def span(self) -> str:
        """The interval in percent, points or words, rounded outward, or "exact"."""
        in_points = self.signed or is_exact(self.lower, self.upper)
        words = extent if self.rule.versus else point_span if in_points else span
        return words(self.lower, self.upper)

    def __str__(self) -> str:
        target = f"difference in {self.target}:" if self.rule.versus else self.target
        text = f"{self.state}: {self.rule.text}: {target} {self.estimated} ({self.span})"
        if self.constant is not None:
            text += f"; always {self.constant.answer!r}: {percent(self.constant.rate)}"
        return f"{text}; {self.note}" if self.note else text


@dataclass(frozen=True)
class Gate:
    """The rulings of a gate, the guarantee of their intervals, and the warnings of the audit."""

    rulings: tuple[Ruling, ...]
    promise: str
    warnings: tuple[str, ...] = ()

    @property
    def state(self) -> State:
        """The state of the gate: fail if a rule fails, else open if one is open, else pass."""
        return overall([ruling.state for ruling in self.rulings])

    @property
    def verdict(self) -> str:
        """The state in words, with a caution if a constant answer would pass as well."""
        blind = self.state == "pass" and any(ruling.no_better for ruling in self.rulings)
        return f"{self.state}, but no better than a constant answer" if blind else self.state

    @property
    def exit_code(self) -> int:
        """0 pass, 1 fail, 4 open."""
        return EXIT_CODES[self.state]

    def junit(self) -> str:
        """Return JUnit XML with a test case per rule and target; open ones are skipped."""
        return text_of(__package__, "gate.xml", xml=_xml, **vars(self))

    def markdown(self) -> str:
        """Return a summary for a pull request."""
        return text_of(__package__, "gate.md", cell=_cell, verdict=self.verdict, **vars(self))


def overall(states: Collection[State]) -> State:
    """Return "fail" if one fails, else "open" if one is open."""
    return "fail" if "fail" in states else "open" if "open" in states else "pass"


def gate(source: Journal | Run, rules: Sequence[str | Rule], *, head: str | None = None) -> Gate:
    """Decide rules from the rows of a run, ended or not; the rows are verified first.

    Args:
        source: The run, or its journal.
        rules: As text or parsed, at least one.
        head: A head of the journal that was noted elsewhere, which it must still have.

    Returns:
        A ruling for every rule and target that it names.

    Raises:
        InputError: A rule cannot be read or names a target that is not registered. The audit
            certifies nothing. A rule about one model is applied to a comparison, or the reverse.
        JournalError: The journal was altered, has intervals that its rows do not support, or has
            another head.
    """
    parsed = [rule if isinstance(rule, Rule) else Rule.parse(rule) for rule in rules]
    if not parsed:
        raise unexpected("gate", "at least one rule, such as --rule 'overall <= 0.1'", "none")
    run = Run.of(source)
    certificate = run.certificate
    if certificate is None:
        wanted = "an audit that certifies (half_width or at_most)"
        raise unexpected("gate", wanted, "one that explores")
    # neither rows nor intervals count for anything that the chain does not support
    verify(run.journal)
    if head is not None:
        check_head(run.journal, head, "the head given")
    model, by_bets = brief(names_of(run.facts)[1]), all(_by_bets(r, certificate) for r in parsed)
    rulings = []
    for rule in parsed:
        # where one of two models was asked, its own rates are known, too
        rule.check_kind(certificate.paired or (rule.versus and certificate.versus is not None))
        for k in chosen(rule, certificate.ids):
            ruling = Ruling.of(rule, run.statuses[k], by_bets)
            rulings.append(replace(ruling, model=model) if rule.versus else ruling)
    if is_mute(run.calls):
        rulings = [replace(r, state="open", note=silence(run.facts, run.calls)) for r in rulings]
    promise, count = certificate.promise, len({ruling.target for ruling in rulings})
    if certificate.guarantee != "all" and count > 1:
        wrong = min(1.0, count * (1 - certificate.confidence))
        promise += (
            f"; of the {count} targets that these rules are about, one or more "
            f"may be ruled wrongly with probability up to {wrong:.3g}"
        )
    return Gate(tuple(rulings), promise, tuple(cautions(run)))


def _by_bets(rule: Rule, certificate: CertificateFacts) -> bool:
    """Return whether the audit decided exactly this rule by bets.

    A comparison's claim is about R_A - R_B, the rule's difference with the other sign.
    """
    if rule.versus and certificate.versus is not None:
        claim = certificate.versus.at_least
        return claim is not None and rule.decided_by(-claim)
    return certificate.decides and rule.decided_by(certificate.at_most)


def chosen(rule: Rule, ids: Sequence[TargetId], *, begun: bool = True) -> list[int]:
    """Return the numbers of the targets that a rule names.

    Args:
        rule: The rule.
        ids: All targets.
        begun: Whether answers may have been seen, for the message.

    Raises:
        InputError: The rule names no target.
    """
    for fits in (Family.is_named, Family.resembles):
        if places := [k for k, target in enumerate(ids) if fits(target, rule.about)]:
            return places
    about, versus, handles = rule.about, VERSUS * rule.versus, [target.handle for target in ids]
    listed = ", ".join([versus + handle for handle in handles[:MAX]] + ["..."] * (len(ids) > MAX))
    near = [handle for handle in handles if handle.partition(":")[2] == about]
    near = near or get_close_matches(about, handles, n=1, cutoff=0.7)
    wanted = "a target that was registered when the audit began" if begun else "a registered target"
    remedy = f"--targets {shlex.quote(family(about))} adds it"
    if near:
        remedy = f"did you mean {versus}{near[0]}?"
    elif family_of(family(about)) is None:
        remedy = "'avtt gate DIR --list' lists all of a run's"
    elif begun:
        remedy = (
            "one chosen after seeing the answers would not be covered by the guarantee: begin a "
            f"new audit with --targets {shlex.quote(family(about))} and another --out, which may "
            "learn from this one (prior_journal); or, where alpha was set aside, let draws to come "
            f"certify it: avtt resume DIR --posthoc {shlex.quote(about)}"
        )
    raise unexpected(f"rule {rule.text!r}", wanted, f"{about!r}; there are {listed}", remedy)


def family(about: str) -> str:
    """Return the --targets name of the targets that a rule may be about: "relations" of
    "relation:fog"."""
    kind, _, names = about.partition(":")
    asked = f"{kind}:{re.split('[:=]', names)[0]}"
    if names and family_of(asked) is None:
        asked = next((f.asked[0] for f in FAMILIES if f.kind == kind and f.asked), about)
    return asked if names else about


def asked_later(space: QuestionSpace, names: Sequence[str]) -> dict[str, Target]:
    """Return the targets that names stand for, by handle, for ``Audit.certify_also``.

    Raises:
        InputError: A name stands for no target.
    """
    wanted: dict[str, Target] = {}
    for name in names:
        targets = {t.id.handle: t for t in named_targets(space, [family(name)])}
        matches = {handle: t for handle, t in targets.items() if t.id.is_named(name)}
        if not matches:
            raise unknown("target", name, targets, "posthoc")
        wanted |= matches
    return wanted


@dataclass(frozen=True)
class Gated(Combinable):
    """Stopping rule that ends an audit once every rule is decided, however wide intervals are.

    Attributes:
        rules: The rules of the gate.
        places: For each rule, the numbers of the targets that it names.
    """

    by = "gate"

    rules: tuple[Rule, ...]
    places: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, rules: Sequence[str], ids: Sequence[TargetId], *, versus: bool = False) -> "Gated":
        """Return the stopping rule of a gate.

        Args:
            rules: The rules as text.
            ids: All targets.
            versus: Whether two models are compared.

        Raises:
            InputError: A rule cannot be read, names no target, or is about one model when two are
                compared, or the reverse.
        """
        parsed = [Rule.parse(rule) for rule in rules]
        for rule in parsed:
            rule.check_kind(versus)
        return cls(tuple(parsed), tuple(tuple(chosen(r, ids, begun=False)) for r in parsed))

    def only_claims(self, delta: float) -> bool:
        """Return whether every rule is the claim of a comparison, that R_A - R_B >= ``delta``.

        Rules have the other sign, R_B - R_A <= -delta. Bets about the claim decide such rules,
        and no intervals are needed.
        """
        return all(rule.decided_by(-delta) for rule in self.rules)

    def reached(self, state: AuditState) -> str | None:
        """Return how all rules are decided, as the reason to stop; None while one is open."""
        by_bets = state.limit is not None and all(r.decided_by(state.limit) for r in self.rules)
        states: list[State] = []
        for rule, places in zip(self.rules, self.places, strict=True):
            targets = [state.targets[k] for k in places if state.targets]
            states.append(overall([Ruling.of(rule, t, by_bets).state for t in targets]))
        if "open" in states or not state.targets:
            return None
        count = [f"{states.count(how)} {how}" for how in ("pass", "fail") if how in states]
        return f"every rule of the gate is decided: {', '.join(count)}"

    def __str__(self) -> str:
        return "a gate that is decided (" + "; ".join(rule.text for rule in self.rules) + ")"


def _cell(text: str) -> str:
    """Return text for a cell of a Markdown table, where it is neither HTML nor markup."""
    words = escape(" ".join(text.split()))
    return re.sub(r"([\\|`*\[])", r"\\\1", words)


def _xml(text: object) -> str:
    """Return text escaped, without the characters that XML 1.0 cannot hold."""
    held = re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "?", str(text))
    return escape(held, {'"': "&quot;"})
