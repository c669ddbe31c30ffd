"""The next steps of a run: commands, each with its reason.

Terminal, report, errors and ``avtt runs`` take them from here, so that all advise the same.
"""

import itertools
import math
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from ..certify.decisions import OPEN
from ..certify.further import COLUMNS, Range, longest
from ..certify.status import TargetStatus, calls_of
from ..families import Overall
from ..journal import Journal
from ..journal.costs import most_spent
from ..journal.facts import CertificateFacts, Facts
from ..stopping import CENTS
from ..utils.figures import money
from ..utils.other_code import is_target
from .difference import UNFIT
from .gate import Ruling
from .outcomes import FAILED, sample_word
from .run import Run

MIN_NARROWER, MAX_NARROWER = 1.25, 4
"""Least and largest factor by which an undecided gate proposes to narrow intervals."""
MIN = 0.1
"""Least extension of an audit, as a share of the calls that it made."""
LIMITS = {
    ("audit", "budget"): "--budget ",
    ("audit", "max_cost"): "--max-cost ",
    ("stop", "questions"): "--set stop.questions=",
    ("stop", "seconds"): "--set stop.seconds=",
}
"""Limits of a spec, section and field, as options of ``avtt resume``; the value follows."""


# -- in sentences ----------------------------------------------------------------------------------


def resuming(facts: Facts, folder: Path | str, journal: Journal | None = None) -> str:
    """Return how to resume the audit in a run folder, for a sentence "continue with ...".

    This is the command that began it, ``avtt resume``, or the Python that began it if no
    SPEC.toml is kept. If answers were judged again, it is the audit that they come from.

    Args:
        facts: The audit's facts.
        folder: Its run folder.
        journal: Its journal, which nobody is writing. Lost calls in it may have used up the cap.
    """
    if facts.rejudged is not None:
        source = shlex.quote(facts.rejudged.source)
        return f"the audit whose answers these are, {source}, and judge it again ('avtt rejudge')"
    command = f"'{facts.begun_by or resume_command(facts, folder)}'"
    if facts.call is not None and not facts.begun_by:
        command = f"the lines of Python that began it, or {command}"
    elif facts.spec is None and not facts.begun_by:
        command = (
            "the lines of Python that began it, with the same out= or journal=, and a higher limit "
            "if it met one ('avtt resume' needs data in files)"
        )
    return command + ("" if journal is None else cap_held_back(facts, journal))


def cap_held_back(facts: Facts, journal: Journal) -> str:
    """Return the least cap on cost that allows another call, as the end of a sentence.

    It is "" if the audit has no cap, if its cap is high enough, or if batches are under way,
    whose answers arrive under any cap.
    """
    if facts.max_cost is None:
        return ""
    needed = most_spent(journal) + _most_of_call(facts)
    from ..engine.journaled_endpoint import under_way  # slow, and seldom asked

    if needed <= facts.max_cost + CENTS or under_way(journal):
        return ""
    return (
        f" with a --max-cost (max_cost= in Python) of {rounded(needed):.10g} or more: calls "
        f"that never came back may have cost what is left of {facts.max_cost:.10g}"
    )


def beyond_limits(facts: Facts, folder: Path | str) -> str:
    """Return how to resume an audit that ended at its limits with targets open, as a sentence.

    It is "" if none is open, if something else ended the audit, or if no command resumes it.
    """
    limits = [option.strip(" =") for option, limit in _limits(facts) if limit is not None]
    rows = facts.intervals or []
    open_ = sum(row.get(COLUMNS[-1], 0) != 0 for row in rows)  # None: cannot be forecast yet
    if facts.ended is None or facts.ended.by or facts.begun_by or not limits or not open_:
        return ""
    count = f"{open_} of {len(rows)} targets {'is' if open_ == 1 else 'are'} open"
    command = resume_command(facts, folder)
    return f"{count}: '{command}' continues with a higher {' or '.join(limits)}"


