"""Details: every draw with its reasons and answer, replies of chat models, and all settings."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pandas as pd
from markupsafe import Markup

from ...journal.rows import DrawRow
from ...types import JsonObject
from ..replies import kinds, readings
from .evidence import Evidence
from .section import Section, amount, figure, percent

ROWS = 500
"""Draws that stand in the page, at most, half from the beginning and half from the end."""
FIRST = 5
"""Replies that are shown."""
REASONS = {
    "target": "counts most for",
    "need": "part of its call's need",
    "predicted_loss": "expected loss",
    "uncertainty": "uncertainty of its side",
    "predicted_yes": "expected P(yes)",
}
"""Quantities that strategies use, as ``why`` of a draw names them, and the headings of the
table."""
OF_CONCEPTS = ("uncertainty", "predicted_yes")
"""Reasons without meaning where questions are about no concept."""
CHOICE = ("eligible", "candidates")
MAX_TARGETS = 6
"""Targets that are named in the sentence on what draws counted for."""


def asked_section(evidence: Evidence) -> Section:
    """Show the draws in a table, and how the audit ended."""
    draws, total = evidence.draws, len(evidence.draws)
    if total > ROWS:
        draws = draws[: ROWS // 2] + draws[-ROWS // 2 :]
    given = set().union(*(row.why for row in evidence.draws))
    of_concepts = evidence.of_concepts
    names = [n for n in REASONS if n in given and (of_concepts or n not in OF_CONCEPTS)]
    targets = (target_of(evidence, row) for row in evidence.draws)
    return evidence.section(
        "Questions asked",
        "asked",
        headings=[(REASONS[name], name == "target") for name in names],
        lines=[_line(evidence, row, names) for row in draws],
        about=Counter(name for name in targets if name).most_common(MAX_TARGETS),
        shown=names,
        total=total,
        half=ROWS // 2,
    )


def target_of(evidence: Evidence, row: DrawRow) -> str | None:
    """Return the name of the target that a draw counts most for, None if it names none."""
    place, certificate = row.why.get("target"), evidence.certificate
    if certificate is None or not isinstance(place, int):
        return None
    return certificate.targets[place] if 0 <= place < len(certificate.targets) else None


def chance(row: DrawRow) -> str:
    """Return the probability of a draw, and how many times that of an even proposal it is."""
    candidates = row.why.get("candidates")
    even = f" ({row.probability * candidates:.2g} × even)" if candidates else ""
    return f"{row.probability:.3g}{even}"


def _line(evidence: Evidence, row: DrawRow, names: Sequence[str]) -> JsonObject:
    """Return one draw: its question, ``reasons`` in the order of the headings, and the answer."""
    why, answer = dict[str, Any](row.why), evidence.answered.get(row.question)
    verdict, note = evidence.verdict(row.question)
    reasons = {name: figure(why.get(name)) for name in names if name != "target"}
    reasons["target"] = target_of(evidence, row) or "–"
    more = {k.replace("_", " "): v for k, v in why.items() if k not in (*REASONS, *CHOICE)}
    words = (f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in more.items())
    return {
        "number": row.draw + 1,
        "question": evidence.question(row.question, row.sample),
        "reasons": [(reasons[name], name == "target") for name in names],
        "choice": " of ".join(amount(why[k]) if k in why else "?" for k in CHOICE),
        "more": ", ".join(words),
        "probability": chance(row),
        "answer": percent(None if answer is None else answer.answer),
        "verdict": verdict,
        "note": note,
    }


def replies_section(evidence: Evidence) -> Section | None:
    """Show replies as they came and as they were read; None if the journal keeps none."""
    first = readings(evidence.calls, FIRST)
    if not first:
        return None
    counts = kinds(evidence.calls).most_common()
    return evidence.section(
        "Replies",
        "replies",
        first=pd.DataFrame(first, columns=["reply", "read as"]),
        kinds=pd.DataFrame(counts, columns=["reading", "questions"]),
    )


def settings_section(evidence: Evidence) -> Section:
    """Show model, dataset, strategy, rules, and the head that ``avtt verify`` checks."""
    options = [f"{name} {value}" for name, value in evidence.settings.strategy_options.items()]
    strategy = evidence.settings.strategy + (f" ({', '.join(options)})" if options else "")
    return evidence.section("Settings", "settings", strategy=strategy)


def grounds_section(evidence: Evidence) -> Section | None:
    """Show the assumptions of the guarantee; None if nothing is certified."""
    if evidence.certificate is None:
        return None
    return evidence.section("Assumptions of the guarantee", "grounds")


def sentence_section(title: str, id: str, sentence: str) -> Section:
    """Return a section that is one sentence."""
    return Section(title, id, Markup("<p>{}</p>").format(sentence))
