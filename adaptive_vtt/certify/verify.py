"""Recompute every interval and decision from a journal's rows, without the engine's code.

An interval is the result of a betting game, which ``certifier`` and ``sequences`` define. ``_Game``
plays it again for one target, draw by draw, from the journaled bets and losses. ``decided`` and
``versus_decision`` then repeat the decisions. ``verify_draws`` checks the draws themselves.
"""

import math
from collections.abc import Iterable, Mapping
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import JournalError
from ..journal import FIGURES, Journal, check_chain, with_proposal
from ..journal.facts import read_facts
from ..journal.rows import EXCLUDED, CallRow, DrawRow, MoveRow
from ..types import JsonObject
from .status import TargetStatus
from .verify_counting import check_order, compare, counted
from .verify_draws import check_draws, check_known
from .verify_facts import check_beliefs, check_cohort, check_fixed, check_prices, check_slices

if TYPE_CHECKING:
    from ..journal.facts import CertificateFacts, VersusFacts


EVEN = 0.5
"""Share of alpha for bets on larger rates, if the certificate states no other."""
BETWEEN = 3.5
"""Width in grid cells up to which an interval that loses all means is kept; see ``sequences``."""
MIN_AIM = 0.02
"""Least distance from a limit that bets aim at."""
MIN_SHARE = 0.02
"""Least share of counting questions by which estimates are divided."""
MIN = 1e-9
"""Least variance, and largest sum of shares above 1."""
ROUNDING = 1e-9
"""Share of its cap by which a bet may exceed it through rounding. Also the largest distance from 0,
or from the margin, at which a difference of two models is attributed to rounding."""
NOTHING = 1e-300
"""Least room by which a cap is divided. With less room a bet cannot lose anything."""
AGREE = 1e-7
"""Largest difference between two sums that were taken in another order."""
Losses = tuple[float, float, int]
"""An answer's least and largest loss, and 1 if its question does not count, else 0."""


def verify(journal: Journal) -> list[TargetStatus]:
    """Check every row of a journal and recompute the status of every target.

    This detects damage and careless edits. Only a copy of ``journal.head`` kept elsewhere can
    detect that someone has rewritten the whole chain.

    Args:
        journal: The journal of an audit, ended or not.

    Returns:
        One status per target in the order of the certificate. The list is empty if nothing is
        certified, or if the journal of a counted audit lacks its truths.

    Raises:
        JournalError: The file is damaged, or a row is missing, added or altered. Or a draw does
            not follow from the key and its proposal (see ``verify_draws``). Or a target counts a
            question twice, or an interval does not follow from the rows. The message names the
            first fault.
    """
    journal.check_storage()
    draws, calls = journal.draws(proposals=False), journal.calls()
    check_chain(journal, draws, calls)
    _check_complete(draws, calls)
    facts = read_facts(journal.facts())
    certificate = facts.certificate
    losses = {question: loss[:2] for question, loss in _losses(calls, certificate).items()}
    if certificate is not None and certificate.counted:
        check_order(facts, draws)
    else:
        with_proposals = (with_proposal(journal, draw) for draw in draws)
        check_draws(facts, with_proposals, {call.call for call in calls}, losses)
    check_cohort(facts)
    check_prices(facts.settings.prices, draws, calls)
    check_fixed(journal)
    check_slices(journal, facts, draws)
    check_beliefs(journal, facts, draws, calls)
    if certificate is not None and certificate.counted:
        if not facts.population:
            return []
        statuses = counted(certificate, facts.population, calls)
        if facts.intervals is not None:
            compare(statuses, facts.intervals)
        return statuses
    statuses = recompute(certificate, draws, calls)
    if certificate is not None and facts.intervals is not None:
        _check_intervals(statuses, facts.intervals, certificate)
    if facts.rejudged is None:  # a rejudged journal is written at once, draws before calls
        check_known(journal.links(), draws)
    return statuses