def in_money(further: Range, cost: float, calls: int, currency: str) -> str:
    """Return the price of further calls, as a part of a sentence that follows their number.

    Args:
        further: How many more calls are forecast.
        cost: Cost so far.
        calls: Calls so far, whose mean price is taken for the further ones.
        currency: ISO 4217 code.

    Returns:
        Text such as ", $2.10 ($1.50 to $4)", "" for free calls.
    """
    each = cost / max(calls, 1)
    likely, least, most = (
        money(n * each, currency) for n in (further.likely, further.least, further.most)
    )
    ends = f", {least} to {most}" if further.wide else f", {likely} ({least} to {most})"
    return ends if each else ""


# -- limits and names ------------------------------------------------------------------------------


def _limits(facts: Facts) -> list[tuple[str, float | None]]:
    """Return the option of each limit, and its value in the spec or call of an audit."""
    spec: Mapping[str, Any] = facts.spec or {"audit": facts.call}
    return [(text, (spec.get(section) or {}).get(n)) for (section, n), text in LIMITS.items()]


def raised(run: Run, calls: int, more: int) -> str:
    """Return the options of ``avtt resume`` that raise limits which would end the audit too soon.

    Args:
        run: The audit, with the limits of its spec or Python call.
        calls: Calls so far, of both models where two are compared.
        more: Calls to allow in addition.
    """
    facts, part = run.facts, 1 + more / max(calls, 1)
    # a cap counts lost calls, and reserves the worst price of a question and of its source image
    held = facts.cost + 2 * _most_of_call(facts)
    elapsed = 0.0 if facts.ended is None else facts.ended.elapsed
    wanted = (calls + more, run.cost * part + held, len(run.table) * part, elapsed * part)
    options = []
    for (option, limit), needed in zip(_limits(facts), wanted, strict=True):
        if limit is not None and limit < needed:
            value = rounded(needed)
            if "budget" in option:  # there may be fewer calls than the rounded number
                value = min(value, max(facts.all_calls, needed))
            options.append(f"{option}{value:.10g}")
    return " ".join(options)


def with_options(command: str, options: str) -> str:
    """Return a command with ``options``, which replace those of the same name.

    Args:
        command: The command.
        options: Such as "--budget 90 --set stop.seconds=60".
    """
    changed = shlex.split(options)
    names = [word for word in changed if word.startswith("--") and word != "--set"]
    fields = [word.partition("=")[0] for word in changed if "=" in word]
    kept, words = [], iter(shlex.split(command))
    for word in words:
        option, equals, _ = word.partition("=")
        if option in names:
            if not equals:
                next(words, None)
        elif word == "--set":
            value = next(words, "")
            kept += [] if value.partition("=")[0].strip() in fields else [word, value]
        else:
            kept.append(word)
    return shlex.join([*kept, *changed])


def more_calls(facts: Facts, calls: int, further: Range | None) -> int:
    """Return how many calls to allow beyond the ``calls`` made.

    This is the upper end of the forecast ``further``, or without a forecast as many as were made.
    """
    more = calls if further is None else max(further.most, math.ceil(MIN * calls))
    return max(0, min(more, facts.all_calls - calls))


def _most_of_call(facts: Facts) -> float:
    """Return the most that a call may cost, with asking a judge about its answers."""
    per_call = 1 if facts.settings.answers == "one" else len(facts.space.concepts)
    return facts.worst + per_call * facts.judge_worst


def rounded(value: float, *, up: bool = True) -> float:
    """Return the next number above, or below, with two significant digits: 281 becomes 290."""
    if value <= 0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    whole = math.ceil(value / unit - 1e-9) if up else math.floor(value / unit + 1e-9)
    return float(f"{whole * unit:.10g}")


def resume_command(facts: Facts, folder: Path | str) -> str:
    """Return the command that resumes an audit of a SPEC.toml or of ``adaptive_vtt.audit``.

    For the latter the model has to be named.
    """
    return f"avtt resume {shlex.quote(str(folder))}{_naming_model(facts)}"


