"""An audit: ``Audit`` with all its steps, and ``audit``, which is all of them in one line.

The module stands where its function is looked for, so it can be called itself:
``adaptive_vtt.audit("folder", my_function)`` is ``adaptive_vtt.audit.audit(...)``.
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
