"""Chaotic audits of paid models whose replies a judge reads: what a cap holds.

Each audit takes one of three ways to its model: calls in flight, batches, or worker processes. Its
judge is an endpoint of its own. A tenth of all requests fail (429, 5xx, hangs, replies that are cut
off after they were billed), workers die, and the audit itself is killed with SIGKILL at random
moments, up to twice, and resumed to its end. The endpoints, and a log of the model that workers
hold, keep the bills. Every second audit has a cap too small to certify.

    python -m tests.campaigns.money [--quick] [--audits 300]
"""

import os
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, suppress
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from adaptive_vtt.audit import Audit
from adaptive_vtt.datasets.table import WordedDataset
from adaptive_vtt.experiments import program
from adaptive_vtt.experiments.engine.endpoints import MAX_INPUT, MAX_OUTPUT, PRICES, bill, chat
from adaptive_vtt.experiments.engine.held_models import CALLS, LOOKS, STUDENT_PRICE
from adaptive_vtt.experiments.engine.killed_audits import ended, run_and_end, served
from adaptive_vtt.experiments.engine.workers import MODELS, Striker
from adaptive_vtt.experiments.medtest import phantoms
from adaptive_vtt.experiments.program import Row
from adaptive_vtt.models import (
    Encoding,
    Limits,
    ModelDefaults,
    OpenAIBatch,
    Retries,
    Usage,
    Workers,
)
from adaptive_vtt.models.network.prompt_templates import TEMPLATES
from adaptive_vtt.models.workers import MAX_ASKED
from adaptive_vtt.oracles import MultipleChoice
from adaptive_vtt.oracles.judge_models import JudgeModel
from adaptive_vtt.results.result import Result
from adaptive_vtt.space import QuestionSpace
from adaptive_vtt.types import Ask
from tests.helpers.endpoint import MODEL, Behaviour, DemoModel, DemoServer, Dialect
from tests.helpers.endpoint.fake_models import FakeJudge

WAYS = ("in flight", "batches", "workers")
PICTURES = 60
HALF_WIDTH = 0.15
HALF = PRICES.times(0.5)
"""Prices of tokens in a batch."""
WORTH = (25, 150)
"""Calls and judgements, at their worst price, that the caps of even and odd audits pay for."""
FAULTS = Behaviour(
    latency=0.02, spread=0.5, limited=0.03, broken=0.03, hung=0.01, truncated=0.03, retry_after=0.02
)
THOUGHTS = 8
"""Tokens of a reply that are billed and only counted in the total, as by some providers."""
PATIENCE = Retries(times=2, timeout=1.0, first_wait=0.01)
MAX_TURNS = 5
"""Number of ends with an error after which an audit has failed."""
MAX_WAIT = 1.5
"""Most seconds until an audit is killed."""


@cache
def exam() -> WordedDataset:
    """Return synthetic frames, with one multiple-choice question about each."""
    drawn = phantoms.frames(PICTURES, size=64, seed=0)
    return WordedDataset(
        [drawn.sample(k).image for k in range(PICTURES)],
        np.ones((PICTURES, 1), np.int8),
        [f"s{k}" for k in range(PICTURES)],
        ("finding",),
        asks=[{"finding": Ask("Which of these is shown?", LOOKS)}] * PICTURES,
        answers=[{"finding": ("ABCD"[k % 4],)} for k in range(PICTURES)],
        name="exam",
    )


def serve(port: Any, seed: int) -> None:
    """Serve an endpoint, in its own process, that answers about frames and judges replies."""
    fake = DemoModel(["finding"], rambling=0.1, vague=0.3, seed=seed)
    dialect = Dialect(thoughts=THOUGHTS)
    with DemoServer(FakeJudge(fake), FAULTS, dialect=dialect) as server:
        port.send(server.port)
        while True:
            time.sleep(60)


FAILED: Row = {
    "cost": 0.0,
    "calls": 0,
    "judged": 0,
    "lost": 0,
    "certified": False,
    "capped": False,
    "kills": 0,
}
"""Figures of an audit that raised an error, or did not verify."""


class Setting(NamedTuple):
    """One audit: the way to its model, its seed, its judge, and the file of the workers' bill."""

    way: str
    seed: int
    judge: str
    log: str


def paid_model(setting: Setting, url: str) -> ModelDefaults:
    if setting.way == "batches":
        return OpenAIBatch(
            MODEL,
            base_url=f"{url}/v1",
            encoding=Encoding("jpeg"),
            max_tokens=MAX_OUTPUT,
            max_input_tokens=MAX_INPUT,
            prices=PRICES,
            batch_size=16,
            retries=PATIENCE,
            poll_seconds=0.02,
        )
    if setting.way == "workers":
        return Workers(f"{MODELS}:student", 2)
    return chat(url, limits=Limits(in_flight=8), retries=PATIENCE)


