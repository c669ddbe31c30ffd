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
from scipy.special import ndtr

from ...oracles.labels import margin
from ...types import Floats, JsonObject
from ..outcomes import confusion
from .answers import Words
from .evidence import Evidence, Replay
from .plots import chart, figure_of, frame
from .section import Section, amount, data, exact

HELD = 0.95
"""Share of a concept's bins that its band holds."""
CARDS = 60
"""At most so many concepts get a small picture; the list names them all."""
MAX_CALLS = 300
"""Calls that are learnt from, evenly spread over the audit."""
UNFITTED = MAX_CALLS * 1000
"""More answers than there are: the kernel keeps its usual weights, as fitting takes seconds."""
AXES = {"questions": "questions asked so far", "calls": "calls answered so far"}


def answers_section(evidence: Evidence) -> Section | None:
    """Show one large plot, a list to choose the concept from, and all concepts small. None for
    words."""
    if isinstance(evidence.answers, Words):
        return None
    concepts, replay = evidence.concepts, evidence.replay
    bands = band(replay)
    quarters: list[list[int]] = (
        confusion(evidence.table, "concept")[["tn", "fp", "fn", "tp"]]
        .reindex(concepts)
        .fillna(0)
        .to_numpy(int)
        .tolist()
    )
    # per concept mean and band, [bin, count] of bins hit, and [tn, fp, fn, tp]
    curves = {
        "grid": replay.grid.tolist(),
        "mean": np.round(np.maximum(replay.mean, 0), 3).tolist(),
        "low": np.round(bands[0], 3).tolist(),
        "high": np.round(bands[1], 3).tolist(),
        "hits": [[[int(b), int(row[b])] for b in np.flatnonzero(row)] for row in replay.counts],
        "marginal": marginal(evidence, len(replay.grid)),
        "sided": evidence.answers.sided,
        "quarters": quarters,
    }
    heads = ["concept", "true negatives", "false positives", "false negatives", "true positives"]
    rows = [[name, *map(amount, row)] for name, row in zip(concepts, quarters, strict=True)]
    label = "Answer model of the chosen concept"
    return Section.of(
        evidence,
        "Answer GPs per concept",
        "beliefs",
        "beliefs.html",
        quarters=quarters if len(concepts) > 1 else [],
        most=CARDS,
        chart=frame("beliefs-chart", label, heads, rows[:CARDS], len(rows[CARDS:])),
        data=data("beliefs-data", curves),
    )


def band(replay: Replay) -> tuple[Floats, Floats]:
    """Return C x bins, from where to where HELD of each concept's counts lie around the mean.

    A count scatters as a Poisson count does, about a mean that is itself uncertain; what that
    leaves out, as the smoothing hides peaks, widens the band until it holds that share.
    """
    mean = np.maximum(replay.mean, 0.0)
    spread = np.sqrt(replay.deviation**2 + mean)
    off = np.abs(replay.counts - mean) / np.maximum(spread, 1e-9)
    times = np.quantile(off, HELD, axis=1, method="higher")[:, None]
    return np.maximum(mean - times * spread, 0.0), mean + times * spread


# -- the performance GPs summed up -----------------------------------------------------------------


def marginal(evidence: Evidence, bins: int) -> list[list[float]] | list[None]:
    """Return C x bins, the answers that performance GPs expect in each bin of the coordinate.

    Nones where answers have no margins: fewer than two, words, or nothing but 0 and 1.
    """
    import torch

    from ...surrogates import QuestionGP
    from ...surrogates.loss_mean import Losses

    calls, unknown = evidence.calls, [None] * len(evidence.concepts)
    places = np.unique(np.linspace(0, len(calls) - 1, min(len(calls), MAX_CALLS)).astype(int))
    rows = [
        (a.question, a.truth, a.loss, m)
        for k in places.tolist()
        for a in calls[k].answers
        if a.loss is not None
        and a.truth is not None
        and (m := margin(a.truth, a.coordinate, a.details)) is not None
    ]
    if len(rows) < 2 or not evidence.answers.sided:
        return unknown
    question, truth, loss, value = (np.array(column) for column in zip(*rows, strict=True))
    sample, variant, concept = evidence.space.numbering.parts(question)
    gp = QuestionGP(
        [evidence.relations.index(relation) for relation, _ in evidence.variants],
        [severity for _, severity in evidence.variants],
        len(evidence.concepts),
        shared=evidence.settings.answers == "all",
        first_fit=UNFITTED,
    )
    columns = sample, variant, concept, truth.astype(np.int64), loss, value
    at, which, about, side, lost, margins_of = map(torch.from_numpy, columns)
    gp.observe(Losses(at, which, about, side, lost, margins_of))
    margins = gp.margins()
    if margins is None:
        return unknown
    total = np.zeros((len(evidence.concepts), bins))
    inside = _shares(margins.mean.numpy(), margins.variance.sqrt().numpy(), truth, bins)
    np.add.at(total, concept.astype(np.int64), inside)
    summed = total / (len(places) / len(calls))
    shown: list[list[float]] = np.round(np.maximum(summed, 0), 3).tolist()
    return shown


def _shares(mean: Floats, deviation: Floats, truth: Floats, bins: int) -> Floats:
    """Return n x bins, the probability that each answer falls into each bin of the coordinate.

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


def uncertainty_section(evidence: Evidence) -> Section | None:
    """Show mean, maximum, and one concept of choice. None for words."""
    if isinstance(evidence.answers, Words):
        return None
    replay = evidence.replay
    # T x 2 C, NaN where nothing is left to ask
    sides = np.ma.masked_invalid(replay.uncertainty.reshape(len(replay.uncertainty), -1))
    of_concepts = np.ma.masked_invalid(replay.uncertainty).mean(axis=2)
    mean = sides.mean(axis=1).filled(np.nan).tolist()
    most = {"y": sides.max(axis=1).filled(np.nan).tolist(), "name": "most uncertain side"}
    lines: list[JsonObject] = [
        *(
            {"y": y, "name": name, "colour": "third", "only": str(k)}
            for k, (name, y) in enumerate(
                zip(evidence.concepts, of_concepts.filled(np.nan).T.tolist(), strict=True)
            )
        ),
        {**most, "colour": "muted", "dash": "dot"},
        {"y": mean, "name": "mean", "colour": "accent", "width": 3},
    ]
    levels = [
        {
            "at": tau,
            "text": f"stops when the {over} is at most {exact(tau)}",
            "colour": "accent" if over == "mean" else "muted",
        }
        for over, tau in evidence.facts.stop_levels
    ]
    axis = {"title": "share of the prior", "range": [0, 1.06], "unit": "%"}
    views = {}
    for view, title in AXES.items():
        x = getattr(replay, view).tolist()
        views[view] = figure_of(
            {"title": title}, axis, [{"x": x, **line} for line in lines], levels
        )
    return Section.of(
        evidence,
        "Uncertainty of the answer GPs",
        "uncertainty",
        "uncertainty.html",
        all=evidence.certificate is None,
        last=mean[-1],
        chart=chart("uncertainty-chart", views, "Uncertainty over questions asked"),
    )


SECTIONS = (answers_section, uncertainty_section)
