"""The question GP: the expected loss of every question, from all answers seen so far.

The paper's performance model (``answer_gp``) is a GP per concept over one coordinate, the answer.
This one extends it to questions: a GP per concept over (image, relation, severity) of what the
answer was worth, so that it can say which questions will fail. What is regressed is either the
loss, f = F + sqrt(F (1 - F)) mu with a logistic mean F for the kind of question (``loss_mean``),
or, where answers are probabilities, the margin behind it, with a logistic link
(``regression``). mu is a GP over units (``unit_kernel``): what its image, follow-up images like
it, and its relation add. Where one call answers all concepts, every concept is a column of one
system of equations and shares its Cholesky factor; where a call answers one question, concepts
enter the kernel.

Margins are taken where they predict better than losses do: whenever hyper-parameters are fitted,
each predicts either half of some units' losses from the other half. So margins that tell nothing
of the losses cost nothing but time.

Answers extend the factor row by row, and not before a prediction needs it: going through a
journal, where most factors are never looked at, costs little. Hyper-parameters are fitted when
the number of units has doubled, F and the factor are made anew when it has grown by a quarter,
so the work per answer is O(n^2). Nothing here certifies anything: f only has to be fixed before
the answer it predicts is known.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

import torch
from torch import Tensor

from adaptive_vtt.utils.devices import pick
from adaptive_vtt.utils.options import Option

from .base import Posterior
from .cohort import CohortMean, CohortSignals
from .loss_mean import SIDES, Judged, Losses, LossMean, Mean
from .regression import Coordinate, HardLosses, Margins, Regression, some
from .unit_kernel import Factor, UnitKernel, Units, predict

Features = Callable[[Tensor], Tensor]
Proxies = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]

REMEMBERED = 200_000
"""Answers that left the exact GP and still count for the mean F, at most."""

GROUP = 16
"""Parts that are appended to the factor together: as one append reads all of it, sixteen at once
take little longer than one."""

LINK_LIMIT = 1000
"""Units on which the link from margins to losses is fitted, at most."""


class FollowUps(Protocol):
    """Samples and variants (n,) -> features of their follow-up images (n, width)."""

    width: int

    def __call__(self, sample: Tensor, variant: Tensor) -> Tensor: ...


class Questions(Protocol):
    """n questions to predict, int64 (n,) each: ``adaptive_vtt.types.Candidates``, for one."""

    @property
    def sample(self) -> Tensor: ...
    @property
    def variant(self) -> Tensor: ...
    @property
    def concept(self) -> Tensor: ...
    @property
    def truth(self) -> Tensor: ...


@dataclass(frozen=True)
class Looked:
    """n questions, with what no answer changes of them: their units, and what cheaper models and a
    cohort tell, (n, D + P'). Questions that are predicted again and again are looked at once."""

    sample: Tensor
    variant: Tensor
    concept: Tensor
    truth: Tensor
    units: Units
    signals: Tensor

    def __getitem__(self, rows: Any) -> "Looked":
        return Looked(*(column[rows] for column in vars(self).values()))


class LossSurrogate(Protocol):
    """Predicts losses in [0, 1] from the losses of judged questions; see ``Surrogate``."""

    def observe(self, losses: Losses) -> None: ...
    def posterior(self, candidates: Questions) -> Posterior: ...


class QuestionGP:
    """Predicts the loss of any question by a Gaussian process over a logistic regression.

    Args:
        relation: (V,), the number of each variant's relation.
        severity: (V,), each variant's severity.
        concepts: Their number C.
        shared: Whether one call answers all concepts of an image.
        features: Samples (n,) -> (n, d), on a scale of about 1. Default None: none.
        truths: Samples (n,) -> int64 (n,), the same number for the same truths. Default None: none.
        follow_ups: Samples and variants (n,) -> (n, width), features of the changed images.
            Default None: none.
        proxies: (sample, variant, concept, truth), (n,) each -> (n, P), losses of cheaper models.
            Default None: none.
        cohort: Losses of other models. Default None: none.
        device: Where the GP lives: "cpu", "cuda" or "auto".
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
                "questions or images it knows exactly; beyond, it forgets the oldest fifth, but "
                "for what they say of mean losses",
                ge=1,
            ),
        ] = 5000,
        first_fit: Annotated[
            int, Option("questions or images at which hyper-parameters are first fitted", ge=1)
        ] = 32,
        fit_limit: Annotated[
            int, Option("questions or images that hyper-parameters are fitted to, at most", ge=2)
        ] = 512,
        fit_steps: Annotated[
            int, Option("steps of the optimiser that fits hyper-parameters, at most", ge=1)
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
            self.mean = CohortMean(*kinds, given=cohort.effects, device=self.device)

        def regression(coordinate: Coordinate) -> Regression:
            kernel = UnitKernel(
                relation,
                severity,
                concepts,
                columns=shared,
                device=self.device,
                medians=coordinate.medians,
                pictures=0 if follow_ups is None else follow_ups.width,
            )
            return Regression(coordinate, kernel, self._columns)

        self._hard = regression(HardLosses(self.mean))
        self._soft = regression(Margins(self.mean, concepts * SIDES, self._columns))
        self._chosen = self._hard
        self._calibrated = False
        # what was observed in one go each, all up to the last renewal being the first of them
        self._parts: list[tuple[Units, Judged]] = []
        self._held = 0  # units in all parts
        self._grown: Units | None = None  # those in the factor, which
        self._taken = 0  # holds so many parts by now
        self._whole = 0, 0  # parts and units in it that are of whole groups
        self._rows = Factor(0, self._columns, self.device)
        self._seen = 0
        self._next_fit, self._next_renewal = first_fit, 1

    def __len__(self) -> int:
        """How many units have been seen."""
        return self._seen

    # -- learning ----------------------------------------------------------------------

    @torch.no_grad()
    def observe(self, losses: Losses) -> None:
        """Learns from n judged questions."""
        if len(losses.sample) == 0:
            return
        asked = self.look(losses)
        first, unit = self._group(asked)
        units, column = asked.units[first], self._column(asked)
        margin = losses.margin
        if margin is None:
            margin = torch.full_like(losses.loss, torch.nan)
        judged = Judged(
            (unit + self._held).int(),  # half the memory: a long audit keeps many rows
            asked.variant.int(),
            column.int(),
            _side(asked).int(),
            losses.loss.to(self.device, torch.float64),
            margin.to(self.device, torch.float64),
            asked.signals,
        )
        self._seen += len(units)
        self._held += len(units)
        self._parts.append((units, judged))
        if self._held >= self._next_renewal:
            self._renew()

    @property
    def _factor(self) -> Factor:
        """The factor of all units.

        Parts are appended in groups counted from the last renewal, which was the first; a group
        that was not whole is appended anew, longer. So it comes out the same to the last bit
        whenever it is needed, and many answers that came together are appended at once.
        """
        if self._taken < len(self._parts):
            self._taken, units = self._whole
            self._rows.cut(units)
            self._grown = None if self._grown is None else self._grown[:units]
        while self._taken < len(self._parts):
            most = GROUP if self._taken else 1
            group = self._parts[self._taken : self._taken + most]
            self._grow(*_joined(group))
            self._taken += len(group)
            if len(group) == most:
                self._whole = self._taken, self._rows.size
        return self._rows

    @property
    def _units(self) -> Units | None:
        """All units, in the order of the factor's rows; None before any."""
        return self._grown if self._factor.size else None

    @property
    def _judged(self) -> Judged:
        """All judged questions that are kept."""
        return _joined(self._parts)[1]

    def _group(self, asked: Questions) -> tuple[Tensor, Tensor]:
        """Where each new unit is first asked about (u,), and the unit of each question (n,)."""
        if not self.shared:
            every = torch.arange(len(asked.sample), device=self.device)
            return every, every
        _, first, unit = _unique(asked.sample * self._variants + asked.variant)
        order = first.argsort()
        return first[order], order.argsort()[unit]

    def _thinned(self, units: Units, judged: Judged) -> tuple[Units, Judged]:
        """All units up to ``exact_limit``, else the newest four fifths of as many.

        Which to keep matters little, as long as it does not depend on their losses: keeping
        what surprised most leaves a GP that has only seen surprises.
        """
        if len(units) <= self.exact_limit:
            return units, judged
        gone = len(units) - max(1, self.exact_limit * 4 // 5)
        judged = judged.moved((judged.unit - gone).clamp(min=-1))
        newest = torch.arange(len(judged.unit), device=self.device) >= len(judged.unit) - REMEMBERED
        return units[gone:], judged[(judged.unit >= 0) | newest]

    def _renew(self) -> None:
        """Makes F, when it is time the kernel, and the factor anew."""
        units, judged = self._thinned(*_joined(self._parts))
        self._chosen.coordinate.fit(judged)
        for regression in (self._hard, self._soft):
            regression.kernel.set_rates(self.mean.variant_rates())
        if self._seen >= self._next_fit:
            self._next_fit = 2 * self._seen
            self._tune(units, judged)
        self._calibrated = False
        self._next_renewal = min(
            len(units) + max(1, len(units) // 4), max(self.exact_limit, len(units)) + 1
        )
        self._parts, self._held = [(units, judged)], len(units)
        self._grown, self._taken, self._whole = units[:0], 0, (0, 0)
        self._rows = Factor(self._next_renewal, self._columns, self.device)

    def _tune(self, units: Units, judged: Judged) -> None:
        """Fits hyper-parameters, and chooses between losses and margins."""
        complete = len(judged.unit[judged.unit >= 0]) == len(units) * self._columns
        # unless all is known, every column needs a matrix of its own
        most = self.fit_limit if complete else int(self.fit_limit / self._columns ** (1 / 3))
        soft = Margins.informative(judged)
        if soft and self._chosen is self._hard:
            self._soft.coordinate.fit(judged)
        units, judged = some(units, judged, self._spread(len(units), most))
        self._hard.tune(units, judged, self.fit_steps)
        self._chosen = self._hard
        if soft:
            self._soft.tune(units, judged, self.fit_steps)
            both = self._hard, self._soft
            self._chosen = min(both, key=lambda one: one.held_out(units, judged))

    def _spread(self, count: int, most: int) -> Tensor:
        """Rows 0 ... count - 1, or ``most`` of them, evenly spread."""
        most = min(most, count)
        return torch.linspace(0, count - 1, most, device=self.device).round().long()

    def _grow(self, new: Units, judged: Judged) -> None:
        """Appends units to the factor."""
        grown = new[:0] if self._grown is None else self._grown
        residual, known = self._chosen.residuals(judged, self._rows.size, len(new))
        block = self.kernel.between(new, new)
        block.diagonal().add_(self.kernel.noise)
        self._rows.append(self.kernel.between(grown, new), block, residual, known)
        self._grown = grown.join(new)

    @property
    def kernel(self) -> UnitKernel:
        """The covariance of what is regressed now."""
        return self._chosen.kernel

    @property
    def coordinate(self) -> Coordinate:
        """What is regressed now, ready to be made losses of.

        The link is fitted on the units of the last renewal alone: so it comes out the same
        whenever it is needed.
        """
        if not self._calibrated and self._chosen is self._soft:
            units, judged = self._parts[0]
            self._soft.calibrate(*some(units, judged, self._spread(len(units), LINK_LIMIT)))
        self._calibrated = True
        return self._chosen.coordinate

    # -- predicting --------------------------------------------------------------------

    @torch.no_grad()
    def posterior(self, candidates: Questions, *, latent: bool = False) -> Posterior:
        """Mean and variance of the loss, (n,) each, on the candidates' device.

        The variance is that of a 0/1 loss, f (1 - f); with ``latent`` that of f itself
        (what answers could still teach), at the price of a triangular solve.
        """
        asked = self.look(candidates)
        mean, slope = self.coordinate.losses(self._judged_of(asked), self._shift(asked))
        variance = slope.square() * self._uncertain(asked) if latent else mean * (1 - mean)
        where = candidates.sample.device
        return Posterior(mean.to(where), variance.to(where))

    @torch.no_grad()
    def margins(self) -> Posterior | None:
        """Mean and variance of the margin of every question judged up to the last renewal, in the
        order of judging, as the units other than its own predict it; None where margins tell no
        more than losses."""
        units, judged = self._parts[0]
        soft = self._soft.coordinate
        if not (isinstance(soft, Margins) and Margins.informative(judged)):
            return None
        soft.fit(judged)
        return Posterior(*soft.margins(judged, *self._soft.left_out(units, judged)))

    @torch.no_grad()
    def joint(self, candidates: Questions) -> Tensor:
        """m x m posterior covariance of f between m candidates, in units of loss."""
        return self.normal(candidates)[1]

    @torch.no_grad()
    def normal(self, candidates: Questions) -> tuple[Tensor, Tensor, Tensor]:
        """Mean (m,) and covariance (m, m) of the expected losses f of m candidates, and what the
        variance of an answer has over that of f, (m,)."""
        asked, half = self.look(candidates), None
        units, column = asked.units, self._column(asked)
        mean, slope = self.coordinate.losses(self._judged_of(asked), self._shift(asked))
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
        noise, where = self.kernel.noise * slope.square(), candidates.sample.device
        return mean.to(where), covariance.to(where), noise.to(where)

    @torch.no_grad()
    def features(self, samples: Tensor) -> Tensor:
        """(n, d) features of samples (n,); d is 0 where the GP was given none."""
        return self._sample_features(samples).to(samples.device)

    def _column(self, asked: Looked) -> Tensor:
        """(n,): the column of the equations that each question stands in."""
        return asked.concept if self.shared else torch.zeros_like(asked.concept)

    def _judged_of(self, asked: Looked) -> Judged:
        """The questions as those that were judged are kept, with neither loss nor margin."""
        column = self._column(asked)
        none = torch.full_like(column, torch.nan, dtype=torch.float64)
        unit = torch.full_like(column, -1)
        return Judged(unit, asked.variant, column, _side(asked), none, none, asked.signals)

    def _uncertain(self, asked: Looked) -> Tensor:
        """(n,) posterior variance of mu; a unit that several candidates share is solved once."""
        key = asked.sample * self._variants + asked.variant
        _, first, back = _unique(key if self.shared else key * self.concepts + asked.concept)
        units = asked.units[first]
        variance = self.kernel.variance(units.variant)
        if self._units is not None:
            half = self._factor.halve(self.kernel.between(self._units, units))
            variance = variance - half.square().sum(0)
        return variance.clamp(min=0)[back]

    def _shift(self, asked: Looked) -> Tensor:
        """mu (n,): K(candidates, units) alpha."""
        if self._units is None:
            return torch.zeros(len(asked.sample), dtype=torch.float64, device=self.device)
        return predict(self.kernel, self._units, self._factor.alpha, asked.units)

    # -- inputs ------------------------------------------------------------------------

    def look(self, candidates: Questions) -> Looked:
        """The questions as all methods take them, too, on this device."""
        if isinstance(candidates, Looked):
            return candidates
        names = (candidates.sample, candidates.variant, candidates.concept, candidates.truth)
        sample, variant, concept, truth = (t.to(self.device) for t in names)
        units = self._units_of(sample, variant, concept)
        signals = self._signals(sample, variant, concept, truth)
        return Looked(sample, variant, concept, truth, units, signals)

    def _units_of(self, sample: Tensor, variant: Tensor, concept: Tensor) -> Units:
        samples, sample_of = torch.unique(sample, return_inverse=True)
        features = self._sample_features(samples)[sample_of]
        truths = torch.zeros_like(samples)
        if self._truths is not None:
            truths = self._truths(samples.cpu()).to(self.device)
        follow_ups = features[:, :0]
        if self._follow_ups is not None:
            follow_ups = self._follow_ups(sample.cpu(), variant.cpu())
            follow_ups = follow_ups.to(self.device, torch.float64)
        return Units(sample, variant, concept, truths[sample_of], follow_ups, features)

    def _sample_features(self, sample: Tensor) -> Tensor:
        if self._features is None:
            return torch.zeros(len(sample), 0, dtype=torch.float64, device=self.device)
        return self._features(sample.cpu()).to(self.device, torch.float64)

    def _signals(self, *asked: Tensor) -> Tensor:
        """(n, D + P'): what the mean gets from the cohort, and from cheaper models."""
        of: dict[str, Any] = {"dtype": torch.float64, "device": self.device}
        parts = [torch.zeros(len(asked[0]), 0, **of)]
        names = [t.cpu() for t in asked]
        if self._cohort is not None:
            parts.append(self._cohort(*names[:3]).to(**of))
        if self._proxies is not None:
            parts.append(self.mean.features(self._proxies(*names).to(**of)))
        return torch.cat(parts, 1)


def _joined(parts: Sequence[tuple[Units, Judged]]) -> tuple[Units, Judged]:
    """One part of all these, in their order."""
    units, judged = (zip(*(vars(p[k]).values() for p in parts), strict=True) for k in (0, 1))
    return Units(*map(torch.cat, units)), Judged(*map(torch.cat, judged))


def _side(asked: Questions) -> Tensor:
    """concept * 3 + truth, where an unknown truth (-1) is 2."""
    return asked.concept * SIDES + asked.truth % SIDES


def _unique(keys: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Sorted distinct keys (k,), where each stands first (k,), and which each is (n,)."""
    distinct, back = torch.unique(keys, return_inverse=True)
    first = torch.full_like(distinct, len(keys))
    first.scatter_reduce_(0, back, torch.arange(len(keys), device=keys.device), "amin")
    return distinct, first, back
