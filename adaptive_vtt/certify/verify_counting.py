"""Every call and every rate anew of an audit that asks everything: see ``counting``.

Code of its own, as in ``verify``: from the rows, the truths and the targets' masks in the journal.
What is checked:

- the calls are those that answer a question, in ascending order, without a gap; nothing was drawn,
  so each has probability 1, no proposal, and no bet;
- the questions that count for a target are those that its definition selects;
- every rate and count of the journal's row of a target follows from the answers.

Of a dataset so large that the journal does not hold the truths, only the order of the calls is
checked.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import JournalError
from ..journal.rows import EXCLUDED, CallRow, DrawRow
from ..types import Floats, Indices, JsonObject
from .status import TargetStatus
from .verify_draws import UNKNOWN, Membership

if TYPE_CHECKING:
    from ..journal.facts import CertificateFacts, Facts

AT_ONCE = 2**22
AGREE = 1e-9
COUNTS = ("questions", "excluded", "unanswered", "images", "size")
ENDS = ("estimate", "lower", "upper", "half_width")


def check_order(facts: "Facts", draws: Sequence[DrawRow]) -> None:
    """Raises JournalError naming the first call that is not the next one in order."""
    calls = np.array([draw.call for draw in draws], np.int64)
    for draw in draws:
        if draw.probability != 1 or draw.proposal or draw.moves or draw.learned:
            raise JournalError(
                f"verify: draw {draw.draw}: expected probability 1 and no proposal, bet or answer "
                "that it knew, as every question is asked in order"
            )
    if facts.population:
        expected = _calls(facts.population, facts)[: len(calls)]
        wrong = np.flatnonzero(expected != calls[: len(expected)])
        if len(wrong) or len(expected) < len(calls):
            place = int(wrong[0]) if len(wrong) else len(expected)
            raise JournalError(
                f"verify: draw {place} is call {calls[place]}, which is not the next one in order"
            )
    elif (np.diff(calls) <= 0).any():
        raise JournalError("verify: expected calls in ascending order, got others")


def _calls(population: JsonObject, facts: "Facts") -> Indices:
    """Every call that answers a question, ascending."""
    members = Membership(population, [])
    known = members.truths[members.rows] != UNKNOWN  # samples x concepts
    open_ = known[:, None, :] & members.applicable[None]  # samples x variants x concepts
    if facts.settings.answers == "all":
        open_ = open_.any(axis=2)
    return np.flatnonzero(open_)


def counted(
    certificate: "CertificateFacts", population: JsonObject | None, calls: Sequence[CallRow]
) -> list[TargetStatus]:
    """Return where every target stands; raises JournalError where the journal does not
    hold the truths that tell which questions a target has."""
    if population is None:
        raise JournalError(
            "journal: the dataset is too large for its truths to stand in the journal, so rates "
            "are known once every question was asked; go on until then"
        )
    members = Membership(population, population["targets"])
    targets = len(certificate.sizes)
    if [members.size(k) for k in range(targets)] != list(certificate.sizes):
        raise JournalError("verify: the targets' sizes are not what their definitions come to")
    judged = [a for call in calls for a in call.answers if a.loss is not None]
    numbers = np.array([a.question for a in judged], np.int64)
    if len(np.unique(numbers)) < len(numbers):
        raise JournalError("verify: a question was answered twice")
    table = np.array([_told(a, both=certificate.both) for a in judged]).reshape(-1, 4)
    sums, images = np.zeros((targets, 5)), np.zeros((targets, len(members.rows)), bool)
    step = max(1, AT_ONCE // max(1, targets))
    for start in range(0, len(numbers), step):
        part = slice(start, start + step)
        inside = members.inside(numbers[part])  # n x K
        some = np.column_stack([table[part], np.ones(len(inside))])
        sums += inside.T.astype(float) @ some
        place, target = np.nonzero(inside & (table[part, 2:3] == 0))
        images[target, members.numbering.parts(numbers[part])[0][place]] = True
    counts = zip(sums, images.sum(axis=1), strict=True)
    return [_status(certificate, k, *count) for k, count in enumerate(counts)]


def _told(answer: Any, *, both: bool) -> tuple[float, float, float, float]:
    """The loss at least and at most, whether it is excluded, whether it went unanswered."""
    if not 0 <= answer.loss <= 1:  # NaN is not
        raise JournalError(
            f"verify: question {answer.question}: expected a loss in 0..1, got {answer.loss}"
        )
    if (answer.unanswered or "").startswith(EXCLUDED):
        return 0.0, 0.0, 1.0, 0.0
    if answer.answer is None:
        return (0.0, 1.0, 0.0, 1.0) if both else (answer.loss, answer.loss, 0.0, 1.0)
    return answer.loss, answer.loss, 0.0, 0.0


def _status(certificate: "CertificateFacts", k: int, sums: Floats, images: int) -> TargetStatus:
    least, most, out, silent, answered = sums.tolist()
    size = certificate.sizes[k]
    left = size - out
    lower, upper = (least / left, (most + size - answered) / left) if left else (0.0, 1.0)
    mean = (least + most) / 2 / (answered - out) if answered > out else 0.5
    measured = certificate.ids[k].measured
    return TargetStatus(
        id=certificate.ids[k],
        estimate=measured(min(max(mean, lower), upper)),
        lower=measured(lower),
        upper=measured(upper),
        certified=upper - lower <= AGREE,
        size=size,
        questions=int(answered),
        excluded=int(out),
        unanswered=int(silent),
        images=int(images),
    )


def compare(statuses: Sequence[TargetStatus], stated: Sequence[JsonObject]) -> None:
    """Raises JournalError naming the first target of which the journal says something else."""
    for ours, row in zip((status.row() for status in statuses), stated, strict=True):
        same = {name: row.get(name) == ours[name] for name in ("target", "certified", *COUNTS)}
        same |= {name: _close(row.get(name), ours[name]) for name in ENDS}
        if wrong := [name for name, agrees in same.items() if not agrees]:
            raise JournalError(
                f"verify: {ours['target']!r}: the rows come to {ours[wrong[0]]}, the journal says "
                f"otherwise: " + ", ".join(f"{name} {row.get(name)}" for name in wrong)
            )


def _close(stated: Any, computed: float) -> bool:
    return isinstance(stated, int | float) and abs(stated - computed) <= AGREE
