"""Find the number of candidates from which a GPU pays: time per draw on the CPU and on CUDA.

    python -m adaptive_vtt.experiments.engine.crossover

One draw samples candidates, predicts their losses by the question GP (after ``--observed`` calls of
14 answers), weighs them by ``certify``, makes the proposal, draws, and fixes the bets. The GPs are
on the device. For each candidate, five integers go there and one prediction comes back, 48 bytes in
all. Sampling, needs and proposal are computed by NumPy in both cases; "of that GP" is the part that
the device can speed up.

The second table is about follow-up images (``rendering``), which the package makes on the CPU.

Prints the machine, the tables, and, if there is a GPU, the fewest candidates at which it was
faster.
"""

from collections.abc import Sequence

import cv2
import numpy as np
import pandas as pd
import torch

from adaptive_vtt.engine.options import Certify
from adaptive_vtt.engine.predictors import fresh_belief
from adaptive_vtt.engine.proxies import Proxies
from adaptive_vtt.engine.selector import Selector
from adaptive_vtt.experiments.engine.speed import CONCEPTS, answers, space_of
from adaptive_vtt.experiments.program import Row, machine, milliseconds, options, save_table, show
from adaptive_vtt.strategies import get

from . import rendering

CANDIDATES = (4096, 65_536, 1_000_000)
SIZE = 10**9
"""Questions in the space."""


def measure(candidates: int, observed: int, draws: int, device: str) -> Row:
    """Return median milliseconds of ``draws`` draws, and of their predictions alone."""
    selector = prepared(candidates, observed, device)

    def draw() -> None:
        selector.draws += 1  # other candidates each time; nothing is learnt between
        selector.draw()

    whole = milliseconds(draw, draws)
    losses, looked_at = selector.belief.losses, selector.pool.candidates(0)
    assert losses is not None
    return {
        "candidates": candidates,
        "device": device,
        "ms per draw": round(whole, 1),
        "of that GP": round(milliseconds(lambda: losses.posterior(looked_at), draws), 1),
    }


def prepared(candidates: int, observed: int, device: str) -> Selector:
    """Return a selector with this number of candidates that has learnt ``observed`` calls."""
    space = space_of(SIZE)
    certify = Certify(half_width=0.001)
    belief = fresh_belief(certify, space, "all", seed=0, device=device, proxies=Proxies(space, {}))
    selector = Selector(
        space, get("certify"), exploration=0.2, candidates=candidates, answers="all", belief=belief
    )
    rng = np.random.default_rng(1)
    for call in rng.choice(space.size // CONCEPTS, observed, replace=False).tolist():
        questions = np.arange(call * CONCEPTS, (call + 1) * CONCEPTS)
        belief.learn(answers(space, questions, rng))
        selector.pool.remove(questions)
    return selector


def crossover(table: pd.DataFrame) -> str:
    """Return the fewest candidates at which CUDA was faster, in words."""
    if "cuda" not in set(table["device"]):
        return "no CUDA device here: nothing to compare with"
    wide = table.pivot_table(index="candidates", columns="device", values="ms per draw")
    faster = wide.index[wide["cuda"] < wide["cpu"]]
    return (
        f"CUDA is faster from {faster[0]:,} candidates on" if len(faster) else "the CPU is faster"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    threads = torch.get_num_threads(), cv2.getNumThreads()
    chosen = options(
        __doc__,
        arguments,
        quick={"observed": 100, "draws": 2, "sides": [28, 224], "batches": [1, 16]},
        only=dict.fromkeys(("draws", "rendering")),
        device=["cpu", *(["cuda"] if torch.cuda.is_available() else [])],
        observed=1000,
        draws=5,
        sides=[*rendering.SIDES],
        batches=[*rendering.BATCHES],
    )
    torch.set_num_threads(threads[0])  # the CPU is compared with all its cores
    cv2.setNumThreads(threads[1])
    show(machine())
    if "draws" in chosen.only:
        show(f"one draw after {chosen.observed} calls of {CONCEPTS} answers, milliseconds")
        sizes = [(n, device) for n in CANDIDATES for device in chosen.device]
        rows = [measure(n, chosen.observed, chosen.draws, device) for n, device in sizes]
        save_table(rows, chosen.out / "crossover.csv")
        show(crossover(pd.DataFrame(rows)))
    if "rendering" in chosen.only:
        show("follow-up images, milliseconds per image, transfers to the device and back included")
        table = rendering.table(chosen.sides, chosen.batches, chosen.device, chosen.draws)
        save_table(table, chosen.out / "crossover-rendering.csv")
        show(rendering.faster(table))


if __name__ == "__main__":
    main()
