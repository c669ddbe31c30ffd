"""Question GP: predicts the expected loss of every question from all answers so far.

The paper's performance model (``answer_gp``) is a GP per concept over one coordinate, the answer.
This model extends it to a GP per concept over (image, relation, severity), so it predicts which
questions fail. It regresses the loss, f = F + sqrt(F (1 - F)) mu, with a logistic mean F for the
kind of question (``loss_mean``). Where answers are probabilities, it may regress the margin behind
the loss instead, with a logistic link (``regression``). The GP mu is over units (``unit_kernel``):
the effects of an image, of similar follow-up images, and of a relation. Where one call asks about
all concepts, concepts are columns of one system of equations and share its Cholesky factor. Where a
call asks one question, concepts enter the kernel.

At each fit of hyper-parameters, losses and margins each predict either half of some units from the
other half, and the better of the two is used from then on. So margins that are unrelated to losses
only cost time.

Answers extend the factor row by row, and only once a prediction needs it. So reading a journal,
where most factors are never used, is fast. Hyper-parameters are fitted whenever the number of units
has doubled. F and the factor are computed again whenever it has grown by a quarter, so the work per
answer is O(n^2). No guarantee rests on f, which must only be fixed before the answer it predicts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Protocol

import torch
from torch import Tensor

from adaptive_vtt.utils.devices import pick
from adaptive_vtt.utils.options import Option

from .base import Posterior
from .cohort import CohortMean, CohortSignals
from .loss_mean import SIDES, Judged, Losses, LossMean, Mean
from .regression import Coordinate, HardLosses, Margins, Regression, subset
from .unit_kernel import Factor, UnitKernel, Units, predict

Features = Callable[[Tensor], Tensor]
Proxies = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]

REMEMBERED = 200_000
"""Most answers that count for the mean F after they left the exact GP."""

GROUP = 16
"""Observations that are appended to the factor together. One append reads the whole factor, so
sixteen together take little longer than one."""

LINK_LIMIT = 1000
"""Most units on which the link from margins to losses is fitted."""


class FollowUps(Protocol):
    """Function from samples and variants (n,) to features of follow-up images (n, width)."""

    width: int

    def __call__(self, sample: Tensor, variant: Tensor) -> Tensor: ...


class Questions(Protocol):
    """n questions to predict, as int64 (n,) each; ``adaptive_vtt.types.Candidates`` is one."""

    @property
    def sample(self) -> Tensor: ...
    @property
    def variant(self) -> Tensor: ...
    @property
    def concept(self) -> Tensor: ...
    @property
    def truth(self) -> Tensor: ...


@dataclass(frozen=True)
class Prepared:
    """n questions with all inputs that no answer changes, for repeated predictions.

    Attributes:
        sample: (n,) int64, sample by number.
        variant: (n,) int64, variant by number.
        concept: (n,) int64, concept by number.
        truth: (n,) int64, 0, 1 or -1 for unknown.
        units: Their units.
        signals: (n, D + P') inputs of the mean F from a cohort and from cheaper models.
    """

    sample: Tensor
    variant: Tensor
    concept: Tensor
    truth: Tensor
    units: Units
    signals: Tensor

    def __getitem__(self, rows: Any) -> "Prepared":
        return Prepared(*(column[rows] for column in vars(self).values()))


class LossSurrogate(Protocol):
    """Surrogate that predicts losses in [0, 1] from the losses of judged questions."""

    def observe(self, losses: Losses) -> None: ...
    def posterior(self, candidates: Questions) -> Posterior: ...


class QuestionGP:
    """Gaussian process over a logistic regression that predicts the loss of any question.

    Args:
        relation: (V,) the number of each variant's relation.
        severity: (V,) each variant's severity.
        concepts: Number of concepts C.
        shared: Whether one call asks about all concepts of an image.
        features: Samples (n,) -> (n, d), on a scale of about 1. Default None: none.
        truths: Samples (n,) -> int64 (n,), the same number for the same truths. Default None: none.
        follow_ups: Samples and variants (n,) -> (n, width), features of the changed images.
            Default None: none.
        proxies: (sample, variant, concept, truth), (n,) each -> (n, P), losses of cheaper models.
            Default None: none.
        cohort: Losses of other models. Default None: none.
        device: Device of all tensors: "cpu", "cuda" or "auto".
    """

    def __init__(
        self,
        relation: Sequence[int],
        severity: Sequence[int],
        concepts: int,
        *,
        shared: bool,
        features: Features | None = None,
        truths: Features | None = None,
        follow_ups: FollowUps | None = None,
        proxies: Proxies | None = None,
        cohort: CohortSignals | None = None,
        device: str = "cpu",
        exact_limit: Annotated[
            int,
            Option(
                "most questions or images in the exact GP; beyond, the oldest fifth only count "
                "for mean losses",
                ge=1,
            ),
        ] = 5000,
        first_fit: Annotated[
            int, Option("questions or images at which hyper-parameters are first fitted", ge=1)
        ] = 32,
        fit_limit: Annotated[
            int, Option("most questions or images that hyper-parameters are fitted to", ge=2)
        ] = 512,
        fit_steps: Annotated[
            int, Option("most steps of the optimiser that fits hyper-parameters", ge=1)
        ] = 12,
    ) -> None:
        self.device = pick(device)
        self.shared = shared
        self.concepts = concepts
        self.exact_limit = exact_limit
        self.fit_limit = fit_limit
        self.fit_steps = fit_steps
        self._features = features
        self._truths = truths
        self._follow_ups = follow_ups
        self._proxies = proxies
        self._cohort = cohort
        self._variants = len(relation)
        self._columns = concepts if shared else 1
        kinds = relation, severity, concepts
        self.mean: Mean = LossMean(*kinds, device=self.device)
        if cohort is not None:
            self.mean = CohortMean(*kinds, prior=cohort.effects, device=self.device)

        def regression(coordinate: Coordinate) -> Regression:
            kernel = UnitKernel(
                relation,
                severity,
                concepts,
                columns=shared,
                device=self.device,
                medians=coordinate.medians,
                follow_up_width=0 if follow_ups is None else follow_ups.width,
            )
            return Regression(coordinate, kernel, self._columns)

        self._hard = regression(HardLosses(self.mean))
        self._soft = regression(Margins(self.mean, concepts * SIDES, self._columns))
        self._chosen = self._hard
        self._calibrated = False
        # one part for everything up to the last renewal, then one per observation
        self._parts: list[tuple[Units, Judged]] = []
        self._kept_units = 0  # number of units in all parts
        self._factor_units: Units | None = None  # units in the factor, in the order of its rows
        self._factor_parts = 0  # number of parts in the factor
        self._complete = 0, 0  # parts and units in the factor that belong to complete groups
        self._rows = Factor(0, self._columns, self.device)
        self._units_seen = 0
        self._next_fit, self._next_renewal = first_fit, 1

    def __len__(self) -> int:
        """Return the number of units seen."""
        return self._units_seen

    # -- learning ----------------------------------------------------------------------

    @torch.no_grad()
    def observe(self, losses: Losses) -> None:
        """Learn from n judged questions."""
        if len(losses.sample) == 0:
            return
        questions = self.prepare(losses)
        if self.shared:  # units in the order of their first questions
            _, first, unit = _unique(questions.sample * self._variants + questions.variant)
            order = first.argsort()
            first, unit = first[order], order.argsort()[unit]
        else:
            first = unit = torch.arange(len(questions.sample), device=self.device)
        units, column = questions.units[first], self._column(questions)
        margin = losses.margin
        if margin is None:
            margin = torch.full_like(losses.loss, torch.nan)
        judged = Judged(
            unit=(unit + self._kept_units).int(),  # 32 bits halve the memory of a long audit
            variant=questions.variant.int(),
            column=column.int(),
            side=_side(questions).int(),
            loss=losses.loss.to(self.device, torch.float64),
            margin=margin.to(self.device, torch.float64),
            features=questions.signals,
        )
        self._units_seen += len(units)
        self._kept_units += len(units)
        self._parts.append((units, judged))
        if self._kept_units >= self._next_renewal:
            self._renew()

    @property
    def _factor(self) -> Factor:
        """Factor of all units.

        Parts are appended in groups, counted from the last renewal. The parts of an incomplete
        group are cut and appended again with the next ones. So the factor is the same to the last
        bit whenever it is computed, and answers that came together are appended together.
        """
        if self._factor_parts < len(self._parts):
            self._factor_parts, units = self._complete
            self._rows.cut(units)
            self._factor_units = None if self._factor_units is None else self._factor_units[:units]
        while self._factor_parts < len(self._parts):
            most = GROUP if self._factor_parts else 1
            group = self._parts[self._factor_parts : self._factor_parts + most]
            new, judged = _joined(group)
            grown = new[:0] if self._factor_units is None else self._factor_units
            residual, known = self._chosen.residuals(judged, self._rows.size, len(new))
            block = self.kernel.between(new, new)
            block.diagonal().add_(self.kernel.noise)
            self._rows.append(self.kernel.between(grown, new), block, residual, known)
            self._factor_units = grown.join(new)
            self._factor_parts += len(group)
            if len(group) == most:
                self._complete = self._factor_parts, self._rows.size
        return self._rows

    @property
    def _units(self) -> Units | None:
        """All units, in the order of the factor's rows; None before any."""
        return self._factor_units if self._factor.size else None

    def _thinned(self, units: Units, judged: Judged) -> tuple[Units, Judged]:
        """Return the units to keep: all up to ``exact_limit``, else the newest 4/5 of as many.

        The choice matters little, but must not depend on losses. A GP that keeps the most
        surprising units has only seen surprises.
        """
        if len(units) <= self.exact_limit:
            return units, judged
        dropped = len(units) - max(1, self.exact_limit * 4 // 5)
        judged = replace(judged, unit=(judged.unit - dropped).clamp(min=-1))
        newest = torch.arange(len(judged.unit), device=self.device) >= len(judged.unit) - REMEMBERED
        return units[dropped:], judged[(judged.unit >= 0) | newest]

    def _renew(self) -> None:
        """Fit F again, and the kernel if it is due, and start a new factor."""
        units, judged = self._thinned(*_joined(self._parts))
        self._chosen.coordinate.fit(judged)
        for regression in (self._hard, self._soft):
            regression.kernel.set_rates(self.mean.variant_rates())
        if self._units_seen >= self._next_fit:
            self._next_fit = 2 * self._units_seen
            self._tune(units, judged)
        self._calibrated = False
        self._next_renewal = min(
            len(units) + max(1, len(units) // 4), max(self.exact_limit, len(units)) + 1
        )
        self._parts, self._kept_units = [(units, judged)], len(units)
        self._factor_units, self._factor_parts, self._complete = units[:0], 0, (0, 0)
        self._rows = Factor(self._next_renewal, self._columns, self.device)

    def _tune(self, units: Units, judged: Judged) -> None:
        """Fit hyper-parameters, and choose between losses and margins."""
        complete = len(judged.unit[judged.unit >= 0]) == len(units) * self._columns
        # with gaps, every column needs another matrix
        most = self.fit_limit if complete else int(self.fit_limit / self._columns ** (1 / 3))
        soft = Margins.informative(judged)
        if soft and self._chosen is self._hard:
            self._soft.coordinate.fit(judged)
        units, judged = subset(units, judged, self._spread(len(units), most))
        self._hard.tune(units, judged, self.fit_steps)
        self._chosen = self._hard
        if soft:
            self._soft.tune(units, judged, self.fit_steps)
            both = self._hard, self._soft
            self._chosen = min(both, key=lambda regression: regression.held_out(units, judged))

    def _spread(self, count: int, most: int) -> Tensor:
        """Return rows 0 to count - 1, or ``most`` of them, evenly spread."""
        most = min(most, count)
        return torch.linspace(0, count - 1, most, device=self.device).round().long()

    @property
    def kernel(self) -> UnitKernel:
        """Kernel of the current coordinate."""
        return self._chosen.kernel

    @property
    def coordinate(self) -> Coordinate:
        """Current coordinate, losses or margins, with a fitted link to losses.

        The link is fitted on the units of the last renewal alone, so it is the same whenever it
        is computed.
        """
        if not self._calibrated and self._chosen is self._soft:
            units, judged = self._parts[0]
            self._soft.calibrate(*subset(units, judged, self._spread(len(units), LINK_LIMIT)))
        self._calibrated = True
        return self._chosen.coordinate

    # -- predicting --------------------------------------------------------------------

    @torch.no_grad()
    def posterior(self, candidates: Questions, *, latent: bool = False) -> Posterior:
        """Return mean and variance of the loss, (n,) each, on the candidates' device.

        Args:
            candidates: n questions.
            latent: Whether the variance is that of f, which more answers can reduce, and not that
                of a 0/1 loss, f (1 - f). It takes a triangular solve.
        """
        queries = self.prepare(candidates)
        mean, slope = self.coordinate.losses(self._judged_of(queries), self._shift(queries))
        variance = slope.square() * self._latent_variance(queries) if latent else mean * (1 - mean)
        device = candidates.sample.device
        return Posterior(mean.to(device), variance.to(device))

    @torch.no_grad()
    def margins(self) -> Posterior | None:
        """Return leave-one-out mean and variance of the margin of every judged question.

        Questions are those judged up to the last renewal, in order; each is predicted by all units
        but its own. None where margins carry no more information than losses.
        """
        units, judged = self._parts[0]
        soft = self._soft.coordinate
        if not (isinstance(soft, Margins) and Margins.informative(judged)):
            return None
        soft.fit(judged)
        return Posterior(*soft.margins(judged, *self._soft.left_out(units, judged)))

    @torch.no_grad()
    def joint(self, candidates: Questions) -> Tensor:
        """Return the posterior covariance of f between m candidates, m x m."""
        return self.normal(candidates)[1]

    @torch.no_grad()
    def normal(self, candidates: Questions) -> tuple[Tensor, Tensor, Tensor]:
        """Return mean (m,) and covariance (m, m) of f, and the noise variance of an answer (m,)."""
        queries = self.prepare(candidates)
        units, column = queries.units, self._column(queries)
        mean, slope = self.coordinate.losses(self._judged_of(queries), self._shift(queries))
        half = None  # L^-1 k of the units with answers
        if self._units is not None:
            half = self._factor.halve(self.kernel.between(self._units, units))
        covariance = slope.new_zeros(len(slope), len(slope))
        for number in torch.unique(column):  # columns are independent given the kernel
            rows = (column == number).nonzero()[:, 0]
            block = self.kernel.between(units[rows], units[rows])
            if half is not None:
                block = block - half[:, rows].mT @ half[:, rows]
            covariance[rows[:, None], rows] = block
        covariance = covariance * slope[:, None] * slope
        noise, device = self.kernel.noise * slope.square(), candidates.sample.device
        return mean.to(device), covariance.to(device), noise.to(device)

    @torch.no_grad()
    def features(self, samples: Tensor) -> Tensor:
        """Return the features (n, d) of samples (n,); d is 0 if the GP has none."""
        return self._sample_features(samples).to(samples.device)

    def _column(self, queries: Prepared) -> Tensor:
        """Return each question's column of the system of equations, (n,)."""
        return queries.concept if self.shared else torch.zeros_like(queries.concept)

    def _judged_of(self, queries: Prepared) -> Judged:
        """Return questions to predict in the form of judged ones, without loss and margin."""
        column = self._column(queries)
        none = torch.full_like(column, torch.nan, dtype=torch.float64)
        unit = torch.full_like(column, -1)
        return Judged(unit, queries.variant, column, _side(queries), none, none, queries.signals)

    def _latent_variance(self, queries: Prepared) -> Tensor:
        """Return the posterior variance of mu (n,); candidates of one unit share a solve."""
        key = queries.sample * self._variants + queries.variant
        _, first, back = _unique(key if self.shared else key * self.concepts + queries.concept)
        units = queries.units[first]
        variance = self.kernel.variance(units.variant)
        if self._units is not None:
            half = self._factor.halve(self.kernel.between(self._units, units))
            variance = variance - half.square().sum(0)
        return variance.clamp(min=0)[back]

    def _shift(self, queries: Prepared) -> Tensor:
        """Return the posterior mean of mu (n,), K(candidates, units) alpha."""
        if self._units is None:
            return torch.zeros(len(queries.sample), dtype=torch.float64, device=self.device)
        return predict(self.kernel, self._units, self._factor.alpha, queries.units)

    # -- inputs ------------------------------------------------------------------------

    def prepare(self, candidates: Questions) -> Prepared:
        """Compute all inputs of questions that no answer changes; every method takes the result."""
        if isinstance(candidates, Prepared):
            return candidates
        numbers = (candidates.sample, candidates.variant, candidates.concept, candidates.truth)
        sample, variant, concept, truth = (t.to(self.device) for t in numbers)
        floats: dict[str, Any] = {"dtype": torch.float64, "device": self.device}
        on_host = [t.cpu() for t in (sample, variant, concept, truth)]
        samples, sample_of = torch.unique(sample, return_inverse=True)
        features = self._sample_features(samples)[sample_of]
        truths = torch.zeros_like(samples)
        if self._truths is not None:
            truths = self._truths(samples.cpu()).to(self.device)
        follow_ups = features[:, :0]
        if self._follow_ups is not None:
            follow_ups = self._follow_ups(*on_host[:2]).to(**floats)
        units = Units(sample, variant, concept, truths[sample_of], follow_ups, features)
        signals = [torch.zeros(len(sample), 0, **floats)]
        if self._cohort is not None:
            signals.append(self._cohort(*on_host[:3]).to(**floats))
        if self._proxies is not None:
            signals.append(self.mean.features(self._proxies(*on_host).to(**floats)))
        return Prepared(sample, variant, concept, truth, units, torch.cat(signals, 1))

    def _sample_features(self, sample: Tensor) -> Tensor:
        """Return the features (n, d) of samples (n,) on the GP's device."""
        if self._features is None:
            return torch.zeros(len(sample), 0, dtype=torch.float64, device=self.device)
        return self._features(sample.cpu()).to(self.device, torch.float64)


def _joined(parts: Sequence[tuple[Units, Judged]]) -> tuple[Units, Judged]:
    """Concatenate the columns of all parts, in order."""
    units = zip(*(vars(units).values() for units, _ in parts), strict=True)
    judged = zip(*(vars(judged).values() for _, judged in parts), strict=True)
    return Units(*map(torch.cat, units)), Judged(*map(torch.cat, judged))


def _side(queries: Questions) -> Tensor:
    """Return concept * 3 + truth, where an unknown truth (-1) is 2."""
    return queries.concept * SIDES + queries.truth % SIDES


def _unique(keys: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return sorted distinct keys (k,), the first place of each (k,), and the key of each (n,)."""
    distinct, back = torch.unique(keys, return_inverse=True)
    first = torch.full_like(distinct, len(keys))
    first.scatter_reduce_(0, back, torch.arange(len(keys), device=keys.device), "amin")
    return distinct, first, back
