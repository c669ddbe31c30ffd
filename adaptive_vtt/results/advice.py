"""What comes next for a run: commands, each with its reason.

Terminal, report, errors and ``avtt runs`` take them from here, so that all advise the same.
"""

import itertools
import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from ..certify.decisions import OPEN
from ..certify.further import COLUMNS, Range, longest
from ..certify.status import TargetStatus
from ..families import Overall
from ..journal import Journal
from ..journal.costs import most_spent
from ..journal.facts import CertificateFacts, Facts
from ..stopping import CENTS
from ..utils.figures import is_exact, money
from .difference import UNFIT
from .gate import Ruling
from .opening import opening
from .outcomes import FAILED, sample_word
from .run import Run

NEARLY = 2
"""Factor on the half-width wanted, above which nobody would settle for what was reached."""
MIN_NARROWER, MAX_NARROWER = 1.25, 4
"""A gate that is open proposes intervals that are so many times narrower."""
MIN = 0.1
"""Calls by which an audit is extended at least, as a share of those it made."""
LIMITS = {
    ("audit", "budget"): "--budget ",
    ("audit", "max_cost"): "--max-cost ",
    ("stop", "questions"): "--set stop.questions=",
    ("stop", "seconds"): "--set stop.seconds=",
}
"""Limits of a spec, section and field, as options of ``avtt resume``; the value follows."""


def way(facts: Facts, folder: Path | str, journal: Journal | None = None) -> str:
    """What goes on with the audit in a run folder, for a sentence "go on with ...": the command
    that began it, ``avtt resume``, or, as that needs a SPEC.toml, the Python that began it; of
    answers that were judged again, the audit that they are from. ``journal``: its own, at rest, in
    which lost calls may have used up its cap."""
    if facts.rejudged is not None:
        source = shlex.quote(facts.rejudged.source)
        return f"the audit whose answers these are, {source}, and judge it again ('avtt rejudge')"
    begun = f"'{facts.begun_by or resume_command(facts, folder)}'"
    if facts.call is not None and not facts.begun_by:
        begun = f"the lines of Python that began it, or {begun}"
    elif facts.spec is None and not facts.begun_by:
        begun = (
            "the lines of Python that began it, with the same out= or journal= ('avtt resume' "
            "takes audits of a SPEC.toml)"
        )
    return begun + ("" if journal is None else cap_held_back(facts, journal))


def cap_held_back(facts: Facts, journal: Journal) -> str:
    """The least cap under which an audit at rest can send another call, in words that follow the
    way on; "": its own will do, it has none, or batches are under way, which answer under any."""
    if facts.max_cost is None:
        return ""
    needed = most_spent(journal) + _most_of_call(facts)
    if needed <= facts.max_cost + CENTS:
        return ""
    from ..engine.endpoint import under_way  # slow, and seldom asked

    if under_way(journal):
        return ""
    return (
        f" with a --max-cost (max_cost= in Python) of {rounded_up(needed):.10g} or more: calls "
        f"that never came back may have cost what is left of {facts.max_cost:.10g}"
    )


def _most_of_call(facts: Facts) -> float:
    """What a call and what a judge is asked of its answer may cost."""
    per_call = 1 if facts.settings.answers == "one" else len(facts.space.concepts)
    return facts.worst + per_call * facts.judge_worst


def resume_command(facts: Facts, folder: Path | str) -> str:
    """What goes on with an audit of a SPEC.toml, or of ``adaptive_vtt.audit``, whose model has to
    be named."""
    return f"avtt resume {shlex.quote(str(folder))}{' --model FILE:NAME' * bool(facts.call)}"


def spec_named(facts: Facts, *, anywhere: bool = False) -> str:
    """The audit's spec with its --set changes, as a command names it from where one stands.

    ``anywhere``: by its whole path, where its file lies outside that folder; else by its name
    alone, as a report may be passed on and tells no path of this machine.
    """
    first, *changes = facts.named
    path, here = Path(facts.base, first), Path.cwd()
    if not first.startswith("--"):
        inside = path.is_relative_to(here)
        first = str(path.relative_to(here)) if inside else str(path) if anywhere else first
    return shlex.join([first, *changes])


