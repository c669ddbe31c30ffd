"""Audits of models whose calls differ in price, for tests."""

from typing import Any

import numpy as np

from adaptive_vtt import Audit
from adaptive_vtt.datasets.table import WordedDataset
from adaptive_vtt.engine.proposals import Proposal
from adaptive_vtt.experiments.engine.prices import Billed, space_of, wrong_of
from adaptive_vtt.types import Ask

PLAIN: dict[str, Any] = {
    "half_width": 0.05,
    "targets": ["overall"],
    "surrogate": False,
    "self_taught": False,
    "seed": 3,
}
FACTS = {
    "call": 0.001,
    "pixels": 0.01,
    "characters": 0.002,
    "typical_pixels": 50.0,
    "typical_characters": 20.0,
    "most_pixels": 1e12,
}


def billed(pool: str = "halves", samples: int = 60, **options: Any) -> Audit:
    """Return an audit of a pool, by default one with half of the calls at ten times the price."""
    space, rates = space_of(pool, samples)
    model = options.pop("model", None) or Billed(wrong_of(space, rates, 0))
    return Audit(space, model, **{**PLAIN, "budget": 20, **options})


def proposal_of(audit: Audit, draw: int) -> Proposal:
    return Proposal.unpack(audit.journal.draws()[draw].proposal)


def rows_of(audit: Audit, proposal: Proposal) -> Any:
    """Return the number of rows of every candidate's image, which is proportional to its price."""
    samples, _, _ = audit.space.parts(proposal.calls)
    return audit.space.dataset.pixels(samples) / 16


def worded(lengths: list[int], concepts: int = 2) -> WordedDataset:
    """Return questions of these lengths in characters, about images of one size."""
    names, many = [f"c{k}" for k in range(concepts)], len(lengths)
    asks = [{name: Ask("w" * n, ("yes", "no")) for name in names} for n in lengths]
    return WordedDataset(
        [np.zeros((4, 4, 3), np.uint8)] * many,
        np.ones((many, concepts), np.int8),
        [f"s{k}" for k in range(many)],
        names,
        asks=asks,
        answers=[dict.fromkeys(names, ("A",))] * many,
    )
