"""From how many candidates on a GPU pays: time per draw on the CPU and on CUDA, side by side.

One draw looks at so many candidates: samples them, predicts their losses by the question GP (which
has seen ``--observed`` calls of 14 answers), weighs them by ``certify``, makes the proposal, draws,
and fixes what the draw means for every target. The GPs live on the device; of a draw's candidates
five columns of whole numbers go there and one column of predictions comes back, so that each
transfer is 48 bytes per candidate. Sampling, needs and proposal are NumPy's on either: "of that
GP" is the part that the device can make faster.

Prints the machine it ran on, the table, and, where there is a GPU, the fewest candidates at which
it was faster. Writes crossover.csv.
"""

import os
import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from adaptive_vtt.engine.assembly import fresh_belief
from adaptive_vtt.engine.options import Certify
from adaptive_vtt.engine.proxies import Proxies
from adaptive_vtt.engine.selector import Selector
from adaptive_vtt.experiments.engine.speed import CONCEPTS, answers, space_of
from adaptive_vtt.experiments.program import Row, options, told
from adaptive_vtt.strategies import get

CANDIDATES = (4096, 65_536, 1_000_000)
SIZE = 10**9
"""Questions in the space."""


def machine() -> str:
    """Processor, cores and threads, GPU, and the versions that matter, in a line."""
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "no CUDA device"
    cores = f"{os.cpu_count()} cores, {torch.get_num_threads()} threads"
    return f"{_processor()}, {cores}; {gpu}; torch {torch.__version__}, {platform.platform()}"


def _processor() -> str:
    """The processor's name, where the system tells it."""
    told = Path("/proc/cpuinfo")
    lines = told.read_text(encoding="utf-8").splitlines() if told.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def measure(candidates: int, observed: int, draws: int, device: str) -> Row:
    """Median milliseconds of a draw, and of its predictions alone, over ``draws`` of them."""
    selector = prepared(candidates, observed, device)
    selector.draw()  # tables are made, and kernels loaded, once
    numbers = iter(range(1, 2 * draws + 1))

    def draw() -> None:
        selector.draws = next(numbers)  # other candidates each time; nothing is learnt between
        selector.draw()

    whole = _median(draw, draws)
    losses, looked_at = selector.belief.losses, selector.pool.candidates(0)
    assert losses is not None
    return {
        "candidates": candidates,
        "device": device,
        "ms per draw": whole,
        "of that GP": _median(lambda: losses.posterior(looked_at), draws),
    }


def prepared(candidates: int, observed: int, device: str) -> Selector:
    """A selector that looks at so many candidates and has heard ``observed`` random calls."""
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


def _median(work: Callable[[], Any], times: int) -> float:
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        work()  # ends with results on the CPU, so the device has finished
        taken.append(time.perf_counter() - start)
    return round(1000 * float(np.median(taken)), 1)


def crossover(table: pd.DataFrame) -> str:
    """The fewest candidates at which CUDA was faster, in words."""
    if "cuda" not in set(table["device"]):
        return "no CUDA device here: nothing to compare with"
    wide = table.pivot_table(index="candidates", columns="device", values="ms per draw")
    faster = wide.index[wide["cuda"] < wide["cpu"]]
    return (
        f"CUDA is faster from {faster[0]:,} candidates on" if len(faster) else "the CPU is faster"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    quick = {"observed": 100, "draws": 2}
    threads = torch.get_num_threads()
    chosen = options(__doc__, arguments, quick=quick, observed=1000, draws=5)
    torch.set_num_threads(threads)  # the CPU is compared with all its cores
    devices = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    print(machine())
    print(f"one draw after {chosen.observed} calls of {CONCEPTS} answers, milliseconds")
    table = pd.DataFrame(
        [
            measure(n, chosen.observed, chosen.draws, device)
            for n in CANDIDATES
            for device in devices
        ]
    )
    told(table, chosen.out / "crossover.csv")
    print(crossover(table))


if __name__ == "__main__":
    main()
