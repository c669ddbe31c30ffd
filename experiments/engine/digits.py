"""Measure the share of the losses' variance that a surrogate explains, on two digit benchmarks.

    python -m adaptive_vtt.experiments.engine.digits

digits-severity has scikit-learn's digits and an MLP with 64 hidden units. Its 600 test images under
10 perturbations at 5 severities make 30,000 questions, and about 29 % of them fail.

digits-proxy has a weak logistic classifier, trained on 500 digits. Its 250 test images under 8 mild
perturbations make 2,000 questions, and about 10 % of them fail. The losses of three other
classifiers are known for all questions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from scipy.special import logit
from torch import Tensor

from adaptive_vtt.audit import Audit
from adaptive_vtt.datasets import TableDataset, from_table
from adaptive_vtt.models import Recorded
from adaptive_vtt.relations import LabelPreserving
from adaptive_vtt.space import QuestionSpace
from adaptive_vtt.surrogates.features import REFERENCE, FollowUpFeatures
from adaptive_vtt.surrogates.loss_mean import Losses
from adaptive_vtt.surrogates.question_gp import QuestionGP
from adaptive_vtt.types import Floats, Image
from adaptive_vtt.utils.random_streams import generator

from ..program import options, save_table

Change = Callable[[npt.NDArray[np.float32], float, np.random.Generator], npt.NDArray[np.float32]]

CONCEPT = "correct"
SUREST = 8.0
"""Largest absolute margin."""

TEST = 4000
"""Number of unobserved questions on which a surrogate is scored."""


@dataclass(frozen=True)
class Bench:
    """Questions of N samples under V variants, with all answers.

    Attributes:
        name: Name of the benchmark.
        losses: (N, V) losses, 0 or 1.
        features: (N, d) features of the samples.
        proxies: (N, V, P) losses that P other models predict.
        names: Names of the relations.
        relation: (V,) number of each variant's relation.
        severity: (V,) each variant's severity.
        images: (N, 64) source images, from 0 to 16.
        shown: (N, V, 64) follow-up images, from 0 to 16.
        digits: (N,) true digits.
        probable: (N, V, 10) the model's probability of each digit.
    """

    name: str
    losses: Floats
    features: Floats
    proxies: Floats
    names: tuple[str, ...]
    relation: tuple[int, ...]
    severity: tuple[int, ...]
    images: Floats
    shown: Floats
    digits: Floats
    probable: Floats

    @cached_property
    def margins(self) -> Floats:
        """(N, V): logit of the model's probability of the true digit."""
        right = self.probable[np.arange(len(self.digits)), :, self.digits.astype(int)]
        with np.errstate(divide="ignore"):
            return np.asarray(logit(right).clip(-SUREST, SUREST), np.float64)

    def labelled(self, digits: Floats) -> "Bench":
        """Return the benchmark with other labels (N,), and losses and features by them."""
        return replace(
            self,
            digits=digits,
            losses=(self.probable.argmax(-1) != digits[:, None]).astype(float),
            features=_look_and_digit(self.images, digits),
        )

    def dataset(self) -> TableDataset:
        """Return a dataset without images, whose one concept "correct" is true of every sample."""
        labels = pd.DataFrame({CONCEPT: np.ones(len(self.losses), int)})
        return from_table(None, labels, features=self.features, name=self.name)

    def space(self) -> QuestionSpace:
        """Return the space of all N x V questions."""
        relations = [
            RecordedRelation(
                name, [s for r, s in zip(self.relation, self.severity, strict=True) if r == number]
            )
            for number, name in enumerate(self.names)
        ]
        return QuestionSpace(self.dataset(), relations)

    def model(self) -> Recorded:
        """Return a model that answers P(correct) = 1 - loss."""
        answers = self.questions().assign(**{CONCEPT: 1 - self.losses.ravel()})
        return Recorded(answers, name=self.name)

    def audit(self, **options: Any) -> Audit:
        """Return an audit of the overall label error that knows the proxies' answers."""
        options = {"targets": ["overall"], "proxies": self.proxy_answers(), **options}
        return Audit(self.space(), options.pop("model", None) or self.model(), **options)

    def questions(self) -> pd.DataFrame:
        """Return a row per question: its sample, relation and severity."""
        count = len(self.losses)
        return pd.DataFrame(
            {
                "sample": np.repeat(np.arange(count).astype(str), len(self.relation)),
                "relation": [self.names[r] for r in self.relation] * count,
                "severity": list(self.severity) * count,
            }
        )

    def proxy_answers(self) -> dict[str, Floats]:
        """Return the answers of each proxy, N x V x 1, as ``Audit(proxies=)`` takes them."""
        return {str(p): 1 - self.proxies[..., [p]] for p in range(self.proxies.shape[-1])}

    def gp(
        self, make: Callable[..., Any] = QuestionGP, *, shared: bool = False, **more: Any
    ) -> Any:
        """Return a question GP, or another surrogate ``make``, of these questions, untrained."""
        return make(self.relation, self.severity, 1, shared=shared, **more)

    def judged(self, questions: Tensor) -> Losses:
        """Return ``questions`` (n,), numbered sample * V + variant, with their losses."""
        sample, variant = questions // self.losses.shape[1], questions % self.losses.shape[1]
        zeros = torch.zeros_like(sample)
        losses, margins = (torch.from_numpy(x).ravel() for x in (self.losses, self.margins))
        return Losses(sample, variant, zeros, zeros + 1, losses[questions], margins[questions])

    def inputs(self, order: npt.NDArray[np.int64] | None = None) -> dict[str, Any]:
        """Return the inputs of ``QuestionGP`` from samples and follow-ups.

        With an ``order`` (N,), sample i has the inputs of sample ``order[i]``.
        """
        count, variants = self.losses.shape
        order = np.arange(count) if order is None else order
        features, digits = (torch.from_numpy(x[order]) for x in (self.features, self.digits))
        pixels = np.rint(self.shown[order] * 255 / 16).clip(0, 255).astype(np.uint8)
        pixels = pixels.reshape(count * variants, -1)
        reference = generator(0, "follow-ups").choice(len(pixels), REFERENCE, replace=False)
        thumbnails = lambda images: pixels[images]  # noqa: E731
        follow_ups = FollowUpFeatures(thumbnails, reference, images=len(pixels), variants=variants)
        return {
            "features": lambda samples: features[samples],
            "truths": lambda samples: digits[samples],
            "follow_ups": follow_ups,
        }

    def proxy_losses(
        self, sample: Tensor, variant: Tensor, concept: Tensor, truth: Tensor
    ) -> Tensor:
        """Return the proxies' losses (n, P), as ``QuestionGP(proxies=)`` takes them."""
        return torch.from_numpy(self.proxies)[sample, variant]


