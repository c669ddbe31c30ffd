"""Covariance between judged questions, and the fit of its weights.

A unit is what one observation is about: a follow-up image (sample, variant), with a concept where
calls ask one question at a time. The regressed number (``regression``) of unit (i, v), sample i and
variant v, has the covariance

    k((i,v), (j,w)) = cells[v,w] + T[v,w] (G(i,j) (g + g' same) + 1{i=j} (d + d' same))
                      + H(iv,jw) (h + h' 1{truths of i = truths of j})

G is an RBF kernel on the samples' features, H one on the features of the follow-up images, and
``same`` is 1 within a relation. With severities s from 0 to 1,

    cells = c + c' same + c'' 1{v=w} + s_v s_w (e + e' same)

    T[v,w] = (min(F_v, F_w) - F_v F_w) / sqrt(F_v (1 - F_v) F_w (1 - F_w))

**The origin of T.** Let an image break at severity B and fail from there on, so its losses are step
functions 1{B <= s}. Let F_v be the share of images that fail at v. Then an image fails at both v
and w with the probability of the rarer of the two, so the covariance is min(F_v, F_w) - F_v F_w.
T is the correlation. It is that of a Brownian bridge at times F_v and F_w, so it is positive
semi-definite. It says that an image which breaks under a mild change breaks under a harsh one,
and that one which survives a mild change may still break under a harsh one.
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from gpytorch.constraints import Positive
from gpytorch.kernels import Kernel
from gpytorch.priors import NormalPrior
from linear_operator.utils.cholesky import psd_safe_cholesky
from linear_operator.utils.errors import NanError, NotPSDError
from torch import Tensor

from adaptive_vtt.types import Floats

LOSSES = {
    "overall": 0.002,
    "relation": 0.005,
    "variant": 0.005,
    "slope": 0.001,
    "slope_relation": 0.001,
    "alike": 0.15,
    "alike_relation": 0.15,
    "image": 0.15,
    "image_relation": 0.2,
    "follow_up": 0.1,
    "follow_up_truths": 0.1,
    "noise": 0.4,
    "lengthscale": 0.7,
    "follow_up_lengthscale": 0.7,
    "rho": 1.0,
}
"""Prior medians for losses: shares of the variance, lengthscales, and odds of rho. The shares of
cells are small, because the mean F already contains what cells have in common."""

MARGINS = {
    **LOSSES,
    "overall": 0.05,
    "relation": 0.05,
    "variant": 0.05,
    "slope": 0.1,
    "slope_relation": 0.1,
    "image": 0.05,
    "image_relation": 0.05,
    "follow_up": 0.15,
    "follow_up_truths": 0.3,
    "noise": 0.1,
    "lengthscale": 1.0,
    "follow_up_lengthscale": 0.9,
}
"""Prior medians for margins, which vary smoothly with the look of the follow-up image."""

_PLACE = {name: place for place, name in enumerate(LOSSES)}

BLOCK = 1 << 19
"""Numbers per block of a prediction, few enough to stay in a core's cache."""

MIN_NOISE = 0.01
"""Least noise variance, which keeps the covariance well-conditioned. Residuals have a variance of
about 1."""

SPREAD = 1.0
"""Standard deviation of the logarithm of each weight under its prior, a factor of e either way."""