def recompute(
    certificate: "CertificateFacts | None", draws: list[DrawRow], calls: list[CallRow]
) -> list[TargetStatus]:
    """Recompute every target's status from a journal's certificate and rows.

    Args:
        certificate: The fact "certificate", None if the audit certifies nothing.
        draws: All draws in order.
        calls: All answered calls.

    Returns:
        One status per target; [] without a certificate.

    Raises:
        JournalError: The certificate contradicts itself, or a loss or a draw is impossible.
    """
    if certificate is None:
        return []
    levels = _levels(certificate)
    _check_aims(certificate, len(draws))
    losses = _losses(calls, certificate)
    questions = {call.call: [row.question for row in call.answers] for call in calls}
    # the engine learns in the order of draws, so no draw after an open call counts yet
    answered = [*takewhile(lambda draw: draw.call in questions, draws)]
    games = [_Game(certificate, k, level) for k, level in enumerate(levels)]
    for game in games:
        game.replay(answered, losses, questions)
    sides: list[str | None] = [None] * len(games)
    if games[0].limit is not None:
        shared, limits = certificate.guarantee == "all", [game.limit or 0.0 for game in games]
        # an audit with both goals pays for a decision and an interval with the same alpha
        both = certificate.decides and certificate.half_width is not None
        thetas = [game.theta for game in games] if both else None
        sides = [*decided([game.evidence for game in games], levels, limits, shared, thetas)]
    return [_status(certificate, k, game, sides[k]) for k, game in enumerate(games)]


def _status(
    certificate: "CertificateFacts", k: int, game: "_Game", side: str | None
) -> TargetStatus:
    """Return the status of target ``k`` from its game and the decided ``side`` of its limit."""
    (lower, upper), measured = game.last, certificate.ids[k].measured
    invalidated = game.emptied or game.disagreeing()
    decision = None
    if certificate.versus is not None:
        decision = versus_decision(certificate.versus, k, lower, upper, side)
        reached = decision != "open"
    elif certificate.decides and certificate.half_width is None:
        reached = side != "open"
    else:
        reached = (upper - lower) / 2 <= certificate.aim
    estimate = min(max(game.estimate(), lower), upper)
    return TargetStatus(
        id=certificate.ids[k],
        estimate=measured(estimate),
        lower=measured(lower),
        upper=measured(upper),
        certified=reached and not invalidated,
        emptied=game.emptied,
        invalidated=invalidated,
        size=certificate.sizes[k],
        drawn=measured(estimate),
        decided=side if certificate.decides else None,
        decision="open" if decision and invalidated else decision,
        pivot=certificate.pivot(k),
    )


def _levels(certificate: "CertificateFacts") -> list[float]:
    """Return every target's alpha. Raise JournalError if their sum is above the audit's alpha."""
    alpha, count = 1 - certificate.confidence, len(certificate.sizes)
    if certificate.theta and len(certificate.theta) != certificate.registered:
        raise JournalError(
            f"verify: expected theta of {certificate.registered} targets, got {certificate.theta}"
        )
    if certificate.guarantee == "each":
        return [alpha] * count
    discovered, aside = len(certificate.slices), certificate.set_aside
    count -= discovered  # slices share what was set aside, the j-th one 6 / (pi j)^2 of it
    weights = certificate.weights or (1 / count,) * count
    if len(weights) != count or min(weights) < 0 or sum(weights) > 1 + MIN:
        raise JournalError(
            f"verify: expected weights of {count} targets, 0 or more and 1 in all, got {weights}"
        )
    later = [alpha * aside * 6 / (math.pi * j) ** 2 for j in range(1, discovered + 1)]
    return [alpha * (1 - aside) * weight for weight in weights] + later


def _check_aims(certificate: "CertificateFacts", draws: int) -> None:
    """Raise JournalError unless the aims begin at draw 0, follow in order and end at the last."""
    aims = certificate.aims or ((0, certificate.aim),)
    since = [first for first, _ in aims]
    if (
        since[0] != 0
        or since != sorted(set(since))
        or since[-1] > draws
        or aims[-1][1] != certificate.aim
        or not all(0 < aim < 1 for _, aim in aims)
    ):
        raise JournalError(
            f"verify: expected the half-widths aimed at from draw 0 on, in order, the last of them "
            f"{certificate.aim} and of one of {draws} draws, got {list(certificate.aims)}"
        )