class RecordedRelation(LabelPreserving):
    """Relation that changes nothing, for recorded or simulated answers."""

    def __init__(self, name: str, severities: Sequence[int] = (1,)) -> None:
        self.name, self.severities = name, tuple(severities)

    def transform(self, image: Image, severity: int, rng: np.random.Generator) -> Image:
        return image


# -- perturbations of 8 x 8 images in 0..16 ------------------------------------------------


def _rotate(image: Any, degrees: float, rng: np.random.Generator) -> Any:
    turn = degrees if rng.random() < 0.5 else -degrees
    return cv2.warpAffine(image, cv2.getRotationMatrix2D((3.5, 3.5), turn, 1), (8, 8))


def _shift(image: Any, distance: float, rng: np.random.Generator) -> Any:
    angle = rng.random() * 2 * np.pi
    matrix = np.array([[1, 0, np.cos(angle) * distance], [0, 1, np.sin(angle) * distance]])
    return cv2.warpAffine(image, matrix, (8, 8))


def _blur(image: Any, sigma: float, rng: np.random.Generator) -> Any:
    return cv2.GaussianBlur(image, (0, 0), sigma)


def _noise(image: Any, sigma: float, rng: np.random.Generator) -> Any:
    return np.clip(image + rng.normal(0, sigma, image.shape), 0, 16)


def _contrast(image: Any, factor: float, rng: np.random.Generator) -> Any:
    return image.mean() + factor * (image - image.mean())


def _brighten(image: Any, amount: float, rng: np.random.Generator) -> Any:
    return np.clip(image + amount, 0, 16)


def _occlude(image: Any, side: float, rng: np.random.Generator) -> Any:
    size = int(side)
    row, column = rng.integers(0, 9 - size, 2)
    covered = image.copy()
    covered[row : row + size, column : column + size] = 0
    return covered


