"""Audits: the class ``Audit``, and ``audit``, which runs one in a single line.

The package can be called like its function: ``adaptive_vtt.audit("folder", my_function)`` is
``adaptive_vtt.audit.audit(...)``.
"""

import sys
from types import ModuleType

from ..engine.call_queue import Call
from ..engine.calling import Progress
from ..engine.options import Certify, Limits, Sampling
from .asking import Audit
from .inspection import read_result
from .one_line import audit

__all__ = ["Audit", "Call", "Certify", "Limits", "Progress", "Sampling", "audit", "read_result"]


class _Callable(ModuleType):
    """A module that is called as its function."""

    __call__ = staticmethod(audit)


sys.modules[__name__].__class__ = _Callable
