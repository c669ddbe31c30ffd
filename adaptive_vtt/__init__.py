"""Adaptive active testing: audit an expensive vision model with few calls.

Everything public hangs off this module and is imported on first use, so that
``import adaptive_vtt`` costs next to nothing (no torch, no pandas).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .audit import Audit, Certify, Limits, Sampling, audit, read_result
    from .audit.rejudging import rejudge
    from .audit.shortcut import census
    from .audit.versus import Versus
    from .benchmark.comparing import compare
    from .benchmark.comparison import StrategyComparison
    from .cohort import Cohort
    from .config.going_on import resume
    from .pool import Pool
    from .relations.augment import Augment
    from .results.result import Result
    from .space import QuestionSpace

_HOMES = {
    "Audit": "audit",
    "Augment": "relations.augment",
    "Certify": "engine.options",
    "Cohort": "cohort",
    "Limits": "engine.options",
    "Pool": "pool",
    "QuestionSpace": "space",
    "Result": "results.result",
    "Sampling": "engine.options",
    "StrategyComparison": "benchmark.comparison",
    "Versus": "audit.versus",
    "census": "audit.shortcut",
    "compare": "benchmark.comparing",
    "read_result": "audit",
    "rejudge": "audit.rejudging",
    "resume": "config.going_on",
}
_RENAMED = {
    "augment": "relations.augment",
    "report": "results.report",
}
"""Modules that go by other names here; all others by their own."""
__all__ = [
    "Audit",
    "Augment",
    "Certify",
    "Cohort",
    "Limits",
    "Pool",
    "QuestionSpace",
    "Result",
    "Sampling",
    "StrategyComparison",
    "Versus",
    "audit",
    "augment",
    "census",
    "compare",
    "datasets",
    "demo",
    "errors",
    "inspect",
    "models",
    "oracles",
    "read_result",
    "rejudge",
    "relations",
    "report",
    "resume",
    "stopping",
    "strategies",
    "surrogates",
    "testing",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    if name in __all__:
        return import_module(f"{__name__}.{_RENAMED.get(name, name)}")
    if name == "__version__":
        from .utils.importing import own_version

        return own_version()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
