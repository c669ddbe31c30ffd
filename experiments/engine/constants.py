"""What another value of one of the engine's constants costs: questions of the same seeds.

    python -m adaptive_vtt.experiments.engine.constants ROOM=1.25,FADE=.95 TOLD=0,CAUTION=10,TEAMS=1

Each argument is a row; the first row leaves all as they are. digits-severity, one target, one
question per call, predicted by self-taught nets: a row of ``certificates``, with seeds of its own.
Draws of equal seeds stay alike for a while, so that differences are known better than means are.
With --explained no audits are made: the share of the variance that predictions explain
(``digits.explained``) after some answers in random order, which takes seconds and tells far more.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from types import ModuleType
from unittest.mock import patch

import numpy as np
import pandas as pd
import torch

from adaptive_vtt.certify import certifier
from adaptive_vtt.errors import check_known
from adaptive_vtt.models.local import self_taught
from adaptive_vtt.surrogates import loss_mean
from adaptive_vtt.types import Floats
from adaptive_vtt.utils.random_streams import generator

from ..program import options
from . import certificates
from .certificates import TAUGHT, Task, run
from .digits import TEST, explained
from .self_taught import benches

PLACES: dict[str, ModuleType] = {
    **dict.fromkeys(("ROOM", "FADE", "RANGE"), certifier),
    **dict.fromkeys(("TOLD", "CAUTION"), loss_mean),
    **dict.fromkeys(("TEAMS", "HIDDEN", "STEPS"), self_taught),
}
"""The constants that may be changed, and where they stand."""
ANSWERS = (10, 20, 40, 70, 120, 200)
"""After so many answers it is worked out what is explained."""


@contextmanager
def changed(values: Mapping[str, float]) -> Iterator[None]:
    """The constants of those names have those values, for a while."""
    certificates._taught.cache_clear()
    benches.cache_clear()
    with ExitStack() as until:
        for name, value in values.items():
            kind = type(getattr(PLACES[name], name))
            until.enter_context(patch.object(PLACES[name], name, kind(value)))
        yield


def parsed(text: str) -> dict[str, float]:
    """The mapping that A=1,B=2 stands for; raises InputError for an unknown name."""
    values = {name: float(value) for name, value in (p.split("=") for p in text.split(",") if p)}
    for name in values:
        check_known("constant", name, PLACES, "command line")
    return values


def explained_after(seed: int) -> list[float]:
    """What is explained after each of ANSWERS answers, learnt ten at a time."""
    bench = benches()["digits-severity", "self-taught"]
    order = torch.from_numpy(generator(seed, "digits").permutation(bench.losses.size))
    gp = bench.gp(proxies=bench.proxy_losses, **bench.inputs())
    unseen = bench.judged(order[ANSWERS[-1] :][:TEST])
    found = []
    for start in range(0, ANSWERS[-1], 10):
        gp.observe(bench.judged(order[start : start + 10]))
        if start + 10 in ANSWERS:
            found.append(explained(unseen.loss, gp.posterior(unseen).mean))
    return found


def main(arguments: Sequence[str] | None = None) -> dict[str, Floats]:
    """Prints a row per change; returns the questions of every seed."""
    chosen = options(
        __doc__,
        arguments,
        rest="changes",
        seeds=24,
        first=300,
        half_width=0.05,
        explained=False,
    )
    seeds = range(chosen.first, chosen.first + chosen.seeds)
    found: dict[str, Floats] = {}
    changes = {change: parsed(change) for change in ["", *chosen.changes]}
    for change, values in changes.items():
        with changed(values):
            if chosen.explained:
                found[change] = np.mean([explained_after(seed) for seed in seeds], axis=0)
                told = pd.Series(found[change], ANSWERS).round(3).to_dict()
                print(f"{change or 'as it is':28} {told}", flush=True)
                continue
            tasks = [Task("digits-severity", TAUGHT, chosen.half_width, seed) for seed in seeds]
            runs = pd.DataFrame([run(task) for task in tasks])
        found[change] = runs["questions"].to_numpy(float)
        more = found[change] - found[""]
        error = more.std(ddof=1) / len(more) ** 0.5 if len(more) > 1 else np.nan
        print(
            f"{change or 'as it is':28} {found[change].mean():7.1f} questions, {more.mean():+6.1f} "
            f"(+-{error:.1f}), held {runs['covered'].sum()}/{len(runs)}",
            flush=True,
        )
    return found


if __name__ == "__main__":
    main()