def _losses(calls: list[CallRow], certificate: "CertificateFacts | None") -> dict[int, Losses]:
    """Return the losses of every answered question. Raise JournalError unless they are in 0..1."""
    both = certificate is not None and certificate.both
    ratio = certificate is not None and certificate.bets.ratio
    losses: dict[int, Losses] = {}
    for call in calls:
        for row in call.answers:
            if row.loss is not None:
                if not 0 <= row.loss <= 1:  # NaN is not
                    raise JournalError(
                        f"verify: question {row.question}: expected a loss in 0..1, got {row.loss}"
                    )
                excluded = (row.unanswered or "").startswith(EXCLUDED)
                if excluded and ratio:
                    losses[row.question] = (0.0, 0.0, 1)
                elif row.answer is None and (both or excluded):
                    losses[row.question] = (0.0, 1.0, 0)
                else:
                    losses[row.question] = (row.loss, row.loss, 0)
    return losses


class _Game:
    """The game of one target: two bettors play against each mean loss that is still possible.

    ``m`` is a grid of these means. ``rising`` is log K+ against each of them, the wealth of the
    bettor that the mean is larger, and ``falling`` is log K-, of the bettor that it is smaller.

    Args:
        certificate: The audit's certificate.
        k: The target's place in it.
        alpha: The target's share of alpha.
    """

    def __init__(self, certificate: "CertificateFacts", k: int, alpha: float) -> None:
        bets = certificate.bets
        self.size, self.alpha = certificate.sizes[k], alpha
        self.since, first = certificate.since[k], certificate.registered
        self.theta = certificate.theta[k] if k < len(certificate.theta) else EVEN
        self.seen_before = set(certificate.slices[k - first].seen) if k >= first else set()
        self.aims = certificate.aims or ((0, certificate.aim),)
        claim = versus_limit(certificate.versus, k)
        self.limit = certificate.at_most if certificate.decides else claim
        self.by_distance = self.limit is not None and certificate.half_width is None
        self.versus, self.place, self.name = certificate.versus, k, certificate.targets[k]
        self.at_limit = np.zeros(2)  # log K+ and log K- against the limit
        self.best = np.zeros(2)  # the largest values of ``at_limit`` so far
        self.evidence: list[tuple[float, float, float, float]] = []
        self.cap, self.eagerness = bets.cap, bets.eagerness
        self.first, self.most_skew = bets.prior, bets.most_skew
        self.tilts_capped = bets.tilts_capped
        cells = round(1 / bets.cell)
        self.cell = 1 / cells
        self.m = np.array([i / cells for i in range(cells + 1)])
        self.rising, self.falling = np.zeros(cells + 1), np.zeros(cells + 1)
        self.least = self.most = 0.0  # sums of the losses seen, unanswered ones as 0 and as 1
        self.out = self.seen = 0  # questions seen that do not count, and all seen
        self.lower, self.upper = 0.0, 1.0  # the interval that the bets leave
        self.last = 0.0, 1.0  # the last interval that was not empty, by bets and questions seen
        self.emptied = False
        # sum of squared errors over expected variances; number of draws
        self.strayed, self.plays = self.first, 0
        self.precision = self.weighted = self.prior = 0.0  # of the centre
        self.weight = self.total = self.counted = 0.0  # of the estimate and the counting share

    def replay(
        self, draws: list[DrawRow], losses: Mapping[int, Losses], questions: dict[int, list[int]]
    ) -> None:
        """Play answered draws in order.

        Args:
            draws: The draws.
            losses: Losses by question.
            questions: The questions of each call.
        """
        answered: set[int] = set()
        for draw in draws:
            row = draw.moves[self.place] if draw.draw >= self.since else None
            earlier = [q for q in questions[draw.call] if q in self.seen_before]
            members = earlier if row is None else row.members
            if answered.intersection(members):
                raise JournalError(
                    f"verify: draw {draw.draw} counts a question of {self.name!r} twice"
                )
            answered.update(members)
            least, most, out = (sum(losses[q][part] for q in members) for part in range(3))
            self.play(row, least, most, int(out))
            self.seen = len(answered)
            low, high = self.interval()
            if low <= high + MIN:  # an interval that becomes empty is replaced by the one before
                self.last = low, high
            else:
                self.emptied = True
            up, down = self.best.tolist()
            self.evidence.append((up, down, *self.possible()))

    def centre(self) -> float:
        """Return the mean loss that the bets expect, from earlier pseudo-outcomes and a prior."""
        if self.precision + self.prior == 0:
            return 0.5
        mean = (self.weighted + 0.5 * self.prior) / (self.precision + self.prior)
        return min(max(mean, 0.02), 0.98)

    def estimate(self) -> float:
        """Return the weighted mean of the pseudo-outcomes, per question that counts."""
        return self.total / self.weight / self.share() if self.weight else 0.5

    def share(self) -> float:
        """Return the share of questions that count, estimated from the draws."""
        return min(max(self.counted / self.weight, MIN_SHARE), 1) if self.weight else 1.0

    def play(self, row: MoveRow | None, least: float, most: float, out: int) -> None:
        """Play one draw.

        Args:
            row: The figures that were fixed before the draw. None for a draw before the target was
                discovered, on which there was no bet.
            least: Sum of its losses, unanswered ones as 0.
            most: Sum of its losses, unanswered ones as 1.
            out: Number of its questions that do not count. Against a mean, each has that mean as
                its loss.
        """
        if row is None:
            self.plays += 1
        else:
            self._bet_on(row, least, most, out)
        self.least += least
        self.most += most
        self.out += out

    def _bet_on(self, row: MoveRow, least: float, most: float, out: int) -> None:
        """Settle the bets on one draw; see ``play``."""
        move = dict(zip(FIGURES, row.figures, strict=True))
        size, centre = self.size, self.centre()
        foreseen = max(move["foreseen"] / size**2, MIN)
        # the pseudo-outcome a = (S + base + r (L_I - F_I) / q(I)) / N of either end
        low = self.least + move["low_base"] + move["scale"] * (least - move["low_predicted"])
        high = self.most + move["high_base"] + move["scale"] * (most - move["high_predicted"])
        low, high = low / size, high / size
        if row.active:
            out_now = move["scale"] * out / size
            up, down = self._gains(self.m, move, low, high, out_now)
            self.rising += up
            self.falling += down
            if self.limit is not None:
                limit = np.array([self.limit])
                self.at_limit += np.concatenate(self._gains(limit, move, low, high, out_now))
                self.best = np.maximum(self.best, self.at_limit)
        without = (self.out + move["scale"] * out) / size
        self._learn(row.active, (low + high) / 2 + centre * without, without, foreseen)
        if row.active:
            self._narrow()

    def _gains(
        self, m: Any, move: dict[str, float], low: float, high: float, out_now: float
    ) -> tuple[Any, Any]:
        """Return the gains of a draw in log K+ and log K- against each of means ``m``.

        The gains are log(1 + bet (a - m)) and log(1 - bet (a - m)) for the pseudo-outcome a, as in
        section "Bets" of ``docs/guarantee.md``. A bet is capped so that it loses less than
        everything at the worst pseudo-outcome. Each question that does not count has the loss m,
        so m is compared as m (1 - out / N).

        Args:
            m: The means.
            move: The figures that were fixed before the draw, by name.
            low: The pseudo-outcome of the least losses.
            high: The pseudo-outcome of the largest losses.
            out_now: Weight of the draw's questions that do not count.
        """
        size, away = self.size, m - self.centre()
        most_down, most_up = move["tilt_bound"] / size, 1 - self.seen / size  # of the tilt
        counting = m * (1 - self.out / size)
        moved = away * (move["tilt"] / size)
        from_mean = m * out_now - counting
        bet = self._bet(m, move["foreseen"] / size**2)
        # the distances from the mean to the least and the largest possible pseudo-outcome
        above = counting - (self.least + move["lo"]) / size
        below = (self.most + move["hi"]) / size - counting
        # moved predictions need more room, so they are not moved where that would cap the bet
        more_above = np.where(away > 0, away * most_down, -away * most_up)
        more_below = np.where(away > 0, away * most_up, -away * most_down)
        cap = self.cap * (1 + ROUNDING)
        free_up = (bet * (above + more_above) <= cap) | self.tilts_capped
        free_down = (bet * (below + more_below) <= cap) | self.tilts_capped
        up = np.minimum(bet, self.cap / np.maximum(above + free_up * more_above, NOTHING))
        down = np.minimum(bet, self.cap / np.maximum(below + free_down * more_below, NOTHING))
        return (
            np.log1p(up * (from_mean + free_up * moved + low)),
            np.log1p(-down * (from_mean + free_down * moved + high)),
        )

    def _bet(self, m: Any, foreseen: float) -> Any:
        """Return the bet against each of means ``m``, before it is capped.

        It is eagerness * aim / variance: the expected distance from the mean over the variance.
        """
        centre = self.centre()
        aim = next(aim for first, aim in reversed(self.aims) if first <= self.plays)
        if self.versus is not None:
            aim = versus_aim(self.versus, self.place, centre)
        elif self.by_distance and self.limit is not None:
            aim = min(max(abs(centre - self.limit), MIN_AIM), aim)
        skew = m * (1 - m) / (centre * (1 - centre))
        skew = np.minimum(np.maximum(skew, 1 / self.most_skew), self.most_skew)
        variance = max(foreseen * self.strayed / (self.first + self.plays - self.since), MIN)
        return self.eagerness * aim * self.share() / (variance * skew)

    def _learn(self, active: bool, outcome: float, out: float, foreseen: float) -> None:
        """Update centre, estimate and spread from a draw.

        Args:
            active: Whether the draw moves the target.
            outcome: Its pseudo-outcome, with the centre as the loss of questions that do not count.
            out: Weight of these questions.
            foreseen: Variance that was expected of the pseudo-outcome.
        """
        centre = self.centre()
        if self.plays == self.since:
            self.prior = self.first / foreseen
        self.strayed += (outcome - centre) ** 2 / foreseen if active else 1.0
        if active:
            weight = centre * (1 - centre) / foreseen
            self.weight += weight
            self.total += weight * (outcome - centre * out)
            self.counted += weight * (1 - out)
            self.precision += 1 / foreseen
            self.weighted += outcome / foreseen
        self.plays += 1

    def _narrow(self) -> None:
        """Narrow the interval to the means that the bets leave, and drop all others for good."""
        places = range(len(self.m))
        first, last = self._first_left(places), self._first_left(reversed(places))
        if first is None or last is None:
            self.emptied |= self.upper - self.lower > BETWEEN * self.cell
            return
        lower, upper = max(self.lower, first - self.cell), min(self.upper, last + self.cell)
        if (lower, upper) == (self.lower, self.upper):
            return
        self.lower, self.upper = lower, upper
        edge = self.cell / 2
        start, stop = np.searchsorted(self.m, [lower - edge, upper + edge])
        columns = (self.m, self.rising, self.falling)
        self.m, self.rising, self.falling = (c[start:stop] for c in columns)

    def _first_left(self, places: Iterable[int]) -> float | None:
        """Return the first mean, in the order of ``places``, that the bettors did not exclude."""
        enough = -math.log(self.alpha) if self.alpha else math.inf
        for place in places:
            up = self.rising[place] + math.log(self.theta)
            wealth = np.logaddexp(up, self.falling[place] + math.log(1 - self.theta))
            if wealth < enough:
                return float(self.m[place])
        return None

    def interval(self) -> tuple[float, float]:
        """Return the means that both the bets and the losses seen leave."""
        least, most = self.possible()
        return max(self.lower, least), min(self.upper, most)

    def disagreeing(self) -> bool:
        """Return whether the draws contradict the interval that the bets leave.

        They do if their mean is outside by at least a standard error, or if both their mean and the
        bets' centre are outside.
        """
        if not self.weight:
            return False
        strayed = self.strayed / (self.first + self.plays - self.since)
        error = math.sqrt(strayed / (self.precision * self.share() ** 2))
        mean = self.estimate()
        both = self._outside(mean, MIN) and self._outside(self.centre(), MIN)
        return both or self._outside(mean, max(error, MIN))

    def _outside(self, value: float, by: float) -> bool:
        """Return whether a value is outside the interval that the bets leave, by ``by`` or more."""
        least, most = self.possible()
        value = min(max(value, least), max(least, most))
        return not self.lower - by <= value <= self.upper + by

    def possible(self) -> tuple[float, float]:
        """Return the least and the largest rate that unseen questions allow."""
        counting = self.size - self.out
        if not counting:
            return 0.0, 1.0
        return self.least / counting, (self.most + self.size - self.seen) / counting


