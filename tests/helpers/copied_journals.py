"""Journals copied, or forged, row by row."""

from typing import Any

from adaptive_vtt.journal import Journal


def add_rows(into: Any, source: Journal) -> None:
    """Add draws and calls in the order of ``source``, since a draw depends on earlier answers."""
    draws, calls = source.draws(), {row.call: row for row in source.calls()}
    for link in source.links():
        if link.kind == "draw":
            into.add([draws[link.row]])
        elif link.kind == "call":
            into.add([calls[link.row]])
