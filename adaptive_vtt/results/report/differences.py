"""Two models compared: how much more or less often the new one errs, target by target, around 0."""

import pandas as pd

from ...certify.further import longest
from ...certify.status import Compared, calls_of
from ...utils.figures import EXACT, is_exact
from ..advice import Step, steps_of_two
from ..difference import DECISIONS, WHOLE, brief, names_of, point_span, points, told
from .certified import axis
from .evidence import Evidence
from .headline import Verdict
from .headline import names as page_names
from .section import THIN, Section, amount, exact, percent

MARKS = 4
"""Marks of the axis to either side of 0, at most."""


def headline(evidence: Evidence) -> Section:
    """Show the first screen: which model errs less, by how much, and what that took."""
    rows, made = evidence.run.compared, _calls(evidence)
    return Section.of(
        evidence,
        "Verdict",
        "verdict",
        "versus.html",
        verdict=_verdict(evidence, rows),
        decided=sum(row.decision != "open" for row in rows),
        count=len(rows),
        models=" / ".join(names_of(evidence.facts)),
        calls_of=made,
        steps=_steps(evidence, sum(made)),
    )


def section(evidence: Evidence) -> Section | None:
    """Show every difference as a bar around 0, and in figures; the margin shaded."""
    certificate = evidence.certificate
    if certificate is None or certificate.versus is None:
        return None
    rows, margin = evidence.run.compared, certificate.versus.margin
    names = names_of(evidence.facts)
    end, marks = axis([max(-row.lower, row.upper) for row in rows], margin, MARKS)

    def at(difference: float) -> float:
        """Return its place on the axis, a share."""
        return min(max((difference + end) / (2 * end), 0.0), 1.0)

    return Section.of(
        evidence,
        "Differences",
        "differences",
        "differences.html",
        bars=[  # around 0 in the middle: to the right of it the new model errs more
            {
                "of": row,
                "place": place,
                "start": at(-row.upper),
                "length": at(-row.lower) - at(-row.upper),
                "at": at(-row.delta),
                "told": _told(row, brief(names[1])),
                "words": DECISIONS[row.decision].format(b=brief(names[1])),
            }
            for place, row in enumerate(rows)
        ],
        marks=[(at(mark), points(mark)) for mark in [*(-m for m in marks[:0:-1]), *marks]],
        margin=margin,
        shade=(at(-margin), at(margin) - at(-margin)),
        rows=_counts(rows, paired=certificate.paired),
        names=names,
        whole=all(is_exact(row.lower, row.upper) for row in rows) and WHOLE,
    )


def _counts(rows: list[Compared], *, paired: bool) -> pd.DataFrame:
    """Return what each difference rests on."""
    table = pd.DataFrame(
        {
            "target": [row.target for row in rows],
            "questions": [row.questions for row in rows],
            "lost differently": [percent(row.disagreement) for row in rows],
            "calls of the old model": [row.calls_a for row in rows],
            "calls of the new model": [row.calls_b for row in rows],
        }
    )
    return table if paired else table.drop(columns="lost differently")


def _verdict(evidence: Evidence, rows: list[Compared]) -> Verdict:
    certificate, row = evidence.certificate, rows[0]
    assert certificate is not None
    assert certificate.versus is not None
    about = "" if row.target.startswith("overall ") else f"in {row.target}"
    which = "at every moment" if len(rows) == 1 else f"the first of {amount(len(rows))} targets"
    b, after = names_of(evidence.facts)[1], f", {exact(certificate.confidence)} sure, {which}"
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
    decided = {"holds": "The claim holds:", "fails": "The claim fails that"}
    how = "more often by at most" if claim <= 0 else "less often by at least"
    before = f"{decided.get(row.decision, 'It is open whether')} {b} errs {how}"
    # the interval is certified beside the claim
    claimed = f"{abs(100 * claim):.3g}{THIN}points"
    return Verdict(before, claimed, about, f"the interval: {ends}")


def _told(row: Compared, b: str) -> str:
    return told(b, -row.delta, -row.upper, -row.lower)


def _calls(evidence: Evidence) -> tuple[int, int]:
    """Return the calls of the old model, and of the new one."""
    sources, known = len(evidence.sources), evidence.facts.known_a
    return calls_of(evidence.certificate, evidence.draws, evidence.calls, sources, known)


def _steps(evidence: Evidence, calls: int) -> list[Step]:
    """Return what to do next; the first says how many more calls would decide what is open."""
    open_ = [status for status in evidence.run.statuses if status.decision == "open"]
    further, why = longest(s.more_calls for s in open_), "still open: the same command continues"
    if open_ and further is not None:
        more = further.times(calls / max(len(evidence.draws) + len(evidence.sources), 1))
        why += f"; {more} more calls would decide it, "
        why += f"{amount(calls + more.most)} in all at the most, for --budget"
    again = evidence.facts.begun_by or ""
    return steps_of_two(evidence.run, page_names(evidence), (), again, why)
