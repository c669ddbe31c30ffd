"""The answer of the audit in one sentence, and what to do next."""

from dataclasses import dataclass
from shlex import quote

from ...certify.further import longest
from ...journal.facts import CertificateFacts
from ...types import SIDES, TargetId
from ..way_on import more_calls, raised, rounded_up
from .evidence import Evidence
from .section import aim, amount, exact, percent, span, sure, within
from .target_status import Standing

SAYS = {
    "EFR": "The score falls too far in",
    "violation rate": "Inconsistent in",
    "mean distance": "Grades are off by",
    "mean loss": "Mean loss",
}
"""What a loss means, by the name of the oracle's rates; else answers are wrong."""
OPEN = 4
"""Open targets that are named, at most."""


@dataclass(frozen=True)
class Verdict:
    """``before`` the ``figure`` and ``after`` it stand in large type, ``sure`` beneath."""

    before: str
    figure: str
    after: str
    sure: str


@dataclass(frozen=True)
class Step:
    """What to do next, and the command that does it; "" where none does."""

    text: str
    command: str = ""


def verdict(evidence: Evidence) -> Verdict:
    """How much goes wrong: certified where anything is, else among what was asked."""
    if evidence.certificate is None:
        return _raw(evidence)
    return _certified(evidence, evidence.certificate)


def _certified(evidence: Evidence, certificate: CertificateFacts) -> Verdict:
    found = evidence.standings
    whole = next((s for s in found if s.kind == "overall"), None)
    standing = whole or max(found, key=lambda s: (s.lower, s.estimate))
    before, after = _says(evidence), f"of all {amount(standing.size)} questions"
    if standing.id.kind == "misclassified":
        before, after = "Wrong class for", f"of all {amount(standing.size)} images"
        sources = evidence.facts.space.samples
        if sources < standing.size:
            after += f", made of {amount(sources)}"
    elif whole is None and len(found) > 1:
        after = f"of the questions {about(standing.id)}, the worst of {amount(len(found))} targets"
    elif whole is None:
        after = f"of the questions {about(standing.id)}"
    if (standing.lower, standing.upper) == (0, 1):
        return Verdict("", "Nothing is known yet", "", "no answer has narrowed an interval down")
    parts = [span(standing.lower, standing.upper), f"{sure(certificate.confidence)} sure"]
    parts.append(_together(certificate, len(found)))
    return Verdict(before, percent(standing.estimate), after, ", ".join(parts))


def about(target: TargetId) -> str:
    """Which questions a target is made of, as it follows "of the questions"."""
    concept = f"about {target.concept}"
    if target.side is not None and target.rate in SIDES:
        concept += f" where it is {'present' if target.side else 'absent'}"
    return {
        "concept": concept,
        "relation": f"under {target.relation}",
        "severity": f"under {target.relation} at severity {target.severity}",
        "relation-concept": f"{concept} under {target.relation}",
        "group": f"where {target.group} is {target.value}",
    }.get(target.kind, f"of {target.name!r}")


def _says(evidence: Evidence) -> str:
    if evidence.captioned:
        return "A rule is broken in"
    rates = evidence.settings.oracle.rates
    return next((words for rate, words in SAYS.items() if rate in rates), "Wrong in")


def _together(certificate: CertificateFacts, count: int) -> str:
    if count == 1:
        return "at every moment"
    if certificate.guarantee == "each":
        return f"each of {amount(count)} intervals by itself"
    return f"all {amount(count)} intervals at once"


def _raw(evidence: Evidence) -> Verdict:
    asked, wrong = len(evidence.table), int((evidence.table["loss"] >= 0.5).sum())
    if not asked:
        return Verdict("", "Nothing is known yet", "", "no question has been answered and judged")
    why = "without a guarantee"
    if evidence.adaptive:
        why += ", as the questions were chosen adaptively"
    counted = f"{amount(wrong)} of {amount(asked)} questions: a raw figure, {why}"
    return Verdict(_says(evidence), percent(wrong / asked), "of what was asked", counted)