def _pixelate(image: Any, side: float, rng: np.random.Generator) -> Any:
    small = cv2.resize(image, (int(side), int(side)), interpolation=cv2.INTER_AREA)
    return cv2.resize(small, (8, 8), interpolation=cv2.INTER_NEAREST)


def _impulse(image: Any, share: float, rng: np.random.Generator) -> Any:
    hit = rng.random(image.shape) < share
    return np.where(hit, np.where(rng.random(image.shape) < 0.5, 16, 0), image)


GRADED: dict[str, tuple[Change, tuple[float, ...]]] = {
    "rotation": (_rotate, (5, 10, 16, 22, 30)),
    "shift": (_shift, (0.25, 0.5, 0.7, 1.0, 1.3)),
    "blur": (_blur, (0.4, 0.55, 0.75, 1.0, 1.4)),
    "noise": (_noise, (1.5, 2.5, 3.5, 4.7, 6)),
    "contrast": (_contrast, (0.7, 0.5, 0.35, 0.25, 0.15)),
    "brighten": (_brighten, (1.5, 3, 4.5, 6.5, 9)),
    "darken": (_brighten, (-2, -4, -6, -8, -10)),
    "occlusion": (_occlude, (1, 2, 3, 3, 4)),
    "pixelate": (_pixelate, (6, 5, 4, 3, 2)),
    "impulse": (_impulse, (0.04, 0.08, 0.13, 0.2, 0.28)),
}

MILD: dict[str, tuple[Change, tuple[float, ...]]] = {
    "rotation": (_rotate, (10,)),
    "shift": (_shift, (0.5,)),
    "blur": (_blur, (0.7,)),
    "noise": (_noise, (3.5,)),
    "contrast": (_contrast, (0.5,)),
    "brighten": (_brighten, (3,)),
    "darken": (_brighten, (-2,)),
    "impulse": (_impulse, (0.08,)),
}


def _perturbed(images: Floats, kinds: dict[str, tuple[Change, tuple[float, ...]]]) -> Floats:
    """Return every image under every variant, N x V x 64."""
    rows = []
    for name, (change, levels) in kinds.items():
        for severity, level in enumerate(levels):
            for number, image in enumerate(images):
                rng = generator(severity, f"digits/{name}", number)
                rows.append(change(image.reshape(8, 8).astype(np.float32), level, rng).ravel())
    count = len(rows) // len(images)
    return np.array(rows, np.float64).reshape(count, len(images), 64).transpose(1, 0, 2)


# -- the two benchmarks --------------------------------------------------------------------


@cache
def severity_bench(decay: float = 1e-4) -> Bench:
    """Return digits-severity; ``decay`` is the weight decay of training."""
    from sklearn.neural_network import MLPClassifier

    train, test, train_digit, test_digit = split(600, None)
    model = MLPClassifier((64,), alpha=decay, max_iter=300, random_state=0)
    model.fit(train, train_digit)
    return bench_of("digits-severity", GRADED, test, test_digit, model, [])


@cache
def proxy_bench() -> Bench:
    """Return digits-proxy."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier

    train, test, train_digit, test_digit = split(250, 500)
    model = LogisticRegression(C=0.05, max_iter=2000)
    others = [
        RandomForestClassifier(60, max_depth=6, random_state=0),
        KNeighborsClassifier(7),
        GaussianNB(var_smoothing=0.05),
    ]
    for classifier in (model, *others):
        classifier.fit(train / 16, train_digit)
    return bench_of("digits-proxy", MILD, test, test_digit, model, others, scale=16)


def split(test: int, train: int | None) -> tuple[Floats, Floats, Floats, Floats]:
    """Return images of ``train`` (None: all other) and ``test`` samples, and then their digits."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    images, digits = load_digits(return_X_y=True)
    train_images, test_images, train_digits, test_digits = train_test_split(
        images, digits, test_size=test, train_size=train, stratify=digits, random_state=0
    )
    return train_images, test_images, train_digits, test_digits


