"""What servers that speak OpenAI's protocol do otherwise than OpenAI's."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from .http import Rejected

_FIELDS = ("model", "messages", "max_tokens", "temperature", "stream", "n")
"""Fields of a request that every server takes."""


@dataclass(frozen=True)
class Quirks:
    """``root``: where its protocol is served. ``ignored``: fields that are passed over in silence.
    ``known``: fields that are taken beside the plainest, any other being refused with 400; None:
    others are passed over. ``most_alternatives``: of ``top_logprobs``; more are refused.
    ``listed_errors``: errors come as a list of one."""

    root: str = "/v1"
    ignored: tuple[str, ...] = ()
    known: tuple[str, ...] | None = None
    most_alternatives: int = 20
    listed_errors: bool = False

    def taken(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """What is heeded of a request; raises Rejected for a field that is refused."""
        for name in asked:
            if self.known is not None and name not in (*_FIELDS, *self.known):
                message = (
                    f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.'
                )
                raise Rejected(400, message, param=name)
        top = asked.get("top_logprobs")
        if isinstance(top, int) and top > self.most_alternatives:
            most = self.most_alternatives
            raise Rejected(
                400,
                f"Requested sample logprobs of {top}, which is greater than max allowed: {most}",
                param="top_logprobs",
            )
        return {name: value for name, value in asked.items() if name not in self.ignored}


_LOGPROBS = ("logprobs", "top_logprobs")
QUIRKS: Mapping[str, Quirks] = MappingProxyType(
    {
        "openai": Quirks(),
        "gemini": Quirks(
            root="/v1beta/openai",
            known=("response_format", "reasoning_effort", "max_completion_tokens"),
            listed_errors=True,
        ),
        "vllm": Quirks(most_alternatives=5),  # where it is begun with --max-logprobs 5
        "ollama": Quirks(ignored=_LOGPROBS),
        "ollama-old": Quirks(ignored=(*_LOGPROBS, "response_format")),  # before 0.5
    }
)
"""By the servers that are imitated."""
