"""The answer GPs learnt again from the journal, and their uncertainty along the way."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..types import Floats
from .evidence import Evidence

if TYPE_CHECKING:
    from ..surrogates import AnswerGP

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


def replay(evidence: Evidence) -> Replay:
    """Learns all answers in draw order."""
    from ..surrogates import AnswerGP

    form = evidence.settings.form
    gp = AnswerGP(len(evidence.concepts), form=form, device="cpu")
    calls, questions = _checkpoints(evidence)
    measured = list(_measured(gp, evidence, questions))
    return Replay(
        calls,
        questions,
        np.stack(measured),
        gp.grid.numpy(),
        gp.mean().numpy(),
        gp.variance().sqrt().numpy(),
        gp.counts.numpy().astype(np.int64),
    )


def _checkpoints(evidence: Evidence) -> tuple[Counts, Counts]:
    """Calls answered, and questions judged by then, at each checkpoint; 0 and all included."""
    places = {row.call: row.draw for row in evidence.draws}
    draws = np.sort([places[c.call] for c in evidence.calls]).astype(np.int64)
    judged = np.searchsorted(evidence.table["draw"].to_numpy(np.int64), draws, side="right")
    calls = np.unique(np.linspace(0, len(draws), CHECKPOINTS).round().astype(np.int64))
    return calls, np.concatenate([[0], judged])[calls].astype(np.int64)


def _measured(gp: "AnswerGP", evidence: Evidence, questions: Counts) -> Iterator[Floats]:
    """C x 2 relative uncertainty after so many questions each."""
    table = evidence.table
    concept = table["concept"].map({c: i for i, c in enumerate(evidence.concepts)})
    concepts = np.asarray(concept, dtype=np.int64)
    truths = np.asarray(table["truth"], dtype=np.int64)
    coordinates = np.asarray(table["coordinate"], dtype=np.float64)
    left = np.array(evidence.facts.space.cell_counts, dtype=np.int64)
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

    from ..surrogates import AnswerPoints

    told = ~np.isnan(coordinates)
    points = AnswerPoints(torch.from_numpy(concepts[told]), torch.from_numpy(coordinates[told]))
    gp.observe(points)