def _naming_model(facts: Facts) -> str:
    name = facts.settings.model
    named = f" --model {shlex.quote(name if is_target(name) else 'FILE:NAME')}"
    return named if facts.call is not None else ""


def spec_named(facts: Facts, *, anywhere: bool = False) -> str:
    """Return the audit's spec with its --set changes, as commands name it from the current folder.

    Args:
        facts: The audit's facts.
        anywhere: Whether to name a file outside that folder by its whole path. Otherwise it has
            its name alone, as others may read a report, which shows no path of this machine.
    """
    first, *changes = facts.named
    path, here = Path(facts.base, first), Path.cwd()
    if not first.startswith("--"):
        inside = path.is_relative_to(here)
        first = str(path.relative_to(here)) if inside else str(path) if anywhere else first
    return shlex.join([first, *changes])


class Names(NamedTuple):
    """How commands name a run.

    Attributes:
        folder: The run folder, quoted for a shell, as the next two.
        spec: Its spec.
        failures: The folder to export failures to.
        head: The journal's head that 'avtt verify' shall check, "" for none.
    """

    folder: str = "DIR"
    spec: str = "SPEC.toml"
    failures: str = "FOLDER"
    head: str = ""

    @classmethod
    def of(cls, run: Run, out: Path) -> Self:
        """Return names for a terminal: the run's own, and a folder for failures that is free."""
        names = itertools.chain(["failures"], (f"failures-{k}" for k in itertools.count(2)))
        free = next(path for path in map(out.joinpath, names) if not path.exists())
        folder, failures = shlex.quote(str(out)), shlex.quote(str(free))
        return cls(folder, spec_named(run.facts, anywhere=True), failures)


# -- as steps --------------------------------------------------------------------------------------


class Step(NamedTuple):
    """A command, and the reason to run it as a part of a sentence."""

    command: str
    why: str


def next_steps(run: Run, names: Names, why_open: str = "") -> list[Step]:
    """Return the next steps after an audit of one model, the most likely first.

    Args:
        run: The audit.
        names: How commands name it.
        why_open: Reason to continue an audit with open targets, "" for a general one.
    """
    facts, certificate = run.facts, run.certificate
    open_ = [status for status in run.statuses if not (status.reached or status.emptied)]
    first = _continuing(run, names, open_, why_open)
    steps = [] if first is None else [first]
    wrong = (a for call in run.calls for a in call.answers if (a.loss or 0) >= FAILED)
    images = sample_word(facts.space, run.pictures) == "image"  # which export needs
    images &= certificate is None or not certificate.drops
    items = "items" in run.raw  # of a table, which people label
    if (images or items) and any(answer.unanswered is None for answer in wrong):
        step = Step(
            f"avtt export {names.folder} --failures {names.failures}", "exports the failures"
        )
        in_python = Step("result.failures()", "lists the failures")
        steps.append(step if facts.spec or facts.call or items else in_python)
    if (
        first is None
        and (items or not steps)
        and any(status.half_width > 0 for status in run.statuses)
    ):
        why = "nothing is open: continue for narrower intervals"
        steps.append(_resumed(run, names, "--half-width WIDTH", "half_width=...", why))
    return [*steps, *_checks(run, names)]


def _continuing(
    run: Run, names: Names, open_: Sequence[TargetStatus], why_open: str
) -> Step | None:
    """Return the step that continues an audit with ``open_`` targets, or begins another."""
    facts, certificate = run.facts, run.certificate
    if any(status.emptied for status in run.statuses):
        again = f"avtt audit {names.spec} --out {names.folder}-again"
        return Step(again, "once the model stays as it is")
    if facts.ended is None:
        why = "the audit has not ended: if it is not running, resume it"
        return _resumed(run, names, "", "", why + cap_held_back(facts, run.journal))
    if open_ and facts.rejudged is not None:
        return _rejudged(facts.rejudged.source)
    if certificate is None:
        why = "nothing here is certified: for intervals that hold, audit to a half-width"
        audit = f"avtt audit {names.spec} --half-width 0.05"
        return Step(audit if facts.spec else _in_python(facts, "half_width=0.05"), why)
    return _certifying(run, names, certificate, open_, why_open) if open_ else None


