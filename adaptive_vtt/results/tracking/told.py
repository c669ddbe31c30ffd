"""What is told of an audit: settings that are harmless, and where its targets stand.

Settings are a list of what is shared, not of what is left out: of the model its name and version
alone, so neither its address nor headers, keys, commands or options of anybody's own.
"""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...certify.comparison import Comparison
from ...journal.facts import Facts
from ...stopping import State
from .backends import Value

SHARED = ("space", "audit", "stop", "certify")
"""Sections of a SPEC.toml whose fields are told ..."""
APART = {"options", "strategy_options", "proxies", "prior_journal", "cohort", "where"}
"""... but for these, which hold paths, and texts of anybody's own."""
LONGEST = 500
"""Characters of a setting: the least that a back end cuts at."""


def identity(facts: Facts, folder: Path) -> str:
    """Letters and digits that name the audit in that folder: the same when it is gone on with.

    Nothing follows from them of the audit's key, nor of where the folder is.
    """
    return hashlib.sha256(f"tracked {facts.key} {folder}".encode()).hexdigest()[:16]


def settings(facts: Facts) -> dict[str, Value]:
    """What the audit was begun with, by name; the spec's own fields begin with their section."""
    chosen, space, certificate = facts.settings, facts.space, facts.certificate
    found: dict[str, Any] = {
        "model": chosen.model,
        "model version": facts.model_version,
        "dataset": space.dataset,
        "samples": space.samples,
        "questions": space.size,
        "oracle": chosen.oracle.name,
        "strategy": chosen.strategy,
        "seed": chosen.seed,
        "exploration": chosen.exploration,
        "stops at": "; ".join(facts.stop),
    }
    if certificate is not None:
        found |= {
            "targets": ", ".join(certificate.targets),
            "confidence": certificate.confidence,
            "guarantee": certificate.guarantee,
        }
    spec = facts.spec or {}
    for section in SHARED:
        for name, value in (spec.get(section) or {}).items():
            if name not in APART:
                found[f"{section}.{name}"] = value
    return {name: _short(value) for name, value in found.items() if value is not None}


def _short(value: Any) -> Value:
    if isinstance(value, bool) or not isinstance(value, int | float):
        text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
    return value


def figures(
    state: State,
    cost: float,
    rows: list[dict[str, Any]] | None,
    compare: Comparison | None,
) -> dict[str, float]:
    """Where the audit stands. ``rows``: of every target, None where nothing is certified.
    ``compare``: where two models are compared; then estimate and ends are of their difference,
    R_A - R_B."""
    found = {"calls": float(state.calls), "questions": float(state.questions), "cost": cost}
    if rows is None:
        return {**found, "uncertainty": state.mean}
    for k, row in enumerate(rows):
        found.update(_of_target(k, row, compare))
    return found


def _of_target(
    k: int, row: Mapping[str, Any], compare: Comparison | None
) -> Iterator[tuple[str, float]]:
    ends = (row["estimate"], row["lower"], row["upper"])
    if compare is not None:
        ends = compare.ends(k, *ends)
    named = ("estimate" if compare is None else "difference", "lower", "upper")
    for name, value in zip(named, ends, strict=True):
        yield f"{name}/{row['target']}", float(value)
    yield f"half-width/{row['target']}", float(ends[2] - ends[1]) / 2
