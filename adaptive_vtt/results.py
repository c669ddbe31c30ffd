"""What a journal says: judged questions as a table, confusion counts, raw sample figures."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .canaries import Repeated, repeated
from .captions.findings import Findings, found
from .cautions import cautions
from .certify import Bounds, Certifier, derive
from .certify.verify import recompute
from .journal import Journal
from .oracles.base import SIDES
from .rows import EXCLUDED, DrawRow

METRICS = ("sensitivity", "specificity", "precision", "f1", "kappa")


@dataclass(frozen=True)
class Result:
    """How an audit ended.

    ``targets``: one row per target with target, estimate, lower, upper, half_width,
    certified, questions, and, in audits that certify, size, variance_ratio (of the draws
    against uniform ones), effective_draws and more_calls. In others, estimates are raw
    sample figures and carry no interval (NaN). ``derived``: what follows from certified
    targets (balanced accuracy, kappa, BE ...), one row per quantity with estimate, lower,
    upper and note (what to mind, or ""); no rows where nothing follows.
    ``reason``: why it stopped, None while it has not. ``scoring``: how replies in words were
    read, None where there are none. ``lost``: calls that were on their way when the audit was
    interrupted, and may have been paid for twice. ``captions``: what was found in captions.
    ``canaries``: how many answers asked again differ. ``warnings``: what to know before
    trusting the rest, a sentence each. In audits that certify, ``targets`` also says whether
    an interval ``emptied``, whether the estimate went ``astray`` and had to be moved into it,
    and how many questions were ``excluded`` as they did not count.
    """

    targets: pd.DataFrame
    calls: int
    questions: int
    cost: float
    reason: str | None
    waiting: int
    derived: pd.DataFrame
    scoring: str | None = None
    lost: int = 0
    captions: Findings | None = None
    canaries: Repeated | None = None
    warnings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The result for JSON; what is unknown is null."""
        return {
            "targets": _records(self.targets),
            "derived": _records(self.derived),
            "calls": self.calls,
            "questions": self.questions,
            "cost": self.cost,
            "stop_reason": self.reason,
            "waiting": self.waiting,
            "scoring": self.scoring,
            "lost": self.lost,
            "captions": None if self.captions is None else self.captions.as_dict(),
            "canaries": None if self.canaries is None else self.canaries.as_dict(),
            "warnings": list(self.warnings),
        }


def _records(table: pd.DataFrame) -> list[dict[Hashable, Any]]:
    return table.astype(object).where(table.notna(), None).to_dict(orient="records")


def outcomes(journal: Journal) -> pd.DataFrame:
    """One row per judged question, in draw order.

    Columns: draw, call, question, sample, relation, severity, concept, truth, answer (NaN:
    unanswered), unanswered (reason or None), loss, coordinate, elapsed.
    """
    space = journal.facts()["space"]
    concepts, variants = space["concepts"], space["variants"]
    draws = {row.call: row for row in journal.draws()}
    records = []
    for call in sorted(journal.calls(), key=lambda c: draws[c.call].draw):
        drawn = draws[call.call]
        for row in call.answers:
            if row.loss is None:
                continue
            image, concept = divmod(row.question, len(concepts))
            relation, severity = variants[image % len(variants)]
            records.append(
                (drawn.draw, row.call, row.question, drawn.sample, relation, severity,
                 concepts[concept], row.truth, row.answer, row.unanswered, row.loss,
                 row.coordinate, call.elapsed)
            )  # fmt: skip
    columns = [
        "draw", "call", "question", "sample", "relation", "severity", "concept", "truth",
        "answer", "unanswered", "loss", "coordinate", "elapsed",
    ]  # fmt: skip
    table = pd.DataFrame.from_records(records, columns=columns)
    return table.astype({"answer": float, "coordinate": float, "loss": float})


def confusion(table: pd.DataFrame, by: str | Sequence[str]) -> pd.DataFrame:
    """Counts tn, fp, fn, tp and unanswered, and METRICS, per group of an outcomes table.

    A metric whose denominator is zero is NaN. Unanswered questions stand apart.
    """
    keys = [by] if isinstance(by, str) else list(by)
    true, said = table["truth"] == 1, table["answer"].notna()
    yes = true ^ (table["loss"] >= 0.5)  # as the oracle saw it, whatever its threshold
    parts = table[keys].assign(
        tn=said & ~yes & ~true, fp=said & yes & ~true, fn=said & ~yes & true,
        tp=said & yes & true, unanswered=~said,
    )  # fmt: skip
    counts = parts.groupby(keys, sort=False).sum()
    return counts.join(_metrics(counts))


