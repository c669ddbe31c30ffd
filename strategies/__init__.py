"""Strategies: belief in, weights over candidate questions out."""

if __name__ != "adaptive_vtt.strategies":
    raise ImportError("this folder is imported as adaptive_vtt.strategies, not as strategies")

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from adaptive_vtt.errors import InputError
from adaptive_vtt.types import Candidates
from adaptive_vtt.utils.importing import lazily
from adaptive_vtt.utils.registry import Registry

from .base import BeliefView, Mixed, Reasoned, Strategy
from .by_need import NAME as CERTIFY
from .by_need import ByNeed

if TYPE_CHECKING:
    from .expected_reduction import ExpectedReduction
    from .failure_search import FailureSearch
    from .information import Bald, Nipv
    from .k_centre import KCentre
    from .sampling import Lure, Neyman, Random, Stratified
    from .visual_turing_test import Combined, Uncertainty, Unpredictability

__getattr__, __dir__ = lazily(__name__)

__all__ = [
    "CERTIFY",
    "EVERYTHING",
    "PAPER",
    "REGISTRY",
    "Bald",
    "BeliefView",
    "ByNeed",
    "Candidates",
    "Combined",
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
EVERYTHING = "everything"
"""A census: nothing is chosen."""

REGISTRY = Registry(
    "strategy",
    "strategies",
    ("weights",),
    {
        "random": f"{__name__}.sampling:Random",
        CERTIFY: ByNeed,
        "stratified": f"{__name__}.sampling:Stratified",
        "unpredictability": f"{__name__}.visual_turing_test:Unpredictability",
        "uncertainty": f"{__name__}.visual_turing_test:Uncertainty",
        PAPER: f"{__name__}.visual_turing_test:Combined",
        "expected-reduction": f"{__name__}.expected_reduction:ExpectedReduction",
        "neyman": f"{__name__}.sampling:Neyman",
        "lure": f"{__name__}.sampling:Lure",
        "bald": f"{__name__}.information:Bald",
        "nipv": f"{__name__}.information:Nipv",
        "k-centre": f"{__name__}.k_centre:KCentre",
        "failure-search": f"{__name__}.failure_search:FailureSearch",
        EVERYTHING: f"{__name__}.sampling:Everything",
    },
)

COMPARED = {
    "uniform": (
        "draws by chance without predictions: --strategy random --set certify.surrogate=false "
        "--set audit.exploration=1e-6",
        "strategy='random', surrogate=False, exploration=1e-6",
    ),
    "prediction-powered": (
        "draws by chance with predictions: --strategy random --set audit.exploration=1e-6",
        "strategy='random', exploration=1e-6",
    ),
    "argmax": (
        "bald with predictions: --strategy bald --set audit.exploration=1e-6",
        "strategy='bald', exploration=1e-6",
    ),
}
"""Words of ``avtt compare`` for audits of other strategies: what they are on the command line, and
in Python."""


class Named(NamedTuple):
    """A strategy and its name in journals.

    Attributes:
        name: The name.
        strategy: The strategy.
    """

    name: str
    strategy: Strategy


def default(certifies: bool) -> str:
    """Return the name of the default strategy.

    Args:
        certifies: Whether the audit has targets to certify.
    """
    return CERTIFY if certifies else PAPER


def names() -> list[str]:
    """Return the names of all built-in strategies."""
    return list(REGISTRY.built_in)


def get(name: str, **options: Any) -> Strategy:
    """Return a strategy by its name.

    Args:
        name: A built-in name, a package's, or ``file.py:name``.
        **options: Its options.

    Raises:
        InputError: The name or an option is unknown.
    """
    return named(name, options).strategy


def named(
    strategy: str | Strategy | Named,
    options: Mapping[str, Any] | None = None,
    base: Path | None = None,
) -> Named:
    """Return a strategy with its name.

    Args:
        strategy: A name, a strategy, which is named after its class, or both.
        options: Options of a named strategy. Default None: none.
        base: The folder at which a relative file starts. Default None: the working folder.

    Raises:
        InputError: The name or an option is unknown, or there are options for a strategy that is
            already made.
    """
    if not isinstance(strategy, str):
        made = strategy if isinstance(strategy, Named) else Named(type(strategy).__name__, strategy)
        if options:
            raise InputError(
                f"strategy_options: expected a strategy given by its name, got {made.name} made "
                f"already; give it {', '.join(options)} where it is made"
            )
        return made
    if strategy in COMPARED:
        typed, python = COMPARED[strategy]
        raise InputError(
            f"unknown strategy {strategy!r}: a word of 'avtt compare' alone, for {typed} (in "
            f"Python {python})"
        )
    made = REGISTRY.make(strategy, options or {}, base)
    return Named(strategy, REGISTRY.checked(made, strategy))
