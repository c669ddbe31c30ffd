"""May a model pass? Rules about certified rates, decided from a journal alone.

Nothing is asked, so a gate may be tried again and again: its rules are about intervals that hold
at every moment, all together. A rule passes once its target's whole interval fulfils it, fails once
no part does, and is open until then. It must name a target that was registered when the audit
began: one chosen after seeing the answers would not be covered by what the intervals promise.
"""

import re
import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from html import escape
from typing import Any, Literal
from xml.etree import ElementTree

from ..certify.status import TargetStatus
from ..certify.targets import Target, named_targets
from ..certify.verify import verify
from ..errors import InputError, unknown
from ..families import FAMILIES, TargetId, family_of
from ..journal import Journal, check_head
from ..journal.facts import CertificateFacts, Constant
from ..space import QuestionSpace
from ..stopping import Combinable
from ..stopping import State as AuditState
from ..utils.figures import estimate_percent, is_exact, outward, percent
from .cautions import cautions, no_better, silence
from .difference import brief, names_of, point_span, points, told
from .outcomes import is_mute
from .run import Run

State = Literal["pass", "fail", "open"]
Sign = Literal["<=", "<", ">=", ">"]
DROP = re.compile(r"drops?\b")
"""How rules about drops begin, which may be below 0 as those about two models."""
VERSUS = "versus:"
"""Rules about how much more often the new model errs than the old one, R_B - R_A."""
SHAPE = re.compile(
    r"\s*(?P<about>.+?)(?<![=<>])\s*(?P<sign><=|>=|<|>)\s*"
    r"(?P<limit>[-+]?(?:\d+\.?\d*|\.\d+)(?:e-?\d+)?)(?P<percent>\s*%)?\s*"
)
ROUNDING = 1e-9
MAX = 8
"""Targets that an error names."""
EXIT_CODES = {"pass": 0, "fail": 1, "open": 4}
JUNIT: dict[str, State] = {"failures": "fail", "skipped": "open"}
"""Counts of a test suite, by the state of a rule."""
BELOW = {"below": True, "holds": True, "above": False, "fails": False}
"""Whether bets found a rate below its limit, by the names of decisions: a claim is about R_A - R_B,
the figure of a gate with the other sign."""


@dataclass(frozen=True)
class Rule:
    """``about`` SIGN ``limit``: a target's rate, or with ``versus`` a difference of two models'
    rates, the new one's less the old one's. ``text``: as it was written."""

    text: str
    about: str
    sign: Sign
    limit: float
    versus: bool = False

    @classmethod
    def parse(cls, text: str) -> "Rule":
        """Such as "relation:fog <= 0.2", "overall < 10 %" or "versus:overall <= +0.01".

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
            meant = not match["percent"] and 1 < limit <= 100
            raise InputError(
                f"rule {text!r}: expected a limit from {least} to 1, got {limit:g}"
                + (f"; for percent write '{limit:g} %'" if meant else "")
            )
        sign: Any = match["sign"]
        return cls(text.strip(), match["about"].removeprefix(VERSUS), sign, limit, versus)

    def state(self, lower: float, upper: float) -> State:
        """Of an interval that is known to hold the rate, or the difference."""
        limit = self.limit
        if self.sign[0] == ">":
            lower, upper, limit = -upper, -lower, -limit
        edge = limit - ROUNDING if len(self.sign) == 1 else limit + ROUNDING
        if upper <= edge:
            return "pass"
        return "fail" if lower > edge else "open"


@dataclass(frozen=True)
class Ruling:
    """What a rule comes to for one of the targets it names; ``note`` says why it is open although
    its interval would decide it; ``model``: in rules about two what the new one is called;
    ``constant``: the best answer that never depends on the image. ``signed``: True of a difference.
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

    @property
    def no_better(self) -> bool:
        """Whether the model certainly errs as often as a constant answer, or more."""
        return self.constant is not None and no_better(self.lower, self.constant.rate)

    @property
    def told(self) -> str:
        """The estimate: in percent, or that the new model errs so many points more or less."""
        if self.rule.versus:
            return told(self.model, self.estimate, self.lower, self.upper).rpartition(" (")[0]
        if self.signed:
            return f"{points(self.estimate)} points"
        return estimate_percent(self.estimate, self.lower, self.upper)

    @property
    def span(self) -> str:
        """What is certified in percent, or in points, rounded outward; or that it is exact."""
        if self.rule.versus or self.signed or is_exact(self.lower, self.upper):
            return point_span(self.lower, self.upper)
        low, high = outward(self.lower, self.upper)
        return f"{percent(low)} to {percent(high)}"

    def __str__(self) -> str:
        target = f"difference in {self.target}:" if self.rule.versus else self.target
        said = f"{self.state}: {self.rule.text}: {target} {self.told} ({self.span})"
        if self.constant is not None:
            said += f"; always {self.constant.answer!r}: {percent(self.constant.rate)}"
        return f"{said}; {self.note}" if self.note else said


