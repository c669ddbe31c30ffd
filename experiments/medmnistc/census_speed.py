"""A census beside an audit, beside what it cannot do without, and beside a plain loop.

MedMNIST-C's corruptions of one data set at 28 x 28, all five severities, asked of a small network
about nine classes. CPU time of one process: of a census with its result and report; of an audit of
as many calls as --calls says; of making the images and asking the network alone, which no census
can do without; and, where the package is installed (see ``medmnistc_reference``), of a plain loop
over medmnistc that counts
wrong answers.
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
    """Tiles of drawn pictures, of classes by chance, under all corruptions of FLAG."""
    rng = np.random.default_rng(0)
    pictures = [picture(seed) for seed in range(4)]
    corners = rng.integers(0, 224 - SIDE, (images, 2))
    tiles = [pictures[k % 4][y : y + SIDE, x : x + SIDE] for k, (y, x) in enumerate(corners)]
    truth = np.eye(CLASSES, dtype=int)[rng.integers(0, CLASSES, images)]
    table = pd.DataFrame(truth, columns=[f"class {k}" for k in range(CLASSES)])
    relations: list[Any] = ["identity", *medmnistc.relations(FLAG)]
    return QuestionSpace(from_table(np.stack(tiles), table), relations, oracle=TopClass()), tiles


def network() -> Callable[[list[Image]], Any]:
    """Three convolutions, untrained: what it says does not matter, only what it takes."""
    torch.manual_seed(0)
    layers: list[torch.nn.Module] = []
    for before, after in ((3, 16), (16, 32), (32, 64)):
        layers += [torch.nn.Conv2d(before, after, 3, 2, 1), torch.nn.ReLU()]
    net = torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(64 * 16, CLASSES))

    @torch.no_grad()
    def says(images: list[Image]) -> Any:
        batch = torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).float() / 255
        return net(batch).softmax(1)

    return says


def parts(images: Sequence[Any]) -> Iterator[list[Any]]:
    left = iter(images)
    while part := [*islice(left, BATCH)]:
        yield part


def seconds(work: Callable[[], Any]) -> float:
    """CPU time of this process."""
    start = time.process_time()
    work()
    return time.process_time() - start


def of_census(space: QuestionSpace, says: Any) -> float:
    def work() -> None:
        with TemporaryDirectory() as folder:
            journal = Path(folder) / "journal.db"
            options: Any = {"strategy": "everything", "journal": journal, "processes": 0}
            with Audit(space, PythonModel(says), **options) as audit:
                audit.run().save(folder)

    return seconds(work)


def of_audit(space: QuestionSpace, says: Any, calls: int) -> float:
    audit = Audit(space, PythonModel(says), half_width=0.001, targets=["overall"], budget=calls)
    with audit:
        return seconds(audit.run)


def of_both_alone(space: QuestionSpace, says: Any) -> tuple[float, float]:
    """Making all images, and asking about them."""
    numbers = [*range(space.images)]
    ready: list[Image] = []

    def make() -> None:
        for part in parts(numbers):
            ready.extend(
                pair[1].image for pair in made(space, part).values() if pair[1].image is not None
            )

    making = seconds(make)
    return making, seconds(lambda: [says(part) for part in parts(ready)])


def of_loop(tiles: Sequence[Image], says: Any) -> float | None:
    """The package's corruptions in a loop, wrong answers counted; None where it is missing."""
    with suppress(ImportError):
        corruptions = reference.registry()[FLAG].values()

        def work() -> None:
            for corruption in corruptions:
                for severity in range(1, 6):
                    changed = [reference.apply(corruption, tile, severity) for tile in tiles]
                    for part in parts(changed):
                        says(part).argmax(1)

        return seconds(work)
    return None


def measure(images: int, calls: int) -> pd.DataFrame:
    """A row per way: questions, CPU ms per question, and beside the census."""
    space, tiles = questions(images)
    says = network()
    says(tiles)
    count = space.size
    making, asking = of_both_alone(space, says)
    found: list[tuple[str, int, float | None]] = [
        ("census", count, of_census(space, says)),
        ("making images alone", count, making),
        ("asking the network alone", count, asking),
        (f"an audit of {calls} calls", calls * CLASSES, of_audit(space, says, calls)),
        ("a loop over medmnistc", count, of_loop(tiles, says)),
    ]
    rows = [(what, n, 1000 * s / n) for what, n, s in found if s is not None]
    table = pd.DataFrame(rows, columns=["way", "questions", "ms per question"])
    return table.assign(**{"times the census": table["ms per question"] / rows[0][2]})


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = options(__doc__, arguments, quick={"images": 10, "calls": 30}, images=100, calls=300)
    reference.seed(0)
    table = measure(chosen.images, chosen.calls)
    save_table(table.round(4), chosen.out / "census_speed.csv")


if __name__ == "__main__":
    main()
