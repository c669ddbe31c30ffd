"""Measure how often comparisons are ever wrong in a run, on simulated pools that take little time.

Every run has its own pool of 2,000 questions (250 samples under 8 changes). Model A fails each with
its own probability, about 30 % in all. Model B's loss differs on a tenth of the pool. A run asks
HORIZON questions. It errs if an interval of any target ever excludes its true difference, or if a
claim is decided wrongly, and the probability of that is at most 5 %. Predictions are a table in
place of question GPs, which would take most of the time; any predictions fixed by the past are
valid. Candidates and proposals are drawn here, as in the engine. The rest is the ``Certifier``.

    python -m adaptive_vtt.experiments.engine.versus --only coverage [--seeds 300] [--workers 2]
"""

from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import numpy as np
import pandas as pd
from scipy.stats import binom

from adaptive_vtt.audit.everything import means
from adaptive_vtt.certify import Certifier, named_targets
from adaptive_vtt.certify.decisions import FAILS, HOLDS, MAX_AIM, Comparison
from adaptive_vtt.certify.game import Bet
from adaptive_vtt.certify.rules import Rules
from adaptive_vtt.certify.sequences import BETS
from adaptive_vtt.datasets import from_table
from adaptive_vtt.engine.options import DEFAULT_EXPLORATION, FINE_CELL
from adaptive_vtt.engine.proposals import mix
from adaptive_vtt.space import QuestionSpace
from adaptive_vtt.types import Floats

from ..program import Row, in_processes
from .digits import CONCEPT, RecordedRelation

SAMPLES, RELATIONS, SEVERITIES = 250, 2, 4
SHAPE = (SAMPLES, RELATIONS * SEVERITIES)
HORIZON = 200
"""Questions asked in a run."""
CANDIDATES = 128
ALPHA = 0.05
ALLOWED = 1e-3
"""Probability of more errors than the table allows, if each run erred with probability ALPHA."""
TURNS = 40
"""Questions in a row for which adversarial predictions are the truth, and then the opposite."""
NOISE = 0.1
"""Standard deviation of the noise of predictions."""
ROUNDING = 1e-9


@dataclass(frozen=True)
class Setting:
    """One kind of comparison.

    Attributes:
        name: Its name in the table.
        way: "live" (both models are asked), "known" (A's losses are known) or "condition" (half of
            them are).
        adversary: Whether predictions are the truth and its opposite in turns.
        apart: Share of questions on which the models' losses differ.
        even: Whether each model is better on as many of these, within every relation.
        targets: Names of the targets.
        batch: Questions drawn before their answers are known.
        claim: The comparison's ``at_least``.
    """

    name: str
    way: Literal["live", "known", "condition"] = "live"
    adversary: bool = False
    apart: float = 0.1
    even: bool = False
    targets: tuple[str, ...] = ("overall",)
    batch: int = 1
    claim: float | None = None


SEVERAL = ("overall", "relations")
SETTINGS = (
    Setting("live"),
    Setting("live, 3 targets, batches of 8", targets=SEVERAL, batch=8),
    Setting("live, adversarial predictions", adversary=True),
    Setting("A known", way="known"),
    Setting("A known, adversarial predictions", way="known", adversary=True),
    Setting("half of A known (condition)", way="condition"),
    Setting("exact ties", apart=0.0),
    Setting("3 claims just missed", even=True, targets=SEVERAL, claim=1e-4),
    Setting("3 claims just met", even=True, targets=SEVERAL, claim=0.0),
)


