"""A journal as it was at an earlier head, to compare with what was written from it then."""

import json

from .base import Journal
from .chain import Row, name_of
from .in_memory import MemoryJournal
from .rows import FactRow


def as_of(journal: Journal, head: str) -> MemoryJournal | None:
    """What the journal held when ``head`` was its head; None where it never was.

    Rows are only ever added, so it is the rows up to that link. Proposals and pictures are left
    out, as no result follows from them; its own head is another one for that.
    """
    links = journal.links()
    place = next((k for k, link in enumerate(links) if link.seal == head), None)
    if place is None:
        return None
    every: list[Row] = [
        *journal.fact_rows(),
        *journal.draws(proposals=False),
        *journal.calls(),
        *journal.sources(),
        *journal.judging(),
        *journal.beliefs(),
    ]
    rows = {name_of(row): row for row in every}
    kept = [rows[link.kind, link.row] for link in links[: place + 1]]

    earlier = MemoryJournal()
    for row in kept:
        if isinstance(row, FactRow):
            earlier.set_facts(**{row.name: json.loads(row.value)})
        else:
            earlier.add([row])
    return earlier
