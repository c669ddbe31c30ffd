"""Pseudo-outcomes: from a draw, its proposal and its losses to one unbiased number per target.

A target has N questions with fixed losses, and R is their mean. Before draw t the past fixes S, the
sum of the losses seen, and M, the number of unseen calls that touch the target. Candidates are a
uniform subset of the unseen calls, and m of them touch the target. The engine chooses predictions f
and a proposal q > 0 over the candidates freely, and draws one call I from q. For each call let n, F
and L be the number, the predicted losses and the true losses of the target's questions in it, all 0
where it does not touch the target. With r = M / m the pseudo-outcome a is

    N a = S + r ( sum over candidates of F + (L_I - F_I) / q(I) )

It has E[a | past, m] = R for any f and q. The mean over I turns the bracket into the sum of L over
the candidates, and the touching candidates are a uniform m of the M. Every draw moves every target
with m > 0, also where the call drawn does not touch it. Conditioning on draws that fall into the
target would be biased, because candidates are a random subset: the proposal's mass on a target
depends on the target's mean among the candidates.

Bets must not depend on the candidates either, so the bounds of a follow from earlier draws. Where a
draw would pass its bounds, its f are shrunk: towards 0 for a+, the outcome that bets upwards, and
towards n for a-. At 0, N a+ is at least S, and at n, N a- is at most S + M max n, so neither passes
its bound. Bets against a mean m move f by its difference from the expected mean, as far as f's own
bounds allow (``tilt``). A call without a question of the target adds the most to the tilt, never
more than the target's unseen questions. The call drawn takes away the most.

Under the policy "both", unanswered losses count as 0 in a+ and as 1 in a-. Questions that turn out
not to count are left out of the rate (``sequences.Step``).
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ..population import Population
from ..types import IDENTITY, Bools, CallMode, Floats, Indices
from .alpha import theta_for
from .decisions import OPEN
from .further import further, in_calls
from .game import Bet as Bet
from .game import Game
from .rules import Rules
from .status import TargetStatus
from .strata import DIGITS, Strata, Stratum, cells_of, countable, pooled, strata_of, stratified
from .targets import Target, calls, largest, members, size

ROOM = 1.0
"""Bound on a draw's correction, as a multiple of the largest one seen recently.

Any value is valid, because a draw that would pass the bound has its predictions shrunk. 1 shrinks
hardly any draw, and a larger value only makes bets smaller."""
FADE = 0.9
"""Factor per draw by which the largest recent correction fades, so that one unusual draw does not
keep the bound loose. Calls needed hardly change from .8 to .95, and rise at .7."""

CLIP = 0.02
"""Predictions stay within [CLIP, 1 - CLIP]."""
FIRST_REACH = 0.5
"""Bound on the first draw's correction, as a share of the target's unseen questions."""
TINY = 1e-300
"""Least divisor, so that 0 / 0 stays 0."""
RANGE = 1.0
"""Weight of the half-width w next to the variance v in the draws needed.