def shipping_rule(certificate: CertificateFacts) -> str:
    """A rule of a gate about the new of two models, as a first thing to ask of a comparison: that
    it errs no more often than was claimed, or by no more than a point; about the overall error
    where that is a target, else about the first that is."""
    about = next((t for t in certificate.ids if isinstance(t, Overall)), certificate.ids[0])
    versus = certificate.versus
    worse = 0.01 if versus is None or versus.at_least is None else 0.0 - versus.at_least
    name = "overall" if isinstance(about, Overall) else about.name
    return f"versus:{name} <= {worse:g}"


def past_gate(facts: Facts) -> float | None:
    """The half-width by which ``avtt resume`` goes on with an audit that its gate ended; None where
    something else ended it, or where it was begun without one."""
    by_gate = facts.ended is not None and facts.ended.by == "gate"
    return facts.certificate.half_width if by_gate and facts.certificate else None


def more_calls(facts: Facts, calls: int, further: Range | None) -> int:
    """How many calls to allow beyond the ``calls`` made, at most all that are left: as many as
    ``further``, the forecast of what is open, has at most. Where nothing can be forecast, or
    nothing is certified, an audit may double what it asked."""
    more = calls if further is None else max(further.most, math.ceil(MIN * calls))
    return max(0, min(more, facts.all_calls - calls))


def raised(facts: Facts, calls: int, questions: int, cost: float, more: int) -> str:
    """The options of ``avtt resume`` that let an audit ask ``more`` calls: of the limits that its
    spec or call has, those that would end it before. "": none would, or neither was kept.

    ``calls``, ``questions`` and ``cost``: what it took so far.
    """
    spec: Mapping[str, Any] = facts.spec or {"audit": facts.call}
    part = 1 + more / max(calls, 1)
    # a cap counts lost calls, and keeps the worst price of a question, its source image's call too
    held = facts.cost + 2 * _most_of_call(facts)
    elapsed = 0.0 if facts.ended is None else facts.ended.elapsed
    wanted = (calls + more, cost * part + held, questions * part, elapsed * part)
    found = []
    for ((section, name), option), needed in zip(LIMITS.items(), wanted, strict=True):
        limit = (spec.get(section) or {}).get(name)
        if limit is not None and limit < needed:
            value = rounded_up(needed)
            if name == "budget":  # no more than there are
                value = min(value, max(facts.all_calls, needed))
            found.append(f"{option}{value:.10g}")
    return " ".join(found)


def beyond_limits(facts: Facts, folder: Path | str) -> str:
    """What goes on with an audit that ended at its limits with targets open, for a sentence; "":
    none is open, something else ended it, or no command goes on with it."""
    spec: Mapping[str, Any] = facts.spec or {"audit": facts.call}
    limits = {(section, name): (spec.get(section) or {}).get(name) for section, name in LIMITS}
    given = [LIMITS[place].strip(" =") for place, limit in limits.items() if limit is not None]
    rows = facts.intervals or []
    open_ = sum(row.get(COLUMNS[-1], 0) != 0 for row in rows)  # None: cannot be told yet
    if facts.ended is None or facts.ended.by or facts.begun_by or not given or not open_:
        return ""
    count = f"{open_} of {len(rows)} targets {'is' if open_ == 1 else 'are'} open"
    return f"{count}: '{resume_command(facts, folder)}' goes on with a higher {' or '.join(given)}"


class Step(NamedTuple):
    """A command, and why to give it, as a part of a sentence."""

    command: str
    why: str


