"""A journal as it was at an earlier head, to check a report that was written then."""

import json

from .base import Journal
from .chain import Row, name_of
from .in_memory import MemoryJournal
from .rows import FactRow


def as_of(journal: Journal, head: str) -> MemoryJournal | None:
    """Return the journal as it was when ``head`` was its head.

    Rows are only ever added, so these are the rows up to that link. Proposals and pictures are
    omitted, as no result depends on them, so the head of the copy differs.

    Returns:
        A copy in memory, or None if the journal never had that head.
    """
    links = journal.links()
    place = next((k for k, link in enumerate(links) if link.seal == head), None)
    if place is None:
        return None
    all_rows: list[Row] = [
        *journal.fact_rows(),
        *journal.draws(proposals=False),
        *journal.calls(),
        *journal.sources(),
        *journal.judging(),
        *journal.beliefs(),
    ]
    rows = {name_of(row): row for row in all_rows}
    earlier = MemoryJournal()
    for link in links[: place + 1]:
        row = rows[link.kind, link.row]
        if isinstance(row, FactRow):
            earlier.set_facts(**{row.name: json.loads(row.value)})
        else:
            earlier.add([row])
    return earlier
