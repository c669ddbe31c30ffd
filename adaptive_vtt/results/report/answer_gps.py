"""The answer GP of each concept (Concept-centric VTT, Figures 2 to 4), and the paper's answer GP
as the marginal of performance GPs.

The paper's performance model is a GP per concept over one coordinate, the answer (``answer_gp``).
Performance GPs extend it to questions: over image, relation and severity, of the margin by which
an answer is right (``question_gp``). ``marginal`` goes the way back: every answer is predicted from
those about other images, and what is predicted is summed up over all questions, so that the
coordinate alone is left. Observation from the journal, in which images are numbers: what pixels and
proxies add to these GPs while an audit runs is not in it.
"""

import numpy as np
import pandas as pd
from markupsafe import Markup
from scipy.special import ndtr

from ...oracles.labels import margin
from ...types import Floats, JsonObject
from ..outcomes import FAILED, confusion
from .content import Content
from .evidence import Evidence, Replay
from .plots import chart, figure_of, frame
from .section import Section, amount, data, exact

# -- answers per concept ---------------------------------------------------------------------------


HELD = 0.95
"""Share of a concept's bins that its band holds."""
CARDS = 60
"""At most so many concepts get a small picture; the list names them all."""
WIDTH, HEIGHT = 100, 36


def answers_section(evidence: Evidence) -> Section | None:
    """One large plot, a list to choose the concept from, and all concepts small. None for words."""
    if evidence.in_words:
        return None
    return Section.of(
        "Answers per concept: the paper’s answer GPs",
        "beliefs",
        "beliefs.html",
        concepts=evidence.concepts,
        cards=_cards(evidence) if len(evidence.concepts) > 1 else [],
        chart=_answers_place(evidence),
        data=data("beliefs-data", _curves(evidence)),
    )


def _curves(evidence: Evidence) -> JsonObject:
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


def _answers_place(evidence: Evidence) -> Markup:
    heads = ["concept", "true negatives", "false positives", "false negatives", "true positives"]
    counts = zip(evidence.concepts, _quarters(evidence), strict=True)
    rows = [[name, *map(amount, row)] for name, row in counts]
    label = "Answer model of the chosen concept"
    return frame("beliefs-chart", label, heads, rows[:CARDS], len(rows[CARDS:]))


def _cards(evidence: Evidence) -> list[JsonObject]:
    """Every concept at a glance: SVG paths of band and mean, and how many went wrong."""
    replay, table = evidence.replay, evidence.table
    wrong = table[table["answer"].notna() & (table["loss"] >= FAILED)]["concept"].value_counts()
    bands = band(replay)
    return [
        {
            "place": place,
            "name": name,
            "answered": int(replay.counts[place].sum()),
            "wrong": int(wrong.get(name, 0)),
            **_drawn(place, replay, bands),
        }
        for place, name in enumerate(evidence.concepts[:CARDS])
    ]


def _drawn(place: int, replay: Replay, bands: tuple[Floats, Floats]) -> JsonObject:
    mean, low, high = (np.sqrt(y[place][::2]) for y in (np.maximum(replay.mean, 0), *bands))
    bottom, top = -0.5, max(2.5, high.max())
    x = replay.grid[::2] * WIDTH

    def points(y: Floats) -> list[str]:
        places = HEIGHT * (1 - (y - bottom) / (top - bottom))
        return [f"{a:g} {b:.1f}" for a, b in zip(x.tolist(), places.tolist(), strict=True)]

    return {
        "band": "M" + "L".join(points(high) + points(low)[::-1]) + "Z",
        "line": "M" + "L".join(points(mean)),
        "zero": round(HEIGHT * float(1 + bottom / (top - bottom)), 1),
    }


# -- the performance GPs summed up -----------------------------------------------------------------


MAX_CALLS = 300
"""Calls that are learnt from, evenly spread over the audit."""
UNFITTED = MAX_CALLS * 1000
"""More answers than there are: the kernel keeps its usual weights, as fitting takes seconds."""


def marginal(content: Content, bins: int) -> Floats | None:
    """C x bins: answers that performance GPs expect in each bin of the coordinate, in all.

    None where answers have no margins: fewer than two, words, or nothing but 0 and 1.
    """
    chosen, share = _chosen(content)
    if len(chosen) < 2 or not content.sided:
        return None
    found = _margins(content, chosen)
    if found is None:
        return None
    mean, deviation, concept, truth = found
    inside = _shares(mean, deviation, truth, bins)
    total = np.zeros((len(content.concepts), bins))
    np.add.at(total, concept.astype(np.int64), inside)
    return total / share