class Names(NamedTuple):
    """How commands name a run.

    Attributes:
        folder: The run folder, quoted.
        spec: Its spec, likewise.
        failures: The folder that failures go to, likewise.
        head: The journal's head, where a command is to check it; "": none does.
    """

    folder: str = "DIR"
    spec: str = "SPEC.toml"
    failures: str = "FOLDER"
    head: str = ""

    @classmethod
    def of(cls, run: Run, out: Path) -> Self:
        """Names for a terminal, of things that are there, or that nobody has taken."""
        others = (out / f"failures-{k}" for k in itertools.count(2))
        names = itertools.chain([out / "failures"], others)
        free = next(path for path in names if not path.exists())
        folder, failures = shlex.quote(str(out)), shlex.quote(str(free))
        return cls(folder, spec_named(run.facts, anywhere=True), failures)


def next_steps(run: Run, names: Names, why_open: str = "") -> list[Step]:
    """Return what may be done next with the audit of one model, the likeliest first.

    Args:
        run: Of the audit.
        names: How commands call it.
        why_open: Why to continue where targets are open at its end; "": in general words.
    """
    facts, certificate = run.facts, run.certificate
    open_ = [status for status in run.statuses if not (status.reached or status.emptied)]
    steps = _onward(run, names, open_, why_open)
    if exact := census_as_they_are(run, open_, names):
        steps.append(exact)
    wrong = (a for call in run.calls for a in call.answers if (a.loss or 0) >= FAILED)
    images = sample_word(facts.space, run.pictures) == "image"  # which export needs
    images &= certificate is None or not certificate.drops
    if images and any(answer.unanswered is None for answer in wrong):
        export = f"avtt export {names.folder} --failures {names.failures}"
        python = "export_failures(journal, space, FOLDER)"
        steps.append(Step(export if facts.spec else python, "what went wrong, as files"))
    if not steps and certificate is not None and not certificate.counted:
        why = "nothing is open; narrower intervals say more"
        steps.append(_resumed(run, names, "--half-width WIDTH", "half_width=...", why))
    return [*steps, *_checks(run, names)]


def _onward(run: Run, names: Names, open_: Sequence[TargetStatus], why_open: str) -> list[Step]:
    """Return what continues an audit of which targets are ``open_``, or begins another."""
    facts, certificate = run.facts, run.certificate
    if any(status.emptied for status in run.statuses):
        again = f"avtt audit {names.spec} --out {names.folder}-again"
        return [Step(again, "once the model stays as it is")]
    if facts.ended is None:
        held_back = cap_held_back(facts, run.journal)
        why = f"the audit has not ended: if it is not running, go on with it{held_back}"
        return [_resumed(run, names, "", "", why)]
    if open_ and facts.rejudged is not None:
        return [_rejudged(facts)]
    if certificate is None:
        why = "nothing here is certified: for intervals that hold, audit to a half-width"
        audit = f"avtt audit {names.spec} --half-width 0.05"
        return [Step(audit if facts.spec else "Audit(space, model, half_width=0.05)", why)]
    return _certified(run, names, open_, why_open) if open_ else []


def _ended_for_good(facts: Facts) -> bool:
    """Return whether a gate ended the audit and left it no half-width to continue to."""
    by_gate = facts.ended is not None and facts.ended.by == "gate"
    return by_gate and past_gate(facts) is None


def _rejudged(facts: Facts) -> Step:
    source = "" if facts.rejudged is None else shlex.quote(facts.rejudged.source)
    why = "go on with the audit that these are the answers of, and judge it again"
    return Step(f"avtt resume {source}", why)


