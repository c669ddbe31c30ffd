"""Every draw: what was asked, why, and what came of it."""

from dataclasses import dataclass

from ..journal.rows import AnswerRow, DrawRow
from .evidence import Evidence
from .section import Section, amount, figure, fragment

ROWS = 500
"""At most so many draws stand in the page, half from the beginning and half from the end."""
SAID = 80
"""So much of an answer in words is shown."""
KNOWN = ("uncertainty", "predicted_yes", "candidates", "eligible")


@dataclass(frozen=True)
class Line:
    """One draw; ``verdict`` is right, wrong, unanswered or waiting."""

    number: int
    concept: str
    sample: str
    change: str
    uncertainty: str
    predicted: str
    choice: str
    more: str
    probability: str
    answer: str
    verdict: str
    note: str


def section(evidence: Evidence) -> Section:
    """The draws in a table, and how the audit ended."""
    draws, total = evidence.draws, len(evidence.draws)
    if total > ROWS:
        draws = draws[: ROWS // 2] + draws[-ROWS // 2 :]
    html = fragment(
        "asked.html",
        lines=[_line(evidence, row) for row in draws],
        total=total,
        half=ROWS // 2,
        captioned=evidence.captioned,
        settings=evidence.settings,
        rules=evidence.facts.stop,
        ended=evidence.facts.ended,
    )
    return Section("Questions asked", "asked", html)


def _line(evidence: Evidence, row: DrawRow) -> Line:
    asked, why = evidence.asked(row.question), row.why
    answer = evidence.answers.get(row.question)
    verdict, note = _verdict(answer)
    share = [amount(why[k]) if k in why else "?" for k in ("eligible", "candidates")]
    return Line(
        row.draw + 1,
        asked.concept,
        row.sample,
        "" if asked.relation == "identity" else evidence.change(asked.relation, asked.severity),
        figure(why.get("uncertainty")),
        figure(why.get("predicted_yes")),
        " of ".join(share),
        ", ".join(f"{k} {v}" for k, v in why.items() if k not in KNOWN),
        f"{row.probability:.3g}",
        figure(None if answer is None else answer.answer),
        verdict,
        note,
    )


def _verdict(answer: AnswerRow | None) -> tuple[str, str]:
    """The verdict in a word, and what there is to say of it."""
    if answer is None:
        return "waiting", "no answer yet"
    if answer.answer is None:
        return "unanswered", answer.unanswered or "no reason was given"
    if answer.loss is None:
        return "unknown", "not judged"
    if answer.said is not None:
        return ("right" if answer.loss < 0.5 else "wrong"), answer.said[:SAID]
    if answer.loss < 0.5:
        return "right", "present" if answer.truth else "absent"
    return "wrong", "missed: it is present" if answer.truth else "false alarm: it is absent"
