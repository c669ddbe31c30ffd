"""Writes certifier.json: what certificates come to, draw by draw, where everything is given.

Proposals, predictions, losses and the calls drawn follow from a seed, so that nothing but the
arithmetic of `certify/` decides the figures; `certify/verify.py` reckons them a second way. To be
written anew only when the certificates themselves are meant to change:

    python tests/golden/make_certifier.py tests/golden/certifier.json
"""

import json
import sys
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from adaptive_vtt.certify import Certifier, named_targets
from adaptive_vtt.certify.rules import Rules
from adaptive_vtt.datasets import from_table
from adaptive_vtt.space import QuestionSpace
from adaptive_vtt.types import Bets

TARGETS = ["overall", "concepts", "relations", "group:site", "mine"]
FILTER = {"mine": {"relation": ["gaussian_noise"], "severity": [2], "truth": [1]}}
DRAWS = 150
BETS = Bets(cap=0.9, eagerness=1.2, prior=8.0, most_skew=3.0)
"""As journals up to schema 4 tell: they are to be verified as long as they can be read."""
WATCHED = (0, 1, 10, 149)
"""Draws after which every figure is written down."""


def given() -> QuestionSpace:
    rng = np.random.default_rng(3)
    labels = rng.choice([0.0, 1.0, np.nan], (60, 2), p=[0.55, 0.4, 0.05])
    labels[0], labels[1] = 0, 1
    table = pd.DataFrame(labels, index=[f"s{i}" for i in range(60)], columns=["a", "b"])
    sites = pd.DataFrame({"site": ["x", "y"] * 30})
    relations = ["identity", "gaussian_noise"]
    return QuestionSpace(from_table(None, table, metadata=sites), relations, severities=[1, 2])


def played(answers: Literal["one", "all"], predicted: bool, error: float) -> list[Any]:
    """Figures after some of the draws; every tenth answer is missing and counts both ways."""
    space, rng = given(), np.random.default_rng(7)
    targets = named_targets(space, TARGETS, FILTER)
    certifier = Certifier(space, targets, answers=answers, rules=Rules(0.12, 1 - 0.9, bets=BETS))
    questions = np.arange(space.total)[space.eligible(np.arange(space.total))]
    losses = dict(zip(questions.tolist(), rng.random(len(questions)) < error, strict=True))
    told: list[Any] = []
    left = questions
    for draw in range(DRAWS):
        _, unit = np.unique(space.image_of(left) if answers == "all" else left, return_inverse=True)
        proposal = rng.random(int(unit.max()) + 1) + 0.2
        proposal /= proposal.sum()
        place = int(rng.choice(len(proposal), p=proposal))
        hints = rng.random(len(left)) if predicted else None
        inside, here = certifier.members(left), unit == place
        needs = certifier.needs(inside, unit, len(proposal), np.full(len(left), 0.2))
        move = certifier.bet(inside, unit, hints, proposal, place)
        least = np.array([float(losses[q]) for q in left[here].tolist()])
        missing = draw % 10 == 9
        certifier.learn(move, inside[:, here], least * (not missing), np.maximum(least, missing))
        left = left[~here]
        if draw in WATCHED:
            told.append(
                {
                    "table": [status.row() for status in certifier.table()],
                    "needs": [*needs[:3]],
                    "ratio": certifier.variance_ratio(),
                    "sum": float(needs.sum()),
                    "move": [[*row] for row in (move.lo, move.hi, move.tilt, move.foreseen)],
                    "stray": [*certifier.sequences.stray],
                }
            )
    return told


CASES: dict[str, tuple[Literal["one", "all"], bool, float]] = {
    "one answer per call": ("one", False, 0.3),
    "all answers, predicted": ("all", True, 0.3),
    "hardly an error": ("all", False, 0.02),
    "hardly a right answer, predicted": ("one", True, 0.95),
}

if __name__ == "__main__":
    text = json.dumps({name: played(*case) for name, case in CASES.items()})
    Path(sys.argv[1]).write_text(text + "\n")
