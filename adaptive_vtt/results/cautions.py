"""Cautions about a result that its readers must know, one sentence each.

Most sentences are in cautions.txt. Those that need the answers alone are made here, as other
modules use them, too.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..engine.options import FIRST_LOOK
from ..engine.repeat_probes import TOLERANCE, Repeated
from ..errors import some
from ..journal.facts import Facts, WayFacts
from ..journal.rows import CallRow
from ..models.network.elicitation import kind
from ..models.unanswered import MUTE, remedy
from ..models.versions import BETWEEN, CONTENT, unknown_files
from ..types import IDENTITY, SIDES
from ..utils.figures import percent
from ..utils.web import sentences, text_of
from .opening import opening
from .outcomes import unanswered
from .run import Run

NAMED = 3
"""Most targets that a sentence names."""
SILENT = 0.01
"""Least share of unanswered questions that is worth a caution."""
QUOTED = 120
"""Most characters of a reason that are quoted."""
ALIKE = 5
"""Least number of calls after which equal answers are worth a caution."""
NEARLY, MOST_NEARLY = 0.95, 20
"""Least share of equal answers that is worth a caution, and the least number of calls for it."""
OWN_PROXIES = ("guessing", "prior journal", "self-taught")
"""Names of predictions that an audit makes itself."""
ENOUGH, NOTHING_SAVED = 100, 0.97
"""Least number of calls after which proxies are judged, and the least ratio of variances with and
without predictions at which they save nothing."""
NEAR = 0.02
"""Largest difference of probabilities that count as equal."""
_BLIND = re.compile(
    r"\b(?:no|without (?:an?|any|the)|(?:not|n't) (?:see|view|have|receive|find) (?:an?|any|the))"
    r" (?:image|picture|photo|attachment)s?\b[^.]{0,30}\b(?:attached|provided|shown|in your|came)"
    r"|\b(?:provide|attach|upload|share) the (?:image|picture|photo)\b",
    re.IGNORECASE,
)
"""Pattern of replies that say that there is no image."""


def cautions(run: Run) -> list[str]:
    """Return the sentences of cautions.txt about a run."""
    facts, calls, statuses, probes = run.facts, run.calls, run.statuses, run.repeat_probes
    names, version = facts.settings.model, (facts.model_version or "").removeprefix(CONTENT)
    halves = [text.partition(BETWEEN) for text in (names, version)]
    proxies = [repr(name) for name in facts.settings.proxies if name not in OWN_PROXIES]
    ratios = [s.variance_ratio for s in statuses if s.variance_ratio is not None]
    idle = len(calls) >= ENOUGH and ratios and np.mean(ratios) >= NOTHING_SAVED
    blind = [s for s in statuses if s.baseline and no_better(s.lower, s.baseline.rate)]
    first = opening(facts)
    # where image changes alone fail, labels and columns are in order
    hint = statuses[first[0]] in blind if first else facts.space.relations == [IDENTITY]
    excluded = sorted((s for s in statuses if s.excluded), key=lambda s: -s.excluded)
    return sentences(
        Path(__file__).with_suffix(".txt"),
        facts=facts,
        certificate=facts.certificate,
        statuses=statuses,
        named=lambda of: _named(repr(status.name) for status in of),
        calls=len(calls),
        fallen_back=fallen_back(facts.ways),
        of_answers=about_answers(facts, calls),
        served=_served(facts),
        # a model compared with itself, for example because training overwrote the old one
        same_model=all(a and a == b.removeprefix(CONTENT) for a, _, b in halves),
        unhashed=_named(map(repr, unknown_files(facts.model_version))),
        quoted=repr,
        first_look=FIRST_LOOK,
        any_wrong=any(answer.loss for call in calls for answer in call.answers),
        proxies=proxies if idle else [],
        idle=_named(proxies),
        drifted=drifted(probes) if probes is not None and probes.differ else "",
        excluded=_named(f"{s.excluded} of {s.name!r}" for s in excluded),
        no_better=blind,
        hint=hint,
        percent=percent,
    )


def _named(words: Iterable[str]) -> str:
    return some([*words], NAMED)


def _served(facts: Facts) -> dict[str, Any]:
    """Return the field of replies that named several models or system versions, and how often.

    It is {} if the server named one.
    """
    counted = facts.endpoint or {}
    for one in (counted, counted.get("a"), counted.get("b")):
        served = one.get("served") if isinstance(one, dict) else None
        for field, names in served.items() if isinstance(served, dict) else ():
            if isinstance(names, dict) and len(names) > 1:
                replies = _named(f"{name!r} in {count}" for name, count in names.items())
                return {"field": field, "values": len(names), "replies": replies}
    return {}


# -- from answers alone ----------------------------------------------------------------------------


def about_answers(facts: Facts, calls: Sequence[CallRow]) -> list[str]:
    """Return the cautions that follow from the answers alone, which are quick to compute."""
    certificate, by_people = facts.certificate, facts.settings.oracle.tells_losses
    # a pair is journaled as the difference of two answers
    paired = certificate is not None and (certificate.paired or certificate.drops)
    same = "" if paired or by_people else same_answers(facts, calls)
    return [*filter(None, [same, says_blind(calls), silence(facts, calls)])]


def same_answers(facts: Facts, calls: Sequence[CallRow]) -> str:
    """Return a caution that a model gives the same, or nearly the same, answers for every image.

    Each concept may have another answer. The caution is "" for too few answers and for scores of
    masks. It is also "" if a model that looks may answer so: if all answers are right, or more
    are right than those of the best constant answers. The first answer about a concept equals no
    other, so it does not count.
    """
    rates, concepts = facts.settings.oracle.rates, len(facts.space.concepts)
    rows = [row for call in calls for row in call.answers if row.unanswered is None]
    rows = [row for row in rows if row.answer_text is not None or row.answer is not None]
    asked = len({row.call for row in rows})
    if asked < ALIKE or facts.settings.oracle.metric is not None:
        return ""
    values: dict[int, list[float | str]] = {}
    truths: dict[int, Counter[int | None]] = {}
    for row in rows:
        value = (row.answer or 0.0) if row.answer_text is None else row.answer_text or 0.0
        values.setdefault(row.question % concepts, []).append(value)
        truths.setdefault(row.question % concepts, Counter())[row.truth] += 1
    common = sum(map(_most_common, values.values())) - len(values)
    repeated, binary = len(rows) - len(values), dict(rates) == dict(SIDES)
    right = sum(((row.answer or 0.0) >= 0.5) == bool(row.truth) for row in rows)
    if repeated < ALIKE - 1 or (binary and right == len(rows)):
        return ""
    if all(len({*each}) == 1 for each in values.values()):
        firsts = [each[0] for each in values.values()][:NAMED]
        shown = [str(v) if isinstance(v, str) or not binary else percent(v) for v in firsts]
        names = _named(" ".join(text.split()) for text in shown)
        return (
            f"the model gave the same answer ({names}) in all {asked:,} calls, whatever the image: "
            "so do the untouched model.py of avtt init and a model that is not shown its images; "
            "the rates then mean nothing"
        )
    looks = binary and right > sum(max(count.values()) for count in truths.values())
    if asked < MOST_NEARLY or common < NEARLY * repeated or looks:
        return ""
    return (
        f"the model gave the same answer in {common + len(values):,} of {len(rows):,} answers, and "
        "is right no more often than a constant answer: does it see its images? 'avtt plan "
        "SPEC.toml --probe' asks about a black and a white one"
    )


def _most_common(values: Sequence[float | str]) -> int:
    """Return how many answers equal the most common one, numbers up to ``NEAR``."""
    words = Counter(one for one in values if isinstance(one, str))
    numbers = np.sort([one for one in values if not isinstance(one, str)])
    near = np.searchsorted(numbers, numbers + NEAR, side="right") - np.arange(len(numbers))
    return max([*words.values(), int(near.max(initial=0))])


def says_blind(calls: Sequence[CallRow]) -> str:
    """Return a caution that replies in words say that there is no image, "" if none does."""
    replies = [row.answer_text for call in calls for row in call.answers if row.answer_text]
    blind = [text for text in replies if _BLIND.search(text)]
    if not blind:
        return ""
    return (
        f"{len(blind):,} of {len(replies):,} replies say that there is no image, such as "
        f"{' '.join(blind[0].split())[:QUOTED]!r}: {remedy('no image')}"
    )


def silence(facts: Facts, calls: Sequence[CallRow]) -> str:
    """Return a caution with the number of unanswered questions and the most common reason.

    It is "" if there are few. Items that people judge have no model whose answers could be mended.
    """
    asked, reasons = unanswered(calls)
    silent = reasons.total()
    if not silent or silent < SILENT * asked:
        return ""
    often, times = reasons.most_common(1)[0]
    certificate, result = facts.certificate, "no rate shows what the model sees there"
    what, verb, cure = "questions", "went unanswered", f"; to mend it, {remedy(often)}"
    if facts.settings.oracle.tells_losses and not (certificate and certificate.paired):
        what, verb, cure, result = "items", "have no loss", "", "they count as wrong"
        if certificate and certificate.both:
            result = "intervals hold whether they are right or wrong"
    if silent > MUTE * asked:
        result = "the rates measure that, and nothing is certified"
    return (
        f"{silent:,} of {asked:,} {what} ({100 * silent / asked:.1f} %) {verb}, most often "
        f"({times:,} times) with {often[:QUOTED]!r}: {result}{cure}"
    )


def drifted(repeat_probes: Repeated) -> str:
    """Return a caution that repeated answers differ."""
    return (
        f"{repeat_probes.differ} of {repeat_probes.answers} answers asked again differ by more "
        f"than {TOLERANCE:g}: a model whose answers vary by chance does that, and so does one that "
        "changed during the audit, for which no certificate holds"
    )


def fallen_back(ways: Mapping[str, WayFacts]) -> list[str]:
    """Return what a model's server refused or ignored, and where P(yes) comes from instead."""
    rows = []
    for side, way in ways.items():
        source = kind(way.yes_from)
        failed = {kind(one): why for one, why in way.instead.items() if kind(one) != source}
        rows.append((side, way, source, failed))
    return text_of(__package__, "elicitation.txt", rows=rows).splitlines()


def no_better(lower: float, constant: float) -> bool:
    """Return whether a model certainly loses at least as much as a constant answer does.

    A constant answer that is never wrong does not count: nothing is better.
    """
    return 0 < constant <= lower
