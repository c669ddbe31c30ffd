"""One part of each kind; the same file is named from a SPEC.toml as ``parts.py:name``."""

import numpy as np
import pandas as pd
import torch

from adaptive_vtt.datasets import from_table
from adaptive_vtt.oracles import OracleDefaults
from adaptive_vtt.relations import LabelPreserving
from adaptive_vtt.types import Answer, Outcome, Unanswered


class Darker(LabelPreserving):
    """Every pixel at a share of its brightness."""

    name, severities, about = "darker", (1, 2), "every pixel at a share of its brightness"

    def __init__(self, share=0.9):
        self.share = share

    def transform(self, image, severity, rng):
        return (image * self.share**severity).astype(np.uint8)


class Lenient(OracleDefaults):
    """Only answers that are surely wrong count."""

    def __init__(self, margin=0.2):
        self.margin = margin

    def judge(self, question, answer, expected, source_answer=None):
        if isinstance(answer, Unanswered):
            return Outcome(self.unanswered_loss)
        loss = float(abs(answer - expected) > 0.5 + self.margin)
        return Outcome(loss, (answer + expected) / 2)


class Evenly:
    """All candidates are worth the same."""

    def __init__(self, worth=1.0):
        self.worth = worth

    def weights(self, candidates, belief):
        return torch.full((len(candidates),), self.worth)


def greys(count=12):
    """Grey images, light ones among them."""
    images = [np.full((16, 16, 3), 15 * i + 20, np.uint8) for i in range(count)]
    labels = pd.DataFrame({"light": [int(i >= count // 2) for i in range(count)]})
    return from_table(images, labels, name="greys")


class Brightness:
    """Light is what is brighter than a threshold."""

    answers = "all"

    def __init__(self, threshold=110.0):
        self.threshold = threshold

    def ask(self, prompts):
        return [Answer((float(p.image.mean() > self.threshold),)) for p in prompts]