def _certifying(
    run: Run,
    names: Names,
    certificate: CertificateFacts,
    open_: Sequence[TargetStatus],
    why_open: str,
) -> Step:
    """Return the step that certifies targets which are ``open_`` at the end of an audit."""
    facts, by_gate = run.facts, _by_gate(run.facts)
    if certificate.counted:
        why = "not every question was asked: raise the limit that ended the audit"
        return _resumed(run, names, f"--budget {facts.all_calls}", "budget=None", why)
    width = certificate.half_width if by_gate else None
    if by_gate and width is None:
        without_gate = f"avtt audit {names.spec} --out {names.folder}-more"
        return Step(without_gate, why_open or "without its gate certifies the rest")
    drawn = len(run.draws) + len(run.sources)
    forecast = longest(status.more_calls for status in open_)
    more = more_calls(facts, drawn, forecast)
    limits = raised(run, drawn, more) if more else ""
    options = _with_width(width, limits) if more else ""
    reach = "likely until the rest is certified" if forecast else "it is not known yet how far"
    why = why_open or f"continues, {reach}"
    return _resumed(run, names, options, f"budget={rounded(drawn + more):.0f}", why)


def _by_gate(facts: Facts) -> bool:
    return facts.ended is not None and facts.ended.by == "gate"


def _with_width(width: float | None, limits: str) -> str:
    """Return options of ``avtt resume``: a half-width, if not None, and limits."""
    return limits if width is None else f"--half-width {width:g} {limits}".rstrip()


def _rejudged(source: str) -> Step:
    why = "resume the audit that these answers come from, and judge it again"
    return Step(f"avtt resume {shlex.quote(source)}", why)


def _resumed(run: Run, names: Names, options: str, arguments: str, why: str) -> Step:
    """Return the step that resumes an audit.

    Args:
        run: The audit.
        names: How commands name it.
        options: Options of ``avtt resume``.
        arguments: The same as arguments of ``Audit``, for an audit that was begun with that.
        why: The reason.
    """
    facts = run.facts
    if facts.begun_by:
        return Step(with_options(facts.begun_by, options), why)
    if facts.spec is None and facts.call is None:
        why += ", in the loop that began it" * facts.settings.oracle.tells_losses
        return Step(_in_python(facts, "journal=...", arguments), why)
    return Step(f"avtt resume {names.folder}{_naming_model(facts)} {options}".rstrip(), why)


def _in_python(facts: Facts, *arguments: str) -> str:
    """Return the Python that audits the same; a pool has no model to ask."""
    what = "pool" if facts.settings.oracle.tells_losses else "space, model"
    return f"Audit({', '.join(filter(None, [what, *arguments]))})"


def _checks(run: Run, names: Names) -> list[Step]:
    if not names.head:
        return [Step(f"avtt verify {names.folder}", "checks every figure")]
    if run.facts.spec is None and run.facts.call is None and names.folder == Names().folder:
        return []  # what Audit began may have no folder
    why = "checks every figure. Note this fingerprint: it proves later that nothing was edited"
    return [Step(f"avtt verify {names.folder} --head {names.head}", why)]


def to_decide(run: Run) -> tuple[int, Range | None]:
    """Return the calls of both models of a comparison so far, and how many more would decide what
    is open; None if nothing is, or before any forecast."""
    made = sum(calls_of(run.certificate, run.draws, run.calls, len(run.sources), run.facts.known_a))
    # forecasts count the calls of both models already
    return made, longest(s.more_calls for s in run.statuses if s.decision == OPEN)


