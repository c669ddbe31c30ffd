"""Every draw: what was asked, why, and what came of it; and what the audit was begun with."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ...journal.rows import DrawRow
from ...types import JsonObject
from .evidence import Evidence
from .section import Section, amount, figure, percent

ROWS = 500
"""At most so many draws stand in the page, half from the beginning and half from the end."""
REASONS = {
    "target": "counts most for",
    "need": "part of its call's need",
    "predicted_loss": "expected loss",
    "uncertainty": "uncertainty of its side",
    "predicted_yes": "expected P(yes)",
}
"""What strategies go by, as ``why`` of a draw names it, and the headings of the table."""
OF_CONCEPTS = ("uncertainty", "predicted_yes")
"""Those that say nothing where questions are about no concept."""
CHOICE = ("eligible", "candidates")
MAX_TARGETS = 6
"""Targets that are named in the sentence on what draws counted for."""
OF_ITEMS = (
    "Somebody looked at each item and told its loss: there are no images, concepts or changes of "
    "images to show here, and no answers to believe anything of. Items are named by their number."
)


def asked_section(evidence: Evidence) -> Section:
    """Show the draws in a table, and how the audit ended."""
    draws, total = evidence.draws, len(evidence.draws)
    if total > ROWS:
        draws = draws[: ROWS // 2] + draws[-ROWS // 2 :]
    given = set().union(*(row.why for row in evidence.draws))
    of_concepts = evidence.answers.of_concepts
    shown = [n for n in REASONS if n in given and (of_concepts or n not in OF_CONCEPTS)]
    targets = (target_of(evidence, row) for row in evidence.draws)
    return Section.of(
        evidence,
        "Questions asked",
        "asked",
        "asked.html",
        headings=[(REASONS[name], name == "target") for name in shown],
        lines=[_line(evidence, row, shown) for row in draws],
        about=Counter(name for name in targets if name).most_common(MAX_TARGETS),
        shown=shown,
        total=total,
        half=ROWS // 2,
    )


def target_of(evidence: Evidence, row: DrawRow) -> str | None:
    """Return the name of the target that a draw counts most for, if it says so."""
    place, certificate = row.why.get("target"), evidence.certificate
    if certificate is None or not isinstance(place, int):
        return None
    return certificate.targets[place] if 0 <= place < len(certificate.targets) else None


def chance(row: DrawRow) -> str:
    """Return the probability of a draw, and how many times that of an even proposal it is."""
    candidates = row.why.get("candidates")
    if not candidates:
        return f"{row.probability:.3g}"
    return f"{row.probability:.3g} ({row.probability * candidates:.2g} × even)"


def _line(evidence: Evidence, row: DrawRow, shown: Sequence[str]) -> JsonObject:
    """Return one draw: its question, ``reasons`` in the order of the headings, and what came of
    it."""
    why, answer = dict[str, Any](row.why), evidence.answered.get(row.question)
    verdict, note = evidence.answers.verdict(answer)
    reasons = {name: figure(why.get(name)) for name in shown if name != "target"}
    reasons["target"] = target_of(evidence, row) or "–"
    more = {k.replace("_", " "): v for k, v in why.items() if k not in (*REASONS, *CHOICE)}
    return {
        "number": row.draw + 1,
        "question": evidence.question(row.question, row.sample),
        "reasons": [(reasons[name], name == "target") for name in shown],
        "choice": " of ".join(amount(why[k]) if k in why else "?" for k in CHOICE),
        "more": ", ".join(
            f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in more.items()
        ),
        "probability": chance(row),
        "answer": percent(None if answer is None else answer.answer),
        "verdict": verdict,
        "note": note,
    }


def settings_section(evidence: Evidence) -> Section:
    """Show model, dataset, strategy, rules, and the head that ``avtt verify`` looks for."""
    options = [f"{name} {value}" for name, value in evidence.settings.strategy_options.items()]
    return Section.of(
        evidence,
        "Settings",
        "settings",
        "settings.html",
        strategy=evidence.settings.strategy + (f" ({', '.join(options)})" if options else ""),
    )


def grounds_section(evidence: Evidence) -> Section | None:
    """Show what the guarantee rests on, a sentence each; None where nothing is certified."""
    if evidence.certificate is None:
        return None
    return Section.of(evidence, "Assumptions of the guarantee", "grounds", "grounds.html")


def items_section(evidence: Evidence) -> Section:
    """Show the sentence that stands in place of a plain pool's pictures, conditions and answers."""
    return Section.of(evidence, "Pool", "items", "sentence.html", sentence=OF_ITEMS)