@dataclass(frozen=True)
class Units:
    """n units.

    Attributes:
        sample: (n,) int64, sample by number.
        variant: (n,) int64, variant by number.
        concept: (n,) int64, concept by number.
        truths: (n,) int64, the same number for samples with the same truths.
        follow_up: (n, e) features of the follow-up image; e is fixed for a kernel.
        features: (n, d) features of the sample.
    """

    sample: Tensor
    variant: Tensor
    concept: Tensor
    truths: Tensor
    follow_up: Tensor
    features: Tensor

    def __len__(self) -> int:
        return len(self.sample)

    def __getitem__(self, rows: Any) -> "Units":
        return Units(*(column[rows] for column in vars(self).values()))

    def join(self, other: "Units") -> "Units":
        """Return these units pair by the others."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Units(*(torch.cat(pair) for pair in pairs))

    def points(self) -> Tensor:
        """Return one row per unit, (n, 4 + e + d) float64, as a GPyTorch kernel takes them."""
        places = (self.sample, self.variant, self.concept, self.truths)
        return torch.cat([torch.stack(places, 1), self.follow_up, self.features], 1)

    @classmethod
    def of(cls, points: Tensor, width: int) -> "Units":
        """Return the units of ``points`` (n, 4 + e + d), where e = ``width``."""
        places, follow_up, features = points.tensor_split((4, 4 + width), 1)
        sample, variant, concept, truths = places.round().long().unbind(1)
        return cls(sample, variant, concept, truths, follow_up, features)


class Tables(NamedTuple):
    """Covariances of pairs of variants, V x V each: of cells, of similar images, of one image."""

    cells: Tensor
    alike: Tensor
    image: Tensor


class UnitKernel(Kernel):  # type: ignore[misc]
    """Kernel of the module's docstring, as a GPyTorch kernel over ``Units.points``.

    Unless concepts are columns, it is multiplied by rho + (1 - rho) 1{same concept}.

    Args:
        relation: (V,) the number of each variant's relation.
        severity: (V,) each variant's severity.
        concepts: Number of concepts C.
        columns: Whether concepts are columns of the regression, and not part of the kernel.
        device: Device of all tensors.
        medians: Prior medians of the weights, LOSSES or MARGINS.
        follow_up_width: Number of features e of a follow-up image.

    Attributes:
        raw: (15,) logarithms of the weights in the order of LOSSES, with normal priors.
    """

    line: Tensor
    same: Tensor
    steps: Tensor
    raw: torch.nn.Parameter

    def __init__(
        self,
        relation: Sequence[int],
        severity: Sequence[int],
        concepts: int,
        *,
        columns: bool,
        device: torch.device,
        medians: Mapping[str, float] = LOSSES,
        follow_up_width: int = 0,
    ) -> None:
        super().__init__()
        self.concepts = concepts
        self.columns = columns
        self.follow_up_width = follow_up_width
        numbers = torch.tensor(list(relation), device=device)
        levels = torch.tensor(list(severity), dtype=torch.float64, device=device)
        levels = levels / levels.max().clamp(min=1)
        self.register_buffer("line", levels[:, None] * levels)
        self.register_buffer("same", (numbers[:, None] == numbers).double())
        self.register_buffer("steps", torch.eye(len(numbers), dtype=torch.float64, device=device))
        start = [math.log(medians[name]) for name in LOSSES]
        self.begin(torch.tensor(start, dtype=torch.float64, device=device))

    def begin(self, start: Tensor) -> None:
        """Give the logarithms of all weights priors with these medians, and set them to these."""
        self.register_parameter("raw", torch.nn.Parameter(start.clone()))
        self.register_constraint("raw", Positive(torch.exp, torch.log))
        self.register_prior("raw_prior", NormalPrior(start, torch.full_like(start, SPREAD)), "raw")
        self._forget()

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **_: Any) -> Tensor:
        """Return the covariance (n, m) of two sets of points, or its diagonal (n,)."""
        left = Units.of(x1, self.follow_up_width)
        if diag:
            return self.variance(left.variant)
        return self.covariance(left, Units.of(x2, self.follow_up_width))

    @property
    def noise(self) -> Tensor:
        """Noise variance of an observation."""
        return self._weight("noise") + MIN_NOISE

    def set_raw(self, raw: Floats) -> None:
        """Set the logarithms of all weights."""
        with torch.no_grad():
            self.raw.copy_(torch.from_numpy(raw))
        self._forget()

    def _forget(self) -> None:
        # weights and tables are read often, and change only in a fit
        self._weights: dict[str, Tensor] | None = None
        self._tables: Tables | None = None

    def _weight(self, name: str) -> Tensor:
        """Return a weight, with its gradient where gradients are computed."""
        if torch.is_grad_enabled():
            return self.raw[_PLACE[name]].exp()
        if self._weights is None:
            self._weights = dict(zip(LOSSES, self.raw.exp().unbind(), strict=True))
        return self._weights[name]

    def set_rates(self, rates: Tensor) -> None:
        """Set T from the failure rate (V,) of every variant."""
        spread = (rates * (1 - rates)).sqrt()
        together = torch.minimum(rates[:, None], rates)
        self.steps = (together - rates[:, None] * rates) / (spread[:, None] * spread)
        self._forget()

    def tables(self) -> Tables:
        """Return the tables for the current weights."""
        if torch.is_grad_enabled():
            return self._compute_tables()
        if self._tables is None:
            self._tables = self._compute_tables()
        return self._tables

    def _compute_tables(self) -> Tables:
        weight, same = self._weight, self.same
        white = torch.eye(len(same), dtype=torch.float64, device=same.device)
        cells = weight("overall") + weight("relation") * same + weight("variant") * white
        cells = cells + self.line * (weight("slope") + weight("slope_relation") * same)
        alike = self.steps * (weight("alike") + weight("alike_relation") * same)
        image = self.steps * (weight("image") + weight("image_relation") * same)
        return Tables(cells, alike, image)

    def similarity(self, x: Tensor, y: Tensor) -> Tensor:
        """Return G (n, m) of samples' features (n, d) and (m, d), in their precision."""
        return self._rbf(x, y, "lengthscale")

    def follow_up_term(self, left: tuple[Tensor, Tensor], right: tuple[Tensor, Tensor]) -> Tensor:
        """Return the term with H (n, m), given truths (n,) and features (n, e) of either side."""
        same = left[0][:, None] == right[0]
        alike = self._rbf(left[1], right[1], "follow_up_lengthscale")
        weights = torch.stack([self._weight("follow_up"), self._weight("follow_up_truths")])
        usual, more = weights.to(alike.dtype)
        return alike * (usual + more * same)

    def _rbf(self, x: Tensor, y: Tensor, scale: str) -> Tensor:
        """Return the RBF kernel (n, m) of features; ``scale`` is the name of its lengthscale."""
        lengthscale = self._weight(scale).to(x.dtype)
        x, y = x / lengthscale, y / lengthscale
        # one matrix product gives the exponent -|x - y|^2 / 2 = x'y - |x|^2 / 2 - |y|^2 / 2
        left = torch.cat([x, -0.5 * x.square().sum(1, keepdim=True), torch.ones_like(x[:, :1])], 1)
        right = torch.cat([y, torch.ones_like(y[:, :1]), -0.5 * y.square().sum(1, keepdim=True)], 1)
        return (left @ right.mT).exp_()

    def variance(self, variant: Tensor) -> Tensor:
        """Return the prior variance (n,) of units of these variants."""
        variance = torch.stack(self.tables()).sum(0).diagonal()[variant]
        if self.follow_up_width:
            variance = variance + (self._weight("follow_up") + self._weight("follow_up_truths"))
        return variance

    def weights(self, units: Units, alpha: Tensor) -> Tensor:
        """Return the weight of each unit in predictions about each concept, (C, n)."""
        if alpha.shape[1] > 1:
            return alpha.mT
        return self.concept_table()[:, units.concept] * alpha[:, 0]

    def concept_table(self) -> Tensor:
        """Return rho + (1 - rho) 1{same concept}, C x C; ones where concepts are columns."""
        if self.columns:
            return torch.ones_like(self.same[:1, :1]).expand(self.concepts, self.concepts)
        same = torch.eye(self.concepts, dtype=torch.float64, device=self.same.device)
        rho = torch.sigmoid(self.raw[_PLACE["rho"]])
        return rho + (1 - rho) * same

    def covariance(self, left: Units, right: Units) -> Tensor:
        """Return the covariance (n, m) of two sets of units."""
        cells, alike, image = self.tables()
        # entries of tables as products, whose gradient takes a tenth of the time of an index's
        rows, columns = left.variant, torch.eye(len(cells)).to(cells)[:, right.variant]
        same_sample = left.sample[:, None] == right.sample
        total = self.similarity(left.features, right.features) * (alike[rows] @ columns)
        if self.follow_up_width:
            pair = (left.truths, left.follow_up), (right.truths, right.follow_up)
            total = total + self.follow_up_term(*pair)
        total = total + cells[rows] @ columns + same_sample * (image[rows] @ columns)
        if not self.columns:
            total = total * self.concept_table()[left.concept[:, None], right.concept]
        return total

    def between(self, left: Units, right: Units) -> Tensor:
        """Return the covariance (n, m) of two sets of units, without gradients."""
        with torch.no_grad():
            return self.covariance(left, right)


