"""The answer GP of each concept (Concept-centric VTT, Figures 2 and 3), and what performance GPs
make of the same answers."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..outcomes import confusion
from ..types import Floats
from .evidence import Evidence
from .marginal import marginal
from .replay import Replay
from .section import Section, data, fragment

CARDS = 60
"""At most so many concepts get a small picture; the list names them all."""
WIDTH, HEIGHT = 100, 36


@dataclass(frozen=True)
class Card:
    """One concept at a glance: SVG paths of band and mean, and how many went wrong."""

    place: int
    name: str
    band: str
    line: str
    zero: float
    answered: int
    wrong: int


def section(evidence: Evidence) -> Section | None:
    """One large plot, a list to choose the concept from, and all concepts small. None for words."""
    if evidence.in_words:
        return None
    html = fragment(
        "beliefs.html",
        concepts=evidence.concepts,
        cards=_cards(evidence) if len(evidence.concepts) > 1 else [],
        data=data("beliefs-data", _curves(evidence)),
    )
    return Section("Answers per concept: the paper’s answer GPs", "beliefs", html)


def _curves(evidence: Evidence) -> dict[str, Any]:
    """Per concept mean, standard deviation, [bin, count] of bins hit, and [tn, fp, fn, tp]."""
    replay = evidence.replay
    counts = confusion(evidence.table, "concept")[["tn", "fp", "fn", "tp"]]
    counts = counts.reindex(evidence.concepts).fillna(0).astype(int)
    summed = marginal(evidence, len(replay.grid))
    return {
        "grid": replay.grid.tolist(),
        "mean": np.round(replay.mean, 3).tolist(),
        "deviation": np.round(replay.deviation, 3).tolist(),
        "hits": [[[int(b), int(row[b])] for b in np.flatnonzero(row)] for row in replay.counts],
        "marginal": [None] * len(counts) if summed is None else np.round(summed, 3).tolist(),
        "sided": evidence.sided,
        "quarters": counts.to_numpy().tolist(),
    }


def _cards(evidence: Evidence) -> list[Card]:
    replay, table = evidence.replay, evidence.table
    wrong = table[table["answer"].notna() & (table["loss"] >= 0.5)]["concept"].value_counts()
    return [
        _card(i, name, replay, int(wrong.get(name, 0)))
        for i, name in enumerate(evidence.concepts[:CARDS])
    ]


def _card(place: int, name: str, replay: Replay, wrong: int) -> Card:
    mean, spread = replay.mean[place][::2], 2 * replay.deviation[place][::2]
    low, high = _root(mean - spread), _root(mean + spread)
    bottom, top = min(-1.5, low.min()), max(2.5, high.max())
    x = replay.grid[::2] * WIDTH

    def points(y: Floats) -> list[str]:
        places = HEIGHT * (1 - (y - bottom) / (top - bottom))
        return [f"{a:g} {b:.1f}" for a, b in zip(x.tolist(), places.tolist(), strict=True)]

    band = "M" + "L".join(points(high) + points(low)[::-1]) + "Z"
    line = "M" + "L".join(points(_root(mean)))
    zero = round(HEIGHT * float(1 + bottom / (top - bottom)), 1)
    return Card(place, name, band, line, zero, int(replay.counts[place].sum()), wrong)


def _root(y: Floats) -> Floats:
    """Signed square root, which shows counts of 1 and of 100 in one picture."""
    return np.sign(y) * np.sqrt(np.abs(y))