def audited(setting: Setting, url: str, journal: str) -> None:
    """Run the audit that is killed; see ``run_and_end``."""
    os.environ[CALLS] = setting.log
    model = paid_model(setting, url)
    judge = chat(
        setting.judge, limits=Limits(in_flight=4), retries=PATIENCE, template=TEMPLATES["verbatim"]
    )
    oracle = MultipleChoice(judge=JudgeModel(judge, check=0.1))
    if isinstance(model, Workers) and not Path(journal).exists():
        Striker(model, 1).start()
    audit = Audit(
        QuestionSpace(exam(), ("identity", "brightness_down", "contrast_down"), oracle=oracle),
        model,
        seed=setting.seed,
        half_width=HALF_WIDTH,
        targets=["overall", "relations"],
        max_cost=cap(setting),
        candidates=256,
        surrogate=False,
        journal=journal,
    )
    with model:  # a process that multiprocessing forked would wait for workers at its end
        run_and_end(audit, journal, partial(told, audit))


def told(audit: Audit, result: Result) -> Row:
    """Return further figures of an audit."""
    return {
        "calls": result.calls,
        "judged": len(audit.journal.judging()),
        "certified": bool(result.targets["certified"].all()),
        "capped": "was spent" in str(result.reason),
    }


def cap(setting: Setting) -> float:
    """Return the audit's cap, in the currency of ``PRICES``."""
    worst = Usage(MAX_INPUT, MAX_OUTPUT)
    call = {"batches": HALF.cost(worst), "workers": MAX_ASKED * STUDENT_PRICE}.get(
        setting.way, PRICES.cost(worst)
    )
    return WORTH[setting.seed % 2] * (call + PRICES.cost(worst))


def chaotic(seeds: Sequence[int]) -> list[Row]:
    """Run audits one after the other, with two endpoints that no other process asks."""
    import torch

    torch.set_num_threads(1)
    exam()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        url, judge = (stack.enter_context(served(serve, seeds[0])) for _ in range(2))
        return [_one(seed, url, judge, Path(folder)) for seed in seeds]


def _one(seed: int, url: str, judge: str, folder: Path) -> Row:
    """Run one audit, which is killed and resumed, and return its figures and its bill."""
    rng = np.random.default_rng(seed)
    way = WAYS[seed // 2 % len(WAYS)]
    setting = Setting(way, seed, judge, str(folder / f"{seed}.log"))
    before = [bill(u) for u in (url, judge)]
    waits = rng.uniform(0.0, MAX_WAIT, int(rng.integers(0, 3))).tolist()
    audit = partial(audited, setting)
    found = _resumed(audit, url, str(folder / f"{seed}.db"), waits)
    time.sleep(0.3)  # what was under way at a kill is billed
    asked, read = (_bills(u, b) for u, b in zip((url, judge), before, strict=True))
    log = Path(setting.log)
    lines = len(log.read_text().splitlines()) if log.exists() else 0
    price = HALF if way == "batches" else PRICES
    billed = price.cost(asked) + PRICES.cost(read) + lines * STUDENT_PRICE
    return {"way": way, "billed": billed, "cap": cap(setting), **found}


def _resumed(audit: Any, url: str, journal: str, waits: list[float]) -> Row:
    """Return the figures of an audit, which is resumed if it ends with an error."""
    for turn in range(MAX_TURNS):
        with suppress(FileNotFoundError):
            return ended(get_context("fork"), audit, url, journal, [] if turn else waits)
    return FAILED


def _bills(url: str, before: dict[str, int]) -> Usage:
    now = bill(url)
    since = {name: count - before[name] for name, count in now.items()}
    # what no client saw is billed, too
    sides = ("prompt_tokens", "completion_tokens")
    return Usage(*(since[side] + since[f"unseen_{side}"] for side in sides))


def table(runs: pd.DataFrame) -> pd.DataFrame:
    """Return a row per way to the model."""
    runs = runs.assign(
        over=runs[["billed", "cost"]].max(axis=1) > runs["cap"] + 1e-9,
        share=runs["billed"] / runs["cap"],
    )
    rows = []
    for way, group in [*runs.groupby("way", sort=False), ("all", runs)]:
        rows.append(
            {
                "way": way,
                "audits": len(group),
                "kills": int(group["kills"].sum()),
                "certified": int(group["certified"].sum()),
                "stopped by the cap": int(group["capped"].sum()),
                "failed": int((group["cost"] == 0).sum()),
                "over the cap": int(group["over"].sum()),
                "most of a cap billed": round(float(group["share"].max()), 3),
                "calls": round(float(group["calls"].mean()), 1),
                "judgements": round(float(group["judged"].mean()), 1),
                "calls lost": int(group["lost"].sum()),
                "billed of booked": round(float(group["billed"].sum() / group["cost"].sum()), 3),
            }
        )
    return pd.DataFrame(rows)


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = program.options(__doc__, arguments, quick={"audits": 12}, audits=300)
    seeds = list(range(chosen.audits))
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        runs = pd.DataFrame([run for part in pool.map(chaotic, _parts(seeds)) for run in part])
    program.save_table(table(runs), chosen.out / "money.csv")


def _parts(seeds: list[int]) -> list[list[int]]:
    """Return two halves, each with every way and both sizes of cap."""
    half = len(seeds) // 2
    return [part for part in (seeds[:half], seeds[half:]) if part]


if __name__ == "__main__":
    main()