def fit(kernel: UnitKernel, units: Units, residual: Tensor, known: Tensor, steps: int) -> None:
    """Fit the kernel's weights by penalised maximum likelihood with L-BFGS.

    Columns are independent given the kernel. If the line search reaches a singular covariance, the
    best weights so far are kept.

    Args:
        kernel: The kernel, whose weights are set.
        units: n units.
        residual: (n, C) residuals of the units.
        known: (n, C) which residuals are known.
        steps: The most steps.
    """
    from scipy.optimize import minimize  # torch's own L-BFGS imports its compiler: a second more

    start = kernel.raw.detach().cpu().numpy().copy()
    best, best_value = start, math.inf

    def objective(raw: Floats) -> tuple[float, Floats]:
        nonlocal best, best_value
        kernel.set_raw(raw)
        value, slope = _penalised(kernel, units, residual, known)
        if value < best_value:
            best, best_value = raw.copy(), value
        return value, slope

    with suppress(NotPSDError, NanError):
        minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": steps})
    kernel.set_raw(best)


@torch.enable_grad()
def _penalised(
    kernel: UnitKernel, units: Units, residual: Tensor, known: Tensor
) -> tuple[float, Floats]:
    """Return -log p(residual, weights) up to a constant, and its derivative by the weights."""
    covariance = kernel.covariance(units, units)
    value, slope = _likelihood(covariance.detach(), kernel.noise.detach(), residual, known)
    prior = kernel.raw_prior  # its density but for a constant
    penalty = (((kernel.raw - prior.loc) / prior.scale) ** 2).sum() / 2
    # The chain rule: d value = sum of slope * d covariance, and noise is on the diagonal. The
    # likelihood's derivative in closed form is three times faster than through Cholesky.
    noise = kernel.noise * slope.diagonal().sum()
    (gradient,) = torch.autograd.grad((covariance * slope).sum() + noise + penalty, kernel.raw)
    return float(value + penalty.detach()), gradient.cpu().numpy()


