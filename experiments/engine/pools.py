"""Count the calls that a cheap guess of each loss saves in a pool, and the most that it can save.

    python -m adaptive_vtt.experiments.engine.pools [--quick] [--seeds 40]

5,000 items fail independently, each with its own probability, and the guess of an item is that
probability. Guesses explain a share ``--explained`` of the variance of losses. Audits certify one
interval of ``--half-width``. *even* draws items uniformly, *by need* draws as ``certify`` does.
*known* predicts by the guess itself, *learnt* by the question GP's regression on it
(``surrogates.loss_mean``). So the difference of the two is the cost of learning.

The table has mean calls, their "share" of the calls for even draws without a guess, calls saved
(with the standard error), and the share that the variance alone promises. With guesses the variance
is that of the residuals; with draws by need, it is the square of the residuals' mean standard
deviation (Neyman's allocation). k draws from an endless pool are worth k / (1 + k / n) draws from n
items.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
import torch
from scipy.stats import sem

from adaptive_vtt import Pool
from adaptive_vtt.certify import Certifier, named_targets
from adaptive_vtt.certify.certifier import RANGE
from adaptive_vtt.certify.rules import Rules
from adaptive_vtt.surrogates.loss_mean import Judged, LossMean
from adaptive_vtt.types import Floats, Indices

from ..program import Row, in_processes, options, save_table, show

ITEMS, CANDIDATES = 5000, 4096
LEVEL, EXPLORATION = 0.95, 0.2


@dataclass(frozen=True)
class Way:
    """A way to audit: predictions ("nothing", "known" or "learnt"), and draws by need or not."""

    predicted: str
    by_need: bool


WAYS = {
    "no guess, even": Way("nothing", by_need=False),
    "known, even": Way("known", by_need=False),
    "known, by need": Way("known", by_need=True),
    "learnt, even": Way("learnt", by_need=False),
    "learnt, by need": Way("learnt", by_need=True),
}


@dataclass(frozen=True)
class Setting:
    """Mean loss, share of its variance that guesses explain, and half-width."""

    rate: float = 0.15
    explained: float = 0.21
    half_width: float = 0.03

    def pool(self, seed: int) -> tuple[Floats, Floats]:
        """Return guess and loss of every item, (n,) each."""
        rng = np.random.default_rng([seed, 21])
        # the variance of Beta(a, b) is that of a coin of its mean over a + b + 1
        weight = 1 / self.explained - 1
        guess = rng.beta(self.rate * weight, (1 - self.rate) * weight, ITEMS)
        return guess, (rng.random(ITEMS) < guess).astype(float)


class Regression:
    """Losses predicted from guesses as the question GP does: fitted after a quarter more answers.

    It has no kernel, which adds nothing where items have no features.
    """

    def __init__(self, guess: Floats) -> None:
        self._mean = LossMean([0], [0], 1)
        self._features = self._mean.features(torch.from_numpy(guess)[:, None])
        self._next = 1
        self.predictions = np.full(len(guess), 0.5)

    def learn(self, items: Sequence[int], loss: Floats) -> None:
        """Fit again to all items asked about, if it is time."""
        if len(items) < self._next:
            return
        self._next = len(items) + max(1, len(items) // 4)
        rows, none = torch.tensor(items), torch.zeros(len(loss), dtype=torch.int64)
        losses, zero = torch.from_numpy(loss)[rows], none[: len(items)]
        unknown = torch.full_like(losses, torch.nan)
        self._mean.fit(Judged(zero, zero, zero, zero, losses, unknown, self._features[rows]))
        self.predictions = self._mean.expected(none, none, self._features).numpy()


def calls(setting: Setting, job: tuple[str, int]) -> int:
    """Return the draws of one audit until its interval is narrow enough."""
    way, seed = WAYS[job[0]], job[1]
    guess, loss = setting.pool(seed)
    space = Pool(ITEMS)
    rules = Rules(setting.half_width, 1 - LEVEL)
    target = named_targets(space, ["overall"])
    certifier = Certifier(space, target, answers="one", rules=rules)
    regression = Regression(guess)
    predictions = guess if way.predicted == "known" else np.full(ITEMS, setting.rate)
    rng, asked = np.random.default_rng([seed, 22]), list[int]()
    unseen: Indices = np.arange(ITEMS)
    while not certifier.certified.all():
        if way.predicted == "learnt":
            regression.learn(asked, loss)
            predictions = regression.predictions
        candidates = np.sort(rng.permutation(unseen)[:CANDIDATES])
        count = len(candidates)
        f, inside = predictions[candidates], np.ones((1, count), bool)
        weights = np.ones(count)
        if way.by_need:
            weights = np.sqrt(f * (1 - f) + RANGE * certifier.sequences.aims[0])
        q = (1 - EXPLORATION) * weights / weights.sum() + EXPLORATION / count
        place = int(rng.choice(count, p=q))
        item = candidates[[place]]
        bet = certifier.bet(inside, np.arange(count), f, q, place)
        certifier.learn(bet, inside[:, :1], loss[item], loss[item])
        unseen = unseen[unseen != item[0]]
        asked.append(int(item[0]))
    return len(asked)


def promised(setting: Setting, seeds: int) -> dict[str, float]:
    """Return the share of the variance that is left by known guesses: even draws, and by need."""
    shares = np.array([_shares(*setting.pool(seed)) for seed in range(seeds)]).mean(axis=0)
    return dict(zip(("known, even", "known, by need"), shares.tolist(), strict=True))


def _shares(guess: Floats, loss: Floats) -> tuple[float, float]:
    residual = guess * (1 - guess)
    variance = float(loss.var())
    return float(residual.mean()) / variance, float(np.sqrt(residual).mean() ** 2) / variance


def savings(setting: Setting, seeds: int, workers: int) -> pd.DataFrame:
    """Return a row per way: mean calls, the share of calls, and what is saved."""
    jobs = [(way, seed) for way in WAYS for seed in range(seeds)]
    counts = np.array(in_processes(partial(calls, setting), jobs, workers), float)
    table = counts.reshape(len(WAYS), seeds)
    endless = 1 / (1 / table[0].mean() - 1 / ITEMS)
    shares, rows = promised(setting, seeds), list[Row]()
    for way, own in zip(WAYS, table, strict=True):
        row: Row = {
            "way": way,
            "calls": round(own.mean(), 1),
            "share": own.mean() / table[0].mean(),
        }
        if way in shares:
            draws = endless * shares[way]
            row["promised"] = draws / (1 + draws / ITEMS) / table[0].mean()
        if seeds > 1 and way != next(iter(WAYS)):
            saved = table[0] - own
            row["saved"] = f"{saved.mean():.0f} +- {sem(saved):.0f}"
        rows.append(row)
    return pd.DataFrame(rows).round(3)


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = options(
        __doc__,
        arguments,
        quick={"seeds": 1, "half_width": 0.15},
        seeds=40,
        rate=Setting.rate,
        explained=Setting.explained,
        half_width=Setting.half_width,
        workers=2,
    )
    setting = Setting(chosen.rate, chosen.explained, chosen.half_width)
    show(f"{ITEMS:,} items, mean loss {setting.rate:.0%}, to +-{100 * setting.half_width:g} points")
    save_table(savings(setting, chosen.seeds, chosen.workers), chosen.out / "pools.csv")


if __name__ == "__main__":
    main()
