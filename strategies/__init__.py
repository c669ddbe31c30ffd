"""Strategies: belief in, weights over candidate questions out."""

if __name__ != "adaptive_vtt.strategies":
    raise ImportError("this folder is imported as adaptive_vtt.strategies, not as strategies")

from adaptive_vtt.errors import InputError, one_line, unknown

from .base import Strategy
from .uniform import Random
from .visual_turing_test import Combined, Uncertainty, Unpredictability

__all__ = ["Combined", "Random", "Strategy", "Uncertainty", "Unpredictability", "get", "names"]

_REGISTRY: dict[str, type[Strategy]] = {
    "random": Random,
    "unpredictability": Unpredictability,
    "uncertainty": Uncertainty,
    "uncertainty+unpredictability": Combined,
}


def names() -> list[str]:
    """The names of all built-in strategies."""
    return list(_REGISTRY)


def get(name: str, **options: float) -> Strategy:
    """The strategy called ``name``; raises InputError for an unknown name or option."""
    if name not in _REGISTRY:
        raise unknown("strategy", name, _REGISTRY)
    try:
        return _REGISTRY[name](**options)
    except TypeError as error:
        raise InputError(f"strategy {name!r}: {one_line(error)}") from None