@dataclass(frozen=True)
class Gate:
    """All ``rulings``, the ``promise`` that they rest on, and the ``warnings`` of the audit."""

    rulings: tuple[Ruling, ...]
    promise: str
    where: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def state(self) -> State:
        """A rule that fails, fails the gate; else one that is open leaves it open."""
        return overall([ruling.state for ruling in self.rulings])

    @property
    def verdict(self) -> str:
        """The state in words, with what makes a gate that passes worth little."""
        blind = self.state == "pass" and any(ruling.no_better for ruling in self.rulings)
        return f"{self.state}, but no better than a constant answer" if blind else self.state

    @property
    def exit_code(self) -> int:
        """0 pass, 1 fail, 4 open."""
        return EXIT_CODES[self.state]

    def junit(self) -> str:
        """JUnit XML, a test case per rule and target: open ones are skipped, with the reason."""
        states = [ruling.state for ruling in self.rulings]
        suite = ElementTree.Element("testsuite", name="avtt gate", tests=str(len(states)))
        for name, state in JUNIT.items():
            suite.set(name, str(states.count(state)))
        for ruling in self.rulings:
            about = {"classname": f"gate.{_xml(ruling.target)}", "name": _xml(ruling.rule.text)}
            case, words = ElementTree.SubElement(suite, "testcase", about), _xml(str(ruling))
            if ruling.state != "pass":
                tag = "failure" if ruling.state == "fail" else "skipped"
                ElementTree.SubElement(case, tag, message=words)
            ElementTree.SubElement(case, "system-out").text = words
        if self.warnings:
            words = "\n".join(f"warning: {warning}" for warning in self.warnings)
            ElementTree.SubElement(suite, "system-err").text = _xml(words)
        ElementTree.indent(suite)
        return ElementTree.tostring(suite, "unicode", xml_declaration=True) + "\n"

    def markdown(self) -> str:
        """A summary for a pull request."""
        rows = [
            f"| {r.state} | {_code(r.rule.text)} | {_cell(r.target)} | {_cell(r.told)} | "
            f"{r.span} | {_cell(r.note)} |"
            for r in self.rulings
        ]
        head = "| | rule | target | estimate | certified | |\n|---|---|---|---:|---|---|"
        warnings = [f"- **Warning:** {_cell(warning)}." for warning in self.warnings]
        end = [f"{self.promise}.", "", *warnings, *[""] * bool(warnings)]
        return "\n".join([f"## Gate: {self.verdict}", "", head, *rows, "", *end])


def overall(states: Collection[State]) -> State:
    """One that fails, fails all; else one that is open leaves all open."""
    return "fail" if "fail" in states else "open" if "open" in states else "pass"


