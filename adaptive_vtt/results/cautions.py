"""What a reader of a result has to be told before trusting it, one sentence each."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..certify.status import TargetStatus
from ..engine.options import FIRST_LOOK
from ..engine.repeat_probes import TOLERANCE, Repeated
from ..errors import some
from ..models.network.elicitation import kind
from ..models.unanswered import MUTE, remedy
from ..models.versions import BETWEEN, CONTENT, unknown_files
from ..types import SIDES
from ..utils.figures import percent
from ..utils.web import sentences
from .outcomes import unanswered
from .run import Run

if TYPE_CHECKING:
    from ..journal.facts import Facts, WayFacts
    from ..journal.rows import AnswerRow, CallRow

NAMED = 3
"""Targets that are named in one sentence, at most."""
SILENT = 0.01
"""Share of questions without an answer from which on it is said."""
QUOTED = 120
"""So many characters of a reason are quoted."""
_IN_VAIN = {"refused": "refuses", "missing": "passes over"}
_ASKED = {
    "logprobs": "log-probabilities",
    "structured": "structured output",
    "stated": "the wish for a stated probability",
}
_SOURCES = {
    "logprobs": "log-probabilities",
    "structured": "the number that the model states in an enforced form",
    "stated": "the number that the model states in its words",
    "words": "a Yes or No in the reply, and is 0 or 1",
}
"""Ways to P(yes), as `models.network.elicitation` names them."""
_OPTIONS = {
    "max_tokens": "max_tokens (the same as max_completion_tokens is sent)",
    "max_completion_tokens": "max_completion_tokens (the same as max_tokens is sent)",
    "image_format": "PNG (images are sent as JPEG)",
}
ALIKE = 5
"""Calls after which answers that are all the same are worth a word."""
NEARLY, MOST_NEARLY = 0.95, 20
"""Share of answers that are the same from which on a model hardly looks, after so many calls."""
OWN_PROXIES = ("guessing", "prior journal", "self-taught")
"""Names of predictions that an audit makes itself."""
ENOUGH, NOTHING_SAVED = 100, 0.97
"""Calls after which proxies are judged, and the ratio of variances with and without predictions
from which on they save nothing."""
NEAR = 0.02
"""Probabilities that lie within this of each other are the same."""
_BLIND = re.compile(
    r"\b(?:no|without (?:an?|any|the)|(?:not|n't) (?:see|view|have|receive|find) (?:an?|any|the))"
    r" (?:image|picture|photo|attachment)s?\b[^.]{0,30}\b(?:attached|provided|shown|in your|came)"
    r"|\b(?:provide|attach|upload|share) the (?:image|picture|photo)\b",
    re.IGNORECASE,
)
"""Words of a model that was shown no image."""


def cautions(run: Run) -> list[str]:
    """The sentences of cautions.txt about a run."""
    facts, calls, certificate = run.facts, run.calls, run.certificate
    lost_batches, left_out = sum(batch.lost for batch in facts.batches), facts.protocol.left_out
    images = facts.space.samples + left_out
    probes, statuses = run.repeat_probes, run.statuses
    return sentences(
        Path(__file__).with_suffix(".txt"),
        facts=facts,
        compared=certificate is not None and certificate.versus is not None,
        lost_batches=lost_batches,
        it="it" if lost_batches == 1 else "them",
        left_out=f"{left_out:,} of {images:,}" if left_out else "",
        fallen_back=fallen_back(facts.ways),
        of_answers=about_answers(facts, calls),
        served_by=served_by(facts),
        same_model=same_model(facts),
        unhashed=some([*map(repr, unknown_files(facts.model_version))], NAMED),
        quoted=repr,
        no_slice=no_slices(facts, calls),
        emptied=_named(repr(s.name) for s in statuses if s.emptied),
        why_emptied=_why_emptied(facts),
        moved=_named(repr(s.name) for s in statuses if s.invalidated and not s.emptied),
        idle=idle_proxies(facts, statuses, calls),
        drifted=drifted(probes) if probes is not None and probes.differ else "",
        excluded=_named(
            f"{s.excluded} of {s.name!r}"
            for s in sorted(statuses, key=lambda s: -s.excluded)
            if s.excluded
        ),
        no_better=_named(
            f"{s.name!r} (always {s.baseline.answer!r}: {percent(s.baseline.rate)})"
            for s in statuses
            if s.baseline and no_better(s.lower, s.baseline.rate)
        ),
        ratio=certificate is None or certificate.bets.ratio,
    )


def _named(words: Iterable[str]) -> str:
    return some([*words], NAMED)


def idle_proxies(
    facts: "Facts", statuses: Sequence[TargetStatus], calls: Sequence["CallRow"]
) -> str:
    """Return a sentence that names the proxies that were given, where the draws vary as much as
    uniform ones without any prediction would; "" before ENOUGH calls."""
    names = [name for name in facts.settings.proxies if name not in OWN_PROXIES]
    ratios = [s.variance_ratio for s in statuses if s.variance_ratio is not None]
    if not names or len(calls) < ENOUGH or not ratios or np.mean(ratios) < NOTHING_SAVED:
        return ""
    kind = "proxy" if len(names) == 1 else "proxies"
    return (
        f"after {len(calls):,} calls the {kind} {some([*map(repr, names)], NAMED)} saved nothing: "
        "draws vary as much as without predictions; intervals hold all the same"
    )


def same_model(facts: "Facts") -> bool:
    """Return whether a comparison is of one model with itself, by its name and what it is made
    of, as where a training overwrote the file of the model before it."""
    names, version = facts.settings.model, (facts.model_version or "").removeprefix(CONTENT)
    halves = [text.partition(BETWEEN) for text in (names, version)]
    return all(a and a == b.removeprefix(CONTENT) for a, _, b in halves)


def served_by(facts: "Facts") -> str:
    """Return a sentence that names the models, or the systems behind them, that replies said were
    theirs, where a server named several; "" where it named one."""
    counted = facts.endpoint or {}
    for one in (counted, counted.get("a"), counted.get("b")):
        served = one.get("served") if isinstance(one, dict) else None
        for field, names in served.items() if isinstance(served, dict) else ():
            if isinstance(names, dict) and len(names) > 1:
                replies = _named(f"{name!r} in {count}" for name, count in names.items())
                return (
                    f"replies name {len(names)} different values as their {field} ({replies}): the "
                    "server changed the model during the audit, or has several; a certificate is "
                    "about one model, so ask for one version by its full name"
                )
    return ""


def no_slices(facts: "Facts", calls: Sequence["CallRow"]) -> str | None:
    """Why an audit that has ended found none of the slices that it looked for; None where it did,
    or looked for none."""
    certificate, looked = facts.certificate, facts.discover
    if facts.ended is None or certificate is None or looked is None or certificate.slices:
        return None
    if not any(answer.loss for call in calls for answer in call.answers):
        return "nothing that was asked went wrong"
    if len(calls) < FIRST_LOOK:
        return (
            f"after {len(calls)} calls too few answers were known to look for any; call "
            f"{FIRST_LOOK} is the first at which it looks; a narrower half-width makes it ask on"
        )
    return (
        f"no group that was looked at ({', '.join(looked.by)}) fails so much more often than all "
        "that it cannot be chance"
    )


def about_answers(facts: "Facts", calls: Sequence["CallRow"]) -> list[str]:
    """Return the cautions that follow from the answers alone, which are quick to find."""
    return [*filter(None, [same_answers(facts, calls), says_blind(calls), silence(calls)])]


def same_answers(facts: "Facts", calls: Sequence["CallRow"]) -> str:
    """Return a sentence where a model answers all, or nearly all, about every image alike.

    Each concept may have an answer of its own. "" where answers differ, where they are too few to
    tell or scores of masks, and where a model that looks may answer so: all answers are right, or
    they are nearly all the same and more of them right than of the best constant ones.
    """
    rates = facts.settings.oracle.rates
    rows = [row for call in calls for row in call.answers if _said(row) is not None]
    asked = len({row.call for row in rows})
    if asked < ALIKE or "EFR" in rates:
        return ""
    values: dict[int, list[float | str]] = {}
    for row in rows:
        values.setdefault(row.question % len(facts.space.concepts), []).append(_said(row) or 0.0)
    common = sum(map(_alike, values.values()))
    binary = dict(rates) == dict(SIDES)
    if binary and all(row.answer == row.truth for row in rows):
        return ""
    names = some([" ".join(str(told[0]).split()) for told in values.values()][:NAMED], NAMED)
    if common == len(rows):
        return (
            f"the model gave the same answer ({names}) in all {asked:,} calls, whatever the image: "
            "so do the untouched model.py of avtt init and a model that is not shown its images, "
            "and the rates then tell nothing"
        )
    if asked < MOST_NEARLY or common < NEARLY * len(rows) or (binary and _looks(facts, rows)):
        return ""
    return (
        f"the model gave the same answer in {common:,} of {len(rows):,} answers, whatever the "
        "image, and is right no more often than a constant answer: it hardly looks, or is hardly "
        "shown its images; 'avtt plan SPEC.toml --probe' asks about a black and a white one"
    )


def _alike(told: Sequence[float | str]) -> int:
    """Return how many of the answers are as the commonest one."""
    words = Counter(one for one in told if isinstance(one, str))
    numbers = np.sort([one for one in told if not isinstance(one, str)])
    near = np.searchsorted(numbers, numbers + NEAR, side="right") - np.arange(len(numbers))
    return max([*words.values(), int(near.max(initial=0))])


def _looks(facts: "Facts", rows: Sequence["AnswerRow"]) -> bool:
    """Return whether more answers are right than the best constant answer per concept would be."""
    truths: dict[int, Counter[int | None]] = {}
    for row in rows:
        truths.setdefault(row.question % len(facts.space.concepts), Counter())[row.truth] += 1
    best = sum(max(count.values()) for count in truths.values())
    return (
        sum((row.answer or 0.0) >= 0.5 if row.truth else (row.answer or 0.0) < 0.5 for row in rows)
        > best
    )


def says_blind(calls: Sequence["CallRow"]) -> str:
    """Return a sentence where replies in words say that no image came."""
    said = [row.said for call in calls for row in call.answers if row.said]
    blind = [text for text in said if _BLIND.search(text)]
    if not blind:
        return ""
    return (
        f"{len(blind):,} of {len(said):,} replies say that there is no image, such as "
        f"{' '.join(blind[0].split())[:QUOTED]!r}: {remedy('no image')}"
    )


def silence(calls: Sequence["CallRow"]) -> str:
    """Return how many questions went unanswered, and mostly why, as a sentence; "" for few."""
    asked, reasons = unanswered(calls)
    silent = reasons.total()
    if not silent or silent < SILENT * asked:
        return ""
    often, times = reasons.most_common(1)[0]
    share = f"{silent:,} of {asked:,} questions ({100 * silent / asked:.1f} %)"
    tells = "no rate tells what the model sees there"
    if silent > MUTE * asked:
        tells = "the rates tell of that, and nothing is certified"
    return (
        f"{share} went unanswered, most often ({times:,} times) with {often[:QUOTED]!r}: {tells}; "
        f"to mend it, {remedy(often)}"
    )


def _said(row: "AnswerRow") -> float | str | None:
    """The answer as the model gave it; None where there is none, or none of one model."""
    if row.unanswered is not None:
        return None
    return row.answer if row.said is None else row.said


def drifted(repeat_probes: Repeated) -> str:
    """What answers that differ tell."""
    return (
        f"{repeat_probes.differ} of {repeat_probes.answers} answers asked again differ by more "
        f"than {TOLERANCE:g}: a model whose answers vary by chance does that, and so does one that "
        "changed during the audit, for which no certificate holds"
    )


def fallen_back(ways: "Mapping[str, WayFacts]") -> list[str]:
    """What was asked of a model's server in vain, and where P(yes) comes from instead."""
    found = []
    for side, way in ways.items():
        server = f"the server of model {side.upper()}" if side else "the server"
        source = kind(way.yes_from)
        vain = {kind(one): why for one, why in way.instead.items() if kind(one) != source}
        tried = [f"{_IN_VAIN[why]} {_ASKED[name]}" for name, why in vain.items()]
        if tried:
            found.append(f"{server} {' and '.join(tried)}, so P(yes) comes from {_SOURCES[source]}")
        if way.without:
            names = some([_OPTIONS.get(name, name) for name in way.without], len(way.without))
            found.append(f"{server} refuses {names}, so requests do without from then on")
        if way.partly:
            found.append(
                f"{server} left {_ASKED[source]} out of replies although asked for: those were "
                "read as words, in which P(yes) is 0 or 1"
            )
    return found


def _why_emptied(facts: "Facts") -> str:
    certificate = facts.certificate
    if certificate is None or certificate.guarantee == "all" or len(certificate.sizes) == 1:
        return "the model's answers changed during the audit, so it is not certified"
    count, share = len(certificate.sizes), 100 * (1 - certificate.confidence)
    return (
        f"with {count} intervals, each by itself, about {share:.3g} % of them may do so by chance; "
        "otherwise the model's answers changed during the audit (repeat probes would tell); it is "
        "invalidated, so not certified, which says nothing of the others"
    )


def no_better(lower: float, constant: float) -> bool:
    """Return whether a model certainly loses as much as a constant answer that errs at all."""
    return 0 < constant <= lower
