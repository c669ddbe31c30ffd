"""Retrain on what an audit found: MedTest's third research question, on the phantom.

As in the thesis (LYU2308, CUHK 2024, RQ3, Tables 19 to 23), the trained weights are trained further
with the original frames and as many perturbed ones, in equal shares of every relation. Then all
relations are asked about again. Our addition is a second retraining, with shares in proportion to
the error rates that an audit certified.

There are three sets of frames: for training, for the audit that gives the shares, and for the
table. Dice, IoU, accuracy, kappa and F1 are of one follow-up per frame and relation, with a uniform
severity. Error rates are certified by an audit over all severities. An error is a Dice that drops
by more than a quarter, or a wrong class. Frames whose source scores 0 widen the intervals of the
segmenter, as they cannot be judged. As in the thesis, "average" includes the original frames.
Columns "paper: ..." are the thesis's, before and after: means over its models and, of segmenters,
its two sets.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.metrics import cohen_kappa_score, f1_score
from torch import Tensor, nn

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.config.datasets import read_dataset
from adaptive_vtt.datasets.base import Dataset
from adaptive_vtt.experiments.medtest import phantom_classifier, phantom_unet
from adaptive_vtt.experiments.medtest.phantom_classifier import Classifier
from adaptive_vtt.experiments.medtest.phantom_unet import UNet, load, pixels
from adaptive_vtt.experiments.medtest.train_phantom import (
    DRAWN,
    TRAINED,
    Loss,
    class_loss,
    classes_of,
    dice_loss,
    fit,
    mask_targets,
)
from adaptive_vtt.experiments.program import options, save_table, show
from adaptive_vtt.experiments.tables.medtest import retrained as published
from adaptive_vtt.models import PythonModel
from adaptive_vtt.oracles import MaskDrop, Oracle, TopClass, overlap
from adaptive_vtt.relations import RelationDefaults, resolve
from adaptive_vtt.results.export.mix import MIN_SHARE, write_mix
from adaptive_vtt.types import Image, Mask, Sample
from adaptive_vtt.utils.mask_values import read_mask
from adaptive_vtt.utils.random_streams import generator

SEARCHED, TABLED = 600, 700
"""Seeds of the frames that shares come from, and of those that the table is about."""
RATE = 1e-3
BEFORE, EQUAL, FOUND = "before", "equal", "found"
Found = dict[str, Mask]
Pairs = list[tuple[Image, Found]]


@dataclass(frozen=True)
class Sizes:
    """The numbers of frames trained on again, of epochs and of frames audited, and the half-width
    of audits.
    """

    trained: int
    epochs: int
    audited: int
    half_width: float


WHOLE, QUICK = Sizes(1000, 6, 150, 0.1), Sizes(32, 1, 12, 0.4)


@dataclass(frozen=True)
class Task:
    """What tells segmentation and classification apart.

    ``frames``: count, size=, seed= -> Dataset. ``start``: the shipped model, to be trained
    further. ``predict``: model, images -> its answers. ``targets``: what to train for, and
    ``scores``: the metrics of answers, both given the frames of a dataset or one follow-up of
    each. ``where``: the questions of a relation that its error rate is about.
    """

    family: str
    frames: Callable[..., Dataset]
    start: Callable[[], nn.Module]
    predict: Callable[[Any, list[Image]], Any]
    oracle: Oracle
    loss: Loss
    targets: Callable[[Dataset, Pairs], Tensor]
    scores: Callable[[Dataset, Pairs, Any], dict[str, float]]
    where: Mapping[str, Sequence[object]] = field(default_factory=dict)

    @property
    def relations(self) -> list[RelationDefaults]:
        """The audited relations, with original frames unless others are compared with them."""
        names = [self.family] if self.oracle.needs_source else ["identity", self.family]
        return resolve(names)


def _mask_scores(dataset: Dataset, pairs: Pairs, said: Any) -> dict[str, float]:
    found = [(mask[0], masks["polyp"]) for mask, (_, masks) in zip(said, pairs, strict=True)]
    return {
        "Dice": float(np.mean([overlap(one, other, "dice") for one, other in found])),
        "IoU": float(np.mean([overlap(one, other, "iou") for one, other in found])),
    }


def _class_scores(dataset: Dataset, pairs: Pairs, said: Any) -> dict[str, float]:
    true, guess = classes_of(dataset), said.argmax(axis=1)
    return {
        "accuracy": float((true == guess).mean()),
        "kappa": float(cohen_kappa_score(true, guess)),
        "F1": float(f1_score(true, guess, average="macro")),
    }


TASKS: Mapping[str, Task] = {
    "segmentation": Task(
        family="medtest",
        frames=phantom_unet.frames,
        start=lambda: load(UNet(), phantom_unet.WEIGHTS_FILE),
        predict=phantom_unet.predict_with,
        oracle=MaskDrop("dice", (0.25,)),
        loss=dice_loss,
        targets=lambda _, pairs: mask_targets([masks["polyp"] for _, masks in pairs]),
        scores=_mask_scores,
    ),
    "classification": Task(
        family="medtest/classification",
        frames=phantom_classifier.frames,
        start=lambda: load(Classifier(), phantom_classifier.WEIGHTS_FILE),
        predict=phantom_classifier.predict_with,
        oracle=TopClass(),
        loss=class_loss,
        targets=lambda dataset, _: torch.from_numpy(classes_of(dataset)),
        scores=_class_scores,
        where={"truth": [1]},  # one question per image: is it given its class?
    ),
}


def audited(
    task: Task, module: nn.Module, sizes: Sizes, frames: int, seed: int
) -> tuple[pd.DataFrame, int]:
    """Return the error rate of every relation, certified on frames of seed ``frames``, and the
    calls.

    Rows are relations, with estimate, lower and upper.
    """
    dataset, relations = task.frames(sizes.audited, size=DRAWN, seed=frames), task.relations
    space = QuestionSpace(dataset, relations, oracle=task.oracle)
    where = {r.name: {"relation": [r.name], **task.where} for r in relations}
    model = PythonModel(lambda images: task.predict(module, images))
    with Audit(
        space, model, half_width=sizes.half_width, targets=[*where], where=where, seed=seed
    ) as audit:
        result = audit.run()
    return result.targets.set_index("target")[["estimate", "lower", "upper"]], result.calls


def retrained(task: Task, shares: Mapping[str, float], sizes: Sizes, seed: int) -> nn.Module:
    """Return the trained model after further training on the mix of ``avtt export --mix``.

    The mix has original frames and as many perturbed ones. ``shares``: relation -> its share of the
    perturbed half.
    """
    frames = task.frames(sizes.trained, size=DRAWN, seed=TRAINED)
    space = QuestionSpace(frames, ["identity", task.family], oracle=task.oracle, seed=seed)
    with TemporaryDirectory() as above:
        folder = Path(above) / "mix"
        write_mix(space, folder, shares, seed)
        mix = read_dataset(folder / "dataset.toml")
        pairs = [_read(folder, mix.sample(k)) for k in range(len(mix))]
        wanted = task.targets(mix, pairs)
    module = task.start()
    images = [image for image, _ in pairs]
    fit(module, pixels(images), wanted, task.loss, epochs=sizes.epochs, rate=RATE, seed=seed)
    return module


def scored(
    task: Task, modules: Mapping[str, nn.Module], sizes: Sizes, seed: int
) -> dict[str, dict[str, float]]:
    """Return relation -> "metric model" -> value on the table's frames, original ones first."""
    dataset = task.frames(sizes.audited, size=DRAWN, seed=TABLED)
    found: dict[str, dict[str, float]] = {}
    for name, pairs in _versions(task, dataset, seed):
        images = [image for image, _ in pairs]
        found[name] = {
            f"{metric} {how}": value
            for how, module in modules.items()
            for metric, value in task.scores(dataset, pairs, task.predict(module, images)).items()
        }
    return found


