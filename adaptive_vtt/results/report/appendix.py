"""Every draw: what was asked, why, and what came of it; and what the audit was begun with."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from ...journal.rows import AnswerRow, DrawRow, Reasons
from ...strategies import CERTIFY
from ...types import JsonObject
from .content import question_in_words
from .evidence import Evidence
from .section import Section, amount, figure, percent

ROWS = 500
"""At most so many draws stand in the page, half from the beginning and half from the end."""
SAID = 80
"""So much of an answer in words is shown."""
REASONS = {
    "target": "counts most for",
    "need": "part of its call's need",
    "predicted_loss": "expected loss",
    "uncertainty": "uncertainty of its side",
    "predicted_yes": "expected P(yes)",
}
"""What strategies go by, as ``why`` of a draw names it, and the headings of the table."""
OF_ANSWERS = ("uncertainty", "predicted_yes")
"""Those that say nothing of captions."""
MAX_TARGETS = 6
"""Targets that are named in the sentence on what draws counted for."""
OF_ITEMS = (
    "Somebody looked at each item and told its loss: there are no images, concepts or changes of "
    "images to show here, and no answers to believe anything of. Items are named by their number."
)


# -- questions asked -----------------------------------------------------------------------------


def asked_section(evidence: Evidence) -> Section:
    """The draws in a table, and how the audit ended."""
    draws, total = evidence.draws, len(evidence.draws)
    if total > ROWS:
        draws = draws[: ROWS // 2] + draws[-ROWS // 2 :]
    told = set().union(*(row.why for row in evidence.draws))
    out = OF_ANSWERS if evidence.captioned else ()
    shown = [name for name in REASONS if name in told and name not in out]
    return Section.of(
        "Questions asked",
        "asked",
        "asked.html",
        headings=[(REASONS[name], name == "target") for name in shown],
        lines=[_line(evidence, row, shown) for row in draws],
        about=_about(evidence),
        idle=evidence.settings.strategy == CERTIFY and "uncertainty" in shown,
        sample=evidence.sample_word,
        shown=shown,
        total=total,
        half=ROWS // 2,
        captioned=evidence.captioned,
        settings=evidence.settings,
        rules=evidence.rules,
        reason=evidence.reason,
        ended=evidence.facts.ended,
    )


def _about(evidence: Evidence) -> list[tuple[str, int]]:
    """For which targets the draws counted most: names and numbers of draws, the most first."""
    names = (_target(evidence, row.why) for row in evidence.draws)
    return Counter(name for name in names if name is not None).most_common(MAX_TARGETS)


def _target(evidence: Evidence, why: Reasons) -> str | None:
    place, certificate = why.get("target"), evidence.certificate
    if certificate is None or not isinstance(place, int):
        return None
    return certificate.targets[place] if 0 <= place < len(certificate.targets) else None


def _line(evidence: Evidence, row: DrawRow, shown: Sequence[str]) -> JsonObject:
    """One draw: its question (in words, or from the parts it is made of), ``reasons`` in the order
    of the headings, and what came of it."""
    asked, why = evidence.asked(row.question), dict[str, Any](row.why)
    answer = evidence.answers.get(row.question)
    worded = None if answer is None else question_in_words(answer)
    verdict, note = verdict_of(answer)
    share = [amount(why[k]) if k in why else "?" for k in ("eligible", "candidates")]
    reasons = {name: figure(why.get(name)) for name in shown if name != "target"}
    reasons |= {"target": _target(evidence, row.why) or "–"}
    more = {k: v for k, v in why.items() if k not in (*REASONS, "eligible", "candidates")}
    return {
        "number": row.draw + 1,
        "question": "" if worded is None else worded["question"],
        "concept": asked.concept,
        "sample": row.sample,
        "change": evidence.change_in_words(asked),
        "reasons": [(reasons[name], name == "target") for name in shown],
        "choice": " of ".join(share),
        "more": ", ".join(f"{k.replace('_', ' ')} {_short(v)}" for k, v in more.items()),
        "probability": chance(row),
        "answer": percent(None if answer is None else answer.answer),
        "verdict": verdict,
        "note": note,
    }


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def chance(row: DrawRow) -> str:
    """The probability of a draw, and how many times that of an even proposal it is."""
    candidates = row.why.get("candidates")
    if not candidates:
        return f"{row.probability:.3g}"
    return f"{row.probability:.3g} ({row.probability * candidates:.2g} × even)"


def verdict_of(answer: AnswerRow | None) -> tuple[str, str]:
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


# -- what it was begun with ----------------------------------------------------------------------


def settings_section(evidence: Evidence) -> Section:
    """Model, dataset, strategy, rules, and the head that ``avtt verify`` looks for."""
    chosen = evidence.settings
    options = ", ".join(f"{k} {v}" for k, v in chosen.strategy_options.items())
    return Section.of(
        "Settings",
        "settings",
        "settings.html",
        space=evidence.facts.space,
        chosen=chosen,
        told=evidence.facts.protocol,
        strategy=chosen.strategy + (f" ({options})" if options else ""),
        relations=evidence.relations,
        rules=evidence.rules,
        head=evidence.head,
    )


def grounds_section(evidence: Evidence) -> Section | None:
    """What the guarantee rests on, a sentence each; None where nothing is certified."""
    if evidence.certificate is None:
        return None
    return Section.of(
        "What the guarantee rests on",
        "grounds",
        "grounds.html",
        certificate=evidence.certificate,
        settings=evidence.settings,
        size=evidence.facts.space.size,
        sample=evidence.sample_word,
    )


def items_section(_: Evidence) -> Section:
    """Of a plain pool: the sentence that stands in place of pictures, conditions and answers."""
    return Section("A plain pool", "items", Markup("<p>{}</p>").format(OF_ITEMS))
