"""What a reader of a result has to be told before trusting it, one sentence each."""

from typing import TYPE_CHECKING

import pandas as pd

from .engine.canaries import TOLERANCE, Repeated

if TYPE_CHECKING:
    from .journal.facts import Facts, RejudgedFacts

NAMED = 3
"""Targets that are named in one sentence, at most."""


def cautions(facts: "Facts", targets: pd.DataFrame, canaries: Repeated | None) -> list[str]:
    """The sentences; ``targets`` as in ``results.Result``, ``facts`` of its journal."""
    found = list(facts.warnings)
    if facts.rejudged is not None:
        found.append(_judged_anew(facts.rejudged))
    if facts.model_changed:
        found.append(
            "the model's file or parameters changed since the audit began; a certificate is about "
            "one model, so begin a new audit unless the change cannot alter any answer"
        )
    if facts.self_taught_changed:
        found.append(
            "the self-taught proxy came out otherwise when the audit was resumed (another machine, "
            "or another version of torch): draws since then are not those of an undisturbed "
            "audit; every interval holds all the same"
        )
    if emptied := _names(targets, "emptied"):
        found.append(f"nothing is left of the interval of {emptied}: {_why_emptied(facts)}")
    if astray := _names(targets, "astray"):
        found.append(
            f"the estimate of {astray} had to be moved to lie within its interval: by chance, or "
            "because the model's answers changed during the audit (canaries would tell)"
        )
    if canaries is not None and canaries.differ:
        found.append(drifted(canaries))
    if excluded := _excluded(targets):
        found.append(f"questions that turned out not to count: {excluded}; " + _treated(facts))
    return found


def drifted(canaries: Repeated) -> str:
    """What answers that differ tell."""
    return (
        f"{canaries.differ} of {canaries.answers} answers asked again differ by more than "
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


def _why_emptied(facts: "Facts") -> str:
    shown = "the last interval that was not empty is shown"
    certificate = facts.certificate
    if certificate is None or certificate.guarantee == "all" or len(certificate.sizes) == 1:
        return f"the model's answers changed during the audit, so it is not certified; {shown}"
    count, share = len(certificate.sizes), 100 * (1 - certificate.confidence)
    return (
        f"with {count} intervals, each by itself, about {share:.3g} % of them may do so by chance; "
        "otherwise the model's answers changed during the audit (canaries would tell); it is "
        f"contradicted, so not certified, which says nothing of the others; {shown}"
    )


def _names(targets: pd.DataFrame, column: str) -> str:
    """The targets for which ``column`` is true, in words; "" for none."""
    if column not in targets:
        return ""
    names = targets.loc[targets[column].astype(bool), "target"].tolist()
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
