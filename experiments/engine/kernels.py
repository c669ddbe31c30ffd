"""Compare the question GP's kernel with others.

    python -m adaptive_vtt.experiments.engine.kernels

The first benchmark is digits-severity, predicted as in an audit from margins, follow-up images and
self-taught nets. The table has the share of uniform sampling's variance that sampling by the
predictions saves after n random answers, as in ``digits``. The second has ten concepts per call
("is it a 3?"), as columns that only share a factor, or with one low-rank kernel over concepts.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar
from unittest.mock import patch

import numpy as np
import pandas as pd
import torch
from scipy.special import logit
from torch import Tensor

from adaptive_vtt.surrogates import QuestionGP
from adaptive_vtt.surrogates.features import FOLLOW_UP_WIDTH
from adaptive_vtt.surrogates.loss_mean import Losses
from adaptive_vtt.surrogates.question_gp import _joined
from adaptive_vtt.surrogates.unit_kernel import LOSSES, Tables, UnitKernel
from adaptive_vtt.types import Floats
from adaptive_vtt.utils.random_streams import generator

from ..program import options, save_table
from .digits import TEST, Bench, explained, severity_bench
from .self_taught import nets_of, pictures

RANK = 2
"""Rank of the kernel over concepts, without its diagonal."""


class Longer(UnitKernel):
    """The kernel with ``more`` further weights after its own, each 1 at first."""

    more: ClassVar[int]

    def __init__(self, *kinds: Any, **options: Any) -> None:
        super().__init__(*kinds, **options)
        self.begin(torch.cat([self.raw.detach(), torch.zeros(self.more, dtype=torch.float64)]))

    def _weight(self, name: str) -> Tensor:
        value = self.raw[list(LOSSES).index(name)].exp()
        return value if torch.is_grad_enabled() else value.detach()

    def further(self) -> Tensor:
        """Return the further weights, (more,)."""
        values = self.raw[len(LOSSES) :].exp()
        return values if torch.is_grad_enabled() else values.detach()


class Relevance(Longer):
    """Kernel with a separate scale for each component of follow-up images (ARD)."""

    more = FOLLOW_UP_WIDTH

    def _rbf(self, x: Tensor, y: Tensor, scale: str) -> Tensor:
        if scale == "follow_up_lengthscale":
            weights = self.further().to(x.dtype)
            x, y = x * weights, y * weights
        return super()._rbf(x, y, scale)


class Severities(Longer):
    """Kernel with an RBF of severity in place of the line, with a lengthscale per relation."""

    more = 10

    def _compute_tables(self) -> Tables:
        cells, alike, image = super()._compute_tables()
        line = self.same * self.line * self._weight("slope_relation")
        levels = self.line.diagonal().sqrt()
        _, relation = torch.unique(self.same.argmax(1), return_inverse=True)
        apart = (levels[:, None] - levels) / (0.5 * self.further()[relation])
        near = self.same * (-0.5 * apart.square()).exp() * self._weight("slope_relation")
        return Tables(cells - line + (near + near.mT) / 2, alike, image)


class FeatureTable:
    """Features (N V, e) of follow-ups, looked up by number."""

    def __init__(self, table: Floats, variants: int) -> None:
        self._table, self._variants = torch.from_numpy(table), variants
        self.width = table.shape[1]

    def __call__(self, sample: Tensor, variant: Tensor) -> Tensor:
        return self._table[sample * self._variants + variant]


def probabilities_by_nets(bench: Bench) -> tuple[Floats, Floats]:
    """Return P of ten digits by nets trained on the sources: (N V, 10) of follow-ups, (N, 10)."""
    nets = nets_of(bench, bench.digits)
    count, variants, _ = bench.shown.shape
    sample = np.arange(count)
    follow_ups = pictures(bench.shown.reshape(-1, 64))
    return (
        nets.predict(follow_ups, np.repeat(sample, variants)),
        nets.predict(pictures(bench.images), sample),
    )


def last_layer(probable: Floats) -> Floats:
    """Return logits of the nets' probabilities as features with a root mean square of 1."""
    logits = logit(probable.clip(1e-3, 1 - 1e-3))
    logits = logits - logits.mean(axis=0)
    return np.asarray(logits / np.sqrt((logits**2).sum(axis=1).mean()))


Row = tuple[str, int, float]
"""Name of the kernel, number of answers, and the share explained."""