def _check_complete(draws: list[DrawRow], calls: list[CallRow]) -> None:
    """Raise JournalError unless draws are numbered 0, 1, 2 ... and every call was drawn."""
    for number, draw in enumerate(draws):
        if draw.draw != number:
            raise JournalError(f"verify: draw {number} is missing")
    drawn = {draw.call for draw in draws}
    for call in calls:
        if call.call not in drawn:
            raise JournalError(f"verify: the draw of call {call.call} is missing")


def _check_intervals(
    statuses: list[TargetStatus], rows: list[JsonObject], certificate: "CertificateFacts"
) -> None:
    """Raise JournalError if the journaled row of a target differs from its recomputed status."""
    for status, row in zip(statuses, rows, strict=True):
        names = ["target", "lower", "upper", "half_width", "pseudo_outcome_mean"]
        names += ["decided"] * certificate.decides + ["decision"] * (certificate.versus is not None)
        decided = certificate.decides and certificate.half_width is None
        decided |= certificate.versus is not None
        aim = status.id.scale * certificate.aim
        if decided or abs(status.half_width - aim) > AGREE:  # else rounding may decide
            names.append("certified")
        computed = status.row()
        if wrong := [name for name in names if not _agrees(computed.get(name), row.get(name))]:
            raise JournalError(
                f"verify: {status.name!r}: the rows come to [{status.lower:.4f}, "
                f"{status.upper:.4f}] around {status.estimate:.4f}, the journal says otherwise: "
                + ", ".join(f"{name} {row.get(name)}" for name in wrong)
            )
        # the estimate uses predictions that no journal holds, so it cannot be recomputed
        estimate: Any = row.get("estimate")
        number = isinstance(estimate, int | float) and not isinstance(estimate, bool)
        if not number or not status.lower - AGREE <= estimate <= status.upper + AGREE:
            raise JournalError(
                f"verify: {status.name!r}: expected an estimate within [{status.lower:.4f}, "
                f"{status.upper:.4f}], the journal says {estimate}"
            )


