"""Measure the robustness of networks trained on corruptions (Table 3 of MedMNIST-C), in 9 minutes.

    python -m adaptive_vtt.experiments.medmnistc.table3 --data BCCD

Source: Di Salvo et al., MedMNIST-C (2024), section 3, "Data augmentation". Instead of its twelve
sets there are two tasks, and instead of its ResNet18 a small network with random weights at first:
the ten garments of the bundled Fashion-MNIST images, with the profile of pneumoniamnist, and the
three kinds of cells of BCCD (boxes cut out of the photographs, 64 x 64 pixels), with that of
bloodmnist. One half of BCCD's photographs is for training, and the other half for tests.

Scores are AUC (each class against the rest, mean over classes) and balanced accuracy (mean recall),
in per cent. They are means over the five severities of a corruption, and then over corruptions and
seeds. "ours" is an upper bound: it trains on the corruptions of the tests. "ours (k-F)" does not:
each of the paper's categories of corruptions is tested with a network that was trained on the
others. "p" is of the gain over no augmentation, and "p k-F" of the gain of "ours (k-F)" over the
row's augmentation, by Wilcoxon's two-sided signed-rank test over corruptions. Both are rough, since
the scores are of the same networks. "paper: set" and "paper: mean" are the paper's AUC without
augmentation, and gains over it, on the profile's set and on average over all twelve.

Writes table3.csv, table3-over.csv with the gains of "ours (k-F)" over both tasks, and
table3-corruptions.csv with every score.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from scipy.stats import wilcoxon
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from torch import Tensor, nn

from adaptive_vtt.datasets import from_voc
from adaptive_vtt.datasets.formats.fashion_mnist import load_arrays
from adaptive_vtt.datasets.regions import object_regions
from adaptive_vtt.experiments.medmnistc.augmentations import Batch, cutmix, mixup, rand_augment
from adaptive_vtt.experiments.medmnistc.bccd_cells import WHERE
from adaptive_vtt.experiments.program import options, show
from adaptive_vtt.experiments.tables.layout import tables_of
from adaptive_vtt.relations import medmnistc
from adaptive_vtt.relations.augment import Augment
from adaptive_vtt.relations.corruptions import Corruption
from adaptive_vtt.types import Image
from adaptive_vtt.utils.files import write_text
from adaptive_vtt.utils.random_streams import generator

NONE, OURS, FOLDS = "none", "ours", "ours (k-F)"
PROFILES = {"fashion": "pneumoniamnist", "BCCD": "bloodmnist"}
SIDE, CELLS = 64, ("RBC", "WBC", "Platelets")
BATCH, RATE = 64, 2e-3

Labels = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Sizes:
    """The largest numbers of images to train on and to test, and the number of epochs."""

    trained: int
    tested: int
    epochs: int


WHOLE, QUICK = Sizes(1000, 400, 25), Sizes(60, 40, 1)


@dataclass(frozen=True)
class Task:
    """Images n x H x W x C with their classes, to train on and to test, and their corruptions."""

    name: str
    images: Image
    labels: Labels
    tested: Image
    wanted: Labels

    @property
    def corruptions(self) -> list[Corruption]:
        return medmnistc.relations(PROFILES[self.name])


@dataclass(frozen=True)
class How:
    """Augmentation of training images, one by one or a batch at a time."""

    image: Callable[[Image, np.random.Generator], Image] | None = None
    batch: Callable[[Batch, np.random.Generator], Batch] | None = None


GENERIC = {
    NONE: How(),
    "CutMix": How(batch=cutmix),
    "MixUp": How(batch=mixup),
    "RandAugment": How(image=rand_augment),
}


# -- data ------------------------------------------------------------------------------------


def fashion_task(sizes: Sizes) -> Task:
    """Return the bundled garments, the first ones to train on and the next ones to test."""
    images, garment, _ = load_arrays()
    order = generator(0, "table3 fashion").permutation(len(images))
    train, test = order[: sizes.trained], order[-sizes.tested :]
    labels, pixels = garment.astype(np.int64), images[..., None]
    return Task("fashion", pixels[train], labels[train], pixels[test], labels[test])


def bccd_task(folder: Path, sizes: Sizes) -> Task:
    """Return cells of BCCD, as many of each kind as of the rarest, or as ``sizes`` allow."""
    cells = object_regions(from_voc(folder, broken="skip"))
    kinds = cells.metadata_values("region")
    rng = generator(0, "table3 bccd")
    photographs = rng.permutation(len(cells.dataset))
    halves = (photographs[: len(photographs) // 2], photographs[len(photographs) // 2 :])
    parts = []
    for half, most in zip(halves, (sizes.trained, sizes.tested), strict=True):
        each = [np.flatnonzero((kinds == k) & np.isin(cells.sources, half)) for k in CELLS]
        count = min(most // len(CELLS), *map(len, each))
        chosen = np.sort(np.concatenate([rng.permutation(places)[:count] for places in each]))
        crops = (cells.sample(int(place)).require_image() for place in chosen)
        small = [cv2.resize(crop, (SIDE, SIDE), interpolation=cv2.INTER_AREA) for crop in crops]
        parts += [np.stack(small), np.array([CELLS.index(kinds[place]) for place in chosen])]
    return Task("BCCD", *parts)


# -- training and testing --------------------------------------------------------------------


def network(side: int, channels: int, classes: int) -> nn.Module:
    """Return a network of three blocks (convolution, batch norm, ReLU, pooling) and a linear layer.

    Images are first shrunk by a whole factor, to a side of 28 to 55 pixels.
    """
    blocks: list[nn.Module] = [nn.AvgPool2d(max(1, side // 28))]
    for a, b in zip((channels, 16, 32), (16, 32, 64), strict=True):
        convolution = nn.Conv2d(a, b, 3, padding=1, bias=False)
        blocks += [convolution, nn.BatchNorm2d(b), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes))


def trained(task: Task, how: How, epochs: int, seed: int) -> nn.Module:
    """Return a trained network; first weights and the order of images depend on the seed alone."""
    torch.manual_seed(seed)
    classes = int(task.labels.max()) + 1
    _, side, _, channels = task.images.shape
    module = network(side, channels, classes)
    rng = generator(seed, "augmentation")
    optimizer = torch.optim.AdamW(module.parameters(), lr=RATE)
    steps = epochs * (len(task.images) // BATCH or 1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    module.train()
    for epoch in range(epochs):
        order = generator(seed, "order", epoch).permutation(len(task.images))
        for rows in np.array_split(order, steps // epochs):
            images = task.images[rows]
            if how.image is not None:
                images = np.stack([how.image(image, rng) for image in images])
            targets = nn.functional.one_hot(torch.from_numpy(task.labels[rows]), classes).float()
            batch = pixels(images), targets
            batch = batch if how.batch is None else how.batch(batch, rng)
            loss = nn.functional.cross_entropy(module(batch[0]), batch[1])
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
    return module.eval()


def pixels(images: Image) -> Tensor:
    """Return n x H x W x C of uint8 as (n, C, H, W) in [0, 1]."""
    return torch.from_numpy(np.ascontiguousarray(images)).permute(0, 3, 1, 2).float() / 255


def scores(module: nn.Module, images: Image, wanted: Labels) -> tuple[float, float]:
    """Return AUC and balanced accuracy, in per cent."""
    with torch.inference_mode():
        parts = [module(pixels(part)) for part in np.array_split(images, len(images) // 256 + 1)]
    p = torch.softmax(torch.cat(parts).double(), dim=1).numpy()
    each = [
        roc_auc_score(wanted == k, p[:, k])
        for k in range(p.shape[1])
        if 0 < (wanted == k).sum() < len(wanted)
    ]
    balanced = balanced_accuracy_score(wanted, p.argmax(axis=1))
    return 100 * float(np.mean(each)), 100 * float(balanced)


def corrupted(images: Image, relation: Corruption) -> list[Image]:
    """Return the images at each severity, the same ones for all networks."""
    return [
        np.stack([relation.transform(image, severity, rng) for image in images])
        for severity in relation.severities
        for rng in [generator(0, relation.name, severity)]
    ]


def folds(relations: Sequence[Corruption]) -> dict[str, list[Corruption]]:
    """Return the corruptions by category, without empty categories."""
    by_category = {
        category: [r for r in relations if r.name.rpartition("/")[2] in names]
        for category, names in medmnistc.CATEGORIES.items()
    }
    return {category: members for category, members in by_category.items() if members}


def measured(task: Task, sizes: Sizes, seed: int) -> Iterator[dict[str, object]]:
    """Yield the scores of each augmentation on clean images and on each corruption."""
    tests = {r.name: corrupted(task.tested, r) for r in task.corruptions}

    def rows(module: nn.Module, how: str, names: Sequence[str]) -> Iterator[dict[str, object]]:
        versions = {"clean": [task.tested], **{name: tests[name] for name in names}}
        for name, several in versions.items():
            auc, balanced = np.mean([scores(module, i, task.wanted) for i in several], axis=0)
            yield {
                "task": task.name,
                "augmentation": how,
                "seed": seed,
                "corruption": name.rpartition("/")[2],
                "AUC": auc,
                "bACC": balanced,
            }

    for name, how in {**GENERIC, OURS: ours(task.corruptions, seed)}.items():
        yield from rows(trained(task, how, sizes.epochs, seed), name, list(tests))
    for held_out in folds(task.corruptions).values():
        others = [r for r in task.corruptions if r not in held_out]
        module = trained(task, ours(others, seed), sizes.epochs, seed)
        yield from rows(module, FOLDS, [r.name for r in held_out])


def ours(relations: Sequence[Corruption], seed: int) -> How:
    """Return MedMNIST-C's own augmentation (section 2.3), with these corruptions."""
    augment = Augment(relations, seed=seed, continuous=True)
    return How(image=lambda image, _: augment(image))


