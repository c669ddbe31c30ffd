"""Models under test: the protocol by which the engine asks them, and adapters for each kind.

Adapters that need an optional library, or a network, are imported on first use.
"""

from typing import TYPE_CHECKING

from ..types import Answer, Prompt, Unanswered, Value
from ..utils.importing import lazily
from ..utils.registry import Registry
from .base import BatchModel, ConcurrentModel, ModelDefaults, ModelUnderTest, adapted_model

if TYPE_CHECKING:
    from .local.onnx import OnnxModel
    from .local.python import PythonModel, TorchModel, load
    from .local.recorded import Recorded, RecordedCaptions
    from .local.self_taught import SelfTaught
    from .local.simulated import Simulated
    from .network.anthropic import AnthropicMessages
    from .network.batches import OpenAIBatch
    from .network.endpoint import Endpoint
    from .network.http import Encoding
    from .network.http_json import HttpJson
    from .network.inspect_model import InspectModel
    from .network.limits import Limits, Retries
    from .network.open_inference import OpenInference
    from .network.openai import OpenAIChat
    from .network.prices import Prices, Usage
    from .workers import Workers

__getattr__, __dir__ = lazily(__name__)

WORKED = {
    "onnx": f"{__name__}.local.onnx:OnnxModel",
    "torch": f"{__name__}.local.torch_network:torch_network",
}
"""Kinds of models that compute locally, so that each of several workers may hold a copy."""
REGISTRY = Registry(
    "model",
    "models",
    ("answers", "ask"),
    {
        "python": f"{__name__}.local.python:load",
        "recorded": f"{__name__}.local.recorded:recorded",
        "simulated": f"{__name__}.local.simulated:paper",
        "openai": f"{__name__}.network.openai:OpenAIChat",
        "anthropic": f"{__name__}.network.anthropic:AnthropicMessages",
        "openai-batch": f"{__name__}.network.batches:OpenAIBatch",
        "inspect": f"{__name__}.network.inspect_model:InspectModel",
        "open-inference": f"{__name__}.network.open_inference:OpenInference",
        "http": f"{__name__}.network.http_json:HttpJson",
        **WORKED,
    },
)
"""Every kind of model that a SPEC.toml may name."""

__all__ = [
    "REGISTRY", "Answer", "AnthropicMessages", "BatchModel", "ConcurrentModel", "Encoding",
    "Endpoint", "HttpJson", "InspectModel", "Limits", "ModelDefaults", "ModelUnderTest",
    "OnnxModel", "OpenAIBatch", "OpenAIChat", "OpenInference", "Prices", "Prompt", "PythonModel",
    "Recorded", "RecordedCaptions", "Retries", "SelfTaught", "Simulated", "TorchModel",
    "Unanswered", "Usage", "Value", "Workers", "adapted_model", "load",
]  # fmt: skip
