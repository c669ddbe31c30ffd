"""Measure audits that draw by price: the cost of a certificate, and coverage.

    python -m adaptive_vtt.experiments.engine.prices

The prices of a pool's calls differ by a factor of ten and follow from the pixels of their images.
The model is wrong on each image with a rate of its own; answers come from memory.

money: the cost of the same certificate with and without ``by_price``. Half of the calls cost ten
times as much as the others ("halves"), or one in ten does ("few"), or prices run from 1 to 10
("spread"). In these pools prices do not depend on the needs. In "targets" each of two relations is
a target, too. In "together" the expensive calls are the unpredictable ones, in "against" the cheap
ones.

coverage: small audits by price, for a server that bills any amount. An interval misses if it ever
excludes the truth.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from adaptive_vtt.audit import Audit
from adaptive_vtt.datasets import from_table
from adaptive_vtt.models.base import ModelDefaults, PriceGuess
from adaptive_vtt.space import QuestionSpace
from adaptive_vtt.types import Answer, CallMode, Floats, Prompt, Unanswered

from ..program import Row, Watch, options, save_table, show
from .digits import RecordedRelation

POOLS = ("halves", "few", "spread", "targets", "together", "against")
SIZES = np.arange(1, 11)
"""Prices of a call in turn, and rows of its image."""
WIDTH = 16
PER_PIXEL = 0.001 / WIDTH
"""Price of a pixel: a call about an image of one row costs 0.001."""
ERROR = 0.3
"""Mean error rate of every pool."""


class Billed(ModelDefaults):
    """Model that bills by the rows of an image.

    Args:
        wrong: (sample id, relation) -> whether the answer is wrong.
        lies: Seed of bills that depend on the loss as far as they can; None: bills are right.
    """

    answers: CallMode = "one"
    name = "billed"
    most_cost = 10.0
    price_guess = PriceGuess(0.0, PER_PIXEL)

    def __init__(self, wrong: dict[tuple[str, str], bool], lies: int | None = None) -> None:
        self.wrong = wrong
        self._rng = None if lies is None else np.random.default_rng(lies)

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        return [self._answer(prompt) for prompt in prompts]

    def _answer(self, prompt: Prompt) -> Answer:
        image = prompt.image
        if image is None:
            raise ValueError("expected prompts with images, got one without")
        wrong = self.wrong[prompt.sample_id, prompt.relation]
        cost = image.shape[0] * WIDTH * PER_PIXEL
        if self._rng is not None:  # a bill that depends on the loss as far as it can
            cost *= 10.0 ** self._rng.uniform(-4, 0) if not wrong else 1000.0
        return Answer((0.0 if wrong else 1.0,), cost)


def space_of(pool: str, samples: int) -> tuple[QuestionSpace, Floats]:
    """Return a pool's questions, and the error rate of each image (n,)."""
    place = np.arange(samples) % len(SIZES)
    half = len(SIZES) / 2
    rows = SIZES[place]
    if pool in ("halves", "targets"):
        rows = np.where(place < half, 1, 10)
    elif pool == "few":
        rows = np.where(place == 0, 10, 1)
    rates = np.full(samples, ERROR)
    if pool == "together":
        rates = np.where(place >= half, 2 * ERROR - 0.05, 0.05)
    elif pool == "against":
        rates = np.where(place < half, 2 * ERROR - 0.05, 0.05)
    images = [np.full((int(r), WIDTH, 3), 7, np.uint8) for r in rows]
    metadata = pd.DataFrame({"rows": rows})
    labels = pd.DataFrame({"there": np.ones(samples, int)}, index=[f"s{k}" for k in range(samples)])
    features = np.column_stack([rows / 10.0, np.ones(samples)])
    dataset = from_table(images, labels, features=features, metadata=metadata, name=pool)
    names = ("one", "two") if pool == "targets" else ("one",)
    return QuestionSpace(dataset, [RecordedRelation(name) for name in names]), rates


def wrong_of(space: QuestionSpace, rates: Floats, seed: int) -> dict[tuple[str, str], bool]:
    """Return which answers are wrong, drawn with the rate of each image, by relation."""
    rng = np.random.default_rng(seed)
    names = [v.relation.name for v in space.variants]
    coins = rng.random((len(rates), len(names))) < rates[:, None]
    return {
        (space.dataset.sample_id(k), name): bool(coins[k, v])
        for k in range(len(rates))
        for v, name in enumerate(names)
    }