def compared(task: Task, sizes: Sizes, seed: int = 0) -> pd.DataFrame:
    """Return the table before and after: original frames, every relation, and the average."""
    names = [r.name for r in task.relations if r.name != "identity"]
    modules = {BEFORE: task.start()}
    rates, calls = audited(task, modules[BEFORE], sizes, SEARCHED, seed)
    shares = {name: max(float(rates["estimate"][name]), MIN_SHARE) for name in names}
    show(_shares(shares), f"searched with {calls} calls", index=True)
    modules[EQUAL] = retrained(task, dict.fromkeys(names, 1.0), sizes, seed)
    modules[FOUND] = retrained(task, shares, sizes, seed)
    table = pd.DataFrame(scored(task, modules, sizes, seed)).T
    metrics = dict.fromkeys(str(column).rpartition(" ")[0] for column in table)
    table = table[[f"{metric} {how}" for metric in metrics for how in modules]]
    table.loc["average"] = table.mean()
    table = table.round(3)
    for how, module in modules.items():
        rates, calls = audited(task, module, sizes, TABLED, seed)
        show(f"{how}: audited with {calls} calls")
        table[f"error rate {how}"] = _intervals(rates).reindex(table.index, fill_value="")
    return table.rename(index=lambda name: "original" if name == "identity" else name)


def _versions(task: Task, dataset: Dataset, seed: int) -> Iterator[tuple[str, Pairs]]:
    """Return the original frames, as "identity", and one follow-up of each per relation."""
    yield "identity", [_pair(dataset.sample(k)) for k in range(len(dataset))]
    for relation in resolve([task.family]):
        pairs = []
        for k in range(len(dataset)):
            rng, sample = generator(seed, relation.name, k), dataset.sample(k)
            made = relation.apply(sample, int(rng.choice(relation.severities)), rng)
            masks = {c: relation.expect_mask(mask, made) for c, mask in sample.masks.items()}
            pairs.append((made.require_image(), masks))
        yield relation.name, pairs


def _pair(sample: Sample) -> tuple[Image, Found]:
    return sample.require_image(), dict(sample.masks)


def _read(folder: Path, sample: Sample) -> tuple[Image, Found]:
    """Return an image of the mix in ``folder``, and its masks, by concept."""
    masks = sorted((folder / "masks").glob(f"*/{sample.id}.png"))
    return sample.require_image(), {file.parent.name: read_mask(file, str(file)) for file in masks}


def _shares(shares: Mapping[str, float]) -> pd.DataFrame:
    weights = pd.Series(shares, name="share")
    return (weights / weights.sum()).round(3).to_frame()


def _intervals(rates: pd.DataFrame) -> pd.Series:
    return pd.Series(
        {r.Index: f"{r.estimate:.3f} [{r.lower:.3f}, {r.upper:.3f}]" for r in rates.itertuples()}
    )


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = options(__doc__, arguments, quick={}, only=TASKS, seed=0)
    sizes = QUICK if chosen.quick else WHOLE
    for name in chosen.only:
        frame = compared(TASKS[name], sizes, chosen.seed).join(published(name))
        table = frame.rename_axis("relation").reset_index()
        save_table(table, chosen.out / f"retraining-{name}.csv")


if __name__ == "__main__":
    main()
