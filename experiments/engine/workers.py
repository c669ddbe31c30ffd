"""Measure models in worker processes: calls per second, kills, sending of images, and the driver.

    python -m adaptive_vtt.experiments.engine.workers

rate: audits of a model that sleeps and of one that computes, a tenth of a second per call, with 1,
2, 4 ... workers and the same number of calls in flight. The rows must be the same.

kills: audits run while workers are killed with SIGKILL at random moments; every second audit has a
cap on cost. The rows must be those of an undisturbed audit, and the calls that the model counts
itself must not exceed the cap.

sending: processor time of sending images to a process and of rendering them.

driver: draws per second of the process that draws and writes, with immediate answers.
"""

import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from adaptive_vtt.audit import Audit
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.datasets import from_table
from adaptive_vtt.models import Prompt, Workers
from adaptive_vtt.models.base import ModelDefaults
from adaptive_vtt.space import QuestionSpace
from adaptive_vtt.utils.random_streams import generator

from ..program import Row, options, save_table
from .endpoints import Immediate
from .held_models import CALLS

MODELS = "adaptive_vtt.experiments.engine.held_models"
RELATIONS = ("identity", "brightness_down", "gaussian_noise", "rotation")
FLIGHT = 32
BUDGET = 80
"""Calls of an audit that is disturbed."""
CAP = 60.0
"""Cap on cost of every second one of these audits, where a call costs 1."""
PAUSES = (0.5, 2.5)
"""Least and most seconds between two kills."""
SPARED = 0.8
"""Probability that a kill waits while a worker starts, so that most kills hit working ones."""


def space(samples: int = 60, side: int = 32) -> QuestionSpace:
    """Return a space of random images with random truths."""
    rng = generator(0, "workers", side)
    labels = pd.DataFrame((rng.random((samples, 3)) < 0.4).astype(int), columns=list("abc"))
    labels.index = pd.Index([f"s{k}" for k in range(samples)])
    images = rng.integers(0, 256, (samples, side, side, 3), dtype=np.uint8)
    return QuestionSpace(from_table(images, labels, name="noise"), RELATIONS)


def audited(model: ModelDefaults, **options: Any) -> Audit:
    """Return an audit of the model that has run to its end."""
    options = {"seed": 0, "budget": BUDGET, "half_width": 0.02, "candidates": 256, **options}
    audit = Audit(space(), model, targets=["overall", "relations"], surrogate=False, **options)
    audit.run()
    return audit


def rows_of(audit: Audit) -> tuple[Any, ...]:
    """Return draws and answers, without the seconds and the order in which answers came."""
    draws = [{**vars(row), "elapsed": None} for row in audit.journal.draws()]
    return draws, sorted((c.call, c.cost, c.answers) for c in audit.journal.calls())


# -- rate -------------------------------------------------------------------------------------


def rate(quick: bool, ray: bool) -> list[Row]:
    table = []
    counts: list[int | str] = [1, 2] if quick else [1, 2, 4, 8]
    for name in ("sleeping", "computing"):
        first: tuple[Any, ...] | None = None
        for count in [*counts, *(["ray"] if ray else [])]:
            with held(name, count, in_flight=FLIGHT) as model:
                audit = audited(model, budget=BUDGET if quick else 2 * BUDGET)
                first = first or rows_of(audit)
                table.append(
                    {
                        "model": name,
                        "workers": f"{len(model.workers)}{' on Ray' * (count == 'ray')}",
                        "in flight": FLIGHT,
                        "calls": len(audit.journal.calls()),
                        "calls per second": round(_rate(audit), 1),
                        "same rows": rows_of(audit) == first,
                    }
                )
    return table


def _rate(audit: Audit) -> float:
    """Return the calls answered per second, from the first answer to the last."""
    seconds = np.sort([call.elapsed for call in audit.journal.calls()])
    return float((len(seconds) - 1) / (seconds[-1] - seconds[0]))


@contextmanager
def held(name: str, workers: int | str, **options: Any) -> Iterator[Workers]:
    """Yield one of ``held_models`` in workers that are all ready."""
    model = Workers(f"{MODELS}:{name}", workers, **options)
    try:
        while model.doing:
            time.sleep(0.01)
        yield model
    finally:
        model.close()


# -- kills ------------------------------------------------------------------------------------


class Striker(threading.Thread):
    """Thread that kills a random worker from time to time, ``most`` times in all."""

    def __init__(self, model: Workers, most: int) -> None:
        super().__init__(daemon=True)
        self.kills = 0
        self._model, self._most = model, most

    def run(self) -> None:
        rng = np.random.default_rng(0)
        while self.kills < self._most:
            time.sleep(rng.uniform(*PAUSES))
            if self._model.doing and rng.random() < SPARED:
                continue
            worker: Any = self._model.workers[rng.integers(len(self._model.workers))]
            if worker.pid is not None:
                with suppress(ProcessLookupError):
                    os.kill(worker.pid, signal.SIGKILL)
                    self.kills += 1