def _certified(run: Run, names: Names, open_: Sequence[TargetStatus], why_open: str) -> list[Step]:
    """Return what certifies targets that are ``open_`` at the end of an audit."""
    facts, certificate = run.facts, run.certificate
    if certificate is not None and certificate.counted:
        why = "not every question was asked: raise the limit that ended the audit"
        return [_resumed(run, names, f"--budget {facts.all_calls}", "budget=None", why)]
    if _ended_for_good(facts):
        more_of_it = f"avtt audit {names.spec} --out {names.folder}-more"
        return [Step(more_of_it, why_open or "without its gate certifies the rest")]
    drawn, further = len(run.draws) + len(run.sources), longest(s.more_calls for s in open_)
    more = more_calls(facts, drawn, further)
    limits = raised(facts, drawn, len(run.table), run.cost, more) if more else ""
    if more and (width := past_gate(facts)) is not None:
        limits = f"--half-width {width:g} {limits}".rstrip()
    why = why_open or "goes on, likely until the rest is certified"
    steps = [_resumed(run, names, limits, f"budget={rounded_up(drawn + more):.0f}", why)]
    # intervals that are nearly as narrow as wanted may do as they are
    wanted = None if certificate is None else certificate.half_width
    widest = max(status.half_width for status in run.statuses)
    by_gate = facts.ended is not None and facts.ended.by == "gate"
    if wanted is not None and widest <= NEARLY * wanted and not by_gate and facts.spec:
        option = f"--half-width {rounded_up(widest)}"
        steps.append(_resumed(run, names, option, "", "or settles for this"))
    return steps


def _resumed(run: Run, names: Names, options: str, arguments: str, why: str) -> Step:
    """Go on with ``options`` of ``avtt resume``, or with ``arguments`` from Python."""
    facts = run.facts
    if facts.spec is None and facts.call is None:
        given = ", ".join(filter(None, ["Audit(space, model", "journal=...", arguments]))
        return Step(f"{given})", why)
    model = " --model FILE:NAME" * bool(facts.call)
    return Step(f"avtt resume {names.folder}{model} {options}".rstrip(), why)


def _checks(run: Run, names: Names) -> list[Step]:
    if names.head and run.facts.spec is None:
        return []  # the page of an audit that Python began has no folder to name
    head = f" --head {names.head}" if names.head else ""
    why = "checks every figure"
    if head:
        why += "; note the head, which proves later that nothing was edited"
    return [Step(f"avtt verify {names.folder}{head}", why)]


def steps_of_two(
    run: Run, names: Names, rules: Sequence[str], again: str, why: str = "decides the rest"
) -> list[Step]:
    """Return what may be done next with a comparison of two models.

    Args:
        run: Of the comparison.
        names: How commands call it.
        rules: Those of the gate that it was given, which alone goes on then.
        again: The command that continues while a difference is open, "" where none does.
        why: Why to give that.
    """
    steps, folder, certificate = [], names.folder, run.certificate
    if again and not rules and any(row.decision == OPEN for row in run.compared):
        steps.append(Step(again, why))
    if certificate and not rules and run.compared[0].decision not in UNFIT:
        rules = [shipping_rule(certificate)]
    if rules:
        options = " ".join(f"--rule {shlex.quote(rule)}" for rule in rules)
        steps.append(Step(f"avtt gate {folder} {options}", "may the new model ship?"))
    if any(row.disagreement for row in run.compared):
        export = f"avtt export {folder} --disagreements FOLDER"
        steps.append(Step(export, "where the models differ, as files"))
    return [*steps, *_checks(run, names)]