def _likelihood(
    covariance: Tensor, noise: Tensor, residual: Tensor, known: Tensor
) -> tuple[Tensor, Tensor]:
    """Return -log p(residual) and its derivative by the covariance (n, n), summed over columns.

    For a column r with covariance K = L L' these are, up to a constant,

        r' K^-1 r / 2 + log |L|    and    (K^-1 - K^-1 r r' K^-1) / 2

    Source: Rasmussen and Williams, *Gaussian Processes for Machine Learning* (2006), 2.30 and 5.9.
    """
    total, columns, repeats = covariance.clone(), residual, residual.shape[1]
    total.diagonal().add_(noise)
    # gaps differ by column, which takes C matrices with 1 on the diagonal at each gap
    if not (complete := bool(known.all())):
        gaps = known.mT.double()
        total = total * gaps[:, :, None] * gaps[:, None, :] + torch.diag_embed(1 - gaps)
        columns, repeats = (residual * known).mT[:, :, None], 1
    factor = psd_safe_cholesky(total)
    solved = torch.cholesky_solve(columns, factor)
    value = 0.5 * (columns * solved).sum() + repeats * factor.diagonal(dim1=-2, dim2=-1).log().sum()
    slope = 0.5 * (repeats * torch.cholesky_inverse(factor) - solved @ solved.mT)
    if not complete:
        slope = (slope * gaps[:, :, None] * gaps[:, None, :]).sum(0)
    return value, slope


