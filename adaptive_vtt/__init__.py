"""Adaptive active testing: audit an expensive vision model with few calls.

Everything public hangs off this module and is imported on first use, so that
``import adaptive_vtt`` costs next to nothing (no torch, no pandas).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .utils.importing import lazily, own_version

if TYPE_CHECKING:
    from .audit import Audit, audit, read_result
    from .audit.one_line import census
    from .audit.rejudging import rejudge
    from .audit.versus import Versus
    from .benchmark.comparing import compare
    from .benchmark.comparison import StrategyComparison
    from .cohort import Cohort
    from .config.resuming import resume
    from .engine.options import Certify, Limits, Sampling
    from .pool import Pool
    from .relations.augment import Augment
    from .results.result import Result
    from .space import QuestionSpace

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


_MODULES = {"augment": "relations.augment", "report": "results.report"}
"""Modules that have other names here."""
_imported, _listed = lazily(__name__)
_NAMES = {*_listed()} - {"audit"}  # the module is callable, and is its function, too


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return own_version()
    if name in __all__ and name not in _NAMES:
        return import_module(f"{__name__}.{_MODULES.get(name, name)}")
    return _imported(name)


def __dir__() -> list[str]:
    return sorted({*_listed(), *__all__})
