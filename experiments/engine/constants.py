"""Count the questions that other values of the engine's constants cost, with the same seeds.

    python -m adaptive_vtt.experiments.engine.constants ROOM=1.25,FADE=.95 PROXY_WEIGHT=0,CAUTION=10

Each argument is a row; the first row has the usual values. The benchmark is digits-severity with
one target, one question per call and self-taught nets, as in ``certificates``. The first draws of
equal seeds are the same, so differences are more precise than means. ``--explained`` makes no
audit. It computes the share of the variance that predictions explain (``digits.explained``) after
some random answers, which takes seconds and is far more precise.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from types import ModuleType
from unittest.mock import patch

import numpy as np
import pandas as pd
import torch
from scipy.stats import sem

from adaptive_vtt.certify import certifier
from adaptive_vtt.errors import check_known
from adaptive_vtt.models.local import self_taught
from adaptive_vtt.surrogates import loss_mean
from adaptive_vtt.utils.random_streams import generator

from ..program import Row, options, save_table, show
from . import certificates
from .certificates import TAUGHT, Task, run
from .digits import TEST, explained
from .self_taught import benches

PLACES: dict[str, ModuleType] = {
    **dict.fromkeys(("ROOM", "FADE", "RANGE"), certifier),
    **dict.fromkeys(("PROXY_WEIGHT", "CAUTION"), loss_mean),
    **dict.fromkeys(("TEAMS", "HIDDEN", "STEPS"), self_taught),
}
"""Name of a constant that may be changed -> its module."""
ANSWERS = (10, 20, 40, 70, 120, 200)
"""Numbers of answers after which the explained share is computed."""


@contextmanager
def changed(values: Mapping[str, float]) -> Iterator[None]:
    """Give constants other values inside the context."""
    certificates._taught.cache_clear()
    benches.cache_clear()
    with ExitStack() as until:
        for name, value in values.items():
            kind = type(getattr(PLACES[name], name))
            until.enter_context(patch.object(PLACES[name], name, kind(value)))
        yield


def parsed(text: str) -> dict[str, float]:
    """Return the values of a text such as A=1,B=2; raise InputError for an unknown name."""
    values = {name: float(value) for name, value in (p.split("=") for p in text.split(",") if p)}
    for name in values:
        check_known("constant", name, PLACES, "command line")
    return values


def explained_after(seed: int) -> list[float]:
    """Return the share explained after each of ANSWERS answers, which are learnt ten at a time."""
    bench = benches()["digits-severity", "self-taught"]
    order = torch.from_numpy(generator(seed, "digits").permutation(bench.losses.size))
    gp = bench.gp(proxies=bench.proxy_losses, **bench.inputs())
    unseen = bench.judged(order[ANSWERS[-1] :][:TEST])
    shares = []
    for start in range(0, ANSWERS[-1], 10):
        gp.observe(bench.judged(order[start : start + 10]))
        if start + 10 in ANSWERS:
            shares.append(explained(unseen.loss, gp.posterior(unseen).mean))
    return shares


def row(runs: pd.DataFrame, usual: pd.DataFrame) -> Row:
    """Return mean questions, their excess over ``usual`` at the same seeds, and its error."""
    asked, before = runs["questions"].to_numpy(float), usual["questions"].to_numpy(float)
    error = sem(asked - before) if len(asked) > 1 else np.nan
    return {
        "questions": round(float(asked.mean()), 1),
        "more": round(float((asked - before).mean()), 1),
        "+-": round(float(error), 1),
        "held": f"{runs['covered'].sum()} of {len(runs)}",
    }


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = options(
        __doc__,
        arguments,
        quick={"seeds": 1, "half_width": 0.1},
        rest="changes",
        seeds=24,
        first=300,
        half_width=0.05,
        explained=False,
    )
    seeds = range(chosen.first, chosen.first + chosen.seeds)
    rows, usual = [], None
    for change, values in [("as it is", {}), *((text, parsed(text)) for text in chosen.changes)]:
        with changed(values):
            if chosen.explained:
                shares = np.mean([explained_after(seed) for seed in seeds], axis=0).round(3)
                figures: Row = dict(zip(map(str, ANSWERS), shares.tolist(), strict=True))
            else:
                tasks = [Task("digits-severity", TAUGHT, chosen.half_width, seed) for seed in seeds]
                runs = pd.DataFrame([run(task) for task in tasks])
                usual = runs if usual is None else usual
                figures = row(runs, usual)
        rows.append({"constants": change, **figures})
        show(rows[-1])
    save_table(
        rows, chosen.out / ("constants-explained.csv" if chosen.explained else "constants.csv")
    )


if __name__ == "__main__":
    main()