class Factor:
    """Cholesky factor L of the covariance K of up to ``capacity`` units, grown row by row.

    Rows not used yet are those of the identity, so solves run on one contiguous matrix without a
    copy. An unknown residual is taken to equal its prediction. Its entry of z = L^-1 r is then 0,
    and it changes nothing in its column.
    """

    def __init__(self, capacity: int, columns: int, device: torch.device) -> None:
        self.size = 0
        self.lower = torch.eye(capacity, dtype=torch.float64, device=device)
        self._half = torch.zeros(capacity, columns, dtype=torch.float64, device=device)
        self._alpha: Tensor | None = None

    @property
    def alpha(self) -> Tensor:
        """(n, C): K^-1 r, which predictions multiply covariances with."""
        if self._alpha is None:
            self._alpha = torch.linalg.solve_triangular(self.lower.mT, self._half, upper=True)
        return self._alpha[: self.size]

    def cut(self, size: int) -> None:
        """Keep only the first ``size`` units."""
        self.size = size
        self._half[size:] = 0
        self._alpha = None

    def append(self, cross: Tensor, block: Tensor, residual: Tensor, known: Tensor) -> None:
        """Append b units.

        Args:
            cross: (n, b) covariance of the units in the factor with the new ones.
            block: (b, b) covariance of the new units, with noise.
            residual: (b, C) their residuals.
            known: (b, C) which residuals are known.
        """
        # the new rows of L are [C' L^-T, chol(B - C' K^-1 C)] for cross = C and block = B
        rows = slice(self.size, self.size + len(block))
        left = self.halve(cross)
        corner = psd_safe_cholesky(block - left.mT @ left)
        self.lower[rows, : self.size] = left.mT
        self.lower[rows, rows] = corner
        self._half[rows] = _forward(corner, residual - left.mT @ self._half[: self.size], known)
        self.size += len(block)
        self._alpha = None

    def halve(self, covariance: Tensor) -> Tensor:
        """Return L^-1 k for covariances k, n x m."""
        padded = covariance.new_zeros(len(self.lower), covariance.shape[1])
        padded[: self.size] = covariance
        return torch.linalg.solve_triangular(self.lower, padded, upper=False)[: self.size]


def _forward(lower: Tensor, right: Tensor, known: Tensor) -> Tensor:
    """Solve L z = right for z (n, C), with z = 0 where ``known`` is false."""
    if bool(known.all()):
        return torch.linalg.solve_triangular(lower, right, upper=False)
    half = torch.zeros_like(right)
    for row in range(len(right)):
        solved = (right[row] - lower[row, :row] @ half[:row]) / lower[row, row]
        half[row] = solved * known[row]
    return half


def predict(kernel: UnitKernel, units: Units, alpha: Tensor, queries: Units) -> Tensor:
    """Return K(queries, units) alpha (m,) without computing K in full.

    A row of K is a sample's row of G times a variant's row of a table, and a few more terms. Where
    concepts enter the kernel, the second factor has a row per variant and concept.

    Args:
        kernel: The kernel.
        units: n units with answers.
        alpha: (n, C) as in ``Factor.alpha``.
        queries: m units to predict.
    """
    cells, _, image = kernel.tables()
    weights = kernel.weights(units, alpha)
    # the term with ``cells``: units of a variant share its row
    answers = weights.new_zeros(len(cells), len(weights))
    answers = cells @ answers.index_add_(0, units.variant, weights.mT)
    total = answers[queries.variant, queries.concept]
    # the term with 1{i=j}: pairs of one sample
    query, unit = _matches(queries.sample, units.sample)
    covariance = image[queries.variant[query], units.variant[unit]]
    same_image = covariance * weights[queries.concept[query], unit]
    total = total + torch.bincount(query, same_image, len(queries))
    # the factor needs 64 bits; a prediction does not
    weights = weights.float()
    if kernel.follow_up_width:
        total = total + _from_follow_ups(kernel, units, weights, queries)
    return total + _from_samples(kernel, units, weights, queries)


