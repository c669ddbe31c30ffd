"""What tables have in common that stand an audit's figures beside published ones."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from .section import Section, fragment, span
from .target_status import Standing


@dataclass(frozen=True)
class Row:
    """One target: its name, rate and interval, and each published model's rate."""

    what: str
    rate: float
    interval: str
    published: tuple[float | None, ...]

    @classmethod
    def of(cls, what: str, target: Standing, published: Iterable[float | None]) -> "Row":
        """That of a target whose rate is compared as it is."""
        return cls(what, target.estimate, span(target.lower, target.upper), tuple(published))


@cache
def published_tables(name: str) -> dict[str, Any]:
    """What data/NAME.json holds, figures as they were printed. Kept: never write to it."""
    text = files(__package__).joinpath(f"data/{name}.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def table_of(
    paper: str, rows: Iterable[Row], models: Iterable[str], source: str = "source"
) -> Section:
    """Rows beside the figures of a paper's ``models``, in the words of data/PAPER.json;
    ``source``: which of them says where those are from."""
    words = published_tables(paper)["words"]
    html = fragment(
        "published_beside.html",
        rows=list(rows),
        models=list(models),
        intro=words["intro"],
        label=words["label"],
        source=words[source],
    )
    return Section(words["title"], words["anchor"], html)