# -- the table -------------------------------------------------------------------------------


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a row per task and augmentation: scores, and gains over none with their p."""
    rows = []
    for task, part in frame.groupby("task", sort=False):
        clean = part[part["corruption"] == "clean"].groupby("augmentation")
        kept = part[part["corruption"] != "clean"]
        for how in part["augmentation"].unique():
            row: dict[str, object] = {"task": task, "augmentation": how}
            for metric in ("AUC", "bACC"):
                means = _means(kept, metric)
                gain = means[how] - means[NONE]
                row |= {
                    f"{metric} clean": clean[metric].mean()[how],
                    f"{metric} corrupted": means[how].mean(),
                    f"{metric} gain": gain.mean(),
                    f"{metric} p": _p(gain),
                    f"{metric} p k-F": _p(means[FOLDS] - means[how]),
                }
            rows.append(row | published(PROFILES[str(task)], how))
    return pd.DataFrame(rows)


def published(flag: str, how: str) -> dict[str, float]:
    """Return the paper's AUC without augmentation, or gain with ``how``, on this set and on all."""
    row = tables_of("medmnistc")["3"].printed(how)
    return {"paper: set": row[flag], "paper: mean": row["AVG"]}


def over_tasks(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the gains of "ours (k-F)" over every other augmentation, on all tasks together."""
    kept = frame[frame["corruption"] != "clean"].copy()
    kept["corruption"] = kept["task"] + "/" + kept["corruption"]
    rows = []
    for metric in ("AUC", "bACC"):
        means = _means(kept, metric)
        for how in means.columns.drop(FOLDS):
            gain = means[FOLDS] - means[how]
            rows.append({"metric": metric, "over": how, "gain": gain.mean(), "p": _p(gain)})
    return pd.DataFrame(rows)


def _means(kept: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return means over seeds, corruptions x augmentations."""
    return kept.pivot_table(metric, "corruption", "augmentation")


def _p(differences: "pd.Series[float]") -> float:
    return float("nan") if not differences.any() else float(wilcoxon(differences).pvalue)


def tables(
    tasks: Sequence[Task], sizes: Sizes, seeds: int, out: Path
) -> Mapping[str, pd.DataFrame]:
    """Measure, write the scores so far after every seed, and return the summaries."""
    rows: list[dict[str, object]] = []
    summaries: dict[str, pd.DataFrame] = {}
    for seed in range(seeds):
        for task in tasks:
            started = time.process_time()
            rows += measured(task, sizes, seed)
            spent = time.process_time() - started
            show(f"{task.name}, seed {seed}: {spent:.0f} s of processor time")
            frame = pd.DataFrame(rows)
            summaries = {"table3": summary(frame), "table3-over": over_tasks(frame)}
            for name, table in {**summaries, "table3-corruptions": frame}.items():
                write_text(out / f"{name}.csv", table.round(4).to_csv(index=False))
    return summaries


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = options(__doc__, arguments, quick={"seeds": 1}, data=Path, seeds=3)
    sizes = QUICK if chosen.quick else WHOLE
    tasks = [fashion_task(sizes)]
    if chosen.data is None:
        show(WHERE)
    else:
        tasks.append(bccd_task(chosen.data, sizes))
    for task in tasks:
        show(f"{task.name}: {len(task.images)} images to train on, {len(task.tested)} tested")
    for table in tables(tasks, sizes, chosen.seeds, chosen.out).values():
        tested = [
            name for name in map(str, table) if name.endswith((" p", " p k-F")) or name == "p"
        ]
        show(table.drop(columns=tested if chosen.quick else []).round(3))


if __name__ == "__main__":
    main()
