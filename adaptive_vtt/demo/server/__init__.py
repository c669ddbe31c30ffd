"""A model endpoint on loopback, for tests and for trying things out: it knows the truth about
the images it is asked about, and errs, delays and fails at rates that are set.
"""

from .behaviour import FAULTS, Behaviour, Statistics
from .fake_models import REFUSAL, DemoModel, FakeModel, Reply
from .openai_api import DIALECTS, Dialect
from .server import MODEL, STATISTICS, DemoServer

__all__ = [
    "DIALECTS",
    "FAULTS",
    "MODEL",
    "REFUSAL",
    "STATISTICS",
    "Behaviour",
    "DemoModel",
    "DemoServer",
    "Dialect",
    "FakeModel",
    "Reply",
    "Statistics",
]
