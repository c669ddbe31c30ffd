"""What nets taught with the sources' masks tell of a segmenter: ``SelfTaughtMasks`` and its hints.

The bundled U-Net on phantom frames under MedTest's relations; lost is a follow-up whose Dice drops
by more than a quarter.

    python -m adaptive_vtt.experiments.coarse_masks [--frames 160] [--seeds 2]

Prints the share of the losses' variance that the question GP explains after n random answers, with
margins and follow-up images: without a hint, with that of ``engine.mask_hints`` (misses), with how
far the nets' Dice drops below what they score on the source (drops), and with both.
"""

import argparse
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from adaptive_vtt.engine.mask_hints import MaskHints, soft_dice
from adaptive_vtt.models import SelfTaughtMasks
from adaptive_vtt.models.local.self_taught_masks import look
from adaptive_vtt.models.local.tensors import shrunk
from adaptive_vtt.oracles import MaskDrop
from adaptive_vtt.oracles.masks import overlap
from adaptive_vtt.space import QuestionSpace
from adaptive_vtt.surrogates import QuestionGP, sample_features
from adaptive_vtt.surrogates.features import REFERENCE, FollowUpFeatures
from adaptive_vtt.surrogates.loss_mean import Losses
from adaptive_vtt.types import Floats
from adaptive_vtt.utils.random_streams import generator

from .digits import explained
from .phantom_unet import frames, predict

SMALL = 16
"""Side of the GP's thumbnails, in pixels."""
DROP = 0.25
SEVERITIES = (1, 3, 5)
TEST = 1500


class Material(NamedTuple):
    """N sources x V follow-ups: the GP's thumbnails, margins (how far above losing), misses,
    drops, and which sources score at all."""

    space: QuestionSpace
    thumbnails: npt.NDArray[np.uint8]
    margins: Floats
    misses: Floats
    drops: Floats
    scored: npt.NDArray[np.bool_]


def material(count: int) -> Material:
    """Everything rendered, and answered by the U-Net."""
    dataset = frames(count, size=96, seed=1000)
    space = QuestionSpace(
        dataset, ["medtest"], severities=SEVERITIES, oracle=MaskDrop("dice", (DROP,))
    )
    taught = SelfTaughtMasks.of(space.dataset, space.asked)
    print(taught, flush=True)
    sources = [dataset.sample(k) for k in range(count)]
    answers = predict([s.require_image() for s in sources])
    before = np.array(
        [overlap(m[0], s.masks["polyp"]) for m, s in zip(answers, sources, strict=True)]
    )
    told = MaskHints(taught, space)
    rows = [_follow_ups(space, told, k) for k in range(count)]
    thumbnails, after, misses = (np.stack(part) for part in zip(*rows, strict=True))
    looks = [look(s.require_image())[None] for s in sources]
    own = np.array(
        [
            [soft_dice(taught.expected(k, looks[k])[0, 0], sources[k].masks["polyp"])]
            for k in range(count)
        ]
    )
    drops = ((own - (1 - misses)) / np.maximum(own, 1e-3)).clip(0, 1)
    margins = after - (1 - DROP) * before[:, None]
    return Material(space, thumbnails, margins, misses, drops, before > 0)


def _follow_ups(space: QuestionSpace, told: MaskHints, sample: int) -> tuple[Any, ...]:
    """Of one source's V follow-ups: thumbnails, Dice, and misses."""
    numbers = range(sample * len(space.variants), (sample + 1) * len(space.variants))
    made = [(image, *space.pair(image)) for image in numbers]
    images = [each.require_image() for _, _, each in made]
    expected = [
        variant.relation.expect_mask(source.masks["polyp"], each)
        for variant, (_, source, each) in zip(space.variants, made, strict=True)
    ]
    return (
        np.stack([shrunk(image, (SMALL, SMALL, 3)).ravel() for image in images]),
        np.array([overlap(m[0], e) for m, e in zip(predict(images), expected, strict=True)]),
        np.stack([told.of(*each) for each in made])[:, 0] / 255,
    )


def explained_with(made: Material, told: Sequence[Floats], answers: int, seed: int) -> float:
    """What the question GP explains with these hints after so many random answers."""
    count, variants = made.margins.shape
    space, thumbnails = made.space, made.thumbnails.reshape(count * variants, -1)
    valid = np.flatnonzero(np.repeat(made.scored, variants))
    order = torch.from_numpy(generator(seed, "coarse masks").permutation(valid))
    size = min(REFERENCE, len(thumbnails))
    some = generator(0, "follow-ups").choice(len(thumbnails), size, replace=False)
    names = list(dict.fromkeys(v.relation.name for v in space.variants))
    table = torch.from_numpy(np.stack(told, -1)) if told else None
    gp = QuestionGP(
        [names.index(v.relation.name) for v in space.variants],
        [v.severity for v in space.variants],
        1,
        shared=True,
        features=sample_features(space.dataset, seed),
        follow_ups=FollowUpFeatures(
            lambda images: thumbnails[images], some, images=len(thumbnails), variants=variants
        ),
        proxies=None if table is None else lambda s, v, c, t: table[s, v],
    )
    gp.observe(_judged(made, order[:answers]))
    unseen = _judged(made, order[answers : answers + TEST])
    return explained(unseen.loss, gp.posterior(unseen).mean)


def _judged(made: Material, questions: Tensor) -> Losses:
    sample, variant = questions // made.margins.shape[1], questions % made.margins.shape[1]
    zeros, margin = torch.zeros_like(sample), torch.from_numpy(made.margins)[sample, variant]
    return Losses(sample, variant, zeros, zeros + 1, (margin < 0).double(), margin)


def main(arguments: Sequence[str] | None = None) -> pd.DataFrame:
    """Prints and returns the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--frames", type=int, default=160)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--answers", type=int, nargs="+", default=[100, 300])
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    made = material(options.frames)
    choices: dict[str, list[Floats]] = {
        "none": [],
        "misses": [made.misses],
        "drops": [made.drops],
        "both": [made.misses, made.drops],
    }
    rows = []
    for n in options.answers:
        row: dict[str, Any] = {"answers": n}
        for name, told in choices.items():
            runs = [explained_with(made, told, n, seed) for seed in range(options.seeds)]
            row[name] = round(float(np.mean(runs)), 3)
        rows.append(row)
        print(row, flush=True)
    return pd.DataFrame(rows)


if __name__ == "__main__":
    main()
