"""What a reader of a result has to be told before trusting it, one sentence each."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from ..engine.options import FIRST_LOOK
from ..engine.repeat_probes import TOLERANCE, Repeated
from ..models.network.elicitation import kind
from ..types import SIDES

if TYPE_CHECKING:
    from ..journal.facts import Facts, RejudgedFacts, WayFacts
    from ..journal.rows import AnswerRow, CallRow

NAMED = 3
"""Targets that are named in one sentence, at most."""
MUTE = 0.5
"""Share of questions without an answer above which the rates are about little else."""
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
ALIKE = 20
"""Calls after which answers that are all the same are worth a word."""


def cautions(
    facts: "Facts",
    targets: pd.DataFrame,
    repeat_probes: Repeated | None,
    calls: Sequence["CallRow"] = (),
) -> list[str]:
    """The sentences; ``targets`` as in ``results.Result``, ``facts`` and ``calls`` of its
    journal."""
    found = [*facts.warnings, *_replayed(facts), *_lost_batches(facts), *_left_out(facts)]
    found += fallen_back(facts.ways)
    if (said := constant(facts, calls)) is not None:
        found.append(
            f"the model gave the same answer ({said}) in all {len(calls):,} calls, whatever the "
            "image: so do the untouched model.py of avtt init and a model that is not shown its "
            "images, and the rates then tell nothing"
        )
    if lost := unanswered(calls):
        found.append(lost)
    if facts.rejudged is not None:
        found.append(_judged_anew(facts.rejudged))
    if facts.model_changed:
        found.append(
            "the model's file, parameters or preprocessing changed since the audit began; a "
            "certificate is about one model, so begin a new audit unless the change cannot alter "
            "any answer"
        )
    if (why := no_slices(facts, calls)) is not None:
        found.append(f"no slice was found: {why}")
    found += _resumed_otherwise(facts)
    if emptied := _names(targets, "emptied"):
        found.append(f"nothing is left of the interval of {emptied}: {_why_emptied(facts)}")
    if moved := _names(targets, "invalidated", but="emptied"):
        found.append(
            f"the estimate of {moved} had to be moved to lie within its interval: by chance, or "
            "because the model's answers changed during the audit (repeat probes would tell)"
        )
    if repeat_probes is not None and repeat_probes.differ:
        found.append(drifted(repeat_probes))
    if excluded := _excluded(targets):
        found.append(f"questions that turned out not to count: {excluded}; " + _treated(facts))
    return found


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


def _resumed_otherwise(facts: "Facts") -> list[str]:
    """What predicts losses since the audit was resumed, where it is not what did before."""
    other = {
        "the self-taught proxy came out otherwise when the audit was resumed (another machine, "
        "or another version of torch)": facts.self_taught_changed,
        "the features of source images were others when the audit was resumed (another machine, "
        "or another choice of features)": facts.features_changed,
    }
    then = "draws since then are not those of an undisturbed audit; every interval holds all the"
    return [f"{what}: {then} same" for what, changed in other.items() if changed]


def _left_out(facts: "Facts") -> list[str]:
    """A sentence where images without a region were not asked about."""
    count = facts.protocol.left_out
    if not count:
        return []
    return [
        f"{count:,} of {count + facts.space.samples:,} images were left out, as nothing is marked "
        "in their masks: every rate, that of unchanged images, too, is of images with a region"
    ]


def constant(facts: "Facts", calls: Sequence["CallRow"]) -> str | None:
    """What was answered, in words, where a model answers the same about every image.

    Each concept may have an answer of its own. None where answers differ, where they are too few
    to tell or scores of masks, and where all are right: every image may show the same.
    """
    rates = facts.settings.oracle.rates
    rows = [row for call in calls for row in call.answers if _said(row) is not None]
    if len({row.call for row in rows}) < ALIKE or "EFR" in rates:
        return None
    if dict(rates) == dict(SIDES) and all(row.answer == row.truth for row in rows):
        return None
    said = {(row.question % len(facts.space.concepts), _said(row)) for row in rows}
    values = list(dict.fromkeys(str(_said(row)) for row in rows))
    return _listed(values) if len(said) == len({concept for concept, _ in said}) else None


def unanswered(calls: Sequence["CallRow"]) -> str:
    """A sentence where more than half of what was asked went unanswered, else ""."""
    rows = [row for call in calls for row in call.answers if row.loss is not None]
    reasons = [row.unanswered for row in rows if row.unanswered and not row.excluded]
    if len(reasons) <= MUTE * len(rows):
        return ""
    often, times = Counter(reasons).most_common(1)[0]
    return (
        f"{len(reasons):,} of {len(rows):,} questions went unanswered, most often ({times:,} "
        f"times) with {often[:QUOTED]!r}: the rates tell of that, and little of what the model sees"
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
        f"than "
        f"{TOLERANCE:g}: a model whose answers vary by chance does that, and so does one that "
        "changed during the audit, for which no certificate holds"
    )


def _judged_anew(source: "RejudgedFacts") -> str:
    return (
        f"the answers are those of {source.source!r} (journal {source.head[:12]}), which "
        f"{source.oracle} judged; nothing was asked again. Intervals hold for an oracle that was "
        "chosen without looking at these answers: for one that was tuned on them, as a threshold "
        "may be, nothing is certified before another audit, with another seed, has asked anew"
    )


def _replayed(facts: "Facts") -> list[str]:
    if facts.replay is None:
        return []
    if facts.certificate is not None and facts.certificate.versus is None:
        return [
            f"the first {facts.replay.draws} questions are those of an earlier audit of a model: "
            "intervals hold only if whoever answered them had not seen what that audit found"
        ]
    return [
        f"the first {facts.replay.draws} questions are those of an earlier audit of model A: "
        "intervals hold only if model B was made, and the targets were chosen, without looking "
        "at what that audit asked or found"
    ]


def _lost_batches(facts: "Facts") -> list[str]:
    count = sum(batch.lost for batch in facts.batches)
    if not count:
        return []
    batches, them = ("batch", "it") if count == 1 else ("batches", "them")
    return [
        f"of {count} {batches} nobody could tell whether the provider took {them}: the cost counts "
        f"all calls of {them} at their worst price"
    ]


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
        if way.partly:
            found.append(
                f"{server} left {_ASKED[source]} out of replies although asked for: those were "
                "read as words, in which P(yes) is 0 or 1"
            )
    return found


def _why_emptied(facts: "Facts") -> str:
    shown = "the last interval that was not empty is shown"
    certificate = facts.certificate
    if certificate is None or certificate.guarantee == "all" or len(certificate.sizes) == 1:
        return f"the model's answers changed during the audit, so it is not certified; {shown}"
    count, share = len(certificate.sizes), 100 * (1 - certificate.confidence)
    return (
        f"with {count} intervals, each by itself, about {share:.3g} % of them may do so by chance; "
        "otherwise the model's answers changed during the audit (repeat probes would tell); it is "
        f"invalidated, so not certified, which says nothing of the others; {shown}"
    )


def _names(targets: pd.DataFrame, column: str, but: str | None = None) -> str:
    """The targets for which ``column`` is true, and ``but`` is not, in words; "" for none."""
    if column not in targets:
        return ""
    chosen = targets[column].astype(bool)
    if but is not None:
        chosen &= ~targets[but].astype(bool)
    names = targets.loc[chosen, "target"].tolist()
    return _listed([repr(name) for name in names])


def _excluded(targets: pd.DataFrame) -> str:
    if "excluded" not in targets:
        return ""
    some = targets[targets["excluded"] > 0].sort_values("excluded", ascending=False)
    return _listed([f"{row.excluded} of {row.target!r}" for row in some.itertuples()])


def _treated(facts: "Facts") -> str:
    if facts.certificate is None or facts.certificate.bets.ratio:
        return "rates are over the questions that count"
    return "the estimate takes each as 1/2, the interval as 0 to 1"


def _listed(words: list[str]) -> str:
    more = f" and {len(words) - NAMED} more" if len(words) > NAMED else ""
    return ", ".join(words[:NAMED]) + more