def gate(
    source: Journal | Run, rules: Sequence[str | Rule], where: str = "", *, head: str | None = None
) -> Gate:
    """What the rules come to, from the rows of a run, ended or not; they are verified first.

    ``head``: the journal's head as it was kept elsewhere, which the journal must still have.

    Raises InputError for a rule that cannot be read, a target that is not registered, an audit that
    certifies nothing, and one of a single model where two are to be compared; JournalError where
    the journal is not as it was written, states what its rows do not bear, or has another head.
    """
    parsed = [rule if isinstance(rule, Rule) else Rule.parse(rule) for rule in rules]
    if not parsed:
        raise InputError(
            "gate: expected at least one rule, such as --rule 'overall <= 0.1', got none"
        )
    run = Run.of(source)
    certificate = run.certificate
    if certificate is None:
        raise InputError(
            "gate: expected an audit that certifies (half_width or at_most), got one that explores"
        )
    # neither rows nor intervals count for anything that the chain does not bear
    verify(run.journal)
    if head is not None:
        check_head(run.journal, head, "the head given")
    model, by_bets = brief(names_of(run.facts)[1]), all(_by_bets(r, certificate) for r in parsed)
    rulings = []
    for rule in parsed:
        one_model, pairs = certificate.versus is None, certificate.paired
        if (rule.versus and one_model) or (not rule.versus and pairs):
            raise _other_kind(rule)
        for k in chosen(rule, certificate.ids):
            ruling = _ruling(rule, run.statuses[k], by_bets)
            rulings.append(replace(ruling, model=model) if rule.versus else ruling)
    if is_mute(run.calls):
        rulings = [replace(r, state="open", note=silence(run.calls)) for r in rulings]
    return Gate(tuple(rulings), _promise(certificate, rulings), where, tuple(cautions(run)))


def _decides(rule: Rule, limit: float | None) -> bool:
    """Whether bets about ``limit`` decide this very rule.

    They are right with the probability that the intervals hold with, but not both at once: a gate
    goes by the one or by the other for all its rules.
    """
    return rule.limit == limit and rule.sign in ("<=", ">")


def _by_bets(rule: Rule, certificate: CertificateFacts) -> bool:
    """Whether the audit decided this very rule by bets of its own: of a comparison its claim, which
    is about R_A - R_B, the rule's figure with the other sign."""
    if rule.versus and certificate.versus is not None:
        claim = certificate.versus.at_least
        return claim is not None and _decides(rule, -claim)
    return certificate.decides and _decides(rule, certificate.at_most)


def _promise(certificate: CertificateFacts, rulings: Sequence[Ruling]) -> str:
    """What the gate rests on; that rules about several targets are not right all at once, where
    each interval holds only by itself."""
    count = len({ruling.target for ruling in rulings})
    if certificate.guarantee == "all" or count < 2:
        return certificate.promise
    wrong = min(1.0, count * (1 - certificate.confidence))
    return (
        f"{certificate.promise}; of the {count} targets that these rules are about, one or more "
        f"may be ruled wrongly with probability up to {wrong:.3g}"
    )


def chosen(rule: Rule, ids: Sequence[TargetId], *, begun: bool = True) -> list[int]:
    """The places of the targets that a rule names. ``begun``: whether answers may have been seen.

    Raises InputError where there is none.
    """
    places = [k for k, target in enumerate(ids) if target.is_named(rule.about)]
    if places:
        return places
    versus, handles = VERSUS * rule.versus, [target.handle for target in ids]
    listed = ", ".join(versus + handle for handle in handles[:MAX])
    listed += ", ..." if len(handles) > MAX else ""
    near = [handle for handle in handles if handle.partition(":")[2] == rule.about]
    near = near or get_close_matches(rule.about, handles, n=1, cutoff=0.7)
    targets = shlex.quote(family(rule.about))
    if near:
        remedy = f"did you mean {versus}{near[0]}?"
    elif family_of(family(rule.about)) is None:
        remedy = "'avtt gate DIR --list' lists all of a run's"
    elif begun:
        remedy = (
            "one chosen after seeing the answers would not be covered by the guarantee: begin a "
            f"new audit with --targets {targets} and another --out, which may learn "
            "from this one (prior_journal); or, where alpha was set aside, let draws to come "
            f"certify it: avtt resume DIR --posthoc {shlex.quote(rule.about)}"
        )
    else:
        remedy = f"--targets {targets} adds it"
    wanted = "a target that was registered when the audit began" if begun else "a registered target"
    raise InputError(
        f"rule {rule.text!r}: expected {wanted}, got {rule.about!r}; there are {listed}; {remedy}"
    )


def family(about: str) -> str:
    """What --targets calls the targets that a rule may be about: "relations" of "relation:fog"."""
    kind, _, rest = about.partition(":")
    asked = f"{kind}:{re.split('[:=]', rest)[0]}"
    if rest and family_of(asked) is None:
        asked = next((f.asked[0] for f in FAMILIES if f.kind == kind and f.asked), about)
    return asked if rest else about


