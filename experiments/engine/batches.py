"""Audits in batches: what they cost beside one call at a time, and what kills do to them.

cost: the same certificate of the same endpoint, on this machine in a process of its own, one call
at a time and in batches of several sizes. Calls follow from how old beliefs are when draws are
made; the bill is that of the prices, half of them in batches.

kills: audits in batches of 16 in forked processes, killed with SIGKILL at random moments, while
they submit, wait and read, and resumed until they end. The endpoint counts what it is given: a
request that was submitted twice would be one more than the calls of an undisturbed audit.

    python -m adaptive_vtt.experiments.engine.batches [--quick] [--only cost] [--seeds 3]
"""

import argparse
import tempfile
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from pathlib import Path
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
from adaptive_vtt.utils.files import write_text

from .endpoints import (
    BUDGET,
    MAX_SAID,
    MAX_TOKENS,
    PRICES,
    RELATIONS,
    bill,
    chat,
    frames,
    serve,
    to_its_end,
)
from .killed_audits import ended, served

Row = dict[str, Any]
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


def cost(seeds: int, half_width: float) -> list[Row]:
    rows = []
    with served(serve, Behaviour()) as url:
        for seed in range(seeds):
            for size in SIZES:
                one = chat(url, limits=Limits(in_flight=1))
                audit = certified(one if size == 1 else batched(url, size), seed, half_width)
                calls = len(audit.journal.calls())
                rows.append({"seed": seed, "size": size, "calls": calls, "cost": audit.cost})
    means = pd.DataFrame(rows).groupby("size")[["calls", "cost"]].mean()
    return [
        {
            "calls per batch": size,
            "audits": seeds,
            "half-width": half_width,
            "calls": round(float(row["calls"]), 1),
            "cost": round(float(row["cost"]), 4),
            "of one by one": round(float(row["cost"] / means.loc[1, "cost"]), 3),
        }
        for size, row in means.iterrows()
    ]


# -- kills ------------------------------------------------------------------------------------


def killed_audit(url: str, journal: str) -> None:
    """The audit that is killed and resumed, in a process of its own."""
    to_its_end(batched(url, 16), journal, half_width=0.02, max_cost=CAP)


def kills(moments: int) -> list[Row]:
    context = get_context("fork")
    rng, runs, killed = np.random.default_rng(0), [], 0
    with (
        tempfile.TemporaryDirectory() as folder,
        served(serve, Behaviour(latency=0.15, spread=0.5)) as url,
    ):
        whole = ended(context, killed_audit, url, f"{folder}/whole.db", [])
        while killed < moments:
            before = bill(url)
            waits = rng.uniform(0.0, 1.5, int(rng.integers(1, 4))).tolist()
            found = ended(context, killed_audit, url, f"{folder}/{killed}.db", waits)
            after = bill(url)
            killed += found["kills"]
            runs.append(
                {
                    "same": found["intervals"] == whole["intervals"],
                    "lost": found["lost"],
                    "twice": after["batched"] - before["batched"] - BUDGET,
                    "over": found["cost"] > CAP or _price(before, after) > CAP,
                    "wrong": abs(found["cost"] - _price(before, after)) > 1e-9,
                }
            )
    table = pd.DataFrame(runs)
    return [
        {
            "kills": killed,
            "audits": len(runs),
            "with the undisturbed certificate": int(table["same"].sum()),
            "calls counted as lost": int(table["lost"].sum()),
            "requests submitted twice": int(table["twice"].sum()),
            "over the cap": int(table["over"].sum()),
            "billed otherwise than booked": int(table["wrong"].sum()),
        }
    ]


def _price(before: dict[str, int], after: dict[str, int]) -> float:
    """What the endpoint bills for what came between, at half the prices."""
    sent, said = (after[n] - before[n] for n in ("prompt_tokens", "completion_tokens"))
    return HALF.cost(Usage(sent, said))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="audits in batches")
    parser.add_argument("--out", type=Path, default=Path("bench"))
    parser.add_argument("--quick", action="store_true", help="minutes instead of an hour")
    parser.add_argument("--only", default="", help="cost or kills")
    parser.add_argument("--seeds", type=int, default=3, help="audits per size of batch")
    parser.add_argument("--half-width", type=float, default=0.05, help="of what is certified")
    options = parser.parse_args(arguments)
    seeds, half_width, moments = options.seeds, options.half_width, 50
    if options.quick:
        seeds, half_width, moments = 1, 0.1, 6
    suites: dict[str, Callable[[], list[Row]]] = {
        "cost": lambda: cost(seeds, half_width),
        "kills": lambda: kills(moments),
    }
    for name in options.only.split(",") if options.only else suites:
        frame = pd.DataFrame(suites[name]())
        print(f"\n{name}\n{frame.to_string(index=False)}", flush=True)
        write_text(options.out / f"batches-{name}.csv", frame.to_csv(index=False))


if __name__ == "__main__":
    main()
