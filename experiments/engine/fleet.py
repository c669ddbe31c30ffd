"""A fleet of audits under one cap: what allocation gains.

allocation: six audits of simulated models that differ in error rate, price and in what is asked of
them. What an audit draws does not depend on when it may draw, so each is run once to its end, and
every policy is played on what was recorded: 16 calls at a time, as leases are. Caps are shares of
what certifying everything takes. "certified" is the number of certified targets (of all members)
when the money is gone, mean over seeds; "all" the money until all are, over what they take.

- equal: a part of the cap for each member, and what it leaves is left
- in turn: 16 calls each, round and round, while the money lasts
- narrowing: first where half-widths are expected to narrow most, relatively, per money
- fleet: by ``audit.fleet.leasing``
- foreseen: first who truly takes the least money per target, which nobody can know
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adaptive_vtt.audit import Audit, Progress
from adaptive_vtt.audit.fleet.leasing import CALLS, Outlook
from adaptive_vtt.engine.leasing import account_of
from adaptive_vtt.models.local.simulated import Simulated
from adaptive_vtt.space import QuestionSpace
from adaptive_vtt.testing import TiledDataset
from adaptive_vtt.types import Answer, Floats, Prompt, Unanswered

from ..program import Row, options, told

SAMPLES = 500
CAPS = (0.25, 0.5, 0.75)
MEMBERS = (
    # error rate, price of a call, half-width
    (0.05, 1.0, 0.10),
    (0.30, 1.0, 0.10),
    (0.15, 4.0, 0.10),
    (0.10, 1.0, 0.06),
    (0.25, 0.3, 0.08),
    (0.20, 2.0, 0.12),
)


class Priced(Simulated):
    """A simulated model whose calls cost something."""

    price = 1.0

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        said = super().ask(prompts)
        return [Answer(a.values, self.price) if isinstance(a, Answer) else a for a in said]


@dataclass(frozen=True)
class Course:
    """An audit as it went, after every call: the money (n,), which targets were settled (n, K), the
    gain that ``audit.fleet.leasing`` saw, and the relative narrowing expected per money (n,)."""

    money: Floats
    settled: Any
    gain: Floats
    narrowing: Floats

    @property
    def whole(self) -> float:
        """What it took."""
        return float(self.money[-1])

    @property
    def targets(self) -> int:
        return int(self.settled.shape[1])

    def at(self, calls: int) -> float:
        """The money after so many calls."""
        return float(self.money[calls])


def course(member: int, seed: int) -> Course:
    """Runs one audit to its end."""
    error, price, half_width = MEMBERS[member]
    truths = np.random.default_rng(seed).integers(0, 2, (50, 3))
    data = TiledDataset(truths, SAMPLES)
    model = Priced(
        data, dict.fromkeys(data.concepts, 1 - error), seed=seed, answers="all", name=f"m{member}"
    )
    model.price = model.most_cost = price
    audit = Audit(
        QuestionSpace(data, ["identity"]),
        model,
        half_width=half_width,
        targets=["overall", "concepts"],
        surrogate=False,
        candidates=512,
        seed=1000 * seed + member,
    )
    outlook, rows = Outlook(audit, paid=True), []

    def note(_: Progress | None) -> None:
        certifier, account = audit.belief.certifier, account_of(audit._loop, audit.model, 1)
        if certifier is None:
            return
        open_ = ~certifier.settled
        narrowing = int(open_.sum()) / (2 * max(1, certifier.sequences.moves) * price)
        rows.append((account.spent, certifier.settled, outlook.gain(account), narrowing))

    note(None)
    audit.run(note)
    money, settled, gain, narrowing = zip(*rows, strict=True)
    return Course(np.array(money), np.array(settled), np.array(gain), np.array(narrowing))


Policy = Callable[[list[Course], list[int]], int]
"""The member that goes next, of those not ended, by the calls that each made."""


def largest(worth: Callable[[Course, int], float]) -> Policy:
    def policy(courses: list[Course], made: list[int]) -> int:
        open_ = [m for m, c in enumerate(courses) if made[m] < len(c.money) - 1]
        return max(open_, key=lambda m: worth(courses[m], made[m]))

    return policy


POLICIES: dict[str, Policy] = {
    "in turn": largest(lambda course, made: -made),
    "narrowing": largest(lambda course, made: float(course.narrowing[made])),
    "fleet": largest(lambda course, made: float(course.gain[made])),
    "foreseen": largest(lambda c, n: float((~c.settled[n]).sum()) / (c.whole - c.at(n))),
}


def played(courses: list[Course], cap: float, policy: Policy) -> int:
    """Targets that are certified when the money is gone."""
    made, left = [0] * len(courses), cap
    while any(n < len(c.money) - 1 for n, c in zip(made, courses, strict=True)):
        member = policy(courses, made)
        course, start = courses[member], made[member]
        end = min(start + CALLS, len(course.money) - 1)
        while end > start and course.at(end) - course.at(start) > left + 1e-9:
            end -= 1
        left -= course.at(end) - course.at(start)
        made[member] = end
        if end == start:  # cannot afford its next call: the others go on without it
            courses = [_ended(c, made[m]) if m == member else c for m, c in enumerate(courses)]
    return sum(int(c.settled[n].sum()) for c, n in zip(courses, made, strict=True))


def _ended(course: Course, calls: int) -> Course:
    """As far as it came."""
    end = calls + 1
    return Course(
        course.money[:end], course.settled[:end], course.gain[:end], course.narrowing[:end]
    )


def equal(courses: list[Course], cap: float) -> int:
    """Targets that are certified where each member has a part of its own."""
    made = [int((c.money <= cap / len(courses) + 1e-9).sum()) - 1 for c in courses]
    return sum(int(c.settled[n].sum()) for c, n in zip(courses, made, strict=True))


def allocation(seeds: int) -> list[Row]:
    found: dict[str, list[list[float]]] = {name: [] for name in ("equal", *POLICIES)}
    targets = 0
    for seed in range(seeds):
        courses = [course(member, seed) for member in range(len(MEMBERS))]
        whole, targets = sum(c.whole for c in courses), sum(c.targets for c in courses)
        most = len(courses) * max(c.whole for c in courses)
        caps = [share * whole for share in CAPS]
        found["equal"].append([*(equal(courses, cap) for cap in caps), most / whole])
        for name, policy in POLICIES.items():
            found[name].append([*(played(courses, cap, policy) for cap in caps), 1.0])
    rows = []
    for name, runs in found.items():
        *certified, money = np.mean(runs, axis=0)
        told = {
            f"at {cap:.0%}": f"{mean:.1f} ({min(r[k] for r in runs):.0f}-"
            f"{max(r[k] for r in runs):.0f})"
            for k, (cap, mean) in enumerate(zip(CAPS, certified, strict=True))
        }
        rows.append({"policy": name, **told, "of": targets, "all": round(float(money), 2)})
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = options(__doc__, arguments, quick={"seeds": 2}, seeds=10)
    told(allocation(chosen.seeds), chosen.out / "fleet.csv")


if __name__ == "__main__":
    main()