def _chosen(content: Content) -> tuple[list[tuple[int, int, float, float]], float]:
    """Question, truth, loss and margin of the answers of some calls; and what share they are."""
    calls = content.calls
    places = np.unique(np.linspace(0, len(calls) - 1, min(len(calls), MAX_CALLS)).astype(int))
    rows = [
        (a.question, a.truth, a.loss, m)
        for k in places.tolist()
        for a in calls[k].answers
        if a.loss is not None
        and a.truth is not None
        and (m := margin(a.truth, a.coordinate, a.details)) is not None
    ]
    return rows, len(places) / max(len(calls), 1)


def _margins(
    content: Content, rows: list[tuple[int, int, float, float]]
) -> tuple[Floats, Floats, Floats, Floats] | None:
    """Mean and standard deviation of each margin, as predicted from others; concept and truth."""
    import torch

    from ...surrogates import QuestionGP
    from ...surrogates.loss_mean import Losses

    question, truth, loss, value = (np.array(column) for column in zip(*rows, strict=True))
    sample, variant, concept = content.facts.space.numbering.parts(question)
    relations, variants = content.relations, content.variants
    gp = QuestionGP(
        [relations.index(relation) for relation, _ in variants],
        [severity for _, severity in variants],
        len(content.concepts),
        shared=content.settings.answers == "all",
        first_fit=UNFITTED,
    )
    asked = (sample, variant, concept, truth.astype(np.int64))
    at, which, about, side, lost, margins = map(torch.from_numpy, (*asked, loss, value))
    gp.observe(Losses(at, which, about, side, lost, margins))
    found = gp.margins()
    if found is None:
        return None
    return found.mean.numpy(), found.variance.sqrt().numpy(), concept.astype(float), truth


def _shares(mean: Floats, deviation: Floats, truth: Floats, bins: int) -> Floats:
    """n x bins: the probability that each answer falls into each bin of the coordinate.

    With P the probability given to the truth, a = P / 2 + 1/2 where the concept is present, and
    1/2 - P / 2 where it is absent; the margin is the logit of P.
    """
    edges = (np.arange(1, bins) - 0.5) / (bins - 1)
    right = np.where(truth[:, None] == 1, 2 * edges - 1, 1 - 2 * edges)
    with np.errstate(divide="ignore"):
        clipped = np.clip(right, 0, 1)
        logit = np.log(clipped) - np.log1p(-clipped)
    below = ndtr((logit - mean[:, None]) / deviation[:, None])
    below = np.where(truth[:, None] == 1, below, 1 - below)
    return np.diff(below, axis=1, prepend=0.0, append=1.0)


# -- uncertainty -----------------------------------------------------------------------------------


AXES = {"questions": "questions asked so far", "calls": "calls answered so far"}


def uncertainty_section(evidence: Evidence) -> Section | None:
    """Mean, maximum, and one concept of choice. None for words."""
    if evidence.in_words:
        return None
    views = {view: _uncertainty_figure(evidence, view) for view in AXES}
    return Section.of(
        "Uncertainty of the answer GPs",
        "uncertainty",
        "uncertainty.html",
        concepts=evidence.concepts,
        rules=evidence.rules,
        all=evidence.certificate is None,
        last=float(_all_sides(evidence).mean(axis=1).iloc[-1]),
        chart=chart("uncertainty-chart", views, "Uncertainty over questions asked"),
    )


def _uncertainty_figure(evidence: Evidence, view: str) -> JsonObject:
    x = getattr(evidence.replay, view).tolist()
    levels = [
        {
            "at": tau,
            "text": f"stops when the {over} is at most {exact(tau)}",
            "colour": "accent" if over == "mean" else "bad",
        }
        for over, tau in evidence.facts.stop_levels
    ]
    axis = {"title": "share of the prior", "range": [0, 1.06], "unit": "%"}
    return figure_of({"title": AXES[view]}, axis, _uncertainty_lines(evidence, x), levels)


def _uncertainty_lines(evidence: Evidence, x: list[int]) -> list[JsonObject]:
    sides = _all_sides(evidence)
    concepts = [
        {
            "x": x,
            "y": sides[[2 * i, 2 * i + 1]].mean(axis=1).tolist(),
            "name": name,
            "colour": "third",
            "only": str(i),
        }
        for i, name in enumerate(evidence.concepts)
    ]
    most = {"name": "most uncertain side", "colour": "bad", "dash": "dot"}
    return [
        *concepts,
        {"x": x, "y": sides.max(axis=1).tolist(), **most},
        {"x": x, "y": sides.mean(axis=1).tolist(), "name": "mean", "colour": "accent", "width": 3},
    ]


def _all_sides(evidence: Evidence) -> pd.DataFrame:
    """T x 2 C: the uncertainty of each side of each concept, NaN where nothing is left to ask."""
    sides = evidence.replay.uncertainty
    return pd.DataFrame(sides.reshape(len(sides), -1))
