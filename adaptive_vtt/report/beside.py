"""What tables have in common that stand an audit's figures beside published ones."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One target: its name, rate and interval, and each published model's rate."""

    what: str
    rate: float
    interval: str
    published: tuple[float | None, ...]
