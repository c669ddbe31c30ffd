"""Strategies: belief in, weights over candidate questions out."""

if __name__ != "adaptive_vtt.strategies":
    raise ImportError("this folder is imported as adaptive_vtt.strategies, not as strategies")

from adaptive_vtt.errors import InputError, one_line, unknown

from .active_testing import Lure, Neyman
from .base import Strategy
from .distinct_violations import DistinctViolations
from .expected_reduction import ExpectedReduction
from .failure_search import FailureSearch
from .information import Bald, Nipv
from .k_centre import KCentre
from .reic import Reic
from .stratified import Stratified
from .uniform import Random
from .visual_turing_test import Combined, Uncertainty, Unpredictability

__all__ = [
    "Bald",
    "Combined",
    "DistinctViolations",
    "ExpectedReduction",
    "FailureSearch",
    "KCentre",
    "Lure",
    "Neyman",
    "Nipv",
    "Random",
    "Reic",
    "Strategy",
    "Stratified",
    "Uncertainty",
    "Unpredictability",
    "get",
    "names",
]

_REGISTRY: dict[str, type[Strategy]] = {
    "random": Random,
    "stratified": Stratified,
    "unpredictability": Unpredictability,
    "uncertainty": Uncertainty,
    "uncertainty+unpredictability": Combined,
    "expected-reduction": ExpectedReduction,
    "neyman": Neyman,
    "lure": Lure,
    "bald": Bald,
    "nipv": Nipv,
    "k-centre": KCentre,
    "failure-search": FailureSearch,
    "distinct-violations": DistinctViolations,
    "reic": Reic,
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
