"""Retrain on the failures of an audit, MedTest's third research question, in some 10 minutes.

    python -m adaptive_vtt.experiments.medtest.retraining

As in the thesis (LYU2308, CUHK 2024, RQ3, Tables 19 to 23), the phantom's models are trained
further, on original frames and as many perturbed ones, with equal shares of all relations. Our
addition is a second retraining ("found"), with shares in proportion to the error rates that an
audit certified. The tables compare the models "before" and after both.

There are three sets of frames: for training, for the audit that gives the shares, and for the
tables. Dice, IoU, accuracy, kappa and F1 are of one follow-up per frame and relation, with a random
severity. Error rates are certified by an audit over all severities. An error is a Dice that drops
by more than a quarter, or a wrong class. Frames whose source scores 0 cannot be judged and widen
the segmenter's intervals. As in the thesis, "average" includes the original frames. Columns "paper:
..." are the thesis's means, before and after, over its models and, for segmenters, its two sets.
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
"""Seeds of the frames for the audit that gives the shares, and for the tables."""
RATE = 1e-3
"""Learning rate of retraining."""
BEFORE, EQUAL, FOUND = "before", "equal", "found"
Masks = dict[str, Mask]
"""Concept -> its mask."""
Pairs = list[tuple[Image, Masks]]


@dataclass(frozen=True)
class Sizes:
    """Numbers of frames and epochs of retraining, of audited frames, and the audits' half-width."""

    trained: int
    epochs: int
    audited: int
    half_width: float


WHOLE, QUICK = Sizes(1000, 6, 150, 0.1), Sizes(32, 1, 12, 0.4)


@dataclass(frozen=True)
class Task:
    """Segmentation or classification.

    Attributes:
        family: Name of the relations.
        frames: Function of count, size= and seed= -> a dataset.
        start: Function that loads the package's model, which is then trained further.
        predict: Function of model and images -> its answers.
        oracle: The oracle of audits.
        loss: The loss of training.
        targets: Function of a dataset and the pairs of its frames or follow-ups -> targets of
            training.
        scores: Function of these and of answers -> metrics by name.
        where: Condition on the questions that a relation's error rate is about.
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


def _mask_scores(dataset: Dataset, pairs: Pairs, answers: Any) -> dict[str, float]:
    both = [(mask[0], masks["polyp"]) for mask, (_, masks) in zip(answers, pairs, strict=True)]
    return {
        "Dice": float(np.mean([overlap(one, other, "dice") for one, other in both])),
        "IoU": float(np.mean([overlap(one, other, "iou") for one, other in both])),
    }


def _class_scores(dataset: Dataset, pairs: Pairs, answers: Any) -> dict[str, float]:
    true, predicted = classes_of(dataset), answers.argmax(axis=1)
    return {
        "accuracy": float((true == predicted).mean()),
        "kappa": float(cohen_kappa_score(true, predicted)),
        "F1": float(f1_score(true, predicted, average="macro")),
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
        where={"truth": [1]},  # one question per image: is its class the true one?
    ),
}


def audited(
    task: Task, module: nn.Module, sizes: Sizes, frames: int, seed: int
) -> tuple[pd.DataFrame, int]:
    """Certify the error rate of every relation on frames of seed ``frames``.

    Returns:
        Estimate, lower and upper end, a row per relation, and the number of calls.
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
    """Return the package's model after further training on the mix of ``avtt export --mix``.

    The mix has original frames and as many perturbed ones. ``shares`` has each relation's share of
    the perturbed frames.
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
    by_relation: dict[str, dict[str, float]] = {}
    for name, pairs in _versions(task, dataset, seed):
        images = [image for image, _ in pairs]
        by_relation[name] = {
            f"{metric} {how}": value
            for how, module in modules.items()
            for metric, value in task.scores(dataset, pairs, task.predict(module, images)).items()
        }
    return by_relation


def compared(task: Task, sizes: Sizes, seed: int = 0) -> pd.DataFrame:
    """Return the table before and after: original frames, every relation, and the average."""
    names = [r.name for r in task.relations if r.name != "identity"]
    modules = {BEFORE: task.start()}
    rates, calls = audited(task, modules[BEFORE], sizes, SEARCHED, seed)
    shares = {name: max(float(rates["estimate"][name]), MIN_SHARE) for name in names}
    show(
        _shares(shares), f"shares of the perturbed frames, by an audit of {calls} calls", index=True
    )
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
    """Yield the original frames, as "identity", and for each relation a follow-up of each frame."""
    yield "identity", [_pair(dataset.sample(k)) for k in range(len(dataset))]
    for relation in resolve([task.family]):
        pairs = []
        for k in range(len(dataset)):
            rng, sample = generator(seed, relation.name, k), dataset.sample(k)
            follow_up = relation.apply(sample, int(rng.choice(relation.severities)), rng)
            masks = {c: relation.expect_mask(mask, follow_up) for c, mask in sample.masks.items()}
            pairs.append((follow_up.require_image(), masks))
        yield relation.name, pairs


def _pair(sample: Sample) -> tuple[Image, Masks]:
    return sample.require_image(), dict(sample.masks)


def _read(folder: Path, sample: Sample) -> tuple[Image, Masks]:
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