def asked_later(space: QuestionSpace, names: Sequence[str]) -> dict[str, Target]:
    """The targets that rules name so, by their handles, for ``Audit.certify_also``.

    Raises InputError for a name that is none.
    """
    found: dict[str, Target] = {}
    for name in names:
        targets = {t.id.handle: t for t in named_targets(space, [family(name)])}
        wanted = {told: target for told, target in targets.items() if target.id.is_named(name)}
        if not wanted:
            raise unknown("target", name, targets, "posthoc")
        found |= wanted
    return found


@dataclass(frozen=True)
class Gated(Combinable):
    """A stopping rule: ends an audit once every rule is decided, however wide its intervals.

    ``rules`` and the ``places`` of the targets that each of them names.
    """

    by = "gate"

    rules: tuple[Rule, ...]
    places: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, rules: Sequence[str], ids: Sequence[TargetId], *, versus: bool = False) -> "Gated":
        """``versus``: of a comparison of two models. Raises InputError for a rule that cannot be
        read, names no target of ``ids``, or is about the other kind."""
        parsed = [Rule.parse(rule) for rule in rules]
        for rule in parsed:
            if rule.versus != versus:
                raise _other_kind(rule)
        return cls(tuple(parsed), tuple(tuple(chosen(r, ids, begun=False)) for r in parsed))

    def only_claims(self, delta: float) -> bool:
        """Whether every rule is, with the other sign, the claim of a comparison that R_A - R_B is
        at least ``delta``: bets about the claim decide such rules, and no intervals."""
        return all(_decides(rule, -delta) for rule in self.rules)

    def reached(self, state: AuditState) -> str | None:
        """Why to stop: all rules are decided, and how."""
        if not state.targets:
            return None
        by_bets = state.limit is not None and all(_decides(r, state.limit) for r in self.rules)
        states: list[State] = []
        for rule, places in zip(self.rules, self.places, strict=True):
            each = [_ruling(rule, state.targets[k], by_bets).state for k in places]
            states.append(overall(each))
        if "open" in states:
            return None
        count = [f"{states.count(how)} {how}" for how in ("pass", "fail") if how in states]
        return f"every rule of the gate is decided: {', '.join(count)}"

    def __str__(self) -> str:
        return "a gate that is decided (" + "; ".join(rule.text for rule in self.rules) + ")"


def _other_kind(rule: Rule) -> InputError:
    """What is wrong with a rule about two models where one is audited, and the other way round."""
    if rule.versus:
        return InputError(
            f"rule {rule.text!r}: expected a comparison of two models ('avtt versus'), got an "
            f"audit of one; without 'versus:' a rule is about its rate"
        )
    return InputError(
        f"rule {rule.text!r}: expected a rule about the difference of two models, such as "
        f"'versus:{rule.about} {rule.sign} {rule.limit:g}', as two were compared"
    )


def _ruling(rule: Rule, status: TargetStatus, by_bets: bool) -> Ruling:
    """What a rule comes to for a target. ``by_bets``: the audit decided that very rule by bets of
    its own, which are earlier than the interval."""
    estimate, lower, upper = status.estimate, status.lower, status.upper
    if rule.versus and (delta := status.difference):
        # how much more often the new model errs: R_B - R_A
        estimate, lower, upper = -delta.estimate, -delta.upper, -delta.lower
    state = rule.state(lower, upper)
    if by_bets:
        below = BELOW.get(str(status.decision if rule.versus else status.decided))
        state = "open" if below is None else "pass" if below == (rule.sign == "<=") else "fail"
    note = ""
    if state != "open" and status.invalidated:
        state, note = "open", "the model's answers contradict each other: nothing is certified"
    ends = estimate, lower, upper
    of = status.id.signed
    return Ruling(rule, status.name, *ends, state, note, constant=status.baseline, signed=of)


def _cell(text: str) -> str:
    """Text in a cell of a Markdown table, where it is neither HTML nor markup."""
    words = escape(" ".join(text.split()), quote=False)
    return re.sub(r"([\\|`*\[])", r"\\\1", words)


def _code(text: str) -> str:
    """The same as code, in which a bar alone ends the cell."""
    words = " ".join(text.split()).replace("`", "'").replace("|", "\\|")
    return f"`{words}`"


def _xml(text: str) -> str:
    """Without the characters that XML 1.0 has no way to hold."""
    return re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "?", text)
