"""Adaptive active testing: audit an expensive vision model with few calls.

Everything public hangs off this module and is imported on first use, so that
``import adaptive_vtt`` costs next to nothing (no torch, no pandas).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .audit import Audit, Certify, Limits, Sampling, audit, read_result
    from .augment import Augment
    from .cohort import Cohort
    from .pool import Pool
    from .rejudging import rejudge
    from .results import Result
    from .space import QuestionSpace
    from .spec.going_on import resume
    from .versus import Versus

_HOMES = {
    "Audit": "audit",
    "Augment": "augment",
    "Certify": "engine.plan",
    "Cohort": "cohort",
    "Limits": "engine.options",
    "Pool": "pool",
    "QuestionSpace": "space",
    "Result": "results",
    "Sampling": "engine.options",
    "Versus": "versus",
    "read_result": "audit",
    "rejudge": "rejudging",
    "resume": "spec.going_on",
}
_MODULES = {
    "audit",
    "augment",
    "datasets",
    "errors",
    "models",
    "oracles",
    "relations",
    "report",
    "stopping",
    "strategies",
    "surrogates",
    "testing",
    "tracking",
}
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
    "Versus",
    "audit",
    "augment",
    "datasets",
    "errors",
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
    "tracking",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    if name == "__version__":
        return _version()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _version() -> str:
    """What was installed: the last tag, and what came after it; "0+unknown" of a bare checkout."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("adaptive-vtt")
    except PackageNotFoundError:
        return "0+unknown"


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
