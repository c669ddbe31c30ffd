"""Compare the CPU time of a census with that of an audit, of its necessary parts, and of a loop.

    python -m adaptive_vtt.experiments.medmnistc.census_speed

A small network with nine classes is asked about the corruptions of one data set of MedMNIST-C, at
28 x 28 pixels and all five severities. The table has the CPU time of one process, per question, for

- a census with its result and report;
- making the images alone, and asking the network alone, which are parts of every census;
- an audit of --calls calls;
- a plain loop over the package medmnistc that counts wrong answers, if the package is installed
  (see ``medmnistc_reference``).
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import torch

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.audit.in_order import BATCH
from adaptive_vtt.audit.rendering_ahead import made
from adaptive_vtt.datasets import from_table
from adaptive_vtt.models import PythonModel
from adaptive_vtt.oracles import TopClass
from adaptive_vtt.relations import medmnistc
from adaptive_vtt.types import Image

from ..program import options, save_table
from . import medmnistc_reference as reference
from .corruption_speed import picture

FLAG, CLASSES, SIDE = "pathmnist", 9, 28


def questions(images: int) -> tuple[QuestionSpace, list[Image]]:
    """Return tiles of drawn pictures with random classes, under all corruptions of FLAG."""
    rng = np.random.default_rng(0)
    pictures = [picture(seed) for seed in range(4)]
    corners = rng.integers(0, 224 - SIDE, (images, 2))
    tiles = [pictures[k % 4][y : y + SIDE, x : x + SIDE] for k, (y, x) in enumerate(corners)]
    truth = np.eye(CLASSES, dtype=int)[rng.integers(0, CLASSES, images)]
    table = pd.DataFrame(truth, columns=[f"class {k}" for k in range(CLASSES)])
    relations: list[Any] = ["identity", *medmnistc.relations(FLAG)]
    return QuestionSpace(from_table(np.stack(tiles), table), relations, oracle=TopClass()), tiles


def network() -> Callable[[list[Image]], Any]:
    """Return an untrained network of three convolutions, as only its CPU time matters."""
    torch.manual_seed(0)
    layers: list[torch.nn.Module] = []
    for before, after in ((3, 16), (16, 32), (32, 64)):
        layers += [torch.nn.Conv2d(before, after, 3, 2, 1), torch.nn.ReLU()]
    net = torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(64 * 16, CLASSES))

    @torch.no_grad()
    def predict(images: list[Image]) -> Any:
        batch = torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).float() / 255
        return net(batch).softmax(1)

    return predict


def parts(images: Sequence[Any]) -> Iterator[list[Any]]:
    """Yield the images in batches."""
    rest = iter(images)
    while part := [*islice(rest, BATCH)]:
        yield part


def seconds(work: Callable[[], Any]) -> float:
    """Return the CPU seconds of this process during ``work``."""
    start = time.process_time()
    work()
    return time.process_time() - start


def of_census(space: QuestionSpace, predict: Any) -> float:
    """Return the CPU seconds of a census with its result and report."""

    def work() -> None:
        with TemporaryDirectory() as folder:
            journal = Path(folder) / "journal.db"
            options: Any = {"strategy": "everything", "journal": journal, "processes": 0}
            with Audit(space, PythonModel(predict), **options) as audit:
                audit.run().save(folder)

    return seconds(work)


def of_audit(space: QuestionSpace, predict: Any, calls: int) -> float:
    """Return the CPU seconds of an audit of ``calls`` calls."""
    audit = Audit(space, PythonModel(predict), half_width=0.001, targets=["overall"], budget=calls)
    with audit:
        return seconds(audit.run)


def of_both_alone(space: QuestionSpace, predict: Any) -> tuple[float, float]:
    """Return the CPU seconds of making all images, and of asking about them."""
    numbers = [*range(space.images)]
    ready: list[Image] = []

    def make() -> None:
        for part in parts(numbers):
            ready.extend(
                pair[1].image for pair in made(space, part).values() if pair[1].image is not None
            )

    making = seconds(make)
    return making, seconds(lambda: [predict(part) for part in parts(ready)])


def of_loop(tiles: Sequence[Image], predict: Any) -> float | None:
    """Return the CPU seconds of a loop over the package's corruptions, None without the package."""
    with suppress(ImportError):
        corruptions = reference.registry()[FLAG].values()

        def work() -> None:
            for corruption in corruptions:
                for severity in range(1, 6):
                    changed = [reference.apply(corruption, tile, severity) for tile in tiles]
                    for part in parts(changed):
                        predict(part).argmax(1)

        return seconds(work)
    return None


def measure(images: int, calls: int) -> pd.DataFrame:
    """Return questions, CPU ms per question, and its ratio to the census, by kind of work."""
    space, tiles = questions(images)
    predict = network()
    predict(tiles)
    count = space.size
    making, asking = of_both_alone(space, predict)
    measured: list[tuple[str, int, float | None]] = [
        ("census", count, of_census(space, predict)),
        ("making images alone", count, making),
        ("asking the network alone", count, asking),
        (f"an audit of {calls} calls", calls * CLASSES, of_audit(space, predict, calls)),
        ("a loop over medmnistc", count, of_loop(tiles, predict)),
    ]
    rows = [(work, n, 1000 * s / n) for work, n, s in measured if s is not None]
    table = pd.DataFrame(rows, columns=["work", "questions", "ms per question"])
    return table.assign(**{"times the census": table["ms per question"] / rows[0][2]})


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = options(__doc__, arguments, quick={"images": 10, "calls": 30}, images=100, calls=300)
    reference.seed(0)
    table = measure(chosen.images, chosen.calls)
    save_table(table.round(4), chosen.out / "census_speed.csv")


if __name__ == "__main__":
    main()