def bench_of(
    name: str,
    kinds: dict[str, tuple[Change, tuple[float, ...]]],
    images: Floats,
    digits: Floats,
    model: Any,
    others: Sequence[Any],
    scale: float = 1,
) -> Bench:
    """Return the benchmark of a classifier on perturbed images.

    Args:
        name: Name of the benchmark.
        kinds: Relation -> the change and its levels by severity.
        images: (N, 64) source images, from 0 to 16.
        digits: (N,) true digits.
        model: The classifier, which answers the questions.
        others: Classifiers that serve as proxies.
        scale: Number that pixels are divided by for all classifiers.
    """
    shown = _perturbed(images, kinds)
    flat = shown.reshape(-1, 64) / scale
    truth = np.repeat(digits, shown.shape[1])
    shape = shown.shape[:2]
    rows = np.arange(len(flat))
    probable = model.predict_proba(flat).reshape(*shape, -1)
    proxies = [1 - other.predict_proba(flat)[rows, truth] for other in others]
    pairs = [(r, s + 1) for r, (_, levels) in enumerate(kinds.values()) for s in range(len(levels))]
    return Bench(
        name,
        (probable.argmax(-1) != digits[:, None]).astype(float),
        _look_and_digit(images, digits),
        np.stack(proxies, -1).reshape(*shape, -1) if proxies else np.zeros((*shape, 0)),
        tuple(kinds),
        tuple(r for r, _ in pairs),
        tuple(s for _, s in pairs),
        images,
        shown,
        digits,
        probable,
    )


def _look_and_digit(images: Floats, digits: Floats) -> Floats:
    """Return N x 26: 16 principal components, and the digit one-hot with weight 0.5."""
    centred = images - images.mean(axis=0)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    looks = left[:, :16] * sizes[:16]
    looks /= np.sqrt((looks**2).sum(axis=1).mean())
    return np.concatenate([looks, 0.5 * np.eye(10)[digits]], axis=1)


# -- how much is explained -----------------------------------------------------------------


def explained(loss: Tensor, expected: Tensor) -> float:
    """Return 1 - E[(l - f)^2 / q] / Var(l), with q the best proposal for f at exploration 0.2.

    It is the share of uniform sampling's variance that sampling by f, corrected by f, saves.
    """
    weight = (expected * (1 - expected)).sqrt()
    proposal = 0.8 * weight / weight.mean() + 0.2
    return 1 - float(((loss - expected) ** 2 / proposal).mean() / loss.var())


def scores(bench: Bench, count: int, seed: int) -> dict[str, float]:
    """Return the share that each surrogate explains after ``count`` random answers."""
    order = torch.from_numpy(generator(seed, "digits").permutation(bench.losses.size))
    seen, unseen = bench.judged(order[:count]), bench.judged(order[count : count + TEST])
    hard, pictures = replace(seen, margin=None), bench.inputs()
    sources = {"features": pictures["features"]}

    def learnt(losses: Losses, **inputs: Any) -> QuestionGP:
        gp = bench.gp(shared=True, **inputs)
        gp.observe(losses)
        return gp

    kinds = torch.zeros(len(unseen.loss), 0)
    gp = learnt(hard, **sources)
    predictions = {
        "cells": gp.mean.expected(unseen.variant, unseen.concept * 3 + 1, kinds),
        "losses": gp.posterior(unseen).mean,
        "margins": learnt(seen, **sources).posterior(unseen).mean,
        "losses, follow-ups": learnt(hard, **pictures).posterior(unseen).mean,
        "margins, follow-ups": learnt(seen, **pictures).posterior(unseen).mean,
    }
    if bench.proxies.shape[-1]:
        gp = learnt(seen, proxies=bench.proxy_losses, **pictures)
        predictions["with proxies"] = gp.posterior(unseen).mean
    return {name: explained(unseen.loss, losses) for name, losses in predictions.items()}


def main(arguments: Sequence[str] | None = None) -> pd.DataFrame:
    """Print, save and return the table of variance explained."""
    chosen = options(
        __doc__, arguments, quick={"answers": [200], "seeds": 1}, answers=[200, 400, 800], seeds=5
    )
    rows = []
    for bench in (severity_bench(), proxy_bench()):
        for count in chosen.answers:
            runs = pd.DataFrame([scores(bench, count, seed) for seed in range(chosen.seeds)])
            rows.append({"benchmark": bench.name, "answers": count, **runs.mean().round(3)})
    table = pd.DataFrame(rows)
    save_table(table, chosen.out / "digits.csv")
    return table.set_index(["benchmark", "answers"])


if __name__ == "__main__":
    main()
