"""Models under test: how the engine talks to whatever is audited.

Adapters that need a library of their own, or a network, are imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .base import Answer, ConcurrentModel, ModelUnderTest, Prompt, Unanswered, Value
from .limits import Limits, Retries
from .loading import load
from .prices import Prices, Usage
from .python import PythonModel, TorchModel
from .recorded import Recorded
from .simulated import Simulated

if TYPE_CHECKING:
    from .endpoint import Endpoint
    from .http_json import HttpJson
    from .onnx import OnnxModel
    from .open_inference import OpenInference
    from .openai_chat import OpenAIChat
    from .picture import Encoding
    from .recorded_captions import RecordedCaptions
    from .subprocess_lines import SubprocessModel
    from .template_captioner import TemplateCaptioner

_HOMES = {
    "Encoding": "picture",
    "Endpoint": "endpoint",
    "HttpJson": "http_json",
    "OnnxModel": "onnx",
    "OpenAIChat": "openai_chat",
    "OpenInference": "open_inference",
    "RecordedCaptions": "recorded_captions",
    "SubprocessModel": "subprocess_lines",
    "TemplateCaptioner": "template_captioner",
}

__all__ = [
    "Answer",
    "ConcurrentModel",
    "Encoding",
    "Endpoint",
    "HttpJson",
    "Limits",
    "ModelUnderTest",
    "OnnxModel",
    "OpenAIChat",
    "OpenInference",
    "Prices",
    "Prompt",
    "PythonModel",
    "Recorded",
    "RecordedCaptions",
    "Retries",
    "Simulated",
    "SubprocessModel",
    "TemplateCaptioner",
    "TorchModel",
    "Unanswered",
    "Usage",
    "Value",
    "load",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
