"""Audit and retrain two small networks on BCCD, photographs of stained blood.

    python -m adaptive_vtt.experiments.medmnistc.bccd --data BCCD

``bccd_cells`` has the data and the networks, which are trained on half of the photographs. One
network classifies tiles: presence of white cells, presence of platelets, and the number of red
cells in three grades. The other one segments white cells. They are asked about tiles of the other
half, under MedMNIST-C's blood profile and reductions (crop, stretch, rotate). They answer every
question once, and audits replay the answers.

- ``audits``: calls until every target is certified to the half-width, adaptive and uniform, with
  the same guarantee. "covered" counts runs in which every interval held the truth at every moment.
  Another table has the intervals of one run and the truth.
- ``retraining``: error rates after further training of the classifier, on original tiles and as
  many perturbed ones. The shares of relations are equal, or in proportion to the error rates that
  an audit of a quarter of the photographs certified. "trained on" has original tiles alone. The
  rates are exact on the last quarter, which neither training nor that audit used, and estimates for
  other photographs.

Without ``--data`` it only prints where the data are.
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.audit.everything import all_answers, all_losses, means
from adaptive_vtt.benchmark.runs import UNIFORM, Job, certified_run
from adaptive_vtt.certify import named_targets
from adaptive_vtt.datasets.base import Dataset
from adaptive_vtt.models import PythonModel, Recorded
from adaptive_vtt.oracles import Correctness, MaskDrop, Oracle, Ordinal
from adaptive_vtt.relations.augment import Augment
from adaptive_vtt.results.export.mix import MIN_SHARE
from adaptive_vtt.types import Floats, Image

from ..medtest.phantom_unet import UNet, pixels, predict_with
from ..medtest.train_phantom import fit
from ..program import Row, options, save_table, show
from .bccd_cells import (
    RATE,
    WHERE,
    CellNet,
    Tiles,
    cell_loss,
    cell_targets,
    grades_of,
    halves,
    limits_of,
    presence_of,
    read,
    train_cells,
    train_segmenter,
)

RELATIONS = ("identity", "medmnistc/bloodmnist", "reduction")
ADAPTIVE = "certify"
RETRAINING_RATE = RATE / 3
"""Learning rate of retraining."""


@dataclass(frozen=True)
class Sizes:
    """Settings of a run.

    Attributes:
        severities: Severities to ask about.
        cells: Epochs of the classifier.
        masks: Epochs of the segmenter.
        again: Epochs of retraining.
        half_width: Half-width of audits.
        search: Half-width of the audit that gives the shares.
        photographs: Number of photographs; None: all.
    """

    severities: tuple[int, ...] = (2, 5)
    cells: int = 60
    masks: int = 12
    again: int = 10
    half_width: float = 0.1
    search: float = 0.15
    photographs: int | None = None


QUICK = Sizes((5,), 1, 1, 1, 0.35, 0.4, 16)


@dataclass(frozen=True)
class Nets:
    """The networks, the limits of grades, and the tiles to train on and to audit."""

    cells: CellNet
    masks: UNet
    limits: tuple[float, float]
    trained: Tiles
    audited: Tiles

    @classmethod
    def of(cls, folder: Path, sizes: Sizes, seed: int) -> "Nets":
        """Return networks that are trained on half of the photographs in ``folder``."""
        tiles = read(folder)
        if sizes.photographs is not None:
            tiles = tiles.of(np.arange(sizes.photographs))
        trained, audited = (tiles.of(photographs) for photographs in halves(tiles, seed))
        limits = limits_of(trained)
        cells = train_cells(trained, limits, sizes.cells, seed)
        return cls(cells, train_segmenter(trained, sizes.masks, seed), limits, trained, audited)


@dataclass(frozen=True)
class Replayed:
    """A space whose questions were all asked: the answers, the targets, and the truth (K,)."""

    space: QuestionSpace
    answers: pd.DataFrame
    targets: tuple[str, ...]
    truth: Floats

    @classmethod
    def of(
        cls,
        dataset: Dataset,
        predict: Callable[[list[Image]], Any],
        oracle: Oracle,
        targets: tuple[str, ...],
        severities: Sequence[int],
        relations: Sequence[str] = RELATIONS,
    ) -> "Replayed":
        """Ask every question once, of the model with this ``predict``."""
        space = QuestionSpace(dataset, relations, severities=severities, oracle=oracle)
        answers = all_answers(space, PythonModel(predict))
        losses = all_losses(space, Recorded(answers))
        return cls(space, answers, targets, means(space, named_targets(space, targets), *losses))

    def begin(self, half_width: float, **options: Any) -> Audit:
        """Return an audit that replays the answers."""
        return Audit(
            self.space,
            Recorded(self.answers),
            half_width=half_width,
            targets=self.targets,
            **options,
        )

    def runs(self, strategy: str, half_width: float, seeds: int) -> list[Row]:
        """Run one audit per seed; the strategy has a name of ``avtt compare``."""
        begin = partial(self.begin, half_width)
        truth = tuple(self.truth.tolist())
        return [certified_run(Job(begin, strategy, s, truth=truth)) for s in range(seeds)]


def benches(nets: Nets, sizes: Sizes) -> dict[str, Replayed]:
    """Return the benches of presence, grades and masks, on the photographs to audit."""
    tiles, levels = nets.audited, sizes.severities
    return {
        "cells present": Replayed.of(
            tiles.presence(),
            partial(presence_of, nets.cells),
            Correctness(),
            ("concepts", "relations"),
            levels,
        ),
        "grade of red cells": Replayed.of(
            tiles.graded(nets.limits),
            partial(grades_of, nets.cells),
            Ordinal(),
            ("relations",),
            levels,
            RELATIONS[:2],  # without reductions, since a part of a tile may show fewer cells
        ),
        "white cells segmented": Replayed.of(
            tiles.white(),
            partial(predict_with, nets.masks),
            MaskDrop("dice", (0.25,)),
            ("relations",),
            levels,
            RELATIONS[1:],  # without the identity, since follow-ups are compared with sources
        ),
    }


def audits(replays: Mapping[str, Replayed], half_width: float, seeds: int) -> pd.DataFrame:
    """Return the calls of uniform and adaptive audits, a row per bench."""
    rows = []
    for name, bench in replays.items():
        row: Row = {"asked": name, "questions": bench.space.size, "targets": len(bench.truth)}
        for how, strategy in (("uniform", UNIFORM), ("adaptive", ADAPTIVE)):
            runs = pd.DataFrame(bench.runs(strategy, half_width, seeds))
            held = f"{(~runs['missed'].astype(bool)).sum()}/{seeds}"
            row |= {how: round(runs["calls"].mean(), 1), f"{how} covered": held}
        row["ratio"] = round(row["adaptive"] / row["uniform"], 3)
        rows.append(row)
        show(row)
    return pd.DataFrame(rows)


def intervals(replays: Mapping[str, Replayed], half_width: float) -> pd.DataFrame:
    """Return the intervals of one adaptive audit of each bench, and the truth, in per cent."""
    rows = []
    for name, bench in replays.items():
        with bench.begin(half_width, seed=0) as audit:
            table = audit.run().targets
        for row, truth in zip(table.to_dict("records"), bench.truth.tolist(), strict=True):
            middle, lower, upper = (100 * row[k] for k in ("estimate", "lower", "upper"))
            certified = f"{middle:.1f} [{lower:.1f}, {upper:.1f}]"
            rows.append(
                {
                    "asked": name,
                    "target": row["target"],
                    "certified": certified,
                    "truth": round(100 * truth, 1),
                }
            )
    return pd.DataFrame(rows)


def retraining(nets: Nets, sizes: Sizes, seeds: int) -> pd.DataFrame:
    """Return error rates in per cent on tiles that neither training nor the audit used.

    They are means over seeds of retraining. Each seed has other perturbations and starts with the
    same network. There is a row per target.
    """
    photographs = np.unique(nets.audited.photograph)
    middle = len(photographs) // 2
    searched, tabled = (nets.audited.of(p) for p in (photographs[:middle], photographs[middle:]))
    shares = error_rates(nets.cells, searched, sizes)
    show(pd.DataFrame({"share": shares}).round(3), "shares by error rates", index=True)
    weightings = {
        "trained on": None,
        "equal shares": dict.fromkeys(shares, 1.0),
        "by error rates": shares,
    }
    table = {"before": _rates(nets.cells, tabled, sizes)}
    for name, weights in weightings.items():
        rates = [
            _rates(_retrained(nets, weights, sizes.again, seed), tabled, sizes)
            for seed in range(seeds)
        ]
        table[name] = pd.concat(rates, axis=1).mean(axis=1)
        show(f"{name}: average {100 * table[name].iloc[-1]:.2f} %")
    return (100 * pd.DataFrame(table)).round(1).rename_axis("target").reset_index()


def error_rates(net: CellNet, tiles: Tiles, sizes: Sizes) -> dict[str, float]:
    """Return relation -> error rate, estimated by an audit of ``tiles``."""
    space = QuestionSpace(tiles.presence(), RELATIONS, severities=sizes.severities)
    with Audit(
        space,
        PythonModel(partial(presence_of, net)),
        half_width=sizes.search,
        targets=["relations"],
        seed=0,
    ) as audit:
        result = audit.run()
    show(f"searched {len(tiles)} tiles with {result.calls} calls")
    rates = result.targets[["relation", "estimate"]].itertuples(index=False, name=None)
    return {name: max(rate, MIN_SHARE) for name, rate in rates if name != "identity"}


def _retrained(nets: Nets, weights: Mapping[str, float] | None, epochs: int, seed: int) -> CellNet:
    """Return the classifier after further training on its tiles and perturbed ones.

    Perturbed tiles have the presence and the grade of their sources. Without ``weights`` (relation
    -> its share), the original tiles are repeated instead.
    """
    images, wanted = nets.trained.images, cell_targets(nets.trained, nets.limits)
    augment = None if weights is None else Augment(RELATIONS[1:], seed=seed, weights=weights)
    dataset = nets.trained.presence()
    samples = (dataset.sample(k) for k in range(len(dataset)))
    added = (
        images
        if augment is None
        else [augment.pair(sample.require_image(), sample.masks)[0] for sample in samples]
    )
    module = copy.deepcopy(nets.cells)
    fit(
        module,
        pixels([*images, *added]),
        torch.cat([wanted, wanted]),
        cell_loss,
        epochs=epochs,
        rate=RETRAINING_RATE,
        seed=seed,
    )
    return module


def _rates(net: CellNet, tiles: Tiles, sizes: Sizes) -> pd.Series:
    """Return the mean loss of every target over all questions about ``tiles``."""
    space = QuestionSpace(tiles.presence(), RELATIONS, severities=sizes.severities)
    losses = all_losses(space, PythonModel(partial(presence_of, net)))
    targets = named_targets(space, ["concepts", "relations", "overall"])
    return pd.Series(means(space, targets, *losses), index=[t.name for t in targets])


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = options(
        __doc__,
        arguments,
        quick={},
        data=Path,
        only=dict.fromkeys(("audits", "retraining")),
        seeds=3,
    )
    if chosen.data is None:
        show(WHERE)
        return
    sizes = QUICK if chosen.quick else Sizes()
    nets = Nets.of(chosen.data, sizes, seed=0)
    for name, frame in _tables(nets, sizes, chosen.seeds, chosen.only):
        save_table(frame, chosen.out / f"bccd-{name}.csv")


def _tables(
    nets: Nets, sizes: Sizes, seeds: int, only: Sequence[str]
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield each table with its name, as soon as it is complete."""
    if "audits" in only:
        replays, width = benches(nets, sizes), sizes.half_width
        yield "intervals", intervals(replays, width)
        yield "audits", audits(replays, width, seeds)
    if "retraining" in only:
        yield "retraining", retraining(nets, sizes, seeds)


if __name__ == "__main__":
    main()