def aims(certificate: CertificateFacts, done: str, found: list[Standing]) -> str:
    """How many targets have got where they should, as a sentence."""
    settled = sum(s.settled for s in found)
    which = f"{amount(settled)} of {amount(len(found))} targets"
    if len(found) == 1:
        which = found[0].name
    elif settled == len(found):
        which = f"All {amount(settled)} targets"
    wanted = []
    if certificate.half_width is not None:
        wanted.append(f"to {aim(certificate.half_width)}")
    if certificate.at_most is not None:
        wanted.append(f"against {exact(certificate.at_most)}")
    verb = "are" if len(found) > 1 and settled != 1 else "is"
    negated = "" if settled or len(found) > 1 else " not yet"
    against = [s.name for s in found if s.contradicted]
    more = f" Contradicted: {', '.join(against)}." if against else ""
    return f"{which} {verb}{negated} {done} {' and '.join(wanted)}.{more}"


def next_steps(evidence: Evidence) -> list[Step]:
    """At most three, the first first. An audit that no spec began goes on from Python."""
    mine = evidence.facts.spec is not None
    open_ = [s for s in evidence.standings if not (s.settled or s.contradicted)]
    open_.sort(key=lambda s: -s.half_width)
    steps = []
    if evidence.facts.ended is None:
        text = "The audit has not ended: if it is not running, go on with it."
        steps.append(Step(text, "avtt resume DIR" if mine else "Audit(space, model, journal=...)"))
    elif open_ and evidence.facts.rejudged is not None:
        text = "Still open: go on with the audit that these are the answers of, and judge it again."
        steps.append(Step(text, f"avtt resume {quote(evidence.facts.rejudged.source)}"))
    elif open_:
        steps.append(_narrow(evidence, open_, mine))
    elif evidence.certificate is None:
        text = "Nothing here is certified. For intervals that hold, audit to a half-width."
        command = "avtt audit SPEC.toml --half-width 0.05"
        steps.append(Step(text, command if mine else "Audit(space, model, half_width=0.05)"))
    if evidence.failures and not evidence.settings.oracle.tells_losses:
        text = "Take the failing images along as a dataset, to look at or to train on."
        command = "avtt export DIR --failures FOLDER"
        steps.append(Step(text, command if mine else "export_failures(journal, space, FOLDER)"))
    if not steps:
        right = "" if evidence.failures else ", and nothing that was asked went wrong"
        text = f"Nothing is open{right}. Narrower intervals say more: the same audit goes on to a "
        text += "smaller half-width."
        width = "avtt resume DIR --half-width WIDTH"
        python = "Audit(space, model, journal=..., half_width=...)"
        steps.append(Step(text, width if mine else python))
    if mine:
        text = "Keep the head of the journal elsewhere, and check this report against it any time."
        steps.append(Step(text, f"avtt verify DIR --head {evidence.head}"))
    return steps


def _narrow(evidence: Evidence, open_: list[Standing], mine: bool) -> Step:
    """How to close the targets that are open, and about how many calls that takes."""
    named = ", ".join(f"{s.name} ({within(s.half_width)})" for s in open_[:OPEN])
    more = f" and {amount(len(open_) - OPEN)} more" if len(open_) > OPEN else ""
    text = f"Still open: {named}{more}."
    found = longest(s.more_calls for s in open_)
    if found is None:
        text += " How many more calls that takes cannot be told yet."
    else:
        text += f" {'It' if len(open_) == 1 else 'All of them'} would take {found} more calls."
    made = len(evidence.calls) + len(evidence.sources)
    further = more_calls(evidence.facts, made, found)
    if not mine:
        total = f"{rounded_up(made + further):.0f}"
        return Step(text, f"Audit(space, model, journal=..., budget={total})")
    limits = raised(evidence.facts, made, len(evidence.table), evidence.cost, further)
    return Step(text, f"avtt resume DIR {limits}".rstrip())
