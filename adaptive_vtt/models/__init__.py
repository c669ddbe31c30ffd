"""Models under test: how the engine talks to whatever is audited."""

from .base import Answer, ConcurrentModel, ModelUnderTest, Prompt, Unanswered, Value
from .loading import load
from .python import PythonModel, TorchModel
from .recorded import Recorded
from .simulated import Simulated

__all__ = [
    "Answer",
    "ConcurrentModel",
    "ModelUnderTest",
    "Prompt",
    "PythonModel",
    "Recorded",
    "Simulated",
    "TorchModel",
    "Unanswered",
    "Value",
    "load",
]
