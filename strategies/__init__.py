"""Strategies: functions from an audit's belief to weights over candidate questions."""

if __name__ != "adaptive_vtt.strategies":
    raise ImportError("this folder is imported as adaptive_vtt.strategies, not as strategies")

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from adaptive_vtt.errors import InputError, unexpected
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
"""Name of the paper's Algorithm 1."""
EVERYTHING = "everything"
"""Name of a census, which asks every question."""

REGISTRY = Registry(
    "strategy",
    "strategies",
    ("weights(candidates, belief)", "reasons(candidates, belief, place)?"),
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
"""Names of ``avtt compare`` for audits by other strategies, with the command-line options and the
Python arguments that make such an audit."""


class Named(NamedTuple):
    """A strategy with its name.

    Attributes:
        name: Name in journals.
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
        name: Built-in name, name in a package, or ``file.py:name``.
        **options: Options of the strategy.

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
        strategy: A name; a strategy, which is named after its class; or both.
        options: Options of a strategy given by name. Default None: none.
        base: Folder that relative files start from. Default None: the working folder.

    Raises:
        InputError: The name or an option is unknown, or there are options for a strategy that is
            already built.
    """
    if not isinstance(strategy, str):
        if not isinstance(strategy, Named):
            strategy = Named(type(strategy).__name__, strategy)
        if options:
            got, remedy = f"{strategy.name} made already", f"give it {', '.join(options)} where it"
            raise unexpected("strategy_options", "a name", got, f"{remedy} is made")
        return Named(strategy.name, REGISTRY.checked(strategy.strategy, strategy.name))
    if strategy in COMPARED:
        command_line, python = COMPARED[strategy]
        raise InputError(
            f"unknown strategy {strategy!r}: a word of 'avtt compare' alone, for {command_line} "
            f"(in Python {python})"
        )
    return Named(strategy, REGISTRY.checked(REGISTRY.make(strategy, options or {}, base), strategy))
