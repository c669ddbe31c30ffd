"""The answer GP of each concept (Concept-centric VTT, Figures 2 and 3), and what performance GPs
make of the same answers."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from ...types import Floats
from ..outcomes import confusion
from .evidence import Evidence
from .marginal import marginal
from .plots import frame
from .replay import Replay
from .section import Section, amount, data, fragment

HELD = 0.95
"""Share of a concept's bins that its band holds."""
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
        chart=_place(evidence),
        data=data("beliefs-data", _curves(evidence)),
    )
    return Section("Answers per concept: the paper’s answer GPs", "beliefs", html)


def _curves(evidence: Evidence) -> dict[str, Any]:
    """Per concept mean and band, [bin, count] of bins hit, and [tn, fp, fn, tp]."""
    replay, counts = evidence.replay, _quarters(evidence)
    low, high = band(replay)
    summed = marginal(evidence, len(replay.grid))
    return {
        "grid": replay.grid.tolist(),
        "mean": np.round(np.maximum(replay.mean, 0), 3).tolist(),
        "low": np.round(low, 3).tolist(),
        "high": np.round(high, 3).tolist(),
        "hits": [[[int(b), int(row[b])] for b in np.flatnonzero(row)] for row in replay.counts],
        "marginal": [None] * len(counts)
        if summed is None
        else np.round(np.maximum(summed, 0), 3).tolist(),
        "sided": evidence.sided,
        "quarters": counts,
    }


def band(replay: Replay) -> tuple[Floats, Floats]:
    """C x bins: from where to where HELD of each concept's counts lie around the mean.

    A count scatters as a Poisson count does, about a mean that is itself uncertain; what that
    leaves out, as the smoothing hides peaks, widens the band until it holds that share.
    """
    mean = np.maximum(replay.mean, 0.0)
    spread = np.sqrt(replay.deviation**2 + mean)
    off = np.abs(replay.counts - mean) / np.maximum(spread, 1e-9)
    times = np.quantile(off, HELD, axis=1, method="higher")[:, None]
    return np.maximum(mean - times * spread, 0.0), mean + times * spread


def _quarters(evidence: Evidence) -> list[list[int]]:
    counts = confusion(evidence.table, "concept")[["tn", "fp", "fn", "tp"]]
    found: list[list[int]] = counts.reindex(evidence.concepts).fillna(0).to_numpy(int).tolist()
    return found


def _place(evidence: Evidence) -> Markup:
    heads = ["concept", "true negatives", "false positives", "false negatives", "true positives"]
    counts = zip(evidence.concepts, _quarters(evidence), strict=True)
    rows = [[name, *map(amount, row)] for name, row in counts]
    label = "Answer model of the chosen concept"
    return frame("beliefs-chart", label, heads, rows[:CARDS], len(rows[CARDS:]))


def _cards(evidence: Evidence) -> list[Card]:
    replay, table = evidence.replay, evidence.table
    wrong = table[table["answer"].notna() & (table["loss"] >= 0.5)]["concept"].value_counts()
    bands = band(replay)
    return [
        _card(i, name, replay, bands, int(wrong.get(name, 0)))
        for i, name in enumerate(evidence.concepts[:CARDS])
    ]


def _card(place: int, name: str, replay: Replay, bands: tuple[Floats, Floats], wrong: int) -> Card:
    mean, low, high = (np.sqrt(y[place][::2]) for y in (np.maximum(replay.mean, 0), *bands))
    bottom, top = -0.5, max(2.5, high.max())
    x = replay.grid[::2] * WIDTH

    def points(y: Floats) -> list[str]:
        places = HEIGHT * (1 - (y - bottom) / (top - bottom))
        return [f"{a:g} {b:.1f}" for a, b in zip(x.tolist(), places.tolist(), strict=True)]

    band = "M" + "L".join(points(high) + points(low)[::-1]) + "Z"
    line = "M" + "L".join(points(mean))
    zero = round(HEIGHT * float(1 + bottom / (top - bottom)), 1)
    return Card(place, name, band, line, zero, int(replay.counts[place].sum()), wrong)
