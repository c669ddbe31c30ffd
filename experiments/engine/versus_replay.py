"""Count the calls of model B until its difference from A is decided, after A's own audit.

    python -m adaptive_vtt.experiments.engine.versus_replay --seeds 3

The models are those of ``versus``. A's audit draws 400 questions. B is then asked the same
questions in their order, for one call each. A run that is not decided by then continues with both
models. "covered" counts runs in which the interval held the truth at every moment.

``--only room`` compares the interval of y = (1 + L_A - L_B) / 2 after 400 questions that were drawn
by A's audit, by proposals for both models, or uniformly.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import numpy as np
import pandas as pd

from adaptive_vtt.certify import Bet
from adaptive_vtt.certify.decisions import Comparison
from adaptive_vtt.engine.proposals import Proposal
from adaptive_vtt.engine.selector import Draw
from adaptive_vtt.journal.rows import DrawRow
from adaptive_vtt.strategies import get

from ..program import Row, in_processes, options, save_table, show
from .certificates import UNIFORM_EXPLORATION
from .versus import ALPHA, EARLIER, NON_INFERIOR, Half, Task, benches, decisions

MAX = 16_000


class Drawn:
    """Draws of an audit without a journal, with the interface of ``engine.proposals.Replay``."""

    def __init__(self, draws: Sequence[Draw], rows: Sequence[DrawRow]) -> None:
        self._proposals, self._rows = [draw.proposal for draw in draws], rows

    def at(self, number: int) -> DrawRow | None:
        """Return the draw of this number, or None after the last."""
        return self._rows[number] if number < len(self._rows) else None

    def proposal(self, number: int) -> Proposal:
        """Return the proposal of the draw of this number."""
        return self._proposals[number]


def audited(seed: int) -> Drawn:
    """Return the draws of A's audit."""
    half, draws, rows = Half(Task("apart", True, 0.0, seed), "a", None, ALPHA), [], []
    selector = half.selector
    for number in range(EARLIER):
        draw = selector.draw(1)
        if draw is None:
            break
        question = np.array([draw.question])
        draws.append(draw)
        rows.append(selector.row(draw, question, number, 0.0))
        selector.take(question, draw.bet)
        selector.learn([half._learnt(draw.question)])
    return Drawn(draws, rows)


def run(limit: float, seed: int) -> Row:
    """Ask until the interval of the difference lies above ``limit``, or below it."""
    a, b = benches()
    true = float(a.losses.mean() - b.losses.mean())
    compare = Comparison(margin=max(-limit, 0.0))
    half = Half(Task("paired", True, limit, seed), "paired", compare, ALPHA)
    replay: Any = audited(seed)
    half.selector.replay = replay
    calls, held, decided = 0, True, False
    while calls < MAX and not decided:
        first = replay.at(half.selector.draws) is not None
        if not half.step():
            break
        calls += 1 if first else 2
        ends = compare.differences(*(np.array([end]) for end in half.ends))
        lower, upper = float(ends[0][0]), float(ends[1][0])
        held &= lower - 1e-9 <= true <= upper + 1e-9
        decided = lower > limit or upper < limit
    goal = "sign" if limit == 0 else f"above {limit:g}"
    return {"goal": goal, "calls": calls, "decided": decided, "covered": held}


def interval_figures(way: str, seed: int) -> Row:
    """Return figures of the interval of y's mean after EARLIER questions.

    They are its half-width, and over the second half of the draws the variance of corrections, and
    half the range that bets allow for them.

    Args:
        way: Who proposes the questions: "replay" (A's audit), "pair" (both models) or "uniform".
        seed: Seed of the run.
    """
    half = Half(Task("paired", True, 0.0, seed), "paired", Comparison(), ALPHA)
    selector, certifier = half.selector, half.selector.belief.certifying
    if way == "replay":
        selector.replay = cast(Any, audited(seed))
    if way == "uniform":
        selector.strategy, selector.exploration = get("random"), UNIFORM_EXPLORATION
    corrections, rooms, size = [], [], certifier.sizes[0]
    while selector.draws < EARLIER and (draw := selector.draw(1)) is not None:
        bet, learnt = cast(Bet, draw.bet), half._learnt(draw.question)
        residual = learnt.loss - (bet.low_predicted[0] + bet.high_predicted[0]) / 2
        corrections.append(bet.scale[0] * residual / size)
        rooms.append((bet.hi[0] - bet.lo[0]) / size / 2)
        selector.take(np.array([draw.question]), draw.bet)
        selector.learn([learnt])
    late = slice(EARLIER // 2, None)
    lower, upper = half.ends
    return {
        "drawn by": way,
        "half-width": (upper - lower) / 2,
        "variance": float(np.mean(np.square(corrections[late]))),
        "room": float(np.mean(rooms[late])),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = options(__doc__, arguments, quick={"seeds": 1}, seeds=20, workers=2, only="calls")
    if chosen.only == "room":
        ways = ("replay", "pair", "uniform")
        runs = pd.DataFrame([interval_figures(way, s) for s in range(chosen.seeds) for way in ways])
        show(runs.groupby("drawn by", sort=False).mean().round(4), index=True)
        return
    rows = [
        row
        for limit in (0.0, NON_INFERIOR)
        for row in in_processes(partial(run, limit), range(chosen.seeds), chosen.workers)
    ]
    save_table(decisions(rows, "goal"), chosen.out / "versus-replay.csv", index=True)


if __name__ == "__main__":
    main()