def _from_samples(kernel: UnitKernel, units: Units, weights: Tensor, queries: Units) -> Tensor:
    """Return the term of ``predict`` (m,) with G, from samples similar to those seen."""
    _, sample_of = torch.unique(queries.sample, return_inverse=True)
    features = queries.features[_firsts(sample_of)]
    similar = kernel.similarity(features.float(), units.features.float())
    rows = kernel.tables()[1].float()[:, units.variant]
    if kernel.columns and len(weights) > 1:
        return _columns(similar, rows, weights.mT, sample_of, queries.variant, queries.concept)
    # G times a row per variant and concept: a full product where most pairs are asked, else blocks
    cell = queries.variant * len(weights) + queries.concept
    kinds, kind = torch.unique(cell, return_inverse=True)
    rows = rows[kinds // len(weights)].mul_(weights[kinds % len(weights)])
    if len(similar) * len(rows) <= 20 * len(sample_of):
        return (similar @ rows.mT)[sample_of, kind]
    ones = torch.ones_like(rows[:1]).mT
    return _columns(similar, rows, ones, sample_of, kind, torch.zeros_like(kind))


def _from_follow_ups(kernel: UnitKernel, units: Units, weights: Tensor, queries: Units) -> Tensor:
    """Return the term of ``predict`` (m,) with H, from follow-ups similar to those seen."""
    numbers = queries.sample * len(kernel.same) + queries.variant
    _, image_of = torch.unique(numbers, return_inverse=True)
    images, answered = queries[_firsts(image_of)], (units.truths, units.follow_up.float())
    places = torch.arange(len(images), device=image_of.device)
    sums = []
    for block in torch.split(places, max(1, BLOCK // len(units))):
        new = images.truths[block], images.follow_up[block].float()
        sums.append(kernel.follow_up_term(new, answered) @ weights.mT)
    return torch.cat(sums)[image_of, queries.concept]


def _firsts(back: Tensor) -> Tensor:
    """Return a place (k,) of each number 0 to k - 1 in ``back`` (n,)."""
    first = back.new_empty(int(back.max()) + 1)
    return first.scatter_(0, back, torch.arange(len(back), device=back.device))


def _columns(
    left: Tensor, right: Tensor, weights: Tensor, row: Tensor, other: Tensor, column: Tensor
) -> Tensor:
    """Return the sums (m,) over n of left[row, n] right[other, n] weights[n, column].

    Questions that differ only in the column share the products of their rows.
    """
    pairs, pair = torch.unique(row * len(right) + other, return_inverse=True)
    blocks = torch.split(pairs, max(1, BLOCK // left.shape[1]))
    sums = [left[block // len(right)].mul_(right[block % len(right)]) @ weights for block in blocks]
    return torch.cat(sums)[pair, column]


def _matches(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Return all pairs (i, j) with a[i] == b[j], as two vectors."""
    ordered, order = b.sort()
    a = a.contiguous()  # searchsorted is slow otherwise
    low = torch.searchsorted(ordered, a)
    count = torch.searchsorted(ordered, a, right=True) - low
    first = torch.arange(len(a), device=a.device).repeat_interleave(count)
    rank = torch.arange(len(first), device=a.device) - (count.cumsum(0) - count)[first]
    return first, order[low[first] + rank]