The variance takes 2 v ln(1/alpha) / w^2 draws. Another ln(1/alpha) / (cap w) come on top, because a
bet is at most cap over the range."""
RECENT = 0.99
"""Factor per draw by which old residuals fade, as predictions improve."""
LACKING = 1 - 1 / 1.25**2
"""Least share of its draws that an open target still needs: that of a half-width 25 % too wide."""
MAX_CELLS = 4_000_000
"""Largest table of targets by cells of variant, concept and truth that is kept."""
PRIOR = 20.0
"""Draws that the first guess of the variance ratio, 1, counts as."""
Price = Floats | float
"""Prices of calls (m,), or one price for all."""


class Certifier(Game):
    """Game of a space's targets, with the bets that each draw fixes.

    Args:
        space: The space that questions are drawn from.
        targets: The K targets.
        answers: Whether a call asks one question, or all about an image.
        half_width: Half-width in (0, 1) that bets aim at.
        confidence: Probability in (0, 1) that all intervals hold at all times.
        rules: Full rules, in place of ``half_width`` and ``confidence``.
        since: (K,) the draw with which bets on each target start. Earlier draws only count towards
            the losses seen. Empty: all start with draw 0.

    Attributes:
        largest: (K,) the most questions of a target that one call asks.
        calls: (K,) M, the unseen calls that touch each target.
        first_calls: (K,) the same before the first draw, at least 1.
        left: Unseen calls.
        unseen: (K,) questions of calls not drawn; the answers to others may be on their way.
        hits: (K,) answered draws whose calls touch the target.
        strata: Strata that draws choose among; None: draws are from all calls.
    """

    def __init__(
        self,
        space: Population,
        targets: list[Target],
        *,
        answers: CallMode,
        half_width: float = 0.05,
        confidence: float = 0.95,
        rules: Rules | None = None,
        since: Sequence[int] = (),
    ) -> None:
        count = len(targets)
        sizes = np.array([size(space, t) for t in targets], float)
        super().__init__(sizes, rules or Rules(half_width, 1 - confidence), since)
        self.space = space
        self.targets = targets
        self.answers = answers
        self.largest = np.array([largest(space, t, answers) for t in targets], float)
        self.calls = np.array([calls(space, t, answers) for t in targets], float)
        self.first_calls = np.maximum(self.calls, 1)
        self.left = space.size if answers == "one" else space.images
        self.unseen = self.sizes.copy()
        self._draws = 0
        # bounds of the next draw's corrections downwards, upwards and of its tilt, as shares of the
        # target's unseen questions
        self._reach = np.full((3, count), FIRST_REACH)
        self._foreseen = self._first_variance()
        self.hits = np.zeros(count)
        # squared corrections of the rate: of these draws, and of even ones with f = centre
        self._ours = np.zeros(count)
        self._uniform = np.zeros(count)
        # squared residuals and questions of recent draws, each over its probability
        self._residuals = np.zeros((2, count))
        self.strata: Strata | None = None
        self._counted: tuple[Bools, Floats] | None = None

    def stratify(self, limit: int = 4096, assigned: Indices | None = None) -> None:
        """Let each draw choose its stratum first, where there are strata to choose from.

        Call it before the first draw. It does nothing where slices may be discovered, since a
        slice that cuts a stratum in two could not be drawn by stratum.

        Args:
            limit: The most candidate calls of a draw.
            assigned: (V,) the stratum of each variant (``CallStrata``); None: the targets' own.
        """
        if not self.rules.set_aside:
            self.strata = strata_of(self.space, self.targets, self.answers, limit, assigned)

    @cached_property
    def asked_whole(self) -> int | None:
        """Number of the target about all original images, if asking all of it is quickest.

        It is where perfect predictions would certify the target no sooner than all its calls.
        None elsewhere, and where an audit asks for a decision in place of a half-width.
        """
        if self.rules.limit is not None or self.rules.compare is not None:
            return None
        original = [variant.relation.name == IDENTITY for variant in self.space.variants]
        fewest = self.fewest_draws(np.full(len(self.targets), self.rules.aim))
        for place, target in enumerate(self.registered):
            unfiltered = target.rows is None and target.concepts.all() and target.sides.all()
            if unfiltered and target.variants.tolist() == original and not all(original):
                return place if self.first_calls[place] <= fewest[place] else None
        return None

    def fewest_draws(self, half_widths: Floats) -> Floats:
        """Return the draws (K,) to ``half_widths`` (K,) if every loss were predicted exactly.

        ``audit.forecast`` derives the formula as its "at least".
        """
        room = np.maximum(self.first_calls * self.largest / self.sizes, 1) - 2 * half_widths
        gain = np.log1p(self.rules.bets.cap * 2 * half_widths / np.maximum(room, TINY))
        count = len(self.targets)
        theta = self.rules.thetas(count)
        alpha = np.maximum(theta, 1 - theta) * self.rules.alphas(count)  # of the end that decides
        with np.errstate(divide="ignore"):
            return np.asarray(np.ceil(np.log(1 / alpha) / gain))

    def half_on_whole(self, weights: Floats, inside: Bools) -> Floats:
        """Return ``weights`` (n,) with half of them moved to the target that is ``asked_whole``.

        ``inside`` (K x n) are the targets that each weight belongs to. Weights stay as they are
        where no target is asked whole, or nothing of it is left.
        """
        if self.asked_whole is None or not inside[self.asked_whole].any():
            return weights
        held = inside[self.asked_whole]
        on_target = weights * held if (weights * held).any() else held.astype(float)
        on_all = weights / max(float(weights.sum()), TINY)
        return np.asarray((on_all + on_target / on_target.sum()) / 2)

    @property
    def registered(self) -> list[Target]:
        """Targets that the audit began with, without slices discovered later."""
        return self.targets[: len(self.targets) - self.rules.slices]

    @property
    def half_width(self) -> float:
        """Half-width that bets aim at now."""
        return self.rules.aim

    def aim_at(self, half_width: float, draw: int) -> None:
        """Aim at another half-width from ``draw`` on, a draw not made yet (``Rules.aiming``)."""
        self.rules = self.rules.aiming(half_width, draw)
        self._aim()
        self._forget("asked_whole", "statuses")  # both depend on the half-width

    def set_theta(self, questions: Indices, losses: Floats) -> None:
        """Divide each target's alpha between its two ends by predicted losses.

        Call it before the first draw. ``alpha.theta_for`` has the rule.

        Args:
            questions: (n,) questions whose losses are predicted.
            losses: (n,) their predicted losses in [0, 1].
        """
        inside = self.members(questions)
        with np.errstate(invalid="ignore"):
            means = inside @ losses / inside.sum(axis=1)  # NaN for targets without any of them
        self.rules = replace(self.rules, theta=theta_for(means))
        self.sequences.theta = self.rules.thetas(len(self.targets))
        self.decisions = self.rules.decisions(len(self.targets))
        self._forget("asked_whole", "statuses")

    @property
    def certified(self) -> Bools:
        """(K,): whether each target has what was asked for, and its draws agree with it.

        An audit asks for a half-width or, with a limit or two models, for a decision. Where the
        model changes, an interval passes through every width before it empties. The draws show
        that by disagreeing with it (``disagreeing``), so such a target waits until they agree
        again. An audit may always stop later than it could.
        """
        if self.rules.only_sides and self.decisions is not None:
            return self.decisions.decided & ~self.invalidated
        if self.rules.compare is not None:
            sequences = self.sequences
            return self.rules.compare.decided(sequences.lower, sequences.upper) & ~self.invalidated
        return (self.sequences.half_width <= self.half_width) & ~self.invalidated

    @property
    def settled(self) -> Bools:
        """(K,): whether a target needs no more draws: certified and decided, or abandoned."""
        done = self.certified if self.decisions is None else self.certified & self.decisions.decided
        return done | self.abandoned

    @property
    def abandoned(self) -> Bools:
        """(K,): whether a target's interval emptied while the audit continues for others.

        That happens only where each of several intervals holds by itself, since chance empties
        each with probability alpha. Where all hold at once, an emptied interval ends the audit
        (``stopping.all_invalidated``).
        """
        alone = self.rules.guarantee == "each" and len(self.targets) > 1
        return self.sequences.emptied & alone

    @cached_property
    def invalidated(self) -> Bools:
        """(K,): whether an interval emptied, or its draws disagree with it."""
        return np.asarray(self.sequences.emptied | self.disagreeing())

    @cached_property
    def statuses(self) -> tuple[TargetStatus, ...]:
        """Status of every target, as stopping rules read it; kept until the next answer."""
        sequences, compare, decisions = self.sequences, self.rules.compare, self.decisions
        columns: dict[str, Sequence[Any]] = {
            "id": [target.id for target in self.targets],
            "estimate": self.measured(self.estimate),
            "lower": self.measured(sequences.lower),
            "upper": self.measured(sequences.upper),
            "certified": self.certified.tolist(),
            "emptied": sequences.emptied.tolist(),
            "invalidated": self.invalidated.tolist(),
            "abandoned": self.abandoned.tolist(),
            "size": [int(size) for size in self.sizes],
        }
        if compare is not None:
            ends = sequences.lower, sequences.upper
            verdicts = compare.claimed(decisions) if decisions else compare.decisions(*ends)
            columns["decision"] = np.where(self.invalidated, OPEN, verdicts).tolist()
            columns["pivot"] = [compare.at(k) for k in range(len(self.targets))]
        elif decisions is not None:
            columns["decided"] = decisions.sides()
        rows = zip(*columns.values(), strict=True)
        return tuple(TargetStatus(**dict(zip(columns, row, strict=True))) for row in rows)

    def measured(self, means: Floats) -> list[float]:
        """Return the figure of every target, such as a recall, from its mean loss (K,)."""
        return [t.id.measured(mean) for t, mean in zip(self.targets, means.tolist(), strict=True)]

    def _forget(self, *names: str) -> None:
        """Let cached properties be computed again."""
        for name in names:
            vars(self).pop(name, None)

    def members(self, questions: Indices) -> Bools:
        """Return which targets hold each of ``questions`` (n,), K x n."""
        if self._cells is None:
            return members(self.space, self.targets, questions)
        sample, variant, concept = self.space.parts(questions)
        truth = self.space.dataset.truth(sample, concept)
        return self._cells[:, (variant * len(self.space.concepts) + concept) * 2 + truth]

    @cached_property
    def _cells(self) -> Bools | None:
        """K x (V C 2): which targets hold the questions of each variant, concept and truth.

        None where a target is about some samples only, or the table would be large.
        """
        cells = len(self.space.variants) * len(self.space.concepts) * 2
        if not countable(self.targets) or cells * len(self.targets) > MAX_CELLS:
            return None
        return cells_of(self.space, self.targets).reshape(len(self.targets), cells)

    def counts(self, inside: Bools, unit: Indices, units: int) -> Floats:
        """Return how many questions of each target each of m candidate calls asks, K x m."""
        if self._counted is None or self._counted[0] is not inside:  # needed a few times per draw
            self._counted = inside, per_unit(inside, unit, units)
        return self._counted[1]

    def bet(
        self,
        inside: Bools,
        unit: Indices,
        predictions: Floats | None,
        proposal: Floats,
        drawn: int,
        stratum: Stratum | None = None,
    ) -> Bet:
        """Return the bet that a draw fixes, and count its call as drawn.

        Args:
            inside: (K x n) which targets hold each of the n candidate questions.
            unit: (n,) the place of each question's call among the m candidate calls.
            predictions: (n,) predicted losses in [0, 1]; None: each target's expected mean.
            proposal: (m,) probabilities of the candidate calls.
            drawn: Place of the call drawn.
            stratum: Stratum that the candidates are a uniform subset of; None: all unseen calls.
        """
        # n, F and n - F of each target in each candidate call, K x m
        count = self.counts(inside, unit, len(proposal))
        if predictions is None:
            predicted = count * np.clip(self.sequences.centre, CLIP, 1 - CLIP)[:, None]
        else:
            predicted = per_unit(inside * np.clip(predictions, CLIP, 1 - CLIP), unit, len(proposal))
        missing, questions, asked = count - predicted, count.sum(axis=1), count[:, drawn]
        # G, rho and p of the stratum drawn; a draw from all calls has G = 0 and rho = p = 1
        if self.strata is None or stratum is None:
            frame = pooled(self.unseen, self.calls, self.largest)
        else:
            frame = stratified(self.strata, stratum)
        touching = (count > 0).sum(axis=1)
        # where touching candidates are a matter of chance, a target also moves without any
        active = ((touching > 0) | (frame.chance < 1)) & frame.active
        # r = M / (m p): a candidate stands for r unseen calls; ``weight`` is r / rho
        ratio = frame.calls[:, frame.place] / np.maximum(touching, 1) / frame.chance
        weight = np.where(frame.active, ratio / frame.drawn, 0.0)
        # by how much the worst call with full predictions could take N a+ below S, take N a- above
        # S + r n, and tilt N a, as shares of the unseen questions: r (max X / q - sum X) for X in
        # F, n - F and n
        largest = [excess(values, proposal) for values in (predicted, missing, count)]
        corrections = np.stack(largest) * ratio / frame.room
        # shrunk by these factors, predictions pass no bound, whichever call is drawn
        shrink = np.minimum(1.0, self._reach / np.maximum(corrections, TINY))
        shrink_low, shrink_high, shrink_tilt = shrink
        # a call without a question of the target tilts N a by r n; at most by the unseen questions
        full_tilt = ratio * questions / frame.room
        shrink_tilt = np.minimum(shrink_tilt, 1 / np.maximum(full_tilt, TINY))
        # the variance of N a for losses that are coins of these predictions: sum f (1 - f) / q
        likely = (predicted * missing / np.maximum(count, 1) / proposal).sum(axis=1) * weight**2
        reach_down, reach_up, reach_tilt = self._reach
        next_down, next_up, next_tilt = faded(self._reach, corrections, active)
        bet = Bet(
            active=active,
            low_base=frame.other_base + weight * shrink_low * predicted.sum(axis=1),
            high_base=frame.other_base + weight * (questions - shrink_high * missing.sum(axis=1)),
            low_predicted=shrink_low * predicted[:, drawn],
            high_predicted=asked - shrink_high * missing[:, drawn],
            scale=weight / proposal[drawn],
            lo=frame.lowest(reach_down),
            hi=frame.highest(reach_up),
            foreseen=self._foreseen,
            tilt=frame.other_tilt + shrink_tilt * weight * (questions - asked / proposal[drawn]),
            tilt_bound=frame.swing(reach_tilt),
            uniform=frame.even_scale(touching, np.asarray((count > 0) @ proposal)),
            next_down=next_down,
            next_up=next_up,
            next_tilt=next_tilt,
            next_foreseen=np.where(active, frame.blend(self._foreseen, likely), self._foreseen),
        )
        self._advance(bet, asked, stratum)
        return bet

    def restore(self, bet: Bet, inside: Bools, stratum: Stratum | None = None) -> None:
        """Count a draw of the journal: its bet, its questions' targets (K x n), its stratum."""
        bet = bet.padded(len(self.sizes))
        self._advance(bet, inside.sum(axis=1).astype(float), stratum)

    def _advance(self, bet: Bet, count: Floats, stratum: Stratum | None) -> None:
        """Count a call as drawn; ``count`` (K,) are its questions of each target."""
        self.left -= 1
        self.unseen = self.unseen - count
        self.calls = self.calls - (count > 0)
        started = self.sequences.since <= self._draws
        reach = np.stack([bet.next_down, bet.next_up, bet.next_tilt])
        self._reach = np.where(started, reach, FIRST_REACH)
        self._foreseen = np.where(started, bet.next_foreseen, self._first_variance())
        self._draws += 1
        if self.strata is not None and stratum is not None:
            self.strata.note(stratum)

    def _first_variance(self) -> Floats:
        """Return the variance (K,) that first bets expect: fair coins, drawn evenly."""
        most = self.calls[: len(self.registered)].max(initial=1.0)
        return np.asarray(0.25 * self.unseen * most)

    def learn(
        self, bet: Bet, inside: Bools, least: Floats, most: Floats, out: Bools | None = None
    ) -> None:
        """Learn the losses of a draw's n questions. Call it in the order of the bets.

        Args:
            bet: The bet on the draw.
            inside: (K x n) which targets hold each question.
            least: (n,) losses in [0, 1].
            most: (n,) the same losses, but 1 where ``least`` is 0 for an unanswered question under
                the policy "both".
            out: (n,) which questions turned out not to count, with losses of 0; None: all count.
        """
        bet = bet.padded(len(self.sizes))
        low, high = inside @ least, inside @ most
        count = inside.sum(axis=1)
        left_out = np.zeros(len(count)) if out is None else inside @ out.astype(float)
        self._forget("invalidated", "statuses")
        # squared corrections of this draw, and those of an even draw without predictions
        losses = (low + high) / 2 + left_out * self.sequences.centre
        residual = losses - (bet.low_predicted + bet.high_predicted) / 2
        correction = bet.scale * residual
        plain = losses - count * self.sequences.centre
        self._ours += (correction / self.sizes) ** 2
        self._residuals *= RECENT
        self._residuals += np.stack([correction * residual, bet.scale * count])
        self._uniform += bet.scale * bet.uniform * (plain / self.sizes) ** 2
        self.play(bet, low, high, count, left_out)
        self.hits += count > 0

    def table(self, calls_per_draw: float = 1.0) -> list[TargetStatus]:
        """Return ``statuses`` with variance ratios and forecasts of further calls (``further``).

        ``calls_per_draw`` is how many calls a draw takes on average.
        """
        ratios, open_ = self.variance_ratios(), ~self.settled
        more = in_calls(further(self, self.left), open_, calls_per_draw)
        return [
            replace(
                status,
                variance_ratio=float(ratios[k]),
                effective_draws=float(self.hits[k] / ratios[k]),
                more_calls=more[k],
            )
            for k, status in enumerate(self.statuses)
        ]

    def needs(
        self, inside: Bools, unit: Indices, units: int, variance: Floats, prices: Price = 1.0
    ) -> Floats:
        """Return the need (m,) of each candidate call: the cost to open targets of leaving it out.

        A call costs a target the variance of the target's losses in it. It also costs
        RANGE * half-width * (its questions)^2, because bets are bounded by the worst losses that
        could come back. Targets count by the draws that they need, in proportion to their mean
        cost, and less when they are nearly done. A proposal with weights sqrt(needs / prices) then
        shrinks the widest interval fastest.

        Args:
            inside: (K x n) which targets hold each of the n candidate questions.
            unit: (n,) the place of each question's call among the candidate calls.
            units: The number m of candidate calls.
            variance: (n,) expected variance of each question's loss.
            prices: (m,) prices of the calls, or one for all.
        """
        count, cost = self._costs(inside, unit, units, variance)
        return np.asarray(self._weights(count, cost, prices) @ cost)

    def needs_by_target(
        self, inside: Bools, unit: Indices, units: int, variance: Floats, prices: Price = 1.0
    ) -> Floats:
        """Return each question's part of its call's need by target, K x n; they sum to ``needs``.

        The term (a target's questions in a call)^2 is divided evenly among those questions.
        """
        count, cost = self._costs(inside, unit, units, variance)
        weights = self._weights(count, cost, prices)[:, None]
        worst = weights * RANGE * self.sequences.aims[:, None] * count
        return np.asarray(inside * (weights * variance + worst[:, unit]))

    def _costs(
        self, inside: Bools, unit: Indices, units: int, variance: Floats
    ) -> tuple[Floats, Floats]:
        """Return the questions of a target in a call, and the call's cost to it, K x m each."""
        count = self.counts(inside, unit, units)
        worst = RANGE * self.sequences.aims[:, None]
        return count, per_unit(inside * variance, unit, units) + worst * count**2

    def _weights(self, count: Floats, cost: Floats, prices: Price) -> Floats:
        """Return the weight (K,) of each target's costs."""
        touching = np.maximum((count > 0).sum(axis=1), 1)
        typical = np.maximum(count.sum(axis=1) / touching, 1)
        mean, per_price = cost.sum(axis=1) / touching, (cost / prices).sum(axis=1) / touching
        return self._worth(mean, typical, per_price)

    def stratum_proposal(self, exploration: float, prices: Price = 1.0) -> Floats | None:
        """Return the proposal pi (C,) of the next draw's stratum, None where there are none.

        A stratum's probability is proportional to its unseen calls times the root of a call's
        need, as in the proposal within a stratum.

        Args:
            exploration: Share in [0, 1] that is even over all open strata.
            prices: (C,) prices of a call in each stratum, or one for all.

        Returns:
            Shares that sum to 1 up to rounding. None without strata or unseen calls.
        """
        if self.strata is None or not self.strata.unseen.any():
            return None
        strata, left = self.strata, self.strata.unseen.astype(float)
        worst = RANGE * self.sequences.aims[:, None]
        questions = strata.questions / np.maximum(left, 1)  # in a call of the stratum
        touching = strata.questions / np.maximum(strata.calls, 1)  # in a call that has any
        cost = questions * (strata.variance + worst * touching)
        calls = np.maximum(strata.calls.sum(axis=1), 1)
        typical = np.maximum(strata.questions.sum(axis=1) / calls, 1)
        mean, per_price = cost @ left / calls, cost / prices @ left / calls
        wanted = left * np.sqrt(self._worth(mean, typical, per_price) @ cost / prices)
        wanted = self.half_on_whole(wanted, strata.questions > 0)
        open_ = (left > 0) & strata.inside[~self.settled].any(axis=0)
        if not open_.any():
            open_ = left > 0
        shares = open_ / open_.sum()
        if wanted.sum() > 0:
            shares = exploration * shares + (1 - exploration) * wanted / wanted.sum()
        return np.round(shares, DIGITS)

    def _worth(self, mean: Floats, typical: Floats, per_price: Floats) -> Floats:
        """Return the weight (K,) of each target's costs.

        ``mean`` is its cost per call, ``typical`` its questions in a call, and ``per_price`` the
        mean of cost over price.
        """
        aims = self.sequences.aims
        # the proposal spends sqrt(weight * per_price) * calls on a target; that is to be its need
        need = mean / (typical * aims / self.half_width) ** 2
        weight = np.where(self.settled, 0.0, need**2 * self.lacking / np.maximum(per_price, TINY))
        return np.asarray(weight / self.first_calls**2)

    @property
    def lacking(self) -> Floats:
        """(K,) in [0, 1]: the share of all its draws that each open target still needs.

        An interval needs draws in proportion to 1 / width^2. A decision needs evidence.
        """
        # where models are compared, every target has another half-width at which it is done
        wanted = self.half_width if self.rules.compare is None else self.sequences.aims
        width = wanted / np.maximum(self.sequences.half_width, TINY)
        left = 1 - np.minimum(width, 1) ** 2
        if self.decisions is not None:
            open_ = self.decisions.lacking()
            left = open_ if self.rules.only_sides else np.maximum(left, open_)
        kept_open = self.invalidated | (left <= 0)  # by something else than its width
        return np.where(kept_open, np.maximum(left, LACKING), left)

    def variance_ratios(self) -> Floats:
        """Return the variance of the draws so far over that of uniform ones, (K,); 1 before any.

        The uniform draws would be as many, within the target, and without predictions.
        """
        prior = PRIOR * self.sequences.centre * (1 - self.sequences.centre)
        return (self._ours + prior) / (self._uniform + prior)

    def variance_ratio(self) -> float:
        """Return the mean variance ratio of the open targets, 1 where none is open."""
        open_ = ~self.settled
        return float(self.variance_ratios()[open_].mean()) if open_.any() else 1.0

    @property
    def residual(self) -> Floats:
        """(K,): mean squared residual of recent predictions per question; 0 before any.

        Residuals are weighted by their probabilities, so it holds for the whole target.
        """
        return np.asarray(self._residuals[0] / np.maximum(self._residuals[1], TINY))


def excess(values: Floats, proposal: Floats) -> Floats:
    """Return by how much the largest of values / proposal exceeds the sum of values, K x m -> K."""
    return np.maximum((values / proposal).max(axis=1) - values.sum(axis=1), 0)


def per_unit(values: npt.NDArray[np.generic], unit: Indices, units: int) -> Floats:
    """Return the sums of K x n values over the questions of each of m calls, K x m.

    ``unit`` (n,) is in ascending order, and no call is without a question.
    """
    numbers: Floats = values.astype(float)
    if len(unit) == units:  # one question per call
        return numbers
    starts = np.flatnonzero(np.diff(unit, prepend=-1))
    return np.asarray(np.add.reduceat(numbers, starts, axis=1))


def faded(reach: Floats, corrections: Floats, active: Bools) -> Floats:
    """Return the bounds (3 x K) after a draw's ``corrections``; only active targets change."""
    return np.where(active, np.maximum(FADE * reach, ROOM * corrections), reach)