# -- money ------------------------------------------------------------------------------------


def least(space: QuestionSpace, rates: Floats) -> float:
    """Return the least share of the cost that any proposal without exploration can reach.

    It is (mean of root price)^2 / mean price, by Cauchy and Schwarz, or NaN if error rates depend
    on prices.
    """
    if np.ptp(rates) > 0:
        return float("nan")
    price = space.dataset.pixels(np.arange(len(rates)))
    return float(np.sqrt(price).mean() ** 2 / price.mean())


def money(seeds: int, samples: int, half_width: float, pools: Sequence[str] = POOLS) -> list[Row]:
    """Return a row per pool: mean cost and calls with and without prices, and their ratio."""
    rows = []
    for pool in pools:
        space, rates = space_of(pool, samples)
        pairs = [_pair(space, rates, seed, half_width, pool) for seed in range(seeds)]
        runs = pd.DataFrame(pairs)
        runs.insert(2, "share", runs["cost by price"] / runs["cost without"])
        row = {"pool": pool, "audits": seeds, "least": least(space, rates)}
        rows.append(row | {"standard error": runs["share"].sem(), **runs.mean()})
        show(rows[-1])
    return rows


def _pair(space: QuestionSpace, rates: Floats, seed: int, half_width: float, pool: str) -> Row:
    """Return cost and calls of an audit without prices, and of one by price."""
    wrong = wrong_of(space, rates, seed)
    targets = ["overall", "relations"] if pool == "targets" else ["overall"]
    row: Row = {}
    for by_price, way in ((False, "without"), (True, "by price")):
        audit = Audit(
            space,
            Billed(wrong),
            half_width=half_width,
            targets=targets,
            by_price=by_price,
            surrogate=pool in ("together", "against"),
            self_taught=False,
            seed=seed,
            candidates=1024,
            batch=8,
        )
        result = audit.run()
        if not result.targets["certified"].all():
            raise RuntimeError(f"expected all targets to be certified, got {result.reason}")
        row |= {f"cost {way}": audit.cost, f"calls {way}": len(audit.journal.calls())}
    return row


# -- coverage ---------------------------------------------------------------------------------


def coverage(
    audits: int, samples: int = 120, budget: int = 60, bills: Sequence[bool] = (False, True)
) -> list[Row]:
    """Return a row per kind of bills: audits at confidence 0.8, those that ever missed, allowed."""
    rows = []
    for lies in bills:
        missed = sum(_missed(seed, samples, lies, budget) for seed in range(audits))
        rows.append({"bills": "lies" if lies else "right", "audits": audits, "missed": missed})
        rows[-1]["allowed"] = round(0.2 * audits)
        show(rows[-1])
    return rows


def _missed(seed: int, samples: int, lies: bool, budget: int) -> bool:
    """Return whether the interval of one audit ever excludes the truth."""
    space, rates = space_of("together", samples)
    wrong = wrong_of(space, rates, seed)
    truth = np.array([np.mean(list(wrong.values()))])
    audit = Audit(
        space,
        Billed(wrong, seed if lies else None),
        half_width=0.02,
        confidence=0.8,
        targets=["overall"],
        surrogate=False,
        self_taught=False,
        seed=seed,
        budget=budget,
        candidates=64,
    )
    watch = Watch(truth)
    audit.run(watch)
    return not watch.held


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = options(
        __doc__,
        arguments,
        quick={"seeds": 2, "audits": 10, "half_width": 0.15},
        only=dict.fromkeys(("money", "coverage")),
        pools=dict.fromkeys(POOLS),
        seeds=20,
        audits=300,
        samples=2000,
        half_width=0.05,
    )
    if "money" in chosen.only:
        rows = money(chosen.seeds, chosen.samples, chosen.half_width, chosen.pools)
        save_table(pd.DataFrame(rows).round(3), chosen.out / "prices_money.csv")
    if "coverage" in chosen.only:
        save_table(coverage(chosen.audits), chosen.out / "prices_coverage.csv")


if __name__ == "__main__":
    main()
