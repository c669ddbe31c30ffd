"""What a self-taught proxy would tell of a segmenter: nets taught on the sources' masks, coarsely.

The bundled U-Net on phantom frames under MedTest's relations; lost is a follow-up whose Dice drops
by more than a quarter. Small convolutional nets learn a GRID x GRID mask of the sources that they
are not asked about, and look at every follow-up. Hints: 1 - their soft Dice with the mask that is
expected there, and how far that drops below what they score on the source.

    python -m adaptive_vtt.experiments.coarse_masks [--frames 160] [--seeds 2]

Prints the share of the losses' variance that the question GP explains after n random answers, with
margins and follow-up images, without a hint and with each.
"""

import argparse
from collections.abc import Sequence
from typing import Any, NamedTuple

import cv2
import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor, nn

from adaptive_vtt.models.local.tensors import shrunk
from adaptive_vtt.oracles import MaskDrop
from adaptive_vtt.oracles.masks import overlap
from adaptive_vtt.space import QuestionSpace
from adaptive_vtt.surrogates import QuestionGP, sample_features
from adaptive_vtt.surrogates.features import REFERENCE, FollowUpFeatures
from adaptive_vtt.surrogates.loss_mean import Losses
from adaptive_vtt.types import Floats, Mask
from adaptive_vtt.utils.random_streams import generator

from .digits import explained
from .phantom_unet import frames, predict

GRID, LOOK, SMALL = 12, 48, 16
"""Side of a coarse mask, of what the nets see, and of the GP's thumbnails, in cells or pixels."""
FOLDS, STEPS, BATCH = 3, 300, 32
DROP = 0.25
SEVERITIES = (1, 3, 5)
TEST = 1500


class Material(NamedTuple):
    """N sources x V follow-ups: sources' looks and coarse masks; those of the follow-ups, the GP's
    thumbnails, margins (how far above losing), and which sources score at all."""

    space: QuestionSpace
    looks: npt.NDArray[np.uint8]
    masks: Floats
    shown: npt.NDArray[np.uint8]
    expected: Floats
    thumbnails: npt.NDArray[np.uint8]
    margins: Floats
    scored: npt.NDArray[np.bool_]


def material(count: int) -> Material:
    """Everything rendered, and answered by the U-Net."""
    dataset = frames(count, size=96, seed=1000)
    oracle = MaskDrop("dice", (DROP,))
    space = QuestionSpace(dataset, ["medtest"], severities=SEVERITIES, oracle=oracle)
    sources = [dataset.sample(k) for k in range(count)]
    images, truths = [s.require_image() for s in sources], [s.masks["polyp"] for s in sources]
    before = np.array([overlap(m[0], t) for m, t in zip(predict(images), truths, strict=True)])
    looks = np.stack([shrunk(image, (LOOK, LOOK, 3)) for image in images])
    rows = [_follow_ups(space, k, truths[k]) for k in range(count)]
    shown, expected, thumbnails, after = (np.stack(part) for part in zip(*rows, strict=True))
    margins = after - (1 - DROP) * before[:, None]
    masks = np.stack([_coarse(t) for t in truths])
    return Material(space, looks, masks, shown, expected, thumbnails, margins, before > 0)


def _follow_ups(space: QuestionSpace, sample: int, truth: Mask) -> tuple[Any, ...]:
    """Of one source's V follow-ups: looks, coarse masks expected, thumbnails, and Dice."""
    first = sample * len(space.variants)
    made = [space.follow_up(first + v) for v in range(len(space.variants))]
    images = [each.require_image() for each in made]
    expected = [
        v.relation.expect_mask(truth, each) for v, each in zip(space.variants, made, strict=True)
    ]
    return (
        np.stack([shrunk(image, (LOOK, LOOK, 3)) for image in images]),
        np.stack([_coarse(mask) for mask in expected]),
        np.stack([shrunk(image, (SMALL, SMALL, 3)).ravel() for image in images]),
        np.array([overlap(m[0], e) for m, e in zip(predict(images), expected, strict=True)]),
    )


def _coarse(mask: Mask) -> Floats:
    """GRID * GRID shares of a mask's cells."""
    return cv2.resize(mask.astype(np.float64), (GRID, GRID), interpolation=cv2.INTER_AREA).ravel()


def hints(made: Material) -> dict[str, Floats]:
    """By name, N x V in [0, 1]; every source is looked at by the net that did not learn it."""
    count, variants = made.margins.shape
    rng = generator(0, "coarse masks")
    fold = rng.permutation(count) % FOLDS
    own, theirs = np.empty((count, 1)), np.empty((count, variants))
    for number in range(FOLDS):
        mine = np.flatnonzero(fold == number)
        net = _taught(made.looks[fold != number], made.masks[fold != number], rng)
        own[mine, 0] = _dice(_said(net, made.looks[mine]), made.masks[mine])
        said = _said(net, made.shown[mine].reshape(-1, LOOK, LOOK, 3))
        expected = made.expected[mine].reshape(len(said), -1)
        theirs[mine] = _dice(said, expected).reshape(-1, variants)
    drop = ((own - theirs) / np.maximum(own, 1e-3)).clip(0, 1)
    return {"1 - dice": 1 - theirs, "drop": drop}


def _taught(looks: npt.NDArray[np.uint8], masks: Floats, rng: np.random.Generator) -> nn.Module:
    """A net that gives GRID x GRID logits, taught with flipped pictures, too."""
    torch.manual_seed(int(rng.integers(2**31)))
    net = nn.Sequential(
        *(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU()),
        *(nn.Conv2d(16, 24, 3, 2, 1), nn.ReLU()),
        *(nn.Conv2d(24, 32, 3, 1, 1), nn.ReLU()),
        *(nn.Conv2d(32, 32, 3, 1, 2, 2), nn.ReLU()),
        nn.Conv2d(32, 1, 1),
    )
    wanted = torch.from_numpy(masks).float().reshape(-1, 1, GRID, GRID)
    optimiser = torch.optim.Adam(net.parameters(), 3e-3)
    for _ in range(STEPS):
        batch = torch.from_numpy(rng.integers(len(looks), size=BATCH))
        sides = [axis for axis in (2, 3) if rng.random() < 0.5]
        seen, right = _pixels(looks)[batch].flip(sides), wanted[batch].flip(sides)
        loss = nn.functional.binary_cross_entropy_with_logits(net(seen), right)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    return net


def _pixels(looks: npt.NDArray[np.uint8]) -> Tensor:
    return torch.from_numpy(looks).permute(0, 3, 1, 2).float() / 255


@torch.no_grad()
def _said(net: nn.Module, looks: npt.NDArray[np.uint8]) -> Floats:
    """n x GRID * GRID, in [0, 1]."""
    return np.asarray(net(_pixels(looks)).sigmoid().flatten(1).double().numpy())


def _dice(one: Floats, other: Floats) -> Floats:
    return np.asarray(2 * (one * other).sum(-1) / np.maximum((one + other).sum(-1), 1e-9))


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
    found = hints(made)
    choices: dict[str, list[Floats]] = {"none": [], **{name: [h] for name, h in found.items()}}
    choices["both"] = [*found.values()]
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
