"""Two models compared: how much more or less often the new one errs, target by target, around 0."""

from ...certify.further import longest
from ...certify.status import Compared, calls_of
from ...types import JsonObject
from ...utils.figures import EXACT, is_exact
from ..advice import Step, steps_of_two
from ..difference import (
    DECISIONS,
    WHOLE,
    brief,
    names_of,
    point_span,
    points,
    told,
)
from .certified import STEPS
from .evidence import Evidence
from .headline import Tile, Verdict, names, tile_of_questions, tiles_of_cost
from .section import THIN, Section, amount, sure

MARKS = 4
"""Marks of the axis to either side of 0, at most."""


def headline(evidence: Evidence) -> Section:
    """The first screen: which model errs less, by how much, and what that took."""
    found, ended = evidence.compared, evidence.facts.ended
    open_ = sum(row.decision == "open" for row in found)
    return Section.of(
        "Verdict",
        "verdict",
        "versus.html",
        verdict=_verdict(evidence, found),
        decided=len(found) - open_,
        count=len(found),
        ended=ended is not None,
        reason=evidence.reason,
        tiles=_tiles(evidence),
        models=" / ".join(names_of(evidence.facts)),
        steps=_steps(evidence),
        warnings=[w.rstrip(".") for w in evidence.warnings],
    )


def section(evidence: Evidence) -> Section | None:
    """Every difference as a bar around 0, and in figures; the margin shaded."""
    certificate = evidence.certificate
    if certificate is None or certificate.versus is None:
        return None
    found, margin = evidence.compared, certificate.versus.margin
    end, marks = _scale(found, margin)
    names = names_of(evidence.facts)
    return Section.of(
        "Differences",
        "differences",
        "differences.html",
        bars=[_bar(row, place, end, brief(names[1])) for place, row in enumerate(found)],
        marks=[(_at(mark, end), points(mark)) for mark in marks],
        margin=margin,
        shade=(_at(-margin, end), _at(margin, end) - _at(-margin, end)),
        certificate=certificate,
        paired=certificate.paired,
        names=names,
        whole=all(is_exact(row.lower, row.upper) for row in found) and WHOLE,
    )


def _verdict(evidence: Evidence, found: list[Compared]) -> Verdict:
    certificate, row = evidence.certificate, found[0]
    assert certificate is not None
    assert certificate.versus is not None
    about = "" if row.target.startswith("overall ") else f"in {row.target}"
    which = "at every moment" if len(found) == 1 else f"the first of {amount(len(found))} targets"
    b, after = names_of(evidence.facts)[1], f", {sure(certificate.confidence)} sure, {which}"
    span = f"{point_span(-row.upper, -row.lower)}{THIN}points{after}"
    if is_exact(row.lower, row.upper):
        span, after = EXACT, ""
    size = f"{abs(100 * row.delta):.1f}{THIN}points"
    if row.decision in ("better", "worse"):
        less = "less" if row.decision == "better" else "more"
        return Verdict(f"{b} errs", f"{size} {less}", about, span)
    ends = f"{_told(row, b)}{after}"
    if row.decision == "within":
        margin = f"{100 * certificate.versus.margin:g}{THIN}points"
        return Verdict("The models differ by no more than", margin, about, ends)
    claim = certificate.versus.at_least
    if claim is None:
        return Verdict("", "It is open which model errs less", about, ends)
    said = {"holds": "The claim holds:", "fails": "The claim fails that"}
    how = "more often by at most" if claim <= 0 else "less often by at least"
    before = f"{said.get(row.decision, 'It is open whether')} {b} errs {how}"
    # the interval is certified beside the claim
    claimed = f"{abs(100 * claim):.3g}{THIN}points"
    return Verdict(before, claimed, about, f"the interval: {ends}")


def _tiles(evidence: Evidence) -> list[Tile]:
    a, b = _calls(evidence)
    certificate = evidence.certificate
    told = "" if certificate is None or certificate.paired else "its answers were known"
    if evidence.facts.known_a:
        told = f"{amount(b - a)} answers were known"
    return [
        Tile("Calls of the old model", amount(a), told),
        Tile("Calls of the new model", amount(b)),
        tile_of_questions(evidence),
        *tiles_of_cost(evidence, "of both models"),
    ]


def _scale(found: list[Compared], margin: float) -> tuple[float, list[float]]:
    """How far the axis reaches to either side of 0, and its marks."""
    reach = max([margin, 0.02, *(max(-row.lower, row.upper) for row in found)])
    end = min(1.0, 1.06 * reach)
    step = next((s for s in STEPS if end / s <= MARKS), STEPS[-1])
    most = int(end / step + 1e-9)
    return end, [k * step for k in range(-most, most + 1)]


def _at(difference: float, end: float) -> float:
    """Its place on the axis, a share."""
    return min(max((difference + end) / (2 * end), 0.0), 1.0)


def _told(row: Compared, b: str) -> str:
    return told(b, -row.delta, -row.upper, -row.lower)


def _bar(row: Compared, place: int, end: float, b: str) -> JsonObject:
    """A target's interval: where the bar starts, its length and the estimate, as shares of the
    axis, which has 0 in its middle: to the right of it model ``b`` errs more."""
    start, stop = _at(-row.upper, end), _at(-row.lower, end)
    return {
        "of": row,
        "place": place,
        "start": start,
        "length": stop - start,
        "at": _at(-row.delta, end),
        "told": _told(row, b),
        "words": DECISIONS[row.decision].format(b=b),
    }


def _calls(evidence: Evidence) -> tuple[int, int]:
    """The calls of the old model, and of the new one."""
    sources, known = len(evidence.sources), evidence.facts.known_a
    return calls_of(evidence.certificate, evidence.draws, evidence.calls, sources, known)


def _steps(evidence: Evidence) -> list[Step]:
    """What to do next; the first says how many more calls would decide what is open."""
    steps = steps_of_two(evidence, names(evidence), (), evidence.facts.begun_by or "")
    open_ = [status for status in evidence.statuses if status.decision == "open"]
    further = longest(status.more_calls for status in open_)
    if not open_ or not evidence.facts.begun_by:
        return steps
    why = "still open: the same command continues"
    if further is not None:
        calls, draws = sum(_calls(evidence)), max(len(evidence.draws) + len(evidence.sources), 1)
        more = further.times(calls / draws)
        why += f"; {more} more calls would decide it, {amount(calls + more.most)} in all at the "
        why += "most, for --budget"
    return [steps[0]._replace(why=why), *steps[1:]]
