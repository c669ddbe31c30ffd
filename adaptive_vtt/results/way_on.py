"""Under which limits an audit that has ended would certify what is still open.

Terminal and report tell the same command, since both take its limits from here.
"""

import math
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..certify.further import COLUMNS, Range, longest
from ..families import Overall
from ..journal import Journal
from ..journal.facts import CertificateFacts, Facts
from ..oracles.findings import taken
from ..stopping import CENTS
from ..utils.figures import POINT, money
from .opening import opening

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
    return _way(facts, folder) + ("" if journal is None else cap_held_back(facts, journal))


def cap_held_back(facts: Facts, journal: Journal) -> str:
    """The least cap under which an audit at rest can send another call, in words that follow the
    way on; "": its own will do, it has none, or batches are under way, which answer under any."""
    if facts.max_cost is None:
        return ""
    needed = taken(journal).money + _most_of_call(facts)
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


def _way(facts: Facts, folder: Path | str) -> str:
    if facts.begun_by:
        return f"'{facts.begun_by}'"
    if facts.call is not None:
        return f"the lines of Python that began it, or '{resume_command(facts, folder)}'"
    if facts.spec is None:
        return (
            "the lines of Python that began it, with the same out= or journal= ('avtt resume' "
            "takes audits of a SPEC.toml)"
        )
    return f"'{resume_command(facts, folder)}'"


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


def forecast(rows: Iterable[Mapping[Any, Any]]) -> Range | None:
    """How many more calls certify all of these targets, rows of a result that are not settled;
    None where that cannot be told yet."""
    found: list[Range | None] = []
    for row in rows:
        figures = [row.get(name) for name in COLUMNS]
        known = [n for n in figures if isinstance(n, int)]
        found.append(Range(*known) if len(known) == len(COLUMNS) else None)
    return longest(found)


def advised(facts: Facts, drawn: int, questions: int, cost: float, further: Range | None) -> str:
    """The options of ``avtt resume`` that certify what is open, where ``further`` is its forecast:
    those that a terminal prints and a report shows. "": nothing is left to ask, or no limit to
    raise.

    ``drawn``: the calls that were drawn and those about source images, answered or not, as a budget
    counts them; ``questions`` and ``cost``: what they took so far.
    """
    more = more_calls(facts, drawn, further)
    if not more:
        return ""
    options = raised(facts, drawn, questions, cost, more)
    if (width := past_gate(facts)) is not None:
        return f"--half-width {width:g} {options}".rstrip()
    return options


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


def census_as_they_are(
    facts: Facts,
    intervals: Sequence[tuple[float, float]],
    calls: int,
    further: Range | None,
    folder: str,
    spec: str,
) -> tuple[str, str] | None:
    """What a census of the images as they are takes, which tells their rate exactly, and its
    command; None where that rate is exact by now, where a call may cost money, and where it takes
    more calls than were made and than are likely to close what is open.

    ``intervals``: of all targets, in order; ``calls``: made so far; ``further``: the forecast of
    what is open. ``folder`` and ``spec``: as commands name them, quoted.
    """
    places, certificate, begun = opening(facts), facts.certificate, facts.spec
    if places is None or certificate is None or begun is None:
        return None
    lower, upper = intervals[places.plain]
    if may_cost(facts) or upper - lower <= POINT or _more_than_relations(begun):
        return None
    images = facts.space.samples
    needed = images if facts.settings.answers == "all" else certificate.sizes[places.plain]
    if needed > max(calls, 0 if further is None else further.likely):
        return None
    sets = "--set \"space.relations=['identity']\" --set \"certify.targets=['overall']\""
    return (
        f"all {images:,} images as they are take {needed:,} calls, and tell their rate exactly",
        f"avtt census {spec} {sets} --out {folder}-as-they-are",
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
