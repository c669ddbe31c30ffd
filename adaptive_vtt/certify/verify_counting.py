"""Recompute the rates of an audit that asks every question (``audit.in_order``).

Like ``verify``, this module shares no code with the engine. It needs only the rows, the truths and
the targets' masks in the journal, and checks that

- the calls are all those that ask a question with a known truth, in ascending order without a gap;
  nothing was drawn, so each has probability 1, no proposal and no bet;
- each target's definition selects the questions that count for it;
- every rate and count in the journal's row of a target follows from the answers.

The journal holds no truths of a very large dataset. Then only the order of the calls is checked.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import JournalError
from ..journal.rows import EXCLUDED, CallRow, DrawRow
from ..types import Floats, JsonObject
from .status import TargetStatus
from .verify_draws import UNKNOWN, Membership

if TYPE_CHECKING:
    from ..journal.facts import CertificateFacts, Facts

AT_ONCE = 2**22
"""Answers times targets that are looked at in one step, which bounds memory."""
AGREE = 1e-9
"""Largest difference between two computations of a rate."""
COUNTS = ("questions", "excluded", "unanswered", "images", "size")
"""Columns of a target's row that must be equal."""
ENDS = ("estimate", "lower", "upper", "half_width")
"""Columns of a target's row that must agree but for rounding."""


def check_order(facts: "Facts", draws: Sequence[DrawRow]) -> None:
    """Check that calls were made in order, without a gap, a proposal or a bet.

    Raises:
        JournalError: A call is not the next one; the message names the first.
    """
    calls = np.array([draw.call for draw in draws], np.int64)
    for draw in draws:
        if draw.probability != 1 or draw.proposal or draw.moves or draw.learned:
            raise JournalError(
                f"verify: draw {draw.draw}: expected probability 1 and no proposal, bet or known "
                "answer, as every question is asked in order"
            )
    if facts.population:
        members = Membership(facts.population, [])
        known = members.truths[members.rows] != UNKNOWN  # samples x concepts
        asked = known[:, None, :] & members.applicable[None]  # samples x variants x concepts
        if facts.settings.answers == "all":
            asked = asked.any(axis=2)
        expected = np.flatnonzero(asked)[: len(calls)]
        wrong = np.flatnonzero(expected != calls[: len(expected)])
        if len(wrong) or len(expected) < len(calls):
            place = int(wrong[0]) if len(wrong) else len(expected)
            raise JournalError(
                f"verify: draw {place} is call {calls[place]}, which is not the next one in order"
            )
    elif (np.diff(calls) <= 0).any():
        raise JournalError("verify: expected calls in ascending order, got others")


def counted(
    certificate: "CertificateFacts", population: JsonObject | None, calls: Sequence[CallRow]
) -> list[TargetStatus]:
    """Return the status of every target, from the answers so far.

    Args:
        certificate: The fact "certificate".
        population: The fact "population", None where the dataset is too large for it.
        calls: All answered calls.

    Raises:
        JournalError: There is no population, or it contradicts the certificate, or an answer is
            impossible.
    """
    if population is None:
        raise JournalError(
            "journal: the dataset is too large for the journal to hold its truths, so rates are "
            "known only after every question was asked; continue until then"
        )
    members = Membership(population, population["targets"])
    targets = len(certificate.sizes)
    if [members.size(k) for k in range(targets)] != list(certificate.sizes):
        raise JournalError("verify: the targets' sizes are not what their definitions come to")
    judged = [a for call in calls for a in call.answers if a.loss is not None]
    numbers = np.array([a.question for a in judged], np.int64)
    if len(np.unique(numbers)) < len(numbers):
        raise JournalError("verify: a question was answered twice")
    table = np.array([_judged(a, both=certificate.both) for a in judged]).reshape(-1, 4)
    sums, images = np.zeros((targets, 5)), np.zeros((targets, len(members.rows)), bool)
    step = max(1, AT_ONCE // max(1, targets))
    for start in range(0, len(numbers), step):
        part = slice(start, start + step)
        inside = members.inside(numbers[part])  # n x K
        sums += inside.T.astype(float) @ np.column_stack([table[part], np.ones(len(inside))])
        place, target = np.nonzero(inside & (table[part, 2:3] == 0))  # not those excluded
        images[target, members.numbering.parts(numbers[part])[0][place]] = True
    counts = zip(sums, images.sum(axis=1), strict=True)
    return [_status(certificate, k, *count) for k, count in enumerate(counts)]


def _judged(answer: Any, *, both: bool) -> tuple[float, float, float, float]:
    """Return an answer's least and largest loss, and 1 or 0: is excluded, is unanswered."""
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
    """Compare recomputed statuses with the journal's rows of the same targets.

    Raises:
        JournalError: A row differs; the message names the first.
    """
    for computed, row in zip((status.row() for status in statuses), stated, strict=True):
        wrong = [n for n in ("target", "certified", *COUNTS) if row.get(n) != computed[n]]
        for name in ENDS:
            end = row.get(name)
            if not isinstance(end, int | float) or not abs(end - computed[name]) <= AGREE:
                wrong.append(name)
        if wrong:
            raise JournalError(
                f"verify: {computed['target']!r}: the rows come to {computed[wrong[0]]}, the "
                f"journal says otherwise: " + ", ".join(f"{n} {row.get(n)}" for n in wrong)
            )
