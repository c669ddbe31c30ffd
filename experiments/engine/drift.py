"""Audit models that change during the audit, and models that do not, which must not stall.

    python -m adaptive_vtt.experiments.engine.drift

There are six kinds of pools: *one* rate, *eight* groups, *rare* losses, *graded* losses in [0, 1],
and with informative features *predicted* and *groups predicted*. The model does not change
("none"), or its losses get likelier: *sudden* after SINCE calls, *late* after three quarters of the
calls of an audit without drift, *slow* in equal steps over these calls, *part* in one group alone,
*periodic* in every other block of BLOCK calls.

The table counts ends of audits, with mean calls and "most after": the largest number of calls made
after every interval was narrow enough. If the model does not change, these calls are a stall.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from adaptive_vtt import Audit, Pool
from adaptive_vtt.types import Floats, Indices

from ..program import options, save_table, show

ITEMS, MOST = 2_000, 1_200
SINCE, BLOCK, WORSE = 100, 40, 0.4
"""Calls before a sudden change; calls of a block; rise of the probability of a loss."""
GROUPS = 8
DRIFTS = "none", "sudden", "late", "slow", "part", "periodic"


@dataclass(frozen=True)
class Kind:
    """A pool: whether it has groups and features, its mean loss, and whether losses are graded."""

    half_width: float
    groups: bool = False
    features: bool = False
    rate: float = 0.2
    graded: bool = False


KINDS = {
    "one": Kind(0.05),
    "eight": Kind(0.1, groups=True),
    "rare": Kind(0.02, rate=0.02),
    "graded": Kind(0.03, graded=True),
    "predicted": Kind(0.05, features=True),
    "groups predicted": Kind(0.1, groups=True, features=True),
}


@dataclass(frozen=True)
class Model:
    """The probability of a loss of each item (n,), and the ``chance`` (n,) that decides it."""

    likely: Floats
    chance: Floats
    group: Indices
    graded: bool

    def loss(self, item: int, call: int, drift: str, usual: int) -> float:
        """Return the loss of an item in this call; ``usual``: calls of an audit without drift."""
        share = {
            "none": 0.0,
            "sudden": float(call >= SINCE),
            "late": float(call >= 0.75 * usual),
            "slow": min(call / usual, 1.0),
            "part": float(call >= SINCE and self.group[item] == 0),
            "periodic": float(call // BLOCK % 2),
        }
        likely = min(self.likely[item] + WORSE * share[drift], 1.0)
        if self.graded:
            return float(np.clip(likely + 0.2 * (self.chance[item] - 0.5), 0, 1))
        return float(self.chance[item] < likely)


def pool_and_model(kind: Kind, seed: int) -> tuple[Pool, Model]:
    """Return a pool, and a model whose losses depend on the first of two features."""
    rng = np.random.default_rng([seed, 5])
    features = rng.normal(size=(ITEMS, 2))
    group = rng.integers(GROUPS, size=ITEMS)
    likely = np.clip(kind.rate * (1 + np.tanh(2 * features[:, 0])), 0, 1)
    groups = pd.DataFrame({"g": group.astype(str)}) if kind.groups else None
    pool = Pool(ITEMS, features if kind.features else None, groups)
    return pool, Model(likely, rng.random(ITEMS), group, kind.graded)


def ended(kind: Kind, drift: str, usual: int, seed: int) -> dict[str, object]:
    """Return how one audit ended, its calls, and those after all intervals were narrow enough."""
    pool, model = pool_and_model(kind, seed)
    targets = ["overall", "group:g"] if kind.groups else ["overall"]
    audit = Audit(pool, half_width=kind.half_width, targets=targets, seed=seed, budget=MOST)
    calls, narrow = 0, 0
    with audit:
        while asked := audit.ask():
            assert asked[0].item is not None
            audit.tell(asked[0], model.loss(asked[0].item, calls, drift, usual))
            calls += 1
            widths = audit.belief.certifying.sequences.half_width
            if not narrow and (widths <= kind.half_width).all():
                narrow = calls
        table = audit.result().targets
    end = "certified" if table["certified"].all() else "open"
    end = "invalidated" if table["invalidated"].any() else end
    return {"end": end, "calls": calls, "after": calls - narrow if narrow else 0}


def summary(runs: pd.DataFrame) -> pd.DataFrame:
    """Return a row per kind and drift: counts of ends, mean calls, and the longest stall."""
    rows = []
    for (kind, drift), group in runs.groupby(["kind", "drift"], sort=False):
        ends = group["end"].value_counts()
        row = {"": kind, "drift": drift}
        row |= {end: int(ends.get(end, 0)) for end in ("certified", "invalidated", "open")}
        calls, after = round(group["calls"].mean()), group["after"].max()
        rows.append(row | {"calls": calls, "most after": after})
    return pd.DataFrame(rows)


def main(arguments: Sequence[str] | None = None) -> None:
    quick = {"only": ["one"], "seeds": 1}
    chosen = options(__doc__, arguments, quick=quick, seeds=10, only=KINDS)
    rows = []
    for name in chosen.only:
        for seed in range(chosen.seeds):
            usual = 1
            for drift in DRIFTS:
                run = ended(KINDS[name], drift, usual, seed)
                usual = int(str(run["calls"])) if drift == "none" else usual
                rows.append({"kind": name, "drift": drift, "seed": seed, **run})
    save_table(rows, chosen.out / "drift.csv")
    show(summary(pd.DataFrame(rows)))


if __name__ == "__main__":
    main()