def one_concept(counts: Sequence[int], seeds: int) -> Iterator[Row]:
    """Score kernels and inputs after each of ``counts`` answers, for each seed."""
    bench = severity_bench()
    probable, of_sources = probabilities_by_nets(bench)
    count, variants = bench.losses.shape
    sample, variant = np.divmod(np.arange(count * variants), variants)
    right = probable[np.arange(len(probable)), bench.digits.astype(int)[sample]]
    bench = replace(bench, proxies=1 - right.reshape(count, variants, 1))
    usual = {**bench.inputs(), "proxies": bench.proxy_losses}
    looks = usual["follow_ups"](torch.from_numpy(sample), torch.from_numpy(variant)).numpy()
    layer = last_layer(probable)
    both = np.concatenate([looks, layer], axis=1) / np.sqrt(2)
    sources = torch.from_numpy(np.concatenate([bench.features, last_layer(of_sources)], axis=1))
    ways: Mapping[str, tuple[type[UnitKernel], dict[str, Any]]] = {
        "as it is": (UnitKernel, {}),
        "last layer of nets for looks": (
            UnitKernel,
            {"follow_ups": FeatureTable(layer, variants)},
        ),
        "looks and last layer": (UnitKernel, {"follow_ups": FeatureTable(both, variants)}),
        "last layer of sources, too": (UnitKernel, {"features": lambda samples: sources[samples]}),
        "a scale per component (ARD)": (Relevance, {}),
        "severity by an RBF per relation": (Severities, {}),
    }
    for n, seed in itertools.product(counts, range(seeds)):
        seen, unseen = _dealt(bench, n, seed)
        for name, (kernel, inputs) in ways.items():
            with patch("adaptive_vtt.surrogates.question_gp.UnitKernel", kernel):
                kinds = bench.relation, bench.severity, 1
                gp = QuestionGP(*kinds, shared=True, **{**usual, **inputs})
            gp.observe(seen)
            yield name, n, explained(unseen.loss, gp.posterior(unseen).mean)
        mean = gp.mean.expected(unseen.variant, unseen.concept * 3 + 1, gp.prepare(unseen).signals)
        yield "regression alone", n, explained(unseen.loss, mean)


def _dealt(bench: Bench, count: int, seed: int) -> tuple[Losses, Losses]:
    """Return ``count`` random questions with losses, and TEST others."""
    order = torch.from_numpy(generator(seed, "digits").permutation(bench.losses.size))
    return bench.judged(order[:count]), bench.judged(order[count : count + TEST])


# -- concepts that share more than a factor --------------------------------------------------


@torch.no_grad()
def ten_concepts(counts: Sequence[int], seeds: int) -> Iterator[Row]:
    """Score columns, and a kernel over concepts, after each of ``counts`` calls, for each seed."""
    bench = severity_bench()
    for n, seed in itertools.product(counts, range(seeds)):
        order = generator(seed, "digits").permutation(bench.losses.size)
        gp = QuestionGP(bench.relation, bench.severity, 10, shared=True, **bench.inputs())
        gp.observe(_of_all(bench, order[:n]))
        unseen = _of_all(bench, order[n : n + TEST // 10])
        queries = gp.prepare(unseen)
        shifts = {"alone": gp._shift(queries), "kernel": _shared_shift(gp, queries)}
        for name, shift in shifts.items():
            mean, _ = gp.coordinate.losses(gp._judged_of(queries), shift)
            yield f"ten concepts, {name}", n, explained(unseen.loss, mean)


def _of_all(bench: Bench, questions: Any) -> Losses:
    """Return the ten questions "is it d?" of each of ``questions`` (k,), with losses: (10 k,)."""
    sample, variant = np.divmod(np.repeat(questions, 10), bench.losses.shape[1])
    concept = np.tile(np.arange(10), len(questions))
    truth = (bench.digits[sample] == concept).astype(int)
    loss = np.abs((bench.probable[sample, variant].argmax(-1) == concept) - truth)
    of = torch.from_numpy
    return Losses(of(sample), of(variant), of(concept), of(truth), of(loss.astype(float)))


@torch.no_grad()
def _shared_shift(gp: QuestionGP, queries: Any) -> Tensor:
    """Return the posterior mean (m,) where the kernel is multiplied by B over concepts.

    B is the mean of the identity and the correlation of the concepts' residuals, cut to RANK.
    """
    units, judged = gp._units, _joined(gp._parts)[1]
    assert units is not None
    residual, _ = gp._chosen.residuals(judged, 0, len(units))
    together = torch.corrcoef(residual.mT).nan_to_num(0)
    sizes, axes = torch.linalg.eigh(together)
    low = (axes[:, -RANK:] * sizes[-RANK:].clamp(min=0)) @ axes[:, -RANK:].mT
    scale = low.diagonal().clamp(min=1e-9).rsqrt()
    shared = 0.5 * low * scale[:, None] * scale + 0.5 * torch.eye(10, dtype=torch.float64)
    whole = torch.kron(shared, gp.kernel.between(units, units))
    whole.diagonal().add_(gp.kernel.noise)
    alpha = torch.linalg.solve(whole, residual.mT.reshape(-1)).reshape(10, -1)
    cross = gp.kernel.between(queries.units, units)
    return ((shared @ alpha)[queries.concept] * cross).sum(1)


def main(arguments: Sequence[str] | None = None) -> None:
    quick = {"answers": [100], "seeds": 1}
    chosen = options(__doc__, arguments, quick=quick, answers=[100, 200, 400, 800], seeds=5)
    counts, seeds = chosen.answers, chosen.seeds
    rows = [*one_concept(counts, seeds), *ten_concepts(counts[:2], seeds)]
    runs = pd.DataFrame(rows, columns=["kernel", "answers", "explained"])
    table = runs.pivot_table("explained", "kernel", "answers", sort=False).round(3)
    save_table(table, chosen.out / "kernels.csv", index=True)


if __name__ == "__main__":
    main()
