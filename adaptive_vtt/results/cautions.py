"""What a reader of a result has to be told before trusting it, one sentence each."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from ..engine.options import FIRST_LOOK
from ..engine.repeat_probes import TOLERANCE, Repeated
from ..errors import some
from ..models.network.elicitation import kind
from ..types import SIDES
from ..utils.web import sentences

if TYPE_CHECKING:
    from ..journal.facts import Facts, WayFacts
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
    """The sentences of cautions.txt. ``targets``: as in ``results.Result``; ``facts`` and
    ``calls``: of its journal."""
    certificate = facts.certificate
    lost_batches, left_out = sum(batch.lost for batch in facts.batches), facts.protocol.left_out
    images = facts.space.samples + left_out
    drifts = repeat_probes is not None and repeat_probes.differ
    return sentences(
        Path(__file__).with_suffix(".txt"),
        facts=facts,
        compared=certificate is not None and certificate.versus is not None,
        lost_batches=lost_batches,
        it="it" if lost_batches == 1 else "them",
        left_out=f"{left_out:,} of {images:,}" if left_out else "",
        fallen_back=fallen_back(facts.ways),
        same=constant(facts, calls),
        calls=f"{len(calls):,}",
        mute=unanswered(calls),
        quoted=repr,
        no_slice=no_slices(facts, calls),
        emptied=_names(targets, "emptied"),
        why_emptied=_why_emptied(facts),
        moved=_names(targets, "invalidated", but="emptied"),
        drifted=drifted(repeat_probes) if repeat_probes is not None and drifts else "",
        excluded=_excluded(targets),
        ratio=certificate is None or certificate.bets.ratio,
    )


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
    values = list(dict.fromkeys(" ".join(str(_said(row)).split()) for row in rows))
    return some(values, NAMED) if len(said) == len({concept for concept, _ in said}) else None


def unanswered(calls: Sequence["CallRow"]) -> dict[str, str]:
    """Where more than half of what was asked went unanswered: how many questions were ``silent``,
    and the commonest ``reason`` with its ``times``; else {}."""
    rows = [row for call in calls for row in call.answers if row.loss is not None]
    reasons = [row.unanswered for row in rows if row.unanswered and not row.excluded]
    if len(reasons) <= MUTE * len(rows):
        return {}
    often, times = Counter(reasons).most_common(1)[0]
    silent = f"{len(reasons):,} of {len(rows):,}"
    return {"silent": silent, "times": f"{times:,}", "reason": repr(often[:QUOTED])}


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


def _names(targets: pd.DataFrame, column: str, but: str | None = None) -> str:
    """The targets for which ``column`` is true, and ``but`` is not, in words; "" for none."""
    if column not in targets:
        return ""
    chosen = targets[column].astype(bool)
    if but is not None:
        chosen &= ~targets[but].astype(bool)
    names = targets.loc[chosen, "target"].tolist()
    return some([repr(name) for name in names], NAMED)


def _excluded(targets: pd.DataFrame) -> str:
    if "excluded" not in targets:
        return ""
    there = targets[targets["excluded"] > 0].sort_values("excluded", ascending=False)
    return some([f"{row.excluded} of {row.target!r}" for row in there.itertuples()], NAMED)