def _agrees(computed: Any, stated: Any) -> bool:
    """Return whether two values are equal up to rounding."""
    if isinstance(computed, float) and isinstance(stated, float):
        return abs(computed - stated) <= AGREE
    return bool(computed == stated)


# -- decisions, by a limit or between two models -------------------------------------------------

FEW = 2
"""Largest number of targets whose decisions each keep their share of alpha; see ``decided``."""
Evidence = tuple[float, float, float, float]
"""The largest log K+ and log K- against the limit so far, and the least and the largest rate that
unseen questions allow."""


def decided(
    evidence: list[list[Evidence]],
    levels: list[float],
    limits: list[float],
    shared: bool,
    thetas: list[float] | None = None,
) -> list[str]:
    """Return the decided side of each target's limit: "above", "below" or "open".

    If more than FEW targets share alpha, a decided target leaves its share to those that are open.

    Args:
        evidence: For each target, one ``Evidence`` per draw.
        levels: Every target's alpha.
        limits: Every target's limit, a rate in (0, 1).
        shared: Whether all decisions hold at the same time.
        thetas: Every target's share of its alpha for "above" if the same alpha pays for intervals,
            else None.
    """
    sides = ["open"] * len(levels)
    for latest in zip(*evidence, strict=True):
        for k, (_, _, least, most) in enumerate(latest):
            if sides[k] == "open" and (least > limits[k] or most <= limits[k]):
                sides[k] = "above" if least > limits[k] else "below"
        changed = True
        while changed:  # a decision may lower the thresholds of the others
            changed = False
            thresholds = [_thresholds(sides, levels, k, shared, thetas) for k in range(len(levels))]
            for k, (up, down, _, _) in enumerate(latest):
                above, below = up >= thresholds[k][0], down >= thresholds[k][1]
                if sides[k] == "open" and (above or below):
                    sides[k] = "above" if above else "below"
                    changed = True
    return sides


