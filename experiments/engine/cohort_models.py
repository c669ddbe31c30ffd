"""Twelve different classifiers of digits, as a population of models.

Each is trained on the training half of digits-severity and answers its 30,000 questions.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from adaptive_vtt.types import Floats

from .digits import GRADED, Bench, bench_of, split

EPOCHS = 60
"""Epochs of training of a torch network."""


@dataclass
class Network:
    """Torch network with the interface of scikit-learn's classifiers."""

    layers: Callable[[], torch.nn.Module]
    seed: int

    def fit(self, images: Floats, digits: Floats) -> None:
        with torch.random.fork_rng():
            torch.manual_seed(self.seed)
            self._module = self.layers()
            optimiser = torch.optim.Adam(self._module.parameters(), 1e-3)
            inputs, truths = _shaped(images), torch.from_numpy(digits).long()
            for _ in range(EPOCHS):
                for rows in torch.split(torch.randperm(len(inputs)), 64):
                    optimiser.zero_grad()
                    loss = torch.nn.functional.cross_entropy(
                        self._module(inputs[rows]), truths[rows]
                    )
                    loss.backward()  # type: ignore[no-untyped-call]
                    optimiser.step()
        self._module.eval()

    @torch.no_grad()
    def predict_proba(self, images: Floats) -> Floats:
        return np.asarray(self._module(_shaped(images)).softmax(1), np.float64)


def _shaped(images: Floats) -> Tensor:
    return torch.from_numpy(images).float().reshape(-1, 1, 8, 8) / 16


def _convolutional() -> torch.nn.Module:
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(512, 10),
    )


def _dense() -> torch.nn.Module:
    nn = torch.nn
    return nn.Sequential(
        nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.3), nn.Linear(128, 10)
    )


def _makers() -> dict[str, Any]:
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import MLPClassifier
    from sklearn.svm import SVC

    return {
        "mlp-64": MLPClassifier((64,), alpha=1e-4, max_iter=300, random_state=0),
        "mlp-decay": MLPClassifier((64,), alpha=0.15, max_iter=300, random_state=0),
        "mlp-deep": MLPClassifier((48, 48), max_iter=300, random_state=1),
        "logistic": LogisticRegression(C=0.001, max_iter=2000),
        "forest": RandomForestClassifier(60, random_state=0),
        "extra-trees": ExtraTreesClassifier(60, max_depth=9, random_state=0),
        "neighbours": KNeighborsClassifier(5),
        "bayes": GaussianNB(var_smoothing=0.05),
        "discriminant": LinearDiscriminantAnalysis(),
        "svm": CalibratedClassifierCV(SVC(gamma=0.001), ensemble=False),
        "torch-dense": Network(_dense, 0),
        "torch-convolutional": Network(_convolutional, 0),
    }


@cache
def population() -> dict[str, Bench]:
    """Return name -> digits-severity with the answers of each of the twelve classifiers."""
    train, test, train_digit, test_digit = split(600, None)
    benches: dict[str, Bench] = {}
    for name, model in _makers().items():
        model.fit(train, train_digit)
        title = f"digits-severity, {name}"
        benches[name] = bench_of(title, GRADED, test, test_digit, model, [])
    return benches