class Comparing:
    """One run, with its pool, its predictions and the certifier that learns the losses.

    Attributes:
        deltas: (K,) the true differences.
    """

    def __init__(self, setting: Setting, seed: int, alpha: float = ALPHA) -> None:
        self.setting, self.rng = setting, np.random.default_rng([seed, 15])
        chance = self.rng.beta(0.6, 1.4, SHAPE)
        a = (self.rng.random(SHAPE) < chance).astype(float)
        b = np.abs(a - self._apart(a))
        known = {"live": 0.0, "condition": 0.5, "known": 1.0}[setting.way]
        a_known = self.rng.random(SHAPE) < known
        f_a = np.where(a_known, a, chance)
        f_b = f_a + setting.apart * (1 - 2 * f_a) + self.rng.normal(0, NOISE, SHAPE)
        space = _space()
        self.space, self.targets = space, named_targets(space, setting.targets)
        self.deltas = self._means(a - b)
        if setting.way == "known":
            compare = Comparison(tuple(self._means(a).tolist()), -1.0, at_least=setting.claim)
            self.losses, self.expected = b, np.clip(f_b, 0, 1)
            self.variance = self.expected * (1 - self.expected)
            self.price = np.ones(SHAPE)
        else:
            compare = Comparison(at_least=setting.claim)
            self.losses, self.expected = (1 + a - b) / 2, np.clip((1 + f_a - f_b) / 2, 0, 1)
            self.variance = np.full(SHAPE, max(setting.apart, 0.01) / 4)
            self.price = 1 - a_known / 2
        self.compare = compare
        bets = replace(BETS, cell=FINE_CELL)
        rules = Rules(MAX_AIM, alpha, bets=bets, compare=compare)
        self.certifier = Certifier(space, self.targets, answers="one", rules=rules)
        self.unseen = space.nth(np.arange(space.size))

    def errs(self, horizon: int = HORIZON) -> bool:
        """Run ``horizon`` questions and return whether anything certified is ever wrong."""
        for _ in range(0, horizon, self.setting.batch):
            for question, bet in [self._draw() for _ in range(self.setting.batch)]:
                lost = self.losses.flat[[question]]
                inside = self.certifier.members(np.array([question]))
                self.certifier.learn(bet, inside, lost, lost)
                if self._wrong():
                    return True
        return False

    def _draw(self) -> tuple[int, Bet]:
        """Draw a question and return it with its bet.

        It is drawn by need from a uniform subset of the unseen questions, as by the strategy
        ``certify``.
        """
        places = self.rng.choice(len(self.unseen), CANDIDATES, replace=False)
        questions = self.unseen[places]
        f = self._predicted().flat[questions]
        inside, unit = self.certifier.members(questions), np.arange(CANDIDATES)
        needs = self.certifier.needs(inside, unit, CANDIDATES, self.variance.flat[questions])
        weights = np.sqrt(needs / self.price.flat[questions])
        proposal = mix(
            questions, weights if weights.any() else np.ones(CANDIDATES), DEFAULT_EXPLORATION
        )
        place = proposal.draw(self.rng)
        bet = self.certifier.bet(inside, unit, f, proposal.probabilities, place)
        self.unseen = np.delete(self.unseen, places[place])
        return int(questions[place]), bet

    def _predicted(self) -> Floats:
        if not self.setting.adversary:
            return self.expected
        lies = self.certifier.sequences.moves // TURNS % 2
        return 1 - self.losses if lies else self.losses

    def _wrong(self) -> bool:
        sequences, claims = self.certifier.sequences, self.certifier.decisions
        least, most = self.compare.differences(sequences.lower, sequences.upper)
        outside = (least > self.deltas + ROUNDING) | (most < self.deltas - ROUNDING)
        if claims is None or self.setting.claim is None:
            return bool(outside.any())
        met = self.deltas >= self.setting.claim - ROUNDING
        wrong = np.where(met, FAILS, HOLDS)
        return bool((np.array(self.compare.claimed(claims)) == wrong).any())

    def _apart(self, a: Floats) -> Floats:
        """Return (S, V), 1 where model B's loss is the opposite of model A's."""
        if not self.setting.even:
            return (self.rng.random(SHAPE) < self.setting.apart).astype(float)
        differs = np.zeros(a.size)
        relations = np.arange(a.size) % SHAPE[1] // SEVERITIES
        count = round(self.setting.apart * SAMPLES * SEVERITIES / 2)
        for relation in range(RELATIONS):
            for loss in (0, 1):
                questions = np.flatnonzero((relations == relation) & (a.ravel() == loss))
                differs[self.rng.choice(questions, count, replace=False)] = 1
        return differs.reshape(SHAPE)

    def _means(self, values: Floats) -> Floats:
        """Return the mean of values (S, V) over every target, (K,)."""
        everything = self.space.nth(np.arange(self.space.size))
        return means(self.space, self.targets, everything, values.flat[everything])


@cache
def _space() -> QuestionSpace:
    labels = pd.DataFrame({CONCEPT: np.ones(SAMPLES, int)})
    severities = range(1, SEVERITIES + 1)
    relations = [RecordedRelation(f"change {k}", severities) for k in range(RELATIONS)]
    return QuestionSpace(from_table(None, labels, name="pool"), relations)


def run(job: tuple[Setting, int]) -> bool:
    """Return whether the run of a setting and a seed is ever wrong."""
    return Comparing(*job).errs()


def allowed(runs: int, alpha: float = ALPHA) -> int:
    """Return the number of wrong runs that is exceeded with probability ALLOWED.

    Each run is wrong with probability ``alpha``.
    """
    return int(binom.isf(ALLOWED, runs, alpha))


def table(seeds: int, workers: int, executor: str = "processes") -> pd.DataFrame:
    """Return one row per setting with the number of runs, and of those that ever erred."""
    jobs = [(setting, seed) for setting in SETTINGS for seed in range(seeds)]
    erred = np.reshape(in_processes(run, jobs, workers, executor), (-1, seeds)).sum(axis=1)
    columns: Row = {"comparison": [setting.name for setting in SETTINGS], "runs": seeds}
    return pd.DataFrame({**columns, "erred": erred, "at most, with .999": allowed(seeds)})
