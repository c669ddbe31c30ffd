"""Strategies: belief in, weights over candidate questions out."""

if __name__ != "adaptive_vtt.strategies":
    raise ImportError("this folder is imported as adaptive_vtt.strategies, not as strategies")

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from adaptive_vtt.utils.importing import lazily
from adaptive_vtt.utils.registry import Registry

from .base import Mixed, Reasoned, Strategy
from .by_need import NAME as CERTIFY
from .by_need import ByNeed

if TYPE_CHECKING:
    from .active_testing import Lure, Neyman
    from .distinct_violations import DistinctViolations
    from .expected_reduction import ExpectedReduction
    from .failure_search import FailureSearch
    from .information import Bald, Nipv
    from .k_centre import KCentre
    from .reic import Reic
    from .stratified import Stratified
    from .uniform import Random
    from .visual_turing_test import Combined, Uncertainty, Unpredictability

__getattr__, __dir__ = lazily(
    __name__,
    {
        "active_testing": "Lure Neyman",
        "distinct_violations": "DistinctViolations",
        "expected_reduction": "ExpectedReduction",
        "failure_search": "FailureSearch",
        "information": "Bald Nipv",
        "k_centre": "KCentre",
        "reic": "Reic",
        "stratified": "Stratified",
        "uniform": "Random",
        "visual_turing_test": "Combined Uncertainty Unpredictability",
    },
)

__all__ = [
    "CERTIFY",
    "PAPER",
    "REGISTRY",
    "Bald",
    "ByNeed",
    "Combined",
    "DistinctViolations",
    "ExpectedReduction",
    "FailureSearch",
    "KCentre",
    "Lure",
    "Mixed",
    "Named",
    "Neyman",
    "Nipv",
    "Random",
    "Reasoned",
    "Reic",
    "Strategy",
    "Stratified",
    "Uncertainty",
    "Unpredictability",
    "default",
    "get",
    "named",
    "names",
]

PAPER = "uncertainty+unpredictability"
"""Algorithm 1 of the paper."""

REGISTRY = Registry(
    "strategy",
    "strategies",
    ("weights",),
    {
        "random": f"{__name__}.uniform:Random",
        CERTIFY: ByNeed,
        "stratified": f"{__name__}.stratified:Stratified",
        "unpredictability": f"{__name__}.visual_turing_test:Unpredictability",
        "uncertainty": f"{__name__}.visual_turing_test:Uncertainty",
        PAPER: f"{__name__}.visual_turing_test:Combined",
        "expected-reduction": f"{__name__}.expected_reduction:ExpectedReduction",
        "neyman": f"{__name__}.active_testing:Neyman",
        "lure": f"{__name__}.active_testing:Lure",
        "bald": f"{__name__}.information:Bald",
        "nipv": f"{__name__}.information:Nipv",
        "k-centre": f"{__name__}.k_centre:KCentre",
        "failure-search": f"{__name__}.failure_search:FailureSearch",
        "distinct-violations": f"{__name__}.distinct_violations:DistinctViolations",
        "reic": f"{__name__}.reic:Reic",
    },
)


class Named(NamedTuple):
    """A strategy and what journals call it."""

    name: str
    strategy: Strategy


def default(certifies: bool) -> str:
    """The name of the strategy of an audit that names none."""
    return CERTIFY if certifies else PAPER


def names() -> list[str]:
    """The names of all built-in strategies."""
    return list(REGISTRY.built_in)


def get(name: str, **options: Any) -> Strategy:
    """The strategy called ``name``: built-in, of a package, or ``file.py:name``.

    Raises InputError for an unknown name or option.
    """
    return named(name, options).strategy


def named(
    strategy: str | Strategy | Named,
    options: Mapping[str, Any] | None = None,
    base: Path | None = None,
) -> Named:
    """A strategy with its name; without one, that of its class.

    ``options`` and ``base``: of a name, as for ``Registry.make``. Raises InputError for an
    unknown name or option.
    """
    if isinstance(strategy, Named):
        return strategy
    if not isinstance(strategy, str):
        return Named(type(strategy).__name__, strategy)
    made = REGISTRY.make(strategy, options or {}, base)
    return Named(strategy, REGISTRY.checked(made, strategy))
