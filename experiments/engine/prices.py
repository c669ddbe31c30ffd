"""Audits that ask by price: what a certificate costs with and without, and whether it still holds.

Calls of a pool differ 10-fold in price, which goes by their images' pixels. The model errs on coins
of each image's own rate; answers come from memory.

money: the same certificate with ``by_price`` and without. Half of the calls cost ten times what the
others do ("halves"), one in ten does ("few"), or prices go from 1 to 10 evenly ("spread"), and tell
nothing of the needs; each of two relations is a target, too ("targets"); dear calls are those that
nobody foresees ("together"), or cheap ones are ("against").

coverage: small audits by price, of a server that bills whatever it likes; an interval misses if it
ever leaves the truth out.
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
"""Of money: a call about an image of one row costs 0.001."""
ERRS = 0.3
"""Mean rate of errors in every pool."""


class Billed(ModelDefaults):
    """Errs where ``wrong`` says so, by sample id and relation; a call costs what its image's rows
    do, or what ``bill`` makes of that."""

    answers: CallMode = "one"
    name = "billed"
    most_cost = 10.0
    price_guess = PriceGuess(0.0, PER_PIXEL)

    def __init__(self, wrong: dict[tuple[str, str], bool], lies: int | None = None) -> None:
        self.wrong = wrong
        self._rng = None if lies is None else np.random.default_rng(lies)

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        return [self._said(prompt) for prompt in prompts]

    def _said(self, prompt: Prompt) -> Answer:
        image = prompt.image
        if image is None:
            raise ValueError("expected prompts with images, got one without")
        wrong = self.wrong[prompt.sample_id, prompt.relation]
        cost = image.shape[0] * WIDTH * PER_PIXEL
        if self._rng is not None:  # a bill that goes with what was lost, as far as it can
            cost *= 10.0 ** self._rng.uniform(-4, 0) if not wrong else 1000.0
        return Answer((0.0 if wrong else 1.0,), cost)


def space_of(pool: str, samples: int) -> tuple[QuestionSpace, Floats]:
    """A pool's questions, and each image's rate of errors (n,)."""
    place = np.arange(samples) % len(SIZES)
    half = len(SIZES) / 2
    rows = SIZES[place]
    if pool in ("halves", "targets"):
        rows = np.where(place < half, 1, 10)
    elif pool == "few":
        rows = np.where(place == 0, 10, 1)
    rates = np.full(samples, ERRS)
    if pool == "together":
        rates = np.where(place >= half, 2 * ERRS - 0.05, 0.05)
    elif pool == "against":
        rates = np.where(place < half, 2 * ERRS - 0.05, 0.05)
    images = [np.full((int(r), WIDTH, 3), 7, np.uint8) for r in rows]
    metadata = pd.DataFrame({"rows": rows})
    labels = pd.DataFrame({"there": np.ones(samples, int)}, index=[f"s{k}" for k in range(samples)])
    features = np.column_stack([rows / 10.0, np.ones(samples)])
    dataset = from_table(images, labels, features=features, metadata=metadata, name=pool)
    relations = [
        RecordedRelation(name) for name in (("one", "two") if pool == "targets" else ("one",))
    ]
    return QuestionSpace(dataset, relations), rates


def wrong_of(space: QuestionSpace, rates: Floats, seed: int) -> dict[tuple[str, str], bool]:
    """A coin of its rate for every image and relation."""
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
    """The smallest share of the cost that any proposal of one price per call could leave, without a
    exploration: (mean of root price)^2 / mean price, by Cauchy and Schwarz; NaN where prices and
    rates of errors go together."""
    if np.ptp(rates) > 0:
        return float("nan")
    price = space.dataset.pixels(np.arange(len(rates)))
    return float(np.sqrt(price).mean() ** 2 / price.mean())


def money(seeds: int, samples: int, half_width: float, pools: Sequence[str] = POOLS) -> list[Row]:
    found = []
    for pool in pools:
        space, rates = space_of(pool, samples)
        pairs = [_pair(space, rates, seed, half_width, pool) for seed in range(seeds)]
        runs = pd.DataFrame(pairs)
        runs.insert(2, "share", runs["cost by price"] / runs["cost without"])
        told_of = {"pool": pool, "audits": seeds, "least": least(space, rates)}
        found.append(told_of | {"standard error": runs["share"].sem(), **runs.mean()})
        show(found[-1])
    return found


def _pair(space: QuestionSpace, rates: Floats, seed: int, half_width: float, pool: str) -> Row:
    """Cost and calls without prices, and by them."""
    wrong = wrong_of(space, rates, seed)
    targets = ["overall", "relations"] if pool == "targets" else ["overall"]
    found: Row = {}
    for by_price, how in ((False, "without"), (True, "by price")):
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
        found |= {f"cost {how}": audit.cost, f"calls {how}": len(audit.journal.calls())}
    return found


# -- coverage ---------------------------------------------------------------------------------


def coverage(
    audits: int, samples: int = 120, budget: int = 60, bills: Sequence[bool] = (False, True)
) -> list[Row]:
    """How many audits of coins an interval ever left the truth out of, at confidence 0.8; with
    right bills and with those that lie."""
    found = []
    for lies in bills:
        missed = sum(_missed(seed, samples, lies, budget) for seed in range(audits))
        found.append({"bills": "lies" if lies else "right", "audits": audits, "missed": missed})
        found[-1]["allowed"] = round(0.2 * audits)
        show(found[-1])
    return found


def _missed(seed: int, samples: int, lies: bool, budget: int) -> bool:
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
