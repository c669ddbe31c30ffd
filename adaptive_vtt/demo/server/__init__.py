"""A model endpoint on loopback, for tests and for trying things out: it knows the truth about
the images it is asked about, and errs, delays and fails at rates that are set.
"""

from .behaviour import FAULTS, Behaviour, Statistics
from .brains import REFUSAL, Brain, DemoBrain, Reply
from .openai_api import QUIRKS, Quirks
from .server import MODEL, STATISTICS, DemoServer

__all__ = [
    "FAULTS",
    "MODEL",
    "QUIRKS",
    "REFUSAL",
    "STATISTICS",
    "Behaviour",
    "Brain",
    "DemoBrain",
    "DemoServer",
    "Quirks",
    "Reply",
    "Statistics",
]