def _metrics(counts: pd.DataFrame) -> pd.DataFrame:
    tn, fp, fn, tp = (counts[c].astype(float) for c in ("tn", "fp", "fn", "tp"))
    total = tn + fp + fn + tp
    chance = (tp + fp) * (tp + fn) + (tn + fn) * (tn + fp)
    figures = {
        "sensitivity": tp / (tp + fn),
        "specificity": tn / (tn + fp),
        "precision": tp / (tp + fp),
        "f1": 2 * tp / (2 * tp + fp + fn),
        "kappa": ((tp + tn) * total - chance) / (total**2 - chance),
    }
    return pd.DataFrame(figures).replace([np.inf, -np.inf], np.nan)


def summarise(journal: Journal, certifier: Certifier | None = None) -> Result:
    """The result of a journal: certified targets where there are any, else raw figures.

    While an audit is running its ``certifier`` knows the intervals; without one they are
    taken from the journal, or recomputed from its rows.
    """
    table, facts = outcomes(journal), journal.facts()
    calls, draws, sources = journal.calls(), journal.draws(), journal.sources()
    ended = facts.get("ended")
    named = facts["settings"].get("oracle", {}).get("rates", SIDES)
    targets, rates = _targets(table, named), {}
    if facts.get("certificate"):
        targets = _certified(journal, facts, certifier, draws)
        rows = targets.itertuples()
        rates = {str(t.target): Bounds(t.estimate, t.lower, t.upper) for t in rows}
    canaries = repeated(sources, calls)
    return Result(
        targets=targets,
        calls=len(draws) + len(sources),
        questions=len(table),
        cost=sum(c.cost for c in calls) + sum(s.cost for s in sources),
        reason=ended["reason"] if ended else None,
        waiting=len(draws) - len(calls),
        derived=derive(facts, rates),
        lost=facts.get("interrupted", 0),
        captions=found(calls, draws),
        canaries=canaries,
        warnings=tuple(cautions(facts, targets, canaries)),
        scoring=facts["settings"].get("oracle", {}).get("regime"),
    )


def _certified(
    journal: Journal, facts: dict[str, Any], certifier: Certifier | None, draws: list[DrawRow]
) -> pd.DataFrame:
    rows = certifier.table() if certifier is not None else facts.get("intervals")
    if rows is None:
        aim = facts["certificate"]["aim"]
        rows = [
            {
                "target": i.target,
                "estimate": i.estimate,
                "lower": i.lower,
                "upper": i.upper,
                "half_width": (i.upper - i.lower) / 2,
                "certified": (i.upper - i.lower) / 2 <= aim and not i.emptied,
                "emptied": i.emptied,
            }
            for i in recompute(journal, draws)
        ]
    calls = {c.call: c for c in journal.calls()}
    asked, excluded = [0] * len(rows), [0] * len(rows)
    for draw in draws:
        out = (
            {a.question for a in calls[draw.call].answers if a.excluded}
            if draw.call in calls
            else ()
        )
        for move in draw.moves if draw.call in calls else ():
            asked[move.target] += len(move.members)
            excluded[move.target] += sum(q in out for q in move.members) if out else 0
    return pd.DataFrame(rows).assign(questions=asked, excluded=excluded)


def _targets(table: pd.DataFrame, rates: Mapping[str, int]) -> pd.DataFrame:
    """Raw figures, with the concepts' ``rates`` by name: which truth each is about."""
    rows = [_target("overall error", table)]
    for concept, part in table.groupby("concept", sort=False):
        for rate, truth in rates.items():
            rows.append(_target(f"{concept}: {rate}", part[part["truth"] == truth]))
    for relation, part in table.groupby("relation", sort=False):
        rows.append(_target(f"relation {relation}: error", part))
    return pd.DataFrame(rows)


def _target(name: Hashable, part: pd.DataFrame) -> dict[str, Any]:
    """Raw figures; questions that do not count are left out of the mean."""
    counted = part[~part["unanswered"].fillna("").astype(str).str.startswith(EXCLUDED)]
    return {
        "target": str(name),
        "estimate": float(counted["loss"].mean()) if len(counted) else float("nan"),
        "lower": float("nan"),
        "upper": float("nan"),
        "half_width": float("nan"),
        "certified": False,
        "questions": len(part),
    }
