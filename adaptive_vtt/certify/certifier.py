"""Pseudo-outcomes: from a draw, its proposal and its losses to one unbiased number per target.

A target is N questions whose losses are fixed; R is their mean. Before draw t the past
fixes S, the sum of the target's losses seen, and M, how many unseen calls touch the target.
Candidates are a uniform subset of the unseen calls, m of which touch the target.
Predictions f and a proposal q > 0 over the candidates are chosen, freely; one call I is drawn
from q. With n, F and L the number, predicted and true losses of the target's questions
within a call (0 where it does not touch the target), and r = M / m,

    N a = S + r ( sum over candidates of F + (L_I - F_I) / q(I) )

has E[a | past, m] = R whatever f and q are: the mean over I turns the bracket into the sum
of L over the candidates, and the touching candidates are a uniform m of the M. Every draw
moves every target (m = 0 apart), whether or not the call drawn touches it. To condition on
the draw falling into the target would not be exact with candidates that are a random
subset: the proposal's mass on a target and the target's mean among the candidates go together.

Bets must not depend on the candidates either, so what bounds a is taken from earlier
draws. Where a draw would pass those bounds, its f are shrunk: towards 0 for a+, which bets
upwards, and towards n for a-. At 0, N a+ is at least S; at n, N a- is at most S + M max n:
there they cannot pass. Against a mean m other than the expected one, f is moved by the
difference, as far as its own bounds allow (``tilt``): a call with no question of the target adds
the most, which never passes the target's unseen questions; the call drawn takes away the most.

Unanswered losses count as 0 in a+ and as 1 in a- where the policy is "both". Questions that turn
out not to count are left out of the rate: see ``sequences.Step``.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ..population import Population
from ..types import IDENTITY, Bools, CallMode, Floats, Indices
from .decisions import OPEN, Comparison
from .further import further, in_calls
from .game import Bet as Bet
from .game import Game
from .rules import Rules, theta_for
from .status import TargetStatus
from .strata import DIGITS, Strata, Stratum, cells_of, pooled, possible, strata_of, stratified
from .targets import Target, calls, largest, members, size

ROOM = 1.0
"""Bound on a draw's correction, as a multiple of the largest one seen recently. It is fixed before
the draw: bets must not depend on the current candidates. Any value is valid, as a draw that would
pass the bound has its predictions shrunk: 1 shrinks hardly any, and more would be room that bets
never use."""
FADE = 0.9
"""Factor per draw by which the largest correction seen recently fades, so that one unusual draw
does not keep the bound loose. Calls hardly depend on it from .8 to .95; at .7 they rise."""

Price = Floats | float
"""What calls cost, one figure each; a number: all the same."""
CLIP = 0.02
"""Predictions stay within [CLIP, 1 - CLIP]."""
FIRST_REACH = 0.5
"""Bound on the first draw's correction, as a share of the target's unseen questions: none has been
seen by then."""
TINY = 1e-300
RANGE = 1.0
"""Draws needed go with variance + RANGE * half-width: 2 v ln(1/alpha) / w^2, and, as a bet is
at most cap over the range, ln(1/alpha) / (cap w)."""
RECENT = 0.99
"""Factor per draw by which what is known of residuals fades, as predictions get better."""
LACKING = 1 - 1 / 1.25**2
"""Share of its draws that a target needs at least where its width is not what keeps it open: as if
its half-width were a quarter wider than asked."""
MAX_CELLS = 4_000_000
"""Cells of all targets together up to which a table says which questions are whose."""
PRIOR = 20.0
"""Draws that the first guess of the variance ratio, 1, counts as."""


class Certifier(Game):
    """The game of a space's targets, and what each draw fixes for it.

    ``half_width`` is what is aimed at; with probability ``confidence`` all intervals hold
    at all times. ``rules`` say more, in place of both. ``since``: the draw that each target starts
    with; of those before it, which count all the same, only S and what is unseen count.
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
        self.calls = np.array([calls(space, t, answers) for t in targets], float)  # M
        self.first_calls = np.maximum(self.calls, 1)
        self.left = space.size if answers == "one" else space.images  # calls not drawn
        self.unseen = self.sizes.copy()  # questions not drawn; answers may be on their way
        self._draws = 0
        self._reach_down = np.full(count, FIRST_REACH)
        self._reach_up = np.full(count, FIRST_REACH)
        self._reach_tilt = np.full(count, FIRST_REACH)
        self._foreseen = self._foreseen_first()
        # squared corrections, N = 1: ours, and those of an even proposal with f = centre
        self._ours = np.zeros(count)
        self._uniform = np.zeros(count)
        self.hits = np.zeros(count)  # draws that fell into the target
        # squared residuals and questions of recent draws, each over its probability
        self._residuals = np.zeros((2, count))
        self.strata: Strata | None = None
        self._counted: tuple[Bools, Floats] | None = None

    def stratify(self, limit: int = 4096, given: Indices | None = None) -> None:
        """Let each draw, of up to ``limit`` candidate calls, choose its stratum first, where there
        are strata to choose from. To be called before the first draw. Not where slices are looked
        for: one that cuts a stratum in two could not be drawn from by it. ``given``: see
        ``CallStrata``."""
        if not self.rules.set_aside:
            self.strata = strata_of(self.space, self.targets, self.answers, limit, given)

    @cached_property
    def asked_whole(self) -> int | None:
        """The place of the target about all images as they are, where these are so few that bets
        which foresee every loss would certify it no sooner than all of it is asked.

        None where there is no such target, and where something else than its half-width is asked
        for.
        """
        if self.rules.limit is not None or self.rules.compare is not None:
            return None
        unchanged = [each.relation.name == IDENTITY for each in self.space.variants]
        bets = self.foreseen_draws(np.full(len(self.targets), self.rules.aim))
        for place, target in enumerate(self.registered):
            everyone = target.rows is None and target.concepts.all() and target.sides.all()
            if everyone and target.variants.tolist() == unchanged and not all(unchanged):
                return place if self.first_calls[place] <= bets[place] else None
        return None

    def foreseen_draws(self, half_widths: Floats) -> Floats:
        """(K,): the draws that bets take to ``half_widths`` (K,) where every loss is foreseen; see
        ``forecast``, "at least"."""
        room = np.maximum(self.first_calls * self.largest / self.sizes, 1) - 2 * half_widths
        gain = np.log1p(self.rules.bets.cap * 2 * half_widths / np.maximum(room, TINY))
        count = len(self.targets)
        theta = self.rules.thetas(count)
        alpha = np.maximum(theta, 1 - theta) * self.rules.alphas(count)  # of the end that decides
        with np.errstate(divide="ignore"):
            return np.asarray(np.ceil(np.log(1 / alpha) / gain))

    def half_on_whole(self, weights: Floats, inside: Bools) -> Floats:
        """``weights`` (n,) of what ``inside`` (K x n) says to which targets it belongs, half of
        them on what is left of the target that is ``asked_whole``."""
        if self.asked_whole is None or not inside[self.asked_whole].any():
            return weights
        mine = inside[self.asked_whole]
        own = weights * mine if (weights * mine).any() else mine.astype(float)
        others = weights / max(float(weights.sum()), TINY)
        return np.asarray((others + own / own.sum()) / 2)

    @property
    def registered(self) -> list[Target]:
        """The targets that it began with."""
        return self.targets[: len(self.targets) - self.rules.slices]

    @property
    def half_width(self) -> float:
        """What is aimed at now."""
        return self.rules.aim

    def aim_at(self, half_width: float, draw: int) -> None:
        """Aims at another half-width from ``draw`` on, which is not made yet: ``Rules.aiming``."""
        self.rules = self.rules.aiming(half_width, draw)
        self._aim()
        self._forget("asked_whole", "standing")  # they go by the half-width

    def foretell(self, questions: Indices, losses: Floats) -> None:
        """Before the first draw: bets on larger and on smaller rates share each target's alpha by
        what is foreseen of some ``questions``, ``losses`` (n,); see ``rules.theta_for``."""
        inside = self.members(questions)
        with np.errstate(invalid="ignore"):
            means = inside @ losses / inside.sum(axis=1)  # NaN where none of them is the target's
        self.rules = replace(self.rules, theta=theta_for(means))
        self.sequences.theta = self.rules.thetas(len(self.targets))
        self.decisions = self.rules.decisions(len(self.targets))
        self._forget("asked_whole", "standing")

    @property
    def certified(self) -> Bools:
        """(K,): whether each interval is as narrow as asked, and the draws agree with it; where
        only a decision was asked for, whether each target is decided instead.

        Where the model changes, an interval shrinks through every width before nothing is left
        of it; what gives that away is that the draws disagree with it (``disagreeing``). Such
        a target is not certified before they agree again. To stop later is always allowed.
        """
        if self.rules.only_sides and self.decisions is not None:
            return self.decisions.decided & ~self.invalidated
        if self.rules.compare is not None:
            sequences = self.sequences
            return self.rules.compare.decided(sequences.lower, sequences.upper) & ~self.invalidated
        return (self.sequences.half_width <= self.half_width) & ~self.invalidated

    @property
    def settled(self) -> Bools:
        """(K,): whether a target asks for nothing more: certified and decided, or abandoned."""
        done = self.certified if self.decisions is None else self.certified & self.decisions.decided
        return done | self.abandoned

    @property
    def abandoned(self) -> Bools:
        """(K,): whether nothing is left of a target's interval while the audit goes on for others.

        Only where each of several intervals holds by itself: chance empties each with probability
        alpha. Where all hold at once, the audit ends (``stopping.all_invalidated``).
        """
        alone = self.rules.guarantee == "each" and len(self.targets) > 1
        return self.sequences.emptied & alone

    @cached_property
    def invalidated(self) -> Bools:
        """(K,): whether nothing was left of an interval, or the draws disagree with it."""
        return np.asarray(self.sequences.emptied | self.disagreeing())

    @cached_property
    def standing(self) -> tuple[TargetStatus, ...]:
        """Where every target stands, as stopping rules read it; kept until the next answer."""
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
            columns["decision"] = self._verdicts(compare)
            columns["pivot"] = [compare.at(k) for k in range(len(self.targets))]
        elif decisions is not None:
            columns["decided"] = decisions.sides()
        rows = zip(*columns.values(), strict=True)
        return tuple(TargetStatus(**dict(zip(columns, row, strict=True))) for row in rows)

    def measured(self, means: Floats) -> list[float]:
        """Return every target's figure, given its mean loss (K,): see ``families``."""
        return [t.id.measured(mean) for t, mean in zip(self.targets, means.tolist(), strict=True)]

    def _forget(self, *names: str) -> None:
        for name in names:
            vars(self).pop(name, None)

    def _verdicts(self, compare: Comparison) -> list[str]:
        """Per target which of two models is better, "open" where intervals and draws disagree."""
        if self.decisions is None:
            verdicts = compare.decisions(self.sequences.lower, self.sequences.upper)
        else:
            verdicts = compare.claimed(self.decisions)
        both = zip(verdicts, self.invalidated.tolist(), strict=True)
        return [OPEN if doubted else verdict for verdict, doubted in both]

    def members(self, questions: Indices) -> Bools:
        """K x n: which targets each question belongs to."""
        if self._cells is None:
            return members(self.space, self.targets, questions)
        sample, variant, concept = self.space.parts(questions)
        truth = self.space.dataset.truth(sample, concept)
        return self._cells[:, (variant * len(self.space.concepts) + concept) * 2 + truth]

    @cached_property
    def _cells(self) -> Bools | None:
        """K x V C 2: which targets hold the questions of a variant, concept and truth. None where
        some are about samples of their own, or the table would be large."""
        cells = len(self.space.variants) * len(self.space.concepts) * 2
        if not possible(self.targets) or cells * len(self.targets) > MAX_CELLS:
            return None
        return cells_of(self.space, self.targets).reshape(len(self.targets), cells)

    def counts(self, inside: Bools, unit: Indices, units: int) -> Floats:
        """K x m: how many of each target's questions each candidate call has."""
        if self._counted is None or self._counted[0] is not inside:  # asked for a few times a draw
            self._counted = inside, per_unit(inside, unit, units)
        return self._counted[1]

    def foresee(
        self,
        inside: Bools,
        unit: Indices,
        predictions: Floats | None,
        proposal: Floats,
        drawn: int,
        stratum: Stratum | None = None,
    ) -> Bet:
        """What the draw of the call at place ``drawn`` of ``proposal`` fixes.

        ``inside`` K x n: membership of the n candidate questions; ``unit`` (n,): the place
        of each one's call among the candidate calls; ``predictions`` (n,) of their losses,
        or None for the target's expected mean; ``proposal`` (m,). ``stratum``: what the candidates
        are a uniform subset of, None for all unseen calls.
        """
        count = self.counts(inside, unit, len(proposal))
        if predictions is None:
            predicted = count * np.clip(self.sequences.centre, CLIP, 1 - CLIP)[:, None]
        else:
            predicted = per_unit(inside * np.clip(predictions, CLIP, 1 - CLIP), unit, len(proposal))
        if self.strata is None or stratum is None:
            frame = pooled(self.unseen, self.calls, self.largest)
        else:
            frame = stratified(self.strata, stratum)
        touching = (count > 0).sum(axis=1)
        active = ((touching > 0) | (frame.chance < 1)) & frame.active
        ratio = frame.calls[:, frame.place] / np.maximum(touching, 1) / frame.chance
        weight, room = np.where(frame.active, ratio / frame.drawn, 0.0), frame.room
        missing = count - predicted
        down = excess(predicted, proposal) * ratio / room
        up = excess(missing, proposal) * ratio / room
        swing = excess(count, proposal) * ratio / room
        whole = ratio * count.sum(axis=1) / room
        low = np.minimum(1.0, self._reach_down / np.maximum(down, TINY))
        high = np.minimum(1.0, self._reach_up / np.maximum(up, TINY))
        lean = np.minimum(1.0, self._reach_tilt / np.maximum(swing, TINY))
        lean = np.minimum(lean, 1 / np.maximum(whole, TINY))
        likely = (predicted * missing / np.maximum(count, 1) / proposal).sum(axis=1) * weight**2
        bet = Bet(
            active=active,
            low_base=frame.rest + weight * low * predicted.sum(axis=1),
            high_base=frame.rest + weight * (count.sum(axis=1) - high * missing.sum(axis=1)),
            low_predicted=low * predicted[:, drawn],
            high_predicted=count[:, drawn] - high * missing[:, drawn],
            scale=weight / proposal[drawn],
            lo=frame.lowest(self._reach_down),
            hi=frame.highest(self._reach_up),
            foreseen=self._foreseen,
            tilt=frame.away
            + lean * weight * (count.sum(axis=1) - count[:, drawn] / proposal[drawn]),
            tilt_bound=frame.swing(self._reach_tilt),
            uniform=frame.even(touching, np.asarray((count > 0) @ proposal)),
            next_down=faded(self._reach_down, down, active),
            next_up=faded(self._reach_up, up, active),
            next_tilt=faded(self._reach_tilt, swing, active),
            next_foreseen=np.where(active, frame.blend(self._foreseen, likely), self._foreseen),
        )
        self._advance(bet, count[:, drawn], stratum)
        return bet

    def restore(self, bet: Bet, inside: Bools, stratum: Stratum | None = None) -> None:
        """Take a bet from the journal, the membership K x n of its call's questions, and its
        stratum."""
        bet = bet.padded(len(self.sizes))
        self._advance(bet, inside.sum(axis=1).astype(float), stratum)

    def _advance(self, bet: Bet, count: Floats, stratum: Stratum | None) -> None:
        self.left -= 1
        self.unseen = self.unseen - count
        self.calls = self.calls - (count > 0)
        awake = self.sequences.since <= self._draws
        self._reach_down = np.where(awake, bet.next_down, FIRST_REACH)
        self._reach_up = np.where(awake, bet.next_up, FIRST_REACH)
        self._reach_tilt = np.where(awake, bet.next_tilt, FIRST_REACH)
        self._foreseen = np.where(awake, bet.next_foreseen, self._foreseen_first())
        self._draws += 1
        if self.strata is not None and stratum is not None:
            self.strata.note(stratum)

    def _foreseen_first(self) -> Floats:
        """(K,): what first bets foresee: fair coins drawn uniformly."""
        most = self.calls[: len(self.targets) - self.rules.slices].max(initial=1.0)
        return np.asarray(0.25 * self.unseen * most)

    def learn(
        self, bet: Bet, inside: Bools, least: Floats, most: Floats, out: Bools | None = None
    ) -> None:
        """The losses of the draw's questions: ``inside`` K x n, ``least`` and ``most`` (n,), and
        ``out`` (n,), which of them do not count; None: all do. Their losses must be 0.

        Least and most differ where a question is unanswered and the policy is "both". Draws must
        be learnt from in the order of their bets.
        """
        bet = bet.padded(len(self.sizes))
        low, high = inside @ least, inside @ most
        count = inside.sum(axis=1)
        left_out = np.zeros(len(count)) if out is None else inside @ out.astype(float)
        self._forget("invalidated", "standing")
        self._compare(bet, (low + high) / 2 + left_out * self.sequences.centre, count)
        self.play(bet, low, high, count, left_out)
        self.hits += count > 0

    def table(self, calls_per_draw: float = 1.0) -> list[TargetStatus]:
        """``standing`` with how the draws compare with uniform ones, and what each target still
        takes (``further``), in calls of which a draw takes ``calls_per_draw``."""
        ratios, open_ = self.variance_ratios(), ~self.settled
        more = in_calls(further(self, self.left), open_, calls_per_draw)
        return [
            replace(
                status,
                variance_ratio=float(ratios[k]),
                effective_draws=float(self.hits[k] / ratios[k]),
                more_calls=more[k],
            )
            for k, status in enumerate(self.standing)
        ]

    def needs(
        self, inside: Bools, unit: Indices, units: int, variance: Floats, prices: Price = 1.0
    ) -> Floats:
        """(m,): what leaving each candidate call out of the proposal costs the open targets.

        ``variance`` (n,) is that of each question's loss. A call costs a target the variance
        of the target's losses in it, and, because bets are bounded by the worst that could
        come back, RANGE * half-width * (its questions)^2. Targets count by the draws they
        need, which go with their mean cost, and less when they are nearly there. The proposal
        with weights sqrt(needs) then lets the widest interval shrink fastest. Where calls have
        ``prices`` (m,) and weights are sqrt(needs / prices), a target still gets its need.
        """
        count, cost = self._costs(inside, unit, units, variance)
        return np.asarray(self._weights(count, cost, prices) @ cost)

    def needs_by_target(
        self, inside: Bools, unit: Indices, units: int, variance: Floats, prices: Price = 1.0
    ) -> Floats:
        """K x n: each question's part of its call's need, by target; their sums are ``needs``.

        (a target's questions in a call)^2 is shared out evenly among those questions.
        """
        count, cost = self._costs(inside, unit, units, variance)
        weights = self._weights(count, cost, prices)[:, None]
        worst = weights * RANGE * self.sequences.aims[:, None] * count
        return np.asarray(inside * (weights * variance + worst[:, unit]))

    def _costs(
        self, inside: Bools, unit: Indices, units: int, variance: Floats
    ) -> tuple[Floats, Floats]:
        """K x m each: how many of a target's questions a call has, and what it costs the target."""
        count = self.counts(inside, unit, units)
        worst = RANGE * self.sequences.aims[:, None]
        return count, per_unit(inside * variance, unit, units) + worst * count**2

    def _weights(self, count: Floats, cost: Floats, prices: Price) -> Floats:
        """(K,): what a unit of a target's cost counts for."""
        touching = np.maximum((count > 0).sum(axis=1), 1)
        typical = np.maximum(count.sum(axis=1) / touching, 1)
        mean, per_price = (each.sum(axis=1) / touching for each in (cost, cost / prices))
        return self._worth(mean, typical, per_price)

    def shares(self, exploration: float, prices: Price = 1.0) -> Floats | None:
        """pi (C,): the proposal of the next draw's stratum; None where there are no strata, or
        nothing is left to draw in any.

        Proportional to the calls left and the root of the needs of one, as the proposal within a
        stratum is, but for the share ``exploration``, which is even over all strata that are open.
        ``prices`` (C,): see ``needs``.
        """
        if self.strata is None or not self.strata.unseen.any():
            return None
        strata, left = self.strata, self.strata.unseen.astype(float)
        worst = RANGE * self.sequences.aims[:, None]
        questions = strata.questions / np.maximum(left, 1)  # in a call of the stratum
        each = strata.questions / np.maximum(strata.calls, 1)  # in one that touches the target
        cost = questions * (strata.variance + worst * each)
        calls = np.maximum(strata.calls.sum(axis=1), 1)
        typical = np.maximum(strata.questions.sum(axis=1) / calls, 1)
        mean, per_price = cost @ left / calls, cost / prices @ left / calls
        wanted = left * np.sqrt(self._worth(mean, typical, per_price) @ cost / prices)
        wanted = self.half_on_whole(wanted, strata.questions > 0)
        open_ = (left > 0) & strata.inside[~self.settled].any(axis=0)
        if not open_.any():
            open_ = left > 0
        even = open_ / open_.sum()
        if wanted.sum() > 0:
            even = exploration * even + (1 - exploration) * wanted / wanted.sum()
        return np.round(even, DIGITS)

    def _worth(self, mean: Floats, typical: Floats, per_price: Floats) -> Floats:
        """(K,): what a unit of a target's cost counts for, by its mean cost per call, the
        questions that a call brings it, and the mean of cost over price."""
        aims = self.sequences.aims
        # sqrt(weight * per_price) * calls is what the proposal spends on a target: let it be its
        # need
        need = mean / (typical * aims / self.half_width) ** 2
        weight = np.where(self.settled, 0.0, need**2 * self.lacking / np.maximum(per_price, TINY))
        return np.asarray(weight / self.first_calls**2)

    @property
    def lacking(self) -> Floats:
        """(K,) in [0, 1]: the share of the draws that each open target still needs: of those an
        interval needs in all, which go with 1 / width^2, or of the evidence for a decision."""
        # where models are compared, each target has a half-width of its own at which it is done
        wanted = self.half_width if self.rules.compare is None else self.sequences.aims
        width = wanted / np.maximum(self.sequences.half_width, TINY)
        left = 1 - np.minimum(width, 1) ** 2
        if self.decisions is not None:
            open_ = self.decisions.lacking()
            left = open_ if self.rules.only_sides else np.maximum(left, open_)
        otherwise = self.invalidated | (left <= 0)
        return np.where(otherwise, np.maximum(left, LACKING), left)

    def variance_ratios(self) -> Floats:
        """(K,): variance of the draws so far, less what was predicted, over that of as many uniform
        ones within the target without predictions; 1 before any."""
        prior = PRIOR * self.sequences.centre * (1 - self.sequences.centre)
        return (self._ours + prior) / (self._uniform + prior)

    def variance_ratio(self) -> float:
        """The mean ratio over the targets that are open (1 where none is)."""
        open_ = ~self.settled
        return float(self.variance_ratios()[open_].mean()) if open_.any() else 1.0

    @property
    def residual(self) -> Floats:
        """(K,): mean squared residual of recent predictions, as it would be over the whole target,
        per question; 0 before any."""
        return np.asarray(self._residuals[0] / np.maximum(self._residuals[1], TINY))

    def _compare(self, bet: Bet, losses: Floats, count: Indices) -> None:
        predicted = (bet.low_predicted + bet.high_predicted) / 2
        ours = bet.scale * (losses - predicted)
        plain = losses - count * self.sequences.centre
        self._ours += (ours / self.sizes) ** 2
        self._residuals *= RECENT
        self._residuals += np.stack([ours * (losses - predicted), bet.scale * count])
        self._uniform += bet.scale * bet.uniform * (plain / self.sizes) ** 2


def excess(values: Floats, proposal: Floats) -> Floats:
    """(K,): how far the largest of values / proposal lies above the sum of values; K x m in."""
    return np.maximum((values / proposal).max(axis=1) - values.sum(axis=1), 0)


def per_unit(values: npt.NDArray[np.generic], unit: Indices, units: int) -> Floats:
    """K x m: the sums of K x n values over the questions of each call; calls stand in order, none
    without a question."""
    numbers: Floats = values.astype(float)
    if len(unit) == units:  # one question per call
        return numbers
    starts = np.flatnonzero(np.diff(unit, prepend=-1))
    return np.asarray(np.add.reduceat(numbers, starts, axis=1))


def faded(reach: Floats, seen: Floats, active: Bools) -> Floats:
    """The bounds of the draw after one that saw corrections of ``seen``; those of targets that did
    not move stay."""
    return np.where(active, np.maximum(FADE * reach, ROOM * seen), reach)