def steps_of_two(
    run: Run, names: Names, rules: Sequence[str] = (), why: str = "continues"
) -> list[Step]:
    """Return the next steps after a comparison of two models.

    Args:
        run: The comparison.
        names: How commands name it.
        rules: Rules of its gate, which then replace other steps.
        why: The reason to continue while a difference is open.
    """
    steps, folder, certificate = [], names.folder, run.certificate
    if run.facts.begun_by and not rules and any(row.decision == OPEN for row in run.compared):
        steps.append(_continued(run, run.facts.begun_by, why))
    if certificate and not rules and run.compared[0].decision not in UNFIT:
        # a first rule: the claim, else the margin, else at most one point more often
        ids = certificate.ids
        name = "overall" if any(isinstance(t, Overall) for t in ids) else ids[0].name
        claim = None if certificate.versus is None else certificate.versus.at_least
        margin = 0.0 if certificate.versus is None else certificate.versus.margin
        rules = [f"versus:{name} <= {(margin or 0.01) if claim is None else 0.0 - claim:g}"]
    if rules:
        options = " ".join(f"--rule {shlex.quote(rule)}" for rule in rules)
        steps.append(Step(f"avtt gate {folder} {options}", "decides if the new model may ship"))
    if any(row.disagreement for row in run.compared):
        export = f"avtt export {folder} --disagreements FOLDER"
        steps.append(Step(export, "exports the images on which the models disagree"))
    return [*steps, *_checks(run, names)]


def _continued(run: Run, command: str, why: str) -> Step:
    """Return the step that continues a comparison, which ``command`` began."""
    made, further = to_decide(run)
    more = made if further is None else max(further.most, math.ceil(MIN * made))
    return Step(with_options(command, raised(run, made, more)), why)


def steps_of_gate(run: Run, rulings: Sequence[Ruling], names: Names) -> list[Step]:
    """Return the steps that may decide an undecided gate.

    An audit whose open targets are as precise as requested continues only for narrower intervals.
    They need the width of the distance to the limit, and the number of calls grows with the
    inverse square of a width.

    Args:
        run: The audit.
        rulings: The gate's rulings.
        names: How commands name the run.
    """
    facts, certificate, rows = run.facts, run.certificate, [r for r in rulings if r.state == "open"]
    labelled = facts.settings.oracle.tells_losses and facts.begun_by is not None
    by_spec = facts.spec is not None and facts.begun_by is None and facts.rejudged is None
    by_command = labelled or by_spec
    wanted = certificate.half_width if certificate else None
    by_gate = _by_gate(facts)
    if by_gate and (wanted is None or not by_command):
        why = "the audit ended with its gate: begin another, with this rule for its gate or none"
        return [Step(facts.begun_by or f"avtt audit {names.spec} --out {names.folder}-more", why)]
    if facts.rejudged is not None:
        return [_rejudged(facts.rejudged.source)]
    if not by_command:
        why = "continues, under a higher limit if it met one, to decide again"
        begun_by = facts.begun_by
        return [_continued(run, begun_by, why) if begun_by else _resumed(run, names, "", "", why)]
    widest = max(((row.upper - row.lower) / 2 for row in rows), default=0.0)
    why, times, width = "narrows what is open, to decide again", 2.0, wanted if by_gate else None
    if wanted is not None and widest <= wanted:
        apart = min(abs(row.estimate - row.rule.limit) for row in rows)
        narrower = min(max(apart, widest / MAX_NARROWER), widest / MIN_NARROWER)
        width = rounded(narrower, up=False)
        why, times = "asks more, for narrower intervals than requested", (wanted / width) ** 2
    made = len(run.draws) + len(run.sources)
    more = max(0, min(math.ceil((times - 1) * made), facts.all_calls - made))
    limits = raised(run, made, more)
    steps = [_resumed(run, names, _with_width(width, limits), "", why)]
    judge = facts.settings.oracle.judge
    may_cost = facts.worst or facts.endpoint or judge or labelled  # prices may be unknown
    if times * made >= facts.all_calls and not may_cost:
        census = f"avtt census {names.spec} --out {names.folder}-whole"
        steps.append(Step(census, f"or asks all {facts.all_calls:,} calls, which is exact"))
    return steps
