"""The answer GP of each concept (Concept-centric VTT, Figures 2 and 3)."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..results import confusion
from ..types import Floats
from .evidence import Evidence
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
    return Section("Answers per concept", "beliefs", html)


def implied_rates(evidence: Evidence) -> dict[tuple[int, int], float]:
    """(concept, side) -> the error rate the answer GP implies; sides never answered are left out.

    It is the share of the posterior mean's mass in the wrong one of the side's two quarters:
    FP / (TN + FP) where absent (0), FN / (TP + FN) where present (1). The line in the middle
    belongs to both sides; it is shared out as the answers that fell there were.
    """
    replay, told = evidence.replay, evidence.table[evidence.table["answer"].notna()]
    mass, middle = np.maximum(replay.mean, 0.0), replay.mean.shape[1] // 2
    places = {name: i for i, name in enumerate(evidence.concepts)}
    rates = {}
    groups: Any = told.groupby(["concept", "truth"], sort=False)  # the stubs know no tuples
    for (name, side), part in groups:
        place, at = places[name], part["coordinate"].to_numpy(float)
        among = replay.counts[place, middle]
        share = (np.abs(at - 0.5) <= 0.5 / (2 * middle)).sum() / among if among else 0.5
        # outwards from the middle: wrong answers first, then right ones
        half = mass[place, middle:] if side else mass[place, middle::-1]
        half = half * np.where(np.arange(middle + 1) == 0, min(share, 1.0), 1.0)
        wrong = half[: middle // 2].sum() + half[middle // 2] / 2
        if half.sum() > 0:
            rates[place, int(side)] = float(wrong / half.sum())
    return rates


def _curves(evidence: Evidence) -> dict[str, Any]:
    """Per concept mean, standard deviation, [bin, count] of bins hit, and [tn, fp, fn, tp]."""
    replay = evidence.replay
    counts = confusion(evidence.table, "concept")[["tn", "fp", "fn", "tp"]]
    return {
        "grid": replay.grid.tolist(),
        "mean": np.round(replay.mean, 3).tolist(),
        "deviation": np.round(replay.deviation, 3).tolist(),
        "hits": [[[int(b), int(row[b])] for b in np.flatnonzero(row)] for row in replay.counts],
        "quarters": counts.reindex(evidence.concepts).fillna(0).astype(int).to_numpy().tolist(),
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