def _thresholds(
    sides: list[str], levels: list[float], k: int, shared: bool, thetas: list[float] | None
) -> tuple[float, float]:
    """Return the log-wealth at which target ``k`` is decided to lie above and below its limit."""
    if levels[k] == 0:
        return math.inf, math.inf
    if thetas is not None:
        return -math.log(levels[k] * thetas[k]), -math.log(levels[k] * (1 - thetas[k]))
    if not shared or len(levels) <= FEW:
        return -math.log(levels[k]), -math.log(levels[k])
    half = sum(levels) / 2
    left = [
        sum(level for level, side in zip(levels, sides, strict=True) if side != direction)
        for direction in ("above", "below")
    ]
    up, down = (math.log(alpha / (half * levels[k])) if alpha else -math.inf for alpha in left)
    return up, down


VERSUS_MIN_AIM, VERSUS_MAX_AIM = 0.0025, 0.1
"""Least and largest half-width that bets aim at where models are compared."""


def _pivot(versus: "VersusFacts", k: int) -> float:
    """Return the rate at which both models are equally good; one for all targets, or one each."""
    return versus.pivot[k] if len(versus.pivot) > 1 else versus.pivot[0]


def versus_limit(versus: "VersusFacts | None", k: int) -> float | None:
    """Return the rate at which target ``k`` just misses the claim; None without a claim."""
    if versus is None or versus.at_least is None:
        return None
    return _pivot(versus, k) + (versus.at_least - ROUNDING) / versus.scale


def versus_decision(
    versus: "VersusFacts", k: int, lower: float, upper: float, side: str | None
) -> str:
    """Return what the interval of target ``k`` decides: "better", "worse", "within" or "open".

    For a claim, the decided ``side`` of the limit makes it "holds", "fails" or "open".
    """
    if versus.at_least is not None:
        verdicts = ("holds", "fails") if versus.scale > 0 else ("fails", "holds")
        return {"above": verdicts[0], "below": verdicts[1]}.get(side or "", "open")
    low, high = (versus.scale * (end - _pivot(versus, k)) for end in (lower, upper))
    if versus.scale < 0:
        low, high = high, low
    if low > ROUNDING:
        return "better"
    if high < -ROUNDING:
        return "worse"
    return "within" if max(-low, high) <= versus.margin + ROUNDING else "open"


def versus_aim(versus: "VersusFacts", k: int, centre: float) -> float:
    """Return the half-width at which target ``k`` would be decided if its rate were ``centre``."""
    claim = versus_limit(versus, k)
    away = abs(centre - (_pivot(versus, k) if claim is None else claim))
    needed = max(away, versus.margin / abs(versus.scale) - away)
    return min(max(needed, VERSUS_MIN_AIM), VERSUS_MAX_AIM)
