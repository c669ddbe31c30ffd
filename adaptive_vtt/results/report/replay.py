"""The answer GPs learnt again from the journal, and their uncertainty along the way."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...types import Floats
from .content import Content

if TYPE_CHECKING:
    from ...surrogates import AnswerGP

CHECKPOINTS = 200
"""Uncertainty is measured at most so often."""

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Replay:
    """T checkpoints: ``calls`` and ``questions`` so far (T,), and uncertainty T x C x 2.

    ``uncertainty`` is relative to the prior, NaN on a side where nothing is left to ask.
    ``mean``, ``deviation`` and ``counts`` are C x bins, at the end.
    """

    calls: Counts
    questions: Counts
    uncertainty: Floats
    grid: Floats
    mean: Floats
    deviation: Floats
    counts: Counts


def replay(content: Content) -> Replay:
    """Learns all answers in draw order."""
    from ...surrogates import AnswerGP

    form = content.settings.form
    gp = AnswerGP(len(content.concepts), form=form, device="cpu")
    calls, questions = _checkpoints(content)
    measured = list(_measured(gp, content, questions))
    return Replay(
        calls,
        questions,
        np.stack(measured),
        gp.grid.numpy(),
        gp.mean().numpy(),
        gp.variance().sqrt().numpy(),
        gp.counts.numpy().astype(np.int64),
    )


def implied_rates(content: Content, learnt: Replay) -> dict[tuple[int, int], float]:
    """(concept, side) -> the error rate the answer GP implies; sides never answered are left out.

    A bin's coordinate, (P(yes) + truth) / 2, tells both the side and whether the answer is wrong.
    The rate is the wrong share of the posterior mean summed over the side's bins: FP / (TN + FP)
    where the concept is absent (0), FN / (TP + FN) where it is present (1). The middle bin belongs
    to both sides, and is divided as the answers in it are.
    """
    told = content.table[content.table["answer"].notna()]
    mass, middle = np.maximum(learnt.mean, 0.0), learnt.mean.shape[1] // 2
    places = {name: i for i, name in enumerate(content.concepts)}
    rates = {}
    groups: Any = told.groupby(["concept", "truth"], sort=False)  # the stubs know no tuples
    for (name, side), part in groups:
        place, at = places[name], part["coordinate"].to_numpy(float)
        among = learnt.counts[place, middle]
        share = (np.abs(at - 0.5) <= 0.5 / (2 * middle)).sum() / among if among else 0.5
        # outwards from the middle: wrong answers first, then right ones
        half = mass[place, middle:] if side else mass[place, middle::-1]
        half = half * np.where(np.arange(middle + 1) == 0, min(share, 1.0), 1.0)
        wrong = half[: middle // 2].sum() + half[middle // 2] / 2
        if half.sum() > 0:
            rates[place, int(side)] = float(wrong / half.sum())
    return rates


def _checkpoints(content: Content) -> tuple[Counts, Counts]:
    """Calls answered, and questions judged by then, at each checkpoint; 0 and all included."""
    places = {row.call: row.draw for row in content.draws}
    draws = np.sort([places[c.call] for c in content.calls]).astype(np.int64)
    judged = np.searchsorted(content.table["draw"].to_numpy(np.int64), draws, side="right")
    calls = np.unique(np.linspace(0, len(draws), CHECKPOINTS).round().astype(np.int64))
    return calls, np.concatenate([[0], judged])[calls].astype(np.int64)


def _measured(gp: "AnswerGP", content: Content, questions: Counts) -> Iterator[Floats]:
    """C x 2 relative uncertainty after so many questions each."""
    table = content.table
    concept = table["concept"].map({c: i for i, c in enumerate(content.concepts)})
    concepts = np.asarray(concept, dtype=np.int64)
    truths = np.asarray(table["truth"], dtype=np.int64)
    coordinates = np.asarray(table["coordinate"], dtype=np.float64)
    left = np.array(content.facts.space.cell_counts, dtype=np.int64)
    start = 0
    for end in questions.tolist():
        part = slice(start, end)
        np.subtract.at(left, (concepts[part], truths[part]), 1)
        _learn(gp, concepts[part], coordinates[part])
        relative = gp.uncertainty().numpy() / gp.prior_uncertainty
        yield np.where(left > 0, relative, np.nan)
        start = end


def _learn(gp: "AnswerGP", concepts: Counts, coordinates: Floats) -> None:
    """Observes what was answered, in order."""
    import torch

    from ...surrogates import AnswerPoints

    told = ~np.isnan(coordinates)
    points = AnswerPoints(torch.from_numpy(concepts[told]), torch.from_numpy(coordinates[told]))
    gp.observe(points)
