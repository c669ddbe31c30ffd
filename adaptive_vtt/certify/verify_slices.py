"""Slices anew: were they fixed before the draws that certify them, and is what they say so?

Code of its own, as in ``verify``. What is checked, by the order of the rows in the chain:

- the share of alpha for slices is what it was when the audit began;
- a slice was written down after the draws before ``since`` and before draw ``since``;
- no slice was changed, moved or taken back after that;
- its questions that were seen before are those of the earlier draws that its masks select.
"""

import json
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from ..errors import JournalError
from ..journal import Journal
from ..journal.rows import DrawRow, FactRow
from .verify_draws import members_of

if TYPE_CHECKING:
    from ..journal.facts import Facts


def check_slices(journal: Journal, facts: "Facts", draws: list[DrawRow]) -> None:
    """Raises JournalError naming the first thing that is wrong."""
    certificate = facts.certificate
    if certificate is None or not (certificate.set_aside or certificate.slices):
        return
    rows = {row.position: row for row in journal.fact_rows()}
    links = journal.links()
    made = [0, *accumulate(link.kind == "draw" for link in links)]
    written = [
        (rows[link.row], count)
        for link, count in zip(links, made, strict=False)
        if link.kind == "fact"
    ]
    _check_share([row for row, _ in written if row.name == "certificate"])
    _check_order([(json.loads(row.value), count) for row, count in written if row.name == "slices"])
    if facts.population and certificate.slices:
        before = draws[: max(certificate.since)]
        drawn = members_of(facts.population, certificate, [draw.call for draw in before])
        for slice_, numbers in zip(certificate.slices, drawn, strict=True):
            seen = [question for part in numbers[: slice_.since] for question in part]
            if seen != list(slice_.seen):
                raise JournalError(
                    f"verify: slice {slice_.name!r}: its questions that were seen before draw "
                    f"{slice_.since} are not those that it selects"
                )


def _check_share(rows: list[FactRow]) -> None:
    shares = [json.loads(row.value).get("set_aside", 0.0) for row in rows]
    if len(set(shares)) > 1:
        raise JournalError(
            "verify: the share of alpha for slices was changed after the audit began: "
            + ", then ".join(map(str, shares))
        )


def _check_order(versions: list[tuple[list[dict[str, Any]], int]]) -> None:
    """``versions``: the slices as they were written, and how many draws stood before."""
    before: list[dict[str, Any]] = []
    for slices, made in versions:
        if slices[: len(before)] != before:
            raise JournalError("verify: a slice was altered after it was written down")
        for slice_ in slices[len(before) :]:
            if slice_["since"] != made:
                raise JournalError(
                    f"verify: slice {slice_['name']!r} starts with draw {slice_['since']}, but was "
                    f"written down before draw {made}"
                )
        before = slices