def kills(moments: int) -> list[Row]:
    runs: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        with held("sleeping", 2) as model:
            whole = rows_of(audited(model))
        bill = Path(folder) / "calls"
        os.environ[CALLS] = str(bill)
        with held("sleeping", 3) as model:
            striker = Striker(model, moments)
            striker.start()
            while striker.is_alive() or len(runs) < 2:
                runs.append(_disturbed(model, bill, whole, capped=len(runs) % 2 == 1))
            statistics = model.statistics() or {}
        del os.environ[CALLS]
    table = pd.DataFrame(runs)
    return [
        {
            "kills": striker.kills,
            "audits": len(runs),
            "workers died": statistics.get("workers_died", 0),
            "unanswered rows": int(table["unanswered"].sum()),
            "with the undisturbed rows": int(table["same"].sum()),
            "over the cap": int(table["over"].sum()),
            "most billed under the cap": int(table.loc[table["capped"], "billed"].max()),
        }
    ]


def _disturbed(model: Workers, bill: Path, whole: tuple[Any, ...], *, capped: bool) -> Row:
    """Run one audit while workers are killed, and compare it with the undisturbed one.

    With the cap it may end earlier; then its rows must be the first ones.
    """
    bill.write_text("")
    audit = audited(model, max_cost=CAP) if capped else audited(model)
    verify(audit.journal)
    draws, calls = rows_of(audit)
    answers = dict((call, rest) for call, *rest in whole[1])
    same = draws == whole[0][: len(draws)] and all(answers[c][1] == rest[1] for c, *rest in calls)
    billed = len(bill.read_text().splitlines())
    cap = CAP if capped else np.inf
    return {
        "capped": capped,
        "same": same and (capped or len(calls) == BUDGET),
        "unanswered": sum(a.unanswered is not None for _, _, rest in calls for a in rest),
        "billed": billed,
        "over": max(audit.cost + audit.interrupted, billed) > cap + 1e-9,
    }


# -- sending ----------------------------------------------------------------------------------


def sending(quick: bool) -> list[Row]:
    """Return the processor time of this process per call, to render a follow-up and to send it."""
    table, count = [], 40 if quick else 200
    with held("sleeping", 1) as model:
        worker = model.workers[0]
        for side in (32, 224, 512):
            questions = space(samples=10, side=side)
            images = questions.nth(np.linspace(0, questions.size - 1, count).astype(int)) // 3
            start = time.process_time()
            follow_ups = [questions.follow_up(int(image)) for image in images]
            rendered = time.process_time() - start
            prompts = [Prompt(f.image, (), "s", "identity", 0) for f in follow_ups]
            start = time.process_time()
            for prompt in prompts[:10]:
                worker.ask([prompt])
            sent = time.process_time() - start
            table.append(
                {
                    "image": f"{side} x {side}",
                    "ms to render": round(1000 * rendered / count, 2),
                    "ms to send": round(1000 * sent / 10, 2),
                }
            )
    return table


# -- the driver -------------------------------------------------------------------------------


def driver(quick: bool) -> list[Row]:
    table, calls = [], 300 if quick else 1000
    for surrogate in (True, False):
        for flight in (1, 8, 64):
            audit = Audit(
                space(200),
                Immediate(flight),
                seed=0,
                budget=calls,
                half_width=0.005,
                targets=["overall", "relations"],
                surrogate=surrogate,
                candidates=1024,
            )
            start = time.process_time()
            audit.run()
            seconds = (time.process_time() - start) / calls
            table.append(
                {
                    "predictions": "question GP" if surrogate else "none",
                    "in flight": flight,
                    "ms per draw": round(1000 * seconds, 1),
                    "draws per second": round(1 / seconds),
                    "workers kept busy at 0.1 s per call": round(0.1 / seconds),
                    "at 1 s": round(1 / seconds),
                }
            )
    return table


SUITES: dict[str, Callable[[Any], list[Row]]] = {
    "rate": lambda chosen: rate(chosen.quick, chosen.ray),
    "kills": lambda chosen: kills(chosen.kills),
    "sending": lambda chosen: sending(chosen.quick),
    "driver": lambda chosen: driver(chosen.quick),
}


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = options(__doc__, arguments, quick={"kills": 5}, only=SUITES, ray=False, kills=50)
    for name in chosen.only:
        save_table(SUITES[name](chosen), chosen.out / f"workers-{name}.csv")


if __name__ == "__main__":
    main()