def steps_of_gate(run: Run, rulings: Sequence[Ruling], names: Names) -> list[Step]:
    """Return what may decide an open gate.

    An audit whose open targets are as certain as was asked goes on only if more is asked: intervals
    as narrow as their distance from the limit, which takes calls with the square of that.

    Args:
        run: Of the audit.
        rulings: Those of the gate.
        names: How commands call the run.
    """
    facts, certificate, rows = run.facts, run.certificate, [r for r in rulings if r.state == "open"]
    by_command = facts.spec is not None and facts.begun_by is None and facts.rejudged is None
    by_gate = facts.ended is not None and facts.ended.by == "gate"
    if _ended_for_good(facts) or (by_gate and not by_command):
        why = "the audit ended with its gate: begin another, with this rule for its gate or none"
        return [Step(facts.begun_by or f"avtt audit {names.spec} --out {names.folder}-more", why)]
    if facts.rejudged is not None:
        return [_rejudged(facts)]
    if not by_command:
        why = "under a higher limit if it met one, and decide again"
        return [Step(facts.begun_by, why) if facts.begun_by else _resumed(run, names, "", "", why)]
    wanted = None if certificate is None else certificate.half_width
    widest = max(((row.upper - row.lower) / 2 for row in rows), default=0.0)
    why, times, width = "narrows what is open, to decide again", 2.0, past_gate(facts)
    if wanted is not None and widest <= wanted:
        apart = min(abs(row.estimate - row.rule.limit) for row in rows)
        width = rounded_down(min(max(apart, widest / MAX_NARROWER), widest / MIN_NARROWER))
        why, times = "its targets are as certain as was asked: asks more", (wanted / width) ** 2
    made = len(run.draws) + len(run.sources)
    more = max(0, min(math.ceil((times - 1) * made), facts.all_calls - made))
    options = raised(facts, made, len(run.table), run.cost, more)
    if width is not None:
        options = f"--half-width {width:g} {options}".rstrip()
    steps = [_resumed(run, names, options, "", why)]
    if times * made >= facts.all_calls and not may_cost(facts):
        census = f"avtt census {names.spec} --out {names.folder}-whole"
        steps.append(Step(census, f"or asks all {facts.all_calls:,} calls, which is exact"))
    return steps


def census_as_they_are(run: Run, open_: Sequence[TargetStatus], names: Names) -> Step | None:
    """Return the census of the images as they are, which tells their rate exactly.

    None where that rate is exact by now, where a call may cost money, and where it takes more
    calls than were made and than are likely to close what is ``open_``.
    """
    facts, certificate, spec = run.facts, run.certificate, run.facts.spec
    places = opening(facts)
    if places is None or certificate is None or spec is None:
        return None
    plain = run.statuses[places.plain]
    if may_cost(facts) or is_exact(plain.lower, plain.upper) or _more_than_relations(spec):
        return None
    images, calls = facts.space.samples, len(run.draws) + len(run.sources)
    needed = images if facts.settings.answers == "all" else plain.size
    further = longest(status.more_calls for status in open_)
    if needed > max(calls, 0 if further is None else further.likely):
        return None
    sets = "--set \"space.relations=['identity']\" --set \"certify.targets=['overall']\""
    return Step(
        f"avtt census {names.spec} {sets} --out {names.folder}-as-they-are",
        f"asking about all {images:,} original images takes {needed:,} calls: the exact rate",
    )


def may_cost(facts: Facts) -> bool:
    """Whether calls may cost money: prices may be unknown, but where a client counts, a server is
    asked."""
    return bool(facts.worst or facts.endpoint or facts.settings.oracle.judge)


def _more_than_relations(spec: Mapping[str, Any]) -> bool:
    """Whether a spec asks about changes in a way that does not fit images as they are alone."""
    space, certify = spec.get("space") or {}, spec.get("certify") or {}
    asked = [*map(space.get, ("severities", "options", "transforms")), certify.get("where")]
    return any(asked)


def in_money(further: Range, cost: float, calls: int, currency: str) -> str:
    """What further calls cost at the price of the ``calls`` made, as it follows their number; "" of
    free ones."""
    each = cost / max(calls, 1)
    if not each:
        return ""
    ends = (further.likely, further.least, further.most)
    likely, least, most = (money(n * each, currency) for n in ends)
    return f", {least} to {most}" if further.wide else f", {likely} ({least} to {most})"


def rounded_up(value: float) -> float:
    """The next number above with two digits that count: 281 becomes 290, 0.0123 0.013."""
    return _to_two_digits(value, lambda n: math.ceil(n - 1e-9))


def rounded_down(value: float) -> float:
    """The next number below with two digits that count: 0.0137 becomes 0.013."""
    return _to_two_digits(value, lambda n: math.floor(n + 1e-9))


def _to_two_digits(value: float, whole: Callable[[float], int]) -> float:
    if value <= 0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return float(f"{whole(value / unit) * unit:.10g}")
