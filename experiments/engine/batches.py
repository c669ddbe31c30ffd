"""Audits in batches: what they cost beside one call at a time, and what kills do to them.

cost: the same certificate of the same endpoint, on this machine in a process of its own, one call
at a time and in batches of several sizes. Calls follow from how old beliefs are when draws are
made; the bill is that of the prices, half of them in batches.

kills: audits in batches of 16 in forked processes, killed with SIGKILL at random moments, while
they submit, wait and read, and resumed until they end. The endpoint counts what it is given: a
request that was submitted twice would be one more than the calls of an undisturbed audit.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from adaptive_vtt.audit import Audit
from adaptive_vtt.demo.server import Behaviour
from adaptive_vtt.models import (
    Encoding,
    Limits,
    ModelDefaults,
    OpenAIBatch,
    Polling,
    Retries,
    Usage,
)
from adaptive_vtt.space import QuestionSpace

from ..program import Row, options, told
from .endpoints import (
    BUDGET,
    MAX_SAID,
    MAX_TOKENS,
    PRICES,
    RELATIONS,
    chat,
    frames,
    serve,
    struck,
    to_its_end,
)
from .killed_audits import served

SIZES = (1, 16, 64, 256)
"""Calls per batch; 1 stands for one call at a time, without batches."""
HALF = PRICES.times(0.5)
"""What tokens cost in a batch."""
CAP = BUDGET * 3 * HALF.cost(Usage(MAX_TOKENS, MAX_SAID))
"""Money for an audit that is killed: its calls at their worst price."""


def batched(url: str, size: int, *, timeout: float = 10.0) -> OpenAIBatch:
    """The demo's endpoint in batches of ``size``."""
    return OpenAIBatch(
        "demo-endoscopist",
        base_url=f"{url}/v1",
        encoding=Encoding("jpeg"),
        max_tokens=MAX_SAID,
        max_input_tokens=MAX_TOKENS,
        prices=PRICES,
        batch_size=size,
        retries=Retries(times=2, timeout=timeout, first_wait=0.01),
        polling=Polling(0.02, longest=0.2),
    )


# -- cost -------------------------------------------------------------------------------------


def certified(model: ModelDefaults, seed: int, half_width: float) -> Audit:
    """An audit that ended with everything certified."""
    audit = Audit(
        QuestionSpace(frames(), RELATIONS),
        model,
        seed=seed,
        half_width=half_width,
        targets=["overall", "relations"],
        candidates=512,
    )
    result = audit.run()
    if not result.targets["certified"].all():
        raise RuntimeError(f"expected all targets to be certified, got {result.reason}")
    model.close()
    return audit


def cost(seeds: int, half_width: float) -> pd.DataFrame:
    rows = []
    with served(serve, Behaviour()) as url:
        for seed in range(seeds):
            for size in SIZES:
                one = chat(url, limits=Limits(in_flight=1))
                audit = certified(one if size == 1 else batched(url, size), seed, half_width)
                calls = len(audit.journal.calls())
                rows.append({"seed": seed, "size": size, "calls": calls, "cost": audit.cost})
    means = pd.DataFrame(rows).groupby("size")[["calls", "cost"]].mean()
    means["of one by one"] = (means["cost"] / means["cost"][1]).round(3)
    means = means.round({"calls": 1, "cost": 4}).reset_index(names="calls per batch")
    means.insert(1, "audits", seeds)
    means.insert(2, "half-width", half_width)
    return means


# -- kills ------------------------------------------------------------------------------------


def killed_audit(url: str, journal: str) -> None:
    """The audit that is killed and resumed, in a process of its own."""
    to_its_end(batched(url, 16), journal, half_width=0.02, max_cost=CAP)


def kills(moments: int) -> list[Row]:
    runs = pd.DataFrame(struck(killed_audit, moments, 1.5, Behaviour(latency=0.15, spread=0.5)))
    billed = [
        HALF.cost(Usage(sent, said))
        for sent, said in zip(runs["prompt_tokens"], runs["completion_tokens"], strict=True)
    ]
    return [
        {
            "kills": runs["kills"].sum(),
            "audits": len(runs),
            "with the undisturbed certificate": runs["same"].sum(),
            "calls counted as lost": runs["lost"].sum(),
            "requests submitted twice": (runs["batched"] - BUDGET).sum(),
            "over the cap": (np.maximum(runs["cost"], billed) > CAP).sum(),
            "billed otherwise than booked": ((runs["cost"] - billed).abs() > 1e-9).sum(),
        }
    ]


SUITES: dict[str, Callable[[Any], pd.DataFrame | list[Row]]] = {
    "cost": lambda given: cost(given.seeds, given.half_width),
    "kills": lambda given: kills(given.kills),
}


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = options(
        __doc__,
        arguments,
        quick={"seeds": 1, "half_width": 0.2, "kills": 2},
        only=SUITES,
        seeds=3,
        half_width=0.05,
        kills=50,
    )
    for name in chosen.only:
        told(SUITES[name](chosen), chosen.out / f"batches-{name}.csv")


if __name__ == "__main__":
    main()
